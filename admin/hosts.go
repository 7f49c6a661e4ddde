package admin

import (
	"context"

	"croft/aggregate"
	"croft/capacity"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// Host is a host and what is on it.
type Host struct {
	URN      urn.URN  `json:"urn"`
	Name     string   `json:"name"`
	Types    []string `json:"sliver_types,omitempty"`
	State    string   `json:"state"`         // "in service", "drained", …
	Why      string   `json:"why,omitempty"` // it takes no new nodes
	Capacity Amount   `json:"capacity"`
	Taken    Amount   `json:"taken"`
	Slivers  []Sliver `json:"slivers"`
}

// Amount is what a host has, or what is taken of it. What is not counted is
// zero.
type Amount struct {
	Cores  float64 `json:"cores"`
	Memory int64   `json:"memory_mib"`
	Disk   int64   `json:"disk_mib"`
}

// Machines are what drivers have, compared with the store.
type Machines struct {
	Things []Thing  `json:"things"`
	Silent []string `json:"silent"` // drivers that do not answer
}

// Thing is a sliver on a machine, or one that should be there.
type Thing struct {
	Driver   string           `json:"driver"`
	Sliver   urn.URN          `json:"sliver"`
	Slice    urn.URN          `json:"slice,omitzero"`
	ClientID request.ClientID `json:"client_id,omitempty"`
	Kind     slivers.Kind     `json:"kind"`
	There    bool             `json:"there"`
	Running  bool             `json:"running"`
	Amiss    string           `json:"amiss,omitempty"` // how it differs from what it should be
}

func amountOf(a capacity.Amount) Amount {
	return Amount{Cores: float64(a.Cores) / 1000, Memory: int64(a.Memory), Disk: int64(a.Disk)}
}

func hostOf(h aggregate.HostSummary) Host {
	return Host{URN: h.Host, Name: h.Name, Types: h.Types, State: string(h.State), Why: h.Why,
		Capacity: amountOf(h.Capacity), Taken: amountOf(h.Taken), Slivers: convert(h.Slivers, sliverOf)}
}

func thingOf(d aggregate.Difference) Thing {
	return Thing{Driver: d.Driver, Sliver: d.Sliver, Slice: d.Slice, ClientID: d.ClientID, Kind: d.Kind, There: d.There, Running: d.Running, Amiss: d.What}
}

func freedOf(f aggregate.Freed) Sliver {
	s := sliverOf(f.Sliver)
	s.Left = f.Left
	return s
}

// Hosts lists the hosts, and what is on them.
func (c *Client) Hosts(ctx context.Context) (list []Host, err error) {
	err = c.get(ctx, "hosts", urn.URN{}, &list)
	return list, err
}

// Machines compares what drivers have with what they should have.
func (c *Client) Machines(ctx context.Context) (m Machines, err error) {
	err = c.get(ctx, "machines", urn.URN{}, &m)
	return m, err
}

// Drain lets no new slivers on a host.
func (c *Client) Drain(ctx context.Context, host urn.URN, reason string) error {
	return c.post(ctx, "drain", Name{URN: host, Reason: reason}, new(Name))
}

// Undrain lets them on it again.
func (c *Client) Undrain(ctx context.Context, host urn.URN) error {
	return c.post(ctx, "undrain", Name{URN: host}, new(Name))
}
