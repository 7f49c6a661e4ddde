package model

import (
	"fmt"
	"math"
	"strings"

	"croft/languages/tree"
)

// Assignment is a requirement assignment of a node template.
type Assignment struct {
	Name  string
	Entry *tree.Node // nil: none was written, and the definition says all
	Def   *Requirement

	Target     *Node      // named
	Index      *tree.Node // of the named target; nil: any
	TargetType *Type      // instead
	Capability string     // of the target, by name
	CapType    *Type      // instead
	Count      *tree.Node // nil: 1
	min        int64      // how many an assignment that was not written stands for
	Optional   bool
	External   bool // no node of the template may do
	Filters    []Clause
	Allocation map[string]*tree.Node

	rel       *Entity // relationship template, or nil
	relType   *Type
	relEntry  *tree.Node // properties and interfaces assigned here
	Fulfilled bool
}

// requirements reads the requirement assignments of a node, and makes those
// that are not written.
func (s *Service) requirements(node *Node) {
	u, t := s.Unit, node.Type
	loose := t == nil || t.vague()
	counts, firm := map[string]int64{}, map[string]int64{}
	open := map[string]bool{} // counts that are not known
	for _, item := range items(node.Entry.Get("requirements")) {
		name, n := u.single(item, "a requirement")
		if name == "" {
			continue
		}
		a := &Assignment{Name: name, Entry: n}
		if t != nil {
			a.Def, _ = t.Requirements.Get(name)
		}
		if a.Def == nil && !loose {
			u.errorf(item, "it has "+orNone(list(t.Requirements.Names)), "%s has no requirement %s", t.Name, name)
			continue
		}
		s.assignment(node, a)
		node.Requirements = append(node.Requirements, a)
		c, known := int64(1), true
		if a.Count != nil {
			c, known = s.count(a.Count, &node.Entity)
		}
		if !known {
			open[name] = true
		}
		counts[name] += c
		if !a.Optional {
			firm[name] += c
		}
	}
	if t == nil {
		return
	}
	for _, name := range t.Requirements.Names {
		def, _ := t.Requirements.Get(name)
		switch n, written := counts[name]; {
		case !written:
			if a := s.implied(node, def); a != nil {
				node.Requirements = append(node.Requirements, a)
			}
		case open[name]:
		case n < def.Min || n > def.Max:
			u.errorf(node.Entry.Get("requirements"), fmt.Sprintf("want [%s]", bounds(def.Min, def.Max)), "requirement %s of node %s is assigned %d times", name, node.Name, n)
		case firm[name] < def.Min:
			u.errorf(node.Entry.Get("requirements"), fmt.Sprintf("want [%s]", bounds(def.Min, def.Max)), "requirement %s of node %s is assigned %d times without the optional ones", name, node.Name, firm[name])
		}
	}
}

// implied is the assignment of a requirement that was not written, if there
// must be one.
func (s *Service) implied(node *Node, def *Requirement) *Assignment {
	min := def.Min
	if min == 0 {
		return nil
	}
	return &Assignment{Name: def.Name, Def: def, TargetType: def.Target, CapType: def.Capability, Capability: def.CapabilityName,
		relType: def.Relationship, Filters: def.Filters, min: min}
}

// count evaluates a count.
func (s *Service) count(n *tree.Node, self *Entity) (int64, bool) {
	v := s.Unit.raw(n, &scope{service: s, self: self})
	i, ok := v.(int64)
	if ok && i < 0 {
		s.Unit.errorf(n, "want 0 or more", "count is %d", i)
		return 0, false
	}
	if ok && i > math.MaxInt32 {
		s.Unit.errorf(n, "", "count %d is too many", i)
		return 0, false
	}
	return i, ok
}

