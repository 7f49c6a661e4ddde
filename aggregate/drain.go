package aggregate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"croft/capacity"
	"croft/slivers"
	"croft/urn"
)

// drains are the hosts that the operator lets no new slivers on, as the store
// has them.
type drains struct {
	kept atomic.Pointer[[]slivers.Drain]
}

func (d *drains) list() []slivers.Drain {
	if kept := d.kept.Load(); kept != nil {
		return *kept
	}
	return nil
}

func (d *drains) read(ctx context.Context, store slivers.Store) error {
	list, err := store.Drains(ctx)
	if err == nil {
		d.kept.Store(&list)
	}
	return err
}

func drainedBecause(d slivers.Drain) string {
	if d.Reason == "" {
		return "drained by the operator"
	}
	return "drained by the operator: " + d.Reason
}

// longestReason bounds what is kept as the reason for a drain.
const longestReason = 1000

// Drain lets no new slivers on a host; what is there stays. It lasts over
// restarts, until Undrain. Of a host that is drained it changes the reason.
func (s *Service) Drain(ctx context.Context, host urn.URN, reason string) error {
	if err := s.drain(ctx, host, reason); err != nil {
		return fail("drain", host, err)
	}
	return nil
}

func (s *Service) drain(ctx context.Context, host urn.URN, reason string) error {
	h, ok := s.Inventory().Host(host)
	switch {
	case !ok:
		return refuse(NotFound, "the inventory has no such host")
	case len(reason) > longestReason:
		return refuse(BadArgs, "a reason of %d bytes: at most %d", len(reason), longestReason)
	}
	// What is being mapped now comes before this, or sees it.
	s.placing.Lock()
	defer s.placing.Unlock()
	if err := s.Store.Drain(ctx, slivers.Drain{Host: h.ID, Reason: reason, Since: s.Clock()}); err != nil {
		return err
	}
	return s.drains.read(ctx, s.Store)
}

// Undrain lets new slivers on a host again.
func (s *Service) Undrain(ctx context.Context, host urn.URN) error {
	s.placing.Lock()
	defer s.placing.Unlock()
	err := s.Store.Undrain(ctx, host)
	if errors.Is(err, slivers.ErrNotFound) {
		err = refuse(NotFound, "the host is not drained")
	}
	if err == nil {
		err = s.drains.read(ctx, s.Store)
	}
	if err != nil {
		return fail("undrain", host, err)
	}
	return nil
}

// HostState says whether a host takes new nodes.
type HostState string

// The states of hosts. An earlier one of two that are so is told.
const (
	HostMissing HostState = "not in the inventory"
	HostOut     HostState = "out of service" // by the inventory
	HostDrained HostState = "drained"
	HostAiling  HostState = "ailing" // its driver has found it out of order
	HostIn      HostState = "in service"
)

// HostSummary is a host and what is on it.
type HostSummary struct {
	Host     urn.URN
	Name     string
	Types    []string // that it can make
	State    HostState
	Why      string // it takes no new nodes
	Capacity capacity.Amount
	Taken    capacity.Amount
	Slivers  []slivers.Sliver // nodes, also those being removed
}

// Hosts lists, for the operator, all hosts of the inventory, in its order, and
// after them those that have gone from it under nodes that are on them, or
// that are drained.
func (s *Service) Hosts(ctx context.Context) ([]HostSummary, error) {
	all, err := s.Store.All(ctx)
	if err != nil {
		return nil, fail("list hosts", nil, err)
	}
	snapshot, occupancy := s.Inventory(), s.Store.Occupancy()
	on := map[urn.URN][]slivers.Sliver{}
	for _, v := range all {
		if v.Node != nil {
			k := v.Node.Host.Canonical()
			on[k] = append(on[k], v)
		}
	}
	drained, ailing := map[urn.URN]string{}, reasons(s.Ailing())
	for _, d := range s.drains.list() {
		drained[d.Host.Canonical()] = d.Reason
	}
	var list []HostSummary
	seen := map[urn.URN]bool{}
	for i := range snapshot.Hosts {
		h := &snapshot.Hosts[i]
		k := h.ID.Canonical()
		seen[k] = true
		sum := HostSummary{Host: h.ID, Name: h.Name, State: HostIn, Capacity: h.Capacity, Taken: occupancy.Hosts[k].Amount, Slivers: on[k]}
		for _, t := range h.Types {
			sum.Types = append(sum.Types, string(t))
		}
		if why, is := ailing[k]; is {
			sum.State, sum.Why = HostAiling, why
		}
		if why, is := drained[k]; is {
			sum.State, sum.Why = HostDrained, why
		}
		if h.OutOfService != "" {
			sum.State, sum.Why = HostOut, h.OutOfService
		}
		list = append(list, sum)
	}
	var gone []HostSummary
	add := func(host urn.URN, name string) {
		k := host.Canonical()
		if seen[k] {
			return
		}
		seen[k] = true
		gone = append(gone, HostSummary{Host: host, Name: name, State: HostMissing, Why: drained[k], Taken: occupancy.Hosts[k].Amount, Slivers: on[k]})
	}
	for _, nodes := range on {
		add(nodes[0].Node.Host, nodes[0].Node.HostName)
	}
	for _, d := range s.drains.list() {
		add(d.Host, d.Host.Name)
	}
	slices.SortFunc(gone, func(a, b HostSummary) int { return strings.Compare(a.Host.String(), b.Host.String()) })
	return append(list, gone...), nil
}
