package solver

import (
	"fmt"
	"time"
)

// Problem is a request to be placed on a testbed of which some may be taken.
type Problem struct {
	Testbed *Testbed
	Taken   Taken
	Nodes   []Node
	Links   []Link
	Classes []NodeClass
	Groups  []Group
	Quotas  []Quota
	Weights Weights
}

// Taken is what others have of the testbed.
type Taken struct {
	Hosts []HostUse
	Wires []WireUse
}

// HostUse is what is taken of one host.
type HostUse struct {
	Host      int32
	Closed    bool // nothing more goes there
	Slots     []HostType
	Additives []HostFeature
	Loopback  int64
}

// WireUse is what is taken of one wire.
type WireUse struct {
	Wire      int32
	Exclusive bool
	Bandwidth int64
}

// Node is a virtual node.
type Node struct {
	Name string
	// Types are those that the node may be, in order of preference.
	Types []TypeID
	// Class is an index into Problem.Classes, -1 if none.
	Class int32
	Slots int32
	// Desires are features wanted, and amounts of additive features.
	Desires []Desire
	Fixed   int32   // the host it must be on; -1 if free
	Hint    int32   // the host to start from; -1 if none
	Parent  int32   // the node whose host its own host must be a part of; -1 if none
	Hosts   []int32 // the hosts allowed; nil for any
	// Costs are what the node costs on each of Hosts, from 0 upwards, beside
	// everything else; nil for nothing. Nodes that share the two slices are
	// seen to be alike.
	Costs []float64
	// Exclusive keeps every other node off the host.
	Exclusive bool
	// NoTrivialMix forbids links within the host beside links that leave it.
	NoTrivialMix bool
}

// Desire is a feature that a node wants. Being without it costs Weight and is
// a violation from 1 upwards.
type Desire struct {
	Feature FeatureID
	Weight  float64
	Amount  float64 // of an additive feature
}

// NodeClass is a set of nodes that should all get the same type. If they do
// not, it costs Weight, and is a violation from 1 upwards.
type NodeClass struct {
	Name   string
	Weight float64
}

// Link is a virtual link between two nodes. A LAN is a node of its own with a
// link to each member.
type Link struct {
	Name      string
	A, B      int32 // indices into Problem.Nodes
	Bandwidth int64 // Native takes what the interfaces have
	Medium    MediumID
	// Emulated links may share an interface; others own theirs.
	Emulated bool
	// Trivial links may stay within a host.
	Trivial       bool
	NoInterswitch bool
	// AIface and BIface name the interface to be used at an end, if any.
	AIface, BIface string
}

// Native as a link's bandwidth takes that of the interfaces it gets.
const Native int64 = -1

// Group says that nodes belong together or apart.
type Group struct {
	Name     string
	Apart    bool // otherwise together
	BySwitch bool // compares the switches of the hosts instead of the hosts
	ByZone   bool // compares their zones
	Nodes    []int32
	// Weight is what each pair costs that is not as it should be; from 1
	// upwards, and at 0, it is a violation.
	Weight float64
}

// Quota bounds how many of some nodes are on some hosts.
type Quota struct {
	Name  string
	Nodes []int32
	Hosts []int32
	Max   int32
}

// Weights are what a placement costs, in units of assign's score.
type Weights struct {
	Host         float64 // each host used
	Class        float64 // each hardware class used
	Switch       float64 // each switch that links pass
	Direct       float64 // each link that is a single wire
	Intraswitch  float64 // each link through one switch
	Interswitch  float64 // each wire beyond two of a link through more switches
	Wire         float64 // each interface used
	EmulatedLink float64 // each emulated link on an interface
	LostAdditive float64 // an additive desire where there is no such capacity
}

// DefaultWeights are those of assign.
func DefaultWeights() Weights {
	return Weights{Host: 0.2, Class: 0.5, Switch: 0.5, Direct: 0.01, Intraswitch: 0.02, Interswitch: 0.2,
		Wire: 0.01, EmulatedLink: 0.01, LostAdditive: 1}
}

// Options direct a search.
type Options struct {
	Seed uint64
	// Effort scales the number of steps of the search; 0 is taken as 1.
	Effort float64
	// Keep is how much worse a placement may be that keeps to the hints, so
	// that like requests get like placements.
	Keep float64
	// Deadline ends the search early if it is not zero; the solution then says
	// that it was cut.
	Deadline time.Time
	// Clock tells the time for the deadline; nil is time.Now.
	Clock func() time.Time
}

// Outcome says what became of a problem.
type Outcome uint8

const (
	// NotFound: no placement was found within the effort. The solution holds
	// the best that was, with its violations.
	NotFound Outcome = iota
	// Placed: everything was placed without a violation.
	Placed
	// Impossible: it was proved that there is no placement.
	Impossible
)

func (o Outcome) String() string {
	switch o {
	case Placed:
		return "placed"
	case Impossible:
		return "impossible"
	}
	return "not found"
}

