package solver

// Penalties keep violations out. They are no part of the score; each has a
// fixed part, so that the smallest violation costs more than it could save.
const (
	penalty     cost = 2_000_000
	penaltyLost cost = 8_000_000 // a node without a host
	penaltyLink cost = 4_000_000 // a link without a way
)

// state is a placement in the making with all its sums, kept up to date by
// place and unplace. What it costs is a function of where the nodes are and
// which ways their links go, never of how it came about.
type state struct {
	*instance

	at   []int32 // node → host, -1 if none
	slot []int32 // node → slot entry
	pos  []int32 // node → index among the host's occupants

	occ       [][]int32 // host → nodes
	exclusive []int32   // host → exclusive nodes on it
	dyn       []int32   // host → slot entry in use among those that exclude each other
	dynN      []int32   // host → nodes that use it
	left      []int32   // slot entry → slots free
	add       []int64   // additive capacity → free, negative if overloaded
	loop      []int64   // host → bandwidth used within
	classN    []int32   // hardware class → hosts used
	switchN   []int32   // switch → links that pass
	bNon      []int32   // bundle → links that own an interface
	bEmu      []int32   // bundle → emulated links
	bBw       []int64   // bundle → bandwidth of emulated links
	load      []int64   // trunk → bandwidth
	classT    [][]int32 // class of nodes × type → nodes
	globalN   []int32
	quotaN    []int64
	limitN    []int64
	mixOut    []int32 // node → links that leave the host
	mixIn     []int32 // node → links within the host

	kind_ []RouteKind // link → kind of route; NoRoute also while an end has no host
	ra    []int32     // link → bundle at end A, -1 if none
	rb    []int32
	rp    []int32 // link → path, -1 if none
	rbw   []int64 // link → bandwidth taken

	interN int32 // links through several switches

	score cost
	pen   cost
	lost  cost // the part of pen for nodes without a host
}

func newState(in *instance) *state {
	hosts, nodes := len(in.tb.spec.Hosts), len(in.p.Nodes)
	s := &state{instance: in}
	s.at, s.slot, s.pos = make([]int32, nodes), make([]int32, nodes), make([]int32, nodes)
	s.occ = make([][]int32, hosts)
	s.exclusive, s.dyn, s.dynN = make([]int32, hosts), make([]int32, hosts), make([]int32, hosts)
	s.left = make([]int32, len(in.slotFree))
	s.add = make([]int64, len(in.addFree))
	s.loop = make([]int64, hosts)
	s.classN = make([]int32, len(in.tb.classes))
	s.switchN = make([]int32, len(in.tb.switches))
	s.bNon, s.bEmu, s.bBw = make([]int32, len(in.bCount)), make([]int32, len(in.bCount)), make([]int64, len(in.bCount))
	s.load = make([]int64, len(in.trunkFree))
	s.classT = make([][]int32, len(in.p.Classes))
	for c := range s.classT {
		s.classT[c] = make([]int32, len(in.tb.spec.Types))
	}
	s.globalN = make([]int32, len(in.global))
	s.limitN = make([]int64, len(in.limits))
	s.quotaN = make([]int64, len(in.quotas))
	s.mixOut, s.mixIn = make([]int32, nodes), make([]int32, nodes)
	links := len(in.links)
	s.kind_ = make([]RouteKind, links)
	s.ra, s.rb, s.rp, s.rbw = make([]int32, links), make([]int32, links), make([]int32, links), make([]int64, links)
	s.reset()
	return s
}

// reset takes every node off its host.
func (s *state) reset() {
	for v := range s.at {
		s.at[v], s.slot[v] = -1, -1
		s.mixIn[v], s.mixOut[v] = 0, 0
	}
	for h := range s.occ {
		s.occ[h] = s.occ[h][:0]
	}
	clear(s.exclusive)
	copy(s.dyn, s.dynBase)
	clear(s.dynN)
	copy(s.left, s.slotFree)
	copy(s.add, s.addFree)
	clear(s.loop)
	clear(s.classN)
	clear(s.switchN)
	clear(s.bNon)
	clear(s.bEmu)
	clear(s.bBw)
	clear(s.load)
	for c := range s.classT {
		clear(s.classT[c])
	}
	clear(s.globalN)
	clear(s.limitN)
	clear(s.quotaN)
	clear(s.kind_)
	s.interN = 0
	s.score = 0
	s.pen = penaltyLost * cost(len(s.at))
	s.lost = s.pen
}

