package rspec_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/beevik/etree"

	"croft/urn"
)

// added is what a manifest may have that its request has not, by element.
var added = struct{ attributes, elements map[string][]string }{
	attributes: map[string][]string{
		"rspec":         {"type", "generated", "expires"},
		"node":          {"component_id", "component_manager_id", "exclusive", "sliver_id"},
		"sliver_type":   {"name"},
		"interface":     {"component_id", "mac_address"},
		"ip":            {"netmask", "type"},
		"link":          {"sliver_id", "vlantag"},
		"interface_ref": {"component_id", "sliver_id"},
	},
	elements: map[string][]string{
		"node":      {"sliver_type", "interface", "host", "services"},
		"services":  {"login", "services_user", "proxy", "port"},
		"interface": {"ip"},
		"link":      {"component_manager"},
	},
}

var xmlDeclaration = regexp.MustCompile(`^\s*<\?xml\s[^?]*\?>`)

func parse(document []byte) (*etree.Document, error) {
	d := etree.NewDocument()
	return d, d.ReadFromBytes(xmlDeclaration.ReplaceAll(document, nil))
}

// difference takes out of a manifest what is added to a request, and says
// where the canonical forms of the two differ otherwise; "" if they are the
// same. Changed values that a manifest is to change (type, schemaLocation,
// empty netmasks) do not count.
func difference(request, manifest []byte) string {
	r, err := parse(request)
	if err != nil {
		return "request: " + err.Error()
	}
	m, err := parse(manifest)
	if err != nil {
		return "manifest: " + err.Error()
	}
	strip(r.Root(), m.Root())
	return differ(r.Root(), m.Root(), r.Root().FullTag())
}

// strip takes the additions out of the element m that stands for r.
func strip(r, m *etree.Element) {
	m.Attr = slices.DeleteFunc(m.Attr, func(a etree.Attr) bool {
		return a.Space == "" && r.SelectAttr(a.Key) == nil && slices.Contains(added.attributes[m.Tag], a.Key)
	})
	had := r.ChildElements()
	for _, c := range m.ChildElements() {
		if len(had) > 0 && had[0].FullTag() == c.FullTag() && attr(had[0], "client_id") == attr(c, "client_id") {
			strip(had[0], c)
			had = had[1:]
			continue
		}
		if !slices.Contains(added.elements[m.Tag], c.Tag) {
			continue
		}
		if i := c.Index(); i > 0 {
			if text, ok := m.Child[i-1].(*etree.CharData); ok && text.IsWhitespace() {
				m.RemoveChildAt(i - 1)
			}
		}
		m.RemoveChild(c)
	}
	if len(r.Child) == 0 && len(m.ChildElements()) == 0 {
		for len(m.Child) > 0 {
			if text, ok := m.Child[0].(*etree.CharData); !ok || !text.IsWhitespace() {
				break
			}
			m.RemoveChildAt(0)
		}
	}
}

func attr(e *etree.Element, key string) string { return e.SelectAttrValue(key, "") }

// differ compares elements as canonical XML would.
func differ(r, m *etree.Element, at string) string {
	if r.FullTag() != m.FullTag() {
		return fmt.Sprintf("%s: %s became %s", at, r.FullTag(), m.FullTag())
	}
	for _, a := range r.Attr {
		now := m.SelectAttr(a.FullKey())
		if now == nil || now.Value != a.Value && !mayChange(r, a) {
			return fmt.Sprintf("%s: attribute %s=%q became %v", at, a.FullKey(), a.Value, now)
		}
	}
	if len(m.Attr) != len(r.Attr) {
		return fmt.Sprintf("%s: attributes %v became %v", at, r.Attr, m.Attr)
	}
	a, b := content(r), content(m)
	for i := range max(len(a), len(b)) {
		if i >= len(a) {
			return fmt.Sprintf("%s: %v is new", at, shown(b[i]))
		}
		if i >= len(b) {
			return fmt.Sprintf("%s: %v is lost", at, shown(a[i]))
		}
		x, isElement := a[i].(*etree.Element)
		y, stillIs := b[i].(*etree.Element)
		if isElement && stillIs {
			if d := differ(x, y, at+"/"+x.FullTag()+"#"+attr(x, "client_id")); d != "" {
				return d
			}
		} else if isElement != stillIs || a[i] != b[i] {
			return fmt.Sprintf("%s: %v became %v", at, shown(a[i]), shown(b[i]))
		}
	}
	return ""
}

func shown(x any) string {
	if e, ok := x.(*etree.Element); ok {
		return "element " + e.FullTag()
	}
	return fmt.Sprintf("%q", x)
}

// mayChange reports whether a manifest may have another value for an attribute
// of its request: where the value said nothing, or not what it has to be.
func mayChange(e *etree.Element, a etree.Attr) bool {
	value := strings.TrimSpace(a.Value)
	switch e.Tag + "/" + a.Key {
	case "rspec/type", "rspec/schemaLocation", "rspec/generated", "rspec/expires":
		return true
	case "node/component_manager_id":
		return value == ""
	case "node/component_id":
		_, err := urn.Parse(value)
		return err != nil
	}
	return false
}

// content is the elements, texts, comments and instructions of an element,
// with texts that meet in one.
func content(e *etree.Element) []any {
	var list []any
	for _, c := range e.Child {
		switch c := c.(type) {
		case *etree.CharData:
			if n := len(list); n > 0 {
				if text, ok := list[n-1].(string); ok {
					list[n-1] = text + c.Data
					continue
				}
			}
			list = append(list, c.Data)
		case *etree.Comment:
			list = append(list, [2]string{"comment", c.Data})
		case *etree.ProcInst:
			list = append(list, [2]string{c.Target, c.Inst})
		case *etree.Element:
			list = append(list, c)
		}
	}
	return list
}

// around is what a document has before and after its root element.
func around(document []byte) string {
	document = xmlDeclaration.ReplaceAll(document, nil)
	d, err := parse(document)
	if err != nil {
		return err.Error()
	}
	var b bytes.Buffer
	for _, c := range d.Child {
		switch c := c.(type) {
		case *etree.Comment:
			b.WriteString("comment " + c.Data + "\n")
		case *etree.ProcInst:
			b.WriteString("instruction " + c.Target + " " + c.Inst + "\n")
		case *etree.Element:
			b.WriteString("root\n")
		}
	}
	return b.String()
}
