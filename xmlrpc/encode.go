package xmlrpc

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Extensions says what the other side understands beyond XML-RPC's
// specification. Without them, a value that needs one is an error.
type Extensions struct {
	I8  bool // <i8> for integers of more than 32 bits
	Nil bool // <nil/>
}

// Message is a document that is ready to be sent: a call or a response. Its
// values have been checked, so writing it fails only when the writer does; they
// must not be changed until then.
type Message struct {
	write func(*sink) error
	size  int64
}

// NewCall makes a methodCall document.
func NewCall(x Extensions, method string, params ...any) (*Message, error) {
	if err := checkMethod(method); err != nil {
		return nil, fmt.Errorf("write method call: %w", err)
	}
	m, err := newMessage(func(s *sink) error {
		s.raw("<methodCall><methodName>")
		s.text(method)
		s.raw("</methodName><params>")
		for i, p := range params {
			s.raw("<param>")
			e := encoder{sink: s, extensions: x, place: place{{kind: paramStep, index: i}}}
			if err := e.value(p); err != nil {
				return err
			}
			s.raw("</param>")
		}
		s.raw("</params></methodCall>\n")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("write call of %s: %w", method, err)
	}
	return m, nil
}

// NewResponse makes a methodResponse document with a result.
func NewResponse(x Extensions, result any) (*Message, error) {
	m, err := newMessage(func(s *sink) error {
		s.raw("<methodResponse><params><param>")
		e := encoder{sink: s, extensions: x, place: place{{kind: resultStep, name: "result"}}}
		if err := e.value(result); err != nil {
			return err
		}
		s.raw("</param></params></methodResponse>\n")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("write method response: %w", err)
	}
	return m, nil
}

// NewFault makes a methodResponse document with a fault. A code of more than 32
// bits becomes InternalError.
func NewFault(f *Fault) *Message {
	code := f.Code
	if code < math.MinInt32 || code > math.MaxInt32 {
		code = InternalError
	}
	m, err := newMessage(func(s *sink) error {
		s.raw("<methodResponse><fault>")
		e := encoder{sink: s, place: place{{kind: resultStep, name: "fault"}}}
		if err := e.value(map[string]any{"faultCode": code, "faultString": f.Text}); err != nil {
			return err
		}
		s.raw("</fault></methodResponse>\n")
		return nil
	})
	if err != nil {
		panic(err) // an int of 32 bits and a string can always be written
	}
	return m
}

// newMessage runs write once to check the values and to learn the size.
func newMessage(write func(*sink) error) (*Message, error) {
	var count sink
	m := &Message{write: func(s *sink) error {
		s.raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
		return write(s)
	}}
	if err := m.write(&count); err != nil {
		return nil, err
	}
	m.size = count.size
	return m, nil
}

// Size is the length of the document in bytes.
func (m *Message) Size() int64 { return m.size }

// WriteTo writes the document piece by piece, without holding all of it.
func (m *Message) WriteTo(w io.Writer) (int64, error) {
	s := &sink{w: w, buf: make([]byte, 0, int(min(m.size, flushAt+piece)))}
	err := m.write(s)
	if err == nil {
		err = s.flush()
	}
	return s.sent, err
}

// Bytes returns the document.
func (m *Message) Bytes() []byte {
	s := &sink{w: io.Discard, buf: make([]byte, 0, m.size), whole: true}
	m.write(s) // nothing that can fail is left
	return s.buf
}

// Text is a string in pieces, for long ones: it is written without being put
// together. It is read twice, and must say the same both times; no piece may
// end within a character.
type Text iter.Seq[string]

const (
	flushAt = 32 << 10
	piece   = 8 << 10 // what is escaped at a time
)

// sink takes a document; without a writer it only counts.
type sink struct {
	w     io.Writer
	buf   []byte
	whole bool // keep all in buf
	size  int64
	sent  int64
	err   error
}

func (s *sink) raw(text string) {
	if s.w == nil {
		s.size += int64(len(text))
		return
	}
	s.buf = append(s.buf, text...)
	s.full()
}

// text writes the content of an element.
func (s *sink) text(text string) {
	if s.w == nil {
		s.size += int64(escapedLen(text))
		return
	}
	for len(text) > 0 {
		n := firstPiece(text)
		s.buf = appendEscaped(s.buf, text[:n])
		s.full()
		text = text[n:]
	}
}

// firstPiece returns where to cut text without cutting a character.
func firstPiece(text string) int {
	if len(text) <= piece {
		return len(text)
	}
	for n := piece; n > piece-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return piece // no character: none is that long
}

func (s *sink) base64(data []byte) {
	if s.w == nil {
		s.size += int64(base64.StdEncoding.EncodedLen(len(data)))
		return
	}
	for len(data) > 0 {
		n := min(len(data), piece/3*3) // whole groups of three
		s.buf = base64.StdEncoding.AppendEncode(s.buf, data[:n])
		s.full()
		data = data[n:]
	}
}

func (s *sink) full() {
	if !s.whole && len(s.buf) >= flushAt {
		s.flush()
	}
}

func (s *sink) flush() error {
	if s.err == nil {
		var n int
		n, s.err = s.w.Write(s.buf)
		s.sent += int64(n)
	}
	s.buf = s.buf[:0]
	return s.err
}

// maxEncodeDepth keeps a value that contains itself from being written for
// ever.
const maxEncodeDepth = 200

type encoder struct {
	*sink
	extensions Extensions
	place      place
}

func (e *encoder) fail(format string, args ...any) error {
	return fmt.Errorf("%s: %w", e.place, fmt.Errorf(format, args...))
}

func (e *encoder) value(v any) error {
	e.raw("<value>")
	if err := e.typed(v); err != nil {
		return err
	}
	e.raw("</value>")
	return e.err
}

func (e *encoder) typed(v any) error {
	switch v := v.(type) {
	case string:
		e.str(v)
		return nil
	case Text:
		e.raw("<string>")
		for piece := range v {
			if e.text(piece); e.err != nil {
				break
			}
		}
		e.raw("</string>")
		return e.err
	case bool:
		e.boolean(v)
		return nil
	case int:
		return e.integer(int64(v))
	case float64:
		return e.double(v, 64)
	case []byte:
		e.raw("<base64>")
		e.base64(v)
		e.raw("</base64>")
		return nil
	case time.Time:
		return e.time(v)
	case []any:
		return e.array(len(v), func(i int) any { return v[i] })
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		return e.structure(names, func(name string) any { return v[name] })
	case nil:
		if !e.extensions.Nil {
			return e.fail("nil cannot be written (the extension is off)")
		}
		e.raw("<nil/>")
		return nil
	}
	return e.reflected(reflect.ValueOf(v))
}

// reflected writes the types that are not among those of decoded values.
func (e *encoder) reflected(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		e.str(v.String())
		return nil
	case reflect.Bool:
		e.boolean(v.Bool())
		return nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return e.integer(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if v.Uint() > math.MaxInt64 {
			return e.fail("%d does not fit into 64 bits with a sign", v.Uint())
		}
		return e.integer(int64(v.Uint()))
	case reflect.Float32:
		return e.double(v.Float(), 32)
	case reflect.Float64:
		return e.double(v.Float(), 64)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			return e.typed(v.Bytes())
		}
		return e.array(v.Len(), func(i int) any { return v.Index(i).Interface() })
	case reflect.Map:
		if key := v.Type().Key(); key.Kind() == reflect.String {
			names := make([]string, 0, v.Len())
			for _, k := range v.MapKeys() {
				names = append(names, k.String())
			}
			return e.structure(names, func(name string) any {
				return v.MapIndex(reflect.ValueOf(name).Convert(key)).Interface()
			})
		}
	}
	return e.fail("a Go %s cannot be written", v.Type())
}

func (e *encoder) str(s string) {
	e.raw("<string>")
	e.text(s)
	e.raw("</string>")
}

func (e *encoder) boolean(b bool) {
	if b {
		e.raw("<boolean>1</boolean>")
	} else {
		e.raw("<boolean>0</boolean>")
	}
}

func (e *encoder) integer(n int64) error {
	typ := "int"
	if n < math.MinInt32 || n > math.MaxInt32 {
		if !e.extensions.I8 {
			return e.fail("%d does not fit into 32 bits (the extension i8 is off)", n)
		}
		typ = "i8"
	}
	e.raw("<" + typ + ">")
	e.raw(strconv.FormatInt(n, 10))
	e.raw("</" + typ + ">")
	return nil
}

func (e *encoder) double(f float64, bits int) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return e.fail("%v cannot be written", f)
	}
	e.raw("<double>")
	e.raw(strconv.FormatFloat(f, 'f', -1, bits)) // the specification has no exponents
	e.raw("</double>")
	return nil
}

