package rspec

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"

	"croft/languages"
	"croft/request"
)

// Limits bound what is read of a document. A zero field is its default.
type Limits struct {
	Bytes    int // length of the document; default 16 MiB
	Depth    int // nesting of elements; default 100
	Elements int // elements and attributes together; default 1,000,000
}

func (l Limits) orDefault() Limits {
	if l.Bytes == 0 {
		l.Bytes = 16 << 20
	}
	if l.Depth == 0 {
		l.Depth = 100
	}
	if l.Elements == 0 {
		l.Elements = 1_000_000
	}
	return l
}

// tree is a document read: its elements, and where each of them stands in the
// text. Changed documents are made by editing the text, so that all that
// nobody here understands stays as it was.
type tree struct {
	text        []byte // UTF-8, with neither byte order mark nor XML declaration
	declaration string // what was in front of text; "" if nothing
	declLines   int    // line breaks in it
	root        *etree.Element
	spans       map[*etree.Element]*span
	lines       []int // offsets in text at which lines start; made when first asked for
	runes       []int // characters before every runeBlock-th byte
}

const runeBlock = 1024

// maxAttributes bounds those of one element, and maxNamespace the length of a
// namespace's URI: what is quadratic in the one, or written out again for each
// element, stays small.
const (
	maxAttributes = 250
	maxNamespace  = 1000
)

// span is where an element stands, as offsets in the text.
type span struct {
	namespace  string // URI of the element's name
	start      int    // its first "<"
	startEnd   int    // after the ">" of the start tag
	end        int    // the "<" of the end tag; startEnd for an empty-element tag
	after      int    // after the element
	selfClosed bool

	number   int  // among siblings of the same name; see tree.number
	numbered bool // the children have their numbers
}

// errSyntax says that a document is not XML, or not XML that is safe to read.
func (t *tree) errSyntax(offset int, what, hint string) error {
	p := t.place(offset)
	return &languages.Error{Problems: []languages.Problem{{Place: p, What: what, Hint: hint}}}
}

// read makes a tree of a document. It reads neither document type definitions
// nor entities, and follows no reference.
func read(document []byte, limits Limits) (*tree, error) {
	limits = limits.orDefault()
	t := &tree{spans: make(map[*etree.Element]*span, min(len(document)/100, 10_000))}
	if len(document) > limits.Bytes {
		return nil, t.errSyntax(-1, fmt.Sprintf("document of %d bytes: longer than %d", len(document), limits.Bytes), "")
	}
	document, err := toUTF8(unescapeTwice(document))
	if err != nil {
		return nil, t.errSyntax(-1, err.Error(), "send the document as UTF-8")
	}
	t.text, t.declaration = cutDeclaration(document)
	t.declLines = strings.Count(t.declaration, "\n")
	return t, t.parse(limits)
}

