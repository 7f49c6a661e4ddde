package rspec_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/beevik/etree"

	"croft/request"
	"croft/rspec"
	"croft/slivers"
)

// author writes requests in all the ways that XML allows.
type author struct {
	*rand.Rand
	b       strings.Builder
	prefix  string // of RSpec elements, with its colon
	newline string
	depth   int
	names   int
}

func (a *author) pick(choices ...string) string { return choices[a.IntN(len(choices))] }

// gap writes what may stand between elements.
func (a *author) gap() {
	if a.newline != "" {
		a.b.WriteString(a.newline + strings.Repeat("  ", a.depth))
	}
	switch a.IntN(12) {
	case 0:
		a.b.WriteString("<!-- a > comment < -->")
	case 1:
		a.b.WriteString("<?an instruction?>")
	case 2:
		a.b.WriteString(a.pick(" ", "\t", "\r\n", "\n\n"))
	case 3:
		fmt.Fprintf(&a.b, `<x:any xmlns:x="urn:x%d" x:b='"'>%s</x:any>`, a.IntN(3), a.pick("", "text &amp; more", "<![CDATA[<&]]>", "<x:deep/>", `<node xmlns=""/>`, `<plain k="v"/>`, `<node xmlns="http://www.geni.net/resources/rspec/3" client_id="in an extension"/>`))
	}
}

func (a *author) attributes(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		space := a.pick(" ", " ", " ", "\n   ", "  ", "\t")
		value := strings.ReplaceAll(pairs[i+1], "&", "&amp;")
		switch a.IntN(3) {
		case 0:
			fmt.Fprintf(&a.b, `%s%s='%s'`, space, pairs[i], value)
		case 1:
			fmt.Fprintf(&a.b, `%s%s = "%s"`, space, pairs[i], value)
		default:
			fmt.Fprintf(&a.b, `%s%s="%s"`, space, pairs[i], value)
		}
	}
	if a.IntN(8) == 0 {
		fmt.Fprintf(&a.b, ` xmlns:y="urn:y" y:k%d="a &lt; b&#10;c"`, a.IntN(9))
	}
	a.b.WriteString(a.pick("", "", " ", "\n"))
}

// element writes an element; without content, in one of the two ways.
func (a *author) element(name string, content func(), pairs ...string) {
	a.gap()
	a.b.WriteString("<" + a.prefix + name)
	a.attributes(pairs...)
	if content == nil && a.IntN(3) > 0 {
		a.b.WriteString("/>")
		return
	}
	a.b.WriteString(">")
	a.depth++
	if content != nil {
		content()
		a.gap()
	} else {
		a.b.WriteString(a.pick("", " ", "\n"))
	}
	a.depth--
	a.b.WriteString("</" + a.prefix + name + a.pick("", " ") + ">")
}

// maybe returns pairs, or nothing.
func (a *author) maybe(pairs ...string) []string {
	if a.IntN(2) == 0 {
		return nil
	}
	return pairs
}

func (a *author) request() []byte {
	a.prefix = a.pick("", "", "r:")
	a.newline = a.pick("\n", "\n", "\r\n", "")
	a.b.WriteString(a.pick("", `<?xml version="1.0"?>`, "<?xml version='1.1' encoding='utf-8'?>\n"))
	a.b.WriteString(a.pick("", "<!-- before -->\n", "\n"))
	declared := "xmlns"
	if a.prefix != "" {
		declared = "xmlns:r"
	}
	root := append([]string{declared, "http://www.geni.net/resources/rspec/3", "type", "request"}, a.maybe("generated_by", "somebody & co")...)
	var interfaces []string
	gap := a.newline
	a.newline = ""
	a.b.WriteString("<" + a.prefix + "rspec")
	a.attributes(root...)
	a.b.WriteString(">")
	a.newline, a.depth = gap, 1
	for range a.IntN(4) {
		interfaces = append(interfaces, a.node()...)
	}
	for len(interfaces) > 0 {
		n := 1 + a.IntN(min(3, len(interfaces)))
		a.link(interfaces[:n])
		interfaces = interfaces[n:]
		if a.IntN(2) == 0 {
			interfaces = append(interfaces, a.node()...)
		}
	}
	a.gap()
	a.b.WriteString("</" + a.prefix + "rspec>" + a.pick("", "\n", "<!-- after -->"))
	return []byte(a.b.String())
}

func (a *author) name(kind string) string {
	a.names++
	return fmt.Sprintf("%s%d%s", kind, a.names, a.pick("", " x", ":é", "&"))
}

func (a *author) node() (interfaces []string) {
	id := a.name("node")
	pairs := []string{"client_id", id}
	pairs = append(pairs, a.maybe("exclusive", a.pick("true", "false", "1", "0"))...)
	pairs = append(pairs, a.maybe("component_manager_id", manager.String())...)
	if a.IntN(5) == 0 {
		pairs = []string{"client_id", id, "component_manager_id", "urn:publicid:IDN+elsewhere+authority+cm"}
		a.element("node", nil, pairs...)
		return nil
	}
	a.element("node", func() {
		if a.IntN(3) > 0 {
			a.element("sliver_type", nil, "name", a.pick("namespace", "raw-pc"))
		}
		for range a.IntN(4) {
			i := a.name("if")
			interfaces = append(interfaces, i)
			var content func()
			if a.IntN(2) == 0 {
				n := a.names
				content = func() {
					a.element("ip", nil, append([]string{"address", fmt.Sprintf("10.0.%d.%d", n/200, 1+n%200)}, a.maybe("netmask", "255.255.0.0", "type", "ipv4")...)...)
				}
			}
			a.element("interface", content, "client_id", i)
		}
		switch a.IntN(4) {
		case 0:
			a.element("services", nil)
		case 1:
			a.element("services", func() {
				a.element("execute", nil, "shell", "sh", "command", "a &amp; b\n c")
			})
		}
		if a.IntN(8) == 0 {
			a.b.WriteString("stray text")
		}
	}, pairs...)
	return interfaces
}

