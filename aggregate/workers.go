package aggregate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"croft/drivers"
	"croft/slivers"
	"croft/urn"
)

const (
	// atOnce bounds the operations that one driver has under way, and
	// endingAtOnce those that remove: they wait more than they work.
	atOnce, endingAtOnce = 8, 32
	// operationTime bounds one of them, unless the driver says otherwise.
	operationTime = 2 * time.Minute
	// Release is tried again after retryFirst, then ever more rarely.
	retryFirst, retryMost = 500 * time.Millisecond, time.Minute
)

// workers do what the goals of slivers say: one worker for each slice that has
// something to do. What they do rests on the store alone, so that a worker of
// a restarted aggregate goes on where the last one was stopped.
type workers struct {
	service *Service
	slots   map[string]chan struct{} // by driver: one that is slow holds up no other
	ending  map[string]chan struct{} // the same, of operations that remove

	mu     sync.Mutex
	closed bool
	of     map[urn.URN]*worker
	all    sync.WaitGroup
	failed map[urn.URN]time.Duration // slices with a release to try again: the last delay
}

type worker struct {
	again bool          // something new to do has come
	ended chan struct{} // closed when the worker has nothing left to do
}

func newWorkers(s *Service) *workers {
	w := &workers{
		service: s, slots: map[string]chan struct{}{}, ending: map[string]chan struct{}{},
		of: map[urn.URN]*worker{}, failed: map[urn.URN]time.Duration{},
	}
	for name := range s.Drivers {
		w.slots[name] = make(chan struct{}, atOnce)
		w.ending[name] = make(chan struct{}, endingAtOnce)
	}
	return w
}

// slot waits until a driver may have one more operation under way for a goal.
func (w *workers) slot(ctx context.Context, driver string, goal slivers.Goal) (free func(), err error) {
	slots := w.slots[driver]
	if goal == slivers.Release {
		slots = w.ending[driver]
	}
	if slots == nil {
		return func() {}, nil // it is not running: the operation fails at once
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// kick has the goals of a slice looked at.
func (w *workers) kick(slice urn.URN) {
	slice = slice.Canonical()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if k := w.of[slice]; k != nil {
		k.again = true
		return
	}
	k := &worker{ended: make(chan struct{})}
	w.of[slice] = k
	w.all.Add(1)
	go w.work(slice, k)
}

// idle returns a channel that is closed when the slice's worker has ended; at
// once if there is none.
func (w *workers) idle(slice urn.URN) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.of[slice.Canonical()]; k != nil {
		return k.ended
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

// quiet reports whether the slice has no worker.
func (w *workers) quiet(slice urn.URN) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[slice.Canonical()] == nil
}

// wait lets no worker start any more, and waits for those at work.
func (w *workers) wait() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.all.Wait()
}

func (w *workers) work(slice urn.URN, k *worker) {
	defer w.all.Done()
	for {
		more, err := w.service.round(w.service.ctx, slice)
		if err != nil && w.service.ctx.Err() == nil {
			w.service.Log.Error("working on a slice", "slice", slice.String(), "error", err)
			w.later(slice)
		}
		w.service.starting.kick(slice)
		w.mu.Lock()
		if w.service.ctx.Err() != nil || !more && !k.again {
			delete(w.of, slice)
			close(k.ended)
			if err == nil {
				delete(w.failed, slice)
			}
			w.mu.Unlock()
			return
		}
		k.again = false
		w.mu.Unlock()
	}
}

// later kicks the slice again, after ever longer times.
func (w *workers) later(slice urn.URN) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delay := min(max(2*w.failed[slice], retryFirst), retryMost)
	w.failed[slice] = delay
	timer := time.AfterFunc(delay, func() { w.kick(slice) })
	context.AfterFunc(w.service.ctx, func() { timer.Stop() })
}

// each runs do for every sliver, some at once, and counts those that went well.
func (w *workers) each(list []slivers.Sliver, do func(v *slivers.Sliver) error) (well int, err error) {
	errs := make([]error, len(list))
	var group sync.WaitGroup
	for i := range list {
		group.Go(func() {
			free, err := w.slot(w.service.ctx, driverName(&list[i]), list[i].Goal)
			if err != nil {
				errs[i] = err
				return
			}
			defer free()
			errs[i] = do(&list[i])
		})
	}
	group.Wait()
	for _, err := range errs {
		if err == nil {
			well++
		}
	}
	return well, errors.Join(errs...)
}

