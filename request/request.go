// Package request holds the neutral request: what an experimenter wishes for,
// whatever language it was written in. It has nouns only; languages make
// requests, mapping places them.
package request

import (
	"fmt"
	"net/netip"

	"croft/capacity"
	"croft/urn"
)

// Request is what one document asks of this aggregate. What the document says
// about other aggregates is not in it.
type Request struct {
	Nodes   []Node
	Links   []Link
	Groups  []Group
	Classes []Class
	Steps   []Step // the start-up graph; see Step
}

// Place says where in a document something stands, for messages to its author.
type Place struct {
	Line   int    // from 1; 0 if unknown
	Column int    // from 1; 0 if unknown
	Path   string // such as `rspec/node[client_id="a"]/interface[1]`
}

// String writes the place for people: "line 4, node[…]".
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.Path
	case p.Path == "" && p.Column > 0:
		return fmt.Sprintf("line %d, column %d", p.Line, p.Column)
	case p.Path == "":
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("line %d, %s", p.Line, p.Path)
}

// ClientID is the name an experimenter gave to a node, interface or link.
type ClientID string

// Choice is a wish that can also be left open.
type Choice int

// The values of a Choice.
const (
	Open Choice = iota
	Yes
	No
)

// Node is one computer wished for.
type Node struct {
	ID    ClientID
	Place Place

	// Manager is the component manager that the document names, as it spells
	// it; zero if it names none.
	Manager urn.URN

	// Component binds the node to one component; the zero URN leaves it open.
	// ComponentName does the same by name, if Component is zero.
	Component     urn.URN
	ComponentName string

	Exclusive     Choice
	SliverType    SliverType // "" leaves it open
	TypePlace     Place      // of the sliver type; zero if it is open
	HardwareTypes []string   // any one of them; empty leaves it open
	Class         ClassName  // of Request.Classes; "" for none
	Architecture  string     // such as "x86_64"; "" leaves it open
	Site          string     // name of a site of the inventory; "" leaves it open
	Image         Image
	OtherImages   []Image // that would do as well, in order of preference

	// Capacity is the least that the node must have; zero dimensions: the
	// default of the sliver type. Most is the most that it may have; zero
	// dimensions are not bounded.
	Capacity, Most capacity.Amount

	Features   []Feature
	Parent     ClientID // the node whose host this node's host must be a part of (subnode_of); "" for none
	Interfaces []Interface

	// Hint names a component that the node would rather have than others, by
	// URN or name; one that there is not, or that does not fit, is no hindrance.
	Hint string
	// NoTrivialMix forbids links that stay within the node's host beside ones
	// that leave it.
	NoTrivialMix bool

	// Optional nodes are left out where there is no room for them; links to
	// them lose that end.
	Optional bool
	// Preemptible nodes may be taken away for those that are not.
	Preemptible bool

	// Aliases are further names by which the other nodes of the slice find it.
	Aliases []string

	Users []User // accounts that the document itself asks for; their Login is a wish
	Env   []Variable
	Ports []Port
}

// Feature is a property of hosts that a node wants. It is what a host's owner
// calls it: "ssd", "gpu-a100", "rack:3".
type Feature struct {
	Name string
	// Weight is what being without the feature costs; from 1 upwards, the node
	// cannot do without it.
	Weight float64
	// Amount is how much is wanted of a feature that hosts have amounts of; 0
	// for one that they have or have not.
	Amount float64
	Place  Place
}

// ClassName names a Class.
type ClassName string

// Class is a set of nodes that should all get the same hardware type, one of
// Types (a "virtual class" of Emulab).
type Class struct {
	Name ClassName
	// Weight is what mixing types costs; from 1 upwards it is not done (a
	// hard class).
	Weight float64
	Types  []string
	Place  Place
}

// Group says that nodes belong together or apart.
type Group struct {
	Name  string
	Apart bool // otherwise together
	By    Closeness
	Nodes []ClientID // of the request, or of the slice already
	// Weight is what each pair that is not as wished costs; from 1 upwards,
	// and at 0, the wish is a condition.
	Weight float64
	Place  Place
}

