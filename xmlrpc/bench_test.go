package xmlrpc

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	kolo "github.com/kolo/xmlrpc"
)

// advertisement is text like that of a large testbed, of about n bytes.
func advertisement(n int) string {
	var b strings.Builder
	b.WriteString(`<rspec type="advertisement" xmlns="http://www.geni.net/resources/rspec/3">` + "\n")
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `  <node component_id="urn:publicid:IDN+example.org+node+pc%d" component_name="pc%d" exclusive="true">
    <hardware_type name="pc3000"/><sliver_type name="raw-pc"/><available now="true"/>
  </node>`+"\n", i, i)
	}
	b.WriteString("</rspec>\n")
	return b.String()
}

func BenchmarkEncode20MB(b *testing.B) {
	text := advertisement(20 << 20)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		m, err := NewResponse(Extensions{}, map[string]any{"value": text})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, mb := range []int{1, 10, 40} {
		b.Run(fmt.Sprint(mb, "MB"), func(b *testing.B) {
			text := advertisement(mb << 20)
			m, err := NewCall(Extensions{}, "Allocate", "urn", text)
			if err != nil {
				b.Fatal(err)
			}
			doc := m.Bytes()
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeCall(doc, Limits{Bytes: 1 << 30}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkKolo is the library that the tests use as a peer, with a tenth of
// the text.
func BenchmarkKolo(b *testing.B) {
	m, err := NewResponse(Extensions{}, map[string]any{"value": advertisement(1 << 20)})
	if err != nil {
		b.Fatal(err)
	}
	doc := m.Bytes()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		var got struct {
			Value string `xmlrpc:"value"`
		}
		if err := kolo.Response(bytes.Clone(doc)).Unmarshal(&got); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStatus decodes many small values: the slivers of a large slice.
func BenchmarkStatus(b *testing.B) {
	var slivers []any
	for i := range 1000 {
		slivers = append(slivers, map[string]any{"geni_sliver_urn": fmt.Sprintf("urn:publicid:IDN+example.org+sliver+%d", i),
			"geni_expires": "2030-01-01T00:00:00Z", "geni_allocation_status": "geni_provisioned", "geni_operational_status": "geni_ready", "geni_error": ""})
	}
	m, err := NewResponse(Extensions{}, map[string]any{"geni_slivers": slivers})
	if err != nil {
		b.Fatal(err)
	}
	doc := m.Bytes()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeResponse(doc, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall is a small call over HTTP on the loopback.
func BenchmarkCall(b *testing.B) {
	srv := httptest.NewServer(&Server{Methods: Methods{"echo": echo}})
	defer srv.Close()
	c := &Client{URL: srv.URL}
	for b.Loop() {
		if _, err := c.Call(b.Context(), "echo", "urn:publicid:IDN+example.org+slice+s", map[string]any{}); err != nil {
			b.Fatal(err)
		}
	}
}
