package mapping

import (
	"slices"

	"croft/inventory"
	"croft/request"
	"croft/urn"
)

// Greedy is the Mapper for testbeds whose hosts reach one another without
// limit: one machine, or machines on one network. It looks at hosts, what they
// offer and what is free of them; it does not look at the wiring.
//
// It places nodes one by one and goes back where it must, so that a small
// request that fits at all is placed; see Options.Effort for large ones.
type Greedy struct{}

var _ Mapper = Greedy{}

// Map places a request. The error is a *Refusal.
func (Greedy) Map(snapshot *inventory.Snapshot, occupancy Occupancy, req *request.Request, options Options) (*Placement, error) {
	b := newBoard(snapshot, &occupancy, options.Slice)
	links, r := newLinkage(b, occupancy.Existing, req)
	if r != nil {
		return nil, r
	}
	wants, r := b.wants(req, links)
	if r != nil {
		return nil, r
	}
	for _, w := range wants {
		b.consider(w)
	}
	if r := b.refuseWants(wants, links); r != nil {
		return nil, r
	}
	chosen, _, how := arrange(b, wants, links.near, options)
	if how != found {
		return nil, refuseTogether(b, snapshot, wants, links, req, options, how)
	}
	p := &Placement{Nodes: make([]NodePlacement, len(req.Nodes)), Links: make([]LinkPlacement, len(req.Links))}
	for i := range req.Nodes {
		p.Nodes[i] = b.node(&req.Nodes[i], &chosen[i], links.joined(i))
	}
	if r := assignAddresses(snapshot.Pools.Addresses, links, p); r != nil {
		return nil, r
	}
	if r := assignMACs(req, options, p); r != nil {
		return nil, r
	}
	for i := range req.Links {
		p.Links[i] = LinkPlacement{Link: req.Links[i].ID, Within: links.within(i, p)}
	}
	return p, nil
}

// refuseWants refuses a request of which some node has no place by itself. Of
// several, what can never be comes first: waiting does not help there.
func (b *board) refuseWants(wants []*want, links *linkage) *Refusal {
	var worst *Refusal
	hopeless := func(r *Refusal) int {
		switch {
		case r.Kind == Impossible || r.Kind == Contradicts || r.Kind == Bandwidth:
			return 2
		case r.Never:
			return 1
		}
		return 0
	}
	for _, w := range wants {
		if len(w.options) > 0 {
			continue
		}
		if r := b.refuseOne(w, links); worst == nil || hopeless(r) > hopeless(worst) {
			worst = r
		}
	}
	if worst != nil && hopeless(worst) == 2 {
		return worst
	}
	if r := b.refuseGroups(wants, links); r != nil {
		return r
	}
	return worst
}

// refuseGroups refuses links between nodes that no one driver can make.
func (b *board) refuseGroups(wants []*want, links *linkage) *Refusal {
	allowed := map[int][]string{}
	driversOf := map[int][]string{} // by node
	for _, w := range wants {
		if w.group == 0 {
			return nil // one driver makes everything
		}
		drivers := b.driversFor(w)
		for _, n := range w.nodes {
			driversOf[n] = drivers
		}
	}
	for node, group := range links.group {
		drivers := driversOf[node]
		if before, some := allowed[group]; some {
			drivers = common(before, drivers)
		}
		if len(drivers) == 0 {
			return links.refuseDrivers(node)
		}
		allowed[group] = drivers
	}
	return nil
}

// driversFor are the drivers that could make a node, were every host free and
// large enough.
func (b *board) driversFor(w *want) []string {
	var drivers []string
	for i := range b.slots {
		if w.bound >= 0 && w.bound != i {
			continue
		}
		for _, kind := range b.slots[i].types {
			d := b.types[kind].Driver
			if slices.Contains(drivers, d) {
				continue
			}
			if _, st := b.option(w, i, kind); st >= bySize {
				drivers = append(drivers, d)
			}
		}
	}
	return drivers
}

// refuseTogether refuses a request whose nodes each have a place, but not
// together. It tells apart what an empty testbed could take from what not even
// that could.
func refuseTogether(b *board, snapshot *inventory.Snapshot, wants []*want, links *linkage, req *request.Request, options Options, how outcome) *Refusal {
	empty := newBoard(snapshot, nil, options.Slice)
	free := make([]*want, len(wants))
	for i, w := range wants {
		copied := *w
		empty.consider(&copied)
		free[i] = &copied
	}
	r := &Refusal{Kind: Full, GaveUp: how == undecided}
	_, _, ever := arrange(empty, free, links.near, options)
	if ever == proved {
		r.Never = true
		return refuseAll(empty, free, links, req, options, r)
	}
	return refuseAll(b, wants, links, req, options, r)
}

// node completes a node that has its place.
func (b *board) node(n *request.Node, o *option, joined []bool) NodePlacement {
	h := b.slots[o.slot].host
	p := NodePlacement{
		Node: n.ID, Host: h.ID, SliverType: b.types[o.kind].Name, Image: o.image,
		Exclusive: o.exclusive, Capacity: o.demand, Interfaces: make([]InterfacePlacement, len(n.Interfaces)),
	}
	bound := make([]int, len(n.Interfaces))
	for i, f := range n.Interfaces {
		bound[i] = -1
		if !f.Component.IsZero() {
			bound[i] = slices.IndexFunc(h.Interfaces, func(hi inventory.Interface) bool { return hi.ID.Equal(f.Component) })
		}
	}
	for i, picked := range interfacesFor(h, o.whole, bound, joined) {
		p.Interfaces[i] = InterfacePlacement{ID: n.Interfaces[i].ID, Addresses: slices.Clone(n.Interfaces[i].Addresses)}
		if picked >= 0 {
			p.Interfaces[i].Component = h.Interfaces[picked].ID
		}
	}
	return p
}

// interfacesFor picks the host's interface for each of a node's that links
// join, on hosts that are given out whole; others share what there is.
func interfacesFor(h *inventory.Host, whole bool, bound []int, linked []bool) []int {
	picked := make([]int, len(bound))
	used := map[int]bool{}
	for i, b := range bound {
		picked[i] = b
		used[b] = true
	}
	if !whole {
		return picked
	}
	next := 0
	for i := range picked {
		if picked[i] >= 0 || !linked[i] {
			continue
		}
		for next < len(h.Interfaces) && (used[next] || h.Interfaces[next].Role == inventory.Control) {
			next++
		}
		if next < len(h.Interfaces) {
			picked[i] = next
			used[next] = true
		}
	}
	return picked
}

// joined tells which interfaces of a node links join.
func (l *linkage) joined(node int) []bool {
	all := make([]bool, len(l.req.Nodes[node].Interfaces))
	for _, iface := range l.used[node] {
		all[iface] = true
	}
	return all
}

// within is the host that carries a whole link; zero if it crosses hosts.
func (l *linkage) within(link int, p *Placement) urn.URN {
	var host urn.URN
	for i, e := range l.ends[link] {
		var at urn.URN
		if e.node >= 0 {
			at = p.Nodes[e.node].Host
		} else {
			at = l.existing[e.existing].Host
		}
		if i > 0 && !at.Equal(host) {
			return urn.URN{}
		}
		host = at
	}
	return host
}
