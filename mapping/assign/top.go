package assign

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"croft/mapping/solver"
)

// Request is a .top file read against a testbed.
type Request struct {
	Nodes   []solver.Node
	Links   []solver.Link
	Classes []solver.NodeClass

	// Names that the testbed does not have.
	types    interner
	features interner
	media    interner
	testbed  *Testbed
	nodes    map[string]int32
	links    map[string]bool
	classes  map[string]class
	// sum of the weights of each desire, for the policies
	desired map[solver.FeatureID]float64
}

type class struct {
	index int32
	types []solver.TypeID
}

// ReadRequest reads a .top file. Types, features and hosts that the testbed
// does not have are no mistakes: the request is impossible then.
func ReadRequest(t *Testbed, r io.Reader) (*Request, error) {
	q := &Request{testbed: t, nodes: map[string]int32{}, links: map[string]bool{}, classes: map[string]class{}, desired: map[solver.FeatureID]float64{}}
	q.types, q.features, q.media = t.types.clone(), t.features.clone(), t.media.clone()
	parents := map[int32]string{}
	err := readLines("top", r, func(tok []string) error {
		switch tok[0] {
		case "node":
			return q.node(tok, parents)
		case "link":
			return q.link(tok)
		case "make-vclass":
			return q.class(tok)
		case "fix-node", "node-hint":
			return q.fix(tok)
		}
		return fmt.Errorf("unknown directive %q: want node, link, make-vclass, fix-node or node-hint", tok[0])
	})
	if err != nil {
		return nil, err
	}
	for v, name := range parents {
		p, ok := q.nodes[name]
		if !ok {
			return nil, fmt.Errorf("top: node %s is subnode_of %s, which is not declared", q.Nodes[v].Name, name)
		}
		q.Nodes[v].Parent = p
	}
	return q, nil
}

func (in *interner) clone() interner { return interner{maps.Clone(in.ids), slices.Clone(in.names)} }

func (q *Request) class(tok []string) error {
	if len(tok) < 4 {
		return errors.New("make-vclass wants NAME WEIGHT and TYPEs")
	}
	name := strings.Clone(tok[1])
	if _, ok := q.classes[name]; ok {
		return fmt.Errorf("vclass %s is made twice", name)
	}
	w, err := weight(tok[2])
	if err != nil || w < 0 {
		return fmt.Errorf("vclass %s: weight %q: want a number from 0", name, tok[2])
	}
	c := class{index: int32(len(q.Classes))}
	for _, x := range tok[3:] {
		c.types = append(c.types, solver.TypeID(q.types.id(x)))
	}
	q.classes[name] = c
	q.Classes = append(q.Classes, solver.NodeClass{Name: name, Weight: w})
	return nil
}

func (q *Request) node(tok []string, parents map[int32]string) error {
	if len(tok) < 3 {
		return errors.New("node wants NAME TYPE[:SLOTS]")
	}
	name := strings.Clone(tok[1])
	if _, ok := q.nodes[name]; ok {
		return fmt.Errorf("node %s is declared twice", name)
	}
	id := int32(len(q.Nodes))
	n := solver.Node{Name: name, Class: -1, Slots: 1, Fixed: -1, Hint: -1, Parent: -1}
	typ, slots, found := strings.Cut(tok[2], ":")
	if found {
		s, err := slotCount(slots)
		if err != nil {
			return fmt.Errorf("node %s: %q: want TYPE:SLOTS", name, tok[2])
		}
		n.Slots = s
	}
	if c, ok := q.classes[typ]; ok {
		n.Class, n.Types = c.index, c.types
	} else {
		n.Types = []solver.TypeID{solver.TypeID(q.types.id(typ))}
	}
	for _, x := range tok[3:] {
		key, value, found := strings.Cut(x, ":")
		switch {
		case key == "disallow_trivial_mix" && !found:
			n.NoTrivialMix = true
		case key == "subnode_of" && found:
			parents[id] = strings.Clone(value)
		case !found:
			return fmt.Errorf("node %s: unknown flag %q: want FEATURE:WEIGHT, disallow_trivial_mix or subnode_of:NODE", name, x)
		default:
			w, err := weight(value)
			if err != nil || key == "" {
				return fmt.Errorf("node %s: desire %q: want FEATURE:WEIGHT", name, x)
			}
			d := solver.Desire{Feature: solver.FeatureID(q.features.id(key)), Weight: w}
			if strings.HasPrefix(key, "?") {
				d.Amount = w
			}
			q.desired[d.Feature] += w
			n.Desires = append(n.Desires, d)
		}
	}
	q.nodes[name] = id
	q.Nodes = append(q.Nodes, n)
	return nil
}

