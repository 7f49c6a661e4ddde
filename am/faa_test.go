package am_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
)

// wantColons fails the test when a reply has a member of version 3, or one of
// Croft's without a prefix.
func wantColons(t testing.TB, call string, v any) {
	t.Helper()
	switch v := v.(type) {
	case m:
		for k, x := range v {
			switch {
			case k == "code" || k == "value" || k == "output":
			case !strings.Contains(k, ":"):
				t.Errorf("%s: member %q", call, k)
			}
			if s, ok := x.(string); ok && strings.HasPrefix(s, "geni_") {
				t.Errorf("%s: %s is %s", call, k, s)
			}
			wantColons(t, call, x)
		}
	case []any:
		for _, x := range v {
			wantColons(t, call, x)
		}
	}
}

// A life cycle by the Federation AM API.
func TestLifeCycleFAA(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	u, three := b.as("alice", "/am/faa1"), b.as("alice", "/am/3.0")
	slice, creds := u.slice("lifefaa")
	_, creds3 := three.slice("lifefaa")
	in := func(d time.Duration) string { return u.clock.Now().Add(d).UTC().Format(time.RFC3339) }
	do := func(method string, params ...any) any {
		t.Helper()
		r := u.want(0, method, params...)
		wantColons(t, method, r.raw)
		return r.value
	}
	ad, _ := do("ListResources", creds, geni3, m{":available": true}).(string)
	if !strings.Contains(ad, `type="advertisement"`) {
		t.Errorf("ListResources returns %.200s", ad)
	}
	allocated := do("Allocate", slice, creds, nodes("a"), m{":end_time": in(20 * time.Minute)}).(m)
	if s := sliverList(t, allocated)[0]; s[":allocation_status"] != ":allocated" || s[":sliver_urn"] == nil || s[":expires"] == nil {
		t.Errorf("Allocate: %v", s)
	}
	if manifest, _ := allocated[":rspec"].(string); !strings.Contains(manifest, `type="manifest"`) {
		t.Errorf("Allocate: %v", allocated)
	}
	users := []any{m{"urn": "urn:publicid:IDN+example.org+user+alice", "keys": []any{surroundings.NewKey(t)}}}
	provisioned := do("Provision", []any{slice}, creds, geni3, m{":users": users}).(m)
	if manifest, _ := provisioned[":rspec"].(string); !strings.Contains(manifest, `username="alice"`) {
		t.Errorf("Provision: the manifest has no login for alice: %v", provisioned)
	}
	three.settle(slice, creds3)
	do("PerformOperationalAction", []any{slice}, creds, ":start", m{})
	three.settle(slice, creds3)
	status := do("Status", []any{slice}, creds, m{}).(m)
	if s := sliverList(t, status)[0]; status[":urn"] != slice || s[":operational_status"] != ":ready" || s[":allocation_status"] != ":provisioned" || s[":error"] != "" {
		t.Errorf("Status: %v", status)
	}
	do("PerformOperationalAction", []any{slice}, creds, ":update_users", m{":users": []any{m{":urn": "urn:publicid:IDN+example.org+user+bob", ":keys": []any{surroundings.NewKey(t)}}}})
	do("PerformOperationalAction", []any{slice}, creds, ":updating_users_cancel", m{})
	described := do("Describe", []any{slice}, creds, geni3, m{":compressed": false}).(m)
	if described[":urn"] != slice || len(sliverList(t, described)) != 1 {
		t.Errorf("Describe: %v", described)
	}
	do("Renew", []any{slice}, creds, in(48*time.Hour), m{":best_effort": false})
	gone := do("Delete", []any{slice}, creds, m{})
	if s := sliverList(t, gone)[0]; s[":allocation_status"] != ":unallocated" {
		t.Errorf("Delete: %v", gone)
	}
	if do("Shutdown", slice, creds, m{}) != true {
		t.Error("Shutdown is not true")
	}
}

