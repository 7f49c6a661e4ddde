package solver

import (
	"context"
	"math"
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
	a.restore(a.best)
	a.settle()
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

// settle brings nodes back to their hints where that costs nothing, so that
// like requests get like placements.
func (a *search) settle() {
	for v := range a.at {
		h, from := a.p.Nodes[v].Hint, a.at[v]
		if h < 0 || from < 0 || h == from || a.p.Nodes[v].Fixed >= 0 || !a.kinds[a.kind[v]].allows(h) {
			continue
		}
		before, old := a.energy(), a.slot[v]
		a.unplace(int32(v))
		if e := a.fits(int32(v), h); e >= 0 {
			a.place(int32(v), h, e)
			if a.energy() <= before {
				continue
			}
			a.unplace(int32(v))
		}
		a.place(int32(v), from, old)
	}
	a.note()
	if a.energy() > a.best.energy {
		a.restore(a.best)
	}
}
