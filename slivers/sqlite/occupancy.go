package sqlite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"croft/capacity"
	"croft/mapping"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// occupancy sums up what slivers take of hosts, wires and VLAN tags, so that a
// mapping need not read them all.
type occupancy struct {
	version int64
	hosts   map[urn.URN]*hostUse
	wires   map[urn.URN]*wireUse
	vlans   map[int]*tagUse
	vnis    map[int]*tagUse
}

type hostUse struct {
	amount    capacity.Amount
	nodes     int
	exclusive int // nodes that were given the host whole
	slices    map[urn.URN]int
	types     map[request.SliverType]int
	features  map[string]float64
	internal  capacity.Kbps // of links within it
	links     int           // that are within it
	changed   int64         // version at which something was last taken of it
}

type wireUse struct {
	bandwidth        capacity.Kbps
	links, exclusive int
	changed          int64
}

type tagUse struct {
	links   int
	changed int64
}

func newOccupancy(all []slivers.Sliver) *occupancy {
	// Versions of an earlier run must not be taken for ones of this run; none
	// outlives the process, so starting anew is right.
	o := &occupancy{version: 1, hosts: map[urn.URN]*hostUse{}, wires: map[urn.URN]*wireUse{}, vlans: map[int]*tagUse{}, vnis: map[int]*tagUse{}}
	for i := range all {
		o.add(&all[i])
	}
	return o
}

func (o *occupancy) add(v *slivers.Sliver) { o.count(v, 1) }

func (o *occupancy) remove(v *slivers.Sliver) { o.count(v, -1) }

func (o *occupancy) count(v *slivers.Sliver, sign int) {
	o.version++
	switch {
	case v.Node != nil:
		o.countNode(v, sign)
	case v.Link != nil:
		o.countLink(v.Link, sign)
	}
}

func (o *occupancy) host(id urn.URN) *hostUse {
	id = id.Canonical()
	h := o.hosts[id]
	if h == nil {
		h = &hostUse{slices: map[urn.URN]int{}, types: map[request.SliverType]int{}, features: map[string]float64{}}
		o.hosts[id] = h
	}
	return h
}

func (o *occupancy) countNode(v *slivers.Sliver, sign int) {
	h := o.host(v.Node.Host)
	h.nodes += sign
	if sign > 0 {
		h.changed = o.version // what is given back hurts no placement
		h.amount = h.amount.Plus(v.Node.Capacity)
	} else {
		h.amount = h.amount.Minus(v.Node.Capacity)
	}
	if v.Node.Exclusive {
		h.exclusive += sign
	}
	slice := v.Slice.Canonical()
	if h.slices[slice] += sign; h.slices[slice] == 0 {
		delete(h.slices, slice)
	}
	if h.types[v.Node.SliverType] += sign; h.types[v.Node.SliverType] == 0 {
		delete(h.types, v.Node.SliverType)
	}
	for name, amount := range v.Node.Features {
		// Sums of fractions need not come back to nothing.
		if h.features[name] += float64(sign) * amount; h.nodes == 0 {
			delete(h.features, name)
		}
	}
}

func (o *occupancy) countLink(l *slivers.LinkFacts, sign int) {
	if !l.Within.IsZero() && l.Bandwidth > 0 {
		h := o.host(l.Within)
		h.internal += capacity.Kbps(sign) * l.Bandwidth
		h.links += sign
		if sign > 0 {
			h.changed = o.version
		}
	}
	for _, c := range l.Route {
		id := c.Wire.Canonical()
		w := o.wires[id]
		if w == nil {
			w = &wireUse{}
			o.wires[id] = w
		}
		w.links += sign
		w.bandwidth += capacity.Kbps(sign) * c.Bandwidth
		if c.Exclusive {
			w.exclusive += sign
		}
		if sign > 0 {
			w.changed = o.version
		}
	}
	if l.VLAN != 0 && l.SharedVLAN == "" {
		o.countTag(o.vlans, l.VLAN, sign)
	}
	if l.VNI != 0 {
		o.countTag(o.vnis, l.VNI, sign)
	}
}

func (o *occupancy) countTag(tags map[int]*tagUse, tag, sign int) {
	t := tags[tag]
	if t == nil {
		t = &tagUse{}
		tags[tag] = t
	}
	t.links += sign
	if sign > 0 {
		t.changed = o.version
	}
}

// conflict names what a sliver uses and of which more has been taken after a
// version; "" if nothing has.
func (o *occupancy) conflict(v *slivers.Sliver, version int64) string {
	host := func(id urn.URN) bool {
		h := o.hosts[id.Canonical()]
		return h != nil && h.changed > version
	}
	switch {
	case v.Node != nil && host(v.Node.Host):
		return v.Node.Host.String()
	case v.Link == nil:
		return ""
	case !v.Link.Within.IsZero() && v.Link.Bandwidth > 0 && host(v.Link.Within):
		return v.Link.Within.String()
	}
	for _, c := range v.Link.Route {
		// Those who share a wire are in each other's way only if it is too
		// narrow for all.
		w := o.wires[c.Wire.Canonical()]
		if w != nil && w.links > 0 && w.changed > version && (c.Exclusive || w.exclusive > 0 || c.Of > 0 && w.bandwidth+c.Bandwidth > c.Of) {
			return c.Wire.String()
		}
	}
	if t := o.vlans[v.Link.VLAN]; t != nil && v.Link.SharedVLAN == "" && t.links > 0 && t.changed > version {
		return fmt.Sprintf("VLAN tag %d", v.Link.VLAN)
	}
	if t := o.vnis[v.Link.VNI]; t != nil && t.links > 0 && t.changed > version {
		return fmt.Sprintf("VXLAN identifier %d", v.Link.VNI)
	}
	return ""
}

func (o *occupancy) snapshot() mapping.Occupancy {
	out := mapping.Occupancy{Version: o.version, Hosts: make(map[urn.URN]mapping.Use, len(o.hosts)),
		Wires: make(map[urn.URN]mapping.WireUse, len(o.wires)), VLANs: make(map[int]int, len(o.vlans)), VNIs: make(map[int]int, len(o.vnis))}
	for id, h := range o.hosts {
		if h.nodes == 0 && h.links == 0 {
			continue
		}
		use := mapping.Use{
			Amount: h.amount, Slivers: h.nodes, Exclusive: h.exclusive > 0, Types: maps.Clone(h.types), Internal: h.internal,
			Slices: slices.SortedFunc(maps.Keys(h.slices), func(a, b urn.URN) int {
				return strings.Compare(a.String(), b.String())
			}),
		}
		if len(h.features) > 0 {
			use.Features = maps.Clone(h.features)
		}
		out.Hosts[id] = use
	}
	for id, w := range o.wires {
		if w.links > 0 {
			out.Wires[id] = mapping.WireUse{Bandwidth: w.bandwidth, Links: w.links, Exclusive: w.exclusive > 0}
		}
	}
	for tag, t := range o.vlans {
		if t.links > 0 {
			out.VLANs[tag] = t.links
		}
	}
	for vni, t := range o.vnis {
		if t.links > 0 {
			out.VNIs[vni] = t.links
		}
	}
	return out
}
