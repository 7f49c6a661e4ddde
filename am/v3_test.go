package am_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/urn"
)

// A life cycle by version 3, with the members of every reply.
func TestLifeCycle3(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	slice, creds := u.slice("life3")
	in := func(d time.Duration) string { return u.clock.Now().Add(d).UTC().Format(time.RFC3339) }

	allocated := u.want(0, "Allocate", slice, creds, nodes("a", "b"), m{"geni_end_time": in(20 * time.Minute)})
	if !strings.Contains(fmt.Sprint(allocated.value), `type="manifest"`) {
		t.Errorf("no manifest in %v", allocated.value)
	}
	for _, s := range sliverList(t, allocated.value) {
		wantMembers(t, "Allocate", s, "geni_allocation_status", "geni_expires", "geni_sliver_urn")
		wantSoon(t, s, 20*time.Minute, u.clock.Now())
	}
	key := surroundings.NewKey(t)
	provisioned := u.want(0, "Provision", []any{slice}, creds, options(m{"geni_users": []any{m{"urn": "urn:publicid:IDN+example.org+user+alice", "keys": []any{key}}}}))
	for _, s := range sliverList(t, provisioned.value) {
		wantMembers(t, "Provision", s, "geni_allocation_status", "geni_expires", "geni_sliver_urn", "geni_operational_status")
	}
	for _, s := range u.settle(slice, creds) {
		wantMembers(t, "Status", s, "geni_allocation_status", "geni_expires", "geni_sliver_urn", "geni_operational_status", "geni_error")
		if s["geni_operational_status"] != "geni_notready" {
			t.Errorf("after Provision: %v", s)
		}
	}
	status := u.want(0, "Status", []any{slice}, creds, m{}).value.(m)
	if status["geni_urn"] != slice {
		t.Errorf("geni_urn is %v", status["geni_urn"])
	}
	u.want(0, "PerformOperationalAction", []any{slice}, creds, "geni_start", m{})
	for _, s := range u.settle(slice, creds) {
		if s["geni_operational_status"] != "geni_ready" {
			t.Errorf("after geni_start: %v", s)
		}
	}
	described := u.want(0, "Describe", []any{slice}, creds, options()).value.(m)
	if described["geni_urn"] != slice || !strings.Contains(described["geni_rspec"].(string), "services") {
		t.Errorf("Describe: %v", described)
	}
	expires := map[any]bool{}
	for _, s := range sliverList(t, u.want(0, "Renew", []any{slice}, creds, in(48*time.Hour), m{}).value) {
		wantMembers(t, "Renew", s, "geni_allocation_status", "geni_expires", "geni_sliver_urn", "geni_operational_status")
		expires[s["geni_expires"]] = true
	}
	if len(expires) != 1 {
		t.Errorf("expiries after Renew: %v", expires)
	}
	for _, s := range sliverList(t, u.want(0, "Delete", []any{slice}, creds, m{}).value) {
		wantMembers(t, "Delete", s, "geni_allocation_status", "geni_expires", "geni_sliver_urn")
		if s["geni_allocation_status"] != "geni_unallocated" || !expires[s["geni_expires"]] {
			t.Errorf("after Delete: %v", s)
		}
	}
	u.want(12, "Status", []any{slice}, creds, m{})
	empty := u.want(0, "Describe", []any{slice}, creds, options()).value.(m)
	if list := sliverList(t, empty); len(list) != 0 || strings.Contains(empty["geni_rspec"].(string), "<node") {
		t.Errorf("Describe of an empty slice: %v", empty)
	}
}

// wantMembers fails the test unless a struct has members, and each is a string.
func wantMembers(t testing.TB, call string, s m, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, ok := s[n].(string); !ok {
			t.Errorf("%s: %s is %v in %v", call, n, s[n], s)
		}
	}
	if e, ok := s["geni_expires"].(string); ok {
		if at, err := time.Parse("2006-01-02T15:04:05Z", e); err != nil || at.Nanosecond() != 0 {
			t.Errorf("%s: geni_expires is %q: %v", call, e, err)
		}
	}
}

