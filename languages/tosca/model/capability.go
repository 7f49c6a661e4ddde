package model

import (
	"fmt"
	"math"

	"croft/languages/tree"
)

// Capability is the definition of a capability of a node type.
type Capability struct {
	Name                             string
	Node                             *tree.Node
	Unit                             *Unit
	Type                             *Type // nil if it is not known
	Properties                       Named[*Property]
	Attributes                       Named[*Property]
	ValidSources, ValidRelationships []*Type
}

// Requirement is the definition of a requirement of a node type.
type Requirement struct {
	Name           string
	Node           *tree.Node
	Unit           *Unit
	CapabilityName string // of the target, if it is named so
	Capability     *Type  // nil: any
	Target         *Type  // nil: any
	Relationship   *Type  // nil: any
	Interfaces     Named[*Interface]
	Filters        []Clause
	Min, Max       int64 // Max is math.MaxInt64 if unbounded
}

// readCapabilities reads the capability definitions of a node type.
func (t *Type) readCapabilities() {
	u := t.Unit
	for _, e := range entries(t.Node.Get("capabilities")) {
		if !u.nameable(e.Key, "a capability") {
			continue
		}
		name, n := e.Key.Text, e.Value
		inherited, refines := t.Capabilities.Get(name)
		c := &Capability{Name: name, Node: n, Unit: u}
		if refines {
			*c = *inherited
			c.Node, c.Unit = n, u
			c.Properties, c.Attributes = inherited.Properties.clone(), inherited.Attributes.clone()
		}
		typ := n
		switch n.Kind {
		case tree.String:
		case tree.Map:
			u.keys(n, &capabilityKeys)
			if typ = n.Get("type"); typ == nil && !refines && !t.vague() {
				u.errorf(n, "want a capability type", "capability %s has no type", name)
			}
		default:
			u.errorf(n, "want the name of a type, or a map", "the definition of capability %s is %s", name, describe(n))
			continue
		}
		if typ.Is(tree.String) {
			ct := u.typeAt(CapabilityType, typ)
			if refines && ct != nil && inherited.Type != nil && !ct.Is(inherited.Type) && !ct.vague() {
				u.misrefined(typ, "want a type derived from "+inherited.Type.Name, "capability %s is refined to type %s", name, ct.Name)
			}
			if ct != nil {
				ct.resolve()
			}
			if ct != nil && (c.Type != ct || !refines) {
				c.Type = ct
				c.Properties, c.Attributes = overlay(ct.Properties, c.Properties, refines), overlay(ct.Attributes, c.Attributes, refines)
				c.ValidSources, c.ValidRelationships = ct.ValidSources, ct.ValidRelationships
			}
		}
		if n.Kind == tree.Map {
			u.refineOnly(&c.Properties, n.Get("properties"), propertyDef, c.Type)
			u.refineOnly(&c.Attributes, n.Get("attributes"), attributeDef, c.Type)
			bounds := c.ValidSources
			if c.Type != nil {
				bounds = c.Type.ValidSources
			}
			if s := first(n.Get("valid_source_node_types"), n.Get("valid_source_types")); s != nil {
				c.ValidSources = u.validTypes(NodeType, s, bounds)
			}
			bounds = c.ValidRelationships
			if c.Type != nil {
				bounds = c.Type.ValidRelationships
			}
			if r := n.Get("valid_relationship_types"); r != nil {
				c.ValidRelationships = u.validTypes(RelationshipType, r, bounds)
			}
			if o := n.Get("occurrences"); o != nil {
				u.span(o, "occurrences")
			}
		}
		t.Capabilities.set(name, c)
	}
}

// overlay puts the refinements that a definition has already over those of a
// more special type.
func overlay(of, refined Named[*Property], refines bool) Named[*Property] {
	made := of.clone()
	if !refines {
		return made
	}
	for _, name := range refined.Names {
		if _, ok := of.Get(name); !ok {
			p, _ := refined.Get(name)
			made.set(name, p)
		}
	}
	return made
}

