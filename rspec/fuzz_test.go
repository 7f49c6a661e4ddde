package rspec_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/beevik/etree"

	"croft/languages"
	"croft/rspec"
	"croft/slivers"
)

// FuzzCompile feeds the reader whatever there is. Nothing panics; errors are
// of the kinds that a language has; and what is understood makes a manifest
// that is the request with additions, and is understood as well.
func FuzzCompile(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join(repository(f), "testdata", "requests", "*.rspec"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no requests to start from: %v", err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`<rspec xmlns="http://www.geni.net/resources/rspec/3"><node client_id="a"><services/><host name=''/></node></rspec>`))
	f.Add([]byte(`&lt;rspec/&gt;`))
	f.Fuzz(func(t *testing.T, document []byte) {
		language := rspec.Language{Limits: rspec.Limits{Bytes: 64 << 10}}
		detected := language.Detect(document)
		c, err := language.Compile(context.Background(), document, scope())
		if err != nil {
			var wrong *languages.Error
			var unknown *languages.UnknownVersion
			if !errors.As(err, &wrong) && !errors.As(err, &unknown) {
				t.Fatalf("error of another kind: %v", err)
			}
			if wrong != nil && len(wrong.Problems) == 0 {
				t.Fatal("an error without a problem")
			}
			return
		}
		if !detected {
			t.Error("understood, but not detected")
		}
		if _, err := language.Check(document, scope()); err != nil {
			t.Errorf("Check: %v", err)
		}
		for _, version := range rspec.ManifestVersions() {
			all := provision(place(c.Request, 1))
			m, err := rspec.Manifest(rspec.ManifestInput{
				Snapshot: snapshot(), Slice: slice, Documents: []slivers.Document{original(1, document)}, Slivers: all, Version: version, Now: noon,
			})
			var unknown *languages.UnknownVersion
			if errors.As(err, &unknown) && !version.Is(c.Version.Type, c.Version.Version) {
				continue
			}
			if err != nil {
				t.Fatalf("Manifest in %s %s: %v", version.Type, version.Version, err)
			}
			if err := etree.NewDocument().ReadFromBytes(m); err != nil {
				t.Fatalf("manifest: %v\n%s", err, m)
			}
			if !version.Is(c.Version.Type, c.Version.Version) || toldBefore(document) {
				continue
			}
			if _, err := parse(document); err != nil {
				continue // escaped, or in another encoding
			}
			if d := difference(document, m); d != "" {
				t.Fatalf("not the request with additions: %s\n%s", d, m)
			}
		}
	})
}
