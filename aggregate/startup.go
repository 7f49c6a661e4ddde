package aggregate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"croft/drivers"
	"croft/request"
	"croft/slivers"
	"croft/startup"
	"croft/urn"
)

const (
	// stepsAtOnce bounds what is being done in nodes for their steps: being
	// begun, installed, read. Waiting for what runs there does not count.
	stepsAtOnce = 16
	// stepLimit is how long a step may take that says nothing else.
	stepLimit = time.Hour
	// roundAgain and nodeAgain are when one looks again after a failure of the
	// aggregate's own, and at a node that was found down.
	roundAgain, nodeAgain = 5 * time.Second, time.Second
	// hostsTime bounds the telling of one node of the others: all steps of the
	// slice wait for it.
	hostsTime = 20 * time.Second
	// stepTries is how often a node is asked that does not do as it is told.
	stepTries = 5
)

// starter runs the start-up graphs of slices: one round at a time for each
// slice, and for each step that runs, one who waits for its end. What it does
// rests on the store and on what nodes say of their steps, so that a restarted
// aggregate goes on where the last one was stopped.
type starter struct {
	service *Service
	slots   chan struct{}

	mu      sync.Mutex
	closed  bool
	rounds  map[urn.URN]bool // slices with a round under way; true: another is due
	watched map[slivers.StepID]context.CancelFunc
	all     sync.WaitGroup
}

func newStarter(s *Service) *starter {
	return &starter{
		service: s, slots: make(chan struct{}, stepsAtOnce),
		rounds: map[urn.URN]bool{}, watched: map[slivers.StepID]context.CancelFunc{},
	}
}

// kick has the start-up graph of a slice looked at.
func (k *starter) kick(slice urn.URN) {
	slice = slice.Canonical()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	if _, ok := k.rounds[slice]; ok {
		k.rounds[slice] = true
		return
	}
	k.rounds[slice] = false
	k.all.Add(1)
	go func() {
		defer k.all.Done()
		for again := true; again; {
			if err := k.round(k.service.ctx, slice); err != nil && k.service.ctx.Err() == nil {
				k.service.Log.Error("running a start-up graph", "slice", slice.String(), "error", err)
				k.later(slice, roundAgain)
			}
			k.mu.Lock()
			again = k.rounds[slice] && k.service.ctx.Err() == nil
			if again {
				k.rounds[slice] = false
			} else {
				delete(k.rounds, slice)
			}
			k.mu.Unlock()
		}
	}()
}

// later kicks the slice after a while.
func (k *starter) later(slice urn.URN, after time.Duration) {
	timer := time.AfterFunc(after, func() { k.kick(slice) })
	context.AfterFunc(k.service.ctx, func() { timer.Stop() })
}

// wait lets nothing begin any more, and waits for what is under way. Steps go
// on in their nodes.
func (k *starter) wait() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.all.Wait()
}