func wantSoon(t testing.TB, s m, in time.Duration, now time.Time) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s["geni_expires"].(string))
	if err != nil || at.Sub(now) > in || at.Sub(now) < in-patience {
		t.Errorf("expires %v, want in about %s", s["geni_expires"], in)
	}
}

// Options as clients send them, right and wrong.
func TestOptions3(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	slice, creds := u.slice("options")
	u.want(0, "Allocate", slice, creds, nodes("a"), m{"no_such_option": []any{1, "x"}, "x:other": true})
	key := surroundings.NewKey(t)
	alice := "urn:publicid:IDN+example.org+user+alice"
	for _, test := range []struct {
		name    string
		options any
		code    int
	}{
		{"the usual", options(), 0},
		{"type and version in capitals", m{"geni_rspec_version": m{"type": "geni", "version": "3"}}, 0},
		{"a number for the version", m{"geni_rspec_version": m{"type": "GENI", "version": 3}}, 0},
		{"no geni_rspec_version", m{}, 1},
		{"no type", m{"geni_rspec_version": m{"version": "3"}}, 1},
		{"no version", m{"geni_rspec_version": m{"type": "GENI"}}, 1},
		{"an empty struct", m{"geni_rspec_version": m{}}, 1},
		{"a string", m{"geni_rspec_version": "GENI 3"}, 1},
		{"a version that is not offered", m{"geni_rspec_version": m{"type": "GENI", "version": "42"}}, 4},
		{"a type that is not offered", m{"geni_rspec_version": m{"type": "orca", "version": "3"}}, 4},
		{"geni_compressed is an int", options(m{"geni_compressed": 0}), 0},
		{"geni_compressed is a word", options(m{"geni_compressed": "true"}), 0},
		{"geni_compressed is a list", options(m{"geni_compressed": []any{}}), 1},
		{"options are no struct", "x", 1},
		{"options are nothing", nil, 1},
		{"nobody spoken for", options(m{"geni_speaking_for": ""}), 0},
		{"speaking for somebody who did not say so", options(m{"geni_speaking_for": "urn:publicid:IDN+example.org+user+bob"}), 3},
		{"speaking for what is no URN", options(m{"geni_speaking_for": "bob"}), 1},
	} {
		t.Run("Describe, "+test.name, func(t *testing.T) { u.want(test.code, "Describe", []any{slice}, creds, test.options) })
		t.Run("ListResources, "+test.name, func(t *testing.T) { u.want(test.code, "ListResources", creds, test.options) })
	}
	user := func(keys any) m { return options(m{"geni_users": []any{m{"urn": alice, "keys": keys}}}) }
	for _, test := range []struct {
		name    string
		options m
		code    int
	}{
		{"no users", options(), 0},
		{"no keys", user([]any{}), 0},
		{"a list", user([]any{key, surroundings.NewKey(t)}), 0},
		{"one string", user(key), 0},
		{"one string with lines", user("# keys\n" + key + "\n\n" + surroundings.NewKey(t) + "\n"), 0},
		{"structs", user([]any{m{"type": "ssh", "key": key}}), 0},
		{"with a comment", user([]any{key + " alice@home"}), 0},
		{"two users", options(m{"geni_users": []any{m{"urn": alice, "keys": []any{key}}, m{"urn": "urn:publicid:IDN+example.org+user+bob", "keys": []any{surroundings.NewKey(t)}}}}), 0},
		{"members that are not known", options(m{"geni_users": []any{m{"urn": alice, "keys": []any{key}, "login": "alice"}}}), 0},
		{"no key", user([]any{"ssh-rsa nonsense"}), 1},
		{"a number", user([]any{7}), 1},
		{"without a name", options(m{"geni_users": []any{m{"keys": []any{key}}}}), 1},
		{"a string for a user", options(m{"geni_users": []any{alice}}), 1},
		{"an end", options(m{"geni_end_time": u.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)}), 0},
		{"an end in another zone", options(m{"geni_end_time": u.clock.Now().Add(time.Hour).In(time.FixedZone("", 3600)).Format(time.RFC3339)}), 0},
		{"an end later than is given", options(m{"geni_end_time": u.clock.Now().Add(1000 * time.Hour).UTC().Format(time.RFC3339)}), 0},
		{"an end that is no date", options(m{"geni_end_time": "tomorrow"}), 1},
		{"a beginning", options(m{"geni_start_time": u.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)}), 1},
	} {
		t.Run("Provision, "+test.name, func(t *testing.T) {
			name := "n" + strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					return r
				}
				return -1
			}, test.name)
			made := sliverList(t, u.want(0, "Allocate", slice, creds, nodes(name), m{}).value)[0]["geni_sliver_urn"]
			u.want(test.code, "Provision", []any{made}, creds, test.options)
			u.want(0, "Delete", []any{made}, creds, m{})
		})
	}
	late := u.want(1, "Allocate", slice, creds, nodes("late"), m{"geni_start_time": "2031-01-01T00:00:00Z"})
	if !strings.Contains(late.output, "geni_start_time") {
		t.Errorf("the refusal does not name the option: %s", late.output)
	}
}

