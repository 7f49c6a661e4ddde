package xmlrpc

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Call is a call of a method.
type Call struct {
	Method string
	Params []any
}

// DecodeCall reads a methodCall document. Errors are a *DecodeError or a
// *LimitError.
func DecodeCall(doc []byte, l Limits) (Call, error) {
	var c Call
	err := decode(doc, l, func(d *decoder) (err error) {
		c, err = d.methodCall()
		return err
	})
	if err != nil {
		return Call{}, fmt.Errorf("read method call: %w", err)
	}
	return c, nil
}

// DecodeResponse reads a methodResponse document. A fault in it is returned as
// the error, of type *Fault; other errors are a *DecodeError or a *LimitError.
func DecodeResponse(doc []byte, l Limits) (any, error) {
	var result any
	var fault *Fault
	err := decode(doc, l, func(d *decoder) (err error) {
		result, fault, err = d.methodResponse()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read method response: %w", err)
	}
	if fault != nil {
		return nil, fault
	}
	return result, nil
}

func decode(doc []byte, l Limits, read func(*decoder) error) error {
	l = l.orDefaults()
	if int64(len(doc)) > l.Bytes {
		return &LimitError{What: "bytes in the document", Limit: l.Bytes}
	}
	s, err := newScanner(doc)
	if err != nil {
		return err
	}
	d := &decoder{scanner: s, limits: l}
	if err := read(d); err != nil {
		return d.locate(err)
	}
	if t, err := d.next(); err != nil {
		return err
	} else if t.name != nil {
		return d.invalid(t, "an element after the end of the document")
	}
	return nil
}

type decoder struct {
	*scanner
	limits Limits
	place  place
	depth  int
	values int
}

// locate puts the place that reading has got to into an error.
func (d *decoder) locate(err error) error {
	var de *DecodeError
	var le *LimitError
	switch {
	case errors.As(err, &de):
		de.Place = d.place.String()
	case errors.As(err, &le):
		le.Place = d.place.String()
	}
	return err
}

func (d *decoder) invalid(t tag, format string, args ...any) error {
	return d.fail(t.at, InvalidXMLRPC, format, args...)
}

// show writes a tag for a message.
func (t tag) show() string {
	switch {
	case t.name == nil:
		return "the end of the document"
	case t.end:
		return "</" + shorten(string(t.name)) + ">"
	}
	return "<" + shorten(string(t.name)) + ">"
}

func (t tag) starts(name string) bool { return !t.end && string(t.name) == name }
func (t tag) ends(name string) bool   { return t.end && string(t.name) == name }

// start reads a start tag that must be there.
func (d *decoder) start(name string) (tag, error) {
	t, err := d.next()
	if err == nil && !t.starts(name) {
		err = d.unexpected(t, "<"+name+">")
	}
	return t, err
}

// end reads the end tag that belongs to t, which may have been empty.
func (d *decoder) end(t tag) error {
	if t.empty {
		return nil
	}
	e, err := d.next()
	if err == nil && !e.ends(string(t.name)) {
		if e.end {
			return d.crossed(e, string(t.name))
		}
		return d.unexpected(e, "</"+string(t.name)+">")
	}
	return err
}

// crossed is for an end tag that belongs to another element.
func (d *decoder) crossed(t tag, open string) error {
	return d.malformed(t.at, "want </%s>, got %s", open, t.show())
}

func (d *decoder) unexpected(t tag, want string) error {
	if t.name == nil {
		return d.malformed(t.at, "the document ends; want %s", want)
	}
	return d.invalid(t, "want %s, got %s", want, t.show())
}

// leaf reads the text of the element that t has begun, and its end.
func (d *decoder) leaf(t tag) (string, error) {
	if t.empty {
		return "", nil
	}
	text, err := d.text(d.limits.String)
	if err != nil {
		return "", err
	}
	return text, d.end(t)
}

func (d *decoder) methodCall() (Call, error) {
	root, err := d.start("methodCall")
	if err != nil {
		return Call{}, err
	}
	name, err := d.start("methodName")
	if err != nil {
		return Call{}, err
	}
	c := Call{Params: []any{}}
	if c.Method, err = d.leaf(name); err != nil {
		return Call{}, err
	}
	c.Method = strings.TrimSpace(c.Method)
	if err := checkMethod(c.Method); err != nil {
		return Call{}, d.invalid(name, "%v", err)
	}
	t, err := d.next()
	if err != nil {
		return Call{}, err
	}
	if t.starts("params") {
		if c.Params, err = d.params(t); err != nil {
			return Call{}, err
		}
		if t, err = d.next(); err != nil {
			return Call{}, err
		}
	}
	if !t.ends("methodCall") || root.empty {
		return Call{}, d.unexpected(t, "</methodCall>")
	}
	return c, nil
}

// maxMethod is the longest name of a method, in bytes.
const maxMethod = 255

// checkMethod allows what the specification does.
func checkMethod(name string) error {
	if name == "" {
		return errors.New("the method has no name")
	}
	if len(name) > maxMethod {
		return fmt.Errorf("the name of the method has more than %d bytes", maxMethod)
	}
	for i := range len(name) {
		b := name[i]
		if !('a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' ||
			b == '_' || b == '.' || b == ':' || b == '/' || b == '-') {
			return fmt.Errorf("the name of method %q has a character other than letters, digits and _ . : / -", shorten(name))
		}
	}
	return nil
}

func (d *decoder) params(t tag) ([]any, error) {
	list := []any{}
	if t.empty {
		return list, nil
	}
	for {
		p, err := d.next()
		if err != nil {
			return nil, err
		}
		if p.ends("params") {
			return list, nil
		}
		if !p.starts("param") || p.empty {
			return nil, d.unexpected(p, "<param> or </params>")
		}
		d.place = append(d.place, step{kind: paramStep, index: len(list)})
		v, err := d.valueElement()
		if err == nil {
			err = d.end(p)
		}
		if err != nil {
			return nil, err
		}
		d.place = d.place[:len(d.place)-1]
		list = append(list, v)
	}
}

func (d *decoder) methodResponse() (any, *Fault, error) {
	root, err := d.start("methodResponse")
	if err != nil {
		return nil, nil, err
	}
	t, err := d.next()
	if err != nil {
		return nil, nil, err
	}
	var result any
	var fault *Fault
	switch {
	case t.starts("params") && !t.empty:
		p, err := d.start("param")
		if err == nil {
			result, err = d.named("result")
		}
		if err == nil {
			err = d.end(p)
		}
		if err != nil {
			return nil, nil, err
		}
	case t.starts("fault") && !t.empty:
		v, err := d.named("fault")
		if err != nil {
			return nil, nil, err
		}
		if fault, err = readFault(v); err != nil {
			return nil, nil, d.invalid(t, "%v", err)
		}
	default:
		return nil, nil, d.unexpected(t, "<params> with a result, or <fault>")
	}
	if err := d.end(t); err != nil {
		return nil, nil, err
	}
	return result, fault, d.end(root)
}

// named reads the one value of a response.
func (d *decoder) named(name string) (any, error) {
	d.place = append(d.place, step{kind: resultStep, name: name})
	v, err := d.valueElement()
	if err == nil {
		d.place = d.place[:len(d.place)-1]
	}
	return v, err
}

func readFault(v any) (*Fault, error) {
	f := At(v, "fault")
	code, err := f.Member("faultCode").Int()
	if err != nil {
		// Some servers send the number as text.
		text, _ := f.Member("faultCode").Text()
		if code, _ = strconv.Atoi(text); code == 0 {
			return nil, err
		}
	}
	text, err := f.Member("faultString").Text()
	if err != nil {
		return nil, err
	}
	return &Fault{Code: code, Text: text}, nil
}

// valueElement reads <value>…</value>.
func (d *decoder) valueElement() (any, error) {
	t, err := d.start("value")
	if err != nil {
		return nil, err
	}
	return d.value(t)
}

// value reads what the start tag of a value has begun.
func (d *decoder) value(t tag) (any, error) {
	if d.values++; d.values > d.limits.Values {
		return nil, &LimitError{What: "values in the document", Limit: int64(d.limits.Values)}
	}
	if t.empty {
		return "", nil
	}
	text, err := d.text(d.limits.String)
	if err != nil {
		return nil, err
	}
	inner, err := d.tag()
	if err != nil {
		return nil, err
	}
	if inner.ends("value") {
		return text, nil
	}
	if inner.end {
		return nil, d.crossed(inner, "value")
	}
	if strings.Trim(text, " \t\r\n") != "" {
		return nil, d.invalid(inner, "a value has both text and the element %s", inner.show())
	}
	v, err := d.typed(inner)
	if err != nil {
		return nil, err
	}
	return v, d.end(t)
}

// typed reads the element that gives a value its type.
func (d *decoder) typed(t tag) (any, error) {
	switch string(t.name) {
	case "array", "struct":
		if d.depth++; d.depth > d.limits.Depth {
			return nil, &LimitError{What: "values within each other", Limit: int64(d.limits.Depth)}
		}
		defer func() { d.depth-- }()
		if string(t.name) == "array" {
			return d.array(t)
		}
		return d.structure(t)
	case "nil":
		if t.empty {
			return nil, nil
		}
		return nil, d.end(t)
	case "string":
		return d.leaf(t)
	}
	read, ok := scalar(string(t.name))
	if !ok {
		return nil, d.invalid(t, "%s is not a type of XML-RPC", t.show())
	}
	text, err := d.leaf(t)
	if err != nil {
		return nil, err
	}
	v, err := read(text)
	if err != nil {
		return nil, d.invalid(t, "%s: %v", t.show(), err)
	}
	return v, nil
}

// scalar returns how the text of a type is read.
func scalar(typ string) (read func(string) (any, error), ok bool) {
	switch typ {
	case "int", "i4":
		return readInt(32), true
	case "i1":
		return readInt(8), true
	case "i2":
		return readInt(16), true
	case "i8":
		return readInt(64), true
	case "boolean":
		return readBool, true
	case "double", "float":
		return readFloat, true
	case "base64":
		return readBase64, true
	case "dateTime.iso8601", "dateTime":
		return readTime, true
	}
	return nil, false
}

func readInt(bits int) func(string) (any, error) {
	return func(text string) (any, error) {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, bits)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return nil, fmt.Errorf("%s does not fit into %d bits", shorten(strings.TrimSpace(text)), bits)
		case err != nil:
			return nil, fmt.Errorf("%q is no whole number", shorten(text))
		case int64(int(n)) != n:
			return nil, fmt.Errorf("%d is too large for this machine", n)
		}
		return int(n), nil
	}
}

