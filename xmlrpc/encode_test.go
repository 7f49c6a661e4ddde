package xmlrpc

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

type (
	named   string
	number  uint16
	members map[named]any
)

const head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

func TestEncodeValues(t *testing.T) {
	all := Extensions{I8: true, Nil: true}
	for name, test := range map[string]struct {
		x    Extensions
		v    any
		want string // between <value> and </value>, or "!" and a part of the error
	}{
		"string":           {Extensions{}, "a <b> & \"c\"", "<string>a &lt;b&gt; &amp; \"c\"</string>"},
		"end of section":   {Extensions{}, "]]>", "<string>]]&gt;</string>"},
		"line ends":        {Extensions{}, "a\r\nb\tc", "<string>a&#13;\nb\tc</string>"},
		"not for XML":      {Extensions{}, "\x1b[1m\x00\uffff\xe9é\U0001F600\x7f", "<string>\uFFFD[1m\uFFFD\uFFFD\uFFFDé\U0001F600\x7f</string>"},
		"a surrogate":      {Extensions{}, "\xed\xa0\x80", "<string>\uFFFD\uFFFD\uFFFD</string>"},
		"empty":            {Extensions{}, "", "<string></string>"},
		"int":              {Extensions{}, math.MinInt32, "<int>-2147483648</int>"},
		"large int":        {Extensions{}, math.MaxInt32 + 1, "!result: 2147483648 does not fit into 32 bits"},
		"i8":               {all, math.MinInt64, "<i8>-9223372036854775808</i8>"},
		"int although i8":  {all, 5, "<int>5</int>"},
		"int64":            {all, int64(math.MaxInt64), "<i8>9223372036854775807</i8>"},
		"uint64":           {all, uint64(math.MaxUint64), "!18446744073709551615 does not fit"},
		"named number":     {Extensions{}, number(7), "<int>7</int>"},
		"bool":             {Extensions{}, true, "<boolean>1</boolean>"},
		"double":           {Extensions{}, -1.5, "<double>-1.5</double>"},
		"large double":     {Extensions{}, 1e21, "<double>1000000000000000000000</double>"},
		"small double":     {Extensions{}, 1e-7, "<double>0.0000001</double>"},
		"float32":          {Extensions{}, float32(0.1), "<double>0.1</double>"},
		"NaN":              {Extensions{}, math.NaN(), "!NaN cannot be written"},
		"infinity":         {Extensions{}, math.Inf(-1), "!-Inf cannot be written"},
		"time":             {Extensions{}, time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)), "<dateTime.iso8601>20300102T02:04:05</dateTime.iso8601>"},
		"late":             {Extensions{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "!the year 10000"},
		"bytes":            {Extensions{}, []byte("hello"), "<base64>aGVsbG8=</base64>"},
		"nil":              {Extensions{}, nil, "!nil cannot be written"},
		"nil allowed":      {all, nil, "<nil/>"},
		"array":            {Extensions{}, []any{1, []any{}}, "<array><data><value><int>1</int></value><value><array><data></data></array></value></data></array>"},
		"nil array":        {Extensions{}, []any(nil), "<array><data></data></array>"},
		"strings":          {Extensions{}, []string{"a"}, "<array><data><value><string>a</string></value></data></array>"},
		"structs":          {Extensions{}, []map[string]string{{"a": "b"}}, "<array><data><value><struct><member><name>a</name><value><string>b</string></value></member></struct></value></data></array>"},
		"sorted":           {Extensions{}, map[string]any{"b": 1, "a<": 2}, "<struct><member><name>a&lt;</name><value><int>2</int></value></member><member><name>b</name><value><int>1</int></value></member></struct>"},
		"named types":      {Extensions{}, members{"k": named("v")}, "<struct><member><name>k</name><value><string>v</string></value></member></struct>"},
		"other type":       {Extensions{}, map[string]any{"a": []any{0, struct{}{}}}, "!result, member a[1]: a Go struct {} cannot be written"},
		"pointer":          {Extensions{}, new(int), "!a Go *int"},
		"channel":          {Extensions{}, make(chan int), "!a Go chan int"},
		"map by numbers":   {Extensions{}, map[int]int{}, "!a Go map[int]int"},
		"name not for XML": {Extensions{}, map[string]any{"a\x00": 1}, "!U+0000"},
		"name not UTF-8":   {Extensions{}, map[string]any{"\xff": 1}, "!not UTF-8"},
		"place":            {Extensions{}, map[string]any{"geni_slivers": []any{map[string]any{"x": nil}}}, "!result, member geni_slivers[0].x: nil"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := NewResponse(test.x, test.v)
			if want, isErr := strings.CutPrefix(test.want, "!"); isErr {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := head + "<methodResponse><params><param><value>" + test.want + "</value></param></params></methodResponse>\n"
			checkMessage(t, m, want)
		})
	}
}

