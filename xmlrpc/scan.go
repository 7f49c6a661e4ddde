package xmlrpc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DecodeError says what is wrong with a document, and where.
type DecodeError struct {
	Code         int // a fault code: NotWellFormed, InvalidXMLRPC, …
	Line, Column int // counted from 1, columns in characters
	Place        string
	Text         string
}

func (e *DecodeError) Error() string {
	at := fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	if e.Place != "" {
		at += " (" + e.Place + ")"
	}
	return at + ": " + e.Text
}

// scanner takes an XML document apart. It knows as much XML as XML-RPC needs.
type scanner struct {
	doc []byte // UTF-8, all characters checked
	pos int
}

// tag is a start or end tag; name is without prefix.
type tag struct {
	name  []byte
	at    int // where it begins
	end   bool
	empty bool // <name/>
}

func (s *scanner) fail(at, code int, format string, args ...any) *DecodeError {
	before := s.doc[:min(at, len(s.doc))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return &DecodeError{Code: code, Line: line, Column: column, Text: fmt.Sprintf(format, args...)}
}

func (s *scanner) malformed(at int, format string, args ...any) *DecodeError {
	return s.fail(at, NotWellFormed, format, args...)
}

// newScanner checks the characters of a document and brings it to UTF-8.
func newScanner(doc []byte) (*scanner, error) {
	s := &scanner{doc: doc}
	if bytes.HasPrefix(doc, []byte("\xfe\xff")) || bytes.HasPrefix(doc, []byte("\xff\xfe")) {
		return nil, s.fail(0, UnsupportedEncoding, "UTF-16; use UTF-8")
	}
	doc = bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf"))
	// Some clients have white space before the XML declaration.
	doc = bytes.TrimLeft(doc, " \t\r\n")
	s.pos = len(s.doc) - len(doc)
	if bytes.HasPrefix(doc, []byte("<?xml")) && len(doc) > 5 && isSpace(doc[5]) {
		if err := s.declaration(); err != nil {
			return nil, err
		}
	}
	return s, s.checkCharacters()
}

// declaration reads <?xml version="1.0" encoding="…"?>.
func (s *scanner) declaration() error {
	start := s.pos
	end := bytes.Index(s.doc[start:], []byte("?>"))
	if end < 0 {
		return s.malformed(start, "the XML declaration does not end")
	}
	s.pos = start + end + 2
	if version := pseudoAttribute(s.doc[start:start+end], "version"); version != "1.0" && version != "1.1" {
		return s.malformed(start, "version %q of XML is not known", shorten(version))
	}
	switch name := strings.ToLower(pseudoAttribute(s.doc[start:start+end], "encoding")); name {
	case "", "utf-8", "utf8":
	case "us-ascii", "ascii":
		// Perl's RPC::XML says so and sends UTF-8.
	case "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1":
		s.doc = append(s.doc[:s.pos:s.pos], latin1(s.doc[s.pos:])...)
	default:
		return s.fail(start, UnsupportedEncoding, "encoding %q is not known; use UTF-8", shorten(name))
	}
	return nil
}

// pseudoAttribute finds name="value" in an XML declaration.
func pseudoAttribute(decl []byte, name string) string {
	_, after, ok := bytes.Cut(decl, []byte(name))
	if !ok {
		return ""
	}
	after = bytes.TrimLeft(after, " \t\r\n=")
	if len(after) == 0 || after[0] != '"' && after[0] != '\'' {
		return ""
	}
	value, _, _ := bytes.Cut(after[1:], after[:1])
	return string(value)
}

// latin1 brings ISO-8859-1 to UTF-8.
func latin1(text []byte) []byte {
	high := 0
	for _, b := range text {
		if b >= utf8.RuneSelf {
			high++
		}
	}
	out := make([]byte, 0, len(text)+high)
	for _, b := range text {
		out = utf8.AppendRune(out, rune(b))
	}
	return out
}

// checkCharacters makes sure that all is UTF-8 and allowed in XML, so that
// nothing later on has to look.
func (s *scanner) checkCharacters() error {
	for i, b := range s.doc {
		if b < ' ' && b != '\n' && b != '\t' && b != '\r' {
			return s.fail(i, InvalidCharacter, "character %U is not allowed in XML", rune(b))
		}
	}
	if !utf8.Valid(s.doc) {
		for i := 0; i < len(s.doc); {
			r, n := utf8.DecodeRune(s.doc[i:])
			if r == utf8.RuneError && n == 1 {
				return s.fail(i, InvalidCharacter, "byte 0x%02x is not UTF-8, and no other encoding is declared", s.doc[i])
			}
			i += n
		}
	}
	for from := 0; ; {
		i := bytes.Index(s.doc[from:], []byte("\xef\xbf"))
		if i < 0 {
			return nil
		}
		from += i
		if last := s.doc[from+2]; last >= 0xbe {
			return s.fail(from, InvalidCharacter, "character U+FF%02X is not allowed in XML", last+0x40)
		}
		from += 3
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// next returns the next tag; only white space, comments and processing
// instructions may be before it. At the end of the document it returns a zero
// tag.
func (s *scanner) next() (tag, error) {
	for {
		for s.pos < len(s.doc) && isSpace(s.doc[s.pos]) {
			s.pos++
		}
		if s.pos == len(s.doc) {
			return tag{at: s.pos}, nil
		}
		if s.doc[s.pos] != '<' {
			if !bytes.ContainsRune(s.doc[:s.pos], '<') {
				return tag{}, s.malformed(s.pos, "no XML: it begins with text")
			}
			return tag{}, s.fail(s.pos, InvalidXMLRPC, "text where only an element may be")
		}
		skipped, err := s.skipMarkup()
		if err != nil {
			return tag{}, err
		}
		if !skipped {
			return s.tag()
		}
	}
}

// skipMarkup passes over a comment or processing instruction at pos. It
// refuses a document type declaration.
func (s *scanner) skipMarkup() (bool, error) {
	rest := s.doc[s.pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		n := bytes.Index(rest[4:], []byte("--"))
		if n < 0 || !bytes.HasPrefix(rest[4+n:], []byte("-->")) {
			return false, s.malformed(s.pos, "a comment does not end, or has -- in it")
		}
		s.pos += 4 + n + 3
	case bytes.HasPrefix(rest, []byte("<?")):
		n, start := bytes.Index(rest, []byte("?>")), s.pos
		s.pos += 2
		if target := s.name(); n < 3 || target == nil || bytes.EqualFold(target, []byte("xml")) {
			return false, s.malformed(start, "a processing instruction has no name or does not end")
		}
		s.pos = start + n + 2
	case bytes.HasPrefix(rest, []byte("<![CDATA[")):
		return false, s.fail(s.pos, InvalidXMLRPC, "text where only an element may be")
	case bytes.HasPrefix(rest, []byte("<!")):
		return false, s.fail(s.pos, InvalidXMLRPC, "a document type declaration is not accepted")
	default:
		return false, nil
	}
	return true, nil
}

// tag reads the tag at pos.
func (s *scanner) tag() (tag, error) {
	t := tag{at: s.pos}
	s.pos++
	if s.pos < len(s.doc) && s.doc[s.pos] == '/' {
		t.end = true
		s.pos++
	}
	name := s.name()
	if name == nil {
		return t, s.malformed(t.at, "< without the name of an element; text has &lt; for it")
	}
	t.name = name[bytes.IndexByte(name, ':')+1:]
	for {
		spaceFrom := s.pos
		for s.pos < len(s.doc) && isSpace(s.doc[s.pos]) {
			s.pos++
		}
		if s.pos == len(s.doc) {
			return t, s.malformed(t.at, "the tag does not end")
		}
		switch b := s.doc[s.pos]; {
		case b == '>':
			s.pos++
			return t, nil
		case b == '/' && !t.end && s.pos+1 < len(s.doc) && s.doc[s.pos+1] == '>':
			s.pos += 2
			t.empty = true
			return t, nil
		case t.end || s.pos == spaceFrom || !isNameStart(b):
			return t, s.malformed(s.pos, "a tag cannot have %q here", rune(b))
		}
		if err := s.attribute(); err != nil {
			return t, err
		}
	}
}

// attribute passes over name="value".
func (s *scanner) attribute() error {
	at := s.pos
	if s.name() == nil {
		return s.malformed(at, "a strange name of an attribute")
	}
	for s.pos < len(s.doc) && isSpace(s.doc[s.pos]) {
		s.pos++
	}
	if s.pos == len(s.doc) || s.doc[s.pos] != '=' {
		return s.malformed(at, "an attribute without value")
	}
	s.pos++
	for s.pos < len(s.doc) && isSpace(s.doc[s.pos]) {
		s.pos++
	}
	if s.pos == len(s.doc) || s.doc[s.pos] != '"' && s.doc[s.pos] != '\'' {
		return s.malformed(at, "an attribute whose value is not in quotes")
	}
	quote := s.doc[s.pos]
	s.pos++
	end := bytes.IndexByte(s.doc[s.pos:], quote)
	if end < 0 {
		return s.malformed(at, "the value of an attribute does not end")
	}
	value := s.doc[s.pos : s.pos+end]
	if bytes.IndexByte(value, '<') >= 0 {
		return s.malformed(at, "< in the value of an attribute")
	}
	if err := s.unescape(new(strings.Builder), value, s.pos); err != nil {
		return err
	}
	s.pos += end + 1
	return nil
}

// name reads a name, with or without a prefix. It returns nil when there is
// none. All names of XML-RPC are ASCII.
func (s *scanner) name() []byte {
	start := s.pos
	for s.pos < len(s.doc) && isNameByte(s.doc[s.pos]) {
		s.pos++
	}
	name := s.doc[start:s.pos]
	prefix, local, prefixed := bytes.Cut(name, []byte(":"))
	if !isNCName(prefix) || prefixed && !isNCName(local) {
		return nil
	}
	return name
}

// isNCName reports whether bytes that can be in names are one without a colon.
func isNCName(name []byte) bool {
	return len(name) > 0 && isNameStart(name[0]) && bytes.IndexByte(name, ':') < 0
}

func isNameStart(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_'
}

func isNameByte(b byte) bool {
	return isNameStart(b) || '0' <= b && b <= '9' || b == ':' || b == '-' || b == '.'
}

// text reads character data up to the next tag, of at most limit bytes.
func (s *scanner) text(limit int64) (string, error) {
	var joined strings.Builder
	for first := true; ; first = false {
		start := s.pos
		n := bytes.IndexByte(s.doc[start:], '<')
		if n < 0 {
			return "", s.malformed(len(s.doc), "the document ends within an element")
		}
		raw := s.doc[start : start+n]
		s.pos += n
		if i := bytes.Index(raw, []byte("]]>")); i >= 0 {
			return "", s.malformed(start+i, "]]> in text; write ]]&gt;")
		}
		last := s.pos+1 == len(s.doc) || s.doc[s.pos+1] != '!' && s.doc[s.pos+1] != '?'
		references := bytes.Count(raw, []byte("&"))
		if first && last && references == 0 && bytes.IndexByte(raw, '\r') < 0 {
			if int64(n) > limit {
				return "", &LimitError{What: "bytes in a string", Limit: limit}
			}
			return string(raw), nil
		}
		// A reference is at least three bytes longer than what it stands
		// for, so this is enough and, for escaped XML, hardly too much.
		joined.Grow(max(0, n-3*references))
		if err := s.unescape(&joined, raw, start); err != nil {
			return "", err
		}
		if !last {
			if err := s.section(&joined); err != nil {
				return "", err
			}
		}
		if int64(joined.Len()) > limit {
			return "", &LimitError{What: "bytes in a string", Limit: limit}
		}
		if last {
			return joined.String(), nil
		}
	}
}

// section reads the CDATA section, comment or processing instruction at pos.
func (s *scanner) section(to *strings.Builder) error {
	const begin = "<![CDATA["
	if !bytes.HasPrefix(s.doc[s.pos:], []byte(begin)) {
		_, err := s.skipMarkup()
		return err
	}
	start := s.pos + len(begin)
	n := bytes.Index(s.doc[start:], []byte("]]>"))
	if n < 0 {
		return s.malformed(s.pos, "a CDATA section does not end")
	}
	s.pos = start + n + 3
	writeLines(to, s.doc[start:start+n])
	return nil
}

// unescape writes character data with its references replaced; at is where
// raw stands in the document.
func (s *scanner) unescape(to *strings.Builder, raw []byte, at int) error {
	for {
		i := bytes.IndexByte(raw, '&')
		if i < 0 {
			writeLines(to, raw)
			return nil
		}
		writeLines(to, raw[:i])
		at += i
		raw = raw[i:]
		const longest = 12
		end := bytes.IndexByte(raw[:min(len(raw), longest)], ';')
		if end < 0 {
			return s.malformed(at, "& that begins no reference; text has &amp; for it")
		}
		switch name := raw[1:end]; string(name) {
		case "lt":
			to.WriteByte('<')
		case "gt":
			to.WriteByte('>')
		case "amp":
			to.WriteByte('&')
		case "quot":
			to.WriteByte('"')
		case "apos":
			to.WriteByte('\'')
		default:
			r, ok := charRef(name)
			if !ok {
				return s.malformed(at, "&%s; is not known: there are only lt, gt, amp, quot, apos and numbers of characters", name)
			}
			if !isCharacter(r) {
				return s.fail(at, InvalidCharacter, "character %U is not allowed in XML", r)
			}
			to.WriteRune(r)
		}
		at += end + 1
		raw = raw[end+1:]
	}
}

// charRef reads #38 or #x26.
func charRef(name []byte) (rune, bool) {
	digits, ok := bytes.CutPrefix(name, []byte("#"))
	if !ok {
		return 0, false
	}
	base := 10
	if hex, ok := bytes.CutPrefix(digits, []byte("x")); ok {
		base, digits = 16, hex
	}
	if len(digits) == 0 || digits[0] == '+' || digits[0] == '-' || bytes.IndexByte(digits, '_') >= 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits), base, 31)
	return rune(n), err == nil
}

// isCharacter reports whether XML 1.0 can hold a character.
func isCharacter(r rune) bool {
	switch {
	case r < ' ':
		return r == '\t' || r == '\n' || r == '\r'
	case r < 0xd800:
		return true
	}
	return 0xe000 <= r && r <= 0xfffd || 0x10000 <= r && r <= utf8.MaxRune
}

// writeLines writes text with its line ends normalized (XML 1.0, 2.11).
func writeLines(to *strings.Builder, raw []byte) {
	for {
		i := bytes.IndexByte(raw, '\r')
		if i < 0 {
			to.Write(raw)
			return
		}
		to.Write(raw[:i])
		to.WriteByte('\n')
		raw = raw[i+1:]
		if len(raw) > 0 && raw[0] == '\n' {
			raw = raw[1:]
		}
	}
}
