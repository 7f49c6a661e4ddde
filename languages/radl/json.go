package radl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"croft/languages"
)

// jsonValue is a value of a JSON document, with where it stands.
type jsonValue struct {
	at     int
	text   string
	number string
	word   string // true, false or null
	list   []jsonValue
	object []member
	kind   byte // one of 's', 'n', 'w', '[', '{'
}

type member struct {
	at    int
	key   string
	value jsonValue
}

func (v *jsonValue) get(key string) *jsonValue {
	for i := range v.object {
		if v.object[i].key == key {
			return &v.object[i].value
		}
	}
	return nil
}

// jsonReader reads a document in the JSON form.
type jsonReader struct {
	source   *Source
	inputs   map[string]any
	decoder  *json.Decoder
	problems []languages.Problem
}

func parseJSON(s *Source, inputs map[string]any) (*Document, []languages.Problem) {
	r := &jsonReader{source: s, inputs: inputs, decoder: json.NewDecoder(bytes.NewReader(s.text))}
	r.decoder.UseNumber()
	root, err := r.value(0)
	if err == nil {
		if at := r.skip(); at < len(s.text) {
			err = &jsonError{at, "something after the end of the list"}
		}
	}
	if err != nil {
		at, what := int(r.decoder.InputOffset()), err.Error()
		var mine *jsonError
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &mine):
			at, what = mine.at, mine.what
		case errors.As(err, &syntax):
			at = max(int(syntax.Offset)-1, 0)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			at, what = len(s.text), "the document ends too soon"
		}
		r.problem(at, "not JSON: "+what, "")
		return &Document{}, r.problems
	}
	return r.document(&root), r.problems
}

type jsonError struct {
	at   int
	what string
}

func (e *jsonError) Error() string { return e.what }

func (r *jsonReader) problem(at int, what, hint string) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, languages.Problem{Place: r.source.Place(at), What: what, Hint: hint})
	}
}

// skip is where the next token starts.
func (r *jsonReader) skip() int {
	at := int(r.decoder.InputOffset())
	for at < len(r.source.text) && strings.IndexByte(" \t\r\n:,", r.source.text[at]) >= 0 {
		at++
	}
	return at
}

func (r *jsonReader) value(depth int) (jsonValue, error) {
	v := jsonValue{at: r.skip()}
	token, err := r.decoder.Token()
	if err != nil {
		return v, err
	}
	if depth > maxDepth {
		return v, &jsonError{v.at, fmt.Sprintf("nested more than %d deep", maxDepth)}
	}
	switch token := token.(type) {
	case string:
		v.kind, v.text = 's', token
	case json.Number:
		v.kind, v.number = 'n', token.String()
	case bool:
		v.kind, v.word = 'w', strconv.FormatBool(token)
	case nil:
		v.kind, v.word = 'w', "null"
	case json.Delim:
		v.kind = byte(token)
		keys := map[string]bool{}
		for r.decoder.More() {
			var m member
			if v.kind == '{' {
				m.at = r.skip()
				key, err := r.decoder.Token()
				if err != nil {
					return v, err
				}
				m.key, _ = key.(string)
				if keys[m.key] {
					r.problem(m.at, fmt.Sprintf("%q stands twice in one object", shorten(m.key)), "")
				}
				keys[m.key] = true
			}
			if m.value, err = r.value(depth + 1); err != nil {
				return v, err
			}
			if v.kind == '{' {
				v.object = append(v.object, m)
			} else {
				v.list = append(v.list, m.value)
			}
		}
		if _, err := r.decoder.Token(); err != nil {
			return v, err
		}
	}
	return v, r.input(&v)
}

// input puts the values of inputs in place of parameters. A text that is
// nothing but a parameter becomes what the value is, also a number.
func (r *jsonReader) input(v *jsonValue) error {
	if v.kind != 's' || !strings.Contains(v.text, string(inputMark)) {
		return nil
	}
	var out strings.Builder
	for rest := v.text; ; {
		before, _, found := strings.Cut(rest, string(inputMark))
		out.WriteString(before)
		if !found {
			break
		}
		rest = rest[len(before):]
		name, length := inputName([]byte(rest))
		if name == "" {
			out.Write(inputMark)
			rest = rest[len(inputMark):]
			continue
		}
		text, err := inputText(r.inputs, name)
		if err != nil {
			r.problem(v.at, err.Error(), inputHint(r.inputs, name))
		}
		if length == len(v.text) {
			if _, ok := numberValue(0, text); ok && text != "" && isDigit(text[0]) {
				*v = jsonValue{at: v.at, kind: 'n', number: text}
				return nil
			}
		}
		out.WriteString(text)
		if out.Len() > maxBytes {
			return &jsonError{v.at, "longer than a document can be with the values of its inputs"}
		}
		rest = rest[length:]
	}
	v.text = out.String()
	return nil
}

