package solver

// plan is how a search spends its steps.
type plan struct {
	steps     int64 // of one round
	rounds    int   // each from a placement of its own
	every     int
	whole     int32
	hot, cold float64 // temperatures, in units of the score
}

// smallRequest is up to how many nodes a request is small: there, what
// matters is to begin at the right switches, and rounds are cheap.
const smallRequest = 100

// A tiny request among few hosts often has several placements far apart from
// each other: many rounds, begun hot, find the best of them.
const (
	tinyRequest = 16
	fewHosts    = 64
)

// newPlan chooses by size. The steps grow with the nodes and with the hosts
// that they may choose from.
func newPlan(in *instance, effort float64) plan {
	hosts := 0
	for i := range in.kinds {
		hosts = max(hosts, len(in.kinds[i].cand))
	}
	n := float64(len(in.movable))
	p := plan{rounds: 1, every: 150, whole: 16, hot: 0.35, cold: 0.01}
	// With more hosts to choose from than nodes there is more to gain.
	choice := min(5, float64(hosts)/max(n, 1))
	steps := min(8e6, 700*n+(0.6+choice)*n*min(float64(hosts), 25*n))
	if n <= smallRequest {
		p.rounds, p.every, p.whole = 4, 60, 4
		steps = min(1500, 500+20*n)*n + 2.2*n*min(float64(hosts), 25*n)
	}
	if n <= tinyRequest && hosts <= fewHosts {
		p.rounds, p.hot = 32, 1
		steps *= 8
	}
	p.steps = int64(steps*effort) / int64(p.rounds)
	return p
}

// extraRounds are added while something is still wrong with the best found.
const extraRounds = 4

// run searches as planned and leaves the best it found in a.best.
func (a *search) run(p plan) {
	a.every, a.whole = p.every, p.whole
	rounds := p.rounds
	// A search that has found no placement goes on, up to a limit.
	for r := 0; r < rounds || r < rounds+extraRounds && a.best.pen > 0; r++ {
		a.construct()
		a.augment()
		a.note()
		a.anneal(p.steps, p.hot, p.cold)
		if a.cut {
			return
		}
	}
}
