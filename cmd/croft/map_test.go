package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"croft/internal/config"
	"croft/mapping"
)

// pc is a node that has a machine to itself, with interfaces.
func pc(id string, interfaces int, inside ...string) string {
	return made("raw-pc", id, interfaces, inside...)
}

func vm(id string, interfaces int, inside ...string) string {
	return made("vm", id, interfaces, inside...)
}

func made(typ, id string, interfaces int, inside ...string) string {
	s := fmt.Sprintf(`<node client_id=%q><sliver_type name=%q/>`, id, typ)
	for i := range interfaces {
		s += fmt.Sprintf(`<interface client_id="%s:%d"/>`, id, i)
	}
	return s + strings.Join(inside, "") + "</node>"
}

func bound(host string) string { return host }

// on binds a node to a host.
func on(host, node string) string {
	return strings.Replace(node, "<node ", fmt.Sprintf(`<node component_id="urn:publicid:IDN+campus.example.org+node+%s" `, bound(host)), 1)
}

// wire is a link with what stands in it.
func wire(id, inside string, ends ...string) string {
	s := fmt.Sprintf(`<link client_id=%q>`, id)
	for _, e := range ends {
		s += fmt.Sprintf(`<interface_ref client_id=%q/>`, e)
	}
	return s + inside + "</link>"
}

func rate(from, to string, kbps int) string {
	return fmt.Sprintf(`<property source_id=%q dest_id=%q capacity="%d"/>`, from, to, kbps)
}

func hw(name string) string { return fmt.Sprintf(`<hardware_type name=%q/>`, name) }

