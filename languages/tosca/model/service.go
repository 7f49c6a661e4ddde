package model

import (
	"fmt"
	"slices"

	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// Service is a service template, resolved: values computed as far as they are
// known, requirements fulfilled as far as the template does.
type Service struct {
	Unit      *Unit
	Node      *tree.Node
	Inputs    Named[*Property]
	Outputs   Named[*Property]
	Nodes     Named[*Node]
	Groups    Named[*Group]
	Policies  []*Policy
	Workflows Named[*Workflow]

	Substitution *Substitution

	// Runtime tells what is known once the service runs; nil: nothing is.
	Runtime Runtime

	given         map[string]any
	inputValues   map[string]any
	relationships Named[*Entity] // templates
	byType        map[*Type][]*Node
	pending       []func()
}

// Runtime tells what is known of a service once it runs, or what stands for
// it. The value is told only with true.
type Runtime interface {
	Attribute(e *Entity, index int64, name string) (any, bool)
	Artifact(e *Entity, index int64, name, location string) (any, bool)
	OperationOutput(e *Entity, index int64, face, operation, name string) (any, bool)
}

// Entity is what has properties: a node, a capability, a relationship, a group
// or a policy.
type Entity struct {
	What       string // "node", "capability", …
	Name       string
	Type       *Type // nil if it is not known
	Entry      *tree.Node
	Properties Named[*Cell]
	Attributes Named[*Cell]

	Node         *Node // of nodes and capabilities
	Relationship *Relationship
	service      *Service
}

// Cell is a property or attribute of an entity and its value.
type Cell struct {
	Name   string
	Def    *Property  // nil if there is none
	Entry  *tree.Node // nil: no value
	Unit   *Unit      // of Entry
	entity *Entity

	known map[int64]any
	busy  bool
}

// Node is a node template.
type Node struct {
	Entity
	Directives   []string
	Count        *tree.Node // nil: 1
	Capabilities Named[*Entity]
	Requirements []*Assignment
	Interfaces   Named[*NodeInterface]
	Artifacts    Named[*Artifact]
	Filter       *Clause

	// Out and In are the relationships that begin and end here.
	Out, In []*Relationship
}

// Has reports whether the node has a directive.
func (n *Node) Has(directives ...string) bool {
	return slices.ContainsFunc(n.Directives, func(d string) bool { return slices.Contains(directives, d) })
}

// Relationship joins a requirement of a node to a capability of another.
type Relationship struct {
	Entity
	Assignment *Assignment
	Source     *Node
	Target     *Node
	Capability string // of the target; "" if none fits
	// Take is how many of the target's nodes it leads to, if the assignment
	// named no target; 0: as many as the assignment counts.
	Take       int64
	Interfaces Named[*NodeInterface]
}

// NodeInterface is an interface of a node or relationship, with what the
// template assigns.
type NodeInterface struct {
	Name       string
	Def        *Interface // nil if the type has none
	Entry      *tree.Node // nil: nothing is assigned
	Inputs     map[string]*tree.Node
	Operations Named[*NodeOperation]
}

// NodeOperation is an operation with what the template assigns.
type NodeOperation struct {
	Name           string
	Def            *Operation // nil if the interface has none
	Entry          *tree.Node
	Unit           *Unit
	Implementation *Implementation
	Inputs         map[string]Assigned
	Outputs        map[string]*tree.Node // attribute mappings
}

// Assigned is a value and the file whose names it uses.
type Assigned struct {
	Node *tree.Node
	Unit *Unit
	Def  *Property // nil if there is none
}

// service reads the service template of the file, or returns nil if it has
// none.
func (u *Unit) service(given map[string]any) *Service {
	n := u.serviceNode()
	if !n.Is(tree.Map) {
		for name := range given {
			u.run.problems.add(u, nil, Problem{What: "there is no service template that input " + name + " could be of"})
		}
		return nil
	}
	k := serviceKeys
	if !u.Old() {
		k.need = []string{"node_templates"}
	}
	u.keys(n, &k)
	s := &Service{Unit: u, Node: n, inputValues: map[string]any{}, byType: map[*Type][]*Node{}}
	for _, e := range entries(n.Get("functions")) {
		if !u.nameable(e.Key, "a function") {
			continue
		}
		f := &Function{Name: e.Key.Text, Unit: u, Node: e.Value, refined: u.function(e.Key.Text)}
		u.functions[f.Name] = f
		f.check()
	}
	u.define(&s.Inputs, n.Get("inputs"), serviceInputDef, false)
	s.give(given)
	for _, e := range entries(n.Get("relationship_templates")) {
		s.relationshipTemplate(e)
	}
	for i, e := range entries(n.Get("node_templates")) {
		s.nodeTemplate(e)
		if i%256 == 0 && u.run.ctx.Err() != nil {
			return s
		}
	}
	for i, name := range s.Nodes.Names {
		node, _ := s.Nodes.Get(name)
		s.requirements(node)
		if i%256 == 0 && u.run.ctx.Err() != nil {
			return s
		}
	}
	s.fulfil()
	for _, do := range s.pending {
		do()
	}
	s.pending = nil
	s.evaluate()
	s.groups()
	s.policies()
	s.workflows()
	s.outputs()
	s.substitution()
	return s
}

var serviceInputDef = definition{keys: &parameterKeys, what: "input", parameter: true}

// give takes the values of inputs.
func (s *Service) give(given map[string]any) {
	u := s.Unit
	s.given = given
	for _, name := range sortedKeys(given) {
		p, ok := s.Inputs.Get(name)
		if !ok {
			u.run.problems.add(u, s.Node, Problem{What: "there is no input " + name, Hint: "the inputs are " + orNone(list(s.Inputs.Names))})
			continue
		}
		v := values.FromPlain(given[name])
		tell := func(n *tree.Node, hint, format string, args ...any) {
			u.errorf(p.Node, hint, "input %s: %s", name, fmt.Sprintf(format, args...))
		}
		s.inputValues[name] = u.conform(&p.Schema, s.read(p, v), nil, nil, tell)
	}
	for _, name := range s.Inputs.Names {
		p, _ := s.Inputs.Get(name)
		if _, ok := s.inputValues[name]; ok {
			continue
		}
		switch {
		case p.Value != nil:
			s.inputValues[name] = u.conform(&p.Schema, p.valueUnit.raw(p.Value, nil), p.Value, nil, discard)
		case p.Default != nil:
			s.inputValues[name] = u.conform(&p.Schema, p.defaultUnit.raw(p.Default, nil), p.Default, nil, discard)
		case p.Required && (u.run.options.Deploy || len(given) > 0):
			u.unfulfilled(p.Node, "give it with --inputs, or croft_inputs", "input %s has no value", name)
		}
	}
}

// read takes text for the number or boolean that an input wants: commands and
// some clients have nothing else to give.
func (s *Service) read(p *Property, v any) any {
	text, ok := v.(string)
	switch b := p.Schema.Type.base(); {
	case !ok && b == "float":
		if i, is := v.(int64); is {
			return float64(i)
		}
	case ok && (b == "integer" || b == "float" || b == "boolean"):
		n := &tree.Node{Text: text, Plain: true}
		tree.Resolve(n)
		read := s.Unit.raw(n, nil)
		if i, is := read.(int64); is && b == "float" {
			return float64(i)
		}
		return read
	}
	return v
}

// copied is a template with what it copies (csd05, 5.3.2.3).
func (s *Service) copied(n *tree.Node, section string) *tree.Node {
	from := n.Get("copy")
	if !from.Is(tree.String) {
		return n
	}
	u := s.Unit
	source := s.Node.Get(section).Get(from.Text)
	switch {
	case source == nil:
		u.errorf(from, "", "there is no template %s to copy", from.Short())
		return n
	case source.Get("copy") != nil:
		u.errorf(from, "copy what that one copies", "template %s is a copy itself", from.Short())
		return n
	case source == n || source.Kind != tree.Map:
		return n
	}
	return overlaid(source, n)
}

// overlaid is a map with the entries of another over it: maps are merged,
// lists of single names too, by their names.
func overlaid(base, over *tree.Node) *tree.Node {
	made := &tree.Node{Kind: tree.Map, Line: over.Line, Column: over.Column, Parent: over.Parent, Name: over.Name}
	for _, e := range base.Entries {
		if o := over.Get(e.Key.Text); o != nil && e.Key.Kind == tree.String {
			if o.Kind == tree.Map && e.Value.Kind == tree.Map && !isCall(o) && !isCall(e.Value) {
				o = overlaid(e.Value, o)
			}
			e.Value = o
		}
		made.Entries = append(made.Entries, e)
	}
	for _, e := range over.Entries {
		if base.Get(e.Key.Text) == nil && e.Key.Text != "copy" {
			made.Entries = append(made.Entries, e)
		}
	}
	return made
}

func (s *Service) nodeTemplate(e tree.Entry) {
	u := s.Unit
	if !u.nameable(e.Key, "a node template") {
		return
	}
	u.reachable(e.Key, "node template")
	n := e.Value
	node := &Node{}
	node.Entity = Entity{What: "node", Name: e.Key.Text, Entry: n, service: s, Node: node}
	s.Nodes.set(node.Name, node)
	if n.Is(tree.Map) {
		n = s.copied(n, "node_templates")
		node.Entry = n
	}
	if !u.keys(n, &nodeTemplateKeys) {
		return
	}
	node.Type = u.typeAt(NodeType, n.Get("type"))
	t := node.Type
	s.byTypes(node)
	s.directives(node, n.Get("directives"))
	node.Count = n.Get("count")
	if node.Count != nil && !isCall(node.Count) && (node.Count.Kind != tree.Int || node.Count.Int < 0) {
		u.errorf(node.Count, "want an integer, 0 or more", "count is %s", describe(node.Count))
	}
	if node.Count != nil {
		u.checkExpression(node.Count, &scope{service: s, self: &node.Entity})
	}
	var props, attrs *Named[*Property]
	if t != nil {
		props, attrs = &t.Properties, &t.Attributes
	}
	loose := t == nil || t.vague()
	s.assign(&node.Entity, n.Get("properties"), props, loose, "property")
	s.attributes(&node.Entity, n.Get("attributes"), attrs, loose)
	s.capabilities(node, n.Get("capabilities"))
	if t != nil {
		for _, name := range t.Artifacts.Names {
			a, _ := t.Artifacts.Get(name)
			node.Artifacts.set(name, a)
		}
	}
	for _, a := range entries(n.Get("artifacts")) {
		if u.nameable(a.Key, "an artifact") {
			if made := u.artifact(a.Key.Text, a.Value); made != nil {
				node.Artifacts.set(a.Key.Text, made)
			}
		}
	}
	var defs *Named[*Interface]
	if t != nil {
		defs = &t.Interfaces
	}
	node.Interfaces = s.assignInterfaces(&node.Entity, n.Get("interfaces"), defs, loose, false)
	if f := n.Get("node_filter"); f != nil {
		node.Filter = &Clause{Node: f, Unit: u}
		u.filter(f)
		if !node.Has("select", "substitute", "substitutable", "selectable") && len(node.Directives) == 0 {
			u.warnf(n.KeyOf("node_filter"), "", "node_filter has no effect without the directive select or substitute")
		}
	}
}

// byTypes notes the node under its type and all that this derives from.
func (s *Service) byTypes(node *Node) {
	for at, steps := node.Type, 0; at != nil && steps < maxAncestors; at, steps = at.Parent, steps+1 {
		s.byType[at] = append(s.byType[at], node)
	}
}

func (s *Service) directives(node *Node, n *tree.Node) {
	for _, item := range items(n) {
		if item.Kind != tree.String {
			s.Unit.errorf(item, "want a string", "a directive is %s", describe(item))
			continue
		}
		switch item.Text {
		case "create", "select", "substitute", "substitutable", "selectable", "internal", "external":
		default:
			if !s.Unit.Old() {
				s.Unit.errorf(item, "want create, select or substitute", "%s is no directive of node templates", item.Short())
			}
		}
		node.Directives = append(node.Directives, item.Text)
	}
}

func (s *Service) capabilities(node *Node, n *tree.Node) {
	u, t := s.Unit, node.Type
	loose := t == nil || t.vague()
	add := func(name string, entry *tree.Node) {
		e := &Entity{What: "capability", Name: name, Entry: entry, service: s, Node: node}
		var def *Capability
		if t != nil {
			def, _ = t.Capabilities.Get(name)
		}
		props, attrs := (*Named[*Property])(nil), (*Named[*Property])(nil)
		open := true
		if def != nil {
			e.Type = def.Type
			props, attrs, open = &def.Properties, &def.Attributes, def.Type == nil || def.Type.vague()
		}
		if e.Entry == nil {
			e.Entry = node.Entry
		}
		s.assign(e, entry.Get("properties"), props, open, "property")
		s.attributes(e, entry.Get("attributes"), attrs, open)
		node.Capabilities.set(name, e)
	}
	for _, e := range entries(n) {
		if !u.nameable(e.Key, "a capability") {
			continue
		}
		if t != nil {
			if _, ok := t.Capabilities.Get(e.Key.Text); !ok && !loose {
				u.errorf(e.Key, "it has "+orNone(list(t.Capabilities.Names)), "%s has no capability %s", t.Name, e.Key.Text)
			}
		}
		if e.Value.Kind == tree.Null && u.Old() {
			continue
		}
		if !u.keys(e.Value, &capabilityAssignmentKeys) {
			continue
		}
		s.scopeDirectives(e.Value.Get("directives"))
		add(e.Key.Text, e.Value)
	}
	if t == nil {
		return
	}
	for _, name := range t.Capabilities.Names {
		if _, ok := node.Capabilities.Get(name); !ok {
			add(name, nil)
		}
	}
}

// scopeDirectives checks the directives of capabilities and requirements.
func (s *Service) scopeDirectives(n *tree.Node) {
	for _, item := range items(n) {
		if !item.Is(tree.String) || item.Text != "internal" && item.Text != "external" {
			s.Unit.errorf(item, "want internal or external", "a directive is %s", describe(item))
		}
	}
}
