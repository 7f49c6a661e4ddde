package credentials

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"croft/internal/openssl"
	"croft/urn"
)

// benchmarked are the documents that the benchmarks verify.
func benchmarked(b *testing.B, f *fixture) map[string]string {
	slice := f.sign(b, f.root, f.alice, f.slice)
	return map[string]string{
		"slice":     slice,
		"delegated": f.delegate(b, f.delegate(b, slice, f.alice, f.bob), f.bob, f.alice),
	}
}

// Credentials verified per second: read for the first time, the same with the
// certificates in it known from other credentials, remembered, and by the
// xmlsec1 program, which checks one signature and no more.
func BenchmarkVerify(b *testing.B) {
	f := newFixture(b)
	caller := f.caller(b, f.alice)
	on := urn.MustParse(sliceURN)
	ask := func(b *testing.B, v *Verifier, value string) {
		p, err := v.Verify(context.Background(), caller, sfa(value))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.May(Allocate, on); err != nil {
			b.Fatal(err)
		}
	}
	perSecond := func(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "credentials/s") }
	for name, value := range benchmarked(b, f) {
		b.Run(name+"/cold", func(b *testing.B) {
			for b.Loop() {
				f.trust.parsed = newCache[*openssl.Certificate](1024)
				ask(b, NewVerifier(f.trust, nil), value)
			}
			perSecond(b)
		})
		b.Run(name+"/new but its certificates", func(b *testing.B) {
			for b.Loop() {
				ask(b, NewVerifier(f.trust, nil), value)
			}
			perSecond(b)
		})
		b.Run(name+"/remembered", func(b *testing.B) {
			v := NewVerifier(f.trust, nil)
			for b.Loop() {
				ask(b, v, value)
			}
			perSecond(b)
		})
		b.Run(name+"/xmlsec1", func(b *testing.B) {
			program, err := exec.LookPath("xmlsec1")
			if err != nil {
				b.Skip("needs xmlsec1 (apt-get install xmlsec1)")
			}
			file := writeFile(b, filepath.Join(b.TempDir(), "c.xml"), []byte(value))
			for b.Loop() {
				if out, err := exec.Command(program, "--verify", "--trusted-pem", filepath.Join(f.dir, "root.pem"), file).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
			perSecond(b)
		})
		b.Run(name+"/xmlsec1 in one process", func(b *testing.B) {
			program, err := exec.LookPath("xmlsec1")
			if err != nil {
				b.Skip("needs xmlsec1 (apt-get install xmlsec1)")
			}
			file := writeFile(b, filepath.Join(b.TempDir(), "c.xml"), []byte(value))
			cmd := exec.Command(program, "--verify", "--trusted-pem", filepath.Join(f.dir, "root.pem"), "--repeat", fmt.Sprint(max(b.N, 1)), file)
			var out bytes.Buffer
			cmd.Stderr = &out
			if err := cmd.Run(); err != nil {
				b.Fatalf("%v: %s", err, &out)
			}
			perSecond(b)
		})
	}
}

func BenchmarkIdentify(b *testing.B) {
	f := newFixture(b)
	chain := f.carol.certificates(b)
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			f.trust.callers = newCache[*Caller](1)
			if _, err := f.trust.Identify(chain); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.trust.Identify(chain); err != nil {
				b.Fatal(err)
			}
		}
	})
}
