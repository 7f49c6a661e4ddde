package am_test

import (
	"strings"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
)

// await2 waits until a slice has a status, by version 2.
func (u *user) await2(slice string, creds []any, want string) m {
	u.Helper()
	deadline := time.Now().Add(patience)
	for {
		s := u.want(0, "SliverStatus", slice, creds, m{}).value.(m)
		if s["geni_status"] == want {
			return s
		}
		if time.Now().After(deadline) {
			u.Fatalf("the slice does not become %s: %v", want, s)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A life cycle by version 2.
func TestLifeCycle2(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/2.0")
	slice, creds := u.slice("life2")
	in := func(d time.Duration) string { return u.clock.Now().Add(d).UTC().Format(time.RFC3339) }
	users := []any{m{"urn": "urn:publicid:IDN+example.org+user+alice", "keys": []any{surroundings.NewKey(t)}}}

	u.want(12, "SliverStatus", slice, creds, m{})
	if empty, _ := u.want(0, "ListResources", creds, options(m{"geni_slice_urn": slice})).value.(string); !strings.Contains(empty, `type="manifest"`) || strings.Contains(empty, "<node") {
		t.Errorf("ListResources of a slice that has nothing returns %s", empty)
	}
	u.want(12, "DeleteSliver", slice, creds, m{})
	u.want(12, "RenewSliver", slice, creds, in(time.Hour), m{})
	manifest, ok := u.want(0, "CreateSliver", slice, creds, nodes("a", "b"), users, m{"geni_end_time": in(time.Hour)}).value.(string)
	if !ok || !strings.Contains(manifest, `type="manifest"`) || !strings.Contains(manifest, "authentication=") {
		t.Errorf("CreateSliver returns %.300s", manifest)
	}
	u.want(17, "CreateSliver", slice, creds, nodes("c"), users, m{})
	status := u.await2(slice, creds, "ready")
	if status["geni_urn"] != slice {
		t.Errorf("geni_urn is %v", status["geni_urn"])
	}
	wantSoon(t, status, time.Hour, u.clock.Now())
	resources := status["geni_resources"].([]any)
	if len(resources) != 2 {
		t.Errorf("geni_resources: %v", resources)
	}
	for _, r := range resources {
		wantMembers(t, "SliverStatus", r.(m), "geni_urn", "geni_status", "geni_error", "geni_expires")
		if r.(m)["geni_status"] != "ready" || !strings.Contains(r.(m)["geni_urn"].(string), "+sliver+") {
			t.Errorf("resource %v", r)
		}
	}
	if got, _ := u.want(0, "ListResources", creds, options(m{"geni_slice_urn": slice})).value.(string); !strings.Contains(got, `client_id="b"`) {
		t.Errorf("ListResources of the slice returns %.300s", got)
	}
	if got, _ := u.want(0, "ListResources", u.userCredentials(), options()).value.(string); !strings.Contains(got, `type="advertisement"`) {
		t.Errorf("ListResources returns %.300s", got)
	}
	u.want(4, "ListResources", creds, m{"geni_rspec_version": m{"type": "GENI", "version": "42"}})
	u.want(1, "ListResources", creds, m{})
	u.want(1, "ListResources", creds, options(m{"geni_slice_urn": "life2"}))
	if r := u.want(0, "RenewSliver", slice, creds, in(48*time.Hour), m{}); r.value != true {
		t.Errorf("RenewSliver returns %v", r.value)
	}
	u.want(1, "RenewSliver", slice, creds, in(24*365*time.Hour), m{})
	u.want(0, "RenewSliver", slice, creds, in(24*365*time.Hour), m{"geni_extend_alap": true})
	u.want(1, "RenewSliver", slice, creds, "soon", m{})
	if r := u.want(0, "DeleteSliver", slice, creds, m{}); r.value != true {
		t.Errorf("DeleteSliver returns %v", r.value)
	}
	u.want(12, "SliverStatus", slice, creds, m{})
	if r := u.want(0, "Shutdown", slice, creds, m{}); r.value != true {
		t.Errorf("Shutdown returns %v", r.value)
	}
}

// What is wrong in calls of version 2.
func TestWrong2(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	u, bob := b.as("alice", "/am/2.0"), b.as("bob", "/am/2.0")
	slice, creds := u.slice("wrong2")
	for _, test := range []struct {
		name   string
		code   int
		user   *user
		method string
		params []any
	}{
		{"somebody else", 3, bob, "CreateSliver", []any{slice, creds, nodes("a"), []any{}, m{}}},
		{"a user credential", 3, u, "CreateSliver", []any{slice, u.userCredentials(), nodes("a"), []any{}, m{}}},
		{"not a slice", 1, u, "CreateSliver", []any{"exp", creds, nodes("a"), []any{}, m{}}},
		{"a document that is none", 1, u, "CreateSliver", []any{slice, creds, "nodes", []any{}, m{}}},
		{"users are a string", 1, u, "CreateSliver", []any{slice, creds, nodes("a"), "alice", m{}}},
		{"a key that is none", 1, u, "CreateSliver", []any{slice, creds, nodes("a"), []any{m{"urn": "urn:publicid:IDN+example.org+user+alice", "keys": []any{"x"}}}, m{}}},
		{"a beginning", 1, u, "CreateSliver", []any{slice, creds, nodes("a"), []any{}, m{"geni_start_time": "2031-01-01T00:00:00Z"}}},
		{"too few arguments", 1, u, "CreateSliver", []any{slice, creds}},
		{"too many arguments", 1, u, "SliverStatus", []any{slice, creds, m{}, m{}}},
		{"no options", 12, u, "SliverStatus", []any{slice, creds}},
		{"credentials as in version 3", 12, u, "SliverStatus", []any{slice, u.bed.as("alice", "/am/3.0").credentials(creds[0].(string)), m{}}},
	} {
		t.Run(test.name, func(t *testing.T) { test.user.want(test.code, test.method, test.params...) })
	}
	var many []string
	for _, a := range "abcdefghij" {
		for _, b := range "abcdefghij" {
			many = append(many, string(a)+string(b))
		}
	}
	u.want(6, "CreateSliver", slice, creds, nodes(many...), []any{}, m{})
	u.want(12, "SliverStatus", slice, creds, m{}) // none of them has left anything
}

// What omni and old scripts send as users.
func TestUsers2(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/2.0")
	slice, creds := u.slice("users2")
	key, alice := surroundings.NewKey(t), "urn:publicid:IDN+example.org+user+alice"
	for _, test := range []struct {
		name  string
		users []any
		login bool
	}{
		{"a list of keys", []any{m{"urn": alice, "keys": []any{key}}}, true},
		{"one string", []any{m{"urn": alice, "keys": key + "\n"}}, true},
		{"structs", []any{m{"urn": alice, "login": "alice", "keys": []any{m{"type": "ssh", "key": key}}}}, true},
		{"nobody", []any{}, false},
	} {
		manifest := u.want(0, "CreateSliver", slice, creds, nodes("a"), test.users, m{}).value.(string)
		if strings.Contains(manifest, `username="alice"`) != test.login {
			t.Errorf("%s: the manifest is %s", test.name, manifest)
		}
		u.want(0, "DeleteSliver", slice, creds, m{})
	}
}
