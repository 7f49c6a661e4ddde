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
	pl := newPlan(in, effort)
	a.run(pl)
	a.restore(a.best)
	return a.solution(), nil
}
