package xmldsig

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Limits bound what Parse reads. A zero field stands for DefaultLimits'.
type Limits struct {
	Bytes      int // of the document
	Elements   int // in the document
	Depth      int // of nesting
	Attributes int // of one element, namespace declarations included
	Namespaces int // declarations in the document
}

// DefaultLimits are far above any credential seen in the field.
var DefaultLimits = Limits{Bytes: 1 << 20, Elements: 20_000, Depth: 128, Attributes: 64, Namespaces: 256}

func (l Limits) orDefault() Limits {
	or := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	or(&l.Bytes, DefaultLimits.Bytes)
	or(&l.Elements, DefaultLimits.Elements)
	or(&l.Depth, DefaultLimits.Depth)
	or(&l.Attributes, DefaultLimits.Attributes)
	or(&l.Namespaces, DefaultLimits.Namespaces)
	return l
}

// Parse reads a document: XML 1.0 with namespaces, UTF-8, without document
// type declaration. All white space, attribute values and line ends are kept
// or normalized as XML 1.0 says, because signatures depend on them.
func Parse(data []byte, limits Limits) (*Document, error) {
	limits = limits.orDefault()
	if len(data) > limits.Bytes {
		return nil, refuse(RuleLimit, "document of %d bytes, more than %d", len(data), limits.Bytes)
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, refuse(RuleEncoding, "a zero byte, at which some programs stop reading")
	}
	if !utf8.Valid(data) {
		return nil, refuse(RuleEncoding, "not UTF-8")
	}
	p := &parser{src: data, limits: limits, doc: &Document{source: data, ids: map[string]*Element{}}, seen: map[string]*Element{}}
	if err := p.document(); err != nil {
		return nil, err
	}
	return p.doc, nil
}

type parser struct {
	src      []byte
	pos      int
	lineAt   int // line counted up to linePos
	linePos  int
	limits   Limits
	doc      *Document
	elements int
	declared int                 // namespaces
	pending  strings.Builder     // text that waits for the next node
	seen     map[string]*Element // by ids of every kind
}

func (p *parser) line() int {
	p.lineAt += bytes.Count(p.src[p.linePos:p.pos], []byte{'\n'})
	p.linePos = p.pos
	return p.lineAt + 1
}

func (p *parser) fail(rule Rule, format string, args ...any) error {
	return refuse(rule, "line %d: "+format, append([]any{p.line()}, args...)...)
}

func (p *parser) syntax(format string, args ...any) error {
	return p.fail(RuleSyntax, format, args...)
}

func (p *parser) has(s string) bool { return bytes.HasPrefix(p.src[p.pos:], []byte(s)) }

func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// space skips white space and reports whether there was any.
func (p *parser) space() bool {
	from := p.pos
	for p.pos < len(p.src) && isSpace(p.src[p.pos]) {
		p.pos++
	}
	return p.pos > from
}

func (p *parser) document() error {
	if p.has("\xef\xbb\xbf") {
		p.pos += 3
	}
	if p.has("<?xml") && p.pos+5 < len(p.src) && isSpace(p.src[p.pos+5]) {
		if err := p.declaration(); err != nil {
			return err
		}
	}
	for {
		p.space()
		switch {
		case p.pos == len(p.src):
			if p.doc.Root == nil {
				return p.syntax("no element")
			}
			return nil
		case p.has("<!--"), p.has("<?"):
			n, err := p.misc()
			if err != nil {
				return err
			}
			if p.doc.Root == nil {
				p.doc.Prolog = append(p.doc.Prolog, n)
			} else {
				p.doc.Epilog = append(p.doc.Epilog, n)
			}
		case p.has("<!DOCTYPE"):
			return p.fail(RuleDTD, "a document type declaration is never read")
		case p.peek() == '<' && p.doc.Root == nil && !p.has("</") && !p.has("<!"):
			if err := p.tree(); err != nil {
				return err
			}
		default:
			return p.syntax("something after or before the document element")
		}
	}
}