// Closeness is what the nodes of a group have in common, or must not have.
type Closeness string

// The degrees of closeness.
const (
	ByHost   Closeness = "host"
	BySwitch Closeness = "switch"
	BySite   Closeness = "site"
)

// Port is a port of a node that its users want to reach from outside of the
// experiment.
type Port struct {
	Name     string
	Number   int
	Protocol string // "tcp" or "udp"
	// URL is how the port is shown to people, with {host} and {port} for where
	// it is reached; "" for none.
	URL   string
	Place Place
}

// SliverType names a way in which a testbed makes nodes, such as "namespace"
// or "raw-pc".
type SliverType string

// Image is the disk image wished for: by its name, by a URL, or by what is in
// it. The zero Image leaves it open.
type Image struct {
	Name   string // URN or short name
	URL    string
	System System
	Place  Place
}

// IsZero reports whether no image was wished for.
func (i Image) IsZero() bool { return i.Name == "" && i.URL == "" && i.System == System{} }

// System is what an image should hold. Names compare case-insensitively; ""
// leaves a field open.
type System struct {
	OS           string // "linux"
	Distribution string // "debian"
	Version      string // exactly: "12" is also "12.5"
	MinVersion   string // dotted numbers
	MaxVersion   string
}

// Interface is one network interface of a node.
type Interface struct {
	ID        ClientID
	Place     Place
	Component urn.URN // zero leaves it open
	MAC       string  // "" leaves it open
	Addresses []netip.Prefix
}

// Link joins interfaces of nodes: two, or more for a LAN.
type Link struct {
	ID         ClientID
	Place      Place
	Manager    urn.URN // as Node.Manager
	Type       LinkType
	Ends       []End
	Properties []Property
	SharedVLAN string // name of the shared VLAN that the link is a port of; "" for none
	// VLAN is the tag that the link should have between switches; 0 leaves it
	// open. With the tag in digits as SharedVLAN, it is a shared VLAN without a
	// name, if there is one.
	VLAN int

	// Existing says that the slice has the link already, and that Ends are
	// added to it.
	Existing bool

	// Loose links go on without the ends whose nodes are deleted. Others fail.
	Loose bool

	// Multiplexed links may share a physical interface with others, told apart
	// by tags. Open: as the mapper likes.
	Multiplexed Choice
	// Trivial links may stay within a host. Open: they may.
	Trivial Choice
	// NoInterswitch forbids a way through more than one switch.
	NoInterswitch bool
	// BestEffort takes the rate as a wish: none is reserved.
	BestEffort bool
}

// LinkType is what the document calls the link: "lan", "gre-tunnel", …; ""
// leaves it open.
type LinkType string

// End is one interface of a node that a link joins. Existing is set when the
// node is not in this request but in the slice already.
type End struct {
	Node      ClientID
	Interface ClientID
	Existing  bool
	Place     Place
}

// Property is what a link should give in one direction. From and To are
// interfaces of the link; an empty one stands for all the others (a LAN as
// such). A zero value leaves that property open.
type Property struct {
	From, To  ClientID
	Capacity  capacity.Kbps
	LatencyMs float64
	JitterMs  float64 // standard deviation of the latency
	Loss      float64 // percent
	Place     Place
}

// Shape is what a link does to what passes one of its ends in one direction.
// The zero Shape does nothing.
type Shape struct {
	Capacity  capacity.Kbps `json:"capacity,omitempty"` // at the link layer; 0: as much as goes
	LatencyMs float64       `json:"latencyMs,omitempty"`
	JitterMs  float64       `json:"jitterMs,omitempty"` // standard deviation of the latency
	Loss      float64       `json:"loss,omitempty"`     // percent of the packets
}

// User is somebody whose keys open the nodes.
type User struct {
	URN  urn.URN  `json:"urn"`
	Keys []string `json:"keys"` // authorized_keys lines: type and base64, no options
	// Login is the account on the nodes. Callers leave it empty; the
	// aggregate chooses it.
	Login string `json:"login,omitempty"`
}
