package aggregate

import (
	"context"
	"fmt"

	"croft/drivers"
	"croft/slivers"
	"croft/urn"
)

// reconcile brings the machines to what the store says, after a start: what
// the store does not know is removed, what is lost is made again, what was
// under way goes on, and the ways in are opened.
func (s *Service) reconcile(ctx context.Context) error {
	all, err := s.Store.All(ctx)
	if err != nil {
		return fmt.Errorf("reconciling: %w", err)
	}
	known := make(map[urn.URN]*slivers.Sliver, len(all))
	for i := range all {
		known[all[i].URN.Canonical()] = &all[i]
	}
	here := map[urn.URN]drivers.Found{}
	for name, d := range s.Drivers {
		found, err := d.List(ctx)
		if err != nil {
			return fmt.Errorf("reconciling: listing what driver %s has: %w", name, err)
		}
		for _, kind := range []drivers.Kind{drivers.LinkKind, drivers.NodeKind} {
			for _, f := range found {
				if f.Kind != kind {
					continue
				}
				k := f.Sliver.Canonical()
				v := known[k]
				switch {
				case v != nil && v.Goal == slivers.Release:
					continue // its worker removes it
				case v != nil && v.Allocation == slivers.Provisioned && f.Whole:
					here[k] = f
					continue
				}
				s.Log.Warn("removing what is half-made or unknown to the store", "driver", name, "sliver", f.Sliver.String())
				if err := d.Remove(ctx, f.Sliver); err != nil {
					s.Log.Error("removing a leak", "driver", name, "sliver", f.Sliver.String(), "error", err)
				}
			}
		}
	}
	slices := map[urn.URN]bool{}
	var lost []urn.URN
	for _, v := range all {
		slices[v.Slice.Canonical()] = true
		if f, found := here[v.URN.Canonical()]; isLost(&v, f, found) {
			lost = append(lost, v.URN)
		}
	}
	if lost, err = s.withLinks(ctx, all, lost, here); err != nil {
		return fmt.Errorf("reconciling: %w", err)
	}
	if err := s.recover(ctx, lost, here); err != nil {
		return fmt.Errorf("reconciling: %w", err)
	}
	for slice := range slices {
		info, err := s.Store.Slice(ctx, slice)
		if err != nil {
			return fmt.Errorf("reconciling: %w", err)
		}
		if !info.Shutdown {
			list, err := s.live(ctx, slice)
			if err != nil {
				return fmt.Errorf("reconciling: %w", err)
			}
			if err := s.reopen(ctx, list); err != nil {
				return fmt.Errorf("reconciling: %w", err)
			}
		}
		s.working.kick(slice)
	}
	return nil
}

// isLost reports whether a sliver should be on the machines as it is not.
func isLost(v *slivers.Sliver, f drivers.Found, found bool) bool {
	if v.Allocation != slivers.Provisioned || v.Goal != slivers.NoGoal {
		return false
	}
	switch v.Operational {
	case slivers.Ready:
		return !found || v.Node != nil && !f.Running
	case slivers.NotReady:
		return !found
	}
	return false
}

// withLinks adds to lost slivers the links of nodes that are gone. What their
// driver still has of those links is removed, so that they are made anew.
func (s *Service) withLinks(ctx context.Context, all []slivers.Sliver, lost []urn.URN, here map[urn.URN]drivers.Found) ([]urn.URN, error) {
	gone := map[urn.URN]bool{}
	for _, u := range lost {
		if _, found := here[u.Canonical()]; !found {
			gone[u.Canonical()] = true
		}
	}
	for _, v := range all {
		if v.Link == nil || v.Operational != slivers.Ready || gone[v.URN.Canonical()] {
			continue
		}
		for _, e := range v.Link.Ends {
			if !gone[e.Sliver.Canonical()] {
				continue
			}
			d, err := s.driver(&v)
			if err == nil {
				err = d.Remove(ctx, v.URN)
			}
			if err != nil {
				return nil, fmt.Errorf("removing what is left of link %s: %w", v.URN, err)
			}
			lost = append(lost, v.URN)
			break
		}
	}
	return lost, nil
}

// recover gives lost slivers the goal that brings them back. A node that is
// there needs only to be started; one that is gone is made anew, with an empty
// disk.
func (s *Service) recover(ctx context.Context, lost []urn.URN, here map[urn.URN]drivers.Found) error {
	if len(lost) == 0 {
		return nil
	}
	return s.Store.Update(ctx, lost, func(held []*slivers.Sliver) error {
		for _, v := range held {
			_, found := here[v.URN.Canonical()]
			s.Log.Warn("bringing back a lost sliver", "sliver", v.URN.String(), "slice", v.Slice.String(), "found", found)
			if v.Node != nil && found {
				v.Operational, v.Goal = slivers.Configuring, slivers.Start
				continue
			}
			v.AutoStart = v.Node != nil && v.Operational == slivers.Ready
			v.Operational, v.Goal = slivers.PendingAllocation, slivers.Make
		}
		return nil
	})
}
