package advert

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/urn"
)

// testbed is what is taken over of an advertisement.
type testbed struct {
	options   Options
	authority urn.Authority
	manager   urn.URN // zero for the usual one
	aliases   []urn.URN
	sites     []site
	images    []*image
	types     []*sliverType
	hosts     []*host
	switches  []*netSwitch
	cables    []cable
	trunks    []trunk
	external  []inventory.External
	vlans     []inventory.SharedVLAN
	notes     []string

	imageBy map[string]*image // by what the advertisement calls it
	typeBy  map[string]*sliverType
	siteBy  map[site]string
	taken   map[string]bool     // names of hosts, switches and images, each with a letter before
	ends    map[string]endpoint // interfaces by component_id
	refsOf  map[string]int      // how many links an interface is on
}

type site struct{ name, country, latitude, longitude string }

type image struct {
	name                          string
	urn                           urn.URN // zero for the usual one
	os, version, description, url string
}

type sliverType struct {
	name   string
	whole  bool
	images []string
}

type host struct {
	name       string
	urn        urn.URN // zero for the usual one
	site       string
	hardware   []string
	types      []string
	images     []string
	exclusive  bool
	most       int // slivers
	out        string
	interfaces []iface
	properties map[string]string
}

type iface struct {
	name    string
	urn     urn.URN // zero for the usual one
	speed   capacity.Kbps
	control bool
}

type netSwitch struct {
	name     string
	urn      urn.URN
	site     string
	hardware []string
}

// endpoint is where an interface is: on a host or on a switch.
type endpoint struct {
	host  *host
	index int // of the host's interface
	swtch *netSwitch
	port  string
}

type cable struct {
	host     *host
	iface    string
	to       string // switch; or the other host's or an external end, if rest is set
	port     string // "" for any
	rest     bool
	capacity capacity.Kbps
}

type trunk struct {
	ends     [2]string
	capacity capacity.Kbps
}

func (t *testbed) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// name finds out what the testbed is called.
func (t *testbed) name(doc *document) error {
	votes := map[urn.URN]int{}
	var order []urn.URN
	for _, n := range doc.nodes {
		id, err := urn.Parse(n.Manager)
		if err != nil {
			// Without a manager, the node's own authority is the best guess.
			component, err := urn.Parse(n.ID)
			if err != nil {
				continue
			}
			id = urn.URN{Authority: component.Authority, Type: urn.AuthorityType, Name: "cm"}
		}
		if votes[id.Canonical()]++; votes[id.Canonical()] == 1 {
			order = append(order, id)
		}
	}
	slices.SortStableFunc(order, func(a, b urn.URN) int { return cmp.Compare(votes[b.Canonical()], votes[a.Canonical()]) })
	if t.authority = t.options.Authority; t.authority == "" {
		if len(order) == 0 {
			return fmt.Errorf("no node has a URN or a component manager, so the testbed has no name: give one")
		}
		t.authority = order[0].Authority
	}
	usual := urn.URN{Authority: t.authority, Type: urn.AuthorityType, Name: "cm"}
	if len(order) > 0 && t.options.Authority == "" && !order[0].Equal(usual) && order[0].Type == urn.AuthorityType {
		t.manager = order[0]
	}
	for _, id := range order {
		if !id.Equal(usual) && !id.Equal(t.manager) && id.Type == urn.AuthorityType {
			t.aliases = append(t.aliases, id)
		}
	}
	if len(order) > 1 {
		t.note("nodes of %d component managers are served as one testbed, %s", len(order), t.authority)
	}
	return nil
}

// unfit are the characters that names of hosts and switches may not have;
// unfitPort those of interfaces and images.
var (
	unfit     = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	unfitPort = regexp.MustCompile(`[^A-Za-z0-9._/:+@-]+`)
)

