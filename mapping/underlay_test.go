package mapping_test

import (
	"strings"
	"testing"

	"croft/capacity"
	"croft/mapping"
	"croft/mapping/mappingtest"
	"croft/request"
	"croft/urn"
)

// machines have no interfaces of their own for links: these run over the
// network that the machines have, as tunnels.
const machines = `
sliver_types: [{name: container, driver: simulated, shaping: true, cores: 1}]
hosts:
  - {name: "m[1-3]", sliver_types: container, cores: 4, shared: true, exclusive: false, underlay_capacity: 1 Gbps}
  - {name: free, sliver_types: container, cores: 4, shared: true, exclusive: false}
`

func TestUnderlay(t *testing.T) {
	rated := func(l request.Link, kbps capacity.Kbps) request.Link {
		l.Type = "vxlan"
		l.Properties = []request.Property{{Capacity: kbps, Place: request.Place{Line: 30}}}
		return l
	}
	used := func(host string, kbps capacity.Kbps) map[urn.URN]mapping.WireUse {
		return map[urn.URN]mapping.WireUse{urn.MustParse(prefix + "node+" + host).Canonical(): {Bandwidth: kbps, Links: 1}}
	}
	on := func(id, host string, n int) request.Node {
		return node(id, bound(host), typed("container"), wired(make([]string, n)...))
	}
	for _, c := range []struct {
		name  string
		nodes []request.Node
		links []request.Link
		wires map[urn.URN]mapping.WireUse
		takes map[string]capacity.Kbps // by host
		want  string                   // of the refusal
	}{
		{name: "between machines", nodes: []request.Node{on("a", "m1", 1), on("b", "m2", 1)}, links: []request.Link{rated(link("l", "a:if0", "b:if0"), 600_000)},
			takes: map[string]capacity.Kbps{"m1": 600_000, "m2": 600_000}},
		{name: "within a machine", nodes: []request.Node{on("a", "m1", 1), on("b", "m1", 1)}, links: []request.Link{rated(link("l", "a:if0", "b:if0"), 5_000_000)}},
		{name: "several", nodes: []request.Node{on("a", "m1", 2), on("b", "m2", 1), on("c", "m3", 1)},
			links: []request.Link{rated(link("l", "a:if0", "b:if0"), 500_000), rated(link("m", "a:if1", "c:if0"), 500_000)},
			takes: map[string]capacity.Kbps{"m1": 1_000_000, "m2": 500_000, "m3": 500_000}},
		{name: "more than there is", nodes: []request.Node{on("a", "m1", 2), on("b", "m2", 1), on("c", "m3", 1)},
			links: []request.Link{rated(link("l", "a:if0", "b:if0"), 600_000), rated(link("m", "a:if1", "c:if0"), 500_000)}, want: "m1"},
		{name: "more than is left", nodes: []request.Node{on("a", "m1", 1), on("b", "m2", 1)}, wires: used("m2", 600_000),
			links: []request.Link{rated(link("l", "a:if0", "b:if0"), 500_000)}, want: "l"},
		{name: "where there is enough", nodes: []request.Node{on("a", "m1", 1), node("b", typed("container"), withCores(4), wired(""))}, wires: used("m2", 600_000),
			links: []request.Link{rated(link("l", "a:if0", "b:if0"), 500_000)}, takes: map[string]capacity.Kbps{"m1": 500_000}},
		{name: "not counted", nodes: []request.Node{on("a", "free", 1), on("b", "m2", 1)}, links: []request.Link{rated(link("l", "a:if0", "b:if0"), 900_000)},
			takes: map[string]capacity.Kbps{"m2": 900_000}},
		{name: "a LAN", nodes: []request.Node{on("a", "m1", 1), on("b", "m2", 1), on("c", "m3", 1)}, links: []request.Link{rated(link("l", "a:if0", "b:if0", "c:if0"), 300_000)},
			takes: map[string]capacity.Kbps{"m1": 300_000, "m2": 300_000, "m3": 300_000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := mappingtest.Case{Snapshot: testbed(t, machines), Request: &request.Request{Nodes: c.nodes, Links: c.links}, Options: options(),
				Occupancy: mapping.Occupancy{Wires: c.wires}}
			if c.want != "" {
				_, r, err := run(k)
				if err != nil || r == nil || !strings.Contains(r.Error(), c.want) {
					t.Errorf("%v, %v", r, err)
				}
				return
			}
			p := place(t, k)
			takes := map[string]capacity.Kbps{}
			for _, l := range p.Links {
				for _, w := range l.Route {
					takes[w.Wire.Name] += w.Bandwidth
				}
			}
			for host, kbps := range c.takes {
				if takes[host] != kbps {
					t.Errorf("links take %d of %s, want %d", takes[host], host, kbps)
				}
			}
			if len(c.takes) == 0 && len(takes) > 0 {
				t.Errorf("links take %v", takes)
			}
		})
	}
}
