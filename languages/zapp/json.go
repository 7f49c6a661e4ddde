package zapp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"croft/languages"
	"croft/request"
)

// value is a JSON value that knows where it stands.
type value struct {
	pointer string // JSON pointer (RFC 6901)
	offset  int
	is      any // nil, bool, string, json.Number, []*value or *object
}

type object struct {
	keys   []string
	fields map[string]*value
}

const (
	maxDepth  = 32
	maxValues = 200_000
)

// reader makes a tree of a document.
type reader struct {
	text   []byte
	dec    *json.Decoder
	values int
}

// read reads a document that is one JSON value.
func read(text []byte) (*value, *languages.Error) {
	r := &reader{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()
	v, err := r.value("", 0)
	if err == nil {
		if _, more := r.dec.Token(); more != io.EOF {
			err = r.wrong(int(r.dec.InputOffset()), "", "there is something after the end of the object", "")
		}
	}
	return v, err
}

func (r *reader) wrong(offset int, pointer, what, hint string) *languages.Error {
	return &languages.Error{Problems: []languages.Problem{{Place: place(r.text, offset, pointer), What: what, Hint: hint}}}
}

// place says where an offset is.
func place(text []byte, offset int, pointer string) request.Place {
	before := text[:min(max(offset, 0), len(text))]
	return request.Place{Line: 1 + bytes.Count(before, []byte("\n")), Column: len(before) - bytes.LastIndexByte(before, '\n'), Path: pointer}
}

// next is where the next token begins.
func (r *reader) next() int {
	at := int(r.dec.InputOffset())
	for at < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	return at
}

func (r *reader) token(pointer string) (json.Token, int, *languages.Error) {
	at := r.next()
	t, err := r.dec.Token()
	if err == nil {
		return t, at, nil
	}
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, at, r.wrong(max(int(syntax.Offset)-1, 0), pointer, "this is no JSON: "+syntax.Error(), "")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, at, r.wrong(len(r.text), pointer, "the document ends too early", "")
	}
	return nil, at, r.wrong(at, pointer, "this is no JSON: "+err.Error(), "")
}

func (r *reader) value(pointer string, depth int) (*value, *languages.Error) {
	t, at, err := r.token(pointer)
	if err != nil {
		return nil, err
	}
	if r.values++; r.values > maxValues || depth > maxDepth {
		return nil, r.wrong(at, pointer, "the document has too many values, or they are nested too deeply", "")
	}
	v := &value{pointer: pointer, offset: at, is: t}
	switch t {
	case json.Delim('{'):
		o := &object{fields: map[string]*value{}}
		v.is = o
		for r.dec.More() {
			key, at, err := r.token(pointer)
			if err != nil {
				return nil, err
			}
			name, ok := key.(string)
			if !ok {
				return nil, r.wrong(at, pointer, "names of fields are strings", "")
			}
			below := pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			if o.fields[name] != nil {
				return nil, r.wrong(at, below, fmt.Sprintf("there are two fields %q", name), "")
			}
			field, err := r.value(below, depth+1)
			if err != nil {
				return nil, err
			}
			o.keys, o.fields[name] = append(o.keys, name), field
		}
	case json.Delim('['):
		list := []*value{}
		for r.dec.More() {
			item, err := r.value(pointer+"/"+strconv.Itoa(len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		v.is = list
	default:
		return v, nil
	}
	_, _, err = r.token(pointer) // the closing bracket
	return v, err
}

// kind is what a value is called.
func (v *value) kind() string {
	switch v.is.(type) {
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []*value:
		return "an array"
	case *object:
		return "an object"
	}
	return "null"
}

// canonical is a text that equal values have in common.
func (v *value) canonical() string {
	switch is := v.is.(type) {
	case []*value:
		var b strings.Builder
		for _, item := range is {
			b.WriteString(item.canonical() + ",")
		}
		return "[" + b.String() + "]"
	case *object:
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(is.fields)) {
			fmt.Fprintf(&b, "%q:%s,", name, is.fields[name].canonical())
		}
		return "{" + b.String() + "}"
	case json.Number:
		if n, err := is.Float64(); err == nil {
			return strconv.FormatFloat(n, 'g', -1, 64)
		}
		return is.String()
	default:
		return fmt.Sprintf("%T %[1]q", is)
	}
}
