package mapping_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"croft/inventory"
	"croft/mapping/mappingtest"
	"croft/request"
)

// TestDelayNodes maps random requests onto testbeds of which nothing but delay
// nodes can shape links.
func TestDelayNodes(t *testing.T) {
	rounds := 150
	if soaking() {
		rounds = 10_000
	}
	placed, put, lans := 0, 0, 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 21))
		c := mappingtest.Wired(r, 10, 4)
		c.Options.DelayNodes = true
		for i := range c.Snapshot.Types {
			c.Snapshot.Types[i].Shaping = false
		}
		c.Snapshot.Types = append(c.Snapshot.Types, inventory.SliverType{Name: "delay", Driver: c.Snapshot.Types[0].Driver, Delay: true, WholeHost: r.IntN(2) == 0})
		for i := range c.Snapshot.Hosts {
			if h := &c.Snapshot.Hosts[i]; r.IntN(2) == 0 {
				h.Types = append(append([]request.SliverType{}, h.Types...), "delay")
			}
		}
		for i := range c.Request.Links {
			l := &c.Request.Links[i]
			if len(l.Properties) == 0 && r.IntN(2) == 0 {
				l.Properties = []request.Property{{}}
			}
			for k := range l.Properties {
				if len(l.Ends) == 2 && r.IntN(2) == 0 {
					l.Properties[k].From = l.Ends[0].Interface
				}
				if r.IntN(3) > 0 {
					l.Properties[k].LatencyMs = 3
				}
			}
		}
		p, refusal, err := run(c)
		if err != nil {
			t.Fatal(err)
		}
		if refusal != nil {
			if strings.Contains(refusal.Error(), "~") {
				t.Errorf("seed %d: refused for what nobody asked for: %v", seed, refusal)
			}
			continue
		}
		if wrong := mappingtest.Valid(c, p); len(wrong) > 0 {
			t.Fatalf("seed %d: the placement is wrong:\n%s", seed, strings.Join(wrong, "\n"))
		}
		placed++
		for _, n := range p.Nodes {
			if n.Delays != "" {
				put++
				for _, l := range c.Request.Links {
					if l.ID == n.Delays && len(l.Ends) > 2 {
						lans++
					}
				}
			}
		}
	}
	t.Logf("%d placed, with %d delay nodes, %d of them in LANs", placed, put, lans)
	if placed < rounds/5 || put < rounds/40 || lans == 0 {
		t.Error("the random requests are too easy or too hard to tell anything")
	}
}

// TestNoDelayNodes asks for a latency where delay nodes are declared, for a
// caller that cannot make them.
func TestNoDelayNodes(t *testing.T) {
	c := mappingtest.Case{Options: options(), Snapshot: testbed(t, `
sliver_types: [{name: raw-pc, driver: simulated}, {name: delay, driver: simulated, delay: true, whole_host: true}]
hosts: [{name: "pc[1-4]", sliver_types: [raw-pc, delay]}]
`)}
	c.Request = &request.Request{Nodes: []request.Node{node("a", typed("raw-pc"), wired("")), node("b", typed("raw-pc"), wired(""))},
		Links: []request.Link{link("l", "a:if0", "b:if0")}}
	c.Request.Links[0].Properties = []request.Property{{LatencyMs: 5}}
	if _, r, err := run(c); err != nil || r == nil || !strings.Contains(r.Error(), "l: asks for a latency of 5 ms, but links of these nodes cannot be shaped here: it would take a delay node between its ends") {
		t.Errorf("%v, %v", r, err)
	}
	c.Options.DelayNodes = true
	if p := place(t, c); len(p.Nodes) != 3 || p.Nodes[2].Delays != "l" {
		t.Errorf("%+v", p.Nodes)
	}
}
