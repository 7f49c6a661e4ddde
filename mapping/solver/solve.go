// Package solver places graphs of virtual nodes and links onto testbeds.
package solver

import (
	"context"
	"time"
)

// Solve places a problem. It is a pure function of the problem, the seed and
// the effort unless the context or the deadline ends it early.
func Solve(ctx context.Context, p *Problem, o Options) (*Solution, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	in := newInstance(p)
	st := newState(in)
	stop := func() bool {
		return ctx.Err() != nil || !o.Deadline.IsZero() && !time.Now().Before(o.Deadline)
	}
	a := newSearch(st, o.Seed, stop)
	effort := o.Effort
	if effort == 0 {
		effort = 1
	}
	a.construct()
	a.augment()
	a.note()
	steps := int64(effort * Steps(in))
	a.anneal(steps, Hot, Cold)
	a.restore(a.best)
	return a.solution(), nil
}

var Hot, Cold = 0.4, 0.01

var StepsN, StepsNC = 1000., 2.2

func Steps(in *instance) float64 {
	c := 0
	for i := range in.kinds {
		c = max(c, len(in.kinds[i].cand))
	}
	n := float64(len(in.movable))
	return min(8e6, StepsN*n+StepsNC*n*min(float64(c), 25*n))
}
