package solver

import (
	"context"
	"math"
	"slices"
	"time"
)

// packTries bounds how often a placement is searched again because its links
// did not fit on single wires.
const packTries = 3

// Solve places a problem. It is a pure function of the problem, the seed and
// the effort unless the context or the deadline ends it early.
func Solve(ctx context.Context, p *Problem, o Options) (*Solution, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	in := newInstance(p)
	if reasons := in.impossible(); len(reasons) > 0 {
		return in.refuse(reasons), nil
	}
	st := newState(in)
	now := o.Clock
	if now == nil {
		now = time.Now
	}
	stop := func() bool {
		return ctx.Err() != nil || !o.Deadline.IsZero() && !now().Before(o.Deadline)
	}
	a := newSearch(st, o.Seed, stop)
	effort := o.Effort
	if effort == 0 {
		effort = 1
	}
	pl := newPlan(in, effort)
	a.run(pl)
	if o.Keep <= 0 || !a.keepHints(o.Keep) {
		a.restore(a.best)
		a.settle()
	}
	sol := a.solution()
	for try := 0; try < packTries && a.pen == 0 && len(a.unpacked) > 0 && !a.cut; try++ {
		// What fits in sum may not fit on single wires: hold something back and
		// search again from there.
		a.holdBack()
		a.best.energy = math.MaxInt64
		a.restore(a.best)
		a.anneal(pl.steps/4+1000, pl.cold*4, pl.cold)
		a.restore(a.best)
		sol = a.solution()
	}
	if sol.Outcome != Placed {
		sol.Reasons = a.wrong(sol)
	}
	return sol, nil
}

// keepHints takes the placement that follows the hints if it is whole and not
// much worse than the best one.
func (a *search) keepHints(margin float64) bool {
	best := a.best
	a.best = newSnapshot(a.state)
	a.construct()
	a.save(a.best)
	if a.best.pen == 0 && a.best.energy <= best.energy+micros(margin) && a.hinted() {
		return true
	}
	a.best = best
	a.restore(best)
	return false
}

// hinted reports whether every node with a hint is there.
func (a *search) hinted() bool {
	for v, h := range a.at {
		if hint := a.p.Nodes[v].Hint; hint >= 0 && h != hint {
			return false
		}
	}
	return true
}

// settle brings nodes back to their hints where that costs nothing, alone or
// in exchange with who is there, so that like requests get like placements.
func (a *search) settle() {
	for pass, changed := 0, true; changed && pass < 4; pass++ {
		changed = false
		for v := range int32(len(a.at)) {
			changed = a.settleOne(v) || changed
		}
	}
	for v := range int32(len(a.at)) {
		a.settleFirst(v)
	}
	if a.energy() > a.best.energy {
		a.restore(a.best)
		return
	}
	a.save(a.best)
}

// maxSettle bounds how many hosts settleFirst tries.
const maxSettle = 32

// settleFirst moves a node to the first host at its switch that does as well.
func (a *search) settleFirst(v int32) {
	from := a.at[v]
	if from < 0 || from == a.p.Nodes[v].Hint || a.p.Nodes[v].Fixed >= 0 {
		return
	}
	k := &a.kinds[a.kind[v]]
	tried := 0
	for _, h := range k.cand[k.candOff[a.home[from]]:k.candOff[a.home[from]+1]] {
		if h >= from || tried == maxSettle {
			return
		}
		e := a.fits(v, h)
		if e < 0 {
			continue
		}
		tried++
		before, old := a.energy(), a.slot[v]
		a.unplace(v)
		a.place(v, h, e)
		if a.energy() <= before {
			return
		}
		a.unplace(v)
		a.place(v, from, old)
	}
}

func (a *search) settleOne(v int32) bool {
	h, from := a.p.Nodes[v].Hint, a.at[v]
	if h < 0 || from < 0 || h == from || a.p.Nodes[v].Fixed >= 0 || !a.kinds[a.kind[v]].allows(h) {
		return false
	}
	before, old := a.energy(), a.slot[v]
	if e := a.fits(v, h); e >= 0 {
		a.unplace(v)
		a.place(v, h, e)
		if a.energy() <= before {
			return true
		}
		a.unplace(v)
		a.place(v, from, old)
	}
	for _, u := range slices.Clone(a.occ[h]) {
		if a.p.Nodes[u].Fixed >= 0 || a.p.Nodes[u].Hint == h || !a.kinds[a.kind[u]].allows(from) {
			continue
		}
		oldU := a.slot[u]
		a.unplace(v)
		a.unplace(u)
		if e := a.fits(v, h); e >= 0 {
			a.place(v, h, e)
			if e := a.fits(u, from); e >= 0 {
				a.place(u, from, e)
				if a.energy() <= before {
					return true
				}
				a.unplace(u)
			}
			a.unplace(v)
		}
		a.place(u, h, oldU)
		a.place(v, from, old)
	}
	return false
}
