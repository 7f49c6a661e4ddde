package model

import (
	"slices"

	"croft/languages/tree"
)

// Property is the definition of a property, an attribute or a parameter.
type Property struct {
	Name      string
	Node      *tree.Node
	Unit      *Unit // where its names are looked up
	Schema    Schema
	Required  bool
	Default   *tree.Node
	Value     *tree.Node // fixed
	Mapping   *tree.Node // of incoming parameters
	Sensitive bool

	// The units of Default and Value, which may be inherited.
	defaultUnit, valueUnit *Unit
}

// Schema says what values are valid.
type Schema struct {
	Type       *Type // nil: any
	Entry, Key *Schema
	Clauses    []Clause
}

// Clause is a validation clause and the file whose names it uses.
type Clause struct {
	Node *tree.Node
	Unit *Unit
	// Constraint: a constraint of 1.x, to which the value is the first argument.
	Constraint bool
}

// definition says which grammar a definition follows.
type definition struct {
	keys      *keynames
	what      string
	short     bool // a value may stand for it when it refines
	parameter bool
	attribute bool
	outgoing  bool // parameters: the short form is a value; else a mapping
}

var (
	propertyDef  = definition{keys: &propertyKeys, what: "property", short: true}
	attributeDef = definition{keys: &attributeKeys, what: "attribute", attribute: true}
	inputDef     = definition{keys: &parameterKeys, what: "input", short: true, parameter: true, outgoing: true}
	outputDef    = definition{keys: &parameterKeys, what: "output", short: true, parameter: true}
)

// define reads a map of definitions into one that has the inherited ones.
// Lenient: what is inherited is not known, so that each may refine.
func (u *Unit) define(into *Named[*Property], n *tree.Node, d definition, lenient bool) {
	for _, e := range entries(n) {
		if !u.nameable(e.Key, "a "+d.what) {
			continue
		}
		name := e.Key.Text
		inherited, _ := into.Get(name)
		if p := u.property(name, e.Value, d, inherited, lenient); p != nil {
			into.set(name, p)
		}
	}
}

// property reads a definition, on top of the one that it refines (nil for a
// new one).
func (u *Unit) property(name string, n *tree.Node, d definition, inherited *Property, lenient bool) *Property {
	p := &Property{Name: name, Node: n, Unit: u, Required: true}
	if inherited != nil {
		*p = *inherited
		p.Node, p.Unit = n, u
		if inherited.Value != nil && !sameDefinition(n, inherited.Node) {
			u.errorf(n, "a fixed value cannot be changed", "%s %s has the value %s already", d.what, name, inherited.Value.Short())
		}
	}
	if !u.looksLikeDefinition(n, d) {
		return u.shortProperty(p, d, inherited, lenient)
	}
	if !u.keys(n, d.keys) {
		return nil
	}
	if t := n.Get("type"); t != nil {
		data := u.typeAt(DataType, t)
		if inherited != nil && data != nil && inherited.Schema.Type != nil && !data.Is(inherited.Schema.Type) && !data.vague() {
			u.misrefined(t, "want a type derived from "+inherited.Schema.Type.Name, "%s %s is refined to type %s", d.what, name, data.Name)
		}
		u.concrete(t, data)
		p.Schema.Type = data
		if data == nil {
			p.Schema.Type = u.run.anyType()
		}
	} else if inherited == nil && !d.parameter {
		if !lenient {
			u.errorf(n, "want a data type", "%s %s has no type", d.what, name)
		}
		p.Schema.Type = u.run.anyType()
	}
	u.schemaParts(n, &p.Schema)
	if r := n.Get("required"); r != nil && !d.attribute {
		required := r.Kind != tree.Bool || r.Bool
		if u.Old() && r.Kind == tree.String {
			required = r.Text != "no"
		}
		if inherited != nil && inherited.Required && !required && !u.Old() {
			u.errorf(r, "", "%s %s is required, and cannot be refined to be not", d.what, name)
		}
		p.Required = required
	}
	if s := n.Get("status"); s.Is(tree.String) {
		switch s.Text {
		case "supported", "unsupported", "experimental", "deprecated":
		default:
			u.errorf(s, "want supported, unsupported, experimental or deprecated", "status is %s", s.Short())
		}
	}
	if m := n.Get("metadata").Get("sensitive"); m != nil && (m.Kind == tree.Bool && m.Bool || m.Text == "true") {
		p.Sensitive = true
	}
	u.propertyValues(p, d, n)
	return p
}

// propertyValues reads default, value and mapping.
func (u *Unit) propertyValues(p *Property, d definition, n *tree.Node) {
	if v := n.Get("default"); v != nil {
		p.Default, p.defaultUnit = v, u
		if !p.Required && !d.attribute {
			u.warnf(v, "", "default of %s %s has no effect: it is not required", d.what, p.Name)
		}
		u.literalLater(&p.Schema, v)
	} else if p.Default != nil && slices.ContainsFunc(narrowing, func(key string) bool { return n.Get(key) != nil }) {
		u.literalLater(&p.Schema, p.Default)
	}
	if v := n.Get("value"); v != nil {
		p.Value, p.valueUnit = v, u
		u.literalLater(&p.Schema, v)
	}
	if m := n.Get("mapping"); m != nil {
		if n.Get("value") != nil {
			u.errorf(m, "one of them", "%s %s has both value and mapping", d.what, p.Name)
		}
		u.mapTo(p, m)
	}
}

// narrowing are the keynames by which a refinement may rule out a default that
// it inherits.
var narrowing = []string{"type", "validation", "key_schema", "entry_schema"}

