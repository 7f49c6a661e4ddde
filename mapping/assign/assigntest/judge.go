// Package assigntest judges mappings from their files alone: a ptop, a top and
// an output of assign's. It shares no code with what makes the mappings. The
// rules are assign's, with its default weights (Ricci, Alfeld, Lepreau, "A
// Solver for the Network Testbed Mapping Problem", 2003).
package assigntest

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Verdict is what a mapping is worth.
type Verdict struct {
	Violations int
	Score      float64
	Errors     []string // what no mapping may say: a node that does not exist, a path with a gap
}

// Judge reads the three files and judges the output.
func Judge(ptop, top, output string) (*Verdict, error) {
	t, err := readTestbed(ptop)
	if err != nil {
		return nil, err
	}
	q, err := readWish(top)
	if err != nil {
		return nil, err
	}
	j := &judge{testbed: t, wish: q, answer: readAnswer(output), chosen: map[string]string{}}
	j.hosts()
	j.features()
	j.paths()
	return &j.verdict, nil
}

type judge struct {
	*testbed
	*wish
	answer  *answer
	chosen  map[string]string // the type each node is given
	verdict Verdict
}

func (j *judge) cost(c float64) { j.verdict.Score += c }

func (j *judge) violate(n int, each float64) {
	if n > 0 {
		j.verdict.Violations += n
		j.verdict.Score += each * float64(n)
	}
}

func (j *judge) err(format string, args ...any) {
	j.verdict.Errors = append(j.verdict.Errors, fmt.Sprintf(format, args...))
}

// hosts judges which node is where, and as what.
func (j *judge) hosts() {
	inUse := map[string]string{} // the exclusive type a host is used as
	place := func(v, typ string) {
		if s := j.testbed.nodes[j.answer.nodes[v]].slots[typ]; !s.static {
			if _, ok := inUse[j.answer.nodes[v]]; !ok {
				inUse[j.answer.nodes[v]] = typ
			}
		}
	}
	var later []string
	for v, n := range j.wish.nodes {
		h := j.testbed.nodes[j.answer.nodes[v]]
		switch _, soft := j.classes[n.kind]; {
		case h == nil:
			if j.answer.nodes[v] != "" {
				j.err("node %s is on %s, which does not exist", v, j.answer.nodes[v])
			}
			j.violate(1, 1)
			delete(j.answer.nodes, v)
		case soft:
			later = append(later, v)
		default:
			j.chosen[v] = n.kind
			place(v, n.kind)
		}
	}
	sort.Strings(later)
	for _, v := range later {
		var can []string
		h := j.answer.nodes[v]
		for _, typ := range j.classes[j.wish.nodes[v].kind].types {
			if _, ok := j.testbed.nodes[h].slots[typ]; ok {
				can = append(can, typ)
			}
		}
		if len(can) == 0 {
			j.err("node %s is on %s, which is of no type of its class", v, h)
			continue
		}
		j.chosen[v] = can[0]
		if slices.Contains(can, inUse[h]) {
			j.chosen[v] = inUse[h]
		}
		place(v, j.chosen[v])
	}
	used := map[string]map[string]int{} // host → type → slots
	types := map[string]map[string]bool{}
	for v, typ := range j.chosen {
		h := j.answer.nodes[v]
		if _, ok := j.testbed.nodes[h].slots[typ]; !ok {
			j.err("node %s: %s is no %s", v, h, typ)
			continue
		}
		if fix := j.fixed[v]; fix != "" && fix != h {
			j.err("node %s is on %s instead of %s", v, h, fix)
		}
		if used[h] == nil {
			used[h] = map[string]int{}
		}
		used[h][typ] += j.wish.nodes[v].slots
		if c := j.wish.nodes[v].kind; j.classes[c].types != nil {
			if types[c] == nil {
				types[c] = map[string]bool{}
			}
			types[c][typ] = true
		}
	}
	kinds, limited := map[string]bool{}, map[string]int{}
	for h, by := range used {
		m := j.testbed.nodes[h]
		j.cost(0.2)
		exclusive := 0
		for typ, n := range by {
			j.violate(max(0, n-m.slots[typ].count), 0.5)
			if !m.slots[typ].static {
				exclusive++
				kinds[j.kind(m)] = true
			}
		}
		if exclusive > 1 {
			j.err("%s is of %d types at once", h, exclusive)
		}
		for typ, s := range m.slots {
			limited[typ] += s.count
		}
	}
	j.cost(0.5 * float64(len(kinds)))
	for typ, most := range j.limits {
		if limited[typ] > most {
			j.violate(1, 0.15)
		}
	}
	for c, got := range types {
		if len(got) > 1 {
			j.cost(j.classes[c].weight)
			if j.classes[c].weight >= 1 {
				j.verdict.Violations++
			}
		}
	}
	for v, n := range j.wish.nodes {
		if parent, placed := j.answer.nodes[n.parent]; placed && j.answer.nodes[v] != "" &&
			j.testbed.nodes[j.answer.nodes[v]].flags["subnode_of"] != parent {
			j.violate(1, 0.5)
		}
	}
}

// kind is equal for hosts that are alike to assign.
func (j *judge) kind(m *machine) string {
	if _, unique := m.flags["unique"]; unique {
		return "only " + m.name
	}
	for _, other := range j.testbed.nodes {
		if other.flags["subnode_of"] == m.name {
			return "only " + m.name
		}
	}
	var wires []string
	for _, w := range m.wires {
		wires = append(wires, fmt.Sprint(w.other(m.name), w.bandwidth, w.media))
	}
	sort.Strings(wires)
	return fmt.Sprint(m.slots, m.features, m.flags["subnode_of"], wires)
}

