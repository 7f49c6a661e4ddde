package credentials

import (
	"strings"
	"testing"
	"time"

	"croft/urn"
)

// rt0Element writes a statement; terms are "KEY", "KEY.role" or
// "KEY.link.role".
func rt0Element(head string, tails ...string) string {
	part := func(name, term string) string {
		p := strings.Split(term, ".")
		s := "<" + name + "><ABACprincipal><keyid>" + p[0] + "</keyid><mnemonic>somebody</mnemonic></ABACprincipal>"
		switch len(p) {
		case 2:
			s += "<role>" + p[1] + "</role>"
		case 3:
			s += "<role>" + p[2] + "</role><linking_role>" + p[1] + "</linking_role>"
		}
		return s + "</" + name + ">"
	}
	s := "<abac><rt0><version>1.1</version>" + part("head", head)
	for _, tail := range tails {
		s += part("tail", tail)
	}
	return s + "</rt0></abac>"
}

// abac signs a statement, in the shape that GENI's tools and jFed write.
func (f *fixture) abac(t testing.TB, by *entity, expires time.Time, statement string) Credential {
	t.Helper()
	doc := `<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<signed-credential xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.geni.net/resources/credential/2/credential.xsd">
<credential xml:id="ref0"><type>abac</type><serial/><owner_gid/><target_gid/><uuid/><expires>` +
		expires.UTC().Format(time.RFC3339) + "</expires>" + statement + "</credential><signatures>SIGNATURE</signatures></signed-credential>"
	return Credential{"geni_abac", "1", completed(t, by, doc, "ref0", "")}
}

