package rspec

import (
	"bytes"
	"strings"

	"github.com/beevik/etree"
)

// fragment is an element to be put into a document.
type fragment struct {
	name  string // with its prefix
	attrs []pair
	kids  []fragment
	text  string
}

type pair struct{ key, value string }

func (f *fragment) attr(key, value string) {
	if value != "" {
		f.attrs = append(f.attrs, pair{key, value})
	}
}

// write writes the element. newline is what lines of its level start with; ""
// writes it all on one.
func (f *fragment) write(b *strings.Builder, newline string) {
	b.WriteString(newline)
	b.WriteByte('<')
	b.WriteString(f.name)
	for _, a := range f.attrs {
		b.WriteString(` ` + a.key + `="` + quote(a.value) + `"`)
	}
	if f.text == "" && len(f.kids) == 0 {
		b.WriteString("/>")
		return
	}
	b.WriteByte('>')
	b.WriteString(quote(f.text))
	inner := newline
	if newline != "" {
		inner += "  "
	}
	for i := range f.kids {
		f.kids[i].write(b, inner)
	}
	if len(f.kids) > 0 {
		b.WriteString(newline)
	}
	b.WriteString("</" + f.name + ">")
}

// named puts the prefix of a parent before the name of a child in the same
// namespace.
func named(parent *etree.Element, tag string) string {
	if parent.Space == "" {
		return tag
	}
	return parent.Space + ":" + tag
}

// lineStart returns what a line starts with on which an element is the first
// thing, with the line break; "" if something stands before it.
func (t *tree) lineStart(offset int) string {
	i := offset
	for i > 0 && (t.text[i-1] == ' ' || t.text[i-1] == '\t') {
		i--
	}
	if i > 0 && t.text[i-1] == '\n' {
		return "\n" + string(t.text[i:offset])
	}
	return ""
}

// contentEnd is where children can be added to an element: after its last
// child, before the white space that leads to its end tag.
func (t *tree) contentEnd(e *etree.Element) int {
	s := t.spans[e]
	content := t.text[s.startEnd:s.end]
	return s.startEnd + len(bytes.TrimRight(content, " \t\r\n"))
}

// childLine returns what lines of an element's children start with; "" if
// they are not on lines of their own, or text stands among them.
func (t *tree) childLine(e *etree.Element) string {
	elements := 0
	line := ""
	for _, c := range e.Child {
		switch c := c.(type) {
		case *etree.CharData:
			if strings.TrimSpace(c.Data) != "" {
				return ""
			}
		case *etree.Element:
			if elements++; elements == 1 {
				line = t.lineStart(t.spans[c].start)
			}
		}
	}
	if elements > 0 {
		return line
	}
	if own := t.lineStart(t.spans[e].start); own != "" {
		return own + "  "
	}
	return ""
}

// appendTo adds children to an element, in the way its children are laid out.
func (t *tree) appendTo(es *edits, e *etree.Element, kids []fragment) {
	if len(kids) == 0 {
		return
	}
	var b strings.Builder
	line := t.childLine(e)
	for i := range kids {
		kids[i].write(&b, line)
	}
	t.appendText(es, e, b.String())
}

// appendText adds content to an element.
func (t *tree) appendText(es *edits, e *etree.Element, content string) {
	s := t.spans[e]
	own := ""
	if strings.HasPrefix(content, "\n") {
		own = t.lineStart(s.start)
		if e.Parent() == nil {
			own = "\n"
		}
	}
	switch {
	case s.selfClosed:
		es.replace(s.startEnd-2, s.startEnd, ">"+content+own+"</"+e.FullTag()+">")
	case s.startEnd == s.end:
		es.insert(s.end, content+own)
	default:
		es.insert(t.contentEnd(e), content)
	}
}

// removeElement takes an element out, with its line if it has one of its own.
func (t *tree) removeElement(es *edits, e *etree.Element) {
	s := t.spans[e]
	es.remove(s.start-len(t.lineStart(s.start)), s.after)
}

// setAttr gives an attribute a value, where it stands or after the others.
func (t *tree) setAttr(es *edits, e *etree.Element, key, value string) {
	s := t.spans[e]
	last := s.start + 1 + len(e.FullTag())
	for _, a := range attrSpans(t.text[s.start:s.startEnd]) {
		if a.name == key {
			es.replace(s.start+a.valueStart, s.start+a.valueEnd, quoteFor(t.text[s.start+a.valueEnd], value))
			return
		}
		last = s.start + a.valueEnd + 1
	}
	es.insert(last, ` `+key+`="`+quote(value)+`"`)
}

// quoteFor is quote for a value between quotation marks of either kind.
func quoteFor(mark byte, value string) string {
	if mark == '\'' {
		return strings.ReplaceAll(quote(value), "'", "&apos;")
	}
	return quote(value)
}
