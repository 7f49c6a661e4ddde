package mapping

import (
	"fmt"
	"slices"
	"strings"

	"croft/mapping/solver"
	"croft/request"
)

// refuseWants refuses a request of which some node has no place by itself. Of
// several, what can never be comes first: waiting does not help there.
func (b *board) refuseWants(wants []*want, links *linkage) *Refusal {
	var worst *Refusal
	hopeless := func(r *Refusal) int {
		switch {
		case r.Kind == Impossible || r.Kind == Contradicts || r.Kind == Bandwidth || r.Kind == Disallowed:
			return 2
		case r.Never:
			return 1
		}
		return 0
	}
	for _, w := range wants {
		if len(w.options) > 0 {
			continue
		}
		if r := b.refuseOne(w, links); worst == nil || hopeless(r) > hopeless(worst) {
			worst = r
		}
	}
	if worst != nil && hopeless(worst) == 2 {
		return worst
	}
	if r := b.refuseGroups(wants, links); r != nil {
		return r
	}
	return worst
}

// refuseGroups refuses links between nodes that no one driver can make.
func (b *board) refuseGroups(wants []*want, links *linkage) *Refusal {
	allowed := map[int][]string{}
	driversOf := map[int][]string{} // by node
	for _, w := range wants {
		if w.group == 0 {
			continue // any driver will do
		}
		drivers := b.driversFor(w)
		for _, n := range w.nodes {
			driversOf[n] = drivers
		}
	}
	for node, group := range links.group {
		if group == 0 {
			continue
		}
		drivers := driversOf[node]
		if before, some := allowed[group]; some {
			drivers = common(before, drivers)
		}
		if len(drivers) == 0 {
			return links.refuseDrivers(node)
		}
		allowed[group] = drivers
	}
	return nil
}

// driversFor are the drivers that could make a node, were every host free and
// large enough.
func (b *board) driversFor(w *want) []string {
	var drivers []string
	for i := range b.slots {
		if w.bound >= 0 && w.bound != i {
			continue
		}
		for _, kind := range b.slots[i].types {
			d := b.types[kind].LinkedBy()
			if slices.Contains(drivers, d) {
				continue
			}
			if _, st := b.option(w, i, kind); st >= bySize {
				drivers = append(drivers, d)
			}
		}
	}
	return drivers
}

// refuseTogether refuses a request whose nodes each have a place, but not
// together. It tells apart what an empty testbed could take from what not even
// that could.
func (j *job) refuseTogether(how outcome) *Refusal {
	empty := newBoard(j.ground, j.snapshot, nil, j.slice)
	free := make([]*want, len(j.wants))
	for i, w := range j.wants {
		copied := *w
		empty.consider(&copied)
		free[i] = &copied
	}
	r := &Refusal{Kind: Full, GaveUp: how == undecided}
	_, _, ever := arrange(empty, free, j.links, j.objective.Layout, j.options)
	b, wants := j.board, j.wants
	if ever == proved {
		r.Never = true
		b, wants = empty, free
	}
	r = j.refuseAll(b, wants, r)
	for _, w := range wants {
		if slices.ContainsFunc(w.nodes, func(n int) bool { return j.req.Nodes[n].ID == r.Item }) {
			counts := b.counts(w, wants)
			if r.Hint != "" {
				counts = r.Hint + "; " + counts
			}
			r.Hint = counts
		}
	}
	return r
}

// counts says how many nodes that ask for the same are wanted, and how many
// hosts there are for them.
func (b *board) counts(w *want, wants []*want) string {
	free, taken, out, small, nodes := 0, 0, 0, 0, 0
	for _, o := range wants {
		if o.describe() == w.describe() {
			nodes += len(o.nodes)
		}
	}
	for _, st := range w.stages {
		switch st {
		case fits:
			free++
		case byOwner:
			taken++
		case byRoom:
			small++
		case byService:
			out++
		}
	}
	what := plural(nodes, "such node") + " wanted"
	if d := w.describe(); d != "" {
		what = plural(nodes, "node") + " " + d + " wanted"
	}
	text := fmt.Sprintf("%s, %s free for them", what, plural(free, "host"))
	var more []string
	for _, c := range []struct {
		n   int
		why string
	}{{taken, "taken by others"}, {small, "too full"}, {out, "out of service"}} {
		if c.n > 0 {
			more = append(more, fmt.Sprintf("%d %s", c.n, c.why))
		}
	}
	if len(more) > 0 {
		text += "; of those that would suit, " + strings.Join(more, ", ")
	}
	return text
}

