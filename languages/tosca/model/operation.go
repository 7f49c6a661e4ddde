package model

import (
	"croft/languages/tree"
)

// assignInterfaces reads interface assignments. Ones that the type has not are
// refused for nodes; examples of csd05 have them in relationship templates.
func (s *Service) assignInterfaces(e *Entity, n *tree.Node, defs *Named[*Interface], loose, lenient bool) Named[*NodeInterface] {
	u := s.Unit
	var made Named[*NodeInterface]
	if defs != nil {
		for _, name := range defs.Names {
			def, _ := defs.Get(name)
			made.set(name, s.defaultInterface(def))
		}
	}
	for _, entry := range entries(n) {
		if !u.nameable(entry.Key, "an interface") {
			continue
		}
		name := entry.Key.Text
		face, ok := made.Get(name)
		if !ok {
			switch {
			case loose:
			case lenient || u.Old():
				u.warnf(entry.Key, "", "%s has no interface %s", e.typeName(), name)
			default:
				u.errorf(entry.Key, "it has "+orNone(list(made.Names)), "%s has no interface %s", e.typeName(), name)
			}
			face = &NodeInterface{Name: name, Inputs: map[string]*tree.Node{}}
			made.set(name, face)
		}
		face.Entry = entry.Value
		s.assignInterface(e, face, entry.Value)
	}
	return made
}

func (s *Service) defaultInterface(def *Interface) *NodeInterface {
	face := &NodeInterface{Name: def.Name, Def: def, Inputs: map[string]*tree.Node{}}
	for _, name := range def.Operations.Names {
		o, _ := def.Operations.Get(name)
		face.Operations.set(name, defaultOperation(o, def))
	}
	return face
}

func defaultOperation(o *Operation, def *Interface) *NodeOperation {
	op := &NodeOperation{Name: o.Name, Def: o, Unit: o.Unit, Implementation: o.Implementation, Inputs: map[string]Assigned{}, Outputs: map[string]*tree.Node{}}
	take := func(from *Named[*Property]) {
		for _, name := range from.Names {
			p, _ := from.Get(name)
			switch {
			case p.Value != nil:
				op.Inputs[name] = Assigned{p.Value, p.valueUnit, p}
			case p.Default != nil:
				op.Inputs[name] = Assigned{p.Default, p.defaultUnit, p}
			}
		}
	}
	take(&def.Inputs)
	take(&o.Inputs)
	for _, name := range o.Outputs.Names {
		if p, _ := o.Outputs.Get(name); p.Mapping != nil {
			op.Outputs[name] = p.Mapping
		}
	}
	return op
}

func (s *Service) assignInterface(e *Entity, face *NodeInterface, n *tree.Node) {
	u := s.Unit
	if n.Kind == tree.Null && u.Old() {
		return
	}
	k := interfaceAssignmentKeys
	var bare map[string]want
	if n.Is(tree.Map) {
		var known Named[*Operation]
		if face.Def != nil {
			known = face.Def.Operations
		}
		if bare = u.bareOperations(&k, n, face.Def == nil || face.Def.Type == nil || face.Def.Type.vague(), known); bare != nil {
			k.keys = with(k.keys, bare)
		}
	}
	if !u.keys(n, &k) {
		return
	}
	sc := &scope{service: s, self: e}
	for _, in := range entries(n.Get("inputs")) {
		if !u.nameable(in.Key, "an input") {
			continue
		}
		face.Inputs[in.Key.Text] = in.Value
		var def *Property
		if face.Def != nil {
			def, _ = face.Def.Inputs.Get(in.Key.Text)
		}
		s.once(func() { s.argument(def, in.Value, sc) })
		for _, name := range face.Operations.Names {
			op, _ := face.Operations.Get(name)
			op.Inputs[in.Key.Text] = Assigned{in.Value, u, def}
		}
	}
	for _, o := range entries(n.Get("operations")) {
		s.assignOperation(e, face, o)
	}
	for _, o := range entries(n) {
		if _, ok := bare[o.Key.Text]; ok {
			s.assignOperation(e, face, o)
		}
	}
	for _, o := range entries(n.Get("notifications")) {
		if !u.nameable(o.Key, "a notification") {
			continue
		}
		if face.Def != nil && face.Def.Type != nil && !face.Def.Type.vague() {
			if _, ok := face.Def.Notifications.Get(o.Key.Text); !ok {
				u.errorf(o.Key, "it has "+orNone(list(face.Def.Notifications.Names)), "interface %s has no notification %s", face.Name, o.Key.Short())
			}
		}
		if o.Value.Is(tree.Map) {
			u.keys(o.Value, &notificationKeys)
			if i := o.Value.Get("implementation"); i != nil {
				u.implementation(i, true)
			}
			for _, out := range entries(o.Value.Get("outputs")) {
				u.selection(out.Value)
				s.mappable(e, out.Value)
			}
		} else if o.Value.Kind != tree.String && o.Value.Kind != tree.Null {
			u.errorf(o.Value, "want a map, or the implementation", "notification %s is %s", o.Key.Short(), describe(o.Value))
		}
	}
}

