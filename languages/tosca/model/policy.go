package model

import (
	"croft/languages/tree"
)

// Group is a group of nodes.
type Group struct {
	Entity
	Members []string // nodes and groups
}

// Policy is a policy of a service.
type Policy struct {
	Entity
	Targets  []string // nodes and groups
	Triggers bool     // has triggers of its own or of its type
}

// policyTargets reads the types of nodes and groups that a policy type is for.
func (u *Unit) policyTargets(n *tree.Node, inherited []*Type) []*Type {
	if n == nil {
		return inherited
	}
	var made []*Type
	for _, item := range items(n) {
		if item.Kind != tree.String {
			u.errorf(item, "want the name of a type", "a target is %s", describe(item))
			continue
		}
		t := u.Type(NodeType, item.Text)
		if t == nil {
			if t = u.Type(GroupType, item.Text); t != nil {
				t.resolve()
			}
		}
		if t == nil {
			u.noType(NodeType, item)
			continue
		}
		if inherited != nil && !anyOf(t, inherited) && !u.Old() {
			// Groups may stand for what they are of.
			if t.Kind == NodeType || !groupOf(t, inherited) {
				u.errorf(item, "what is inherited allows "+typeNames(inherited), "%s is none of the targets that are valid already, nor derived from one", t.Name)
			}
		}
		made = append(made, t)
	}
	return made
}

func groupOf(t *Type, list []*Type) bool {
	for _, m := range t.Members {
		if !anyOf(m, list) {
			return false
		}
	}
	return len(t.Members) > 0
}

func (t *Type) readTriggers() {
	t.Triggers = map[string]*tree.Node{}
	if t.Parent != nil {
		for name, n := range t.Parent.Triggers {
			t.Triggers[name] = n
		}
	}
	for _, e := range entries(t.Node.Get("triggers")) {
		if !t.Unit.nameable(e.Key, "a trigger") {
			continue
		}
		if before := t.Triggers[e.Key.Text]; before != nil && !sameDefinition(before, e.Value) {
			t.Unit.errorf(e.Key, "", "trigger %s is inherited, and cannot be changed", e.Key.Text)
		}
		t.Unit.trigger(e.Value, nil)
		t.Triggers[e.Key.Text] = e.Value
	}
}

func (u *Unit) trigger(n *tree.Node, s *Service) {
	k := triggerKeys
	if u.Old() {
		k.need = nil
	}
	if !u.keys(n, &k) || u.Old() {
		return
	}
	var sc *scope
	if s != nil {
		sc = &scope{service: s}
	}
	if c := n.Get("condition"); c != nil {
		u.booleanExpression(c, "a condition", sc)
	}
	u.activities(n.Get("action"), s, sc, nil)
}

func (s *Service) groups() {
	defer s.groupCircles()
	u := s.Unit
	all := s.Node.Get("groups")
	for _, e := range entries(all) {
		if !u.nameable(e.Key, "a group") {
			continue
		}
		g := &Group{}
		g.Entity = Entity{What: "group", Name: e.Key.Text, Entry: e.Value, service: s}
		s.Groups.set(g.Name, g)
		if !u.keys(e.Value, &groupKeys) {
			continue
		}
		g.Type = u.typeAt(GroupType, e.Value.Get("type"))
		var props, attrs *Named[*Property]
		if g.Type != nil {
			props, attrs = &g.Type.Properties, &g.Type.Attributes
		}
		loose := g.Type == nil || g.Type.vague()
		s.assign(&g.Entity, e.Value.Get("properties"), props, loose, "property")
		s.attributes(&g.Entity, e.Value.Get("attributes"), attrs, loose)
		s.cells(&g.Entity)
		for _, m := range items(first(e.Value.Get("members"), e.Value.Get("targets"))) {
			if m.Kind != tree.String {
				u.errorf(m, "want the name of a node template or group", "a member is %s", describe(m))
				continue
			}
			g.Members = append(g.Members, m.Text)
			s.member(g, m, all)
		}
	}
}

// groupCircles tells of groups that are members of themselves, in the end.
func (s *Service) groupCircles() {
	const onTheWay, done = 1, 2
	state := map[string]int{}
	var visit func(g *Group)
	visit = func(g *Group) {
		state[g.Name] = onTheWay
		for _, m := range g.Members {
			if m == g.Name {
				continue // told already
			}
			if _, node := s.Nodes.Get(m); node {
				continue
			}
			to, ok := s.Groups.Get(m)
			switch {
			case !ok || state[m] == done:
			case state[m] == onTheWay:
				s.Unit.errorf(g.Entry.Get("members"), "", "group %s is a member of itself, by way of %s", m, g.Name)
			default:
				visit(to)
			}
		}
		state[g.Name] = done
	}
	for _, name := range s.Groups.Names {
		if g, _ := s.Groups.Get(name); state[name] == 0 {
			visit(g)
		}
	}
}