func (r *jsonReader) document(root *jsonValue) *Document {
	d := &Document{}
	if root.kind != '[' {
		r.problem(root.at, "the document is not a list", `want [{"class": "system", …}, …]`)
		return d
	}
	described := false
	for i := range root.list {
		v := &root.list[i]
		if v.kind != '{' {
			r.problem(v.at, "an element of the list is no object", `want {"class": "system", …}`)
			continue
		}
		switch class := r.text(v, "class", true); class {
		case "network", "system", "ansible", "description":
			if class == "description" && described {
				r.problem(v.at, "a second description", "there can be one")
			}
			described = described || class == "description"
			d.Items = append(d.Items, r.aspect(v, Class(class)))
		case "configure":
			d.Items = append(d.Items, r.configure(v))
		case "contextualize":
			d.Items = append(d.Items, r.contextualize(v))
		case "deploy":
			item := &Deploy{Offset: v.at, System: r.text(v, "system", true), Cloud: r.text(v, "cloud", false)}
			if n := r.number(v, "vm_number", true); n != nil {
				item.Number = *n
			}
			d.Items = append(d.Items, item)
		case "":
		default:
			r.problem(v.get("class").at, fmt.Sprintf("there is no class %q", shorten(class)), "there are network, system, ansible, description, configure, contextualize and deploy")
		}
	}
	return d
}

// text reads a member that is a text.
func (r *jsonReader) text(v *jsonValue, key string, needed bool) string {
	m := v.get(key)
	switch {
	case m == nil && needed:
		r.problem(v.at, fmt.Sprintf("the object has no %q", key), "")
	case m == nil, m.kind == 'w' && m.word == "null" && !needed:
	case m.kind != 's' || needed && m.text == "":
		r.problem(m.at, fmt.Sprintf("%q is no text", key), "")
	default:
		return m.text
	}
	return ""
}

// number reads a member that is a number of zero or more; nil if it is not
// there.
func (r *jsonReader) number(v *jsonValue, key string, needed bool) *Value {
	m := v.get(key)
	switch {
	case m == nil && needed:
		r.problem(v.at, fmt.Sprintf("the object has no %q", key), "")
		return nil
	case m == nil:
		return nil
	}
	n, ok := r.numeric(m)
	if !ok {
		r.problem(m.at, fmt.Sprintf("%q is no number of zero or more", key), "")
		return nil
	}
	return &n
}

func (r *jsonReader) numeric(m *jsonValue) (Value, bool) {
	if m.kind != 'n' {
		return Value{}, false
	}
	n, err := strconv.ParseFloat(m.number, 64)
	if err != nil || n < 0 || len(m.number) > 40 {
		return Value{}, false
	}
	v := Value{Offset: m.at, Kind: Number, Num: n, Text: m.number, Whole: !strings.ContainsAny(m.number, ".eE")}
	if strings.ContainsAny(m.number, "eE") {
		v.Text = decimal(n)
	}
	return v, true
}

