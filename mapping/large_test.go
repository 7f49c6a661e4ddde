package mapping_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"croft/capacity"
	"croft/inventory"
	"croft/mapping"
	"croft/mapping/mappingtest"
	"croft/request"
	"croft/urn"
)

// large makes a testbed of some hosts, partly taken, and a request of some
// nodes in a ring.
func large(hosts, nodes int) mappingtest.Case {
	r := rand.New(rand.NewPCG(uint64(hosts), uint64(nodes)))
	s := &inventory.Snapshot{Authority: "example.org", Types: []inventory.SliverType{
		{Name: "vm", Driver: "namespace", Default: capacity.Amount{Cores: 1000, Memory: 1024}},
		{Name: "raw-pc", Driver: "namespace", WholeHost: true},
	}}
	c := mappingtest.Case{Snapshot: s, Request: &request.Request{}, Options: mapping.Options{Slice: urn.MustParse(mine)},
		Occupancy: mapping.Occupancy{Hosts: map[urn.URN]mapping.Use{}}}
	for i := range hosts {
		n := fmt.Sprintf("h%d", i)
		h := inventory.Host{ID: urn.MustParse(prefix + "node+" + n), Name: n, Types: []request.SliverType{"vm"}, Exclusive: true, Shared: true,
			Capacity: capacity.Amount{Cores: capacity.Cores(8000 << (i % 3)), Memory: 32768}}
		if i%3 == 0 {
			h.Types, h.Shared = []request.SliverType{"raw-pc"}, false
		}
		s.Hosts = append(s.Hosts, h)
		if r.IntN(3) == 0 {
			u := mapping.Use{Slivers: 1, Amount: amount(float64(r.IntN(8)), 4096), Exclusive: i%3 == 0, Slices: []urn.URN{urn.MustParse(theirs)}}
			c.Occupancy.Hosts[h.ID.Canonical()] = u
		}
	}
	for i := range nodes {
		n := node(fmt.Sprintf("n%d", i), wired("", ""))
		if i%5 == 0 {
			n.SliverType = "raw-pc"
		} else {
			n.Capacity.Cores = capacity.Cores(1000 * (1 + r.IntN(4)))
		}
		c.Request.Nodes = append(c.Request.Nodes, n)
		c.Request.Links = append(c.Request.Links, link(fmt.Sprintf("l%d", i), fmt.Sprintf("n%d:if0", i), fmt.Sprintf("n%d:if1", (i+1)%nodes)))
	}
	return c
}

func TestLarge(t *testing.T) {
	place(t, large(300, 200))
}

// TestHopelessLarge has to prove that requests too large for trying everything
// do not fit.
func TestHopelessLarge(t *testing.T) {
	c := large(300, 200)
	for i := range 60 {
		c.Request.Nodes = append(c.Request.Nodes, node(fmt.Sprintf("x%d", i), typed("raw-pc")))
	}
	_, r, err := run(c)
	if err != nil {
		t.Fatal(err)
	}
	if r == nil || r.Kind != mapping.Full || r.GaveUp || r.Item == "" {
		t.Fatalf("%+v", r)
	}
	if !strings.Contains(r.Why, "no place is left on any of the") {
		t.Errorf("refused: %v", r)
	}
}

// TestMatching needs an arrangement that taking the first host for each node
// does not find: node i is bound by its hardware to hosts 0 to i.
func TestMatching(t *testing.T) {
	const n = 40
	var hosts strings.Builder
	hosts.WriteString("sliver_types: [{name: raw-pc, driver: simulated}]\nhosts:\n")
	req := &request.Request{}
	for i := range n {
		var kinds []string
		for j := i; j < n; j++ {
			kinds = append(kinds, fmt.Sprintf("t%d", j))
		}
		fmt.Fprintf(&hosts, "- {name: h%d, sliver_types: raw-pc, hardware_types: [%s]}\n", i, strings.Join(kinds, ", "))
		req.Nodes = append(req.Nodes, node(fmt.Sprintf("n%d", n-1-i), hardware(fmt.Sprintf("t%d", n-1-i))))
	}
	c := mappingtest.Case{Snapshot: testbed(t, hosts.String()), Request: req, Options: options()}
	p := place(t, c)
	for i := range p.Nodes {
		if want := fmt.Sprintf("h%d", n-1-i); p.Nodes[i].Host.Name != want {
			t.Errorf("node %s is on %s, want %s", p.Nodes[i].Node, p.Nodes[i].Host.Name, want)
		}
	}
	// One more for the same hosts, and none fits: by counting, not by trying.
	c.Request.Nodes = append(c.Request.Nodes, node("more", hardware("t20")))
	if _, r, _ := run(c); r == nil || r.Kind != mapping.Full || !r.Never || r.GaveUp {
		t.Errorf("%+v", r)
	}
}

// TestGivesUp packs numbers that cannot be told to fit without trying all too
// many arrangements: the answer says that the search was cut short.
func TestGivesUp(t *testing.T) {
	c := mappingtest.Case{Snapshot: testbed(t, "sliver_types: [{name: namespace, memory: 1 MiB, disk: 1 MiB}]\nhosts: [{name: 'h[1-12]', cores: 1.0}]\n"), Options: options(), Request: &request.Request{}}
	r := rand.New(rand.NewPCG(1, 2))
	sum := 0
	for i := range 36 {
		size := 250 + r.IntN(160)
		if sum += size; sum > 11990 {
			break
		}
		c.Request.Nodes = append(c.Request.Nodes, node(fmt.Sprintf("n%d", i), withCores(float64(size)/1000)))
	}
	c.Options.Effort = 20_000
	p, refusal, err := run(c)
	if err != nil {
		t.Fatal(err)
	}
	if refusal == nil {
		t.Fatalf("found an arrangement, %s: this case is too easy", hostsOf(p))
	}
	if !refusal.GaveUp || refusal.Kind != mapping.Full || refusal.Why == "" {
		t.Errorf("%+v", refusal)
	}
	if _, again, _ := run(c); !reflect.DeepEqual(refusal, again) {
		t.Errorf("the same request is answered differently: %v and %v", refusal, again)
	}
}

func BenchmarkMap(b *testing.B) {
	for _, hosts := range []int{10, 100, 1000, 4000} {
		for _, nodes := range []int{2, 10, 100, 1000} {
			if nodes > hosts*6/10 {
				continue
			}
			c := large(hosts, nodes)
			c.Snapshot.Digest = fmt.Sprint(hosts) // as one that was read has
			mapper := new(mapping.Optimizer)
			b.Run(fmt.Sprintf("hosts=%d/nodes=%d", hosts, nodes), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := mapper.Map(c.Snapshot, c.Occupancy, c.Request, c.Options); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRefuse(b *testing.B) {
	c := large(1000, 100)
	for i := range 300 {
		c.Request.Nodes = append(c.Request.Nodes, node(fmt.Sprintf("x%d", i), typed("raw-pc")))
	}
	for b.Loop() {
		if _, err := new(mapping.Optimizer).Map(c.Snapshot, c.Occupancy, c.Request, c.Options); err == nil {
			b.Fatal("placed")
		}
	}
}
