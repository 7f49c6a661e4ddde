package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"croft/slivers"
)

// testDrains checks that what the operator says of hosts is kept.
func testDrains(t *testing.T, subject Subject) {
	ctx := context.Background()
	s := subject.Store
	if list, err := s.Drains(ctx); err != nil || len(list) != 0 {
		t.Errorf("of a new store: %+v, %v", list, err)
	}
	first := slivers.Drain{Host: host1, Reason: "new disks", Since: start}
	again := slivers.Drain{Host: host1.Canonical(), Reason: "new disks, and a fan", Since: start.Add(time.Hour)}
	for _, d := range []slivers.Drain{first, again} {
		if err := s.Drain(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	s = subject.Reopen(t)
	list, err := s.Drains(ctx)
	if err != nil || len(list) != 1 || !list[0].Host.Equal(host1) || list[0].Reason != again.Reason || !list[0].Since.Equal(start) {
		t.Errorf("Drains: %+v, %v; want that since the first time, for the last reason", list, err)
	}
	if err := s.Undrain(ctx, host1); err != nil {
		t.Error(err)
	}
	if list, err := s.Drains(ctx); err != nil || len(list) != 0 {
		t.Errorf("in the end: %+v, %v", list, err)
	}
	if err := s.Undrain(ctx, host1); !errors.Is(err, slivers.ErrNotFound) {
		t.Errorf("Undrain of a host that is not drained: %v, want ErrNotFound", err)
	}
}