// A compressed RSpec is a string: base64 of zlib.
func TestCompressed(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	slice, creds := u.slice("packed")
	u.want(0, "Allocate", slice, creds, nodes("a"), m{})
	unpack := func(v any) string {
		t.Helper()
		packed, err := base64.StdEncoding.DecodeString(v.(string))
		if err != nil {
			t.Fatal(err)
		}
		z, err := zlib.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	packed := options(m{"geni_compressed": true})
	if ad := unpack(u.want(0, "ListResources", creds, packed).value); !strings.Contains(ad, `type="advertisement"`) {
		t.Errorf("the advertisement is %.200s", ad)
	}
	d := u.want(0, "Describe", []any{slice}, creds, packed).value.(m)
	if manifest := unpack(d["geni_rspec"]); !strings.Contains(manifest, `client_id="a"`) {
		t.Errorf("the manifest is %.200s", manifest)
	}
}

// Only what is free, when asked for.
func TestAvailable(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	slice, creds := u.slice("free")
	count := func(o m) int {
		t.Helper()
		return strings.Count(u.want(0, "ListResources", creds, o).value.(string), "<node ")
	}
	if n := count(options(m{"geni_available": true})); n != 2 {
		t.Errorf("%d hosts are free, want 2", n)
	}
	u.want(0, "Allocate", slice, creds, requestHead+`<node client_id="a" exclusive="true" component_id="urn:publicid:IDN+example.org+node+host1"><sliver_type name="simulated"/></node></rspec>`, m{})
	if n := count(options(m{"geni_available": true})); n != 1 {
		t.Errorf("%d hosts are free, want 1", n)
	}
	if n := count(options()); n != 2 {
		t.Errorf("%d hosts are listed, want 2", n)
	}
}

// Documents as clients send them.
func TestDocuments(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	slice, creds := u.slice("docs")
	for _, test := range []struct {
		name, document string
		code           int
	}{
		{"plain", nodes("n0"), 0},
		{"escaped once more", html.EscapeString(nodes("n1")), 0},
		{"escaped twice more", html.EscapeString(html.EscapeString(nodes("n2"))), 0},
		{"a second one of the same name", nodes("n0"), 1},
		{"no XML", "two nodes, please", 1},
		{"an advertisement", strings.Replace(nodes("n3"), `"request"`, `"advertisement"`, 1), 1},
		{"not well-formed", strings.TrimSuffix(nodes("n4"), "</rspec>"), 1},
		{"of another version", strings.Replace(nodes("n5"), "rspec/3", "rspec/99", 1), 4},
		{"nothing of ours", strings.Replace(nodes("n6"), "<node ", `<node component_manager_id="urn:publicid:IDN+example.net+authority+cm" `, 1), 1},
		{"more than there is", strings.Replace(nodes("n7"), `<sliver_type name="simulated"/>`, `<sliver_type name="m400"/>`, 1), 1},
		{"empty", "", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			u.want(test.code, "Allocate", slice, creds, test.document, m{})
		})
	}
	u.want(1, "Allocate", slice, creds, 7, m{})
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("m%d", i))
	}
	u.want(6, "Allocate", slice, creds, nodes(many...), m{})
}