// once does something when all nodes and their relationships are known: what
// is assigned to an operation may refer to them.
func (s *Service) once(do func()) { s.pending = append(s.pending, do) }

// argument checks the value of an input of an operation or workflow.
func (s *Service) argument(def *Property, n *tree.Node, sc *scope) {
	u := s.Unit
	u.checkExpression(n, sc)
	if def == nil {
		return
	}
	if def.Value != nil {
		u.errorf(n, "", "input %s has a fixed value", def.Name)
		return
	}
	s.check(&def.Schema, n, sc, def.Required)
}

// check tells whether a value, or what a function gives, is of a schema.
func (s *Service) check(schema *Schema, n *tree.Node, sc *scope, required bool) any {
	u := s.Unit
	if is := u.kindOf(n, sc); is != nil && !is.fits(schema) {
		u.errorf(n, "want a "+schema.name(), "the function gives a %s", is.name())
		return nil
	}
	if required {
		s.surely(n, sc)
	}
	return u.conform(schema, u.raw(n, sc), n, sc, u.errorf)
}

// surely tells about an optional workflow input where a value must be.
func (s *Service) surely(n *tree.Node, sc *scope) {
	c, ok := s.Unit.callOf(n)
	if !ok || c.name != "get_input" || len(c.list()) != 1 || sc.inputs == nil {
		return
	}
	if p, ok := sc.inputs.Get(c.list()[0].Text); ok && !p.Required && p.Default == nil {
		s.Unit.errorf(n, "", "input %s is not required, and what it is for is", p.Name)
	}
}

// mappable tells of an output that goes to an attribute of SELF which is not
// there.
func (s *Service) mappable(e *Entity, m *tree.Node) {
	if e.Type == nil || e.Type.vague() || s.Unit.Old() {
		return
	}
	e.Type.checkMapping(s.Unit, m)
}

func (s *Service) assignOperation(e *Entity, face *NodeInterface, entry tree.Entry) {
	u := s.Unit
	if !u.nameable(entry.Key, "an operation") {
		return
	}
	name, n := entry.Key.Text, entry.Value
	op, ok := face.Operations.Get(name)
	if !ok {
		if face.Def != nil && face.Def.Type != nil && !face.Def.Type.vague() && !u.Old() {
			u.errorf(entry.Key, "it has "+orNone(list(face.Operations.Names)), "interface %s has no operation %s", face.Name, entry.Key.Short())
		}
		op = &NodeOperation{Name: name, Inputs: map[string]Assigned{}, Outputs: map[string]*tree.Node{}}
		for in, v := range face.Inputs {
			op.Inputs[in] = Assigned{v, u, nil}
		}
		face.Operations.set(name, op)
	}
	op.Entry, op.Unit = n, u
	switch n.Kind {
	case tree.Null:
		return
	case tree.String:
		op.Implementation = u.implementation(n, false)
		return
	case tree.Map:
	default:
		u.errorf(n, "want a map, or the implementation", "operation %s is %s", name, describe(n))
		return
	}
	if !operationLike(n) && (n.Get("primary") != nil || n.Get("file") != nil) {
		op.Implementation = u.implementation(n, false)
		return
	}
	u.keys(n, &operationKeys)
	if i := n.Get("implementation"); i != nil {
		op.Implementation = u.implementation(i, false)
	}
	sc := &scope{service: s, self: e}
	for _, in := range entries(n.Get("inputs")) {
		if !u.nameable(in.Key, "an input") {
			continue
		}
		var def *Property
		if op.Def != nil {
			def, _ = op.Def.Inputs.Get(in.Key.Text)
		}
		if def == nil && face.Def != nil {
			def, _ = face.Def.Inputs.Get(in.Key.Text)
		}
		value := in.Value
		if u.Old() && value.Is(tree.Map) && value.Get("type") != nil && value.Get("default") != nil {
			value = value.Get("default") // 1.x: a definition
		}
		s.once(func() { s.argument(def, value, sc) })
		op.Inputs[in.Key.Text] = Assigned{value, u, def}
	}
	for _, out := range entries(n.Get("outputs")) {
		if !u.nameable(out.Key, "an output") {
			continue
		}
		if op.Def != nil {
			if p, ok := op.Def.Outputs.Get(out.Key.Text); ok && p.Mapping != nil && !sameDefinition(p.Mapping, out.Value) {
				u.errorf(out.Value, "", "output %s is mapped already", out.Key.Text)
			}
		}
		u.selection(out.Value)
		s.mappable(e, out.Value)
		op.Outputs[out.Key.Text] = out.Value
	}
}