// describe says what kind of host a node wants, shortly.
func (w *want) describe() string {
	var parts []string
	if len(w.node.HardwareTypes) > 0 {
		parts = append(parts, "of type "+strings.Join(w.node.HardwareTypes, " or "))
	}
	if w.sliverType != "" {
		parts = append(parts, "made as "+w.sliverType)
	}
	for _, f := range w.features {
		if f.Weight >= 1 {
			parts = append(parts, "with "+f.Name)
		}
	}
	return strings.Join(parts, " ")
}

// refuseLinks says why a request cannot be placed of which the nodes alone can:
// its links, its groups, or the limits of the testbed are in the way.
func (j *job) refuseLinks(l *layout, sol *solver.Solution) *Refusal {
	r := &Refusal{Kind: Full, GaveUp: sol.Outcome == solver.NotFound, Cut: sol.Cut, Why: "no arrangement was found"}
	// A bottleneck says more than the links that it leaves without a way.
	slices.SortStableFunc(sol.Reasons, func(a, b solver.Reason) int {
		narrow := func(r solver.Reason) int {
			if r.Want == solver.WantBandwidth {
				return 0
			}
			return 1
		}
		return narrow(a) - narrow(b)
	})
	if len(sol.Reasons) > 0 {
		j.explain(r, l, &sol.Reasons[0])
	}
	if r.Item == "" && len(j.req.Links) > 0 {
		r.Item, r.Place = j.req.Links[0].ID, j.req.Links[0].Place
	} else if r.Item == "" {
		r.Item, r.Place = j.req.Nodes[0].ID, j.req.Nodes[0].Place
	}
	var others []string
	for i := range sol.Reasons {
		if i > 0 && i < 4 {
			others = append(others, sol.Reasons[i].Text)
		}
	}
	if len(others) > 0 {
		r.Why += "; also: " + strings.Join(others, "; ")
	}
	// Would it fit if nobody were here?
	empty := *j
	empty.board, empty.offers = newBoard(j.ground, j.snapshot, nil, j.slice), map[offerKey]*offers{}
	empty.wants, empty.wantOf = make([]*want, len(j.wants)), make([]*want, len(j.wantOf))
	for i, w := range j.wants {
		copied := *w
		empty.consider(&copied)
		empty.wants[i] = &copied
		for _, n := range w.nodes {
			empty.wantOf[n] = &copied
		}
	}
	chosen, _, how := arrange(empty.board, empty.wants, j.links, j.objective.Layout, j.options)
	if how != found {
		return r
	}
	_, ever, refused := empty.solve(chosen)
	switch {
	case refused != nil:
	case ever.Outcome == solver.Impossible:
		r.Never = true
	case ever.Outcome == solver.Placed:
		r.Hint = "it would fit if nothing else were on the testbed"
	}
	return r
}

// explain puts a reason of the solver's into words of the request.
func (j *job) explain(r *Refusal, l *layout, why *solver.Reason) {
	r.Why = why.Text
	switch why.Want {
	case solver.WantBandwidth:
		r.Kind = Bandwidth
	case solver.WantInterface, solver.WantHost, solver.WantCount, solver.WantGroup:
		r.Kind = Full
	}
	if len(why.Links) > 0 {
		at := l.linkOf[why.Links[0]]
		r.Item, r.Place = j.req.Links[at].ID, j.req.Links[at].Place
		if j.links.rates[at] > 0 && why.Want == solver.WantInterface {
			r.Kind = Bandwidth
		}
		return
	}
	for _, v := range why.Nodes {
		if int(v) < len(j.req.Nodes) {
			r.Item, r.Place = j.req.Nodes[v].ID, j.req.Nodes[v].Place
			return
		}
		for i, b := range l.bridges {
			if b == v {
				r.Item, r.Place = j.req.Links[i].ID, j.req.Links[i].Place
				return
			}
		}
	}
	for _, g := range j.links.groups {
		if why.Want == solver.WantGroup && g.hard() {
			r.Item, r.Place = request.ClientID(g.group.Name), g.group.Place
			return
		}
	}
}
