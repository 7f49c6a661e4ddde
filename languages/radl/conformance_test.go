package radl_test

import (
	"os"
	"path/filepath"
	"testing"

	"croft/languages/languagestest"
	"croft/languages/radl"
)

// files reads all documents of a folder of testdata, by their names.
func files(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("testdata/%s: %d files, %v", folder, len(names), err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = text
	}
	return all
}

func TestConformance(t *testing.T) {
	languagestest.Test(t, radl.Language{}, languagestest.Documents{
		Good: files(t, "good"),
		Bad:  files(t, "bad"),
		Foreign: map[string][]byte{
			"RSpec":   []byte(`<?xml version="1.0"?><rspec xmlns="http://www.geni.net/resources/rspec/3" type="request"/>`),
			"TOSCA":   []byte("tosca_definitions_version: tosca_2_0\nservice_template:\n  node_templates: {}\n"),
			"YAML":    []byte("system: 1\nnetwork:\n- a\n"),
			"ZAPP":    []byte(`{"version": 2, "name": "app"}`),
			"list":    []byte(`[{"name": "app"}]`),
			"classes": []byte(`[{"class": "hogwarts"}]`),
			"words":   []byte("the system is down"),
			"empty":   {},
		},
	})
}
