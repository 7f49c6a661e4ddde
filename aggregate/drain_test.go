package aggregate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/drivers"
	"croft/drivers/simulated"
	"croft/inventory"
	"croft/slivers"
	"croft/urn"
)

func TestDrainedHostsTakeNoNodes(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "drains")
	host := func(name string) urn.URN { return urn.MustParse("urn:publicid:IDN+example.org+node+" + name) }
	available := func() int {
		t.Helper()
		ad, err := b.Advertise(ctx, p, AdvertiseOptions{Version: geni3})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(ad.Bytes()), `<available now="true"`)
	}
	states := b.up(p, slice, exclusiveNodes("a"))
	first, second := "host1", "host2"
	if states["a"].Node.HostName == second {
		first, second = second, first
	}
	if n := available(); n != 1 {
		t.Fatalf("%d hosts available beside one that is taken", n)
	}
	if err := b.Drain(ctx, host(first), "new disks"); err != nil {
		t.Fatal(err)
	}
	if v := b.states(slice)["a"]; v.Operational != slivers.Ready {
		t.Errorf("the node there is %s", v.Operational)
	}
	if err := b.Drain(ctx, host(second), ""); err != nil {
		t.Fatal(err)
	}
	if n := available(); n != 0 {
		t.Errorf("%d hosts available, both are drained", n)
	}
	_, err := b.Allocate(ctx, p, slice, []byte(exclusiveNodes("b")), AllocateOptions{})
	if err == nil || !strings.Contains(err.Error(), "out of service") {
		t.Errorf("a node where every host is drained: %v", err)
	}
	wantHosts := func(want ...HostSummary) {
		t.Helper()
		list, err := b.Hosts(ctx)
		if err != nil || len(list) != len(want) {
			t.Fatalf("hosts: %+v, %v", list, err)
		}
		for i, w := range want {
			if h := list[i]; h.Name != w.Name || h.State != w.State || h.Why != w.Why || len(h.Slivers) != len(w.Slivers) || h.Taken.Cores != w.Taken.Cores {
				t.Errorf("host %d: %+v, want %+v", i, h, w)
			}
		}
	}
	on := make([]slivers.Sliver, 1)
	full := b.Store.Occupancy().Hosts[host(first).Canonical()].Amount
	a := HostSummary{Name: first, State: HostDrained, Why: "new disks", Slivers: on, Taken: full}
	free := HostSummary{Name: second, State: HostDrained}
	if first == "host1" {
		wantHosts(a, free)
	} else {
		wantHosts(free, a)
	}

	// Also after a restart.
	b.Close()
	b.start()
	if n := available(); n != 0 {
		t.Errorf("%d hosts available after a restart", n)
	}
	if err := b.Undrain(ctx, host(second)); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "undraining again", b.Undrain(ctx, host(second)), NotFound)
	wantKind(t, "draining what is not there", b.Drain(ctx, host("host9"), ""), NotFound)
	wantKind(t, "draining for a long reason", b.Drain(ctx, host(second), strings.Repeat("x", 2000)), BadArgs)
	if n := available(); n != 1 {
		t.Errorf("%d hosts available, one is not drained any more", n)
	}
	if _, err := b.Allocate(ctx, p, slice, []byte(exclusiveNodes("b")), AllocateOptions{}); err != nil {
		t.Errorf("the host is not drained any more: %v", err)
	}

	// A host that goes from the inventory under what is on it.
	snapshot, err := inventory.Parse([]byte(strings.ReplaceAll(testInventory, "name: "+first, "name: other")), "inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	inventoryOf(b, snapshot)
	list, err := b.Hosts(ctx)
	if err != nil || len(list) != 3 || list[2].Name != first || list[2].State != HostMissing || len(list[2].Slivers) != 1 {
		t.Errorf("hosts: %+v, %v", list, err)
	}
	if err := b.Undrain(ctx, host(first)); err != nil {
		t.Errorf("undraining what has gone: %v", err)
	}
}

// stuck is a driver that cannot remove anything.
type stuck struct{ *simulated.Driver }

func (stuck) Remove(context.Context, urn.URN) error { return errors.New("no route to pc1") }

