package solver

import "slices"

// route finds the cheapest way for link l, both ends of which have a host,
// and takes it.
func (s *state) route(l int32) {
	d := &s.links[l]
	p, q := s.at[d.a], s.at[d.b]
	if p == q {
		s.takeTrivial(l)
		return
	}
	s.ra[l], s.rb[l], s.rp[l] = -1, -1, -1
	kind := NoRoute
	a, b := s.endOf(p), s.endOf(q)
	if a != hard && b != hard && d.aIface == "" && d.bIface == "" {
		kind = s.simple(l, d, p, q, a, b)
	} else {
		kind = s.choose(l, d, p, q)
	}
	s.take(l, kind)
}

// Ends of links as endOf tells them.
const (
	onSwitch int32 = -1 // the host is a switch
	hard     int32 = -2 // several bundles or none: they must be compared
)

// endOf is the bundle of a host that has exactly one, to a switch.
func (s *state) endOf(h int32) int32 {
	if s.tb.switchOf[h] >= 0 {
		return onSwitch
	}
	if b := s.single[h]; b >= 0 {
		return b
	}
	return hard
}

// simple finds the way of a link whose ends leave no choice but that of a path.
func (s *state) simple(l int32, d *linkData, p, q, a, b int32) RouteKind {
	if !s.usable(d, a) || !s.usable(d, b) {
		return NoRoute
	}
	sp, sq := s.exit(p, a), s.exit(q, b)
	s.rbw[l] = s.bandwidth(d, a, b)
	s.ra[l], s.rb[l] = a, b
	if sp == sq {
		if a < 0 || b < 0 {
			return DirectRoute
		}
		return IntraswitchRoute
	}
	if d.noInterswitch {
		return NoRoute
	}
	r := s.ways(sp, sq)
	if r.n == 0 {
		return NoRoute
	}
	s.rp[l] = r.from
	if r.n > 1 {
		s.rp[l], _ = s.bestPath(r, s.rbw[l])
	} else if s.tooNarrow(r.from, s.rbw[l]) {
		return NoRoute
	}
	if s.rp[l] < 0 {
		return NoRoute
	}
	if a < 0 && b < 0 && len(s.paths[s.rp[l]].trunks) == 1 {
		return DirectRoute
	}
	return InterswitchRoute
}

// usable says whether a link may use any interface of a bundle.
func (s *state) usable(d *linkData, b int32) bool {
	if b < 0 {
		return true
	}
	bd := &s.tb.fabric.bundles[b]
	if bd.media&d.media == 0 || !d.native && d.bw > bd.bw {
		return false
	}
	return s.bCount[b] > 0 || d.emulated && s.bShared[b] > 0
}

// exit is the switch where a link leaves a host through a bundle.
func (s *state) exit(h, b int32) int32 {
	if b < 0 {
		return s.tb.switchOf[h]
	}
	return s.tb.fabric.bundles[b].sw
}

func (s *state) bandwidth(d *linkData, a, b int32) int64 {
	if !d.native {
		return d.bw
	}
	bw := int64(0)
	for _, x := range [2]int32{a, b} {
		if x >= 0 && (bw == 0 || s.tb.fabric.bundles[x].bw < bw) {
			bw = s.tb.fabric.bundles[x].bw
		}
	}
	return bw
}

func (s *state) tooNarrow(path int32, bw int64) bool {
	for _, t := range s.paths[path].trunks {
		if s.trunkMax[t] < bw {
			return true
		}
	}
	return false
}

// bestPath chooses the path on which a bandwidth costs least, -1 if none
// carries it. Among equals it is the one with most to spare.
func (s *state) bestPath(r pathRange, bw int64) (int32, cost) {
	best, bestCost, bestSpare := int32(-1), cost(0), int64(0)
	for i := r.from; i < r.from+r.n; i++ {
		c, spare, ok := s.pathCost(i, bw)
		if ok && (best < 0 || c < bestCost || c == bestCost && spare > bestSpare) {
			best, bestCost, bestSpare = i, c, spare
		}
	}
	return best, bestCost
}

func (s *state) pathCost(i int32, bw int64) (c cost, spare int64, ok bool) {
	p := &s.paths[i]
	spare = 1 << 62
	for _, t := range p.trunks {
		if s.trunkMax[t] < bw {
			return 0, 0, false
		}
		free := s.trunkFree[t] - s.trunkSlim[t] - s.load[t]
		c += s.w.inter + overload(bw-free, s.trunkFree[t]) - overload(-free, s.trunkFree[t])
		spare = min(spare, free-bw)
	}
	for _, sw := range p.switches {
		if s.switchN[sw] == 0 {
			c += s.w.sw
		}
	}
	return c, spare, true
}

