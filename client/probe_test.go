package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"croft/client"
	"croft/urn"
	"croft/xmlrpc"
)

// replies makes an aggregate's methods out of what they return.
func replies(values map[string]any) xmlrpc.Methods {
	methods := xmlrpc.Methods{}
	for name, v := range values {
		methods[name] = func(context.Context, []any) (any, error) {
			if n, ok := v.(int); ok {
				return map[string]any{"code": map[string]any{"geni_code": n}, "value": "", "output": "no"}, nil
			}
			if err, ok := v.(error); ok {
				return nil, err
			}
			return map[string]any{"code": map[string]any{"geni_code": 0}, "value": v, "output": ""}, nil
		}
	}
	return methods
}

var goodVersion = map[string]any{
	"geni_api": 3, "geni_api_versions": map[string]any{"3": "https://am.example.org/"},
	"geni_request_rspec_versions": []any{},
	"geni_ad_rspec_versions":      []any{map[string]any{"type": "geni", "version": "3", "schema": "", "namespace": "", "extensions": []any{}}},
}

const goodAd = `<rspec type="advertisement" xmlns="http://www.geni.net/resources/rspec/3">
<node component_id="urn:publicid:IDN+example.org+node+a"><sliver_type name="vm"/><sliver_type name="raw"/><available now="true"/></node>
<node component_id="urn:publicid:IDN+example.org+node+b"><sliver_type name="vm"/><available now="false"/></node>
<link component_id="urn:publicid:IDN+example.org+link+l"/></rspec>`

func sliverIn(allocation, operational string) map[string]any {
	return map[string]any{
		"geni_sliver_urn": "urn:publicid:IDN+example.org+sliver+1", "geni_allocation_status": allocation,
		"geni_operational_status": operational, "geni_expires": "2030-01-01T00:00:00Z", "geni_error": "",
	}
}

const goodManifest = `<rspec type="manifest" xmlns="http://www.geni.net/resources/rspec/3">
<node client_id="a" sliver_id="urn:publicid:IDN+example.org+sliver+1"/>
<node client_id="theirs" sliver_id="urn:publicid:IDN+example.net+sliver+9"/></rspec>`

// good is an aggregate that does all right, with changes.
func good(changes map[string]any) map[string]any {
	made, ready := []any{sliverIn("geni_provisioned", "geni_notready")}, []any{sliverIn("geni_provisioned", "geni_ready")}
	all := map[string]any{
		"GetVersion": goodVersion, "ListResources": goodAd,
		"Allocate":                 map[string]any{"geni_rspec": goodManifest, "geni_slivers": []any{sliverIn("geni_allocated", "")}},
		"Provision":                map[string]any{"geni_rspec": goodManifest, "geni_slivers": made},
		"PerformOperationalAction": ready,
		"Status":                   map[string]any{"geni_urn": "urn:publicid:IDN+example.org+slice+s", "geni_slivers": ready},
		"Describe":                 map[string]any{"geni_urn": "urn:publicid:IDN+example.org+slice+s", "geni_rspec": goodManifest, "geni_slivers": ready},
		"Delete":                   []any{sliverIn("geni_unallocated", "")},
	}
	for k, v := range changes {
		all[k] = v
	}
	return all
}

func TestProbe(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes map[string]any
		verdict client.Verdict
		at      string // the step that fails
	}{
		{"all right", nil, client.Healthy, ""},
		{"version 2", map[string]any{"GetVersion": map[string]any{
			"geni_api": 2, "geni_api_versions": map[string]any{"2": "https://am.example.org/"}, "geni_request_rspec_versions": []any{},
			"geni_ad_rspec_versions": goodVersion["geni_ad_rspec_versions"],
		}}, client.Healthy, ""},
		{"forbidden", map[string]any{"ListResources": 3}, client.Refused, "ListResources"},
		{"not offered", map[string]any{"ListResources": 4}, client.Refused, "ListResources"},
		{"an error of its own", map[string]any{"ListResources": 5}, client.Unhealthy, "ListResources"},
		{"busy", map[string]any{"GetVersion": -32001}, client.Unhealthy, "GetVersion"},
		{"a fault", map[string]any{"GetVersion": &xmlrpc.Fault{Code: 1, Text: "no"}}, client.Unhealthy, "GetVersion"},
		{"no versions", map[string]any{"GetVersion": map[string]any{
			"geni_api": 3, "geni_api_versions": map[string]any{}, "geni_request_rspec_versions": []any{}, "geni_ad_rspec_versions": []any{},
		}}, client.Unhealthy, "GetVersion"},
		{"no struct", map[string]any{"GetVersion": "3"}, client.Unhealthy, "GetVersion"},
		{"no advertisement", map[string]any{"ListResources": "<html/>"}, client.Unhealthy, "ListResources"},
		{"not XML", map[string]any{"ListResources": "nothing"}, client.Unhealthy, "ListResources"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, replies(good(test.changes))).client(t)
			var told []string
			r := c.Probe(t.Context(), client.ProbeRequest{}, func(s client.ProbeStep) { told = append(told, s.Name) })
			wantReport(t, r, test.verdict, test.at)
			if len(told) != len(r.Steps) {
				t.Errorf("told of %v, reported %+v", told, r.Steps)
			}
			if test.verdict == client.Healthy {
				n := r.Components
				if n == nil || n.Nodes != (client.Count{Total: 2, Free: 1}) || n.Links != 1 || n.SliverTypes["vm"] != (client.Count{Total: 2, Free: 1}) {
					t.Errorf("components: %+v", n)
				}
			}
		})
	}
}

