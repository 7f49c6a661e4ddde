package credentials

import (
	"testing"
	"time"
)

func TestGoodCredentials(t *testing.T) {
	f := newFixture(t)
	end := f.now.Add(time.Hour).Truncate(time.Second)
	slice := f.sign(t, f.root, f.alice, f.slice)
	parent := f.sign(t, f.root, f.bob, f.slice)
	for _, c := range []struct {
		name    string
		who     *entity
		value   string
		call    Call
		target  string
		slivers []string
		expires time.Time
	}{
		{"slice credential", f.alice, slice, Allocate, sliceURN, nil, end},
		{"by the project's authority", f.alice, f.sign(t, f.proj, f.alice, f.slice), Delete, sliceURN, nil, end},
		{"rsa-sha1", f.alice, f.sign(t, f.root, f.alice, f.slice, func(i *Issue) { i.SHA1 = true }), Allocate, sliceURN, nil, end},
		{"exclusive", f.alice, f.sign(t, f.root, f.alice, f.slice, func(i *Issue) { i.Exclusive = true }), Allocate, sliceURN, nil, end},
		{"user credential lists", f.alice, f.sign(t, f.root, f.alice, f.alice), ListResources, "", nil, end},
		{"slice credential lists", f.alice, slice, ListResources, "", nil, end},
		{"authority's credential for its slice", f.alice, f.sign(t, f.root, f.alice, f.proj), Shutdown, sliceURN, nil, end},
		{"case of the authority", f.alice, slice, Renew, "urn:publicid:IDN+Example.ORG:proj+slice+exp", nil, end},
		{"delegated", f.alice, f.delegate(t, parent, f.bob, f.alice), Provision, sliceURN, nil, f.now.Add(time.Minute).Truncate(time.Second)},
		{"delegated twice", f.carol, f.delegate(t, f.delegate(t, parent, f.bob, f.alice), f.alice, f.carol), Status, sliceURN, nil, f.now.Add(time.Minute).Truncate(time.Second)},
		{"member of a sub-authority", f.carol, f.sign(t, f.root, f.carol, f.slice, rights("embed")), CreateSliver, sliceURN, nil, end},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := f.may(t, c.who, sfa(c.value), c.call, c.target, c.slivers...)
			if err != nil {
				t.Fatal(err)
			}
			if !g.Expires.Equal(c.expires) {
				t.Errorf("expires at %v, want %v", g.Expires, c.expires)
			}
		})
	}
}