// checkMessage looks at all ways to get at a document.
func checkMessage(t *testing.T, m *Message, want string) {
	t.Helper()
	if got := string(m.Bytes()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	var b bytes.Buffer
	if n, err := m.WriteTo(&b); err != nil || n != int64(len(want)) || b.String() != want {
		t.Errorf("written %d: %s, %v", n, b.String(), err)
	}
	if m.Size() != int64(len(want)) {
		t.Errorf("size %d, want %d", m.Size(), len(want))
	}
	if err := xml.Unmarshal([]byte(want), new(struct{})); err != nil {
		t.Errorf("not XML: %v", err)
	}
}

func TestEncodeCalls(t *testing.T) {
	m, err := NewCall(Extensions{}, "GetVersion")
	if err != nil {
		t.Fatal(err)
	}
	checkMessage(t, m, head+"<methodCall><methodName>GetVersion</methodName><params></params></methodCall>\n")
	m, err = NewCall(Extensions{}, "a", 1, "b")
	if err != nil {
		t.Fatal(err)
	}
	checkMessage(t, m, head+"<methodCall><methodName>a</methodName><params><param><value><int>1</int></value></param>"+
		"<param><value><string>b</string></value></param></params></methodCall>\n")
	for _, method := range []string{"", "a b", "a<", strings.Repeat("a", 256)} {
		if _, err := NewCall(Extensions{}, method); err == nil {
			t.Errorf("method %q", method)
		}
	}
	if _, err := NewCall(Extensions{}, "a", 1, []any{nil}); err == nil || !strings.Contains(err.Error(), "call of a: param 2[0]: nil") {
		t.Error(err)
	}
}

func TestEncodeFaults(t *testing.T) {
	checkMessage(t, NewFault(&Fault{MethodNotFound, "no <method>\x00"}), head+"<methodResponse><fault><value><struct>"+
		"<member><name>faultCode</name><value><int>-32601</int></value></member>"+
		"<member><name>faultString</name><value><string>no &lt;method&gt;\uFFFD</string></value></member>"+
		"</struct></value></fault></methodResponse>\n")
	_, err := DecodeResponse(NewFault(&Fault{1 << 40, "x"}).Bytes(), Limits{})
	if f := new(Fault); !errors.As(err, &f) || f.Code != InternalError {
		t.Error(err)
	}
}

func TestEncodeCycle(t *testing.T) {
	loop := []any{nil}
	loop[0] = loop
	if _, err := NewResponse(Extensions{}, loop); err == nil || !strings.Contains(err.Error(), "within each other") {
		t.Error(err)
	}
}

// TestEncodePieces: however a text is cut into pieces to be written, nothing of
// it changes.
func TestEncodePieces(t *testing.T) {
	for _, unit := range []string{"a", "é", "€", "\U0001F600", "a€", "\x80", "\xf0\x9f\x98", "<", "\r", "ab\U0001F600\x80\x80", "\U0001F600\x80\x80\x80"} {
		for shift := range 4 {
			text := strings.Repeat("x", shift) + strings.Repeat(unit, (flushAt+2*piece)/len(unit))
			m, err := NewResponse(Extensions{}, []any{text, []byte(text)})
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if n, err := m.WriteTo(&b); err != nil || n != m.Size() || n != int64(b.Len()) || len(m.Bytes()) != b.Len() {
				t.Fatalf("%q: written %d of %d: %v", unit, b.Len(), m.Size(), err)
			}
			got, err := DecodeResponse(b.Bytes(), Limits{})
			want := []any{toValid(text), []byte(text)}
			if err != nil || !reflect.DeepEqual(got, any(want)) {
				t.Fatalf("%q after %d: changed, %v", unit, shift, err)
			}
		}
	}
}

// toValid replaces each byte that is not UTF-8.
func toValid(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		b.WriteRune(r)
		i += n
	}
	return b.String()
}

type failingWriter struct{ left int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, errors.New("full")
	}
	w.left -= len(p)
	return len(p), nil
}

func TestWriteFails(t *testing.T) {
	m, err := NewResponse(Extensions{}, []any{strings.Repeat("a", 1<<20), 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int{0, 100000, int(m.Size()) - 1} {
		if n, err := m.WriteTo(&failingWriter{left}); err == nil || n > int64(left) {
			t.Errorf("room for %d: wrote %d, %v", left, n, err)
		}
	}
}

// TestWriteToIsLight: the document of a large text is not held in memory.
func TestWriteToIsLight(t *testing.T) {
	m, err := NewResponse(Extensions{}, strings.Repeat("<node/>\n", 20<<20/8))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := m.WriteTo(io.Discard); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	if allocated > 1<<20 {
		t.Errorf("%d bytes allocated to write %d", allocated, m.Size())
	}
}