func readBool(text string) (any, error) {
	switch strings.TrimSpace(text) {
	case "1", "true":
		return true, nil
	case "0", "false":
		return false, nil
	}
	return nil, fmt.Errorf("%q is neither 0 nor 1", shorten(text))
}

func readFloat(text string) (any, error) {
	text = strings.TrimSpace(text)
	// ParseFloat also knows hexadecimal, underscores, Inf and NaN.
	if strings.Trim(text, "0123456789+-.eE") == "" {
		if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(f, 0) {
			return f, nil
		}
	}
	return nil, fmt.Errorf("%q is no number", shorten(text))
}

func readBase64(text string) (any, error) {
	text = strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, text)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("not base64")
	}
	return data, nil
}

func readTime(text string) (any, error) {
	text = strings.TrimSpace(text)
	for _, date := range []string{"20060102", "2006-01-02"} {
		for _, zone := range []string{"", "Z07:00", "Z0700"} {
			if t, err := time.Parse(date+"T15:04:05"+zone, text); err == nil {
				return t.UTC(), nil
			}
		}
	}
	return nil, fmt.Errorf("%q is no time such as 20060102T15:04:05", shorten(text))
}

func (d *decoder) array(t tag) (any, error) {
	list := []any{}
	if t.empty {
		return list, nil
	}
	data, err := d.next()
	if err != nil {
		return nil, err
	}
	if data.ends("array") {
		return list, nil
	}
	if !data.starts("data") {
		return nil, d.unexpected(data, "<data>")
	}
	for !data.empty {
		v, err := d.next()
		if err != nil {
			return nil, err
		}
		if v.ends("data") {
			break
		}
		if !v.starts("value") {
			return nil, d.unexpected(v, "<value> or </data>")
		}
		d.place = append(d.place, step{kind: itemStep, index: len(list)})
		item, err := d.value(v)
		if err != nil {
			return nil, err
		}
		d.place = d.place[:len(d.place)-1]
		list = append(list, item)
	}
	return list, d.end(t)
}

func (d *decoder) structure(t tag) (any, error) {
	members := map[string]any{}
	if t.empty {
		return members, nil
	}
	for {
		m, err := d.next()
		if err != nil {
			return nil, err
		}
		if m.ends("struct") {
			return members, nil
		}
		if !m.starts("member") || m.empty {
			return nil, d.unexpected(m, "<member> or </struct>")
		}
		n, err := d.start("name")
		if err != nil {
			return nil, err
		}
		name, err := d.leaf(n)
		if err != nil {
			return nil, err
		}
		if _, twice := members[name]; twice {
			return nil, d.invalid(n, "member %q is given twice", shorten(name))
		}
		d.place = append(d.place, step{kind: memberStep, name: name})
		v, err := d.valueElement()
		if err == nil {
			err = d.end(m)
		}
		if err != nil {
			return nil, err
		}
		d.place = d.place[:len(d.place)-1]
		members[name] = v
	}
}
