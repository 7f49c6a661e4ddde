package xmlrpc

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func seed(f *testing.F) {
	files, err := filepath.Glob("testdata/calls/*.xml")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	f.Add([]byte(call("<value>a<![CDATA[b]]>&#x1F600;\r\n<!-- c --></value>")))
	f.Add([]byte("<methodResponse><params><param><value><nil/></value></param></params></methodResponse>"))
	f.Add(NewFault(&Fault{1, "a"}).Bytes())
}

// FuzzDecode: what can be read is XML for encoding/xml too, and writing it and
// reading that gives the same.
func FuzzDecode(f *testing.F) {
	seed(f)
	all := Extensions{I8: true, Nil: true}
	limits := Limits{Depth: 20, Values: 10000}
	f.Fuzz(func(t *testing.T, doc []byte) {
		call, err := DecodeCall(doc, limits)
		if err == nil {
			m, err := NewCall(all, call.Method, call.Params...)
			if err != nil {
				t.Fatalf("cannot be written: %v", err)
			}
			again, err := DecodeCall(m.Bytes(), Limits{})
			if err != nil || !reflect.DeepEqual(call, again) {
				t.Fatalf("read %#v, then %#v, %v", call, again, err)
			}
			check(t, m)
			checkXML(t, doc)
		} else {
			checkError(t, err)
		}
		result, err := DecodeResponse(doc, limits)
		var fault *Fault
		switch {
		case err == nil:
			m, err := NewResponse(all, result)
			if err != nil {
				t.Fatalf("cannot be written: %v", err)
			}
			again, err := DecodeResponse(m.Bytes(), Limits{})
			if err != nil || !reflect.DeepEqual(result, again) {
				t.Fatalf("read %#v, then %#v, %v", result, again, err)
			}
			check(t, m)
			checkXML(t, doc)
		case errors.As(err, &fault):
			check(t, NewFault(fault))
		default:
			checkError(t, err)
		}
	})
}

func checkError(t *testing.T, err error) {
	var e *DecodeError
	var l *LimitError
	if !errors.As(err, &e) && !errors.As(err, &l) {
		t.Fatalf("error of type %T", err)
	}
	if e != nil && (e.Line < 1 || e.Column < 1) {
		t.Fatalf("at %d:%d", e.Line, e.Column)
	}
}

func check(t *testing.T, m *Message) {
	var b bytes.Buffer
	if n, err := m.WriteTo(&b); err != nil || n != m.Size() || !bytes.Equal(b.Bytes(), m.Bytes()) {
		t.Fatalf("written %d of %d: %v", n, m.Size(), err)
	}
	checkXML(t, b.Bytes())
}

// checkXML asks another reader of XML, which knows only UTF-8 and no white space
// before the declaration.
func checkXML(t *testing.T, doc []byte) {
	s, err := newScanner(doc)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(s.doc[s.pos:]))
	for {
		if _, err := d.RawToken(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("not XML: %v\n%q", err, doc)
		}
	}
}

// FuzzEncodeText: every text can be written, and reads back as it was but for
// the characters that are replaced.
func FuzzEncodeText(f *testing.F) {
	for _, s := range []string{"", "a<b>&c", "\r\n", "\x00\xff", "é\U0001F600\uffff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n := len(appendEscaped(nil, s)); n != escapedLen(s) {
			t.Fatalf("%d bytes, %d announced", n, escapedLen(s))
		}
		m, err := NewResponse(Extensions{}, s)
		if err != nil {
			t.Fatal(err)
		}
		check(t, m)
		got, err := DecodeResponse(m.Bytes(), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var want []rune
		for _, r := range s { // gives U+FFFD for each byte that is not UTF-8
			if !isCharacter(r) {
				r = '\uFFFD'
			}
			want = append(want, r)
		}
		if got != string(want) {
			t.Fatalf("got %q, want %q", got, string(want))
		}
	})
}