func (t *tree) parse(limits Limits) error {
	d := xml.NewDecoder(bytes.NewReader(t.text))
	d.Strict = true
	var (
		open  []*etree.Element // ancestors of what comes next
		scope = newScope()
		left  = limits.Elements
	)
	for {
		start := int(d.InputOffset())
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return t.notWellFormed(err, int(d.InputOffset()))
		}
		end := int(d.InputOffset())
		switch token := token.(type) {
		case xml.Directive:
			return t.errSyntax(start, "document type declaration", "RSpecs have none: remove <!DOCTYPE …>")
		case xml.ProcInst:
			if strings.EqualFold(token.Target, "xml") {
				return t.errSyntax(start, "XML declaration inside the document", "it can only stand at the very start")
			}
			if len(open) > 0 {
				open[len(open)-1].CreateProcInst(token.Target, string(token.Inst))
			}
		case xml.Comment:
			if len(open) > 0 {
				open[len(open)-1].CreateComment(string(token))
			}
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].CreateText(string(token))
			} else if len(bytes.TrimSpace(token)) > 0 {
				return t.errSyntax(start, "text outside of the rspec element", "remove it")
			}
		case xml.StartElement:
			if len(open) == 0 && t.root != nil {
				return t.errSyntax(start, "second root element "+rawName(token.Name), "a document has one rspec element")
			}
			if len(open) >= limits.Depth {
				return t.errSyntax(start, fmt.Sprintf("elements nested deeper than %d", limits.Depth), "")
			}
			if len(token.Attr) > maxAttributes {
				return t.errSyntax(start, fmt.Sprintf("%d attributes in one element: more than %d", len(token.Attr), maxAttributes), "")
			}
			if left -= 1 + len(token.Attr); left < 0 {
				return t.errSyntax(start, fmt.Sprintf("more than %d elements and attributes", limits.Elements), "")
			}
			e := &etree.Element{Space: token.Name.Space, Tag: token.Name.Local}
			s := &span{start: start, startEnd: end, end: end, after: end, selfClosed: t.text[end-2] == '/'}
			if err := t.attributes(e, s, token, scope); err != nil {
				return err
			}
			if len(open) > 0 {
				open[len(open)-1].AddChild(e)
			} else {
				t.root = e
			}
			t.spans[e] = s
			open = append(open, e)
		case xml.EndElement:
			if len(open) == 0 {
				return t.errSyntax(start, "end tag </"+rawName(token.Name)+"> without a start tag", "")
			}
			e := open[len(open)-1]
			if e.Space != token.Name.Space || e.Tag != token.Name.Local {
				return t.errSyntax(start, fmt.Sprintf("end tag </%s> where <%s> of line %d is open",
					rawName(token.Name), e.FullTag(), t.placeOf(e).Line), "")
			}
			s := t.spans[e]
			if !s.selfClosed {
				s.end, s.after = start, end
			}
			scope.leave(e)
			open = open[:len(open)-1]
		}
	}
	switch {
	case t.root == nil:
		return t.errSyntax(-1, "document without an element", "an RSpec starts with <rspec …>")
	case len(open) > 0:
		e := open[len(open)-1]
		return t.errSyntax(t.spans[e].start, fmt.Sprintf("element %s is never closed", e.FullTag()), "the document ends too early")
	}
	return nil
}

func rawName(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

// notWellFormed turns an error of encoding/xml into one with a place.
func (t *tree) notWellFormed(err error, offset int) error {
	what := err.Error()
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		what = syntax.Msg
	}
	hint := ""
	switch {
	case strings.Contains(what, "entity"):
		hint = "write &amp; for &"
	case strings.Contains(what, "unescaped <"):
		hint = "write &lt; for < in attribute values"
	case strings.Contains(what, "unexpected EOF"):
		hint = "the document ends too early"
	}
	return t.errSyntax(offset, "not well-formed XML: "+what, hint)
}

// attributes fills in the attributes and namespace of an element, and refuses
// what namespaces in XML forbid.
func (t *tree) attributes(e *etree.Element, s *span, token xml.StartElement, sc *scope) error {
	if strings.Contains(e.Tag, ":") {
		return t.errSyntax(s.start, fmt.Sprintf("element name %q", e.Tag), "a name has one colon at most, inside of it")
	}
	e.Attr = make([]etree.Attr, len(token.Attr))
	for i, a := range token.Attr {
		if strings.Contains(a.Name.Local, ":") {
			return t.errSyntax(s.start, fmt.Sprintf("attribute name %q", a.Name.Local), "a name has one colon at most, inside of it")
		}
		e.Attr[i] = etree.Attr{Space: a.Name.Space, Key: a.Name.Local, Value: a.Value}
	}
	if bad := sc.enter(e); bad != "" {
		return t.errSyntax(s.start, bad, "")
	}
	if bytes.ContainsAny(t.text[s.start:s.startEnd], "\t\n\r") {
		t.normalizeValues(e, s)
	}
	uri, ok := sc.lookup(e.Space)
	if !ok {
		return t.errSyntax(s.start, fmt.Sprintf("prefix %q of element %s is not declared", e.Space, e.FullTag()),
			"declare it with xmlns:"+e.Space)
	}
	s.namespace = uri
	names := make([]xml.Name, len(e.Attr))
	for i := range e.Attr {
		a := &e.Attr[i]
		names[i] = xml.Name{Space: a.Space, Local: a.Key}
		if a.Space == "" || a.Space == "xmlns" {
			continue
		}
		if names[i].Space, ok = sc.lookup(a.Space); !ok {
			return t.errSyntax(s.start, fmt.Sprintf("prefix %q of attribute %s is not declared", a.Space, a.FullKey()),
				"declare it with xmlns:"+a.Space)
		}
	}
	if i := repeated(names); i >= 0 {
		return t.errSyntax(s.start, fmt.Sprintf("attribute %s stands twice in element %s", e.Attr[i].FullKey(), e.FullTag()), "keep one of them")
	}
	return nil
}

