package model

import (
	"croft/languages/tree"
)

// Interface is the definition of an interface of a node or relationship type.
type Interface struct {
	Name          string
	Node          *tree.Node
	Unit          *Unit
	Type          *Type // nil if it is not known
	Inputs        Named[*Property]
	Operations    Named[*Operation]
	Notifications Named[*Operation]
}

// Operation is the definition of an operation or of a notification.
type Operation struct {
	Name            string
	Node            *tree.Node
	Unit            *Unit
	Inputs, Outputs Named[*Property]
	Implementation  *Implementation
}

// Implementation is what does an operation.
type Implementation struct {
	Node         *tree.Node
	Unit         *Unit
	Primary      Reference
	Dependencies []Reference
	Timeout      int64 // seconds; 0: none
}

// Reference names an artifact, or is the definition of one.
type Reference struct {
	Node *tree.Node
	Unit *Unit
	Name string    // of an artifact or a file
	Own  *Artifact // defined where it is used
}

// Artifact is a file and its type.
type Artifact struct {
	Name       string
	Node       *tree.Node
	Unit       *Unit
	Type       *Type // nil if it is not known
	File       string
	Repository string
	DeployPath string
	Properties map[string]*tree.Node
}

// interfaceTypeGrammar lets operations stand beside the keynames, as in 1.x.
func interfaceTypeGrammar(u *Unit, n *tree.Node) keynames {
	k := interfaceTypeKeys
	if !u.Old() {
		return k
	}
	older := map[string]want{}
	for _, e := range entries(n) {
		if _, ok := k.keys[e.Key.Text]; !ok {
			older[e.Key.Text] = anything
		}
	}
	k.older = older
	return k
}

func (t *Type) readInterfaceType() {
	u := t.Unit
	u.define(&t.Inputs, t.Node.Get("inputs"), inputDef, t.vague())
	u.noEntities(t.Node.Get("inputs"))
	for _, e := range entries(t.Node.Get("operations")) {
		u.operation(&t.Operations, e, true, false)
	}
	for _, e := range entries(t.Node.Get("notifications")) {
		u.operation(&t.Notifications, e, true, true)
	}
	if u.Old() {
		for _, e := range entries(t.Node) {
			if _, ok := interfaceTypeKeys.keys[e.Key.Text]; !ok {
				u.operation(&t.Operations, e, true, false)
			}
		}
	}
}

// operation reads the definition or refinement of an operation.
func (u *Unit) operation(into *Named[*Operation], e tree.Entry, inType, notification bool) {
	if !u.nameable(e.Key, "an operation") {
		return
	}
	name, n := e.Key.Text, e.Value
	o := &Operation{Name: name, Node: n, Unit: u}
	if inherited, ok := into.Get(name); ok {
		*o = *inherited
		o.Node, o.Unit = n, u
		o.Inputs, o.Outputs = inherited.Inputs.clone(), inherited.Outputs.clone()
	}
	switch n.Kind {
	case tree.Null:
	case tree.String:
		if inType && !u.Old() {
			u.errorf(n, "implementations are of node and relationship types", "operation %s of an interface type has an implementation", name)
		}
		o.Implementation = u.implementation(n, notification)
	case tree.Map:
		if !operationLike(n) && (n.Get("primary") != nil || n.Get("file") != nil) {
			o.Implementation = u.implementation(n, notification)
			break
		}
		k := &operationKeys
		if notification {
			k = &notificationKeys
		}
		u.keys(n, k)
		u.define(&o.Inputs, n.Get("inputs"), inputDef, true)
		u.define(&o.Outputs, n.Get("outputs"), outputDef, true)
		if inType {
			u.noEntities(n.Get("inputs"))
			for _, out := range entries(n.Get("outputs")) {
				if p, ok := o.Outputs.Get(out.Key.Text); ok && p.Mapping != nil && !u.Old() {
					u.errorf(out.Value, "mappings are of node and relationship types", "output %s of an interface type is mapped to an attribute", out.Key.Text)
				}
			}
		}
		if i := n.Get("implementation"); i != nil {
			if inType && !u.Old() {
				u.errorf(n.KeyOf("implementation"), "implementations are of node and relationship types", "operation %s of an interface type has an implementation", name)
			}
			o.Implementation = u.implementation(i, notification)
		}
	default:
		u.errorf(n, "want a map, or the implementation", "operation %s is %s", name, describe(n))
		return
	}
	into.set(name, o)
}