func TestSpeaksFor(t *testing.T) {
	f := newFixture(t)
	alice, bob, tool := string(keyID(t, f.alice.key.Public())), string(keyID(t, f.bob.key.Public())), string(keyID(t, f.tool.key.Public()))
	soon := f.now.Add(time.Hour)
	slice := Credential{"geni_sfa", "3", f.sign(t, f.root, f.alice, f.slice)}
	good := f.abac(t, f.alice, soon, rt0Element(alice+".speaks_for_"+alice, tool))
	asString := good
	asString.Type, asString.Version = "geni_sfa", "" // as version 2 of the AM API sends it

	for _, c := range []struct {
		name       string
		who        *entity
		speaking   string
		credential Credential
		says       string // "" if granted
	}{
		{"a tool for alice", f.tool, aliceURN, good, ""},
		{"as a bare string", f.tool, aliceURN, asString, ""},
		{"of an unknown type", f.tool, aliceURN, Credential{"geni_unknown", "", good.Value}, ""},
		{"made by Sign", f.tool, aliceURN, Credential{"geni_abac", "1", f.speaksFor(t, f.alice, f.tool)}, ""},
		{"upper-case key ids", f.tool, aliceURN, f.abac(t, f.alice, soon, rt0Element(strings.ToUpper(alice)+".speaks_for_"+alice, strings.ToUpper(tool))), ""},
		{"without the option", f.tool, "", good, "not to you"},
		{"for herself", f.alice, aliceURN, good, ""},
		{"another tool", f.bob, aliceURN, good, "speaks for it"},
		{"another user", f.tool, "urn:publicid:IDN+example.org+user+bob", good, "speaks for it"},
		{"a slice", f.tool, sliceURN, good, "is no user"},
		{"signed by another user", f.tool, aliceURN, f.abac(t, f.bob, soon, rt0Element(bob+".speaks_for_"+bob, tool)), "speaks for it"},
		{"signed by the tool", f.tool, aliceURN, f.abac(t, f.tool, soon, rt0Element(tool+".speaks_for_"+tool, tool)), "speaks for it"},
		{"about another's role", f.tool, aliceURN, f.abac(t, f.bob, soon, rt0Element(alice+".speaks_for_"+alice, tool)), "but is signed by"},
		{"another role", f.tool, aliceURN, f.abac(t, f.alice, soon, rt0Element(alice+".friend", tool)), "speaks for it"},
		{"the role of another's name", f.tool, aliceURN, f.abac(t, f.alice, soon, rt0Element(alice+".speaks_for_"+bob, tool)), "speaks for it"},
		{"two tails", f.tool, aliceURN, f.abac(t, f.alice, soon, rt0Element(alice+".speaks_for_"+alice, tool, bob)), "speaks for it"},
		{"a role of the tool's", f.tool, aliceURN, f.abac(t, f.alice, soon, rt0Element(alice+".speaks_for_"+alice, tool+".friend")), "speaks for it"},
		{"no tail", f.tool, aliceURN, f.abac(t, f.alice, soon, rt0Element(alice+".speaks_for_"+alice)), "without head or tail"},
		{"two heads", f.tool, aliceURN, f.abac(t, f.alice, soon, strings.Replace(rt0Element(alice+".speaks_for_"+alice, tool), "</head>", "</head><head><ABACprincipal><keyid>"+alice+"</keyid></ABACprincipal><role>x</role></head>", 1)), "one head"},
		{"two statements", f.tool, aliceURN, f.abac(t, f.alice, soon, strings.Replace(rt0Element(alice+".speaks_for_"+alice, tool), "</rt0>", "</rt0><rt0/>", 1)), "want one <rt0>"},
		{"a comment in a key id", f.tool, aliceURN, f.abac(t, f.alice, soon, strings.Replace(rt0Element(alice+".speaks_for_"+alice, tool), tool, tool[:20]+"<!-- -->"+tool[20:], 1)), "markup in a value"},
		{"expired", f.tool, aliceURN, f.abac(t, f.alice, f.now.Add(-time.Second), rt0Element(alice+".speaks_for_"+alice, tool)), "expired"},
		{"tampered", f.tool, aliceURN, Credential{"geni_abac", "1", strings.Replace(f.abac(t, f.alice, soon, rt0Element(alice+".speaks_for_"+alice, bob)).Value, bob, tool, 1)}, "digest"},
		{"by a user that nobody knows", f.tool, aliceURN, f.abac(t, issue(t, nil, spec{urn: aliceURN, key: f.alice.key}), soon, rt0Element(alice+".speaks_for_"+alice, tool)), "signed by itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Presented{Credentials: []Credential{slice, c.credential}}
			if c.speaking != "" {
				p.SpeakingFor = urn.MustParse(c.speaking)
			}
			g, err := f.may(t, c.who, p, Allocate, sliceURN)
			if c.says != "" {
				wantRefusal(t, err, c.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.who != f.alice && (len(g.Proof) != 2 || g.Proof[1].Kind != "abac" || g.Proof[1].Signer.String() != aliceURN) {
				t.Errorf("proof %v", g.Proof)
			}
			if g.Credential.Kind != "privilege" || g.Credential.Owner.String() != aliceURN {
				t.Errorf("credential %v", g.Credential)
			}
		})
	}

	t.Run("the tool's own rights do not count", func(t *testing.T) {
		p := Presented{Credentials: []Credential{{"geni_sfa", "3", f.sign(t, f.root, f.tool, f.slice)}, good}, SpeakingFor: urn.MustParse(aliceURN)}
		_, err := f.may(t, f.tool, p, Allocate, sliceURN)
		wantRefusal(t, err, aliceURN+" may not call Allocate", "to urn:publicid:IDN+example.org+tool+portal, not to you ("+aliceURN+")")
	})
	t.Run("no credential at all", func(t *testing.T) {
		_, err := f.may(t, f.tool, Presented{SpeakingFor: urn.MustParse(aliceURN)}, ListResources, "")
		wantRefusal(t, err, "geni_speaking_for names "+aliceURN)
	})
}

func (f *fixture) speaksFor(t testing.TB, user, tool *entity) string {
	t.Helper()
	statement, err := SpeaksFor(user.certificates(t)[0], tool.certificates(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	signed, err := SignStatement(user.issuer(), statement, f.now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}
