package model

import (
	"fmt"
	"regexp"
	"strings"

	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// clauses checks that validation clauses hold for a value.
func (u *Unit) clauses(list []Clause, v any, n *tree.Node, sc *scope, tell teller) {
	for _, c := range list {
		if c.Constraint {
			c.Unit.constraint(c.Node, v, n, tell)
			continue
		}
		inner := &scope{validates: true, value: v, hasValue: true}
		if sc != nil {
			inner.service, inner.self, inner.inputs, inner.index = sc.service, sc.self, sc.inputs, sc.index
			inner.depth = sc.depth
		}
		var failure error
		inner.fail = func(err error) { failure = err }
		result := c.Unit.raw(c.Node, inner)
		if failure != nil {
			tell(n, "", "validation of %s: %v", describeValue(v, n), failure)
			continue
		}
		if held, ok := result.(bool); ok && !held {
			tell(n, "", "%s is not valid: %s", describeValue(v, n), clauseText(c.Node))
		}
	}
}

// clauseText writes a clause shortly.
func clauseText(n *tree.Node) string {
	var s strings.Builder
	writeFlow(&s, n)
	if s.Len() > 120 {
		return s.String()[:117] + "..."
	}
	return s.String()
}

func writeFlow(s *strings.Builder, n *tree.Node) {
	if s.Len() > 200 {
		return
	}
	switch n.Kind {
	case tree.List:
		s.WriteString("[")
		for i, item := range n.Items {
			if i > 0 {
				s.WriteString(", ")
			}
			writeFlow(s, item)
		}
		s.WriteString("]")
	case tree.Map:
		s.WriteString("{")
		for i, e := range n.Entries {
			if i > 0 {
				s.WriteString(", ")
			}
			s.WriteString(e.Key.Text + ": ")
			writeFlow(s, e.Value)
		}
		s.WriteString("}")
	default:
		s.WriteString(n.Text)
	}
}

// constraint checks a constraint of 1.x.
func (u *Unit) constraint(n *tree.Node, v any, at *tree.Node, tell teller) {
	if !n.Is(tree.Map) || len(n.Entries) != 1 {
		tell(n, "want a map with one operator", "a constraint is %s", describe(n))
		return
	}
	name, arg := n.Entries[0].Key.Text, u.raw(n.Entries[0].Value, nil)
	var held any
	var err error
	switch name {
	case "pattern":
		pattern, _ := arg.(string)
		re, wrong := regexp.Compile("^(?:" + pattern + ")$")
		if wrong != nil {
			return // patterns that Go does not know are not checked
		}
		held = re.MatchString(values.String(v))
	case "length":
		var size any
		if size, err = values.Call("length", []any{v}); err == nil {
			held = values.Equal(size, arg)
		}
	case "schema":
		return
	default:
		held, err = values.Call(name, []any{v, arg})
	}
	if err != nil {
		tell(n, "", "constraint %s: %v", name, err)
	} else if ok, is := held.(bool); is && !ok {
		tell(at, "", "%s is not valid: %s", describeValue(v, at), clauseText(n))
	}
}

// clause checks that a validation clause is a boolean expression.
func (u *Unit) clause(n *tree.Node, s *Schema) {
	u.booleanExpression(n, "a validation clause", &scope{validates: true, schema: s})
}

// filter checks that a node filter is a boolean expression; 1.x and some
// examples of 2.0 have lists of conditions.
func (u *Unit) filter(n *tree.Node) {
	if u.Old() {
		return
	}
	if n.Is(tree.Map) && (n.Get("capabilities") != nil || n.Get("properties") != nil) {
		u.errorf(n, "want a boolean expression, such as { $equal: [ { $get_property: [ SELF, TARGET, size ] }, 1 ] }", "node_filter has the form of TOSCA 1.x")
		return
	}
	u.booleanExpression(n, "a node filter", nil)
}

func (u *Unit) booleanExpression(n *tree.Node, what string, sc *scope) {
	if n.Kind == tree.Bool {
		return
	}
	if !isCall(n) {
		u.errorf(n, "want a boolean expression, such as { $greater_than: [ $value, 1 ] }", "%s is %s", what, describe(n))
		u.checkExpression(n, sc)
		return
	}
	u.checkExpression(n, sc)
	c, _ := u.callOf(n)
	if f := u.function(c.name); f != nil {
		if r := f.result(); r != nil && r.Type.base() != "boolean" && r.Type.base() != "any" {
			u.errorf(n, "", "%s is a function that gives a %s", what, r.name())
		}
		return
	}
	if values.Has(c.name) && !values.Boolean(c.name) {
		u.errorf(n, "", "%s is $%s, which gives no boolean", what, c.name)
	}
}

func textOr(n *tree.Node, v any) string {
	if n != nil && n.Plain && n.Text != "" {
		return n.Text
	}
	return fmt.Sprint(v)
}
