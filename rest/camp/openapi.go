package camp

import (
	"encoding/json"
	"fmt"
	"strings"
)

// object of the description.
type node = map[string]any

// placed says where the resources of a type are, and what beside GET, HEAD, PUT
// and PATCH they have.
var placed = []struct{ typ, path, also string }{
	{"platform", "/platform", "register"},
	{"formats", "/formats", ""},
	{"format", "/formats/{name}", ""},
	{"typeDefinitions", "/typeDefinitions", ""},
	{"typeDefinition", "/typeDefinitions/{name}", ""},
	{"attributeDefinition", "/attributeDefinitions/{type}/{name}", ""},
	{"extensions", "/extensions", ""},
	{"extension", "/extensions/{name}", ""},
	{"platformComponentTemplate", "/platformComponentTemplates/{name}", ""},
	{"platformComponentCapability", "/platformComponentCapabilities/{name}", ""},
	{"assemblyTemplate", "/assemblyTemplates/{id}", "instantiate delete"},
	{"applicationComponentTemplate", "/applicationComponentTemplates/{id}/{artifact}", ""},
	{"applicationComponentRequirement", "/applicationComponentRequirements/{id}/{artifact}/{number}", ""},
	{"platformComponentRequirement", "/platformComponentRequirements/{id}/{artifact}/{number}", ""},
	{"assembly", "/assemblies/{id}", "state delete"},
	{"applicationComponent", "/applicationComponents/{id}/{name}", ""},
	{"platformComponent", "/platformComponents/{id}/{name}", ""},
	{"org.testbed:package", "/packages/{id}", "delete"},
}

// schemaName is the name of a type's schema: OpenAPI allows no colons there.
func schemaName(typ string) string { return strings.ReplaceAll(typ, ":", ".") }

func ref(kind, name string) node { return node{"$ref": "#/components/" + kind + "/" + name} }

func content(schema node, types ...string) node {
	c := node{}
	for _, t := range types {
		c[t] = node{"schema": schema}
	}
	return c
}

// OpenAPI describes the API (OpenAPI 3, as JSON): its resources as
// typeDefinitions list them.
func OpenAPI() ([]byte, error) {
	schemas := node{
		"Link": node{"type": "object", "required": []string{"href", "targetName"}, "additionalProperties": false,
			"properties": node{"href": node{"type": "string", "format": "uri-reference"}, "targetName": node{"type": "string"}}},
		"ResourceState": node{"type": "object", "required": []string{"state"}, "properties": node{
			"state": node{"type": "string", "enum": []string{running, starting, suspended, stopping, failed, gone}}}},
		"Error": node{"type": "object", "required": []string{"message"}, "properties": node{"message": node{
			"type": "array", "minItems": 1, "items": node{"type": "object", "required": []string{"text"}, "additionalProperties": false,
				"properties": node{"text": node{"type": "string", "minLength": 1}, "code": node{"type": "string"}, "field": node{"type": "string"},
					"hint": node{"type": "string"}, "profile": node{"type": "string"}}}}}},
	}
	types := map[string]resourceType{}
	for _, t := range resourceTypes() {
		types[t.name] = t
		whole, part := t.schema()
		schemas[schemaName(t.name)], schemas[schemaName(t.name)+".part"] = whole, part
	}
	paths := node{
		"/openapi.json": node{"get": node{"summary": "This document", "security": []any{}, "responses": node{
			"200": node{"description": "The document.", "content": content(node{"type": "object", "required": []string{"openapi", "info", "paths"}}, "application/json")}}}},
		"/api/versions": node{"get": node{"summary": "Versions of the API", "security": []any{}, "responses": answers("200", node{
			"description": "Where each of them begins.", "content": content(node{"type": "array", "items": node{
				"type": "object", "required": []string{"version", "href", "targetName"}}}, "application/json")})}},
		"/packages": node{"post": node{"summary": "Upload a package", "requestBody": packages(), "responses": answers("201", created("org.testbed:package"))}},
		"/packages/{id}/content": node{"parameters": parameters("/{id}"), "get": node{"summary": "The package itself",
			"responses": answers("200", node{"description": "As it was sent.", "content": content(node{}, "*/*")})}},
	}
	for _, kind := range []string{"/assemblyTemplates/{id}/pdp", "/assemblies/{id}/pdp"} {
		paths[kind] = node{"parameters": parameters(kind), "get": node{"summary": "Export it as a package",
			"parameters": []any{node{"name": "format", "in": "query", "schema": node{"type": "string", "enum": []string{"tar", "tgz", "zip"}}}},
			"responses":  answers("200", node{"description": "The package.", "content": content(node{}, "*/*")})}}
	}
	for _, p := range placed {
		t, ok := types[p.typ]
		if !ok {
			return nil, fmt.Errorf("the description of CAMP: there is no type %q", p.typ)
		}
		paths[p.path] = t.operations(p.path, p.also)
	}
	return json.Marshal(node{
		"openapi": "3.0.3",
		"info": node{"title": "A testbed as a platform", "version": "1.1", "description": "CAMP 1.1 (csd02), as Croft has it. An assembly is a slice of the member that the caller's account acts as. " +
			"A resource has fewer methods while its representationSkew is CREATING or DESTROYING; then others answer 405."},
		"servers": []any{node{"url": "/camp"}}, "security": []any{node{"basic": []any{}}, node{"bearer": []any{}}},
		"paths": paths,
		"components": node{"schemas": schemas,
			"securitySchemes": node{"basic": node{"type": "http", "scheme": "basic"}, "bearer": node{"type": "http", "scheme": "bearer"}},
			"responses":       node{"Error": node{"description": "Why not.", "content": content(ref("schemas", "Error"), "application/json")}}},
	})
}

