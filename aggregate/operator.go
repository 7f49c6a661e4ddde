package aggregate

import (
	"context"
	"errors"
	"time"

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

// Free is Delete by the operator: of a whole slice or of a sliver, also where
// the slice is shut down. It returns what it has given back.
func (s *Service) Free(ctx context.Context, name urn.URN) ([]slivers.Sliver, error) {
	freed, err := s.free(ctx, name)
	if err != nil {
		return nil, fail("delete", name, err)
	}
	return freed, nil
}

func (s *Service) free(ctx context.Context, name urn.URN) ([]slivers.Sliver, error) {
	t, err := s.Resolve(ctx, []urn.URN{name})
	if err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx, t.Slice)
	if err != nil {
		return nil, err
	}
	defer unlock()
	_, picked, _, err := s.pick(ctx, t, false)
	if err != nil {
		return nil, err
	}
	if len(picked) == 0 {
		return nil, refuse(NotFound, "the slice has no slivers here")
	}
	if err := s.release(ctx, t.Slice, picked); err != nil {
		return nil, err
	}
	for i := range picked {
		picked[i].Allocation = slivers.Unallocated
	}
	return picked, nil
}