// mapTo maps a parameter to an attribute. What is mapped already stays so
// (csd05, 5.4.10.4).
func (u *Unit) mapTo(p *Property, m *tree.Node) {
	if p.Mapping != nil && !sameDefinition(p.Mapping, m) {
		u.misrefined(m, "", "%s is mapped to %s already", p.Name, clauseText(p.Mapping))
	}
	p.Mapping = m
	u.selection(m)
}

// sameDefinition reports whether a refinement says what the inherited one
// says, which changes nothing.
func sameDefinition(a, b *tree.Node) bool {
	if a.Kind != b.Kind || a.Text != b.Text || len(a.Items) != len(b.Items) || len(a.Entries) != len(b.Entries) {
		return false
	}
	for i := range a.Items {
		if !sameDefinition(a.Items[i], b.Items[i]) {
			return false
		}
	}
	for i, e := range a.Entries {
		if !sameDefinition(e.Key, b.Entries[i].Key) || !sameDefinition(e.Value, b.Entries[i].Value) {
			return false
		}
	}
	return true
}

// looksLikeDefinition tells a definition from a value that stands for one.
func (u *Unit) looksLikeDefinition(n *tree.Node, d definition) bool {
	if !n.Is(tree.Map) || !d.short {
		return n.Is(tree.Map)
	}
	if isCall(n) || u.Old() && isOldCall(n) {
		return false
	}
	if len(n.Entries) == 0 {
		return true
	}
	for _, e := range n.Entries {
		if _, ok := d.keys.keys[e.Key.Text]; ok && e.Key.Kind == tree.String {
			return true
		}
		if _, ok := d.keys.older[e.Key.Text]; ok && e.Key.Kind == tree.String && u.Old() {
			return true
		}
	}
	return !d.parameter && n.Kind == tree.Map
}

// shortProperty reads a value that stands for a definition.
func (u *Unit) shortProperty(p *Property, d definition, inherited *Property, lenient bool) *Property {
	n := p.Node
	switch {
	case d.parameter && !d.outgoing:
		if !n.Is(tree.List) {
			u.errorf(n, "want a map, or a list that selects an attribute", "%s %s is %s", d.what, p.Name, describe(n))
			return nil
		}
		u.mapTo(p, n)
		return p
	case !d.short || inherited == nil && !d.parameter && !lenient:
		u.errorf(n, "want a map with type, or a value where a definition is refined", "the definition of %s %s is %s", d.what, p.Name, describe(n))
		return nil
	}
	p.Value, p.valueUnit = n, u
	u.literalLater(&p.Schema, n)
	return p
}

// schemaParts reads what a definition has of a schema beside the type.
func (u *Unit) schemaParts(n *tree.Node, s *Schema) {
	base := s.Type.base()
	if v := n.Get("validation"); v != nil {
		s.Clauses = append(append([]Clause(nil), s.Clauses...), Clause{Node: v, Unit: u})
		u.clause(v, s)
		u.run.later(func() { u.fitting(v, s) })
	}
	if u.Old() {
		for _, item := range items(n.Get("constraints")) {
			s.Clauses = append(append([]Clause(nil), s.Clauses...), Clause{Node: item, Unit: u, Constraint: true})
		}
	}
	if e := n.Get("entry_schema"); e != nil {
		if base != "list" && base != "map" && base != "" && base != "any" {
			u.errorf(e, "only lists and maps have entries", "entry_schema of a %s", base)
		}
		s.Entry = u.schema(e, s.entrySchema())
	} else if (base == "list" || base == "map") && s.entrySchema() == nil {
		u.warnf(n, "", "a %s has no entry_schema: its entries are not checked", base)
	}
	if k := n.Get("key_schema"); k != nil {
		if base != "map" && base != "" && base != "any" {
			u.errorf(k, "only maps have keys", "key_schema of a %s", base)
		}
		s.Key = u.schema(k, s.keySchema())
		if s.Key != nil && s.Key.Type != nil {
			if kb := s.Key.Type.base(); kb != "string" && kb != "any" {
				u.errorf(k, "keys are strings", "key_schema of type %s", s.Key.Type.Name)
			}
		}
	}
}

// schema reads a schema definition, on top of the one that it refines.
func (u *Unit) schema(n *tree.Node, inherited *Schema) *Schema {
	s := &Schema{}
	if inherited != nil {
		*s = *inherited
	}
	typ := n
	if n.Kind == tree.Map {
		k := schemaKeys
		if inherited != nil {
			k.need = nil
		}
		u.keys(n, &k)
		typ = n.Get("type")
	}
	if typ.Is(tree.String) {
		data := u.typeAt(DataType, typ)
		u.concrete(typ, data)
		if inherited != nil && inherited.Type != nil && data != nil && !data.Is(inherited.Type) && !data.vague() {
			u.misrefined(typ, "want a type derived from "+inherited.Type.Name, "the schema is refined to type %s", data.Name)
		}
		s.Type = data
	}
	if s.Type == nil {
		s.Type = u.run.anyType()
	}
	if n.Kind == tree.Map {
		u.schemaParts(n, s)
	}
	u.entriesKnown(n, s)
	return s
}

// entriesKnown tells of a list or map in a type or schema that does not say
// what is in it. Of properties that is a warning, for examples of csd05 leave
// it out.
func (u *Unit) entriesKnown(n *tree.Node, s *Schema) {
	if base := s.Type.base(); (base == "list" || base == "map") && s.entrySchema() == nil {
		u.misrefined(n, "want entry_schema", "the entries of a %s have no schema", base)
	}
}

// concrete refuses the abstract type scalar for values.
func (u *Unit) concrete(n *tree.Node, t *Type) {
	if t != nil && t.Unit == nil && (t.primitive == "scalar" || t.primitive == "scalar-unit") {
		u.errorf(n, "derive a type with units from it", "%s is abstract: values cannot be of it", t.Name)
	}
}
