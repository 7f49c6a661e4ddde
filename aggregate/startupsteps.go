package aggregate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"croft/drivers"
	"croft/request"
	"croft/slivers"
	"croft/startup"
	"croft/urn"
)

// attend sees to one step until it ends: begins a new attempt, or watches the
// one that is under way.
func (k *starter) attend(g *graph, id slivers.StepID, begin bool) {
	st, ok := g.step(id)
	if !ok {
		return
	}
	v := *g.nodes[st.Node]
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.watched[id] != nil {
		return
	}
	ctx, cancel := context.WithCancel(k.service.ctx)
	k.watched[id] = cancel
	k.all.Add(1)
	go func() {
		defer k.all.Done()
		defer cancel()
		err := k.see(ctx, g, v, st, begin)
		if err != nil && !errors.Is(err, errNodeDown) && k.service.ctx.Err() == nil {
			k.service.Log.Error("running a step", "slice", v.Slice.String(), "sliver", v.URN.String(), "step", string(st.Name), "error", err)
		}
		k.mu.Lock()
		delete(k.watched, id)
		k.mu.Unlock()
		switch {
		case errors.Is(err, errNodeDown):
			k.later(v.Slice, nodeAgain)
		case err != nil:
			k.later(v.Slice, roundAgain)
		default:
			k.kick(v.Slice)
		}
	}()
}

func (g *graph) step(id slivers.StepID) (slivers.Step, bool) {
	for _, st := range g.steps {
		if st.ID == id {
			return st, true
		}
	}
	return slivers.Step{}, false
}

// ending is how an attempt went.
type ending struct {
	result startup.Result
	reason string // why it failed; "" if it did not
}

// see is attend for one who waits.
func (k *starter) see(ctx context.Context, g *graph, v slivers.Sliver, st slivers.Step, begin bool) error {
	s := k.service
	if begin {
		err := s.changeStep(ctx, st.ID, func(h *slivers.Step) {
			*h = afresh(h)
			h.State, h.Attempt = slivers.StepRunning, h.Attempt+1
			h.Started, h.Made, h.Boot = s.Clock(), v.Node.Made, v.Node.Boots
			st = *h
		})
		if err != nil {
			return err
		}
	}
	task, err := s.Store.Task(ctx, st.ID)
	if errors.Is(err, slivers.ErrNotFound) {
		return nil // its node is gone
	}
	if err != nil {
		return err
	}
	if !s.takesLogins(&v) {
		// Nothing runs in nodes that nobody can log in to: they pretend.
		return s.endStep(ctx, &st, ending{})
	}
	d, err := s.driver(&v)
	if err != nil {
		return err
	}
	root, err := drivers.GivesRoot(ctx, d, v.URN)
	if errors.Is(err, drivers.ErrNotFound) {
		return errNodeDown
	}
	if err != nil {
		return err
	}
	job := &stepJob{fresh: begin, keeper: k, node: startup.Node{Driver: d, Sliver: v.URN, NoRoot: !root}, sliver: &v, step: &st, task: &task, graph: g}
	limit := task.Limit
	if limit == 0 {
		limit = stepLimit
	}
	limited, cancel := ctx, func() {}
	if st.Kind != slivers.StepService {
		limited, cancel = context.WithTimeout(ctx, limit-s.Clock().Sub(st.Started))
	}
	end, err := job.do(limited)
	late := limited.Err() != nil && ctx.Err() == nil
	cancel()
	if late {
		end, err = job.cutOff(ctx, limit)
	}
	switch {
	case ctx.Err() != nil:
		return nil // the aggregate stops; the step goes on
	case errors.Is(err, drivers.ErrNotRunning), errors.Is(err, drivers.ErrNotFound):
		return errNodeDown
	case err != nil:
		end = ending{reason: err.Error()}
	}
	if end.reason != "" || st.Kind == slivers.StepService {
		// What ends because its node is stopped is begun again with the node.
		if up, err := s.isUp(ctx, &st); err != nil {
			return err
		} else if !up {
			return errNodeDown
		}
	}
	return s.endStep(ctx, &st, end)
}

// errNodeDown says that a step is to be seen to when its node runs again.
var errNodeDown = errors.New("the node does not run")

