package model_test

import (
	"fmt"
	"strings"
	"testing"
)

// Which nodes of a template fulfil requirements (csd05, 5.3.5.6).
func TestFulfilment(t *testing.T) {
	const hosts = "node_templates: { small: { type: Host, properties: { size: 1 }, capabilities: { run: { properties: { cores: 2 } } } }, box: { type: Box, properties: { size: 2 }, capabilities: { run: { properties: { cores: 8 } } } }, large: { type: Host, properties: { size: 3 }, capabilities: { run: { properties: { cores: 4 } } } }, "
	place := func(text string) string { return hosts + "a: { type: App, requirements: [ place: " + text + " ] } }" }
	for _, c := range []struct {
		name, lines, want string // want: of each node a, b …, what it got
		open              bool   // one is left open
	}{
		{"by name", place("large"), "a: large", false},
		{"by type", place("{ node: Host }"), "a: small", false},
		{"by a derived type", place("{ node: Box }"), "a: box", false},
		{"by a capability type", place("{ capability: Special }"), "a: box", false},
		{"by a filter of the capability", place("{ node: Host, node_filter: { $greater_than: [ { $get_property: [ SELF, CAPABILITY, cores ] }, 2 ] } }"), "a: box", false},
		{"by a filter of the target", place("{ node: Host, node_filter: { $equal: [ { $get_property: [ SELF, TARGET, size ] }, 3 ] } }"), "a: large", false},
		{"by a filter of both ends", place("{ node: Host, node_filter: { $greater_than: [ { $get_property: [ SELF, TARGET, size ] }, { $length: [ { $get_property: [ SELF, SOURCE, tag ] } ] } ] } }"), "a:", true},
		{"by a filter that nothing fulfils", place("{ node: Host, node_filter: { $greater_than: [ { $get_property: [ SELF, CAPABILITY, cores ] }, 99 ] } }"), "a:", true},
		{"an optional one that nothing fulfils", place("{ node: Host, optional: true, node_filter: { $greater_than: [ { $get_property: [ SELF, CAPABILITY, cores ] }, 99 ] } }"), "a:", false},
		{"a count", place("{ node: Host, count: 2 }"), "a: small box", false},
		{"a count of zero", place("{ node: Host, count: 0 }"), "a:", false},
		{"a count that there is not", place("{ node: Box, count: 2 }"), "a: box", true},
		{"an external one", place("{ node: Host, directives: [ external ] }"), "a:", true},
		{"an allocation that one has", place("{ node: Host, allocation: { properties: { cores: 5 } } }"), "a: box", false},
		{"an allocation that none has", place("{ node: Host, allocation: { properties: { cores: 9 } } }"), "a:", true},
		{"an allocation of what there is not", place("{ node: Host, allocation: { properties: { disks: 1 } } }"), "a:", true},
		{"allocations that add up", hosts + "a: { type: App, requirements: [ place: { node: Host, allocation: { properties: { cores: 6 } } } ] }, b: { type: App, requirements: [ place: { node: Host, allocation: { properties: { cores: 3 } } } ] } }", "a: box, b: large", false},
		{"an optional one comes last", hosts + "a: { type: App, requirements: [ place: { node: Box, optional: true, allocation: { properties: { cores: 6 } } } ] }, b: { type: App, requirements: [ place: { node: Box, allocation: { properties: { cores: 6 } } } ] } }", "a:, b: box", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := readText(t, service(c.lines), nil)
			if !result.Valid() {
				t.Fatalf("refused: %v", mistakes(result))
			}
			var got []string
			for _, name := range result.Service.Nodes.Names {
				n, _ := result.Service.Nodes.Get(name)
				if n.Type.Name != "App" {
					continue
				}
				text := name + ":"
				for _, r := range n.Out {
					text += " " + r.Target.Name
				}
				got = append(got, text)
			}
			open := false
			for _, p := range result.Problems {
				open = open || p.Unfulfilled
			}
			if text := strings.Join(got, ", "); text != c.want || open != c.open {
				t.Errorf("%s, open %v; want %s, %v: %s", text, open, c.want, c.open, fmt.Sprint(result.Problems))
			}
		})
	}
}