// repeated returns the index of a name that stands before it already; -1 if
// none does.
func repeated(names []xml.Name) int {
	if len(names) < 16 {
		for i := range names {
			if slices.Contains(names[:i], names[i]) {
				return i
			}
		}
		return -1
	}
	seen := make(map[xml.Name]bool, len(names))
	for i := range names {
		if seen[names[i]] {
			return i
		}
		seen[names[i]] = true
	}
	return -1
}

// normalizeValues gives attribute values the white space that XML says they
// have: line breaks and tabs are blanks unless written as references (XML 1.0,
// 3.3.3). encoding/xml leaves them as they are.
func (t *tree) normalizeValues(e *etree.Element, s *span) {
	for i, a := range attrSpans(t.text[s.start:s.startEnd]) {
		if i >= len(e.Attr) {
			return
		}
		raw := t.text[s.start+a.valueStart : s.start+a.valueEnd]
		if !bytes.ContainsAny(raw, "\t\n\r") {
			continue
		}
		raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte(" "))
		quoted := make([]byte, 0, len(raw)+8)
		quoted = append(quoted, "<a>"...)
		for _, c := range raw {
			switch c {
			case '\t', '\n', '\r':
				quoted = append(quoted, ' ')
			case '>': // or "]]>" would be wrong
				quoted = append(quoted, "&gt;"...)
			default:
				quoted = append(quoted, c)
			}
		}
		quoted = append(quoted, "</a>"...)
		d := xml.NewDecoder(bytes.NewReader(quoted))
		var value strings.Builder
		for {
			token, err := d.RawToken()
			if err != nil {
				break
			}
			if text, ok := token.(xml.CharData); ok {
				value.Write(text)
			}
		}
		e.Attr[i].Value = value.String()
	}
}

// scope is the namespace declarations in force.
type scope struct{ uris map[string][]string }

func newScope() *scope {
	return &scope{map[string][]string{"": {""}, "xml": {nsXML}}}
}

func declares(a *etree.Attr) (prefix string, ok bool) {
	switch {
	case a.Space == "xmlns":
		return a.Key, true
	case a.Space == "" && a.Key == "xmlns":
		return "", true
	}
	return "", false
}

// enter takes in the declarations of an element and says what is wrong with
// them.
func (s *scope) enter(e *etree.Element) string {
	for i := range e.Attr {
		prefix, ok := declares(&e.Attr[i])
		if !ok {
			continue
		}
		uri := e.Attr[i].Value
		switch {
		case prefix == "xmlns" || prefix == "xml" && uri != nsXML:
			return fmt.Sprintf("declares the prefix %q, which is reserved", prefix)
		case prefix != "" && uri == "":
			return fmt.Sprintf("declares the prefix %q as nothing", prefix)
		case len(uri) > maxNamespace:
			return fmt.Sprintf("namespace of %d characters: longer than %d", len(uri), maxNamespace)
		case strings.ContainsAny(uri, " \t\r\n"):
			return fmt.Sprintf("namespace %q is not a URI: it has blanks", uri)
		}
		s.uris[prefix] = append(s.uris[prefix], uri)
	}
	return ""
}

func (s *scope) leave(e *etree.Element) {
	for i := range e.Attr {
		if prefix, ok := declares(&e.Attr[i]); ok {
			if stack := s.uris[prefix]; len(stack) > 0 {
				s.uris[prefix] = stack[:len(stack)-1]
			}
		}
	}
}

