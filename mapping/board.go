package mapping

import (
	"math"

	"croft/capacity"
	"croft/inventory"
	"croft/urn"
)

// endless is what there is of a dimension that is not counted.
const endless = 1 << 60

// board is a testbed with what is taken of it, as one slice sees it.
type board struct {
	snapshot *inventory.Snapshot
	slots    []slot // one for each host, in the snapshot's order
	types    []*inventory.SliverType
	byName   map[string]int // slots by name of host
}

// slot is a host with what is free of it.
type slot struct {
	host   *inventory.Host
	size   capacity.Amount // of the empty host
	free   capacity.Amount
	places int // nodes that it still takes
	taken  int // nodes on it
	out    string
	others bool // nodes of other slices are on it
	closed bool // it is given whole to another slice, or to a node of this one
	types  []int
}

// newBoard lays out a testbed. A nil occupancy is an empty one in which every
// host works.
func newBoard(snapshot *inventory.Snapshot, occupancy *Occupancy, slice urn.URN) *board {
	b := &board{snapshot: snapshot, slots: make([]slot, len(snapshot.Hosts)), byName: make(map[string]int, len(snapshot.Hosts))}
	for i := range snapshot.Types {
		b.types = append(b.types, &snapshot.Types[i])
	}
	for i := range snapshot.Hosts {
		h := &snapshot.Hosts[i]
		b.byName[h.Name] = i
		s := slot{host: h, size: counted(h.Capacity), places: math.MaxInt}
		for _, name := range h.Types {
			for t := range b.types {
				if b.types[t].Name == name {
					s.types = append(s.types, t)
				}
			}
		}
		s.free = s.size
		if h.MaxSlivers > 0 {
			s.places = h.MaxSlivers
		}
		if occupancy != nil {
			s.out = h.OutOfService
			if use, used := occupancy.Hosts[h.ID.Canonical()]; used {
				b.occupy(&s, use, slice)
			}
		}
		b.slots[i] = s
	}
	return b
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
	c.slots = append([]slot(nil), b.slots...)
	return &c
}
