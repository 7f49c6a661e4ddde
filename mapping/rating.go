package mapping

// rating says how much an option is liked; the lesser is the better. Its parts
// count in their order.
type rating [6]int64

func (r *rating) less(than *rating) bool {
	for i := range r {
		if r[i] != than[i] {
			return r[i] < than[i]
		}
	}
	return false
}

// hintRank puts the host that a node would rather have before all others.
const hintRank = 1 << 20

// rate compares the ways to place a node: the types that a host names first
// before the others; shared nodes with others that share, exclusive ones on
// hosts that are empty and good for nothing else; near the nodes that it has
// links to; and then by policy, on the fullest host that will do or on the
// freest one. What is left to choose is the order of the inventory.
func (s *search) rate(o *option, node int) rating {
	sl := &s.board.slots[o.slot]
	h := sl.host
	r := rating{0: int64(o.rank), 5: int64(o.slot)}
	if s.wants[s.wantOf[node]].hint == o.slot {
		r[0] -= hintRank
	}
	if o.exclusive {
		r[1] = 3 // a node that may share does
		switch {
		case sl.taken > 0:
			r[1] = 5
		case h.Shared:
			r[1] = 4
		}
		// Of several that will do, the least: it spares what is scarce.
		r[2] = int64(h.Capacity.Cores)
		r[3] = int64(h.Capacity.Memory)
		r[4] = int64(len(h.Types) + len(h.Interfaces))
	} else {
		if s.layout == Pack && sl.taken == 0 {
			r[1] = 1
			if h.Exclusive {
				r[1] = 2
			}
		}
		for _, other := range s.links.near[node] {
			if other >= len(s.placed) {
				continue // a search for the first nodes only
			}
			if p := s.placed[other]; p >= 0 && s.wants[s.wantOf[other]].options[p].slot == o.slot {
				r[2]--
			}
		}
		r[3] = s.freeness(o)
		if s.layout == Spread {
			r[2], r[3] = -r[3], int64(sl.taken)
		}
	}
	if s.chances != nil {
		r[1], r[5] = r[1]*int64(s.chances.IntN(2)), s.chances.Int64N(1<<30)
	}
	return r
}

// freeness is how much of a host would be free with the option taken, in
// thousandths of each dimension, added up.
func (s *search) freeness(o *option) int64 {
	sl := &s.board.slots[o.slot]
	size, free := dimensions(sl.size), dimensions(sl.free.Minus(o.demand))
	var sum int64
	for k := range size {
		if size[k] < endless && size[k] > 0 {
			sum += int64(1000 * float64(free[k]) / float64(size[k]))
		}
	}
	if most := sl.host.MaxSlivers; most > 0 {
		sum += int64(1000 * (sl.places - 1) / most)
	}
	return sum
}