// round does what can be done now for a slice. It reports whether what it has
// done may have made more possible.
func (s *Service) round(ctx context.Context, slice urn.URN) (more bool, err error) {
	all, err := s.Store.OfSlice(ctx, slice)
	if err != nil {
		return false, err
	}
	var errs []error
	do := func(list []slivers.Sliver, job func(context.Context, *slivers.Sliver) error) {
		if len(list) == 0 || ctx.Err() != nil {
			return
		}
		well, err := s.working.each(list, func(v *slivers.Sliver) error {
			ctx, cancel := context.WithTimeout(ctx, s.operationTime(v))
			defer cancel()
			// Of many slivers, the last ones come late: what was deleted
			// meanwhile need not be made first.
			if now, err := s.Store.Find(ctx, []urn.URN{v.URN}); err != nil || len(now) == 0 || now[0].Goal != v.Goal {
				return err
			}
			return job(ctx, v)
		})
		more = more || well > 0
		errs = append(errs, err)
	}
	with := func(kind slivers.Kind, goals ...slivers.Goal) (list []slivers.Sliver) {
		for _, v := range all {
			for _, g := range goals {
				if v.Kind == kind && v.Goal == g {
					list = append(list, v)
				}
			}
		}
		return list
	}
	apart, rest := s.split(with(slivers.Link, slivers.Release))
	do(rest, s.remove)
	do(with(slivers.Node, slivers.Release), s.remove)
	do(apart, s.remove)
	do(with(slivers.Node, slivers.Make), func(ctx context.Context, v *slivers.Sliver) error {
		return s.makeNode(ctx, v, all)
	})
	if len(with(slivers.Node, slivers.Make)) > 0 {
		if all, err = s.Store.OfSlice(ctx, slice); err != nil {
			return false, errors.Join(append(errs, err)...)
		}
	}
	do(connectable(all), s.connect)
	do(with(slivers.Node, slivers.Start, slivers.Restart, slivers.Stop, slivers.SetUsers), s.operate)
	return more, errors.Join(errs...)
}

// split tells links that come apart with their nodes from others.
func (s *Service) split(links []slivers.Sliver) (apart, rest []slivers.Sliver) {
	for i := range links {
		if d, err := s.driver(&links[i]); err == nil && drivers.EndsNodesFirst(d) {
			apart = append(apart, links[i])
		} else {
			rest = append(rest, links[i])
		}
	}
	return apart, rest
}

// operationTime bounds one operation on a sliver.
func (s *Service) operationTime(v *slivers.Sliver) time.Duration {
	return s.driverTime(driverName(v))
}

// driverTime bounds one operation of a driver.
func (s *Service) driverTime(name string) time.Duration {
	if t, ok := s.Drivers[name].(drivers.TimeTaker); ok {
		return max(operationTime, t.OperationTime())
	}
	return operationTime
}

// connectable are the links to be made whose nodes are there.
func connectable(all []slivers.Sliver) []slivers.Sliver {
	made := map[urn.URN]bool{}
	for _, v := range all {
		if v.Node != nil && v.Allocation == slivers.Provisioned && v.Goal != slivers.Make && v.Operational != slivers.PendingAllocation {
			made[v.URN.Canonical()] = true
		}
	}
	var list []slivers.Sliver
	for _, v := range all {
		if v.Link == nil || v.Goal != slivers.Make {
			continue
		}
		// Ends that were added later hold up nothing.
		ready := true
		there := *v.Link
		there.Ends = nil
		for _, e := range v.Link.Ends {
			if made[e.Sliver.Canonical()] {
				there.Ends = append(there.Ends, e)
			} else {
				ready = ready && e.Later
			}
		}
		if ready {
			v.Link = &there
			list = append(list, v)
		}
	}
	return list
}

// makeNode makes a node; all are the slivers of its slice.
func (s *Service) makeNode(ctx context.Context, v *slivers.Sliver, all []slivers.Sliver) error {
	d, err := s.driver(v)
	if err == nil {
		err = d.Make(ctx, driverNode(s.Inventory(), v))
	}
	if err == nil {
		// Links that are up already take the node in. Only a worker makes
		// links, and this slice's makes nodes now: there are no others yet.
		err = s.relink(ctx, v, all)
	}
	if err == nil {
		s.learnHostKey(ctx, d, v)
	}
	return s.finish(ctx, v, slivers.NotReady, slivers.Failed, err)
}

func (s *Service) connect(ctx context.Context, v *slivers.Sliver) error {
	d, err := s.driver(v)
	if err == nil && v.Link.Grown {
		// Drivers leave a link that exists as it is.
		err = d.Remove(ctx, v.URN)
	}
	if err == nil {
		err = d.Connect(ctx, driverLink(v))
	}
	return s.finish(ctx, v, slivers.Ready, slivers.Failed, err)
}

func (s *Service) operate(ctx context.Context, v *slivers.Sliver) error {
	d, err := s.driver(v)
	if err != nil {
		return s.finish(ctx, v, slivers.Failed, slivers.Failed, err)
	}
	switch v.Goal {
	case slivers.Start, slivers.Restart:
		start := d.Start
		if v.Goal == slivers.Restart {
			start = d.Restart
		}
		if err = start(ctx, v.URN); errors.Is(err, drivers.ErrNotFound) {
			err = s.remake(ctx, d, v)
		}
		if err == nil {
			s.learnHostKey(ctx, d, v)
		}
		return s.finish(ctx, v, slivers.Ready, slivers.Failed, err)
	case slivers.Stop:
		if err = d.Stop(ctx, v.URN); errors.Is(err, drivers.ErrNotFound) {
			err = nil // it never came to be, or is lost: it does not run
		}
		return s.finish(ctx, v, slivers.NotReady, slivers.Failed, err)
	case slivers.SetUsers:
		return s.finish(ctx, v, slivers.Ready, slivers.Ready, d.UpdateUsers(ctx, v.URN, v.Node.Users))
	}
	return fmt.Errorf("sliver %s: no way to do %q", v.URN, v.Goal)
}

