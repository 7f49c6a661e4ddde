package model

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"

	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// teller is told what is wrong with a value; nil: nobody is.
type teller func(n *tree.Node, hint, format string, args ...any)

// literalLater checks a value once the types that are being read are.
func (u *Unit) literalLater(s *Schema, n *tree.Node) {
	u.run.later(func() { u.literal(s, n) })
}

// literal checks a value in a definition, where there is no service yet.
func (u *Unit) literal(s *Schema, n *tree.Node) {
	u.checkExpression(n, nil)
	if is := u.kindOf(n, nil); is != nil && !is.fits(s) {
		u.errorf(n, "want a "+s.name(), "the function gives a %s", is.name())
	}
	var sc *scope
	if d := s.dimension(); d != nil && isCall(n) {
		sc = &scope{dimension: d}
	}
	u.conform(s, u.raw(n, sc), n, nil, u.errorf)
}

// dimension is that of values with units, or nil.
func (s *Schema) dimension() *values.Dimension {
	if s == nil || s.Type == nil || !isScalar(s.Type.base()) {
		return nil
	}
	return s.Type.dimension
}

// conforms reports whether a value is valid.
func (u *Unit) conforms(s *Schema, v any, n *tree.Node) bool {
	ok := true
	u.conform(s, v, n, nil, func(*tree.Node, string, string, ...any) { ok = false })
	return ok
}

func (s *Schema) name() string {
	if s == nil || s.Type == nil {
		return "value"
	}
	return s.Type.Name
}

// conform checks a value against a schema, tells what is wrong with it, and
// returns it with defaults filled in and as the type that it is.
func (u *Unit) conform(s *Schema, v any, n *tree.Node, sc *scope, tell teller) any {
	if s == nil || s.Type == nil {
		return v
	}
	if v == nil && u.Old() {
		return nil // 1.x takes an empty value for none
	}
	switch v.(type) {
	case values.Unknown:
		if n.Is(tree.Other) {
			tell(n, "", "%s is a value that TOSCA does not know", n.Short())
		}
		return v
	case values.Text:
		if b := s.Type.base(); b != "string" && b != "any" {
			return values.Unknown{}
		}
		return v
	}
	made, ok := u.typed(s, v, n, sc, tell)
	if !ok {
		return values.Unknown{}
	}
	if values.Known(made) {
		u.clauses(s.Type.schema.Clauses, made, n, sc, tell)
		u.clauses(s.Clauses, made, n, sc, tell)
	}
	return made
}

func (u *Unit) typed(s *Schema, v any, n *tree.Node, sc *scope, tell teller) (any, bool) {
	base := s.Type.base()
	wrong := func() (any, bool) {
		hint := ""
		switch {
		case base == "float" && n.Is(tree.Int):
			hint = "write " + n.Text + ".0"
		case base == "string" && n != nil && n.Plain:
			hint = "quote it"
		case base == "boolean":
			hint = "write true or false"
		}
		tell(n, hint, "%s: want a value of type %s", describeValue(v, n), s.Type.Name)
		return nil, false
	}
	switch base {
	case "any":
		return v, true
	case "":
		return u.complexValue(s.Type, v, n, sc, tell)
	case "string":
		if str, ok := v.(string); ok {
			return str, true
		}
		if u.Old() {
			switch v.(type) {
			case int64, float64, bool:
				return textOr(n, v), true
			}
		}
	case "integer":
		if i, ok := v.(int64); ok {
			return i, true
		}
	case "float":
		if f, ok := v.(float64); ok {
			return f, true
		}
		if i, ok := v.(int64); ok && u.Old() {
			return float64(i), true
		}
	case "boolean":
		// csd05, 5.4.1.4: true and false, in no other spelling.
		if b, ok := v.(bool); ok && (u.Old() || !n.Is(tree.Bool) || n.Text == "true" || n.Text == "false") {
			return b, true
		}
		if str, ok := v.(string); ok && u.Old() && n != nil && n.Plain && (str == "yes" || str == "no") {
			return str == "yes", true
		}
	case "nil":
		if v == nil {
			return nil, true
		}
	case "bytes":
		switch x := v.(type) {
		case []byte:
			return x, true
		case string:
			data, err := base64.StdEncoding.DecodeString(strings.Map(dropSpace, x))
			if err != nil {
				tell(n, "", "bytes are not base64: %v", err)
				return nil, false
			}
			return data, true
		}
	case "range":
		return u.rangeValue(v, n, tell)
	case "version", "timestamp":
		if special, ok, err := u.special(base, v, n); ok {
			if err != nil {
				tell(n, "", "%v", err)
				return nil, false
			}
			return special, true
		}
	case "list":
		if list, ok := v.([]any); ok {
			return u.listValue(s, list, n, sc, tell), true
		}
	case "map":
		if m, ok := v.(map[string]any); ok {
			return u.mapValue(s, m, n, sc, tell), true
		}
	default:
		if isScalar(base) {
			return u.scalarValue(s.Type, v, n, sc, tell)
		}
		return v, true
	}
	return wrong()
}

func dropSpace(r rune) rune {
	if r == ' ' || r == '\n' || r == '\t' || r == '\r' {
		return -1
	}
	return r
}

// describeValue says what a value is: as it is written, if it is written here.
func describeValue(v any, n *tree.Node) string {
	if n != nil && !isCall(n) {
		return describe(n)
	}
	text := string(values.JSON(v))
	if len(text) > 60 {
		text = text[:57] + "..."
	}
	return text + " (" + values.TypeName(v) + ")"
}

