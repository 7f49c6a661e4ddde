// Package faa speaks the Federation AM API (open-multinet/federation-am-api),
// version faa1: version 3 of the GENI AM API with colons where that has the
// prefix geni_, the RSpec version as an argument of its own, and SEARCHFAILED
// for every slice that has nothing here. It translates names both ways and
// leaves the rest to package v3.
package faa

import (
	"context"
	"errors"
	"slices"
	"strings"

	"croft/aggregate"
	"croft/am/v3"
	"croft/am/wire"
)

// API answers the calls of the Federation AM API.
type API struct {
	v3 *v3.API
}

// New makes an API.
func New(service *aggregate.Service, session wire.Session) *API {
	return &API{v3: &v3.API{Service: service, Session: session, Strict: true}}
}

// Key is the version's name in api_versions.
const Key = "faa1"

// number is the version as a number, in the member :api.
const number = 1

// Methods lists the calls by their names on the wire.
func (a *API) Methods() map[string]wire.Method {
	calls := a.v3.Methods()
	methods := make(map[string]wire.Method, len(calls))
	for name, call := range calls {
		methods[name] = a.translate(name, call)
	}
	methods["GetVersion"] = a.getVersion
	return methods
}

// versioned are the calls whose last argument but one is the RSpec version,
// and how many arguments they have.
var versioned = map[string]int{"ListResources": 3, "Provision": 4, "Describe": 4}

// actionAt is where the action stands among the arguments of
// PerformOperationalAction.
const actionAt = 2

func (a *API) translate(name string, call wire.Method) wire.Method {
	return func(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
		var value any
		var output string
		params, err := arguments(name, params)
		if err == nil {
			value, output, err = call(ctx, c, params)
		}
		if err != nil {
			return nil, "", renamed(err)
		}
		return results(value), output, nil
	}
}

// renamed names arguments and options in an error as this version does.
func renamed(err error) error {
	var arg *wire.ArgError
	if !errors.As(err, &arg) {
		return err
	}
	rename := strings.NewReplacer("options.geni_rspec_version", "rspec_version", "geni_", ":", "expiration_time", ":end_time")
	return &wire.ArgError{Where: rename.Replace(arg.Where), What: arg.What}
}

// arguments turns the arguments of a call into those of version 3.
func arguments(name string, params []any) ([]any, error) {
	if len(params) == 0 {
		return params, nil
	}
	params = slices.Clone(params)
	last := len(params) - 1
	var given map[string]any
	switch v := params[last].(type) {
	case nil:
	case map[string]any:
		given = v
	default:
		return nil, &wire.ArgError{Where: "options", What: "want a struct as the last argument"}
	}
	options := make(map[string]any, len(given)+1)
	for k, v := range given {
		if _, twice := given[":"+strings.TrimPrefix(k, "geni_")]; twice && !strings.HasPrefix(k, ":") {
			continue // this version's own name counts
		}
		options[geni(k)] = v
	}
	params[last] = options
	if want, ok := versioned[name]; ok {
		switch {
		case len(params) == want:
			options["geni_rspec_version"] = plain(params[last-1])
			params = append(params[:last-1], options)
		case len(params) == want-1 && options["geni_rspec_version"] != nil:
			// The document's example of ListResources has it so.
			options["geni_rspec_version"] = plain(options["geni_rspec_version"])
		default:
			return nil, &wire.ArgError{Where: "rspec_version", What: "want a struct {type, version} as the last argument but one, before the options"}
		}
	}
	if i := credentialsAt(name); i < len(params) {
		if list, ok := params[i].([]any); ok {
			params[i] = credentialList(list)
		}
	}
	if users, ok := options["geni_users"].([]any); ok {
		users = slices.Clone(users)
		for i, u := range users {
			users[i] = plain(u)
		}
		options["geni_users"] = users
	}
	if name == "PerformOperationalAction" && len(params) > actionAt {
		if action, ok := params[actionAt].(string); ok {
			params[actionAt] = geni(action)
		}
	}
	return params, nil
}

// credentialsAt is where the credentials stand among the arguments of a call.
func credentialsAt(name string) int {
	if name == "ListResources" {
		return 0
	}
	return 1
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

func (a *API) getVersion(_ context.Context, c *wire.Call, params []any) (any, string, error) {
	if err := wire.OptionsOnly(params); err != nil {
		return nil, "", err
	}
	types := a.v3.Session.CredentialTypes()
	for i, t := range types {
		s := t.(map[string]any)
		types[i] = map[string]any{":type": s["geni_type"], ":version": s["geni_version"]}
	}
	version := map[string]any{
		":api":                    number,
		":api_versions":           c.URLs(),
		":request_rspec_versions": wire.VersionStructs(a.v3.Service.RequestVersions()),
		":ad_rspec_versions":      wire.VersionStructs(a.v3.Service.AdvertisementVersions()),
		":credential_types":       types,
		":single_allocation":      false,
		":allocate":               ":many",
		":am_type":                []any{"croft"},
		":am_code_version":        "1",
		"croft:urn":               a.v3.Service.Manager().String(),
	}
	if g := wire.SSHGateway(a.v3.Service.SSHGateway()); g != nil {
		version["croft:ssh_gateway"] = g
	}
	return version, "", nil
}

// Reply makes the struct that every call of this version returns.
func Reply(value any, output string, err error) map[string]any {
	reply := wire.Reply(value, output, err)
	code := reply["code"].(map[string]any)
	reply["code"] = map[string]any{":code": code["geni_code"], ":am_type": code["am_type"], ":am_code": code["am_code"]}
	return reply
}
