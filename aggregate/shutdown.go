package aggregate

import (
	"context"
	"errors"
	"slices"

	"croft/credentials"
	"croft/slivers"
	"croft/urn"
)

// Shutdown is the operator's emergency stop: the slivers of the slice stop and
// stay recorded, and the slice is closed to its users. Shutting down twice, or
// a slice that has nothing here, is success.
func (s *Service) Shutdown(ctx context.Context, p *credentials.Principal, slice urn.URN) error {
	if err := s.shutdown(ctx, p, slice); err != nil {
		return fail("shutdown", slice, err)
	}
	return nil
}

func (s *Service) shutdown(ctx context.Context, p *credentials.Principal, slice urn.URN) error {
	_, unlock, err := s.enter(ctx, p, credentials.Shutdown, Target{Slice: slice}, true)
	if err != nil {
		return err
	}
	defer unlock()
	return s.halt(ctx, slice)
}

// halt is Shutdown for who may and has the slice's lock.
func (s *Service) halt(ctx context.Context, slice urn.URN) error {
	list, err := s.live(ctx, slice)
	if err != nil {
		return err
	}
	if err := s.Store.SetShutdown(ctx, slice, true, s.Clock()); err != nil {
		return err
	}
	err = s.Store.Update(ctx, urnsOf(list), func(held []*slivers.Sliver) error {
		for _, v := range held {
			if v.Node != nil && v.Allocation == slivers.Provisioned && v.Goal != slivers.Release && v.Operational != slivers.Failed {
				v.Operational, v.Goal = slivers.Stopping, slivers.Stop
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

// LiftShutdown opens a slice again that was shut down. It is for the operator:
// no call of the AM API leads here. Nodes stay stopped until they are started.
func (s *Service) LiftShutdown(ctx context.Context, slice urn.URN) error {
	if err := s.lift(ctx, slice); err != nil {
		return fail("lift shutdown", slice, err)
	}
	return nil
}

func (s *Service) lift(ctx context.Context, slice urn.URN) error {
	unlock, err := s.lock(ctx, slice)
	if err != nil {
		return err
	}
	defer unlock()
	known, err := s.Store.Slice(ctx, slice)
	switch {
	case errors.Is(err, slivers.ErrNotFound):
		return refuse(NotFound, "the slice is not known here")
	case err != nil:
		return err
	case !known.Shutdown:
		return refuse(Refused, "the slice is not shut down")
	}
	if err := s.Store.SetShutdown(ctx, slice, false, s.Clock()); err != nil {
		return err
	}
	// What would have expired meanwhile does so now.
	defer s.wakeExpiry()
	list, err := s.live(ctx, slice)
	if err != nil {
		return err
	}
	return s.reopen(ctx, list)
}

// reopen opens the ways in to nodes that are provisioned, at the ports they
// had where those are free.
func (s *Service) reopen(ctx context.Context, list []slivers.Sliver) error {
	for _, v := range list {
		if v.Node == nil || v.Allocation != slivers.Provisioned || !s.takesLogins(&v) {
			continue
		}
		var login slivers.Login // none of its own where only the gateway leads to nodes
		if s.hasEntrance(&v) {
			var err error
			if login, err = s.open(ctx, v.URN, v.Node.Login.Port); err != nil {
				return err
			}
		}
		ports, err := s.openPorts(ctx, &v)
		if err != nil {
			return err
		}
		if login == v.Node.Login && slices.Equal(ports, v.Node.Ports) {
			continue
		}
		err = s.Store.Update(ctx, []urn.URN{v.URN}, func(held []*slivers.Sliver) error {
			for _, h := range held {
				h.Node.Login, h.Node.Ports = login, ports
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