// A second Allocate adds to the slice; its links may join nodes that are there.
func TestSecondAllocate(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	slice, creds := u.slice("more")
	u.want(0, "Allocate", slice, creds, nodes("a"), m{})
	u.want(0, "Provision", []any{slice}, creds, options())
	u.settle(slice, creds)
	added := u.want(0, "Allocate", slice, creds, strings.Replace(nodes("b"), "</rspec>",
		`<link client_id="l"><interface_ref client_id="a:if0"/><interface_ref client_id="b:if0"/></link></rspec>`, 1), m{})
	if list := sliverList(t, added.value); len(list) != 2 {
		t.Errorf("the second Allocate returns %v, want the new node and link", list)
	}
	provisioned := u.want(0, "Provision", []any{slice}, creds, options())
	if list := sliverList(t, provisioned.value); len(list) != 2 {
		t.Errorf("Provision touches %v, want the new node and link", list)
	}
	u.settle(slice, creds)
	u.want(0, "PerformOperationalAction", []any{slice}, creds, "geni_start", m{})
	states := u.settle(slice, creds)
	if len(states) != 3 {
		t.Errorf("the slice has %v", states)
	}
	for _, s := range states {
		if s["geni_operational_status"] != "geni_ready" {
			t.Errorf("not ready: %v", s)
		}
	}
	manifest := u.want(0, "Describe", []any{slice}, creds, options()).value.(m)["geni_rspec"].(string)
	for _, id := range []string{`client_id="a"`, `client_id="b"`, `client_id="l"`} {
		if !strings.Contains(manifest, id) {
			t.Errorf("the manifest has no %s", id)
		}
	}
}

// Actions, and the states that they need.
func TestActions(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	slice, creds := u.slice("acts")
	users := m{"geni_users": []any{m{"urn": "urn:publicid:IDN+example.org+user+bob", "keys": []any{surroundings.NewKey(t)}}}}
	u.want(0, "Allocate", slice, creds, nodes("a"), m{})
	u.want(13, "PerformOperationalAction", []any{slice}, creds, "geni_start", m{})
	u.want(0, "Provision", []any{slice}, creds, options())
	u.settle(slice, creds)
	for _, step := range []struct {
		action  any
		options m
		code    int
		state   string
	}{
		{"geni_update_users", users, 7, "geni_notready"},
		{"geni_stop", m{}, 0, "geni_notready"},
		{"geni_restart", m{}, 13, "geni_notready"},
		{"geni_start", m{}, 0, "geni_ready"},
		{"geni_restart", m{}, 0, "geni_ready"},
		{"geni_update_users", users, 0, "geni_ready"},
		{"geni_update_users", m{}, 1, "geni_ready"},
		{"geni_updating_users_cancel", m{}, 0, "geni_ready"},
		{"geni_update_users_cancel", m{}, 0, "geni_ready"},
		{"geni_selfdestruct", m{}, 13, "geni_ready"},
		{"", m{}, 13, "geni_ready"},
		{7, m{}, 1, "geni_ready"},
		{"geni_stop", m{}, 0, "geni_notready"},
		{"geni_update_users_cancel", m{}, 7, "geni_notready"},
	} {
		u.want(step.code, "PerformOperationalAction", []any{slice}, creds, step.action, step.options)
		if got := u.settle(slice, creds)[0]["geni_operational_status"]; got != step.state {
			t.Errorf("after %v: %v, want %s", step.action, got, step.state)
		}
	}
}