// called makes a name of the inventory out of one of the advertisement. Letters
// keep names of different things apart.
func (t *testbed) called(letter string, wanted string, unfit *regexp.Regexp) string {
	base := strings.TrimLeft(unfit.ReplaceAllString(wanted, "-"), "-./:+@")
	if base == "" {
		base = "unnamed"
	}
	name := base
	for i := 2; t.taken[letter+name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	t.taken[letter+name] = true
	return name
}

// unusual is the URN of the advertisement if the inventory would derive another
// one, else zero.
func (t *testbed) unusual(id urn.URN, typ urn.Type, name string) urn.URN {
	if id.IsZero() || id.Equal(urn.URN{Authority: t.authority, Type: typ, Name: name}) {
		return urn.URN{}
	}
	return id
}

func (t *testbed) takeNodes(doc *document) {
	t.imageBy, t.typeBy, t.siteBy = map[string]*image{}, map[string]*sliverType{}, map[site]string{}
	t.taken, t.ends, t.refsOf = map[string]bool{}, map[string]endpoint{}, map[string]int{}
	for _, l := range doc.links {
		for _, e := range l.Ends {
			t.refsOf[e.ID]++
		}
	}
	typed := slices.ContainsFunc(doc.nodes, func(n xmlNode) bool { return len(n.Types) > 0 })
	seen := map[string]bool{}
	for i := range doc.nodes {
		n := &doc.nodes[i]
		if n.ID != "" && seen[n.ID] {
			t.note("%s is advertised twice; the first one counts", n.ID)
			continue
		}
		seen[n.ID] = true
		if t.isSwitch(n) {
			t.takeSwitch(n)
		} else {
			t.takeHost(n, typed)
		}
	}
}

// isSwitch tells what forwards frames: what is a switch by hardware type, and
// what nobody can have but has many links on one interface.
func (t *testbed) isSwitch(n *xmlNode) bool {
	for _, h := range n.Hardware {
		if h.Name == "switch" {
			return true
		}
	}
	if len(n.Types) > 0 {
		return false
	}
	for _, f := range n.Interfaces {
		if t.refsOf[f.ID] > 1 {
			return true
		}
	}
	return false
}

// component reads a node's URN and chooses its name: that of the URN where it
// can be one, so that bound requests find it.
func (t *testbed) component(n *xmlNode) (string, urn.URN) {
	id, err := urn.Parse(n.ID)
	wanted := id.Name
	if err != nil {
		wanted = cmp.Or(n.Name, n.ID)
		if n.ID != "" {
			t.note("%q is no URN; node %s gets one of this testbed", n.ID, wanted)
		}
	}
	if id.Type != urn.Node && n.Name != "" {
		wanted = n.Name
	}
	name := t.called("n", wanted, unfit)
	return name, t.unusual(id, urn.Node, name)
}

func hardwareOf(n *xmlNode) []string {
	var names []string
	for _, h := range n.Hardware {
		if h.Name != "" && !slices.Contains(names, h.Name) && labelled(h.Name) {
			names = append(names, h.Name)
		}
	}
	return names
}

// labelled reports whether the inventory can hold a text as a label.
func labelled(s string) bool {
	return strings.TrimSpace(s) == s && s != "" && !strings.ContainsAny(s, "<>\"\n")
}

func (t *testbed) takeSwitch(n *xmlNode) {
	s := &netSwitch{site: t.siteOf(n), hardware: hardwareOf(n)}
	s.name, s.urn = t.component(n)
	t.switches = append(t.switches, s)
	for _, f := range n.Interfaces {
		port := ""
		// An interface of many links is the switch as such; a port is of one.
		if id, err := urn.Parse(f.ID); err == nil && t.refsOf[f.ID] == 1 {
			if p, own := strings.CutPrefix(id.Name, s.name+":"); own && p != "" && !unfitPort.MatchString(p) {
				port = p
			}
		}
		t.ends[f.ID] = endpoint{swtch: s, port: port}
	}
}

func (t *testbed) takeHost(n *xmlNode, typed bool) {
	h := &host{site: t.siteOf(n), hardware: hardwareOf(n), exclusive: !strings.EqualFold(n.Exclusive, "false"), most: slots(n)}
	h.name, h.urn = t.component(n)
	if t.options.KeepUnavailable && len(n.Available) > 0 && strings.EqualFold(n.Available[0].Now, "false") {
		h.out = "not available when it was advertised"
	}
	t.takeTypes(n, h, typed)
	for _, f := range n.Features {
		// Other features are amounts for Emulab's own mapper, or images.
		if f.Local == "" && f.Global == "" && !strings.HasPrefix(f.Name, "OS-") && labelled(f.Name) && !strings.ContainsAny(f.Name, " &\t") {
			if h.properties == nil {
				h.properties = map[string]string{}
			}
			h.properties[f.Name] = cmp.Or(strings.TrimSpace(f.Weight), "0")
		}
	}
	names := map[string]bool{}
	for _, f := range n.Interfaces {
		id, err := urn.Parse(f.ID)
		wanted := id.Name
		if err != nil {
			wanted = f.ID
		}
		// Where the part before the colon is the node, the rest is the name.
		if own, prefixed := strings.CutPrefix(wanted, h.name+":"); prefixed {
			wanted = own
		} else if i := strings.LastIndexByte(wanted, ':'); err != nil && i >= 0 {
			wanted = wanted[i+1:]
		}
		wanted = strings.TrimLeft(unfitPort.ReplaceAllString(wanted, "-"), "-./:+@")
		name := cmp.Or(wanted, "if")
		for i := 2; names[name]; i++ {
			name = fmt.Sprintf("%s-%d", wanted, i)
		}
		names[name] = true
		if _, twice := t.ends[f.ID]; twice {
			continue
		}
		t.ends[f.ID] = endpoint{host: h, index: len(h.interfaces)}
		h.interfaces = append(h.interfaces, iface{name: name, urn: t.unusual(id, urn.Interface, h.name+":"+name), control: f.Role == "control"})
	}
	t.hosts = append(t.hosts, h)
}

// slots is how many virtual machines a node takes, as Emulab says it; 0 if it
// does not.
func slots(n *xmlNode) int {
	most := 0
	for _, h := range n.Hardware {
		for _, typ := range h.Types {
			count, err := strconv.Atoi(strings.TrimSpace(typ.Slots))
			if err == nil && !strings.EqualFold(typ.Static, "true") && count < 100_000 {
				most = max(most, count)
			}
		}
	}
	if most == 1 && strings.EqualFold(n.Exclusive, "false") {
		return 0 // it is the machine that is counted, not what it holds
	}
	return most
}

func (t *testbed) siteOf(n *xmlNode) string {
	if len(n.Locations) == 0 {
		return ""
	}
	l := n.Locations[0]
	s := site{country: strings.TrimSpace(l.Country), latitude: degrees(l.Latitude, 90), longitude: degrees(l.Longitude, 180)}
	if !labelled(s.country) || strings.EqualFold(s.country, "unspecified") {
		s.country = ""
	}
	if s.latitude == "" || s.longitude == "" {
		s.latitude, s.longitude = "", ""
	}
	if s == (site{}) {
		return ""
	}
	name, known := t.siteBy[s]
	if !known {
		name = fmt.Sprintf("%s%d", cmp.Or(strings.ToLower(unfit.ReplaceAllString(s.country, "")), "site"), len(t.sites)+1)
		t.siteBy[s] = name
		s.name = name
		t.sites = append(t.sites, s)
	}
	return name
}

// degrees takes over a latitude or longitude within bounds.
func degrees(text string, most float64) string {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || f < -most || f > most || f != f {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
