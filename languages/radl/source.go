package radl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"croft/languages"
	"croft/request"
)

// Bounds on documents.
const (
	maxBytes = 32 << 20 // with the values of inputs
	maxDepth = 64       // of features within features, and of JSON
	// maxProblems is how many mistakes of one document are told.
	maxProblems = 100
)

// Source is the text of a document, with where its parts stand.
type Source struct {
	text  []byte
	lines []int // offsets at which lines of the text as written start
	// shifts are where values of inputs stand in text instead of what was
	// written, and where text goes on behind them.
	shifts []shift
}

// shift says what an offset of the text, and those after it, are in the
// document as written: all the same one, or one after the other.
type shift struct {
	from, at int
	value    bool
}

// written is the offset in the document as written, of one in the text.
func (s *Source) written(offset int) int {
	i := sort.Search(len(s.shifts), func(i int) bool { return s.shifts[i].from > offset })
	switch {
	case i == 0:
		return offset
	case s.shifts[i-1].value:
		return s.shifts[i-1].at
	}
	return s.shifts[i-1].at + offset - s.shifts[i-1].from
}

// Place is where an offset of the text is, in the document as it was written.
func (s *Source) Place(offset int) request.Place {
	at := s.written(offset)
	line := sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > at })
	if line == 0 {
		return request.Place{Line: 1, Column: 1}
	}
	return request.Place{Line: line, Column: at - s.lines[line-1] + 1}
}

// newSource takes a document's text, with values in place of its parameters
// @input.NAME@ where they are given. In a document in JSON they are replaced
// later, within its values.
func newSource(document []byte, inputs map[string]any, replace bool) (*Source, []languages.Problem) {
	s := &Source{text: document, lines: make([]int, 1, 64)}
	for i := 0; ; {
		n := bytes.IndexByte(document[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
		s.lines = append(s.lines, i)
	}
	if !replace || !bytes.Contains(document, inputMark) {
		return s, nil
	}
	return s, s.replaceInputs(document, inputs)
}

var inputMark = []byte("@input.")

// replaceInputs puts values in place of parameters, before anything is read,
// as clients of the Infrastructure Manager do.
func (s *Source) replaceInputs(document []byte, inputs map[string]any) []languages.Problem {
	var out []byte
	var problems []languages.Problem
	var shifts []shift
	missing := map[string]bool{}
	done := 0
	for {
		at := bytes.Index(document[done:], inputMark)
		if at < 0 {
			break
		}
		at += done
		name, length := inputName(document[at:])
		if name == "" {
			out = append(out, document[done:at+len(inputMark)]...)
			done = at + len(inputMark)
			continue
		}
		text, err := inputText(inputs, name)
		if err != nil {
			if !missing[name] {
				problems = append(problems, languages.Problem{Place: s.Place(at), What: err.Error(), Hint: inputHint(inputs, name)})
			}
			missing[name] = true
		}
		out = append(out, document[done:at]...)
		done = at + length
		shifts = append(shifts, shift{len(out), at, true}, shift{len(out) + len(text), done, false})
		out = append(out, text...)
		if len(out) > maxBytes {
			return append(problems, languages.Problem{Place: request.Place{Line: 1, Column: 1}, What: fmt.Sprintf("the document is longer than %d bytes with the values of its inputs", maxBytes)})
		}
	}
	s.text, s.shifts = append(out, document[done:]...), shifts
	return problems
}

// inputName reads the name of a parameter at the start of a text, and how
// long the parameter is; "" if it is none.
func inputName(text []byte) (string, int) {
	rest := text[len(inputMark):]
	end := bytes.IndexByte(rest, '@')
	if end <= 0 || end > 256 || bytes.ContainsAny(rest[:end], "\n'\"") {
		return "", 0
	}
	return string(rest[:end]), len(inputMark) + end + 1
}

// inputText is the value of an input as it is put into documents.
func inputText(inputs map[string]any, name string) (string, error) {
	v, ok := inputs[name]
	if !ok {
		return "", fmt.Errorf("the parameter %s has no value", name)
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v], nil
	case int:
		return strconv.Itoa(v), nil
	case json.Number:
		return v.String(), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case []any:
		var list []string
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return "", fmt.Errorf("the value of the parameter %s is a list of other than texts", name)
			}
			list = append(list, "'"+strings.ReplaceAll(s, "'", `\'`)+"'")
		}
		return "[" + strings.Join(list, ", ") + "]", nil
	}
	return "", fmt.Errorf("the value of the parameter %s is neither a text nor a number", name)
}

func inputHint(inputs map[string]any, name string) string {
	hint := "give one: --input " + name + "=VALUE, or the option croft_inputs"
	if len(inputs) > 0 {
		names := slices.Sorted(maps.Keys(inputs))
		if len(names) > 10 {
			names = names[:10]
		}
		hint += "; given are " + strings.Join(names, ", ")
	}
	return hint
}
