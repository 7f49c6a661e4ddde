package model_test

import "strings"

// Derivation and refinement, both ways: what a rule allows, and what it does
// not.
var derivations = []grammar{
	{"a property refined to a derived type", pair("properties: { p: { type: Port } }", "properties: { p: { type: Low } }"), ""},
	{"a property refined to its parent", pair("properties: { p: { type: Low } }", "properties: { p: { type: Port } }"), "C/properties/p/type: is refined"},
	{"a property refined to another type", pair("properties: { p: { type: Port } }", "properties: { p: { type: string } }"), "C/properties/p/type: is refined"},
	{"a property refined without type", pair("properties: { p: { type: Port } }", "properties: { p: { description: x, default: 3 } }"), ""},
	{"a property made required", pair("properties: { p: { type: Port, required: false } }", "properties: { p: { required: true } }"), ""},
	{"a required property made optional", pair("properties: { p: { type: Port } }", "properties: { p: { required: false } }"), "C/properties/p/required: cannot be refined"},
	{"a value fixed", pair("properties: { p: { type: Port } }", "properties: { p: 80 }"), ""},
	{"a value fixed to what is not valid", pair("properties: { p: { type: Port } }", "properties: { p: 0 }"), "C/properties/p: is not valid"},
	{"a fixed value changed", pair("properties: { p: { type: Port, value: 80 } }", "properties: { p: 81 }"), "C/properties/p: has the value"},
	{"clauses are added", pair("properties: { p: { type: integer, validation: { $greater_than: [ $value, 5 ] } } }", "properties: { p: { validation: { $less_than: [ $value, 10 ] }, default: 3 } }"), "C/properties/p/default: is not valid"},
	{"entry schema refined", pair("properties: { p: { type: list, entry_schema: Port } }", "properties: { p: { type: list, entry_schema: Low } }"), ""},
	{"entry schema refined to another type", pair("properties: { p: { type: list, entry_schema: Port } }", "properties: { p: { type: list, entry_schema: string } }"), "C/properties/p/entry_schema: is refined"},
	{"a default of an inherited type", pair("properties: { p: { type: Port } }", "properties: { p: { default: x } }"), "C/properties/p/default: want a value of type Port"},
	{"an attribute refined", pair("attributes: { a: { type: Port } }", "attributes: { a: { type: Low } }"), ""},
	{"an attribute refined to another type", pair("attributes: { a: { type: Port } }", "attributes: { a: { type: string } }"), "C/attributes/a/type: is refined"},
	{"a capability refined", pair("capabilities: { c: Hosting }", "capabilities: { c: Special }"), ""},
	{"a capability refined to its parent", pair("capabilities: { c: Special }", "capabilities: { c: Hosting }"), "C/capabilities/c: is refined"},
	{"a property of a capability refined", pair("capabilities: { c: { type: Hosting, properties: { cores: { default: 2, required: true } } } }", "capabilities: { c: { properties: { cores: 3 } } }"), ""},
	{"a property added to a capability", pair("capabilities: { c: Hosting }", "capabilities: { c: { properties: { disks: { type: integer } } } }"), "properties/disks: is none of Hosting"},
	{"a requirement refined", pair("requirements: [ r: { capability: Hosting, node: Host, relationship: On, count_range: [ 1, 4 ] } ]", "requirements: [ r: { capability: Special, node: Box, relationship: Tightly, count_range: [ 2, 3 ] } ]"), ""},
	{"a requirement refined to another node", pair("requirements: [ r: { capability: Hosting, node: Box } ]", "requirements: [ r: { capability: Hosting, node: Host } ]"), "r/node: is refined"},
	{"a requirement refined to another capability", pair("requirements: [ r: { capability: Special } ]", "requirements: [ r: { capability: Hosting } ]"), "r/capability: is refined"},
	{"a requirement refined to another relationship", pair("requirements: [ r: { capability: Hosting, relationship: On } ]", "requirements: [ r: { relationship: Beside } ]"), "r/relationship: is refined"},
	{"a requirement refined to more", pair("requirements: [ r: { capability: Hosting, count_range: [ 1, 2 ] } ]", "requirements: [ r: { count_range: [ 1, 3 ] } ]"), "r/count_range: is refined"},
	{"an operation implemented", pair("interfaces: { i: { type: Life } }", "interfaces: { i: { operations: { create: a.sh } } }"), ""},
	{"an operation that the type has not", pair("interfaces: { i: { type: Life } }", "interfaces: { i: { operations: { jump: a.sh } } }"), "operations/jump: no operation"},
	{"an input fixed", pair("interfaces: { i: { type: Life } }", "interfaces: { i: { operations: { create: { inputs: { name: x } } } } }"), ""},
	{"an input fixed to another type", pair("interfaces: { i: { type: Life } }", "interfaces: { i: { operations: { create: { inputs: { name: 3 } } } } }"), "inputs/name: want a value of type string"},
	{"an interface of another type", pair("interfaces: { i: { type: Life } }", "interfaces: { i: { type: Death } }"), "i/type: no interface type"},
	{"an artifact replaced", pair("artifacts: { a: { type: Script, file: a.sh } }", "artifacts: { a: { type: Script, file: b.sh, properties: { mode: x } } }"), ""},
	{"valid types narrowed", head + "capability_types: { A: {}, B: { derived_from: A } }\nrelationship_types: { R: { valid_capability_types: [ A ] }, S: { derived_from: R, valid_capability_types: [ B ] } }\n", ""},
	{"valid types widened", head + "capability_types: { A: {}, B: {} }\nrelationship_types: { R: { valid_capability_types: [ A ] }, S: { derived_from: R, valid_capability_types: [ B ] } }\n", "S/valid_capability_types[0]: none of the types"},
	{"members widened", head + "node_types: { A: {}, B: {} }\ngroup_types: { G: { members: [ A ] }, H: { derived_from: G, members: [ B ] } }\n", "H/members[0]: none of the types"},
	{"a trigger changed", head + "policy_types: { P: { triggers: { t: { event: e, action: [ set_state: a ] } } }, Q: { derived_from: P, triggers: { t: { event: f, action: [ set_state: a ] } } } }\n", "t: cannot be changed"},
	{"a data type extended", head + "data_types: { A: { properties: { x: { type: integer } } }, B: { derived_from: A, properties: { y: { type: integer } } } }\n", ""},
	{"properties of a derived integer", head + "data_types: { A: { derived_from: integer, properties: { x: { type: integer } } } }\n", "properties: built-in ones have no properties"},
}

// pair makes a file with a node type P, and C that derives from it.
func pair(parent, child string) string {
	return typesOpen + extra("P", "", parent) + extra("C", "P", child)
}

func extra(name, from, text string) string {
	s := "  " + name + ":\n"
	if from != "" {
		s += "    derived_from: " + from + "\n"
	}
	return s + "    " + text + "\n"
}

// typesOpen are the types with the node types last, so that more can follow.
var typesOpen = reorder()

func reorder() string {
	const section = "node_types:\n"
	start := strings.Index(types, section)
	end := strings.Index(types, "group_types:\n")
	return types[:start] + types[end:] + types[start:end]
}
