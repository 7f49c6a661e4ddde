package aggregate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"croft/drivers"
	"croft/slivers"
	"croft/urn"
)

const (
	// reconcileEvery is how often the machines are compared with the store.
	reconcileEvery = time.Minute
	// listTime bounds how long a driver may take to tell what it has.
	listTime = time.Minute
	// lockTime is how long a comparison waits for the calls on a slice; the
	// next one comes soon.
	lockTime = time.Second
	// A sliver that is lost more than maxRepairs times within repairsWithin
	// fails: something is wrong that making it anew does not mend.
	maxRepairs    = 3
	repairsWithin = time.Hour
)

// reconciler brings the machines to what the store says. What the store does
// not know is removed, what is lost is made again or fails with a reason, and
// what was under way when an earlier aggregate ended goes on.
type reconciler struct {
	*Service
	mu      sync.Mutex
	repairs map[urn.URN][]time.Time // when slivers were lost
}

// machines are what drivers say exists.
type machines struct {
	things map[urn.URN]thing // by canonical URN of the sliver
	silent map[string]bool   // drivers that did not answer
	ill    map[urn.URN]string
}

type thing struct {
	drivers.Found
	driver string
}

// machinesNow asks some drivers what they have, all of them if none is named.
func (s *Service) machinesNow(ctx context.Context, names ...string) machines {
	m := machines{things: map[urn.URN]thing{}, silent: map[string]bool{}, ill: reasons(s.Ailing())}
	var mu sync.Mutex
	var group sync.WaitGroup
	for name, d := range s.Drivers {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, listTime)
			defer cancel()
			list, err := d.List(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				m.silent[name] = true
				if s.ctx.Err() == nil {
					s.Log.Error("asking a driver what it has: its slivers are left as they are for now", "driver", name, "error", err)
				}
				return
			}
			for _, f := range list {
				m.things[f.Sliver.Canonical()] = thing{f, name}
			}
		})
	}
	group.Wait()
	return m
}

// keep reconciles from time to time, until the service is closed.
func (r *reconciler) keep() {
	every := r.Reconcile
	if every <= 0 {
		every = reconcileEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return
		}
		if err := r.run(r.ctx, false); err != nil && r.ctx.Err() == nil {
			r.Log.Error("comparing the machines with the store", "error", err)
		}
	}
}

// run compares once. At the first run of an aggregate nothing else goes on
// yet: what was under way is begun anew, and the ways in are opened.
func (r *reconciler) run(ctx context.Context, first bool) error {
	before, err := r.Store.All(ctx)
	if err != nil {
		return fmt.Errorf("reconciling: %w", err)
	}
	// What is asked for now and is not in the store afterwards is a leak: a
	// sliver is in the store before it is on a machine, and as long as it is.
	now := r.machinesNow(ctx)
	after, err := r.Store.All(ctx)
	if err != nil {
		return fmt.Errorf("reconciling: %w", err)
	}
	known := map[urn.URN]bool{}
	for _, v := range after {
		known[v.URN.Canonical()] = true
	}
	var leaks []thing
	for k, t := range now.things {
		if !known[k] {
			leaks = append(leaks, t)
		}
	}
	r.removeAll(ctx, "unknown to the store", leaks)
	was := make(map[urn.URN]*slivers.Sliver, len(before))
	for i := range before {
		was[before[i].URN.Canonical()] = &before[i]
	}
	r.forgetRepairs(known)
	for _, slice := range slicesOf(after) {
		if err := r.slice(ctx, slice, was, now, first); err != nil {
			if first {
				return fmt.Errorf("reconciling slice %s: %w", slice, err)
			}
			r.Log.Error("comparing a slice with its machines", "slice", slice.String(), "error", err)
		}
	}
	return nil
}

// slicesOf lists the slices of slivers, in their order.
func slicesOf(list []slivers.Sliver) []urn.URN {
	var names []urn.URN
	seen := map[urn.URN]bool{}
	for _, v := range list {
		if k := v.Slice.Canonical(); !seen[k] {
			seen[k] = true
			names = append(names, v.Slice)
		}
	}
	return names
}

