package rspec

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/beevik/etree"

	"croft/inventory"
	"croft/languages"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// ManifestInput is what a manifest is made of.
type ManifestInput struct {
	// Snapshot gives the names of the component manager. Nodes of the
	// documents under other names are somebody else's.
	Snapshot *inventory.Snapshot

	Slice urn.URN

	// Documents are the originals of the slice, in the order they came. RSpecs
	// are annotated; slivers of documents of other kinds get elements of their
	// own, and the documents come back in the extension of DocumentNamespace.
	Documents []slivers.Document

	// Slivers are those to show. Nodes and links of ours in the documents that
	// have no sliver here are left out; all else in the documents is kept.
	Slivers []slivers.Sliver

	Version languages.Version // wanted; the zero Version is GENI 3
	Now     time.Time         // written as "generated"; the zero time is not

	// Gateway is an SSH gateway that users may go through to get to their
	// nodes; the zero one is none.
	Gateway Gateway
}

// Gateway is an SSH gateway as manifests tell of it. A node is reached through
// it by a name, at port 22; beside that, if its sliver has a Login, directly.
type Gateway struct {
	Login slivers.Login                // where clients connect to it
	User  string                       // the account at it; "" for that at the node
	Name  func(*slivers.Sliver) string // what it calls a node; "" if it does not lead there
}

// nameOf is what the gateway calls a node; "" if there is no way through it.
func (g Gateway) nameOf(s *slivers.Sliver) string {
	if g.Login.Host == "" || g.Name == nil {
		return ""
	}
	return g.Name(s)
}

// ManifestVersions lists the formats that Manifest writes.
func ManifestVersions() []languages.Version {
	var vs []languages.Version
	for _, f := range formats() {
		vs = append(vs, f.version("manifest"))
	}
	return vs
}

// Manifest tells experimenters what they have: their documents with what has
// been given for them. It is an *languages.UnknownVersion if the version wanted
// is none of ManifestVersions, or cannot hold what the documents say.
func Manifest(in ManifestInput) ([]byte, error) {
	m := &manifest{ManifestInput: in, adopted: map[string]string{}}
	if in.Version.Type != "" || in.Version.Version != "" {
		var ok bool
		if m.format, ok = FormatOf(in.Version.Type, in.Version.Version); !ok {
			return nil, &languages.UnknownVersion{Found: in.Version.Type + " " + in.Version.Version, Offered: ManifestVersions()}
		}
	}
	if err := m.open(); err != nil {
		return nil, err
	}
	for i := range m.parts {
		if err := m.convert(&m.parts[i]); err != nil {
			return nil, err
		}
		m.parts[i].annotate()
	}
	return m.render(), nil
}

// manifest is one in the making. The first part is the document that the
// others are put into.
type manifest struct {
	ManifestInput
	format  Format
	parts   []annotation
	adopted map[string]string // attributes of later documents' roots that the first has got
}

// stored are the limits for documents that have been accepted once.
var stored = Limits{Bytes: math.MaxInt, Depth: math.MaxInt, Elements: math.MaxInt}

// open reads the documents and hands each its slivers.
func (m *manifest) open() error {
	used := map[*slivers.Sliver]bool{}
	components := m.components()
	part := func(d *document, id slivers.DocumentID) {
		a := annotation{
			document: d, gateway: m.Gateway, used: used,
			nodes: map[request.ClientID]*slivers.Sliver{}, links: map[request.ClientID]*slivers.Sliver{},
			components: components, known: m.knows,
		}
		if m.Snapshot != nil {
			a.manager = m.Snapshot.Manager
		}
		for i := range m.Slivers {
			s := &m.Slivers[i]
			switch {
			case s.Document != id || id == 0:
			case s.Kind == slivers.Link:
				a.links[s.ClientID] = s
			default:
				a.nodes[s.ClientID] = s
			}
		}
		m.parts = append(m.parts, a)
	}
	var managers []urn.URN
	if m.Snapshot != nil {
		managers = m.Snapshot.Managers()
	}
	for _, doc := range m.Documents {
		if doc.MediaType != MediaType {
			continue
		}
		d, err := open(doc.Bytes, stored, managers)
		if err != nil {
			return fmt.Errorf("reading document %d of slice %s again: %w", doc.ID, m.Slice, err)
		}
		part(d, doc.ID)
	}
	if len(m.parts) == 0 {
		d, err := open([]byte(m.empty()), stored, managers)
		if err != nil {
			return fmt.Errorf("reading the frame of a manifest: %w", err)
		}
		part(d, 0)
	}
	return nil
}

// empty is the frame of a manifest that no RSpec asked for.
func (m *manifest) empty() string {
	ns := m.format.Namespace()
	return `<rspec xmlns="` + ns + `" xmlns:xsi="` + nsXSI + `" xsi:schemaLocation="` + ns + ` ` + ns + `/manifest.xsd" type="manifest">` + "\n</rspec>\n"
}

