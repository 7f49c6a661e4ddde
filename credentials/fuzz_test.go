package credentials

import (
	"os"
	"reflect"
	"testing"
)

// However a credential is changed, it says what was signed, or nothing.
func FuzzCredential(f *testing.F) {
	x := newFixture(f)
	slice := x.sign(f, x.root, x.alice, x.slice)
	seeds := []string{slice, x.sign(f, x.proj, x.alice, x.slice, func(i *Issue) { i.Exclusive = true }),
		x.delegate(f, slice, x.alice, x.bob), x.speaksFor(f, x.alice, x.tool)}
	a := x.trust.current()
	said := make([]*verified, len(seeds))
	for i, seed := range seeds {
		f.Add(i, 0, 0, []byte(nil))
		var err error
		if said[i], err = x.trust.read(a, seed); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, seed, from, to int, put []byte) {
		// The keys differ from run to run, so what is fuzzed is the change.
		if seed < 0 || seed >= len(seeds) {
			return
		}
		doc := seeds[seed]
		if from < 0 || to < from || to > len(doc) {
			return
		}
		got, err := x.trust.read(a, doc[:from]+string(put)+doc[to:])
		if err != nil {
			return
		}
		got.id.Digest, got.until = said[seed].id.Digest, said[seed].until
		if !reflect.DeepEqual(got, said[seed]) {
			t.Fatalf("%q at %d to %d: says %+v", put, from, to, got)
		}
	})
}

func FuzzParsePolicy(f *testing.F) {
	f.Add("principal a = key 0123456789012345678901234567890123456789\naggregate.Allocate <- sfa.any & a.b.c # x\n")
	f.Add("aggregate.any <- \"example.org\".user\naggregate.x <- aggregate.x")
	f.Add("principal b = certificate \"x.pem\"")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy(text, func(string) ([]byte, error) { return nil, os.ErrNotExist })
		if err != nil {
			return
		}
		for _, s := range p.statements {
			if s.Head.Principal != selfPrincipal || s.Head.Name == "" || len(s.Body) == 0 {
				t.Fatalf("%q reads as %v", text, s)
			}
		}
	})
}
