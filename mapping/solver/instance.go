package solver

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// cost is in millionths of a score, so that sums are exact and the same on
// every machine.
type cost = int64

func micros(f float64) cost { return int64(math.Round(f * 1e6)) }

// endless is how many links a virtual wire takes.
const endless = 1 << 20

// incompatible stands in a table of costs where a node can't go.
const incompatible cost = -1

// instance is a problem compiled for the search: dense arrays only.
type instance struct {
	p  *Problem
	tb *Testbed
	w  struct {
		host, class, sw, direct, intra, inter, wire, emulated cost
	}

	kind  []int32 // node → kind
	kinds []kind
	// nodeCost is what features and desires cost, kind × hardware class.
	nodeCost []cost
	globals  map[[2]int32][]int32 // kind, class → global features used, if any
	global   []globalFeature

	// Links by node, flattened: those of node v are incOff[v]:incOff[v+1].
	incOff  []int32
	incLink []int32
	incPeer []int32
	links   []linkData
	adds    [][]addition // node → amounts of additive features
	groups  [][]int32    // node → groups
	parts   [][]int32    // node → nodes that should be parts of it
	movable []int32      // nodes not fixed
	classed []bool       // class → weight of 1 or more
	unmixed bool         // some node has NoTrivialMix
	classW  []cost

	// Of the hosts, what is free.
	closed    []bool
	slotFree  []int32
	dynBase   []int32 // slot in use by others, -1 if none
	usedBase  []bool
	addFree   []int64
	loopFree  []int64 // -1 is without limit
	alike     []int32 // host → the same number for hosts that nothing tells apart
	home      []int32 // host → the switch it is counted at; len(switches) if none
	wireFree  []int64 // wire → bandwidth left, 0 if none
	wireOnly  []bool  // wire → for emulated links only
	wireGone  []bool  // wire → for no link at all
	bCount    []int32 // bundle → interfaces free
	bShared   []int64 // bundle → bandwidth left on interfaces that others share
	single    []int32 // host → its only bundle, -1 if it has not exactly one
	trunkFree []int64 // trunk → bandwidth left on all wires
	trunkMax  []int64 // trunk → the most left on a wire
	trunkSlim []int64 // trunk → held back because what fits in sum did not fit apart

	paths   []path
	between []pathRange
	limits  []typeLimit
	quotas  []quota
	quotaOf [][]int32    // node → quotas
	groupW  []cost       // group → cost of a pair that is not as wished, 0 if that is a violation
	limitOf [][]limitUse // class → limits its hosts count for
}

type pathRange struct{ from, n int32 } // n of -1: not yet looked for

type globalFeature struct {
	oneFree bool
	w       cost
	hard    bool
}

type typeLimit struct {
	t   TypeID
	max int64
}

type quota struct {
	hosts []uint64 // a set
	max   int64
}

type limitUse struct {
	limit int32
	slots int64
}

type linkData struct {
	a, b           int32
	bw             int64
	media          uint64
	emulated       bool
	trivial        bool
	noInterswitch  bool
	native         bool
	aIface, bIface string
}

type addition struct {
	feature FeatureID
	amount  int64
}

// kind is a set of nodes that want the same of a host but for amounts.
type kind struct {
	node  int32 // one of them, to speak of
	count int32
	wires int32 // interfaces that such a node needs at least
	// cand are the hosts where such a node may go, by home switch: those of
	// switch s are candOff[s]:candOff[s+1].
	cand    []int32
	candOff []int32
	allowed []uint64 // the same as a set
	extra   []cost   // host → what a node costs there besides; nil for nothing
}

// on is what a node of the kind costs on a host besides.
func (k *kind) on(h int32) cost {
	if k.extra == nil {
		return 0
	}
	return k.extra[h]
}

// allows says whether a host is among a kind's candidates.
func (k *kind) allows(h int32) bool { return k.allowed[h>>6]>>(h&63)&1 != 0 }

