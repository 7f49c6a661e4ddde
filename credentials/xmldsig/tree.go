// Package xmldsig reads XML as XML Signature needs it read, writes it in its
// canonical forms, and makes and verifies enveloped signatures
// (XML Signature Syntax and Processing, Canonical XML 1.0, Exclusive XML
// Canonicalization 1.0).
//
// It is stricter than the recommendations: one reference per signature, bound
// to the very element that the verifier hands back; no DTD, no transform but
// the enveloped signature and canonicalization, no key out of the document.
// What it accepts, the xmlsec1 program accepts too; Error names the rule where
// it refuses more than xmlsec1 does.
package xmldsig

// A Document is a parsed XML document. It is never changed after Parse.
type Document struct {
	// Root is the document element.
	Root *Element
	// Prolog and Epilog are the comments and processing instructions before
	// and after the root.
	Prolog, Epilog []Node

	source []byte
	ids    map[string]*Element
	// idError says why the ids of the document cannot be relied on.
	idError error
}

// A Node is an *Element, Text, Comment or Instruction.
type Node interface{ node() }

// Text is character data, with references resolved and CDATA sections opened.
type Text string

// Comment is the content of a comment.
type Comment string

// Instruction is a processing instruction.
type Instruction struct{ Target, Data string }

// An Element is one element of a document.
type Element struct {
	Name Name
	// Attributes are in the order of the document, namespace declarations
	// left out.
	Attributes []Attribute
	Children   []Node
	// Parent is nil for the root.
	Parent *Element
	// Line is where its start tag begins, counted from 1.
	Line int

	declared   []namespace
	start, end int // of the element in the document's source
	inner      int // where its start tag ends
	innerEnd   int // where its end tag begins
	attributes int // where the attributes begin in the start tag
}

// A Name is a qualified name: its prefix as written and the namespace that
// the prefix stands for there.
type Name struct{ Prefix, Local, Space string }

// An Attribute is a name and a normalized value.
type Attribute struct {
	Name  Name
	Value string
}

// namespace is a declaration: xmlns:prefix="uri", or xmlns="uri" if prefix
// is empty.
type namespace struct{ prefix, uri string }

func (*Element) node()    {}
func (Text) node()        {}
func (Comment) node()     {}
func (Instruction) node() {}

const xmlNamespace = "http://www.w3.org/XML/1998/namespace"

// Is reports whether the element has the namespace and local name.
func (e *Element) Is(space, local string) bool {
	return e.Name.Space == space && e.Name.Local == local
}

// Attribute returns the value of the attribute that has the namespace and
// local name, and whether there is one.
func (e *Element) Attribute(space, local string) (string, bool) {
	for _, a := range e.Attributes {
		if a.Name.Space == space && a.Name.Local == local {
			return a.Value, true
		}
	}
	return "", false
}

// ID returns the value of the element's xml:id, or "".
func (e *Element) ID() string {
	id, _ := e.Attribute(xmlNamespace, "id")
	return id
}

// Elements returns the element children.
func (e *Element) Elements() []*Element {
	var all []*Element
	for _, child := range e.Children {
		if c, ok := child.(*Element); ok {
			all = append(all, c)
		}
	}
	return all
}

// Value returns the text of an element that has nothing but text in it.
// Comments, processing instructions and elements in the midst of a value are
// an error, because programs differ in what they read there.
func (e *Element) Value() (string, error) {
	switch len(e.Children) {
	case 0:
		return "", nil
	case 1:
		if text, ok := e.Children[0].(Text); ok {
			return string(text), nil
		}
	}
	return "", refuse(RuleValue, "line %d: <%s> has something other than text in it", e.Line, e.Name.Local)
}

// Source returns the element as it stands in the document, byte for byte.
func (d *Document) Source(e *Element) []byte { return d.source[e.start:e.end] }

// InnerSource returns what stands between the tags of the element.
func (d *Document) InnerSource(e *Element) []byte { return d.source[e.inner:e.innerEnd] }

// AttributesSource returns the attributes and namespace declarations of the
// element as they are written in its start tag.
func (d *Document) AttributesSource(e *Element) []byte {
	end := e.inner - 1
	if e.inner == e.innerEnd && e.innerEnd == e.end { // <e/>
		end--
	}
	return d.source[e.attributes:end]
}

// CheckIDs reports why the ids of the document cannot be relied on: two
// attributes that some program may take for ids (xml:id, id, Id, ID) have one
// value, or an xml:id is no name.
func (d *Document) CheckIDs() error { return d.idError }

// ByID returns the element whose xml:id is id, or nil. It is an error if
// CheckIDs is one.
func (d *Document) ByID(id string) (*Element, error) { return d.ids[id], d.idError }

// lookup returns what a prefix stands for at e.
func (e *Element) lookup(prefix string) (string, bool) {
	if prefix == "xml" {
		return xmlNamespace, true
	}
	for ; e != nil; e = e.Parent {
		for _, n := range e.declared {
			if n.prefix == prefix {
				return n.uri, n.uri != "" || prefix == ""
			}
		}
	}
	return "", prefix == ""
}
