package credentials

import (
	"context"
	"testing"

	"croft/urn"
)

// Who owns slices needs no credential for them, with a policy and without one,
// and has no rights elsewhere; others get nothing of it, nor does who only
// claims to speak for the owner.
func TestOwning(t *testing.T) {
	f := newFixture(t)
	policy, err := ParsePolicy("principal root = key "+string(keyID(t, f.root.key.Public()))+"\naggregate.describe <- root.member\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	const own, lent = "urn:publicid:IDN+example.org:im:u-alice+slice+x", "urn:publicid:IDN+example.org+slice+lent"
	for _, c := range []struct {
		name     string
		who      *entity
		speaking string
		call     Call
		target   string
		may      bool
	}{
		{"her own", f.alice, "", Describe, own, true},
		{"her own, everything", f.alice, "", Allocate, own, true},
		{"lent", f.alice, "", Delete, lent, true},
		{"lent, for longer", f.alice, "", Renew, lent, false},
		{"lent, more of it", f.alice, "", Allocate, lent, false},
		{"below her authority", f.alice, "", Describe, "urn:publicid:IDN+example.org:im:u-alice2+slice+x", false},
		{"another's", f.alice, "", Describe, "urn:publicid:IDN+example.org:im:u-bob+slice+x", false},
		{"the site's", f.alice, "", Describe, "urn:publicid:IDN+example.org+slice+x", false},
		{"by another", f.bob, "", Describe, own, false},
		{"by who claims to speak for her", f.tool, aliceURN, Describe, own, false},
		{"no slice", f.alice, "", ListResources, "", false},
	} {
		for with, p := range map[string]*Policy{"no policy": nil, "policy": policy} {
			t.Run(c.name+", "+with, func(t *testing.T) {
				v := NewVerifier(f.trust, p)
				v.Owning(func(member urn.URN) []LocalRight {
					if !member.Equal(urn.MustParse(aliceURN)) {
						return nil
					}
					return []LocalRight{{SliceAuthority("example.org:im:u-alice"), []string{All}}, {urn.MustParse(lent), Using()}}
				})
				presented := Presented{}
				var target urn.URN
				if c.speaking != "" {
					presented.SpeakingFor = urn.MustParse(c.speaking)
				}
				if c.target != "" {
					target = urn.MustParse(c.target)
				}
				principal, err := v.Verify(context.Background(), f.caller(t, c.who), presented)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := principal.May(c.call, target); (err == nil) != c.may {
					t.Errorf("%v", err)
				}
			})
		}
	}
}