// removeAll takes things off the machines, links before the nodes that they
// join. What cannot be removed is tried again at the next comparison.
func (r *reconciler) removeAll(ctx context.Context, why string, list []thing) {
	for _, kind := range []drivers.Kind{drivers.LinkKind, drivers.NodeKind} {
		var group sync.WaitGroup
		for _, t := range list {
			if t.Kind != kind {
				continue
			}
			group.Go(func() {
				if err := r.removeThing(ctx, why, t); err != nil && r.ctx.Err() == nil {
					r.Log.Error("removing what is "+why, "driver", t.driver, "sliver", t.Sliver.String(), "error", err)
				}
			})
		}
		group.Wait()
	}
}

func (r *reconciler) removeThing(ctx context.Context, why string, t thing) error {
	free, err := r.working.slot(ctx, t.driver, slivers.Release)
	if err != nil {
		return err
	}
	defer free()
	ctx, cancel := context.WithTimeout(ctx, r.driverTime(t.driver))
	defer cancel()
	r.Log.Warn("removing what is "+why, "driver", t.driver, "kind", string(t.Kind), "sliver", t.Sliver.String())
	return r.Drivers[t.driver].Remove(ctx, t.Sliver)
}

// slice compares a slice with what is there of it. Callers of the slice wait
// meanwhile; what its worker has to do is left to the worker.
func (r *reconciler) slice(ctx context.Context, slice urn.URN, was map[urn.URN]*slivers.Sliver, now machines, first bool) error {
	waiting, cancel := context.WithTimeout(ctx, lockTime)
	unlock, err := r.slices.lock(waiting, slice.Canonical())
	cancel()
	if err != nil {
		return nil // a call is under way: next time
	}
	defer unlock()
	if !first && !r.working.quiet(slice) {
		return nil
	}
	defer r.working.kick(slice)
	down, err := r.isShutdown(ctx, slice)
	if err != nil {
		return err
	}
	list, err := r.Store.OfSlice(ctx, slice)
	if err != nil {
		return err
	}
	amiss := r.amiss(list, now, func(v *slivers.Sliver) bool {
		old := was[v.URN.Canonical()]
		return first || old != nil && old.Goal == v.Goal && old.Operational == v.Operational
	}, first)
	if len(amiss) > 0 && !first {
		// Something may have changed since: nothing does now.
		now = r.machinesNow(ctx, driversOf(amiss)...)
		amiss = r.amiss(amiss, now, func(*slivers.Sliver) bool { return true }, first)
	}
	if len(amiss) > 0 && !down {
		if err := r.mend(ctx, list, amiss, now); err != nil {
			return err
		}
	}
	if down {
		return nil
	}
	live, err := r.live(ctx, slice)
	if err != nil {
		return err
	}
	return r.reopen(ctx, live)
}

