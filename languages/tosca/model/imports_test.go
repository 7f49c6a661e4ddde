package model_test

import (
	"context"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"croft/languages/tosca/model"
	"croft/languages/tosca/profiles"
)

// many are files by their names.
type many map[string]string

func (m many) ReadFile(name string) ([]byte, error) {
	text, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

var profileLine = regexp.MustCompile(`(?m)^profile: *"?([^"\n]+)`)

func (m many) Profile(profile string) string {
	for name, text := range m {
		if p := profileLine.FindStringSubmatch(text); p != nil && p[1] == profile {
			return name
		}
	}
	return ""
}

// Imports, namespaces and repositories (csd05, 5.2.2 and 5.2.3).
func TestImports(t *testing.T) {
	const (
		uses  = "node_types: { N: { derived_from: A } }\n"
		typeA = head + "node_types: { A: { properties: { p: { type: integer, default: 1 } } } }\n"
	)
	for _, c := range []struct {
		name  string
		files many
		wrong string // "file: words", or ""
	}{
		{"a file beside it", many{"main.yaml": head + "imports: [ a.yaml ]\n" + uses, "a.yaml": typeA}, ""},
		{"a file in a folder", many{"main.yaml": head + "imports: [ lib/a.yaml ]\n" + uses, "lib/a.yaml": typeA}, ""},
		{"a file beside one in a folder", many{"main.yaml": head + "imports: [ lib/b.yaml ]\n" + uses, "lib/b.yaml": head + "imports: [ a.yaml ]\n", "lib/a.yaml": typeA}, ""},
		{"a file above one in a folder", many{"main.yaml": head + "imports: [ lib/b.yaml ]\n" + uses, "lib/b.yaml": head + "imports: [ ../a.yaml ]\n", "a.yaml": typeA}, ""},
		{"a file above the archive", many{"main.yaml": head + "imports: [ ../a.yaml ]\n"}, "main.yaml: no file ../a.yaml"},
		{"a file from the root of the archive", many{"lib/main.yaml": "", "main.yaml": head + "imports: [ lib/b.yaml ]\n" + uses, "lib/b.yaml": head + "imports: [ /a.yaml ]\n", "a.yaml": typeA}, ""},
		{"the same file twice", many{"main.yaml": head + "imports: [ a.yaml, a.yaml ]\n" + uses, "a.yaml": typeA}, ""},
		{"by two ways", many{"main.yaml": head + "imports: [ b.yaml, c.yaml ]\n" + uses, "b.yaml": head + "imports: [ a.yaml ]\n", "c.yaml": head + "imports: [ ./a.yaml ]\n", "a.yaml": typeA}, ""},
		{"in a circle", many{"main.yaml": head + "imports: [ a.yaml ]\nnode_types: { B: {} }\n", "a.yaml": head + "imports: [ main.yaml ]\nnode_types: { A: { derived_from: B } }\n"}, ""},
		{"in a circle of three", many{"main.yaml": head + "imports: [ a.yaml ]\n" + uses, "a.yaml": head + "imports: [ b.yaml ]\nnode_types: { A: {} }\n", "b.yaml": head + "imports: [ main.yaml ]\nnode_types: { M: { derived_from: N } }\n"}, ""},
		{"types that derive from each other across files", many{"main.yaml": head + "imports: [ a.yaml ]\nnode_types: { N: { derived_from: A } }\n", "a.yaml": head + "imports: [ main.yaml ]\nnode_types: { A: { derived_from: N } }\n"}, "derives from itself"},
		{"into a namespace", many{"main.yaml": head + "imports: [ { url: a.yaml, namespace: x } ]\nnode_types: { N: { derived_from: \"x:A\" } }\n", "a.yaml": typeA}, ""},
		{"a name of a namespace without it", many{"main.yaml": head + "imports: [ { url: a.yaml, namespace: x } ]\n" + uses, "a.yaml": typeA}, "main.yaml: no node type A"},
		{"the same into two namespaces", many{"main.yaml": head + "imports: [ { url: a.yaml, namespace: x }, { url: a.yaml, namespace: y } ]\nnode_types: { N: { derived_from: \"x:A\" }, M: { derived_from: \"y:A\" } }\n", "a.yaml": typeA}, ""},
		{"two files into one namespace", many{"main.yaml": head + "imports: [ { url: a.yaml, namespace: x }, { url: b.yaml, namespace: x } ]\nnode_types: { N: { derived_from: \"x:A\" }, M: { derived_from: \"x:B\" } }\n", "a.yaml": typeA, "b.yaml": head + "node_types: { B: {} }\n"}, ""},
		{"nested namespaces", many{"main.yaml": head + "imports: [ { url: b.yaml, namespace: my } ]\nnode_types: { N: { derived_from: \"my:k8s:A\" } }\n", "b.yaml": head + "imports: [ { url: a.yaml, namespace: k8s } ]\n", "a.yaml": typeA}, ""},
		{"nested namespaces that are not there", many{"main.yaml": head + "imports: [ { url: b.yaml, namespace: my } ]\nnode_types: { N: { derived_from: \"my:k9s:A\" } }\n", "b.yaml": head + "imports: [ { url: a.yaml, namespace: k8s } ]\n", "a.yaml": typeA}, `main.yaml: no node type "my:k9s:A"`},
		{"what a namespace imports plainly is in it", many{"main.yaml": head + "imports: [ { url: b.yaml, namespace: my } ]\nnode_types: { N: { derived_from: \"my:A\" } }\n", "b.yaml": head + "imports: [ a.yaml ]\n", "a.yaml": typeA}, ""},
		{"a name within its own file needs no namespace", many{"main.yaml": head + "imports: [ { url: a.yaml, namespace: x } ]\nservice_template: { node_templates: { n: { type: \"x:B\" } } }\n", "a.yaml": typeA + "\n"[1:] + "capability_types: {}\n" + "interface_types: {}\n", "b.yaml": ""}, `main.yaml: no node type "x:B"`},
		{"a type of two namespaces is not the same", many{"main.yaml": head + "imports: [ { url: a.yaml, namespace: x }, { url: b.yaml, namespace: y } ]\nnode_types: { M: { requirements: [ r: { capability: \"x:C\", node: \"x:A\" } ] } }\nservice_template: { node_templates: { a: { type: \"y:A\" }, m: { type: M, requirements: [ r: a ] } } }\n", "a.yaml": head + "capability_types: { C: {} }\nnode_types: { A: { capabilities: { c: C } } }\n", "b.yaml": head + "capability_types: { C: {} }\nnode_types: { A: { capabilities: { c: C } } }\n"}, "main.yaml: is of type A"},
		{"a type that two imports have alike", many{"main.yaml": head + "imports: [ a.yaml, b.yaml ]\n" + uses, "a.yaml": typeA, "b.yaml": typeA}, ""},
		{"a type that two imports have", many{"main.yaml": head + "imports: [ a.yaml, b.yaml ]\n" + uses, "a.yaml": typeA, "b.yaml": head + "node_types: { A: {} }\n"}, "main.yaml: node type A is defined in"},
		{"a type that an import has, too", many{"main.yaml": head + "imports: [ a.yaml ]\nnode_types: { A: {} }\n", "a.yaml": typeA}, ""},
		{"a type that an import of an import has, too", many{"main.yaml": head + "imports: [ b.yaml ]\nnode_types: { A: {} }\n", "b.yaml": head + "imports: [ a.yaml ]\n", "a.yaml": typeA}, ""},
		{"types of one name and other kinds", many{"main.yaml": head + "imports: [ a.yaml ]\ncapability_types: { A: {} }\n", "a.yaml": typeA}, ""},
		{"a type that two namespaces have", many{"main.yaml": head + "imports: [ { url: a.yaml, namespace: x }, { url: b.yaml, namespace: y } ]\n", "a.yaml": typeA, "b.yaml": typeA}, ""},
		{"a type that two files of a namespace have", many{"main.yaml": head + "imports: [ { url: a.yaml, namespace: x }, { url: b.yaml, namespace: x } ]\n", "a.yaml": typeA, "b.yaml": head + "node_types: { A: {} }\n"}, "main.yaml: node type x:A is defined in"},
		{"a profile of the archive", many{"main.yaml": head + "imports: [ { profile: \"org.example:1.0\" } ]\n" + uses, "p.yaml": head + "profile: \"org.example:1.0\"\nnode_types: { A: {} }\n"}, ""},
		{"a profile of another version", many{"main.yaml": head + "imports: [ { profile: \"org.example:2.0\" } ]\n" + uses, "p.yaml": head + "profile: \"org.example:1.0\"\nnode_types: { A: {} }\n"}, "main.yaml: profile org.example:2.0 is not known"},
		{"two versions of a profile in namespaces", many{"main.yaml": head + "imports: [ { profile: \"org.example:1.0\", namespace: one }, { profile: \"org.example:2.0\", namespace: two } ]\nnode_types: { N: { derived_from: \"one:A\" }, M: { derived_from: \"two:A\" } }\n", "p.yaml": head + "profile: \"org.example:1.0\"\nnode_types: { A: {} }\n", "q.yaml": head + "profile: \"org.example:2.0\"\nnode_types: { A: {} }\n"}, ""},
		{"a profile with a service template", many{"main.yaml": head + "imports: [ { profile: p } ]\n", "p.yaml": head + "profile: p\nservice_template: { node_templates: {} }\n"}, "p.yaml: no service template"},
		{"a profile of an empty name", many{"main.yaml": head + "profile: \"\"\n"}, "main.yaml: empty"},
		{"an imported service template", many{"main.yaml": head + "imports: [ a.yaml ]\nservice_template: { node_templates: { n: { type: A } } }\n", "a.yaml": typeA + "service_template: { node_templates: { n: { type: Nope } } }\n"}, ""},
		{"an import that is no TOSCA", many{"main.yaml": head + "imports: [ a.yaml ]\n", "a.yaml": "hello: world\n"}, "a.yaml: tosca_definitions_version"},
		{"an import that is no YAML", many{"main.yaml": head + "imports: [ a.yaml ]\n", "a.yaml": "a: [\n"}, "a.yaml: not YAML"},
		{"an import of 1.3", many{"main.yaml": head + "imports: [ a.yaml ]\n" + uses, "a.yaml": "tosca_definitions_version: tosca_simple_yaml_1_3\nnode_types: { A: { derived_from: tosca.nodes.Root } }\n"}, ""},
		{"a repository in the archive", many{"main.yaml": head + "repositories: { r: lib/ }\nimports: [ { url: a.yaml, repository: r } ]\n" + uses, "lib/a.yaml": typeA}, ""},
		{"a repository by a file URL", many{"main.yaml": head + "repositories: { r: { url: \"file:lib\" } }\nimports: [ { url: a.yaml, repository: r } ]\n" + uses, "lib/a.yaml": typeA}, ""},
		{"a repository beside the file that defines it", many{"main.yaml": head + "imports: [ sub/b.yaml, { url: a.yaml, repository: r } ]\n" + uses, "sub/b.yaml": head + "repositories: { r: lib }\n", "sub/lib/a.yaml": typeA}, ""},
		{"a repository from the root", many{"main.yaml": head + "imports: [ sub/b.yaml ]\n", "sub/b.yaml": head + "repositories: { r: /lib }\nimports: [ { url: /a.yaml, repository: r } ]\n" + uses, "lib/a.yaml": typeA}, ""},
		{"a repository of the machine", many{"main.yaml": head + "repositories: { r: \"file:///etc\" }\nimports: [ { url: passwd, repository: r } ]\nnode_types: { A: {} }\n"}, ""},
		{"a file that a repository has not", many{"main.yaml": head + "repositories: { r: lib }\nimports: [ { url: b.yaml, repository: r } ]\n"}, "main.yaml: no file lib/b.yaml"},
		{"a repository of the network", many{"main.yaml": head + "repositories: { r: { url: \"https://example.org/lib\" } }\nimports: [ { url: a.yaml, repository: r } ]\n" + uses}, ""},
		{"a URL", many{"main.yaml": head + "imports: [ \"https://example.org/a.yaml\" ]\n" + uses}, ""},
		{"a URL into a namespace, and a name without it", many{"main.yaml": head + "imports: [ { url: \"https://example.org/a.yaml\", namespace: x } ]\n" + uses}, "main.yaml: no node type A"},
		{"a function of a namespace", many{"main.yaml": head + "imports: [ { url: f.yaml, namespace: x } ]\nnode_types: { N: { properties: { p: { type: string, default: { $x:f: [ 1 ] } } } } }\n", "f.yaml": head + "functions: { f: { signatures: [ { arguments: [ integer ], result: string } ] } }\n"}, ""},
		{"a function of a namespace, wrongly", many{"main.yaml": head + "imports: [ { url: f.yaml, namespace: x } ]\nnode_types: { N: { properties: { p: { type: string, default: { $x:f: [ a ] } } } } }\n", "f.yaml": head + "functions: { f: { signatures: [ { arguments: [ integer ], result: string } ] } }\n"}, "main.yaml: no signature"},
		{"an error in a file that is imported", many{"main.yaml": head + "imports: [ a.yaml ]\n", "a.yaml": head + "node_types: { A: { properties: { p: { type: Nope } } } }\n"}, "a.yaml: no data type Nope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := model.Read(context.Background(), "main.yaml", model.Options{Files: c.files, Builtin: profiles.Files{}})
			if err != nil {
				t.Fatal(err)
			}
			found := mistakes(result)
			if c.wrong == "" {
				if len(found) > 0 {
					t.Errorf("refused: %v", found)
				}
				return
			}
			file, words, ok := strings.Cut(c.wrong, ": ")
			if !ok {
				file, words = "", c.wrong
			}
			for _, p := range found {
				if strings.HasSuffix(p.File, file) && strings.Contains(p.What, words) {
					return
				}
			}
			t.Errorf("want a problem %q, found %v", c.wrong, found)
		})
	}
}
