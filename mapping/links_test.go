package mapping_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"croft/inventory"
	"croft/mapping"
	"croft/mapping/mappingtest"
	"croft/request"
	"croft/urn"
)

// addressesOf writes the addresses of all interfaces, node by node.
func addressesOf(p *mapping.Placement) string {
	var all []string
	for _, n := range p.Nodes {
		for _, f := range n.Interfaces {
			all = append(all, strings.Trim(fmt.Sprint(f.Addresses), "[]"))
		}
	}
	return strings.Join(all, ", ")
}

func TestAddresses(t *testing.T) {
	existing := func(addresses ...string) []mapping.ExistingNode {
		n := mapping.ExistingNode{ID: "old", Host: urn.MustParse(prefix + "node+host1")}
		for i, a := range addresses {
			f := mapping.ExistingInterface{ID: request.ClientID(fmt.Sprintf("old:if%d", i))}
			if a != "" {
				f.Addresses = []netip.Prefix{netip.MustParsePrefix(a)}
			}
			n.Interfaces = append(n.Interfaces, f)
		}
		return []mapping.ExistingNode{n}
	}
	for _, c := range []struct {
		name     string
		pool     string
		nodes    []request.Node
		links    []request.Link
		existing []mapping.ExistingNode
		want     string // addresses, or the refusal
	}{
		{name: "two nodes", nodes: []request.Node{node("a", wired("")), node("b", wired(""))}, links: []request.Link{link("l", "a:if0", "b:if0")},
			want: "10.10.1.1/24, 10.10.1.2/24"},
		{name: "without a link", nodes: []request.Node{node("a", wired("", "10.0.0.1/8"))}, want: ", 10.0.0.1/8"},
		{name: "one subnet a link", nodes: []request.Node{node("a", wired("", "")), node("b", wired("")), node("c", wired(""))},
			links: []request.Link{link("l", "a:if0", "b:if0"), link("m", "c:if0", "a:if1")}, want: "10.10.1.1/24, 10.10.2.2/24, 10.10.1.2/24, 10.10.2.1/24"},
		{name: "as asked", nodes: []request.Node{node("a", wired("192.168.1.5/28")), node("b", wired("192.168.1.6/28"))}, links: []request.Link{link("l", "a:if0", "b:if0")},
			want: "192.168.1.5/28, 192.168.1.6/28"},
		{name: "some asked", nodes: []request.Node{node("a", wired("192.168.1.1/29")), node("b", wired("")), node("c", wired(""))}, links: []request.Link{link("l", "b:if0", "a:if0", "c:if0")},
			want: "192.168.1.1/29, 192.168.1.2/29, 192.168.1.3/29"},
		{name: "subnet asked for by another link", nodes: []request.Node{node("a", wired("", "10.10.1.9/24")), node("b", wired("", "10.10.1.8/24"))},
			links: []request.Link{link("l", "a:if0", "b:if0"), link("m", "a:if1", "b:if1")}, want: "10.10.2.1/24, 10.10.1.9/24, 10.10.2.2/24, 10.10.1.8/24"},
		{name: "pool covered by what is asked", nodes: []request.Node{node("a", wired("", "10.0.0.1/8")), node("b", wired(""))},
			links: []request.Link{link("l", "a:if0", "b:if0")}, want: "no subnets are left in 10.10.0.0/16 for 1 link (give the interfaces addresses)"},
		{name: "subnet that the slice has", nodes: []request.Node{node("a", wired("")), node("b", wired(""))}, links: []request.Link{link("l", "a:if0", "b:if0")},
			existing: existing("10.10.1.1/24"), want: "10.10.2.1/24, 10.10.2.2/24"},
		{name: "end that exists", nodes: []request.Node{node("a", wired("")), node("b", wired(""))}, links: []request.Link{link("l", "a:if0", "!old:if0", "b:if0")},
			existing: existing("10.10.7.2/24"), want: "10.10.7.1/24, 10.10.7.3/24"},
		{name: "end that exists without an address", nodes: []request.Node{node("a", wired(""))}, links: []request.Link{link("l", "a:if0", "!old:if0")},
			existing: existing(""), want: "10.10.1.1/24"},
		{name: "full subnet", nodes: []request.Node{node("a", wired("10.1.1.1/30")), node("b", wired("10.1.1.2/30")), node("c", wired(""))}, links: []request.Link{link("l", "a:if0", "b:if0", "c:if0")},
			want: "line 20: l: no address of 10.1.1.0/30 is left for interface c:if0"},
		{name: "point to point", nodes: []request.Node{node("a", wired("10.1.1.1/31")), node("b", wired(""))}, links: []request.Link{link("l", "a:if0", "b:if0")},
			want: "10.1.1.1/31, 10.1.1.0/31"},
		{name: "a host's mask says nothing", nodes: []request.Node{node("a", wired("10.1.1.1/32")), node("b", wired(""))}, links: []request.Link{link("l", "a:if0", "b:if0")},
			want: "10.1.1.1/32, 10.10.1.1/24"},
		{name: "IPv6", nodes: []request.Node{node("a", wired("fd00::1/64")), node("b", wired(""))}, links: []request.Link{link("l", "a:if0", "b:if0")},
			want: "fd00::1/64, fd00::2/64"},
		{name: "pool of IPv6", pool: "fd00:1:2::/48", nodes: []request.Node{node("a", wired("")), node("b", wired(""))}, links: []request.Link{link("l", "a:if0", "b:if0")},
			want: "fd00:1:2:1::1/64, fd00:1:2:1::2/64"},
		{name: "small pool", pool: "10.9.8.0/29", nodes: []request.Node{node("a", wired("", "")), node("b", wired("", ""))},
			links: []request.Link{link("l", "a:if0", "b:if0"), link("m", "a:if1", "b:if1")}, want: "10.9.8.5/30, 10.9.8.1/30, 10.9.8.6/30, 10.9.8.2/30"},
		{name: "too small a pool", pool: "10.9.8.0/29", nodes: []request.Node{node("a", wired("", "", "")), node("b", wired("", "", ""))},
			links: []request.Link{link("l", "a:if0", "b:if0"), link("m", "a:if1", "b:if1"), link("n", "a:if2", "b:if2")}, want: "no subnets are left in 10.9.8.0/29 for 3 links"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *testbed(t, lab)
			if c.pool != "" {
				s.Pools.Addresses, s.Digest = c.pool, ""
			}
			tried := mappingtest.Case{Snapshot: &s, Options: options(), Occupancy: mapping.Occupancy{Existing: c.existing}, Request: &request.Request{Nodes: c.nodes, Links: c.links}}
			p, r, err := run(tried)
			if err != nil {
				t.Fatal(err)
			}
			if r != nil {
				if !strings.Contains(r.Error(), c.want) || r.Kind != mapping.Full {
					t.Errorf("refused: %v, want %s", r, c.want)
				}
				return
			}
			if got := addressesOf(p); got != c.want {
				t.Errorf("addresses are %s, want %s", got, c.want)
			}
		})
	}
}

