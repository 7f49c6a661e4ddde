// Package slivers holds the nouns of what has been given out: slices, their
// slivers (nodes and links), the documents that asked for them, and the states
// that slivers go through.
package slivers

import (
	"net"
	"net/netip"
	"time"

	"croft/capacity"
	"croft/mapping"
	"croft/request"
	"croft/urn"
)

// Kind tells nodes from links.
type Kind string

// The kinds of sliver.
const (
	Node Kind = "node"
	Link Kind = "link"
)

// Allocation is an allocation state (AM API v3, "Sliver Allocation States").
type Allocation string

// The allocation states.
const (
	Unallocated Allocation = "geni_unallocated"
	Allocated   Allocation = "geni_allocated"
	Provisioned Allocation = "geni_provisioned"
)

// Operational is an operational state (AM API v3, "Sliver Operational States").
type Operational string

// The operational states.
const (
	PendingAllocation Operational = "geni_pending_allocation"
	NotReady          Operational = "geni_notready"
	Configuring       Operational = "geni_configuring"
	Stopping          Operational = "geni_stopping"
	Ready             Operational = "geni_ready"
	ReadyBusy         Operational = "geni_ready_busy"
	UpdatingUsers     Operational = "geni_updating_users"
	Failed            Operational = "geni_failed"
)

// Waiting reports whether the state ends by itself.
func (o Operational) Waiting() bool {
	switch o {
	case PendingAllocation, Configuring, Stopping, ReadyBusy, UpdatingUsers:
		return true
	}
	return false
}

// Goal is what the aggregate's keepers still have to do to a sliver. It is
// stored with the state that the sliver is in meanwhile, so that a restarted
// aggregate goes on where it was stopped.
type Goal string

// The goals.
const (
	NoGoal    Goal = ""
	Make      Goal = "make"    // a node is made, a link connected
	Start     Goal = "start"   // a node boots
	Restart   Goal = "restart" // a node boots anew
	Stop      Goal = "stop"    // a node halts
	SetUsers  Goal = "users"   // accounts and keys change
	Release   Goal = "release" // the sliver is removed from the machines, then from the store
	Forgotten Goal = "gone"    // nothing is left: the store drops the sliver
)

// Slice is what an aggregate knows of a slice: an experiment that slivers
// belong to.
type Slice struct {
	URN      urn.URN
	Shutdown bool // stopped by an operator; see AM API, Shutdown
	Created  time.Time
}

// DocumentID numbers the documents of a slice, from 1, in the order they came.
type DocumentID int64

// Document is what a caller sent to Allocate, unread.
type Document struct {
	ID        DocumentID
	Slice     urn.URN
	MediaType string
	Bytes     []byte
	Inputs    map[string]any // values that came for its parameters; numbers of the store are json.Number
	Received  time.Time
}

// Sliver is one node or link given to a slice.
type Sliver struct {
	URN      urn.URN
	Slice    urn.URN
	Document DocumentID // that asked for it
	Kind     Kind
	ClientID request.ClientID
	Manager  urn.URN // the component manager as the document spelt it; ours

	Allocation  Allocation
	Operational Operational
	Goal        Goal   // what is being done to it; NoGoal if nothing
	AutoStart   bool   // a node that starts as soon as it is made
	Fault       string // why it failed; "" if it did not
	Created     time.Time
	Expires     time.Time

	Node *NodeFacts // nodes only
	Link *LinkFacts // links only
}

// NodeFacts is what is known of a node.
type NodeFacts struct {
	Host       urn.URN // component
	HostName   string  // component_name
	Driver     string
	SliverType request.SliverType
	Image      urn.URN
	Exclusive  bool
	Capacity   capacity.Amount
	Features   map[string]float64 `json:",omitempty"` // amounts taken of its host's features
	Hostname   string             // the node's own, as in host/@name
	Interfaces []Interface
	Users      []request.User // those who can log in
	Login      Login          // where they do; zero until provisioned

	// Made and Boots count how often the node was made (with an empty disk)
	// and started.
	Made, Boots int `json:",omitempty"`

	// HostKey is the key that the node shows to those who log in, as in a
	// known_hosts file; "" if its driver does not tell.
	HostKey string `json:",omitempty"`

	// Hosts names what Croft has written of the other nodes into its hosts file.
	Hosts string `json:",omitempty"`

	Owner  urn.URN            `json:",omitzero"`  // the member who reserved it, and then who provisioned it
	Wanted []request.User     `json:",omitempty"` // accounts that the document asks for
	Env    []request.Variable `json:",omitempty"` // of its steps
	Ports  []Port             `json:",omitempty"` // reached from outside

	// Aliases are further names by which the other nodes of the slice find it.
	Aliases []string `json:",omitempty"`

	// Preemptible nodes may be taken away for others (aggregate.Preempt).
	Preemptible bool `json:",omitempty"`
}

// Login is the address that SSH clients of a node connect to.
type Login struct {
	Host string
	Port int
}

// LinkFacts is what is known of a link.
type LinkFacts struct {
	Driver string
	Ends   []End
	Within urn.URN // the host that carries the whole link; zero if it crosses hosts
	// VLAN is the tag that the link has on the testbed's switches; 0 for none.
	VLAN       int    `json:",omitempty"`
	SharedVLAN string `json:",omitempty"` // the inventory's name for it; "" for none
	// VNI is the VXLAN network identifier that the link has between machines; 0
	// for none.
	VNI int `json:",omitempty"`
	// Grown says that ends were added to the link since it was reserved.
	Grown bool `json:",omitempty"`
	// Route is the wires that it runs over, Bandwidth what it takes of the host
	// that it is within.
	Route     []mapping.Carrier `json:",omitempty"`
	Bandwidth capacity.Kbps     `json:",omitempty"`
}

// Live reports whether the sliver still belongs to its slice at a time. A
// sliver that is not live may still occupy its host: until its driver has
// confirmed that it is gone.
func (s *Sliver) Live(now time.Time) bool {
	return s.Allocation != Unallocated && now.Before(s.Expires)
}

// End is an interface that a link joins.
type End struct {
	Node      request.ClientID
	Sliver    urn.URN // of the node
	Interface request.ClientID
	Component urn.URN `json:",omitzero"` // the host's interface that the link leaves by; zero if it leaves none
	// Leaves is that interface's name, Host the component that the node is on,
	// Driver the driver that makes it.
	Leaves string  `json:",omitempty"`
	Host   urn.URN `json:",omitzero"`
	Driver string  `json:",omitempty"`
	// Later is an end that was added to the link after it was reserved: the
	// link works without it.
	Later bool `json:",omitempty"`
	// Loose is an end that the link goes on without when its node is deleted.
	Loose   bool          `json:",omitempty"`
	Out, In request.Shape `json:",omitzero"` // what the link does to what the interface sends and receives
}

// Interface is an interface of a node.
type Interface struct {
	ID        request.ClientID
	Component urn.URN
	Device    string
	MAC       MAC
	Addresses []netip.Prefix
}

// MAC is a hardware address that is written as text in JSON.
type MAC net.HardwareAddr

// String writes the address as "02:00:…".
func (m MAC) String() string { return net.HardwareAddr(m).String() }

// MarshalText writes what String does.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what net.ParseMAC reads.
func (m *MAC) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*m = nil
		return nil
	}
	a, err := net.ParseMAC(string(text))
	if err != nil {
		return err
	}
	*m = MAC(a)
	return nil
}
