package mapping

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"croft/capacity"
	"croft/inventory"
	"croft/mapping/solver"
	"croft/request"
	"croft/urn"
)

// Optimizer is the Mapper: it places nodes and finds ways for links with
// package solver, so that the objective costs least. Before that, an exact
// search on the nodes alone proves what cannot be placed, says why, and gives
// the solver a placement to start from.
//
// It keeps the last few snapshots ready for mapping and may be used by many at
// once. The zero Optimizer has the default objective.
type Optimizer struct {
	Objective Objective
	// Effort is used where the options leave it open.
	Effort int
	// Limit ends searches after that time by Clock, unless the options have a
	// deadline of their own; 0 for none.
	Limit time.Duration
	Clock func() time.Time // needed with a Limit

	grounds grounds
}

var _ Mapper = (*Optimizer)(nil)

// Map places a request. The error is a *Refusal, unless the inventory itself
// cannot be mapped on.
func (m *Optimizer) Map(snapshot *inventory.Snapshot, occupancy Occupancy, req *request.Request, options Options) (*Placement, error) {
	p, _, err := m.Explain(snapshot, occupancy, req, options)
	return p, err
}

// Explain is Map, and tells how the answer came about. Of a refusal, the
// explanation tells of as much as there is.
func (m *Optimizer) Explain(snapshot *inventory.Snapshot, occupancy Occupancy, req *request.Request, options Options) (*Placement, *Explanation, error) {
	g, err := m.grounds.of(snapshot)
	if err != nil {
		return nil, nil, err
	}
	options.Effort = cmp.Or(options.Effort, m.Effort)
	if m.Limit > 0 && options.Deadline.IsZero() {
		options.Deadline, options.Clock = m.Clock().Add(m.Limit), m.Clock
	}
	x := &Explanation{}
	p, r := m.withOptional(g, snapshot, &occupancy, nameShared(snapshot, req), options, x)
	if r != nil {
		return nil, x, r
	}
	return p, x, nil
}

// whole places all of a request.
func (m *Optimizer) whole(g *ground, snapshot *inventory.Snapshot, occupancy *Occupancy, req *request.Request, options Options, x *Explanation) (*Placement, *Refusal) {
	b := newBoard(g, snapshot, occupancy, options.Slice)
	links, r := newLinkage(b, occupancy.Existing, req, nil)
	if r != nil {
		return nil, r
	}
	if len(links.unshaped) == 0 {
		return m.linked(b, links, nil, req, options, x)
	}
	if r := links.refuseUnshaped(options.DelayNodes); r != nil {
		return nil, r
	}
	d := links.delayed()
	if links, r = newLinkage(b, occupancy.Existing, d.request, d); r == nil {
		var p *Placement
		if p, r = m.linked(b, links, d, d.request, options, x); r == nil {
			return p, nil
		}
	}
	return nil, d.about(r)
}

// linked places a request whose links are resolved. delays are the delay nodes
// in it, nil for none.
func (m *Optimizer) linked(b *board, links *linkage, delays *delays, req *request.Request, options Options, x *Explanation) (*Placement, *Refusal) {
	wants, r := b.wants(req, links)
	if r != nil {
		return nil, r
	}
	for _, w := range wants {
		b.consider(w)
	}
	j := &job{board: b, req: req, links: links, delays: delays, wants: wants, objective: m.Objective.or(), options: options,
		limits: b.limits(links.existing), wantOf: make([]*want, len(req.Nodes)), offers: map[offerKey]*offers{}}
	for _, w := range wants {
		for _, n := range w.nodes {
			j.wantOf[n] = w
		}
	}
	x.candidates(j)
	if r := b.refuseWants(wants, links); r != nil {
		return nil, r
	}
	if r := b.refuseLimits(j.limits, wants, req); r != nil {
		return nil, r
	}
	chosen, _, how := arrange(b, wants, links, j.objective.Layout, options)
	if how == proved {
		return nil, j.refuseTogether(how)
	}
	l, sol, r := j.solve(chosen)
	if r != nil {
		return nil, r
	}
	if sol.Outcome != solver.Placed {
		if better, other := j.otherTypes(); better != nil {
			l, sol = other, better
		}
	}
	if sol.Outcome != solver.Placed {
		if how == undecided {
			return nil, j.refuseTogether(how)
		}
		return nil, j.refuseLinks(l, sol)
	}
	p, r := j.placement(l, sol)
	if r != nil && j.scarce {
		// Perhaps with fewer links that leave their hosts.
		j.sparing = true
		again, other, failed := j.solve(chosen)
		if failed == nil && other.Outcome == solver.Placed {
			l, sol = again, other
			p, r = j.placement(l, sol)
		}
		if r != nil {
			r.GaveUp = true
		}
	}
	if r == nil {
		x.chosen(j, l, sol, p)
	}
	return p, r
}

