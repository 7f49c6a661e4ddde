package model_test

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"croft/languages/tosca/csar"
	"croft/languages/tosca/model"
	"croft/languages/tosca/profiles"
)

// corpus finds the samples beside the project.
func corpus(t testing.TB) string {
	for _, up := range []string{"../../../..", "../../../../..", "../../../../../.."} {
		dir := filepath.Join(up, "shared", "corpus", "tosca")
		if _, err := os.Stat(filepath.Join(dir, "index.tsv")); err == nil {
			return dir
		}
	}
	t.Skip("no ../shared/corpus/tosca beside the project")
	return ""
}

// differing are cases that are read otherwise, with the reason.
var differing = map[string]string{
	"node-template/node-template-filter.yaml":                           "a node template named node_filter has no type: its indentation makes the filter one, which both specifications refuse",
	"schema-definition/schema-definition-map-bad-entry-schema-inv.yaml": "says that entries of a map are strings; both specifications say so of keys only, and other cases of the suite have maps of integers",
}

// TestSuite reads the cases of the OASIS suite.
func TestSuite(t *testing.T) {
	dir := corpus(t)
	index, err := os.Open(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	lines := bufio.NewScanner(index)
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		if len(f) < 4 || f[0] == "file" {
			continue
		}
		file, expected := f[0], f[3]
		t.Run(strings.TrimPrefix(file, "oasis/tests/"), func(t *testing.T) {
			result := read(t, filepath.Join(dir, file), nil)
			name := strings.TrimPrefix(file, "oasis/tests/tosca_2_0/")
			switch {
			case differing[name] != "":
				t.Skip(differing[name])
			case strings.HasPrefix(expected, "valid"):
				for _, p := range result.Problems {
					if strings.HasPrefix(p.What, "there is no file") || strings.HasPrefix(p.What, "profile com.example") {
						t.Skipf("%s: it is in the other half of the suite", p.What)
					}
				}
				if !result.Valid() {
					t.Errorf("refused, though it is valid: %v", mistakes(result))
				}
			case strings.HasPrefix(expected, "invalid"):
				if result.Valid() {
					t.Error("accepted, though it is not valid")
				}
				for _, p := range mistakes(result) {
					if p.File == "" || p.What == "" {
						t.Errorf("problem without file or words: %+v", p)
					}
				}
			}
		})
	}
}

func read(t testing.TB, file string, inputs map[string]any) *model.Result {
	result, err := model.Read(context.Background(), filepath.Base(file), model.Options{
		Files: &csar.Folder{Dir: filepath.Dir(file)}, Builtin: profiles.Files{}, Inputs: inputs,
	})
	if err != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	return result
}

func mistakes(r *model.Result) []model.Problem {
	var list []model.Problem
	for _, p := range r.Problems {
		if !p.Warning {
			list = append(list, p)
		}
	}
	return list
}
