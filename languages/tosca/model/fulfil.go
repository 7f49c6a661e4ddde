package model

import (
	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// fulfil finds the targets of requirements in the template: those that are
// named, and for the others the first node that would do. Optional ones come
// last (csd05, 5.3.5.6.3).
func (s *Service) fulfil() {
	taken := map[*Cell]any{}
	for _, optional := range []bool{false, true} {
		for _, name := range s.Nodes.Names {
			node, _ := s.Nodes.Get(name)
			for _, a := range node.Requirements {
				if a.Optional == optional {
					s.fulfilOne(node, a, taken)
				}
			}
		}
	}
}

func (s *Service) fulfilOne(node *Node, a *Assignment, taken map[*Cell]any) {
	if a.Target != nil {
		r := s.relate(node, a, a.Target)
		if r.Capability == "" && !s.vagueTarget(a) {
			s.noCapability(node, a)
			return
		}
		s.admit(node, r, taken, true)
		return
	}
	if a.External {
		s.left(node, a)
		return
	}
	wanted := int64(1)
	if a.min > 0 {
		wanted = a.min
	}
	if a.Count != nil {
		if c, known := s.count(a.Count, &node.Entity); known {
			wanted = c
		}
	}
	found := int64(0)
	for _, candidate := range s.candidates(a) {
		if candidate == node || found >= wanted {
			continue
		}
		r := s.relationship(node, a, candidate)
		if r.Capability == "" || !s.admit(node, r, taken, false) {
			continue
		}
		r.Take = 1
		if n, known := s.CountOf(candidate); known && a.Count != nil {
			r.Take = min(n, wanted-found)
		}
		s.join(r)
		found += max(r.Take, 1)
	}
	if found < wanted {
		s.left(node, a)
	}
}

// left notes a requirement that nothing in the template fulfils: what is
// outside of it may.
func (s *Service) left(node *Node, a *Assignment) {
	if a.Optional || a.relType != nil && a.relType.IsNamed("HostedOn") {
		return // hosts come from the testbed
	}
	at := a.Entry
	if at == nil {
		at = node.Entry
	}
	s.Unit.unfulfilled(at, "", "requirement %s of node %s is fulfilled by no node of the template", a.Name, node.Name)
}

func (s *Service) vagueTarget(a *Assignment) bool {
	return a.Target.Type == nil || a.Target.Type.vague() || a.Def == nil || a.CapType != nil && a.CapType.vague() ||
		a.CapType == nil && a.Capability == ""
}

func (s *Service) noCapability(node *Node, a *Assignment) {
	want := a.Capability
	if a.CapType != nil {
		want = "of type " + a.CapType.Name
	}
	at := a.Entry
	if n := a.Entry.Get("node"); n != nil {
		at = n
	}
	s.Unit.errorf(at, "it has "+orNone(list(a.Target.Capabilities.Names)), "requirement %s of node %s: node %s has no capability %s", a.Name, node.Name, a.Target.Name, want)
}

// candidates are the nodes of the template that a requirement may have.
func (s *Service) candidates(a *Assignment) []*Node {
	if a.TargetType != nil {
		return s.byType[a.TargetType]
	}
	if a.CapType == nil {
		return nil
	}
	// Nodes of the types that have such a capability.
	var made []*Node
	checked := map[*Type]bool{}
	for _, name := range s.Nodes.Names {
		n, _ := s.Nodes.Get(name)
		if n.Type == nil {
			continue
		}
		has, known := checked[n.Type]
		if !known {
			for _, c := range n.Type.Capabilities.Names {
				def, _ := n.Type.Capabilities.Get(c)
				has = has || def.Type != nil && def.Type.Is(a.CapType)
			}
			checked[n.Type] = has
		}
		if has {
			made = append(made, n)
		}
	}
	return made
}

// capability chooses the capability of a target that a requirement wants, or
// "".
func (s *Service) capability(a *Assignment, target *Node) string {
	if target.Type == nil {
		return a.Capability
	}
	if a.Capability != "" {
		if _, ok := target.Type.Capabilities.Get(a.Capability); ok {
			return a.Capability
		}
		return ""
	}
	for _, name := range target.Type.Capabilities.Names {
		def, _ := target.Type.Capabilities.Get(name)
		if def.Type == nil || a.CapType == nil || def.Type.Is(a.CapType) {
			return name
		}
	}
	return ""
}

// relationship makes the relationship that an assignment would have with a
// target.
func (s *Service) relationship(node *Node, a *Assignment, target *Node) *Relationship {
	r := &Relationship{Assignment: a, Source: node, Target: target, Capability: s.capability(a, target)}
	r.Entity = Entity{What: "relationship", Name: a.Name, Type: a.relType, Entry: a.Entry, Relationship: r, service: s}
	if r.Entry == nil {
		r.Entry = node.Entry
	}
	return r
}

// relate makes a relationship and what is assigned to it.
func (s *Service) relate(node *Node, a *Assignment, target *Node) *Relationship {
	r := s.relationship(node, a, target)
	s.join(r)
	return r
}

func (s *Service) join(r *Relationship) {
	a := r.Assignment
	a.Fulfilled = true
	r.Source.Out = append(r.Source.Out, r)
	r.Target.In = append(r.Target.In, r)
	var props, attrs *Named[*Property]
	var faces *Named[*Interface]
	loose := r.Type == nil || r.Type.vague()
	if r.Type != nil {
		props, attrs, faces = &r.Type.Properties, &r.Type.Attributes, &r.Type.Interfaces
	}
	if a.Def != nil && a.Def.Interfaces.Len() > 0 && r.Type == a.Def.Relationship {
		faces = &a.Def.Interfaces
	}
	var assigned *tree.Node
	if a.rel != nil {
		for _, name := range a.rel.Properties.Names {
			c, _ := a.rel.Properties.Get(name)
			own := *c
			own.entity, own.known = &r.Entity, nil
			r.Properties.set(name, &own)
		}
		for _, name := range a.rel.Attributes.Names {
			c, _ := a.rel.Attributes.Get(name)
			own := *c
			own.entity, own.known = &r.Entity, nil
			r.Attributes.set(name, &own)
		}
		assigned = a.rel.Entry.Get("interfaces")
	}
	if given := a.relEntry.Get("properties"); a.rel != nil {
		s.assign(&r.Entity, given, nil, true, "property")
	} else {
		s.assign(&r.Entity, given, props, loose, "property")
		s.attributes(&r.Entity, a.relEntry.Get("attributes"), attrs, loose)
	}
	if own := a.relEntry.Get("interfaces"); own != nil {
		assigned = own
	}
	r.Interfaces = s.assignInterfaces(&r.Entity, assigned, faces, loose, true)
	s.validEnds(r)
}

// validEnds checks that the types of a relationship's ends are valid for it.
func (s *Service) validEnds(r *Relationship) {
	u, source, target := s.Unit, r.Source, r.Target
	at := r.Assignment.Entry
	if at == nil {
		at = source.Entry
	}
	refuse := func(what string, is *Type, valid []*Type) {
		if is != nil && valid != nil && !anyOf(is, valid) && !s.Unit.Old() {
			u.errorf(at, "valid are "+typeNames(valid), "requirement %s of node %s: %s %s is not valid", r.Assignment.Name, source.Name, what, is.Name)
		}
	}
	var c *Capability
	if target.Type != nil {
		c, _ = target.Type.Capabilities.Get(r.Capability)
	}
	if t := r.Type; t != nil {
		refuse("target type", target.Type, t.ValidTargets)
		refuse("source type", source.Type, t.ValidSources)
		if c != nil {
			refuse("capability type", c.Type, t.ValidCapabilities)
		}
	}
	if c != nil {
		refuse("source type", source.Type, c.ValidSources)
		refuse("relationship type", r.Type, c.ValidRelationships)
	}
}

// admit checks node filters and allocations of a relationship. Named: the
// target was named, so that a filter which does not hold is a mistake.
func (s *Service) admit(node *Node, r *Relationship, taken map[*Cell]any, named bool) bool {
	u, a := s.Unit, r.Assignment
	for _, f := range a.Filters {
		var held, ok bool
		if f.Unit.Old() {
			held, ok = s.oldFilter(f, r.Target)
		} else {
			sc := &scope{service: s, self: &r.Entity, fail: func(error) {}}
			if named {
				f.Unit.checkExpression(f.Node, &scope{service: s, self: &r.Entity})
			}
			held, ok = f.Unit.raw(f.Node, sc).(bool)
		}
		if !ok && !named {
			return false // not known to hold
		}
		if ok && !held {
			if named {
				u.errorf(first(a.Entry, node.Entry), "", "requirement %s of node %s: node %s does not fulfil the node filter %s", a.Name, node.Name, r.Target.Name, clauseText(f.Node))
			}
			return false
		}
	}
	var changes []func()
	for _, name := range sortedKeys(a.Allocation) {
		n := a.Allocation[name]
		c, ok := r.Target.Capabilities.Get(r.Capability)
		var cell *Cell
		if ok {
			cell, _ = c.Properties.Get(name)
		}
		if cell == nil || cell.Entry == nil {
			if named {
				u.unfulfilled(n, "", "allocation: capability %s of node %s has no property %s with a value", r.Capability, r.Target.Name, name)
			}
			return named
		}
		have := cell.Value(0)
		want := u.raw(n, &scope{service: s, self: &node.Entity})
		if cell.Def != nil {
			want = u.conform(&cell.Def.Schema, want, n, nil, u.errorf)
			switch b := cell.Def.Schema.Type.base(); {
			case b == "integer", b == "float", b == "any", isScalar(b):
			default:
				u.errorf(n, "allocations are integers, floats or scalars", "property %s is of type %s", name, cell.Def.Schema.name())
				return false
			}
		}
		total := want
		if before, ok := taken[cell]; ok {
			sum, err := values.Call("sum", []any{before, want})
			if err != nil {
				continue
			}
			total = sum
		}
		if order, err := values.Compare(total, have); err == nil && order > 0 {
			if named {
				u.unfulfilled(n, "", "allocation: node %s has %s of %s, and %s are asked for", r.Target.Name, values.String(have), name, values.String(total))
			}
			return false
		}
		changes = append(changes, func() { taken[cell] = total })
	}
	for _, change := range changes {
		change()
	}
	return true
}

// evaluate computes all values, and tells what is wrong with them.
func (s *Service) evaluate() {
	for i, name := range s.Nodes.Names {
		n, _ := s.Nodes.Get(name)
		s.cells(&n.Entity)
		for _, c := range n.Capabilities.Names {
			e, _ := n.Capabilities.Get(c)
			s.cells(e)
		}
		for _, r := range n.Out {
			s.cells(&r.Entity)
		}
		if n.Filter != nil {
			s.Unit.checkExpression(n.Filter.Node, &scope{service: s})
		}
		if i%256 == 0 && s.Unit.run.ctx.Err() != nil {
			return
		}
	}
	for _, name := range s.relationships.Names {
		e, _ := s.relationships.Get(name)
		s.cells(e)
	}
}

func (s *Service) cells(e *Entity) {
	for _, cells := range []*Named[*Cell]{&e.Properties, &e.Attributes} {
		for _, name := range cells.Names {
			c, _ := cells.Get(name)
			if c.Entry == nil {
				continue
			}
			sc := &scope{service: s, self: e}
			if c.Def == nil || c.Entry != c.Def.Default && c.Entry != c.Def.Value {
				c.Unit.checkExpression(c.Entry, sc)
				if c.Def != nil {
					if is := c.Unit.kindOf(c.Entry, sc); is != nil && !is.fits(&c.Def.Schema) {
						c.Unit.errorf(c.Entry, "want a "+c.Def.Schema.name(), "the function gives a %s", is.name())
						continue
					}
				}
			}
			c.Value(0)
		}
	}
}

// IsHosting reports whether the requirement is for a host.
func (a *Assignment) IsHosting() bool {
	return a.relType.IsNamed("HostedOn") || a.relType == nil && a.Name == "host"
}

// Admits reports whether a service template can stand for a node, by its
// substitution filter.
func (s *Service) Admits(n *Node, index int64) bool {
	m := s.Substitution
	if m == nil || m.Filter == nil {
		return m != nil
	}
	sc := &scope{service: n.service, self: &n.Entity, index: index, fail: func(error) {}}
	held, ok := s.Unit.raw(m.Filter, sc).(bool)
	return !ok || held
}

// oldFilter evaluates a node filter of 1.x: lists of constraints on properties
// of the node and of its capabilities. What has no value fulfils none.
func (s *Service) oldFilter(f Clause, target *Node) (held, known bool) {
	held, known = true, true
	check := func(list *tree.Node, e *Entity) {
		for _, p := range items(list) {
			if !p.Is(tree.Map) || len(p.Entries) != 1 {
				continue
			}
			v := e.Property(p.Entries[0].Key.Text, 0)
			if !values.Known(v) {
				known = false
				continue
			}
			conditions := []*tree.Node{p.Entries[0].Value}
			if conditions[0].Is(tree.List) {
				conditions = conditions[0].Items
			}
			for _, c := range conditions {
				if v == nil {
					held = false
				} else if !c.Is(tree.Map) {
					held = held && values.Equal(v, f.Unit.raw(c, nil))
				} else {
					f.Unit.constraint(c, v, c, func(*tree.Node, string, string, ...any) { held = false })
				}
			}
		}
	}
	check(f.Node.Get("properties"), &target.Entity)
	for _, c := range items(f.Node.Get("capabilities")) {
		if !c.Is(tree.Map) || len(c.Entries) != 1 {
			continue
		}
		name := c.Entries[0].Key.Text
		e, ok := target.Capabilities.Get(name)
		if !ok {
			for _, other := range target.Capabilities.Names {
				of, _ := target.Capabilities.Get(other)
				if t := s.Unit.Type(CapabilityType, name); t != nil && of.Type != nil && of.Type.Is(t) {
					e, ok = of, true
				}
			}
		}
		if !ok {
			return false, true
		}
		check(c.Entries[0].Value.Get("properties"), e)
	}
	return held, known
}
