package model

import (
	"fmt"
	"slices"

	"croft/languages/tosca/tree"
	"croft/languages/tosca/values"
)

// scope is where an expression stands: what SELF is, which inputs there are.
// A nil scope knows nothing.
type scope struct {
	service *Service
	self    *Entity
	inputs  *Named[*Property] // of a workflow; nil: those of the service
	index   int64             // $node_index

	validates bool // in a validation clause
	hasValue  bool
	value     any
	schema    *Schema

	steps int
	depth int
	fail  func(error)
}

// maxDepth bounds values that refer to each other.
const maxDepth = 100

func (sc *scope) failed(u *Unit, n *tree.Node, err error) {
	if sc.fail != nil {
		sc.fail(err)
		return
	}
	u.errorf(n, "", "%v", err)
}

// ask evaluates the functions that ask for something of the service.
func (sc *scope) ask(u *Unit, c call) any {
	if sc == nil {
		return values.Unknown{}
	}
	args := c.list()
	switch c.name {
	case "value":
		if !sc.hasValue {
			return values.Unknown{}
		}
		return sc.nested(u, sc.value, args)
	case "node_index":
		return sc.index
	case "get_input":
		if sc.service == nil || sc.inputs != nil || len(args) == 0 || args[0].Kind != tree.String {
			return values.Unknown{}
		}
		v, ok := sc.service.inputValues[args[0].Text]
		if !ok {
			return values.Unknown{}
		}
		return sc.nested(u, v, args[1:])
	case "get_property", "get_attribute":
		return sc.lookup(u, c.name == "get_attribute", args)
	case "get_artifact", "get_operation_output":
		return sc.runtime(u, c.name, args)
	}
	return values.Unknown{}
}

// runtime asks for an artifact or for an output of an operation.
func (sc *scope) runtime(u *Unit, function string, args []*tree.Node) any {
	if sc.service == nil || sc.service.Runtime == nil || len(args) < 2 {
		return values.Unknown{}
	}
	at, rest, ok, err := sc.walk(u, args[:1])
	if err != nil || !ok || len(at) != 1 || len(rest) != 0 {
		return values.Unknown{}
	}
	text := func(i int) string {
		if i >= len(args) {
			return ""
		}
		return values.String(u.raw(args[i], sc))
	}
	var v any
	if function == "get_artifact" {
		v, ok = sc.service.Runtime.Artifact(at[0].entity, at[0].index, text(1), text(2))
	} else {
		v, ok = sc.service.Runtime.OperationOutput(at[0].entity, at[0].index, text(1), text(2), text(3))
	}
	if !ok {
		return values.Unknown{}
	}
	return v
}

// nested goes into a value by names and indexes.
func (sc *scope) nested(u *Unit, v any, args []*tree.Node) any {
	for _, n := range args {
		switch x := v.(type) {
		case values.Unknown, values.Text:
			return values.Unknown{}
		case map[string]any:
			key := values.String(u.raw(n, sc))
			item, ok := x[key]
			if !ok {
				return values.Unknown{}
			}
			v = item
		case []any:
			i, ok := u.raw(n, sc).(int64)
			if !ok || i < 0 || i >= int64(len(x)) {
				if ok && sc.fail == nil {
					u.errorf(n, "", "there is no item %d: the list has %d", i, len(x))
				}
				return values.Unknown{}
			}
			v = x[i]
		default:
			return values.Unknown{}
		}
	}
	return v
}

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

// lookup evaluates $get_property and $get_attribute.
func (sc *scope) lookup(u *Unit, attribute bool, args []*tree.Node) any {
	if sc.depth > maxDepth {
		return values.Unknown{}
	}
	at, rest, ok, err := sc.walk(u, args)
	if err != nil || !ok || len(rest) == 0 || len(at) == 0 {
		return values.Unknown{}
	}
	many := slices.ContainsFunc(args, func(n *tree.Node) bool { return n.Is(tree.String) && n.Text == "ALL" })
	var made []any
	for _, p := range at {
		v := p.entity.lookup(rest[0].Text, attribute, p.index, sc.depth+1)
		v = sc.nested(u, v, rest[1:])
		if !many {
			return v
		}
		made = append(made, v)
	}
	return made
}

func (e *Entity) lookup(name string, attribute bool, index int64, depth int) any {
	if attribute {
		if e.service.Runtime != nil {
			if v, ok := e.service.Runtime.Attribute(e, index, name); ok {
				return v
			}
		}
		if c, ok := e.Attributes.Get(name); ok && c.Entry != nil {
			return c.value(index, depth)
		}
	}
	if c, ok := e.Properties.Get(name); ok {
		return c.value(index, depth)
	}
	return values.Unknown{}
}

// Value is what the cell holds, for the node of an index: Unknown if that
// cannot be said, nil if it has none.
func (c *Cell) Value(index int64) any { return c.value(index, 0) }

func (c *Cell) value(index int64, depth int) any {
	if c.Entry == nil {
		return nil
	}
	if v, ok := c.known[index]; ok {
		return v
	}
	sc := &scope{service: c.entity.service, self: c.entity, index: index, depth: depth}
	if c.busy {
		c.Unit.errorf(c.Entry, "", "the value of %s depends on itself", c.Name)
		return values.Unknown{}
	}
	c.busy = true
	defer func() { c.busy = false }()
	v := c.Unit.raw(c.Entry, sc)
	if c.Def != nil {
		v = c.Unit.conform(&c.Def.Schema, v, c.Entry, sc, c.Unit.errorf)
	}
	// What is not known yet may be known later.
	if values.Known(v) {
		if c.known == nil {
			c.known = map[int64]any{}
		}
		c.known[index] = v
	}
	return v
}

