package model

import (
	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// Named is a map that keeps the order of its names.
type Named[T any] struct {
	Names []string
	of    map[string]T
}

// Get returns what has the name.
func (m *Named[T]) Get(name string) (T, bool) {
	v, ok := m.of[name]
	return v, ok
}

// Len is how many there are.
func (m *Named[T]) Len() int { return len(m.Names) }

func (m *Named[T]) set(name string, v T) {
	if m.of == nil {
		m.of = map[string]T{}
	}
	if _, ok := m.of[name]; !ok {
		m.Names = append(m.Names, name)
	}
	m.of[name] = v
}

// clone copies a map, so that a type can refine what it inherits.
func (m Named[T]) clone() Named[T] {
	c := Named[T]{Names: append([]string(nil), m.Names...), of: make(map[string]T, len(m.of))}
	for k, v := range m.of {
		c.of[k] = v
	}
	return c
}

// Type is a type of any kind. What it inherits is in it.
type Type struct {
	Kind   Kind
	Name   string
	Unit   *Unit // nil: built in
	Node   *tree.Node
	Parent *Type

	Properties Named[*Property]
	Attributes Named[*Property]

	// Of node types.
	Capabilities Named[*Capability]
	Requirements Named[*Requirement]
	Artifacts    Named[*Artifact]

	// Of node and relationship types.
	Interfaces Named[*Interface]

	// Of interface types.
	Inputs        Named[*Property]
	Operations    Named[*Operation]
	Notifications Named[*Operation]

	// Lists of types: nil leaves open which are valid.
	ValidCapabilities, ValidTargets, ValidSources, ValidRelationships []*Type
	// Members of groups, and targets of policies: names, of which these are
	// the types.
	Members []*Type

	// Of data types.
	primitive string // of built-in ones
	schema    Schema // entries, keys and clauses
	dimension *values.Dimension
	number    *Type // data_type of scalars

	// Of artifact types.
	MIME       string
	Extensions []string

	Triggers map[string]*tree.Node

	linked uint8 // 0: it is not known what it derives from, 1: being asked, 2: known
	state  uint8 // 0: not resolved, 1: being resolved, 2: resolved
	// required: its requirements, which are read when the rest is: node types
	// may require each other.
	required bool
	broken   bool // what it derives from is not known
}

// Is reports whether the type is the other, or derived from it.
func (t *Type) Is(other *Type) bool {
	for at, steps := t, 0; at != nil && steps < maxAncestors; at, steps = at.Parent, steps+1 {
		if at == other {
			return true
		}
	}
	return false
}

// IsNamed reports whether the type, or one that it derives from, is the
// built-in one of that name. It may be called on nil.
func (t *Type) IsNamed(name string) bool {
	for at, steps := t, 0; at != nil && steps < maxAncestors; at, steps = at.Parent, steps+1 {
		if at.Name == name && (at.Unit == nil || at.Unit.builtin) {
			return true
		}
	}
	return false
}

// vague reports whether the type has an ancestor that is not known, so that
// it cannot be said what it is not.
func (t *Type) vague() bool {
	for at, steps := t, 0; at != nil && steps < maxAncestors; at, steps = at.Parent, steps+1 {
		if at.broken {
			return true
		}
	}
	return false
}

// maxAncestors bounds chains of derivation.
const maxAncestors = 200

var typeKeynames = [kinds]*keynames{
	ArtifactType: &artifactTypeKeys, DataType: &dataTypeKeys, CapabilityType: &capabilityTypeKeys, InterfaceType: &interfaceTypeKeys,
	RelationshipType: &relationshipTypeKeys, NodeType: &nodeTypeKeys, GroupType: &groupTypeKeys, PolicyType: &policyTypeKeys,
}

// checkTypes reads all the types that the file defines.
func (u *Unit) checkTypes() {
	u.unique()
	for k := range kinds {
		for _, e := range entries(u.Root.Get(sections[k])) {
			if t := u.types[k][e.Key.Text]; t != nil && t.Node == e.Value {
				t.resolve()
			}
		}
	}
	for k := range kinds {
		for _, e := range entries(u.Root.Get(sections[k])) {
			if t := u.types[k][e.Key.Text]; t != nil && t.Node.Within(u.Root) && !u.Old() {
				t.check()
			}
		}
	}
	for _, e := range entries(u.Root.Get("functions")) {
		if f := u.functions[e.Key.Text]; f != nil {
			f.check()
		}
	}
}

// later does something once the types that are being read are: what types say
// of each other may go in circles.
func (r *run) later(do func()) {
	r.pending = append(r.pending, do)
	r.drain()
}

func (r *run) drain() {
	if r.depth > 0 {
		return
	}
	r.depth++
	for len(r.pending) > 0 {
		do := r.pending[0]
		r.pending = r.pending[1:]
		do()
	}
	r.depth--
}

// link finds out what the type derives from. That is all that others need to
// refer to it.
func (t *Type) link() {
	if t.linked != 0 {
		return
	}
	t.linked = 1
	defer func() { t.linked = 2 }()
	u := t.Unit
	if t.Node.Kind == tree.Null {
		// A type with a name only.
		if t.Kind == DataType && !u.Old() {
			u.errorf(t.Node, "want derived_from or properties", "data type %s is empty", t.Name)
		}
		t.Node = &tree.Node{Kind: tree.Map, Line: t.Node.Line, Column: t.Node.Column, Parent: t.Node.Parent, Name: t.Node.Name}
	}
	k := *typeKeynames[t.Kind]
	if t.Kind == InterfaceType {
		k = interfaceTypeGrammar(u, t.Node)
	}
	if t.Kind != InterfaceType && t.Kind != GroupType && u.Old() {
		older := with(k.older, map[string]want{"short_name": ignored, "type_uri": ignored})
		if t.Kind == CapabilityType || t.Kind == PolicyType {
			older["interfaces"] = ignored
		}
		k.older = older
	}
	if !u.keys(t.Node, &k) {
		t.broken = true
		return
	}
	t.derive()
}

// resolve reads the type and what it derives from. Other kinds of types that
// it refers to may have been linked only.
func (t *Type) resolve() {
	if t.state != 0 {
		return
	}
	t.state = 1
	t.Unit.run.depth++
	defer func() {
		t.state = 2
		t.Unit.run.depth--
		t.Unit.run.drain()
	}()
	t.link()
	if t.Node.Kind != tree.Map {
		return
	}
	u := t.Unit
	if t.Parent != nil {
		t.Parent.resolve()
		t.inherit(t.Parent)
	}
	switch t.Kind {
	case DataType:
		t.readData()
	case InterfaceType:
		t.readInterfaceType()
	case NodeType, RelationshipType, CapabilityType, GroupType, PolicyType, ArtifactType:
		t.properties()
	}
	switch t.Kind {
	case NodeType:
		t.readCapabilities()
		t.readInterfaces()
		t.readArtifacts()
		u.run.later(t.require)
	case RelationshipType:
		t.readInterfaces()
		t.ValidCapabilities = u.validTypes(CapabilityType, first(t.Node.Get("valid_capability_types"), t.Node.Get("valid_target_types")), t.ValidCapabilities)
		t.ValidTargets = u.validTypes(NodeType, t.Node.Get("valid_target_node_types"), t.ValidTargets)
		t.ValidSources = u.validTypes(NodeType, first(t.Node.Get("valid_source_node_types"), t.Node.Get("valid_source_types")), t.ValidSources)
	case CapabilityType:
		t.ValidSources = u.validTypes(NodeType, first(t.Node.Get("valid_source_node_types"), t.Node.Get("valid_source_types")), t.ValidSources)
		t.ValidRelationships = u.validTypes(RelationshipType, t.Node.Get("valid_relationship_types"), t.ValidRelationships)
	case ArtifactType:
		if m := t.Node.Get("mime_type"); m.Is(tree.String) {
			t.MIME = m.Text
		}
		if exts := t.Node.Get("file_ext"); exts != nil {
			t.Extensions = u.strings(exts, "file extension")
		}
	case GroupType:
		t.Members = u.validTypes(NodeType, first(t.Node.Get("members"), t.Node.Get("targets")), t.Members)
	case PolicyType:
		t.Members = u.policyTargets(t.Node.Get("targets"), t.Members)
		t.readTriggers()
	}
}

// require reads the requirements of a node type, after those of the one that
// it derives from.
func (t *Type) require() {
	if t.required || t.Unit == nil {
		return
	}
	t.required = true
	if t.Parent != nil {
		t.Parent.resolve()
		t.Parent.require()
		t.Requirements = t.Parent.Requirements.clone()
	}
	t.readRequirements()
}

func first(nodes ...*tree.Node) *tree.Node {
	for _, n := range nodes {
		if n != nil {
			return n
		}
	}
	return nil
}

// strings reads a list of strings.
func (u *Unit) strings(n *tree.Node, what string) []string {
	var made []string
	for _, item := range items(n) {
		if item.Kind != tree.String {
			u.errorf(item, "want a string", "%s is %s", what, describe(item))
			continue
		}
		made = append(made, item.Text)
	}
	return made
}

// derive finds the parent.
func (t *Type) derive() {
	u, from := t.Unit, t.Node.Get("derived_from")
	if !from.Is(tree.String) {
		return
	}
	var p *Type
	if from.Text == t.Name {
		// A type of 1.x may be named as the one that it replaces.
		if own := u.types[t.Kind][t.Name]; own == t {
			for _, other := range u.plain {
				if p = other.search(t.Kind, from.Text, map[*Unit]bool{u: true}); p != nil {
					break
				}
			}
		}
		if p == nil && u.Old() {
			if p = u.searchOld(t.Kind, t.Name); p == t {
				p = nil
			}
		}
		if p == nil {
			u.errorf(from, "", "%s derives from itself", t.Name)
			t.broken = true
			return
		}
	} else if p = u.lookUp(t.Kind, from.Text); p == nil {
		if b := u.run.builtins[from.Text]; b != nil && t.Kind != DataType {
			u.errorf(from, "", "%s is a data type, not a %s", from.Text, t.Kind)
		} else {
			u.noType(t.Kind, from)
		}
		t.broken = true
		return
	}
	if p.linked == 1 {
		u.errorf(from, "", "%s derives from itself, by way of %s", t.Name, p.Name)
		t.broken = true
		return
	}
	p.link()
	t.Parent = p
	for at, n := p, 0; at != nil; at, n = at.Parent, n+1 {
		if n >= maxAncestors-2 {
			u.errorf(from, "", "%s has more than %d ancestors", t.Name, maxAncestors-2)
			t.Parent, t.broken = nil, true
			return
		}
	}
}

// inherit copies what the parent has.
func (t *Type) inherit(p *Type) {
	t.Properties, t.Attributes = p.Properties.clone(), p.Attributes.clone()
	t.Capabilities = p.Capabilities.clone()
	t.Artifacts, t.Interfaces = p.Artifacts.clone(), p.Interfaces.clone()
	t.Inputs, t.Operations, t.Notifications = p.Inputs.clone(), p.Operations.clone(), p.Notifications.clone()
	t.ValidCapabilities, t.ValidTargets = p.ValidCapabilities, p.ValidTargets
	t.ValidSources, t.ValidRelationships = p.ValidSources, p.ValidRelationships
	t.Members, t.MIME, t.Extensions = p.Members, p.MIME, p.Extensions
	t.schema, t.dimension, t.number = p.schema, p.dimension, p.number
}

// properties reads the definitions of properties and attributes.
func (t *Type) properties() {
	t.Unit.define(&t.Properties, t.Node.Get("properties"), propertyDef, t.vague())
	t.Unit.define(&t.Attributes, t.Node.Get("attributes"), attributeDef, t.vague())
	for _, name := range t.Attributes.Names {
		if a, _ := t.Attributes.Get(name); a.Unit == t.Unit && a.Node.Parent == t.Node.Get("attributes") {
			if p, ok := t.Properties.Get(name); ok && p.Schema.Type != a.Schema.Type && a.Schema.Type != nil && p.Schema.Type != nil {
				t.Unit.misrefined(a.Node, "attributes are made of properties by themselves", "attribute %s is of another type than the property of the same name", name)
			}
		}
	}
}

// validTypes reads a list of types that are valid somewhere. Those of the
// parent bound them.
func (u *Unit) validTypes(k Kind, n *tree.Node, inherited []*Type) []*Type {
	if n == nil {
		return inherited
	}
	made := []*Type{}
	for _, item := range items(n) {
		if item.Kind != tree.String {
			u.errorf(item, "want the name of a type", "a %s is %s", k, describe(item))
			continue
		}
		t := u.typeAt(k, item)
		if t == nil {
			continue
		}
		if inherited != nil && !anyOf(t, inherited) && !u.Old() {
			u.errorf(item, "what is inherited allows "+typeNames(inherited), "%s is none of the types that are valid already, nor derived from one", t.Name)
		}
		made = append(made, t)
	}
	if len(items(n)) > 0 && len(made) == 0 {
		return inherited
	}
	if len(made) == 0 {
		return nil
	}
	return made
}

// anyOf reports whether a type is one of a list or derived from one.
func anyOf(t *Type, list []*Type) bool {
	if t.vague() {
		return true
	}
	for _, other := range list {
		if t.Is(other) {
			return true
		}
	}
	return false
}

func typeNames(types []*Type) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name
	}
	return list(names)
}

// readArtifacts reads the artifacts of a node type. One of an inherited name
// is replaced.
func (t *Type) readArtifacts() {
	for _, e := range entries(t.Node.Get("artifacts")) {
		if !t.Unit.nameable(e.Key, "an artifact") {
			continue
		}
		if a := t.Unit.artifact(e.Key.Text, e.Value); a != nil {
			t.Artifacts.set(e.Key.Text, a)
		}
	}
}
