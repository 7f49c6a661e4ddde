// Package storetest is the conformance test of slivers.Store: every store
// passes it.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"croft/capacity"
	"croft/mapping"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// Subject is a store under test.
type Subject struct {
	Store slivers.Store
	// Reopen closes the store and opens what it kept anew.
	Reopen func(t *testing.T) slivers.Store
}

var (
	start = time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	slice = urn.MustParse("urn:publicid:IDN+Example.org+slice+exp1")
	other = urn.MustParse("urn:publicid:IDN+example.org+slice+exp2")
	host1 = urn.MustParse("urn:publicid:IDN+example.org+node+host1")
	host2 = urn.MustParse("urn:publicid:IDN+example.org+node+host2")
	big   = capacity.Amount{Cores: 2 * capacity.Core, Memory: 512, Disk: 1024}
)

func node(slice urn.URN, name string, host urn.URN) slivers.Sliver {
	return slivers.Sliver{
		URN:   urn.URN{Authority: "example.org", Type: urn.Sliver, Name: name},
		Slice: slice, Kind: slivers.Node, ClientID: request.ClientID(name),
		Allocation: slivers.Allocated, Operational: slivers.PendingAllocation,
		Created: start, Expires: start.Add(time.Hour),
		Node: &slivers.NodeFacts{Host: host, Driver: "namespace", Capacity: big,
			Interfaces: []slivers.Interface{{ID: "if0", Device: "eth1", MAC: slivers.MAC{2, 0, 0, 0, 0, 1}}}},
	}
}

func reserve(t *testing.T, s slivers.Store, slice urn.URN, list ...slivers.Sliver) []slivers.Sliver {
	t.Helper()
	err := s.Reserve(context.Background(), slivers.Reservation{
		Slice: slice, Slivers: list, Mapped: s.Occupancy().Version,
		Document: slivers.Document{Slice: slice, MediaType: "text/plain", Bytes: []byte("please"), Inputs: map[string]any{"size": 3}, Received: start},
	})
	if err != nil {
		t.Fatalf("Reserve: %v", err)
	}
	return list
}

func urns(list ...slivers.Sliver) []urn.URN {
	var out []urn.URN
	for _, v := range list {
		out = append(out, v.URN)
	}
	return out
}

