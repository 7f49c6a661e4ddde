package aggregate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"croft/capacity"
	"croft/credentials"
	"croft/inventory"
	"croft/urn"
)

// crowdInventory is a testbed that a crowd soon fills.
const crowdInventory = `
authority: example.org
sliver_types:
  - {name: raw-pc, driver: simulated}
  - {name: vm, driver: simulated, shaping: true, cores: 1, memory: 1 GiB}
hosts:
  - {name: "pc[1-12]", sliver_types: raw-pc, interfaces: [{name: "eth[1-2]", speed: 1 Gbps}]}
  - {name: "v[1-4]", sliver_types: vm, cores: 8, memory: 16 GiB, shared: true, exclusive: false, interfaces: [{name: eth1, speed: 1 Gbps}]}
switches: [{name: "sw[1-2]"}]
cables:
  - {hosts: "pc[1-12]", interfaces: "eth[1-2]", switch: "sw[1-2]"}
  - {hosts: "v[1-4]", interfaces: eth1, switch: "sw[1-2]"}
trunks: [{between: [sw1, sw2], capacity: 1 Gbps}]
pools: {vlans: [100-109]}
`

// crowdRequests are what the crowd asks for.
func crowdRequest(r *rand.Rand) string {
	typ := []string{"raw-pc", "vm"}[r.IntN(2)]
	n := 1 + r.IntN(3)
	text := header
	for i := range n {
		text += fmt.Sprintf(`<node client_id="n%d"><sliver_type name=%q/><interface client_id="n%d:0"/></node>`, i, typ, i)
	}
	if n > 1 {
		rate := ""
		if typ == "vm" {
			rate = fmt.Sprintf(`<property source_id="n0:0" dest_id="n1:0" capacity="%d"/>`, 100_000*(1+r.IntN(5)))
		}
		text += `<link client_id="l"><interface_ref client_id="n0:0"/><interface_ref client_id="n1:0"/>` + rate + `</link>`
	}
	return text + "</rspec>"
}

// TestCrowd lets 64 callers reserve and free on one testbed, for ten seconds or,
// with CROFT_SOAK=1, ten minutes; after every step nothing may be given twice.
func TestCrowd(t *testing.T) {
	const callers = 64
	lasting := 10 * time.Second
	if os.Getenv("CROFT_SOAK") == "1" {
		lasting = 10 * time.Minute
	} else if testing.Short() {
		lasting = 2 * time.Second
	}
	b := newBed(t)
	snapshot, err := inventory.Parse([]byte(crowdInventory), "inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.Service.Inventory = func() *inventory.Snapshot { return snapshot }
	type caller struct {
		p     *credentials.Principal
		slice urn.URN
	}
	var all []caller
	for i := range callers {
		p, slice := b.principal("crowd", fmt.Sprintf("crowd%d", i))
		all = append(all, caller{p, slice})
	}
	ctx := context.Background()
	end := time.Now().Add(lasting)
	var (
		group                 sync.WaitGroup
		mu                    sync.Mutex
		given, refused, freed int
	)
	for i, c := range all {
		group.Add(1)
		go func() {
			defer group.Done()
			r := rand.New(rand.NewPCG(uint64(i), 4))
			for time.Now().Before(end) && !t.Failed() {
				_, err := b.Allocate(ctx, c.p, c.slice, []byte(crowdRequest(r)), AllocateOptions{})
				var e *Error
				switch {
				case err == nil:
					mu.Lock()
					given++
					mu.Unlock()
					checkGiven(t, b, snapshot)
					if _, err := b.Delete(ctx, c.p, Target{Slice: c.slice}, false); err != nil {
						t.Errorf("delete: %v", err)
						return
					}
					mu.Lock()
					freed++
					mu.Unlock()
				case errors.As(err, &e) && (e.Kind == TooBig || e.Kind == NoBandwidth || e.Kind == NoVLAN || e.Kind == Busy || e.Kind == Unavailable):
					mu.Lock()
					refused++
					mu.Unlock()
				default:
					t.Errorf("allocate: %v", err)
					return
				}
				checkGiven(t, b, snapshot)
			}
		}()
	}
	group.Wait()
	t.Logf("%d given, %d freed, %d refused", given, freed, refused)
	if given < callers/2 || freed != given {
		t.Errorf("%d given, %d freed: too little happened to tell anything", given, freed)
	}
	for _, c := range all {
		b.states(c.slice)
	}
	if left, err := b.store.All(ctx); err != nil || len(left) != 0 {
		t.Errorf("%d slivers are left, %v", len(left), err)
	}
	if o := b.store.Occupancy(); len(o.Hosts)+len(o.Wires)+len(o.VLANs) != 0 {
		t.Errorf("still taken: %+v", o)
	}
}

// checkGiven looks at all that is given, by itself: that nothing is given twice
// and nothing gives more than it has.
func checkGiven(t *testing.T, b *bed, snapshot *inventory.Snapshot) {
	all, err := b.store.All(context.Background())
	if err != nil {
		t.Error(err)
		return
	}
	whole := map[urn.URN]urn.URN{}
	sums := map[urn.URN]capacity.Amount{}
	rates := map[urn.URN]capacity.Kbps{}
	owners := map[urn.URN]urn.URN{}
	tags := map[int]urn.URN{}
	for _, v := range all {
		switch {
		case v.Node != nil && v.Node.Exclusive:
			if other, taken := whole[v.Node.Host]; taken {
				t.Errorf("%s is given to %s and %s", v.Node.Host, other, v.URN)
			}
			whole[v.Node.Host] = v.URN
		case v.Node != nil:
			sums[v.Node.Host] = sums[v.Node.Host].Plus(v.Node.Capacity)
		case v.Link != nil:
			if other, taken := tags[v.Link.VLAN]; taken && v.Link.VLAN != 0 {
				t.Errorf("tag %d is given to %s and %s", v.Link.VLAN, other, v.URN)
			}
			tags[v.Link.VLAN] = v.URN
			for _, c := range v.Link.Route {
				rates[c.Wire] += c.Bandwidth
				if other, taken := owners[c.Wire]; taken && c.Exclusive {
					t.Errorf("wire %s is given to %s and %s", c.Wire, other, v.URN)
				}
				if c.Exclusive {
					owners[c.Wire] = v.URN
				}
			}
		}
	}
	for host, sum := range sums {
		if h, _ := snapshot.Host(host); !sum.Fits(h.Capacity) {
			t.Errorf("%s gives %v of %v", host, sum, h.Capacity)
		}
	}
	for _, l := range snapshot.Links {
		if rates[l.ID] > l.Capacity {
			t.Errorf("%s carries %d of %d kbit/s", l.Name, rates[l.ID], l.Capacity)
		}
	}
}
