package xmldsig

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// isChar reports whether a document may contain r (XML 1.0, Char).
func isChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || (r >= 0x20 && r <= 0xd7ff) ||
		(r >= 0xe000 && r <= 0xfffd) || (r >= 0x10000 && r <= 0x10ffff)
}

// isNameStart and isNameRest are NameStartChar and NameChar of XML 1.0, fifth
// edition.
func isNameStart(r rune) bool {
	switch {
	case r == ':' || r == '_' || (r >= 'A' && r <= 'Z') || (r >= 'a' && r <= 'z'):
		return true
	case r < 0xc0:
		return false
	}
	for _, in := range [][2]rune{{0xc0, 0xd6}, {0xd8, 0xf6}, {0xf8, 0x2ff}, {0x370, 0x37d}, {0x37f, 0x1fff}, {0x200c, 0x200d},
		{0x2070, 0x218f}, {0x2c00, 0x2fef}, {0x3001, 0xd7ff}, {0xf900, 0xfdcf}, {0xfdf0, 0xfffd}, {0x10000, 0xeffff}} {
		if r >= in[0] && r <= in[1] {
			return true
		}
	}
	return false
}

func isNameRest(r rune) bool {
	return isNameStart(r) || r == '-' || r == '.' || (r >= '0' && r <= '9') || r == 0xb7 ||
		(r >= 0x300 && r <= 0x36f) || (r >= 0x203f && r <= 0x2040)
}

func isName(s string) bool {
	for i, r := range s {
		if (i == 0 && !isNameStart(r)) || !isNameRest(r) {
			return false
		}
	}
	return s != ""
}

func (p *parser) name() (string, error) {
	from := p.pos
	for p.pos < len(p.src) {
		r, size := utf8.DecodeRune(p.src[p.pos:])
		if p.pos == from && !isNameStart(r) || !isNameRest(r) {
			break
		}
		p.pos += size
	}
	if p.pos == from {
		return "", p.syntax("a name is missing")
	}
	return string(p.src[from:p.pos]), nil
}

// chars checks raw characters and makes all line ends \n.
func (p *parser) chars(raw []byte) (string, error) {
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if !isChar(r) {
			p.pos += i
			return "", p.syntax("character %U", r)
		}
		i += size
	}
	if bytes.IndexByte(raw, '\r') < 0 {
		return string(raw), nil
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(raw)), nil
}

// text resolves the references in character data or an attribute's value.
// In a value, white space as it stands becomes a space, while white space
// written as a character reference stays (XML 1.0, 3.3.3).
func (p *parser) text(raw []byte, value bool) (string, error) {
	if !value && bytes.Contains(raw, []byte("]]>")) {
		return "", p.syntax("]]> outside a CDATA section")
	}
	var out strings.Builder
	for len(raw) > 0 {
		amp := bytes.IndexByte(raw, '&')
		plain := raw
		if amp >= 0 {
			plain = raw[:amp]
		}
		s, err := p.chars(plain)
		if err != nil {
			return "", err
		}
		if value {
			s = strings.NewReplacer("\n", " ", "\t", " ").Replace(s)
		}
		out.WriteString(s)
		if amp < 0 {
			break
		}
		semi := bytes.IndexByte(raw[amp:], ';')
		if semi < 0 {
			return "", p.syntax("& that begins no reference")
		}
		r, err := p.reference(string(raw[amp+1 : amp+semi]))
		if err != nil {
			return "", err
		}
		out.WriteRune(r)
		raw = raw[amp+semi+1:]
	}
	return out.String(), nil
}

func (p *parser) reference(name string) (rune, error) {
	switch name {
	case "amp":
		return '&', nil
	case "lt":
		return '<', nil
	case "gt":
		return '>', nil
	case "quot":
		return '"', nil
	case "apos":
		return '\'', nil
	}
	digits, isNumber := strings.CutPrefix(name, "#")
	if !isNumber {
		if !isName(name) {
			return 0, p.syntax("& that begins no reference")
		}
		return 0, p.fail(RuleEntity, "entity &%.40s; is never resolved", name)
	}
	base := 10
	if hex, ok := strings.CutPrefix(digits, "x"); ok {
		digits, base = hex, 16
	}
	if digits == "" || strings.ContainsAny(digits, "+-_") {
		return 0, p.syntax("malformed character reference")
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || !isChar(rune(n)) || n > utf8.MaxRune {
		return 0, p.syntax("character reference &%.40s;", name)
	}
	return rune(n), nil
}

// isAbsolute reports whether s is an absolute URI: canonical XML is not
// defined for documents with relative namespaces. Of the odder URIs it knows
// only what namespaces use, and takes no others.
func isAbsolute(s string) bool { return absolute.MatchString(s) && strings.Count(s, "#") <= 1 }

var absolute = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:` + // scheme
	`(//[A-Za-z0-9.-]*(:[0-9]{1,5})?(/|\?|#|$))?` + // host and port
	`([A-Za-z0-9._~!$&'()*+,;=:@?#-]([A-Za-z0-9._~!$&'()*+,;=:@/?#-]|%[0-9A-Fa-f]{2})*)?$`)