func newInstance(p *Problem) *instance {
	in := &instance{p: p, tb: p.Testbed}
	w := p.Weights
	in.w.host, in.w.class, in.w.sw = micros(w.Host), micros(w.Class), micros(w.Switch)
	in.w.direct, in.w.intra, in.w.inter = micros(w.Direct), micros(w.Intraswitch), micros(w.Interswitch)
	in.w.wire, in.w.emulated = micros(w.Wire), micros(w.EmulatedLink)
	in.freeHosts()
	in.freeWires()
	in.compileLinks()
	in.compileKinds()
	in.compileLimits()
	for v := range p.Nodes {
		in.unmixed = in.unmixed || p.Nodes[v].NoTrivialMix
		if p.Nodes[v].Fixed < 0 {
			in.movable = append(in.movable, int32(v))
		}
	}
	in.compileQuotas()
	for _, c := range p.Classes {
		in.classW = append(in.classW, micros(c.Weight))
		in.classed = append(in.classed, c.Weight >= 1)
	}
	return in
}

func (in *instance) freeHosts() {
	tb := in.tb
	n := len(tb.spec.Hosts)
	in.closed = make([]bool, n)
	in.usedBase = make([]bool, n)
	in.dynBase = make([]int32, n)
	in.loopFree = make([]int64, n)
	in.home = make([]int32, n)
	in.single = make([]int32, n)
	for h := range n {
		in.dynBase[h] = -1
		in.loopFree[h] = -1
		if l := tb.spec.Hosts[h].Loopback; l > 0 {
			in.loopFree[h] = l
		}
		from, to := tb.fabric.bundleOff[h], tb.fabric.bundleOff[h+1]
		in.home[h] = tb.switchOf[h]
		if in.home[h] < 0 {
			in.home[h] = int32(len(tb.switches))
			for b := from; b < to; b++ {
				if s := tb.fabric.bundles[b].sw; s >= 0 {
					in.home[h] = s
					break
				}
			}
		}
		in.single[h] = -1
		if to-from == 1 && tb.fabric.bundles[from].sw >= 0 {
			in.single[h] = from
		}
	}
	// A wire between two hosts is kept with one end only, so the other end
	// must be looked at closely too.
	for i := range tb.fabric.bundles {
		if b := &tb.fabric.bundles[i]; b.sw < 0 {
			in.single[b.host], in.single[b.peer] = -1, -1
		}
	}
	in.alike = slices.Clone(tb.classOf)
	for _, u := range in.p.Taken.Hosts {
		in.alike[u.Host] = int32(len(tb.classes)) + u.Host
	}
	for _, u := range in.p.Taken.Wires {
		w := &tb.spec.Wires[u.Wire]
		in.alike[w.A], in.alike[w.B] = int32(len(tb.classes))+w.A, int32(len(tb.classes))+w.B
	}
	in.slotFree = slices.Clone(tb.slotMax)
	in.addFree = slices.Clone(tb.addMax)
	for _, u := range in.p.Taken.Hosts {
		h := u.Host
		in.closed[h] = in.closed[h] || u.Closed
		for _, t := range u.Slots {
			s := tb.slot(h, t.Type)
			if s < 0 || t.Slots == 0 {
				continue
			}
			in.slotFree[s] -= t.Slots
			in.usedBase[h] = true
			if !tb.slotFix[s] {
				in.dynBase[h] = s
			}
		}
		for _, f := range u.Additives {
			if a := tb.additive(h, f.Feature); a >= 0 {
				in.addFree[a] -= thousandths(f.Weight)
			}
		}
		if in.loopFree[h] >= 0 {
			in.loopFree[h] = max(0, in.loopFree[h]-u.Loopback)
		}
	}
}

