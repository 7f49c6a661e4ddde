package inventory_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"croft/inventory"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "rewrite golden files")

// compiled is the schema as an editor's checker would read it.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(inventory.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("inventory.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("inventory.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// generic turns YAML into what a JSON Schema checker works on.
func generic(data []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
}

func TestSchemaGolden(t *testing.T) {
	const golden = "testdata/schema.json"
	if *update {
		if err := os.WriteFile(golden, inventory.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, inventory.Schema()) {
		t.Errorf("the schema differs from %s; if that is meant: go test ./inventory -update", golden)
	}
}

// TestSchemaDescribes sees to it that an editor has something to show for
// every field.
func TestSchemaDescribes(t *testing.T) {
	var root any
	if err := json.Unmarshal(inventory.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	fields := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok && v["type"] == "object" {
				for name, p := range properties {
					fields++
					p := p.(map[string]any)
					for _, text := range []string{"title", "description"} {
						if s, _ := p[text].(string); s == "" {
							t.Errorf("%s.%s has no %s", path, name, text)
						}
					}
				}
			}
			for key, inner := range v {
				walk(path+"/"+key, inner)
			}
		case []any:
			for _, inner := range v {
				walk(path, inner)
			}
		}
	}
	walk("", root)
	if fields < 60 {
		t.Errorf("only %d fields found", fields)
	}
}

func TestSchemaAgrees(t *testing.T) {
	schema := compiled(t)
	whole, err := os.ReadFile("testdata/testbed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		good       bool
	}{
		{"everything", string(whole), true},
		{"least", "authority: example.org\nhosts:\n- name: h1\n", true},
		{"sizes", host("memory: 1.5 GiB\ndisk: 2TB"), true},
		{"kubernetes sizes", host("memory: 512Mi"), true},
		{"fractions of cores", host("cores: 0.25"), true},
		{"one or many", host("sliver_types: namespace\nhardware_types: [a, b]"), true},
		{"numbers as text", host("hardware_types: 12\nproperties: {gpus: 2, fast: true, kind: x}"), true},
		{"range with gaps", "authority: a\nhosts:\n- name: 'h[1,3,5-9]-x[01-02]'\n", true},
		{"no list", "authority: a\nhosts: h1\n", false},
		{"no authority", "hosts: [{name: h}]\n", false},
		{"no hosts", "authority: a\n", false},
		{"unknown field", host("memroy: 8GiB"), false},
		{"unknown field on top", "authority: a\nhosts: [{name: h}]\nhost: []\n", false},
		{"no unit", host("memory: 8"), false},
		{"wrong unit", host("memory: 8 gigs"), false},
		{"ambiguous unit", host("memory: 8G"), false},
		{"negative", host("cores: -1"), false},
		{"zero cores", host("cores: 0"), false},
		{"cores in quotes", host(`cores: "4"`), false},
		{"half a sliver", host("max_slivers: 1.5"), false},
		{"yes", host("shared: yes"), false},
		{"empty text", host(`out_of_service: " "`), false},
		{"nothing", host("memory:"), false},
		{"list as name", host("site: [a]"), false},
		{"property list", host("properties: {a: [1]}"), false},
		{"property name", host("properties: {'a b': 1}"), false},
		{"blank in a name", "authority: a\nhosts:\n- name: h 1\n", false},
		{"open bracket", "authority: a\nhosts:\n- name: 'h[1'\n", false},
		{"not a URN", host("urn: h1"), false},
		{"speed", host("interfaces: [{name: eth0, speed: 1000}]"), false},
		{"role", host("interfaces: [{name: eth0, role: management}]"), false},
		{"latitude", "authority: a\nsites: [{name: s, latitude: 91}]\nhosts: [{name: h}]\n", false},
		{"tag", "authority: a\nhosts: [{name: h}]\nshared_vlans: [{name: v, tag: 4095}]\n", false},
		{"three ends", wired("- {ends: [a, b, c]}"), false},
		{"mixed cable", wired("- {ends: ['h1:eth0', 'sw1:1'], hosts: h1}"), false},
		{"half a rule", wired("- {hosts: h1}"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := generic([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); (err == nil) != c.good {
				t.Errorf("schema says %v", err)
			}
			if _, err := inventory.Parse([]byte(c.text), "i.yaml"); (err == nil) != c.good {
				t.Errorf("loader says %v", err)
			}
		})
	}
}

// FuzzParse checks that no file makes the loader fail in other ways than an
// error with its lines, and that the schema accepts what the loader does.
func FuzzParse(f *testing.F) {
	whole, err := os.ReadFile("testdata/testbed.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(whole))
	f.Add("authority: a\nhosts:\n- &x {name: h1, cores: 1}\n- {<<: *x, name: 'h[2-3]'}\n")
	f.Add(host("memory: 8 GiB\nsliver_types: [namespace]"))
	f.Add("? a\n: |\n  x\n--- !t &a *a\n")
	f.Add("authority: [\n")
	f.Add(strings.Repeat("{a: [", 20))
	schema := compiled(f)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "999") || len(text) > 1<<14 {
			t.Skip("ranges that are only large")
		}
		s, err := inventory.Parse([]byte(text), "i.yaml")
		if err != nil {
			if s != nil {
				t.Error("a snapshot beside an error")
			}
			return
		}
		again, err := inventory.Parse([]byte(text), "i.yaml")
		if err != nil || again.Digest != s.Digest {
			t.Errorf("the same text reads differently: %v", err)
		}
		for i := range s.Hosts {
			if h, ok := s.Host(s.Hosts[i].ID); !ok || h != &s.Hosts[i] {
				t.Errorf("host %s is not found by its URN", s.Hosts[i].Name)
			}
		}
		v, err := generic([]byte(text))
		if err != nil {
			return // the library's decoder is stricter than its parser
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("the loader accepts what the schema does not: %v", err)
		}
	})
}
