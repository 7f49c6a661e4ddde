package camp_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"croft/languages"
	"croft/languages/camp"
	"croft/languages/camp/pdp"
	"croft/languages/languagestest"
	"croft/request"
	"croft/urn"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func scope() languages.Scope {
	return languages.Scope{Managers: []urn.URN{urn.MustParse("urn:publicid:IDN+example.org+authority+cm")}}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const web = `camp_version: CAMP 1.1
name: web
artifacts:
  - name: web
    artifact_type: org.testbed:script
    content: { href: web.sh }
    requirements:
      - requirement_type: org.testbed:HostOn
        fulfillment: id:node
services:
  - id: node
    characteristics:
      - characteristic_type: org.testbed:Node
        org.testbed:count: "2"
`

func pack(t testing.TB, format pdp.Format, plan string, files map[string]string) []byte {
	t.Helper()
	var names []string
	for name := range files {
		names = append(names, name)
	}
	var b bytes.Buffer
	err := pdp.Write(&b, format, []byte(plan), names, func(name string) ([]byte, error) { return []byte(files[name]), nil })
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packages(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	for _, f := range []pdp.Format{pdp.Tar, pdp.Tgz, pdp.Zip} {
		raw := pack(t, f, web, map[string]string{"web.sh": "#!/bin/sh\necho hello\n"})
		all[string(f)] = raw
		all[string(f)+" in base64"] = []byte(base64.StdEncoding.EncodeToString(raw))
	}
	return all
}

func TestConformance(t *testing.T) {
	good, bad := packages(t), map[string][]byte{}
	good["two tiers"] = read(t, "testdata/two-tiers.yaml")
	for _, m := range mistakes {
		bad[m.name] = []byte(m.document(t))
	}
	languagestest.Test(t, camp.Language{}, languagestest.Documents{
		Good: good, Bad: bad,
		Foreign: map[string][]byte{
			"an RSpec":         []byte(`<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3"/>`),
			"a ZApp":           []byte(`{"name": "n", "version": 2, "services": []}`),
			"TOSCA":            []byte("tosca_definitions_version: tosca_2_0\n"),
			"RADL":             []byte("system a ()\ndeploy a 1\n"),
			"another package":  pack(t, pdp.Zip, "", nil)[:20],
			"base64 of nought": []byte(base64.StdEncoding.EncodeToString(make([]byte, 100))),
		},
	})
}

// A mistake is something put in place of something else in the plan of
// testdata.
type mistake struct {
	name, old, new string
	at, want       string
}

func (m *mistake) document(t testing.TB) string {
	good := string(read(t, "testdata/two-tiers.yaml"))
	if !strings.Contains(good, m.old) {
		t.Fatalf("%s: nothing to put it in place of", m.name)
	}
	return strings.Replace(good, m.old, m.new, 1)
}

var mistakes = []mistake{
	{"no YAML", "tags: [example]", "tags: [example", "", "not YAML"},
	{"another version", "camp_version: CAMP 1.1", "camp_version: CAMP 2.0", "camp_version", "CAMP 1.1"},
	{"artifacts that are no list", "artifacts:\n", "artifacts: {}\nothers:\n", "artifacts", "list"},
	{"an artifact type that nobody has", "org.testbed:service", "com.example:WAR", "artifacts[1]", "unresolved"},
	{"a requirement type that nobody has", `"org.testbed:HostOn", fulfillment: id:front`, `"org.testbed:HostOm", fulfillment: id:front`, "artifacts[1]/requirements[0]", "HostOn"},
	{"a characteristic that nobody has", "characteristic_type: org.testbed:Link", "characteristic_type: org.foo:Bar", "services[2]/characteristics[0]", "unresolved"},
	{"a service that is not there", "id:front }", "id:back-end }", "artifacts[1]/requirements[0]", "unresolved"},
	{"an artifact that is not there", "fulfillment: id:schema", "fulfillment: id:scheme", "artifacts[2]/requirements[1]", "unresolved"},
	{"artifacts in a ring", "fulfillment: id:schema", "fulfillment: id:serve", "", "depends on itself"},
	{"no fulfillment", "fulfillment: id:store }\n  - name: serve", "name: x }\n  - name: serve", "artifacts[0]/requirements[0]", "fulfills"},
	{"a fulfillment of its own kind", "fulfillment: id:front", "fulfillment: front", "artifacts[1]/requirements[0]/fulfillment", "id:SERVICE"},
	{"no content", "content: { data: IyEvYmluL3NoCmVjaG8gbG9hZGVkCg== }", "", "artifacts[2]", "content"},
	{"no base64", "IyEvYmluL3NoCmVjaG8gbG9hZGVkCg==", "'%%%'", "artifacts[2]/content/data", "base64"},
	{"a file without a package", `"https://tools.example.org/tools.tgz"`, "tools.tgz", "artifacts[3]/content/href", "without a package"},
	{"a scheme that is not fetched", "https://", "ftp://", "artifacts[3]/content/href", "not fetched"},
	{"a script that is elsewhere", "content: { data: IyEvYmluL3NoCmVjaG8gbG9hZGVkCg== }", "content: { href: 'http://a.example.org/x' }", "artifacts[2]", "not fetched"},
	{"a path that is none", "/srv/schema.sql", "srv", "artifacts[0]", "not absolute"},
	{"an id twice", "id: store", "id: front", "services[1]/id", "twice"},
	{"a link that is not there", "[back]\n        org.testbed:env", "[front]\n        org.testbed:env", "services[0]/characteristics[0]/links[0]", "no link"},
	{"nobody on a link", "org.testbed:latency: 5", "org.testbed:latency: 5\n  - id: idle\n    characteristics: [{characteristic_type: 'org.testbed:Link'}]", "services[3]", "joins 0 nodes"},
	{"half a node", `"2"`, `"2.5"`, "", "whole"},
	{"too many", `"2"`, `"1000000"`, "", "1 to 5000"},
	{"a loss above all", "org.testbed:latency: 5", "org.testbed:loss: 101", "", "0 to 100"},
	{"an attribute that nobody knows", "org.testbed:cores", "org.testbed:core", "", "did you mean org.testbed:cores?"},
	{"an environment that is a list", "{ STORE: store }", "[STORE]", "", "map of names"},
}

func TestMistakes(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			_, err := (camp.Language{}).Compile(t.Context(), []byte(m.document(t)), scope())
			var wrong *languages.Error
			if !errors.As(err, &wrong) {
				t.Fatalf("error %v", err)
			}
			p := wrong.Problems[0]
			if at := strings.ReplaceAll(p.Place.Path, "org.testbed:", ""); m.at != "" && at != m.at || !strings.Contains(p.String(), m.want) || p.Place.Line == 0 {
				t.Errorf("%q at %q; want %q at %q", p, at, m.want, m.at)
			}
		})
	}
}

