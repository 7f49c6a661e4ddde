package rspec

import (
	"bytes"
	"slices"
	"strings"
)

// attrSpan is where an attribute stands in a start tag.
type attrSpan struct {
	name                 string // with its prefix
	start                int    // of the name
	valueStart, valueEnd int    // between the quotes
}

// attrSpans finds the attributes of a start tag that is known to be
// well-formed.
func attrSpans(tag []byte) []attrSpan {
	var found []attrSpan
	i := 1
	for i < len(tag) && !isBlank(tag[i]) && tag[i] != '>' && tag[i] != '/' {
		i++
	}
	for {
		for i < len(tag) && isBlank(tag[i]) {
			i++
		}
		start := i
		for i < len(tag) && !isBlank(tag[i]) && tag[i] != '=' && tag[i] != '>' && tag[i] != '/' {
			i++
		}
		name := string(tag[start:i])
		for i < len(tag) && (isBlank(tag[i]) || tag[i] == '=') {
			i++
		}
		if name == "" || i >= len(tag) || tag[i] != '"' && tag[i] != '\'' {
			return found
		}
		length := bytes.IndexByte(tag[i+1:], tag[i])
		if length < 0 {
			return found
		}
		a := attrSpan{name: name, start: start, valueStart: i + 1, valueEnd: i + 1 + length}
		found = append(found, a)
		i = a.valueEnd + 1
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// edit replaces the bytes [from, to) of a text.
type edit struct {
	from, to int
	with     string
}

// edits is a set of changes to one text. They may be added in any order;
// insertions at one offset keep the order in which they were added. An edit
// inside of a removed stretch is dropped.
type edits []edit

func (es *edits) insert(at int, text string) {
	if text != "" {
		*es = append(*es, edit{at, at, text})
	}
}

func (es *edits) replace(from, to int, with string) { *es = append(*es, edit{from, to, with}) }

func (es *edits) remove(from, to int) { es.replace(from, to, "") }

// apply makes the changed text of the stretch [from, to).
func (es edits) apply(text []byte, from, to int) []byte {
	sorted := slices.Clone(es)
	slices.SortStableFunc(sorted, func(a, b edit) int {
		if a.from == b.from { // insertions first: they belong to what stands before
			return min(a.to-a.from, 1) - min(b.to-b.from, 1)
		}
		return a.from - b.from
	})
	var out bytes.Buffer
	out.Grow(to - from + 64*len(sorted))
	at := from
	for _, e := range sorted {
		if e.from < at || e.to > to {
			continue
		}
		out.Write(text[at:e.from])
		out.WriteString(e.with)
		at = e.to
	}
	out.Write(text[at:to])
	return out.Bytes()
}

// quote writes a value for use between double quotes.
func quote(value string) string {
	legal := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\ufffe' || r == '\uffff' {
			return '\ufffd'
		}
		return r
	}, value)
	return quoting.Replace(legal)
}

var quoting = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;",
	"\t", "&#9;", "\n", "&#10;", "\r", "&#13;")
