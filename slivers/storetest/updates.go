package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"croft/slivers"
	"croft/urn"
)

// testUpdatesAtOnce has many change slivers at the same time, of whom some fail
// and some have given up: each one's change is there as a whole, or not at all.
func testUpdatesAtOnce(t *testing.T, s slivers.Store) {
	const callers = 24
	ctx := context.Background()
	slice := urn.URN{Authority: "a.example.org", Type: urn.Slice, Name: "crowd"}
	host := urn.URN{Authority: "a.example.org", Type: urn.Node, Name: "host1"}
	var nodes []slivers.Sliver
	for i := range callers {
		nodes = append(nodes, node(slice, fmt.Sprintf("n%d", i), host))
	}
	list := reserve(t, s, slice, append(nodes, node(slice, "shared", host))...)
	shared := list[callers]
	gone, giveUp := context.WithCancel(ctx)
	giveUp()
	broken := errors.New("broken")
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			ctx := ctx
			if i%3 == 2 {
				ctx = gone
			}
			errs[i] = s.Update(ctx, urns(shared, list[i]), func(held []*slivers.Sliver) error {
				held[0].Fault += "x"
				if i%2 == 0 {
					held[1].Fault = "changed"
				} else {
					held[1].Goal = slivers.Forgotten
				}
				if i%3 == 1 {
					return broken
				}
				return nil
			})
		})
	}
	all.Wait()
	well := 0
	for i, err := range errs {
		got, findErr := s.Find(ctx, urns(list[i]))
		if findErr != nil {
			t.Fatal(findErr)
		}
		changed := len(got) == 0 || got[0].Fault == "changed"
		want := []error{nil, broken, context.Canceled}[i%3]
		if !errors.Is(err, want) || changed != (want == nil) {
			t.Errorf("caller %d: %v, want %v; changed: %v", i, err, want, changed)
		}
		if err == nil {
			well++
		}
	}
	got, err := s.Find(ctx, urns(shared))
	if err != nil || len(got) != 1 || len(got[0].Fault) != well {
		t.Errorf("%d callers changed what all changed, want %d: %+v, %v", len(got[0].Fault), well, got, err)
	}
	if use := s.Occupancy().Hosts[host.Canonical()]; use.Slivers != callers+1-well/2 {
		t.Errorf("%d slivers occupy the host, want %d", use.Slivers, callers+1-well/2)
	}
}
