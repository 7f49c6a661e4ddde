// Package inventory holds the testbed as its operator declares it: hosts,
// what they can give, what they can be asked for, and how they are wired. A
// Snapshot is immutable; a reload makes a new one.
//
// Operators write inventory.yaml, which Load and Parse read; Schema describes
// it for editors. Lines that would repeat themselves are written once: names
// stand for ranges ("pc[001-160]"), and hardware types are templates of hosts.
package inventory

import (
	"croft/capacity"
	"croft/request"
	"croft/urn"
)

// Snapshot is the testbed at one time. Nothing in it may be changed.
type Snapshot struct {
	Authority     urn.Authority
	Manager       urn.URN   // the component manager: urn:…+authority+cm
	Aliases       []urn.URN // further names of the same manager
	Sites         []Site
	Images        []Image
	Types         []SliverType
	HardwareTypes []HardwareType // the declared ones; hosts may name others
	Hosts         []Host
	Switches      []Switch
	Links         []Link
	SharedVLANs   []SharedVLAN
	External      []External
	Pools         Pools
	Features      []FeatureType // those that do not cost for each node
	Policies      []Policy
	Digest        string // of the whole content: equal digests, equal inventories

	hosts map[urn.URN]int // canonical URN to index in Hosts; nil if not built by Parse
}

// Managers lists the manager's URN and its aliases.
func (s *Snapshot) Managers() []urn.URN { return append([]urn.URN{s.Manager}, s.Aliases...) }

// Host returns the host of that URN.
func (s *Snapshot) Host(id urn.URN) (*Host, bool) {
	// A copy with other hosts may still carry the index of the original.
	if i, ok := s.hosts[id.Canonical()]; ok && i < len(s.Hosts) && s.Hosts[i].ID.Equal(id) {
		return &s.Hosts[i], true
	}
	for i := range s.Hosts {
		if s.Hosts[i].ID.Equal(id) {
			return &s.Hosts[i], true
		}
	}
	return nil, false
}

// Type returns the sliver type of that name, or the one that has it as an
// alias.
func (s *Snapshot) Type(name request.SliverType) (*SliverType, bool) {
	for i := range s.Types {
		if s.Types[i].Name == name {
			return &s.Types[i], true
		}
	}
	for i := range s.Types {
		for _, alias := range s.Types[i].Aliases {
			if alias == name {
				return &s.Types[i], true
			}
		}
	}
	return nil, false
}

// Offered lists the sliver types that some host makes. Others may be declared.
func (s *Snapshot) Offered() []SliverType {
	on := map[request.SliverType]bool{}
	for i := range s.Hosts {
		for _, name := range s.Hosts[i].Types {
			on[name] = true
		}
	}
	var list []SliverType
	for _, t := range s.Types {
		if on[t.Name] {
			list = append(list, t)
		}
	}
	return list
}

// Site is a place where hosts stand.
type Site struct {
	Name      string
	Country   string // ISO 3166 two letters, or a name
	Latitude  float64
	Longitude float64
}

// SliverType is a way to make nodes, and its defaults.
type SliverType struct {
	Name    request.SliverType
	Aliases []request.SliverType // what requests may call it besides
	Driver  string               // the driver that makes such nodes
	Default capacity.Amount      // what a node takes that does not say
	Images  []urn.URN            // those it can boot; the first is the default

	// WholeHost says that each node takes a host of its own, as raw-pc does.
	WholeHost bool

	// Shaping says that the driver can give links of such nodes a rate, a
	// latency and a loss.
	Shaping bool

	// Delay says that such a node can stand between the ends of a link and give
	// it the rate, latency and loss that the ends cannot. The mapper puts them
	// in; a node that leaves its type open is never made as one.
	Delay bool `json:",omitempty"`
}

// LinkedBy names what makes the links of such nodes: nodes of types with the
// same can be joined.
func (t *SliverType) LinkedBy() string { return LinkedBy(t.Driver) }

// LinkedBy names what makes the links of a driver's nodes. Namespaces and
// containers are joined by one switch, all others by their driver.
func LinkedBy(driver string) string {
	if driver == string(Namespace) || driver == dockerDriver {
		return "switch"
	}
	return driver
}

// Image is a system that nodes can boot.
type Image struct {
	ID           urn.URN
	Name         string // short name
	Description  string
	OS           string
	Distribution string // "Debian" where OS is "Linux"; "" if OS says it all
	Version      string
	Architecture string
	Source       string // what the driver needs to find it; "" for the driver's own
	URL          string // by which requests may name it besides; may be empty
	Command      string // run by /bin/sh -c for services that leave theirs open; may be empty
}

// HardwareType is a model of machine.
type HardwareType struct {
	Name        string
	Description string
	Properties  map[string]string // what is to be known of it: "processor", "gpus", …
}

