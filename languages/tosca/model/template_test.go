package model_test

import "strings"

// service makes a file with types and a service template of the lines.
func service(lines string) string {
	return types + "service_template:\n" + indent(lines)
}

func indent(s string) string {
	out := ""
	for len(s) > 0 {
		i := 0
		for i < len(s) && s[i] != '\n' {
			i++
		}
		out += "  " + s[:i] + "\n"
		if i < len(s) {
			i++
		}
		s = s[i:]
	}
	return out
}

var templates = []grammar{
	// 5.2.6: service templates.
	{"no node templates", service("description: x"), "service_template: no node_templates"},
	{"node templates as a list", service("node_templates: [ a ]"), "node_templates: is a list"},
	{"an empty section of groups", service("node_templates: {}\ngroups:"), "groups: is empty"},
	{"an unknown keyname", service("node_templates: {}\nnodes: {}"), "nodes: no keyname"},
	{"a template without type", service("node_templates: { a: {} }"), "a: no type"},
	{"a template of an unknown type", service("node_templates: { a: { type: Nope } }"), "a/type: no node type"},
	{"a template that is a string", service("node_templates: { a: Host }"), "a: is a string"},
	{"a property that the type has not", service("node_templates: { a: { type: Host, properties: { colour: red } } }"), "properties/colour: has no property"},
	{"a property of another type", service("node_templates: { a: { type: Host, properties: { size: big } } }"), "properties/size: want a value of type integer"},
	{"a float for an integer", service("node_templates: { a: { type: Host, properties: { size: 1.0 } } }"), "properties/size: want a value of type integer"},
	{"an integer for a string", service("node_templates: { a: { type: Host, properties: { tag: 1 } } }"), "properties/tag: quote it"},
	{"a value that is not valid", service("node_templates: { a: { type: App, properties: { port: 0 } } }"), "properties/port: is not valid"},
	{"properties as a list", service("node_templates: { a: { type: Host, properties: [ size: 1 ] } }"), "properties: is a list"},
	{"an attribute that the type has not", service("node_templates: { a: { type: Host, attributes: { colour: red } } }"), "attributes/colour: no attribute"},
	{"an attribute made of a property", service("node_templates: { a: { type: Host, attributes: { size: 3 } } }"), ""},
	{"an unknown directive", service("node_templates: { a: { type: Host, directives: [ hide ] } }"), "directives[0]: no directive"},
	{"directives as a string", service("node_templates: { a: { type: Host, directives: select } }"), "directives: is a string"},
	{"a capability that the type has not", service("node_templates: { a: { type: Host, capabilities: { jump: {} } } }"), "capabilities/jump: no capability"},
	{"a property of a capability", service("node_templates: { a: { type: Host, capabilities: { run: { properties: { cores: 2 } } } } }"), ""},
	{"an unknown property of a capability", service("node_templates: { a: { type: Host, capabilities: { run: { properties: { cpu: 2 } } } } }"), "properties/cpu: no property"},
	{"a capability directive", service("node_templates: { a: { type: Host, capabilities: { run: { directives: [ sideways ] } } } }"), "directives[0]: want internal"},
	{"a copy", service("node_templates: { a: { type: App, properties: { port: 81 } }, b: { type: App, copy: a } }"), ""},
	{"a copy of a copy", service("node_templates: { a: { type: App }, b: { type: App, copy: a }, c: { type: App, copy: b } }"), "c/copy: copy itself"},
	{"a copy of nothing", service("node_templates: { a: { type: App, copy: b } }"), "a/copy: no template"},
	{"a count", service("node_templates: { a: { type: App, count: 3 } }"), ""},
	{"a negative count", service("node_templates: { a: { type: App, count: -1 } }"), "a/count: want an integer"},
	{"a count that is a string", service("node_templates: { a: { type: App, count: many } }"), "a/count: want an integer"},
	// 5.3.5.6: requirements.
	{"a requirement", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: h ] } }"), ""},
	{"a requirement with a special capability", service("node_templates: { h: { type: Box }, a: { type: App, requirements: [ place: { node: h, capability: Special } ] } }"), ""},
	{"a requirement that the type has not", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ room: h ] } }"), "requirements[0]: no requirement"},
	{"requirements as a map", service("node_templates: { h: { type: Host }, a: { type: App, requirements: { place: h } } }"), "requirements: is a map"},
	{"a target that is not there", service("node_templates: { a: { type: App, requirements: [ place: h ] } }"), "requirements[0]/place: neither a node template nor a node type"},
	{"a target of another type", service("node_templates: { h: { type: Base }, a: { type: App, requirements: [ place: h ] } }"), "requirements[0]/place: is of type Base"},
	{"a type as target", service("node_templates: { a: { type: App, requirements: [ place: { node: Box } ] } }"), ""},
	{"too many targets", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: h, place: h, place: h ] } }"), "requirements: assigned 3 times"},
	{"too many by count", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, count: 3 } ] } }"), "requirements: assigned 3 times"},
	{"an unknown relationship", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, relationship: Under } ] } }"), "relationship: neither a relationship template"},
	{"a derived relationship", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, relationship: Tightly } ] } }"), ""},
	{"another relationship", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, relationship: Beside } ] } }"), "relationship: another type"},
	{"a property of a relationship", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, relationship: { type: On, properties: { rank: 1 } } } ] } }"), ""},
	{"an unknown property of a relationship", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, relationship: { type: On, properties: { size: 1 } } } ] } }"), "properties/size: no property"},
	{"a relationship template", service("relationship_templates: { t: { type: On, properties: { rank: 2 } } }\nnode_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, relationship: t } ] } }"), ""},
	{"a relationship template of an unknown type", service("relationship_templates: { t: { type: Nope } }\nnode_templates: {}"), "t/type: no relationship type"},
	{"an unknown capability", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, capability: jump } ] } }"), "capability: no capability jump"},
	{"a capability of another type", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, capability: Other } ] } }"), "capability: another type"},
	{"optional that is a string", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, optional: maybe } ] } }"), "optional: want true"},
	{"allocation", service("node_templates: { h: { type: Host, capabilities: { run: { properties: { cores: 4 } } } }, a: { type: App, requirements: [ place: { node: h, allocation: { properties: { cores: 2 } } } ] } }"), ""},
	{"a node filter that holds", service("node_templates: { h: { type: Host, capabilities: { run: { properties: { cores: 4 } } } }, a: { type: App, requirements: [ place: { node: h, node_filter: { $greater_than: [ { $get_property: [ SELF, CAPABILITY, cores ] }, 2 ] } } ] } }"), ""},
	{"a node filter that does not hold", service("node_templates: { h: { type: Host, capabilities: { run: { properties: { cores: 1 } } } }, a: { type: App, requirements: [ place: { node: h, node_filter: { $greater_than: [ { $get_property: [ SELF, CAPABILITY, cores ] }, 2 ] } } ] } }"), "place: does not fulfil"},
	{"a node filter that is no expression", service("node_templates: { a: { type: App, requirements: [ place: { node_filter: [ a ] } ] } }"), "node_filter: is a list"},
	{"a requirement of a list of three", service("node_templates: { h: { type: Host, count: 2 }, a: { type: App, requirements: [ place: [ h, 1, 2 ] ] } }"), "place: is a list"},
	{"a target by index", service("node_templates: { h: { type: Host, count: 2 }, a: { type: App, requirements: [ place: [ h, 1 ] ] } }"), ""},
	// 5.3.6: interfaces.
	{"an operation", service("node_templates: { a: { type: App, interfaces: { life: { operations: { create: a.sh } } } } }"), ""},
	{"an operation that the type has not", service("node_templates: { a: { type: App, interfaces: { life: { operations: { jump: a.sh } } } } }"), "operations/jump: no operation"},
	{"an interface that the type has not", service("node_templates: { a: { type: App, interfaces: { death: {} } } }"), "interfaces/death: no interface"},
	{"an input of another type", service("node_templates: { a: { type: App, interfaces: { life: { operations: { create: { inputs: { name: 3 } } } } } } }"), "inputs/name: want a value of type string"},
	{"an input of the interface", service("node_templates: { a: { type: App, interfaces: { life: { inputs: { level: x } } } } }"), "inputs/level: want a value of type integer"},
	{"an input that is not defined", service("node_templates: { a: { type: App, interfaces: { life: { operations: { create: { inputs: { more: [ 1 ] } } } } } } }"), ""},
	{"an implementation that is a list", service("node_templates: { a: { type: App, interfaces: { life: { operations: { create: { implementation: [ a ] } } } } } }"), "implementation: is a list"},
	{"a timeout that is a string", service("node_templates: { a: { type: App, interfaces: { life: { operations: { create: { implementation: { primary: a, timeout: long } } } } } } }"), "timeout: want an integer"},
	{"an output mapping", service("node_templates: { a: { type: App, interfaces: { life: { operations: { create: { outputs: { x: [ SELF, address ] } } } } } } }"), ""},
	{"an output mapping that is a string", service("node_templates: { a: { type: App, interfaces: { life: { operations: { create: { outputs: { x: address } } } } } } }"), "outputs/x: is a string"},
	{"a notification that the type has not", service("node_templates: { a: { type: App, interfaces: { life: { notifications: { lost: {} } } } } }"), "notifications/lost: no notification"},
	// 5.4: inputs, outputs, functions.
	{"an input with a default of another type", service("inputs: { i: { type: integer, default: x } }\nnode_templates: {}"), "inputs/i/default: want a value of type integer"},
	{"an input that is a string", service("inputs: { i: string }\nnode_templates: {}"), "inputs/i: is a string"},
	{"an input that is not there", service("node_templates: { a: { type: Host, properties: { size: { $get_input: i } } } }"), "size/$get_input: no input i"},
	{"an input of another type", service("inputs: { i: { type: string } }\nnode_templates: { a: { type: Host, properties: { size: { $get_input: i } } } }"), "properties/size: gives a string"},
	{"a nested input", service("inputs: { i: { type: Pair } }\nnode_templates: { a: { type: Host, properties: { size: { $get_input: [ i, left ] } } } }"), ""},
	{"a nested input that is not there", service("inputs: { i: { type: Pair } }\nnode_templates: { a: { type: Host, properties: { size: { $get_input: [ i, middle ] } } } }"), "no property middle"},
	{"a property of another node", service("node_templates: { a: { type: Host, properties: { size: 3 } }, b: { type: Host, properties: { size: { $get_property: [ a, size ] } } } }"), ""},
	{"a property of a node that is not there", service("node_templates: { b: { type: Host, properties: { size: { $get_property: [ a, size ] } } } }"), "no node or relationship a"},
	{"a property that is not there", service("node_templates: { b: { type: Host, properties: { size: { $get_property: [ SELF, weight ] } } } }"), "no property weight"},
	{"a property of another type", service("node_templates: { b: { type: Host, properties: { size: { $get_property: [ SELF, tag ] } } } }"), "properties/size: gives a string"},
	{"a value that depends on itself", service("node_templates: { b: { type: Host, properties: { size: { $get_property: [ SELF, size ] } } } }"), "properties/size: depends on itself"},
	{"a malformed function", service("node_templates: { b: { type: Host, properties: { tag: { $concat: [ a, b ], other: c } } } }"), "malformed function"},
	{"an escaped dollar", service("node_templates: { b: { type: Host, properties: { tag: $$get_input } } }"), ""},
	{"a result of another type", service("node_templates: { b: { type: Host, properties: { size: { $concat: [ a, b ] } } } }"), "properties/size: want a value of type integer"},
	{"arguments of the wrong types", service("node_templates: { b: { type: Host, properties: { size: { $sum: [ 1, a ] } } } }"), "cannot compute"},
	{"a fixed index out of the list", service("inputs: { i: { type: list, entry_schema: integer, default: [ 1 ] } }\nnode_templates: { a: { type: Host, properties: { size: { $get_input: [ i, 3 ] } } } }"), "no item 3"},
	{"an output", service("node_templates: { a: { type: Host } }\noutputs: { o: { value: { $get_attribute: [ a, address ] } } }"), ""},
	{"an output of nothing there", service("node_templates: { a: { type: Host } }\noutputs: { o: { value: { $get_attribute: [ b, address ] } } }"), "no node or relationship b"},
	{"an output of an unknown attribute", service("node_templates: { a: { type: Host } }\noutputs: { o: { value: { $get_attribute: [ a, weight ] } } }"), "no attribute weight"},
	{"an output of another type", service("node_templates: { a: { type: Host } }\noutputs: { o: { type: integer, value: x } }"), "outputs/o/value: want a value of type integer"},
	{"outputs as a list", service("node_templates: {}\noutputs: [ o ]"), "outputs: is a list"},
	// 5.6: groups and policies.
	{"a group", service("node_templates: { a: { type: Host } }\ngroups: { g: { type: Hosts, members: [ a ] } }"), ""},
	{"a group without type", service("node_templates: { a: { type: Host } }\ngroups: { g: { members: [ a ] } }"), "groups/g: no type"},
	{"a group of an unknown type", service("node_templates: {}\ngroups: { g: { type: Nope } }"), "g/type: no group type"},
	{"a member that is not there", service("node_templates: {}\ngroups: { g: { type: Hosts, members: [ a ] } }"), "members[0]: no node template and no group"},
	{"a member of another type", service("node_templates: { a: { type: App } }\ngroups: { g: { type: Hosts, members: [ a ] } }"), "members[0]: is of type App"},
	{"members as a string", service("node_templates: { a: { type: Host } }\ngroups: { g: { type: Hosts, members: a } }"), "members: is a string"},
	{"a policy", service("node_templates: { a: { type: Host } }\npolicies: [ p: { type: Rule, targets: [ a ], properties: { level: 1 } } ]"), ""},
	{"policies as a map", service("node_templates: { a: { type: Host } }\npolicies: { p: { type: Rule } }"), "policies: is a map"},
	{"a policy without its property", service("node_templates: { a: { type: Host } }\npolicies: [ p: { type: Rule, targets: [ a ] } ]"), "level of policy p is missing"},
	{"a policy of an unknown type", service("node_templates: {}\npolicies: [ p: { type: Nope } ]"), "type: no policy type"},
	{"a target of a policy that is not there", service("node_templates: {}\npolicies: [ p: { type: Rule, targets: [ a ], properties: { level: 1 } } ]"), "targets[0]: no node template and no group"},
	{"a target of a policy of another type", service("node_templates: { a: { type: App } }\npolicies: [ p: { type: Rule, targets: [ a ], properties: { level: 1 } } ]"), "targets[0]: is of type App"},
	{"a condition that is no expression", service("node_templates: { a: { type: Host } }\npolicies: [ p: { type: Rule, targets: [ a ], properties: { level: 1 }, triggers: { t: { event: e, condition: x, action: [ set_state: a ] } } } ]"), "condition: is a string"},
	// 5.7: workflows.
	{"a workflow", service("node_templates: { a: { type: App } }\nworkflows: { w: { steps: { s: { target: a, activities: [ call_operation: life.create, set_state: made ], on_success: [ t ] }, t: { target: a, activities: [ delegate: x ] } } } }"), ""},
	{"a step without target", service("node_templates: { a: { type: App } }\nworkflows: { w: { steps: { s: { activities: [ set_state: made ] } } } }"), "steps/s: no target"},
	{"a step without activities", service("node_templates: { a: { type: App } }\nworkflows: { w: { steps: { s: { target: a } } } }"), "steps/s: no activities"},
	{"a target of a step that is not there", service("node_templates: { a: { type: App } }\nworkflows: { w: { steps: { s: { target: b, activities: [ set_state: made ] } } } }"), "target: no node template"},
	{"an operation that is not there", service("node_templates: { a: { type: App } }\nworkflows: { w: { steps: { s: { target: a, activities: [ call_operation: life.jump ] } } } }"), "call_operation: no operation jump"},
	{"an operation without interface", service("node_templates: { a: { type: App } }\nworkflows: { w: { steps: { s: { target: a, activities: [ call_operation: create ] } } } }"), "call_operation: names no operation"},
	{"an input that an operation requires", strings.Replace(service("node_templates: { a: { type: App } }\nworkflows: { w: { steps: { s: { target: a, activities: [ call_operation: life.create ] } } } }"), "name: { type: string, required: false }", "name: { type: string }", 1), "call_operation: requires input name"},
	{"an allocation that is no amount", service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, allocation: { cores: many } } ] } }"), "allocation/cores: want a number"},
	{"a mapping of a requirement with a count", service("node_templates: { a: { type: App, count: 2 } }\nsubstitution_mappings: { node_type: App, requirements: [ [ place, 2 ]: [ [ a, 1 ], place ] ] }"), ""},
	{"a next step that is not there", service("node_templates: { a: { type: App } }\nworkflows: { w: { steps: { s: { target: a, activities: [ set_state: x ], on_success: [ t ] } } } }"), "on_success[0]: no step"},
	{"a workflow inlined that is not there", service("node_templates: { a: { type: App } }\nworkflows: { w: { steps: { s: { target: a, activities: [ inline: v ] } } } }"), "inline: no workflow"},
	{"steps and implementation", service("node_templates: { a: { type: App } }\nworkflows: { w: { implementation: x.bpmn, steps: { s: { target: a, activities: [ set_state: x ] } } } }"), "implementation: both"},
	// 5.5: substitution.
	{"a substitution", service("inputs: { s: { type: integer } }\nnode_templates: { h: { type: Host, properties: { size: { $get_input: s } } } }\noutputs: { o: { value: { $get_attribute: [ h, address ] } } }\nsubstitution_mappings: { node_type: Host, properties: { size: [ s ] }, attributes: { address: [ o ] }, capabilities: { run: [ h, run ] } }"), ""},
	{"a substitution without type", service("node_templates: {}\nsubstitution_mappings: { properties: {} }"), "substitution_mappings: no node_type"},
	{"a substitution of an unknown type", service("node_templates: {}\nsubstitution_mappings: { node_type: Nope }"), "node_type: no node type"},
	{"a mapping to an input that is not there", service("node_templates: {}\nsubstitution_mappings: { node_type: Host, properties: { size: [ s ] } }"), "size[0]: no input"},
	{"a mapping of an unknown property", service("inputs: { s: { type: integer } }\nnode_templates: {}\nsubstitution_mappings: { node_type: Host, properties: { weight: [ s ] } }"), "properties/weight: no property"},
	{"a mapping to a node that is not there", service("node_templates: {}\nsubstitution_mappings: { node_type: Host, capabilities: { run: [ h, run ] } }"), "run[0]: no node template"},
	{"a mapping to a capability that is not there", service("node_templates: { h: { type: Host } }\nsubstitution_mappings: { node_type: Host, capabilities: { run: [ h, walk ] } }"), "run[1]: no capability"},
	{"a property that is not mapped", strings.Replace(service("node_templates: { h: { type: Host, properties: { size: 1 } } }\nsubstitution_mappings: { node_type: Host, capabilities: { run: [ h, run ] } }"), "size: { type: integer, required: false }", "size: { type: integer }", 1), "substitution_mappings: property size of Host is mapped to no input"},
	{"a capability that is not mapped", service("node_templates: { h: { type: Host } }\nsubstitution_mappings: { node_type: Host }"), "substitution_mappings: capability run of Host is mapped to none"},
	{"optional targets are not enough", strings.Replace(service("node_templates: { h: { type: Host }, a: { type: App, requirements: [ place: { node: h, optional: true } ] } }"), "count_range: [ 0, 2 ]", "count_range: [ 1, 2 ]", 1), "requirements: without the optional ones"},
	{"a mapping of three", service("node_templates: { h: { type: Host } }\nsubstitution_mappings: { node_type: Host, capabilities: { run: run } }"), "run: is a string"},
	{"a mapping to a requirement", service("node_templates: { a: { type: App } }\nsubstitution_mappings: { node_type: App, requirements: { place: [ a, place ] } }"), ""},
	{"a mapping to a workflow that is not there", service("node_templates: { a: { type: App } }\nsubstitution_mappings: { node_type: App, interfaces: { life: { create: w } } }"), "create: mapped to no workflow"},
}
