package model

import (
	"slices"

	"croft/languages/tosca/values"
	"croft/languages/tree"
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
	// dimension is that of the scalar which an expression is to give: strings
	// that it computes with may be numbers with its units.
	dimension *values.Dimension

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
	if c.Def != nil {
		sc.dimension = c.Def.Schema.dimension()
	}
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
	return sc.service.checkNested(u.quietly(), &p.Schema, args[1:])
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
	return sc.service.checkNested(u.quietly(), &c.Def.Schema, rest[1:])
}
