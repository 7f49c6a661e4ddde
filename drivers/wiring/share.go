package wiring

import (
	"errors"
	"slices"

	"croft/drivers"
	"croft/urn"
)

// Share is the part that one driver has in a Switch that several drivers use:
// their nodes can be joined. A link belongs to the driver that has made it.
type Share struct {
	sw     *Switch
	name   string
	nodes  func(sliver urn.URN) (drivers.Node, bool)
	settle func(pid int) error
	own    bool // the Switch goes with it
}

// Join gives a driver its share in the Switch. nodes and settle are what they
// are in Config.
func (s *Switch) Join(driver string, nodes func(sliver urn.URN) (drivers.Node, bool), settle func(pid int) error) (*Share, error) {
	if driver == "" || nodes == nil {
		return nil, errors.New("wiring: no driver, or no nodes, given")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.shares, func(o *Share) bool { return o.name == driver }) {
		return nil, errors.New("wiring: driver " + driver + " has a share of the switch already")
	}
	h := &Share{sw: s, name: driver, nodes: nodes, settle: settle}
	s.shares = append(s.shares, h)
	return h, nil
}

// OpenShare opens a Switch that is one driver's alone.
func OpenShare(driver string, cfg Config) (*Share, error) {
	nodes := cfg.Nodes
	cfg.Nodes, cfg.Unowned = nil, driver
	s, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	h, err := s.Join(driver, nodes, cfg.Settle)
	if err != nil {
		s.Close()
		return nil, err
	}
	h.own = true
	return h, nil
}

// Close gives the share up. Nodes and links stay.
func (h *Share) Close() error {
	h.sw.mu.Lock()
	h.sw.shares = slices.DeleteFunc(h.sw.shares, func(o *Share) bool { return o == h })
	h.sw.mu.Unlock()
	if h.own {
		return h.sw.Close()
	}
	return nil
}

// Plug is Switch.Plug for a node of the driver.
func (h *Share) Plug(n drivers.Node, ns int) error { return h.sw.plugIn(h.name, n, ns) }

// Unplug is Switch.Unplug.
func (h *Share) Unplug(node urn.URN) error { return h.sw.Unplug(node) }

// Connect is Switch.Connect for a link that the driver makes. Its ends may be of
// all drivers that have a share.
func (h *Share) Connect(l drivers.Link, w Way) error { return h.sw.connectFor(h.name, l, w) }

// Disconnect removes a link that the driver has made.
func (h *Share) Disconnect(link urn.URN) error {
	if !h.Has(link) {
		return nil
	}
	return h.sw.Disconnect(link)
}

// Has reports whether the driver has made a link, whole or not.
func (h *Share) Has(link urn.URN) bool {
	h.sw.mu.Lock()
	defer h.sw.mu.Unlock()
	r := h.sw.links[link.Canonical()]
	return r != nil && r.Owner == h.name
}

// Link returns a link that the driver has made, whole or not.
func (h *Share) Link(link urn.URN) (Link, bool) {
	h.sw.mu.Lock()
	defer h.sw.mu.Unlock()
	r := h.sw.links[link.Canonical()]
	if r == nil || r.Owner != h.name {
		return Link{}, false
	}
	return Link{Link: r.Link, Way: r.Way, Whole: r.Whole}, true
}

// Links lists the driver's links.
func (h *Share) Links() []Link {
	return h.sw.linksOf(func(owner string) bool { return owner == h.name })
}

// Sweep forgets the driver's nodes that are plugged in but do not run any more,
// sees to its links, and removes what is in the switch and belongs to no node
// and no link. A driver calls it when it starts.
func (h *Share) Sweep(running func(sliver urn.URN) bool) error { return h.sw.sweep(h.name, running) }

// Shapes reports why a link cannot do what its ends ask for, or go the way that
// it has, or nil.
func (h *Share) Shapes(l drivers.Link, w Way) error {
	if err := h.sw.ways(w); err != nil {
		return err
	}
	return h.sw.Shapes(l)
}

// node finds a node of any driver that has a share, the owner's first.
func (s *Switch) node(owner string, sliver urn.URN) (drivers.Node, bool) {
	s.mu.Lock()
	shares := slices.Clone(s.shares)
	s.mu.Unlock()
	slices.SortStableFunc(shares, func(a, b *Share) int {
		switch {
		case a.name == owner && b.name != owner:
			return -1
		case b.name == owner && a.name != owner:
			return 1
		}
		return 0
	})
	for _, h := range shares {
		if n, ok := h.nodes(sliver); ok {
			return n, true
		}
	}
	return drivers.Node{}, false
}

// ownNode reports whether a driver has made a node.
func (s *Switch) ownNode(driver string, sliver urn.URN) bool {
	s.mu.Lock()
	at := slices.IndexFunc(s.shares, func(h *Share) bool { return h.name == driver })
	if at < 0 {
		s.mu.Unlock()
		return false
	}
	nodes := s.shares[at].nodes
	s.mu.Unlock()
	_, is := nodes(sliver)
	return is
}

// settler moves the relay of a link to where the manager's end does not reach
// it, if the link's driver can.
func (s *Switch) settler(slot int) func(pid int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.links {
		if r.Slot != slot {
			continue
		}
		for _, h := range s.shares {
			if h.name == r.Owner {
				return h.settle
			}
		}
	}
	return nil
}