func driversOf(list []slivers.Sliver) []string {
	var names []string
	for _, v := range list {
		if name := driverName(&v); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func driverName(v *slivers.Sliver) string {
	if v.Node != nil {
		return v.Node.Driver
	}
	if v.Link != nil {
		return v.Link.Driver
	}
	return ""
}

// amiss lists the slivers that are not on the machines as they should be, of
// those that steady says have not changed lately.
func (r *reconciler) amiss(list []slivers.Sliver, now machines, steady func(*slivers.Sliver) bool, first bool) []slivers.Sliver {
	nodes := map[urn.URN]*slivers.Sliver{}
	for i := range list {
		if list[i].Node != nil {
			nodes[list[i].URN.Canonical()] = &list[i]
		}
	}
	ill := func(v *slivers.Sliver) bool {
		if v == nil || v.Node == nil {
			return false
		}
		_, is := now.ill[v.Node.Host.Canonical()]
		return is
	}
	var out []slivers.Sliver
	for _, v := range list {
		t, found := now.things[v.URN.Canonical()]
		switch {
		case now.silent[driverName(&v)] || r.Drivers[driverName(&v)] == nil || !steady(&v):
			continue
		case ill(&v): // nobody knows what is on a machine that does not answer
			continue
		case v.Link != nil && slices.ContainsFunc(v.Link.Ends, func(e slivers.End) bool { return ill(nodes[e.Sliver.Canonical()]) }):
			continue
		case v.Goal == slivers.Release:
			continue // its worker removes it
		case found && (v.Allocation != slivers.Provisioned || !t.Whole && (first || v.Goal == slivers.NoGoal && v.Operational != slivers.Failed)),
			isLost(&v, t.Found, found):
			out = append(out, v)
		}
	}
	return out
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

// mend removes what is there by half, and gives slivers that are lost the goal
// that brings them back. A node that is there needs only to be started; one
// that is gone is made anew, with an empty disk, and so are its links.
func (r *reconciler) mend(ctx context.Context, all, list []slivers.Sliver, now machines) error {
	var half []thing
	for _, v := range list {
		if t, found := now.things[v.URN.Canonical()]; found && (!t.Whole || v.Allocation != slivers.Provisioned) {
			half = append(half, t)
			delete(now.things, v.URN.Canonical())
		}
	}
	r.removeAll(ctx, "half-made", half)
	gone := map[urn.URN]bool{}
	var lost []urn.URN
	for _, v := range list {
		t, found := now.things[v.URN.Canonical()]
		if !isLost(&v, t.Found, found) {
			continue
		}
		lost = append(lost, v.URN)
		if !found {
			gone[v.URN.Canonical()] = true
		}
	}
	var cut []thing
	for _, v := range all {
		if v.Link == nil || v.Operational != slivers.Ready || v.Goal != slivers.NoGoal || gone[v.URN.Canonical()] {
			continue
		}
		if slices.ContainsFunc(v.Link.Ends, func(e slivers.End) bool { return gone[e.Sliver.Canonical()] }) {
			lost = append(lost, v.URN)
			if t, found := now.things[v.URN.Canonical()]; found {
				cut = append(cut, t)
				delete(now.things, v.URN.Canonical())
			}
		}
	}
	r.removeAll(ctx, "left of a link to a lost node", cut)
	if len(lost) == 0 {
		return nil
	}
	return r.Store.Update(ctx, lost, func(held []*slivers.Sliver) error {
		for _, v := range held {
			t, found := now.things[v.URN.Canonical()]
			// A link is not lost by itself that goes with its node.
			r.bringBack(v, found, v.Node != nil || !found && !endsIn(v, gone), t)
		}
		return nil
	})
}

func endsIn(v *slivers.Sliver, nodes map[urn.URN]bool) bool {
	return slices.ContainsFunc(v.Link.Ends, func(e slivers.End) bool { return nodes[e.Sliver.Canonical()] })
}

// bringBack gives a lost sliver the goal that mends it, or fails it if that
// has been done too often.
func (r *reconciler) bringBack(v *slivers.Sliver, found, counts bool, t thing) {
	what := "it was gone from the testbed"
	if found {
		what = "it did not run any more"
	}
	times := 0
	if counts {
		times = r.lostAgain(v.URN)
	}
	r.Log.Warn("a sliver is lost", "sliver", v.URN.String(), "slice", v.Slice.String(), "client_id", string(v.ClientID),
		"found", found, "running", t.Running, "times", times)
	switch {
	case times > maxRepairs:
		v.Operational = slivers.Failed
		v.Fault = fmt.Sprintf("%s, for the %dth time within %s: it is not brought back again (delete it)", what, times, repairsWithin)
	case v.Node != nil && found:
		v.Operational, v.Goal, v.Fault = slivers.Configuring, slivers.Start, what+": being started again"
	default:
		v.AutoStart = v.Node != nil && v.Operational == slivers.Ready
		v.Operational, v.Goal, v.Fault = slivers.PendingAllocation, slivers.Make, what+": being made anew"
	}
}

// lostAgain counts how often a sliver has been lost lately, this time included.
func (r *reconciler) lostAgain(sliver urn.URN) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, now := sliver.Canonical(), r.Clock()
	recent := slices.DeleteFunc(r.repairs[k], func(at time.Time) bool { return now.Sub(at) > repairsWithin })
	r.repairs[k] = append(recent, now)
	return len(r.repairs[k])
}

// forgetRepairs drops what was counted of slivers that are no more.
func (r *reconciler) forgetRepairs(known map[urn.URN]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.repairs {
		if !known[k] {
			delete(r.repairs, k)
		}
	}
}
