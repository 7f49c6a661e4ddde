package radl_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"croft/languages"
	"croft/languages/radl"
	"croft/request"
	"croft/rspec"
	"croft/urn"
)

var update = flag.Bool("update", false, "write golden files anew")

var scope = languages.Scope{Managers: []urn.URN{urn.MustParse("urn:publicid:IDN+example.org+authority+cm")}}

// golden compares a text with a file of testdata/golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if string(want) != got {
		t.Errorf("%s differs (-update writes it anew):\n%s", file, got)
	}
}

// What documents are translated to: the other forms, the request, an RSpec,
// and what is said about them.
func TestTranslations(t *testing.T) {
	for name, text := range files(t, "good") {
		t.Run(name, func(t *testing.T) {
			d, _, err := radl.Parse(text, nil)
			if err != nil {
				t.Fatal(err)
			}
			inJSON, err := d.JSON()
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".to.json", string(inJSON))
			inText, err := d.Text()
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".to.radl", string(inText))
			c, err := radl.Language{}.Compile(context.Background(), text, scope)
			if err != nil {
				t.Fatal(err)
			}
			asked, err := json.MarshalIndent(c.Request, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".request", string(asked)+"\n"+problems(c.Warnings))
			document, lost := rspec.WriteRequest(c.Request)
			golden(t, name+".rspec", string(document)+problems(lost))
			if r, err := (rspec.Language{}).Check(document, scope); err != nil || len(r.Problems) > 0 {
				t.Errorf("its RSpec is not one: %v %v", err, r)
			}
		})
	}
}

func problems(list []languages.Problem) string {
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "%d:%d %s\n", p.Place.Line, p.Place.Column, p)
	}
	return b.String()
}

// What is wrong with documents, all of it, with line and column.
func TestMistakesGolden(t *testing.T) {
	for name, text := range files(t, "bad") {
		_, err := radl.Language{}.Compile(context.Background(), text, scope)
		var wrong *languages.Error
		if !errors.As(err, &wrong) {
			t.Fatalf("%s: %v", name, err)
		}
		golden(t, name+".mistakes", problems(wrong.Problems))
	}
}

