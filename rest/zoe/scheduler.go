package zoe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"croft/aggregate"
	"croft/inventory"
	"croft/request"
	"croft/rspec"
	"croft/slivers"
	"croft/urn"
)

// restTime is how long the scheduler rests between two passes, however much
// changes.
const restTime = 100 * time.Millisecond

// attempt is what there was when something did not fit: before that changes, it
// is not tried again.
type attempt struct {
	taken     int64
	inventory *inventory.Snapshot
}

// Wake has the scheduler look for room.
func (f *Face) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run schedules executions until ctx ends.
func (f *Face) Run(ctx context.Context) {
	for ctx.Err() == nil {
		changed := f.Service.Changed()
		f.Schedule(ctx)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-f.wake:
		case <-f.After(f.Every):
			f.passing.Lock()
			clear(f.futile) // hosts come back without a change of the store
			f.passing.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-f.After(restTime):
		}
	}
}

// Schedule does once what there is to do: it sees how executions go, starts
// those that wait while there is room, and has the others grow if none waits.
func (f *Face) Schedule(ctx context.Context) {
	f.passing.Lock()
	defer f.passing.Unlock()
	report := func(e *execution, what string, err error) {
		if err != nil && ctx.Err() == nil {
			f.Log.Error(what, "execution", e.ID, "slice", e.Slice.String(), "error", err)
		}
	}
	for _, e := range f.snapshot(func(e *execution) bool { return !e.Status.ended() && !e.Status.waits() }) {
		report(e, "seeing how an execution goes", f.see(ctx, e))
	}
	for _, e := range f.order(f.snapshot(func(e *execution) bool { return e.Status.waits() })) {
		started, err := f.begin(ctx, e)
		report(e, "starting an execution", err)
		if !started {
			return // the others wait for it, and elastic services, too
		}
	}
	for _, e := range f.snapshot(func(e *execution) bool { return e.Status == running && !e.derived() }) {
		report(e, "adding elastic services", f.grow(ctx, e))
	}
}

// order is that in which executions start.
func (f *Face) order(list []*execution) []*execution {
	if f.BySize {
		sort.SliceStable(list, func(i, j int) bool { return list[i].app.Size < list[j].app.Size })
	}
	return list
}

// see brings the status of an execution to that of its slivers.
func (f *Face) see(ctx context.Context, e *execution) error {
	held, err := f.Service.Slivers(ctx, e.Slice)
	if err != nil && !missing(err) {
		return err
	}
	if e.Status == cleaning {
		return f.clean(ctx, e, held)
	}
	if e.derived() {
		return f.follow(ctx, e)
	}
	list, err := f.Service.Status(ctx, f.principal(e), aggregate.Target{Slice: e.Slice}, true)
	if err != nil && !missing(err) {
		return err
	}
	if slices.ContainsFunc(list, func(o aggregate.Outcome) bool { return o.Sliver.Allocation == slivers.Allocated }) {
		if err := f.provision(ctx, e); err != nil { // the server was killed in between
			return f.end(e, err.Error())
		}
		return nil
	}
	why, up := e.judge(list)
	switch {
	case why == errEnded:
		return f.end(e, "")
	case why != nil:
		return f.end(e, why.Error())
	case up && e.Status == starting:
		return f.change(e.ID, func(e *execution) {
			if e.Status == starting {
				e.Status, e.Started = running, f.Clock().UTC()
			}
		})
	}
	return nil
}

// errEnded says that the essential services have gone: the monitor has ended,
// the lease has, or somebody has deleted them by another API.
var errEnded = errors.New("the execution has ended")

