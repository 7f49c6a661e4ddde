package credentials

import (
	"testing"

	"croft/urn"
)

// The privilege table, call by call.
func TestPrivileges(t *testing.T) {
	const (
		r = 1 << iota // Describe, Status, SliverStatus
		m             // Allocate, Provision, CreateSliver, Update, Cancel
		a             // PerformOperationalAction
		n             // Renew, RenewSliver
		d             // Delete, DeleteSliver
		s             // Shutdown
	)
	group := map[Call]int{
		Describe: r, Status: r, SliverStatus: r, Allocate: m, Provision: m, CreateSliver: m, Update: m, Cancel: m,
		PerformOperationalAction: a, Renew: n, RenewSliver: n, Delete: d, DeleteSliver: d, Shutdown: s,
	}
	all := r | m | a | n | d | s
	table := map[string]int{
		"*": all, "authority": all, "embed": all,
		"sa": all &^ s, "control": all &^ s, "pi": all &^ s,
		"operator": r | s, "info": r, "instantiate": r | m | a,
		"createsliver": m | a, "createslice": m, "updateslice": m,
		"startslice": a, "stopslice": a, "resetslice": a,
		"renewsliver": n, "deletesliver": d, "deleteslice": d, "sliverstatus": r, "getsliceresources": r, "shutdown": s,
		"bind": 0, "refresh": 0, "resolve": 0, "ma": 0, "nonsense": 0, "": 0, "ListResources": 0, "EMBED": all, "Info": r,
	}
	for name := range privilegeCalls {
		if _, ok := table[name]; !ok {
			t.Errorf("%q is not in this test's table", name)
		}
	}
	for name, want := range table {
		for _, call := range Calls() {
			if got := (Privilege{Name: name}).grants(call); got != (want&group[call] != 0) {
				t.Errorf("%q for %s: %v", name, call, got)
			}
		}
	}
}

// ListResources needs a credential, and any will do.
func TestListResources(t *testing.T) {
	f := newFixture(t)
	for name, value := range map[string]string{
		"user":      f.sign(t, f.root, f.alice, f.alice, rights("refresh")),
		"slice":     f.sign(t, f.root, f.alice, f.slice, rights("info")),
		"authority": f.sign(t, f.root, f.alice, f.root, rights("authority")),
	} {
		t.Run(name, func(t *testing.T) {
			g, err := f.may(t, f.alice, sfa(value), ListResources, "")
			if err != nil || g.Credential.Kind != "privilege" {
				t.Fatal(g, err)
			}
		})
	}
	t.Run("somebody else's", func(t *testing.T) {
		_, err := f.may(t, f.bob, sfa(f.sign(t, f.root, f.alice, f.alice)), ListResources, "")
		wantRefusal(t, err, "may not call ListResources; credential 1: gives rights")
	})
}

func TestPassingOn(t *testing.T) {
	for _, c := range []struct {
		own   Privilege
		child string
		want  bool
	}{
		{Privilege{"embed", true}, "embed", true},
		{Privilege{"embed", false}, "embed", false},
		{Privilege{"*", true}, "embed", true},
		{Privilege{"*", true}, "anything", true},
		{Privilege{"embed", true}, "*", false},
		{Privilege{"authority", true}, "*", false},
		{Privilege{"embed", true}, "info", true},
		{Privilege{"embed", true}, "control", true},
		{Privilege{"control", true}, "embed", false},
		{Privilege{"info", true}, "createsliver", false},
		{Privilege{"info", true}, "refresh", false},
		{Privilege{"refresh", true}, "REFRESH", true},
		{Privilege{"unknown", true}, "unknown", true},
		{Privilege{"unknown", true}, "other", false},
	} {
		if got := c.own.mayPassOn(Privilege{Name: c.child}); got != c.want {
			t.Errorf("%v to %q: %v", c.own, c.child, got)
		}
	}
}

// What rights on one thing mean for another.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		own, target string
		want        bool
	}{
		{"a+slice+s", "a+slice+s", true},
		{"A+slice+s", "a+slice+s", true},
		{"a+slice+s", "a+slice+S", false},
		{"a+slice+s", "a:p+slice+s", false},
		{"a+slice+s", "a+sliver+s", false},
		{"a+sliver+s", "a+sliver+s", true},
		{"a+authority+sa", "a+slice+s", true},
		{"a+authority+SA", "a:p+slice+s", true},
		{"a:p+authority+sa", "a+slice+s", false},
		{"a:p+authority+sa", "a:pq+slice+s", false},
		{"a+authority+root", "a:p+slice+s", true},
		{"a+authority+cm", "a+slice+s", false},
		{"a+authority+am", "a+slice+s", false},
		{"a+authority+ma", "a+slice+s", false},
		{"a+authority+sa", "a+sliver+s", false},
		{"a+authority+sa", "a+user+s", false},
		{"a+user+s", "a+slice+s", false},
	} {
		own, target := urn.MustParse("urn:publicid:IDN+"+c.own), urn.MustParse("urn:publicid:IDN+"+c.target)
		if got := covers(own, target); got != c.want {
			t.Errorf("%s over %s: %v", c.own, c.target, got)
		}
	}
}

// Credentials for slivers are good for these slivers, if there is one for each.
func TestSliverCredentials(t *testing.T) {
	f := newFixture(t)
	const one, two = "urn:publicid:IDN+example.org+sliver+1", "urn:publicid:IDN+example.org+sliver+2"
	first := f.sign(t, f.root, f.alice, issue(t, f.root, spec{urn: one}))
	second := f.sign(t, f.root, f.alice, issue(t, f.root, spec{urn: two}), rights("info"))
	for _, c := range []struct {
		name        string
		credentials []string
		call        Call
		slivers     []string
		says        string
	}{
		{"one", []string{first}, Delete, []string{one}, ""},
		{"both", []string{first, second}, Status, []string{one, two}, ""},
		{"one of two", []string{first}, Status, []string{one, two}, "may not call Status"},
		{"one with too few rights", []string{first, second}, Delete, []string{one, two}, "credential 2: its privileges (info)"},
		{"the slice", []string{first, second}, Status, nil, "is for " + one},
		{"the slice's is good for all", []string{f.sign(t, f.root, f.alice, f.slice)}, Delete, []string{one, two}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := f.may(t, f.alice, sfa(c.credentials...), c.call, sliceURN, c.slivers...)
			if c.says != "" {
				wantRefusal(t, err, c.says)
				return
			}
			if err != nil || g.Credential.Digest == "" || g.Expires.IsZero() {
				t.Fatal(g, err)
			}
		})
	}
}
