// Package mapping places requests onto inventories: which host carries which
// node, and how each link is made. It is a pure function: the same snapshot,
// occupancy, request and options give the same answer.
package mapping

import (
	"fmt"
	"net"
	"net/netip"

	"croft/capacity"
	"croft/inventory"
	"croft/request"
	"croft/urn"
)

// Mapper places requests. Map answers with a placement of the whole request,
// or with a *Refusal.
type Mapper interface {
	Map(snapshot *inventory.Snapshot, occupancy Occupancy, req *request.Request, options Options) (*Placement, error)
}

// Options direct a mapping. The zero Options are good ones.
type Options struct {
	// Seed is of every random choice, and of the hardware addresses that are
	// assigned: they differ between aggregates, and between Allocates of one
	// slice, only if the caller draws another seed for each. The placement of
	// nodes depends on it only where a search has to start anew.
	Seed   uint64
	Slice  urn.URN // whose request this is: its own exclusive hosts stay open to it
	Policy Policy

	// Effort is how many possibilities a search may look at before it gives
	// up; 0 is DefaultEffort. It is counted, not timed, so that the same input
	// has the same answer on every machine.
	Effort int
}

// DefaultEffort is enough for every arrangement of a dozen nodes, and a second
// of one core at the very most.
const DefaultEffort = 10_000_000

// Policy says how nodes are laid out where there is a choice.
type Policy int

// The policies.
const (
	Pack   Policy = iota // fill up hosts, so that others stay whole
	Spread               // use the freest hosts
)

// Occupancy is what is taken of a snapshot's hosts.
type Occupancy struct {
	// Version changes whenever anything in the occupancy does; a reservation
	// re-checks it.
	Version int64
	Hosts   map[urn.URN]Use // by canonical URN

	// Existing are the nodes that the slice of the request has already and
	// that its links may join.
	Existing []ExistingNode
}

// Use is what is taken of one host.
type Use struct {
	Amount    capacity.Amount
	Slivers   int
	Exclusive bool      // given whole to one slice
	Slices    []urn.URN // canonical URNs of the slices that have nodes on it
}

// ExistingNode is a node of the slice that stands already.
type ExistingNode struct {
	ID         request.ClientID
	Host       urn.URN
	SliverType request.SliverType // "" if not known: any that the host makes
	Interfaces []ExistingInterface
}

// ExistingInterface is an interface of an ExistingNode, with whether a link
// has it already.
type ExistingInterface struct {
	ID        request.ClientID
	Linked    bool
	Addresses []netip.Prefix
}

// Placement is an answer: every node and link of the request, placed.
type Placement struct {
	Nodes []NodePlacement // in the order of the request
	Links []LinkPlacement
}

// NodePlacement says where a node goes and what it is made as.
type NodePlacement struct {
	Node       request.ClientID
	Host       urn.URN
	SliverType request.SliverType
	Image      urn.URN
	Exclusive  bool
	Capacity   capacity.Amount
	Interfaces []InterfacePlacement
}

// InterfacePlacement completes an interface: all that the request left open.
type InterfacePlacement struct {
	ID        request.ClientID
	Component urn.URN // the host's interface, if it has one of its own
	MAC       net.HardwareAddr
	Addresses []netip.Prefix
}

// LinkPlacement says how a link is made.
type LinkPlacement struct {
	Link request.ClientID
	// Within is the host that the whole link lies on; zero if it crosses hosts.
	Within urn.URN
}

// Kind says why a request was refused.
type Kind int

// The kinds of refusal.
const (
	Impossible  Kind = iota // no such thing here, however free the testbed were
	Full                    // not enough of it: of what is free, or (Never) of all there is
	Unavailable             // the thing asked for is taken or out of service
	Bandwidth               // a link's rate cannot be given
	Contradicts             // the request contradicts itself
)

// Refusal says why a request cannot be placed.
type Refusal struct {
	Kind  Kind
	Item  request.ClientID // node or link that did not fit; "" for the whole request
	Place request.Place
	Why   string
	Hint  string // what would fit; may be empty

	// Never says of a Full that the request would not fit an empty testbed
	// either.
	Never bool

	// GaveUp says that the search ended before it had seen every arrangement:
	// there may be one that fits.
	GaveUp bool
}

func (r *Refusal) Error() string {
	s := r.Why
	if r.Item != "" {
		s = fmt.Sprintf("%s: %s", r.Item, s)
	}
	if at := r.Place.String(); at != "" {
		s = at + ": " + s
	}
	if r.Hint != "" {
		s += " (" + r.Hint + ")"
	}
	return s
}
