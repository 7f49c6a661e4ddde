package zapp_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"croft/languages"
	"croft/languages/languagestest"
	"croft/languages/zapp"
	"croft/request"
	"croft/urn"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func scope() languages.Scope {
	return languages.Scope{Managers: []urn.URN{urn.MustParse("urn:publicid:IDN+example.org+authority+cm")}}
}

func files(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(n)] = text
	}
	if len(all) == 0 {
		t.Fatalf("no file %s", pattern)
	}
	return all
}

func TestConformance(t *testing.T) {
	bad := map[string][]byte{}
	for _, c := range mistakes {
		bad[c.name] = []byte(c.document())
	}
	languagestest.Test(t, zapp.Language{}, languagestest.Documents{
		Good:    files(t, "*.json"),
		Bad:     bad,
		Unknown: map[string][]byte{"version 1": []byte(`{"version": 1, "services": []}`), "version 4": []byte(`{"version": 4, "services": []}`)},
		Foreign: map[string][]byte{
			"an RSpec":     []byte(`<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3"/>`),
			"RADL in JSON": []byte(`[{"class": "system", "id": "services"}]`),
			"a CAMP plan":  []byte(`{"camp_version": "CAMP 1.1", "services": []}`),
			"YAML":         []byte("services:\n- name: x\n"),
		},
	})
}

const (
	v2 = `{"name": "n", "version": 2, "will_end": true, "priority": 1, "requires_binary": false, "services": [%s]}`
	v3 = `{"name": "app", "version": 3, "will_end": true, "size": 1, "services": [%s]}`
	s2 = `{"name": "web", "docker_image": "alpine", "environment": [], "monitor": true, "total_count": 1, "essential_count": 1, "required_resources": {"memory": 33554432}, "startup_order": 0, "ports": []}`
	s3 = `{"name": "web", "image": "alpine", "environment": [], "volumes": [], "command": null, "monitor": true, "total_count": 1, "essential_count": 1, "resources": {"memory": {"min": 33554432, "max": null}, "cores": {"min": null, "max": 2}}, "startup_order": 0, "ports": []}`
)

type mistake struct {
	name            string
	around, service string
	old, new        string
	pointer, want   string
}

func (m *mistake) document() string {
	return strings.Replace(fmt.Sprintf(m.around, m.service), m.old, m.new, 1)
}

// mistakes are documents with one thing wrong: a good one with something put
// in place of something else.
var mistakes = []mistake{
	{"no JSON", v2, s2, `"will_end": true`, `"will_end": maybe`, "/will_end", "no JSON"},
	{"cut off", v2, s2, `]}]}`, ``, "/services/0/ports", "too early"},
	{"more after the end", v3, s3, `"startup_order": 0, "ports": []}]}`, `"startup_order": 0, "ports": []}]} {}`, "", "after the end"},
	{"the same field twice", v2, s2, `"priority": 1`, `"priority": 1, "priority": 2`, "/priority", "two fields"},
	{"no version", v2, s2, `"version": 2, `, ``, "", "version"},
	{"no services", v2, s2, s2, ``, "/services", "no services"},
	{"a priority too high", v2, s2, `"priority": 1`, `"priority": 1025`, "/priority", "0 to 1024"},
	{"no monitor", v3, s3, `"monitor": true`, `"monitor": false`, "/services", "monitor"},
	{"a field that nobody knows", v3, s3, `"size": 1`, `"size": 1, "sizes": 2`, "/sizes", "did you mean size?"},
	{"a name with a space", v3, s3, `"app"`, `"my app"`, "/name", "letters"},
	{"a name too short", v3, s3, `"web"`, `"wb"`, "/services/0/name", "3 to 16"},
	{"a dot in a name", v2, s2, `"web"`, `"web.1"`, "/services/0/name", "letters"},
	{"two services of one name", v2, s2, s2, s2 + "," + s2, "/services/1", `two services "web"`},
	{"instances of one name", v2, s2, s2, strings.Replace(s2, `"total_count": 1`, `"total_count": 12`, 1) + "," + strings.Replace(s2, `"web"`, `"web1"`, 1), "/services/1", "web10"},
	{"more essential than there are", v2, s2, `"essential_count": 1`, `"essential_count": 2`, "/services/0/essential_count", "only 1"},
	{"none essential", v3, s3, `"essential_count": 1`, `"essential_count": 0`, "/services/0/essential_count", "from 1"},
	{"half a service", v2, s2, `"total_count": 1`, `"total_count": 1.5`, "/services/0/total_count", "whole"},
	{"too many", v2, s2, `"total_count": 1`, `"total_count": 1000000`, "/services", "at most 5000"},
	{"a number in quotes", v2, s2, `"startup_order": 0`, `"startup_order": "0"`, "/services/0/startup_order", "a number is wanted"},
	{"memory below the least", v3, s3, `"min": 33554432`, `"min": 5`, "/services/0/resources/memory/min", "from 1024"},
	{"an interval upside down", v3, s3, `"min": null, "max": 2`, `"min": 3, "max": 2`, "/services/0/resources/cores/max", "less than"},
	{"a variable that nobody knows", v2, s2, `"environment": []`, `"environment": [["A", "{user_nam}"]]`, "/services/0/environment/0/1", "user_name"},
	{"an instance that is none", v2, s2, `"environment": []`, `"environment": [["A", "{dns_name#web1}"]]`, "/services/0/environment/0/1", "did you mean web0?"},
	{"an environment that is a map", v2, s2, `"environment": []`, `"environment": [{"A": "b"}]`, "/services/0/environment/0", "name and a value"},
	{"a volume of the host", v2, s2, `"ports": []`, `"ports": [], "volumes": [["/etc", "/mnt", true]]`, "/services/0/volumes/0", "host"},
	{"a network of Docker", v2, s2, `"ports": []`, `"ports": [], "networks": ["abc"]`, "/services/0/networks/0", "Docker"},
	{"a port out of range", v3, s3, `"ports": []`, `"ports": [{"name": "the port", "port_number": 65536, "protocol": "tcp", "url_template": "http://{ip_port}/"}]`, "/services/0/ports/0/port_number", "65535"},
	{"a protocol of its own", v3, s3, `"ports": []`, `"ports": [{"name": "the port", "port_number": 80, "protocol": "http", "url_template": "http://{ip_port}/"}]`, "/services/0/ports/0/protocol", "tcp or udp"},
	{"a path that is none", v2, s2, `"ports": []`, `"ports": [{"name": "w", "port_number": 80, "protocol": "http", "path": "x", "is_main_endpoint": true}]`, "/services/0/ports/0/path", "begin with /"},
	{"an empty command", v3, s3, `"command": null`, `"command": ""`, "/services/0/command", "null"},
}

