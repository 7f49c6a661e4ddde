package radl_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"

	"croft/languages/radl"
)

// differences are the documents of the corpus that Croft takes otherwise than
// the reference parser, with the reason. There are none: see the package's
// documentation for what is different in other documents.
var differences = map[string]string{}

// Every document of the corpus is valid if the reference parser says so.
func TestCorpus(t *testing.T) {
	dir := shared(t, "corpus", "radl")
	f, err := os.Open(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		name, verdict := row[0], row[1]
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			d, _, err := radl.Parse(text, nil)
			if valid := verdict == "valid"; valid != (err == nil) && differences[name] == "" {
				t.Fatalf("the reference parser says %s: %s; Croft: %v", verdict, row[2], err)
			}
			if err == nil {
				roundTrip(t, d)
			}
		})
	}
}

// shared is a file of the folder beside the repository, and skips the test if
// it is not there.
func shared(t testing.TB, elements ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		path := filepath.Join(append([]string{dir, "shared"}, elements...)...)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("not at hand: shared/%s beside the repository", filepath.Join(elements...))
		}
	}
}
