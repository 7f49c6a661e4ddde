package model

import (
	"croft/languages/tree"
)

// Substitution says which node type a service template can stand for.
type Substitution struct {
	Type         *Type
	Node         *tree.Node
	Filter       *tree.Node
	Properties   map[string]string    // property of the type → input
	Attributes   map[string]string    // attribute of the type → output
	Capabilities map[string][2]string // capability → node and its capability
	Requirements map[string][2]string // requirement → node and its requirement
}

func (s *Service) substitution() {
	u, n := s.Unit, s.Node.Get("substitution_mappings")
	if n == nil || n.Kind != tree.Map {
		return
	}
	m := &Substitution{Node: n, Filter: n.Get("substitution_filter"), Properties: map[string]string{}, Attributes: map[string]string{},
		Capabilities: map[string][2]string{}, Requirements: map[string][2]string{}}
	s.Substitution = m
	u.keys(n, &substitutionKeys)
	if m.Type = u.typeAt(NodeType, n.Get("node_type")); m.Type == nil {
		return
	}
	if m.Filter != nil {
		u.filter(m.Filter)
	}
	t := m.Type
	loose := t.vague()
	for _, e := range entries(n.Get("properties")) {
		name := e.Key.Text
		if _, ok := t.Properties.Get(name); !ok && !loose {
			u.errorf(e.Key, "it has "+orNone(list(t.Properties.Names)), "%s has no property %s", t.Name, e.Key.Short())
			continue
		}
		m.Properties[name] = s.mapped(e.Value, "input", s.Inputs.Names, u.Old())
		s.mappedType(e.Value, &t.Properties, name, &s.Inputs, m.Properties[name])
	}
	for _, e := range entries(n.Get("attributes")) {
		name := e.Key.Text
		_, isAttribute := t.Attributes.Get(name)
		if _, isProperty := t.Properties.Get(name); !isAttribute && !isProperty && !loose {
			u.errorf(e.Key, "it has "+orNone(list(t.Attributes.Names)), "%s has no attribute %s", t.Name, e.Key.Short())
			continue
		}
		m.Attributes[name] = s.mapped(e.Value, "output", s.Outputs.Names, u.Old())
		s.mappedType(e.Value, &t.Attributes, name, &s.Outputs, m.Attributes[name])
	}
	for _, e := range entries(n.Get("capabilities")) {
		if _, ok := t.Capabilities.Get(e.Key.Text); !ok && !loose {
			u.errorf(e.Key, "it has "+orNone(list(t.Capabilities.Names)), "%s has no capability %s", t.Name, e.Key.Short())
			continue
		}
		s.mappedPair(e.Value, "capability", func(node *Node, name *tree.Node) {
			if _, ok := node.Capabilities.Get(name.Text); !ok && node.Type != nil && !node.Type.vague() {
				u.errorf(name, "it has "+orNone(list(node.Capabilities.Names)), "node %s has no capability %s", node.Name, name.Short())
			}
			m.Capabilities[e.Key.Text] = [2]string{node.Name, name.Text}
			to, _ := node.Capabilities.Get(name.Text)
			if def, ok := t.Capabilities.Get(e.Key.Text); ok && to != nil && to.Type != nil && def.Type != nil && !to.Type.Is(def.Type) && !to.Type.vague() {
				u.misrefined(name, "want a capability of type "+def.Type.Name, "capability %s of node %s is of type %s", name.Text, node.Name, to.Type.Name)
			}
		})
	}
	s.mappedRequirements(m, n.Get("requirements"))
	s.mappedInterfaces(t, n.Get("interfaces"))
	s.unmapped(m)
}

// unmapped tells what is not mapped and has to be (csd05, 5.5.1.4). Of
// requirements it only warns: examples and the suite of OASIS leave them out;
// and of what built-in types have, such as the capability feature.
func (s *Service) unmapped(m *Substitution) {
	u, t := s.Unit, m.Type
	tell := func(of *Unit) func(*tree.Node, string, string, ...any) {
		if u.Old() || of.builtin {
			return u.warnf
		}
		return u.errorf
	}
	for _, name := range t.Properties.Names {
		p, _ := t.Properties.Get(name)
		if m.Node.Get("properties").Get(name) == nil && p.Value == nil && p.Default == nil && p.Required {
			tell(p.Unit)(m.Node, "", "property %s of %s is mapped to no input", name, t.Name)
		}
	}
	for _, name := range t.Capabilities.Names {
		c, _ := t.Capabilities.Get(name)
		if m.Node.Get("capabilities").Get(name) == nil {
			tell(c.Unit)(m.Node, "", "capability %s of %s is mapped to none", name, t.Name)
		}
	}
	for _, name := range t.Requirements.Names {
		if _, ok := m.Requirements[name]; !ok {
			u.warnf(m.Node, "", "requirement %s of %s is mapped to none", name, t.Name)
		}
	}
}

// mappedType tells of an input or output whose values cannot be those of what
// it is mapped to.
func (s *Service) mappedType(n *tree.Node, of *Named[*Property], name string, params *Named[*Property], param string) {
	def, ok := of.Get(name)
	p, has := params.Get(param)
	if ok && has && !p.Schema.fits(&def.Schema) {
		s.Unit.misrefined(n, "want type "+def.Schema.name(), "%s is mapped to %s, which is of type %s", name, param, p.Schema.name())
	}
}

