package rspec

import (
	"bytes"
	"errors"
	"html"
	"regexp"
	"unicode/utf8"
)

// unescapeTwice undoes what clients do that escape a document as HTML before
// their XML-RPC library escapes it again.
func unescapeTwice(document []byte) []byte {
	for range 2 {
		if !isEscaped(document) {
			break
		}
		document = []byte(html.UnescapeString(string(document)))
	}
	return document
}

// isEscaped reports whether a document starts with an escaped "<".
func isEscaped(document []byte) bool {
	document = bytes.TrimSpace(document)
	return bytes.HasPrefix(document, []byte("&lt;")) || bytes.HasPrefix(document, []byte("&amp;lt;"))
}

var byteOrderMark = []byte("\ufeff")

// toUTF8 returns a document as UTF-8 without byte order mark. What its
// declaration says about the encoding counts only if it is not UTF-8 already:
// XML-RPC hands over characters, whatever the document was on disk.
func toUTF8(document []byte) ([]byte, error) {
	if bytes.HasPrefix(document, []byte{0xfe, 0xff}) || bytes.HasPrefix(document, []byte{0xff, 0xfe}) {
		return nil, errors.New("document in UTF-16")
	}
	if utf8.Valid(document) {
		return bytes.TrimPrefix(document, byteOrderMark), nil
	}
	if !latin1.Match(document[:min(len(document), 200)]) {
		return nil, errors.New("document is not valid UTF-8")
	}
	converted := make([]byte, 0, len(document)+len(document)/16)
	for _, c := range document {
		converted = utf8.AppendRune(converted, rune(c))
	}
	return converted, nil
}

var (
	declaration = regexp.MustCompile(`^\s*<\?xml\s[^?>]*\?>`)
	latin1      = regexp.MustCompile(`(?i)^\s*<\?xml\s[^?>]*encoding\s*=\s*["'](iso-8859-1|latin-?1)["']`)
)

// cutDeclaration takes the XML declaration off a document. XML 1.1 is read
// like 1.0: what 1.1 adds (control characters, further line ends) no RSpec
// has, and encoding/xml refuses.
func cutDeclaration(document []byte) (text []byte, declared string) {
	d := declaration.Find(document)
	return document[len(d):], string(d)
}

// detect reports whether a document looks like an RSpec of whatever version,
// well-formed or not: its first element is called rspec.
func detect(document []byte) bool {
	head := document[:min(len(document), 64<<10)]
	head = unescapeTwice(head)
	head = bytes.TrimSpace(bytes.TrimPrefix(head, byteOrderMark))
	for len(head) > 0 {
		var end []byte
		switch {
		case bytes.HasPrefix(head, []byte("<?")):
			end = []byte("?>")
		case bytes.HasPrefix(head, []byte("<!--")):
			end = []byte("-->")
		case bytes.HasPrefix(head, []byte("<!")):
			return doctype.Match(head)
		default:
			return rootTag.Match(head)
		}
		i := bytes.Index(head, end)
		if i < 0 {
			return false
		}
		head = bytes.TrimSpace(head[i+len(end):])
	}
	return false
}

var (
	// Text before the first tag is an error that is for the reader to tell; a
	// few words only, so that no other language's document is taken.
	rootTag = regexp.MustCompile(`(?i)^[^<:=#{}\[\]()]{0,100}<([\w.-]+:)?rspec[\s/>]`)
	doctype = regexp.MustCompile(`(?i)^<!DOCTYPE\s+([\w.-]+:)?rspec[\s\[>]`)
)
