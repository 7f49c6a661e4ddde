package sqlite

import (
	"maps"
	"slices"
	"strings"

	"croft/capacity"
	"croft/mapping"
	"croft/slivers"
	"croft/urn"
)

// occupancy sums up what node slivers take of their hosts, so that a mapping
// need not read them all.
type occupancy struct {
	version int64
	hosts   map[urn.URN]*hostUse
}

type hostUse struct {
	amount    capacity.Amount
	nodes     int
	exclusive int // nodes that were given the host whole
	slices    map[urn.URN]int
	changed   int64 // version at which something was last taken of it
}

func newOccupancy(all []slivers.Sliver) *occupancy {
	// Versions of an earlier run must not be taken for ones of this run; none
	// outlives the process, so starting anew is right.
	o := &occupancy{version: 1, hosts: map[urn.URN]*hostUse{}}
	for i := range all {
		o.add(&all[i])
	}
	return o
}

func (o *occupancy) add(v *slivers.Sliver) { o.count(v, 1) }

func (o *occupancy) remove(v *slivers.Sliver) { o.count(v, -1) }

func (o *occupancy) count(v *slivers.Sliver, sign int) {
	o.version++
	if v.Node == nil {
		return
	}
	id := v.Node.Host.Canonical()
	h := o.hosts[id]
	if h == nil {
		h = &hostUse{slices: map[urn.URN]int{}}
		o.hosts[id] = h
	}
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
}

// changedSince reports whether a host's use has changed after a version.
func (o *occupancy) changedSince(host urn.URN, version int64) bool {
	h := o.hosts[host.Canonical()]
	return h != nil && h.changed > version
}

func (o *occupancy) snapshot() mapping.Occupancy {
	out := mapping.Occupancy{Version: o.version, Hosts: make(map[urn.URN]mapping.Use, len(o.hosts))}
	for id, h := range o.hosts {
		if h.nodes == 0 {
			continue
		}
		out.Hosts[id] = mapping.Use{
			Amount: h.amount, Slivers: h.nodes, Exclusive: h.exclusive > 0,
			Slices: slices.SortedFunc(maps.Keys(h.slices), func(a, b urn.URN) int {
				return strings.Compare(a.String(), b.String())
			}),
		}
	}
	return out
}
