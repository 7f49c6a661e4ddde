package model

import (
	"strings"

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

// Workflow is an imperative workflow.
type Workflow struct {
	Name   string
	Node   *tree.Node
	Inputs Named[*Property]
	steps  map[string]bool
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
			t = u.Type(GroupType, item.Text)
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

// activities reads a list of activities (csd05, 5.6.6). On: what they are done
// on, or nil.
func (u *Unit) activities(n *tree.Node, s *Service, sc *scope, on *Node) {
	if n.Is(tree.List) && len(n.Items) == 0 {
		u.errorf(n, "want at least one", "there is no activity")
	}
	for _, item := range items(n) {
		if !item.Is(tree.Map) || len(item.Entries) != 1 {
			u.errorf(item, "want a map with delegate, set_state, call_operation or inline", "an activity is %s", describe(item))
			continue
		}
		e := item.Entries[0]
		v := e.Value
		switch e.Key.Text {
		case "set_state":
			if v.Kind != tree.String {
				u.errorf(v, "want the name of a state", "set_state is %s", describe(v))
			}
		case "call_operation":
			name, inputs := u.called(v, "operation")
			if name != nil {
				u.operationCall(name, inputs, s, sc, on)
			}
		case "delegate", "inline":
			name, inputs := u.called(v, "workflow")
			if name != nil {
				u.workflowCall(e.Key.Text, name, inputs, s, sc)
			}
		default:
			u.errorf(e.Key, "want delegate, set_state, call_operation or inline", "%s is no activity", e.Key.Short())
		}
	}
}

// called reads the short or the long form of a call.
func (u *Unit) called(n *tree.Node, key string) (name, inputs *tree.Node) {
	switch n.Kind {
	case tree.String:
		if n.Text == "" {
			u.errorf(n, "want a name", "the name of the %s is empty", key)
			return nil, nil
		}
		return n, nil
	case tree.Map:
		k := keynames{what: "an activity", keys: map[string]want{key: text, "inputs": mapping}, need: []string{key}}
		u.keys(n, &k)
		if name = n.Get(key); name.Is(tree.String) {
			return name, n.Get("inputs")
		}
		return nil, nil
	}
	u.errorf(n, "want the name of a "+key+", or a map", "an activity is %s", describe(n))
	return nil, nil
}

func (u *Unit) operationCall(name, inputs *tree.Node, s *Service, sc *scope, on *Node) {
	i := strings.LastIndex(name.Text, ".")
	if i <= 0 || i == len(name.Text)-1 {
		u.errorf(name, "want interface.operation", "%s names no operation", name.Short())
		return
	}
	for _, in := range entries(inputs) {
		u.checkExpression(in.Value, sc)
	}
	if s == nil || on == nil || on.Type == nil || on.Type.vague() {
		return
	}
	face, ok := on.Interfaces.Get(name.Text[:i])
	if !ok {
		// By the name of its type, as examples do.
		for _, f := range on.Interfaces.Names {
			known, _ := on.Interfaces.Get(f)
			if known.Def != nil && known.Def.Type != nil && known.Def.Type.Name == name.Text[:i] {
				face, ok = known, true
			}
		}
	}
	if !ok {
		u.errorf(name, "it has "+orNone(list(on.Interfaces.Names)), "node %s has no interface %s", on.Name, name.Text[:i])
		return
	}
	op, ok := face.Operations.Get(name.Text[i+1:])
	if !ok {
		u.errorf(name, "it has "+orNone(list(face.Operations.Names)), "interface %s of node %s has no operation %s", face.Name, on.Name, name.Text[i+1:])
		return
	}
	for _, in := range entries(inputs) {
		var def *Property
		if op.Def != nil {
			def, _ = op.Def.Inputs.Get(in.Key.Text)
		}
		if def == nil && face.Def != nil {
			def, _ = face.Def.Inputs.Get(in.Key.Text)
		}
		if def != nil && def.Value == nil {
			s.check(&def.Schema, in.Value, sc, def.Required)
		}
	}
	s.requiredInputs(name, inputs, face, op)
}

// requiredInputs checks that what an operation requires is given: by the call, or by
// the template.
func (s *Service) requiredInputs(name, inputs *tree.Node, face *NodeInterface, op *NodeOperation) {
	var defs []*Property
	if face.Def != nil {
		for _, n := range face.Def.Inputs.Names {
			p, _ := face.Def.Inputs.Get(n)
			defs = append(defs, p)
		}
	}
	if op.Def != nil {
		for _, n := range op.Def.Inputs.Names {
			p, _ := op.Def.Inputs.Get(n)
			defs = append(defs, p)
		}
	}
	for _, p := range defs {
		if _, ok := op.Inputs[p.Name]; p.Required && !ok && inputs.Get(p.Name) == nil {
			s.Unit.errorf(name, "give it in inputs", "operation %s requires input %s", name.Text, p.Name)
		}
	}
}

func (u *Unit) workflowCall(kind string, name, inputs *tree.Node, s *Service, sc *scope) {
	for _, in := range entries(inputs) {
		u.checkExpression(in.Value, sc)
	}
	if s == nil || kind == "delegate" {
		return
	}
	to := s.Node.Get("workflows").Get(name.Text)
	if to == nil {
		u.errorf(name, "", "there is no workflow %s", name.Short())
		return
	}
	w, ok := s.Workflows.Get(name.Text)
	if !ok {
		return
	}
	for _, in := range entries(inputs) {
		if p, ok := w.Inputs.Get(in.Key.Text); ok {
			s.check(&p.Schema, in.Value, sc, p.Required)
		} else {
			u.errorf(in.Key, "it has "+orNone(list(w.Inputs.Names)), "workflow %s has no input %s", name.Text, in.Key.Short())
		}
	}
}

func (s *Service) groups() {
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

func (s *Service) workflows() {
	u := s.Unit
	all := entries(s.Node.Get("workflows"))
	for _, e := range all {
		if !u.nameable(e.Key, "a workflow") {
			continue
		}
		w := &Workflow{Name: e.Key.Text, Node: e.Value, steps: map[string]bool{}}
		if !u.keys(e.Value, &workflowKeys) {
			continue
		}
		u.define(&w.Inputs, e.Value.Get("inputs"), serviceInputDef, false)
		for _, step := range entries(e.Value.Get("steps")) {
			w.steps[step.Key.Text] = true
		}
		s.Workflows.set(w.Name, w)
	}
	for _, name := range s.Workflows.Names {
		w, _ := s.Workflows.Get(name)
		s.workflow(w)
	}
}

func (s *Service) workflow(w *Workflow) {
	u, n := s.Unit, w.Node
	sc := &scope{service: s, inputs: &w.Inputs}
	if p := n.Get("precondition"); p != nil {
		u.booleanExpression(p, "a precondition", sc)
	}
	if i := n.Get("implementation"); i != nil {
		if n.Get("steps") != nil {
			u.errorf(i, "one of them", "workflow %s has both steps and an implementation", w.Name)
		}
		u.implementation(i, false)
	}
	for _, out := range entries(n.Get("outputs")) {
		if !u.Old() {
			u.selection(out.Value)
		}
	}
	steps := n.Get("steps")
	for _, e := range entries(steps) {
		if !u.nameable(e.Key, "a step") || !u.keys(e.Value, &stepKeys) {
			continue
		}
		step := e.Value
		var on *Node
		if target := step.Get("target"); target.Is(tree.String) {
			node, ok := s.Nodes.Get(target.Text)
			on = node
			if _, group := s.Groups.Get(target.Text); !ok && !group {
				u.errorf(target, "the node templates are "+shortList(s.Nodes.Names), "there is no node template and no group %s", target.Short())
			}
		}
		if r := step.Get("target_relationship"); r.Is(tree.String) && on != nil {
			if on.Type != nil && !on.Type.vague() {
				if _, ok := on.Type.Requirements.Get(r.Text); !ok {
					u.errorf(r, "it has "+orNone(list(on.Type.Requirements.Names)), "node %s has no requirement %s", on.Name, r.Short())
				}
			}
			if step.Get("operation_host") == nil {
				u.warnf(step, "SOURCE or TARGET", "a step on a relationship has no operation_host")
			}
			on = nil
		}
		for _, f := range items(step.Get("filter")) {
			if !u.Old() {
				u.booleanExpression(f, "a filter", sc)
			}
		}
		for _, key := range []string{"on_success", "on_failure"} {
			for _, next := range items(step.Get(key)) {
				if !next.Is(tree.String) || !w.steps[next.Text] {
					u.errorf(next, "", "there is no step %s", next.Short())
				}
			}
		}
		u.activities(step.Get("activities"), s, sc, on)
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
