package model

import (
	"slices"
	"strings"

	"croft/languages/tree"
)

// SimpleProfile is the built-in profile that 1.x files see without importing
// it.
const SimpleProfile = "org.oasis-open.tosca.simple:2.0"

// entries are those of a map, or none.
func entries(n *tree.Node) []tree.Entry {
	if !n.Is(tree.Map) {
		return nil
	}
	return n.Entries
}

func items(n *tree.Node) []*tree.Node {
	if !n.Is(tree.List) {
		return nil
	}
	return n.Items
}

// declare notes the types and functions that the file defines; what is in
// them is read when somebody asks.
func (u *Unit) declare() {
	for k := range kinds {
		u.types[k] = map[string]*Type{}
		u.found[k] = map[string]*Type{}
		for _, e := range entries(u.Root.Get(sections[k])) {
			if !u.nameable(e.Key, "a "+k.String()) {
				continue
			}
			name := e.Key.Text
			if k == DataType && u.run.builtins[name] != nil && !(strings.HasPrefix(name, "scalar-unit") || u.Old()) {
				u.errorf(e.Key, "", "%s is a built-in type: its name cannot be given to another", name)
				continue
			}
			u.types[k][name] = &Type{Kind: k, Name: name, Unit: u, Node: e.Value}
		}
	}
	u.functions = map[string]*Function{}
	u.declareFunctions(u.Root.Get("functions"))
}

// Type finds a type by the name that this file knows it by, or nil. While
// types are being read, it may be linked only.
func (u *Unit) Type(k Kind, name string) *Type {
	t := u.lookUp(k, name)
	if t != nil {
		t.link()
		if t.state == 0 {
			u.run.later(t.resolve)
		}
	}
	return t
}

// lookUp finds a type without reading it.
func (u *Unit) lookUp(k Kind, name string) *Type {
	if t, ok := u.found[k][name]; ok {
		return t
	}
	t := u.search(k, name, map[*Unit]bool{})
	if t == nil && u.Old() {
		t = u.searchOld(k, name)
	}
	if t == nil && k == DataType {
		t = u.run.builtins[name]
	}
	u.found[k][name] = t
	return t
}

func (u *Unit) search(k Kind, name string, seen map[*Unit]bool) *Type {
	if seen[u] {
		return nil
	}
	seen[u] = true
	if t := u.types[k][name]; t != nil {
		return t
	}
	if prefix, rest, ok := strings.Cut(name, ":"); ok {
		for _, other := range u.named[prefix] {
			if t := other.search(k, rest, map[*Unit]bool{}); t != nil {
				return t
			}
		}
	}
	for i := len(u.plain) - 1; i >= 0; i-- {
		if t := u.plain[i].search(k, name, seen); t != nil {
			return t
		}
	}
	return nil
}

// The prefixes that the types of 1.x have in their names, which the types of
// 2.0's profile have not.
var oldPrefixes = [kinds][]string{
	ArtifactType:     {"tosca.artifacts."},
	DataType:         {"tosca.datatypes.network.", "tosca.datatypes."},
	CapabilityType:   {"tosca.capabilities.network.", "tosca.capabilities."},
	InterfaceType:    {"tosca.interfaces.node.lifecycle.", "tosca.interfaces.node.", "tosca.interfaces.relationship.", "tosca.interfaces."},
	RelationshipType: {"tosca.relationships.network.", "tosca.relationships."},
	NodeType:         {"tosca.nodes.network.", "tosca.nodes."},
	GroupType:        {"tosca.groups."},
	PolicyType:       {"tosca.policies."},
}

// searchOld finds a normative type of 1.x by its full, its prefixed
// ("tosca:Compute") or its short name.
func (u *Unit) searchOld(k Kind, name string) *Type {
	short := strings.TrimPrefix(name, "tosca:")
	for _, prefix := range oldPrefixes[k] {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			short = rest
			break
		}
	}
	if k == InterfaceType {
		switch short {
		case "Standard":
			short = "Lifecycle.Standard"
		case "Configure":
			short = "Relationship.Configure"
		}
	}
	for _, other := range u.plain {
		if other.builtin {
			if t := other.types[k][short]; t != nil {
				return t
			}
		}
	}
	// A type of the user's with a full name, by its short one.
	for _, prefix := range oldPrefixes[k] {
		if t := u.search(k, prefix+short, map[*Unit]bool{}); t != nil {
			return t
		}
	}
	return nil
}

