package aggregate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/drivers"
	"croft/drivers/simulated"
	"croft/inventory"
	"croft/slivers"
	"croft/urn"
)

// flawed is the simulated driver with a List that can be wrong.
type flawed struct {
	*simulated.Driver
	err  error
	half map[urn.URN]bool // shown as half-made
	ill  []drivers.Ailing
}

func (f *flawed) TakesLogins() bool        { return true }
func (f *flawed) Health() []drivers.Ailing { return f.ill }

func (f *flawed) List(ctx context.Context) ([]drivers.Found, error) {
	list, err := f.Driver.List(ctx)
	for i := range list {
		list[i].Whole = !f.half[list[i].Sliver.Canonical()]
	}
	return list, errors.Join(err, f.err)
}

func (f *flawed) Remove(ctx context.Context, sliver urn.URN) error {
	delete(f.half, sliver.Canonical())
	return f.Driver.Remove(ctx, sliver)
}

// has lists what the driver has, with "!" where a node does not run.
func (f *flawed) has(t *testing.T, names map[urn.URN]string) string {
	t.Helper()
	list, err := f.Driver.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, v := range list {
		name := names[v.Sliver.Canonical()]
		if name == "" {
			name = v.Sliver.Name
		}
		if v.Kind == drivers.NodeKind && !v.Running {
			name += "!"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// While an aggregate runs, the machines are kept to what the store says.
func TestReconcile(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		name   string
		damage func(b *bed, d *flawed, of map[string]urn.URN) error
		have   string // on the driver afterwards
		event  string // that the slice has; "" for none
	}{
		{"nothing", func(*bed, *flawed, map[string]urn.URN) error { return nil }, "a b l", ""},
		{"a node halts", func(_ *bed, d *flawed, of map[string]urn.URN) error { return d.Driver.Stop(ctx, of["a"]) }, "a b l", "it did not run any more: being started again"},
		{"a link goes", func(_ *bed, d *flawed, of map[string]urn.URN) error { return d.Driver.Remove(ctx, of["l"]) }, "a b l", "it was gone from the testbed: being made anew"},
		{"a node goes", func(_ *bed, d *flawed, of map[string]urn.URN) error { return d.Driver.Remove(ctx, of["b"]) }, "a b l", "it was gone from the testbed: being made anew"},
		{"all goes", func(_ *bed, d *flawed, of map[string]urn.URN) error {
			return errors.Join(d.Driver.Remove(ctx, of["l"]), d.Driver.Remove(ctx, of["a"]), d.Driver.Remove(ctx, of["b"]))
		}, "a b l", "it was gone from the testbed: being made anew"},
		{"half of a node is left", func(_ *bed, d *flawed, of map[string]urn.URN) error {
			d.half = map[urn.URN]bool{of["a"].Canonical(): true}
			return nil
		}, "a b l", "it was gone from the testbed: being made anew"},
		{"a leak", func(_ *bed, d *flawed, _ map[string]urn.URN) error {
			return d.Make(ctx, drivers.Node{Sliver: urn.MustParse("urn:publicid:IDN+example.org+sliver+leak")})
		}, "a b l", ""},
		{"the driver does not answer", func(_ *bed, d *flawed, of map[string]urn.URN) error {
			d.err = errors.New("no route")
			return d.Driver.Stop(ctx, of["a"])
		}, "a! b l", ""},
		{"the host does not answer", func(b *bed, d *flawed, of map[string]urn.URN) error {
			found, err := b.Store.Find(ctx, []urn.URN{of["a"]})
			if err != nil {
				return err
			}
			d.ill = []drivers.Ailing{{Host: found[0].Node.Host, Reason: "no route"}}
			return errors.Join(d.Driver.Stop(ctx, of["a"]), d.Driver.Remove(ctx, of["l"]))
		}, "a! b", ""},
		{"a call is under way", func(b *bed, d *flawed, of map[string]urn.URN) error {
			unlock, err := b.lock(ctx, of["slice"])
			if err != nil {
				return err
			}
			b.t.Cleanup(unlock)
			return d.Driver.Stop(ctx, of["a"])
		}, "a! b l", ""},
		{"the slice is shut down", func(b *bed, d *flawed, of map[string]urn.URN) error {
			if err := b.Halt(ctx, of["slice"]); err != nil {
				return err
			}
			b.states(of["slice"])
			return d.Driver.Remove(ctx, of["l"])
		}, "a! b!", ""},
		{"a node was stopped by its users", func(b *bed, d *flawed, of map[string]urn.URN) error {
			p, slice := b.principal("alice", of["slice"].Name)
			_, err := b.Act(ctx, p, Target{Slice: slice, Slivers: []urn.URN{of["a"]}}, Stop, ActOptions{})
			b.states(slice)
			return err
		}, "a! b l", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			d := &flawed{Driver: b.driver}
			b.Drivers["simulated"] = d
			p, slice := b.principal("alice", "recon")
			of := map[string]urn.URN{"slice": slice}
			names := map[urn.URN]string{}
			for id, v := range b.up(p, slice, twoNodes) {
				of[string(id)] = v.URN
				names[v.URN.Canonical()] = string(id)
			}
			if err := test.damage(b, d, of); err != nil {
				t.Fatal(err)
			}
			if err := b.mending.run(ctx, false); err != nil {
				t.Fatal(err)
			}
			states := b.states(slice)
			if got := d.has(t, names); got != test.have {
				t.Errorf("the driver has %q, want %q", got, test.have)
			}
			for id, v := range states {
				if v.Goal != slivers.NoGoal || v.Fault != "" {
					t.Errorf("%s is %s, %q, %q", id, v.Operational, v.Goal, v.Fault)
				}
			}
			events, err := b.Events(ctx, slice)
			if err != nil {
				t.Fatal(err)
			}
			told := ""
			for _, e := range events {
				told += e.Fault + "\n"
			}
			if strings.TrimSpace(told) != "" && test.event == "" || !strings.Contains(told, test.event) {
				t.Errorf("the events tell %q, want %q", told, test.event)
			}
		})
	}
}

// What is lost again and again fails, with the reason.
func TestLostTooOften(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "often")
	states := b.up(p, slice, twoNodes)
	for n := range maxRepairs + 1 {
		if err := b.driver.Stop(ctx, states["a"].URN); err != nil {
			t.Fatal(err)
		}
		if err := b.mending.run(ctx, false); err != nil {
			t.Fatal(err)
		}
		want := slivers.Ready
		if n == maxRepairs {
			want = slivers.Failed
		}
		if v := b.states(slice)["a"]; v.Operational != want || want == slivers.Failed && !strings.Contains(v.Fault, "4th time within 1h") {
			t.Errorf("lost %d times it is %s: %q", n+1, v.Operational, v.Fault)
		}
		b.clock.Advance(time.Minute)
	}
	// Another sliver, and this one long after, are brought back.
	if err := b.driver.Stop(ctx, states["b"].URN); err != nil {
		t.Fatal(err)
	}
	if err := b.mending.run(ctx, false); err != nil {
		t.Fatal(err)
	}
	if v := b.states(slice)["b"]; v.Operational != slivers.Ready {
		t.Errorf("another node is %s", v.Operational)
	}
	for range maxRepairs {
		b.clock.Advance(repairsWithin)
		if err := b.driver.Stop(ctx, states["b"].URN); err != nil {
			t.Fatal(err)
		}
		if err := b.mending.run(ctx, false); err != nil {
			t.Fatal(err)
		}
	}
	if v := b.states(slice)["b"]; v.Operational != slivers.Ready {
		t.Errorf("lost once an hour it is %s: %s", v.Operational, v.Fault)
	}
}

