package solver

import (
	"fmt"
	"slices"
	"strings"
)

// refuse is the answer to a problem that has no placement.
func (in *instance) refuse(reasons []Reason) *Solution {
	sol := &Solution{Outcome: Impossible, Reasons: reasons, Hosts: make([]int32, len(in.p.Nodes)),
		Types: make([]TypeID, len(in.p.Nodes)), Routes: make([]Route, len(in.links)), Violations: len(in.p.Nodes) + len(in.links)}
	for v := range sol.Hosts {
		sol.Hosts[v], sol.Types[v] = -1, -1
	}
	return sol
}

// impossible finds proofs that there is no placement, the simplest first:
// nodes without a host, links without an interface, too few hosts for all,
// too narrow trunks. Every one of them holds whatever a search would find.
func (in *instance) impossible() []Reason {
	if r := in.hostless(); len(r) > 0 {
		return r
	}
	if r := in.tooFast(); len(r) > 0 {
		return r
	}
	if r := in.tooMany(); len(r) > 0 {
		return r
	}
	return in.bottlenecks()
}

// wants says what a kind of node wants, for people.
func (in *instance) wants(k int32) string {
	n := &in.p.Nodes[in.kinds[k].node]
	var b strings.Builder
	b.WriteString("of type " + in.tb.typeNames(n.Types))
	var with []string
	for _, d := range n.Desires {
		if d.Weight >= 1 {
			with = append(with, in.tb.spec.Features[d.Feature].Name)
		}
	}
	if len(with) > 0 {
		b.WriteString(" with " + strings.Join(with, ", "))
	}
	if w := in.kinds[k].wires; w > 0 {
		fmt.Fprintf(&b, " and %d interfaces", w)
	}
	return b.String()
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (in *instance) nodesOf(kinds ...int32) []int32 {
	var nodes []int32
	for v, k := range in.kind {
		if slices.Contains(kinds, k) {
			nodes = append(nodes, int32(v))
		}
	}
	return nodes
}

// hostless finds nodes that no host can take.
func (in *instance) hostless() []Reason {
	var out []Reason
	for v := range in.p.Nodes {
		n := &in.p.Nodes[v]
		if n.Fixed >= 0 && !in.kinds[in.kind[v]].allows(n.Fixed) {
			why := "is not " + in.wants(in.kind[v])
			if in.closed[n.Fixed] {
				why = "is taken or out of service"
			}
			out = append(out, Reason{Want: WantHost, Nodes: []int32{int32(v)},
				Text: fmt.Sprintf("node %s is fixed to %s, which %s", n.Name, in.tb.spec.Hosts[n.Fixed].Name, why)})
		}
	}
	for k := range in.kinds {
		if len(in.kinds[k].cand) > 0 {
			continue
		}
		suited := 0
		for h := range in.tb.spec.Hosts {
			if in.nodeCost[k*len(in.tb.classes)+int(in.tb.classOf[h])] >= 0 {
				suited++
			}
		}
		text := fmt.Sprintf("%s %s wanted, none free", count(int64(in.kinds[k].count), "node"), in.wants(int32(k)))
		if suited > 0 {
			text += fmt.Sprintf("; %d would suit but are taken, out of service or not allowed", suited)
		}
		out = append(out, Reason{Want: WantHost, Nodes: in.nodesOf(int32(k)), Text: text})
	}
	return out
}

// tooFast finds links that no interface of any host of an end can carry.
func (in *instance) tooFast() []Reason {
	type want struct {
		k     int32
		bw    int64
		media uint64
		emu   bool
	}
	known := map[want]int64{} // → fastest fitting interface, -1 if the want is met
	var out []Reason
	for l := range in.links {
		d := &in.links[l]
		if d.trivial {
			continue
		}
		for _, v := range [2]int32{d.a, d.b} {
			w := want{in.kind[v], d.bw, d.media, d.emulated}
			fastest, ok := known[w]
			if !ok {
				fastest = in.fastest(w.k, d)
				known[w] = fastest
			}
			if fastest < 0 {
				continue
			}
			out = append(out, Reason{Want: WantBandwidth, Nodes: []int32{v}, Links: []int32{int32(l)},
				Text: fmt.Sprintf("link %s wants bandwidth %d, and the fastest free interface of its kind on a host for node %s has %d",
					in.p.Links[l].Name, d.bw, in.p.Nodes[v].Name, fastest)})
			break
		}
	}
	return out
}

func (in *instance) fastest(k int32, d *linkData) int64 {
	var fastest int64
	far := make(map[int32]bool)
	for i := range in.tb.fabric.bundles {
		b := &in.tb.fabric.bundles[i]
		if b.media&d.media == 0 || in.bCount[i] == 0 && !(d.emulated && in.bShared[i] > 0) {
			continue
		}
		if in.kinds[k].allows(b.host) || b.sw < 0 && in.kinds[k].allows(b.peer) {
			far[b.host] = true
			fastest = max(fastest, b.bw)
			if d.native || b.bw >= d.bw {
				return -1
			}
		}
	}
	for _, h := range in.kinds[k].cand {
		if in.tb.switchOf[h] >= 0 {
			return -1
		}
	}
	return fastest
}

// tooMany finds kinds of nodes that want more slots together than there are,
// by the least cut of a flow from kinds to hardware classes.
func (in *instance) tooMany() []Reason {
	kinds, classes := len(in.kinds), len(in.tb.classes)
	if kinds*classes > 1<<21 {
		return nil
	}
	room := make([]int64, classes)
	for c, members := range in.tb.classes {
		for _, h := range members {
			if in.closed[h] {
				continue
			}
			var dynamic, static int64
			for e := in.tb.slotOff[h]; e < in.tb.slotOff[h+1]; e++ {
				if n := int64(max(0, in.slotFree[e])); in.tb.slotFix[e] {
					static += n
				} else if in.dynBase[h] < 0 || in.dynBase[h] == e {
					dynamic = max(dynamic, n)
				}
			}
			room[c] += dynamic + static
		}
	}
	arc := make([]int64, kinds*classes) // room of the class for the kind, less what flows
	flow := make([]int64, kinds*classes)
	left := make([]int64, kinds)
	for k := range kinds {
		n := &in.p.Nodes[in.kinds[k].node]
		left[k] = int64(in.kinds[k].count) * int64(n.Slots)
		for _, h := range in.kinds[k].cand {
			var most int64
			for _, t := range n.Types {
				if e := in.tb.slot(h, t); e >= 0 {
					most = max(most, int64(in.slotFree[e]))
				}
			}
			arc[k*classes+int(in.tb.classOf[h])] += most
		}
	}
	roomLeft := slices.Clone(room)
	seenK, seenC := make([]bool, kinds), make([]bool, classes)
	fromK, fromC := make([]int32, classes), make([]int32, kinds) // who reached it
	for k := range kinds {
		for left[k] > 0 {
			end := in.flowSearch(int32(k), arc, flow, roomLeft, seenK, seenC, fromK, fromC)
			if end < 0 {
				return []Reason{in.shortage(seenK, seenC, room)}
			}
			amount := min(left[k], roomLeft[end])
			for c := end; ; {
				u := fromK[c]
				amount = min(amount, arc[int(u)*classes+int(c)])
				if u == int32(k) {
					break
				}
				c = fromC[u]
				amount = min(amount, flow[int(u)*classes+int(c)])
			}
			roomLeft[end] -= amount
			left[k] -= amount
			for c := end; ; {
				u := fromK[c]
				arc[int(u)*classes+int(c)] -= amount
				flow[int(u)*classes+int(c)] += amount
				if u == int32(k) {
					break
				}
				c = fromC[u]
				arc[int(u)*classes+int(c)] += amount
				flow[int(u)*classes+int(c)] -= amount
			}
		}
	}
	return nil
}

// flowSearch looks for a class with room that kind k can reach by moving
// others on; -1 if there is none, seen then being the cut.
func (in *instance) flowSearch(k int32, arc, flow, room []int64, seenK, seenC []bool, fromK, fromC []int32) int32 {
	classes := len(seenC)
	clear(seenK)
	clear(seenC)
	queue := []int32{k}
	seenK[k] = true
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		for c := range int32(classes) {
			if seenC[c] || arc[int(u)*classes+int(c)] <= 0 {
				continue
			}
			seenC[c], fromK[c] = true, u
			if room[c] > 0 {
				return c
			}
			for w := range int32(len(seenK)) {
				if !seenK[w] && flow[int(w)*classes+int(c)] > 0 {
					seenK[w], fromC[w] = true, c
					queue = append(queue, w)
				}
			}
		}
	}
	return -1
}