// checkInput tells about $get_input of what is no input.
func (sc *scope) checkInput(u *Unit, args []*tree.Node) {
	if sc.service == nil {
		return
	}
	inputs := &sc.service.Inputs
	if sc.inputs != nil {
		if _, ok := sc.inputs.Get(args[0].Text); ok {
			return
		}
	}
	p, ok := inputs.Get(args[0].Text)
	switch {
	case ok:
		sc.service.checkNested(u, &p.Schema, args[1:])
	case sc.inputs != nil:
		// The suite of OASIS takes it that workflows are given more than they
		// declare.
		u.warnf(args[0], "it has "+orNone(list(sc.inputs.Names)), "the workflow has no input %s", args[0].Text)
	default:
		u.errorf(args[0], "the inputs are "+orNone(list(inputs.Names)), "there is no input %s", args[0].Short())
	}
}

// checkNested tells about names that a complex type has not.
func (s *Service) checkNested(u *Unit, schema *Schema, args []*tree.Node) *Schema {
	for _, n := range args {
		if schema == nil || schema.Type == nil {
			return nil
		}
		switch base := schema.Type.base(); base {
		case "":
			if !n.Is(tree.String) || isCall(n) {
				return nil
			}
			p, ok := schema.Type.Properties.Get(n.Text)
			if !ok {
				if !schema.Type.vague() {
					u.errorf(n, "it has "+orNone(list(schema.Type.Properties.Names)), "%s has no property %s", schema.Type.Name, n.Short())
				}
				return nil
			}
			schema = &p.Schema
		case "list", "map":
			if base == "list" && n.Kind != tree.Int && !isCall(n) {
				u.errorf(n, "want an integer", "the index of a list is %s", describe(n))
				return nil
			}
			schema = schema.entrySchema()
		case "any":
			return nil
		default:
			u.errorf(n, "", "a %s has nothing in it that has a name or index", schema.name())
			return nil
		}
	}
	return schema
}

func (sc *scope) inputSchema(u *Unit, args []*tree.Node) *Schema {
	if sc == nil || sc.service == nil || len(args) == 0 || !args[0].Is(tree.String) {
		return nil
	}
	p, ok := sc.service.Inputs.Get(args[0].Text)
	if sc.inputs != nil {
		if own, has := sc.inputs.Get(args[0].Text); has {
			p, ok = own, true
		}
	}
	if !ok || p.Schema.Type == nil {
		return nil
	}
	quiet := &Unit{run: &run{problems: problems{seen: map[Problem]bool{}}}}
	return sc.service.checkNested(quiet, &p.Schema, args[1:])
}

// checkPath tells about paths that lead nowhere, and names that are not there.
func (sc *scope) checkPath(u *Unit, c call, args []*tree.Node) {
	at, rest, ok, err := sc.walk(u, args)
	if err != nil {
		u.errorf(c.node, "", "%v", err)
		return
	}
	if !ok || len(rest) == 0 {
		return
	}
	if rest[0].Kind != tree.String {
		u.errorf(rest[0], "want the name of a property", "argument of $%s is %s", c.name, describe(rest[0]))
		return
	}
	for _, p := range at {
		e := p.entity
		if e.Type == nil || e.Type.vague() || isCall(rest[0]) {
			return
		}
		cell, has := e.Properties.Get(rest[0].Text)
		if !has && c.name == "get_attribute" {
			cell, has = e.Attributes.Get(rest[0].Text)
		}
		if !has {
			if u.Old() || e.Relationship == nil && e.What == "relationship" || c.name == "get_attribute" && sc.service.anyAttribute(e, rest[0].Text) {
				return
			}
			kind := "property"
			if c.name == "get_attribute" {
				kind = "attribute"
			}
			u.errorf(rest[0], "", "%s %s has no %s %s", e.What, e.Name, kind, rest[0].Short())
			return
		}
		if cell.Def != nil {
			sc.service.checkNested(u, &cell.Def.Schema, rest[1:])
		}
	}
}

// anyAttribute reports whether operations give an attribute that no type
// defines.
func (s *Service) anyAttribute(e *Entity, name string) bool {
	if e.Node == nil {
		return false
	}
	for _, i := range e.Node.Interfaces.Names {
		face, _ := e.Node.Interfaces.Get(i)
		for _, o := range face.Operations.Names {
			op, _ := face.Operations.Get(o)
			for _, mapping := range op.Outputs {
				if last := len(mapping.Items); last > 1 && mapping.Items[1].Text == name {
					return true
				}
			}
		}
	}
	return false
}

func (sc *scope) propertySchema(u *Unit, args []*tree.Node) *Schema {
	at, rest, ok, err := sc.walk(u, args)
	if err != nil || !ok || len(at) != 1 || len(rest) == 0 || rest[0].Kind != tree.String {
		return nil
	}
	c, has := at[0].entity.Properties.Get(rest[0].Text)
	if !has || c.Def == nil || slices.ContainsFunc(args, func(n *tree.Node) bool { return n.Is(tree.String) && n.Text == "ALL" }) {
		return nil
	}
	quiet := &Unit{run: &run{problems: problems{seen: map[Problem]bool{}}}}
	return sc.service.checkNested(quiet, &c.Def.Schema, rest[1:])
}