func wantReport(t *testing.T, r *client.ProbeReport, verdict client.Verdict, at string) {
	t.Helper()
	if r.Verdict != verdict {
		t.Errorf("verdict %s, want %s: %+v", r.Verdict, verdict, r.Steps)
	}
	failed := ""
	for _, s := range r.Steps {
		if s.Verdict != client.Healthy && failed == "" {
			failed = s.Name
			if s.Error == "" {
				t.Errorf("%s fails without a word", s.Name)
			}
		}
	}
	if failed != at {
		t.Errorf("%q fails, want %q: %+v", failed, at, r.Steps)
	}
}

// Whatever goes wrong, what was allocated is given back.
func TestProbeLifeCycle(t *testing.T) {
	slice := urn.MustParse("urn:publicid:IDN+example.org+slice+s")
	gone := 12
	for _, test := range []struct {
		name    string
		changes map[string]any
		login   error
		verdict client.Verdict
		at      string
		deleted bool
	}{
		{"all right", nil, nil, client.Healthy, "", true},
		{"too big", map[string]any{"Allocate": 6}, nil, client.Refused, "Allocate", false},
		{"allocates nothing", map[string]any{"Allocate": map[string]any{"geni_rspec": goodManifest, "geni_slivers": []any{}}}, nil, client.Unhealthy, "Allocate", false},
		{"does not provision", map[string]any{"Provision": 7}, nil, client.Refused, "Provision", true},
		{"fails", map[string]any{"Provision": map[string]any{"geni_rspec": goodManifest, "geni_slivers": []any{sliverIn("geni_provisioned", "geni_failed")}}}, nil, client.Unhealthy, "made", true},
		{"does not start", map[string]any{"PerformOperationalAction": 13}, nil, client.Refused, "PerformOperationalAction", true},
		{"lets nobody in", nil, errors.New("permission denied"), client.Unhealthy, "login a", true},
		{"has no manifest", map[string]any{"Describe": 5}, nil, client.Unhealthy, "Describe", true},
		{"does not delete", map[string]any{"Delete": 5}, nil, client.Unhealthy, "Delete", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			methods := replies(good(test.changes))
			var deleted bool
			status, del := methods["Status"], methods["Delete"]
			methods["Delete"] = func(ctx context.Context, params []any) (any, error) { deleted = true; return del(ctx, params) }
			methods["Status"] = func(ctx context.Context, params []any) (any, error) {
				if deleted {
					return map[string]any{"code": map[string]any{"geni_code": gone}, "value": "", "output": "gone"}, nil
				}
				return status(ctx, params)
			}
			var logins []string
			l := &client.LifeCycle{Slice: slice, Request: "<rspec/>", Login: func(_ context.Context, n *client.ManifestNode) error {
				logins = append(logins, n.ClientID)
				return test.login
			}}
			r := serve(t, methods).client(t).Probe(t.Context(), client.ProbeRequest{LifeCycle: l}, nil)
			wantReport(t, r, test.verdict, test.at)
			if deleted != test.deleted {
				t.Errorf("deleted: %v", deleted)
			}
			if test.verdict == client.Healthy && fmt.Sprint(logins) != "[a]" {
				t.Errorf("logins to %v", logins)
			}
		})
	}
	t.Run("does not let go", func(t *testing.T) {
		l := &client.LifeCycle{Slice: slice, Request: "<rspec/>", Login: func(context.Context, *client.ManifestNode) error { return nil }}
		r := serve(t, replies(good(nil))).client(t).Probe(t.Context(), client.ProbeRequest{LifeCycle: l}, nil)
		wantReport(t, r, client.Unhealthy, "gone")
	})
}

func TestProbeUnreachable(t *testing.T) {
	k := federationOnce()
	if k.err != nil {
		t.Fatal(k.err)
	}
	c, err := client.New(client.Options{URL: "https://127.0.0.1:1/", Identity: k.who, Roots: k.root})
	if err != nil {
		t.Fatal(err)
	}
	r := c.Probe(t.Context(), client.ProbeRequest{}, nil)
	wantReport(t, r, client.Unreachable, "GetVersion")
	if !strings.Contains(r.Steps[0].Error, "refused") {
		t.Errorf("the report says %q", r.Steps[0].Error)
	}
}
