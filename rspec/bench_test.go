package rspec_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"croft/inventory"
	"croft/rspec"
	"croft/slivers"
)

// large is a request of n nodes on one LAN.
func large(n int) []byte {
	b := []byte(`<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">` + "\n")
	add := func(parts ...string) {
		for _, p := range parts {
			b = append(b, p...)
		}
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "node-" + string(rune('a'+i/676%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
		add(`  <node client_id="`, ids[i], `" exclusive="false">`+"\n"+`    <sliver_type name="namespace"/>`+"\n",
			`    <interface client_id="`, ids[i], `:if0"/>`+"\n"+`    <icon xmlns="http://www.protogeni.net/resources/rspec/ext/jacks/1" url="https://www.example.org/i.svg"/>`+"\n  </node>\n")
	}
	add(`  <link client_id="lan">` + "\n")
	for _, id := range ids {
		add(`    <interface_ref client_id="`, id, `:if0"/>`+"\n")
	}
	add("    <link_type name=\"lan\"/>\n  </link>\n</rspec>\n")
	return b
}

func BenchmarkCompile(b *testing.B) {
	for _, bench := range []struct {
		name     string
		document []byte
	}{
		{"two-nodes", requestFile(b, "two-nodes.rspec")},
		{"1000-nodes", large(1000)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.document)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (rspec.Language{}).Compile(context.Background(), bench.document, scope()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCorpus reads the published documents: Check, which compiles and
// validates, beside xmllint doing the same with the schema.
func BenchmarkCorpus(b *testing.B) {
	var requests [][]byte
	var paths []string
	var size int64
	dir := shared(b, "corpus", "rspec")
	for _, p := range corpus(b) {
		if p.kind == "request" && p.version == "GENI-3" {
			requests = append(requests, p.bytes)
			paths = append(paths, filepath.Join(dir, p.name))
			size += int64(len(p.bytes))
		}
	}
	b.Run("croft", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			for _, r := range requests {
				_, _ = rspec.Language{}.Check(r, scope())
			}
		}
	})
	b.Run("xmllint", func(b *testing.B) {
		schema := filepath.Join(schemaTool(b), "request.xsd")
		b.SetBytes(size)
		for b.Loop() {
			_ = exec.Command("xmllint", append([]string{"--nonet", "--noout", "--schema", schema}, paths...)...).Run()
		}
	})
}

func BenchmarkManifest(b *testing.B) {
	document := large(1000)
	in := rspec.ManifestInput{
		Snapshot: snapshot(), Slice: slice, Documents: []slivers.Document{original(1, document)},
		Slivers: provision(place(compile(b, document, scope()).Request, 1)), Now: noon,
	}
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if _, err := rspec.Manifest(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdvertisement(b *testing.B) {
	s := testbed(10_000)
	b.Run("catalogue", func(b *testing.B) {
		for b.Loop() {
			if _, err := rspec.NewCatalogue(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	c, err := rspec.NewCatalogue(s)
	if err != nil {
		b.Fatal(err)
	}
	some := func(*inventory.Host) bool { return true }
	first := c.Ad(nil, some, rspec.AdvertisementOptions{Now: noon})
	first.Compressed()
	turn := 0
	b.Run("one host changes", func(b *testing.B) { // and all hosts are asked
		for b.Loop() {
			turn++
			first = c.Ad(first, func(h *inventory.Host) bool { return h != &s.Hosts[turn%len(s.Hosts)] }, rspec.AdvertisementOptions{Now: noon})
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(int64(first.Size()))
		for b.Loop() {
			for range first.Pieces() {
			}
		}
	})
	b.Run("compressed", func(b *testing.B) {
		b.SetBytes(int64(first.Size()))
		for b.Loop() {
			first.Compressed()
		}
	})
}