// TestMapWants has a case for each kind of want, through the command.
func TestMapWants(t *testing.T) {
	t.Setenv("CROFT_DIR", t.TempDir())
	many := func(n int, node func(id string) string) string {
		s := ""
		for i := range n {
			s += node(fmt.Sprintf("n%d", i))
		}
		return s
	}
	// hosts are those that nodes should be on, in order; "a|b" is either. refused
	// is what the refusal says. link and way are of a link that should run so.
	for _, c := range []struct {
		name    string
		request string
		hosts   string
		link    string
		way     []string
		check   func(p *mapping.Placement) string
		refused string
	}{
		{name: "sliver type", request: vm("n", 0), hosts: "v1|v2|v3"},
		{name: "hardware type", request: pc("n", 0, hw("m400")), hosts: "arm1|arm2|card1|card2"},
		{name: "any of several types", request: pc("n", 0, hw("d999"), hw("d430")), hosts: "b1|b2|b3"},
		{name: "a hard class", request: `<e:vclass name="v" weight="hard"><e:physical_type name="d430"/><e:physical_type name="m400"/></e:vclass>` + many(3, func(id string) string { return pc(id, 0, hw("v")) }),
			hosts: "arm1|arm2|card1|card2 arm1|arm2|card1|card2 arm1|arm2|card1|card2"},
		{name: "a soft class", request: `<e:vclass name="v" weight="0.9"><e:physical_type name="d430"/><e:physical_type name="d710"/></e:vclass>` + many(4, func(id string) string { return pc(id, 0, hw("v")) }),
			hosts: "a1|a2|a3|a4 a1|a2|a3|a4 a1|a2|a3|a4 a1|a2|a3|a4"},
		{name: "a class too large", request: `<e:vclass name="v" weight="hard"><e:physical_type name="d430"/><e:physical_type name="d710"/></e:vclass>` + many(5, func(id string) string { return pc(id, 0, hw("v")) }),
			refused: "in no arrangement"},
		{name: "architecture", request: pc("n", 0, `<c:node architecture="aarch64"/>`), hosts: "arm1|arm2|card1|card2"},
		{name: "no such architecture", request: pc("n", 0, `<c:node architecture="riscv64"/>`), refused: "is of architecture riscv64 (there are x86_64, aarch64)"},
		{name: "exclusive of shared hosts", request: strings.Replace(vm("n", 0), "<node ", `<node exclusive="true" `, 1), refused: "is given out whole"},
		{name: "a fixed component", request: on("a3", pc("n", 0)), hosts: "a3"},
		{name: "a component out of service", request: on("a5", pc("n", 0)), refused: "component a5 is out of service: a broken fan"},
		{name: "an image", request: `<node client_id="n"><sliver_type name="vm"><disk_image name="ubuntu2204"/></sliver_type></node>`, hosts: "v1|v2|v3",
			check: func(p *mapping.Placement) string { return p.Nodes[0].Image.Name + "=ubuntu2204" }},
		{name: "an image by what it holds", request: pc("n", 0, `<c:image distribution="debian" max_version="11"/>`),
			check: func(p *mapping.Placement) string { return p.Nodes[0].Image.Name + "=debian11" }},
		{name: "another image that would do", request: pc("n", 0, `<c:image name="ubuntu2204"/><c:image os="linux" min_version="12"/>`),
			check: func(p *mapping.Placement) string { return p.Nodes[0].Image.Name + "=debian12" }},
		{name: "no such image", request: pc("n", 0, `<c:image distribution="fedora"/>`), refused: "no image here holds fedora (there are Linux Debian 11, Linux Debian 12.5"},
		{name: "a feature", request: pc("n", 0, hw("d710"), `<e:fd name="ssd" weight="1"/>`), hosts: "a4"},
		{name: "a feature wished for", request: pc("n", 0, hw("d710"), `<e:fd name="ssd" weight="0.3"/>`), hosts: "a4"},
		{name: "a feature kept for those who ask", request: many(5, func(id string) string { return vm(id, 0) }), hosts: "v2|v3 v2|v3 v2|v3 v2|v3 v2|v3"},
		{name: "a kept feature asked for", request: vm("n", 0, `<e:fd name="gpu" weight="1"/>`), hosts: "v1"},
		{name: "a feature that costs from the second on", request: many(2, func(id string) string { return pc(id, 0, hw("d430"), `<e:fd name="licence" weight="1"/>`) }), hosts: "b1|b2|b3 b1|b2|b3"},
		{name: "features that no host has together", request: pc("n", 0, hw("d710"), `<c:node site="south"/>`, `<c:feature name="ssd"/>`),
			refused: "site south, hardware type d710"},
		{name: "an amount of a feature", request: vm("n", 0, `<e:fd name="gpu" weight="1"/><e:fd name="scratch" weight="60" local_operator="+"/>`), hosts: "v1"},
		{name: "too much of a feature", request: many(2, func(id string) string {
			return vm(id, 0, `<e:fd name="gpu" weight="1"/><c:feature name="scratch" amount="60"/>`)
		}), refused: "the first 1 of 2 nodes fit"},
		{name: "capacities", request: vm("n", 0, `<c:at_least cores="8" memory="30000"/>`), hosts: "v2|v3"},
		{name: "too much capacity", request: vm("n", 0, `<c:at_least cores="9"/>`), refused: "wants 9 cores; the largest of"},
		{name: "one component for two", request: vm("q", 0) + on("a1", pc("x", 0)) + pc("p", 0) + on("a1", pc("y", 0)), refused: "these cannot hold together: nodes x, y: component a1"},
		{name: "wants of several nodes", request: vm("q", 0) + pc("x", 0, hw("d710"), `<c:feature name="ssd"/>`) + pc("y", 0, `<c:node site="north"/>`, `<c:feature name="ssd"/>`),
			refused: "these cannot hold together: node x: hardware type d710, feature ssd; node y: site north, feature ssd"},
		{name: "sizes of several nodes", request: vm("q", 0) + vm("x", 0, `<c:feature name="gpu"/><c:at_least cores="5"/>`) + vm("y", 0, `<c:feature name="gpu"/><c:at_least cores="4"/>`),
			refused: "node x: feature gpu, a size of 5 cores; node y: feature gpu, a size of 4 cores"},
		{name: "a group and a site", request: vm("x", 0) + pc("y", 0, `<c:node site="north"/>`) + pc("z", 0) + grouped("together", "site", "x", "y"),
			refused: "these cannot hold together: node x: sliver type vm; node y: site north; nodes x, y: group g wants 2 nodes together by site"},
		{name: "GPUs", request: vm("n", 0, `<e:fd name="gpu" weight="1"/><c:at_least gpus="2"/>`), hosts: "v1"},
		{name: "too many GPUs", request: vm("n", 0, `<e:fd name="gpu" weight="1"/><c:at_least gpus="3"/>`), refused: "wants 3 GPUs; host v1 has 2 GPUs"},
		{name: "slots of a type", request: many(4, func(id string) string { return vm(id, 0, `<e:fd name="gpu" weight="1"/>`) }), refused: "the first 3 of 4 nodes fit"},
		{name: "at most", request: pc("n", 0, hw("d430"), hw("d710"), `<c:at_most cores="4"/>`), hosts: "a1|a2|a3|a4"},
		{name: "at most of a default", request: vm("n", 0, `<c:at_most memory="512"/>`),
			check: func(p *mapping.Placement) string { return fmt.Sprintf("%d=512", p.Nodes[0].Capacity.Memory) }},
		{name: "at least more than at most", request: vm("n", 0, `<c:at_least cores="4"/><c:at_most cores="2"/>`), refused: "asks for at least 4 cores and at most 2 cores"},
		{name: "site", request: pc("n", 0, `<c:node site="south"/>`), hosts: "b1|b2|b3|arm1|arm2"},
		{name: "no such site", request: pc("n", 0, `<c:node site="soth"/>`), refused: `no site "soth" here (did you mean south?)`},
		{name: "apart by host", request: vm("x", 0) + vm("y", 0) + grouped("apart", "host", "x", "y"),
			check: func(p *mapping.Placement) string {
				return fmt.Sprintf("%v=false", p.Nodes[0].Host == p.Nodes[1].Host)
			}},
		{name: "apart by more hosts than there are", request: many(4, func(id string) string { return vm(id, 0) }) + grouped("apart", "host", "n0", "n1", "n2", "n3"),
			refused: "group g wants 4 nodes apart by host"},
		{name: "together by switch", request: pc("x", 0, hw("d430")) + pc("y", 0) + grouped("together", "switch", "x", "y"), hosts: "b1|b2|b3 b1|b2|b3"},
		{name: "apart by site", request: pc("x", 0, hw("d710")) + pc("y", 0) + grouped("apart", "site", "x", "y"), hosts: "a1|a2|a3|a4 b1|b2|b3|arm1|arm2"},
		{name: "a subnode", request: pc("carrier", 0, hw("d710")) + pc("part", 0, `<relation type="subnode_of" client_id="carrier"/>`), hosts: "a1 card1|card2"},
		{name: "more subnodes than there are", request: pc("carrier", 0) + many(3, func(id string) string { return pc(id, 0, `<relation type="subnode_of" client_id="carrier"/>`) }),
			refused: "the first 3 of 4 nodes fit"},
		{name: "limit of the policy", request: many(3, func(id string) string { return pc(id, 0, hw("d430")) }),
			refused: "3 nodes on hosts of hardware type d430; the policy of this testbed gives a slice at most 2"},
		{name: "what the policy disallows", request: pc("n", 0, `<e:fd name="forbidden" weight="0.1"/>`), refused: "the policy of this testbed gives this slice no nodes that want feature forbidden"},
		{name: "an optional node", request: many(2, func(id string) string { return pc(id, 0, hw("d430")) }) + pc("spare", 0, hw("d430"), `<c:node optional="true"/>`),
			check: func(p *mapping.Placement) string { return fmt.Sprintf("%v=[spare]", p.Left) }},

		{name: "a link through one switch", request: pc("x", 1, hw("d430")) + pc("y", 1, hw("d430")) + wire("l", "", "x:0", "y:0"), link: "l", way: []string{"b", "b"}},
		{name: "a link over a trunk", request: on("a1", pc("x", 1)) + on("b1", pc("y", 1)) + wire("l", "", "x:0", "y:0"), link: "l", way: []string{"a1:eth", "sw1-sw2-", "b1:eth"}},
		{name: "parallel trunks", request: vms(3, 500_000),
			check: func(p *mapping.Placement) string {
				trunks := map[string]bool{}
				for _, l := range p.Links {
					for _, c := range l.Route {
						if strings.HasPrefix(c.Wire.Name, "sw1-sw2") {
							trunks[c.Wire.Name] = true
						}
					}
				}
				return fmt.Sprintf("%d=2", len(trunks))
			}},
		{name: "a trunk too narrow", request: vms(4, 600_000), refused: "the trunk from sw1 to sw2 would carry 2400000 and has 2000000 free"},
		{name: "rates that interfaces do not have", request: on("a1", pc("x", 1)) + on("a2", pc("y", 1)) + wire("l", rate("x:0", "y:0", 10_000_000), "x:0", "y:0"), refused: "bandwidth 10000000"},
		{name: "a class of speed", request: pc("x", 1, hw("d430")) + pc("y", 1, hw("d430")) + wire("l", rate("x:0", "y:0", 10_000_000), "x:0", "y:0"), link: "l", way: []string{"eth3", "eth3"}},
		{name: "a rate that nobody can shape", request: pc("x", 1) + pc("y", 1) + wire("l", rate("x:0", "y:0", 1234), "x:0", "y:0"), refused: "asks for a capacity of 1234 kbit/s, but links of these nodes cannot be shaped here"},
		{name: "links that own interfaces", request: on("a1", pc("x", 2)) + on("a2", pc("y", 2)) + wire("l", "", "x:0", "y:0") + wire("m", "", "x:1", "y:1"),
			check: func(p *mapping.Placement) string {
				return fmt.Sprintf("%v=false", p.Nodes[0].Interfaces[0].Component == p.Nodes[0].Interfaces[1].Component)
			}},
		{name: "links that share an interface", request: on("arm1", pc("x", 2)) + on("arm2", pc("y", 2)) + wire("l", "<e:link_multiplexing/>", "x:0", "y:0") + wire("m", "<e:multiplex_ok/>", "x:1", "y:1"),
			link: "m", way: []string{"arm1:eth1", "arm2:eth1"}},
		{name: "too many links for the interfaces", request: on("arm1", pc("x", 2)) + on("arm2", pc("y", 2)) + wire("l", "", "x:0", "y:0") + wire("m", "", "x:1", "y:1"), refused: "interface"},
		{name: "a LAN", request: pc("x", 1) + pc("y", 1) + pc("z", 1) + wire("lan", "", "x:0", "y:0", "z:0"),
			check: func(p *mapping.Placement) string {
				return fmt.Sprintf("%d %v=3 true", len(p.Links[0].Ends), len(p.Links[0].Route) >= 3 && p.Links[0].VLAN >= 100)
			}},
		{name: "a hint", request: vm("n", 0, `<e:hint_to value="v3"/>`), hosts: "v3"},
		{name: "hints of nodes that are alike", request: vm("x", 0, `<e:hint_to value="urn:publicid:IDN+campus.example.org+node+v3"/>`) + vm("y", 0, `<e:hint_to value="v2"/>`), hosts: "v3 v2"},
		{name: "a hint that does not fit", request: vm("n", 0, `<e:hint_to value="v1"/>`), hosts: "v2|v3"},
		{name: "a hint to nothing", request: vm("n", 0, `<e:hint_to value="v9"/>`), hosts: "v2|v3"},
		{name: "no trivial mix", request: on("v2", vm("x", 1)) + on("v3", vm("y", 1)) + vm("z", 2, "<e:disallow_trivial_mix/>") + wire("l", "", "z:0", "x:0") + wire("m", "", "z:1", "y:0"),
			refused: "node z would have links within its host and links that leave it"},
		{name: "no mix, all out of the host", request: on("v2", vm("x", 1)) + on("v3", vm("y", 1)) + pc("z", 2, hw("d430"), "<e:disallow_trivial_mix/>") + wire("l", "", "z:0", "x:0") + wire("m", "", "z:1", "y:0"), hosts: "v2 v3 b1|b2|b3"},
		{name: "no mix, all within the host", request: on("v2", vm("x", 2)) + vm("z", 2, "<e:disallow_trivial_mix/>") + wire("l", "", "z:0", "x:0") + wire("m", "", "z:1", "x:1"), hosts: "v2 v2"},
		{name: "a LAN that leaves its hosts", request: many(3, func(id string) string { return vm(id, 1) }) + wire("l", `<c:link trivial="false"/>`, "n0:0", "n1:0", "n2:0"), refused: "link l must leave the hosts of its 3 ends"},
		{name: "a link within a host", request: vm("x", 1) + vm("y", 1) + wire("l", "", "x:0", "y:0"), link: "l", way: []string{"within v"}},
		{name: "no link within a host", request: vm("x", 1) + vm("y", 1) + wire("l", `<c:link trivial="false"/>`, "x:0", "y:0"), link: "l", way: []string{"eth1-sw2", "eth1-sw2"}},
		{name: "a host's own capacity", request: vm("x", 2, `<e:fd name="gpu" weight="1"/>`) + vm("y", 2, `<e:fd name="gpu" weight="1"/>`) +
			wire("l", rate("x:0", "y:0", 1_500_000), "x:0", "y:0") + wire("m", rate("x:1", "y:1", 1_500_000), "x:1", "y:1"), refused: "v1"},
		{name: "a fixed interface", request: `<node client_id="x" component_id="urn:publicid:IDN+campus.example.org+node+a1"><sliver_type name="raw-pc"/><interface client_id="x:0" component_id="urn:publicid:IDN+campus.example.org+interface+a1:eth2"/></node>` +
			pc("y", 1) + wire("l", "", "x:0", "y:0"), link: "l", way: []string{"a1:eth2"}},
		{name: "no interswitch", request: pc("x", 1, hw("d710")) + pc("y", 1, hw("d430")) + wire("l", `<e:interswitch allow="no"/>`, "x:0", "y:0"), refused: "l: "},
		{name: "best effort", request: on("v1", vm("x", 1, `<e:fd name="gpu" weight="1"/>`)) + on("v2", vm("y", 1)) + wire("l", "<e:best_effort/>"+rate("x:0", "y:0", 5_000_000), "x:0", "y:0"), hosts: "v1 v2"},
		{name: "not best effort", request: on("v1", vm("x", 1, `<e:fd name="gpu" weight="1"/>`)) + on("v2", vm("y", 1)) + wire("l", rate("x:0", "y:0", 5_000_000), "x:0", "y:0"), refused: "want bandwidth 5000000 together; its trunks have 2000000 free"},
		{name: "a shared VLAN", request: pc("x", 1) + wire("l", `<s:link_shared_vlan name="campus"/>`, "x:0"),
			check: func(p *mapping.Placement) string { return fmt.Sprintf("%d=50", p.Links[0].VLAN) }},
		{name: "a restricted shared VLAN", request: pc("x", 1) + wire("l", `<s:link_shared_vlan name="secret"/>`, "x:0"), refused: "is restricted"},
		{name: "VLAN tags", request: pairs(3), check: func(p *mapping.Placement) string {
			tags := map[int]bool{}
			for _, l := range p.Links {
				tags[l.VLAN] = true
			}
			return fmt.Sprintf("%d=3", len(tags))
		}},
		{name: "a VLAN tag asked for", request: tagged("102"), check: tagOf("l", 102)},
		{name: "a VLAN tag asked for and others", request: pairs(2) + tagged("101"), check: tagOf("l", 101)},
		{name: "a VLAN tag of a shared VLAN's element without a name", request: outside("l", `<s:link_shared_vlan vlantag="100"/>`), check: tagOf("l", 100)},
		{name: "a shared VLAN by its tag alone", request: outside("l", `<s:link_shared_vlan vlantag="50"/>`),
			check: func(p *mapping.Placement) string {
				return fmt.Sprintf("%s %d=campus 50", p.Links[0].SharedVLAN, p.Links[0].VLAN)
			}},
		{name: "a restricted shared VLAN by its tag alone", request: outside("l", `<s:link_shared_vlan vlantag="51"/>`), refused: "is restricted"},
		{name: "a shared VLAN and its tag", request: pc("x", 1) + wire("l", `<s:link_shared_vlan name="campus" vlantag="50"/>`, "x:0"), check: tagOf("l", 50)},
		{name: "a shared VLAN and another tag", request: pc("x", 1) + wire("l", `<s:link_shared_vlan name="campus" vlantag="100"/>`, "x:0"),
			refused: "l: asks for VLAN tag 100, but that of the shared VLAN campus is 50"},
		{name: "a VLAN tag that is not in the pool", request: tagged("103"), refused: "l: asks for VLAN tag 103, which is none that links are given here (100-102 are free)"},
		{name: "the VLAN tag of a shared VLAN", request: tagged("50"), refused: "asks for VLAN tag 50, which is that of the shared VLAN campus (100-102 are free)"},
		{name: "a VLAN tag for two links", request: tagged("101") + strings.NewReplacer(`"x`, `"v`, `"y`, `"w`, `"l"`, `"m"`).Replace(tagged("101")),
			refused: "m: asks for VLAN tag 101, which is that of link l (100, 102 are free)"},
		{name: "a VLAN tag that others need", request: pairs(3) + tagged("101"), refused: "no VLAN tag is left for it: 2 tags free"},
		{name: "a VLAN tag within a host", request: vm("x", 1) + vm("y", 1) + wire("l", `<c:link vlantag="103"/>`, "x:0", "y:0"), check: tagOf("l", 0)},
		{name: "too few VLAN tags", request: pairs(4), refused: "no VLAN tag is left"},
		{name: "a tunnel", request: vm("x", 1) + vm("y", 1) + wire("l", `<link_type name="gre-tunnel"/>`, "x:0", "y:0"), hosts: "v1|v2|v3 v1|v2|v3"},
		{name: "latency and loss of one direction", request: vm("x", 1) + vm("y", 1) + wire("l", `<property source_id="x:0" dest_id="y:0" latency="10" packet_loss="2"/>`, "x:0", "y:0"),
			check: func(p *mapping.Placement) string {
				e := p.Links[0].Ends
				return fmt.Sprintf("%g %g %g=10 2 0", e[0].Out.LatencyMs, e[0].Out.Loss, e[1].Out.LatencyMs)
			}},
		{name: "what one member of a LAN receives", request: many(3, func(id string) string { return vm(id, 1) }) + wire("l", rate("n1:0", "n0:0", 500)+rate("n2:0", "n0:0", 500), "n0:0", "n1:0", "n2:0"),
			check: func(p *mapping.Placement) string { return fmt.Sprintf("%d=500", p.Links[0].Ends[0].In.Capacity) }},
		{name: "a LAN that differs by pairs", request: many(3, func(id string) string { return vm(id, 1) }) + wire("l", rate("n1:0", "n0:0", 500), "n0:0", "n1:0", "n2:0"), refused: "a LAN cannot treat pairs of its members differently"},
		{name: "more than there is", request: many(6, func(id string) string { return pc(id, 0, hw("d710")) }), refused: "6 nodes of type d710 made as raw-pc wanted, 5 hosts free for them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			document := `<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3" xmlns:e="http://www.protogeni.net/resources/rspec/ext/emulab/1" xmlns:c="urn:x-croft:rspec:1" xmlns:s="http://www.geni.net/resources/rspec/ext/shared-vlan/1">` + c.request + "</rspec>"
			inventory := filepath.Join("..", "..", "testdata", "mapping", "campus.yaml")
			out, errs, status := run(t, document, "map", inventory, "-", "--json", "--explain")
			var answer mapped
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatalf("%v\n%s%s", err, out, errs)
			}
			if c.refused != "" {
				if status == 0 || answer.Refusal == nil || !strings.Contains(answer.Refusal.Error(), c.refused) || !strings.Contains(errs, answer.Refusal.Why) {
					t.Errorf("status %d, %v\nwant %s\n%s", status, answer.Refusal, c.refused, errs)
				}
				return
			}
			if status != 0 || answer.Placement == nil {
				t.Fatalf("status %d\n%s", status, errs)
			}
			p := answer.Placement
			for i, want := range strings.Fields(c.hosts) {
				if got := p.Nodes[i].Host.Name; !contains(strings.Split(want, "|"), got) {
					t.Errorf("node %s is on %s, want %s", p.Nodes[i].Node, got, want)
				}
			}
			if c.check != nil {
				if got, want, _ := strings.Cut(c.check(p), "="); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if c.link == "" {
				return
			}
			text, _, _ := run(t, document, "map", inventory, "-")
			for _, line := range strings.Split(text, "\n") {
				if fields := strings.Fields(line); len(fields) > 1 && string(fields[0]) == c.link {
					for _, want := range c.way {
						i := strings.Index(line, want)
						if i < 0 {
							t.Errorf("link %s runs so: %s\nwant %v", c.link, line, c.way)
							break
						}
						line = line[i+len(want):]
					}
					return
				}
			}
			t.Errorf("no link %s in\n%s", c.link, text)
		})
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func grouped(place, by string, members ...string) string {
	s := fmt.Sprintf(`<c:group name="g" place=%q by=%q>`, place, by)
	for _, m := range members {
		s += fmt.Sprintf(`<c:member client_id=%q/>`, m)
	}
	return s + "</c:group>"
}

// pairs are so many pairs of machines with a link each, none of which fits
// within a host.
func pairs(n int) string {
	s := ""
	for i := range n {
		x, y := fmt.Sprintf("x%d", i), fmt.Sprintf("y%d", i)
		s += vm(x, 1) + vm(y, 1) + wire(fmt.Sprintf("l%d", i), `<c:link trivial="false"/>`, x+":0", y+":0")
	}
	return s
}

// outside is a link that leaves the hosts of its ends.
func outside(id, inside string) string {
	return vm("x", 1) + vm("y", 1) + wire(id, `<c:link trivial="false"/>`+inside, "x:0", "y:0")
}

// tagged is a link over a switch that asks for a VLAN tag.
func tagged(tag string) string {
	return strings.Replace(outside("l", ""), "<link ", fmt.Sprintf("<link vlantag=%q ", tag), 1)
}

// tagOf tells the tag of a link, and that no other has it.
func tagOf(link string, tag int) func(p *mapping.Placement) string {
	return func(p *mapping.Placement) string {
		got, others := 0, 0
		for _, l := range p.Links {
			if string(l.Link) == link {
				got = l.VLAN
			} else if l.VLAN == tag {
				others++
			}
		}
		return fmt.Sprintf("%d %d=%d 0", got, others, tag)
	}
}

// vms are links that all must run between the north and the south.
func vms(n, kbps int) string {
	s := ""
	for i := range n {
		x, y := fmt.Sprintf("x%d", i), fmt.Sprintf("y%d", i)
		s += pc(x, 1, hw("d710")) + vm(y, 1, `<c:node site="south"/>`) + wire(fmt.Sprintf("l%d", i), rate(x+":0", y+":0", kbps), x+":0", y+":0")
	}
	return s
}

// Explanations are for people.
func TestMapExplains(t *testing.T) {
	t.Setenv("CROFT_DIR", t.TempDir())
	document := `<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3">` + on("a1", pc("x", 1)) + on("b1", pc("y", 1)) + wire("l", "", "x:0", "y:0") + "</rspec>"
	inventory := filepath.Join("..", "..", "testdata", "mapping", "campus.yaml")
	out, errs, status := run(t, document, "map", inventory, "-", "--explain")
	for _, want := range []string{"x: 1 of 15 hosts could take it; in the way: 14 another component", "on a1, which costs", "score ", "hosts 0.", "trunk sw1-sw2-", "of 1000000 kbit/s taken"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, want %q in\n%s%s", status, want, out, errs)
		}
	}
	first, _, _ := run(t, document, "map", inventory, "-", "--seed", "7", "--effort", "0.5")
	second, _, _ := run(t, document, "map", inventory, "-", "--seed", "7", "--effort", "0.5")
	if first != second {
		t.Errorf("the same seed and effort give\n%s\nand\n%s", first, second)
	}
}

// What croft.yaml says by default is what the mapper does by default.
func TestMapperDefaults(t *testing.T) {
	c, err := config.Parse("croft.yaml", nil, "/")
	if err != nil {
		t.Fatal(err)
	}
	if m := mapperOf(c.Mapping); m.Objective != mapping.DefaultObjective() || m.Effort != mapping.DefaultEffort {
		t.Errorf("croft.yaml says %+v and effort %d", m.Objective, m.Effort)
	}
	c.Mapping.Layout = "spread"
	if m := mapperOf(c.Mapping); m.Objective.Layout != mapping.Spread {
		t.Errorf("layout spread is not taken over")
	}
}