func (in *instance) freeWires() {
	tb := in.tb
	in.wireFree = make([]int64, len(tb.spec.Wires))
	in.wireOnly = make([]bool, len(tb.spec.Wires))
	in.wireGone = make([]bool, len(tb.spec.Wires))
	for i := range tb.spec.Wires {
		in.wireFree[i] = tb.spec.Wires[i].Bandwidth
	}
	for _, u := range in.p.Taken.Wires {
		in.wireFree[u.Wire] = max(0, in.wireFree[u.Wire]-u.Bandwidth)
		if u.Exclusive {
			in.wireFree[u.Wire] = 0
			in.wireGone[u.Wire] = true
		}
		in.wireOnly[u.Wire] = true
	}
	in.bCount = make([]int32, len(tb.fabric.bundles))
	in.bShared = make([]int64, len(tb.fabric.bundles))
	for i := range tb.fabric.bundles {
		for _, w := range tb.fabric.bundles[i].wires {
			if tb.spec.Wires[w].Virtual {
				in.bCount[i] += endless
				continue
			}
			if in.wireOnly[w] {
				in.bShared[i] += in.wireFree[w]
			} else {
				in.bCount[i]++
			}
		}
	}
	in.trunkFree = make([]int64, len(tb.fabric.trunks))
	in.trunkMax = make([]int64, len(tb.fabric.trunks))
	in.trunkSlim = make([]int64, len(tb.fabric.trunks))
	for i := range tb.fabric.trunks {
		for _, w := range tb.fabric.trunks[i].wires {
			in.trunkFree[i] += in.wireFree[w]
			in.trunkMax[i] = max(in.trunkMax[i], in.wireFree[w])
		}
	}
	s := len(tb.switches)
	in.between = make([]pathRange, s*s)
	for i := range in.between {
		in.between[i].n = -1
	}
}

func (in *instance) compileLinks() {
	p := in.p
	in.links = make([]linkData, len(p.Links))
	in.incOff = make([]int32, len(p.Nodes)+1)
	for i := range p.Links {
		l := &p.Links[i]
		in.links[i] = linkData{a: l.A, b: l.B, bw: l.Bandwidth, media: 1 << l.Medium, emulated: l.Emulated, trivial: l.Trivial,
			noInterswitch: l.NoInterswitch, native: l.Bandwidth == Native, aIface: l.AIface, bIface: l.BIface}
		in.incOff[l.A+1]++
		in.incOff[l.B+1]++
	}
	for v := range p.Nodes {
		in.incOff[v+1] += in.incOff[v]
	}
	in.incLink = make([]int32, 2*len(p.Links))
	in.incPeer = make([]int32, 2*len(p.Links))
	fill := slices.Clone(in.incOff[:len(p.Nodes)])
	for i := range p.Links {
		l := &p.Links[i]
		in.incLink[fill[l.A]], in.incPeer[fill[l.A]] = int32(i), l.B
		fill[l.A]++
		in.incLink[fill[l.B]], in.incPeer[fill[l.B]] = int32(i), l.A
		fill[l.B]++
	}
	in.adds = make([][]addition, len(p.Nodes))
	in.parts = make([][]int32, len(p.Nodes))
	for v := range p.Nodes {
		for _, d := range p.Nodes[v].Desires {
			if in.tb.spec.Features[d.Feature].Kind == Additive {
				in.adds[v] = append(in.adds[v], addition{d.Feature, thousandths(d.Amount)})
			}
		}
		if q := p.Nodes[v].Parent; q >= 0 {
			in.parts[q] = append(in.parts[q], int32(v))
		}
	}
	in.groups = make([][]int32, len(p.Nodes))
	in.groupW = make([]cost, len(p.Groups))
	for g := range p.Groups {
		if w := p.Groups[g].Weight; w > 0 && w < 1 {
			in.groupW[g] = micros(w)
		}
		for _, v := range p.Groups[g].Nodes {
			if !slices.Contains(in.groups[v], int32(g)) {
				in.groups[v] = append(in.groups[v], int32(g))
			}
		}
	}
}