func operationLike(n *tree.Node) bool {
	return n.Get("implementation") != nil || n.Get("inputs") != nil || n.Get("outputs") != nil || n.Get("description") != nil
}

// implementation reads the implementation of an operation.
func (u *Unit) implementation(n *tree.Node, notification bool) *Implementation {
	i := &Implementation{Node: n, Unit: u}
	switch n.Kind {
	case tree.Null:
		return nil
	case tree.String:
		i.Primary = Reference{Node: n, Unit: u, Name: n.Text}
		if n.Text == "" && !u.Old() {
			u.errorf(n, "want an artifact or a file", "an implementation is an empty string")
		}
		return i
	case tree.Map:
	default:
		u.errorf(n, "want an artifact, a file, or a map with primary", "an implementation is %s", describe(n))
		return nil
	}
	if n.Get("file") != nil && n.Get("primary") == nil {
		if a := u.artifact("", n); a != nil {
			i.Primary = Reference{Node: n, Unit: u, Own: a}
		}
		return i
	}
	u.keys(n, &implementationKeys)
	if p := n.Get("primary"); p != nil {
		i.Primary = u.reference(p)
	}
	for _, d := range items(n.Get("dependencies")) {
		if d.Kind != tree.String && d.Kind != tree.Map {
			u.errorf(d, "want the name of an artifact or a definition", "a dependency is %s", describe(d))
			continue
		}
		i.Dependencies = append(i.Dependencies, u.reference(d))
	}
	if t := n.Get("timeout"); t.Is(tree.Int) {
		if i.Timeout = t.Int; t.Int < 0 {
			u.errorf(t, "", "timeout is below zero")
		}
		if notification {
			u.warnf(t, "", "a timeout means nothing for a notification")
		}
	}
	return i
}

func (u *Unit) reference(n *tree.Node) Reference {
	r := Reference{Node: n, Unit: u}
	switch n.Kind {
	case tree.String:
		r.Name = n.Text
	case tree.Map:
		r.Own = u.artifact("", n)
	}
	return r
}

// artifact reads the definition of an artifact: a file, or a map.
func (u *Unit) artifact(name string, n *tree.Node) *Artifact {
	a := &Artifact{Name: name, Node: n, Unit: u}
	switch n.Kind {
	case tree.String:
		if a.File = n.Text; a.File == "" {
			u.errorf(n, "want the path of a file", "the file of artifact %s is empty", name)
		}
		return a
	case tree.Map:
	default:
		u.errorf(n, "want the path of a file, or a map with type and file", "an artifact is %s", describe(n))
		return nil
	}
	k := artifactKeys
	if u.Old() {
		k.need = []string{"file"}
	}
	u.keys(n, &k)
	a.Type = u.typeAt(ArtifactType, n.Get("type"))
	if f := n.Get("file"); f.Is(tree.String) {
		if a.File = f.Text; a.File == "" {
			u.errorf(f, "want the path of a file", "file is empty")
		}
	}
	if d := n.Get("deploy_path"); d.Is(tree.String) {
		a.DeployPath = d.Text
	}
	if r := n.Get("repository"); r.Is(tree.String) {
		a.Repository = r.Text
		if _, ok := u.repositories[r.Text]; !ok {
			u.errorf(r, "it has "+orNone(list(sortedKeys(u.repositories))), "there is no repository %s", r.Short())
		}
	}
	if n.Get("checksum") != nil && n.Get("checksum_algorithm") == nil {
		u.errorf(n.KeyOf("checksum"), "", "checksum needs checksum_algorithm")
	}
	for _, key := range []string{"artifact_version", "version"} {
		if v := n.Get(key); v != nil && v.Kind != tree.String && !u.Old() {
			if key == "version" && v.Kind == tree.Float {
				u.warnf(v, "quote it", "version is a float")
				continue
			}
			u.errorf(v, "want a string", "%s is %s", key, describe(v))
		}
	}
	u.run.later(func() { u.artifactProperties(a, n.Get("properties")) })
	return a
}

