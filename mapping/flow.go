package mapping

import "math"

// tooMany reports whether the nodes of wants cannot all be placed even if only
// their number counted: a flow from kinds of node through hosts, each letting
// through as many nodes as it could hold of the smallest. It proves what the
// search would take too long to see; false proves nothing.
func tooMany(b *board, wants []*want) bool {
	const largest = 2_000_000 // options beyond which it is not worth the time
	edges, nodes := 0, 0
	for _, w := range wants {
		edges += len(w.options)
		nodes += len(w.nodes)
	}
	if edges > largest {
		return false
	}
	f := newFlow(2 + len(wants) + len(b.slots))
	const source, sink = 0, 1
	least := make([][4]int64, len(b.slots))
	for i := range least {
		least[i] = [4]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	}
	for i, w := range wants {
		f.join(source, 2+i, len(w.nodes))
		last := -1
		for _, o := range w.options {
			for k, d := range dimensions(o.demand) {
				if o.whole {
					d = 0
				}
				least[o.slot][k] = min(least[o.slot][k], d)
			}
			if o.slot != last {
				last = o.slot
				f.join(2+i, 2+len(wants)+o.slot, len(w.nodes))
			}
		}
	}
	for i := range b.slots {
		holds := min(b.slots[i].places, nodes)
		for k, have := range dimensions(b.slots[i].free) {
			if least[i][k] > 0 && least[i][k] < math.MaxInt64 {
				holds = int(min(int64(holds), have/least[i][k]))
			}
		}
		f.join(2+len(wants)+i, sink, max(0, holds))
	}
	return f.most(source, sink) < nodes
}

// flow finds the greatest flow through a network (Dinic's algorithm).
type flow struct {
	edges []flowEdge
	out   [][]int32 // by vertex: its edges
	level []int32
	tried []int32
}

type flowEdge struct {
	to   int32
	left int
}

func newFlow(vertices int) *flow {
	return &flow{out: make([][]int32, vertices), level: make([]int32, vertices), tried: make([]int32, vertices)}
}

// join adds an edge; its counterpart has the next number.
func (f *flow) join(from, to, width int) {
	f.out[from] = append(f.out[from], int32(len(f.edges)))
	f.out[to] = append(f.out[to], int32(len(f.edges)+1))
	f.edges = append(f.edges, flowEdge{int32(to), width}, flowEdge{int32(from), 0})
}

func (f *flow) most(source, sink int) int {
	total := 0
	for f.layer(source, sink) {
		clear(f.tried)
		for {
			pushed := f.push(source, sink, math.MaxInt)
			if pushed == 0 {
				break
			}
			total += pushed
		}
	}
	return total
}

// layer numbers vertices by their distance from the source.
func (f *flow) layer(source, sink int) bool {
	for i := range f.level {
		f.level[i] = -1
	}
	f.level[source] = 0
	queue := []int{source}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, e := range f.out[v] {
			if to := f.edges[e].to; f.edges[e].left > 0 && f.level[to] < 0 {
				f.level[to] = f.level[v] + 1
				queue = append(queue, int(to))
			}
		}
	}
	return f.level[sink] >= 0
}

// push sends flow along edges that lead one layer on. Paths have four edges,
// or a few more by way of counterparts.
func (f *flow) push(v, sink, most int) int {
	if v == sink {
		return most
	}
	for ; int(f.tried[v]) < len(f.out[v]); f.tried[v]++ {
		e := f.out[v][f.tried[v]]
		to := int(f.edges[e].to)
		if f.edges[e].left == 0 || f.level[to] != f.level[v]+1 {
			continue
		}
		if pushed := f.push(to, sink, min(most, f.edges[e].left)); pushed > 0 {
			f.edges[e].left -= pushed
			f.edges[e^1].left += pushed
			return pushed
		}
	}
	return 0
}
