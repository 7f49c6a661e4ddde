package model

import (
	"math"
	"strings"

	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// primitives makes the built-in data types (csd05, 5.4).
func (r *run) primitives() {
	r.builtins = map[string]*Type{}
	for _, name := range []string{
		"string", "integer", "float", "boolean", "bytes", "nil", "range", "timestamp", "version", "list", "map",
		"scalar", "scalar-unit", "scalar-unit.size", "scalar-unit.time", "scalar-unit.frequency", "scalar-unit.bitrate", "any",
	} {
		t := &Type{Kind: DataType, Name: name, primitive: name, linked: 2, state: 2}
		t.dimension, _ = values.ScalarUnit(name)
		r.builtins[name] = t
	}
	for _, name := range []string{"scalar-unit.size", "scalar-unit.time", "scalar-unit.frequency", "scalar-unit.bitrate"} {
		r.builtins[name].Parent = r.builtins["scalar-unit"]
	}
}

func (r *run) anyType() *Type { return r.builtins["any"] }

// base is the built-in type that a data type derives from: "" for complex
// types, "any" if it is not known.
func (t *Type) base() string {
	if t == nil {
		return "any"
	}
	for at, steps := t, 0; at != nil && steps < maxAncestors; at, steps = at.Parent, steps+1 {
		if at.broken {
			return "any"
		}
		if at.primitive != "" {
			return at.primitive
		}
	}
	return ""
}

// isScalar reports whether values are a number with a unit.
func isScalar(base string) bool {
	return base == "scalar" || base == "scalar-unit" || strings.HasPrefix(base, "scalar-unit.")
}

// readData reads a data type (csd05, 5.4.4; final 2.0, scalar types).
func (t *Type) readData() {
	u, n := t.Unit, t.Node
	base := t.base()
	complexType := base == ""
	if props := n.Get("properties"); props != nil {
		switch {
		case base == "any":
		case !complexType:
			u.errorf(n.KeyOf("properties"), "", "%s derives from %s: types derived from built-in ones have no properties", t.Name, base)
		case props.Is(tree.Map) && len(props.Entries) == 0 && !u.Old() && !u.builtin:
			u.errorf(props, "want at least one property", "properties of data type %s are empty", t.Name)
		}
		u.define(&t.Properties, props, propertyDef, t.vague())
	} else if n.Get("derived_from") == nil && !u.Old() && !u.builtin {
		u.errorf(n, "want derived_from or properties", "data type %s derives from nothing and has no properties", t.Name)
	}
	s := t.schema
	s.Type = t
	if complexType {
		for _, key := range []string{"entry_schema", "key_schema"} {
			if n.Get(key) != nil {
				u.errorf(n.KeyOf(key), "only lists and maps have it", "%s of a complex type", key)
			}
		}
	}
	u.schemaParts(n, &s)
	t.schema = s
	u.entriesKnown(n, &s)
	t.readScalar(base)
}

// readScalar reads the keynames of scalar types.
func (t *Type) readScalar(base string) {
	u, n := t.Unit, t.Node
	scalar := isScalar(base)
	for _, key := range []string{"units", "prefixes", "data_type", "canonical_unit"} {
		if n.Get(key) != nil && !scalar && base != "any" {
			u.errorf(n.KeyOf(key), "only types derived from scalar have it", "%s of data type %s", key, t.Name)
			return
		}
	}
	if !scalar || base == "any" {
		return
	}
	if d := n.Get("data_type"); d.Is(tree.String) {
		number := u.typeAt(DataType, d)
		if number != nil {
			number.resolve()
		}
		nb := number.base()
		switch {
		case number == nil:
		case nb != "integer" && nb != "float" && nb != "any":
			u.errorf(d, "want integer or float, or a type derived from one", "numbers of a scalar are of type %s", number.Name)
			number = nil
		case t.Parent != nil && t.Parent.Unit != nil && !number.Is(t.Parent.numberType(u.run)):
			u.errorf(d, "want a type derived from "+t.Parent.numberType(u.run).Name, "%s refines the numbers of %s to %s", t.Name, t.Parent.Name, number.Name)
		}
		if number != nil {
			t.number = number
		}
	}
	units, prefixes := n.Get("units"), n.Get("prefixes")
	if units == nil && prefixes == nil && t.dimension != nil {
		d := *t.dimension
		d.Integer = t.numberType(u.run).base() == "integer"
		if t.Parent != nil && t.Parent.Unit == nil {
			d.Integer = t.dimension.Integer
		} else {
			d.Name = t.dimension.Name
		}
		t.dimension = &d
		return
	}
	if units == nil && t.dimension == nil {
		u.errorf(n, "want a map of units and what they are multiples of", "scalar type %s has no units", t.Name)
		return
	}
	d := &values.Dimension{Name: t.Name, Integer: t.number != nil && t.number.base() == "integer"}
	if t.dimension != nil {
		d.Units, d.Prefixes = t.dimension.Units, t.dimension.Prefixes
	}
	if units.Is(tree.Map) {
		d.Units = t.multiples(units, "unit")
	}
	if prefixes.Is(tree.Map) {
		d.Prefixes = t.multiples(prefixes, "prefix")
	}
	if c := n.Get("canonical_unit"); c.Is(tree.String) {
		if m, ok := d.Units[c.Text]; !ok || m != 1 {
			u.errorf(c, "want a unit that is 1", "canonical unit %s is no unit with the multiple 1", c.Short())
		}
	}
	t.dimension = d
}

// numberType is the type of a scalar's numbers: float, if none was said.
func (t *Type) numberType(r *run) *Type {
	if t.number != nil {
		return t.number
	}
	if t.Unit == nil {
		return r.anyType()
	}
	return r.builtins["float"]
}

// multiples reads units or prefixes. One of them is 1.
func (t *Type) multiples(n *tree.Node, what string) map[string]float64 {
	u, made, one := t.Unit, map[string]float64{}, false
	for _, e := range n.Entries {
		if e.Key.Kind != tree.String || e.Key.Text == "" && what == "unit" {
			u.errorf(e.Key, "want a string", "a %s is %s", what, describe(e.Key))
			continue
		}
		v := e.Value
		var m float64
		switch v.Kind {
		case tree.Int:
			m = float64(v.Int)
		case tree.Float:
			m = v.Float
		default:
			u.errorf(v, "want a number", "%s %s is %s", what, e.Key.Short(), describe(v))
			continue
		}
		if m <= 0 || math.IsNaN(m) || math.IsInf(m, 0) {
			u.errorf(v, "want more than zero", "%s %s is %s", what, e.Key.Short(), v.Short())
			continue
		}
		if t.number != nil && v.Kind == tree.Float && t.number.base() == "integer" && m != math.Trunc(m) {
			u.errorf(v, "the numbers of "+t.Name+" are integers", "%s %s is %s", what, e.Key.Short(), v.Short())
			continue
		}
		if t.number != nil && v.Kind == tree.Int && t.number.base() == "integer" {
			u.clauses(t.number.schema.Clauses, v.Int, v, nil, u.errorf)
		}
		one = one || m == 1
		made[e.Key.Text] = m
	}
	if !one && len(n.Entries) >= len(made) && len(made) > 0 {
		u.errorf(n, "one of them is 1", "no %s has the multiple 1", what)
	}
	if len(n.Entries) == 0 {
		u.errorf(n, "", "there is no %s", what)
	}
	return made
}

// entrySchema is that of values of a schema: its own, or that of its type.
func (s *Schema) entrySchema() *Schema {
	if s.Entry != nil || s.Type == nil {
		return s.Entry
	}
	s.Type.resolve()
	return s.Type.schema.Entry
}

func (s *Schema) keySchema() *Schema {
	if s.Key != nil || s.Type == nil {
		return s.Key
	}
	s.Type.resolve()
	return s.Type.schema.Key
}
