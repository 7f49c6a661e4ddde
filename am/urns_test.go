package am_test

import (
	"strings"
	"testing"
	"time"
)

// targets are what calls can be about, as the AM API's table of URNs has them.
type targets struct {
	slice, elsewhere     string
	allocated, ready     string // slivers of slice
	other                string // sliver of elsewhere
	deleted, expired     string // slivers that were
	never                string // a sliver that never was
	empty                string // a slice that has nothing here
	creds                []any  // for all of these slices
	lapsed               string // a slice whose slivers have all expired
	mixedCase, component string
}

// makeTargets makes one of each kind; it calls by version 3.
func makeTargets(t *testing.T, u *user, name string) targets {
	t.Helper()
	v3 := *u
	v3.path, v3.rpc = "/am/3.0", u.as(u.name, "/am/3.0").rpc
	var x targets
	var all []any
	slice := func(n string) (string, []any) {
		s, _ := v3.slice(name + n)
		_, c := u.slice(name + n)
		x.creds = append(x.creds, c...)
		_, c = v3.slice(name + n)
		all = append(all, c...)
		return s, c
	}
	only := func(r reply) string {
		list := sliverList(t, r.value)
		if len(list) != 1 {
			t.Fatalf("%d slivers", len(list))
		}
		return list[0]["geni_sliver_urn"].(string)
	}
	lapsed, lapsedCreds := slice("l")
	x.lapsed = lapsed
	v3.want(0, "Allocate", lapsed, lapsedCreds, nodes("z"), m{})
	s, c := slice("s")
	x.slice = s
	x.expired = only(v3.want(0, "Allocate", s, c, nodes("e"), m{}))
	v3.clock.Advance(11 * time.Minute)
	x.deleted = only(v3.want(0, "Allocate", s, c, nodes("d"), m{}))
	v3.want(0, "Delete", []any{x.deleted}, c, m{})
	x.ready = only(v3.want(0, "Allocate", s, c, nodes("r"), m{}))
	v3.want(0, "Provision", []any{x.ready}, c, options())
	v3.settle(s, c)
	v3.want(0, "PerformOperationalAction", []any{x.ready}, c, "geni_start", m{})
	x.allocated = only(v3.want(0, "Allocate", s, c, nodes("a"), m{}))
	v3.settle(s, c)
	e, ec := slice("o")
	x.elsewhere = e
	x.other = only(v3.want(0, "Allocate", e, ec, nodes("x"), m{}))
	x.empty, _ = slice("n")
	x.never = "urn:publicid:IDN+example.org+sliver+never"
	x.mixedCase = strings.Replace(s, "example.org", "Example.ORG", 1)
	x.component = "urn:publicid:IDN+example.org+node+host1"
	return x
}

// What the URNs of a call give (AM API v3, and the table of what arguments
// yield). Each row is the code of each call.
func TestURNs3(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	x := makeTargets(t, u, "urns3")
	later := u.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	call := func(method string, urns []any, effort bool) int {
		t.Helper()
		o := options(m{"geni_best_effort": effort})
		switch method {
		case "Renew":
			return u.call(method, urns, x.creds, later, o).code
		case "PerformOperationalAction":
			return u.call(method, urns, x.creds, "geni_start", o).code
		}
		return u.call(method, urns, x.creds, o).code
	}
	for _, row := range []struct {
		name                                    string
		urns                                    []any
		effort                                  bool
		describe, status, renew, provision, poa int
	}{
		{"a slice", []any{x.slice}, false, 0, 0, 0, -1, 13},
		{"its authority in capitals", []any{x.mixedCase}, false, 0, 0, 0, -1, 13},
		{"a sliver", []any{x.ready}, false, 0, 0, 0, 13, 0},
		{"two slivers", []any{x.ready, x.allocated}, false, 0, 0, 0, 13, 13},
		{"two slivers, best effort", []any{x.ready, x.allocated}, true, 0, 0, 0, -1, 0},
		{"one sliver twice", []any{x.ready, x.ready}, false, 0, 0, 0, 13, 0},
		{"a sliver that never was", []any{x.never}, false, 12, 12, 12, 12, 12},
		{"one that was deleted", []any{x.deleted}, false, 12, 12, 12, 12, 12},
		{"one that has expired", []any{x.expired}, false, 12, 12, 12, 12, 12},
		{"one that never was among others", []any{x.ready, x.never}, false, 12, 12, 12, 12, 12},
		{"the same, best effort", []any{x.ready, x.never}, true, 12, 0, 0, 0, 0},
		{"a slice that has nothing", []any{x.empty}, false, 0, 12, 12, 12, 12},
		{"a slice whose slivers have expired", []any{x.lapsed}, false, 0, 12, 12, 12, 12},
		{"two slices", []any{x.slice, x.elsewhere}, false, 1, 1, 1, 1, 1},
		{"a slice and a sliver of it", []any{x.slice, x.ready}, false, 1, 1, 1, 1, 1},
		{"slivers of two slices", []any{x.ready, x.other}, false, 1, 1, 1, 1, 1},
		{"the same, best effort", []any{x.ready, x.other}, true, 1, 1, 1, 1, 1},
		{"a component", []any{x.component}, false, 1, 1, 1, 1, 1},
		{"no URN", []any{}, false, 1, 1, 1, 1, 1},
		{"not a URN", []any{"exp1"}, false, 1, 1, 1, 1, 1},
		{"not a string", []any{7}, false, 1, 1, 1, 1, 1},
		{"a slice that is nobody's here", []any{"urn:publicid:IDN+example.net+slice+x"}, false, 3, 3, 3, 3, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			for method, want := range map[string]int{
				"Describe": row.describe, "Status": row.status, "Renew": row.renew, "Provision": row.provision, "PerformOperationalAction": row.poa,
			} {
				if want < 0 {
					continue // it would change what the next rows are about
				}
				if got := call(method, row.urns, row.effort); got != want {
					t.Errorf("%s: code %d, want %d", method, got, want)
				}
			}
		})
	}
	// Delete last, since it works.
	for _, row := range []struct {
		name   string
		urns   []any
		effort bool
		code   int
	}{
		{"deleted before", []any{x.deleted}, false, 12},
		{"one that never was among others", []any{x.ready, x.never}, false, 12},
		{"an empty slice", []any{x.empty}, false, 12},
		{"two slices", []any{x.slice, x.elsewhere}, false, 1},
		{"best effort", []any{x.ready, x.never}, true, 0},
		{"what is left", []any{x.slice}, false, 0},
		{"again", []any{x.slice}, false, 12},
	} {
		if got := call("Delete", row.urns, row.effort); got != row.code {
			t.Errorf("Delete, %s: code %d, want %d", row.name, got, row.code)
		}
	}
}