func (s *state) energy() cost { return s.score + s.pen }

// fits finds the slots that node v would get on host h as things are, or -1.
// The host must be one of the node's candidates.
func (s *state) fits(v, h int32) int32 {
	n := &s.p.Nodes[v]
	if s.exclusive[h] > 0 || n.Exclusive && len(s.occ[h]) > 0 {
		return -1
	}
	first := int32(-1)
	cur := s.dyn[h]
	for _, t := range n.Types {
		for e := s.tb.slotOff[h]; e < s.tb.slotOff[h+1]; e++ {
			if s.tb.slotType[e] != t || s.left[e] < n.Slots {
				continue
			}
			if e == cur {
				return e
			}
			if first < 0 && (cur < 0 || s.tb.slotFix[e]) {
				first = e
			}
		}
	}
	return first
}

// place puts node v on host h in slots e, which fits has found, and finds ways
// for its links.
func (s *state) place(v, h, e int32) {
	s.placeAlone(v, h, e)
	for i := s.incOff[v]; i < s.incOff[v+1]; i++ {
		if s.at[s.incPeer[i]] >= 0 {
			s.route(s.incLink[i])
		}
	}
}

// placeAlone puts a node on a host and leaves its links alone.
func (s *state) placeAlone(v, h, e int32) {
	tb := s.tb
	n := &s.p.Nodes[v]
	class := tb.classOf[h]
	s.at[v], s.slot[v], s.pos[v] = h, e, int32(len(s.occ[h]))
	s.occ[h] = append(s.occ[h], v)
	s.pen -= penaltyLost
	s.lost -= penaltyLost
	if len(s.occ[h]) == 1 && !s.usedBase[h] {
		s.score += s.w.host
		s.limit(class, 1)
	}
	if n.Exclusive {
		s.exclusive[h]++
	}
	s.left[e] -= n.Slots
	if !tb.slotFix[e] {
		s.dyn[h] = e
		s.dynN[h]++
		if s.dynN[h] == 1 {
			s.classN[class]++
			if s.classN[class] == 1 {
				s.score += s.w.class
			}
		}
	}
	s.score += s.nodeCost[int(s.kind[v])*len(tb.classes)+int(class)] + s.kinds[s.kind[v]].on(h)
	s.quota(v, h, 1)
	s.addUp(v, h, 1)
	if n.Class >= 0 {
		s.classUp(n.Class, tb.slotType[e], 1)
	}
	s.globalsUp(v, class, 1)
	if len(s.groups[v]) > 0 || n.Parent >= 0 || len(s.parts[v]) > 0 {
		pen, score := s.company(v)
		s.pen += pen
		s.score += score
	}
}

// unplace takes node v off its host.
func (s *state) unplace(v int32) {
	tb := s.tb
	n := &s.p.Nodes[v]
	h, e := s.at[v], s.slot[v]
	class := tb.classOf[h]
	for i := s.incOff[v]; i < s.incOff[v+1]; i++ {
		if s.at[s.incPeer[i]] >= 0 {
			s.unroute(s.incLink[i])
		}
	}
	if len(s.groups[v]) > 0 || n.Parent >= 0 || len(s.parts[v]) > 0 {
		pen, score := s.company(v)
		s.pen -= pen
		s.score -= score
	}
	s.globalsUp(v, class, -1)
	if n.Class >= 0 {
		s.classUp(n.Class, tb.slotType[e], -1)
	}
	s.addUp(v, h, -1)
	s.score -= s.nodeCost[int(s.kind[v])*len(tb.classes)+int(class)] + s.kinds[s.kind[v]].on(h)
	s.quota(v, h, -1)
	if !tb.slotFix[e] {
		s.dynN[h]--
		if s.dynN[h] == 0 {
			s.dyn[h] = s.dynBase[h]
			s.classN[class]--
			if s.classN[class] == 0 {
				s.score -= s.w.class
			}
		}
	}
	s.left[e] += n.Slots
	if n.Exclusive {
		s.exclusive[h]--
	}
	if len(s.occ[h]) == 1 && !s.usedBase[h] {
		s.score -= s.w.host
		s.limit(class, -1)
	}
	last := len(s.occ[h]) - 1
	moved := s.occ[h][last]
	s.occ[h][s.pos[v]] = moved
	s.pos[moved] = s.pos[v]
	s.occ[h] = s.occ[h][:last]
	s.pen += penaltyLost
	s.lost += penaltyLost
	s.at[v], s.slot[v] = -1, -1
}