// TestManyLinks asks for more links than the pool has subnets of the usual
// size, and for a LAN larger than those.
func TestManyLinks(t *testing.T) {
	for _, c := range []struct {
		name          string
		links, member int
	}{{"many", 1000, 2}, {"large", 2, 600}} {
		t.Run(c.name, func(t *testing.T) {
			req := &request.Request{}
			for i := range c.member {
				n := node(fmt.Sprintf("n%d", i), withCores(0.001), typed("namespace"), func(n *request.Node) { n.Capacity.Memory, n.Capacity.Disk = 1, 1 })
				for j := range c.links {
					n.Interfaces = append(n.Interfaces, request.Interface{ID: request.ClientID(fmt.Sprintf("n%d:if%d", i, j))})
				}
				req.Nodes = append(req.Nodes, n)
			}
			for j := range c.links {
				var ends []string
				for i := range c.member {
					ends = append(ends, fmt.Sprintf("n%d:if%d", i, j))
				}
				req.Links = append(req.Links, link(fmt.Sprintf("l%d", j), ends...))
			}
			s := testbed(t, lab)
			p, err := new(mapping.Optimizer).Map(s, mapping.Occupancy{}, req, options())
			if err != nil {
				t.Fatal(err)
			}
			networks := map[netip.Prefix]string{}
			seen := map[netip.Addr]bool{}
			for _, n := range p.Nodes {
				for j, f := range n.Interfaces {
					if len(f.Addresses) != 1 || seen[f.Addresses[0].Addr()] {
						t.Fatalf("%s has %v", f.ID, f.Addresses)
					}
					seen[f.Addresses[0].Addr()] = true
					network, on := f.Addresses[0].Masked(), fmt.Sprint(j)
					if networks[network] != "" && networks[network] != on {
						t.Fatalf("network %s is on links %s and %s", network, networks[network], on)
					}
					networks[network] = on
				}
			}
			if len(networks) != c.links {
				t.Errorf("%d networks for %d links", len(networks), c.links)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	nodes := []request.Node{
		node("a", typed("raw-pc"), bound("pc1"), wired("", "")),
		node("b", typed("raw-pc"), bound("pc2"), wired("")),
		node("c", bound("host1"), wired("", "")),
		node("d", bound("host1"), wired("")),
	}
	nodes[0].Interfaces[0].Component = urn.MustParse(prefix + "interface+pc1:eth2")
	nodes[1].Interfaces[0].MAC = "02:aa:bb:cc:dd:ee"
	lan := link("lan", "c:if0", "d:if0", "!old:if0")
	lan.Type = "lan"
	vlan := link("vlan", "c:if1")
	vlan.SharedVLAN = "campus"
	shaped := link("l", "a:if0", "b:if0")
	shaped.Properties = []request.Property{{Capacity: 10_000, LatencyMs: 5}, {}}
	idle := link("m", "a:if1")
	idle.Properties = []request.Property{{From: "a:if1"}} // editors write properties that ask for nothing
	c := mappingtest.Case{
		Snapshot: testbed(t, lab), Options: options(),
		Request: &request.Request{Nodes: nodes, Links: []request.Link{shaped, lan, idle, vlan}},
		Occupancy: mapping.Occupancy{Existing: []mapping.ExistingNode{{ID: "old", Host: urn.MustParse(prefix + "node+host2"), SliverType: "namespace",
			Interfaces: []mapping.ExistingInterface{{ID: "old:if0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}}}}},
	}
	p := place(t, c)
	if !p.Links[0].Within.IsZero() || !p.Links[1].Within.IsZero() || p.Links[2].Within.Name != "pc1" || p.Links[3].Within.Name != "host1" {
		t.Errorf("links are %v", p.Links)
	}
	a := p.Nodes[0].Interfaces
	if a[0].Component.Name != "pc1:eth2" || a[1].Component.Name != "pc1:eth1" {
		t.Errorf("interfaces of a are %v", a)
	}
	if !p.Nodes[2].Interfaces[0].Component.IsZero() {
		t.Errorf("interface of c is %v", p.Nodes[2].Interfaces[0])
	}
	if got := p.Nodes[1].Interfaces[0].MAC.String(); got != "02:aa:bb:cc:dd:ee" {
		t.Errorf("MAC of b is %s", got)
	}
	if p.Nodes[0].Capacity.Memory != 64*1024 {
		t.Errorf("a, which has the whole of pc1, has %v", p.Nodes[0].Capacity)
	}

	c.Request.Nodes[0].Interfaces[0].Component = urn.MustParse(prefix + "interface+pc1:eth0")
	if _, r, _ := run(c); r == nil || !strings.Contains(r.Error(), "component pc1 keeps interface urn:publicid:IDN+example.org+interface+pc1:eth0 for itself") {
		t.Errorf("a control interface: %v", r)
	}
	c.Request.Nodes[0].Interfaces[0].Component = urn.MustParse(prefix + "interface+pc2:eth1")
	if _, r, _ := run(c); r == nil || r.Kind != mapping.Impossible || !strings.Contains(r.Error(), "component pc1 has no interface urn:publicid:IDN+example.org+interface+pc2:eth1") {
		t.Errorf("another host's interface: %v", r)
	}
}

// TestExistingElsewhere links to a node whose host has left the inventory.
func TestExistingElsewhere(t *testing.T) {
	c := mappingtest.Case{Snapshot: testbed(t, lab), Options: options(),
		Request: &request.Request{Nodes: []request.Node{node("a", wired(""))}, Links: []request.Link{link("l", "a:if0", "!old:if0")}},
		Occupancy: mapping.Occupancy{Existing: []mapping.ExistingNode{{ID: "old", Host: urn.MustParse(prefix + "node+gone"),
			Interfaces: []mapping.ExistingInterface{{ID: "old:if0"}}}}},
	}
	if p := place(t, c); !p.Links[0].Within.IsZero() {
		t.Errorf("link is within %s", p.Links[0].Within)
	}
}

func TestNothingIsChanged(t *testing.T) {
	c := mappingtest.Case{Snapshot: testbed(t, lab), Options: options(),
		Request: &request.Request{Nodes: []request.Node{node("a", wired("10.1.1.1/24", "")), node("b", wired("", ""))},
			Links: []request.Link{link("l", "a:if0", "b:if0"), link("m", "a:if1", "b:if1")}},
		Occupancy: mapping.Occupancy{Hosts: use("host1", mapping.Use{Slivers: 1, Amount: amount(1, 512)}, theirs)}}
	before := mappingtest.Case{Snapshot: testbed(t, lab), Options: options(),
		Request: &request.Request{Nodes: []request.Node{node("a", wired("10.1.1.1/24", "")), node("b", wired("", ""))},
			Links: []request.Link{link("l", "a:if0", "b:if0"), link("m", "a:if1", "b:if1")}},
		Occupancy: mapping.Occupancy{Hosts: use("host1", mapping.Use{Slivers: 1, Amount: amount(1, 512)}, theirs)}}
	p := place(t, c)
	p.Nodes[0].Interfaces[0].Addresses[0] = netip.Prefix{}
	if !reflect.DeepEqual(c.Request, before.Request) || !reflect.DeepEqual(c.Occupancy, before.Occupancy) || !reflect.DeepEqual(c.Snapshot, before.Snapshot) {
		t.Error("the mapper changed what it was given, or handed it out")
	}
}

func ExampleOptimizer() {
	s, err := inventory.Parse([]byte(`
authority: example.org
hosts:
  - name: host[1-2]
    cores: 2
    memory: 4 GiB
`), "inventory.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &request.Request{
		Nodes: []request.Node{
			{ID: "a", Interfaces: []request.Interface{{ID: "a:if0"}}},
			{ID: "b", Interfaces: []request.Interface{{ID: "b:if0"}}, Component: urn.MustParse("urn:publicid:IDN+example.org+node+host2")},
		},
		Links: []request.Link{{ID: "link", Ends: []request.End{{Node: "a", Interface: "a:if0"}, {Node: "b", Interface: "b:if0"}}}},
	}
	p, err := new(mapping.Optimizer).Map(s, mapping.Occupancy{}, req, mapping.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range p.Nodes {
		fmt.Println(n.Node, n.Host.Name, n.SliverType, n.Interfaces[0].Addresses[0])
	}
	req.Nodes[0].Capacity.Cores = 4000
	_, err = new(mapping.Optimizer).Map(s, mapping.Occupancy{}, req, mapping.Options{})
	fmt.Println(err)
	// Output:
	// a host2 namespace 10.10.1.1/24
	// b host2 namespace 10.10.1.2/24
	// a: wants 4 cores; the largest of 2 hosts, host1, has 2 cores (ask for at most 2 cores)
}
