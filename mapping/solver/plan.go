package solver

// plan is how a search spends its steps.
type plan struct {
	steps     int64 // of one round
	rounds    int   // each from a placement of its own
	every     int
	whole     int32
	hot, cold float64 // temperatures, in units of the score
}

// Tuning is for measuring only.
var Tuning struct {
	Hot, Cold, N, NC, NS float64
	Rounds               int
}

// smallRequest is up to how many nodes a request is small: there, what
// matters is to begin at the right switches, and rounds are cheap.
const smallRequest = 100

// newPlan chooses by size. The steps grow with the nodes and with the hosts
// that they may choose from.
func newPlan(in *instance, effort float64) plan {
	hosts := 0
	for i := range in.kinds {
		hosts = max(hosts, len(in.kinds[i].cand))
	}
	n := float64(len(in.movable))
	p := plan{rounds: 1, every: 150, whole: 16, hot: 0.4, cold: 0.01}
	steps := min(8e6, 1000*n+2.2*n*min(float64(hosts), 25*n))
	if n <= smallRequest {
		p.rounds, p.every, p.whole = 4, 60, 4
		steps = 1500*n + 2.2*n*min(float64(hosts), 25*n)
	}
	if Tuning.Hot > 0 {
		p.hot = Tuning.Hot
	}
	if Tuning.Cold > 0 {
		p.cold = Tuning.Cold
	}
	if Tuning.N > 0 {
		steps = min(8e6, Tuning.N*n+Tuning.NC*n*min(float64(hosts), 25*n))
	}
	if Tuning.Rounds > 0 {
		p.rounds = Tuning.Rounds
	}
	p.steps = int64(steps*effort) / int64(p.rounds)
	return p
}

// run searches as planned and leaves the best it found in a.best.
func (a *search) run(p plan) {
	a.every, a.whole = p.every, p.whole
	for range p.rounds {
		a.construct()
		a.augment()
		a.note()
		a.anneal(p.steps, p.hot, p.cold)
		if a.cut {
			return
		}
	}
}
