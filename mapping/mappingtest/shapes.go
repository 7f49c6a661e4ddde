package mappingtest

import (
	"fmt"

	"croft/mapping"
	"croft/request"
)

// mustShape reports whether the node at an end of a link must be of a type that
// shapes. Of two ends, one that names a type that cannot leaves it to the
// other; a link with one end carries nothing.
func mustShape(c Case, link *request.Link, end int) bool {
	asks := false
	for _, p := range link.Properties {
		asks = asks || p.Capacity != 0 || p.LatencyMs != 0 || p.Loss != 0 || p.JitterMs != 0
	}
	if !asks || len(link.Ends) == 1 && link.SharedVLAN == "" || native(c, link) {
		return false
	}
	acts, receives := acting(link, end)
	if len(link.Ends) != 2 {
		return acts || receives
	}
	other, _ := acting(link, 1-end)
	switch {
	case namedUnable(c, &link.Ends[end]):
		return acts && namedUnable(c, &link.Ends[1-end])
	case namedUnable(c, &link.Ends[1-end]):
		return acts || other
	}
	return acts
}

// acting reports whether something is asked of what an end sends and receives.
// Of members of a LAN, what only one pair is asked counts for both.
func acting(link *request.Link, end int) (sends, receives bool) {
	id := link.Ends[end].Interface
	for _, p := range link.Properties {
		if p.Capacity == 0 && p.LatencyMs == 0 && p.Loss == 0 && p.JitterMs == 0 {
			continue
		}
		from, to := p.From == id || p.From == "" && p.To == "", p.To == id
		if len(link.Ends) == 2 && p.From == "" && p.To != "" && p.To != id {
			from = true
		}
		sends = sends || from
		receives = receives || to && p.From == "" && len(link.Ends) != 2
	}
	return sends, receives
}

// namedUnable reports whether the node at an end names, or is, of a type that
// does not shape.
func namedUnable(c Case, e *request.End) bool {
	name := request.SliverType("")
	for _, n := range c.Occupancy.Existing {
		if e.Existing && n.ID == e.Node {
			name = n.SliverType
		}
	}
	for _, n := range c.Request.Nodes {
		if !e.Existing && n.ID == e.Node {
			name = n.SliverType
		}
	}
	t, known := c.Snapshot.Type(name)
	return known && name != "" && !t.Shaping && !t.Delay
}

// native reports whether interfaces of just the rate asked for make shaping
// needless, because an end cannot shape.
func native(c Case, link *request.Link) bool {
	if len(link.Properties) == 0 {
		return false
	}
	unable := 0
	for i := range link.Ends {
		if namedUnable(c, &link.Ends[i]) {
			unable++
		}
	}
	open := false
	for _, e := range link.Ends {
		for _, n := range c.Request.Nodes {
			open = open || !e.Existing && n.ID == e.Node && n.SliverType == ""
		}
	}
	if len(link.Ends) == 1 && unable == 0 || !open && (unable == 0 || len(link.Ends) == 2 && unable == 1) {
		return false
	}
	rate := link.Properties[0].Capacity
	for _, p := range link.Properties {
		if p.LatencyMs != 0 || p.Loss != 0 || p.JitterMs != 0 || p.Capacity != 0 && rate != 0 && p.Capacity != rate {
			return false
		}
		rate = max(rate, p.Capacity)
	}
	for i := range c.Snapshot.Hosts {
		for _, f := range c.Snapshot.Hosts[i].Interfaces {
			if f.Speed == rate && rate > 0 {
				return true
			}
		}
	}
	return false
}

// asked is what a link should do from one of its ends to another.
func asked(link *request.Link, from, to request.ClientID) request.Shape {
	var s request.Shape
	for _, p := range link.Properties {
		if (p.From == from || p.From == "") && (p.To == to || p.To == "") {
			s.Capacity = max(s.Capacity, p.Capacity)
			s.LatencyMs, s.JitterMs, s.Loss = max(s.LatencyMs, p.LatencyMs), max(s.JitterMs, p.JitterMs), max(s.Loss, p.Loss)
		}
	}
	return s
}

// shaped says what is wrong with what a placed link does.
func shaped(c Case, link *request.Link, p *mapping.LinkPlacement, able []bool) []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("link %s: ", link.ID)+fmt.Sprintf(format, args...))
	}
	for i, e := range p.Ends {
		if !able[i] && (e.Out != request.Shape{} || e.In != request.Shape{}) {
			say("end %s is to shape and cannot", e.Interface)
		}
	}
	if native(c, link) {
		return wrong
	}
	for i, a := range p.Ends {
		for k, z := range p.Ends {
			if i == k {
				continue
			}
			want := asked(link, a.Interface, z.Interface)
			got := request.Shape{Capacity: a.Out.Capacity, LatencyMs: a.Out.LatencyMs + z.In.LatencyMs,
				JitterMs: max(a.Out.JitterMs, z.In.JitterMs), Loss: max(a.Out.Loss, z.In.Loss)}
			if in := z.In.Capacity; in > 0 && (got.Capacity == 0 || in < got.Capacity) {
				got.Capacity = in
			}
			if got != want {
				say("from %s to %s it does %+v instead of %+v", a.Interface, z.Interface, got, want)
			}
		}
	}
	return wrong
}