// declaration reads <?xml version="1.0" encoding="UTF-8" standalone="yes"?>.
func (p *parser) declaration() error {
	p.pos += len("<?xml")
	order := []string{"version", "encoding", "standalone"}
	next := 0
	for {
		spaced := p.space()
		if p.has("?>") {
			p.pos += 2
			break
		}
		if !spaced {
			return p.syntax("XML declaration without a space between its parts")
		}
		found := -1
		for i := next; i < len(order); i++ {
			if p.has(order[i]) {
				found = i
				break
			}
		}
		if found < 0 || (next == 0 && found != 0) {
			return p.syntax("malformed XML declaration")
		}
		p.pos += len(order[found])
		p.space()
		if p.peek() != '=' {
			return p.syntax("malformed XML declaration")
		}
		p.pos++
		p.space()
		quote := p.peek()
		if quote != '"' && quote != '\'' {
			return p.syntax("malformed XML declaration")
		}
		end := bytes.IndexByte(p.src[p.pos+1:], quote)
		if end < 0 {
			return p.syntax("malformed XML declaration")
		}
		value := string(p.src[p.pos+1 : p.pos+1+end])
		p.pos += end + 2
		switch order[found] {
		case "version":
			if value != "1.0" {
				return p.fail(RuleVersion, "XML %q; only 1.0 is read", value)
			}
		case "encoding":
			if !strings.EqualFold(value, "UTF-8") {
				return p.fail(RuleEncoding, "encoding %q; only UTF-8 is read", value)
			}
		case "standalone":
			if value != "yes" && value != "no" {
				return p.syntax("standalone is %q, not yes or no", value)
			}
		}
		next = found + 1
	}
	if next == 0 {
		return p.syntax("XML declaration without a version")
	}
	return nil
}

// misc reads a comment or a processing instruction.
func (p *parser) misc() (Node, error) {
	if p.has("<!--") {
		end := bytes.Index(p.src[p.pos+4:], []byte("--"))
		if end < 0 || !bytes.HasPrefix(p.src[p.pos+4+end:], []byte("-->")) {
			return nil, p.syntax("comment that does not end, or has -- in it")
		}
		text, err := p.chars(p.src[p.pos+4 : p.pos+4+end])
		if err != nil {
			return nil, err
		}
		p.pos += 4 + end + 3
		return Comment(text), nil
	}
	p.pos += 2
	target, err := p.name()
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(target, "xml") {
		return nil, p.syntax("processing instruction named %q", target)
	}
	if strings.Contains(target, ":") {
		return nil, p.fail(RuleNamespace, "colon in the processing instruction %q", target)
	}
	if p.has("?>") {
		p.pos += 2
		return Instruction{Target: target}, nil
	}
	if !p.space() {
		return nil, p.syntax("malformed processing instruction")
	}
	end := bytes.Index(p.src[p.pos:], []byte("?>"))
	if end < 0 {
		return nil, p.syntax("processing instruction that does not end")
	}
	data, err := p.chars(p.src[p.pos : p.pos+end])
	if err != nil {
		return nil, err
	}
	p.pos += end + 2
	return Instruction{Target: target, Data: data}, nil
}