// artifactProperties checks the properties of an artifact. Those that its type
// has not are for whoever processes the artifact, and kept.
func (u *Unit) artifactProperties(a *Artifact, n *tree.Node) {
	a.Properties = map[string]*tree.Node{}
	for _, e := range entries(n) {
		if !u.nameable(e.Key, "a property") {
			continue
		}
		a.Properties[e.Key.Text] = e.Value
		u.checkExpression(e.Value, nil)
		if a.Type == nil || a.Type.vague() {
			continue
		}
		p, ok := a.Type.Properties.Get(e.Key.Text)
		if !ok {
			if a.Type.Properties.Len() > 0 {
				u.errorf(e.Key, "it has "+list(a.Type.Properties.Names), "artifact type %s has no property %s", a.Type.Name, e.Key.Text)
			} else {
				u.warnf(e.Key, "", "artifact type %s has no property %s", a.Type.Name, e.Key.Text)
			}
			continue
		}
		if p.Value != nil {
			u.errorf(e.Value, "", "property %s has a fixed value", p.Name)
		}
		u.literal(&p.Schema, e.Value)
	}
	if a.Type == nil || a.Node.Kind != tree.Map {
		return
	}
	for _, name := range a.Type.Properties.Names {
		p, _ := a.Type.Properties.Get(name)
		if p.Required && p.Default == nil && p.Value == nil && a.Properties[name] == nil {
			u.errorf(a.Node, "", "property %s of artifact type %s is missing", name, a.Type.Name)
		}
	}
}

// readInterfaces reads the interface definitions of a node or relationship
// type.
func (t *Type) readInterfaces() {
	t.Unit.interfaces(&t.Interfaces, t.Node.Get("interfaces"), t.vague())
}

func (u *Unit) interfaces(into *Named[*Interface], n *tree.Node, lenient bool) {
	for _, e := range entries(n) {
		if !u.nameable(e.Key, "an interface") {
			continue
		}
		name, def := e.Key.Text, e.Value
		i := &Interface{Name: name, Node: def, Unit: u}
		inherited, refines := into.Get(name)
		if refines {
			*i = *inherited
			i.Node, i.Unit = def, u
			i.Inputs, i.Operations, i.Notifications = inherited.Inputs.clone(), inherited.Operations.clone(), inherited.Notifications.clone()
		}
		if def.Kind == tree.String && !u.Old() {
			// The short form of some profiles: only the type.
			def = &tree.Node{Kind: tree.Map, Line: def.Line, Column: def.Column, Parent: def.Parent, Name: def.Name,
				Entries: []tree.Entry{{Key: &tree.Node{Kind: tree.String, Text: "type", Parent: def}, Value: def}}}
		}
		if def.Kind != tree.Map {
			u.errorf(def, "want a map with type", "the definition of interface %s is %s", name, describe(def))
			continue
		}
		u.interfaceType(i, inherited, def, lenient)
		k := interfaceKeys
		k.older = u.bareOperations(&k, def, i.Type == nil || i.Type.vague(), i.Operations)
		if k.older != nil {
			k.keys = with(k.keys, k.older)
		}
		u.keys(def, &k)
		u.define(&i.Inputs, def.Get("inputs"), inputDef, true)
		known := func(m *Named[*Operation], key *tree.Node, what string) {
			if _, ok := m.Get(key.Text); !ok && i.Type != nil && !i.Type.vague() && !u.Old() {
				u.errorf(key, "it has "+orNone(list(m.Names)), "interface type %s has no %s %s", i.Type.Name, what, key.Short())
			}
		}
		for _, o := range entries(def.Get("operations")) {
			known(&i.Operations, o.Key, "operation")
			u.operation(&i.Operations, o, false, false)
		}
		for _, o := range entries(def.Get("notifications")) {
			known(&i.Notifications, o.Key, "notification")
			u.operation(&i.Notifications, o, false, true)
		}
		for _, o := range entries(def) {
			if _, bare := k.older[o.Key.Text]; bare {
				u.operation(&i.Operations, o, false, false)
			}
		}
		into.set(name, i)
	}
}

