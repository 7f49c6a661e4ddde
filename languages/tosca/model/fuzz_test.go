package model_test

import (
	"context"
	"testing"

	"croft/languages/tosca/csar"
	"croft/languages/tosca/model"
	"croft/languages/tosca/profiles"
	"croft/languages/tree"
)

// fuzzLimits keep single inputs quick.
var fuzzLimits = tree.Limits{Bytes: 64 << 10, Nodes: 5000}

func FuzzRead(f *testing.F) {
	for _, list := range [][]grammar{cases, templates, derivations, refinements, assignments, calls} {
		for i, c := range list {
			if i%4 == 0 {
				f.Add([]byte(c.text))
			}
		}
	}
	f.Add([]byte("tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  node_templates:\n    a: { type: tosca.nodes.Compute }\n"))
	f.Fuzz(func(t *testing.T, document []byte) {
		result, err := model.Read(context.Background(), "main.yaml", model.Options{
			Files: csar.Single{Name: "main.yaml", Data: document}, Builtin: profiles.Files{}, Limits: fuzzLimits,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range result.Problems {
			if p.What == "" {
				t.Errorf("problem without words: %+v", p)
			}
		}
	})
}

// FuzzExpression has expressions where a property's value, a validation clause
// and a node filter stand.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"{ $sum: [ 1, 2 ] }", "{ $get_property: [ SELF, size ] }", "{ $and: [ true, { $not: [ false ] } ] }", "{ $token: [ a.b, ., 1 ] }",
		"{ $get_attribute: [ SELF, RELATIONSHIP, place, 0, TARGET, address ] }", "{ $value: [ a, 0 ] }", "$node_index", "{ $matches: [ $value, '(' ] }",
		"{ $get_property: [ [ h, 1 ], CAPABILITY, run, RELATIONSHIP, ALL, SOURCE, size ] }", "{ $remainder: [ 7, 0 ] }", "{ $concat: [ [ 1 ], [ 2 ] ] }",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		if len(expression) > 2000 {
			return
		}
		text := typesOpen + "  Fuzzed:\n    derived_from: App\n    properties:\n      v:\n        type: integer\n        required: false\n        validation: " + expression + "\n" +
			"service_template:\n  node_templates:\n    h: { type: Host, count: 2 }\n    f:\n      type: Fuzzed\n      properties:\n        v: 3\n        size: " + expression + "\n" +
			"      requirements:\n        - place:\n            node: h\n            node_filter: " + expression + "\n"
		if _, err := model.Read(context.Background(), "main.yaml", model.Options{
			Files: csar.Single{Name: "main.yaml", Data: []byte(text)}, Builtin: profiles.Files{}, Limits: fuzzLimits,
		}); err != nil {
			t.Fatal(err)
		}
	})
}
