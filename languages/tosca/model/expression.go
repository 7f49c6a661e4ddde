package model

import (
	"errors"
	"slices"
	"strings"

	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// call is a function call as it is written.
type call struct {
	name string // with its namespaces, without $
	node *tree.Node
	args *tree.Node // nil: none
}

// isCallText reports whether a string calls a function: it begins with one $.
func isCallText(s string) bool {
	return len(s) > 1 && s[0] == '$' && s[1] != '$'
}

// isCall reports whether a node is a function call (csd05, 5.4.14).
func isCall(n *tree.Node) bool {
	if n == nil {
		return false
	}
	switch n.Kind {
	case tree.String:
		return isCallText(n.Text)
	case tree.Map:
		return len(n.Entries) == 1 && n.Entries[0].Key.Kind == tree.String && isCallText(n.Entries[0].Key.Text) && !encoded(n.Entries[0].Key.Text)
	}
	return false
}

// encoded reports whether a key has a whole call with its arguments in it, as
// keys of maps may: "$keygen$1: [ UUID ]".
func encoded(key string) bool { return strings.ContainsAny(key, " [{") }

// oldFunctions are the functions of 1.x, which are called without $.
var oldFunctions = []string{"get_input", "get_property", "get_attribute", "get_artifact", "get_operation_output", "get_nodes_of_type", "concat", "join", "token"}

func isOldCall(n *tree.Node) bool {
	return n.Is(tree.Map) && len(n.Entries) == 1 && slices.Contains(oldFunctions, n.Entries[0].Key.Text)
}

// callOf reads a call. It reports false for what is none.
func (u *Unit) callOf(n *tree.Node) (call, bool) {
	c := call{node: n}
	switch {
	case n == nil:
		return c, false
	case u.Old() && isOldCall(n):
		c.name, c.args = n.Entries[0].Key.Text, n.Entries[0].Value
		return c, true
	case u.Old() || !isCall(n):
		return c, false
	case n.Kind == tree.String:
		c.name = n.Text[1:]
	default:
		c.name, c.args = n.Entries[0].Key.Text[1:], n.Entries[0].Value
	}
	// What follows a second $ only makes keys differ.
	c.name, _, _ = strings.Cut(c.name, "$")
	return c, true
}

// list returns the arguments: what is no list is the only one.
func (c call) list() []*tree.Node {
	switch {
	case c.args == nil:
		return nil
	case c.args.Kind == tree.List:
		return c.args.Items
	case c.args.Kind == tree.Null:
		return nil
	}
	return []*tree.Node{c.args}
}

// The functions that ask for something of a service or of the value that is
// checked.
var contextual = []string{
	"get_input", "get_property", "get_attribute", "get_artifact", "value", "node_index", "relationship_index", "available_allocation",
	"get_operation_output", "get_nodes_of_type", "scalar_value",
}

// checkExpression tells what is wrong with the calls in a value, wherever they
// are in it.
func (u *Unit) checkExpression(n *tree.Node, sc *scope) {
	if n == nil {
		return
	}
	switch n.Kind {
	case tree.List:
		for _, item := range n.Items {
			u.checkExpression(item, sc)
		}
		return
	case tree.Map:
		if !isCall(n) && !(u.Old() && isOldCall(n)) {
			for _, e := range n.Entries {
				if !u.Old() && len(n.Entries) > 1 && e.Key.Kind == tree.String && isCallText(e.Key.Text) && !encoded(e.Key.Text) && !strings.Contains(e.Key.Text[1:], "$") {
					u.errorf(e.Key, "a call is a map with one key; $$ begins a string with $", "malformed function %s: its map has other keys", e.Key.Short())
				}
				u.checkExpression(e.Value, sc)
			}
			return
		}
	}
	c, ok := u.callOf(n)
	if !ok {
		return
	}
	for _, arg := range c.list() {
		u.checkExpression(arg, sc)
	}
	u.checkCall(c, sc)
}

func (u *Unit) checkCall(c call, sc *scope) {
	switch {
	case slices.Contains(contextual, c.name):
		u.checkContextual(c, sc)
	case u.function(c.name) != nil:
		u.function(c.name).checkCall(u, c, sc)
	case values.Has(c.name):
		if err := values.Arity(c.name, len(c.list())); err != nil && !errors.Is(err, values.ErrNoFunction) {
			u.errorf(c.node, "", "%v", err)
			return
		}
		u.checkConstant(c, sc)
	default:
		problem := Problem{What: "there is no function $" + c.name, Hint: "define its signatures in functions; $$ begins a string with $"}
		if u.mayComeFromUnread(c.name) {
			problem.Warning, problem.Unresolvable = true, true
		}
		u.run.problems.add(u, c.node, problem)
	}
}

// checkConstant computes a call whose arguments are all constants, to tell
// mistakes early.
func (u *Unit) checkConstant(c call, sc *scope) {
	args := make([]any, 0, 4)
	for _, n := range c.list() {
		v := u.raw(n, nil)
		if !values.Known(v) {
			return
		}
		args = append(args, v)
	}
	if values.Arithmetic(c.name) {
		for _, arg := range args {
			if text, ok := arg.(string); ok && startsWithNumber(text) {
				return // a number with a unit, of which type is known later
			}
		}
	}
	if _, err := values.Call(c.name, args); err != nil {
		u.errorf(c.node, "", "%v", err)
	}
}

func (u *Unit) checkContextual(c call, sc *scope) {
	args := c.list()
	switch c.name {
	case "get_input":
		if len(args) == 0 {
			u.errorf(c.node, "want the name of an input", "$get_input has no argument")
			return
		}
		if args[0].Kind != tree.String || isCall(args[0]) {
			if args[0].Kind != tree.String && !isCall(args[0]) {
				u.errorf(args[0], "want the name of an input", "argument of $get_input is %s", describe(args[0]))
			}
			return
		}
		if sc != nil {
			sc.checkInput(u, args)
		}
	case "get_property", "get_attribute":
		if len(args) < 2 {
			u.errorf(c.node, "want a path and a name, such as [ SELF, size ]", "$%s has %d arguments", c.name, len(args))
			return
		}
		if sc != nil {
			sc.checkPath(u, c, args)
		}
	case "get_artifact":
		if len(args) < 2 || len(args) > 4 {
			u.errorf(c.node, "want an entity, an artifact and at most a location and what becomes of it", "$get_artifact has %d arguments", len(args))
		}
	case "value":
		if sc != nil && !sc.validates {
			u.errorf(c.node, "it is the value that a validation clause is about", "$value stands outside of a validation clause")
		}
	case "node_index", "relationship_index":
		if len(args) > 0 {
			u.errorf(c.node, "", "$%s has no arguments", c.name)
		}
	}
}

// raw makes a value of a node: literals as they are, calls computed as far as
// the scope (nil: none) knows what they need.
func (u *Unit) raw(n *tree.Node, sc *scope) any {
	switch n.Kind {
	case tree.Null:
		return nil
	case tree.Bool:
		return n.Bool
	case tree.Int:
		return n.Int
	case tree.Float:
		return n.Float
	case tree.List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = u.raw(item, sc)
		}
		return list
	case tree.Other:
		return values.Unknown{}
	}
	if c, ok := u.callOf(n); ok {
		return u.compute(c, sc)
	}
	if n.Kind == tree.String {
		return u.unescape(n.Text)
	}
	m := make(map[string]any, len(n.Entries))
	for _, e := range n.Entries {
		m[u.unescape(e.Key.Text)] = u.raw(e.Value, sc)
	}
	return m
}