// shortage words the cut of a flow.
func (in *instance) shortage(seenK, seenC []bool, room []int64) Reason {
	var wanted, free, taken int64
	var kinds []int32
	var what []string
	types := make(map[TypeID]bool)
	for k := range in.kinds {
		if !seenK[k] {
			continue
		}
		n := &in.p.Nodes[in.kinds[k].node]
		kinds = append(kinds, int32(k))
		wanted += int64(in.kinds[k].count) * int64(n.Slots)
		if w := in.wants(int32(k)); !slices.Contains(what, w) {
			what = append(what, w)
		}
		for _, t := range n.Types {
			types[t] = true
		}
	}
	// The cut passes a class where it was reached, and else the arcs to it.
	for c, members := range in.tb.classes {
		if seenC[c] {
			free += room[c]
		} else {
			for _, k := range kinds {
				for _, h := range in.kinds[k].cand {
					if in.tb.classOf[h] == int32(c) {
						free += int64(in.slotFree[in.firstSlot(k, h)])
					}
				}
			}
		}
		for _, h := range members {
			if (in.closed[h] || in.usedBase[h]) && slices.ContainsFunc(kinds, func(k int32) bool { return in.nodeCost[int(k)*len(in.tb.classes)+c] >= 0 }) {
				taken++
			}
		}
	}
	text := fmt.Sprintf("%s %s wanted, %d free", count(wanted, "node"), strings.Join(what, "; "), free)
	if taken > 0 {
		text += fmt.Sprintf("; %s that would suit taken or out of service", count(taken, "host"))
	}
	return Reason{Want: WantCount, Nodes: in.nodesOf(kinds...), Text: text}
}

