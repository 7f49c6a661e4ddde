package model

import (
	"croft/languages/tree"
)

// assign reads property assignments. Loose: the definitions are not known.
func (s *Service) assign(e *Entity, n *tree.Node, defs *Named[*Property], loose bool, what string) {
	u := s.Unit
	for _, entry := range entries(n) {
		if !u.nameable(entry.Key, "a "+what) {
			continue
		}
		c := &Cell{Name: entry.Key.Text, Entry: entry.Value, Unit: u, entity: e}
		if defs != nil {
			c.Def, _ = defs.Get(c.Name)
		}
		switch {
		case c.Def == nil && !loose:
			u.errorf(entry.Key, "it has "+orNone(list(defs.Names)), "%s has no %s %s", e.Type.Name, what, c.Name)
		case c.Def != nil && c.Def.Value != nil && !sameDefinition(entry.Value, c.Def.Value):
			u.errorf(entry.Value, "", "%s %s of %s has a fixed value", what, c.Name, e.Type.Name)
		}
		e.Properties.set(c.Name, c)
	}
	if defs == nil {
		return
	}
	for _, name := range defs.Names {
		if _, ok := e.Properties.Get(name); ok {
			continue
		}
		p, _ := defs.Get(name)
		c := &Cell{Name: name, Def: p, entity: e}
		switch {
		case p.Value != nil:
			c.Entry, c.Unit = p.Value, p.valueUnit
		case p.Default != nil && p.Required, p.Default != nil && u.Old():
			c.Entry, c.Unit = p.Default, p.defaultUnit
		case p.Required && s.needs(e):
			u.errorf(e.Entry, "", "%s %s of %s %s is missing: its type %s requires it", what, name, e.What, e.Name, e.typeName())
		}
		e.Properties.set(name, c)
	}
}

func (e *Entity) typeName() string {
	if e.Type == nil {
		return "?"
	}
	return e.Type.Name
}

// needs reports whether required properties must have values: those of nodes
// that are selected have them already.
func (s *Service) needs(e *Entity) bool {
	return e.Node == nil || !e.Node.Has("select", "selectable")
}

func (s *Service) attributes(e *Entity, n *tree.Node, defs *Named[*Property], loose bool) {
	u := s.Unit
	for _, entry := range entries(n) {
		if !u.nameable(entry.Key, "an attribute") {
			continue
		}
		c := &Cell{Name: entry.Key.Text, Entry: entry.Value, Unit: u, entity: e}
		if defs != nil {
			c.Def, _ = defs.Get(c.Name)
		}
		if p, ok := e.Properties.Get(c.Name); c.Def == nil && ok {
			c.Def = p.Def // attributes that are made of properties
		}
		if c.Def != nil && refinesAttribute(c) {
			u.warnf(entry.Value, "want a value", "attribute %s is refined where it is assigned", c.Name)
			continue
		}
		if c.Def == nil && !loose && !u.Old() {
			u.errorf(entry.Key, "it has "+orNone(list(defs.Names)), "%s has no attribute %s", e.typeName(), c.Name)
		}
		e.Attributes.set(c.Name, c)
	}
	if defs == nil {
		return
	}
	for _, name := range defs.Names {
		if _, ok := e.Attributes.Get(name); !ok {
			p, _ := defs.Get(name)
			c := &Cell{Name: name, Def: p, entity: e}
			if p.Default != nil {
				c.Entry, c.Unit = p.Default, p.defaultUnit
			}
			e.Attributes.set(name, c)
		}
	}
}

// refinesAttribute reports whether a definition stands where a value should,
// as in the suite of OASIS.
func refinesAttribute(c *Cell) bool {
	if !c.Entry.Is(tree.Map) || isCall(c.Entry) || c.Entry.Get("description") == nil {
		return false
	}
	if b := c.Def.Schema.Type.base(); b == "map" || b == "" || b == "any" {
		return false
	}
	for _, e := range c.Entry.Entries {
		if _, ok := attributeKeys.keys[e.Key.Text]; !ok {
			return false
		}
	}
	return true
}
