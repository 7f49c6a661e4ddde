package solver

import (
	"cmp"
	"slices"
)

// solution writes down the state.
func (a *search) solution() *Solution {
	sol := &Solution{Hosts: slices.Clone(a.at), Types: make([]TypeID, len(a.at)), Routes: make([]Route, len(a.links)),
		Steps: a.steps, Cut: a.cut}
	for v, e := range a.slot {
		sol.Types[v] = -1
		if e >= 0 {
			sol.Types[v] = a.tb.slotType[e]
		} else {
			sol.Violations++
		}
	}
	a.pack(sol)
	if a.pen > 0 && sol.Violations == 0 {
		sol.Violations = 1
	}
	sol.Score = float64(a.score) / 1e6
	if sol.Violations == 0 {
		sol.Outcome = Placed
	}
	return sol
}

// pack gives every link the wires of its bundles and trunks: those with an
// interface asked for first, then the largest first, each where it fits most
// tightly. It counts as a violation what finds none.
func (a *search) pack(sol *Solution) {
	a.unpacked = a.unpacked[:0]
	type use struct {
		left  int64
		owned bool
		emu   bool
	}
	uses := make([]use, len(a.tb.spec.Wires))
	for w := range uses {
		uses[w] = use{left: a.wireFree[w], emu: a.wireOnly[w], owned: a.wireGone[w]}
	}
	order := make([]int32, len(a.links))
	for i := range order {
		order[i] = int32(i)
	}
	named := func(l int32) int {
		if a.links[l].aIface != "" || a.links[l].bIface != "" {
			return 0
		}
		return 1
	}
	slices.SortFunc(order, func(x, y int32) int {
		return cmp.Or(cmp.Compare(named(x), named(y)), cmp.Compare(a.rbw[y], a.rbw[x]), cmp.Compare(x, y))
	})
	iface := func(b int32, d *linkData, bw int64, ha, hb int32) int32 {
		best := int32(-1)
		for _, w := range a.tb.fabric.bundles[b].wires {
			u := &uses[w]
			if d.aIface != "" && a.touches(w, ha) && a.ifaceAt(w, ha) != d.aIface || d.bIface != "" && a.touches(w, hb) && a.ifaceAt(w, hb) != d.bIface {
				continue
			}
			if a.tb.spec.Wires[w].Virtual {
				return w
			}
			if u.owned || u.left < bw || !d.emulated && u.emu {
				continue
			}
			// An emulated link goes to an interface in use, the fullest first.
			if best < 0 || d.emulated && (u.emu && !uses[best].emu || u.emu == uses[best].emu && u.left < uses[best].left) {
				best = w
			}
		}
		if best < 0 {
			return -1
		}
		uses[best].left -= bw
		uses[best].owned = !d.emulated
		uses[best].emu = uses[best].emu || d.emulated
		return best
	}
	for _, l := range order {
		d := &a.links[l]
		ha, hb := a.at[d.a], a.at[d.b]
		r := &sol.Routes[l]
		if ha < 0 || hb < 0 {
			sol.Violations++
			continue
		}
		r.Kind = a.kind_[l]
		if r.Kind == NoRoute {
			sol.Violations++
			continue
		}
		if r.Kind == TrivialRoute {
			continue
		}
		fail := false
		add := func(w int32) {
			if w < 0 {
				fail = true
			}
			r.Wires = append(r.Wires, w)
		}
		if a.ra[l] >= 0 {
			add(iface(a.ra[l], d, a.rbw[l], ha, hb))
		}
		if a.rp[l] >= 0 {
			p := &a.paths[a.rp[l]]
			first := len(r.Wires)
			for _, t := range p.trunks {
				best := int32(-1)
				for _, w := range a.tb.fabric.trunks[t].wires {
					if uses[w].left >= a.rbw[l] && (best < 0 || uses[w].left < uses[best].left) {
						best = w
					}
				}
				if best >= 0 {
					uses[best].left -= a.rbw[l]
				}
				add(best)
			}
			start := a.exit(ha, a.ra[l])
			if p.switches[0] != start {
				slices.Reverse(r.Wires[first:])
			}
		}
		if a.rb[l] >= 0 {
			add(iface(a.rb[l], d, a.rbw[l], ha, hb))
		}
		if fail {
			*r = Route{}
			a.unpacked = append(a.unpacked, l)
			sol.Violations++
		}
	}
}

func (a *search) touches(w, h int32) bool {
	return a.tb.spec.Wires[w].A == h || a.tb.spec.Wires[w].B == h
}

// holdBack makes the bundles and trunks of links that found no wire seem
// smaller by as much.
func (a *search) holdBack() {
	for _, l := range a.unpacked {
		for _, b := range [2]int32{a.ra[l], a.rb[l]} {
			if b >= 0 && a.bShared[b] > 0 {
				a.bShared[b] = max(0, a.bShared[b]-a.rbw[l])
			} else if b >= 0 && a.bCount[b] > 1 {
				a.bCount[b]--
			}
		}
		if p := a.rp[l]; p >= 0 {
			for _, t := range a.paths[p].trunks {
				a.trunkSlim[t] += a.rbw[l]
			}
		}
	}
}
