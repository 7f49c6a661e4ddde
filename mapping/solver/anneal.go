package solver

import "math"

// random is the splitmix64 generator: small, quick and the same everywhere.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below is a number from 0 to n-1.
func (r *random) below(n int32) int32 {
	return int32(uint64(uint32(r.next()>>32)) * uint64(n) >> 32)
}

// surprise is -ln of a uniform number, from a table so that it is the same on
// every machine.
type surprise [1024]float64

func newSurprise() *surprise {
	t := new(surprise)
	for i := range t {
		x := -math.Log((float64(i) + 0.5) / float64(len(t)))
		t[i] = math.Round(x*1e9) / 1e9
	}
	return t
}

// search improves a state step by step.
type search struct {
	*state
	rng      random
	surprise *surprise
	near     []int32 // switch × switch → cost of a link between two hosts there
	nearS    []int32 // the same where one of them is the switch itself
	where    []int32 // host → its only exit switch, -1 if not exactly one
	packs    []bool  // kind → several such nodes may share a host

	band     []int32
	unpacked []int32 // links that found no wire of their own
	moving   []int32
	every    int   // one step in so many is a shift
	whole    int32 // one shift in so many is of a whole switch
	undos    []undo

	best  *snapshot
	steps int64
	stop  func() bool
	cut   bool
}

func newSearch(st *state, seed uint64, stop func() bool) *search {
	a := &search{state: st, rng: random(seed), surprise: newSurprise(), stop: stop}
	s := len(st.tb.switches)
	a.near, a.nearS = make([]int32, s*s), make([]int32, s*s)
	for i := range a.near {
		switch d := cost(st.tb.fabric.dist[i]); {
		case d < 0:
			a.near[i], a.nearS[i] = int32(penaltyLink), int32(penaltyLink)
		case d == 0:
			a.near[i], a.nearS[i] = int32(st.w.intra+2*st.w.wire), int32(st.w.direct+st.w.wire)
		default:
			a.near[i], a.nearS[i] = int32(st.w.inter*d+2*st.w.wire), int32(st.w.inter*(d-1)+st.w.wire)
		}
	}
	a.where = make([]int32, len(st.tb.spec.Hosts))
	for h := range a.where {
		a.where[h] = st.tb.switchOf[h]
		if b := st.single[h]; a.where[h] < 0 && b >= 0 {
			a.where[h] = st.tb.fabric.bundles[b].sw
		}
	}
	a.packs = make([]bool, len(st.kinds))
	for k := range a.packs {
		n := &st.p.Nodes[st.kinds[k].node]
		if n.Exclusive {
			continue
		}
		for _, h := range st.kinds[k].cand {
			for _, t := range n.Types {
				if e := st.tb.slot(h, t); e >= 0 && st.slotFree[e] > n.Slots {
					a.packs[k] = true
				}
			}
			if a.packs[k] {
				break
			}
		}
	}
	a.best = newSnapshot(st)
	return a
}

// snapshot is a placement put aside.
type snapshot struct {
	at, slot   []int32
	kind       []RouteKind
	ra, rb, rp []int32
	rbw        []int64
	energy     cost
	pen        cost
}

func newSnapshot(s *state) *snapshot {
	return &snapshot{at: make([]int32, len(s.at)), slot: make([]int32, len(s.at)), kind: make([]RouteKind, len(s.links)),
		ra: make([]int32, len(s.links)), rb: make([]int32, len(s.links)), rp: make([]int32, len(s.links)),
		rbw: make([]int64, len(s.links)), energy: math.MaxInt64}
}

func (s *state) save(to *snapshot) {
	copy(to.at, s.at)
	copy(to.slot, s.slot)
	copy(to.kind, s.kind_)
	copy(to.ra, s.ra)
	copy(to.rb, s.rb)
	copy(to.rp, s.rp)
	copy(to.rbw, s.rbw)
	to.energy, to.pen = s.energy(), s.pen
}

// restore brings a placement back, ways of links included.
func (s *state) restore(from *snapshot) {
	s.reset()
	for v, h := range from.at {
		if h >= 0 {
			s.placeAlone(int32(v), h, from.slot[v])
		}
	}
	copy(s.kind_, from.kind)
	copy(s.ra, from.ra)
	copy(s.rb, from.rb)
	copy(s.rp, from.rp)
	copy(s.rbw, from.rbw)
	for l := range s.links {
		if s.at[s.links[l].a] >= 0 && s.at[s.links[l].b] >= 0 {
			s.book(int32(l), 1)
		}
	}
}

// anneal takes steps while the temperature sinks from hot to cold.
func (a *search) anneal(steps int64, hot, cold float64) {
	if steps <= 0 || len(a.movable) == 0 {
		return
	}
	const batch = 512
	rounds := (steps + batch - 1) / batch
	factor := math.Pow(cold/hot, 1/float64(rounds))
	t := hot * 1e6
	for range rounds {
		for i := range batch {
			if i%a.every == 0 {
				a.shift(t)
			} else {
				a.step(t)
			}
		}
		a.steps += batch
		t *= factor
		if a.stop() {
			a.cut = true
			break
		}
	}
	a.note()
}