// typeAt finds the type that a node names, and tells if there is none.
func (u *Unit) typeAt(k Kind, n *tree.Node) *Type {
	if !n.Is(tree.String) || n.Text == "" {
		return nil
	}
	t := u.Type(k, n.Text)
	if t == nil {
		u.noType(k, n)
	}
	return t
}

func (u *Unit) noType(k Kind, n *tree.Node) {
	problem := Problem{What: "there is no " + k.String() + " " + n.Short(), Hint: u.near(k, n.Text)}
	if u.mayComeFromUnread(n.Text) {
		problem.Warning, problem.Unresolvable = true, true
		problem.Hint = "it may come from an import that was not read"
	}
	u.run.problems.add(u, n, problem)
}

// mayComeFromUnread reports whether a name could be of an import that was not
// read.
func (u *Unit) mayComeFromUnread(name string) bool {
	prefix, rest, ok := strings.Cut(name, ":")
	if !ok {
		return u.anyUnread(map[*Unit]bool{})
	}
	if u.unread[prefix] {
		return true
	}
	for _, other := range u.named[prefix] {
		if other.mayComeFromUnread(rest) {
			return true
		}
	}
	return false
}

func (u *Unit) anyUnread(seen map[*Unit]bool) bool {
	if seen[u] {
		return false
	}
	seen[u] = true
	if u.unread[""] {
		return true
	}
	for _, other := range u.plain {
		if other.anyUnread(seen) {
			return true
		}
	}
	return false
}

// near names a type that is written like the one that is not there.
func (u *Unit) near(k Kind, name string) string {
	for known := range u.types[k] {
		if strings.EqualFold(known, name) || strings.HasSuffix(known, "."+name) || strings.HasSuffix(name, "."+known) {
			return "there is " + known
		}
	}
	return ""
}

// maxNamed bounds the names that are compared for each file.
const maxNamed = 200_000

// unique tells of types of one name that meet in a namespace: of this file and
// of what it imports (csd05, 5.2.2). Those of 1.x may replace others.
func (u *Unit) unique() {
	if u.Old() || u.builtin {
		return
	}
	imports := u.Root.Get("imports")
	in := func(namespace string, own bool, units []*Unit) {
		seen, budget := map[*Unit]bool{}, maxNamed
		var known [kinds]map[string]*Type
		for k := range known {
			known[k] = map[string]*Type{}
		}
		var add func(of *Unit)
		add = func(of *Unit) {
			if seen[of] || of.Old() || budget < 0 {
				return
			}
			seen[of] = true
			for k := range kinds {
				budget -= len(of.types[k])
				for name, t := range of.types[k] {
					before, twice := known[k][name]
					if twice && sameDefinition(before.Node, t.Node) {
						continue
					}
					if !twice {
						known[k][name] = t
						continue
					}
					full := name
					if namespace != "" {
						full = namespace + ":" + name
					}
					tell, at := u.errorf, imports
					if before.Unit == u {
						tell, at = u.warnf, u.Root.Get(sections[k]).KeyOf(name)
					}
					tell(at, "import into a namespace", "%s %s is defined in %s and in %s", k, full, before.Unit.Name, of.Name)
				}
			}
			for _, other := range of.plain {
				add(other)
			}
		}
		if own {
			add(u)
		}
		for _, other := range units {
			add(other)
		}
	}
	in("", true, u.plain)
	for namespace, units := range u.named {
		in(namespace, false, units)
	}
}

// keywords begin or lead on TOSCA paths, so that a node of such a name could
// not be reached by one.
var keywords = []string{"SELF", "SOURCE", "TARGET", "HOST"}

// reachable warns of names that a TOSCA path takes for something else.
func (u *Unit) reachable(key *tree.Node, what string) {
	if slices.Contains(keywords, key.Text) {
		u.warnf(key, "give it another name", "no TOSCA path leads to %s %s: there, it means something else", what, key.Text)
	}
}
