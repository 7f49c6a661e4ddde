package rspec

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/beevik/etree"
)

// foreign is what documents of one slice may repeat that is not for this
// aggregate: nodes and links of others, and extensions.
type foreign map[string]bool

// foreignKeys names the children of a part's root that are not for this
// aggregate.
func (a *annotation) foreignKeys() map[*etree.Element]string {
	keys := map[*etree.Element]string{}
	for e := range a.tree.root.ChildElementsSeq() {
		if !a.core(e, "node") && !a.core(e, "link") {
			keys[e] = a.extensionKey(e)
		}
	}
	for _, n := range a.document.nodes {
		if !n.ours && a.nodes[n.id] == nil {
			keys[n.Element] = "node " + strings.ToLower(string(n.id)) + " " + n.manager.Canonical().String()
		}
	}
	for _, l := range a.document.links {
		if a.links[l.id] == nil {
			keys[l.Element] = "link " + strings.ToLower(string(l.id))
		}
	}
	return keys
}

// extensionKey is the text of an element and what its prefixes mean.
func (a *annotation) extensionKey(e *etree.Element) string {
	s := a.spans[e]
	prefixes := map[string]bool{}
	undeclaredIn(e, prefixes)
	key := string(a.text[s.start:s.after])
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		key += " " + prefix + "=" + prefixOn(a.tree.root, prefix)
	}
	return key
}

func (m *manifest) foreignOf(a *annotation) foreign {
	seen := foreign{}
	if len(m.parts) > 1 {
		for _, key := range a.foreignKeys() {
			seen[key] = true
		}
	}
	return seen
}

// embedded returns the content of a part as it goes into the base: with the
// namespaces that its root declared and the base's does not, and without what
// an earlier part has brought of other aggregates.
func (m *manifest) embedded(base, part *annotation, seen foreign) string {
	root := part.tree.root
	keys := part.foreignKeys()
	differing := m.differingDeclarations(base, part)
	for e := range root.ChildElementsSeq() {
		if key := keys[e]; key != "" && seen[key] {
			part.removeElement(&part.edits, e)
			continue
		}
		var prefixes map[string]bool
		if len(differing) > 0 {
			prefixes = map[string]bool{}
			undeclaredIn(e, prefixes)
		}
		for _, d := range differing {
			if prefix := strings.TrimPrefix(strings.TrimPrefix(d.key, "xmlns"), ":"); prefixes[prefix] {
				part.setAttr(&part.edits, e, d.key, d.value)
			}
		}
	}
	for _, key := range keys {
		seen[key] = true
	}
	s := part.spans[root]
	return string(bytes.TrimRight(part.edits.apply(part.text, s.startEnd, s.end), " \t\r\n"))
}

// undeclaredIn collects the prefixes that an element and those below it use
// and do not declare.
func undeclaredIn(e *etree.Element, prefixes map[string]bool) {
	type open struct {
		*etree.Element
		declared []string // by its ancestors and itself
	}
	todo := []open{{Element: e}}
	for len(todo) > 0 {
		o := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		declared := o.declared[:len(o.declared):len(o.declared)]
		for i := range o.Attr {
			if prefix, ok := declares(&o.Attr[i]); ok {
				declared = append(declared, prefix)
			}
		}
		uses := func(prefix string) {
			if !slices.Contains(declared, prefix) {
				prefixes[prefix] = true
			}
		}
		uses(o.Space)
		for i := range o.Attr {
			if a := &o.Attr[i]; a.Space != "" && a.Space != "xmlns" && a.Space != "xml" {
				uses(a.Space)
			}
		}
		for c := range o.ChildElementsSeq() {
			todo = append(todo, open{c, declared})
		}
	}
}

// differingDeclarations are the namespace declarations of a part's root that
// the base's root has otherwise. Those of prefixes that the base's root does
// not have at all are added to it.
func (m *manifest) differingDeclarations(base, part *annotation) []pair {
	root := part.tree.root
	var differing []pair
	for i := range root.Attr {
		prefix, ok := declares(&root.Attr[i])
		if !ok {
			continue
		}
		uri := m.converted(part, root.Attr[i].Value)
		key := root.Attr[i].FullKey()
		there, bound := m.onRoot(base, key)
		switch {
		case !bound && prefix != "":
			m.adopt(base, key, uri)
		case there != uri:
			differing = append(differing, pair{key, uri})
		}
	}
	if there, bound := m.onRoot(base, "xmlns"); bound && there != "" && !declaresPrefix(root, "") {
		differing = append(differing, pair{"xmlns", ""})
	}
	return differing
}

func declaresPrefix(e *etree.Element, prefix string) bool {
	for i := range e.Attr {
		if p, ok := declares(&e.Attr[i]); ok && p == prefix {
			return true
		}
	}
	return false
}

// onRoot returns an attribute that the base's root will have.
func (m *manifest) onRoot(base *annotation, key string) (string, bool) {
	if value, ok := m.adopted[key]; ok {
		return value, true
	}
	a := base.tree.root.SelectAttr(key)
	if a == nil {
		return "", false
	}
	if _, ok := declares(a); ok {
		return m.converted(base, a.Value), true
	}
	return a.Value, true
}

// converted is a namespace of a part as it is in the manifest.
func (m *manifest) converted(a *annotation, uri string) string {
	if uri == a.format.Namespace() {
		return m.format.Namespace()
	}
	return uri
}

// adopt gives the base's root an attribute of another document's.
func (m *manifest) adopt(base *annotation, key, value string) {
	m.adopted[key] = value
	base.setAttr(&base.edits, base.tree.root, key, value)
}

// adoptAttributes gives the base's root the attributes of extensions that a
// part's root has and it does not.
func (m *manifest) adoptAttributes(base, part *annotation) {
	for i := range part.tree.root.Attr {
		a := &part.tree.root.Attr[i]
		uri := m.converted(part, prefixOn(part.tree.root, a.Space))
		if a.Space == "" || a.Space == "xmlns" || uri == "" || uri == nsXSI {
			continue
		}
		if _, ok := m.onRoot(base, a.FullKey()); ok {
			continue
		}
		bound, ok := m.onRoot(base, "xmlns:"+a.Space)
		if !ok {
			m.adopt(base, "xmlns:"+a.Space, uri)
		}
		if !ok || bound == uri {
			m.adopt(base, a.FullKey(), a.Value)
		}
	}
}
