package aggregate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"croft/credentials"
	"croft/drivers"
	"croft/request"
	"croft/slivers"
	"croft/startup"
	"croft/urn"
)

// StepView is a step of a start-up graph and how it goes.
type StepView struct {
	slivers.Step
	// Output is what it has written so far, if that was asked for.
	Output slivers.StepOutput
}

// Text is the output as one text, with a line for what was left out.
func (v StepView) Text() []byte {
	text := append([]byte{}, v.Output.Head...)
	if v.Output.Left > 0 {
		text = fmt.Appendf(text, "\n[%d bytes left out]\n", v.Output.Left)
	}
	return append(text, v.Output.Tail...)
}

// Startup tells how the start-up graph of a target goes, in the order of its
// documents. With output, it tells what the steps have written, too: what has
// ended from the store, what runs from its node.
func (s *Service) Startup(ctx context.Context, p *credentials.Principal, t Target, output bool) ([]StepView, error) {
	views, err := s.startupViews(ctx, p, t, output)
	if err != nil {
		return nil, fail("tell of the start-up of", t.Slice, err)
	}
	return views, nil
}

func (s *Service) startupViews(ctx context.Context, p *credentials.Principal, t Target, output bool) ([]StepView, error) {
	if _, err := p.May(credentials.Status, t.Slice, t.Slivers...); err != nil {
		return nil, err
	}
	_, picked, _, err := s.pick(ctx, t, false)
	if err != nil {
		return nil, err
	}
	return s.views(ctx, t.Slice, picked, output)
}

// views are those of the steps of some slivers.
func (s *Service) views(ctx context.Context, slice urn.URN, of []slivers.Sliver, output bool) ([]StepView, error) {
	nodes := map[urn.URN]*slivers.Sliver{}
	for i := range of {
		if of[i].Node != nil {
			nodes[of[i].URN.Canonical()] = &of[i]
		}
	}
	steps, err := s.Store.Steps(ctx, slice)
	if err != nil {
		return nil, err
	}
	var views []StepView
	for _, st := range steps {
		v := nodes[st.Sliver.Canonical()]
		if v == nil {
			continue
		}
		view := StepView{Step: st}
		if output {
			if view.Output, err = s.output(ctx, v, &st); err != nil {
				return nil, err
			}
		}
		views = append(views, view)
	}
	return views, nil
}

// output is what a step has written so far.
func (s *Service) output(ctx context.Context, v *slivers.Sliver, st *slivers.Step) (slivers.StepOutput, error) {
	if (st.State == slivers.StepRunning || st.Alive) && takesSteps(v) && s.takesLogins(v) {
		if d, err := s.driver(v); err == nil {
			r, err := startup.Node{Driver: d, Sliver: v.URN}.Read(ctx, startup.Attempt{Step: st.Name, Number: st.Attempt})
			if err == nil {
				return r.Output, nil
			}
		}
	}
	out, err := s.Store.StepOutput(ctx, st.ID)
	if errors.Is(err, slivers.ErrNotFound) {
		err = nil
	}
	return out, err
}

// FollowStep writes the output of a step of a slice as it grows, until the
// step, or the service that it has started, ends.
func (s *Service) FollowStep(ctx context.Context, p *credentials.Principal, slice urn.URN, name request.StepName, w io.Writer) error {
	if err := s.followStep(ctx, p, slice, name, w); err != nil {
		return fail("follow step "+string(name)+" of", slice, err)
	}
	return nil
}

func (s *Service) followStep(ctx context.Context, p *credentials.Principal, slice urn.URN, name request.StepName, w io.Writer) error {
	views, err := s.startupViews(ctx, p, Target{Slice: slice}, false)
	if err != nil {
		return err
	}
	for _, v := range views {
		if v.Name != name {
			continue
		}
		found, err := s.Store.Find(ctx, []urn.URN{v.Sliver})
		if err != nil || len(found) == 0 {
			return errors.Join(err, slivers.ErrNotFound)
		}
		node := &found[0]
		if (v.State == slivers.StepRunning || v.Alive) && takesSteps(node) {
			d, err := s.driver(node)
			if err != nil {
				return err
			}
			return startup.Node{Driver: d, Sliver: node.URN}.Follow(ctx, startup.Attempt{Step: name, Number: v.Attempt}, w)
		}
		if v.Output, err = s.Store.StepOutput(ctx, v.ID); err != nil {
			return err
		}
		_, err = w.Write(v.Text())
		return err
	}
	return refuse(NotFound, "the slice has no such step here")
}

// Console writes what the console of a node and its driver have said.
func (s *Service) Console(ctx context.Context, p *credentials.Principal, slice, node urn.URN, w io.Writer) error {
	if err := s.console(ctx, p, slice, node, w); err != nil {
		return fail("read the console of", node, err)
	}
	return nil
}

func (s *Service) console(ctx context.Context, p *credentials.Principal, slice, node urn.URN, w io.Writer) error {
	if _, err := p.May(credentials.Status, slice, node); err != nil {
		return err
	}
	_, picked, _, err := s.pick(ctx, Target{Slice: slice, Slivers: []urn.URN{node}}, false)
	if err != nil {
		return err
	}
	if picked[0].Node == nil {
		return refuse(BadArgs, "a link has no console")
	}
	d, err := s.driver(&picked[0])
	if err != nil {
		return err
	}
	if err := d.Log(ctx, node, w); err != nil && !errors.Is(err, drivers.ErrNotFound) {
		return err
	}
	return nil
}

// Resolved is a value of a slice, or why it has none yet.
type Resolved struct {
	Text string
	Err  error
}

// Values resolves values against the nodes and steps of a slice as they are
// now: outputs of languages that have such.
func (s *Service) Values(ctx context.Context, p *credentials.Principal, slice urn.URN, values []request.Value) ([]Resolved, error) {
	if _, err := p.May(credentials.Describe, slice); err != nil {
		return nil, fail("resolve values of", slice, err)
	}
	g, err := s.graph(ctx, slice)
	if err != nil {
		return nil, fail("resolve values of", slice, err)
	}
	list := make([]Resolved, len(values))
	for i, v := range values {
		list[i].Text, list[i].Err = g.value(v)
	}
	return list, nil
}
