package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// schemas returns the folder of the GENI schemas, which lies beside the
// repository where there is one.
func schemas(t *testing.T) string {
	t.Helper()
	need(t, "xmllint")
	dir := repository(t, "..", "shared", "schemas", "rspec")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("needs the GENI RSpec schemas in %s", dir)
	}
	return dir
}

// valid checks a document against a schema with xmllint.
func valid(t *testing.T, document, schema string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "document.xml")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runCommand(t, exec.Command("xmllint", "--nonet", "--noout", "--schema", schema, file), "")
	if r.status != 0 {
		t.Errorf("%s\n%s", r.err, document)
	}
}

// What the server gives out is valid against the published schemas.
func TestDocumentsAreValid(t *testing.T) {
	t.Parallel()
	dir := schemas(t)
	b := newTestbed(t)
	b.slice("docs")
	for _, name := range []string{"two-nodes.rspec", "lan-of-three.rspec", "four-nodes-two-links.rspec"} {
		t.Run(name, func(t *testing.T) {
			b.must("allocate", "docs", repository(t, "testdata", "requests", name))
			valid(t, b.must("describe", "docs", "--raw"), filepath.Join(dir, "manifest.xsd"))
			valid(t, b.must("list", "--raw"), filepath.Join(dir, "ad.xsd"))
			b.must("provision", "docs")
			valid(t, b.must("describe", "docs", "--raw"), filepath.Join(dir, "manifest.xsd"))
			b.must("delete", "docs")
			b.awaitNothing()
		})
	}
	t.Run("advertisement", func(t *testing.T) {
		for _, args := range [][]string{{"list", "--raw"}, {"list", "--raw", "--available"}} {
			ad := b.must(args...)
			valid(t, ad, filepath.Join(dir, "ad.xsd"))
			if !strings.Contains(ad, `type="advertisement"`) {
				t.Errorf("%v gives\n%s", args, ad)
			}
		}
	})
}
