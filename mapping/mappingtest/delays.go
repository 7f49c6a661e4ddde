package mappingtest

import (
	"fmt"
	"slices"

	"croft/mapping"
	"croft/request"
	"croft/urn"
)

// delayed looks at the delay nodes of a placement. It returns the case as if
// its request asked for them itself, and the placement as if it had none: with
// the links of the request whole again.
func delayed(c Case, p *mapping.Placement) (Case, *mapping.Placement, []string) {
	nodes, links := len(c.Request.Nodes), len(c.Request.Links)
	if len(p.Nodes) <= nodes || len(p.Links) <= links {
		return c, p, nil
	}
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if !c.Options.DelayNodes {
		say("there are delay nodes, which nobody allows")
	}
	asks := *c.Request
	asks.Nodes, asks.Links = slices.Clone(asks.Nodes), slices.Clone(asks.Links)
	plain := *p
	plain.Nodes, plain.Links = p.Nodes[:nodes], slices.Clone(p.Links[:links])
	for _, n := range p.Nodes[nodes:] {
		if t, _ := c.Snapshot.Type(n.SliverType); t == nil || !t.Delay || len(n.Interfaces) != 2 || n.Delays == "" {
			say("node %s is no delay node", n.Node)
			return c, p, wrong
		}
		node := request.Node{ID: n.Node, SliverType: n.SliverType}
		for _, f := range n.Interfaces {
			node.Interfaces = append(node.Interfaces, request.Interface{ID: f.ID})
			if len(f.Addresses) > 0 {
				say("delay node %s has addresses", n.Node)
			}
		}
		asks.Nodes = append(asks.Nodes, node)
	}
	for i := range c.Request.Links {
		link := &c.Request.Links[i]
		parts := []*mapping.LinkPlacement{&p.Links[i]}
		for k := range p.Links[links:] {
			if x := &p.Links[links+k]; x.PartOf == link.ID {
				parts = append(parts, x)
			}
		}
		if len(parts) == 1 {
			continue
		}
		w := chain(c, p, link, parts)
		wrong = append(wrong, w...)
		for k, part := range parts {
			cut := *link
			cut.ID, cut.Ends, cut.Properties = part.Link, nil, nil
			for _, e := range part.Ends {
				cut.Ends = append(cut.Ends, request.End{Node: e.Node, Interface: e.Interface, Existing: e.Existing})
				if e.Out != (request.Shape{}) {
					cut.Properties = append(cut.Properties, request.Property{From: e.Interface, Capacity: e.Out.Capacity, LatencyMs: e.Out.LatencyMs, JitterMs: e.Out.JitterMs, Loss: e.Out.Loss})
				}
				if e.In != (request.Shape{}) {
					cut.Properties = append(cut.Properties, request.Property{To: e.Interface, Capacity: e.In.Capacity, LatencyMs: e.In.LatencyMs, JitterMs: e.In.JitterMs, Loss: e.In.Loss})
				}
			}
			if k == 0 {
				asks.Links[i] = cut
				continue
			}
			cut.SharedVLAN = ""
			asks.Links = append(asks.Links, cut)
		}
		plain.Links[i].Ends = wholeEnds(link, parts)
		plain.Links[i].Within = oneHost(c, p, link)
		if len(link.Ends) > 1 && (len(plain.Links[i].Route) > 0 || link.Trivial == request.No) {
			plain.Links[i].Within = urn.URN{}
		}
	}
	c.Request = &asks
	return c, &plain, wrong
}

// wholeEnds are the placements of a link's own ends, wherever they are.
func wholeEnds(link *request.Link, parts []*mapping.LinkPlacement) []mapping.EndPlacement {
	var all []mapping.EndPlacement
	for _, e := range link.Ends {
		for _, part := range parts {
			for _, x := range part.Ends {
				if x.Node == e.Node && x.Interface == e.Interface && x.Existing == e.Existing {
					all = append(all, x)
				}
			}
		}
	}
	return all
}

func oneHost(c Case, p *mapping.Placement, link *request.Link) urn.URN {
	var at urn.URN
	for i, e := range link.Ends {
		var host urn.URN
		for _, n := range p.Nodes {
			if !e.Existing && n.Node == e.Node {
				host = n.Host
			}
		}
		for _, n := range c.Occupancy.Existing {
			if e.Existing && n.ID == e.Node {
				host = n.Host
			}
		}
		if i > 0 && !host.Equal(at) {
			return urn.URN{}
		}
		at = host
	}
	return at
}

// chain says what is wrong with a link that is cut: from each of its ends a way
// must lead to each other one, through delay nodes, and do what is asked.
func chain(c Case, p *mapping.Placement, link *request.Link, parts []*mapping.LinkPlacement) []string {
	var wrong []string
	own := wholeEnds(link, parts)
	if len(own) != len(link.Ends) {
		return []string{fmt.Sprintf("link %s has %d ends of %d", link.ID, len(own), len(link.Ends))}
	}
	others := func(node, iface request.ClientID) (request.ClientID, bool) {
		for _, n := range p.Nodes {
			if n.Node == node && n.Delays == link.ID {
				for _, f := range n.Interfaces {
					if f.ID != iface {
						return f.ID, true
					}
				}
			}
		}
		return "", false
	}
	// walk goes from an interface over the part that it is on, and on through
	// delay nodes, until it has come to the interface wanted.
	var walk func(from, to request.ClientID, so request.Shape, depth int) (request.Shape, bool)
	walk = func(from, to request.ClientID, so request.Shape, depth int) (request.Shape, bool) {
		for _, part := range parts {
			at := slices.IndexFunc(part.Ends, func(e mapping.EndPlacement) bool { return e.Interface == from })
			if at < 0 || depth > len(parts) {
				continue
			}
			for k, e := range part.Ends {
				if k == at {
					continue
				}
				passed := both(both(so, part.Ends[at].Out), e.In)
				if e.Interface == to {
					return passed, true
				}
				if next, ok := others(e.Node, e.Interface); ok {
					if done, ok := walk(next, to, passed, depth+1); ok {
						return done, true
					}
				}
			}
		}
		return so, false
	}
	for _, a := range link.Ends {
		for _, z := range link.Ends {
			if a.Interface == z.Interface {
				continue
			}
			got, ok := walk(a.Interface, z.Interface, request.Shape{}, 0)
			if want := asked(link, a.Interface, z.Interface); !ok || got != want {
				wrong = append(wrong, fmt.Sprintf("link %s: from %s to %s (%v) it does %+v instead of %+v", link.ID, a.Interface, z.Interface, ok, got, want))
			}
		}
	}
	return wrong
}

// both is what two shapes do one after the other.
func both(a, b request.Shape) request.Shape {
	s := request.Shape{Capacity: a.Capacity, LatencyMs: a.LatencyMs + b.LatencyMs, JitterMs: max(a.JitterMs, b.JitterMs), Loss: max(a.Loss, b.Loss)}
	if b.Capacity > 0 && (s.Capacity == 0 || b.Capacity < s.Capacity) {
		s.Capacity = b.Capacity
	}
	return s
}