func (a *author) link(interfaces []string) {
	a.element("link", func() {
		if a.IntN(2) == 0 {
			a.element("component_manager", nil, "name", manager.String())
		}
		for _, i := range interfaces {
			a.element("interface_ref", nil, "client_id", i)
		}
	}, "client_id", a.name("link"))
}

// Whatever way a request is written in, its manifest is the request with
// additions; some of its slivers, and several requests together, make
// documents that are well-formed and have those slivers.
func TestManifestOfAnything(t *testing.T) {
	for seed := range uint64(200) {
		var documents []slivers.Document
		var all []slivers.Sliver
		for part := range slivers.DocumentID(3) {
			a := &author{Rand: rand.New(rand.NewPCG(seed, uint64(part))), names: int(part) * 1000}
			document := a.request()
			c := compile(t, document, scope())
			own := provision(place(c.Request, part+1))
			m := manifest(t, rspec.ManifestInput{Documents: []slivers.Document{original(part+1, document)}, Slivers: own, Now: noon})
			if d := difference(document, m); d != "" {
				t.Fatalf("seed %d.%d: not the request with additions: %s\n%s\n--- from\n%s", seed, part, d, m, document)
			}
			counts(t, fmt.Sprintf("seed %d.%d", seed, part), m, own)
			documents = append(documents, original(part+1, document))
			all = append(all, own...)
		}
		together := manifest(t, rspec.ManifestInput{Documents: documents, Slivers: all, Now: noon})
		counts(t, fmt.Sprintf("seed %d, together", seed), together, all)
		extensionsAreIn(t, documents, together)
		r := rand.New(rand.NewPCG(seed, 99))
		var some []slivers.Sliver
		for _, s := range all {
			if r.IntN(2) == 0 {
				some = append(some, s)
			}
		}
		in := rspec.ManifestInput{Snapshot: snapshot(), Documents: documents, Slivers: some, Now: noon, Version: rspec.ProtoGENI2.Version()}
		if m, err := rspec.Manifest(in); err == nil { // or elements that ProtoGENI 2 cannot tell apart
			counts(t, fmt.Sprintf("seed %d, some", seed), m, some)
		}
		in.Version = rspec.GENI3.Version()
		counts(t, fmt.Sprintf("seed %d, some in GENI 3", seed), manifest(t, in), some)
	}
}

// counts checks that a manifest has the elements of slivers, each once and
// with its URN, and no others of ours.
func counts(t *testing.T, what string, m []byte, want []slivers.Sliver) {
	t.Helper()
	d := etree.NewDocument()
	if err := d.ReadFromBytes(m); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, m)
	}
	found := map[string]int{}
	for _, e := range d.Root().ChildElements() {
		if id := attr(e, "sliver_id"); id != "" {
			found[e.Tag+attr(e, "client_id")+id]++
		} else if e.Tag == "link" || e.Tag == "node" && attr(e, "component_manager_id") != "urn:publicid:IDN+elsewhere+authority+cm" {
			t.Fatalf("%s: %s %q has no sliver", what, e.Tag, attr(e, "client_id"))
		}
	}
	for _, s := range want {
		key := string(s.Kind) + string(request.ClientID(s.ClientID)) + s.URN.String()
		if found[key] != 1 {
			t.Fatalf("%s: %s %q stands %d times\n%s", what, s.Kind, s.ClientID, found[key], m)
		}
		delete(found, key)
	}
	if len(found) > 0 {
		t.Fatalf("%s: has %v, too\n%s", what, found, m)
	}
}

// extensionsAreIn checks that what the roots of documents have of extensions
// is in a manifest and means the same there, whatever the prefixes.
func extensionsAreIn(t *testing.T, documents []slivers.Document, m []byte) {
	t.Helper()
	d := etree.NewDocument()
	if err := d.ReadFromBytes(m); err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, e := range d.Root().ChildElements() {
		have[resolved(e)] = true
	}
	for _, document := range documents {
		d, err := parse(document.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range d.Root().ChildElements() {
			if e.Tag == "any" && !have[resolved(e)] {
				t.Fatalf("%s is not in\n%s", resolved(e), m)
			}
		}
	}
}

// resolved writes an element with the namespaces of its names.
func resolved(e *etree.Element) string {
	var names []string
	for _, a := range e.Attr {
		if a.Space != "xmlns" && a.FullKey() != "xmlns" {
			names = append(names, fmt.Sprintf("{%s}%s=%q", a.NamespaceURI(), a.Key, a.Value))
		}
	}
	slices.Sort(names)
	s := fmt.Sprintf("<{%s}%s %s>", e.NamespaceURI(), e.Tag, strings.Join(names, " "))
	for _, c := range content(e) {
		if child, ok := c.(*etree.Element); ok {
			s += resolved(child)
		} else {
			s += fmt.Sprintf("%q", c)
		}
	}
	return s + "</>"
}