// With best effort a call does what it can and says of each sliver that it
// could not do why; without, it does all or nothing.
func TestBestEffort(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{}).as("alice", "/am/3.0")
	x := makeTargets(t, u, "effort")
	effort := options(m{"geni_best_effort": true})
	in := func(d time.Duration) string { return u.clock.Now().Add(d).UTC().Format(time.RFC3339) }
	errors := func(what string, r reply, failed ...string) map[string]m {
		t.Helper()
		of := map[string]m{}
		wrong := 0
		for _, s := range sliverList(t, r.value) {
			of[s["geni_sliver_urn"].(string)] = s
			if s["geni_allocation_status"] == nil || s["geni_expires"] == nil {
				t.Errorf("%s: a sliver without state: %v", what, s)
			}
			if text, _ := s["geni_error"].(string); text != "" {
				wrong++
			}
		}
		for _, f := range failed {
			if text, _ := of[f]["geni_error"].(string); text == "" {
				t.Errorf("%s: no geni_error for %s in %v", what, f, of)
			}
		}
		if wrong != len(failed) {
			t.Errorf("%s: %d errors, want %d: %v", what, wrong, len(failed), of)
		}
		return of
	}
	errors("Status", u.want(0, "Status", []any{x.ready, x.never}, x.creds, effort), x.never)
	errors("an action", u.want(0, "PerformOperationalAction", []any{x.ready, x.allocated, x.never}, x.creds, "geni_restart", effort), x.allocated, x.never)
	u.settle(x.slice, x.creds)
	errors("Provision", u.want(0, "Provision", []any{x.ready, x.never}, x.creds, effort), x.ready, x.never)

	// The allocated sliver can be kept for two hours at most.
	before := errors("Status", u.want(0, "Status", []any{x.ready, x.allocated}, x.creds, effort))
	u.want(1, "Renew", []any{x.ready, x.allocated}, x.creds, in(3*time.Hour), m{})
	same := errors("Status", u.want(0, "Status", []any{x.ready, x.allocated}, x.creds, effort))
	for name := range before {
		if before[name]["geni_expires"] != same[name]["geni_expires"] {
			t.Errorf("a Renew that failed moved %s", name)
		}
	}
	end := in(3 * time.Hour)
	renewed := errors("Renew", u.want(0, "Renew", []any{x.slice}, x.creds, end, effort), x.allocated)
	if renewed[x.ready]["geni_expires"] != end || renewed[x.allocated]["geni_expires"] != before[x.allocated]["geni_expires"] {
		t.Errorf("Renew with best effort: %v", renewed)
	}
	late := errors("Renew as late as possible", u.want(0, "Renew", []any{x.slice}, x.creds, in(5*time.Hour), m{"geni_extend_alap": true}))
	if late[x.ready]["geni_expires"] != late[x.allocated]["geni_expires"] {
		t.Errorf("more than one expiry: %v", late)
	}
	wantSoon(t, late[x.ready], 2*time.Hour, u.clock.Now())
	errors("Delete", u.want(0, "Delete", []any{x.allocated, x.never}, x.creds, effort), x.never)
	left := errors("Status", u.want(0, "Status", []any{x.slice}, x.creds, m{}))
	if len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}