// busy takes a slot for something to be done in a node.
func (k *starter) busy(ctx context.Context) (done func(), err error) {
	select {
	case k.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-k.slots }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// graph is the start-up graph of a slice as it is now.
type graph struct {
	steps []slivers.Step // of nodes that live
	nodes map[request.ClientID]*slivers.Sliver
	ends  map[linkEnd]*slivers.Sliver // the links that interfaces are in
}

// linkEnd is an interface of a node.
type linkEnd struct {
	node  urn.URN // canonical
	iface request.ClientID
}

// graph reads the start-up graph of a slice.
func (s *Service) graph(ctx context.Context, slice urn.URN) (*graph, error) {
	live, err := s.live(ctx, slice)
	if err != nil {
		return nil, err
	}
	steps, err := s.Store.Steps(ctx, slice)
	if err != nil {
		return nil, err
	}
	g := &graph{nodes: map[request.ClientID]*slivers.Sliver{}, ends: map[linkEnd]*slivers.Sliver{}}
	lives := map[urn.URN]bool{}
	for i := range live {
		v := &live[i]
		if v.Link != nil {
			for _, e := range v.Link.Ends {
				g.ends[linkEnd{e.Sliver.Canonical(), e.Interface}] = v
			}
		} else if v.Goal != slivers.Release {
			g.nodes[v.ClientID] = v
			lives[v.URN.Canonical()] = true
		}
	}
	for _, st := range steps {
		if lives[st.Sliver.Canonical()] {
			g.steps = append(g.steps, st)
		}
	}
	return g, nil
}

// takesSteps reports whether a node can be worked in.
func takesSteps(v *slivers.Sliver) bool {
	if v.Allocation != slivers.Provisioned {
		return false
	}
	switch v.Operational {
	case slivers.Ready, slivers.ReadyBusy, slivers.UpdatingUsers:
		return true
	}
	return false
}

func situation(v *slivers.Sliver) startup.Situation {
	n := startup.Situation{
		Ready: takesSteps(v), Given: v.Allocation == slivers.Provisioned, Made: v.Node.Made, Boot: v.Node.Boots,
	}
	switch {
	case n.Ready:
	case !n.Given:
		n.Why = "the node is not provisioned"
	case v.Operational == slivers.Failed:
		n.Why = "the node has failed"
	default:
		n.Why = "the node is not ready"
	}
	return n
}

// round does what can be done now for the start-up graph of a slice.
func (k *starter) round(ctx context.Context, slice urn.URN) error {
	s := k.service
	for {
		g, err := s.graph(ctx, slice)
		if err != nil {
			return err
		}
		if k := slices.IndexFunc(g.steps, func(st slivers.Step) bool {
			return over(&st) && s.takesLogins(g.nodes[st.Node]) // others pretend to run
		}); k >= 0 {
			if err := s.endDocument(ctx, &g.steps[k]); err != nil {
				return err
			}
			continue
		}
		if err := k.tellHosts(ctx, g); err != nil {
			return err
		}
		if len(g.steps) == 0 {
			return nil
		}
		situations := make(map[request.ClientID]startup.Situation, len(g.nodes))
		for id, v := range g.nodes {
			situations[id] = situation(v)
		}
		k.mu.Lock()
		watched := make(map[slivers.StepID]bool, len(k.watched))
		for id := range k.watched {
			watched[id] = true
		}
		k.mu.Unlock()
		plan := startup.Next(g.steps, situations, watched)
		changed, err := k.note(ctx, g, plan)
		if err != nil {
			return err
		}
		for _, id := range plan.Begin {
			k.attend(g, id, true)
		}
		for _, id := range plan.Watch {
			k.attend(g, id, false)
		}
		if !changed {
			return nil
		}
	}
}

// note records which steps are skipped, reset and still wait, and reports
// whether that may let others begin or skip.
func (k *starter) note(ctx context.Context, g *graph, plan startup.Plan) (changed bool, err error) {
	var ids []slivers.StepID
	for i := range g.steps {
		st := &g.steps[i]
		_, skip := plan.Skip[st.ID]
		if why, waits := plan.Wait[st.ID]; skip || waits && why != st.Reason {
			ids = append(ids, st.ID)
		}
	}
	ids = append(ids, plan.Reset...)
	if len(ids) == 0 {
		return false, nil
	}
	reset := map[slivers.StepID]bool{}
	for _, id := range plan.Reset {
		reset[id] = true
	}
	now := k.service.Clock()
	err = k.service.Store.UpdateSteps(ctx, ids, func(held []*slivers.Step) error {
		for _, st := range held {
			if why, skip := plan.Skip[st.ID]; skip {
				st.State, st.Reason, st.Ended = slivers.StepSkipped, why, now
				st.Made = g.nodes[st.Node].Node.Made
			} else if reset[st.ID] {
				*st = afresh(st)
			} else {
				st.Reason = plan.Wait[st.ID]
			}
		}
		return nil
	})
	return len(plan.Skip)+len(plan.Reset) > 0, err
}

// rerun has the steps of some slivers tried again that failed or were skipped.
func (s *Service) rerun(ctx context.Context, slice urn.URN, list []slivers.Sliver) error {
	of := map[urn.URN]bool{}
	for _, v := range list {
		of[v.URN.Canonical()] = true
	}
	steps, err := s.Store.Steps(ctx, slice)
	if err != nil {
		return err
	}
	var ids []slivers.StepID
	for _, st := range steps {
		if of[st.Sliver.Canonical()] && (st.State == slivers.StepFailed || st.State == slivers.StepSkipped) {
			ids = append(ids, st.ID)
		}
	}
	return s.Store.UpdateSteps(ctx, ids, func(held []*slivers.Step) error {
		for _, st := range held {
			if st.State == slivers.StepFailed || st.State == slivers.StepSkipped {
				*st = afresh(st)
			}
		}
		return nil
	})
}

// afresh is a step as if it had never been begun. Attempts go on counting: what
// an earlier one has left in the node is not taken for the next one's.
func afresh(st *slivers.Step) slivers.Step {
	v := *st
	v.State, v.Reason, v.Status, v.Outputs, v.Alive = slivers.StepWaiting, "", 0, nil, false
	v.Started, v.Ended, v.Made, v.Boot = time.Time{}, time.Time{}, 0, 0
	return v
}

// tellHosts has the nodes of a slice find each other by name.
func (k *starter) tellHosts(ctx context.Context, g *graph) error {
	wanted := map[urn.URN]string{}
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for _, id := range slices.Sorted(maps.Keys(g.nodes)) {
		v := g.nodes[id]
		if !takesSteps(v) || !k.service.takesLogins(v) {
			continue
		}
		lines := g.hostLines(v)
		digest := hostsDigest(lines, v.Node.Made)
		if lines == "" && v.Node.Hosts == "" || digest == v.Node.Hosts {
			continue
		}
		d, err := k.service.driver(v)
		if err != nil {
			return err
		}
		done, err := k.busy(ctx)
		if err != nil {
			return err
		}
		group.Go(func() {
			defer done()
			ctx, cancel := context.WithTimeout(ctx, hostsTime)
			defer cancel()
			err := startup.Node{Driver: d, Sliver: v.URN}.SetHosts(ctx, lines)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, drivers.ErrNotRunning), errors.Is(err, drivers.ErrNotFound):
			case err != nil:
				// A node whose users have broken it is no failure of the slice.
				k.service.Log.Warn("telling a node of the others", "sliver", v.URN.String(), "error", err)
				wanted[v.URN.Canonical()] = digest
			default:
				wanted[v.URN.Canonical()] = digest
			}
		})
	}
	group.Wait()
	if len(wanted) == 0 || ctx.Err() != nil {
		return errors.Join(append(failed, ctx.Err())...)
	}
	err := k.service.Store.Update(ctx, slices.Collect(maps.Keys(wanted)), func(held []*slivers.Sliver) error {
		for _, v := range held {
			v.Node.Hosts = wanted[v.URN.Canonical()]
		}
		return nil
	})
	return errors.Join(append(failed, err)...)
}

// hostsDigest names what a node's hosts file says, on the disk that it has now.
func hostsDigest(lines string, made int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s", made, lines))
	return hex.EncodeToString(sum[:8])
}