// features judges desires, features and additive capacities.
func (j *judge) features() {
	sums := map[[2]string]float64{}
	shared := map[string][]float64{}
	for v, h := range j.answer.nodes {
		n, m := j.wish.nodes[v], j.testbed.nodes[h]
		if n == nil {
			j.err("node %s was not asked for", v)
			continue
		}
		for d, w := range n.desires {
			additive := strings.HasPrefix(d, "?+")
			switch _, has := m.features[d]; {
			case has && additive:
				sums[[2]string{h, d}] += w
			case !has:
				if w >= 1 {
					j.verdict.Violations++
				}
				if additive {
					w = 1
				}
				j.cost(w)
			}
		}
		for f, w := range m.features {
			_, wanted := n.desires[f]
			switch {
			case wanted || strings.HasPrefix(f, "?"):
			case strings.HasPrefix(f, "*"):
				shared[f] = append(shared[f], w)
			default:
				j.cost(w)
				if w >= 1 {
					j.verdict.Violations++
				}
			}
		}
	}
	for at, sum := range sums {
		if sum > j.testbed.nodes[at[0]].features[at[1]] {
			j.violate(1, 0.5)
		}
	}
	for f, w := range shared {
		times := 1
		if strings.HasPrefix(f, "*&") {
			times = len(w) - 1
		}
		j.cost(float64(times) * w[0])
		if w[0] >= 1 {
			j.verdict.Violations += times
		}
	}
}

// paths judges the links.
func (j *judge) paths() {
	type users struct{ own, emulated int }
	load, on := map[*plink]int64{}, map[*plink]*users{}
	within := map[string]int64{}
	crossed := map[string]bool{} // switches
	out, in := map[string]bool{}, map[string]bool{}
	for name, l := range j.wish.links {
		w, mapped := j.answer.links[name]
		if !mapped {
			j.violate(1, 0.5)
			continue
		}
		from, to := j.answer.nodes[l.a], j.answer.nodes[l.b]
		if from == "" || to == "" {
			j.err("link %s is mapped, but not its ends", name)
			continue
		}
		if w.kind == "trivial" {
			if from != to || !l.trivial {
				j.err("link %s cannot be trivial", name)
			}
			within[from] += l.bandwidth
			in[l.a], in[l.b] = true, true
			continue
		}
		out[l.a], out[l.b] = true, true
		if w.kind == "direct" && len(w.wires) > 1 {
			w.wires = w.wires[:1]
		}
		var path []*plink
		at := from
		for _, x := range w.wires {
			p := j.wires[x]
			if p == nil || p.a != at && p.b != at || len(path) > 0 && !j.testbed.nodes[at].isSwitch {
				j.err("link %s: the path %v does not go on from %s", name, w.wires, at)
				break
			}
			path = append(path, p)
			at = p.other(at)
		}
		if at != to || len(path) == 0 {
			j.err("link %s: the path %v does not lead from %s to %s", name, w.wires, from, to)
			continue
		}
		bandwidth := l.bandwidth
		if bandwidth < 0 {
			bandwidth = min(path[0].bandwidth, path[len(path)-1].bandwidth)
		}
		for _, p := range path {
			load[p] += bandwidth
			if p.trunk {
				continue
			}
			if !p.media[l.medium] {
				j.err("link %s: %s is not for %s", name, p.name, l.medium)
			}
			if on[p] == nil {
				on[p] = &users{}
			}
			if l.emulated {
				on[p].emulated++
				j.cost(0.01)
			} else {
				on[p].own++
			}
		}
		if l.aIface != "" && path[0].iface(from) != l.aIface || l.bIface != "" && path[len(path)-1].iface(to) != l.bIface {
			j.err("link %s does not use the interfaces asked for", name)
		}
		switch w.kind {
		case "direct":
			j.cost(0.01)
		case "intraswitch":
			j.cost(0.02)
			crossed[path[0].other(from)] = true
		default:
			if l.noInterswitch {
				j.err("link %s may not pass several switches", name)
			}
			j.cost(0.2 * float64(max(0, len(path)-2)))
			for _, p := range path {
				for _, end := range []string{p.a, p.b} {
					if j.testbed.nodes[end].isSwitch {
						crossed[end] = true
					}
				}
			}
		}
	}
	j.cost(0.5 * float64(len(crossed)))
	for _, u := range on {
		j.cost(0.01)
		if u.own > 0 && u.emulated > 0 {
			j.violate(1, 0.5)
		}
		j.violate(u.own-1, 0.5)
	}
	over := func(load, most int64) {
		if load > most {
			j.violate(int((load-1)/most), 0)
			j.cost(0.5 * float64(load-most) / float64(most))
		}
	}
	for p, n := range load {
		over(n, p.bandwidth)
	}
	for h, n := range within {
		var most int64
		if _, err := fmt.Sscan(j.testbed.nodes[h].flags["trivial_bw"], &most); err == nil && most > 0 {
			over(n, most)
		}
	}
	for v, n := range j.wish.nodes {
		if n.unmixed && out[v] && in[v] {
			j.violate(1, 0.5)
		}
	}
}