// decimal writes a number as the text form has them.
func decimal(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e18 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// id reads the name of an aspect.
func (r *jsonReader) id(v *jsonValue, key string) string {
	name := r.text(v, key, true)
	if name != "" && !isName(name) {
		r.problem(v.get(key).at, fmt.Sprintf("%q is no name", shorten(name)), "names have letters, digits and _.- and do not begin with a digit or -")
	}
	return name
}

func isName(s string) bool {
	for i := range len(s) {
		if !wordBytes[s[i]] || i == 0 && !wordStarts[s[i]] {
			return false
		}
	}
	return s != "" && !keywords[s]
}

func (r *jsonReader) reference(v *jsonValue) bool {
	m := v.get("reference")
	return m != nil && m.word == "true"
}

func (r *jsonReader) aspect(v *jsonValue, class Class) *Aspect {
	a := &Aspect{Offset: v.at, Class: class, Name: r.id(v, "id"), Reference: r.reference(v)}
	if !a.Reference {
		a.Features = r.features(v, true)
	}
	return a
}

func (r *jsonReader) features(v *jsonValue, top bool) []Feature {
	var list []Feature
	for i := range v.object {
		m := &v.object[i]
		if top && (m.key == "class" || m.key == "id" || m.key == "reference") {
			continue
		}
		list = r.feature(list, m)
	}
	return list
}

func (r *jsonReader) feature(list []Feature, m *member) []Feature {
	v := &m.value
	f := Feature{Offset: m.at, Name: m.key}
	if m.key == "softs" && v.kind == '[' {
		for i := range v.list {
			soft := Feature{Offset: v.list[i].at, Op: Soft, Weight: &Value{Kind: Number, Text: "0", Whole: true}}
			if v.list[i].kind != '{' {
				r.problem(v.list[i].at, "a soft wish is no object", `want {"weight": 10, "items": {…}}`)
				continue
			}
			if w := r.number(&v.list[i], "weight", false); w != nil {
				soft.Weight = w
			}
			soft.Value = Value{Offset: v.list[i].at, Kind: Features}
			if items := v.list[i].get("items"); items != nil {
				soft.Value.Features = r.features(items, false)
			}
			list = append(list, soft)
		}
		return list
	}
	if name, op := suffixed(m.key); op != Equal && (v.kind == 'n' || v.kind == 's') {
		f.Name, f.Op = name, op
	}
	if !isName(f.Name) {
		r.problem(m.at, fmt.Sprintf("%q is no name of a feature", shorten(f.Name)), "")
		return list
	}
	switch v.kind {
	case 's':
		f.Value = Value{Offset: v.at, Kind: String, Text: v.text}
		return append(list, f)
	case 'n':
		n, ok := r.numeric(v)
		if !ok {
			r.problem(v.at, fmt.Sprintf("%s is %s", f.Name, shorten(v.number)), "numbers are zero or more")
			return list
		}
		f.Value = n
		return append(list, f)
	case '{':
		f.Op, f.Value = Contains, Value{Offset: v.at, Kind: Features, Features: r.features(v, true)}
		return append(list, f)
	case '[':
		return r.listFeature(list, f, v)
	}
	r.problem(v.at, fmt.Sprintf("%s is %s", f.Name, v.word), "want a text, a number, a list or an object")
	return list
}

// listFeature reads a list: of texts, or of objects that are contained.
func (r *jsonReader) listFeature(list []Feature, f Feature, v *jsonValue) []Feature {
	texts := []string{}
	for i := range v.list {
		switch e := &v.list[i]; e.kind {
		case 's':
			texts = append(texts, e.text)
		case '{':
			list = append(list, Feature{Offset: e.at, Name: f.Name, Op: Contains,
				Value: Value{Offset: e.at, Kind: Features, Features: r.features(e, true)}})
		default:
			r.problem(e.at, fmt.Sprintf("the list %s has something other than texts and objects", f.Name), "")
		}
	}
	if len(texts) > 0 || len(v.list) == 0 {
		f.Value = Value{Offset: v.at, Kind: List, List: texts}
		list = append(list, f)
	}
	return list
}

// suffixed takes the suffix off a key that stands for a comparison.
func suffixed(key string) (string, Op) {
	if name, ok := strings.CutSuffix(key, "_min"); ok {
		return name, GreaterEqual
	}
	if name, ok := strings.CutSuffix(key, "_max"); ok {
		return name, LessEqual
	}
	return key, Equal
}

func (r *jsonReader) configure(v *jsonValue) *Configure {
	c := &Configure{Offset: v.at, Name: r.id(v, "id"), Reference: r.reference(v)}
	m := v.get("recipes")
	switch {
	case c.Reference:
	case m == nil, m.word == "null":
		c.Empty = true
	case m.kind != 's':
		r.problem(m.at, "the recipes are no text", "")
	default:
		c.Recipe, c.RecipeAt = m.text, m.at
	}
	return c
}

func (r *jsonReader) contextualize(v *jsonValue) *Contextualize {
	c := &Contextualize{Offset: v.at, Limit: r.number(v, "max_time", false)}
	if options := v.get("options"); options != nil {
		c.Options = r.features(options, false)
	}
	items := v.get("items")
	if items == nil {
		return c
	}
	for i := range items.list {
		e := &items.list[i]
		c.Items = append(c.Items, ContextItem{
			Offset: e.at, System: r.text(e, "system", true), Configure: r.text(e, "configure", true),
			Step: r.number(e, "step", false), Tool: r.text(e, "ctxt_tool", false),
		})
	}
	return c
}