// isUp reports whether the node of a step still runs as it did when the step
// began.
func (s *Service) isUp(ctx context.Context, st *slivers.Step) (bool, error) {
	found, err := s.Store.Find(ctx, []urn.URN{st.Sliver})
	if err != nil || len(found) == 0 {
		return false, err
	}
	v := &found[0]
	return takesSteps(v) && v.Node.Made == st.Made && v.Node.Boots == st.Boot, nil
}

// changeStep changes one step, if it is still there.
func (s *Service) changeStep(ctx context.Context, id slivers.StepID, change func(*slivers.Step)) error {
	return s.Store.UpdateSteps(ctx, []slivers.StepID{id}, func(held []*slivers.Step) error {
		for _, h := range held {
			change(h)
		}
		return nil
	})
}

// endStep records how an attempt of a step ended.
func (s *Service) endStep(ctx context.Context, st *slivers.Step, end ending) error {
	ctx = context.WithoutCancel(ctx)
	if err := s.Store.SetStepOutput(ctx, st.ID, end.result.Output); err != nil {
		return err
	}
	if end.reason != "" {
		s.Log.Warn("a step failed", "slice", st.Slice.String(), "sliver", st.Sliver.String(), "step", string(st.Name), "reason", end.reason)
	}
	return s.changeStep(ctx, st.ID, func(h *slivers.Step) {
		if h.Attempt != st.Attempt || h.State == slivers.StepWaiting {
			return // it has been begun anew
		}
		h.State, h.Ended, h.Alive = slivers.StepDone, s.Clock(), false
		h.Status, h.Outputs, h.Reason = end.result.Status, end.result.Outputs, end.reason
		if end.reason != "" {
			h.State = slivers.StepFailed
		}
	})
}

// over reports whether a service has ended with which its document ends.
func over(st *slivers.Step) bool {
	return st.Ends && (st.State == slivers.StepFailed || st.State == slivers.StepDone && !st.Alive)
}

// endDocument gives back all slivers of a document whose service has ended.
func (s *Service) endDocument(ctx context.Context, st *slivers.Step) error {
	unlock, err := s.lock(ctx, st.Slice)
	if err != nil {
		return err
	}
	defer unlock()
	live, err := s.live(ctx, st.Slice)
	if err != nil {
		return err
	}
	var list []slivers.Sliver
	for _, v := range live {
		if v.Document == st.Document {
			list = append(list, v)
		}
	}
	s.Log.Info("a service has ended, and with it what it was for", "slice", st.Slice.String(), "step", string(st.Name), "slivers", len(list))
	s.tellEnding(ctx, st.Slice, list)
	return s.release(ctx, st.Slice, list)
}

// stepJob is one attempt of a step.
type stepJob struct {
	fresh  bool // nothing of it is in the node yet
	keeper *starter
	node   startup.Node
	sliver *slivers.Sliver
	step   *slivers.Step
	task   *request.Step
	graph  *graph
}

func (j *stepJob) attempt() startup.Attempt {
	return startup.Attempt{Step: j.step.Name, Number: j.step.Attempt}
}

func (j *stepJob) account() string {
	if j.task.Root && !j.node.NoRoot {
		return startup.Root
	}
	return firstUser(j.sliver)
}

// do does the step. Its error is why it could not be done at all; a node that
// does not do as it is told is asked a few times.
func (j *stepJob) do(ctx context.Context) (end ending, err error) {
	for try := range stepTries {
		if try > 0 {
			select {
			case <-time.After(retryFirst << try):
			case <-ctx.Done():
				return end, ctx.Err()
			}
		}
		end, err = j.once(ctx)
		var wrong *stepError
		var refused *startup.Refusal
		if err == nil || ctx.Err() != nil || errors.As(err, &wrong) || errors.As(err, &refused) ||
			errors.Is(err, drivers.ErrNotRunning) || errors.Is(err, drivers.ErrNotFound) {
			return end, err
		}
	}
	return end, err
}

