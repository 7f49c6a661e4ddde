package mapping

import (
	"slices"

	"croft/request"
)

// company reports whether a node may stand where an option puts it, as the
// nodes are that are placed already: by groups, parts, classes and limits.
func (s *search) company(w *want, node int, o *option) bool {
	l := s.links
	for _, g := range l.sets[node] {
		if l.groups[g].hard() && !s.inGroup(&l.groups[g], node, o.slot) {
			return false
		}
	}
	if p := l.parent[node]; p != (endpoint{-1, -1, -1}) {
		if at, placed := s.slotOf(p); placed && s.board.slots[o.slot].parent != at {
			return false
		}
	}
	if l.isParent[l.req.Nodes[node].ID] {
		for other, p := range l.parent {
			if at, placed := s.slotOf(endpoint{other, -1, -1}); p.node == node && placed && s.board.slots[at].parent != o.slot {
				return false
			}
		}
	}
	if w.class != nil && w.class.Weight >= 1 && !s.inClass(node, o.slot) {
		return false
	}
	for i := range s.limits {
		if !s.within(&s.limits[i], w, o) {
			return false
		}
	}
	return true
}

// slotOf is where a node stands, if it does.
func (s *search) slotOf(e endpoint) (int, bool) {
	if e.existing >= 0 {
		at, known := s.board.byID[s.links.existing[e.existing].Host.Canonical()]
		return at, known
	}
	if e.node < 0 || e.node >= len(s.placed) || s.placed[e.node] < 0 {
		return 0, false
	}
	return s.wants[s.wantOf[e.node]].options[s.placed[e.node]].slot, true
}

func (s *search) inGroup(g *grouping, node, slot int) bool {
	for _, m := range g.members {
		at, placed := s.slotOf(m)
		if !placed || m.node == node {
			continue
		}
		if s.board.together(g.group.By, at, slot) == g.group.Apart {
			return false
		}
	}
	return true
}

// together reports whether two slots are one host, or at one switch or site.
func (g *ground) together(by request.Closeness, a, b int) bool {
	switch by {
	case request.BySwitch:
		return g.home[a] == g.home[b]
	case request.BySite:
		return g.slots[a].host.Site == g.slots[b].host.Site
	}
	return a == b
}

// inClass reports whether some hardware type is that of a slot and of all that
// nodes of the class have.
func (s *search) inClass(node, slot int) bool {
	class := s.links.class[node]
	types := s.board.slots[slot].host.HardwareTypes
	if allowed := s.links.req.Classes[class].Types; len(allowed) > 0 {
		types = common(types, allowed)
	}
	for other, c := range s.links.class {
		if at, placed := s.slotOf(endpoint{other, -1, -1}); c == class && placed && other != node {
			types = common(types, s.board.slots[at].host.HardwareTypes)
		}
	}
	return len(types) > 0
}

// within reports whether one more node is within a limit.
func (s *search) within(l *limit, w *want, o *option) bool {
	if !about(l.policy, w, s.board.slots[o.slot].host, s.board.types[o.kind]) {
		return true
	}
	left := l.left
	for node, at := range s.placed {
		if at < 0 || s.wantOf[node] < 0 {
			continue
		}
		other := s.wants[s.wantOf[node]]
		p := &other.options[at]
		if about(l.policy, other, s.board.slots[p.slot].host, s.board.types[p.kind]) {
			left--
		}
	}
	return left > 0
}

// common lists what is in both, once.
func common(a, b []string) []string {
	both := []string{} // not nil: nil allows everything
	for _, s := range a {
		if slices.Contains(b, s) && !slices.Contains(both, s) {
			both = append(both, s)
		}
	}
	return both
}