// Run runs the test. make gives an empty store for each part of it.
func Run(t *testing.T, make func(t *testing.T) Subject) {
	ctx := context.Background()

	t.Run("reserved slivers survive reopening", func(t *testing.T) {
		subject := make(t)
		reserve(t, subject.Store, slice, node(slice, "a", host1), node(slice, "b", host2))
		reserve(t, subject.Store, slice, node(slice, "c", host1))
		s := subject.Reopen(t)
		got, err := s.OfSlice(ctx, slice)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 {
			t.Fatalf("%d slivers, want 3", len(got))
		}
		for i, want := range []struct {
			id       request.ClientID
			document slivers.DocumentID
		}{{"a", 1}, {"b", 1}, {"c", 2}} {
			if got[i].ClientID != want.id || got[i].Document != want.document {
				t.Errorf("sliver %d is %s of document %d, want %s of %d", i, got[i].ClientID, got[i].Document, want.id, want.document)
			}
		}
		if a := got[0]; !a.Expires.Equal(start.Add(time.Hour)) || a.Node.Interfaces[0].MAC.String() != "02:00:00:00:00:01" {
			t.Errorf("sliver a came back changed: %+v", a)
		}
		documents, err := s.Documents(ctx, slice)
		if err != nil || len(documents) != 2 || string(documents[0].Bytes) != "please" || fmt.Sprint(documents[0].Inputs["size"]) != "3" {
			t.Errorf("documents: %v, %v", documents, err)
		}
		use := s.Occupancy().Hosts[host1.Canonical()]
		if use.Slivers != 2 || use.Amount != big.Plus(big) || len(use.Slices) != 1 || use.Slices[0] != slice.Canonical() {
			t.Errorf("use of host1 after reopening: %+v", use)
		}
	})

	t.Run("slices are found whatever the case of their authority", func(t *testing.T) {
		s := make(t).Store
		reserve(t, s, slice, node(slice, "a", host1))
		got, err := s.OfSlice(ctx, urn.MustParse("urn:publicid:IDN+example.ORG+slice+exp1"))
		if err != nil || len(got) != 1 {
			t.Errorf("%d slivers, error %v; want one", len(got), err)
		}
	})

	t.Run("a host that changed is a conflict, another is not", func(t *testing.T) {
		s := make(t).Store
		mapped := s.Occupancy().Version
		reserve(t, s, slice, node(slice, "a", host1))
		again := slivers.Reservation{Slice: other, Mapped: mapped, Slivers: []slivers.Sliver{node(other, "b", host1)},
			Document: slivers.Document{Slice: other, MediaType: "text/plain", Received: start}}
		if err := s.Reserve(ctx, again); !errors.Is(err, slivers.ErrConflict) {
			t.Errorf("reserving on a changed host: %v, want ErrConflict", err)
		}
		if _, err := s.Slice(ctx, other); !errors.Is(err, slivers.ErrNotFound) {
			t.Errorf("a refused reservation left its slice: %v", err)
		}
		again.Slivers = []slivers.Sliver{node(other, "b", host2)}
		if err := s.Reserve(ctx, again); err != nil {
			t.Errorf("reserving on an unchanged host: %v", err)
		}
	})

	t.Run("a link gets further ends, unless it has ended", func(t *testing.T) {
		subject := make(t)
		s := subject.Store
		link := slivers.Sliver{URN: urn.URN{Authority: "example.org", Type: urn.Sliver, Name: "l"}, Slice: slice, Kind: slivers.Link, ClientID: "l",
			Allocation: slivers.Allocated, Expires: start.Add(time.Hour), Link: &slivers.LinkFacts{Ends: []slivers.End{{Node: "a", Interface: "a:0"}}}}
		reserve(t, s, slice, node(slice, "a", host1), link)
		more := slivers.Reservation{Slice: slice, Mapped: s.Occupancy().Version, Slivers: []slivers.Sliver{node(slice, "b", host1)},
			Document:   slivers.Document{Slice: slice, MediaType: "text/plain", Received: start},
			Extensions: []slivers.Extension{{Link: link.URN, Ends: []slivers.End{{Node: "b", Interface: "b:0", Later: true}}}}}
		if err := s.Reserve(ctx, more); err != nil {
			t.Fatal(err)
		}
		got, err := s.Find(ctx, []urn.URN{link.URN})
		if err != nil || len(got) != 1 || len(got[0].Link.Ends) != 2 || !got[0].Link.Grown || !got[0].Link.Ends[1].Later {
			t.Errorf("the link is %+v, %v", got, err)
		}
		err = s.Update(ctx, []urn.URN{link.URN}, func(held []*slivers.Sliver) error {
			held[0].Goal = slivers.Forgotten
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		more.Slivers, more.Mapped = []slivers.Sliver{node(slice, "c", host1)}, s.Occupancy().Version
		if err := s.Reserve(ctx, more); !errors.Is(err, slivers.ErrConflict) {
			t.Errorf("adding ends to a link that has ended: %v, want ErrConflict", err)
		}
		if all, _ := s.All(ctx); len(all) != 2 {
			t.Errorf("%d slivers after a failed reservation, want 2", len(all))
		}
	})

	t.Run("wires and tags that changed are a conflict, with room they are not", func(t *testing.T) {
		s := make(t).Store
		wire := urn.MustParse("urn:publicid:IDN+example.org+link+cable1")
		link := func(name string, tag int, c mapping.Carrier) slivers.Sliver {
			c.Wire = wire
			return slivers.Sliver{
				URN: urn.URN{Authority: "example.org", Type: urn.Sliver, Name: name}, Slice: slice, Kind: slivers.Link, ClientID: request.ClientID(name),
				Allocation: slivers.Allocated, Operational: slivers.PendingAllocation, Created: start, Expires: start.Add(time.Hour),
				Link: &slivers.LinkFacts{Driver: "namespace", VLAN: tag, Route: []mapping.Carrier{c}},
			}
		}
		mapped := s.Occupancy().Version
		reserveAt := func(v slivers.Sliver) error {
			return s.Reserve(ctx, slivers.Reservation{Slice: slice, Mapped: mapped, Slivers: []slivers.Sliver{v},
				Document: slivers.Document{Slice: slice, MediaType: "text/plain", Received: start}})
		}
		if err := reserveAt(link("l1", 100, mapping.Carrier{Bandwidth: 600, Of: 1000})); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			link slivers.Sliver
			ok   bool
		}{
			{"the same tag", link("l2", 100, mapping.Carrier{Of: 1000}), false},
			{"more than is left of the wire", link("l3", 101, mapping.Carrier{Bandwidth: 500, Of: 1000}), false},
			{"the wire for itself", link("l4", 101, mapping.Carrier{Exclusive: true}), false},
			{"what is left of the wire", link("l5", 101, mapping.Carrier{Bandwidth: 400, Of: 1000}), true},
		} {
			if err := reserveAt(c.link); errors.Is(err, slivers.ErrConflict) == c.ok || c.ok && err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		o := s.Occupancy()
		if u := o.Wires[wire.Canonical()]; u.Bandwidth != 1000 || u.Links != 2 || u.Exclusive || o.VLANs[100] != 1 || o.VLANs[101] != 1 {
			t.Errorf("taken: %+v, tags %v", u, o.VLANs)
		}
	})

	t.Run("identifiers of links between machines are given once, until they are given back", func(t *testing.T) { testIdentifiers(t, make(t)) })

	t.Run("a sliver name is taken once", func(t *testing.T) {
		s := make(t).Store
		reserve(t, s, slice, node(slice, "a", host1))
		err := s.Reserve(ctx, slivers.Reservation{Slice: other, Mapped: s.Occupancy().Version,
			Slivers:  []slivers.Sliver{node(other, "b", host2), node(other, "a", host2)},
			Document: slivers.Document{Slice: other, MediaType: "text/plain", Received: start}})
		if err == nil {
			t.Fatal("a second sliver of the same URN was taken")
		}
		if all, _ := s.All(ctx); len(all) != 1 {
			t.Errorf("%d slivers after a failed reservation, want 1", len(all))
		}
		if use := s.Occupancy().Hosts[host2.Canonical()]; use.Slivers != 0 {
			t.Errorf("a failed reservation occupies host2: %+v", use)
		}
	})

	t.Run("an update is all or nothing", func(t *testing.T) {
		s := make(t).Store
		list := reserve(t, s, slice, node(slice, "a", host1), node(slice, "b", host1))
		broken := errors.New("broken")
		err := s.Update(ctx, urns(list...), func(held []*slivers.Sliver) error {
			held[0].Allocation = slivers.Provisioned
			held[1].Goal = slivers.Forgotten
			return broken
		})
		if !errors.Is(err, broken) {
			t.Fatalf("Update: %v, want the error of the change", err)
		}
		got, _ := s.OfSlice(ctx, slice)
		if len(got) != 2 || got[0].Allocation != slivers.Allocated {
			t.Errorf("a failed update left %+v", got)
		}
		err = s.Update(ctx, append(urns(list...), other), func(held []*slivers.Sliver) error {
			if len(held) != 2 {
				return fmt.Errorf("got %d slivers, want the 2 that exist", len(held))
			}
			held[0].Allocation = slivers.Provisioned
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Find(ctx, urns(list[0])); len(got) != 1 || got[0].Allocation != slivers.Provisioned {
			t.Errorf("after the update: %+v", got)
		}
	})

	t.Run("with the last sliver go document and slice", func(t *testing.T) {
		s := make(t).Store
		list := reserve(t, s, slice, node(slice, "a", host1), node(slice, "b", host1))
		forget := func(list ...slivers.Sliver) {
			t.Helper()
			err := s.Update(ctx, urns(list...), func(held []*slivers.Sliver) error {
				for _, v := range held {
					v.Goal = slivers.Forgotten
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		forget(list[0])
		if d, err := s.Documents(ctx, slice); err != nil || len(d) != 1 {
			t.Errorf("%d documents while a sliver is left, error %v", len(d), err)
		}
		if use := s.Occupancy().Hosts[host1.Canonical()]; use.Slivers != 1 || use.Amount != big {
			t.Errorf("use of host1 after one of two went: %+v", use)
		}
		forget(list[1])
		if d, err := s.Documents(ctx, slice); err != nil || len(d) != 0 {
			t.Errorf("%d documents after the last sliver, error %v", len(d), err)
		}
		if _, err := s.Slice(ctx, slice); !errors.Is(err, slivers.ErrNotFound) {
			t.Errorf("Slice after the last sliver: %v", err)
		}
		if hosts := s.Occupancy().Hosts; len(hosts) != 0 {
			t.Errorf("occupancy after the last sliver: %+v", hosts)
		}
		events, err := s.Events(ctx, slice)
		if err != nil || len(events) != 4 || events[3].Goal != slivers.Forgotten {
			t.Errorf("events: %+v, %v", events, err)
		}
	})

	t.Run("a slice stays shut down without slivers", func(t *testing.T) {
		subject := make(t)
		list := reserve(t, subject.Store, slice, node(slice, "a", host1))
		if err := subject.Store.SetShutdown(ctx, slice, true, start); err != nil {
			t.Fatal(err)
		}
		err := subject.Store.Update(ctx, urns(list...), func(held []*slivers.Sliver) error {
			held[0].Goal = slivers.Forgotten
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := subject.Reopen(t).Slice(ctx, slice); err != nil || !got.Shutdown {
			t.Errorf("Slice: %+v, %v", got, err)
		}
	})

	t.Run("of many at once for one host, those that fit the rule win", func(t *testing.T) {
		s := make(t).Store
		// Each caller takes the host only if nobody has it, as a mapper would.
		const callers = 16
		var won sync.Map
		var group sync.WaitGroup
		for i := range callers {
			group.Add(1)
			go func() {
				defer group.Done()
				for {
					o := s.Occupancy()
					if o.Hosts[host1.Canonical()].Slivers > 0 {
						return
					}
					name := fmt.Sprintf("n%d", i)
					err := s.Reserve(ctx, slivers.Reservation{Slice: slice, Mapped: o.Version,
						Slivers:  []slivers.Sliver{node(slice, name, host1)},
						Document: slivers.Document{Slice: slice, MediaType: "text/plain", Received: start}})
					switch {
					case err == nil:
						won.Store(name, true)
						return
					case !errors.Is(err, slivers.ErrConflict):
						t.Errorf("Reserve: %v", err)
						return
					}
				}
			}()
		}
		group.Wait()
		winners := 0
		won.Range(func(any, any) bool { winners++; return true })
		if winners != 1 {
			t.Errorf("%d callers got the host, want 1", winners)
		}
	})

	t.Run("slices of a member", func(t *testing.T) {
		subject := make(t)
		s := subject.Store
		alice, bob := urn.MustParse("urn:publicid:IDN+Example.org+user+alice"), urn.MustParse("urn:publicid:IDN+example.org+user+Alice")
		of := func(slice, owner urn.URN, name string) {
			v := node(slice, name, host1)
			v.Node.Owner = owner
			reserve(t, s, slice, v)
		}
		own := urn.MustParse("urn:publicid:IDN+example.org:IM:u-alice+slice+x")
		of(slice, alice, "a")
		of(other, bob, "b")
		of(own, urn.URN{}, "c")
		of(urn.MustParse("urn:publicid:IDN+example.org:im:u-alice2+slice+x"), bob, "d")
		s = subject.Reopen(t)
		for _, c := range []struct {
			name        string
			member      urn.URN
			authorities []urn.Authority
			want        []urn.URN
		}{
			{"by owner", urn.MustParse("urn:publicid:IDN+example.ORG+user+alice"), nil, []urn.URN{slice}},
			{"by authority, too", alice, []urn.Authority{"example.org:im:u-alice", "example.org:zoe:u-alice"}, []urn.URN{slice, own}},
			{"nobody's", urn.MustParse("urn:publicid:IDN+example.org+user+carol"), []urn.Authority{"example.org:im:u-carol"}, nil},
		} {
			got, err := s.SlicesOf(ctx, c.member, c.authorities)
			same := err == nil && len(got) == len(c.want)
			for _, w := range c.want {
				same = same && slices.ContainsFunc(got, func(v slivers.Slice) bool { return v.URN.Equal(w) })
			}
			if !same {
				t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
			}
		}
	})

	t.Run("updates at once are each all or nothing", func(t *testing.T) { testUpdatesAtOnce(t, make(t).Store) })
	t.Run("drains", func(t *testing.T) { testDrains(t, make(t)) })
	t.Run("steps", func(t *testing.T) { testSteps(t, make) })

	t.Run("many slivers in one call", func(t *testing.T) {
		s := make(t).Store
		var list []slivers.Sliver
		for i := range 1200 {
			list = append(list, node(slice, fmt.Sprintf("n%d", i), host1))
		}
		reserve(t, s, slice, list...)
		got, err := s.Find(ctx, urns(list...))
		if err != nil || len(got) != len(list) || got[1199].ClientID != "n1199" {
			t.Errorf("found %d of %d, error %v", len(got), len(list), err)
		}
	})
}
