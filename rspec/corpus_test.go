package rspec_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"croft/languages"
	"croft/rspec"
	"croft/slivers"
	"croft/urn"
)

// published is a document of the corpus, with what its index says of it.
type published struct {
	name    string // such as request/….rspec
	bytes   []byte
	version string // GENI-3, PG-2, …, or its namespace
	kind    string // request, manifest, …
	said    string // declared_type
	valid   bool   // by the schema of its version
}

// corpus reads the published documents, and skips the test if they are not at
// hand.
func corpus(t testing.TB) []published {
	t.Helper()
	index := shared(t, "corpus", "rspec", "index.tsv")
	f, err := os.Open(index)
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
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	var all []published
	for _, row := range rows[1:] {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(index), row[column["file"]]))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, published{
			name: row[column["file"]], bytes: b, version: row[column["rspec_version"]],
			kind: row[column["type"]], said: row[column["declared_type"]], valid: row[column["validates"]] == "yes",
		})
	}
	if len(all) < 400 {
		t.Fatalf("the corpus has %d documents only", len(all))
	}
	return all
}

var managerName = regexp.MustCompile(`(?i)(?:component_manager_id|component_manager\s+name)\s*=\s*["']\s*(urn:publicid:IDN\+[^"'\s]+)`)

// managers lists the component managers that a document names, each once.
func managers(document []byte) []urn.URN {
	var list []urn.URN
	seen := map[urn.URN]bool{}
	for _, m := range managerName.FindAllSubmatch(document, -1) {
		if id, err := urn.Parse(string(m[1])); err == nil && !seen[id.Canonical()] {
			seen[id.Canonical()] = true
			list = append(list, id)
		}
	}
	return list
}

// reasons says why documents of the corpus are refused, by what is said to
// their authors.
var reasons = map[string]*regexp.Regexp{
	"link across aggregates":   regexp.MustCompile(`at another aggregate; this one joins its own nodes only`),
	"passing through":          regexp.MustCompile(`passes through this one`),
	"no such interface":        regexp.MustCompile(`no node has an interface`),
	"no such end of property":  regexp.MustCompile(`is no interface of link`),
	"two of one name":          regexp.MustCompile(`is that of the (node|interface|link) in line \d+ already`),
	"interface on two links":   regexp.MustCompile(`is on (link .* already|this link twice)`),
	"same address twice":       regexp.MustCompile(`is that of .* on link .* too`),
	"no client_id":             regexp.MustCompile(`without a client_id`),
	"not an address":           regexp.MustCompile(`is not an IP address`),
	"not an address of a host": regexp.MustCompile(`outside of what its mask leaves`),
	"two sliver types":         regexp.MustCompile(`second sliver_type`),
	"not a request":            regexp.MustCompile(`not a request`),
}

func TestCorpusIsReadOrRefused(t *testing.T) {
	for _, p := range corpus(t) {
		t.Run(p.name, func(t *testing.T) {
			if !(rspec.Language{}).Detect(p.bytes) {
				t.Error("not detected")
			}
			ids := managers(p.bytes)
			if len(ids) == 0 {
				ids = []urn.URN{manager}
			}
			for _, id := range ids[:min(len(ids), 3)] {
				c, err := rspec.Language{}.Compile(context.Background(), p.bytes, scope(id))
				judge(t, p, c, err)
				if p.kind == "advertisement" {
					continue // megabytes of extensions that nothing here looks at
				}
				check, checkErr := rspec.Language{}.Check(p.bytes, scope(id))
				if checkErr == nil && (err == nil) != (len(check.Problems) == 0) {
					t.Errorf("Compile: %v, but Check finds %v", err, check.Problems)
				}
			}
		})
	}
}

// judge says whether the answer to a document is one that the index explains.
func judge(t *testing.T, p published, c *languages.Compiled, err error) {
	t.Helper()
	var wrong *languages.Error
	var unknown *languages.UnknownVersion
	switch {
	case err == nil:
		if p.kind == "malformed" || p.version != "GENI-3" && p.version != "PG-2" {
			t.Errorf("understood, though it is %s %s", p.kind, p.version)
		}
		if p.version == "PG-2" != c.Version.Is("ProtoGENI", "2") {
			t.Errorf("read as %s %s, though it is %s", c.Version.Type, c.Version.Version, p.version)
		}
	case errors.As(err, &unknown):
		if p.version == "GENI-3" || p.version == "PG-2" {
			t.Errorf("version not known: %v", err)
		}
	case errors.As(err, &wrong):
		if p.kind == "malformed" || p.said != "request" {
			return
		}
		for _, problem := range wrong.Problems {
			explained := false
			for _, reason := range reasons {
				explained = explained || reason.MatchString(problem.What)
			}
			if !explained {
				t.Errorf("refused for no reason of the list: %v", problem)
			}
			if problem.Place.Line == 0 {
				t.Errorf("refused without a place: %v", problem)
			}
		}
	default:
		t.Errorf("error of another kind: %v", err)
	}
}

