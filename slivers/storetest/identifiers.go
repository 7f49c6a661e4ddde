package storetest

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// testIdentifiers gives VXLAN network identifiers to links, and takes them back.
func testIdentifiers(t *testing.T, subject Subject) {
	ctx := context.Background()
	s := subject.Store
	link := func(slice urn.URN, name string, vni int) slivers.Sliver {
		return slivers.Sliver{
			URN: urn.URN{Authority: "example.org", Type: urn.Sliver, Name: name}, Slice: slice, Kind: slivers.Link, ClientID: request.ClientID(name),
			Allocation: slivers.Allocated, Operational: slivers.PendingAllocation, Created: start, Expires: start.Add(time.Hour),
			Link: &slivers.LinkFacts{Driver: "docker", VNI: vni},
		}
	}
	reserveAt := func(version int64, v slivers.Sliver) error {
		return s.Reserve(ctx, slivers.Reservation{Slice: v.Slice, Mapped: version, Slivers: []slivers.Sliver{v},
			Document: slivers.Document{Slice: v.Slice, MediaType: "text/plain", Received: start}})
	}
	taken := func(when string, want map[int]int) {
		t.Helper()
		got := maps.Clone(s.Occupancy().VNIs)
		maps.DeleteFunc(got, func(_, links int) bool { return links == 0 })
		if !maps.Equal(got, want) {
			t.Errorf("%s, identifiers %v are taken, want %v", when, got, want)
		}
	}
	empty := s.Occupancy().Version
	first := link(slice, "l1", 5001)
	reserve(t, s, slice, first, link(slice, "l2", 5002), link(slice, "plain", 0))
	taken("at first", map[int]int{5001: 1, 5002: 1})

	// Two who mapped on the same state meet; of links without an identifier
	// nobody is in the way.
	if err := reserveAt(empty, link(other, "o1", 5001)); !errors.Is(err, slivers.ErrConflict) {
		t.Errorf("an identifier for a second link: %v, want ErrConflict", err)
	}
	for name, vni := range map[string]int{"o2": 5003, "o3": 0} {
		if err := reserveAt(empty, link(other, name, vni)); err != nil {
			t.Errorf("link %s with identifier %d: %v", name, vni, err)
		}
	}
	taken("after the second slice", map[int]int{5001: 1, 5002: 1, 5003: 1})

	s = subject.Reopen(t)
	taken("after reopening", map[int]int{5001: 1, 5002: 1, 5003: 1})
	err := s.Update(ctx, urns(first), func(held []*slivers.Sliver) error {
		if vni := held[0].Link.VNI; vni != 5001 {
			t.Errorf("the link came back with identifier %d", vni)
		}
		held[0].Goal = slivers.Forgotten
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	taken("after the end of a link", map[int]int{5002: 1, 5003: 1})
	if err := reserveAt(s.Occupancy().Version, link(other, "o4", 5001)); err != nil {
		t.Errorf("an identifier that was given back: %v", err)
	}

	// A link that waits for its driver to take it away has its identifier.
	err = s.Update(ctx, []urn.URN{link(slice, "l2", 0).URN}, func(held []*slivers.Sliver) error {
		held[0].Goal = slivers.Release
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	taken("while a link is taken away", map[int]int{5001: 1, 5002: 1, 5003: 1})
}
