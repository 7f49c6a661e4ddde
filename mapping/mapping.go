// Package mapping places requests onto inventories: which host carries which
// node, and which wires, VLAN tag and shapes each link gets. It is a pure
// function: the same snapshot, occupancy, request and options give the same
// answer, on one core or many, unless a deadline cuts it, which it says.
//
// # How it works
//
// A snapshot is made ready once (ground): its hosts in a form that is quick to
// compare, and the solver's testbed of hosts, switches and wires. What is taken
// is laid over it for each request (board).
//
// Nodes that want the same form a want. For each want and host, the wishes are
// looked at one after the other; how far a host gets says why it is none, and
// where no host gets through, which wishes cannot be had together. Then an
// exact search places the nodes without their links (search): what it refuses
// is impossible, and the answer names the first node that does not fit beside
// those before it. Package solver takes the search's placement as a hint and
// looks for the placement of least cost, ways of links included. A placement
// that keeps to the hint is taken unless another one is better by more than
// keepHints, so that like requests get like placements.
//
// Hosts that declare interfaces reach others only by the cables, switches and
// trunks of the inventory; if it declares no cables at all, by their interfaces
// and one network. Hosts without interfaces share a network without limit.
// Nodes that have a host to themselves own the interfaces of their links unless
// a link is multiplexed; others share those of their host. A link that asks for
// no rate, or for best effort, takes none of any wire.
//
// # What it costs
//
// See Objective, and Weights of package solver. A host costs a node besides:
// weights of features that it does not want, or that the host lacks; a little
// where the host is large, could be given out whole, or names the type late.
package mapping

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"croft/capacity"
	"croft/inventory"
	"croft/request"
	"croft/urn"
)

// Mapper places requests. Map answers with a placement of the whole request,
// or with a *Refusal.
//
// The Digest of a snapshot says what it holds, but for which of its hosts are
// out of service: that may differ in copies.
type Mapper interface {
	Map(snapshot *inventory.Snapshot, occupancy Occupancy, req *request.Request, options Options) (*Placement, error)
}

// Options direct a mapping. The zero Options are good ones.
type Options struct {
	// Seed is of every random choice, and of the hardware addresses that are
	// assigned: they differ between aggregates, and between Allocates of one
	// slice, only if the caller draws another seed for each. The placement of
	// nodes depends on it only where a search has to start anew.
	Seed  uint64
	Slice urn.URN // whose request this is: its own exclusive hosts stay open to it

	// Start varies where equally good placements are chosen from. With the
	// same one, like requests get like placements.
	Start uint64

	// Effort is how many possibilities a search may look at before it gives
	// up; 0 is DefaultEffort. It is counted, not timed, so that the same input
	// has the same answer on every machine.
	Effort int

	// DelayNodes lets the mapper put nodes between the ends of links that ask
	// for what their ends cannot give: those of a sliver type that the
	// inventory declares as delay nodes. Without it, such links are refused.
	DelayNodes bool

	// Deadline ends the optimizing early, by Clock, if it is not zero; the
	// placement or the refusal then says that it was cut. Where the search is
	// cut depends on the machine.
	Deadline time.Time
	Clock    func() time.Time // needed with a Deadline
}

// DefaultEffort is enough for every arrangement of a dozen nodes, and a second
// of one core at the very most.
const DefaultEffort = 10_000_000

// Occupancy is what is taken of a snapshot's hosts.
type Occupancy struct {
	// Version changes whenever anything in the occupancy does; a reservation
	// re-checks it.
	Version int64
	Hosts   map[urn.URN]Use // by canonical URN

	// Wires is what is taken of wires, by the canonical URN of the inventory's
	// link, or of the interface where no cable is declared.
	Wires map[urn.URN]WireUse
	// VLANs are the tags that links have, with how many links have each.
	VLANs map[int]int
	// VNIs are the VXLAN network identifiers that links have between machines,
	// with how many links have each. Who makes the links gives them out: a
	// mapping knows hosts, not machines.
	VNIs map[int]int

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
	// Types counts the nodes of each sliver type, Features the amounts taken.
	Types    map[request.SliverType]int
	Features map[string]float64
	Internal capacity.Kbps // of links within the host
}

// WireUse is what is taken of one wire.
type WireUse struct {
	Bandwidth capacity.Kbps
	Links     int
	Exclusive bool // a link has it to itself
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
	Component urn.URN // the host's interface, if it has one of its own
	Addresses []netip.Prefix
}

// Placement is an answer: every node and link of the request, placed, but for
// optional nodes that there is no room for and links that join none but them.
//
// A link that needs delay nodes is cut: the link of the request then joins one
// of its ends, or those that need none, to the delay nodes, and further links,
// after all of the request, join these to the other ends.
type Placement struct {
	Nodes []NodePlacement // in the order of the request, then delay nodes
	Links []LinkPlacement
	Left  []request.ClientID // optional nodes left out
	Score float64            // what the placement costs by the objective; the lower the better
	Cut   bool               // the search was ended by the deadline: there may be a better one
}

// NodePlacement says where a node goes and what it is made as.
type NodePlacement struct {
	Node       request.ClientID
	Host       urn.URN
	SliverType request.SliverType
	Image      urn.URN
	Exclusive  bool
	Capacity   capacity.Amount
	Features   map[string]float64 // amounts taken of the host's features
	Interfaces []InterfacePlacement
	// Delays is the link that the mapper has put the node into, to pass frames
	// from its one interface to the other; "" for a node of the request.
	Delays request.ClientID `json:",omitempty"`
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
	// PartOf is the link of the request that this one is a further part of; ""
	// for a link of the request.
	PartOf request.ClientID `json:",omitempty"`
	// Within is the host that the whole link lies on; zero if it crosses hosts.
	Within urn.URN
	Ends   []EndPlacement // in the order of the request
	// Route is the wires that the link runs over; none if it crosses no cabling
	// that the inventory declares.
	Route []Carrier
	// Bandwidth is what the link takes of the host that it is within.
	Bandwidth  capacity.Kbps
	VLAN       int    // the tag that it has on the switches of its route; 0 for none
	SharedVLAN string // the inventory's name of it; "" for a link of its own
}

// EndPlacement is one end of a link.
type EndPlacement struct {
	Node      request.ClientID
	Interface request.ClientID
	Existing  bool
	Component urn.URN // the host's interface that the link leaves by; zero within a host or without cabling
	// Out and In are what the link does to what the interface sends and
	// receives.
	Out, In request.Shape
}

// Carrier is a wire with what a link takes of it.
type Carrier struct {
	Wire      urn.URN       // the inventory's link, or interface where no cable is declared
	Bandwidth capacity.Kbps `json:",omitempty"`
	Exclusive bool          `json:",omitempty"`
	Of        capacity.Kbps `json:"-"` // what the wire has; 0 for no limit. Not kept with the link
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
	NoVLAN                  // no VLAN tag is left for a link
	Disallowed              // the operator does not let the slice have it
)

// Refusal says why a request cannot be placed.
type Refusal struct {
	Kind  Kind
	Item  request.ClientID // node or link that did not fit; "" for the whole request
	Place request.Place
	Why   string
	Hint  string // what would fit; may be empty

	// Conflict is a smallest set of wants that cannot hold together, each with
	// whose it is, where it is found cheaply; also told in Why.
	Conflict []Claim `json:",omitempty"`

	// Never says of a Full that the request would not fit an empty testbed
	// either.
	Never bool

	// GaveUp says that the search ended before it had seen every arrangement:
	// there may be one that fits.
	GaveUp bool
	Cut    bool // it was the deadline that ended the search
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
