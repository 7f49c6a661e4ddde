package mapping_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"croft/mapping"
	"croft/mapping/mappingtest"
	"croft/request"
)

func run(c mappingtest.Case) (*mapping.Placement, *mapping.Refusal, error) {
	return runBy(new(mapping.Optimizer), c)
}

func runBy(m mapping.Mapper, c mappingtest.Case) (*mapping.Placement, *mapping.Refusal, error) {
	p, err := m.Map(c.Snapshot, c.Occupancy, c.Request, c.Options)
	var r *mapping.Refusal
	if err != nil && !errors.As(err, &r) {
		return nil, nil, fmt.Errorf("error is a %T: %w", err, err)
	}
	if (p == nil) == (err == nil) {
		return nil, nil, fmt.Errorf("placement %v with error %v", p, err)
	}
	return p, r, nil
}

// TestRandom maps random requests and asks an independent judge.
func TestRandom(t *testing.T) {
	rounds := 500
	if soaking() {
		rounds = 10_000
	}
	placed := 0
	kinds := map[mapping.Kind]int{}
	never, confirmed, conflicts := 0, 0, 0
	for seed := range rounds {
		c := mappingtest.Random(rand.New(rand.NewPCG(uint64(seed), 1)), 5, 5)
		p, r, err := run(c)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if r == nil {
			placed++
			if wrong := mappingtest.Valid(c, p); len(wrong) > 0 {
				t.Fatalf("seed %d: the placement is wrong:\n%s", seed, strings.Join(wrong, "\n"))
			}
		} else {
			kinds[r.Kind]++
			if r.Why == "" || r.GaveUp {
				t.Fatalf("seed %d: refused with %+v", seed, r)
			}
			if r.Item == "" || r.Place == (request.Place{}) {
				t.Fatalf("seed %d: the refusal names no place: %+v", seed, r)
			}
			if mappingtest.Possible(c) {
				t.Fatalf("seed %d: refused, yet possible: %v", seed, r)
			}
			confirmed++
			everPossible := mappingtest.Possible(mappingtest.Emptied(c))
			if wrong := conflicting(c, r); wrong != "" {
				t.Errorf("seed %d: %s: %v", seed, wrong, r)
			}
			if len(r.Conflict) > 0 && len(c.Request.Links) == 0 {
				conflicts++
			}
			hopeless := r.Never || r.Kind == mapping.Impossible || r.Kind == mapping.Bandwidth
			if hopeless && everPossible {
				t.Fatalf("seed %d: an empty testbed could take what is refused for ever: %v", seed, r)
			}
			if r.Kind == mapping.Full && !r.Never && !everPossible && len(c.Request.Nodes) == 1 {
				t.Fatalf("seed %d: an empty testbed could not take it either: %v", seed, r)
			}
			if r.Never {
				never++
			}
		}
		p2, r2, _ := run(c)
		if !reflect.DeepEqual(p, p2) || !reflect.DeepEqual(r, r2) {
			t.Fatalf("seed %d: the same request is answered differently", seed)
		}
	}
	t.Logf("%d placed, refused by kind %v, never %d, confirmed by brute force %d, with %d conflicts", placed, kinds, never, confirmed, conflicts)
	if placed < rounds/10 || confirmed < rounds/10 || kinds[mapping.Impossible] == 0 || kinds[mapping.Full] == 0 || never == 0 || conflicts == 0 {
		t.Error("the random requests are too easy or too hard to tell anything")
	}
}

// conflicting looks at what is said not to hold together: the nodes named have
// no places, and have them without any one of them.
func conflicting(c mappingtest.Case, r *mapping.Refusal) string {
	if len(r.Conflict) == 0 || len(c.Request.Links) > 0 {
		return "" // what links ask of the nodes named may be for nodes that are not
	}
	var named []request.ClientID
	for _, claim := range r.Conflict {
		if len(claim.Nodes) == 0 || claim.String() == "" {
			return "nobody has a claim"
		}
		named = append(named, claim.Nodes...)
	}
	only := func(keep func(request.ClientID) bool) mappingtest.Case {
		var others []request.ClientID
		for _, n := range c.Request.Nodes {
			if !keep(n.ID) {
				others = append(others, n.ID)
			}
		}
		few := c
		if r.Never {
			few = mappingtest.Emptied(c)
		}
		few.Request = mapping.Without(c.Request, others...)
		return few
	}
	if mappingtest.Possible(only(func(id request.ClientID) bool { return slices.Contains(named, id) })) {
		return "what cannot hold together does"
	}
	for _, one := range named {
		if !mappingtest.Possible(only(func(id request.ClientID) bool { return id != one && slices.Contains(named, id) })) {
			return "it would do without " + string(one)
		}
	}
	return ""
}

// TestFewer takes nodes out of requests that fit: they must fit on.
func TestFewer(t *testing.T) {
	tried, rounds := 0, 250
	if soaking() {
		rounds = 5000
	}
	for seed := range rounds {
		c := mappingtest.Random(rand.New(rand.NewPCG(uint64(seed), 2)), 6, 7)
		if _, r, err := run(c); err != nil {
			t.Fatal(err)
		} else if r != nil {
			continue
		}
		for i := range c.Request.Nodes {
			fewer := c
			fewer.Request = without(c.Request, i)
			p, r, err := run(fewer)
			if err != nil || r != nil {
				t.Errorf("seed %d: without node %d: %v %v", seed, i, r, err)
				continue
			}
			if wrong := mappingtest.Valid(fewer, p); len(wrong) > 0 {
				t.Fatalf("seed %d: without node %d: %s", seed, i, strings.Join(wrong, "\n"))
			}
			tried++
		}
	}
	if tried < rounds/3 {
		t.Errorf("only %d requests tried", tried)
	}
}

// without is a request less one node, its ends, and links that join nothing
// then.
func without(req *request.Request, node int) *request.Request {
	id := req.Nodes[node].ID
	fewer := &request.Request{Nodes: slices.Delete(slices.Clone(req.Nodes), node, node+1)}
	for _, l := range req.Links {
		l.Ends = slices.DeleteFunc(slices.Clone(l.Ends), func(e request.End) bool { return e.Node == id })
		if len(l.Ends) > 0 {
			fewer.Links = append(fewer.Links, l)
		}
	}
	return fewer
}

// TestSeeds changes the seed: addresses of hardware change, places do not.
func TestSeeds(t *testing.T) {
	macs := map[string]bool{}
	for seed := range 200 {
		c := mappingtest.Random(rand.New(rand.NewPCG(uint64(seed), 3)), 5, 5)
		p, _, err := run(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Options.Seed++
		q, _, err := run(c)
		if err != nil {
			t.Fatal(err)
		}
		if (p == nil) != (q == nil) {
			t.Fatalf("seed %d: the answer depends on the seed", seed)
		}
		if p == nil {
			continue
		}
		for i := range p.Nodes {
			if p.Nodes[i].Host != q.Nodes[i].Host {
				t.Errorf("seed %d: node %d moved", seed, i)
			}
			for j := range p.Nodes[i].Interfaces {
				for _, mac := range []string{p.Nodes[i].Interfaces[j].MAC.String(), q.Nodes[i].Interfaces[j].MAC.String()} {
					if macs[mac] {
						t.Errorf("seed %d: MAC %s comes up again", seed, mac)
					}
					macs[mac] = true
				}
			}
		}
	}
	if len(macs) < 50 {
		t.Errorf("only %d MACs seen", len(macs))
	}
}