// learnHostKey notes the key that a node shows to those who log in. Not to know
// it keeps nobody from logging in.
func (s *Service) learnHostKey(ctx context.Context, d drivers.Driver, v *slivers.Sliver) {
	key, err := drivers.HostKey(ctx, d, v.URN)
	if err != nil {
		s.Log.Warn("asking for the host key of a node", "sliver", v.URN.String(), "error", err)
		return
	}
	v.Node.HostKey = key
}

// remake makes a node that its driver has lost, starts it, and has its links
// made anew.
func (s *Service) remake(ctx context.Context, d drivers.Driver, v *slivers.Sliver) error {
	s.Log.Warn("making a lost node anew", "sliver", v.URN.String(), "slice", v.Slice.String())
	if err := d.Make(ctx, driverNode(s.Inventory(), v)); err != nil {
		return err
	}
	err := s.Store.Update(ctx, []urn.URN{v.URN}, func(held []*slivers.Sliver) error {
		for _, h := range held {
			h.Node.Made++
		}
		return nil
	})
	if err != nil {
		return err
	}
	all, err := s.Store.OfSlice(ctx, v.Slice)
	if err != nil {
		return err
	}
	if err := s.relink(ctx, v, all); err != nil {
		return err
	}
	return d.Start(ctx, v.URN)
}

// relink gives the links of a node that are up the goal to be made. all are
// the slivers of its slice.
func (s *Service) relink(ctx context.Context, node *slivers.Sliver, all []slivers.Sliver) error {
	var links []urn.URN
	for _, v := range all {
		if v.Link == nil || v.Operational != slivers.Ready {
			continue
		}
		for _, e := range v.Link.Ends {
			if e.Sliver.Equal(node.URN) {
				links = append(links, v.URN)
			}
		}
	}
	if len(links) == 0 {
		return nil
	}
	return s.Store.Update(ctx, links, func(held []*slivers.Sliver) error {
		for _, l := range held {
			if l.Allocation == slivers.Provisioned && l.Goal == slivers.NoGoal && l.Operational == slivers.Ready {
				l.Operational, l.Goal = slivers.PendingAllocation, slivers.Make
			}
		}
		return nil
	})
}

// finish records how the goal of a sliver went, unless the sliver has another
// goal by now. What failed stays failed until it is deleted; what the end of
// this process interrupted keeps its goal.
func (s *Service) finish(ctx context.Context, v *slivers.Sliver, well, ill slivers.Operational, failure error) error {
	if failure != nil && s.ctx.Err() != nil {
		return nil
	}
	if failure != nil {
		s.Log.Error("sliver failed", "sliver", v.URN.String(), "slice", v.Slice.String(), "client_id", string(v.ClientID), "doing", string(v.Goal), "error", failure)
	}
	return s.Store.Update(context.WithoutCancel(ctx), []urn.URN{v.URN}, func(held []*slivers.Sliver) error {
		for _, h := range held {
			if h.Goal != v.Goal {
				continue
			}
			h.Goal, h.Operational, h.Fault = slivers.NoGoal, well, ""
			if well == slivers.NotReady && v.Goal == slivers.Make && h.AutoStart {
				h.Goal, h.Operational = slivers.Start, slivers.Configuring
			}
			if failure != nil {
				h.Operational, h.Fault = ill, failure.Error()
				continue
			}
			if h.Node != nil {
				h.Node.HostKey = v.Node.HostKey
				countBoot(h.Node, v.Goal)
			}
		}
		return nil
	})
}

// countBoot counts what has been done to a node.
func countBoot(n *slivers.NodeFacts, done slivers.Goal) {
	switch done {
	case slivers.Make:
		n.Made++
	case slivers.Start, slivers.Restart:
		n.Boots++
	}
}

// remove takes a sliver off the machines and then out of the store.
func (s *Service) remove(ctx context.Context, v *slivers.Sliver) error {
	d, err := s.driver(v)
	if err == nil {
		err = d.Remove(ctx, v.URN)
	}
	if err != nil && s.ctx.Err() == nil {
		// So that the operator sees what stands in the way.
		noted := s.Store.Update(context.WithoutCancel(ctx), []urn.URN{v.URN}, func(held []*slivers.Sliver) error {
			for _, h := range held {
				h.Fault = err.Error()
			}
			return nil
		})
		err = errors.Join(err, noted)
	}
	if err != nil {
		return fmt.Errorf("removing %s %s: %w", v.Kind, v.URN, err)
	}
	return s.Store.Update(context.WithoutCancel(ctx), []urn.URN{v.URN}, func(held []*slivers.Sliver) error {
		for _, h := range held {
			h.Goal = slivers.Forgotten
		}
		return nil
	})
}
