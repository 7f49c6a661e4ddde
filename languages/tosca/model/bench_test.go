package model_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"croft/languages/tosca/csar"
	"croft/languages/tosca/model"
	"croft/languages/tosca/profiles"
)

// large writes a template of n nodes: computers, and software on them that
// depends on the one before.
func large(n int) []byte {
	var s strings.Builder
	s.WriteString(`tosca_definitions_version: tosca_2_0
imports:
  - profile: org.croft.testbed:1.0
node_types:
  Worker:
    derived_from: SoftwareComponent
    properties:
      port: { type: integer, validation: { $in_range: [ $value, [ 1024, 65535 ] ] } }
      name: { type: string, validation: { $matches: [ $value, "^[a-z][a-z0-9-]*$" ] } }
      memory: { type: scalar-unit.size, default: 64 MB }
    capabilities:
      service: Endpoint
    requirements:
      - upstream: { capability: Endpoint, relationship: ConnectsTo, count_range: [ 0, 1 ] }
service_template:
  inputs:
    size: { type: scalar-unit.size, default: 512 MB }
  node_templates:
`)
	for i := range n {
		if i%2 == 0 {
			fmt.Fprintf(&s, `    host-%d:
      type: Node
      capabilities:
        host:
          properties: { num_cpus: 2, mem_size: { $get_input: size } }
`, i)
			continue
		}
		fmt.Fprintf(&s, `    worker-%d:
      type: Worker
      properties:
        port: %d
        name: { $concat: [ worker-, "%d" ] }
      requirements:
        - host: host-%d
`, i, 1024+i, i, i-1)
		if i > 1 {
			fmt.Fprintf(&s, "        - upstream: { node: worker-%d, capability: service }\n", i-2)
		}
		fmt.Fprintf(&s, `      interfaces:
        Standard:
          operations:
            configure:
              implementation: scripts/configure.sh
              inputs:
                name: { $get_property: [ SELF, name ] }
                address: { $get_attribute: [ host-%d, private_address ] }
`, i-1)
	}
	return []byte(s.String())
}

func benchmark(b *testing.B, n int) {
	document := large(n)
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		result, err := model.Read(context.Background(), "main.yaml", model.Options{
			Files: csar.Single{Name: "main.yaml", Data: document}, Builtin: profiles.Files{},
		})
		if err != nil || !result.Valid() {
			b.Fatalf("%v: %v", err, mistakes(result))
		}
	}
}

func BenchmarkRead1000(b *testing.B)  { benchmark(b, 1000) }
func BenchmarkRead10000(b *testing.B) { benchmark(b, 10000) }