// judge says why an execution cannot go on, or whether all of its essential
// services have been started.
func (e *execution) judge(list []aggregate.Outcome) (why error, up bool) {
	nodes := map[request.ClientID]*aggregate.Outcome{}
	for i := range list {
		if list[i].Sliver.Node != nil {
			nodes[list[i].Sliver.ClientID] = &list[i]
		}
	}
	up = true
	for _, i := range e.instances() {
		if !i.Essential {
			continue
		}
		o := nodes[i.Node]
		if o == nil {
			return errEnded, false
		}
		if o.Sliver.Operational == slivers.Failed {
			return fmt.Errorf("essential service %s: %s", i.Node, o.Sliver.Fault), false
		}
		up = up && o.Sliver.Operational == slivers.Ready
		for _, s := range o.Startup {
			ended := s.State == slivers.StepFailed || s.State == slivers.StepSkipped ||
				s.State == slivers.StepDone && !s.Alive && o.Sliver.Node.Login.Host != "" // others pretend to run
			switch {
			case s.Ends && s.State != slivers.StepSkipped: // its end ends the document
			case ended:
				return fmt.Errorf("essential service %s died: %s", i.Node, cmp.Or(s.Reason, "it has ended")), false
			}
			up = up && s.State == slivers.StepDone
		}
	}
	return nil, up
}

// end has an execution cleaned up. message is why, if it failed.
func (f *Face) end(e *execution, message string) error {
	err := f.change(e.ID, func(e *execution) {
		if !e.Status.ended() {
			e.Status = cleaning
			if message != "" {
				e.Message, e.Broken = message, true
			}
		}
	})
	f.Wake()
	return err
}

// clean gives back what an execution has; when nothing is left, it has ended.
func (f *Face) clean(ctx context.Context, e *execution, held []slivers.Sliver) error {
	if len(held) == 0 {
		delete(f.futile, e.ID)
		return f.change(e.ID, func(e *execution) {
			e.Status, e.Ended = terminated, f.Clock().UTC()
			if e.Broken {
				e.Status = failed
			}
		})
	}
	if !slices.ContainsFunc(held, func(v slivers.Sliver) bool { return v.Allocation != slivers.Unallocated }) {
		return nil // their drivers are at it
	}
	f.saveLogs(ctx, e)
	_, err := f.Service.Delete(ctx, f.principal(e), aggregate.Target{Slice: e.Slice}, true)
	if err != nil && !missing(err) {
		return err
	}
	f.Wake()
	return nil
}

// begin starts an execution if there is room for its essential services, or
// makes room. started is false if the queue has to wait.
func (f *Face) begin(ctx context.Context, e *execution) (started bool, err error) {
	held, err := f.Service.Slivers(ctx, e.Slice)
	if err != nil && !missing(err) {
		return false, err
	}
	if len(held) == 0 {
		now := f.now()
		if f.futile[e.ID] == now {
			return false, f.room(ctx, e)
		}
		o := aggregate.AllocateOptions{End: f.leaseEnd(), Inputs: f.essentialOnly(e)}
		_, err = f.Service.Allocate(ctx, f.principal(e), e.Slice, e.Application, o)
		switch {
		case err == nil:
			delete(f.futile, e.ID)
		case later(err):
			f.futile[e.ID] = now
			return false, errors.Join(f.wait(e), f.room(ctx, e))
		case ctx.Err() != nil:
			return false, err
		default:
			return true, f.end(e, err.Error())
		}
	}
	if err := f.provision(ctx, e); err != nil && !missing(err) {
		return true, f.end(e, err.Error())
	}
	return true, f.change(e.ID, func(e *execution) {
		if e.Status.waits() {
			e.Status = starting
		}
	})
}

func (f *Face) wait(e *execution) error {
	if e.Status == queued {
		return nil
	}
	return f.change(e.ID, func(e *execution) {
		if e.Status == submitted {
			e.Status = queued
		}
	})
}

// now is what there is at this moment to try something on.
func (f *Face) now() attempt {
	return attempt{f.Service.Store.Occupancy().Version, f.Service.Inventory()}
}

func (f *Face) leaseEnd() time.Time { return f.Clock().Add(f.Service.Leases.ProvisionedMax) }

