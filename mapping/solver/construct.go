package solver

// construct gives every node a host: fixed ones first, then always the node
// with the most links to nodes placed already, where it costs least.
func (a *search) construct() {
	a.reset()
	n := int32(len(a.at))
	drawn := make([]int32, n) // links to nodes placed
	done := make([]bool, n)
	arrive := func(v int32) {
		done[v] = true
		for i := a.incOff[v]; i < a.incOff[v+1]; i++ {
			drawn[a.incPeer[i]]++
		}
	}
	for v := range n {
		if h := a.p.Nodes[v].Fixed; h >= 0 {
			if e := a.fits(v, h); e >= 0 {
				a.place(v, h, e)
			}
			arrive(v)
		}
	}
	for v := range n {
		if h := a.p.Nodes[v].Hint; h >= 0 && !done[v] && a.kinds[a.kind[v]].allows(h) {
			if e := a.fits(v, h); e >= 0 {
				a.place(v, h, e)
				arrive(v)
			}
		}
	}
	queue := newDrawQueue(n)
	for v := range n {
		if !done[v] {
			queue.push(v, drawn[v])
		}
	}
	for {
		v, ok := queue.pop(done, drawn)
		if !ok {
			break
		}
		a.placeBest(v)
		arrive(v)
		for i := a.incOff[v]; i < a.incOff[v+1]; i++ {
			if u := a.incPeer[i]; !done[u] {
				queue.push(u, drawn[u])
			}
		}
	}
}

// drawQueue is a bucket queue of nodes by how much draws them in.
type drawQueue struct{ buckets [][]int32 }

func newDrawQueue(n int32) *drawQueue { return &drawQueue{} }

func (q *drawQueue) push(v, drawn int32) {
	for int(drawn) >= len(q.buckets) {
		q.buckets = append(q.buckets, nil)
	}
	q.buckets[drawn] = append(q.buckets[drawn], v)
}

// pop takes the first node of the highest bucket that is still to be placed.
func (q *drawQueue) pop(done []bool, drawn []int32) (int32, bool) {
	for b := len(q.buckets) - 1; b >= 0; b-- {
		for len(q.buckets[b]) > 0 {
			v := q.buckets[b][0]
			q.buckets[b] = q.buckets[b][1:]
			if !done[v] && drawn[v] == int32(b) {
				return v, true
			}
		}
	}
	return -1, false
}

// placeBest puts v where it costs least: it tries the hosts of its neighbours,
// one host of every class at the switches in use, and a few elsewhere.
func (a *search) placeBest(v int32) {
	k := &a.kinds[a.kind[v]]
	best, bestCost := int32(-1), cost(0)
	try := func(h int32) {
		e := a.fits(v, h)
		if e < 0 {
			return
		}
		before := a.energy()
		a.place(v, h, e)
		c := a.energy() - before
		a.unplace(v)
		if best < 0 || c < bestCost {
			best, bestCost = h, c
		}
	}
	for i := a.incOff[v]; i < a.incOff[v+1]; i++ {
		if q := a.at[a.incPeer[i]]; q >= 0 && k.allows(q) {
			try(q)
		}
	}
	for sw := range int32(len(a.tb.switches) + 1) {
		if int(sw) < len(a.tb.switches) && a.switchN[sw] == 0 && best >= 0 {
			continue
		}
		a.tryAt(k, sw, try)
	}
	for range 4 {
		a.tryAt(k, a.rng.below(int32(len(a.tb.switches)+1)), try)
	}
	if best >= 0 {
		a.place(v, best, a.fits(v, best))
	}
}

// augment finds hosts for nodes that have none by moving others on, each to a
// candidate of its own, along the shortest such chain.
func (a *search) augment() {
	hosts := len(a.occ)
	seen := make([]bool, hosts)
	via := make([]int32, hosts) // host → the node that would come to it
	var queue []int32
	for v := range int32(len(a.at)) {
		if a.at[v] >= 0 || a.p.Nodes[v].Fixed >= 0 {
			continue
		}
		clear(seen)
		queue = queue[:0]
		reach := func(u int32) (int32, bool) {
			for _, h := range a.kinds[a.kind[u]].cand {
				if seen[h] {
					continue
				}
				if a.fits(u, h) >= 0 {
					via[h] = u
					return h, true
				}
				seen[h] = true
				via[h] = u
				queue = append(queue, h)
			}
			return -1, false
		}
		end, ok := reach(v)
		for i := 0; i < len(queue) && !ok; i++ {
			for _, u := range a.occ[queue[i]] {
				if a.p.Nodes[u].Fixed < 0 && a.makesRoom(u, via[queue[i]]) {
					if end, ok = reach(u); ok {
						break
					}
				}
			}
		}
		if !ok {
			continue
		}
		// The last of the chain moves first.
		for h := end; ; {
			u := via[h]
			from := a.at[u]
			if from >= 0 {
				a.unplace(u)
			}
			if e := a.fits(u, h); e >= 0 {
				a.place(u, h, e)
			} else if from >= 0 {
				a.place(u, from, a.fits(u, from))
				break
			}
			if u == v {
				break
			}
			h = from
		}
	}
}

// makesRoom says whether a newcomer could have the host of u if u left it.
func (a *search) makesRoom(u, newcomer int32) bool {
	h, e := a.at[u], a.slot[u]
	a.unplace(u)
	ok := a.fits(newcomer, h) >= 0
	a.place(u, h, e)
	return ok
}

// tryAt tries the first host with room of every class at a switch.
func (a *search) tryAt(k *kind, sw int32, try func(int32)) {
	var last [8]int32
	for i := range last {
		last[i] = -1
	}
	n := 0
next:
	for _, h := range k.cand[k.candOff[sw]:k.candOff[sw+1]] {
		if a.fits(k.node, h) < 0 {
			continue
		}
		c := a.tb.classOf[h]
		if len(a.occ[h]) == 0 {
			for _, l := range last {
				if l == c {
					continue next
				}
			}
			last[n%len(last)] = c
			n++
		}
		try(h)
	}
}
