package am

import (
	"fmt"

	"croft/am/faa"
	"croft/xmlrpc"
)

// about says what a call does, and its signatures as system.methodSignature
// gives them: the result's type first.
type about struct {
	text       string
	signatures [][]string
}

func sig(types ...string) [][]string { return [][]string{append([]string{"struct"}, types...)} }

// help says it of every call.
var help = map[string]about{
	"GetVersion": {"GetVersion([options]): what this aggregate manager speaks and where.", [][]string{{"struct"}, {"struct", "struct"}}},
	"ListResources": {"ListResources(credentials, options): the advertisement RSpec, in the format that the option geni_rspec_version names. " +
		"Options: geni_available, geni_compressed; in version 2 geni_slice_urn, for the manifest of a slice.", sig("array", "struct")},
	"Allocate": {"Allocate(slice_urn, credentials, rspec, options): reserve what a document asks for, all of it or nothing. Option: geni_end_time.",
		sig("string", "array", "string", "struct")},
	"Provision": {"Provision(urns, credentials, options): make allocated slivers real. " +
		"Options: geni_rspec_version, geni_users, geni_end_time, geni_best_effort.", sig("array", "array", "struct")},
	"Status": {"Status(urns, credentials, options): the states of slivers; croft_startup of a sliver lists the steps of its start-up. " +
		"Options: geni_best_effort, croft_output (also what the steps have written), croft_console (also the nodes' consoles).", sig("array", "array", "struct")},
	"Describe": {"Describe(urns, credentials, options): the manifest and states of slivers. Options: geni_rspec_version, geni_compressed.",
		sig("array", "array", "struct")},
	"PerformOperationalAction": {"PerformOperationalAction(urns, credentials, action, options): geni_start, geni_stop, geni_restart, geni_update_users " +
		"with the option geni_users, or croft_rerun_startup, which tries again what failed of the nodes' start-up. Option: geni_best_effort.", sig("array", "array", "string", "struct")},
	"Renew": {"Renew(urns, credentials, expiration_time, options): have slivers expire at another time. Options: geni_extend_alap, geni_best_effort.",
		sig("array", "array", "string", "struct")},
	"Delete":   {"Delete(urns, credentials, options): give slivers back. Option: geni_best_effort.", sig("array", "array", "struct")},
	"Shutdown": {"Shutdown(slice_urn, credentials, options): stop a slice in an emergency; only the operator can open it again.", sig("string", "array", "struct")},
	"ListSlices": {"ListSlices(credentials, options): the slices that the caller has something in, with or without a credential for each: " +
		"those made by the REST APIs, and those all of whose nodes the caller has reserved. Croft's own.", [][]string{{"array", "array", "struct"}}},
	"Update": {"Update(urns, credentials, rspec, options): of a later draft of the API; not supported.", sig("array", "array", "string", "struct")},
	"Cancel": {"Cancel(urns, credentials, options): of a later draft of the API; not supported.", sig("array", "array", "struct")},
	"CreateSliver": {"CreateSliver(slice_urn, credentials, rspec, users, options): reserve what a document asks for, make it and start it.",
		sig("string", "array", "string", "array", "struct")},
	"SliverStatus": {"SliverStatus(slice_urn, credentials, options): the states of a slice's slivers.", sig("string", "array", "struct")},
	"RenewSliver": {"RenewSliver(slice_urn, credentials, expiration_time, options): have a slice's slivers expire at another time. Option: geni_extend_alap.",
		sig("string", "array", "string", "struct")},
	"DeleteSliver":           {"DeleteSliver(slice_urn, credentials, options): give a slice's slivers back.", sig("string", "array", "struct")},
	"system.listMethods":     {"system.listMethods(): the calls there are.", [][]string{{"array"}}},
	"system.methodHelp":      {"system.methodHelp(name): what a call does.", [][]string{{"string", "string"}}},
	"system.methodSignature": {"system.methodSignature(name): the types of a call's result and arguments.", [][]string{{"array", "string"}}},
}

// helpFAA says it where the Federation AM API differs.
var helpFAA = map[string]about{
	"ListResources": {"ListResources(credentials, rspec_version, options): the advertisement RSpec. Options: :available, :compressed.",
		sig("array", "struct", "struct")},
	"Allocate": {"Allocate(slice_urn, credentials, rspec, options): reserve what a document asks for, all of it or nothing. Option: :end_time.",
		sig("string", "array", "string", "struct")},
	"Provision": {"Provision(urns, credentials, rspec_version, options): make allocated slivers real. Options: :users, :end_time, :best_effort.",
		sig("array", "array", "struct", "struct")},
	"Status": {"Status(urns, credentials, options): the states of slivers; croft_startup of a sliver lists the steps of its start-up. " +
		"Options: :best_effort, croft_output (also what the steps have written), croft_console (also the nodes' consoles).", sig("array", "array", "struct")},
	"Describe": {"Describe(urns, credentials, rspec_version, options): the manifest and states of slivers. Option: :compressed.",
		sig("array", "array", "struct", "struct")},
	"PerformOperationalAction": {"PerformOperationalAction(urns, credentials, action, options): :start, :stop, :restart, :update_users " +
		"with the option :users, or croft_rerun_startup, which tries again what failed of the nodes' start-up. Option: :best_effort.", sig("array", "array", "string", "struct")},
	"Renew": {"Renew(urns, credentials, end_time, options): have slivers expire at another time. Options: :extend_alap, :best_effort.",
		sig("array", "array", "string", "struct")},
	"Delete": {"Delete(urns, credentials, options): give slivers back. Option: :best_effort.", sig("array", "array", "struct")},
}

// describe finds what is said of a method of a version.
func describe(version, method string) about {
	if a, ok := helpFAA[method]; ok && version == faa.Key {
		return a
	}
	return help[method]
}

func listMethods(methods xmlrpc.Methods) []any {
	names := methods.Names()
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}

// named reads the name of a method that there is.
func named(methods xmlrpc.Methods, params []any) (string, error) {
	if len(params) != 1 {
		return "", &xmlrpc.Fault{Code: xmlrpc.InvalidParams, Text: fmt.Sprintf("want the name of a method, got %d parameters", len(params))}
	}
	name, ok := params[0].(string)
	if !ok {
		return "", &xmlrpc.Fault{Code: xmlrpc.InvalidParams, Text: "want the name of a method, a string"}
	}
	if _, ok := methods[name]; !ok {
		return "", &xmlrpc.Fault{Code: xmlrpc.MethodNotFound, Text: fmt.Sprintf("there is no method %.64q", name)}
	}
	return name, nil
}

func methodHelp(version string, methods xmlrpc.Methods, params []any) (any, error) {
	name, err := named(methods, params)
	if err != nil {
		return nil, err
	}
	return describe(version, name).text, nil
}

func methodSignature(version string, methods xmlrpc.Methods, params []any) (any, error) {
	name, err := named(methods, params)
	if err != nil {
		return nil, err
	}
	var list []any
	for _, signature := range describe(version, name).signatures {
		types := make([]any, len(signature))
		for i, s := range signature {
			types[i] = s
		}
		list = append(list, types)
	}
	return list, nil
}