// Expiries that may and may not be had.
func TestRenew3(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	slice, creds := u.slice("renew")
	now := u.clock.Now()
	u.want(0, "Allocate", slice, creds, nodes("a"), m{})
	u.want(0, "Provision", []any{slice}, creds, options())
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
	for _, test := range []struct {
		name    string
		end     any
		options m
		code    int
		within  time.Duration
	}{
		{"later", at(48 * time.Hour), m{}, 0, 48 * time.Hour},
		{"sooner", at(time.Hour), m{}, 0, time.Hour},
		{"too late", at(24 * 365 * time.Hour), m{}, 1, 0},
		{"as late as possible", at(24 * 365 * time.Hour), m{"geni_extend_alap": true}, 0, 7 * 24 * time.Hour},
		{"in the past", at(-time.Hour), m{}, 1, 0},
		{"no date", "soon", m{}, 1, 0},
		{"a number", 7, m{}, 1, 0},
		{"with fractions", now.Add(2 * time.Hour).UTC().Format("2006-01-02T15:04:05.999Z"), m{}, 0, 2 * time.Hour},
		{"without a zone", now.Add(2 * time.Hour).UTC().Format("2006-01-02T15:04:05"), m{}, 0, 2 * time.Hour},
		{"with a zone", now.Add(2 * time.Hour).In(time.FixedZone("", -5*3600)).Format(time.RFC3339), m{}, 0, 2 * time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := u.want(test.code, "Renew", []any{slice}, creds, test.end, test.options)
			if r.code == 0 {
				for _, s := range sliverList(t, r.value) {
					wantMembers(t, "Renew", s, "geni_expires", "geni_operational_status", "geni_allocation_status")
					wantSoon(t, s, test.within+time.Second, now)
				}
			}
		})
	}
}

// Who has no right gets nowhere, whatever the call.
func TestForbidden3(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	u, bob := b.as("alice", "/am/3.0"), b.as("bob", "/am/3.0")
	slice, creds := u.slice("mine")
	_, others := u.slice("other")
	sliver := sliverList(t, u.want(0, "Allocate", slice, creds, nodes("a"), m{}).value)[0]["geni_sliver_urn"]
	for _, who := range []struct {
		name  string
		user  *user
		creds []any
	}{
		{"somebody else", bob, creds},
		{"for another slice", u, others},
		{"for no slice", u, u.userCredentials()},
		{"without any", u, []any{}},
		{"of an unknown type", u, []any{m{"geni_type": "geni_unheard_of", "geni_version": "1", "geni_value": "x"}}},
		{"that is nonsense", u, []any{m{"geni_type": "geni_sfa", "geni_version": "3", "geni_value": "x"}}},
	} {
		t.Run(who.name, func(t *testing.T) {
			for _, target := range []any{slice, sliver} {
				targets := []any{target}
				who.user.want(3, "Status", targets, who.creds, m{})
				who.user.want(3, "Describe", targets, who.creds, options())
				who.user.want(3, "Provision", targets, who.creds, options())
				who.user.want(3, "PerformOperationalAction", targets, who.creds, "geni_start", m{})
				who.user.want(3, "Renew", targets, who.creds, "2040-01-01T00:00:00Z", m{})
				who.user.want(3, "Delete", targets, who.creds, m{})
			}
			who.user.want(3, "Allocate", slice, who.creds, nodes("b"), m{})
			who.user.want(3, "Shutdown", slice, who.creds, m{})
		})
	}
	for _, malformed := range []any{"x", nil, []any{7}, []any{m{"geni_type": "geni_sfa"}}, m{}} {
		u.want(1, "Status", []any{slice}, malformed, m{})
	}
	u.want(1, "Status", []any{slice})
	u.want(1, "Status")
	u.want(1, "Allocate", "mine", creds, nodes("b"), m{})
	u.want(1, "Allocate", sliver, creds, nodes("b"), m{})
	u.want(0, "Status", []any{slice}, append(append([]any{}, others...), creds...), m{}) // the good one among others
}