func (f *Face) provision(ctx context.Context, e *execution) error {
	var users []request.User
	if len(e.Keys) > 0 {
		users = []request.User{{URN: e.Member, Keys: e.Keys}}
	}
	_, err := f.Service.Provision(ctx, f.principal(e), aggregate.Target{Slice: e.Slice}, aggregate.ProvisionOptions{
		Users: users, End: f.leaseEnd(), Start: true, Version: rspec.ManifestVersions()[0],
	})
	return err
}

// grow adds the elastic services that an execution lacks, as far as there is
// room.
func (f *Face) grow(ctx context.Context, e *execution) error {
	held, err := f.Service.Slivers(ctx, e.Slice)
	if err != nil {
		return err
	}
	lacks := func(i request.ClientID) bool {
		return !slices.ContainsFunc(held, func(v slivers.Sliver) bool { return v.ClientID == i })
	}
	some := false
	for _, i := range e.instances() {
		some = some || !i.Essential && lacks(i.Node)
	}
	now := f.now()
	if !some || f.futile[e.ID] == now {
		return nil
	}
	_, err = f.Service.Allocate(ctx, f.principal(e), e.Slice, e.Application, aggregate.AllocateOptions{
		End: f.leaseEnd(), Inputs: e.inputs(f.Service.Manager().Authority.Top()),
	})
	if err != nil {
		f.futile[e.ID] = now
		if later(err) {
			return nil
		}
		return err
	}
	return f.provision(ctx, e)
}

// later reports whether a request that was refused may be granted when less is
// taken.
func later(err error) bool {
	var refused *aggregate.Error
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Kind {
	case aggregate.TooBig, aggregate.NoBandwidth, aggregate.Unavailable, aggregate.NoVLAN, aggregate.Busy:
		return true
	}
	return false
}

// full reports whether a request was refused for want of room.
func full(err error) bool {
	var refused *aggregate.Error
	return errors.As(err, &refused) && (refused.Kind == aggregate.TooBig || refused.Kind == aggregate.NoBandwidth)
}

func all(*slivers.Sliver) bool { return true }

// room takes elastic services away from other executions if that makes room
// for the essential ones of one that waits: as few as will do, the youngest
// first.
func (f *Face) room(ctx context.Context, e *execution) error {
	var elastic []slivers.Sliver
	others := f.snapshot(func(o *execution) bool { return (o.Status == running || o.Status == starting) && !o.derived() })
	slices.Reverse(others)
	for _, o := range others {
		held, err := f.Service.Slivers(ctx, o.Slice)
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		slices.Reverse(held)
		for _, v := range held {
			if v.Node != nil && v.Node.Preemptible && v.Allocation != slivers.Unallocated {
				elastic = append(elastic, v)
			}
		}
	}
	if len(elastic) == 0 {
		return nil
	}
	fits := func(n int) bool {
		without := map[urn.URN]bool{}
		for _, v := range elastic[:n] {
			without[v.URN.Canonical()] = true
		}
		// What is being released will be free by itself.
		_, err := f.Service.PlanWithout(ctx, f.principal(e), e.Slice, e.Application, aggregate.AllocateOptions{Inputs: f.essentialOnly(e)},
			func(v *slivers.Sliver) bool { return v.Allocation == slivers.Unallocated || without[v.URN.Canonical()] })
		return err == nil
	}
	if fits(0) || !fits(len(elastic)) {
		return nil
	}
	n := 1 + sort.Search(len(elastic)-1, func(i int) bool { return fits(i + 1) })
	taken := map[urn.URN][]urn.URN{}
	for _, v := range elastic[:n] {
		taken[v.Slice] = append(taken[v.Slice], v.URN)
	}
	why := fmt.Sprintf("taken away for the essential services of execution %d", e.ID)
	for slice, nodes := range taken {
		if _, err := f.Service.Preempt(ctx, slice, nodes, why); err != nil {
			return err
		}
	}
	return nil
}