func (s *scope) lookup(prefix string) (string, bool) {
	if prefix == "xmlns" {
		return "", false
	}
	stack := s.uris[prefix]
	if len(stack) == 0 {
		return "", false
	}
	return stack[len(stack)-1], true
}

// namespace is the URI of an element's name.
func (t *tree) namespace(e *etree.Element) string { return t.spans[e].namespace }

// is reports whether an element has a name of a namespace.
func (t *tree) is(e *etree.Element, namespace, tag string) bool {
	return e.Tag == tag && t.spans[e].namespace == namespace
}

// children returns the child elements of a name.
func (t *tree) children(e *etree.Element, namespace, tag string) []*etree.Element {
	var found []*etree.Element
	for _, c := range e.Child {
		if c, ok := c.(*etree.Element); ok && t.is(c, namespace, tag) {
			found = append(found, c)
		}
	}
	return found
}

// attr returns an attribute in no namespace, without white space around it.
func attr(e *etree.Element, key string) string {
	v, _ := lookupAttr(e, key)
	return v
}

func lookupAttr(e *etree.Element, key string) (string, bool) {
	for i := range e.Attr {
		if e.Attr[i].Space == "" && e.Attr[i].Key == key {
			return strings.TrimSpace(e.Attr[i].Value), true
		}
	}
	return "", false
}

// place says where an offset of the text is.
func (t *tree) place(offset int) request.Place {
	if offset < 0 {
		return request.Place{}
	}
	if t.lines == nil {
		t.index()
	}
	offset = min(offset, len(t.text))
	line := sort.SearchInts(t.lines, offset+1)
	column := t.runesBefore(offset) - t.runesBefore(t.lines[line-1]) + 1
	if line == 1 && t.declLines == 0 {
		column += utf8.RuneCountInString(t.declaration)
	}
	return request.Place{Line: line + t.declLines, Column: column}
}

// index finds the lines, and counts characters: a document may well be one
// line of megabytes.
func (t *tree) index() {
	t.lines = []int{0}
	count := 0
	for i, c := range t.text {
		if i%runeBlock == 0 {
			t.runes = append(t.runes, count)
		}
		if c == '\n' {
			t.lines = append(t.lines, i+1)
		}
		if utf8.RuneStart(c) {
			count++
		}
	}
	t.runes = append(t.runes, count)
}

func (t *tree) runesBefore(offset int) int {
	block := offset / runeBlock
	n := t.runes[block]
	for _, c := range t.text[block*runeBlock : offset] {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

// placeOf says where an element is, with its path.
func (t *tree) placeOf(e *etree.Element) request.Place {
	p := t.place(t.spans[e].start)
	p.Path = t.path(e)
	return p
}

// path names an element by its ancestors; client_id tells siblings apart
// where there is one, and the number among equals otherwise.
func (t *tree) path(e *etree.Element) string {
	var steps []string
	for ; e != nil; e = e.Parent() {
		step := e.Tag
		if id := attr(e, "client_id"); id != "" {
			step += fmt.Sprintf("[client_id=%q]", id)
		} else if n := t.number(e); n > 0 {
			step += fmt.Sprintf("[%d]", n)
		}
		steps = append(steps, step)
	}
	slices.Reverse(steps)
	return strings.Join(steps, "/")
}

// number counts an element among its siblings of the same name, from 1; 0 if
// it has none. The siblings are numbered all at once, as places are asked for
// in their thousands.
func (t *tree) number(e *etree.Element) int {
	parent := e.Parent()
	if parent == nil {
		return 0
	}
	if p := t.spans[parent]; !p.numbered {
		p.numbered = true
		last := map[string]*span{}
		for _, c := range parent.Child {
			c, ok := c.(*etree.Element)
			if !ok {
				continue
			}
			s := t.spans[c]
			if before := last[c.Tag]; before != nil {
				before.number = max(before.number, 1)
				s.number = before.number + 1
			}
			last[c.Tag] = s
		}
	}
	return t.spans[e].number
}