// solve has the solver place the job. A nil chosen is not known.
func (j *job) solve(chosen []option) (*layout, *solver.Solution, *Refusal) {
	l := j.problem(chosen)
	keep := keepHints
	if j.sparing {
		l.problem.Weights.Wire, l.problem.Weights.EmulatedLink = sparingWire, sparingWire
		keep = 0
	}
	sol, err := solver.Solve(context.Background(), l.problem, solver.Options{
		Seed: j.options.Start + 1, Effort: solverEffort * float64(cmp.Or(max(0, j.options.Effort), DefaultEffort)) / DefaultEffort,
		Keep: keep, Deadline: j.options.Deadline, Clock: j.options.Clock,
	})
	if err != nil {
		return nil, nil, &Refusal{Kind: Impossible, Why: fmt.Sprintf("the mapper contradicts itself: %v", err)}
	}
	return l, sol, nil
}

// solverEffort is how much the solver searches with the default effort, of what
// it would by itself: it has a placement to start from.
const solverEffort = 0.5

// keepHints is how much a placement must gain to be preferred to that of the
// search on the nodes alone, which changes little with the request.
const keepHints = 0.04

// sparingWire is what a link costs on a wire where links over switches are
// scarce: more than anything else.
const sparingWire = 3

// otherTypes tries nodes that leave their type open as one type after another:
// the search on the nodes alone has chosen one that their links may have no way
// for.
func (j *job) otherTypes() (*solver.Solution, *layout) {
	open := slices.ContainsFunc(j.wants, func(w *want) bool {
		return slices.ContainsFunc(w.options, func(o option) bool { return o.kind != w.options[0].kind })
	})
	if !open {
		return nil, nil
	}
	all := j.wants
	defer func() { j.wants = all }()
	for kind := range j.types {
		changed := false
		few := make([]*want, len(all))
		for i, w := range all {
			few[i] = w
			is := func(o option) bool { return o.kind == kind }
			if slices.ContainsFunc(w.options, is) && !slices.ContainsFunc(w.options, func(o option) bool { return !is(o) }) || !slices.ContainsFunc(w.options, is) {
				continue
			}
			few[i] = w.only(kind)
			changed = true
		}
		if !changed {
			continue
		}
		j.wants = few
		chosen, _, how := arrange(j.board, few, j.links, j.objective.Layout, j.options)
		if how != found {
			continue
		}
		if l, sol, r := j.solve(chosen); r == nil && sol.Outcome == solver.Placed {
			return sol, l
		}
	}
	return nil, nil
}

// only is a want with the options of one type.
func (w *want) only(kind int) *want {
	few := *w
	few.options, few.first = nil, make([]int32, len(w.first))
	for at := range len(w.first) - 1 {
		few.first[at] = int32(len(few.options))
		for _, o := range w.options[w.first[at]:w.first[at+1]] {
			if o.kind == kind {
				few.options = append(few.options, o)
			}
		}
	}
	few.first[len(few.first)-1] = int32(len(few.options))
	return &few
}

// within is the host that carries a whole link; zero if it crosses hosts.
func (l *linkage) within(link int, p *Placement) urn.URN {
	var host urn.URN
	for i, e := range l.ends[link] {
		var at urn.URN
		if e.node >= 0 {
			at = p.Nodes[e.node].Host
		} else {
			at = l.existing[e.existing].Host
		}
		if i > 0 && !at.Equal(host) {
			return urn.URN{}
		}
		host = at
	}
	return host
}

func kbps(n int64) capacity.Kbps { return capacity.Kbps(n) }