// refineOnly reads refinements of definitions; new ones may not be added.
func (u *Unit) refineOnly(into *Named[*Property], n *tree.Node, d definition, t *Type) {
	for _, e := range entries(n) {
		if !u.nameable(e.Key, "a "+d.what) {
			continue
		}
		inherited, ok := into.Get(e.Key.Text)
		if !ok && t != nil && !t.vague() && !u.Old() {
			u.errorf(e.Key, "it has "+orNone(list(into.Names)), "%s %s is none of %s: here, definitions are refined only", d.what, e.Key.Text, t.Name)
			continue
		}
		if p := u.property(e.Key.Text, e.Value, d, inherited, t == nil || t.vague() || u.Old()); p != nil {
			into.set(e.Key.Text, p)
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// readRequirements reads the requirement definitions of a node type: a list of
// maps with one name each.
func (t *Type) readRequirements() {
	u := t.Unit
	seen := map[string]bool{}
	for _, item := range items(t.Node.Get("requirements")) {
		name, n := u.single(item, "a requirement")
		if n == nil {
			continue
		}
		if seen[name] {
			u.errorf(item, "", "requirement %s is defined twice", name)
			continue
		}
		seen[name] = true
		inherited, refines := t.Requirements.Get(name)
		r := &Requirement{Name: name, Node: n, Unit: u, Max: math.MaxInt64}
		if refines {
			*r = *inherited
			r.Node, r.Unit = n, u
			r.Interfaces = inherited.Interfaces.clone()
		}
		if u.Old() && !refines {
			r.Min, r.Max = 1, 1
		}
		switch n.Kind {
		case tree.String:
			u.requirementCapability(r, n, inherited)
		case tree.Map:
			u.keys(n, &requirementKeys)
			u.requirementDefinition(r, n, inherited, t.vague())
		default:
			u.errorf(n, "want the name of a capability type, or a map", "the definition of requirement %s is %s", name, describe(n))
			continue
		}
		t.Requirements.set(name, r)
	}
}

// single reads a map of one name and what it stands for.
func (u *Unit) single(item *tree.Node, what string) (string, *tree.Node) {
	if !item.Is(tree.Map) || len(item.Entries) != 1 {
		hint := "want a map with its name as the only key"
		if item.Is(tree.Map) && len(item.Entries) > 1 {
			hint += ": is what follows indented enough?"
		}
		u.errorf(item, hint, "%s is %s", what, describe(item))
		return "", nil
	}
	e := item.Entries[0]
	if !u.nameable(e.Key, what) {
		return "", nil
	}
	return e.Key.Text, e.Value
}

func (u *Unit) requirementDefinition(r *Requirement, n *tree.Node, inherited *Requirement, lenient bool) {
	if node := n.Get("node"); node.Is(tree.String) {
		target := u.typeAt(NodeType, node)
		if inherited != nil && inherited.Target != nil && target != nil && !target.Is(inherited.Target) && !target.vague() {
			u.misrefined(node, "want a type derived from "+inherited.Target.Name, "requirement %s is refined to nodes of type %s", r.Name, target.Name)
		}
		if target != nil {
			r.Target = target
		}
	}
	if c := n.Get("capability"); c != nil {
		u.requirementCapability(r, c, inherited)
	} else if inherited == nil && !lenient {
		u.errorf(n, "want a capability type", "requirement %s has no capability", r.Name)
	}
	u.requirementRelationship(r, n.Get("relationship"), inherited)
	if f := n.Get("node_filter"); f != nil {
		r.Filters = append(append([]Clause(nil), r.Filters...), Clause{Node: f, Unit: u})
		u.filter(f)
	}
	span := first(n.Get("count_range"), n.Get("occurrences"))
	if span == nil {
		return
	}
	low, high, ok := u.span(span, span.Name)
	if !ok {
		return
	}
	if inherited != nil && (low < inherited.Min || high > inherited.Max) {
		u.misrefined(span, fmt.Sprintf("want a range within [%s]", bounds(inherited.Min, inherited.Max)), "requirement %s is refined to the range [%s]", r.Name, bounds(low, high))
		return
	}
	r.Min, r.Max = low, high
}

func (u *Unit) requirementRelationship(r *Requirement, n *tree.Node, inherited *Requirement) {
	typ := n
	if n.Is(tree.Map) {
		u.keys(n, &relationshipKeys)
		typ = n.Get("type")
	}
	if typ.Is(tree.String) {
		rt := u.typeAt(RelationshipType, typ)
		if inherited != nil && inherited.Relationship != nil && rt != nil && !rt.Is(inherited.Relationship) && !rt.vague() {
			u.misrefined(typ, "want a type derived from "+inherited.Relationship.Name, "requirement %s is refined to relationships of type %s", r.Name, rt.Name)
		}
		if rt != nil {
			r.Relationship = rt
		}
	}
	if n.Is(tree.Map) && r.Relationship != nil {
		r.Relationship.resolve()
		base := r.Interfaces
		if base.Len() == 0 {
			base = r.Relationship.Interfaces.clone()
		}
		r.Interfaces = base
		u.interfaces(&r.Interfaces, n.Get("interfaces"), r.Relationship.vague() || u.Old())
	}
}

// requirementCapability reads a capability of a requirement: a type, or the
// name of a capability of the target.
func (u *Unit) requirementCapability(r *Requirement, n *tree.Node, inherited *Requirement) {
	if !n.Is(tree.String) {
		return
	}
	if inherited != nil && inherited.CapabilityName != "" {
		if n.Text != inherited.CapabilityName {
			u.errorf(n, "", "requirement %s is of capability %s, which cannot be refined", r.Name, inherited.CapabilityName)
		}
		return
	}
	if ct := u.Type(CapabilityType, n.Text); ct != nil {
		if inherited != nil && inherited.Capability != nil && !ct.Is(inherited.Capability) && !ct.vague() {
			u.misrefined(n, "want a type derived from "+inherited.Capability.Name, "requirement %s is refined to capability type %s", r.Name, ct.Name)
		}
		r.Capability = ct
		return
	}
	if r.Target != nil {
		r.Target.resolve()
		if c, ok := r.Target.Capabilities.Get(n.Text); ok {
			r.CapabilityName, r.Capability = n.Text, c.Type
			return
		}
		if r.Target.vague() {
			return
		}
		u.errorf(n, "want a capability type, or one of its capabilities: "+orNone(list(r.Target.Capabilities.Names)), "%s has no capability %s", r.Target.Name, n.Short())
		return
	}
	u.noType(CapabilityType, n)
}

// span reads a range such as count_range.
func (u *Unit) span(n *tree.Node, what string) (low, high int64, ok bool) {
	if !n.Is(tree.List) || len(n.Items) != 2 {
		u.errorf(n, "want [low, high]", "%s is %s", what, describe(n))
		return 0, 0, false
	}
	a, b := n.Items[0], n.Items[1]
	if a.Kind != tree.Int || a.Int < 0 {
		u.errorf(a, "want an integer, 0 or more", "the lower bound of %s is %s", what, describe(a))
		return 0, 0, false
	}
	switch {
	case b.Is(tree.String) && b.Text == "UNBOUNDED":
		return a.Int, math.MaxInt64, true
	case b.Kind != tree.Int:
		u.errorf(b, "want an integer or UNBOUNDED", "the upper bound of %s is %s", what, describe(b))
		return 0, 0, false
	case b.Int < a.Int:
		u.errorf(n, "", "the upper bound of %s is below the lower one", what)
		return 0, 0, false
	}
	return a.Int, b.Int, true
}

func bounds(low, high int64) string {
	if high == math.MaxInt64 {
		return fmt.Sprintf("%d, UNBOUNDED", low)
	}
	return fmt.Sprintf("%d, %d", low, high)
}