func (s *Service) assignment(node *Node, a *Assignment) {
	u, n := s.Unit, a.Entry
	if a.Def != nil {
		a.relType, a.CapType, a.Capability = a.Def.Relationship, a.Def.Capability, a.Def.CapabilityName
		a.TargetType = a.Def.Target
		a.Filters = a.Def.Filters
	}
	switch n.Kind {
	case tree.String, tree.List:
		s.target(node, a, n)
		return
	case tree.Null:
		if u.Old() {
			return
		}
		u.errorf(n, "want a node, or a map", "requirement %s is empty", a.Name)
		return
	case tree.Map:
	default:
		u.errorf(n, "want a node, or a map", "requirement %s is %s", a.Name, describe(n))
		return
	}
	u.keys(n, &requirementAssignmentKeys)
	s.scopeDirectives(n.Get("directives"))
	if d := items(n.Get("directives")); len(d) == 1 && d[0].Text == "external" {
		a.External = true
	}
	if o := n.Get("optional"); o != nil {
		v := u.raw(o, &scope{service: s, self: &node.Entity})
		b, ok := v.(bool)
		if !ok && !isCall(o) {
			u.errorf(o, "want true or false", "optional is %s", describe(o))
		}
		a.Optional = b
	}
	if c := n.Get("count"); c != nil {
		a.Count = c
		u.checkExpression(c, &scope{service: s, self: &node.Entity})
		if !isCall(c) && (c.Kind != tree.Int || c.Int < 0) {
			u.errorf(c, "want an integer, 0 or more", "count is %s", describe(c))
		}
	}
	if to := n.Get("node"); to != nil {
		s.target(node, a, to)
	}
	s.assignedCapability(a, n.Get("capability"))
	s.assignedRelationship(node, a, n.Get("relationship"))
	if f := n.Get("node_filter"); f != nil {
		a.Filters = append(append([]Clause(nil), a.Filters...), Clause{Node: f, Unit: u})
		u.filter(f)
	}
	if alloc := n.Get("allocation"); alloc.Is(tree.Map) {
		props := alloc
		if p := alloc.Get("properties"); p.Is(tree.Map) && len(alloc.Entries) == 1 {
			props = p
		}
		a.Allocation = map[string]*tree.Node{}
		for _, e := range props.Entries {
			if !u.nameable(e.Key, "a property") {
				continue
			}
			u.checkExpression(e.Value, &scope{service: s, self: &node.Entity})
			switch v := e.Value; {
			case v.Kind == tree.Int, v.Kind == tree.Float, isCall(v), v.Kind == tree.String && startsWithNumber(v.Text):
			default:
				u.errorf(v, "want a number, or a number with a unit", "allocation of %s is %s", e.Key.Text, describe(v))
				continue
			}
			a.Allocation[e.Key.Text] = e.Value
		}
	}
}

