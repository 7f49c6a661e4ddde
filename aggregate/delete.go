package aggregate

import (
	"cmp"
	"context"

	"croft/credentials"
	"croft/slivers"
	"croft/urn"
)

// Delete gives slivers back. They are unallocated at once for the caller;
// their hosts stay taken until the drivers have removed them.
func (s *Service) Delete(ctx context.Context, p *credentials.Principal, t Target, bestEffort bool) ([]Outcome, error) {
	outcomes, err := s.delete(ctx, p, t, bestEffort)
	if err != nil {
		return nil, fail("delete", t.Slice, err)
	}
	return outcomes, nil
}

func (s *Service) delete(ctx context.Context, p *credentials.Principal, t Target, bestEffort bool) ([]Outcome, error) {
	_, unlock, err := s.enter(ctx, p, credentials.Delete, t, false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	_, picked, outcomes, err := s.pick(ctx, t, bestEffort)
	if err != nil {
		return nil, err
	}
	if len(picked) == 0 && len(outcomes) == 0 {
		return nil, refuse(NotFound, "the slice has no slivers here")
	}
	if err := s.release(ctx, t.Slice, picked); err != nil {
		return nil, err
	}
	for i := range picked {
		picked[i].Allocation = slivers.Unallocated
	}
	return append(done(picked), outcomes...), nil
}

// release ends slivers, see releaseFor.
func (s *Service) release(ctx context.Context, slice urn.URN, list []slivers.Sliver) error {
	return s.releaseFor(ctx, slice, list, "")
}

// releaseFor ends slivers, and says in their events why: those that no driver knows of are dropped, the others
// are removed by the slice's worker. Links to nodes that end are broken.
func (s *Service) releaseFor(ctx context.Context, slice urn.URN, list []slivers.Sliver, why string) error {
	ending := map[urn.URN]bool{}
	for _, v := range list {
		ending[v.URN.Canonical()] = true
	}
	all, err := s.Store.OfSlice(ctx, slice)
	if err != nil {
		return err
	}
	touched := urnsOf(list)
	for _, v := range all {
		if v.Link == nil || ending[v.URN.Canonical()] || v.Goal == slivers.Release {
			continue
		}
		for _, e := range v.Link.Ends {
			if ending[e.Sliver.Canonical()] {
				touched = append(touched, v.URN)
				break
			}
		}
	}
	err = s.Store.Update(ctx, touched, func(held []*slivers.Sliver) error {
		for _, v := range held {
			switch {
			case v.Goal == slivers.Release:
			case !ending[v.URN.Canonical()]:
				rest, ok := withoutLater(v.Link, func(e slivers.End) bool { return ending[e.Sliver.Canonical()] })
				if ok {
					v.Link.Ends = rest
					continue
				}
				v.Operational, v.Goal = slivers.Failed, slivers.NoGoal
				v.Fault = "a node that the link joined has been deleted"
			case v.Allocation == slivers.Allocated:
				v.Goal = slivers.Forgotten
				v.Fault = cmp.Or(why, v.Fault)
			default:
				v.Allocation, v.Goal = slivers.Unallocated, slivers.Release
				v.Fault = cmp.Or(why, v.Fault)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range list {
		s.closeWays(&list[i])
	}
	s.working.kick(slice)
	return nil
}
