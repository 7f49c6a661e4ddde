package mapping

import (
	"fmt"
	"slices"

	"croft/capacity"
	"croft/inventory"
	"croft/request"
)

// endShape is what a link does to what one of its interfaces sends and
// receives.
type endShape struct{ out, in request.Shape }

// shapesOf turns the properties of a link into what each of its ends does, in
// the order of the ends. Of a link with two ends, what passes from A to B is
// what A sends. Of a LAN, what an interface sends to all others alike is what
// it sends, and what it gets from all others alike is what it receives; a LAN
// that is to treat pairs of its members differently cannot be made.
func shapesOf(l *request.Link) ([]endShape, *Refusal) {
	n := len(l.Ends)
	at := map[request.ClientID]int{}
	for i, e := range l.Ends {
		at[e.Interface] = i
	}
	shapes := make([]endShape, n)
	refuse := func(p *request.Property, why string) *Refusal {
		place := p.Place
		if place == (request.Place{}) {
			place = l.Place
		}
		return &Refusal{Kind: Bandwidth, Item: l.ID, Place: place, Why: why,
			Hint: "say for an interface what it sends to all others, or what it receives from all others"}
	}
	// What is said of single pairs, to be turned into ends.
	pairs := make([][]*request.Property, n)
	for i := range pairs {
		pairs[i] = make([]*request.Property, n)
	}
	some := false
	for i := range l.Properties {
		p := &l.Properties[i]
		s := shapeOf(p)
		if s == (request.Shape{}) {
			continue
		}
		from, knownFrom := at[p.From]
		to, knownTo := at[p.To]
		if p.From != "" && !knownFrom || p.To != "" && !knownTo {
			// An end that was left out, or is at another aggregate.
			continue
		}
		ok := true
		switch {
		case p.From == "" && p.To == "":
			for k := range shapes {
				ok = ok && merge(&shapes[k].out, s)
			}
		case p.To == "":
			ok = merge(&shapes[from].out, s)
		case p.From == "" && n == 2:
			ok = merge(&shapes[1-to].out, s)
		case p.From == "":
			ok = merge(&shapes[to].in, s)
		case from == to:
		case n == 2:
			ok = merge(&shapes[from].out, s)
		case pairs[from][to] != nil && shapeOf(pairs[from][to]) != s:
			ok = false
		default:
			pairs[from][to] = p
			some = true
		}
		if !ok {
			return nil, &Refusal{Kind: Contradicts, Item: l.ID, Place: p.Place, Why: "says two things of one direction", Hint: "keep one"}
		}
	}
	if !some {
		return shapes, nil
	}
	// alike reports whether a member is said to have one and the same shape
	// towards, or from, all others.
	alike := func(k int, get func(i, j int) *request.Property) *request.Property {
		var first *request.Property
		for o := range n {
			if o == k {
				continue
			}
			p := get(k, o)
			if p == nil || first != nil && shapeOf(p) != shapeOf(first) {
				return nil
			}
			first = p
		}
		return first
	}
	rows := func(i, j int) *request.Property { return pairs[i][j] }
	columns := func(i, j int) *request.Property { return pairs[j][i] }
	for i := range n {
		if p := alike(i, rows); p != nil {
			if !merge(&shapes[i].out, shapeOf(p)) {
				return nil, refuse(p, "says two things of what "+string(l.Ends[i].Interface)+" sends")
			}
			clear(pairs[i])
		}
	}
	for j := range n {
		if p := alike(j, columns); p != nil {
			if !merge(&shapes[j].in, shapeOf(p)) {
				return nil, refuse(p, "says two things of what "+string(l.Ends[j].Interface)+" receives")
			}
			for i := range n {
				pairs[i][j] = nil
			}
		}
	}
	for i := range pairs {
		for j, p := range pairs[i] {
			if p != nil {
				return nil, refuse(p, fmt.Sprintf("wants from %s to %s what it does not want towards the others: a LAN cannot treat pairs of its members differently",
					l.Ends[i].Interface, l.Ends[j].Interface))
			}
		}
	}
	return shapes, nil
}

func shapeOf(p *request.Property) request.Shape {
	return request.Shape{Capacity: p.Capacity, LatencyMs: p.LatencyMs, JitterMs: p.JitterMs, Loss: p.Loss}
}

// merge adds what s says to what is said already; false if they differ.
func merge(into *request.Shape, s request.Shape) bool {
	ok := true
	add := func(have *float64, more float64) {
		ok = ok && (*have == 0 || more == 0 || *have == more)
		*have = max(*have, more)
	}
	ok = into.Capacity == 0 || s.Capacity == 0 || into.Capacity == s.Capacity
	into.Capacity = max(into.Capacity, s.Capacity)
	add(&into.LatencyMs, s.LatencyMs)
	add(&into.JitterMs, s.JitterMs)
	add(&into.Loss, s.Loss)
	return ok
}

