package mappingtest

import (
	"fmt"
	"slices"

	"croft/capacity"
	"croft/inventory"
	"croft/mapping"
	"croft/request"
	"croft/urn"
)

// cabling says what is wrong with the ways of links: that they lead from end to
// end over wires that there are, by interfaces that are free, with the rates
// that they need, and tags that nobody has.
func cabling(c Case, p *mapping.Placement) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	type load struct {
		rate      capacity.Kbps
		links     int
		exclusive int
	}
	loads := map[urn.URN]*load{}
	for id, u := range c.Occupancy.Wires {
		loads[id] = &load{rate: u.Bandwidth, links: u.Links}
		if u.Exclusive {
			loads[id].exclusive = 1
		}
	}
	within := map[urn.URN]capacity.Kbps{}
	tags := map[int]bool{}
	for tag, n := range c.Occupancy.VLANs {
		tags[tag] = n > 0
	}
	for _, v := range c.Snapshot.SharedVLANs {
		tags[v.Tag] = true
	}
	for i := range c.Request.Links {
		link, l := &c.Request.Links[i], &p.Links[i]
		if len(l.Ends) != len(link.Ends) {
			say("link %s has %d ends of %d", link.ID, len(l.Ends), len(link.Ends))
			continue
		}
		for k, e := range link.Ends {
			if x := l.Ends[k]; x.Node != e.Node || x.Interface != e.Interface || x.Existing != e.Existing {
				say("link %s: end %s stands where %s should", link.ID, x.Interface, e.Interface)
			}
		}
		wrong = append(wrong, way(c, p, link, l)...)
		switches := false
		for _, carrier := range l.Route {
			x := loads[carrier.Wire.Canonical()]
			if x == nil {
				x = &load{}
				loads[carrier.Wire.Canonical()] = x
			}
			x.rate += carrier.Bandwidth
			x.links++
			if carrier.Exclusive {
				x.exclusive++
			}
			switches = switches || onSwitch(c, carrier.Wire)
		}
		if !l.Within.IsZero() {
			within[l.Within.Canonical()] += l.Bandwidth
		}
		switch {
		case link.SharedVLAN != "":
			for _, v := range c.Snapshot.SharedVLANs {
				if v.Name == link.SharedVLAN && (v.Tag != l.VLAN || l.SharedVLAN != v.Name) {
					say("link %s has tag %d on shared VLAN %s", link.ID, l.VLAN, v.Name)
				}
			}
		case len(c.Snapshot.Pools.VLANs) > 0 && switches && len(link.Ends) > 1:
			pooled := slices.ContainsFunc(c.Snapshot.Pools.VLANs, func(r inventory.VLANRange) bool { return r.First <= l.VLAN && l.VLAN <= r.Last })
			if !pooled || tags[l.VLAN] || link.VLAN != 0 && link.VLAN != l.VLAN {
				say("link %s has tag %d", link.ID, l.VLAN)
			}
			tags[l.VLAN] = true
		case l.VLAN != 0:
			say("link %s has tag %d and needs none", link.ID, l.VLAN)
		}
	}
	for id, x := range loads {
		if has := rateOf(c, id); has > 0 && x.rate > has {
			say("wire %s carries %d of %d kbit/s", id, x.rate, has)
		}
		if x.exclusive > 0 && x.links > 1 {
			say("wire %s is owned and shared", id)
		}
	}
	for id, rate := range within {
		h, _ := c.Snapshot.Host(id)
		if most := h.Internal; most > 0 && rate > 0 && rate+c.Occupancy.Hosts[id].Internal > most {
			say("links within %s carry %d of %d kbit/s", h.Name, rate, most)
		}
	}
	return wrong
}

// wireAt is a wire of the inventory: what it joins.
func wireAt(c Case, id urn.URN) ([2]inventory.Port, bool) {
	for _, l := range c.Snapshot.Links {
		if l.ID.Equal(id) {
			return l.Ends, true
		}
	}
	for i := range c.Snapshot.Hosts {
		for _, f := range c.Snapshot.Hosts[i].Interfaces {
			if f.ID.Equal(id) && len(c.Snapshot.Links) == 0 {
				return [2]inventory.Port{{Node: c.Snapshot.Hosts[i].ID, Interface: f.ID}}, true // to the network
			}
		}
	}
	for i := range c.Snapshot.Hosts {
		if h := &c.Snapshot.Hosts[i]; h.ID.Equal(id) && h.Underlay > 0 {
			return [2]inventory.Port{{Node: h.ID}}, true // to the network
		}
	}
	return [2]inventory.Port{}, false
}

func rateOf(c Case, id urn.URN) capacity.Kbps {
	var rate capacity.Kbps
	least := func(r capacity.Kbps) {
		if r > 0 && (rate == 0 || r < rate) {
			rate = r
		}
	}
	ends, _ := wireAt(c, id)
	for _, l := range c.Snapshot.Links {
		if l.ID.Equal(id) {
			least(l.Capacity)
		}
	}
	for i := range c.Snapshot.Hosts {
		if c.Snapshot.Hosts[i].ID.Equal(id) {
			least(c.Snapshot.Hosts[i].Underlay)
		}
		for _, f := range c.Snapshot.Hosts[i].Interfaces {
			for _, e := range ends {
				if !e.Interface.IsZero() && f.ID.Equal(e.Interface) {
					least(f.Speed)
				}
			}
		}
	}
	return rate
}

func isSwitch(c Case, id urn.URN) bool {
	return slices.ContainsFunc(c.Snapshot.Switches, func(s inventory.Switch) bool { return s.ID.Equal(id) })
}

func onSwitch(c Case, wire urn.URN) bool {
	ends, _ := wireAt(c, wire)
	return isSwitch(c, ends[0].Node) || isSwitch(c, ends[1].Node)
}

