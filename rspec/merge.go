package rspec

import (
	"bytes"
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
			s := a.spans[e]
			keys[e] = string(a.text[s.start:s.after])
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
	for e := range root.ChildElementsSeq() {
		if key := keys[e]; key != "" {
			if seen[key] {
				part.removeElement(&part.edits, e)
				continue
			}
			seen[key] = true
		}
		for _, d := range m.declarations(base, part, e) {
			part.setAttr(&part.edits, e, d.key, d.value)
		}
	}
	s := part.spans[root]
	return string(bytes.TrimRight(part.edits.apply(part.text, s.startEnd, s.end), " \t\r\n"))
}

// declarations are the namespace declarations that a child of a part's root
// needs under the base's root.
func (m *manifest) declarations(base, part *annotation, child *etree.Element) []pair {
	root := part.tree.root
	var needed []pair
	need := func(key, prefix, uri string) {
		if uri == part.format.Namespace() {
			uri = m.format.Namespace()
		}
		there := prefixOn(base.tree.root, prefix)
		if there == base.format.Namespace() {
			there = m.format.Namespace()
		}
		if there == uri || declaresPrefix(child, prefix) {
			return
		}
		needed = append(needed, pair{key, uri})
	}
	for i := range root.Attr {
		if prefix, ok := declares(&root.Attr[i]); ok {
			need(root.Attr[i].FullKey(), prefix, root.Attr[i].Value)
		}
	}
	if !declaresPrefix(root, "") {
		need("xmlns", "", "")
	}
	return needed
}

func declaresPrefix(e *etree.Element, prefix string) bool {
	for i := range e.Attr {
		if p, ok := declares(&e.Attr[i]); ok && p == prefix {
			return true
		}
	}
	return false
}

// adoptAttributes gives the base's root the attributes of extensions that a
// part's root has and it does not.
func (m *manifest) adoptAttributes(base, part *annotation) {
	there := func(key string) (string, bool) {
		if a := base.tree.root.SelectAttr(key); a != nil {
			return a.Value, true
		}
		value, ok := m.adopted[key]
		return value, ok
	}
	adopt := func(key, value string) {
		m.adopted[key] = value
		base.setAttr(&base.edits, base.tree.root, key, value)
	}
	for i := range part.tree.root.Attr {
		a := &part.tree.root.Attr[i]
		uri := prefixOn(part.tree.root, a.Space)
		if a.Space == "" || a.Space == "xmlns" || uri == "" || uri == nsXSI {
			continue
		}
		if _, ok := there(a.FullKey()); ok {
			continue
		}
		bound, ok := there("xmlns:" + a.Space)
		if !ok {
			adopt("xmlns:"+a.Space, uri)
		}
		if !ok || bound == uri {
			adopt(a.FullKey(), a.Value)
		}
	}
}
