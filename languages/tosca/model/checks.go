package model

import (
	"slices"

	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// check tells what is wrong between types, once all are read: they may refer
// to each other in circles.
func (t *Type) check() {
	if t.vague() {
		return
	}
	for _, name := range t.Requirements.Names {
		if r, _ := t.Requirements.Get(name); r.Unit == t.Unit && r.Node.Within(t.Node) {
			t.checkRequirement(r)
		}
	}
	if t.Kind != NodeType && t.Kind != RelationshipType {
		return
	}
	for _, name := range t.Interfaces.Names {
		i, _ := t.Interfaces.Get(name)
		if i.Unit != t.Unit || !i.Node.Within(t.Node) {
			continue
		}
		for _, ops := range []*Named[*Operation]{&i.Operations, &i.Notifications} {
			for _, o := range ops.Names {
				op, _ := ops.Get(o)
				for _, out := range op.Outputs.Names {
					if p, _ := op.Outputs.Get(out); p.Mapping != nil && p.Unit == t.Unit && p.Mapping.Within(t.Node) {
						t.checkMapping(t.Unit, p.Mapping)
					}
				}
			}
		}
	}
}

// checkRequirement tells of requirements that nothing could fulfil (csd05,
// 5.3.5.5).
func (t *Type) checkRequirement(r *Requirement) {
	u := t.Unit
	if r.Capability == nil || r.Capability.vague() {
		return
	}
	if r.Target != nil && r.CapabilityName == "" && !r.Target.vague() {
		has := false
		for _, name := range r.Target.Capabilities.Names {
			c, _ := r.Target.Capabilities.Get(name)
			has = has || c.Type == nil || c.Type.Is(r.Capability) || r.Capability.Is(c.Type) || c.Type.vague()
		}
		if !has {
			u.misrefined(r.Node, "it has "+orNone(list(r.Target.Capabilities.Names)), "requirement %s: node type %s has no capability of type %s", r.Name, r.Target.Name, r.Capability.Name)
		}
	}
	if rel := r.Relationship; rel != nil && rel.ValidCapabilities != nil && !rel.vague() {
		if !slices.ContainsFunc(rel.ValidCapabilities, func(c *Type) bool { return c.Is(r.Capability) || r.Capability.Is(c) || c.vague() }) {
			u.warnf(r.Node, "it is for "+typeNames(rel.ValidCapabilities), "requirement %s: relationship type %s is not for capabilities of type %s", r.Name, rel.Name, r.Capability.Name)
		}
	}
}

// checkMapping tells of outputs that go to an attribute of SELF which is not
// there.
func (t *Type) checkMapping(u *Unit, m *tree.Node) {
	path := items(m)
	if len(path) < 2 || path[0].Text != "SELF" || path[1].Kind != tree.String || isKeyword(path[1].Text) {
		return
	}
	name := path[1].Text
	_, attribute := t.Attributes.Get(name)
	_, property := t.Properties.Get(name)
	if !attribute && !property {
		u.misrefined(path[1], "it has "+orNone(list(t.Attributes.Names)), "%s has no attribute %s", t.Name, name)
	}
}

// isKeyword reports whether a word leads on in a TOSCA path.
func isKeyword(word string) bool {
	return slices.Contains([]string{"SOURCE", "TARGET", "RELATIONSHIP", "CAPABILITY"}, word)
}

// noEntities tells of functions that ask for properties or attributes where
// there is no node yet: in interface types (csd05, 5.3.6.3).
func (u *Unit) noEntities(n *tree.Node) {
	if n == nil || u.Old() {
		return
	}
	if c, ok := u.callOf(n); ok && (c.name == "get_property" || c.name == "get_attribute") {
		u.errorf(n, "it can where a node or relationship type refines the operation", "$%s cannot be used in an interface type", c.name)
		return
	}
	for _, item := range n.Items {
		u.noEntities(item)
	}
	for _, e := range n.Entries {
		u.noEntities(e.Value)
	}
}

// fitting tells of a validation clause that cannot be computed for values of
// the type that it is of: they are of another type than what it compares them
// with (csd05, 5.4.4.4).
func (u *Unit) fitting(n *tree.Node, s *Schema) {
	c, ok := u.callOf(n)
	if !ok || u.Old() || u.function(c.name) != nil {
		return
	}
	args := c.list()
	switch c.name {
	case "and", "or", "not", "xor":
		for _, arg := range args {
			u.fitting(arg, s)
		}
		return
	}
	sample := sampleOf(s)
	if sample == nil || !values.Boolean(c.name) || len(args) != 2 {
		return
	}
	if own, ok := u.callOf(args[0]); !ok || own.name != "value" || len(own.list()) > 0 {
		return
	}
	limit := u.raw(args[1], nil)
	if !values.Known(limit) {
		return
	}
	tell := func(err error) { u.errorf(n, "", "the clause is about values of type %s: %v", s.name(), err) }
	plain := &Schema{Type: s.Type.plain()}
	is := func(v any, at *tree.Node) {
		if !u.conforms(plain, v, at) {
			u.errorf(at, "want a value of type "+plain.name(), "values of type %s are compared with %s", s.name(), describeValue(v, at))
		}
	}
	switch c.name {
	case "equal":
		is(limit, args[1])
	case "valid_values":
		if list, ok := limit.([]any); ok {
			for i, v := range list {
				is(v, child(args[1], i))
			}
			return
		}
	}
	if _, err := values.Call(c.name, []any{sample, limit}); err != nil {
		tell(err)
	}
}

// plain is the type without clauses from which a type derives.
func (t *Type) plain() *Type {
	for at, steps := t, 0; at != nil && steps < maxAncestors; at, steps = at.Parent, steps+1 {
		if at.Unit == nil || at.dimension != nil && len(at.schema.Clauses) == 0 {
			return at
		}
	}
	return t
}

// sampleOf is some value of a schema, or nil.
func sampleOf(s *Schema) any {
	if s == nil || s.Type == nil || s.Type.vague() {
		return nil
	}
	switch base := s.Type.base(); base {
	case "string":
		return "a"
	case "integer":
		return int64(1)
	case "float":
		return 1.0
	case "boolean":
		return true
	case "version":
		v, _ := values.ParseVersion("1.0")
		return v
	case "timestamp":
		v, _ := values.ParseTime("2001-01-01T00:00:00Z")
		return v
	case "list":
		return []any{}
	case "map":
		return map[string]any{}
	default:
		if d := s.Type.dimension; isScalar(base) && d != nil {
			for unit, multiple := range d.Units {
				if multiple == 1 {
					if q, err := d.Parse("1 " + unit); err == nil {
						return q
					}
				}
			}
		}
	}
	return nil
}