// note keeps the state if it is the best so far.
func (a *search) note() {
	if a.energy() < a.best.energy {
		a.save(a.best)
	}
}

func (a *search) step(t float64) {
	v := a.movable[a.rng.below(int32(len(a.movable)))]
	from := a.at[v]
	to := a.propose(v)
	for range 3 {
		if to >= 0 && to != from && !a.pointless(v, from, to) {
			break
		}
		to = a.propose(v)
	}
	if to < 0 || to == from || a.pointless(v, from, to) {
		return
	}
	threshold := cost(t * a.surprise[a.rng.next()>>54])
	if e := a.fits(v, to); e >= 0 {
		a.move(v, from, to, e, threshold)
		return
	}
	if len(a.occ[to]) == 0 {
		return
	}
	u := a.occ[to][a.rng.below(int32(len(a.occ[to])))]
	if a.p.Nodes[u].Fixed >= 0 {
		return
	}
	a.swap(v, u, from, to, threshold)
}

// pointless says whether going from one host to another would change nothing.
func (a *search) pointless(v, from, to int32) bool {
	k := &a.kinds[a.kind[v]]
	return from >= 0 && a.alike[from] == a.alike[to] && k.on(from) == k.on(to) && len(a.groups[v]) == 0 && !a.packs[a.kind[v]] && len(a.occ[from]) == 1 && len(a.occ[to]) <= 1
}

func (a *search) move(v, from, to, e int32, threshold cost) {
	if from < 0 {
		before := a.energy()
		a.place(v, to, e)
		if a.energy()-before > threshold {
			a.unplace(v)
			return
		}
		a.accepted(before)
		return
	}
	if q, ok := a.quick(v, from, to, -1); ok && q+a.opening(v, from, to, e)-a.slack(v, from) > threshold {
		return
	}
	before := a.energy()
	old := a.slot[v]
	a.unplace(v)
	a.place(v, to, e)
	if a.energy()-before > threshold {
		a.unplace(v)
		a.place(v, from, old)
		return
	}
	a.accepted(before)
}

func (a *search) swap(v, u, from, to int32, threshold cost) {
	if from < 0 {
		// v has no host: u may be driven out, to somewhere else if it finds a
		// place at once.
		before := a.energy()
		old := a.slot[u]
		a.unplace(u)
		if e := a.fits(v, to); e >= 0 {
			a.place(v, to, e)
			for range 4 {
				h := a.propose(u)
				if h < 0 {
					break
				}
				if e := a.fits(u, h); e >= 0 {
					a.place(u, h, e)
					break
				}
			}
			if a.energy()-before <= threshold {
				a.accepted(before)
				return
			}
			if a.at[u] >= 0 {
				a.unplace(u)
			}
			a.unplace(v)
		}
		a.place(u, to, old)
		return
	}
	if !a.kinds[a.kind[u]].allows(from) {
		return
	}
	if q, ok := a.quick(v, from, to, u); ok {
		if r, ok := a.quick(u, to, from, v); ok && q+r-a.slack(v, from)-a.slack(u, to) > threshold {
			return
		}
	}
	before := a.energy()
	oldV, oldU := a.slot[v], a.slot[u]
	a.unplace(v)
	a.unplace(u)
	if e := a.fits(v, to); e >= 0 {
		a.place(v, to, e)
		if e := a.fits(u, from); e >= 0 {
			a.place(u, from, e)
			if a.energy()-before <= threshold {
				a.accepted(before)
				return
			}
			a.unplace(u)
		}
		a.unplace(v)
	}
	a.place(v, from, oldV)
	a.place(u, to, oldU)
}

func (a *search) accepted(before cost) {
	if e := a.energy(); e < before && e < a.best.energy {
		a.save(a.best)
	}
}

// quick is about what moving v changes in the costs of its links and desires,
// without doing it; other is a node that goes the opposite way. It says false
// where that can't be told quickly.
func (a *search) quick(v, from, to, other int32) (cost, bool) {
	wf, wt := a.where[from], a.where[to]
	if wf < 0 || wt < 0 {
		return 0, false
	}
	classes := len(a.tb.classes)
	k := int(a.kind[v]) * classes
	kd := &a.kinds[a.kind[v]]
	c := a.nodeCost[k+int(a.tb.classOf[to])] - a.nodeCost[k+int(a.tb.classOf[from])] + kd.on(to) - kd.on(from)
	s := int32(len(a.tb.switches))
	fs, ts := a.tb.switchOf[from] >= 0, a.tb.switchOf[to] >= 0
	for i := a.incOff[v]; i < a.incOff[v+1]; i++ {
		u := a.incPeer[i]
		q := a.at[u]
		if q < 0 || u == other {
			continue
		}
		w := a.where[q]
		if w < 0 {
			return 0, false
		}
		qs := a.tb.switchOf[q] >= 0
		if q != from {
			if qs || fs {
				c -= cost(a.nearS[wf*s+w])
			} else {
				c -= cost(a.near[wf*s+w])
			}
		} else if !a.links[a.incLink[i]].trivial {
			c -= penaltyLink
		}
		if q != to {
			if qs || ts {
				c += cost(a.nearS[wt*s+w])
			} else {
				c += cost(a.near[wt*s+w])
			}
		} else if !a.links[a.incLink[i]].trivial {
			c += penaltyLink
		}
	}
	return c, true
}

