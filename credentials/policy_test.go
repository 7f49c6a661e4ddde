package credentials

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/urn"
)

func TestPolicy(t *testing.T) {
	f := newFixture(t)
	id := func(e *entity) string { return string(keyID(t, e.key.Public())) }
	soon, sooner := f.now.Add(time.Hour).Truncate(time.Second), f.now.Add(time.Minute).Truncate(time.Second)
	slice := sfa(f.sign(t, f.root, f.alice, f.slice, expires(soon))).Credentials[0]
	member := f.abac(t, f.proj, sooner, rt0Element(id(f.proj)+".member", id(f.alice)))
	linked := f.abac(t, f.root, soon, rt0Element(id(f.root)+".project", id(f.proj)))
	spoken := f.abac(t, f.alice, soon, rt0Element(id(f.alice)+".speaks_for_"+id(f.alice), id(f.tool)))
	forged := f.abac(t, f.bob, soon, rt0Element(id(f.bob)+".member", id(f.bob)))
	principals := "principal proj = key " + strings.ToUpper(id(f.proj)) + "\nprincipal root = certificate \"root.pem\" # by its certificate\n"

	for _, c := range []struct {
		name        string
		policy      string
		who         *entity
		credentials []Credential
		call        Call
		expires     time.Time // zero: refused
		says        string
	}{
		{"nothing said: the SFA's rule", "aggregate.shutdown <- proj.member", f.alice, []Credential{slice}, Allocate, soon, ""},
		{"a role instead of an SFA credential", "aggregate.Allocate <- proj.member", f.alice, []Credential{member}, Allocate, sooner, ""},
		{"a role missing", "aggregate.Allocate <- proj.member", f.alice, []Credential{slice}, Allocate, time.Time{}, "policy asks for aggregate.allocate <- " + id(f.proj) + ".member"},
		{"both", "aggregate.allocate <- sfa.allocate & proj.member", f.alice, []Credential{slice, member}, Allocate, sooner, ""},
		{"both, one missing", "aggregate.allocate <- sfa.allocate & proj.member", f.alice, []Credential{member}, Allocate, time.Time{}, "states a role"},
		{"both, the other missing", "aggregate.allocate <- sfa.allocate & proj.member", f.alice, []Credential{slice}, Allocate, time.Time{}, "policy asks for"},
		{"either", "aggregate.allocate <- sfa.any\naggregate.allocate <- proj.member", f.alice, []Credential{slice, member}, Allocate, soon, ""},
		{"any call", "aggregate.any <- proj.member", f.alice, []Credential{member}, Shutdown, sooner, ""},
		{"a link", "aggregate.any <- root.project.member", f.alice, []Credential{member, linked}, Delete, sooner, ""},
		{"a link without its first part", "aggregate.any <- root.project.member", f.alice, []Credential{member}, Delete, time.Time{}, "policy asks for"},
		{"a role of the aggregate's own", "aggregate.trusted <- proj.member\naggregate.any <- aggregate.trusted", f.alice, []Credential{member}, Delete, sooner, ""},
		{"a member's key", "principal alice = key " + id(f.alice) + "\naggregate.Shutdown <- alice", f.alice, nil, Shutdown, f.alice.cert.NotAfter, ""},
		{"another's key", "principal alice = key " + id(f.alice) + "\naggregate.Shutdown <- alice", f.bob, nil, Shutdown, time.Time{}, "policy asks for"},
		{"users of an authority", `aggregate.any <- sfa.any & "example.org".user`, f.alice, []Credential{slice}, Allocate, soon, ""},
		{"users of another", `aggregate.any <- sfa.any & "example.org:proj".user`, f.alice, []Credential{slice}, Allocate, time.Time{}, "policy asks for"},
		{"slices of a project", `aggregate.any <- sfa.any & "Example.org:proj".slice`, f.alice, []Credential{slice}, Allocate, soon, ""},
		{"slices of another", `aggregate.any <- sfa.any & "example.org:other".slice`, f.alice, []Credential{slice}, Allocate, time.Time{}, "policy asks for"},
		{"a forged role", "aggregate.any <- proj.member", f.bob, []Credential{forged}, Allocate, time.Time{}, "policy asks for"},
		{"somebody else's role", "aggregate.any <- proj.member", f.bob, []Credential{member}, Allocate, time.Time{}, "policy asks for"},
		{"a role of whom the tool speaks for", "aggregate.any <- proj.member", f.tool, []Credential{spoken, member}, Allocate, sooner, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(f.dir, "policy.rt0"), []byte(principals+c.policy+"\n"))
			policy, err := ReadPolicy(path)
			if err != nil {
				t.Fatal(err)
			}
			p := Presented{Credentials: c.credentials}
			if c.who == f.tool {
				p.SpeakingFor = urn.MustParse(aliceURN)
			}
			principal, err := NewVerifier(f.trust, policy).Verify(context.Background(), f.caller(t, c.who), p)
			if err != nil {
				t.Fatal(err)
			}
			g, err := principal.May(c.call, urn.MustParse(sliceURN))
			if c.expires.IsZero() {
				wantRefusal(t, err, c.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !g.Expires.Equal(c.expires) {
				t.Errorf("expires at %v, want %v", g.Expires, c.expires)
			}
			if len(c.credentials) > 0 && g.Credential.Digest == "" {
				t.Error("the grant does not say by which credential")
			}
		})
	}
}

func TestPolicyErrors(t *testing.T) {
	none := func(string) ([]byte, error) { return nil, os.ErrNotExist }
	for _, c := range []struct{ name, text, says string }{
		{"no arrow", "aggregate.any sfa.any", "line 1"},
		{"unknown principal", "\n\naggregate.any <- lab.member", "line 3: \"lab.member\": no principal lab"},
		{"a call misspelt", "aggregate.Alocate <- sfa.any", "aggregate.Alocate is no call"},
		{"sfa's role misspelt", "aggregate.any <- sfa.alocate", "sfa has the roles"},
		{"a role of sfa's", "sfa.allocate <- sfa.any", "only roles of aggregate"},
		{"a head of three parts", "aggregate.a.b <- sfa.any", "only roles of aggregate"},
		{"four parts", "aggregate.any <- aggregate.a.b.c", "want PRINCIPAL"},
		{"an empty term", "aggregate.any <- sfa.any &", "want PRINCIPAL"},
		{"a short key", "principal x = key abcd", "40 hex digits"},
		{"a key that is none", "principal x = hash abcd", "want key or certificate"},
		{"a certificate that is not there", `principal x = certificate "x.pem"`, "not exist"},
		{"declared twice", "principal sfa = key " + strings.Repeat("a", 40), "there already"},
		{"an authority's role", `aggregate.any <- "example.org".admin`, "want \"AUTHORITY\".user"},
		{"an authority not quoted", `aggregate.any <- example.org.user`, "no principal example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParsePolicy(c.text, none)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q in it", err, c.says)
			}
		})
	}
	if _, err := ReadPolicy(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func ExampleParsePolicy() {
	_, err := ParsePolicy(`
principal lab = key 4ba5c8c1a0d8c4c3a1b6e0a3f3f1d2a9c7b5e4d0
aggregate.Allocate <- sfa.Allocate & lab.member
aggregate.Shutdwon <- lab.operator
`, os.ReadFile)
	fmt.Println(err)
	// Output:
	// line 4: aggregate.Shutdwon is no call, and no other line uses it; the calls are [ListResources Describe Status Allocate Provision PerformOperationalAction Renew Delete Update Cancel Shutdown CreateSliver SliverStatus RenewSliver DeleteSliver], any
}