// compile compiles a document that has to be right.
func compile(t *testing.T, text string, scope languages.Scope) *languages.Compiled {
	t.Helper()
	c, err := radl.Language{}.Compile(context.Background(), []byte(text), scope)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

// A second document numbers on, refers to the definitions of the first, and
// adds to its networks.
func TestExtending(t *testing.T) {
	first := "network n (cidr = '10.9.0.0/24') system s (cpu.count = 2 and net_interface.0.connection = 'n') configure s (\n@begin\n#!/bin/sh\n:\n@end\n) deploy s 2"
	c := compile(t, first, scope)
	more := scope
	more.Documents = []languages.Document{{MediaType: radl.MediaType, Bytes: []byte(first)}}
	for _, n := range c.Request.Nodes {
		more.Existing = append(more.Existing, languages.Existing{Node: n.ID, Interfaces: []request.ClientID{n.Interfaces[0].ID}, Addresses: n.Interfaces[0].Addresses})
	}
	more.Links = []request.ClientID{"n"}
	c = compile(t, "network n system s configure s deploy s 1", more)
	r := c.Request
	if len(r.Nodes) != 1 || r.Nodes[0].ID != "s-2" || r.Nodes[0].Capacity.Cores != 2000 || r.Nodes[0].Interfaces[0].Addresses[0].String() != "10.9.0.3/24" {
		t.Errorf("nodes %+v", r.Nodes)
	}
	if len(r.Links) != 1 || !r.Links[0].Existing || len(r.Links[0].Ends) != 1 {
		t.Errorf("links %+v", r.Links)
	}
	if len(r.Steps) != 1 || r.Steps[0].Node != "s-2" {
		t.Errorf("steps %+v", r.Steps)
	}
	if _, err := (radl.Language{}).Compile(context.Background(), []byte("system s deploy s 1"), scope); err == nil {
		t.Error("a reference to nothing was taken")
	}
}

// Recipes of a higher step wait for all those of the lower ones.
func TestOrderOfSteps(t *testing.T) {
	recipe := func(name string) string {
		return "configure " + name + " (\n@begin\n#!/bin/sh\n: " + name + "\n@end\n)\n"
	}
	c := compile(t, "system a () system b ()\n"+recipe("one")+recipe("two")+recipe("three")+
		"contextualize (system b configure three step 3 system a configure one step 1 system b configure one step 1 system a configure two step 2)\ndeploy a 2 deploy b 1", scope)
	before := map[request.StepName][]request.StepName{}
	for _, s := range c.Request.Steps {
		before[s.Name] = s.After
	}
	for name, want := range map[request.StepName]string{
		"a-0.one": "", "b-0.one": "", "a-0.two": "a-0.one a-1.one b-0.one", "a-1.two": "a-0.one a-1.one b-0.one", "b-0.three": "a-0.two a-1.two b-0.one",
	} {
		var names []string
		for _, n := range before[name] {
			names = append(names, string(n))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s is after %q, want %q", name, got, want)
		}
	}
	many := compile(t, "system a ()\n"+recipe("one")+recipe("two")+"contextualize (system a configure one step 1 system a configure two step 2)\ndeploy a 500", scope)
	edges := 0
	for _, s := range many.Request.Steps {
		edges += len(s.After)
	}
	if edges > 2000 {
		t.Errorf("%d edges for 500 machines", edges)
	}
	if c := compile(t, "system a () configure a (\n@begin\n#!/bin/sh\n@end\n) contextualize () deploy a 1", scope); len(c.Request.Steps) != 0 {
		t.Errorf("contextualize () does not disable: %+v", c.Request.Steps)
	}
}

func TestInputs(t *testing.T) {
	text := "system a (\n cpu.count = @input.CPUs@ and disk.0.os.flavour = '@input.OS@' and\n memory.size >= 'x'\n)\ndeploy a @input.N@ and"
	_, _, err := radl.Parse([]byte(text), map[string]any{"CPUs": 2, "OS": "debian"})
	if err == nil || !strings.Contains(err.Error(), "line 5, column 10") || !strings.Contains(err.Error(), "parameter N") {
		t.Errorf("a missing value: %v", err)
	}
	_, _, err = radl.Parse([]byte(text), map[string]any{"CPUs": "2", "OS": "a\nb", "N": 3.0})
	// Places are those of the document as it was written.
	if err == nil || !strings.Contains(err.Error(), "line 3, column 17: memory.size is a text") || !strings.Contains(err.Error(), "line 5, column 20") {
		t.Errorf("places behind values: %v", err)
	}
	d, _, err := radl.Parse([]byte(`[{"class": "system", "id": "a", "cpu.count": "@input.CPUs@", "availability_zone": "x-@input.OS@"}]`), map[string]any{"CPUs": json.Number("4"), "OS": "y"})
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := d.Value("cpu.count"); n != "4" {
		t.Errorf("cpu.count %q", n)
	}
	if z, _ := d.Value("availability_zone"); z != "x-y" {
		t.Errorf("availability_zone %q", z)
	}
}

// What the specification and the reference parser say of single features.
func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		text  string
		wrong string // what an error says; "" for none
	}{
		{"", ""},
		{"# nothing\n", ""},
		{`network n (outbound = "yes")`, ""},
		{"system a (disk.0.applications contains (name='x', version='1.0', preinstalled='yes'))", ""},
		{"system a (memory.size => 512M)", ""},
		{"system a () configure c () contextualize (system a configure c step 1 with cloud_init)", ""},
		{"system a (cpu.arch = 'I686')", ""},
		{"system a (memory.size >= 1KiB and memory.size <= 4TB)", ""},
		{"system a (price <= 0.5 and spot = 'no')", ""},
		{"system a (unknown.thing > 'x' and other = [])", ""},
		{"system a (disk.0.os.version >= '12.04')", ""},
		{"network n (outports = '8899/tcp-8899/tcp,22/tcp-22/tcp')", ""},
		{"network n (outports = '9000:9100,10.0.0.0/8-80/udp')", ""},
		{"description d (name = 'it\\'s') network n", ""},
		{"description d (name = 'x')", "description of nothing"},
		{"network n (outports = '')", "no port"},
		{`[{"class": "network", "id": "n", "outports": ""}]`, "no port"},
		{"system a (memory.size >= 512M and memory.size <= 500M)", "exclude one another"},
		{"system a (memory.size >= 0.5G)", "whole number"},
		{"system a (memory.size >= 512X)", `"X"`},
		{"system a (cpu.count > 'x')", "cpu.count"},
		{"system a (disk.0.os.name >= 'linux')", `"="`},
		{"system a (disk.size = 1G)", "number of the disk"},
		{"system a (net_interface.0.ip = '10.0.0.1')", "no connection"},
		{"network n () system a (net_interface.1.connection = 'n')", "net_interface.0"},
		{"system a (ansible_host = 'x')", "ansible host"},
		{"ansible a (host = 'h')", "credentials.username"},
		{"system a () system a ()", "second system"},
		{"system a () deploy a 1 deploy a 1", ""},
		{"system a () deploy a 0", ""},
		{"system a () deploy a -1", "minus sign"},
		{"system a () )", "statement"},
		{"deploy a 1", `no system "a"`},
		{"configure c (\n@begin\nx: [\n@end\n)", "not YAML"},
		{"configure c (\n@begin\nx: 1\n @end\n)", "very start"},
		{"network n (outports = '22/tcp-22/udp')", "two protocols"},
		{"network n (outports = '70000')", "no port"},
		{"system a (soft 10 (cpu.count = 1 and cpu.count = 2))", "exclude"},
		{"system a (soft 10 (disk.0.os.name = 'beos'))", "beos"},
		{"system a (x = 1 and)", `"and"`},
		{"network n () description d ()", "put it first"},
		{"description d () description e ()", "second description"},
		{`[{"class": "system", "id": "a", "cpu.count_min": 1, "cpu.count_max": 2}]`, ""},
		{`[{"class": "system", "id": "a", "cpu.count": -1}]`, "zero or more"},
		{`[{"class": "system", "id": "a b"}]`, "no name"},
		{`[{"class": "system"}]`, `"id"`},
		{`[{"class": "system", "id": "a", "x": 1, "x": 2}]`, "twice"},
		{`[{"class": "configure", "id": "a", "recipes": "\\n---\\n- roles:\\n- { role: 'x', y: 'z' }"}]`, "not YAML"},
		{`{"class": "system", "id": "a"}`, "not a list"},
		{`[{"class": "system", "id": "a"}`, "too soon"},
		{"system a (x = 'y\xff')", "UTF-8"},
	} {
		_, _, err := radl.Parse([]byte(test.text), nil)
		if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s\n%v, want %q", test.text, err, test.wrong)
		}
		if err != nil && !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s\n%v has no place", test.text, err)
		}
	}
}
