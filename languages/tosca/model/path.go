package model

import (
	"fmt"

	"croft/languages/tree"
)

// place is an entity that a path leads to, and which of its nodes.
type place struct {
	entity *Entity
	index  int64
}

// walk follows a TOSCA path (csd05, 6.1.2.2). It returns where it leads, what
// of the arguments is left, and whether it could be followed; what is wrong
// with the path itself is an error.
func (sc *scope) walk(u *Unit, args []*tree.Node) (at []place, rest []*tree.Node, ok bool, err error) {
	if sc == nil || sc.service == nil || len(args) == 0 {
		return nil, nil, false, nil
	}
	firstArg, index := args[0], sc.index
	if firstArg.Is(tree.List) && len(firstArg.Items) == 2 {
		if i, isInt := u.raw(firstArg.Items[1], sc).(int64); isInt {
			index = i
		}
		firstArg = firstArg.Items[0]
	}
	if firstArg.Kind != tree.String {
		return nil, nil, false, fmt.Errorf("a path begins with SELF or the name of a node or relationship, not with %s", describe(firstArg))
	}
	if isCall(firstArg) {
		return nil, nil, false, nil
	}
	rest = args[1:]
	self := sc.self
	switch name := firstArg.Text; name {
	case "SELF":
		if self == nil {
			return nil, nil, false, nil
		}
		at = []place{{self, index}}
	case "SOURCE", "TARGET", "HOST":
		// As in 1.x; in 2.0 they follow SELF.
		if self == nil {
			return nil, nil, false, nil
		}
		at = []place{{self, index}}
		if name == "HOST" {
			return sc.host(self, rest)
		}
		rest = args
	default:
		if n, has := sc.service.Nodes.Get(name); has {
			if index = 0; args[0].Is(tree.List) {
				if i, isInt := u.raw(args[0].Items[1], sc).(int64); isInt {
					index = i
				}
			}
			if self != nil && self.Node == n && self.What == "node" && !args[0].Is(tree.List) {
				index = sc.index
			}
			at = []place{{&n.Entity, index}}
		} else if r, has := sc.service.relationships.Get(name); has {
			at = []place{{r, 0}}
		} else if g, has := sc.service.Groups.Get(name); has {
			at = []place{{&g.Entity, 0}}
		} else {
			return nil, nil, false, fmt.Errorf("there is no node or relationship %s", name)
		}
	}
	for len(rest) > 1 && rest[0].Kind == tree.String {
		next, left, moved, err := sc.step(u, at, rest)
		if err != nil || !moved {
			return at, rest, err == nil, err
		}
		if next == nil {
			return nil, nil, false, nil
		}
		at, rest = next, left
	}
	return at, rest, true, nil
}

// host goes to the node that a node is hosted on, and to its host, until one
// is hosted on nothing.
func (sc *scope) host(e *Entity, rest []*tree.Node) ([]place, []*tree.Node, bool, error) {
	n := e.Node
	for steps := 0; n != nil && steps < maxAncestors; steps++ {
		var next *Node
		for _, r := range n.Out {
			if r.Assignment != nil && r.Assignment.Name == "host" {
				next = r.Target
			}
		}
		if next == nil {
			return []place{{&n.Entity, 0}}, rest, true, nil
		}
		n = next
	}
	return nil, nil, false, nil
}

// step goes one step along a path. Not moved: what follows is the name of a
// property.
func (sc *scope) step(u *Unit, at []place, rest []*tree.Node) (next []place, left []*tree.Node, moved bool, err error) {
	word := rest[0].Text
	for _, p := range at {
		e := p.entity
		switch {
		case e.What == "relationship" && (word == "SOURCE" || word == "TARGET"):
			if e.Relationship == nil {
				return nil, rest[1:], true, nil // of a template that many use
			}
			to := e.Relationship.Source
			if word == "TARGET" {
				to = e.Relationship.Target
			}
			if to == nil {
				return nil, rest[1:], true, nil
			}
			next, left = append(next, place{&to.Entity, p.index}), rest[1:]
		case e.What == "relationship" && word == "CAPABILITY":
			r := e.Relationship
			if r == nil || r.Target == nil {
				return nil, rest[1:], true, nil
			}
			c, ok := r.Target.Capabilities.Get(r.Capability)
			if !ok {
				return nil, rest[1:], true, nil
			}
			next, left = append(next, place{c, 0}), rest[1:]
		case e.What == "node" && word == "CAPABILITY":
			c, ok := e.Node.Capabilities.Get(rest[1].Text)
			if !ok {
				if e.Type == nil || e.Type.vague() {
					return nil, rest[1:], true, nil
				}
				return nil, nil, false, fmt.Errorf("node %s has no capability %s", e.Name, rest[1].Short())
			}
			next, left = append(next, place{c, p.index}), rest[2:]
		case e.What == "capability" && word == "RELATIONSHIP":
			all, i, after := relationIndex(rest[1:])
			var in []place
			for _, r := range e.Node.In {
				if r.Capability == e.Name {
					in = append(in, place{&r.Entity, 0})
				}
			}
			if in = pick(in, all, i); in == nil {
				return nil, after, true, nil
			}
			next, left = append(next, in...), after
		case e.What == "node" && word == "RELATIONSHIP":
			name := rest[1].Text
			all, i, after := relationIndex(rest[2:])
			var out []place
			for _, r := range e.Node.Out {
				if r.Assignment.Name == name {
					out = append(out, place{&r.Entity, 0})
				}
			}
			if len(out) == 0 && e.Type != nil && !e.Type.vague() {
				if _, ok := e.Type.Requirements.Get(name); !ok {
					return nil, nil, false, fmt.Errorf("node %s has no requirement %s", e.Name, name)
				}
			}
			if out = pick(out, all, i); out == nil {
				return nil, after, true, nil
			}
			next, left = append(next, out...), after
		default:
			return sc.oldStep(e, p, rest)
		}
	}
	return next, left, true, nil
}

// oldStep goes from a node to a capability, or by a requirement to a node, as
// paths of 1.x do: [ server, endpoint, port ].
func (sc *scope) oldStep(e *Entity, p place, rest []*tree.Node) ([]place, []*tree.Node, bool, error) {
	if e.What != "node" {
		return nil, rest, false, nil
	}
	word := rest[0].Text
	if _, ok := e.Properties.Get(word); ok {
		return nil, rest, false, nil
	}
	if _, ok := e.Attributes.Get(word); ok {
		return nil, rest, false, nil
	}
	if c, ok := e.Node.Capabilities.Get(word); ok {
		return []place{{c, p.index}}, rest[1:], true, nil
	}
	if e.Type != nil {
		if _, ok := e.Type.Requirements.Get(word); ok {
			for _, r := range e.Node.Out {
				if r.Assignment.Name == word {
					return []place{{&r.Target.Entity, 0}}, rest[1:], true, nil
				}
			}
			return nil, rest[1:], true, nil
		}
	}
	return nil, rest, false, nil
}

// relationIndex reads an index, ALL, or nothing.
func relationIndex(rest []*tree.Node) (all bool, i int64, left []*tree.Node) {
	if len(rest) > 0 {
		if rest[0].Is(tree.Int) {
			return false, rest[0].Int, rest[1:]
		}
		if rest[0].Is(tree.String) && rest[0].Text == "ALL" {
			return true, 0, rest[1:]
		}
	}
	return false, 0, rest
}

func pick(from []place, all bool, i int64) []place {
	if all {
		return from
	}
	if i < 0 || i >= int64(len(from)) {
		return nil
	}
	return from[i : i+1]
}