// bareOperations finds operations that stand beside the keynames of an
// interface, as in 1.x and in examples of csd05.
func (u *Unit) bareOperations(k *keynames, def *tree.Node, loose bool, operations Named[*Operation]) map[string]want {
	var bare map[string]want
	for _, e := range entries(def) {
		if _, ok := k.keys[e.Key.Text]; ok {
			continue
		}
		_, known := operations.Get(e.Key.Text)
		if known && !u.Old() {
			u.warnf(e.Key, "", "operation %s stands outside of operations", e.Key.Text)
		}
		if known || loose || u.Old() {
			if bare == nil {
				bare = map[string]want{}
			}
			bare[e.Key.Text] = anything
		}
	}
	return bare
}

func (u *Unit) interfaceType(i *Interface, inherited *Interface, def *tree.Node, lenient bool) {
	typ := def.Get("type")
	if typ == nil {
		if inherited != nil || lenient {
			return
		}
		// 1.x: the name of the interface is that of its type.
		if u.Old() {
			if t := u.Type(InterfaceType, i.Name); t != nil {
				t.resolve()
				i.Type = t
				i.Inputs, i.Operations, i.Notifications = t.Inputs.clone(), t.Operations.clone(), t.Notifications.clone()
			}
			return
		}
		u.errorf(def, "want an interface type", "interface %s has no type", i.Name)
		return
	}
	t := u.typeAt(InterfaceType, typ)
	if t == nil {
		return
	}
	t.resolve()
	if inherited != nil && inherited.Type != nil && !t.Is(inherited.Type) && !t.vague() {
		u.misrefined(typ, "want a type derived from "+inherited.Type.Name, "interface %s is refined to type %s", i.Name, t.Name)
		return
	}
	if i.Type == t {
		return
	}
	i.Type = t
	for _, name := range t.Inputs.Names {
		if _, ok := i.Inputs.Get(name); !ok {
			p, _ := t.Inputs.Get(name)
			i.Inputs.set(name, p)
		}
	}
	add := func(into *Named[*Operation], from *Named[*Operation]) {
		for _, name := range from.Names {
			if _, ok := into.Get(name); !ok {
				o, _ := from.Get(name)
				into.set(name, o)
			}
		}
	}
	add(&i.Operations, &t.Operations)
	add(&i.Notifications, &t.Notifications)
}

// selection checks the form of an attribute selection (csd05, 5.4.13.3).
func (u *Unit) selection(n *tree.Node) {
	if u.Old() && n.Is(tree.String) {
		return
	}
	if !n.Is(tree.List) || len(n.Items) < 2 {
		u.errorf(n, "want a path and the name of an attribute, such as [ SELF, address ]", "an attribute mapping is %s", describe(n))
		return
	}
	for i, item := range n.Items {
		if item.Kind != tree.String && item.Kind != tree.Int || i == 0 && item.Kind != tree.String {
			u.errorf(item, "want names and indexes", "a part of an attribute mapping is %s", describe(item))
		}
	}
}
