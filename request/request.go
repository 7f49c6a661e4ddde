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
	Nodes []Node
	Links []Link
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
	Image         Image
	Capacity      capacity.Amount // zero dimensions: the default of the sliver type
	Interfaces    []Interface
}

// SliverType names a way in which a testbed makes nodes, such as "namespace"
// or "raw-pc".
type SliverType string

// Image is the disk image wished for. The zero Image leaves it open.
type Image struct {
	Name  string // URN or short name
	URL   string
	Place Place
}

// IsZero reports whether no image was wished for.
func (i Image) IsZero() bool { return i.Name == "" && i.URL == "" }

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
	Loss      float64 // percent
	Place     Place
}

// User is somebody whose keys open the nodes.
type User struct {
	URN  urn.URN  `json:"urn"`
	Keys []string `json:"keys"` // authorized_keys lines: type and base64, no options
	// Login is the account on the nodes. Callers leave it empty; the
	// aggregate chooses it.
	Login string `json:"login,omitempty"`
}
