package solver

import (
	"cmp"
	"slices"
)

// fabric is how hosts hang together: bundles of like interfaces, trunks of
// parallel wires between switches, and the distances between the switches.
//
// A bundle is the set of a host's interfaces that lead to the same place with
// the same bandwidth and media; which of them a link gets is decided when
// everything is placed. A trunk is the set of wires between two switches.
type fabric struct {
	bundles   []bundle
	bundleOff []int32 // host → its bundles, bundleOff[h]:bundleOff[h+1]

	trunks []trunk
	adj    [][]hop // switch → neighbours

	dist []int16 // switch × switch, trunks between them, -1 if none lead there
}

type bundle struct {
	host, peer int32 // hosts
	sw         int32 // the switch that peer is, or -1
	bw         int64
	media      uint64
	wires      []int32
}

type trunk struct {
	a, b  int32 // switches, a < b
	wires []int32
}

type hop struct{ to, trunk int32 }

func (f *fabric) compile(tb *Testbed) {
	spec := tb.spec
	n := len(spec.Hosts)
	type end struct {
		host, peer int32
		bw         int64
		media      uint64
		wire       int32
	}
	ends := make([]end, 0, len(spec.Wires)+16)
	s := len(tb.switches)
	f.adj = make([][]hop, s)
	between := make(map[[2]int32]int32)
	for i := range spec.Wires {
		w := &spec.Wires[i]
		sa, sb := tb.switchOf[w.A], tb.switchOf[w.B]
		if sa >= 0 && sb >= 0 {
			if sa == sb {
				continue
			}
			k := [2]int32{min(sa, sb), max(sa, sb)}
			t, ok := between[k]
			if !ok {
				t = int32(len(f.trunks))
				between[k] = t
				f.trunks = append(f.trunks, trunk{a: k[0], b: k[1]})
				f.adj[k[0]] = append(f.adj[k[0]], hop{k[1], t})
				f.adj[k[1]] = append(f.adj[k[1]], hop{k[0], t})
			}
			f.trunks[t].wires = append(f.trunks[t].wires, int32(i))
			continue
		}
		m := mask(w.Media)
		if sa < 0 && w.A != w.B {
			ends = append(ends, end{w.A, w.B, w.Bandwidth, m, int32(i)})
		}
		// A wire between two hosts is kept with the first one only.
		if sb < 0 && sa >= 0 {
			ends = append(ends, end{w.B, w.A, w.Bandwidth, m, int32(i)})
		}
	}
	slices.SortFunc(ends, func(a, b end) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.peer, b.peer), cmp.Compare(a.bw, b.bw),
			cmp.Compare(a.media, b.media), cmp.Compare(a.wire, b.wire))
	})
	wires := make([]int32, len(ends))
	f.bundleOff = make([]int32, n+1)
	for i := 0; i < len(ends); {
		j := i
		for j < len(ends) && ends[j].host == ends[i].host && ends[j].peer == ends[i].peer && ends[j].bw == ends[i].bw && ends[j].media == ends[i].media {
			wires[j] = ends[j].wire
			j++
		}
		e := ends[i]
		f.bundles = append(f.bundles, bundle{e.host, e.peer, tb.switchOf[e.peer], e.bw, e.media, wires[i:j:j]})
		f.bundleOff[e.host+1]++
		i = j
	}
	for h := range n {
		f.bundleOff[h+1] += f.bundleOff[h]
	}
	f.measure(s)
}

// measure fills the distances by a breadth-first search from every switch.
func (f *fabric) measure(s int) {
	f.dist = make([]int16, s*s)
	for i := range f.dist {
		f.dist[i] = -1
	}
	queue := make([]int32, 0, s)
	for from := range s {
		row := f.dist[from*s : (from+1)*s]
		row[from] = 0
		queue = append(queue[:0], int32(from))
		for i := 0; i < len(queue); i++ {
			at := queue[i]
			for _, h := range f.adj[at] {
				if row[h.to] < 0 {
					row[h.to] = row[at] + 1
					queue = append(queue, h.to)
				}
			}
		}
	}
}

// maxPaths bounds the paths kept between two switches, pathSlack how many
// trunks more than the shortest they may have, and maxPathSteps the work of
// finding them.
const (
	maxPaths     = 16
	pathSlack    = 2
	maxPathSteps = 4000
)

// path is one way from a switch to another.
type path struct {
	trunks   []int32
	switches []int32 // all that it passes, both ends included
}

// paths finds the ways between two switches, shortest first.
func (f *fabric) paths(from, to int32) []path {
	s := int32(len(f.adj))
	d := f.dist[from*s+to]
	if d < 0 {
		return nil
	}
	if d == 0 {
		return []path{{switches: []int32{from}}}
	}
	var found []path
	trunks := make([]int32, 0, d+pathSlack)
	switches := append(make([]int32, 0, d+pathSlack+1), from)
	steps := 0
	var walk func(at int32, left int16)
	walk = func(at int32, left int16) {
		if left == 0 {
			if at == to {
				found = append(found, path{slices.Clone(trunks), slices.Clone(switches)})
			}
			return
		}
		for _, h := range f.adj[at] {
			if len(found) >= maxPaths || steps >= maxPathSteps {
				return
			}
			steps++
			if rest := f.dist[h.to*s+to]; rest < 0 || rest > left-1 || (h.to == to && left > 1) || slices.Contains(switches, h.to) {
				continue
			}
			trunks, switches = append(trunks, h.trunk), append(switches, h.to)
			walk(h.to, left-1)
			trunks, switches = trunks[:len(trunks)-1], switches[:len(switches)-1]
		}
	}
	for length := d; length <= d+pathSlack && len(found) < maxPaths; length++ {
		walk(from, length)
	}
	return found
}