// Host is one component: a machine, or a share of one, that nodes are placed
// on.
type Host struct {
	ID            urn.URN
	Name          string
	Site          string // name of a Site
	HardwareTypes []string
	Types         []request.SliverType       // those it can make; the first is the default
	Images        []urn.URN                  // of its types' images, those it can boot; empty for all
	Exclusive     bool                       // it can be given whole to one slice
	Shared        bool                       // it can hold nodes of several slices
	Capacity      capacity.Amount            // zero dimensions are not counted
	MaxSlivers    int                        // most nodes on it; 0 for no limit but the capacity
	TypeLimits    map[request.SliverType]int // most nodes of a type on it
	Features      []Feature
	Architecture  string        // "x86_64"; "" if not known
	Parent        urn.URN       // the host that it is a part of; zero if none
	Internal      capacity.Kbps // of all links within it together; 0 is not counted
	Underlay      capacity.Kbps // of all links that leave it over the network that it has, where it declares no interfaces; 0 is not counted
	OutOfService  string        // why it takes no new nodes; "" if it does
	Interfaces    []Interface
	Properties    map[string]string // its own, and those of its hardware types that it does not override
	Access        *Access           `json:",omitempty"` // how the manager gets at it; nil if that is not declared
}

// Feature is something of a host that nodes can want by name. A host's
// properties are features too, without weight and amount.
type Feature struct {
	Name string
	// Weight is what it costs to place a node on the host that does not want
	// the feature, in units of the mapper's score; from 1 upwards, it is not
	// done.
	Weight float64
	// Amount is how much of it nodes can have together; 0 for a feature that
	// is there or is not.
	Amount float64
}

// FeatureType says how the weights of a feature count over all hosts.
type FeatureType struct {
	Name string
	// FirstOnly features cost their weight once, however many nodes use them;
	// others cost it for every node but the first.
	FirstOnly bool
}

// Policy bounds how many nodes of some kind a slice has. One of SliverType,
// HardwareType and Feature is set.
type Policy struct {
	SliverType   request.SliverType
	HardwareType string
	Feature      string // that nodes want
	Most         int
	Authorities  []urn.Authority // of whose slices it holds; empty for all
}

// Holds reports whether the policy is for a slice.
func (p *Policy) Holds(slice urn.URN) bool {
	return len(p.Authorities) == 0 || covered(p.Authorities, slice.Authority)
}

// covered reports whether an authority is one of a list or part of one.
func covered(list []urn.Authority, a urn.Authority) bool {
	for _, l := range list {
		if l.Covers(a) {
			return true
		}
	}
	return false
}

// Interface is a network interface of a host or a port of a switch.
type Interface struct {
	ID    urn.URN
	Name  string
	Speed capacity.Kbps // 0 if not known
	Role  Role
	MAC   string `json:",omitempty"` // hardware address in lower case; "" if not known
}

// Role is what an interface is for.
type Role string

// The roles of interfaces, as advertisements name them.
const (
	Experimental Role = "experimental" // links of experiments may use it
	Control      Role = "control"      // logins and management; never given out
)

// Switch forwards frames between the interfaces and trunks that end on it.
type Switch struct {
	ID            urn.URN
	Name          string
	Site          string
	HardwareTypes []string
	Ports         []Interface // those that a link ends on
}

// Link is a physical connection: a cable from a host to a switch or to another
// host, or a trunk between switches.
type Link struct {
	ID       urn.URN
	Name     string
	Ends     [2]Port
	Capacity capacity.Kbps // of each direction; 0 if not known
}

// Port is the end of a Link.
type Port struct {
	Node      urn.URN // host or switch; zero if the end is outside this testbed
	Interface urn.URN
}

// SharedVLAN is a network that links of several slices can be ports of, by its
// name.
type SharedVLAN struct {
	Name       string
	Tag        int  // 0 if not fixed
	Restricted bool // only for those whom the operator allows
	// Authorities are those whose slices may use it if it is restricted.
	Authorities []urn.Authority
}

// Open reports whether a slice may use the shared VLAN.
func (v *SharedVLAN) Open(slice urn.URN) bool {
	return !v.Restricted || covered(v.Authorities, slice.Authority)
}

// External is an interface of another aggregate that this testbed is wired to.
type External struct {
	Interface urn.URN
	Manager   urn.URN
}

// Pools are what links draw on.
type Pools struct {
	Addresses string      // CIDR that addresses are assigned from when a request gives none
	VLANs     []VLANRange // tags for links; empty if the testbed needs none
	VNIs      []VNIRange  // VXLAN network identifiers for links between machines
}

// VNIRange is the VXLAN network identifiers from First to Last, both included.
type VNIRange struct{ First, Last int }

// DefaultVNIs are the identifiers when the operator names none.
var DefaultVNIs = VNIRange{4096, 8191}

// VLANRange is the VLAN tags from First to Last, both included.
type VLANRange struct{ First, Last int }

// DefaultAddresses is the pool of addresses when the operator names none.
const DefaultAddresses = "10.10.0.0/16"