// shape finds out what the ends of a link must do, who can do it, and what rate
// the link needs. It notes which nodes need a type that can shape.
func (l *linkage) shape(b *board, i int) *Refusal {
	link := &l.req.Links[i]
	shapes, r := shapesOf(link)
	if r != nil {
		return r
	}
	asks := slices.IndexFunc(link.Properties, func(p request.Property) bool { return shapeOf(&p) != (request.Shape{}) })
	if asks < 0 {
		l.shapes[i] = shapes
		return nil
	}
	s := &shape{link, &link.Properties[asks]}
	rates := true
	var most capacity.Kbps
	for _, e := range shapes {
		most = max(most, e.out.Capacity, e.in.Capacity)
		for _, d := range []request.Shape{e.out, e.in} {
			d.Capacity = 0
			rates = rates && d == (request.Shape{})
		}
	}
	if !link.BestEffort {
		l.rates[i] = most
	}
	able := make([]bool, len(shapes))
	drivers := l.driversOf(b, i)
	for k, e := range l.ends[i] {
		able[k] = l.canShape(b, e, drivers)
	}
	_, fast := b.media[most]
	fast = fast && rates && uniform(shapes, most)
	if fast && len(shapes) > 1 && slices.ContainsFunc(l.ends[i], l.open) {
		// Interfaces that are just that fast will do: nodes that leave their
		// type open are not held to one that shapes.
		l.native[i] = true
		l.shapes[i] = make([]endShape, len(shapes))
		return nil
	}
	// Of two ends, one can do the other's part.
	if len(shapes) == 2 {
		for k := range shapes {
			if o := 1 - k; !able[k] && able[o] && shapes[o].in == (request.Shape{}) && shapes[k].in == (request.Shape{}) {
				shapes[o].in, shapes[k].out = shapes[k].out, request.Shape{}
			}
		}
	}
	if len(shapes) == 1 && link.SharedVLAN == "" {
		shapes[0] = endShape{} // nothing passes
	}
	for k, e := range shapes {
		if e == (endShape{}) || able[k] {
			continue
		}
		// An interface that is just that fast needs no shaping.
		if fast {
			l.native[i] = true
			l.shapes[i] = make([]endShape, len(shapes))
			return nil
		}
		u := unshaped{link: i, asks: s, shapes: shapes, able: able, kind: delayType(b, drivers)}
		l.unshaped = append(l.unshaped, u)
		l.shapes[i] = make([]endShape, len(shapes))
		return nil
	}
	for k, e := range l.ends[i] {
		if e.node >= 0 && shapes[k] != (endShape{}) && l.shaped[e.node] == nil {
			l.shaped[e.node] = s
		}
	}
	l.shapes[i] = shapes
	return nil
}

// open reports whether a node leaves its type open.
func (l *linkage) open(e endpoint) bool { return e.node >= 0 && l.req.Nodes[e.node].SliverType == "" }

// uniform reports whether all rates are the same or open.
func uniform(shapes []endShape, rate capacity.Kbps) bool {
	return !slices.ContainsFunc(shapes, func(e endShape) bool {
		return e.out.Capacity != 0 && e.out.Capacity != rate || e.in.Capacity != 0 && e.in.Capacity != rate
	})
}

// canShape reports whether the node at an end can be of a type that shapes.
func (l *linkage) canShape(b *board, e endpoint, drivers []string) bool {
	shapes := func(t *inventory.SliverType) bool {
		return (t.Shaping || t.Delay) && slices.Contains(drivers, t.LinkedBy())
	}
	if e.existing >= 0 {
		return slices.ContainsFunc(b.typesOf(&l.existing[e.existing]), shapes)
	}
	n := &l.req.Nodes[e.node]
	if t, known := b.snapshot.Type(n.SliverType); known && n.SliverType != "" {
		return shapes(t)
	}
	open := func(t *inventory.SliverType) bool { return !t.Delay && shapes(t) }
	return n.SliverType != "" || slices.ContainsFunc(b.types, open) // an unknown type is refused elsewhere
}

// driversOf are those that can make a link, by the types that its ends name.
func (l *linkage) driversOf(b *board, i int) []string {
	var all []string
	for _, t := range b.types {
		if !slices.Contains(all, t.LinkedBy()) {
			all = append(all, t.LinkedBy())
		}
	}
	for _, e := range l.ends[i] {
		var own []string
		if e.existing >= 0 {
			for _, t := range b.typesOf(&l.existing[e.existing]) {
				own = append(own, t.LinkedBy())
			}
		} else if t, known := b.snapshot.Type(l.req.Nodes[e.node].SliverType); known && l.req.Nodes[e.node].SliverType != "" {
			own = append(own, t.LinkedBy())
		} else {
			continue
		}
		if both := common(all, own); len(both) > 0 {
			all = both
		}
	}
	return all
}