func (q *Request) link(tok []string) error {
	if len(tok) < 8 {
		return errors.New("link wants NAME VSRC VDST BW DELAY LOSS and LINKTYPEs")
	}
	l := solver.Link{Name: strings.Clone(tok[1])}
	if q.links[l.Name] {
		return fmt.Errorf("link %s is declared twice", l.Name)
	}
	q.links[l.Name] = true
	var ok bool
	for i, end := range []*int32{&l.A, &l.B} {
		if *end, ok = q.nodes[tok[2+i]]; !ok {
			return fmt.Errorf("link %s: node %s is not declared", l.Name, tok[2+i])
		}
	}
	if l.A == l.B {
		return fmt.Errorf("link %s joins node %s to itself", l.Name, tok[2])
	}
	for i, what := range []string{"bandwidth", "delay", "loss"} {
		if err := margins(tok[4+i], i == 0); err != nil {
			return fmt.Errorf("link %s: %s %q: %w", l.Name, what, tok[4+i], err)
		}
	}
	bw, _, _ := strings.Cut(tok[4], ":")
	if bw == "*" {
		l.Bandwidth = solver.Native
	} else {
		n, err := strconv.ParseInt(bw, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/1_000_000 {
			return fmt.Errorf("link %s: bandwidth %q: want a whole number from 0 or *", l.Name, tok[4])
		}
		l.Bandwidth = n
	}
	l.Medium = solver.MediumID(q.media.id(tok[7]))
	for _, x := range tok[8:] {
		key, value, found := strings.Cut(x, ":")
		switch {
		case x == "nodelay":
		case x == "emulated":
			l.Emulated = true
		case x == "trivial_ok":
			l.Trivial = true
		case x == "no_interswitch":
			l.NoInterswitch = true
		case key == "fixsrciface" && found:
			l.AIface = strings.Clone(value)
		case key == "fixdstiface" && found:
			l.BIface = strings.Clone(value)
		default:
			return fmt.Errorf("link %s: unknown flag %q: want nodelay, emulated, trivial_ok, no_interswitch, fixsrciface:IF or fixdstiface:IF", l.Name, x)
		}
	}
	if l.Bandwidth == solver.Native && (l.Emulated || l.Trivial) {
		return fmt.Errorf("link %s: native bandwidth goes with neither emulated nor trivial_ok", l.Name)
	}
	q.Links = append(q.Links, l)
	return nil
}

// margins checks a characteristic of a link: a number, or one with how much
// less and more would do, and what it weighs. Assign reads these and uses none
// but the bandwidth itself.
func margins(s string, native bool) error {
	parts := strings.Split(s, ":")
	if len(parts) == 2 || len(parts) > 4 {
		return errors.New("want NUMBER, or NUMBER:UNDER:OVER[:WEIGHT]")
	}
	for i, x := range parts {
		if i == 0 && native && x == "*" {
			continue
		}
		if n, err := strconv.ParseFloat(x, 64); err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("%q is no number", x)
		}
	}
	return nil
}

// Forbidden says what of the request the testbed's policies do not allow. It
// holds whatever a search would find.
func (q *Request) Forbidden() []solver.Reason {
	var out []solver.Reason
	for _, f := range slices.Sorted(maps.Keys(q.desired)) {
		policy, limited := q.testbed.Policies[f]
		name := q.features.names[f]
		switch {
		case !limited:
		case policy.Disallowed:
			out = append(out, solver.Reason{Want: solver.WantHost, Nodes: q.desiring(f),
				Text: fmt.Sprintf("feature %s is wanted, which the policy of the testbed does not allow", name)})
		case q.desired[f] > policy.Limit:
			out = append(out, solver.Reason{Want: solver.WantHost, Nodes: q.desiring(f),
				Text: fmt.Sprintf("feature %s is wanted with weights of %g together; the policy of the testbed allows %g", name, q.desired[f], policy.Limit)})
		}
	}
	return out
}

// desiring lists the nodes that want a feature.
func (q *Request) desiring(f solver.FeatureID) []int32 {
	var nodes []int32
	for v := range q.Nodes {
		if slices.ContainsFunc(q.Nodes[v].Desires, func(d solver.Desire) bool { return d.Feature == f }) {
			nodes = append(nodes, int32(v))
		}
	}
	return nodes
}

func (q *Request) fix(tok []string) error {
	if len(tok) != 3 {
		return fmt.Errorf("%s wants VNODE PNODE", tok[0])
	}
	v, ok := q.nodes[tok[1]]
	if !ok {
		return fmt.Errorf("%s: node %s is not declared", tok[0], tok[1])
	}
	h, ok := q.testbed.hosts[tok[2]]
	if !ok {
		return fmt.Errorf("%s %s: the testbed has no node %s", tok[0], tok[1], tok[2])
	}
	if tok[0] == "fix-node" {
		q.Nodes[v].Fixed = h
	} else {
		q.Nodes[v].Hint = h
	}
	return nil
}

// Problem joins a testbed and a request for the solver, with assign's weights.
func (q *Request) Problem() (*solver.Problem, error) {
	spec := *q.testbed.Spec
	spec.Types, spec.Media = q.types.names, q.media.names
	spec.Features = make([]solver.FeatureType, len(q.features.names))
	for i, n := range q.features.names {
		spec.Features[i] = solver.FeatureType{Name: n, Kind: featureKind(n)}
	}
	tb, err := solver.Compile(&spec)
	if err != nil {
		return nil, err
	}
	return &solver.Problem{Testbed: tb, Nodes: q.Nodes, Links: q.Links, Classes: q.Classes, Weights: solver.DefaultWeights()}, nil
}