func TestFreeByForce(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	b.Drivers["simulated"] = stuck{b.driver}
	p, slice := b.principal("alice", "stuck")
	states := b.up(p, slice, twoNodes)
	if _, err := b.Free(ctx, states["l"].URN, false); err != nil {
		t.Fatal(err)
	}
	<-b.working.idle(slice)
	if left, err := b.Store.OfSlice(ctx, slice); err != nil || len(left) != 3 {
		t.Fatalf("what cannot be removed is not there any more: %d, %v", len(left), err)
	}
	_, err := b.Free(ctx, states["l"].URN, false)
	wantKind(t, "freeing what is being removed", err, NotFound)
	freed, err := b.Free(ctx, states["l"].URN, true)
	if err != nil || len(freed) != 1 || !freed[0].URN.Equal(states["l"].URN) || !strings.Contains(freed[0].Left, `driver "simulated" may still have it: no route to pc1`) {
		t.Errorf("freed %+v, %v", freed, err)
	}
	freed, err = b.Free(ctx, slice, true)
	if err != nil || len(freed) != 2 || !strings.Contains(freed[0].Left, "on host") {
		t.Errorf("freed %+v, %v", freed, err)
	}
	if use := b.Store.Occupancy().Hosts; len(use) != 0 {
		t.Errorf("still taken: %+v", use)
	}
	_, err = b.Free(ctx, slice, true)
	wantKind(t, "freeing again", err, NotFound)

	// The driver comes back, and has it still.
	list, silent, err := b.Compare(ctx)
	if err != nil || len(silent) != 0 || len(list) != 3 || list[0].What != "unknown to the store" {
		t.Errorf("compared: %+v, %v, %v", list, silent, err)
	}
	b.Drivers["simulated"] = surroundings.Reachable{Driver: b.driver}
	if err := b.mending.run(ctx, false); err != nil {
		t.Fatal(err)
	}
	if list, err := b.driver.List(ctx); err != nil || len(list) != 0 {
		t.Errorf("left on the machines: %+v, %v", list, err)
	}
}

// By force, what can be removed is removed.
func TestFreeByForceRemoves(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "forced")
	b.up(p, slice, twoNodes)
	freed, err := b.Free(ctx, slice, true)
	if err != nil || len(freed) != 3 {
		t.Fatalf("freed %+v, %v", freed, err)
	}
	for _, f := range freed {
		if f.Left != "" {
			t.Errorf("%s left: %s", f.ClientID, f.Left)
		}
	}
	if list, err := b.driver.List(ctx); err != nil || len(list) != 0 {
		t.Errorf("left on the machines: %+v, %v", list, err)
	}
}

func TestCompare(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	d := &flawed{Driver: b.driver}
	b.Drivers["simulated"] = d
	p, slice := b.principal("alice", "compared")
	states := b.up(p, slice, twoNodes)
	want := func(what map[string]string) {
		t.Helper()
		list, _, err := b.Compare(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			if v.What != what[string(v.ClientID)] {
				t.Errorf("%q (%s): %q, want %q", v.ClientID, v.Sliver, v.What, what[string(v.ClientID)])
			}
			delete(what, string(v.ClientID))
		}
		for id, w := range what {
			if w != "" {
				t.Errorf("%q is not told to be %s", id, w)
			}
		}
	}
	want(map[string]string{})
	if err := errors.Join(b.driver.Stop(ctx, states["a"].URN), b.driver.Remove(ctx, states["l"].URN),
		b.driver.Make(ctx, drivers.Node{Sliver: urn.MustParse("urn:publicid:IDN+example.org+sliver+leak")})); err != nil {
		t.Fatal(err)
	}
	d.half = map[urn.URN]bool{states["b"].URN.Canonical(): true}
	want(map[string]string{"a": "does not run", "b": "half-made", "l": "missing", "": "unknown to the store"})
	d.err = errors.New("no route")
	const unknown = "unknown: the driver does not answer"
	want(map[string]string{"a": unknown, "b": unknown, "l": unknown})
	if _, silent, err := b.Compare(ctx); err != nil || len(silent) != 1 || silent[0] != "simulated" {
		t.Errorf("silent: %v, %v", silent, err)
	}
}
