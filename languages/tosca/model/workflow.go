package model

import (
	"strings"

	"croft/languages/tree"
)

// Workflow is an imperative workflow.
type Workflow struct {
	Name   string
	Node   *tree.Node
	Inputs Named[*Property]
	steps  map[string]bool

	inlined []inlined
	state   uint8 // of the search for circles: 0 not seen, 1 on the way, 2 done
}

// inlined is a workflow that another has among its activities.
type inlined struct {
	at   *tree.Node
	name string
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
	for _, name := range s.Workflows.Names {
		w, _ := s.Workflows.Get(name)
		s.circle(w)
	}
}

// circle tells of workflows that inline themselves, in the end.
func (s *Service) circle(w *Workflow) {
	if w.state != 0 {
		return
	}
	w.state = 1
	for _, in := range w.inlined {
		to, ok := s.Workflows.Get(in.name)
		if ok && to.state == 1 {
			s.Unit.errorf(in.at, "", "workflow %s has itself in it, by way of %s", w.Name, to.Name)
		} else if ok {
			s.circle(to)
		}
	}
	w.state = 2
}

// begins warns of a workflow whose steps all come after others: none begins.
func (s *Service) begins(w *Workflow, steps *tree.Node) {
	after := map[string]bool{}
	for _, e := range entries(steps) {
		for _, key := range []string{"on_success", "on_failure"} {
			for _, next := range items(e.Value.Get(key)) {
				after[next.Text] = true
			}
		}
	}
	for _, e := range entries(steps) {
		if !after[e.Key.Text] {
			return
		}
	}
	if len(entries(steps)) > 0 {
		s.Unit.warnf(steps, "", "no step of workflow %s begins: each comes after another", w.Name)
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
			switch host := step.Get("operation_host"); {
			case host == nil:
				u.warnf(step, "SOURCE or TARGET", "a step on a relationship has no operation_host")
			case host.Text != "SOURCE" && host.Text != "TARGET" && !u.Old():
				u.errorf(host, "want SOURCE or TARGET", "operation_host of a step on a relationship is %s", host.Short())
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
		for _, a := range items(step.Get("activities")) {
			name := a.Get("inline")
			if name.Is(tree.Map) {
				name = name.Get("workflow")
			}
			if name.Is(tree.String) {
				w.inlined = append(w.inlined, inlined{at: name, name: name.Text})
			}
		}
	}
	s.begins(w, steps)
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
	for _, input := range w.Inputs.Names {
		if p, _ := w.Inputs.Get(input); p.Required && p.Default == nil && p.Value == nil && inputs.Get(input) == nil && !u.Old() {
			u.errorf(name, "give it in inputs", "workflow %s requires input %s", name.Text, input)
		}
	}
}
