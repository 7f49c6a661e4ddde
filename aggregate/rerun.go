package aggregate

import (
	"context"

	"croft/credentials"
	"croft/slivers"
	"croft/urn"
)

// Rerun has the start-up steps of nodes run anew: those that have ended, but
// for services that are there. Those of other nodes that waited for them are
// left as they are.
func (s *Service) Rerun(ctx context.Context, p *credentials.Principal, t Target) error {
	if err := s.runAnew(ctx, p, t); err != nil {
		return fail("run the start-up anew of", t.Slice, err)
	}
	return nil
}

func (s *Service) runAnew(ctx context.Context, p *credentials.Principal, t Target) error {
	_, unlock, err := s.enter(ctx, p, credentials.PerformOperationalAction, t, false)
	if err != nil {
		return err
	}
	defer unlock()
	_, picked, _, err := s.pick(ctx, t, false)
	if err != nil {
		return err
	}
	of := map[urn.URN]bool{}
	for _, v := range picked {
		of[v.URN.Canonical()] = v.Node != nil
	}
	steps, err := s.Store.Steps(ctx, t.Slice)
	if err != nil {
		return err
	}
	var ids []slivers.StepID
	for _, st := range steps {
		if of[st.Sliver.Canonical()] && st.State.Ended() && !st.Alive {
			ids = append(ids, st.ID)
		}
	}
	err = s.Store.UpdateSteps(ctx, ids, func(held []*slivers.Step) error {
		for _, st := range held {
			if st.State.Ended() && !st.Alive {
				*st = afresh(st)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.starting.kick(t.Slice)
	return nil
}
