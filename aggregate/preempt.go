package aggregate

import (
	"context"
	"slices"

	"croft/slivers"
	"croft/urn"
)

// Preempt takes nodes away from their slices to make room for another, and
// returns those that it took. Only nodes whose request said that this may be
// are taken; why is in their last events. Callers of the AM API cannot do
// this: it is for schedulers of a face's own slices.
func (s *Service) Preempt(ctx context.Context, slice urn.URN, nodes []urn.URN, why string) ([]slivers.Sliver, error) {
	unlock, err := s.lock(ctx, slice)
	if err != nil {
		return nil, fail("preempt", slice, err)
	}
	defer unlock()
	live, err := s.live(ctx, slice)
	if err != nil {
		return nil, fail("preempt", slice, err)
	}
	var list []slivers.Sliver
	for _, v := range live {
		if v.Node != nil && v.Node.Preemptible && v.Goal != slivers.Release && slices.ContainsFunc(nodes, v.URN.Equal) {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	if err := s.releaseFor(ctx, slice, list, why); err != nil {
		return nil, fail("preempt", slice, err)
	}
	s.Log.Info("nodes are taken away for others", "slice", slice.String(), "nodes", len(list), "why", why)
	return list, nil
}
