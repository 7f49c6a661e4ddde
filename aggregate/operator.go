package aggregate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// What follows is for the operator of the aggregate, who needs no credential:
// no call of the AM API leads here.

// SliceSummary is a slice and what it has here.
type SliceSummary struct {
	slivers.Slice
	Slivers int       // that it has
	Leaving int       // given back, but not off the machines yet
	Expires time.Time // the first of them; zero if it has none
}

// Slices lists the slices that are known here, the oldest first.
func (s *Service) Slices(ctx context.Context) ([]SliceSummary, error) {
	known, err := s.Store.Slices(ctx)
	if err != nil {
		return nil, fail("list slices", nil, err)
	}
	all, err := s.Store.All(ctx)
	if err != nil {
		return nil, fail("list slices", nil, err)
	}
	of := make(map[urn.URN]*SliceSummary, len(known))
	list := make([]SliceSummary, len(known))
	for i, k := range known {
		list[i].Slice = k
		of[k.URN.Canonical()] = &list[i]
	}
	for _, v := range all {
		sum := of[v.Slice.Canonical()]
		switch {
		case sum == nil:
		case v.Allocation == slivers.Unallocated:
			sum.Leaving++
		default:
			sum.Slivers++
			if sum.Expires.IsZero() || v.Expires.Before(sum.Expires) {
				sum.Expires = v.Expires
			}
		}
	}
	return list, nil
}

// Slivers lists all that is on the machines or reserved, also what is being
// removed: of a slice, or with the zero URN of all.
func (s *Service) Slivers(ctx context.Context, slice urn.URN) ([]slivers.Sliver, error) {
	if slice.IsZero() {
		all, err := s.Store.All(ctx)
		if err != nil {
			return nil, fail("list slivers", nil, err)
		}
		return all, nil
	}
	if err := s.known(ctx, slice); err != nil {
		return nil, fail("list slivers", slice, err)
	}
	list, err := s.Store.OfSlice(ctx, slice)
	if err != nil {
		return nil, fail("list slivers", slice, err)
	}
	return list, nil
}

// Events tells what happened to the slivers of a slice, the oldest first. It
// still does for some time when a slice has nothing here any more.
func (s *Service) Events(ctx context.Context, slice urn.URN) ([]slivers.Event, error) {
	list, err := s.Store.Events(ctx, slice)
	if err == nil && len(list) == 0 {
		err = s.known(ctx, slice)
	}
	if err != nil {
		return nil, fail("events", slice, err)
	}
	return list, nil
}

func (s *Service) known(ctx context.Context, slice urn.URN) error {
	_, err := s.Store.Slice(ctx, slice)
	if errors.Is(err, slivers.ErrNotFound) {
		return refuse(NotFound, "the slice is not known here")
	}
	return err
}

// Halt is Shutdown by the operator. Also a slice that has nothing here can be
// shut down, before it has.
func (s *Service) Halt(ctx context.Context, slice urn.URN) error {
	if slice.Type.Canonical() != urn.Slice {
		return fail("shutdown", slice, refuse(BadArgs, "not the URN of a slice"))
	}
	unlock, err := s.lock(ctx, slice)
	if err != nil {
		return fail("shutdown", slice, err)
	}
	defer unlock()
	if err := s.halt(ctx, slice); err != nil {
		return fail("shutdown", slice, err)
	}
	return nil
}

// Freed is a sliver that the operator has given back.
type Freed struct {
	slivers.Sliver
	Left string // what is, or may be, still there of it; "" for nothing
}

// Free is Delete by the operator: of a whole slice or of a sliver, also where
// the slice is shut down. It returns what it has given back. With force it
// also forgets what its driver cannot remove now, so that the host is free
// again, and tells what that leaves behind.
func (s *Service) Free(ctx context.Context, name urn.URN, force bool) ([]Freed, error) {
	freed, err := s.free(ctx, name, force)
	if err != nil {
		return nil, fail("delete", name, err)
	}
	return freed, nil
}