// way says what is wrong with the way of one link.
func way(c Case, p *mapping.Placement, link *request.Link, l *mapping.LinkPlacement) []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("link %s: ", link.ID)+fmt.Sprintf(format, args...))
	}
	hosts := make([]*inventory.Host, len(link.Ends))
	wholes := map[urn.URN]bool{} // hosts of ends that have one to themselves
	for k, e := range link.Ends {
		var id urn.URN
		var typ request.SliverType
		for _, n := range p.Nodes {
			if !e.Existing && n.Node == e.Node {
				id, typ = n.Host, n.SliverType
			}
		}
		for _, n := range c.Occupancy.Existing {
			if e.Existing && n.ID == e.Node {
				id, typ = n.Host, n.SliverType
			}
		}
		hosts[k], _ = c.Snapshot.Host(id)
		t, known := c.Snapshot.Type(typ)
		if known && t.WholeHost && hosts[k] != nil {
			wholes[hosts[k].ID.Canonical()] = true
		}
	}
	if slices.Contains(hosts, nil) {
		return nil // the host of a node that exists left the inventory
	}
	if !l.Within.IsZero() && len(link.Ends) > 1 {
		if len(l.Route) > 0 || link.Trivial == request.No {
			say("is said to be within %s", l.Within)
		}
		return wrong
	}
	if len(link.Ends) == 1 && link.SharedVLAN == "" && len(l.Route) == 0 && (len(wholes) == 0 || link.Multiplexed == request.Yes) {
		return wrong // nothing passes
	}
	// Everything that the route's wires join is one piece.
	piece := map[string]string{}
	var find func(string) string
	find = func(x string) string {
		if x == "" {
			x = "the network"
		}
		if piece[x] == "" || piece[x] == x {
			return x
		}
		return find(piece[x])
	}
	trunks := 0
	for _, carrier := range l.Route {
		ends, known := wireAt(c, carrier.Wire)
		if !known {
			say("runs over %s, which is no wire", carrier.Wire)
			return wrong
		}
		a, z := ends[0].Node.Canonical().String(), ends[1].Node.Canonical().String()
		piece[find(a)] = find(z)
		trunk := isSwitch(c, ends[0].Node) && isSwitch(c, ends[1].Node)
		if trunk {
			trunks++
			if carrier.Exclusive {
				say("owns trunk %s", carrier.Wire)
			}
			continue
		}
		for _, e := range ends {
			if h, known := c.Snapshot.Host(e.Node); known && !slices.ContainsFunc(hosts, func(x *inventory.Host) bool { return x.ID.Equal(h.ID) }) {
				say("passes host %s", h.Name)
			}
			if isControl(c, e.Interface) {
				say("runs over %s, which is for control", e.Interface)
			}
		}
		if link.Multiplexed == request.No && !carrier.Exclusive || link.Multiplexed == request.Yes && carrier.Exclusive {
			say("is multiplexed as it should not be on %s", carrier.Wire)
		}
		if own := wholes[ends[0].Node.Canonical()] || wholes[ends[1].Node.Canonical()]; link.Multiplexed == request.Open && own != carrier.Exclusive {
			say("owns %s or shares it as its nodes should not", carrier.Wire)
		}
	}
	if link.NoInterswitch && trunks > 0 {
		say("runs between switches")
	}
	var reached []string
	for k, e := range l.Ends {
		experimental := slices.ContainsFunc(hosts[k].Interfaces, func(f inventory.Interface) bool { return f.Role != inventory.Control })
		if !experimental {
			if !e.Component.IsZero() {
				say("leaves %s by %s", hosts[k].Name, e.Component)
			}
			reached = append(reached, find(""))
			continue
		}
		own := slices.ContainsFunc(hosts[k].Interfaces, func(f inventory.Interface) bool { return f.ID.Equal(e.Component) })
		at := slices.IndexFunc(l.Route, func(carrier mapping.Carrier) bool {
			ends, _ := wireAt(c, carrier.Wire)
			return ends[0].Interface.Equal(e.Component) || !ends[1].Interface.IsZero() && ends[1].Interface.Equal(e.Component)
		})
		if !own || at < 0 {
			say("leaves %s by %q, which is not on its route", hosts[k].Name, e.Component)
			continue
		}
		if need := needs(c, link, k); l.Route[at].Bandwidth < need {
			say("takes %d kbit/s of %s and needs %d", l.Route[at].Bandwidth, e.Component, need)
		}
		for _, n := range c.Request.Nodes {
			for _, f := range n.Interfaces {
				if !e.Existing && n.ID == e.Node && f.ID == e.Interface && !f.Component.IsZero() && !f.Component.Equal(e.Component) {
					say("leaves %s by %s instead of %s", hosts[k].Name, e.Component, f.Component)
				}
			}
		}
		reached = append(reached, find(hosts[k].ID.Canonical().String()))
	}
	for _, r := range reached {
		if r != reached[0] {
			say("does not join its ends")
			break
		}
	}
	return wrong
}

// needs is the rate that a link needs at one of its ends.
func needs(c Case, link *request.Link, end int) capacity.Kbps {
	if link.BestEffort {
		return 0
	}
	var most capacity.Kbps
	for i := range link.Ends {
		if i == end {
			continue
		}
		most = max(most, asked(link, link.Ends[end].Interface, link.Ends[i].Interface).Capacity)
		if len(link.Ends) == 2 {
			most = max(most, asked(link, link.Ends[i].Interface, link.Ends[end].Interface).Capacity)
		}
	}
	// Towards others, only if all send alike; see the mapper on LANs.
	if len(link.Ends) > 2 {
		return 0
	}
	return most
}
