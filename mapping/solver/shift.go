package solver

// maxShift bounds how many nodes a shift moves at once.
const maxShift = 12

// maxSwitchShift bounds how many nodes a shift takes away from a switch.
const maxSwitchShift = 64

// undo is where a node was before a compound move.
type undo struct{ v, host, slot int32 }

// shift moves a node and some that hang on it at the same switch to another
// switch together: alone, each would leave its neighbours behind and pay for
// it.
func (a *search) shift(t float64) {
	v := a.movable[a.rng.below(int32(len(a.movable)))]
	if a.at[v] < 0 {
		return
	}
	from := a.home[a.at[v]]
	to := a.otherSwitch(v, from)
	if to < 0 || to == from && !a.packs[a.kind[v]] {
		return
	}
	threshold := cost(t * a.surprise[a.rng.next()>>54])
	if to != from && a.rng.below(a.whole) == 0 {
		a.shiftSwitch(from, to, threshold)
		return
	}
	if a.packs[a.kind[v]] && a.rng.below(2) == 0 {
		a.shiftHost(v, to, threshold)
		return
	}
	if to == from {
		return
	}
	size := int(2 + a.rng.below(maxShift-1))
	a.band = append(a.band[:0], v)
	for i := 0; i < len(a.band) && len(a.band) < size; i++ {
		u := a.band[i]
		for j := a.incOff[u]; j < a.incOff[u+1] && len(a.band) < size; j++ {
			w := a.incPeer[j]
			if a.at[w] >= 0 && a.home[a.at[w]] == from && a.p.Nodes[w].Fixed < 0 && !contains(a.band, w) {
				a.band = append(a.band, w)
			}
		}
	}
	before := a.energy()
	a.undos = a.undos[:0]
	for _, u := range a.band {
		if !a.shiftOne(u, to) {
			a.rollback()
			return
		}
	}
	if a.energy()-before > threshold {
		a.rollback()
		return
	}
	a.accepted(before)
}

func contains(list []int32, v int32) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

// otherSwitch is the switch of one of v's neighbours, or any that is used, or
// any where v may go.
func (a *search) otherSwitch(v, from int32) int32 {
	switch a.rng.below(3) {
	case 0:
		for range 4 {
			u := v
			for range 2 {
				if n := a.incOff[u+1] - a.incOff[u]; n > 0 {
					u = a.incPeer[a.incOff[u]+a.rng.below(n)]
					if a.at[u] >= 0 && a.home[a.at[u]] != from {
						return a.home[a.at[u]]
					}
				}
			}
		}
	case 1:
		if h := a.at[a.rng.below(int32(len(a.at)))]; h >= 0 {
			return a.home[h]
		}
	}
	k := &a.kinds[a.kind[v]]
	return a.home[k.cand[a.rng.below(int32(len(k.cand)))]]
}

// shiftHost moves all that shares v's host to one host at another switch, as
// far as it has room, and the rest to others there.
func (a *search) shiftHost(v, to int32, threshold cost) {
	h := a.pick(&a.kinds[a.kind[v]], to)
	if h < 0 || h == a.at[v] {
		return
	}
	before := a.energy()
	a.undos = a.undos[:0]
	a.band = append(a.band[:0], a.occ[a.at[v]]...)
	if !a.shiftBand(h, to) {
		a.rollback()
		return
	}
	if a.energy()-before > threshold {
		a.rollback()
		return
	}
	a.accepted(before)
}

// shiftBand moves all of the band that is not fixed to host h, and to others
// at the same switch what h has no room for.
func (a *search) shiftBand(h, to int32) bool {
	for _, u := range a.band {
		if a.p.Nodes[u].Fixed >= 0 {
			continue
		}
		if a.kinds[a.kind[u]].allows(h) {
			if e := a.fits(u, h); e >= 0 {
				a.undos = append(a.undos, undo{u, a.at[u], a.slot[u]})
				a.unplace(u)
				a.place(u, h, e)
				continue
			}
		}
		if !a.shiftOne(u, to) {
			return false
		}
	}
	return true
}

// shiftSwitch moves all nodes at a switch to another one, host by host.
func (a *search) shiftSwitch(from, to int32, threshold cost) {
	a.moving = a.moving[:0]
	for v, h := range a.at {
		if h >= 0 && a.home[h] == from && a.p.Nodes[v].Fixed < 0 {
			if len(a.moving) == maxSwitchShift {
				return
			}
			a.moving = append(a.moving, int32(v))
		}
	}
	before := a.energy()
	a.undos = a.undos[:0]
	for _, v := range a.moving {
		if a.at[v] < 0 || a.home[a.at[v]] != from {
			continue
		}
		ok := false
		if h := a.pick(&a.kinds[a.kind[v]], to); h >= 0 && a.packs[a.kind[v]] {
			a.band = append(a.band[:0], a.occ[a.at[v]]...)
			ok = a.shiftBand(h, to)
		} else if h >= 0 {
			a.band = append(a.band[:0], v)
			ok = a.shiftOne(v, to)
		}
		if !ok {
			a.rollback()
			return
		}
	}
	if a.energy()-before > threshold {
		a.rollback()
		return
	}
	a.accepted(before)
}

// shiftOne puts u on some host at a switch, in exchange with a node there if
// there is no room. It says false if it found none; what it did is in undos.
func (a *search) shiftOne(u, to int32) bool {
	k := &a.kinds[a.kind[u]]
	var full int32 = -1
	for range 6 {
		h := a.pick(k, to)
		if h < 0 {
			return false
		}
		if e := a.fits(u, h); e >= 0 {
			a.undos = append(a.undos, undo{u, a.at[u], a.slot[u]})
			a.unplace(u)
			a.place(u, h, e)
			return true
		}
		full = h
	}
	if full < 0 || len(a.occ[full]) == 0 {
		return false
	}
	w := a.occ[full][a.rng.below(int32(len(a.occ[full])))]
	back := a.at[u]
	if a.p.Nodes[w].Fixed >= 0 || contains(a.band, w) || !a.kinds[a.kind[w]].allows(back) {
		return false
	}
	a.undos = append(a.undos, undo{u, back, a.slot[u]}, undo{w, full, a.slot[w]})
	a.unplace(u)
	a.unplace(w)
	if e := a.fits(u, full); e >= 0 {
		a.place(u, full, e)
		if e := a.fits(w, back); e >= 0 {
			a.place(w, back, e)
			return true
		}
	}
	return false
}

// rollback undoes what shiftOne did.
func (a *search) rollback() {
	for _, x := range a.undos {
		if a.at[x.v] >= 0 {
			a.unplace(x.v)
		}
	}
	// Of a node moved twice the first entry counts.
	for _, x := range a.undos {
		if a.at[x.v] < 0 {
			a.place(x.v, x.host, x.slot)
		}
	}
}