// slow is a driver whose nodes take until it is told.
type slow struct {
	*simulated.Driver
	until chan struct{}
}

func (d slow) Make(ctx context.Context, n drivers.Node) error {
	select {
	case <-d.until:
		return d.Driver.Make(ctx, n)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A driver that is slow holds up its own slivers only.
func TestSlowDriverHoldsUpNoOther(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	d := slow{b.driver, make(chan struct{})}
	b.Drivers["slow"] = d
	b.working.slots["slow"] = make(chan struct{}, atOnce)
	p, slow := b.principal("alice", "slow")
	q, quick := b.principal("alice", "quick")
	var list strings.Builder
	for i := range 2 * atOnce {
		list.WriteString(`<node client_id="n` + string(rune('a'+i)) + `"><sliver_type name="simulated"/></node>`)
	}
	// More slow operations than any driver may have under way.
	snapshot := *b.Inventory()
	snapshot.Hosts = slices.Clone(snapshot.Hosts)
	for i := range snapshot.Hosts {
		snapshot.Hosts[i].Capacity.Cores *= 16
		snapshot.Hosts[i].Capacity.Memory *= 16
	}
	inventoryOf(b, &snapshot)
	if _, err := b.Allocate(ctx, p, slow, []byte(header+list.String()+"</rspec>"), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	all, err := b.Store.OfSlice(ctx, slow)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Store.Update(ctx, urnsOf(all), func(held []*slivers.Sliver) error {
		for _, v := range held {
			v.Node.Driver = "slow"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Provision(ctx, p, Target{Slice: slow}, ProvisionOptions{Version: geni3}); err != nil {
		t.Fatal(err)
	}
	for id, v := range b.up(q, quick, twoNodes) {
		if v.Operational != slivers.Ready {
			t.Errorf("%s is %s beside a slow driver", id, v.Operational)
		}
	}
	close(d.until)
	for id, v := range b.states(slow) {
		if v.Operational != slivers.NotReady {
			t.Errorf("%s of the slow driver is %s in the end: %s", id, v.Operational, v.Fault)
		}
	}
}

// inventoryOf gives a bed another inventory.
func inventoryOf(b *bed, snapshot *inventory.Snapshot) {
	b.Inventory = func() *inventory.Snapshot { return snapshot }
}