func TestGolden(t *testing.T) {
	for name, document := range map[string][]byte{
		"two-tiers": read(t, "testdata/two-tiers.yaml"), "package": packages(t)["tgz"],
	} {
		t.Run(name, func(t *testing.T) {
			c, err := (camp.Language{}).Compile(t.Context(), document, scope())
			if err != nil {
				t.Fatal(err)
			}
			got := describe(c.Request)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(read(t, golden)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func describe(r *request.Request) string {
	var b strings.Builder
	for _, n := range r.Nodes {
		fmt.Fprintf(&b, "node %s: %s, image %+v, env %v\n", n.ID, n.Capacity, n.Image.System, n.Env)
	}
	for _, l := range r.Links {
		fmt.Fprintf(&b, "link %s:", l.ID)
		for _, e := range l.Ends {
			fmt.Fprintf(&b, " %s", e.Interface)
		}
		for _, p := range l.Properties {
			fmt.Fprintf(&b, " (%d kbit/s, %g ms, %g %%)", p.Capacity, p.LatencyMs, p.Loss)
		}
		b.WriteString("\n")
	}
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "step %s after %v root %v:", s.Name, s.After, s.Root)
		for _, f := range s.Files {
			fmt.Fprintf(&b, " file %s %o %q", f.Path, f.Mode, f.Content)
		}
		switch {
		case s.Run != nil:
			fmt.Fprintf(&b, " run %q", s.Run.Args)
		case s.Service != nil:
			fmt.Fprintf(&b, " keep running %q", s.Service.Args)
		case s.Install != nil:
			fmt.Fprintf(&b, " install %s in %s", s.Install.URL, s.Install.Path)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestCorpus reads the packages and plans of others: those that are written
// for this kind of platform are understood, those for other platforms refused
// with the types that nobody here has.
func TestCorpus(t *testing.T) {
	var dir string
	for _, way := range []string{"../../..", "../../../.."} {
		if d := filepath.Join(way, "shared", "corpus", "camp"); exists(d) {
			dir = d
		}
	}
	if dir == "" {
		t.Skip("the corpus is not at hand: want ../shared/corpus/camp beside the repository")
	}
	for _, name := range []string{"cs01-sample.tar", "cs01-sample.tgz", "cs01-sample.zip", "csd02-sample.tar"} {
		document := read(t, filepath.Join(dir, "pdp-made", name))
		if !(camp.Language{}).Detect(document) {
			t.Errorf("%s is not detected", name)
		}
		c, err := (camp.Language{}).Compile(t.Context(), document, scope())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(c.Request.Nodes) != 2 || len(c.Request.Links) != 1 || len(c.Request.Steps) != 2 {
			t.Errorf("%s: %s", name, describe(c.Request))
		}
	}
	others := 0
	for _, pattern := range []string{"solum/plans/*.yaml", "solum/plans/camp/*.yaml", "brooklyn/*/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			others++
			_, err := (camp.Language{}).Compile(t.Context(), read(t, f), scope())
			var wrong *languages.Error
			if !errors.As(err, &wrong) {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
	if others < 20 {
		t.Errorf("%d plans of others", others)
	}
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

func FuzzCompile(f *testing.F) {
	f.Add(read(f, "testdata/two-tiers.yaml"))
	f.Add([]byte(web))
	for _, p := range packages(f) {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		c, err := (camp.Language{}).Compile(t.Context(), document, scope())
		if err != nil {
			return
		}
		names := map[request.ClientID]bool{}
		for _, n := range c.Request.Nodes {
			if names[n.ID] {
				t.Errorf("two nodes %s", n.ID)
			}
			names[n.ID] = true
		}
		for _, s := range c.Request.Steps {
			if !names[s.Node] {
				t.Errorf("step %s is of no node", s.Name)
			}
		}
	})
}