// Solution is the answer to a problem.
type Solution struct {
	Outcome Outcome
	Reasons []Reason // why not, unless Outcome is Placed
	Hosts   []int32  // node → host, -1 if it has none
	Types   []TypeID // node → the type it is given
	Routes  []Route  // link → its way
	Score   float64  // cost by the weights, violations not included
	// Violations counts what is wrong; 0 if Outcome is Placed.
	Violations int
	Steps      int64 // taken by the search
	Cut        bool  // the search was ended by the deadline or the context
}

// RouteKind says how a link runs.
type RouteKind uint8

// The kinds of route. A link without one could not be made.
const (
	NoRoute RouteKind = iota
	TrivialRoute
	DirectRoute
	IntraswitchRoute
	InterswitchRoute
)

// Route is the way of a link: the wires from its node A to its node B.
type Route struct {
	Kind  RouteKind
	Wires []int32
}

// Want says which kind of want a Reason is about.
type Want uint8

// The kinds of want that can't be met.
const (
	WantHost      Want = iota // a host for a node
	WantCount                 // enough hosts for several nodes
	WantInterface             // interfaces for a node's links
	WantBandwidth             // bandwidth for links
	WantGroup                 // nodes together or apart
)

// Reason says why something can't be placed.
type Reason struct {
	Want  Want
	Nodes []int32 // concerned
	Links []int32
	Text  string // for people: "12 nodes of type d710 wanted, 9 free"
}

func (r Reason) String() string { return r.Text }

// check finds what in a problem points nowhere.
func (p *Problem) check() error {
	if p.Testbed == nil {
		return fmt.Errorf("place a request: the problem has no testbed")
	}
	spec := p.Testbed.spec
	hosts, nodes := int32(len(spec.Hosts)), int32(len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch {
		case len(n.Types) == 0:
			return fmt.Errorf("place a request: node %s wants no type", n.Name)
		case n.Slots < 0:
			return fmt.Errorf("place a request: node %s wants %d slots", n.Name, n.Slots)
		case n.Fixed < -1 || n.Fixed >= hosts || n.Hint < -1 || n.Hint >= hosts:
			return fmt.Errorf("place a request: node %s: there is no host %d or %d", n.Name, n.Fixed, n.Hint)
		case n.Parent < -1 || n.Parent >= nodes || n.Parent == int32(i):
			return fmt.Errorf("place a request: node %s cannot be a part of node %d", n.Name, n.Parent)
		case n.Class < -1 || int(n.Class) >= len(p.Classes):
			return fmt.Errorf("place a request: node %s: there is no class %d", n.Name, n.Class)
		}
		for _, t := range n.Types {
			if t < 0 || int(t) >= len(spec.Types) {
				return fmt.Errorf("place a request: node %s: there is no type %d", n.Name, t)
			}
		}
		for _, d := range n.Desires {
			if d.Feature < 0 || int(d.Feature) >= len(spec.Features) {
				return fmt.Errorf("place a request: node %s: there is no feature %d", n.Name, d.Feature)
			}
		}
		if n.Costs != nil && len(n.Costs) != len(n.Hosts) {
			return fmt.Errorf("place a request: node %s: %d costs on %d hosts", n.Name, len(n.Costs), len(n.Hosts))
		}
		for _, h := range n.Hosts {
			if h < 0 || h >= hosts {
				return fmt.Errorf("place a request: node %s: there is no host %d", n.Name, h)
			}
		}
	}
	for i := range p.Links {
		l := &p.Links[i]
		if l.A < 0 || l.A >= nodes || l.B < 0 || l.B >= nodes || l.A == l.B {
			return fmt.Errorf("place a request: link %s joins node %d to %d", l.Name, l.A, l.B)
		}
		if l.Bandwidth < 0 && l.Bandwidth != Native || l.Bandwidth == Native && (l.Emulated || l.Trivial) {
			return fmt.Errorf("place a request: link %s: bandwidth %d", l.Name, l.Bandwidth)
		}
		if l.Medium < 0 || int(l.Medium) >= len(spec.Media) {
			return fmt.Errorf("place a request: link %s: there is no medium %d", l.Name, l.Medium)
		}
	}
	for _, g := range p.Groups {
		for _, v := range g.Nodes {
			if v < 0 || v >= nodes {
				return fmt.Errorf("place a request: group %s: there is no node %d", g.Name, v)
			}
		}
	}
	for _, q := range p.Quotas {
		for _, v := range q.Nodes {
			if v < 0 || v >= nodes {
				return fmt.Errorf("place a request: quota %s: there is no node %d", q.Name, v)
			}
		}
		for _, h := range q.Hosts {
			if h < 0 || h >= hosts {
				return fmt.Errorf("place a request: quota %s: there is no host %d", q.Name, h)
			}
		}
	}
	for _, u := range p.Taken.Hosts {
		if u.Host < 0 || u.Host >= hosts {
			return fmt.Errorf("place a request: there is no host %d to be taken", u.Host)
		}
	}
	for _, u := range p.Taken.Wires {
		if u.Wire < 0 || int(u.Wire) >= len(spec.Wires) || u.Bandwidth < 0 {
			return fmt.Errorf("place a request: wire %d with %d of it taken", u.Wire, u.Bandwidth)
		}
	}
	return nil
}