// stepError is a failure that trying again would not mend.
type stepError struct{ err error }

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func (j *stepJob) once(ctx context.Context) (ending, error) {
	idle, err := j.keeper.busy(ctx)
	if err != nil {
		return ending{}, err
	}
	defer idle()
	defer func() { j.fresh = false }()
	if !j.fresh {
		r, err := j.node.Read(ctx, j.attempt())
		if err != nil {
			return ending{}, err
		}
		j.fresh = r.Life == startup.None
	}
	if j.fresh && j.step.Attempt > 1 {
		// What the attempt before has left must not get in this one's way.
		if err := j.node.End(ctx, startup.Attempt{Step: j.step.Name, Number: j.step.Attempt - 1}); err != nil {
			return ending{}, err
		}
	}
	if j.fresh {
		for _, f := range j.task.Files {
			if err := j.node.Write(ctx, f, j.account()); err != nil {
				return ending{}, err
			}
		}
	}
	switch {
	case j.task.Run != nil:
		return j.launch(ctx, j.task.Run, startup.Once, idle)
	case j.task.Service != nil:
		mode := startup.Once
		if j.task.Service.Restart {
			mode = startup.Again
		}
		return j.launch(ctx, &j.task.Service.Run, mode, idle)
	case j.task.Install != nil:
		return j.install(ctx, j.task.Install)
	}
	return ending{}, nil
}

// install fetches and unpacks an archive. A manager that ends meanwhile leaves
// it to the next one to do it again: the same files get the same content.
func (j *stepJob) install(ctx context.Context, i *request.Install) (ending, error) {
	f := j.keeper.service.Installs
	if f.Forbidden == nil {
		f.Forbidden = j.graph.ownAddress
	}
	said, err := j.node.Install(ctx, f, i, j.account())
	return ending{result: startup.Result{Output: slivers.StepOutput{Head: []byte(said)}}}, err
}

// launch runs a command and waits for its end.
func (j *stepJob) launch(ctx context.Context, run *request.Run, mode startup.Mode, idle func()) (ending, error) {
	env, err := j.graph.environment(j.sliver, j.task)
	if err != nil {
		return ending{}, &stepError{err}
	}
	err = j.node.Launch(ctx, j.attempt(), j.account(), mode, startup.Command(run, env), func() {
		idle()
		j.started(ctx)
	})
	if err != nil {
		return ending{}, err
	}
	idle, err = j.keeper.busy(ctx)
	if err != nil {
		return ending{}, err
	}
	defer idle()
	r, err := j.node.Read(ctx, j.attempt())
	if err != nil {
		return ending{}, err
	}
	if r.Life == startup.None {
		return ending{}, errors.New("the node does not run it")
	}
	return j.verdict(r), nil
}

// verdict says how an attempt went that is over.
func (j *stepJob) verdict(r startup.Result) ending {
	end := ending{result: r}
	what := "it"
	if j.step.Kind == slivers.StepService {
		what = "the service"
	}
	switch {
	case !end.result.Ended:
		end.reason = what + " was ended from outside: no status was left"
	case end.result.Status > 128:
		end.reason = fmt.Sprintf("%s was ended by signal %d", what, end.result.Status-128)
	case end.result.Status != 0:
		end.reason = fmt.Sprintf("%s ended with status %d", what, end.result.Status)
	}
	return end
}

// started records that a service runs.
func (j *stepJob) started(ctx context.Context) {
	if j.step.Kind != slivers.StepService {
		return
	}
	s := j.keeper.service
	err := s.changeStep(ctx, j.step.ID, func(h *slivers.Step) {
		if h.Attempt == j.step.Attempt && h.State == slivers.StepRunning {
			h.State, h.Alive, h.Ended = slivers.StepDone, true, s.Clock()
		}
	})
	if err != nil && ctx.Err() == nil {
		s.Log.Error("recording that a service runs", "sliver", j.sliver.URN.String(), "step", string(j.step.Name), "error", err)
	}
	j.keeper.kick(j.sliver.Slice)
}

// cutOff ends an attempt that has taken too long.
func (j *stepJob) cutOff(ctx context.Context, limit time.Duration) (ending, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTime)
	defer cancel()
	idle, err := j.keeper.busy(ctx)
	if err != nil {
		return ending{}, err
	}
	defer idle()
	if err := j.node.End(ctx, j.attempt()); err != nil {
		return ending{}, err
	}
	r, err := j.node.Read(ctx, j.attempt())
	if err != nil {
		return ending{}, err
	}
	if r.Ended {
		return j.verdict(r), nil
	}
	return ending{result: r, reason: fmt.Sprintf("it took longer than its limit of %s", limit)}, nil
}