// components lists the components of all interfaces of the nodes shown, by
// node and interface.
func (m *manifest) components() map[slivers.End]urn.URN {
	all := map[slivers.End]urn.URN{}
	for i := range m.Slivers {
		s := &m.Slivers[i]
		if s.Kind != slivers.Node || s.Node == nil {
			continue
		}
		for j := range s.Node.Interfaces {
			f := &s.Node.Interfaces[j]
			all[slivers.End{Node: s.ClientID, Interface: f.ID}] = interfaceComponent(s, f)
		}
	}
	return all
}

// knows reports whether a node of the slice has the interface, in whatever
// document.
func (m *manifest) knows(iface request.ClientID) bool {
	for i := range m.parts {
		if f := m.parts[i].document.interfaces[iface]; f != nil && f.node.ours {
			return true
		}
	}
	return false
}

// convert changes a part to the format of the manifest: the namespace, as all
// else is the same.
func (m *manifest) convert(a *annotation) error {
	from, to := a.format.Namespace(), m.format.Namespace()
	if from == to {
		return nil
	}
	for e, s := range a.spans {
		for i := range e.Attr {
			_, ok := declares(&e.Attr[i])
			if !ok {
				continue
			}
			switch strings.TrimSpace(e.Attr[i].Value) {
			case from:
				a.setAttr(&a.edits, e, e.Attr[i].FullKey(), to)
			case to:
				return &languages.UnknownVersion{
					Found:   fmt.Sprintf("%s with elements of %s in line %d, which cannot be told apart in %s", a.format, m.format, a.place(s.start).Line, m.format),
					Offered: []languages.Version{a.format.Version()},
				}
			}
		}
	}
	return nil
}

// render puts the parts together.
func (m *manifest) render() []byte {
	base := &m.parts[0]
	root := base.tree.root
	m.rootAttributes(base)

	var content strings.Builder
	seen := m.foreignOf(base)
	for i := range m.parts[1:] {
		m.adoptAttributes(base, &m.parts[i+1])
		content.WriteString(m.embedded(base, &m.parts[i+1], seen))
	}
	line := base.childLine(root)
	for i := range m.Slivers {
		s := &m.Slivers[i]
		if base.used[s] {
			continue
		}
		f := base.nodeFragment
		if s.Kind == slivers.Link {
			f = base.linkFragment
		}
		element := f(root, s)
		element.write(&content, line)
	}
	for i := range m.Documents {
		if d := &m.Documents[i]; d.MediaType != MediaType {
			original := originalFragment(root, d)
			original.write(&content, line)
		}
	}
	if content.Len() > 0 {
		base.appendText(&base.edits, root, content.String())
	}
	text := base.edits.apply(base.text, 0, len(base.text))
	return append([]byte(`<?xml version="1.0" encoding="UTF-8"?>`+"\n"), trimLeft(text)...)
}

func trimLeft(text []byte) []byte {
	for len(text) > 0 && isBlank(text[0]) {
		text = text[1:]
	}
	return text
}

// rootAttributes makes the root element that of a manifest.
func (m *manifest) rootAttributes(base *annotation) {
	root := base.tree.root
	base.setAttr(&base.edits, root, "type", "manifest")
	if !m.Now.IsZero() {
		base.setAttr(&base.edits, root, "generated", dateTime(m.Now))
	}
	if expires := m.expires(); !expires.IsZero() {
		base.setAttr(&base.edits, root, "expires", dateTime(expires))
	}
	for i := range root.Attr {
		a := &root.Attr[i]
		if a.Key == "schemaLocation" && prefixOn(root, a.Space) == nsXSI {
			if is, want := a.Value, m.schemaLocation(base.format, a.Value); is != want {
				base.setAttr(&base.edits, root, a.FullKey(), want)
			}
		}
	}
}

// expires is when the first of the slivers does.
func (m *manifest) expires() time.Time {
	var first time.Time
	for i := range m.Slivers {
		if e := m.Slivers[i].Expires; !e.IsZero() && (first.IsZero() || e.Before(first)) {
			first = e
		}
	}
	return first
}

// dateTime writes a time as xs:dateTime in a form that is RFC 3339, too.
func dateTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// prefixOn is the namespace that an element itself declares for a prefix.
func prefixOn(e *etree.Element, prefix string) string {
	for i := range e.Attr {
		if p, ok := declares(&e.Attr[i]); ok && p == prefix {
			return e.Attr[i].Value
		}
	}
	return ""
}

// schemaLocation points the schema of a request to that of a manifest.
func (m *manifest) schemaLocation(from Format, value string) string {
	words := strings.Fields(value)
	changed := false
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] != from.Namespace() {
			continue
		}
		words[i] = m.format.Namespace()
		if rest, ok := strings.CutPrefix(words[i+1], from.Namespace()); ok {
			words[i+1] = m.format.Namespace() + rest
		}
		if rest, ok := strings.CutSuffix(words[i+1], "request.xsd"); ok {
			words[i+1] = rest + "manifest.xsd"
		}
		changed = true
	}
	if !changed {
		return value
	}
	return strings.Join(words, " ")
}
