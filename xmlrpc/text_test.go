package xmlrpc_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"croft/xmlrpc"
)

func TestTextIsAString(t *testing.T) {
	for _, test := range []struct {
		name   string
		pieces []string
	}{
		{"nothing", nil},
		{"empty pieces", []string{"", ""}},
		{"escapes", []string{"a < b & c", " > d\r\n", "é€"}},
		{"long", slices.Repeat([]string{"<node component_id=\"é\"/>\n"}, 20_000)},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := map[string]any{"value": xmlrpc.Text(slices.Values(test.pieces))}
			m, err := xmlrpc.NewResponse(xmlrpc.Extensions{}, in)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := xmlrpc.NewResponse(xmlrpc.Extensions{}, map[string]any{"value": strings.Join(test.pieces, "")})
			if err != nil {
				t.Fatal(err)
			}
			var got, want strings.Builder
			if _, err := m.WriteTo(&got); err != nil {
				t.Fatal(err)
			}
			if _, err := plain.WriteTo(&want); err != nil {
				t.Fatal(err)
			}
			if got.String() != want.String() {
				t.Errorf("in pieces it is written as\n%.300s\nas a whole as\n%.300s", got.String(), want.String())
			}
			if m.Size() != int64(got.Len()) {
				t.Errorf("Size is %d, the document has %d bytes", m.Size(), got.Len())
			}
		})
	}
}

// BenchmarkText writes a string of 20 MB: whole, and in pieces.
func BenchmarkText(b *testing.B) {
	pieces := slices.Repeat([]string{strings.Repeat(`<interface component_id="urn:publicid:IDN+example.org+interface+pc1:eth0"/>`+"\n", 25)}, 10_500)
	for name, value := range map[string]any{"whole": strings.Join(pieces, ""), "pieces": xmlrpc.Text(slices.Values(pieces))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(pieces) * len(pieces[0])))
			b.ReportAllocs()
			for b.Loop() {
				m, err := xmlrpc.NewResponse(xmlrpc.Extensions{}, value)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := m.WriteTo(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