func (s *Service) free(ctx context.Context, name urn.URN, force bool) ([]Freed, error) {
	t, err := s.Resolve(ctx, []urn.URN{name})
	if err != nil && force && name.Type.Canonical() == urn.Sliver {
		// It may have been given back long ago and not be gone yet.
		if found, findErr := s.Store.Find(ctx, []urn.URN{name}); findErr == nil && len(found) == 1 {
			t, err = Target{Slice: found[0].Slice, Slivers: []urn.URN{name}}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx, t.Slice)
	if err != nil {
		return nil, err
	}
	defer unlock()
	_, picked, _, err := s.pick(ctx, t, force)
	if err != nil {
		return nil, err
	}
	if len(picked) > 0 {
		if err := s.release(ctx, t.Slice, picked); err != nil {
			return nil, err
		}
	}
	freed := make([]Freed, len(picked))
	for i, v := range picked {
		v.Allocation = slivers.Unallocated
		freed[i].Sliver = v
	}
	if force {
		if freed, err = s.abandon(ctx, t, freed); err != nil {
			return nil, err
		}
	}
	if len(freed) == 0 {
		return nil, refuse(NotFound, "the slice has no slivers here")
	}
	return freed, nil
}

// abandonTime is how long drivers have to remove what is given up otherwise.
const abandonTime = 20 * time.Second

// abandon drops from the store what the slice's worker cannot remove, and adds
// to the list what that leaves.
func (s *Service) abandon(ctx context.Context, t Target, freed []Freed) ([]Freed, error) {
	s.working.kick(t.Slice)
	select {
	case <-s.working.idle(t.Slice):
	case <-time.After(abandonTime):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	all, err := s.Store.OfSlice(ctx, t.Slice)
	if err != nil {
		return nil, err
	}
	var left []slivers.Sliver
	for _, v := range all {
		if v.Goal == slivers.Release && (t.Whole() || v.URN.Equal(t.Slivers[0])) {
			left = append(left, v)
		}
	}
	if len(left) == 0 {
		return freed, nil
	}
	if err := s.forget(ctx, left); err != nil {
		return nil, err
	}
	for _, v := range left {
		what := fmt.Sprintf("driver %q may still have it", driverName(&v))
		if v.Node != nil {
			what += " on " + v.Node.HostName
		}
		if v.Fault != "" {
			what += ": " + v.Fault
		}
		what += " (it is removed when the driver lists it again)"
		s.Log.Warn("forgot a sliver that could not be removed", "sliver", v.URN.String(), "slice", v.Slice.String(), "left", what)
		if i := slices.IndexFunc(freed, func(f Freed) bool { return f.URN.Equal(v.URN) }); i >= 0 {
			freed[i].Left = what
		} else {
			freed = append(freed, Freed{v, what})
		}
	}
	return freed, nil
}

// Difference is something on a machine, or that should be there, and how the
// two differ.
type Difference struct {
	Driver   string
	Sliver   urn.URN
	Slice    urn.URN          // zero if the store does not know it
	ClientID request.ClientID // "" if the store does not know it
	Kind     slivers.Kind
	There    bool   // on a machine
	Running  bool   // a node
	What     string // "" if all is as it should be, or on its way there
}

// Compare compares what drivers have with the store, for the operator, and
// changes nothing. Silent are the drivers that do not answer.
func (s *Service) Compare(ctx context.Context) (list []Difference, silent []string, err error) {
	now := s.machinesNow(ctx)
	all, err := s.Store.All(ctx)
	if err != nil {
		return nil, nil, fail("compare", nil, err)
	}
	for _, v := range all {
		t, there := now.things[v.URN.Canonical()]
		delete(now.things, v.URN.Canonical())
		if v.Allocation == slivers.Allocated && !there {
			continue
		}
		d := Difference{Driver: driverName(&v), Sliver: v.URN, Slice: v.Slice, ClientID: v.ClientID, Kind: v.Kind, There: there, Running: t.Running}
		switch {
		case now.silent[d.Driver] || s.Drivers[d.Driver] == nil:
			d.What = "unknown: the driver does not answer"
		case v.Goal != slivers.NoGoal || v.Operational == slivers.Failed:
		case v.Allocation == slivers.Allocated:
			d.What = "there too early"
		case !there:
			d.What = "missing"
		case !t.Whole:
			d.What = "half-made"
		case v.Node != nil && t.Running != (v.Operational != slivers.NotReady):
			d.What = "runs and should not"
			if !t.Running {
				d.What = "does not run"
			}
		}
		list = append(list, d)
	}
	for _, t := range now.things {
		list = append(list, Difference{Driver: t.driver, Sliver: t.Sliver, Kind: slivers.Kind(t.Kind), There: true, Running: t.Running, What: "unknown to the store"})
	}
	slices.SortStableFunc(list, func(a, b Difference) int { return strings.Compare(a.Driver, b.Driver) })
	for name := range now.silent {
		silent = append(silent, name)
	}
	slices.Sort(silent)
	return list, silent, nil
}
