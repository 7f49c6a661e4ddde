package mapping

import (
	"slices"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/request"
	"croft/urn"
)

// endless is what there is of a dimension that is not counted.
const endless = 1 << 60

// board is a testbed with what is taken of it, as one slice sees it.
type board struct {
	*ground
	snapshot  *inventory.Snapshot
	occupancy *Occupancy // nil for an empty testbed
	slice     urn.URN
	slots     []slot  // one for each host, in the snapshot's order
	extra     []int64 // slot × ground.extras → free, in thousandths
}

// slot is a host with what is free of it.
type slot struct {
	host       *inventory.Host
	size       capacity.Amount // of the empty host
	free       capacity.Amount
	places     int // nodes that it still takes
	taken      int // nodes on it
	out        string
	others     bool // nodes of other slices are on it
	closed     bool // it is given whole to another slice, or to a node of this one
	hasParts   bool // other hosts are parts of it
	parent     int  // slot that it is a part of; -1 if none
	interfaces int  // that links can have
	types      []int
}

// newBoard lays out a testbed. A nil occupancy is an empty one in which every
// host works.
func newBoard(g *ground, snapshot *inventory.Snapshot, occupancy *Occupancy, slice urn.URN) *board {
	b := &board{ground: g, snapshot: snapshot, occupancy: occupancy, slice: slice, slots: slices.Clone(g.slots), extra: g.extra}
	if occupancy == nil {
		return b
	}
	// The aggregate closes hosts in a copy of the snapshot, of the same digest.
	for i := range min(len(b.slots), len(snapshot.Hosts)) {
		b.slots[i].out = snapshot.Hosts[i].OutOfService
	}
	if len(g.extras) > 0 {
		b.extra = slices.Clone(g.extra)
	}
	for id, use := range occupancy.Hosts {
		if i, known := g.byID[id]; known {
			b.occupy(&b.slots[i], use, slice)
			b.takeExtras(i, use)
		}
	}
	return b
}

// takeExtras takes off what nodes have beside capacities.
func (b *board) takeExtras(i int, use Use) {
	for k, name := range b.extras {
		at := &b.extra[i*len(b.extras)+k]
		if t, ok := strings.CutPrefix(name, "type "); ok {
			*at -= int64(use.Types[request.SliverType(t)]) * 1000
		} else if f, ok := strings.CutPrefix(name, "feature "); ok {
			*at -= thousandths(use.Features[f])
		}
	}
}

func (b *board) occupy(s *slot, use Use, slice urn.URN) {
	s.free = s.free.Minus(use.Amount)
	s.taken = use.Slivers
	if s.host.MaxSlivers > 0 {
		s.places = s.host.MaxSlivers - use.Slivers
	}
	mine := slice.Canonical()
	for _, owner := range use.Slices {
		if slice.IsZero() || owner.Canonical() != mine {
			s.others = true
		}
	}
	if use.Slivers > 0 && len(use.Slices) == 0 {
		s.others = true
	}
	s.closed = use.Exclusive && s.others
	// One node may have the whole of a host. Where nothing is counted, the sums
	// cannot tell it from a node that has but a share.
	all := use.Amount == s.host.Capacity
	if use.Exclusive && use.Slivers == 1 && all {
		for _, t := range s.types {
			s.closed = s.closed || b.types[t].WholeHost
		}
	}
}

// counted is a capacity in which what is not counted is endless.
func counted(c capacity.Amount) capacity.Amount {
	return c.Or(capacity.Amount{Cores: endless, Memory: endless, Disk: endless})
}

// clone copies what a search changes.
func (b *board) clone() *board {
	c := *b
	c.slots = slices.Clone(b.slots)
	if len(b.extras) > 0 {
		c.extra = slices.Clone(b.extra)
	}
	return &c
}
