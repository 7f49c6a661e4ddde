package credentials

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"croft/credentials/xmldsig"
	"croft/urn"
)

// credentialElement finds the outermost credential element of a document.
var credentialElement = regexp.MustCompile(`(?s)<credential .*</credential>`)

// evil returns the credential with another owner, rights and id.
func evil(f *fixture, credential, id string) string {
	changed := strings.ReplaceAll(credential, string(f.alice.chain), string(f.bob.chain))
	changed = strings.ReplaceAll(changed, "user+alice", "user+bob")
	return regexp.MustCompile(`xml:id="[^"]*"`).ReplaceAllString(changed, id)
}

// completed signs the templates of a document with a key and puts a KeyInfo
// of choice into it.
func completed(t testing.TB, by *entity, document, id, keyInfo string) string {
	t.Helper()
	s := xmldsig.Signer{Key: by.key}
	for _, c := range by.certificates(t) {
		s.Certificates = append(s.Certificates, c.DER)
	}
	template, err := s.Template("Sig_"+id, id)
	if err != nil {
		t.Fatal(err)
	}
	if keyInfo != "" {
		template = regexp.MustCompile(`(?s)<KeyInfo>.*</KeyInfo>`).ReplaceAllLiteralString(template, "<KeyInfo>"+keyInfo+"</KeyInfo>")
	}
	out, err := s.Complete(rand.Reader, []byte(strings.Replace(document, "SIGNATURE", template, 1)), "Sig_"+id)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func x509Data(t testing.TB, e *entity) string {
	var b strings.Builder
	for _, c := range e.certificates(t) {
		b.WriteString("<X509Certificate>" + base64.StdEncoding.EncodeToString(c.DER) + "</X509Certificate>")
	}
	return "<X509Data>" + b.String() + "</X509Data>"
}

func keyValue(key *rsa.PublicKey) string {
	return "<KeyValue><RSAKeyValue><Modulus>" + base64.StdEncoding.EncodeToString(key.N.Bytes()) + "</Modulus><Exponent>" +
		base64.StdEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()) + "</Exponent></RSAKeyValue></KeyValue>"
}

// unsigned writes a credential of the fixture's shape with SIGNATURE where
// its signature belongs.
func unsigned(f *fixture, owner, target *entity, more string) string {
	return `<signed-credential><credential xml:id="ref0"><type>privilege</type><serial>1</serial>` +
		"<owner_gid>" + string(owner.chain) + "</owner_gid><target_gid>" + string(target.chain) + "</target_gid>" + more +
		"<expires>" + f.now.Add(time.Hour).UTC().Format(time.RFC3339) + "</expires>" +
		"<privileges><privilege><name>*</name><can_delegate>1</can_delegate></privilege></privileges></credential>" +
		"<signatures>SIGNATURE</signatures></signed-credential>"
}

