package mapping_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"croft/inventory"
	"croft/mapping"
	"croft/mapping/mappingtest"
	"croft/request"
	"croft/urn"
)

// testbed reads an inventory.
func testbed(t testing.TB, text string) *inventory.Snapshot {
	t.Helper()
	s, err := inventory.Parse([]byte("authority: example.org\n"+text), "inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lab is one machine as two hosts, and some simulated ones.
const lab = `
images:
  - {name: debian12, url: "https://images.example.org/debian12"}
  - {name: UBUNTU22-64-STD}
  - {name: fedora}
sliver_types:
  - {name: namespace, cores: 1, memory: 512 MiB, disk: 1 GiB, images: [debian12], aliases: default-vm}
  - {name: raw-pc, driver: simulated, images: [UBUNTU22-64-STD, debian12], shaping: true}
  - {name: raw-router, driver: simulated, whole_host: true}
  - {name: vm, driver: simulated}
hosts:
  - {name: "host[1-2]", cores: 4, memory: 8 GiB, exclusive: true, shared: true}
  - {name: "pc[1-3]", hardware_types: [d430, pc], sliver_types: raw-pc, cores: 16, memory: 64 GiB, interfaces: [{name: eth0, role: control}, {name: "eth[1-2]"}]}
  - {name: pc4, hardware_types: [d710, pc], sliver_types: raw-pc, out_of_service: a broken fan}
  - {name: "both[1-2]", sliver_types: [raw-router, vm], exclusive: true, max_slivers: 5}
shared_vlans: [{name: campus}]
`

const (
	prefix = "urn:publicid:IDN+example.org+"
	mine   = prefix + "slice+mine"
	theirs = prefix + "slice+theirs"
)

func node(id string, change ...func(*request.Node)) request.Node {
	n := request.Node{ID: request.ClientID(id), Place: request.Place{Line: 10, Path: id}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func typed(t request.SliverType) func(*request.Node) {
	return func(n *request.Node) { n.SliverType = t }
}

func withCores(c float64) func(*request.Node) {
	return func(n *request.Node) { n.Capacity.Cores = 0; n.Capacity.Cores += coresOf(c) }
}

func bound(name string) func(*request.Node) {
	return func(n *request.Node) { n.Component = urn.MustParse(prefix + "node+" + name) }
}

func exclusive(n *request.Node) { n.Exclusive = request.Yes }
func shared(n *request.Node)    { n.Exclusive = request.No }

func imaged(name string) func(*request.Node) {
	return func(n *request.Node) { n.Image = request.Image{Name: name, Place: request.Place{Line: 11}} }
}

func hardware(names ...string) func(*request.Node) {
	return func(n *request.Node) { n.HardwareTypes = names }
}

func wired(addresses ...string) func(*request.Node) {
	return func(n *request.Node) {
		for i, a := range addresses {
			f := request.Interface{ID: request.ClientID(fmt.Sprintf("%s:if%d", n.ID, i)), Place: request.Place{Line: 12}}
			if a != "" {
				f.Addresses = []netip.Prefix{netip.MustParsePrefix(a)}
			}
			n.Interfaces = append(n.Interfaces, f)
		}
	}
}

// link joins interfaces written as node:ifN.
func link(id string, ends ...string) request.Link {
	l := request.Link{ID: request.ClientID(id), Place: request.Place{Line: 20}}
	for _, e := range ends {
		n, existing := strings.CutPrefix(e, "!")
		of, _, _ := strings.Cut(n, ":")
		l.Ends = append(l.Ends, request.End{Node: request.ClientID(of), Interface: request.ClientID(n), Existing: existing})
	}
	return l
}

func use(host string, u mapping.Use, slice string) map[urn.URN]mapping.Use {
	u.Slices = []urn.URN{urn.MustParse(slice).Canonical()}
	return map[urn.URN]mapping.Use{urn.MustParse(prefix + "node+" + host).Canonical(): u}
}

func options() mapping.Options { return mapping.Options{Seed: 7, Slice: urn.MustParse(mine)} }

// place maps and has the placement judged.
func place(t *testing.T, c mappingtest.Case) *mapping.Placement {
	t.Helper()
	return placeBy(t, new(mapping.Optimizer), c)
}

func placeBy(t *testing.T, m mapping.Mapper, c mappingtest.Case) *mapping.Placement {
	t.Helper()
	p, r, err := runBy(m, c)
	if err != nil {
		t.Fatal(err)
	}
	if r != nil {
		t.Fatalf("refused: %v", r)
	}
	if wrong := mappingtest.Valid(c, p); len(wrong) > 0 {
		t.Fatalf("the placement is wrong:\n%s", strings.Join(wrong, "\n"))
	}
	return p
}

func hostsOf(p *mapping.Placement) string {
	var names []string
	for _, n := range p.Nodes {
		names = append(names, n.Host.Name)
	}
	return strings.Join(names, " ")
}

func TestPlaces(t *testing.T) {
	taken := func(maps ...map[urn.URN]mapping.Use) map[urn.URN]mapping.Use {
		all := map[urn.URN]mapping.Use{}
		for _, m := range maps {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	one := mapping.Use{Slivers: 1, Amount: amount(1, 512)}
	part := mapping.Use{Slivers: 1, Amount: amount(1, 512), Exclusive: true}
	whole := mapping.Use{Slivers: 1, Exclusive: true}
	for _, c := range []struct {
		name   string
		nodes  []request.Node
		uses   map[urn.URN]mapping.Use
		layout mapping.Layout
		want   string
	}{
		{"unbound", []request.Node{node("a"), node("b")}, nil, mapping.Pack, "host1 host1"},
		{"spread", []request.Node{node("a"), node("b"), node("c")}, nil, mapping.Spread, "host1 host2 host1"},
		{"fills up", []request.Node{node("a"), node("b"), node("c"), node("d"), node("e")}, nil, mapping.Pack, "host1 host1 host1 host1 host2"},
		{"bound", []request.Node{node("a", bound("host2")), node("b")}, nil, mapping.Pack, "host2 host2"},
		{"bound by name", []request.Node{node("a", func(n *request.Node) { n.ComponentName = "host2" })}, nil, mapping.Pack, "host2"},
		{"bound in another case", []request.Node{node("a", func(n *request.Node) { n.Component = urn.MustParse("urn:publicid:IDN+EXAMPLE.org+node+host2") })}, nil, mapping.Pack, "host2"},
		{"shared joins others", []request.Node{node("a", shared)}, use("host2", one, theirs), mapping.Pack, "host2"},
		{"exclusive keeps away", []request.Node{node("a", exclusive, typed("namespace"))}, use("host1", one, theirs), mapping.Pack, "host2"},
		{"each exclusive node its host", []request.Node{node("a", exclusive, typed("namespace")), node("b", exclusive, typed("namespace"))}, nil, mapping.Pack, "host1 host2"},
		{"own exclusive host", []request.Node{node("a", exclusive, typed("namespace"))}, taken(use("host1", part, mine), use("host2", one, theirs)), mapping.Pack, "host1"},
		{"not beside a node that has it all", []request.Node{node("a", exclusive, typed("vm"))}, use("both1", whole, mine), mapping.Pack, "both2"},
		{"beside others of the slice", []request.Node{node("a", exclusive, typed("vm"))}, taken(use("both1", mapping.Use{Slivers: 2, Exclusive: true}, mine), use("both2", whole, theirs)), mapping.Pack, "both1"},
		{"full host", []request.Node{node("a", withCores(2))}, use("host1", mapping.Use{Slivers: 3, Amount: amount(3, 1536)}, theirs), mapping.Pack, "host2"},
		{"the only arrangement", []request.Node{node("a", withCores(2)), node("b", withCores(3)), node("c", withCores(2)), node("d", withCores(1))}, nil, mapping.Pack, "host2 host1 host2 host1"},
		{"sliver type", []request.Node{node("a", typed("raw-pc")), node("b", typed("default-vm"))}, nil, mapping.Pack, "pc1 host1"},
		{"raw-pc said to be shared", []request.Node{node("a", typed("raw-pc"), shared)}, nil, mapping.Pack, "pc1"},
		{"hardware type", []request.Node{node("a", hardware("d820", "d430"))}, nil, mapping.Pack, "pc1"},
		{"image decides the type", []request.Node{node("a", imaged("UBUNTU22-64-STD"))}, nil, mapping.Pack, "pc1"},
		{"whole hosts", []request.Node{node("a", typed("raw-pc")), node("b", typed("raw-pc"), bound("pc1")), node("c", typed("raw-pc"))}, nil, mapping.Pack, "pc2 pc1 pc3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			p := placeBy(t, &mapping.Optimizer{Objective: mapping.Objective{Layout: c.layout}}, mappingtest.Case{Snapshot: testbed(t, lab), Occupancy: mapping.Occupancy{Hosts: c.uses}, Request: &request.Request{Nodes: c.nodes}, Options: o})
			if got := hostsOf(p); got != c.want {
				t.Errorf("nodes are on %s, want %s", got, c.want)
			}
		})
	}
}

func TestImages(t *testing.T) {
	for _, c := range []struct {
		image request.Image
		want  string
	}{
		{request.Image{}, "debian12"},
		{request.Image{Name: "debian12"}, "debian12"},
		{request.Image{Name: " DEBIAN12 "}, "debian12"},
		{request.Image{Name: prefix + "image+debian12"}, "debian12"},
		{request.Image{Name: "urn:publicid:IDN+example.org:sub+image+ops//debian12"}, "debian12"},
		{request.Image{Name: "urn:publicid:IDN+EXAMPLE.ORG+image+ops//debian12"}, "debian12"},
		{request.Image{Name: "https://images.example.org/debian12"}, "debian12"},
		{request.Image{URL: "https://images.example.org/debian12"}, "debian12"},
		{request.Image{Name: "ops:UBUNTU22-64-STD"}, "UBUNTU22-64-STD"},
		{request.Image{Name: "urn:publicid:IDN+other.org+image+debian12"}, ""},
		{request.Image{Name: "debian"}, ""},
		{request.Image{URL: "https://images.example.org/debian"}, ""},
	} {
		t.Run(c.image.Name+c.image.URL, func(t *testing.T) {
			n := node("a")
			n.Image = c.image
			p, err := new(mapping.Optimizer).Map(testbed(t, lab), mapping.Occupancy{}, &request.Request{Nodes: []request.Node{n}}, options())
			switch {
			case c.want == "" && err == nil:
				t.Errorf("boots %s", p.Nodes[0].Image)
			case c.want != "" && err != nil:
				t.Error(err)
			case c.want != "" && p.Nodes[0].Image.Name != c.want:
				t.Errorf("boots %s", p.Nodes[0].Image)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	property := func(l request.Link, p request.Property) request.Link {
		p.Place = request.Place{Line: 21}
		l.Properties = []request.Property{p}
		return l
	}
	ends := []request.Node{node("a", wired("")), node("b", wired(""))}
	old := []mapping.ExistingNode{{ID: "old", Host: urn.MustParse(prefix + "node+host1"), Interfaces: []mapping.ExistingInterface{{ID: "old:if0", Linked: true}, {ID: "old:if1"}}}}
	for _, c := range []struct {
		name  string
		nodes []request.Node
		links []request.Link
		uses  map[urn.URN]mapping.Use
		kind  mapping.Kind
		never bool
		want  string
	}{
		{name: "unknown component", nodes: []request.Node{node("a", bound("hots1"))}, kind: mapping.Impossible,
			want: "line 10, a: a: no component urn:publicid:IDN+example.org+node+hots1 here (did you mean host1?)"},
		{name: "unknown component name", nodes: []request.Node{node("a", func(n *request.Node) { n.ComponentName = "x" })}, kind: mapping.Impossible,
			want: "line 10, a: a: no component x here (there are host1, host2, pc1, pc2, pc3, pc4, both1, both2)"},
		{name: "unknown sliver type", nodes: []request.Node{node("a", typed("emulab-xen"))}, kind: mapping.Impossible,
			want: `a: no sliver type "emulab-xen" here (there are namespace, raw-pc, raw-router, vm)`},
		{name: "mistyped sliver type", nodes: []request.Node{node("a", typed("namspace"))}, kind: mapping.Impossible, want: "(did you mean namespace?)"},
		{name: "unknown image", nodes: []request.Node{node("a", imaged("debian11"))}, kind: mapping.Impossible, want: `line 11: a: no image "debian11" here (did you mean debian12?)`},
		{name: "image that nobody boots", nodes: []request.Node{node("a", imaged("fedora"))}, kind: mapping.Impossible,
			want: "line 11: a: no host boots image fedora (they boot debian12, UBUNTU22-64-STD)"},
		{name: "image of another type", nodes: []request.Node{node("a", typed("namespace"), imaged("UBUNTU22-64-STD"))}, kind: mapping.Impossible,
			want: "no host that offers namespace boots image UBUNTU22-64-STD (they boot debian12)"},
		{name: "unknown hardware type", nodes: []request.Node{node("a", hardware("d43O"))}, kind: mapping.Impossible,
			want: "no host of hardware type d43O (did you mean d430?)"},
		{name: "type that the hardware does not offer", nodes: []request.Node{node("a", hardware("d430"), typed("namespace"))}, kind: mapping.Impossible,
			want: "no host of hardware type d430 offers sliver type namespace (they offer raw-pc)"},
		{name: "type that the component does not offer", nodes: []request.Node{node("a", bound("pc1"), typed("namespace"))}, kind: mapping.Impossible,
			want: "component pc1 does not offer sliver type namespace (it offers raw-pc)"},
		{name: "shared but whole only", nodes: []request.Node{node("a", bound("pc1"), hardware("d710"))}, kind: mapping.Impossible,
			want: "component pc1 is not of hardware type d710 (it is of d430, pc)"},
		{name: "too large", nodes: []request.Node{node("a", typed("namespace"), withCores(64))}, kind: mapping.Full, never: true,
			want: "wants 64 cores; the largest of 2 hosts, host1, has 4 cores (ask for at most 4 cores)"},
		{name: "too large for the component", nodes: []request.Node{node("a", bound("host2"), withCores(5))}, kind: mapping.Full, never: true,
			want: "wants 5 cores; component host2 has 4 cores (ask for at most 4 cores)"},
		{name: "less than nothing", nodes: []request.Node{node("a", withCores(-1))}, kind: mapping.Contradicts, want: "asks for less than nothing"},
		{name: "out of service", nodes: []request.Node{node("a", bound("pc4"))}, kind: mapping.Unavailable,
			want: "component pc4 is out of service: a broken fan (others could take it: leave component_id out)"},
		{name: "all out of service", nodes: []request.Node{node("a", hardware("d710"))}, kind: mapping.Unavailable, want: "host pc4 is out of service: a broken fan"},
		{name: "taken by somebody", nodes: []request.Node{node("a", bound("host1"))}, uses: use("host1", mapping.Use{Slivers: 1, Exclusive: true}, theirs), kind: mapping.Unavailable,
			want: "component host1 is given whole to another slice or node (others could take it: leave component_id out)"},
		{name: "shared already", nodes: []request.Node{node("a", bound("host1"), exclusive)}, uses: use("host1", mapping.Use{Slivers: 1}, theirs), kind: mapping.Unavailable,
			want: `component host1 has nodes on it, so it cannot be given whole (write exclusive="false" to share it)`},
		{name: "no room", nodes: []request.Node{node("a", bound("host1"), withCores(4))}, uses: use("host1", mapping.Use{Slivers: 1, Amount: amount(2, 512)}, theirs), kind: mapping.Full,
			want: "wants 4 cores; component host1 has 2 cores free (ask for at most 2 cores)"},
		{name: "no room together", nodes: []request.Node{node("a", withCores(3)), node("b", withCores(3)), node("c", withCores(3))}, want: ""},
		{name: "more than there is", nodes: manyNodes(9, typed("namespace")), kind: mapping.Full, never: true,
			want: "n8: wants 1 core; the freest of 2 hosts beside 8 nodes of this request, host1, has none free (the first 8 of 9 nodes fit; 9 nodes made as "},
		{name: "more than is free", nodes: manyNodes(8, typed("namespace")), uses: use("host2", mapping.Use{Slivers: 1, Amount: amount(1.5, 512)}, theirs), kind: mapping.Full,
			want: "n6: wants 1 core; the freest of 2 hosts beside 6 nodes of this request, host2, has 0.5 cores free (the first 6 of 8 nodes fit; 8 nodes made as "},
		{name: "more whole hosts than there are", nodes: manyNodes(5, typed("raw-pc")), kind: mapping.Full, never: true,
			want: "n4: no place is left on any of the 4 hosts that could take it beside 4 nodes of this request (the first 4 of 5 nodes fit; 5 nodes made as "},
		{name: "more whole hosts than are free", nodes: manyNodes(3, typed("raw-pc")), uses: use("pc2", mapping.Use{Slivers: 1, Exclusive: true}, theirs), kind: mapping.Full,
			want: "n2: no place is left on any of the 2 hosts that could take it beside 2 nodes of this request (the first 2 of 3 nodes fit; 3 nodes made as "},
		{name: "interfaces", nodes: []request.Node{node("a", hardware("d430"), wired("", "", ""))}, links: []request.Link{link("l0", "a:if0"), link("l1", "a:if1"), link("l2", "a:if2")}, kind: mapping.Impossible,
			want: "no host of hardware type d430 has the interfaces for it (host pc1 has 2 interfaces for links)"},
		{name: "shaped by whom", nodes: ends, links: []request.Link{property(link("l", "a:if0", "b:if0"), request.Property{LatencyMs: 10})}, want: ""},
		{name: "capacity", nodes: []request.Node{node("a", typed("namespace"), wired("")), node("b", wired(""))}, links: []request.Link{property(link("l", "a:if0", "b:if0"), request.Property{Capacity: 1000})}, kind: mapping.Bandwidth,
			want: "line 21: l: asks for a capacity of 1000 kbit/s, but links of these nodes cannot be shaped here (leave the property out"},
		{name: "latency", nodes: []request.Node{node("a", typed("namespace"), wired("")), node("b", wired(""))}, links: []request.Link{property(link("l", "a:if0", "b:if0"), request.Property{LatencyMs: 10, Loss: 1})}, kind: mapping.Impossible,
			want: "line 21: l: asks for a latency of 10 ms and a loss of 1 %, but"},
		{name: "strange link type", nodes: ends, links: []request.Link{func() request.Link { l := link("l", "a:if0", "b:if0"); l.Type = "openflow-path"; return l }()}, kind: mapping.Impossible,
			want: `line 20: l: links of type "openflow-path" cannot be made here (leave link_type out, or write lan)`},
		{name: "shared VLAN", nodes: ends, links: []request.Link{func() request.Link { l := link("l", "a:if0"); l.SharedVLAN = "campos"; return l }()}, kind: mapping.Impossible,
			want: `line 20: l: no shared VLAN "campos" here (did you mean campus?)`},
		{name: "no such node", nodes: ends, links: []request.Link{link("l", "a:if0", "c:if0")}, kind: mapping.Contradicts, want: "l: joins node c, which is neither in the request nor in the slice"},
		{name: "no such interface", nodes: ends, links: []request.Link{link("l", "a:if0", "b:if1")}, kind: mapping.Contradicts, want: "joins interface b:if1, which node b does not have (did you mean b:if0?)"},
		{name: "two links", nodes: ends, links: []request.Link{link("l", "a:if0", "b:if0"), link("m", "a:if0")}, kind: mapping.Contradicts, want: "m: interface a:if0 is on link l already"},
		{name: "joins nothing", nodes: ends, links: []request.Link{link("l")}, kind: mapping.Contradicts, want: "l: joins nothing"},
		{name: "link of the slice", nodes: ends, links: []request.Link{link("l", "a:if0", "!old:if0")}, kind: mapping.Unavailable, want: "interface old:if0 of node old is on a link of the slice already"},
		{name: "two nodes", nodes: []request.Node{node("a"), node("a")}, kind: mapping.Contradicts, want: "a second node of that client_id"},
		{name: "node of the slice", nodes: []request.Node{node("old")}, kind: mapping.Contradicts, want: "the slice has a node of that client_id already"},
		{name: "two links of one name", nodes: ends, links: []request.Link{link("l", "a:if0"), link("l", "b:if0")}, kind: mapping.Contradicts, want: "a second link of that client_id"},
		{name: "drivers", nodes: []request.Node{node("a", typed("namespace"), wired("")), node("b", typed("raw-pc"), wired(""))}, links: []request.Link{link("l", "a:if0", "b:if0")}, kind: mapping.Impossible,
			want: "line 20: l: joins node b to nodes that another driver makes"},
		{name: "driver of the slice", nodes: []request.Node{node("a", typed("raw-pc"), wired(""))}, links: []request.Link{link("l", "a:if0", "!old:if1")}, kind: mapping.Impossible,
			want: "line 20: l: joins node a to nodes that another driver makes"},
		{name: "MAC", nodes: []request.Node{node("a", wired(""), func(n *request.Node) { n.Interfaces[0].MAC = "02:00:00" })}, kind: mapping.Contradicts, want: `line 12: a: interface a:if0 asks for "02:00:00", which is no MAC address`},
		{name: "MAC of a group", nodes: []request.Node{node("a", wired(""), func(n *request.Node) { n.Interfaces[0].MAC = "01:00:5e:00:00:01" })}, kind: mapping.Contradicts, want: "the address of a group"},
		{name: "MAC twice", nodes: []request.Node{node("a", wired("", ""), func(n *request.Node) { n.Interfaces[0].MAC, n.Interfaces[1].MAC = "020000000001", "02:00:00:00:00:01" })}, kind: mapping.Contradicts, want: "as another one does"},
		{name: "worst first", nodes: []request.Node{node("a", bound("pc4")), node("b", typed("nothing"))}, kind: mapping.Impossible, want: `b: no sliver type "nothing" here`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mappingtest.Case{Snapshot: testbed(t, lab), Options: options(), Request: &request.Request{Nodes: c.nodes, Links: c.links},
				Occupancy: mapping.Occupancy{Hosts: c.uses, Existing: old}}
			p, r, err := run(got)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" { // no refusal at all
				if r != nil {
					t.Fatalf("refused: %v", r)
				}
				if wrong := mappingtest.Valid(got, p); len(wrong) > 0 {
					t.Fatal(wrong)
				}
				return
			}
			if r == nil {
				t.Fatalf("placed on %s", hostsOf(p))
			}
			if r.Kind != c.kind || r.Never != c.never || !strings.Contains(r.Error(), c.want) {
				t.Errorf("kind %d (want %d), never %v (want %v):\n got %v\nwant %s", r.Kind, c.kind, r.Never, c.never, r, c.want)
			}
		})
	}
}

func manyNodes(n int, change ...func(*request.Node)) []request.Node {
	var all []request.Node
	for i := range n {
		all = append(all, node(fmt.Sprintf("n%d", i), change...))
	}
	return all
}