// answers are the responses of an operation: one, or an error.
func answers(status string, answer node) node {
	return node{status: answer, "default": ref("responses", "Error")}
}

// shown is a representation of a resource.
func shown(typ, about string) node {
	name := schemaName(typ)
	return node{"description": about, "headers": node{"ETag": node{"schema": node{"type": "string"}}},
		"content": content(node{"anyOf": []any{ref("schemas", name), ref("schemas", name+".part")}}, "application/json")}
}

// created is a resource that has been made.
func created(typ string) node {
	return node{"description": "It has been made.", "headers": node{"Location": node{"required": true, "schema": node{"type": "string", "format": "uri"}}},
		"content": content(ref("schemas", schemaName(typ)), "application/json")}
}

// packages is a request with a plan or a package in it.
func packages() node {
	return node{"description": "A package (tar, tar.gz, zip) or a plan (YAML).", "required": true, "content": content(node{}, "*/*")}
}

// parameters are those of a path.
func parameters(path string) []any {
	list := []any{}
	for _, part := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			list = append(list, node{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": node{"type": "string"}})
		}
	}
	return list
}

// operations are what can be done to the resources of a type.
func (t *resourceType) operations(path, also string) node {
	selection := node{"name": "SelectAttr", "in": "query", "description": "Only these attributes, with commas between them.", "explode": true,
		"schema": node{"type": "array", "items": node{"type": "string"}}}
	match := node{"name": "If-Match", "in": "header", "description": "Entity tags that the resource has to have.", "schema": node{"type": "string"}}
	part := ref("schemas", schemaName(t.name)+".part")
	get := answers("200", shown(t.name, "The resource, or what was selected of it."))
	get["304"] = node{"description": "It is as it was."}
	o := node{
		"parameters": parameters(path),
		"get":        node{"summary": "Read it", "parameters": []any{selection}, "responses": get},
		"head": node{"summary": "Whether it is there", "parameters": []any{selection}, "responses": node{
			"200": node{"description": "It is."}, "304": node{"description": "It is as it was."}, "default": node{"description": "It is not."}}},
		"put": node{"summary": "Replace it", "parameters": []any{selection, match},
			"requestBody": node{"required": true, "content": content(part, "*/*")},
			"responses":   answers("200", shown(t.name, "As it is now."))},
		"patch": node{"summary": "Change it", "parameters": []any{match},
			"requestBody": node{"required": true, "description": "A JSON Patch (RFC 6902).",
				"content": content(node{"type": "array", "items": node{"type": "object", "required": []string{"op", "path"}}}, "application/json-patch", "application/json-patch+json")},
			"responses": answers("200", shown(t.name, "As it is now."))},
	}
	for _, more := range strings.Fields(also) {
		switch more {
		case "register":
			o["post"] = node{"summary": "Register an application", "description": `A plan or package, or {"pdp_uri": "…"} as JSON.`,
				"requestBody": packages(), "responses": answers("201", created("assemblyTemplate"))}
		case "instantiate":
			o["post"] = node{"summary": "Make an assembly of it", "requestBody": node{"content": content(node{}, "*/*")},
				"responses": answers("201", created("assembly"))}
		case "state":
			o["post"] = node{"summary": "Suspend or resume it", "requestBody": node{"required": true, "content": content(node{"type": "object", "required": []string{"new_state"},
				"properties": node{"new_state": node{"type": "string", "enum": []string{"suspend", "resume"}}}}, "*/*")},
				"responses": answers("200", shown(t.name, "As it is now."))}
		case "delete":
			o["delete"] = node{"summary": "Delete it", "responses": answers("204", node{"description": "It is gone, or will be soon."})}
		}
	}
	return o
}

// schema is a type's: of whole representations, and of parts.
func (t *resourceType) schema() (whole, part node) {
	properties, required := node{}, []string{}
	for _, a := range t.of() {
		s := a.schema()
		s["description"] = a.about
		if !a.mutable || !a.consumerMutable {
			s["description"] = a.about + " (clients cannot change it)"
		}
		properties[a.name] = s
		if a.required {
			required = append(required, a.name)
		}
	}
	properties["type"] = node{"type": "string", "enum": []string{t.typ}}
	whole = node{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
	return whole, node{"type": "object", "additionalProperties": false, "properties": properties}
}

func (a *attribute) schema() node {
	switch a.kind {
	case kindURI:
		return node{"type": "string", "format": "uri"}
	case kindStrings:
		return node{"type": "array", "items": node{"type": "string"}}
	case kindTimestamp:
		return node{"type": "string", "format": "date-time", "pattern": "Z$"}
	case kindLink:
		return node{"allOf": []any{ref("schemas", "Link")}}
	case kindLinks:
		return node{"type": "array", "items": ref("schemas", "Link")}
	case kindBoolean:
		return node{"type": "boolean"}
	case kindState:
		return node{"allOf": []any{ref("schemas", "ResourceState")}}
	case kindInteger:
		return node{"type": "integer"}
	case kindNumber:
		return node{"type": "number"}
	}
	if a.name == "representationSkew" {
		return node{"type": "string", "enum": []string{creating, none, unknown, destroying}}
	}
	return node{"type": "string"}
}
