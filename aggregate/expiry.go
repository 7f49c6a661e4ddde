package aggregate

import (
	"time"

	"croft/slivers"
	"croft/urn"
)

// longestSleep bounds how long the expiry keeper sleeps, so that a clock that
// is set does no lasting harm.
const longestSleep = time.Minute

// wakeExpiry tells the expiry keeper that expiries have changed.
func (s *Service) wakeExpiry() {
	select {
	case s.expiries <- struct{}{}:
	default:
	}
}

// expire gives back what has expired, until the service is closed.
func (s *Service) expire() {
	for {
		next, err := s.sweep()
		if err != nil && s.ctx.Err() == nil {
			s.Log.Error("giving back what has expired", "error", err)
		}
		sleep := longestSleep
		if !next.IsZero() {
			sleep = min(max(next.Sub(s.Clock()), 0)+10*time.Millisecond, longestSleep)
		}
		timer := time.NewTimer(sleep)
		select {
		case <-timer.C:
		case <-s.expiries:
		case <-s.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// sweep releases the slivers whose time is over, and tells when the next one
// is.
func (s *Service) sweep() (next time.Time, err error) {
	all, err := s.Store.All(s.ctx)
	if err != nil {
		return time.Time{}, err
	}
	now := s.Clock()
	over := map[urn.URN]bool{}
	for _, v := range all {
		switch {
		case v.Allocation == slivers.Unallocated:
		case !now.Before(v.Expires):
			over[v.Slice.Canonical()] = true
		case next.IsZero() || v.Expires.Before(next):
			next = v.Expires
		}
	}
	for slice := range over {
		if err := s.sweepSlice(slice); err != nil {
			return next, err
		}
	}
	return next, nil
}

func (s *Service) sweepSlice(slice urn.URN) error {
	unlock, err := s.lock(s.ctx, slice)
	if err != nil {
		return err
	}
	defer unlock()
	// A Renew may have come first: look again under the lock.
	all, err := s.Store.OfSlice(s.ctx, slice)
	if err != nil {
		return err
	}
	if down, err := s.isShutdown(s.ctx, slice); err != nil || down {
		return err
	}
	now := s.Clock()
	var ended []slivers.Sliver
	for _, v := range all {
		if v.Allocation != slivers.Unallocated && !now.Before(v.Expires) {
			ended = append(ended, v)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	s.Log.Info("slivers expired", "slice", slice.String(), "slivers", len(ended))
	return s.release(s.ctx, slice, ended)
}