// startsWithNumber reports whether a text may be a number with a unit.
func startsWithNumber(s string) bool {
	s = strings.TrimLeft(s, " +-.")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// target reads the node of an assignment: a template, one of its nodes by
// index, or a type.
func (s *Service) target(node *Node, a *Assignment, n *tree.Node) {
	u := s.Unit
	name := n
	if n.Kind == tree.List {
		if len(n.Items) != 2 || !n.Items[0].Is(tree.String) {
			u.errorf(n, "want [ node, index ]", "a target is %s", describe(n))
			return
		}
		name, a.Index = n.Items[0], n.Items[1]
		u.checkExpression(a.Index, &scope{service: s, self: &node.Entity})
		if !isCall(a.Index) && (a.Index.Kind != tree.Int || a.Index.Int < 0) {
			u.errorf(a.Index, "want an integer, 0 or more", "the index of a node is %s", describe(a.Index))
		}
	}
	if !name.Is(tree.String) || isCall(name) {
		if !isCall(name) {
			u.errorf(name, "want the name of a node template or type", "a target is %s", describe(name))
		}
		u.checkExpression(name, &scope{service: s, self: &node.Entity})
		return
	}
	def := a.Def
	if to, ok := s.Nodes.Get(name.Text); ok {
		a.Target = to
		if def != nil && def.Target != nil && to.Type != nil && !to.Type.Is(def.Target) && !to.Type.vague() {
			u.errorf(name, "want a node of type "+def.Target.Name, "requirement %s of node %s: node %s is of type %s", a.Name, node.Name, to.Name, to.typeName())
		}
		return
	}
	if t := u.Type(NodeType, name.Text); t != nil {
		if def != nil && def.Target != nil && !t.Is(def.Target) && !t.vague() {
			u.errorf(name, "want a type derived from "+def.Target.Name, "requirement %s of node %s: %s is another type", a.Name, node.Name, t.Name)
		}
		a.TargetType = t
		return
	}
	problem := Problem{What: "there is neither a node template nor a node type " + name.Short(), Hint: "the node templates are " + shortList(s.Nodes.Names)}
	if u.mayComeFromUnread(name.Text) {
		problem.Warning, problem.Unresolvable = true, true
	}
	u.run.problems.add(u, name, problem)
}

func shortList(names []string) string {
	if len(names) > 12 {
		return list(names[:12]) + ", …"
	}
	return orNone(list(names))
}

func (s *Service) assignedCapability(a *Assignment, n *tree.Node) {
	if !n.Is(tree.String) {
		return
	}
	u := s.Unit
	if a.Def != nil && a.Def.CapabilityName != "" {
		if n.Text != a.Def.CapabilityName {
			u.errorf(n, "", "requirement %s is of capability %s, which cannot be changed", a.Name, a.Def.CapabilityName)
		}
		return
	}
	var holder *Type
	switch {
	case a.Target != nil:
		holder = a.Target.Type
	case a.TargetType != nil:
		holder = a.TargetType
	}
	if holder != nil {
		if c, ok := holder.Capabilities.Get(n.Text); ok {
			if a.Def != nil && a.Def.Capability != nil && c.Type != nil && !c.Type.Is(a.Def.Capability) && !c.Type.vague() {
				u.errorf(n, "want a capability of type "+a.Def.Capability.Name, "requirement %s: capability %s is of type %s", a.Name, n.Text, c.Type.Name)
			}
			a.Capability = n.Text
			return
		}
	}
	if t := u.Type(CapabilityType, n.Text); t != nil {
		if a.Def != nil && a.Def.Capability != nil && !t.Is(a.Def.Capability) && !t.vague() {
			u.errorf(n, "want a type derived from "+a.Def.Capability.Name, "requirement %s: %s is another type of capability", a.Name, t.Name)
		}
		a.CapType = t
		return
	}
	if holder == nil || holder.vague() {
		a.Capability = n.Text
		if holder == nil && !u.mayComeFromUnread(n.Text) && a.Target == nil && a.Entry.Get("node") == nil {
			u.noType(CapabilityType, n)
		}
		return
	}
	u.errorf(n, "it has "+orNone(list(holder.Capabilities.Names)), "%s has no capability %s, and there is no capability type of that name", holder.Name, n.Short())
}

func (s *Service) assignedRelationship(node *Node, a *Assignment, n *tree.Node) {
	u := s.Unit
	typ := n
	if n.Is(tree.Map) {
		u.keys(n, &relationshipKeys)
		typ, a.relEntry = n.Get("type"), n
	}
	if !typ.Is(tree.String) {
		return
	}
	var t *Type
	if template, ok := s.relationships.Get(typ.Text); ok {
		a.rel, t = template, template.Type
	} else if t = u.Type(RelationshipType, typ.Text); t == nil {
		problem := Problem{What: "there is neither a relationship template nor a relationship type " + typ.Short(),
			Hint: "the templates are " + shortList(s.relationships.Names)}
		if u.mayComeFromUnread(typ.Text) {
			problem.Warning, problem.Unresolvable = true, true
		}
		u.run.problems.add(u, typ, problem)
	}
	if t == nil {
		return
	}
	if a.Def != nil && a.Def.Relationship != nil && !t.Is(a.Def.Relationship) && !t.vague() {
		u.errorf(typ, "want a type derived from "+a.Def.Relationship.Name, "requirement %s of node %s: %s is another type of relationship", a.Name, node.Name, t.Name)
	}
	a.relType = t
}

func (s *Service) relationshipTemplate(e tree.Entry) {
	u := s.Unit
	if !u.nameable(e.Key, "a relationship template") {
		return
	}
	u.reachable(e.Key, "relationship template")
	n := e.Value
	r := &Entity{What: "relationship", Name: e.Key.Text, Entry: n, service: s}
	s.relationships.set(r.Name, r)
	if n.Is(tree.Map) {
		n = s.copied(n, "relationship_templates")
		r.Entry = n
	}
	if !u.keys(n, &relationshipTemplateKeys) {
		return
	}
	r.Type = u.typeAt(RelationshipType, n.Get("type"))
	var props, attrs *Named[*Property]
	var faces *Named[*Interface]
	if r.Type != nil {
		props, attrs, faces = &r.Type.Properties, &r.Type.Attributes, &r.Type.Interfaces
	}
	loose := r.Type == nil || r.Type.vague()
	s.assign(r, n.Get("properties"), props, loose, "property")
	s.attributes(r, n.Get("attributes"), attrs, loose)
	s.assignInterfaces(r, n.Get("interfaces"), faces, loose, true)
}