func (in *instance) firstSlot(k, h int32) int32 {
	for _, t := range in.p.Nodes[in.kinds[k].node].Types {
		if e := in.tb.slot(h, t); e >= 0 {
			return e
		}
	}
	return in.tb.slotOff[h]
}

// bottlenecks finds switches whose trunks are too narrow for links between
// nodes that must be there and nodes that can't.
func (in *instance) bottlenecks() []Reason {
	s := len(in.tb.switches)
	must := make([]int32, len(in.p.Nodes)) // node → the only switch it can be at, -1 if several
	for v := range must {
		must[v] = -1
		if h := in.p.Nodes[v].Fixed; h >= 0 {
			must[v] = in.home[h]
			continue
		}
		k := &in.kinds[in.kind[v]]
		first := in.home[k.cand[0]]
		if int(first) < s && int(k.candOff[first+1]-k.candOff[first]) == len(k.cand) {
			must[v] = first
		}
	}
	load := make([]int64, s)
	links := make([][]int32, s)
	closedIn := make([]bool, s) // every host there leads nowhere else
	for i := range closedIn {
		closedIn[i] = true
	}
	for i := range in.tb.fabric.bundles {
		b := &in.tb.fabric.bundles[i]
		for _, h := range [2]int32{b.host, b.peer} {
			if int(in.home[h]) < s && in.single[h] < 0 && in.tb.switchOf[h] < 0 {
				closedIn[in.home[h]] = false
			}
		}
	}
	for l := range in.links {
		d := &in.links[l]
		for _, x := range [2][2]int32{{d.a, d.b}, {d.b, d.a}} {
			sw := must[x[0]]
			if sw < 0 || int(sw) >= s || !closedIn[sw] || !in.awayFrom(x[1], sw) {
				continue
			}
			load[sw] += max(0, d.bw)
			links[sw] = append(links[sw], int32(l))
		}
	}
	var out []Reason
	for sw := range s {
		var free int64
		for _, h := range in.tb.fabric.adj[sw] {
			free += in.trunkFree[h.trunk]
		}
		if load[sw] > free {
			out = append(out, Reason{Want: WantBandwidth, Links: links[sw],
				Text: fmt.Sprintf("%s must leave %s and want bandwidth %d together; its trunks have %d free",
					count(int64(len(links[sw])), "link"), in.tb.spec.Hosts[in.tb.switches[sw]].Name, load[sw], free)})
		}
	}
	return out
}