// tree reads the document element and everything in it. It does not recurse,
// so that depth costs no stack.
func (p *parser) tree() error {
	var open *Element
	depth := 0
	for {
		switch {
		case p.pos >= len(p.src):
			return p.syntax("the document ends inside <%s>", open.qualified())
		case p.has("</"):
			from := p.pos
			p.pos += 2
			name, err := p.name()
			if err != nil {
				return err
			}
			p.space()
			if p.peek() != '>' {
				return p.syntax("malformed end tag </%s", name)
			}
			if name != open.qualified() {
				return p.syntax("</%s> closes <%s>", name, open.qualified())
			}
			p.pos++
			p.flush(open)
			open.innerEnd, open.end = from, p.pos
			depth--
			if open = open.Parent; open == nil {
				return nil
			}
		case p.has("<!--"), p.has("<?"):
			n, err := p.misc()
			if err != nil {
				return err
			}
			p.flush(open)
			open.Children = append(open.Children, n)
		case p.has("<![CDATA["):
			p.pos += len("<![CDATA[")
			end := bytes.Index(p.src[p.pos:], []byte("]]>"))
			if end < 0 {
				return p.syntax("CDATA section that does not end")
			}
			text, err := p.chars(p.src[p.pos : p.pos+end])
			if err != nil {
				return err
			}
			p.pos += end + 3
			p.pending.WriteString(text)
		case p.has("<!"):
			return p.fail(RuleDTD, "markup declaration")
		case p.peek() == '<':
			e, empty, err := p.startTag(open)
			if err != nil {
				return err
			}
			if open == nil {
				p.doc.Root = e
			} else {
				p.flush(open)
				open.Children = append(open.Children, e)
			}
			if empty {
				if open == nil {
					return nil
				}
				continue
			}
			if depth++; depth > p.limits.Depth {
				return p.fail(RuleLimit, "elements nested deeper than %d", p.limits.Depth)
			}
			open = e
		default:
			end := bytes.IndexByte(p.src[p.pos:], '<')
			if end < 0 {
				end = len(p.src) - p.pos
			}
			text, err := p.text(p.src[p.pos:p.pos+end], false)
			if err != nil {
				return err
			}
			p.pos += end
			p.pending.WriteString(text)
		}
	}
}

func (e *Element) qualified() string {
	if e.Name.Prefix != "" {
		return e.Name.Prefix + ":" + e.Name.Local
	}
	return e.Name.Local
}

// flush adds the text read since the last node, joined: where CDATA begins and
// ends is no part of the content.
func (p *parser) flush(e *Element) {
	if p.pending.Len() > 0 {
		e.Children = append(e.Children, Text(p.pending.String()))
		p.pending.Reset()
	}
}

// startTag reads <name a="b"> or <name a="b"/>.
func (p *parser) startTag(parent *Element) (e *Element, empty bool, err error) {
	if p.elements++; p.elements > p.limits.Elements {
		return nil, false, p.fail(RuleLimit, "more than %d elements", p.limits.Elements)
	}
	e = &Element{Parent: parent, start: p.pos, Line: p.line()}
	p.pos++
	name, err := p.name()
	if err != nil {
		return nil, false, err
	}
	e.attributes = p.pos
	var raw []Attribute // Prefix and Local only
	for {
		spaced := p.space()
		switch {
		case p.peek() == '>':
			p.pos++
			e.inner = p.pos
		case p.has("/>"):
			p.pos += 2
			e.inner, e.innerEnd, e.end, empty = p.pos, p.pos, p.pos, true
		default:
			if !spaced {
				return nil, false, p.syntax("malformed start tag <%s", name)
			}
			if len(raw)+len(e.declared) >= p.limits.Attributes {
				return nil, false, p.fail(RuleLimit, "more than %d attributes", p.limits.Attributes)
			}
			a, err := p.attribute()
			if err != nil {
				return nil, false, err
			}
			switch {
			case a.Name.Prefix == "" && a.Name.Local == "xmlns":
				err = p.declare(e, "", a.Value)
			case a.Name.Prefix == "xmlns":
				err = p.declare(e, a.Name.Local, a.Value)
			default:
				raw = append(raw, a)
			}
			if err != nil {
				return nil, false, err
			}
			continue
		}
		break
	}
	if e.Name, err = p.split(name); err != nil {
		return nil, false, err
	}
	if e.Name.Prefix == "xmlns" || e.Name.Prefix == "xml" {
		return nil, false, p.fail(RuleNamespace, "element with the prefix %s", e.Name.Prefix)
	}
	var bound bool
	if e.Name.Space, bound = e.lookup(e.Name.Prefix); !bound {
		return nil, false, p.fail(RuleNamespace, "prefix %q is not declared", e.Name.Prefix)
	}
	for _, a := range raw {
		if a.Name.Prefix != "" {
			if a.Name.Space, bound = e.lookup(a.Name.Prefix); !bound {
				return nil, false, p.fail(RuleNamespace, "prefix %q is not declared", a.Name.Prefix)
			}
		}
		if _, twice := e.Attribute(a.Name.Space, a.Name.Local); twice {
			return nil, false, p.syntax("<%s> has the attribute %s twice", name, a.Name.Local)
		}
		p.identify(e, a)
		e.Attributes = append(e.Attributes, a)
	}
	return e, empty, nil
}

