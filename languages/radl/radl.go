// Package radl is the Resource and Application Description Language of the
// Infrastructure Manager (IM): networks, systems, recipes, and how many
// machines of each system there are to be, in a text form and in JSON.
//
// It takes what the specification says and what the reference parser
// (grycap/RADL 1.3.5) takes. Where the two give a document different meanings,
// the reference parser's counts: 512M are 512000000 bytes. What slips through
// that parser only by accident is refused: characters that it skips (-1 read
// as 1), a stray parenthesis, fractions of machines, keys that stand twice in
// one JSON object, values and names of other types there than the text form has, ports above 65535, mapped ranges of ports.
package radl

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"croft/languages"
	"croft/request"
)

// MediaType labels documents in the text form and in JSON alike.
const MediaType = "application/radl"

// Parse reads a document in either form and checks it as the reference parser
// does. The values of inputs stand for parameters @input.NAME@. The error is
// an *languages.Error with all mistakes.
func Parse(document []byte, inputs map[string]any) (*Document, *Source, error) {
	d, s, problems := parse(document, inputs)
	if len(problems) > 0 {
		return nil, nil, &languages.Error{Problems: inOrder(problems)}
	}
	return d, s, nil
}

func parse(document []byte, inputs map[string]any) (*Document, *Source, []languages.Problem) {
	if len(document) > maxBytes {
		return nil, nil, []languages.Problem{{Place: request.Place{Line: 1, Column: 1}, What: fmt.Sprintf("the document is longer than %d bytes", maxBytes)}}
	}
	isJSON := isJSON(document)
	s, problems := newSource(document, inputs, !isJSON)
	if at := invalidUTF8(s.text); at >= 0 {
		problems = append(problems, languages.Problem{Place: s.Place(at), What: "a byte that is no UTF-8"})
	}
	if len(problems) > 0 {
		return nil, s, problems
	}
	var d *Document
	if isJSON {
		d, problems = parseJSON(s, inputs)
	} else {
		d, problems = parseText(s)
	}
	problems = append(problems, s.check(d, len(problems) == 0)...)
	return d, s, problems
}

// invalidUTF8 is where a text stops to be UTF-8; -1 if it does not.
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
}

// isJSON reports whether a document is meant to be in the JSON form.
func isJSON(document []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(document, []byte("\ufeff")), " \t\r\n")
	return len(text) > 0 && (text[0] == '[' || text[0] == '{')
}

// Detect reports whether a document looks like RADL: after comments comes a
// keyword, or a JSON list of objects with classes.
func detect(document []byte) bool {
	if isJSON(document) {
		head := document[:min(len(document), 64<<10)]
		if text := bytes.TrimLeft(head, " \t\r\n"); text[0] != '[' {
			return false
		}
		at := bytes.Index(head, []byte(`"class"`))
		if at < 0 {
			return false
		}
		rest := bytes.TrimLeft(head[at+len(`"class"`):], " \t\r\n:")
		for _, class := range [...]string{"network", "system", "ansible", "description", "configure", "contextualize", "deploy"} {
			if bytes.HasPrefix(rest, []byte(`"`+class+`"`)) {
				return true
			}
		}
		return false
	}
	s := scanner{text: document}
	if s.next(); s.token != tWord {
		return false
	}
	word := string(s.word())
	switch word {
	case "network", "system", "ansible", "description", "configure", "deploy":
		s.next()
		return s.token == tWord
	case "contextualize":
		s.next()
		return s.token == tOpen || s.token == tNumber
	}
	return false
}

// Empty reports whether a text has nothing but comments: the smallest RADL
// document, which asks for nothing.
func Empty(document []byte) bool {
	s := scanner{text: document}
	s.next()
	return s.token == tEnd
}