// unescape takes the first of two dollars off.
func (u *Unit) unescape(s string) string {
	if strings.HasPrefix(s, "$$") && !u.Old() {
		return s[1:]
	}
	return s
}

// compute evaluates a call. What cannot be known yet is Unknown.
func (u *Unit) compute(c call, sc *scope) any {
	if slices.Contains(contextual, c.name) {
		return sc.ask(u, c)
	}
	if !values.Has(c.name) || u.function(c.name) != nil {
		return values.Unknown{}
	}
	if sc != nil {
		if sc.steps++; sc.steps > maxSteps {
			return values.Unknown{}
		}
	}
	nodes := c.list()
	args := make([]any, len(nodes))
	for i, n := range nodes {
		args[i] = u.raw(n, sc)
	}
	readQuantities(c.name, args, sc)
	v, err := values.Call(c.name, args)
	if err != nil {
		if sc != nil {
			sc.failed(u, c.node, err)
		}
		return values.Unknown{}
	}
	return v
}

// readQuantities reads strings that are computed with as numbers with units.
func readQuantities(function string, args []any, sc *scope) {
	if !values.Arithmetic(function) {
		return
	}
	for i, arg := range args {
		text, ok := arg.(string)
		if !ok {
			continue
		}
		if sc != nil && sc.dimension != nil {
			if q, err := sc.dimension.Parse(text); err == nil {
				args[i] = q
				continue
			}
		}
		if q, ok := values.ReadQuantity(text); ok {
			args[i] = q
		}
	}
}

// maxSteps bounds the calls that one value takes.
const maxSteps = 100_000

// kindOf says what base type a call gives, or "" if that is not known.
func (u *Unit) kindOf(n *tree.Node, sc *scope) *Schema {
	c, ok := u.callOf(n)
	if !ok {
		return nil
	}
	builtin := func(name string) *Schema { return &Schema{Type: u.run.builtins[name]} }
	if f := u.function(c.name); f != nil {
		return f.result()
	}
	switch c.name {
	case "get_input":
		return sc.inputSchema(u, c.list())
	case "get_property":
		return sc.propertySchema(u, c.list())
	case "length", "round", "floor", "ceil", "node_index":
		return builtin("integer")
	case "join", "token":
		return builtin("string")
	case "union", "intersection":
		return builtin("list")
	}
	if values.Boolean(c.name) {
		return builtin("boolean")
	}
	return nil
}