// choose compares all bundles at both ends and all paths between them.
func (s *state) choose(l int32, d *linkData, p, q int32) RouteKind {
	best, bestKind := cost(0), NoRoute
	consider := func(c cost, kind RouteKind, a, b, path int32) {
		if bestKind == NoRoute || c < best {
			best, bestKind = c, kind
			s.ra[l], s.rb[l], s.rp[l] = a, b, path
			s.rbw[l] = s.bandwidth(d, a, b)
		}
	}
	f := &s.tb.fabric
	for _, dir := range [2][2]int32{{p, q}, {q, p}} {
		for b := f.bundleOff[dir[0]]; b < f.bundleOff[dir[0]+1]; b++ {
			if f.bundles[b].sw < 0 && f.bundles[b].peer == dir[1] && s.usable(d, b) && s.named(b, p, d.aIface) && s.named(b, q, d.bIface) {
				consider(s.w.direct+s.bundleMore(b, d, d.bw), DirectRoute, b, -1, -1)
			}
		}
	}
	a0, a1 := s.endsOf(p)
	b0, b1 := s.endsOf(q)
	for a := a0; a < a1; a++ {
		if a >= 0 && (f.bundles[a].sw < 0 || !s.usable(d, a) || !s.named(a, p, d.aIface)) {
			continue
		}
		for b := b0; b < b1; b++ {
			if b >= 0 && (f.bundles[b].sw < 0 || !s.usable(d, b) || !s.named(b, q, d.bIface)) {
				continue
			}
			bw := s.bandwidth(d, a, b)
			c := s.bundleMore(a, d, bw) + s.bundleMore(b, d, bw)
			sp, sq := s.exit(p, a), s.exit(q, b)
			switch {
			case sp == sq && (a < 0 || b < 0):
				consider(c+s.w.direct, DirectRoute, a, b, -1)
			case sp == sq:
				if s.switchN[sp] == 0 {
					c += s.w.sw
				}
				consider(c+s.w.intra, IntraswitchRoute, a, b, -1)
			case !d.noInterswitch:
				if path, pc := s.bestPath(s.ways(sp, sq), bw); path >= 0 {
					kind := InterswitchRoute
					if a < 0 && b < 0 && len(s.paths[path].trunks) == 1 {
						kind = DirectRoute
					}
					consider(c+pc, kind, a, b, path)
				}
			}
		}
	}
	return bestKind
}

// endsOf is the range of a host's bundles; that of a switch is -1 alone.
func (s *state) endsOf(h int32) (from, to int32) {
	if s.tb.switchOf[h] >= 0 {
		return onSwitch, onSwitch + 1
	}
	return s.tb.fabric.bundleOff[h], s.tb.fabric.bundleOff[h+1]
}

// named says whether a bundle has the interface of host h that a link asks for.
func (s *state) named(b, h int32, iface string) bool {
	if iface == "" {
		return true
	}
	return b >= 0 && slices.ContainsFunc(s.tb.fabric.bundles[b].wires, func(w int32) bool { return s.ifaceAt(w, h) == iface })
}

func (s *state) ifaceAt(w, h int32) string {
	wire := &s.tb.spec.Wires[w]
	if wire.A == h {
		return wire.AIface
	}
	return wire.BIface
}

// bundleMore is what one more link costs on a bundle.
func (s *state) bundleMore(b int32, d *linkData, bw int64) cost {
	if b < 0 {
		return 0
	}
	non, emu, ebw := s.bNon[b], s.bEmu[b], s.bBw[b]
	c0, p0 := s.bundleCost(b, non, emu, ebw)
	if d.emulated {
		emu++
		ebw += bw
	} else {
		non++
	}
	c1, p1 := s.bundleCost(b, non, emu, ebw)
	return c1 - c0 + p1 - p0
}

// bundleCost is what the links on a bundle cost.
func (s *state) bundleCost(b, non, emu int32, ebw int64) (c, pen cost) {
	used := non
	if emu > 0 {
		c = s.w.emulated * cost(emu)
		ebw -= s.bShared[b]
		if ebw > 0 || s.bShared[b] == 0 {
			bw := s.tb.fabric.bundles[b].bw
			if ebw <= bw {
				used++
			} else {
				used += int32((ebw + bw - 1) / bw)
			}
		} else {
			c += s.w.wire
		}
	}
	c += s.w.wire * cost(used)
	if over := used - s.bCount[b]; over > 0 {
		pen = penalty * cost(over)
	}
	return c, pen
}