func TestMistakes(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			good := fmt.Sprintf(c.around, c.service)
			if _, err := (zapp.Language{}).Compile(t.Context(), []byte(good), scope()); err != nil {
				t.Fatalf("without the mistake: %v", err)
			}
			_, err := (zapp.Language{}).Compile(t.Context(), []byte(c.document()), scope())
			var wrong *languages.Error
			if !errors.As(err, &wrong) {
				t.Fatalf("error %v", err)
			}
			p := wrong.Problems[0]
			if p.Place.Path != c.pointer || p.Place.Line != 1 || p.Place.Column < 1 || !strings.Contains(p.String(), c.want) {
				t.Errorf("%s; want %q at %q", p, c.want, c.pointer)
			}
		})
	}
}

// TestGolden compares what documents ask for with testdata/*.golden.
func TestGolden(t *testing.T) {
	for name, document := range files(t, "*.json") {
		t.Run(name, func(t *testing.T) {
			c, err := (zapp.Language{}).Compile(t.Context(), document, scope())
			if err != nil {
				t.Fatal(err)
			}
			got := describe(c)
			golden := filepath.Join("testdata", strings.TrimSuffix(name, ".json")+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// describe writes what a document asks for.
func describe(c *languages.Compiled) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", c.Version.Type, c.Version.Version)
	for _, n := range c.Request.Nodes {
		fmt.Fprintf(&b, "node %s: image %s, %s", n.ID, n.Image.Name, n.Capacity)
		if n.Optional {
			b.WriteString(", optional")
		}
		if n.Preemptible {
			b.WriteString(", preemptible")
		}
		b.WriteString("\n")
		for _, v := range n.Env {
			fmt.Fprintf(&b, "  %s=%s\n", v.Name, written(v.Value))
		}
		for _, p := range n.Ports {
			fmt.Fprintf(&b, "  port %q %s %d %s\n", p.Name, p.Protocol, p.Number, p.URL)
		}
	}
	for _, l := range c.Request.Links {
		fmt.Fprintf(&b, "link %s:", l.ID)
		for _, e := range l.Ends {
			fmt.Fprintf(&b, " %s", e.Interface)
		}
		b.WriteString("\n")
	}
	for _, s := range c.Request.Steps {
		fmt.Fprintf(&b, "step %s after %v: %q in %q, restart %v, ends %v\n", s.Name, s.After, s.Service.Command, s.Service.Dir, s.Service.Restart, s.Service.Ends)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	return b.String()
}

func written(v request.Value) string {
	var b strings.Builder
	for _, p := range v {
		b.WriteString(p.Text)
		if a := p.Attribute; a != nil {
			fmt.Fprintf(&b, "<%s of %s>", a.Name, a.Node)
		}
	}
	return b.String()
}

func TestInputs(t *testing.T) {
	s := scope()
	s.Inputs = map[string]any{"execution_id": 17, "execution_name": "mine", "deployment_name": "zoe", "user_name": "ann"}
	document := fmt.Sprintf(v2, strings.Replace(s2, `"environment": []`, `"environment": [["A", "{execution_id} {execution_name} {deployment_name} {user_name} {} {X} $"]]`, 1))
	c, err := (zapp.Language{}).Compile(t.Context(), []byte(document), s)
	if err != nil {
		t.Fatal(err)
	}
	if got := written(c.Request.Nodes[0].Env[0].Value); got != "17 mine zoe ann {} {X} $" {
		t.Errorf("got %q", got)
	}
}

// TestAgain gives the same ZApp to a slice that has some of its nodes.
func TestAgain(t *testing.T) {
	document := fmt.Sprintf(v2, strings.Replace(s2, `"total_count": 1`, `"total_count": 3`, 1))
	s := scope()
	for _, id := range []request.ClientID{"web0", "web2"} {
		s.Existing = append(s.Existing, languages.Existing{Node: id, Interfaces: []request.ClientID{zapp.Interface(id)}})
	}
	s.Links = []request.ClientID{zapp.Link}
	c, err := (zapp.Language{}).Compile(t.Context(), []byte(document), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Request.Nodes) != 1 || c.Request.Nodes[0].ID != "web1" || !c.Request.Nodes[0].Optional {
		t.Errorf("nodes %v", c.Request.Nodes)
	}
	if l := c.Request.Links[0]; !l.Existing || len(l.Ends) != 1 || l.Ends[0].Node != "web1" {
		t.Errorf("link %v", l)
	}
	s.Links = nil
	if c, err = (zapp.Language{}).Compile(t.Context(), []byte(document), s); err != nil {
		t.Fatal(err)
	}
	if l := c.Request.Links[0]; l.Existing || len(l.Ends) != 3 || !l.Ends[0].Existing || l.Ends[1].Existing {
		t.Errorf("link that there is not yet %v", l)
	}
}

// TestEssential asks for the essential nodes only.
func TestEssential(t *testing.T) {
	document := fmt.Sprintf(v2, strings.Replace(s2, `"total_count": 1`, `"total_count": 3`, 1))
	s := scope()
	s.Inputs = map[string]any{"elastic": "false"}
	c, err := (zapp.Language{}).Compile(t.Context(), []byte(document), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Request.Nodes) != 1 || c.Request.Nodes[0].Optional || len(c.Request.Steps) != 1 || len(c.Request.Links) != 0 {
		t.Errorf("%+v", c.Request)
	}
	if len(c.Request.Nodes[0].Interfaces) != 1 {
		t.Error("the node has no interface that later ones could reach it by")
	}
}

// TestCorpus reads real ZApps. Those with volumes of the host or networks of
// Docker are refused, by name; the others are understood.
func TestCorpus(t *testing.T) {
	dir := corpus(t)
	all, err := filepath.Glob(filepath.Join(dir, "v?", "*.json"))
	if err != nil || len(all) == 0 {
		t.Fatal("no documents", err)
	}
	for _, file := range all {
		t.Run(filepath.Base(file), func(t *testing.T) {
			document, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !(zapp.Language{}).Detect(document) {
				t.Fatal("not detected")
			}
			_, err = (zapp.Language{}).Compile(t.Context(), document, scope())
			if want := refused[filepath.Base(file)]; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %q", err, want)
			}
		})
	}
}

// refused are the documents of the corpus that are refused, and why.
var refused = map[string]string{
	"spark-wordcount-test-535274e.json": "{name_prefix}",                 // of an older Zoe
	"eurecom_aml_lab-0b537ac.json":      `no field "required_resources"`, // version 3 in name only
	"zapp-804f48e.json":                 "an object is wanted",           // volumes of version 2
}

func corpus(t *testing.T) string {
	for _, way := range []string{"../../..", "../../../.."} {
		if dir := filepath.Join(way, "shared", "corpus", "zapp"); exists(dir) {
			return dir
		}
	}
	t.Skip("the corpus is not at hand: want ../shared/corpus/zapp beside the repository")
	return ""
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func FuzzParse(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(v2, s2)))
	f.Add([]byte(fmt.Sprintf(v3, s3)))
	for _, document := range files(f, "*.json") {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		c, err := (zapp.Language{}).Compile(t.Context(), document, scope())
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
		steps := map[request.StepName]bool{}
		for _, s := range c.Request.Steps {
			steps[s.Name] = true
		}
		for _, s := range c.Request.Steps {
			if !names[s.Node] || slices.ContainsFunc(s.After, func(a request.StepName) bool { return !steps[a] }) {
				t.Errorf("step %s is of %s, after %v", s.Name, s.Node, s.After)
			}
		}
	})
}