// opening is what hosts and hardware classes cost more when v moves.
func (a *search) opening(v, from, to, e int32) cost {
	var c cost
	if len(a.occ[to]) == 0 && !a.usedBase[to] {
		c += a.w.host
	}
	if len(a.occ[from]) == 1 && !a.usedBase[from] {
		c -= a.w.host
	}
	cf, ct := a.tb.classOf[from], a.tb.classOf[to]
	if cf != ct {
		if !a.tb.slotFix[e] && a.classN[ct] == 0 {
			c += a.w.class
		}
		if a.dynN[from] == 1 && a.classN[cf] == 1 && !a.tb.slotFix[a.slot[v]] {
			c -= a.w.class
		}
	}
	return c
}

// slack is what v's leaving could save beyond what quick and opening tell.
func (a *search) slack(v, from int32) cost {
	c := a.trouble(v)
	if len(a.groups[v]) > 0 {
		_, apart := a.company(v)
		c += apart
	}
	deg := a.incOff[v+1] - a.incOff[v]
	if a.switchN[a.where[from]] <= deg {
		c += a.w.sw
	}
	if a.interN <= deg {
		c += 2 * a.w.sw
	}
	return c
}

// trouble is at least what v has to do with the violations there are.
func (a *search) trouble(v int32) cost {
	if a.pen-a.lost == 0 {
		return 0
	}
	var c cost
	for i := a.incOff[v]; i < a.incOff[v+1]; i++ {
		l, u := a.incLink[i], a.incPeer[i]
		if a.at[u] < 0 {
			continue
		}
		if a.kind_[l] == NoRoute {
			c += penaltyLink
		}
		if p := a.rp[l]; p >= 0 {
			for _, t := range a.paths[p].trunks {
				c += overload(a.load[t]-a.trunkFree[t]+a.trunkSlim[t], a.trunkFree[t])
			}
		}
		c += a.hostTrouble(a.at[u])
	}
	c += a.hostTrouble(a.at[v])
	if len(a.groups[v]) > 0 || a.p.Nodes[v].Parent >= 0 || len(a.parts[v]) > 0 || a.unmixed || len(a.global) > 0 || len(a.limits) > 0 || len(a.quotas) > 0 || a.p.Nodes[v].Class >= 0 {
		c = a.pen
	}
	return c
}

func (a *search) hostTrouble(h int32) cost {
	var c cost
	for b := a.tb.fabric.bundleOff[h]; b < a.tb.fabric.bundleOff[h+1]; b++ {
		_, p := a.bundleCost(b, a.bNon[b], a.bEmu[b], a.bBw[b])
		c += p
	}
	for i := a.tb.addOff[h]; i < a.tb.addOff[h+1]; i++ {
		c += overload(-a.add[i], a.tb.addMax[i])
	}
	if free := a.loopFree[h]; free >= 0 {
		c += overload(a.loop[h]-free, free)
	}
	return c
}

// propose finds a host for v to try, or -1.
func (a *search) propose(v int32) int32 {
	k := &a.kinds[a.kind[v]]
	if len(k.cand) == 0 {
		return -1
	}
	r := a.rng.below(100)
	lo, hi := a.incOff[v], a.incOff[v+1]
	if r < 60 && hi > lo {
		q := a.at[a.incPeer[lo+a.rng.below(hi-lo)]]
		if q >= 0 {
			if a.packs[a.kind[v]] && r < 30 && k.allows(q) {
				return q
			}
			if h := a.pick(k, a.home[q]); h >= 0 {
				return h
			}
		}
	} else if r < 75 {
		if h := a.at[v]; h >= 0 {
			if h := a.pick(k, a.home[h]); h >= 0 {
				return h
			}
		}
	} else if r < 90 {
		q := a.at[a.rng.below(int32(len(a.at)))]
		if q >= 0 {
			if a.packs[a.kind[v]] && r < 85 && k.allows(q) {
				return q
			}
			if h := a.pick(k, a.home[q]); h >= 0 {
				return h
			}
		}
	} else if r < 95 {
		if h := a.at[v]; h >= 0 && int(a.home[h]) < len(a.tb.switches) {
			if next := a.tb.fabric.adj[a.home[h]]; len(next) > 0 {
				if h := a.pick(k, next[a.rng.below(int32(len(next)))].to); h >= 0 {
					return h
				}
			}
		}
	}
	return k.cand[a.rng.below(int32(len(k.cand)))]
}

// pick is any of a kind's hosts at a switch, -1 if there is none.
func (a *search) pick(k *kind, sw int32) int32 {
	lo, hi := k.candOff[sw], k.candOff[sw+1]
	if lo == hi {
		return -1
	}
	return k.cand[lo+a.rng.below(hi-lo)]
}