// compileKinds sorts the nodes by what they want of a host.
func (in *instance) compileKinds() {
	p, tb := in.p, in.tb
	wires := in.hostWires()
	fewest := int32(math.MaxInt32)
	for h := range wires {
		if !tb.spec.Hosts[h].Switch {
			fewest = min(fewest, wires[h])
		}
	}
	in.kind = make([]int32, len(p.Nodes))
	byKey := map[string]int32{}
	var key strings.Builder
	for v := range p.Nodes {
		n := &p.Nodes[v]
		key.Reset()
		need := in.wiresNeeded(int32(v))
		if need <= fewest {
			need = 0
		}
		fmt.Fprint(&key, n.Types, n.Class, n.Slots, n.Exclusive, need)
		for _, d := range slices.SortedFunc(slices.Values(n.Desires), func(a, b Desire) int { return cmp.Compare(a.Feature, b.Feature) }) {
			fmt.Fprint(&key, ";", d.Feature, d.Weight)
		}
		// Comparing lists of thousands of hosts would take longer than the
		// search: only those are known to be alike that are the same.
		if n.Hosts != nil {
			fmt.Fprintf(&key, "h%p/%d", n.Hosts, len(n.Hosts))
		}
		if n.Costs != nil {
			fmt.Fprintf(&key, "c%p", n.Costs)
		}
		k, ok := byKey[key.String()]
		if !ok {
			k = int32(len(in.kinds))
			byKey[key.String()] = k
			in.kinds = append(in.kinds, kind{node: int32(v), wires: need})
		}
		in.kind[v] = k
		in.kinds[k].count++
	}
	in.globals = map[[2]int32][]int32{}
	featureIndex := make([]int32, len(tb.spec.Features))
	for f := range tb.spec.Features {
		featureIndex[f] = -1
	}
	c := len(tb.classes)
	in.nodeCost = make([]cost, len(in.kinds)*c)
	for k := range in.kinds {
		for cl := range c {
			in.nodeCost[k*c+cl] = in.costOn(int32(k), int32(cl), featureIndex)
		}
		in.candidates(int32(k), wires)
	}
}

// wiresNeeded is how many interfaces a node's links own wherever it goes.
func (in *instance) wiresNeeded(v int32) int32 {
	var need int32
	for _, l := range in.incLink[in.incOff[v]:in.incOff[v+1]] {
		if d := &in.links[l]; !d.emulated && !d.trivial {
			need++
		}
	}
	return need
}

// hostWires counts every host's interfaces that are free.
func (in *instance) hostWires() []int32 {
	wires := make([]int32, len(in.tb.spec.Hosts))
	for i := range in.tb.fabric.bundles {
		b := &in.tb.fabric.bundles[i]
		wires[b.host] += in.bCount[i]
		if b.sw < 0 {
			wires[b.peer] += in.bCount[i]
		}
	}
	return wires
}

// costOn is what features and desires cost a node of kind k on a host of a
// hardware class, or incompatible.
func (in *instance) costOn(k, class int32, featureIndex []int32) cost {
	tb := in.tb
	n := &in.p.Nodes[in.kinds[k].node]
	h := tb.classes[class][0]
	fits := false
	for _, t := range n.Types {
		if s := tb.slot(h, t); s >= 0 && tb.slotMax[s] >= n.Slots {
			fits = true
		}
	}
	if !fits {
		return incompatible
	}
	var sum cost
	host := &tb.spec.Hosts[h]
	for _, d := range n.Desires {
		if has, ok := featureOf(host, d.Feature); ok {
			// Nodes of a kind have the same weights, and the amounts of assign's
			// are these.
			if tb.spec.Features[d.Feature].Kind == Additive && d.Weight >= 1 && d.Amount == d.Weight && d.Amount > has {
				return incompatible
			}
			continue
		}
		if d.Weight >= 1 {
			return incompatible
		}
		if tb.spec.Features[d.Feature].Kind == Additive {
			sum += micros(in.p.Weights.LostAdditive)
		} else {
			sum += micros(d.Weight)
		}
	}
	var globals []int32
	for _, f := range host.Features {
		if slices.ContainsFunc(n.Desires, func(d Desire) bool { return d.Feature == f.Feature }) {
			continue
		}
		switch tb.spec.Features[f.Feature].Kind {
		case Plain:
			if f.Weight >= 1 {
				return incompatible
			}
			sum += micros(f.Weight)
		case GlobalOneFree, GlobalFirstCosts:
			if featureIndex[f.Feature] < 0 {
				featureIndex[f.Feature] = int32(len(in.global))
				in.global = append(in.global, globalFeature{
					oneFree: tb.spec.Features[f.Feature].Kind == GlobalOneFree, w: micros(f.Weight), hard: f.Weight >= 1})
			}
			globals = append(globals, featureIndex[f.Feature])
		}
	}
	if globals != nil {
		in.globals[[2]int32{k, class}] = globals
	}
	return max(sum, 0)
}