func (e *encoder) time(t time.Time) error {
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return e.fail("the year %d cannot be written", t.Year())
	}
	e.raw("<dateTime.iso8601>")
	e.raw(t.Format("20060102T15:04:05"))
	e.raw("</dateTime.iso8601>")
	return nil
}

// down enters a level of the value.
func (e *encoder) down(s step) error {
	if len(e.place) > maxEncodeDepth {
		return e.fail("more than %d values within each other", maxEncodeDepth)
	}
	e.place = append(e.place, s)
	return nil
}

func (e *encoder) up() { e.place = e.place[:len(e.place)-1] }

func (e *encoder) array(n int, at func(int) any) error {
	e.raw("<array><data>")
	for i := range n {
		if err := e.down(step{kind: itemStep, index: i}); err != nil {
			return err
		}
		if err := e.value(at(i)); err != nil {
			return err
		}
		e.up()
	}
	e.raw("</data></array>")
	return nil
}

func (e *encoder) structure(names []string, at func(string) any) error {
	slices.Sort(names)
	e.raw("<struct>")
	for _, name := range names {
		if err := e.down(step{kind: memberStep, name: name}); err != nil {
			return err
		}
		if err := checkMember(name); err != nil {
			return e.fail("%w", err)
		}
		e.raw("<member><name>")
		e.text(name)
		e.raw("</name>")
		if err := e.value(at(name)); err != nil {
			return err
		}
		e.raw("</member>")
		e.up()
	}
	e.raw("</struct>")
	return nil
}

// checkMember refuses names that could become equal by replacing characters.
func checkMember(name string) error {
	if !utf8.ValidString(name) {
		return errors.New("the name of a member is not UTF-8")
	}
	for _, r := range name {
		if !isCharacter(r) {
			return fmt.Errorf("the name of a member has the character %U, which XML cannot hold", r)
		}
	}
	return nil
}