// mapped reads a mapping to an input or output: its name, alone or in a list.
func (s *Service) mapped(n *tree.Node, what string, names []string, loose bool) string {
	u := s.Unit
	if n.Is(tree.Map) && n.Get("mapping") != nil {
		n = n.Get("mapping")
	}
	name := n
	if n.Is(tree.List) && len(n.Items) == 1 {
		name = n.Items[0]
	}
	if !name.Is(tree.String) {
		if !loose && (n.Is(tree.List) || n.Is(tree.Map) && n.Get("value") == nil) {
			u.errorf(n, "want [ "+what+" ]", "a mapping is %s", describe(n))
		} else {
			u.warnf(n, "want [ "+what+" ]", "mapping to a value is deprecated")
		}
		return ""
	}
	for _, known := range names {
		if known == name.Text {
			return known
		}
	}
	if n.Is(tree.List) || what == "output" {
		u.errorf(name, "there are "+orNone(list(names)), "there is no %s %s", what, name.Short())
	} else {
		u.warnf(name, "want [ "+what+" ]", "mapping to a value is deprecated")
	}
	return ""
}

// mappedPair reads a mapping to a node and something of it.
func (s *Service) mappedPair(n *tree.Node, what string, found func(*Node, *tree.Node)) {
	u := s.Unit
	if n.Is(tree.Map) {
		if n.Get("mapping") != nil && (n.Get("properties") != nil || n.Get("attributes") != nil) {
			s.Unit.errorf(n, "one of them", "a mapping has both mapping and values")
		}
		if n.Get("mapping") == nil {
			if n.Get("properties") == nil && n.Get("attributes") == nil {
				u.errorf(n, "want [ node, "+what+" ]", "a mapping is %s", describe(n))
			}
			return
		}
		n = n.Get("mapping")
	}
	whole := n
	if n.Is(tree.List) && len(n.Items) == 1 {
		whole = n.Items[0]
	}
	if whole.Is(tree.String) {
		// Final 2.0: a selectable node by its name alone.
		if _, ok := s.Nodes.Get(whole.Text); ok {
			return
		}
	}
	if !n.Is(tree.List) || len(n.Items) < 2 || len(n.Items) > 3 {
		u.errorf(n, "want [ node, "+what+" ]", "a mapping is %s", describe(n))
		return
	}
	nodeName := n.Items[0]
	if nodeName.Is(tree.List) && len(nodeName.Items) == 2 {
		nodeName = nodeName.Items[0] // final 2.0: one of many nodes
	}
	node, ok := s.Nodes.Get(nodeName.Text)
	if !ok || !nodeName.Is(tree.String) {
		u.errorf(nodeName, "the node templates are "+shortList(s.Nodes.Names), "there is no node template %s", nodeName.Short())
		return
	}
	name := n.Items[1]
	if name.Is(tree.List) && len(name.Items) == 2 {
		name = name.Items[0]
	}
	if !name.Is(tree.String) {
		u.errorf(name, "want the name of a "+what, "a mapping is %s", describe(name))
		return
	}
	found(node, name)
}

// mappedRequirements reads the mappings of requirements: a map in csd05, a
// list in the final 2.0, which also counts them: [ name, count ].
func (s *Service) mappedRequirements(m *Substitution, n *tree.Node) {
	u, t := s.Unit, m.Type
	one := func(key, value *tree.Node) {
		name := key
		if key.Is(tree.List) && len(key.Items) == 2 {
			name = key.Items[0]
		}
		if !name.Is(tree.String) {
			u.errorf(key, "want the name of a requirement", "a mapping is of %s", describe(key))
			return
		}
		if _, ok := t.Requirements.Get(name.Text); !ok && !t.vague() {
			u.errorf(name, "it has "+orNone(list(t.Requirements.Names)), "%s has no requirement %s", t.Name, name.Short())
			return
		}
		s.mappedPair(value, "requirement", func(node *Node, r *tree.Node) {
			if node.Type != nil && !node.Type.vague() {
				if _, ok := node.Type.Requirements.Get(r.Text); !ok {
					u.errorf(r, "it has "+orNone(list(node.Type.Requirements.Names)), "node %s has no requirement %s", node.Name, r.Short())
				}
			}
			m.Requirements[name.Text] = [2]string{node.Name, r.Text}
		})
	}
	for _, e := range entries(n) {
		one(e.Key, e.Value)
	}
	for _, item := range items(n) {
		if !item.Is(tree.Map) || len(item.Entries) != 1 {
			u.errorf(item, "want a map with one requirement", "a mapping is %s", describe(item))
			continue
		}
		one(item.Entries[0].Key, item.Entries[0].Value)
	}
}

func (s *Service) mappedInterfaces(t *Type, n *tree.Node) {
	u := s.Unit
	for _, e := range entries(n) {
		if !e.Value.Is(tree.Map) {
			u.errorf(e.Value, "want a map of operations and workflows", "the mapping of interface %s is %s", e.Key.Short(), describe(e.Value))
			continue
		}
		face, known := t.Interfaces.Get(e.Key.Text)
		for _, o := range e.Value.Entries {
			if known && face.Type != nil && !face.Type.vague() && !u.Old() {
				if _, ok := face.Operations.Get(o.Key.Text); !ok {
					u.errorf(o.Key, "it has "+orNone(list(face.Operations.Names)), "interface %s of %s has no operation %s", face.Name, t.Name, o.Key.Short())
				}
			}
			name := o.Value
			if name.Is(tree.Map) {
				name = name.Get("workflow")
			}
			if name.Is(tree.String) {
				if _, ok := s.Workflows.Get(name.Text); ok {
					continue
				}
			}
			if list := items(name); len(list) == 3 {
				if _, ok := s.Nodes.Get(list[0].Text); ok {
					continue // an operation of a node
				}
			}
			u.errorf(o.Value, "there are "+orNone(list(s.Workflows.Names)), "operation %s is mapped to no workflow", o.Key.Short())
		}
	}
}