func (s *state) addUp(v, h int32, sign int64) {
	for _, a := range s.adds[v] {
		i := s.tb.additive(h, a.feature)
		if i < 0 {
			continue
		}
		s.pen -= overload(-s.add[i], s.tb.addMax[i])
		s.add[i] -= sign * a.amount
		s.pen += overload(-s.add[i], s.tb.addMax[i])
	}
}

// overload is the penalty for what is over a capacity.
func overload(over, capacity int64) cost {
	if over <= 0 {
		return 0
	}
	if capacity <= 0 {
		capacity = 1
	}
	// In floating point the product cannot overflow; both steps are exact
	// enough to be the same everywhere because one operation is rounded at a
	// time.
	part := float64(over) / float64(capacity)
	if part > 100 {
		part = 100
	}
	return penalty/2 + cost(part*float64(2*penalty))
}

func (s *state) classUp(class int32, t TypeID, by int32) {
	d := s.classT[class]
	old := d[t]
	d[t] += by
	// Whether the class is mixed changes only when a type comes or goes.
	if old != 0 && d[t] != 0 {
		return
	}
	others := 0
	for u, n := range d {
		if n > 0 && TypeID(u) != t {
			others++
		}
	}
	if others != 1 {
		return
	}
	c := s.classW[class]
	if by < 0 {
		c = -c
	}
	if s.classed[class] {
		s.pen += c + penalty*cost(by)
	} else {
		s.score += c
	}
}

func (s *state) globalsUp(v, class, by int32) {
	if len(s.global) == 0 {
		return
	}
	for _, g := range s.globals[[2]int32{s.kind[v], class}] {
		d := &s.global[g]
		s.globalCost(d, s.globalN[g], -1)
		s.globalN[g] += by
		s.globalCost(d, s.globalN[g], 1)
	}
}

func (s *state) globalCost(d *globalFeature, n int32, sign cost) {
	times := min(n, 1)
	if d.oneFree {
		times = max(n-1, 0)
	}
	c := d.w * cost(times)
	if d.hard {
		s.pen += sign * (c + penalty*cost(times))
	} else {
		s.score += sign * c
	}
}

func (s *state) limit(class int32, by int64) {
	if len(s.limits) == 0 {
		return
	}
	for _, u := range s.limitOf[class] {
		m := s.limits[u.limit].max
		s.pen -= overload(s.limitN[u.limit]-m, m)
		s.limitN[u.limit] += by * u.slots
		s.pen += overload(s.limitN[u.limit]-m, m)
	}
}

// quota counts node v on host h.
func (s *state) quota(v, h int32, by int64) {
	for _, i := range s.quotaOf[v] {
		q := &s.quotas[i]
		if q.hosts[h>>6]>>(h&63)&1 == 0 {
			continue
		}
		s.pen -= overload(s.quotaN[i]-q.max, q.max)
		s.quotaN[i] += by
		s.pen += overload(s.quotaN[i]-q.max, q.max)
	}
}

// company is the penalty and the score for node v being with or away from the
// nodes of its groups, and for being no part of what it should be a part of.
func (s *state) company(v int32) (c, score cost) {
	h := s.at[v]
	for _, g := range s.groups[v] {
		group := &s.p.Groups[g]
		for _, u := range group.Nodes {
			if u == v || s.at[u] < 0 {
				continue
			}
			same := s.at[u] == h
			switch {
			case group.ByZone:
				same = s.tb.spec.Hosts[s.at[u]].Zone == s.tb.spec.Hosts[h].Zone
			case group.BySwitch:
				same = s.home[s.at[u]] == s.home[h]
			}
			if same != group.Apart {
				continue
			}
			if w := s.groupW[g]; w > 0 {
				score += w
			} else {
				c += penalty
			}
		}
	}
	if q := s.p.Nodes[v].Parent; q >= 0 && s.at[q] >= 0 && s.tb.spec.Hosts[h].Parent != s.at[q] {
		c += penalty
	}
	for _, u := range s.parts[v] {
		if s.at[u] >= 0 && s.tb.spec.Hosts[s.at[u]].Parent != h {
			c += penalty
		}
	}
	return c, score
}