// Update and Cancel are of drafts that omni knows.
func TestUpdateCancel(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	slice, creds := u.slice("upd")
	u.want(13, "Update", []any{slice}, creds, nodes("a"), m{})
	u.want(13, "Update", slice, creds)
	u.want(13, "Update")
	u.want(13, "Cancel", []any{slice}, creds, m{})
	u.want(13, "Cancel", 1, 2, 3, 4, 5)
}

// A slice that is shut down is closed to its users, but can be looked at, also
// after its slivers would have expired. The operator opens it again.
func TestShutdown(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	u, two, faa := b.as("alice", "/am/3.0"), b.as("alice", "/am/2.0"), b.as("alice", "/am/faa1")
	slice, creds := u.slice("stop")
	_, plain := two.slice("stop")
	_, colon := faa.slice("stop")
	sliver := sliverList(t, u.want(0, "Allocate", slice, creds, nodes("a"), m{}).value)[0]["geni_sliver_urn"]
	u.want(0, "Provision", []any{slice}, creds, options())
	u.settle(slice, creds)
	u.want(0, "PerformOperationalAction", []any{slice}, creds, "geni_start", m{})
	u.settle(slice, creds)
	for range 2 {
		if r := u.want(0, "Shutdown", slice, creds, m{}); r.value != true {
			t.Errorf("Shutdown returns %v", r.value)
		}
	}
	closed := func() {
		t.Helper()
		for _, target := range []any{slice, sliver} {
			u.want(3, "Provision", []any{target}, creds, options())
			u.want(3, "PerformOperationalAction", []any{target}, creds, "geni_start", m{})
			u.want(3, "Renew", []any{target}, creds, u.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339), m{})
			u.want(3, "Delete", []any{target}, creds, m{})
			u.want(3, "Delete", []any{target}, creds, m{"geni_best_effort": true})
			u.want(0, "Status", []any{target}, creds, m{})
			u.want(0, "Describe", []any{target}, creds, options())
		}
		u.want(3, "Allocate", slice, creds, nodes("b"), m{})
		u.want(0, "Shutdown", slice, creds, m{})
		two.want(3, "CreateSliver", slice, plain, nodes("b"), []any{}, m{})
		two.want(3, "RenewSliver", slice, plain, u.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339), m{})
		two.want(3, "DeleteSliver", slice, plain, m{})
		two.want(0, "SliverStatus", slice, plain, m{})
		two.want(0, "ListResources", plain, options(m{"geni_slice_urn": slice}))
		two.want(0, "Shutdown", slice, plain, m{})
		faa.want(3, "Delete", []any{slice}, colon, m{})
		faa.want(0, "Status", []any{slice}, colon, m{})
		u.want(13, "Update", []any{slice}, creds, nodes("b"), m{})
		if list := u.settle(slice, creds); len(list) != 1 || list[0]["geni_operational_status"] != "geni_notready" {
			t.Errorf("after Shutdown: %v", list)
		}
	}
	closed()
	u.clock.Advance(25 * time.Hour)
	closed()

	name := urn.MustParse(slice)
	if err := b.LiftShutdown(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	u.want(12, "Status", []any{slice}, creds, m{}) // its time is over
	u.want(0, "Allocate", slice, creds, nodes("a"), m{})
	u.want(0, "Delete", []any{slice}, creds, m{})
	empty, emptyCreds := u.slice("stopempty")
	u.want(0, "Shutdown", empty, emptyCreds, m{})
	u.want(3, "Allocate", empty, emptyCreds, nodes("a"), m{})
}