// take books a link's way, as its fields ra, rb, rp and rbw say it.
func (s *state) take(l int32, kind RouteKind) {
	s.kind_[l] = kind
	s.book(l, 1)
}

func (s *state) takeTrivial(l int32) {
	s.ra[l], s.rb[l], s.rp[l] = -1, -1, -1
	if s.links[l].trivial {
		s.take(l, TrivialRoute)
	} else {
		s.take(l, NoRoute)
	}
}

// unroute frees a link's way.
func (s *state) unroute(l int32) {
	s.book(l, -1)
	s.kind_[l] = NoRoute
}

// book adds a link's way to the sums, or takes it away.
func (s *state) book(l int32, sign int32) {
	d := &s.links[l]
	kind := s.kind_[l]
	switch kind {
	case NoRoute:
		s.pen += penaltyLink * cost(sign)
		return
	case TrivialRoute:
		h := s.at[d.a]
		if free := s.loopFree[h]; free >= 0 {
			s.pen -= overload(s.loop[h]-free, free)
			s.loop[h] += int64(sign) * d.bw
			s.pen += overload(s.loop[h]-free, free)
		}
		s.mix(d, sign, true)
		return
	case DirectRoute:
		s.score += s.w.direct * cost(sign)
	case IntraswitchRoute:
		s.score += s.w.intra * cost(sign)
		s.pass(s.tb.fabric.bundles[s.ra[l]].sw, sign)
	case InterswitchRoute:
		s.interN += sign
		p := &s.paths[s.rp[l]]
		beyond := len(p.trunks) - 2
		if s.ra[l] >= 0 {
			beyond++
		}
		if s.rb[l] >= 0 {
			beyond++
		}
		s.score += s.w.inter * cost(max(0, beyond)) * cost(sign)
		for _, sw := range p.switches {
			s.pass(sw, sign)
		}
	}
	s.mix(d, sign, false)
	if s.ra[l] >= 0 {
		s.bundleUp(s.ra[l], d, sign, s.rbw[l])
	}
	if s.rb[l] >= 0 {
		s.bundleUp(s.rb[l], d, sign, s.rbw[l])
	}
	if s.rp[l] >= 0 {
		bw := int64(sign) * s.rbw[l]
		for _, t := range s.paths[s.rp[l]].trunks {
			free := s.trunkFree[t] - s.trunkSlim[t]
			s.pen -= overload(s.load[t]-free, s.trunkFree[t])
			s.load[t] += bw
			s.pen += overload(s.load[t]-free, s.trunkFree[t])
		}
	}
}

func (s *state) pass(sw, sign int32) {
	s.switchN[sw] += sign
	switch {
	case sign > 0 && s.switchN[sw] == 1:
		s.score += s.w.sw
	case sign < 0 && s.switchN[sw] == 0:
		s.score -= s.w.sw
	}
}

func (s *state) bundleUp(b int32, d *linkData, sign int32, bw int64) {
	if !d.emulated && s.bEmu[b] == 0 {
		// The common case: links that own interfaces, with enough of them.
		if n := s.bNon[b] + sign; n <= s.bCount[b] && s.bNon[b] <= s.bCount[b] {
			s.bNon[b] = n
			s.score += s.w.wire * cost(sign)
			return
		}
	}
	c, p := s.bundleCost(b, s.bNon[b], s.bEmu[b], s.bBw[b])
	s.score -= c
	s.pen -= p
	if d.emulated {
		s.bEmu[b] += sign
		s.bBw[b] += int64(sign) * bw
	} else {
		s.bNon[b] += sign
	}
	c, p = s.bundleCost(b, s.bNon[b], s.bEmu[b], s.bBw[b])
	s.score += c
	s.pen += p
}

// mix keeps count of links within and out of hosts for nodes that may not
// have both.
func (s *state) mix(d *linkData, sign int32, within bool) {
	if !s.unmixed {
		return
	}
	for _, v := range [2]int32{d.a, d.b} {
		if !s.p.Nodes[v].NoTrivialMix {
			continue
		}
		if s.mixIn[v] > 0 && s.mixOut[v] > 0 {
			s.pen -= penalty
		}
		if within {
			s.mixIn[v] += sign
		} else {
			s.mixOut[v] += sign
		}
		if s.mixIn[v] > 0 && s.mixOut[v] > 0 {
			s.pen += penalty
		}
	}
}
