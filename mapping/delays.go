package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/request"
)

// unshaped is a link that asks for what its ends cannot give.
type unshaped struct {
	link   int
	asks   *shape
	shapes []endShape
	able   []bool                // by end: whether it shapes
	kind   *inventory.SliverType // of delay nodes that could do it; nil if there are none
}

// delays are the delay nodes that were put into a request.
type delays struct {
	plain   *linkage         // of the request without them
	request *request.Request // with them
	of      map[request.ClientID]request.ClientID
	rates   map[request.ClientID]capacity.Kbps // by link that was cut, or a part of one
}

// delayType is the type of delay nodes that one of the drivers makes.
func delayType(b *board, drivers []string) *inventory.SliverType {
	for _, t := range b.types {
		if t.Delay && slices.Contains(drivers, t.LinkedBy()) {
			return t
		}
	}
	return nil
}

// rate is what a link needs beside its properties, because what the delay node
// slows down has to get there first.
func (d *delays) rate(link request.ClientID) capacity.Kbps {
	if d == nil {
		return 0
	}
	return d.rates[link]
}

// refuseUnshaped refuses the first link that no delay node may mend.
func (l *linkage) refuseUnshaped(may bool) *Refusal {
	for _, u := range l.unshaped {
		link := &l.req.Links[u.link]
		switch {
		case u.kind == nil:
			return u.asks.refusal()
		case !may:
			r := u.asks.refusal()
			r.Why += ": it would take a delay node between its ends, which cannot be made for this request"
			return r
		case link.Existing:
			r := u.asks.refusal()
			r.Why += ", and the link stands already: no delay node can be put into it"
			return r
		}
	}
	return nil
}

// delayed is the request with delay nodes in the links that need them: one
// between the ends of a link of two, and in a LAN one before each end that asks
// for something that it cannot do.
func (l *linkage) delayed() *delays {
	d := &delays{plain: l, of: map[request.ClientID]request.ClientID{}, rates: map[request.ClientID]capacity.Kbps{}}
	more := *l.req
	more.Nodes, more.Links = slices.Clone(l.req.Nodes), slices.Clone(l.req.Links)
	d.request = &more
	var parts []request.Link
	for i := range l.unshaped {
		u := &l.unshaped[i]
		link := &more.Links[u.link]
		link.Ends, link.Properties = slices.Clone(link.Ends), nil
		cut := func(end int, to, from request.Shape) {
			node, part := d.cut(u, link, end, to, from)
			more.Nodes, parts = append(more.Nodes, node), append(parts, part)
		}
		if len(link.Ends) == 2 && link.SharedVLAN == "" {
			cut(1, u.shapes[0].out, u.shapes[1].out)
			continue
		}
		for k, s := range u.shapes {
			switch {
			case s == (endShape{}):
			case u.able[k]:
				link.Properties = asked(asked(link.Properties, link.Ends[k].Interface, "", s.out), "", link.Ends[k].Interface, s.in)
			default:
				cut(k, s.in, s.out)
			}
		}
	}
	more.Links = append(more.Links, parts...)
	return d
}

// cut puts a delay node before an end of a link, which does something to what
// goes to that end, and to what comes from it. It returns the node and the
// part of the link that is behind it.
func (d *delays) cut(u *unshaped, link *request.Link, end int, to, from request.Shape) (request.Node, request.Link) {
	node := request.Node{ID: d.name(link.ID, "delay"), Place: link.Place, SliverType: u.kind.Name}
	for k := range 2 {
		node.Interfaces = append(node.Interfaces, request.Interface{ID: request.ClientID(fmt.Sprintf("%s:%d", node.ID, k)), Place: link.Place})
	}
	here, there := node.Interfaces[0].ID, node.Interfaces[1].ID
	d.of[node.ID] = link.ID
	part := *link
	part.ID, part.SharedVLAN, part.VLAN = d.name(link.ID, "part"), "", 0
	d.of[part.ID] = link.ID
	part.Ends = []request.End{{Node: node.ID, Interface: there, Place: link.Place}, link.Ends[end]}
	part.Properties = asked(nil, there, "", to)
	link.Ends[end] = request.End{Node: node.ID, Interface: here, Place: link.Place}
	link.Properties = asked(link.Properties, here, "", from)
	if most := max(to.Capacity, from.Capacity); !link.BestEffort {
		d.rates[part.ID] = most
		if len(link.Ends) == 2 {
			d.rates[link.ID] = most
		}
	}
	return node, part
}

// name makes a name that the request does not have.
func (d *delays) name(link request.ClientID, what string) request.ClientID {
	for i := 0; ; i++ {
		id := request.ClientID(fmt.Sprintf("%s~%s%d", link, what, i))
		_, node := d.plain.nodes[id]
		_, stands := d.plain.stands[id]
		_, made := d.of[id]
		if !node && !stands && !made && !slices.ContainsFunc(d.plain.req.Links, func(l request.Link) bool { return l.ID == id }) {
			return id
		}
	}
}

// asked adds a property that asks for something.
func asked(list []request.Property, from, to request.ClientID, s request.Shape) []request.Property {
	if s == (request.Shape{}) {
		return list
	}
	return append(list, request.Property{From: from, To: to, Capacity: s.Capacity, LatencyMs: s.LatencyMs, JitterMs: s.JitterMs, Loss: s.Loss})
}

// mark says in a placement what is no node or link of the request.
func (d *delays) mark(p *Placement) {
	for i := range p.Nodes {
		p.Nodes[i].Delays = d.of[p.Nodes[i].Node]
	}
	for i := range p.Links {
		p.Links[i].PartOf = d.of[p.Links[i].Link]
	}
}

// about makes a refusal of the request with delay nodes one of the request.
func (d *delays) about(r *Refusal) *Refusal {
	told := *r
	// Longer names first: one may begin another.
	ids := slices.SortedFunc(maps.Keys(d.of), func(a, b request.ClientID) int {
		return cmp.Or(len(b)-len(a), strings.Compare(string(a), string(b)))
	})
	for _, id := range ids {
		name := string(d.of[id])
		if !slices.ContainsFunc(d.request.Links, func(l request.Link) bool { return l.ID == id }) {
			name = "the delay node of link " + name
		}
		told.Why = strings.ReplaceAll(told.Why, string(id), name)
		told.Hint = strings.ReplaceAll(told.Hint, string(id), name)
	}
	if link, ours := d.of[r.Item]; ours {
		told.Item = link
		told.Why = "needs a delay node between its ends, for they cannot be shaped: " + told.Why
	}
	return &told
}
