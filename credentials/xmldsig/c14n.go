package xmldsig

import (
	"io"
	"slices"
	"strings"
)

// A Method is a canonicalization.
type Method struct {
	Exclusive bool
	Comments  bool
	// Inclusive are the prefixes that exclusive canonicalization treats as
	// inclusive canonicalization does; "" is the default namespace.
	Inclusive []string
}

// The algorithm names.
const (
	InclusiveC14N         = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
	InclusiveC14NComments = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315#WithComments"
	ExclusiveC14N         = "http://www.w3.org/2001/10/xml-exc-c14n#"
	ExclusiveC14NComments = "http://www.w3.org/2001/10/xml-exc-c14n#WithComments"
)

var methods = map[string]Method{
	InclusiveC14N:         {},
	InclusiveC14NComments: {Comments: true},
	ExclusiveC14N:         {Exclusive: true},
	ExclusiveC14NComments: {Exclusive: true, Comments: true},
}

// Canonical returns the canonical form of the whole document.
func (d *Document) Canonical(m Method) []byte {
	c := canonicalizer{Method: m}
	for _, n := range d.Prolog {
		if c.keeps(n) {
			c.misc(n)
			c.out.WriteByte('\n')
		}
	}
	c.element(d.Root, nil, true)
	for _, n := range d.Epilog {
		if c.keeps(n) {
			c.out.WriteByte('\n')
			c.misc(n)
		}
	}
	return []byte(c.out.String())
}

// Canonical returns the canonical form of the element and all that is in it
// but the element omit (which may be nil), as a subset of its document: with
// the namespaces, and in inclusive canonicalization the xml: attributes, that
// it inherits.
func (e *Element) Canonical(m Method, omit *Element) []byte {
	c := canonicalizer{Method: m, omit: omit}
	c.element(e, nil, true)
	return []byte(c.out.String())
}

type canonicalizer struct {
	Method
	omit *Element
	out  strings.Builder
}

// scope is a stack of namespace declarations, innermost first.
type scope struct {
	namespace
	outer *scope
}

func (s *scope) get(prefix string) string {
	for ; s != nil; s = s.outer {
		if s.prefix == prefix {
			return s.uri
		}
	}
	return ""
}

// element writes e; rendered are the declarations that the output already
// has around it.
func (c *canonicalizer) element(e *Element, rendered *scope, apex bool) {
	if e == c.omit {
		return
	}
	var declare []namespace
	for _, n := range c.wanted(e, apex) {
		if rendered.get(n.prefix) != n.uri {
			declare = append(declare, n)
			rendered = &scope{n, rendered}
		}
	}
	slices.SortFunc(declare, func(a, b namespace) int { return strings.Compare(a.prefix, b.prefix) })
	attributes := slices.Clone(e.Attributes)
	if apex && !c.Exclusive {
		attributes = append(attributes, inherited(e)...)
	}
	slices.SortFunc(attributes, func(a, b Attribute) int {
		if by := strings.Compare(a.Name.Space, b.Name.Space); by != 0 {
			return by
		}
		return strings.Compare(a.Name.Local, b.Name.Local)
	})

	name := e.qualified()
	c.out.WriteString("<" + name)
	for _, n := range declare {
		if n.prefix == "" {
			c.out.WriteString(` xmlns="`)
		} else {
			c.out.WriteString(" xmlns:" + n.prefix + `="`)
		}
		escapeValue.WriteString(&c.out, n.uri)
		c.out.WriteByte('"')
	}
	for _, a := range attributes {
		c.out.WriteByte(' ')
		if a.Name.Prefix != "" {
			c.out.WriteString(a.Name.Prefix + ":")
		}
		c.out.WriteString(a.Name.Local + `="`)
		escapeValue.WriteString(&c.out, a.Value)
		c.out.WriteByte('"')
	}
	c.out.WriteByte('>')
	for _, child := range e.Children {
		switch n := child.(type) {
		case *Element:
			c.element(n, rendered, false)
		case Text:
			escapeText.WriteString(&c.out, string(n))
		default:
			if c.keeps(n) {
				c.misc(n)
			}
		}
	}
	c.out.WriteString("</" + name + ">")
}

// wanted returns the declarations that the method wants at e, whether or not
// the output has them already. Default namespace "" stands for xmlns="".
func (c *canonicalizer) wanted(e *Element, apex bool) []namespace {
	if c.Exclusive {
		return c.utilized(e)
	}
	if !apex {
		return e.declared
	}
	var all []namespace
	for at := e; at != nil; at = at.Parent {
		for _, n := range at.declared {
			if !slices.ContainsFunc(all, func(m namespace) bool { return m.prefix == n.prefix }) {
				all = append(all, n)
			}
		}
	}
	return all
}

func (c *canonicalizer) utilized(e *Element) []namespace {
	all := []namespace{{e.Name.Prefix, e.Name.Space}}
	add := func(n namespace) {
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	for _, a := range e.Attributes {
		if a.Name.Prefix != "" && a.Name.Prefix != "xml" {
			add(namespace{a.Name.Prefix, a.Name.Space})
		}
	}
	for _, prefix := range c.Inclusive {
		if uri, bound := e.lookup(prefix); bound && prefix != "xml" {
			add(namespace{prefix, uri})
		}
	}
	return all
}

// inherited returns the xml: attributes that e has from its ancestors.
func inherited(e *Element) []Attribute {
	var all []Attribute
	for at := e.Parent; at != nil; at = at.Parent {
		for _, a := range at.Attributes {
			if a.Name.Space != xmlNamespace {
				continue
			}
			same := func(b Attribute) bool { return b.Name.Space == xmlNamespace && b.Name.Local == a.Name.Local }
			if !slices.ContainsFunc(e.Attributes, same) && !slices.ContainsFunc(all, same) {
				all = append(all, a)
			}
		}
	}
	return all
}

// keeps reports whether a node belongs to the canonical form.
func (c *canonicalizer) keeps(n Node) bool {
	_, comment := n.(Comment)
	return c.Comments || !comment
}

// misc writes a comment or a processing instruction.
func (c *canonicalizer) misc(n Node) {
	switch n := n.(type) {
	case Comment:
		c.out.WriteString("<!--" + string(n) + "-->")
	case Instruction:
		c.out.WriteString("<?" + n.Target)
		if n.Data != "" {
			c.out.WriteString(" " + n.Data)
		}
		c.out.WriteString("?>")
	}
}

// A replacer of single bytes by strings. strings.NewReplacer builds its table
// once and is safe for parallel use.
type escaper struct{ *strings.Replacer }

func (e escaper) WriteString(w io.Writer, s string) { e.Replacer.WriteString(w, s) }

var (
	escapeText  = escaper{strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#xD;")}
	escapeValue = escaper{strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;", "\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;")}
)
