package mapping

import (
	"fmt"
	"slices"

	"croft/capacity"
	"croft/mapping/solver"
	"croft/request"
	"croft/urn"
)

// placement completes what the solver has found.
func (j *job) placement(l *layout, sol *solver.Solution) (*Placement, *Refusal) {
	p := &Placement{Nodes: make([]NodePlacement, len(j.req.Nodes)), Links: make([]LinkPlacement, len(j.req.Links)), Score: sol.Score, Cut: sol.Cut}
	for i := range j.req.Nodes {
		o := j.optionOn(j.wantOf[i], sol.Hosts[i], l.kinds[i])
		p.Nodes[i] = j.nodePlacement(i, o)
	}
	j.internal = map[urn.URN]capacity.Kbps{}
	for _, lans := range []bool{false, true} { // the solver has seen to the others
		for i := range j.req.Links {
			if lans != (l.bridges[i] >= 0) {
				continue
			}
			var r *Refusal
			if p.Links[i], r = j.linkPlacement(i, l, sol, p); r != nil {
				return nil, r
			}
		}
	}
	addressed := j.links
	if j.delays != nil {
		j.delays.mark(p)
		addressed = j.delays.plain
	}
	if r := assignAddresses(j.snapshot.Pools.Addresses, addressed, p); r != nil {
		return nil, r
	}
	if r := assignMACs(j.req, j.options, p); r != nil {
		return nil, r
	}
	if r := j.assignVLANs(p); r != nil {
		return nil, r
	}
	return p, nil
}

func (j *job) nodePlacement(i int, o *option) NodePlacement {
	n, w := &j.req.Nodes[i], j.wantOf[i]
	p := NodePlacement{
		Node: n.ID, Host: j.slots[o.slot].host.ID, SliverType: j.types[o.kind].Name, Exclusive: o.exclusive, Capacity: o.demand, Interfaces: make([]InterfacePlacement, len(n.Interfaces)),
	}
	if o.image != nil {
		p.Image = *o.image
	}
	for _, f := range w.features {
		if f.Amount > 0 && j.extraOf(amountOf(f.Name)) >= 0 && hasFeature(j.slots[o.slot].host, f.Name) {
			if p.Features == nil {
				p.Features = map[string]float64{}
			}
			p.Features[f.Name] += f.Amount
		}
	}
	for k := range n.Interfaces {
		f := &n.Interfaces[k]
		p.Interfaces[k] = InterfacePlacement{ID: f.ID, Addresses: slices.Clone(f.Addresses)}
		if f.Component.IsZero() {
			continue
		}
		for x := range j.slots[o.slot].host.Interfaces {
			if own := &j.slots[o.slot].host.Interfaces[x]; own.ID.Equal(f.Component) {
				p.Interfaces[k].Component = own.ID
			}
		}
	}
	return p
}

// linkPlacement writes down the way of a link.
func (j *job) linkPlacement(i int, l *layout, sol *solver.Solution, p *Placement) (LinkPlacement, *Refusal) {
	link := &j.req.Links[i]
	out := LinkPlacement{Link: link.ID, SharedVLAN: link.SharedVLAN, Within: j.links.within(i, p)}
	ends := j.links.ends[i]
	if len(ends) > 1 && link.Trivial == request.No {
		out.Within = urn.URN{}
	}
	local := len(ends) > 1 && !out.Within.IsZero()
	if local && !j.carries(out.Within, j.links.rates[i]) {
		// It can go out to the switch and back, by interfaces that are for it.
		if local, out.Within = false, (urn.URN{}); !j.leaves(l, sol, i) {
			return out, &Refusal{Kind: Bandwidth, Item: link.ID, Place: link.Place,
				Why: fmt.Sprintf("wants %d kbit/s within a host, more than is left of what the host carries", j.links.rates[i])}
		}
	}
	if local {
		out.Bandwidth = j.links.rates[i]
		j.internal[out.Within.Canonical()] += out.Bandwidth
	}
	for k, e := range ends {
		end := EndPlacement{Node: link.Ends[k].Node, Interface: link.Ends[k].Interface, Existing: e.node < 0}
		if s := j.links.shapes[i]; s != nil {
			end.Out, end.In = s[k].out, s[k].in
		}
		if at := l.ends[i][k]; at >= 0 && !local {
			end.Component = j.leavesBy(l, sol, at, e, k)
			if e.node >= 0 && !l.shared[i][k] && !end.Component.IsZero() {
				p.Nodes[e.node].Interfaces[e.iface].Component = end.Component
			}
		}
		out.Ends = append(out.Ends, end)
	}
	if local {
		return out, nil
	}
	seen := map[int32]int{}
	for k, at := range l.ends[i] {
		if at < 0 || k == 1 && l.bridges[i] < 0 {
			continue
		}
		for _, w := range sol.Routes[at].Wires {
			wire := &j.wires[w]
			if wire.id.IsZero() {
				continue
			}
			rate := l.problem.Links[at].Bandwidth
			if n, known := seen[w]; known {
				out.Route[n].Bandwidth += kbps(rate)
				continue
			}
			seen[w] = len(out.Route)
			c := Carrier{Wire: wire.id, Bandwidth: kbps(rate), Exclusive: !wire.trunk && !l.problem.Links[at].Emulated}
			if of := j.testbed.Spec().Wires[w].Bandwidth; of < unbounded {
				c.Of = kbps(of)
			}
			out.Route = append(out.Route, c)
		}
	}
	return out, nil
}

// carries reports whether a host can carry that much more within it.
func (j *job) carries(host urn.URN, rate capacity.Kbps) bool {
	i, known := j.byID[host.Canonical()]
	if !known || j.slots[i].host.Internal == 0 || rate == 0 {
		return true
	}
	used := j.internal[host.Canonical()]
	if j.occupancy != nil {
		used += j.occupancy.Hosts[host.Canonical()].Internal
	}
	return used+rate <= j.slots[i].host.Internal
}

// leaves reports whether the ends of a LAN have interfaces to leave by.
func (j *job) leaves(l *layout, sol *solver.Solution, i int) bool {
	for _, at := range l.ends[i] {
		if at < 0 || len(sol.Routes[at].Wires) == 0 || j.wires[sol.Routes[at].Wires[0]].id.IsZero() {
			return false
		}
	}
	return true
}

// leavesBy is the interface by which a link leaves the host of one of its ends.
func (j *job) leavesBy(l *layout, sol *solver.Solution, at int32, e endpoint, k int) urn.URN {
	wires := sol.Routes[at].Wires
	if len(wires) == 0 {
		return urn.URN{}
	}
	x := &l.problem.Links[at]
	v, first := x.A, wires[0]
	if k == 1 && x.A != j.solverNode(l, e) {
		v, first = x.B, wires[len(wires)-1]
	}
	host := sol.Hosts[v]
	w := &j.wires[first]
	if w.ends[0] == host {
		return w.ifaces[0]
	}
	return w.ifaces[1]
}
