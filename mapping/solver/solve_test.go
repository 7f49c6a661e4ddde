package solver

import (
	"context"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// tree makes a testbed of leaves with hosts below one core switch.
func tree(leaves, perLeaf int, trunkBW int64) *Spec {
	s := &Spec{Types: []string{"switch", "lan", "pc", "vm"}, Features: []FeatureType{{"ssd", Plain}, {"ram", Additive}}, Media: []string{"ethernet"}}
	sw := []HostType{{Type: 0, Slots: 1}, {Type: 1, Slots: 10000, Static: true}}
	s.Hosts = append(s.Hosts, Host{Name: "core", Switch: true, Types: sw, Parent: -1})
	for l := range leaves {
		leaf := int32(len(s.Hosts))
		s.Hosts = append(s.Hosts, Host{Name: "leaf" + string(rune('a'+l)), Switch: true, Types: sw, Parent: -1})
		// Two trunks side by side share the bandwidth.
		for range 2 {
			s.Wires = append(s.Wires, Wire{Name: "trunk", A: leaf, B: 0, Bandwidth: trunkBW / 2, Media: []MediumID{0}})
		}
		for i := range perLeaf {
			h := int32(len(s.Hosts))
			host := Host{Name: "n", Types: []HostType{{Type: 2, Slots: 1}, {Type: 3, Slots: 3}}, Features: []HostFeature{{1, 10}}, Parent: -1, Loopback: 200}
			if i%3 == 0 {
				host.Features = append(host.Features, HostFeature{0, 0.1})
			}
			s.Hosts = append(s.Hosts, host)
			for range 3 {
				s.Wires = append(s.Wires, Wire{Name: "if", A: h, B: leaf, Bandwidth: 100, Media: []MediumID{0}})
			}
		}
	}
	return s
}

func compile(t *testing.T, s *Spec) *Testbed {
	t.Helper()
	tb, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

func randomProblem(tb *Testbed, seed uint64) *Problem {
	r := rand.New(rand.NewPCG(seed, 7))
	p := &Problem{Testbed: tb, Weights: DefaultWeights()}
	n := 2 + r.IntN(9)
	for range n {
		v := Node{Types: []TypeID{2}, Class: -1, Slots: 1, Fixed: -1, Hint: -1, Parent: -1, Name: "v"}
		if seed%2 == 0 {
			v.Types[0] = 3
			v.Desires = append(v.Desires, Desire{1, 1, float64(1 + r.IntN(5))})
		}
		if r.IntN(4) == 0 {
			v.Desires = append(v.Desires, Desire{Feature: 0, Weight: 1})
		}
		p.Nodes = append(p.Nodes, v)
	}
	vm := seed%2 == 0
	for range n {
		a, b := int32(r.IntN(n)), int32(r.IntN(n))
		if a != b {
			p.Links = append(p.Links, Link{Name: "l", A: a, B: b, Bandwidth: int64(10 * (1 + r.IntN(6))), Emulated: vm, Trivial: vm})
		}
	}
	if r.IntN(2) == 0 {
		lan := int32(len(p.Nodes))
		p.Nodes = append(p.Nodes, Node{Types: []TypeID{1}, Class: -1, Slots: 1, Fixed: -1, Hint: -1, Parent: -1, Name: "lan"})
		for range 2 {
			p.Links = append(p.Links, Link{Name: "m", A: int32(r.IntN(n)), B: lan, Bandwidth: 20, Emulated: vm})
		}
	}
	if r.IntN(3) == 0 {
		p.Groups = append(p.Groups, Group{Name: "g", Apart: true, Nodes: []int32{0, 1}})
	}
	return p
}

// verify checks a placement from its wires alone; it knows nothing of the
// solver's sums.
func verify(t *testing.T, p *Problem, s *Solution) {
	t.Helper()
	spec := p.Testbed.Spec()
	slots := map[[2]int32]int32{}
	kinds := map[int32]TypeID{}
	ram := map[int32]float64{}
	for v, h := range s.Hosts {
		n := p.Nodes[v]
		typ := s.Types[v]
		slots[[2]int32{h, int32(typ)}] += n.Slots
		var offer *HostType
		for i := range spec.Hosts[h].Types {
			if spec.Hosts[h].Types[i].Type == typ {
				offer = &spec.Hosts[h].Types[i]
			}
		}
		if offer == nil || slots[[2]int32{h, int32(typ)}] > offer.Slots {
			t.Fatalf("node %d on host %d: no slot of type %d", v, h, typ)
		}
		if !offer.Static {
			if was, ok := kinds[h]; ok && was != typ {
				t.Fatalf("host %d is of two types", h)
			}
			kinds[h] = typ
		}
		for _, d := range n.Desires {
			var has *HostFeature
			for i := range spec.Hosts[h].Features {
				if spec.Hosts[h].Features[i].Feature == d.Feature {
					has = &spec.Hosts[h].Features[i]
				}
			}
			if has == nil {
				t.Fatalf("node %d lacks feature %d", v, d.Feature)
			}
			if d.Feature == 1 {
				if ram[h] += d.Amount; ram[h] > has.Weight {
					t.Fatalf("host %d has too little of feature %d", h, d.Feature)
				}
			}
		}
	}
	for _, g := range p.Groups {
		if s.Hosts[g.Nodes[0]] == s.Hosts[g.Nodes[1]] {
			t.Fatal("a group is not apart")
		}
	}
	load, owners, sharers, within := map[int32]int64{}, map[int32]int{}, map[int32]int{}, map[int32]int64{}
	for l, r := range s.Routes {
		d := p.Links[l]
		at, end := s.Hosts[d.A], s.Hosts[d.B]
		if r.Kind == TrivialRoute {
			if !d.Trivial || at != end {
				t.Fatalf("link %d cannot be trivial", l)
			}
			within[at] += d.Bandwidth
			continue
		}
		if len(r.Wires) == 0 {
			t.Fatalf("link %d has no wires", l)
		}
		for i, w := range r.Wires {
			x := spec.Wires[w]
			if i > 0 && !spec.Hosts[at].Switch {
				t.Fatalf("link %d passes host %d", l, at)
			}
			switch at {
			case x.A:
				at = x.B
			case x.B:
				at = x.A
			default:
				t.Fatalf("link %d: wire %d does not go on from host %d", l, w, at)
			}
			if load[w] += d.Bandwidth; load[w] > x.Bandwidth {
				t.Fatalf("wire %d carries %d", w, load[w])
			}
			if spec.Hosts[x.A].Switch && spec.Hosts[x.B].Switch {
				continue
			}
			if d.Emulated {
				sharers[w]++
			} else {
				owners[w]++
			}
			if owners[w] > 1 || owners[w] == 1 && sharers[w] > 0 {
				t.Fatalf("interface %d is shared", w)
			}
		}
		if at != end {
			t.Fatalf("link %d ends at host %d instead of %d", l, at, end)
		}
	}
	for h, bw := range within {
		if free := spec.Hosts[h].Loopback; free > 0 && bw > free {
			t.Fatalf("host %d carries %d within", h, bw)
		}
	}
}

func TestPlacementsHold(t *testing.T) {
	tb := compile(t, tree(3, 6, 200))
	placed := 0
	for seed := range uint64(150) {
		p := randomProblem(tb, seed)
		s, err := Solve(context.Background(), p, Options{Seed: seed, Effort: 0.3})
		if err != nil {
			t.Fatal(err)
		}
		if s.Outcome == Placed {
			placed++
			verify(t, p, s)
		} else if len(s.Reasons) == 0 {
			t.Errorf("seed %d: %v without a reason", seed, s.Outcome)
		}
	}
	if placed < 75 {
		t.Errorf("placed %d of 150 requests", placed)
	}
}

// without is a problem without one of its nodes and without that node's links.
func without(p *Problem, gone int32) *Problem {
	less := *p
	less.Nodes, less.Links, less.Groups = nil, nil, nil
	number := make([]int32, len(p.Nodes))
	for v := range p.Nodes {
		number[v] = int32(len(less.Nodes))
		if int32(v) != gone {
			less.Nodes = append(less.Nodes, p.Nodes[v])
		}
	}
	for _, l := range p.Links {
		if l.A != gone && l.B != gone {
			l.A, l.B = number[l.A], number[l.B]
			less.Links = append(less.Links, l)
		}
	}
	for _, g := range p.Groups {
		left := g
		left.Nodes = nil
		for _, v := range g.Nodes {
			if v != gone {
				left.Nodes = append(left.Nodes, number[v])
			}
		}
		less.Groups = append(less.Groups, left)
	}
	return &less
}

// TestLessIsPlacedToo takes each node in turn out of requests that were placed.
func TestLessIsPlacedToo(t *testing.T) {
	tb := compile(t, tree(3, 6, 200))
	for seed := range uint64(20) {
		p := randomProblem(tb, seed)
		if s, err := Solve(t.Context(), p, Options{Seed: seed, Effort: 0.3}); err != nil || s.Outcome != Placed {
			continue
		}
		for v := range p.Nodes {
			s, err := Solve(t.Context(), without(p, int32(v)), Options{Seed: seed, Effort: 0.3})
			if err != nil {
				t.Fatal(err)
			}
			if s.Outcome != Placed {
				t.Errorf("seed %d: %v without node %d: %v", seed, s.Outcome, v, s.Reasons)
			}
		}
	}
}

func TestSameSeedSameAnswer(t *testing.T) {
	tb := compile(t, tree(3, 6, 200))
	for seed := range uint64(6) {
		var first *Solution
		for range 2 {
			s, err := Solve(context.Background(), randomProblem(tb, seed), Options{Seed: 5})
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && !reflect.DeepEqual(first, s) {
				t.Errorf("seed %d: two answers", seed)
			}
			first = s
		}
	}
}

func TestRefusals(t *testing.T) {
	nodes := func(n int, typ TypeID) []Node {
		out := make([]Node, n)
		for i := range out {
			out[i] = Node{Name: "v", Types: []TypeID{typ}, Class: -1, Slots: 1, Fixed: -1, Hint: -1, Parent: -1}
		}
		return out
	}
	for _, c := range []struct {
		name   string
		change func(*Problem)
		want   string
	}{
		{"too many nodes", func(p *Problem) { p.Nodes = nodes(20, 2) }, "20 nodes of type pc wanted, 18 free"},
		{"some are taken", func(p *Problem) {
			p.Nodes = nodes(18, 2)
			p.Taken.Hosts = []HostUse{{Host: 2, Closed: true}}
		}, "18 nodes of type pc wanted, 17 free; 1 host that would suit"},
		{"a feature is scarce", func(p *Problem) {
			p.Nodes = nodes(7, 2)
			for i := range p.Nodes {
				p.Nodes[i].Desires = []Desire{{Feature: 0, Weight: 1}}
			}
		}, "7 nodes of type pc with ssd wanted, 6 free"},
		{"a fast link", func(p *Problem) {
			p.Nodes = nodes(2, 2)
			p.Links = []Link{{Name: "l0", A: 0, B: 1, Bandwidth: 101}}
		}, "link l0 wants bandwidth 101"},
		{"too many interfaces", func(p *Problem) {
			p.Nodes = nodes(5, 2)
			for i := range int32(4) {
				p.Links = append(p.Links, Link{Name: "l", A: 0, B: i + 1, Bandwidth: 1})
			}
		}, "and 4 interfaces"},
		{"a narrow trunk", func(p *Problem) {
			p.Nodes = nodes(6, 2)
			for i := range int32(3) {
				p.Nodes[i].Fixed, p.Nodes[i+3].Fixed = 2+i, 9+i
				p.Links = append(p.Links, Link{Name: "l", A: i, B: i + 3, Bandwidth: 90})
			}
		}, "its trunks have 200 free"},
		{"fixed to a closed host", func(p *Problem) {
			p.Nodes = nodes(1, 2)
			p.Nodes[0].Fixed = 2
			p.Taken.Hosts = []HostUse{{Host: 2, Closed: true}}
		}, "taken or out of service"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Problem{Testbed: compile(t, tree(3, 6, 200)), Weights: DefaultWeights()}
			c.change(p)
			s, err := Solve(context.Background(), p, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if s.Outcome != Impossible || len(s.Reasons) == 0 || !strings.Contains(s.Reasons[0].Text, c.want) {
				t.Errorf("%v %v, want %q", s.Outcome, s.Reasons, c.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	p := &Problem{Testbed: compile(t, tree(3, 6, 200)), Weights: DefaultWeights()}
	p.Nodes = []Node{{Name: "v", Types: []TypeID{2}, Class: -1, Slots: 1, Fixed: -1, Hint: -1, Parent: -1}}
	s, err := Solve(context.Background(), p, Options{Deadline: time.Unix(1, 0)})
	if err != nil || !s.Cut {
		t.Errorf("cut %v, error %v: a search past its deadline does not say so", s.Cut, err)
	}
}
