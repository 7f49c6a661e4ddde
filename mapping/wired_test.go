package mapping_test

import (
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"croft/mapping"
	"croft/mapping/mappingtest"
	"croft/request"
)

func soaking() bool { return os.Getenv("CROFT_SOAK") == "1" }

// TestWired maps random requests with links, groups and features onto random
// testbeds with switches and trunks, and asks an independent judge.
func TestWired(t *testing.T) {
	rounds := 700
	if soaking() {
		rounds = 50_000
	} else if testing.Short() {
		rounds = 200
	}
	placed, refused, gaveUp, left, routed := 0, 0, 0, 0, 0
	for seed := range rounds {
		c := mappingtest.Wired(rand.New(rand.NewPCG(uint64(seed), 9)), 9, 5)
		p, r, err := run(c)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if r == nil {
			placed++
			left += len(p.Left)
			for _, l := range p.Links {
				if len(l.Route) > 0 {
					routed++
				}
			}
			if wrong := mappingtest.Valid(c, p); len(wrong) > 0 {
				t.Fatalf("seed %d: the placement is wrong:\n%s", seed, strings.Join(wrong, "\n"))
			}
			continue
		}
		refused++
		if r.Why == "" || r.Item == "" {
			t.Errorf("seed %d: refused with %+v", seed, r)
		}
		if r.GaveUp {
			gaveUp++
		}
		// What is refused for the nodes alone must be impossible.
		onNode := false
		for _, n := range c.Request.Nodes {
			onNode = onNode || n.ID == r.Item
		}
		if onNode && !r.GaveUp && r.Kind == mapping.Full && len(c.Request.Links) == 0 && mappingtest.Possible(c) {
			t.Errorf("seed %d: refused, yet possible: %v", seed, r)
		}
	}
	t.Logf("%d placed with %d links over wires and %d nodes left out, %d refused, %d of these not proved impossible", placed, routed, left, refused, gaveUp)
	if placed < rounds/5 || routed < rounds/12 || left == 0 || refused < rounds/10 {
		t.Error("the random requests are too easy or too hard to tell anything")
	}
}

// TestFewerWired takes nodes out of requests that fit on testbeds with cabling:
// they must fit on.
func TestFewerWired(t *testing.T) {
	rounds := 250
	if soaking() {
		rounds = 10_000
	}
	tried := 0
	for seed := range rounds {
		c := mappingtest.Wired(rand.New(rand.NewPCG(uint64(seed), 10)), 9, 5)
		p, r, err := run(c)
		if err != nil {
			t.Fatal(err)
		}
		if r != nil || len(p.Left) > 0 {
			continue
		}
		for _, n := range c.Request.Nodes {
			fewer := c
			fewer.Request = mapping.Without(c.Request, n.ID)
			if len(fewer.Request.Nodes) == 0 {
				continue
			}
			p, r, err := run(fewer)
			if err != nil || r != nil {
				t.Errorf("seed %d: without node %s: %v %v", seed, n.ID, r, err)
				continue
			}
			if wrong := mappingtest.Valid(fewer, p); len(wrong) > 0 {
				t.Fatalf("seed %d: without node %s: %s", seed, n.ID, strings.Join(wrong, "\n"))
			}
			tried++
		}
	}
	if tried < rounds/3 {
		t.Errorf("only %d requests tried", tried)
	}
}

// TestOneAnswer maps the same on one core and on many, by a mapper that is new
// and by one that has mapped other things.
func TestOneAnswer(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	used := new(mapping.Optimizer)
	for seed := range 60 {
		c := mappingtest.Wired(rand.New(rand.NewPCG(uint64(seed), 11)), 8, 8)
		runtime.GOMAXPROCS(1)
		p, r, err := run(c)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GOMAXPROCS(8)
		q, s, err := runBy(used, c)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, q) || !reflect.DeepEqual(r, s) {
			t.Fatalf("seed %d: the same request is answered differently:\n%v %v\n%v %v", seed, p, r, q, s)
		}
	}
}

// TestStable changes a request a little: the nodes that were there before
// mostly stay where they were.
func TestStable(t *testing.T) {
	all, moved := 0, 0
	for seed := range 60 {
		c := mappingtest.Wired(rand.New(rand.NewPCG(uint64(seed), 12)), 40, 6)
		p, r, err := run(c)
		if err != nil {
			t.Fatal(err)
		}
		if r != nil || len(p.Left) > 0 {
			continue
		}
		more := c
		more.Options.Seed++
		req := *c.Request
		req.Nodes = append(append([]request.Node{}, c.Request.Nodes...), request.Node{ID: "more", Place: request.Place{Line: 99}})
		more.Request = &req
		q, r, err := run(more)
		if err != nil {
			t.Fatal(err)
		}
		if r != nil {
			continue
		}
		for i := range p.Nodes {
			all++
			if p.Nodes[i].Host != q.Nodes[i].Host {
				moved++
			}
		}
	}
	t.Logf("%d of %d nodes moved when one was added", moved, all)
	if all < 50 || moved > all/5 {
		t.Errorf("%d of %d nodes moved when one was added", moved, all)
	}
}

// TestCut lets the clock end a search before it has begun: the answer says so.
func TestCut(t *testing.T) {
	cut := 0
	defer func() {
		if cut < 5 {
			t.Errorf("%d placements say that their search was cut", cut)
		}
	}()
	for seed := range 20 {
		c := mappingtest.Wired(rand.New(rand.NewPCG(uint64(seed), 13)), 12, 3)
		begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		c.Options.Clock = func() time.Time { return begun }
		c.Options.Deadline = begun.Add(-time.Second)
		p, r, err := run(c)
		switch {
		case err != nil:
			t.Fatal(err)
		case p != nil:
			if p.Cut {
				cut++ // where there is nothing to search, nothing is
			}
			if wrong := mappingtest.Valid(c, p); len(wrong) > 0 {
				t.Errorf("seed %d: cut short, the placement is wrong: %v", seed, wrong)
			}
		case r.GaveUp && !r.Cut:
			t.Errorf("seed %d: the refusal does not say that the search was cut: %v", seed, r)
		}
		c.Options.Deadline = begun.Add(time.Hour)
		if p, _, _ := run(c); p != nil && p.Cut {
			t.Errorf("seed %d: cut long before its time", seed)
		}
	}
}