// Every sliver and slice that is not there is SEARCHFAILED, also with best
// effort (Federation AM API, "array of urns").
func TestURNsFAA(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/faa1")
	x := makeTargets(t, u, "urnsfaa")
	later := u.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, row := range []struct {
		name string
		urns []any
		code int // of every call; -1 for 0, but not of those that would change something
	}{
		{"a sliver that never was", []any{x.never}, 12},
		{"one that was deleted", []any{x.deleted}, 12},
		{"one that has expired", []any{x.expired}, 12},
		{"one that never was among others", []any{x.ready, x.never}, 12},
		{"a slice that has nothing", []any{x.empty}, 12},
		{"a slice whose slivers have expired", []any{x.lapsed}, 12},
		{"two slices", []any{x.slice, x.elsewhere}, 1},
		{"a slice and a sliver of it", []any{x.slice, x.ready}, 1},
		{"slivers of two slices", []any{x.ready, x.other}, 1},
		{"no URN", []any{}, 1},
		{"a sliver", []any{x.ready}, -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, effort := range []bool{false, true} {
				o := m{":best_effort": effort}
				got := map[string]int{
					"Status":                   u.call("Status", row.urns, x.creds, o).code,
					"Describe":                 u.call("Describe", row.urns, x.creds, geni3, o).code,
					"Renew":                    u.call("Renew", row.urns, x.creds, later, o).code,
					"PerformOperationalAction": u.call("PerformOperationalAction", row.urns, x.creds, ":start", o).code,
				}
				if row.code > 0 {
					got["Provision"] = u.call("Provision", row.urns, x.creds, geni3, o).code
					got["Delete"] = u.call("Delete", row.urns, x.creds, o).code
				}
				for method, code := range got {
					if code != max(row.code, 0) {
						t.Errorf("%s, best effort %v: code %d, want %d", method, effort, code, max(row.code, 0))
					}
				}
			}
		})
	}
}

// The RSpec version is an argument; options begin with a colon.
func TestArgumentsFAA(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/faa1")
	slice, creds := u.slice("argsfaa")
	u.want(0, "Allocate", slice, creds, nodes("a"), m{})
	for _, test := range []struct {
		name   string
		code   int
		params []any
	}{
		{"the usual", 0, []any{creds, geni3, m{}}},
		{"in lower case", 0, []any{creds, m{"type": "geni", "version": "3"}, m{}}},
		{"members with colons", 0, []any{creds, m{":type": "GENI", ":version": "3"}, m{}}},
		{"as in the document's example", 0, []any{creds, m{":available": true, ":rspec_version": geni3, ":compressed": false}}},
		{"none", 1, []any{creds, m{}}},
		{"no version", 1, []any{creds, m{"type": "GENI"}, m{}}},
		{"not offered", 4, []any{creds, m{"type": "GENI", "version": "42"}, m{}}},
		{"a string", 1, []any{creds, "GENI 3", m{}}},
		{"options are no struct", 1, []any{creds, geni3, 7}},
		{"other people's options", 0, []any{creds, geni3, m{"fed4fire:whatever": 7}}},
		{"credentials as in version 3", 0, []any{[]any{m{"geni_type": "geni_sfa", "geni_version": "3", "geni_value": creds[0].(m)[":value"]}}, geni3, m{}}},
		{"credentials without colons", 0, []any{[]any{m{"type": "geni_sfa", "version": "3", "value": creds[0].(m)[":value"]}}, geni3, m{}}},
		{"no arguments", 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) { u.want(test.code, "ListResources", test.params...) })
	}
	u.want(1, "Describe", []any{slice}, creds, m{})
	u.want(1, "Provision", []any{slice}, creds, m{})
	u.want(13, "PerformOperationalAction", []any{slice}, creds, ":start", m{})
	u.want(13, "PerformOperationalAction", []any{slice}, creds, ":selfdestruct", m{})
	if r := u.want(1, "Allocate", slice, creds, nodes("b"), m{":start_time": "2031-01-01T00:00:00Z"}); !strings.Contains(r.output, ":start_time") {
		t.Errorf("the refusal does not name the option: %s", r.output)
	}
	if r := u.want(1, "Renew", []any{slice}, creds, "soon", m{}); !strings.Contains(r.output, ":end_time") {
		t.Errorf("the refusal does not name the argument: %s", r.output)
	}
	if r := u.call("Renew", []any{slice}, creds, "soon", m{}); fmt.Sprint(r.raw["code"]) == "" || r.raw["code"].(m)[":am_type"] != "croft" {
		t.Errorf("code %v", r.raw["code"])
	}
}