func (s *Service) member(g *Group, m, all *tree.Node) {
	u := s.Unit
	n, ok := s.Nodes.Get(m.Text)
	if !ok {
		if all.Get(m.Text) == nil {
			u.errorf(m, "the node templates are "+shortList(s.Nodes.Names), "there is no node template and no group %s", m.Short())
		} else if m.Text == g.Name {
			u.errorf(m, "", "group %s is a member of itself", g.Name)
		}
		return
	}
	if g.Type != nil && g.Type.Members != nil && n.Type != nil && !anyOf(n.Type, g.Type.Members) {
		u.errorf(m, "members are of type "+typeNames(g.Type.Members), "node %s is of type %s", n.Name, n.Type.Name)
	}
}

func (s *Service) policies() {
	u := s.Unit
	list := s.Node.Get("policies")
	if u.Old() && list.Is(tree.Map) {
		for _, e := range list.Entries {
			if u.nameable(e.Key, "a policy") {
				s.policy(e.Key.Text, e.Value)
			}
		}
		return
	}
	seen := map[string]bool{}
	for _, item := range items(list) {
		name, n := u.single(item, "a policy")
		if n == nil {
			continue
		}
		if seen[name] {
			u.errorf(item, "", "policy %s is defined twice", name)
		}
		seen[name] = true
		s.policy(name, n)
	}
}

func (s *Service) policy(name string, n *tree.Node) {
	u := s.Unit
	p := &Policy{}
	p.Entity = Entity{What: "policy", Name: name, Entry: n, service: s}
	s.Policies = append(s.Policies, p)
	if !u.keys(n, &policyKeys) {
		return
	}
	p.Type = u.typeAt(PolicyType, n.Get("type"))
	var props *Named[*Property]
	if p.Type != nil {
		props = &p.Type.Properties
		p.Triggers = len(p.Type.Triggers) > 0
	}
	s.assign(&p.Entity, n.Get("properties"), props, p.Type == nil || p.Type.vague(), "property")
	s.cells(&p.Entity)
	for _, target := range items(n.Get("targets")) {
		if target.Kind != tree.String {
			u.errorf(target, "want the name of a node template or group", "a target is %s", describe(target))
			continue
		}
		p.Targets = append(p.Targets, target.Text)
		var t *Type
		if node, ok := s.Nodes.Get(target.Text); ok {
			t = node.Type
		} else if g, ok := s.Groups.Get(target.Text); ok {
			t = g.Type
		} else {
			u.errorf(target, "the node templates are "+shortList(s.Nodes.Names), "there is no node template and no group %s", target.Short())
			continue
		}
		if t != nil && p.Type != nil && p.Type.Members != nil && !anyOf(t, p.Type.Members) {
			if t.Kind != GroupType || !groupOf(t, p.Type.Members) {
				u.errorf(target, "targets are of type "+typeNames(p.Type.Members), "target %s is of type %s", target.Text, t.Name)
			}
		}
	}
	for _, e := range entries(n.Get("triggers")) {
		if u.nameable(e.Key, "a trigger") {
			p.Triggers = true
			u.trigger(e.Value, s)
		}
	}
}

func (s *Service) outputs() {
	u := s.Unit
	for _, e := range entries(s.Node.Get("outputs")) {
		if !u.nameable(e.Key, "an output") {
			continue
		}
		p := u.property(e.Key.Text, e.Value, inputDef, nil, true)
		if p == nil {
			continue
		}
		s.Outputs.set(p.Name, p)
		sc := &scope{service: s}
		if p.Mapping != nil && !u.Old() {
			u.warnf(p.Mapping, "want value", "output %s goes out: it cannot be mapped to an attribute", p.Name)
		}
		if p.Value == nil && p.Default == nil && !u.Old() && e.Value.Get("mapping") == nil {
			u.warnf(e.Value, "", "output %s has no value", p.Name)
			continue
		}
		if p.Value != nil {
			u.checkExpression(p.Value, sc)
			s.check(&p.Schema, p.Value, sc, false)
		}
	}
}

// Output evaluates an output: Unknown if it is not known yet.
func (s *Service) Output(name string) any {
	p, ok := s.Outputs.Get(name)
	if !ok || p.Value == nil {
		return nil
	}
	sc := &scope{service: s, fail: func(error) {}}
	return s.Unit.conform(&p.Schema, s.Unit.raw(p.Value, sc), p.Value, sc, discard)
}
