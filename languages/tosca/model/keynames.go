package model

import (
	"slices"
	"strings"

	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// want is what stands under a keyname, before its meaning is looked at.
type want uint8

const (
	anything want = iota
	text          // a string
	flag          // a boolean
	whole         // an integer
	mapping
	sequence
	textOrMap
	textOrList
	listOrMap
	typeName   // the name of a type
	metaMap    // metadata
	versionKey // a TOSCA version
	ignored    // a keyname of 1.x, or of examples, that has no effect
)

// keynames are those that a construct may have. In older has those that only
// 1.x knows.
type keynames struct {
	what  string
	keys  map[string]want
	older map[string]want
	need  []string
}

func with(base map[string]want, more map[string]want) map[string]want {
	all := make(map[string]want, len(base)+len(more))
	for k, v := range base {
		all[k] = v
	}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// The keynames that all types have (csd05, 5.2.5.2).
var typeKeys = map[string]want{"derived_from": typeName, "version": versionKey, "metadata": metaMap, "description": text}

var (
	fileKeys = keynames{what: "a TOSCA file", keys: map[string]want{
		"tosca_definitions_version": text, "profile": text, "metadata": metaMap, "description": text,
		"dsl_definitions": mapping, "repositories": mapping, "imports": sequence,
		"artifact_types": mapping, "data_types": mapping, "capability_types": mapping, "interface_types": mapping,
		"relationship_types": mapping, "node_types": mapping, "group_types": mapping, "policy_types": mapping,
		"service_template": mapping, "functions": mapping,
	}, older: map[string]want{
		"topology_template": mapping, "namespace": text, "template_name": text, "template_author": text, "template_version": anything,
		"imports": listOrMap, "dsl_definitions": anything,
	}, need: []string{"tosca_definitions_version"}}

	importKeys = keynames{what: "an import", keys: map[string]want{
		"url": text, "profile": text, "repository": text, "namespace": text, "description": text, "metadata": metaMap,
	}, older: map[string]want{"file": text, "namespace_prefix": text, "namespace_uri": text}}

	repositoryKeys = keynames{what: "a repository", keys: map[string]want{
		"description": text, "url": text, "metadata": metaMap, "credential": ignored,
	}, need: []string{"url"}}

	nodeTypeKeys = keynames{what: "a node type", keys: with(typeKeys, map[string]want{
		"properties": mapping, "attributes": mapping, "capabilities": mapping, "requirements": sequence, "interfaces": mapping, "artifacts": mapping,
	})}
	relationshipTypeKeys = keynames{what: "a relationship type", keys: with(typeKeys, map[string]want{
		"properties": mapping, "attributes": mapping, "interfaces": mapping,
		"valid_capability_types": sequence, "valid_target_node_types": sequence, "valid_source_node_types": sequence,
	}), older: map[string]want{"valid_target_types": sequence, "valid_source_types": sequence}}
	capabilityTypeKeys = keynames{what: "a capability type", keys: with(typeKeys, map[string]want{
		"properties": mapping, "attributes": mapping, "valid_source_node_types": sequence, "valid_relationship_types": sequence,
	}), older: map[string]want{"valid_source_types": sequence}}
	interfaceTypeKeys = keynames{what: "an interface type", keys: with(typeKeys, map[string]want{
		"inputs": mapping, "operations": mapping, "notifications": mapping,
	})}
	artifactTypeKeys = keynames{what: "an artifact type", keys: with(typeKeys, map[string]want{
		"mime_type": text, "file_ext": sequence, "properties": mapping,
	})}
	groupTypeKeys = keynames{what: "a group type", keys: with(typeKeys, map[string]want{
		"properties": mapping, "attributes": mapping, "members": sequence,
	}), older: map[string]want{"interfaces": mapping, "capabilities": anything, "requirements": anything, "targets": sequence}}
	policyTypeKeys = keynames{what: "a policy type", keys: with(typeKeys, map[string]want{
		"properties": mapping, "targets": sequence, "triggers": mapping,
	})}
	dataTypeKeys = keynames{what: "a data type", keys: with(typeKeys, map[string]want{
		"validation": anything, "properties": mapping, "key_schema": textOrMap, "entry_schema": textOrMap,
		// Of scalar types (2.0).
		"data_type": typeName, "units": mapping, "canonical_unit": text, "prefixes": mapping,
	}), older: map[string]want{"constraints": sequence}}

	propertyKeys = keynames{what: "a property definition", keys: map[string]want{
		"type": typeName, "description": text, "required": flag, "default": anything, "value": anything, "status": text,
		"validation": anything, "key_schema": textOrMap, "entry_schema": textOrMap, "metadata": metaMap, "external-schema": text, "external_schema": text,
	}, older: map[string]want{"constraints": sequence, "schema": ignored}}
	attributeKeys = keynames{what: "an attribute definition", keys: map[string]want{
		"type": typeName, "description": text, "default": anything, "status": text,
		"validation": anything, "key_schema": textOrMap, "entry_schema": textOrMap, "metadata": metaMap,
	}, older: map[string]want{"constraints": sequence, "required": flag, "value": anything}}
	parameterKeys = keynames{what: "a parameter definition", keys: with(propertyKeys.keys, map[string]want{"mapping": textOrList}), older: propertyKeys.older}
	schemaKeys    = keynames{what: "a schema definition", keys: map[string]want{
		"type": typeName, "description": text, "validation": anything, "key_schema": textOrMap, "entry_schema": textOrMap, "metadata": metaMap,
	}, older: map[string]want{"constraints": sequence, "required": flag, "default": anything}, need: []string{"type"}}

	capabilityKeys = keynames{what: "a capability definition", keys: map[string]want{
		"type": typeName, "description": text, "properties": mapping, "attributes": mapping, "metadata": metaMap,
		"valid_source_node_types": sequence, "valid_relationship_types": sequence,
	}, older: map[string]want{"occurrences": sequence, "valid_source_types": sequence}}
	capabilityAssignmentKeys = keynames{what: "a capability assignment", keys: map[string]want{
		"properties": mapping, "attributes": mapping, "directives": sequence, "metadata": metaMap, "description": text,
	}, older: map[string]want{"occurrences": sequence, "type": text}}

	requirementKeys = keynames{what: "a requirement definition", keys: map[string]want{
		"description": text, "metadata": metaMap, "capability": text, "node": text, "relationship": textOrMap, "node_filter": anything,
		"count_range": sequence, "direct_substitution": flag,
	}, older: map[string]want{"occurrences": sequence}}
	requirementAssignmentKeys = keynames{what: "a requirement assignment", keys: map[string]want{
		"capability": text, "node": textOrList, "relationship": textOrMap, "allocation": mapping, "node_filter": anything,
		"count": anything, "directives": sequence, "optional": anything, "description": text, "metadata": metaMap,
	}, older: map[string]want{"occurrences": sequence, "type": text, "properties": mapping}}
	relationshipKeys = keynames{what: "a relationship", keys: map[string]want{
		"type": text, "properties": mapping, "attributes": mapping, "interfaces": mapping, "description": text, "metadata": metaMap,
	}}

	interfaceKeys = keynames{what: "an interface definition", keys: map[string]want{
		"type": typeName, "description": text, "inputs": mapping, "operations": mapping, "notifications": mapping, "metadata": metaMap,
	}}
	interfaceAssignmentKeys = keynames{what: "an interface assignment", keys: map[string]want{
		"inputs": mapping, "operations": mapping, "notifications": mapping, "description": text, "metadata": metaMap,
	}, older: map[string]want{"type": text}}
	operationKeys = keynames{what: "an operation", keys: map[string]want{
		"description": text, "implementation": anything, "inputs": mapping, "outputs": mapping, "metadata": metaMap,
	}}
	notificationKeys = keynames{what: "a notification", keys: map[string]want{
		"description": text, "implementation": anything, "outputs": mapping, "metadata": metaMap,
	}, older: map[string]want{"inputs": mapping}}
	implementationKeys = keynames{what: "an implementation", keys: map[string]want{
		"primary": textOrMap, "dependencies": sequence, "timeout": whole, "operation_host": ignored,
	}, older: map[string]want{"invoke": ignored, "preconditions": ignored, "file": text, "type": text, "repository": text}}
	artifactKeys = keynames{what: "an artifact definition", keys: map[string]want{
		"type": typeName, "file": text, "repository": text, "description": text, "deploy_path": text, "metadata": metaMap,
		"artifact_version": anything, "version": anything, "checksum": text, "checksum_algorithm": text, "properties": mapping,
	}, need: []string{"type", "file"}}

	serviceKeys = keynames{what: "a service template", keys: map[string]want{
		"description": text, "metadata": metaMap, "inputs": mapping, "node_templates": mapping, "relationship_templates": mapping,
		"groups": mapping, "policies": sequence, "outputs": mapping, "substitution_mappings": mapping, "workflows": mapping, "functions": mapping,
	}, older: map[string]want{"policies": listOrMap}}
	nodeTemplateKeys = keynames{what: "a node template", keys: map[string]want{
		"type": typeName, "description": text, "metadata": metaMap, "directives": sequence, "properties": mapping, "attributes": mapping,
		"requirements": sequence, "capabilities": mapping, "interfaces": mapping, "artifacts": mapping, "node_filter": anything, "copy": text, "count": anything,
	}, need: []string{"type"}}
	relationshipTemplateKeys = keynames{what: "a relationship template", keys: map[string]want{
		"type": typeName, "description": text, "metadata": metaMap, "properties": mapping, "attributes": mapping, "interfaces": mapping, "copy": text,
	}, need: []string{"type"}}
	groupKeys = keynames{what: "a group", keys: map[string]want{
		"type": typeName, "description": text, "metadata": metaMap, "properties": mapping, "attributes": mapping, "members": sequence,
	}, older: map[string]want{"interfaces": mapping, "targets": sequence}, need: []string{"type"}}
	policyKeys = keynames{what: "a policy", keys: map[string]want{
		"type": typeName, "description": text, "metadata": metaMap, "properties": mapping, "targets": sequence, "triggers": mapping,
	}, need: []string{"type"}}
	triggerKeys = keynames{what: "a trigger", keys: map[string]want{
		"description": text, "event": text, "condition": anything, "action": sequence, "metadata": metaMap,
	}, older: map[string]want{
		"event_type": anything, "event": anything, "schedule": anything, "target_filter": anything, "constraint": anything, "period": anything,
		"evaluations": anything, "method": anything, "action": anything,
	}, need: []string{"event", "action"}}
	workflowKeys = keynames{what: "a workflow", keys: map[string]want{
		"description": text, "metadata": metaMap, "inputs": mapping, "precondition": anything, "steps": mapping, "implementation": anything, "outputs": mapping,
	}, older: map[string]want{"preconditions": anything}}
	stepKeys = keynames{what: "a workflow step", keys: map[string]want{
		"target": text, "target_relationship": text, "operation_host": text, "filter": anything, "activities": sequence,
		"on_success": textOrList, "on_failure": textOrList, "description": text, "metadata": metaMap,
	}, need: []string{"target", "activities"}}
	substitutionKeys = keynames{what: "substitution mappings", keys: map[string]want{
		"node_type": text, "substitution_filter": anything, "properties": mapping, "attributes": mapping, "capabilities": mapping,
		"requirements": listOrMap, "interfaces": mapping, "description": text, "metadata": metaMap,
	}, need: []string{"node_type"}}
	functionKeys = keynames{what: "a function definition", keys: map[string]want{
		"signatures": sequence, "description": text, "metadata": metaMap,
	}, need: []string{"signatures"}}
	signatureKeys = keynames{what: "a signature", keys: map[string]want{
		"arguments": sequence, "optional_arguments": sequence, "variadic": flag, "result": textOrMap, "implementation": anything, "description": text,
	}}
)

// renamed are keynames of 1.x that 2.0 files still use, and what they are now.
var renamed = map[string]string{
	"occurrences": "count_range", "valid_source_types": "valid_source_node_types", "valid_target_types": "valid_capability_types",
}

// keys checks that a node is a map with the keynames of a construct, each with
// what stands under it. It reports whether the node is a map at all.
func (u *Unit) keys(n *tree.Node, k *keynames) bool {
	if !n.Is(tree.Map) {
		u.errorf(n, "want a map with "+list(k.names(u)), "%s is %s", k.what, describe(n))
		return false
	}
	for _, e := range n.Entries {
		if e.Key.Kind != tree.String {
			u.errorf(e.Key, "keynames are strings: "+list(k.names(u)), "keyname of %s is %s", k.what, describe(e.Key))
			continue
		}
		w, ok := k.keys[e.Key.Text]
		if v, older := k.older[e.Key.Text]; older && (!ok || u.Old()) {
			if now := renamed[e.Key.Text]; now != "" && !u.Old() {
				u.warnf(e.Key, "its name is "+now, "%s is a keyname of TOSCA 1.x", e.Key.Text)
				ok = true
			} else if u.Old() {
				ok = true
			}
			w = v
		}
		if !ok {
			hint := "its keynames are " + list(k.names(u))
			if e.Key.Text == "constraints" {
				hint = "TOSCA 2.0 has validation instead"
			}
			u.errorf(e.Key, hint, "%s is no keyname of %s", e.Key.Short(), k.what)
			continue
		}
		u.stands(e.Key.Text, e.Value, w)
	}
	for _, need := range k.need {
		if n.Get(need) == nil {
			u.errorf(n, "", "%s has no %s", k.what, need)
		}
	}
	return true
}

func (k *keynames) names(u *Unit) []string {
	var names []string
	for name := range k.keys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// stands checks the kind of what stands under a keyname.
func (u *Unit) stands(key string, n *tree.Node, w want) {
	ok, expected := true, ""
	switch w {
	case text, typeName:
		ok, expected = n.Kind == tree.String && (n.Text != "" || w == text), "a string"
		if w == text && isCall(n) {
			return
		}
		if u.Old() && w == text && n.Kind != tree.Map && n.Kind != tree.List {
			return
		}
	case flag:
		ok, expected = n.Kind == tree.Bool, "true or false"
		if u.Old() && n.Kind == tree.String && (n.Text == "yes" || n.Text == "no") {
			return
		}
	case whole:
		ok, expected = n.Kind == tree.Int, "an integer"
	case mapping:
		ok, expected = n.Kind == tree.Map, "a map"
	case sequence:
		ok, expected = n.Kind == tree.List, "a list"
	case textOrMap:
		ok, expected = n.Kind == tree.String || n.Kind == tree.Map, "a string or a map"
	case textOrList:
		ok, expected = n.Kind == tree.String || n.Kind == tree.List, "a string or a list"
	case listOrMap:
		ok, expected = n.Kind == tree.List || n.Kind == tree.Map, "a list or a map"
	case metaMap:
		u.metadata(n)
		return
	case versionKey:
		u.version(n)
		return
	}
	if !ok {
		if u.Old() && n.Kind == tree.Null {
			u.warnf(n, "want "+expected, "%s has no value", key)
			return
		}
		u.errorf(n, "want "+expected, "%s is %s", key, describe(n))
	}
}

// metadata checks a map of metadata. Any YAML may stand in it; names that the
// suite of OASIS holds to be strings are.
func (u *Unit) metadata(n *tree.Node) {
	if !n.Is(tree.Map) {
		u.errorf(n, "want a map", "metadata is %s", describe(n))
		return
	}
	for _, e := range n.Entries {
		if e.Key.Kind != tree.String && !u.Old() {
			u.warnf(e.Key, "quote it", "key of metadata is %s", describe(e.Key))
		}
		name := e.Key.Text
		if (name == "template_name" || name == "template_author") && !u.Old() {
			switch e.Value.Kind {
			case tree.String, tree.Map, tree.List:
			default:
				u.errorf(e.Value, "want a string", "%s is %s", name, describe(e.Value))
			}
		}
	}
}

// version checks the version of a type.
func (u *Unit) version(n *tree.Node) {
	if n.Kind == tree.Float && u.Old() {
		return
	}
	if n.Kind != tree.String {
		u.errorf(n, "want a string such as '1.0': numbers with one dot are quoted", "version is %s", describe(n))
		return
	}
	if _, err := values.ParseVersion(n.Text); err != nil {
		u.errorf(n, "", "%v", err)
	}
}

// describe says what a node is, with its text if it has any.
func describe(n *tree.Node) string {
	if n == nil {
		return "missing"
	}
	switch n.Kind {
	case tree.Null:
		return "empty"
	case tree.List, tree.Map:
		return n.Kind.String()
	case tree.String:
		if n.Text == "" {
			return "an empty string"
		}
	}
	return n.Kind.String() + " (" + n.Short() + ")"
}

func list(names []string) string { return strings.Join(names, ", ") }