// TestCorpusMostRequestsCompile sees that the reader does not become stricter
// unnoticed.
func TestCorpusMostRequestsCompile(t *testing.T) {
	requests, understood, crossing := 0, 0, 0
	for _, p := range corpus(t) {
		if p.kind != "request" || p.version != "GENI-3" && p.version != "PG-2" {
			continue
		}
		requests++
		ids := managers(p.bytes)
		if len(ids) == 0 {
			ids = []urn.URN{manager}
		}
		_, err := rspec.Language{}.Compile(context.Background(), p.bytes, scope(ids[0]))
		switch {
		case err == nil:
			understood++
		case reasons["link across aggregates"].MatchString(err.Error()), reasons["passing through"].MatchString(err.Error()):
			crossing++
		default:
			t.Logf("%s: %v", p.name, err)
		}
	}
	t.Logf("%d requests: %d understood, %d with links across aggregates, %d with mistakes",
		requests, understood, crossing, requests-understood-crossing)
	if requests-understood-crossing > 5 {
		t.Errorf("%d requests are refused for mistakes; their authors made 5", requests-understood-crossing)
	}
}

// TestCorpusManifests checks what becomes of every request that is understood:
// its own text with additions, valid where the request was.
func TestCorpusManifests(t *testing.T) {
	documents := corpus(t)
	strict, lenient, older := map[string][]byte{}, map[string][]byte{}, map[string][]byte{}
	asked, given := map[string][]byte{}, map[string][]byte{} // of requests that are not valid
	for _, p := range documents {
		if p.kind != "request" && p.said != "request" {
			continue
		}
		ids := managers(p.bytes)
		several := len(ids) > 1 || len(ids) == 0 && bytes.Contains(p.bytes, []byte("component_manager name"))
		if len(ids) == 0 {
			ids = []urn.URN{manager}
		}
		for _, id := range ids[:min(len(ids), 3)] {
			c, err := rspec.Language{}.Compile(context.Background(), p.bytes, scope(id))
			if err != nil {
				continue
			}
			name := p.name + " at " + string(id.Authority)
			m := manifest(t, rspec.ManifestInput{
				Snapshot:  snapshot(id),
				Documents: []slivers.Document{original(1, p.bytes)},
				Slivers:   provision(place(c.Request, 1)),
				Version:   c.Version, Now: noon,
			})
			if !toldBefore(p.bytes) {
				if d := difference(p.bytes, m); d != "" {
					t.Errorf("%s: not the request with additions: %s", name, d)
				}
			}
			switch {
			case p.kind != "request":
			case !p.valid && p.version == "GENI-3" && !several:
				asked[name], given[name] = p.bytes, m
			case !p.valid:
			case p.version == "PG-2":
				older[name] = m
			case several:
				lenient[name] = m
			default:
				strict[name] = m
			}
		}
	}
	if len(strict) < 100 {
		t.Errorf("only %d manifests to validate", len(strict))
	}
	dir := schemaTool(t)
	for schema, of := range map[string]map[string][]byte{
		"manifest.xsd": strict, filepath.Join("lenient", "manifest.xsd"): lenient, filepath.Join("protogeni-2", "manifest.xsd"): older,
	} {
		t.Logf("%s: %d manifests", schema, len(of))
		for name, why := range violations(t, filepath.Join(dir, schema), of) {
			t.Errorf("%s: not valid by %s: %s", name, schema, why)
		}
	}
	before := violations(t, filepath.Join(dir, "request.xsd"), asked)
	for name, why := range violations(t, filepath.Join(dir, "manifest.xsd"), given) {
		if strings.Count(why, "\n") > strings.Count(before[name], "\n") {
			t.Errorf("%s: the manifest is worse than the request:\n%s--- before\n%s", name, why, before[name])
		}
	}
	t.Logf("%d requests that are not valid", len(asked))
}

// toldBefore reports whether a request is a manifest in disguise, as some
// portals save them: what it tells is written anew.
func toldBefore(document []byte) bool {
	return bytes.Contains(document, []byte("sliver_id=")) || bytes.Contains(document, []byte("<login")) || bytes.Contains(document, []byte("<host"))
}

// TestSchemaAgreesWithXmllint compares what Check says of the schema with what
// xmllint does.
func TestSchemaAgreesWithXmllint(t *testing.T) {
	dir := schemaTool(t)
	var checked int
	for version, schema := range map[string]string{"GENI-3": "request.xsd", "PG-2": filepath.Join("protogeni-2", "request.xsd")} {
		documents := map[string][]byte{}
		for _, p := range corpus(t) {
			if p.version == version && p.kind == "request" {
				documents[p.name] = p.bytes
			}
		}
		bad := violations(t, filepath.Join(dir, schema), documents)
		for name, document := range documents {
			report, err := rspec.Language{}.Check(document, scope())
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			checked++
			if (bad[name] == "") != (len(report.Schema) == 0) {
				t.Errorf("%s: xmllint says %q, Check %v", name, bad[name], report.Schema)
			}
		}
	}
	t.Logf("%d documents", checked)
}
