package model_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"croft/languages/tosca/csar"
	"croft/languages/tosca/model"
	"croft/languages/tosca/profiles"
)

// readText reads a file that stands alone.
func readText(t testing.TB, text string, inputs map[string]any) *model.Result {
	t.Helper()
	result, err := model.Read(context.Background(), "main.yaml", model.Options{
		Files: csar.Single{Name: "main.yaml", Data: []byte(text)}, Builtin: profiles.Files{}, Inputs: inputs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// grammar is a case: a file, and what is wrong with it ("" for nothing), as
// "path: words of the message".
type grammar struct {
	name  string
	text  string
	wrong string
}

const head = "tosca_definitions_version: tosca_2_0\n"

// types are definitions that the cases build on.
const types = head + `
capability_types:
  Hosting: { properties: { cores: { type: integer, required: false } } }
  Special: { derived_from: Hosting }
  Other: {}
relationship_types:
  On: { valid_capability_types: [ Hosting ], properties: { rank: { type: integer, required: false } } }
  Tightly: { derived_from: On }
  Beside: {}
interface_types:
  Life:
    inputs: { level: { type: integer, required: false } }
    operations: { create: { inputs: { name: { type: string, required: false } } }, start: {} }
    notifications: { changed: {} }
artifact_types:
  Script: { file_ext: [ sh ], properties: { mode: { type: string, required: false } } }
data_types:
  Port: { derived_from: integer, validation: { $in_range: [ $value, [ 1, 65535 ] ] } }
  Low: { derived_from: Port, validation: { $less_than: [ $value, 1024 ] } }
  Pair: { properties: { left: { type: integer }, right: { type: integer, default: 7 } } }
node_types:
  Base:
    properties: { size: { type: integer, required: false }, tag: { type: string, default: none } }
    attributes: { address: { type: string } }
  Host:
    derived_from: Base
    capabilities: { run: Hosting }
  Box:
    derived_from: Host
    capabilities: { run: { type: Special } }
  App:
    derived_from: Base
    properties: { port: { type: Port, default: 80 } }
    requirements: [ place: { capability: Hosting, node: Host, relationship: On, count_range: [ 0, 2 ] } ]
    interfaces: { life: { type: Life } }
group_types:
  Hosts: { members: [ Host ] }
policy_types:
  Rule: { targets: [ Host, Hosts ], properties: { level: { type: integer } } }
`

var cases = []grammar{
	// 5.2.1: files.
	{"only a version", head, ""},
	{"an unknown version", "tosca_definitions_version: tosca_3_0\n", "tosca_definitions_version: no version"},
	{"a version that is a number", "tosca_definitions_version: 2.0\n", "tosca_definitions_version: is a float"},
	{"an unknown keyname", head + "nodes: {}\n", "nodes: no keyname"},
	{"a list instead of a file", "- 1\n", ": is a list"},
	{"description that is a map", head + "description: { a: b }\n", "description: is a map"},
	{"metadata that is a list", head + "metadata: [ a ]\n", "metadata: is a list"},
	{"a key twice", head + "description: a\ndescription: b\n", ": stands twice"},
	{"a type twice", head + "node_types:\n  A: {}\n  A: {}\n", ": stands twice"},
	{"profile with a service template", head + "profile: a.b\nservice_template: { node_templates: {} }\n", "service_template: profile"},
	{"profile that is a number", head + "profile: 1\n", "profile: is an integer"},
	{"topology_template in 2.0", head + "topology_template: { node_templates: {} }\n", "topology_template: no keyname"},
	// 5.2.3: imports, namespaces, repositories.
	{"import of nothing", head + "imports:\n  - namespace: a\n", "imports[0]: neither url nor profile"},
	{"import of both", head + "imports:\n  - { url: a.yaml, profile: b }\n", "imports[0]: both url and profile"},
	{"import of a file that is not there", head + "imports: [ a.yaml ]\n", "imports[0]: no file a.yaml"},
	{"import of an unknown profile", head + "imports: [ { profile: none } ]\n", "imports[0]/profile: not known"},
	{"import from an unknown repository", head + "imports: [ { url: a.yaml, repository: r } ]\n", "imports[0]/repository: no repository"},
	{"import by URL and repository", head + "repositories: { r: https://x.org/ }\nimports: [ { url: \"https://x.org/a.yaml\", repository: r } ]\n", "imports[0]/repository: scheme"},
	{"import of a number", head + "imports: [ 1 ]\n", "imports[0]: is an integer"},
	{"import that is a map", head + "imports: { a: b }\n", "imports: is a map"},
	{"import of the file itself", head + "imports: [ main.yaml ]\n", ""},
	{"import into a namespace", head + "imports: [ { profile: \"org.croft.testbed:1.0\", namespace: tb } ]\nnode_types: { Mine: { derived_from: \"tb:Node\" } }\n", ""},
	{"a namespace that is not there", head + "node_types: { Mine: { derived_from: \"tb:Node\" } }\n", "node_types/Mine/derived_from: no node type"},
	{"a repository without url", head + "repositories: { r: { description: x } }\n", "repositories/r: no url"},
	{"a repository that is a list", head + "repositories: { r: [ x ] }\n", "repositories/r: is a list"},
	{"a repository with an unknown keyname", head + "repositories: { r: { url: x, port: 1 } }\n", "repositories/r/port: no keyname"},
	// 5.2.5: types.
	{"derived from nothing known", head + "node_types: { A: { derived_from: B } }\n", "node_types/A/derived_from: no node type B"},
	{"derived from itself", head + "node_types: { A: { derived_from: A } }\n", "node_types/A/derived_from: derives from itself"},
	{"derived in a circle", head + "node_types: { A: { derived_from: B }, B: { derived_from: A } }\n", "derived_from: derives from itself"},
	{"derived from a type of another kind", head + "capability_types: { C: {} }\nnode_types: { A: { derived_from: C } }\n", "node_types/A/derived_from: no node type"},
	{"derived from a data type", head + "node_types: { A: { derived_from: string } }\n", "node_types/A/derived_from: is a data type"},
	{"version without quotes", head + "node_types: { A: { version: 1.0 } }\n", "node_types/A/version: is a float"},
	{"version with a build", head + "node_types: { A: { version: 1.0.0.beta-2 } }\n", ""},
	{"derived_from a list", head + "node_types: { A: { derived_from: [ B ] } }\n", "node_types/A/derived_from: is a list"},
	{"a type that is a string", head + "node_types: { A: B }\n", "node_types/A: is a string"},
	{"attributes of a data type", head + "data_types: { A: { attributes: { a: { type: string } }, properties: { b: { type: string } } } }\n", "data_types/A/attributes: no keyname"},
	// 5.3.1: node types.
	{"a property without type", head + "node_types: { A: { properties: { p: { required: true } } } }\n", "node_types/A/properties/p: no type"},
	{"a property of an unknown type", head + "node_types: { A: { properties: { p: { type: text } } } }\n", "properties/p/type: no data type"},
	{"a property that is a string", head + "node_types: { A: { properties: { p: string } } }\n", "properties/p: definition"},
	{"required that is a string", head + "node_types: { A: { properties: { p: { type: string, required: \"yes\" } } } }\n", "properties/p/required: want true"},
	{"a default of another type", head + "node_types: { A: { properties: { p: { type: integer, default: a } } } }\n", "properties/p/default: want a value of type integer"},
	{"a default that is not valid", head + "node_types: { A: { properties: { p: { type: integer, default: 0, validation: { $greater_than: [ $value, 0 ] } } } } }\n", "properties/p/default: is not valid"},
	{"an unknown status", head + "node_types: { A: { properties: { p: { type: string, status: old } } } }\n", "properties/p/status: is"},
	{"constraints", head + "node_types: { A: { properties: { p: { type: string, constraints: [ { equal: a } ] } } } }\n", "properties/p/constraints: no keyname"},
	{"entry_schema of a string", head + "node_types: { A: { properties: { p: { type: string, entry_schema: string } } } }\n", "properties/p/entry_schema: of a string"},
	{"key_schema of a list", head + "node_types: { A: { properties: { p: { type: list, entry_schema: string, key_schema: string } } } }\n", "properties/p/key_schema: of a list"},
	{"keys that are integers", head + "node_types: { A: { properties: { p: { type: map, entry_schema: string, key_schema: integer } } } }\n", "properties/p/key_schema: of type integer"},
	{"an attribute with required", head + "node_types: { A: { attributes: { p: { type: string, required: true } } } }\n", "attributes/p/required: no keyname"},
	{"a capability of an unknown type", head + "node_types: { A: { capabilities: { c: C } } }\n", "capabilities/c: no capability type"},
	{"a capability without type", head + "node_types: { A: { capabilities: { c: { description: x } } } }\n", "capabilities/c: no type"},
	{"requirements as a map", head + "node_types: { A: { requirements: { r: { capability: C } } } }\n", "requirements: is a map"},
	{"a requirement twice", head + "capability_types: { C: {} }\nnode_types: { A: { requirements: [ r: C, r: C ] } }\n", "requirements[1]: defined twice"},
	{"a requirement without capability", head + "node_types: { A: { requirements: [ r: { node: A } ] } }\n", "requirements[0]/r: no capability"},
	{"a count_range upside down", head + "capability_types: { C: {} }\nnode_types: { A: { requirements: [ r: { capability: C, count_range: [ 2, 1 ] } ] } }\n", "count_range: below"},
	{"a count_range of three", head + "capability_types: { C: {} }\nnode_types: { A: { requirements: [ r: { capability: C, count_range: [ 1, 2, 3 ] } ] } }\n", "count_range: is a list"},
	{"a negative count_range", head + "capability_types: { C: {} }\nnode_types: { A: { requirements: [ r: { capability: C, count_range: [ -1, 2 ] } ] } }\n", "count_range[0]: want an integer"},
	{"a capability of the target by name", head + "capability_types: { C: {} }\nnode_types: { B: { capabilities: { c: C } }, A: { requirements: [ r: { capability: c, node: B } ] } }\n", ""},
	{"a capability by name without node", head + "capability_types: { C: {} }\nnode_types: { A: { requirements: [ r: { capability: c } ] } }\n", "capability: no capability type"},
	{"the types of these cases", types, ""},
	{"an implementation in an interface type", head + "interface_types: { I: { operations: { o: { implementation: a.sh } } } }\n", "operations/o/implementation: has an implementation"},
	{"a mapping in an interface type", head + "interface_types: { I: { operations: { o: { outputs: { x: [ SELF, a ] } } } } }\n", "outputs/x: mapped"},
	{"operations as a list", head + "interface_types: { I: { operations: [ o ] } }\n", "operations: is a list"},
	{"an interface without type", head + "node_types: { A: { interfaces: { i: {} } } }\n", "interfaces/i: no type"},
	{"an artifact without type", head + "node_types: { A: { artifacts: { a: { file: x } } } }\n", "artifacts/a: no type"},
	{"an artifact without file", head + "artifact_types: { T: {} }\nnode_types: { A: { artifacts: { a: { type: T } } } }\n", "artifacts/a: no file"},
	{"an artifact of an unknown type", head + "node_types: { A: { artifacts: { a: { type: T, file: x } } } }\n", "artifacts/a/type: no artifact type"},
	{"an artifact in an unknown repository", head + "artifact_types: { T: {} }\nnode_types: { A: { artifacts: { a: { type: T, file: x, repository: r } } } }\n", "artifacts/a/repository: no repository"},
	{"a checksum without algorithm", head + "artifact_types: { T: {} }\nnode_types: { A: { artifacts: { a: { type: T, file: x, checksum: y } } } }\n", "artifacts/a/checksum: checksum_algorithm"},
	{"file_ext that is a string", head + "artifact_types: { T: { file_ext: sh } }\n", "file_ext: is a string"},
	{"an unknown valid capability type", head + "relationship_types: { R: { valid_capability_types: [ C ] } }\n", "valid_capability_types[0]: no capability type"},
	{"an unknown valid node type", head + "capability_types: { C: { valid_source_node_types: [ N ] } }\n", "valid_source_node_types[0]: no node type"},
	{"members that are no node types", head + "group_types: { G: { members: [ N ] } }\n", "members[0]: no node type"},
	{"a trigger without action", head + "policy_types: { P: { triggers: { t: { event: e } } } }\n", "triggers/t: no action"},
	{"a trigger without event", head + "policy_types: { P: { triggers: { t: { action: [ set_state: a ] } } } }\n", "triggers/t: no event"},
	{"an unknown activity", head + "policy_types: { P: { triggers: { t: { event: e, action: [ run: a ] } } } }\n", "action[0]/run: no activity"},
	// 5.4.4: data types.
	{"a data type of nothing", head + "data_types: { D: {} }\n", "data_types/D: derives from nothing"},
	{"a data type without properties", head + "data_types: { D: { properties: {} } }\n", "data_types/D/properties: empty"},
	{"a data type with a built-in name", head + "data_types: { string: { derived_from: integer } }\n", "data_types/string: built-in"},
	{"a validation that is no expression", head + "data_types: { D: { derived_from: integer, validation: 3 } }\n", "validation: is an integer"},
	{"a validation that is no boolean", head + "data_types: { D: { derived_from: string, validation: { $length: [ $value ] } } }\n", "validation: no boolean"},
	{"an unknown function", head + "data_types: { D: { derived_from: string, validation: { $frobnicate: [ $value ] } } }\n", "no function"},
	{"a function with too few arguments", head + "data_types: { D: { derived_from: string, validation: { $equal: [ $value ] } } }\n", "arguments"},
	{"multiples that are no integers", head + "data_types: { D: { derived_from: scalar, data_type: integer, units: { b: 1, x: 0.5 } } }\n", "units/x: is 0.5"},
	{"entry_schema of a complex type", head + "data_types: { D: { properties: { a: { type: string } }, entry_schema: string } }\n", "entry_schema: of a complex type"},
	// 5.4.15: functions.
	{"a function without signatures", head + "functions: { f: { description: x } }\n", "functions/f: no signatures"},
	{"a function with an empty list of signatures", head + "functions: { f: { signatures: [] } }\n", "functions/f/signatures: no signature"},
	{"an argument of an unknown type", head + "functions: { f: { signatures: [ { arguments: [ text ] } ] } }\n", "arguments[0]: no data type"},
	{"variadic that is a string", head + "functions: { f: { signatures: [ { variadic: \"x\" } ] } }\n", "variadic: want true"},
	{"a dollar in the name of a function", head + "functions: { a$b: { signatures: [ {} ] } }\n", "has a $"},
}

func TestGrammar(t *testing.T) {
	for _, c := range slices.Concat(cases, templates, derivations, refinements, assignments, calls) {
		t.Run(c.name, func(t *testing.T) {
			found := mistakes(readText(t, c.text, nil))
			if c.wrong == "" {
				if len(found) > 0 {
					t.Errorf("refused: %v", found)
				}
				return
			}
			path, words, ok := strings.Cut(c.wrong, ": ")
			if !ok {
				path, words = "", c.wrong
			}
			for _, p := range found {
				if strings.HasSuffix(p.Path, path) && strings.Contains(p.What+" "+p.Hint, words) && p.Line > 0 {
					return
				}
			}
			t.Errorf("want a problem %q, found %v", c.wrong, found)
		})
	}
}

// The built-in profiles are read without being checked, so they are checked
// here.
func TestProfiles(t *testing.T) {
	for _, name := range []string{"org.croft.testbed:1.0", "org.oasis-open.tosca.simple:2.0"} {
		file := profiles.Files{}.Profile(name)
		result, err := model.Read(context.Background(), file, model.Options{Files: asFolder{}, Builtin: profiles.Files{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range mistakes(result) {
			// An empty type is what complex types of 1.x derive from.
			if !strings.Contains(p.Path, "data_types/Root") {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
}

// asFolder has the built-in profiles as somebody's own files.
type asFolder struct{}

func (asFolder) ReadFile(name string) ([]byte, error) { return profiles.Files{}.ReadFile(name) }
func (asFolder) Profile(name string) string           { return profiles.Files{}.Profile(name) }
