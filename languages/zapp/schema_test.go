package zapp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"croft/languages/zapp"
)

// stricter are refusals of what Zoe's schema lets pass, by what they say. Each
// is a rule of Zoe's own code, or one that ZApps need here.
var stricter = []string{
	"essential_count is at most total_count", // Zoe finds it when it starts the services
	"is less than the minimum",               // nothing has both
	"/volumes/",                              // the schema requires no member of a volume, Zoe's code does
}

// values are those that mutants have in place of others.
var values = []any{nil, true, false, 0.0, 1.0, 2.0, 3.0, -1.0, 1.5, 1023.0, 1024.0, 70000.0, "", "x", "abc", "a_b", "a name of far too many letters", "tcp", "http://{ip_port}/",
	[]any{}, []any{"A", "b"}, []any{"A"}, []any{[]any{"A", "b"}}, map[string]any{}, map[string]any{"min": 2048.0, "max": nil}, map[string]any{"min": nil, "max": nil}}

// mutant is a value with something changed in it.
func mutant(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		c := maps.Clone(v)
		if len(names) == 0 {
			return values[r.IntN(len(values))]
		}
		name := names[r.IntN(len(names))]
		switch r.IntN(8) {
		case 0:
			delete(c, name)
		case 1:
			c["x"+name] = v[name]
		case 2:
			c[name] = values[r.IntN(len(values))]
		default:
			c[name] = mutant(r, v[name])
		}
		return c
	case []any:
		if len(v) == 0 {
			return []any{values[r.IntN(len(values))]}
		}
		c, i := slices.Clone(v), r.IntN(len(v))
		switch r.IntN(8) {
		case 0:
			return slices.Delete(c, i, i+1)
		case 1:
			return append(c, v[i])
		default:
			c[i] = mutant(r, v[i])
		}
		return c
	}
	return values[r.IntN(len(values))]
}

// What Zoe's own validation says of a ZApp of version 3 is said of it here,
// also of mutants of the corpus.
func TestSchema(t *testing.T) {
	dir := corpus(t)
	text, err := os.ReadFile(filepath.Join(dir, "zapp_v3_schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("zapp.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("zapp.json")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "v3", "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatal("no ZApps", err)
	}
	var apps []any
	for _, n := range names {
		text, err := os.ReadFile(n)
		var v any
		if err == nil && json.Unmarshal(text, &v) == nil {
			apps = append(apps, v)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for n := range 3000 {
		v := apps[r.IntN(len(apps))]
		for range n % 3 {
			v = mutant(r, v)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		_, _, wrong := zapp.Parse(text)
		says := zoe(schema, v)
		if says == "" {
			valid++
		}
		known := wrong != nil && slices.ContainsFunc(stricter, func(s string) bool { return strings.Contains(wrong.Error(), s) })
		if (says == "") != (wrong == nil) && !known {
			t.Errorf("Zoe says %q, Croft %v:\n%.600s", says, wrong, text)
		}
	}
	if valid < 300 {
		t.Errorf("only %d of the mutants are valid", valid)
	}
}

// zoe is what Zoe's code has against a ZApp; "" for nothing.
func zoe(schema *jsonschema.Schema, v any) string {
	if err := schema.Validate(v); err != nil {
		return fmt.Sprint(err)
	}
	app := v.(map[string]any)
	if app["version"] != 3.0 {
		return "another version"
	}
	services, _ := app["services"].([]any)
	if !slices.ContainsFunc(services, func(s any) bool { return s.(map[string]any)["monitor"] == true }) {
		return "no monitor"
	}
	return ""
}