func (in *instance) awayFrom(v, sw int32) bool {
	if h := in.p.Nodes[v].Fixed; h >= 0 {
		return in.home[h] != sw
	}
	k := &in.kinds[in.kind[v]]
	return k.candOff[sw] == k.candOff[sw+1]
}

// wrong says what is wrong with the best placement found.
func (a *search) wrong(sol *Solution) []Reason {
	var out []Reason
	for v, h := range sol.Hosts {
		if h < 0 {
			out = append(out, Reason{Want: WantHost, Nodes: []int32{int32(v)},
				Text: fmt.Sprintf("node %s %s: no host found within the effort", a.p.Nodes[v].Name, a.wants(a.kind[v]))})
		}
	}
	for l, r := range sol.Routes {
		d := &a.links[l]
		if r.Kind == NoRoute && sol.Hosts[d.a] >= 0 && sol.Hosts[d.b] >= 0 {
			out = append(out, Reason{Want: WantInterface, Links: []int32{int32(l)},
				Text: fmt.Sprintf("link %s: no way found from %s to %s", a.p.Links[l].Name,
					a.tb.spec.Hosts[sol.Hosts[d.a]].Name, a.tb.spec.Hosts[sol.Hosts[d.b]].Name)})
		}
	}
	for t := range a.load {
		if free := a.trunkFree[t] - a.trunkSlim[t]; a.load[t] > free {
			x := &a.tb.fabric.trunks[t]
			out = append(out, Reason{Want: WantBandwidth,
				Text: fmt.Sprintf("the trunk from %s to %s would carry %d and has %d free: it is the bottleneck",
					a.tb.spec.Hosts[a.tb.switches[x.a]].Name, a.tb.spec.Hosts[a.tb.switches[x.b]].Name, a.load[t], a.trunkFree[t])})
		}
	}
	for h := range a.occ {
		if len(a.occ[h]) > 0 && a.hostTrouble(int32(h)) > 0 {
			out = append(out, Reason{Want: WantInterface, Nodes: slices.Clone(a.occ[h]),
				Text: fmt.Sprintf("host %s would have more on it than its interfaces or capacities allow", a.tb.spec.Hosts[h].Name)})
		}
	}
	for v := range a.mixIn {
		if a.p.Nodes[v].NoTrivialMix && a.mixIn[v] > 0 && a.mixOut[v] > 0 {
			out = append(out, Reason{Want: WantGroup, Nodes: []int32{int32(v)},
				Text: fmt.Sprintf("node %s would have links within its host and links that leave it, which may not be mixed", a.p.Nodes[v].Name)})
		}
	}
	if len(out) == 0 {
		out = append(out, Reason{Want: WantGroup, Text: "nodes could not be kept together or apart, or the limits of the testbed not kept, within the effort"})
	}
	return out
}