// identify notes an attribute that is an id, or that some program may take
// for one.
func (p *parser) identify(e *Element, a Attribute) {
	if !strings.EqualFold(a.Name.Local, "id") || (a.Name.Space != "" && a.Name.Space != xmlNamespace) {
		return
	}
	if other := p.seen[a.Value]; other != nil && other != e && p.doc.idError == nil {
		p.doc.idError = p.fail(RuleDuplicateID, "id %q was used in line %d", a.Value, other.Line)
	}
	p.seen[a.Value] = e
	if a.Name.Space == xmlNamespace && a.Name.Local == "id" {
		if (!isName(a.Value) || strings.Contains(a.Value, ":")) && p.doc.idError == nil {
			p.doc.idError = p.fail(RuleID, "xml:id %q is not a name", a.Value)
		}
		p.doc.ids[a.Value] = e
	}
}

func (p *parser) declare(e *Element, prefix, uri string) error {
	for _, n := range e.declared {
		if n.prefix == prefix {
			return p.syntax("namespace prefix %q declared twice", prefix)
		}
	}
	switch {
	case prefix == "xml" || prefix == "xmlns" || uri == xmlNamespace || uri == "http://www.w3.org/2000/xmlns/":
		return p.fail(RuleNamespace, "xml and xmlns cannot be declared")
	case uri == "" && prefix != "":
		return p.fail(RuleNamespace, "prefix %q declared for no namespace", prefix)
	case uri != "" && !isAbsolute(uri):
		return p.fail(RuleNamespace, "namespace %.80q is not an absolute URI", uri)
	}
	if p.declared++; p.declared > p.limits.Namespaces {
		return p.fail(RuleLimit, "more than %d namespace declarations", p.limits.Namespaces)
	}
	e.declared = append(e.declared, namespace{prefix, uri})
	return nil
}

func (p *parser) attribute() (Attribute, error) {
	name, err := p.name()
	if err != nil {
		return Attribute{}, err
	}
	p.space()
	if p.peek() != '=' {
		return Attribute{}, p.syntax("attribute %s without a value", name)
	}
	p.pos++
	p.space()
	quote := p.peek()
	if quote != '"' && quote != '\'' {
		return Attribute{}, p.syntax("attribute %s without quotes", name)
	}
	p.pos++
	end := bytes.IndexByte(p.src[p.pos:], quote)
	if end < 0 {
		return Attribute{}, p.syntax("value of %s does not end", name)
	}
	value := p.src[p.pos : p.pos+end]
	if bytes.IndexByte(value, '<') >= 0 {
		return Attribute{}, p.syntax("< in the value of %s", name)
	}
	text, err := p.text(value, true)
	if err != nil {
		return Attribute{}, err
	}
	p.pos += end + 1
	n, err := p.split(name)
	return Attribute{Name: n, Value: text}, err
}

func (p *parser) split(name string) (Name, error) {
	prefix, local, found := strings.Cut(name, ":")
	if !found {
		return Name{Local: name}, nil
	}
	if prefix == "" || strings.Contains(local, ":") || !isName(local) {
		return Name{}, p.fail(RuleNamespace, "name %q", name)
	}
	return Name{Prefix: prefix, Local: local}, nil
}