// Whoever is not given a right does not get it: bob asks for alice's slice.
func TestAttacks(t *testing.T) {
	f := newFixture(t)
	good := f.sign(t, f.root, f.alice, f.slice)
	exclusive := f.sign(t, f.root, f.alice, f.slice, func(i *Issue) { i.Exclusive = true })
	cred := credentialElement.FindString(good)
	id := regexp.MustCompile(`xml:id="(ref[^"]*)"`).FindStringSubmatch(good)[1]
	ca := issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+user+mallory", ca: true})
	madeByUser := issue(t, f.bob, spec{urn: sliceURN})
	madeByCA := issue(t, ca, spec{urn: sliceURN})
	bobBySelf := issue(t, nil, spec{urn: "urn:publicid:IDN+example.org+authority+sa", ca: true})
	selfMade := issue(t, bobBySelf, spec{urn: sliceURN})
	parent := f.sign(t, f.root, f.alice, f.slice)
	twoRights := f.sign(t, f.root, f.alice, f.slice, delegatable("info"))
	undelegatable := f.sign(t, f.root, f.alice, f.slice, rights("*"))

	for _, c := range []struct {
		name  string
		value string
		says  string
	}{
		// Signature wrapping.
		{"an unsigned credential first",
			strings.Replace(good, cred, evil(f, cred, `xml:id="evil"`)+cred, 1), "want one credential"},
		{"the original after it",
			strings.Replace(good, cred, cred+evil(f, cred, `xml:id="evil"`), 1), "want one credential"},
		{"the original among the signatures",
			strings.Replace(strings.Replace(good, cred, evil(f, cred, `xml:id="evil"`), 1), "<signatures>", "<signatures>"+cred, 1), "no signature over"},
		{"the original in the signature",
			strings.Replace(strings.Replace(good, cred, evil(f, cred, `xml:id="evil"`), 1), "</KeyInfo>", "</KeyInfo><Object>"+strings.Replace(cred, "<credential", `<credential xmlns=""`, 1)+"</Object>", 1), "4 elements"},
		{"the original within a new one",
			strings.Replace(good, cred, strings.Replace(evil(f, cred, `xml:id="evil"`), "</credential>", cred+"</credential>", 1), 1), "no signature over"},
		{"the original as the parent of a new one",
			strings.Replace(good, cred, strings.Replace(evil(f, cred, `xml:id="evil"`), "</credential>", "<parent>"+cred+"</parent></credential>", 1), 1), "no signature over"},
		{"the original in its extensions",
			strings.Replace(good, cred, strings.Replace(evil(f, cred, `xml:id="evil"`), "</credential>", "<extensions>"+cred+"</extensions></credential>", 1), 1), "no signature over"},
		{"both with one id",
			strings.Replace(strings.Replace(good, cred, evil(f, cred, `xml:id="`+id+`"`), 1), "<signatures>", "<signatures>"+cred, 1), "duplicate id"},
		{"the other id in another attribute",
			strings.Replace(strings.Replace(good, cred, evil(f, cred, `xml:id="evil" Id="`+id+`"`), 1), "<signatures>", "<signatures>"+cred, 1), "duplicate id"},
		{"no id", strings.Replace(good, `<credential xml:id="`+id+`"`, "<credential", 1), "no xml:id"},
		{"the original moved outside",
			"<wrapper>" + strings.TrimPrefix(good, `<?xml version="1.0" encoding="UTF-8"?>`) + "</wrapper>", "not a <signed-credential>"},
		{"two signed-credentials",
			`<signed-credential>` + evil(f, cred, `xml:id="evil"`) + `<signatures/>` + strings.TrimPrefix(good, `<?xml version="1.0" encoding="UTF-8"?>`) + "</signed-credential>", "want one credential"},
		{"the reference to the document",
			strings.Replace(good, `URI="#`+id+`"`, `URI=""`, 1), "only #ID"},
		{"the reference by XPointer",
			strings.Replace(good, `URI="#`+id+`"`, `URI="#xpointer(id('`+id+`'))"`, 1), "only #ID"},
		{"a second reference",
			regexp.MustCompile(`(?s)<Reference.*</Reference>`).ReplaceAllStringFunc(good, func(s string) string { return s + s }), "4 elements"},
		{"renamed under exclusive canonicalization",
			renamed(exclusive), "not a <signed-credential>"},
		{"renamed inside under exclusive canonicalization",
			strings.Replace(strings.Replace(exclusive, "<credential xml:id", `<x:credential xmlns:x="http://x" xml:id`, 1), "</credential>", "</x:credential>", 1), "want one credential"},

		// Keys.
		{"KeyValue alone", completed(t, f.bob, unsigned(f, f.bob, f.slice, ""), "ref0", keyValue(&f.bob.key.(*rsa.PrivateKey).PublicKey)), "never trusted"},
		{"KeyValue before the authority's certificate",
			completed(t, f.bob, unsigned(f, f.bob, f.slice, ""), "ref0", keyValue(&f.bob.key.(*rsa.PrivateKey).PublicKey)+x509Data(t, f.root)), "KeyValue"},
		{"KeyValue after the authority's certificate",
			completed(t, f.bob, unsigned(f, f.bob, f.slice, ""), "ref0", x509Data(t, f.root)+keyValue(&f.bob.key.(*rsa.PrivateKey).PublicKey)), "KeyValue"},
		{"the authority's certificate over bob's key",
			completed(t, f.bob, unsigned(f, f.bob, f.slice, ""), "ref0", x509Data(t, f.root)), "not made with the signer's key"},
		{"the authority's certificate beside bob's",
			completed(t, f.bob, unsigned(f, f.bob, f.slice, ""), "ref0", strings.Replace(x509Data(t, f.outer), "</X509Data>", strings.TrimPrefix(x509Data(t, f.bob), "<X509Data>"), 1)), "two certificates"},
		{"a key by name", completed(t, f.bob, unsigned(f, f.bob, f.slice, ""), "ref0", "<KeyName>x</KeyName>"), "KeyName"},
		{"a key from elsewhere", completed(t, f.bob, unsigned(f, f.bob, f.slice, ""), "ref0", `<RetrievalMethod URI="#x"/>`), "RetrievalMethod"},

		// Signers.
		{"signed by the user", f.sign(t, f.bob, f.bob, f.slice), "no authority"},
		{"signed by the slice", f.sign(t, f.slice, f.bob, f.slice), "no authority"},
		{"signed by a sub-authority over another name space", f.sign(t, f.proj, f.bob, f.outer), "no authority over"},
		{"signed by an authority of nobody", f.sign(t, bobBySelf, f.bob, f.slice), "signer"},
		{"signed by an authority made by a user",
			f.sign(t, issue(t, ca, spec{urn: "urn:publicid:IDN+example.org:proj+authority+sa", ca: true}), f.bob, f.slice), "issued by urn:publicid:IDN+example.org+user+mallory"},
		{"signed by an authority that a project made for its parent",
			f.sign(t, issue(t, f.proj, spec{urn: "urn:publicid:IDN+example.org+authority+sa", cn: "upstart", ca: true}), f.bob, f.slice), "an authority for other names"},
		{"the target's certificate made by a user", f.sign(t, f.root, f.bob, madeByUser), "target_gid"},
		{"the target's certificate made by a user's CA", f.sign(t, f.root, f.bob, madeByCA), "target_gid"},
		{"the target's certificate made by nobody", f.sign(t, f.root, f.bob, selfMade), "target_gid"},
		{"the owner's certificate made by nobody",
			f.sign(t, f.root, issue(t, bobBySelf, spec{urn: "urn:publicid:IDN+example.org+user+bob"}), f.slice), "owner_gid"},
		{"an expired signer",
			f.sign(t, issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+authority+sa", cn: "former", notBefore: time.Now().Add(-2 * time.Hour), notAfter: time.Now().Add(-time.Hour)}), f.bob, f.slice), "expired"},

		// Subjects and content.
		{"wrong owner", good, "not to you (urn:publicid:IDN+example.org+user+bob)"},
		{"wrong slice", f.sign(t, f.root, f.bob, f.other), "is for urn:publicid:IDN+example.org:proj+slice+other"},
		{"a user credential", f.sign(t, f.root, f.bob, f.bob), "is for urn:publicid:IDN+example.org+user+bob"},
		{"an authority for other slices",
			f.sign(t, f.root, f.bob, issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org:other+authority+sa"})), "is for"},
		{"an authority for members",
			f.sign(t, f.root, f.bob, issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+authority+ma"})), "is for"},
		{"too few rights", f.sign(t, f.root, f.bob, f.slice, rights("info", "resolve", "refresh", "bind")), "do not include Allocate"},
		{"rights of no meaning", f.sign(t, f.root, f.bob, f.slice, rights("everything", "**", "Allocate")), "do not include Allocate"},
		{"expired", f.sign(t, f.root, f.bob, f.slice, expires(f.now.Add(-time.Second))), "expired"},
		{"tampered expiry",
			regexp.MustCompile(`<expires>....`).ReplaceAllString(f.sign(t, f.root, f.bob, f.slice, expires(f.now.Add(-time.Hour))), "<expires>2099"), "digest"},
		{"tampered rights", strings.Replace(f.sign(t, f.root, f.bob, f.slice, rights("info")), ">info<", ">*<", 1), "digest"},
		{"tampered owner", strings.Replace(evil(f, good, `xml:id="`+id+`"`), `xmlns="http://www.w3.org/2000/09/xmldsig#" xml:id="`+id+`"`, `xmlns="http://www.w3.org/2000/09/xmldsig#"`, 1), "digest"},
		{"an owner beside the certificate", completed(t, f.root, unsigned(f, f.alice, f.slice, "<owner_urn>urn:publicid:IDN+example.org+user+bob</owner_urn>"), "ref0", ""), "owner_urn is"},
		{"a target beside the certificate", completed(t, f.root, unsigned(f, f.bob, f.other, "<target_urn>"+sliceURN+"</target_urn>"), "ref0", ""), "target_urn is"},
		{"a comment in an URN", completed(t, f.root, unsigned(f, f.bob, f.slice, "<owner_urn>urn:publicid:IDN+example.org+user+bob<!-- -->by</owner_urn>"), "ref0", ""), "markup in a value"},
		{"CDATA in an URN", completed(t, f.root, unsigned(f, f.bob, f.slice, "<owner_urn>urn:publicid:IDN+example.org+user+bob<![CDATA[by]]></owner_urn>"), "ref0", ""), "user+bobby"},
		{"an instruction in an URN", completed(t, f.root, unsigned(f, f.bob, f.slice, "<target_urn>"+sliceURN+"<?x?>2</target_urn>"), "ref0", ""), "markup in a value"},
		{"a comment put into a signed URN", strings.Replace(good, "user+alice</owner_urn>", "user+<!-- -->alice</owner_urn>", 1), "markup in a value"},
		{"an element in an URN", completed(t, f.root, unsigned(f, f.bob, f.slice, "<target_urn>"+sliceURN+"<b/></target_urn>"), "ref0", ""), "markup in a value"},
		{"two owners", completed(t, f.root, unsigned(f, f.bob, f.slice, "<owner_gid>"+string(f.alice.chain)+"</owner_gid>"), "ref0", ""), "a second <owner_gid>"},
		{"another type", completed(t, f.root, strings.Replace(unsigned(f, f.bob, f.slice, ""), ">privilege<", ">ticket<", 1), "ref0", ""), `the type "ticket"`},

		// Delegation.
		{"delegated by somebody else", f.delegate(t, parent, f.carol, f.bob), "is the owner of what is delegated"},
		{"delegated by the new owner", f.delegate(t, parent, f.bob, f.bob), "is the owner of what is delegated"},
		{"delegated although it is not delegatable", f.delegate(t, undelegatable, f.alice, f.bob), "passes on the privilege"},
		{"more rights than the parent's", f.delegate(t, twoRights, f.alice, f.bob), `passes on the privilege "*"`},
		{"longer than the parent", f.delegate(t, parent, f.alice, f.bob, expires(f.now.Add(2*time.Hour))), "after the credential that it was delegated from"},
		{"an expired parent",
			f.delegate(t, f.sign(t, f.root, f.alice, f.slice, expires(f.now.Add(-time.Minute))), f.alice, f.bob, expires(f.now.Add(time.Minute))), "does not count: expired"},
		{"a parent for another slice", f.delegate(t, f.sign(t, f.root, f.alice, f.other), f.alice, f.bob), "is for urn:publicid:IDN+example.org:proj+slice+other"},
		{"a parent signed by nobody", f.delegate(t, f.sign(t, bobBySelf, f.alice, f.slice), f.alice, f.bob), "does not count"},
		{"a parent signed by the user", f.delegate(t, f.sign(t, f.alice, f.alice, f.slice), f.alice, f.bob), "no authority"},
		{"a tampered parent", strings.Replace(f.delegate(t, twoRights, f.alice, f.bob, rights("info")), ">info<", ">embed<", 2), "digest"},
		{"without the parent's signature",
			regexp.MustCompile(`(?s)<signatures><Signature.*?</Signature>`).ReplaceAllString(f.delegate(t, parent, f.alice, f.bob), "<signatures>"), "does not count: no signature"},
		{"the parent's rights after the child's were taken", f.delegate(t, f.delegate(t, parent, f.alice, f.carol, rights("info")), f.carol, f.bob, rights("info")), "passes on the privilege"},
		{"delegated too often", tooOften(t, f), "more than 10 times"},

		// Documents.
		{"a DTD", strings.Replace(good, "<signed-credential", "<!DOCTYPE signed-credential><signed-credential", 1), "document type"},
		{"an entity", strings.Replace(strings.Replace(good, "<signed-credential", `<!DOCTYPE x [<!ENTITY e "*">]><signed-credential`, 1), ">*<", ">&e;<", 1), "document type"},
		{"a billion laughs", `<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><signed-credential>&b;</signed-credential>`, "document type"},
		{"an unknown entity", strings.Replace(good, ">*<", ">&e;<", 1), "entity"},
		{"a million elements", strings.Replace(good, "</credential>", strings.Repeat("<a/>", 1_000_000)+"</credential>", 1), "limit"},
		{"many elements", strings.Replace(good, "</credential>", strings.Repeat("<a/>", 100_000)+"</credential>", 1), "limit"},
		{"deep elements", strings.Replace(good, "</credential>", strings.Repeat("<a>", 1000)+strings.Repeat("</a>", 1000)+"</credential>", 1), "limit"},
		{"a certificate bomb in the signature",
			strings.Replace(good, "<X509Data>", "<X509Data>"+strings.Repeat("<X509Certificate>AAAA</X509Certificate>", 1000), 1), "more than 16 certificates"},
		{"a certificate bomb in a gid",
			completed(t, f.root, strings.Replace(unsigned(f, f.bob, f.slice, ""), "</owner_gid>", strings.Repeat("-----BEGIN CERTIFICATE-----AAAA-----END CERTIFICATE-----", 1000)+"</owner_gid>", 1), "ref0", ""), "more than 16 certificates"},
		{"a huge certificate",
			strings.Replace(good, "<X509Data>", "<X509Data><X509Certificate>"+strings.Repeat("MIIC", 100_000)+"</X509Certificate>", 1), "signer"},
		{"many signatures", strings.Replace(good, "</signatures>", strings.Repeat("<Signature xmlns='"+xmldsig.Namespace+"'/>", 100)+"</signatures>", 1), "at most 22"},
		{"no XML", "-----BEGIN CERTIFICATE-----", "not well-formed"},
		{"nothing", "", "empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			started := time.Now()
			_, err := f.may(t, f.bob, sfa(c.value), Allocate, sliceURN)
			wantRefusal(t, err, "may not call Allocate", "credential 1: ", c.says)
			if len(err.Error()) > 2000 {
				t.Errorf("the refusal has %d bytes", len(err.Error()))
			}
			t.Logf("%v after %v", err, time.Since(started).Round(time.Millisecond))
		})
	}
}

// renamed puts the elements of an exclusively canonicalized credential into a
// namespace by a declaration outside of what is signed.
func renamed(doc string) string {
	return strings.Replace(doc, "<signed-credential ", `<signed-credential xmlns="http://example.org/x" `, 1)
}

func tooOften(t testing.TB, f *fixture) string {
	doc := f.sign(t, f.root, f.alice, f.slice)
	from, to := f.alice, f.bob
	for range 12 {
		doc = f.delegate(t, doc, from, to)
		from, to = to, from
	}
	if from != f.bob {
		doc = f.delegate(t, doc, from, f.bob)
	}
	return doc
}

// A delegated credential whose target was changed on the way.
func TestDelegationKeepsItsTarget(t *testing.T) {
	f := newFixture(t)
	parent := f.sign(t, f.root, f.alice, f.other)
	child := f.delegate(t, parent, f.alice, f.bob)
	// The same with the slice's certificate, signed anew by alice.
	body := credentialElement.FindString(child)
	at := strings.Index(body, "<parent>")
	swapped := strings.ReplaceAll(strings.ReplaceAll(body[:at], string(f.other.chain), string(f.slice.chain)), "slice+other", "slice+exp") + body[at:]
	id := regexp.MustCompile(`xml:id="(ref[^"]*)"`).FindStringSubmatch(body)[1]
	doc := strings.Replace(child, body, swapped, 1)
	own := regexp.MustCompile(`(?s)<Signature xmlns="[^"]*" xml:id="Sig_` + id + `">.*?</Signature>`)
	doc = completed(t, f.alice, own.ReplaceAllLiteralString(doc, "SIGNATURE"), id, "")
	_, err := f.may(t, f.bob, sfa(doc), Allocate, sliceURN)
	wantRefusal(t, err, "from a credential for urn:publicid:IDN+example.org:proj+slice+other")
}

// Roots speak for their own names only.
func TestRootsAreLimited(t *testing.T) {
	f := newFixture(t)
	other := issue(t, nil, spec{urn: "urn:publicid:IDN+other.net+authority+sa", ca: true})
	plain := issue(t, nil, spec{cn: "A corporation's CA", ca: true})
	between := issue(t, plain, spec{urn: "urn:publicid:IDN+corp.example+authority+sa", ca: true})
	for name, e := range map[string]*entity{"other.pem": other, "plain.pem": plain} {
		writeFile(t, f.dir+"/"+name, e.chain)
	}
	impostor := issue(t, other, spec{urn: aliceURN})
	corporate := issue(t, between, spec{urn: "urn:publicid:IDN+corp.example+user+eve"})
	corporateSlice := issue(t, between, spec{urn: "urn:publicid:IDN+corp.example+slice+s"})

	t.Run("a user of another federation", func(t *testing.T) {
		if c := f.caller(t, issue(t, other, spec{urn: "urn:publicid:IDN+other.net:lab+user+dave"})); c.URN.Name != "dave" {
			t.Fatal(c.URN)
		}
	})
	t.Run("an impostor", func(t *testing.T) {
		_, err := f.trust.Identify(impostor.certificates(t))
		wantRefusal(t, err, aliceURN, "speaks for other.net")
	})
	t.Run("a credential for names of another", func(t *testing.T) {
		_, err := f.may(t, f.alice, sfa(f.sign(t, other, f.alice, f.slice)), Allocate, sliceURN)
		wantRefusal(t, err, "no authority over")
	})
	t.Run("another's authority for our names", func(t *testing.T) {
		fake := issue(t, other, spec{urn: "urn:publicid:IDN+example.org+authority+sa", ca: true})
		_, err := f.may(t, f.alice, sfa(f.sign(t, fake, f.alice, f.slice)), Allocate, sliceURN)
		wantRefusal(t, err, "speaks for other.net")
	})
	t.Run("a slice certified by another", func(t *testing.T) {
		_, err := f.may(t, f.alice, sfa(f.sign(t, f.root, f.alice, issue(t, other, spec{urn: sliceURN}))), Allocate, sliceURN)
		wantRefusal(t, err, "target_gid", "speaks for other.net")
	})
	t.Run("a root without a name", func(t *testing.T) {
		_, err := f.trust.Identify(corporate.certificates(t))
		wantRefusal(t, err, "speaks for no authority", "limits")
	})
	f.open(t, TrustOptions{Limits: map[string][]urn.Authority{"plain.pem": {"corp.example"}, "other.pem": {"other.net", "example.org:proj"}}})
	t.Run("a root that the operator names", func(t *testing.T) {
		g, err := f.may(t, corporate, sfa(f.sign(t, between, corporate, corporateSlice)), Allocate, "urn:publicid:IDN+corp.example+slice+s")
		if err != nil || g.Credential.Signer.Authority != "corp.example" {
			t.Fatal(g, err)
		}
	})
	t.Run("a root that the operator gives more", func(t *testing.T) {
		if _, err := f.trust.Identify(issue(t, other, spec{urn: "urn:publicid:IDN+example.org:proj+user+p"}).certificates(t)); err != nil {
			t.Fatal(err)
		}
		_, err := f.trust.Identify(impostor.certificates(t))
		wantRefusal(t, err, "speaks for other.net, example.org:proj")
	})
	f.open(t, TrustOptions{Limits: map[string][]urn.Authority{"plain.pem": {AnyAuthority}}})
	t.Run("a root for everything", func(t *testing.T) {
		if c := f.caller(t, corporate); c.URN.Name != "eve" {
			t.Fatal(c.URN)
		}
	})
}

// The text of a refusal names every credential and does not repeat what was
// sent at length.
func TestRefusalsNameEveryCredential(t *testing.T) {
	f := newFixture(t)
	p := sfa(f.sign(t, f.root, f.alice, f.slice), f.sign(t, f.root, f.bob, f.other), "junk")
	p.Credentials = append(p.Credentials, Credential{"x-unknown", "1", "whatever"}, Credential{"geni_unknown", "", f.sign(t, f.root, f.bob, f.slice, rights("info"))})
	_, err := f.may(t, f.bob, p, Delete, sliceURN)
	wantRefusal(t, err, "credential 1: gives rights", "credential 2: is for", "credential 3: not well-formed",
		`credential 4: credentials of the type "x-unknown" are not understood`, "credential 5: its privileges (info) do not include Delete")
	if _, err := f.may(t, f.bob, p, Status, sliceURN); err != nil {
		t.Errorf("the useful one among the useless: %v", err)
	}
	_, err = f.may(t, f.bob, Presented{}, ListResources, "")
	wantRefusal(t, err, "no credential was presented")
	_, err = f.may(t, f.bob, sfa(strings.Split(strings.Repeat("x,", 100), ",")...), ListResources, "")
	wantRefusal(t, err, "credential 33: not looked at")
}
