package assigntest

import (
	"fmt"
	"strconv"
	"strings"
)

// testbed is what a ptop file says.
type testbed struct {
	nodes  map[string]*machine
	wires  map[string]*plink
	order  []*plink
	limits map[string]int
}

type machine struct {
	name     string
	slots    map[string]slot
	features map[string]float64
	flags    map[string]string
	isSwitch bool
	wires    []*plink
}

type slot struct {
	count  int
	static bool
}

type plink struct {
	name, a, b     string
	aIface, bIface string
	bandwidth      int64
	media          map[string]bool
	trunk          bool
}

func (p *plink) other(end string) string {
	if p.a == end {
		return p.b
	}
	return p.a
}

func (p *plink) iface(end string) string {
	if p.a == end {
		return p.aIface
	}
	return p.bIface
}

// wish is what a top file says.
type wish struct {
	nodes   map[string]*vnode
	links   map[string]*vlink
	classes map[string]class
	fixed   map[string]string
}

type class struct {
	weight float64
	types  []string
}

type vnode struct {
	name, kind string
	slots      int
	desires    map[string]float64
	unmixed    bool
	parent     string
}

type vlink struct {
	name, a, b     string
	bandwidth      int64 // -1: native
	medium         string
	emulated       bool
	trivial        bool
	noInterswitch  bool
	aIface, bIface string
}

func words(text string) [][]string {
	var all [][]string
	for line := range strings.Lines(text) {
		var w []string
		for _, x := range strings.Split(strings.TrimRight(line, "\r\n"), " ") {
			if x != "" {
				w = append(w, x)
			}
		}
		if len(w) > 0 {
			all = append(all, w)
		}
	}
	return all
}

func readTestbed(text string) (*testbed, error) {
	t := &testbed{nodes: map[string]*machine{}, wires: map[string]*plink{}, limits: map[string]int{}}
	for _, w := range words(text) {
		switch {
		case w[0] == "node" && len(w) > 2:
			m := &machine{name: w[1], slots: map[string]slot{}, features: map[string]float64{}, flags: map[string]string{}}
			part := 0
			for _, x := range w[2:] {
				if x == "-" {
					part++
					continue
				}
				key, value, _ := strings.Cut(x, ":")
				switch part {
				case 0:
					static := strings.HasPrefix(key, "*")
					count, err := strconv.Atoi(value)
					if err != nil {
						count = 10000
					}
					m.slots[strings.TrimPrefix(key, "*")] = slot{count, static}
				case 1:
					m.features[key], _ = strconv.ParseFloat(value, 64)
				default:
					m.flags[key] = value
				}
			}
			_, m.isSwitch = m.slots["switch"]
			t.nodes[m.name] = m
		case w[0] == "link" && len(w) > 7:
			a, aRest, _ := strings.Cut(w[2], ":")
			b, bRest, _ := strings.Cut(w[3], ":")
			_, ai, _ := strings.Cut(aRest, "/")
			_, bi, _ := strings.Cut(bRest, "/")
			bw, err := strconv.ParseInt(w[4], 10, 64)
			if err != nil || t.nodes[a] == nil || t.nodes[b] == nil {
				return nil, fmt.Errorf("ptop: %q", w)
			}
			p := &plink{name: w[1], a: a, b: b, aIface: ai, bIface: bi, bandwidth: bw, media: map[string]bool{},
				trunk: t.nodes[a].isSwitch && t.nodes[b].isSwitch}
			for _, m := range w[7:] {
				p.media[m] = true
			}
			t.wires[p.name] = p
			t.order = append(t.order, p)
			t.nodes[a].wires = append(t.nodes[a].wires, p)
			t.nodes[b].wires = append(t.nodes[b].wires, p)
		case w[0] == "set-type-limit" && len(w) == 3:
			t.limits[w[1]], _ = strconv.Atoi(w[2])
		}
	}
	return t, nil
}

func readWish(text string) (*wish, error) {
	q := &wish{nodes: map[string]*vnode{}, links: map[string]*vlink{}, classes: map[string]class{}, fixed: map[string]string{}}
	for _, w := range words(text) {
		switch {
		case w[0] == "make-vclass" && len(w) > 3:
			weight, err := strconv.ParseFloat(w[2], 64)
			if err != nil {
				return nil, fmt.Errorf("top: %q: %w", w, err)
			}
			q.classes[w[1]] = class{weight, w[3:]}
		case w[0] == "node" && len(w) > 2:
			kind, count, _ := strings.Cut(w[2], ":")
			n := &vnode{name: w[1], kind: kind, slots: 1, desires: map[string]float64{}}
			if count != "" {
				n.slots, _ = strconv.Atoi(count)
			}
			for _, x := range w[3:] {
				key, value, found := strings.Cut(x, ":")
				switch {
				case !found:
					n.unmixed = x == "disallow_trivial_mix"
				case key == "subnode_of":
					n.parent = value
				default:
					n.desires[key], _ = strconv.ParseFloat(value, 64)
				}
			}
			q.nodes[n.name] = n
		case w[0] == "link" && len(w) > 7:
			l := &vlink{name: w[1], a: w[2], b: w[3], bandwidth: -1, medium: w[7]}
			if amount, _, _ := strings.Cut(w[4], ":"); amount != "*" {
				bw, err := strconv.ParseInt(amount, 10, 64)
				if err != nil {
					return nil, fmt.Errorf("top: %q: %w", w, err)
				}
				l.bandwidth = bw
			}
			for _, flag := range w[8:] {
				switch key, value, _ := strings.Cut(flag, ":"); key {
				case "emulated":
					l.emulated = true
				case "trivial_ok":
					l.trivial = true
				case "no_interswitch":
					l.noInterswitch = true
				case "fixsrciface":
					l.aIface = value
				case "fixdstiface":
					l.bIface = value
				}
			}
			q.links[l.name] = l
		case w[0] == "fix-node" && len(w) == 3:
			q.fixed[w[1]] = w[2]
		}
	}
	return q, nil
}

// answer is what assign's output says.
type answer struct {
	nodes map[string]string
	links map[string]way // those that were mapped
}

type way struct {
	kind  string
	wires []string
}

func readAnswer(text string) *answer {
	a := &answer{nodes: map[string]string{}, links: map[string]way{}}
	part := ""
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		switch {
		case len(w) == 1 && (w[0] == "Nodes:" || w[0] == "Edges:"):
			part = w[0]
		case len(w) > 0 && w[0] == "End":
			part = ""
		case part == "Nodes:" && len(w) == 2 && w[0] != "unassigned:":
			a.nodes[w[0]] = w[1]
		case part == "Edges:" && len(w) > 1 && w[1] != "Mapping":
			x := way{kind: w[1]}
			for _, name := range w[2:] {
				if !strings.HasPrefix(name, "(") {
					x.wires = append(x.wires, name)
				}
			}
			a.links[w[0]] = x
		}
	}
	return a
}