func (u *Unit) special(base string, v any, n *tree.Node) (made any, ok bool, err error) {
	switch x := v.(type) {
	case string:
		if base == "version" {
			made, err = values.ParseVersion(x)
		} else {
			made, err = values.ParseTime(x)
		}
		return made, true, err
	case values.Version:
		return x, base == "version", nil
	case float64:
		if u.Old() && base == "version" && n != nil {
			made, err = values.ParseVersion(n.Text)
			return made, true, err
		}
	}
	return nil, false, nil
}

func (u *Unit) rangeValue(v any, n *tree.Node, tell teller) (any, bool) {
	if r, ok := v.(values.Range); ok {
		return r, true
	}
	list, ok := v.([]any)
	if !ok || len(list) != 2 {
		tell(n, "want [ lower, upper ]", "%s is no range", describeValue(v, n))
		return nil, false
	}
	r := values.Range{High: math.MaxInt64}
	low, ok := list[0].(int64)
	if !ok {
		tell(n, "want an integer", "the lower bound of the range is %v", values.TypeName(list[0]))
		return nil, false
	}
	r.Low = low
	if list[1] != "UNBOUNDED" {
		if r.High, ok = list[1].(int64); !ok {
			tell(n, "want an integer or UNBOUNDED", "the upper bound of the range is a %v", values.TypeName(list[1]))
			return nil, false
		}
		if r.High < r.Low {
			tell(n, "", "the upper bound of the range is below the lower one")
			return nil, false
		}
	}
	return r, true
}

// child is the node of an item or entry, or that of the whole where a function
// made it.
func child(n *tree.Node, i int) *tree.Node {
	if n.Is(tree.List) && i < len(n.Items) {
		return n.Items[i]
	}
	return n
}

func (u *Unit) listValue(s *Schema, list []any, n *tree.Node, sc *scope, tell teller) any {
	entry := s.entrySchema()
	if entry == nil {
		return list
	}
	made := make([]any, len(list))
	for i, item := range list {
		made[i] = u.conform(entry, item, child(n, i), sc, tell)
	}
	return made
}

func (u *Unit) mapValue(s *Schema, m map[string]any, n *tree.Node, sc *scope, tell teller) any {
	entry, key := s.entrySchema(), s.keySchema()
	literal := n.Is(tree.Map) && !isCall(n)
	at := func(k string) (*tree.Node, *tree.Node) {
		if literal {
			for _, e := range n.Entries {
				if u.unescape(e.Key.Text) == k {
					return e.Key, e.Value
				}
			}
		}
		return n, n
	}
	made := make(map[string]any, len(m))
	for _, k := range sortedKeys(m) {
		keyNode, valueNode := at(k)
		if literal && keyNode != n && keyNode.Kind != tree.String && !u.Old() && keyNode.Kind != tree.Map && keyNode.Kind != tree.List {
			tell(keyNode, "quote it", "key %s of the map is no string", describe(keyNode))
		}
		if key != nil && !isCallText(k) {
			u.conform(key, k, keyNode, sc, tell)
		}
		made[k] = m[k]
		if entry != nil {
			made[k] = u.conform(entry, m[k], valueNode, sc, tell)
		}
	}
	return made
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// complexValue checks a value of a type with properties.
func (u *Unit) complexValue(t *Type, v any, n *tree.Node, sc *scope, tell teller) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		tell(n, "want a map with "+orNone(list(t.Properties.Names)), "%s: want a value of type %s", describeValue(v, n), t.Name)
		return nil, false
	}
	made := make(map[string]any, len(m))
	for _, k := range sortedKeys(m) {
		p, ok := t.Properties.Get(k)
		at := n
		if n.Is(tree.Map) && !isCall(n) {
			if c := n.Get(k); c != nil {
				at = c
			}
		}
		if !ok {
			if t.vague() || u.Old() && t.Properties.Len() == 0 {
				made[k] = m[k]
				continue
			}
			tell(at, "it has "+orNone(list(t.Properties.Names)), "%s has no property %s", t.Name, k)
			continue
		}
		if p.Value != nil {
			tell(at, "", "property %s of %s has a fixed value", k, t.Name)
		}
		made[k] = u.conform(&p.Schema, m[k], at, sc, tell)
	}
	for _, name := range t.Properties.Names {
		if _, has := made[name]; has {
			continue
		}
		p, _ := t.Properties.Get(name)
		switch {
		case p.Value != nil:
			made[name] = u.conform(&p.Schema, p.valueUnit.raw(p.Value, nil), p.Value, nil, discard)
		case p.Default != nil && p.Required:
			made[name] = u.conform(&p.Schema, p.defaultUnit.raw(p.Default, nil), p.Default, nil, discard)
		case p.Required:
			if _, given := m[name]; !given {
				tell(n, "", "property %s of %s is missing", name, t.Name)
			}
		}
	}
	return made, true
}

func discard(*tree.Node, string, string, ...any) {}

// scalarValue checks a number with a unit.
func (u *Unit) scalarValue(t *Type, v any, n *tree.Node, sc *scope, tell teller) (any, bool) {
	if q, ok := v.(values.Quantity); ok {
		if t.dimension == nil || q.Dimension == t.dimension || q.Dimension.Name == t.dimension.Name {
			return q, true
		}
		v = q.Text
	}
	str, ok := v.(string)
	if !ok || t.dimension == nil {
		if t.dimension != nil {
			tell(n, "want a number and a unit", "%s: want a value of type %s", describeValue(v, n), t.Name)
		}
		return nil, false
	}
	q, err := t.dimension.Parse(str)
	if err != nil {
		tell(n, "", "%v", err)
		return nil, false
	}
	if t.number != nil {
		number := q.Number
		if i, isInt := number.(int64); isInt && t.number.base() == "float" {
			number = float64(i)
		}
		u.clauses(t.number.schema.Clauses, number, n, sc, tell)
	}
	return q, true
}
