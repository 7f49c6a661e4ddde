package am

import (
	"fmt"

	"croft/xmlrpc"
)

// help says of each call what it does, and its arguments and result as
// system.methodSignature gives them: the result's type first.
var help = map[string]struct {
	text      string
	signature []string
}{
	"GetVersion":               {"GetVersion([options]): what this aggregate manager speaks and where.", []string{"struct", "struct"}},
	"ListResources":            {"ListResources(credentials, options): the advertisement RSpec; in version 2 with the option geni_slice_urn the manifest of a slice.", []string{"struct", "array", "struct"}},
	"Allocate":                 {"Allocate(slice_urn, credentials, rspec, options): reserve what a document asks for.", []string{"struct", "string", "array", "string", "struct"}},
	"Provision":                {"Provision(urns, credentials, options): make allocated slivers real.", []string{"struct", "array", "array", "struct"}},
	"Status":                   {"Status(urns, credentials, options): the states of slivers.", []string{"struct", "array", "array", "struct"}},
	"Describe":                 {"Describe(urns, credentials, options): the manifest and states of slivers.", []string{"struct", "array", "array", "struct"}},
	"PerformOperationalAction": {"PerformOperationalAction(urns, credentials, action, options): start, stop, restart slivers, or change their users.", []string{"struct", "array", "array", "string", "struct"}},
	"Renew":                    {"Renew(urns, credentials, expiration_time, options): have slivers expire at another time.", []string{"struct", "array", "array", "string", "struct"}},
	"Delete":                   {"Delete(urns, credentials, options): give slivers back.", []string{"struct", "array", "array", "struct"}},
	"Shutdown":                 {"Shutdown(slice_urn, credentials, options): stop a slice in an emergency.", []string{"struct", "string", "array", "struct"}},
	"Update":                   {"Update(urns, credentials, rspec, options): of a later draft of the API; not supported.", []string{"struct", "array", "array", "string", "struct"}},
	"Cancel":                   {"Cancel(urns, credentials, options): of a later draft of the API; not supported.", []string{"struct", "array", "array", "struct"}},
	"CreateSliver":             {"CreateSliver(slice_urn, credentials, rspec, users, options): reserve what a document asks for, make it and start it.", []string{"struct", "string", "array", "string", "array", "struct"}},
	"SliverStatus":             {"SliverStatus(slice_urn, credentials, options): the states of a slice's slivers.", []string{"struct", "string", "array", "struct"}},
	"RenewSliver":              {"RenewSliver(slice_urn, credentials, expiration_time, options): have a slice's slivers expire at another time.", []string{"struct", "string", "array", "string", "struct"}},
	"DeleteSliver":             {"DeleteSliver(slice_urn, credentials, options): give a slice's slivers back.", []string{"struct", "string", "array", "struct"}},
	"system.listMethods":       {"system.listMethods(): the calls there are.", []string{"array"}},
	"system.methodHelp":        {"system.methodHelp(name): what a call does.", []string{"string", "string"}},
	"system.methodSignature":   {"system.methodSignature(name): the types of a call's result and arguments.", []string{"array", "string"}},
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
		return "", &xmlrpc.Fault{Code: xmlrpc.MethodNotFound, Text: fmt.Sprintf("there is no method %s", name)}
	}
	return name, nil
}

func methodHelp(methods xmlrpc.Methods, params []any) (any, error) {
	name, err := named(methods, params)
	if err != nil {
		return nil, err
	}
	return help[name].text, nil
}

func methodSignature(methods xmlrpc.Methods, params []any) (any, error) {
	name, err := named(methods, params)
	if err != nil {
		return nil, err
	}
	signature := help[name].signature
	list := make([]any, len(signature))
	for i, s := range signature {
		list[i] = s
	}
	return []any{list}, nil
}