// featureOf is the weight of a host's feature.
func featureOf(h *Host, f FeatureID) (float64, bool) {
	for i := range h.Features {
		if h.Features[i].Feature == f {
			return h.Features[i].Weight, true
		}
	}
	return 0, false
}

// candidates lists the hosts for a kind, by home switch.
func (in *instance) candidates(k int32, wires []int32) {
	kd := &in.kinds[k]
	n := &in.p.Nodes[kd.node]
	s := len(in.tb.switches) + 1
	kd.candOff = make([]int32, s+1)
	allowed := func(h int32) bool {
		if in.closed[h] || in.nodeCost[int(k)*len(in.tb.classes)+int(in.tb.classOf[h])] < 0 {
			return false
		}
		if kd.wires > wires[h] && !in.tb.spec.Hosts[h].Switch {
			return false
		}
		if n.Exclusive && in.usedBase[h] {
			return false
		}
		for _, t := range n.Types {
			if e := in.tb.slot(h, t); e >= 0 && in.slotFree[e] >= n.Slots &&
				(in.tb.slotFix[e] || in.dynBase[h] < 0 || in.dynBase[h] == e) {
				return true
			}
		}
		return false
	}
	var hosts []int32
	if n.Hosts != nil {
		hosts = slices.Clone(n.Hosts)
		slices.Sort(hosts)
		hosts = slices.Compact(hosts)
		hosts = slices.DeleteFunc(hosts, func(h int32) bool { return !allowed(h) })
	} else {
		for c, members := range in.tb.classes {
			if in.nodeCost[int(k)*len(in.tb.classes)+c] < 0 {
				continue
			}
			for _, h := range members {
				if allowed(h) {
					hosts = append(hosts, h)
				}
			}
		}
	}
	if n.Costs != nil {
		kd.extra = make([]cost, len(in.tb.spec.Hosts))
		for i, h := range n.Hosts {
			kd.extra[h] = max(0, micros(n.Costs[i]))
		}
	}
	for _, h := range hosts {
		kd.candOff[in.home[h]+1]++
	}
	for i := range s {
		kd.candOff[i+1] += kd.candOff[i]
	}
	kd.cand = make([]int32, len(hosts))
	kd.allowed = make([]uint64, len(in.tb.spec.Hosts)/64+1)
	fill := slices.Clone(kd.candOff[:s])
	for _, h := range hosts {
		kd.cand[fill[in.home[h]]] = h
		fill[in.home[h]]++
		kd.allowed[h>>6] |= 1 << (h & 63)
	}
}

func (in *instance) compileLimits() {
	for t, m := range in.tb.spec.TypeLimits {
		in.limits = append(in.limits, typeLimit{t, m})
	}
	if len(in.limits) == 0 {
		return
	}
	slices.SortFunc(in.limits, func(a, b typeLimit) int { return cmp.Compare(a.t, b.t) })
	in.limitOf = make([][]limitUse, len(in.tb.classes))
	for c, members := range in.tb.classes {
		for i, l := range in.limits {
			if s := in.tb.slot(members[0], l.t); s >= 0 {
				in.limitOf[c] = append(in.limitOf[c], limitUse{int32(i), int64(in.tb.slotMax[s])})
			}
		}
	}
}

func (in *instance) compileQuotas() {
	in.quotaOf = make([][]int32, len(in.p.Nodes))
	for i, q := range in.p.Quotas {
		set := make([]uint64, len(in.tb.spec.Hosts)/64+1)
		for _, h := range q.Hosts {
			set[h>>6] |= 1 << (h & 63)
		}
		in.quotas = append(in.quotas, quota{set, int64(q.Max)})
		for _, v := range q.Nodes {
			in.quotaOf[v] = append(in.quotaOf[v], int32(i))
		}
	}
}

// ways finds the paths between two switches. The way of a path is from the
// smaller switch to the greater one.
func (in *instance) ways(s, t int32) pathRange {
	if s > t {
		s, t = t, s
	}
	r := &in.between[int(s)*len(in.tb.switches)+int(t)]
	if r.n < 0 {
		found := in.tb.fabric.paths(s, t)
		r.from, r.n = int32(len(in.paths)), int32(len(found))
		in.paths = append(in.paths, found...)
	}
	return *r
}
