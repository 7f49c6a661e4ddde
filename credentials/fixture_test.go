package credentials

import (
	"context"
	"crypto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/urn"
)

// fixture is a small federation: a root for example.org, an authority for its
// project, members, slices, and a trust folder with the root in it.
type fixture struct {
	root, proj          *entity
	alice, bob, carol   *entity
	tool                *entity
	slice, other, outer *entity
	dir                 string
	trust               *Trust
	now                 time.Time
}

const (
	sliceURN = "urn:publicid:IDN+example.org:proj+slice+exp"
	aliceURN = "urn:publicid:IDN+example.org+user+alice"
)

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{now: time.Now(), dir: t.TempDir()}
	f.root = issue(t, nil, spec{urn: "urn:publicid:IDN+example.org+authority+sa", ca: true})
	f.proj = issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org:proj+authority+sa", ca: true})
	f.alice = issue(t, f.root, spec{urn: aliceURN, more: []string{"urn:uuid:33178d77-a930-40b1-9469-3aae08755743"}})
	f.bob = issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+user+bob"})
	f.carol = issue(t, f.proj, spec{urn: "urn:publicid:IDN+example.org:proj+user+carol"})
	f.tool = issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+tool+portal"})
	f.slice = issue(t, f.root, spec{urn: sliceURN})
	f.other = issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org:proj+slice+other"})
	f.outer = issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+slice+outer"})
	writeFile(t, filepath.Join(f.dir, "root.pem"), f.root.chain)
	f.open(t, TrustOptions{})
	return f
}

// open opens the trust folder, looked at on every call.
func (f *fixture) open(t testing.TB, o TrustOptions) {
	t.Helper()
	o.CheckEvery = time.Nanosecond
	o.Now = func() time.Time { f.now = f.now.Add(time.Microsecond); return f.now }
	var err error
	if f.trust, err = OpenTrust(f.dir, o); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) caller(t testing.TB, e *entity) *Caller {
	t.Helper()
	c, err := f.trust.Identify(e.certificates(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sign makes a credential with all rights for an hour, changed by edits.
func (f *fixture) sign(t testing.TB, by, owner, target *entity, edits ...func(*Issue)) string {
	t.Helper()
	i := Issue{Issuer: by.issuer(), Owner: owner.chain, Target: target.chain,
		Privileges: []Privilege{{"*", true}}, Expires: f.now.Add(time.Hour)}
	for _, edit := range edits {
		edit(&i)
	}
	signed, err := Sign(i)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

func (f *fixture) delegate(t testing.TB, parent string, by, owner *entity, edits ...func(*Issue)) string {
	t.Helper()
	i := Issue{Issuer: by.issuer(), Owner: owner.chain, Privileges: []Privilege{{"*", true}}, Expires: f.now.Add(time.Minute)}
	for _, edit := range edits {
		edit(&i)
	}
	signed, err := Delegate([]byte(parent), i)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

func rights(names ...string) func(*Issue) {
	return func(i *Issue) {
		i.Privileges = nil
		for _, name := range names {
			i.Privileges = append(i.Privileges, Privilege{Name: name})
		}
	}
}

func delegatable(names ...string) func(*Issue) {
	return func(i *Issue) {
		i.Privileges = nil
		for _, name := range names {
			i.Privileges = append(i.Privileges, Privilege{Name: name, Delegate: true})
		}
	}
}

func expires(at time.Time) func(*Issue) { return func(i *Issue) { i.Expires = at } }

func sfa(values ...string) Presented {
	var p Presented
	for _, v := range values {
		p.Credentials = append(p.Credentials, Credential{Type: "geni_sfa", Version: "3", Value: v})
	}
	return p
}

// may verifies and asks.
func (f *fixture) may(t testing.TB, e *entity, p Presented, call Call, target string, slivers ...string) (Grant, error) {
	t.Helper()
	principal, err := NewVerifier(f.trust, nil).Verify(context.Background(), f.caller(t, e), p)
	if err != nil {
		t.Fatal(err)
	}
	var on urn.URN
	if target != "" {
		on = urn.MustParse(target)
	}
	var all []urn.URN
	for _, s := range slivers {
		all = append(all, urn.MustParse(s))
	}
	return principal.May(call, on, all...)
}

// wantRefusal checks that an error is a refusal which says all of these.
func wantRefusal(t testing.TB, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("granted")
	}
	if _, ok := err.(*Refusal); !ok {
		t.Fatalf("%T is no refusal: %v", err, err)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Fatalf("the refusal does not say %q:\n%v", text, err)
		}
	}
}

func keyID(t testing.TB, key crypto.PublicKey) KeyID {
	t.Helper()
	id, err := KeyIDOf(key)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
