// Package faa speaks the Federation AM API (open-multinet/federation-am-api),
// version faa1: version 3 of the GENI AM API with colons where that has the
// prefix geni_, the RSpec version as an argument of its own, and SEARCHFAILED
// for every slice that has nothing here. It translates names both ways and
// leaves the rest to package v3.
package faa

import (
	"context"
	"strings"

	"croft/aggregate"
	"croft/am/v3"
	"croft/am/wire"
)

// API answers the calls of the Federation AM API.
type API struct {
	V3 *v3.API
}

// Key is the version's name in api_versions.
const Key = "faa1"

// Methods lists the calls by their names on the wire.
func (a *API) Methods() map[string]wire.Method {
	calls := a.V3.Methods()
	methods := make(map[string]wire.Method, len(calls))
	for name, call := range calls {
		methods[name] = a.translate(name, call)
	}
	methods["GetVersion"] = a.getVersion
	return methods
}

// versioned are the calls whose last argument but one is the RSpec version.
var versioned = map[string]bool{"ListResources": true, "Provision": true, "Describe": true}

// actionAt is where the action stands among the arguments of
// PerformOperationalAction.
const actionAt = 2

func (a *API) translate(name string, call wire.Method) wire.Method {
	return func(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
		params, err := arguments(name, params)
		if err != nil {
			return nil, "", err
		}
		value, output, err := call(ctx, c, params)
		if err != nil {
			return nil, "", err
		}
		if s, ok := value.(map[string]any); ok && name == "Describe" {
			if list, ok := s["geni_slivers"].([]any); ok && len(list) == 0 {
				return nil, "", &aggregate.Error{Op: "describe", Kind: aggregate.NotFound, Err: errNothing}
			}
		}
		return results(value), output, nil
	}
}

type constError string

func (e constError) Error() string { return string(e) }

const errNothing = constError("the slice has no slivers here")

// arguments turns the arguments of a call into those of version 3.
func arguments(name string, params []any) ([]any, error) {
	params = append([]any{}, params...)
	if len(params) == 0 {
		return params, nil
	}
	last := len(params) - 1
	options := map[string]any{}
	given, ok := params[last].(map[string]any)
	if !ok {
		return nil, &wire.ArgError{Where: "options", What: "want a struct as the last argument"}
	}
	for k, v := range given {
		options[geni(k)] = v
	}
	if versioned[name] {
		if last < 1 {
			return nil, &wire.ArgError{Where: "rspec_version", What: "missing: want a struct {type, version} before the options"}
		}
		options["geni_rspec_version"] = plain(params[last-1])
		params = append(params[:last-1], options)
	} else {
		params[last] = options
	}
	for i, v := range params {
		if list, ok := v.([]any); ok {
			params[i] = credentialList(list)
		}
	}
	if users, ok := options["geni_users"].([]any); ok {
		for i, u := range users {
			users[i] = plain(u)
		}
	}
	if name == "PerformOperationalAction" && len(params) > actionAt {
		if action, ok := params[actionAt].(string); ok {
			params[actionAt] = geni(action)
		}
	}
	return params, nil
}

// geni is the name of version 3 for one of this version.
func geni(name string) string {
	if strings.HasPrefix(name, ":") {
		return "geni_" + name[1:]
	}
	return name
}

// plain takes the colons off the members of a struct.
func plain(v any) any {
	s, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(s))
	for k, v := range s {
		out[strings.TrimPrefix(k, ":")] = v
	}
	return out
}

// credentialList renames the members of credentials. The document writes them
// both with and without the colon.
func credentialList(list []any) []any {
	out := make([]any, len(list))
	for i, v := range list {
		s, ok := v.(map[string]any)
		if !ok {
			out[i] = v
			continue
		}
		renamed := make(map[string]any, len(s))
		for k, v := range s {
			switch k {
			case "type", "version", "value":
				k = "geni_" + k
			}
			renamed[geni(k)] = v
		}
		out[i] = renamed
	}
	return out
}

// results turns a value of version 3 into one of this version. What is
// Croft's own gets a prefix of its own.
func results(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			switch k {
			case "geni_allocation_status", "geni_operational_status":
				if s, ok := x.(string); ok {
					x = colon(s)
				}
			case "geni_client_id":
				out["croft:client_id"] = x
				continue
			}
			out[colon(k)] = results(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = results(x)
		}
		return out
	}
	return v
}

func colon(name string) string {
	if rest, ok := strings.CutPrefix(name, "geni_"); ok {
		return ":" + rest
	}
	return name
}

func (a *API) getVersion(_ context.Context, c *wire.Call, _ []any) (any, string, error) {
	types := a.V3.Session.CredentialTypes()
	for i, t := range types {
		s := t.(map[string]any)
		types[i] = map[string]any{":type": s["geni_type"], ":version": s["geni_version"]}
	}
	return map[string]any{
		":api":                    Key,
		":api_versions":           c.URLs(),
		":request_rspec_versions": wire.VersionStructs(a.V3.Service.RequestVersions()),
		":ad_rspec_versions":      wire.VersionStructs(a.V3.Service.AdvertisementVersions()),
		":credential_types":       types,
		":single_allocation":      false,
		":allocate":               ":many",
		":am_type":                []any{"croft"},
		":am_code_version":        "1",
		"croft:urn":               a.V3.Service.Manager().String(),
	}, "", nil
}

// Reply makes the struct that every call of this version returns.
func Reply(value any, output string, err error) map[string]any {
	reply := wire.Reply(value, output, err)
	code := reply["code"].(map[string]any)
	reply["code"] = map[string]any{":code": code["geni_code"], ":am_type": code["am_type"], ":am_code": code["am_code"]}
	return reply
}
