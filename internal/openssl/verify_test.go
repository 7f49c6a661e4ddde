package openssl

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"
)

func (id *identity) crl(t testing.TB, signer crypto.Signer, next time.Time, revoked ...*identity) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now.Add(-2 * time.Hour), NextUpdate: next}
	for _, r := range revoked {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: r.tmpl.SerialNumber, RevocationTime: now.Add(-time.Hour)})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, id.tmpl, signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

func TestVerify(t *testing.T) {
	tomorrow, yesterday := now.Add(24*time.Hour), now.Add(-time.Hour)
	old := func(name string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { authority(name)(c); c.SignatureAlgorithm = x509.SHA1WithRSA }
	}
	root, middle := newIssuer(t)
	alice := issue(t, middle, rsaKey(t, 2048), member("alice"))
	bob := issue(t, middle, ecKey(t), member("bob"))
	late := issue(t, middle, ecKey(t), func(c *x509.Certificate) {
		member("late")(c)
		c.NotBefore, c.NotAfter = now.Add(-2*time.Hour), yesterday
	})
	early := issue(t, middle, ecKey(t), func(c *x509.Certificate) { member("early")(c); c.NotBefore = now.Add(time.Hour) })
	lateMiddle := issue(t, root, ecKey(t), func(c *x509.Certificate) {
		authority("late middle")(c)
		c.NotBefore, c.NotAfter = now.Add(-2*time.Hour), yesterday
	})
	belowLate := issue(t, lateMiddle, ecKey(t), member("carol"))
	belowAlice := issue(t, alice, ecKey(t), member("eve"))
	// The names and the key identifier of the issuer, but another key.
	impostor := issue(t, nil, ecKey(t), authority("members"))
	forged := issue(t, impostor, ecKey(t), member("mallory"))
	rsaRoot := issue(t, nil, rsaKey(t, 2048), authority("rsa root"))
	sha1Leaf := issue(t, rsaRoot, ecKey(t), func(c *x509.Certificate) { member("dave")(c); c.SignatureAlgorithm = x509.SHA1WithRSA })
	sha1Root := issue(t, nil, rsaKey(t, 2048), old("sha1 root"))
	belowSHA1Root := issue(t, sha1Root, ecKey(t), func(c *x509.Certificate) { member("erin")(c); c.SignatureAlgorithm = x509.SHA256WithRSA })
	weak := issue(t, root, rsaKey(t, 1024), member("frank"))
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serverOnly := issue(t, root, ecKey(t), func(c *x509.Certificate) {
		member("s")(c)
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	noPath := issue(t, root, ecKey(t), func(c *x509.Certificate) { authority("no path")(c); c.MaxPathLenZero = true })
	tooDeep := issue(t, issue(t, noPath, ecKey(t), authority("below")), ecKey(t), member("gina"))
	critical := issue(t, root, ecKey(t), func(c *x509.Certificate) {
		member("h")(c)
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}})
	})
	constrained := issue(t, root, ecKey(t), func(c *x509.Certificate) {
		authority("constrained")(c)
		c.PermittedDNSDomainsCritical = true
		c.PermittedDNSDomains = []string{"example.org"}
	})
	outside := issue(t, constrained, ecKey(t), func(c *x509.Certificate) { member("i")(c); c.DNSNames = []string{"example.com"} })
	selfSigned := issue(t, nil, ecKey(t), member("nobody"))
	noCRLSign := issue(t, root, ecKey(t), func(c *x509.Certificate) { authority("no crl")(c); c.KeyUsage = x509.KeyUsageCertSign })
	belowNoCRLSign := issue(t, noCRLSign, ecKey(t), member("j"))
	noCRLSignList := func() []byte { // made with the same name and key by one who may
		id := &identity{tmpl: &x509.Certificate{}, key: noCRLSign.key}
		*id.tmpl = *noCRLSign.tmpl
		id.tmpl.KeyUsage = x509.KeyUsageCRLSign
		return id.crl(t, id.key, tomorrow)
	}()
	// An authority that changed its key under the same name, without key
	// identifiers to tell the two apart.
	plain := func(c *x509.Certificate) { authority("renewed")(c); c.SubjectKeyId = nil }
	renewedA, renewedB := issue(t, nil, ecKey(t), plain), issue(t, nil, ecKey(t), plain)
	byB := issue(t, &identity{der: renewedB.der, key: renewedB.key, tmpl: &x509.Certificate{Subject: renewedB.tmpl.Subject}}, ecKey(t), member("k"))

	list := func(ids ...*identity) (l []*Certificate) {
		for _, id := range ids {
			l = append(l, id.cert(t))
		}
		return l
	}
	crls := func(texts ...[]byte) (l []*CRL) {
		for _, text := range texts {
			parsed, err := ParseCRLs(text)
			if err != nil {
				t.Fatal(err)
			}
			l = append(l, parsed...)
		}
		return l
	}
	for name, test := range map[string]struct {
		leaf    *identity
		options VerifyOptions
		chain   string // common names, or
		reason  Reason
		at      string // the common name of the one at fault
	}{
		"chain":                      {alice, VerifyOptions{Roots: list(root), Intermediates: list(middle)}, "alice members root", 0, ""},
		"others around":              {alice, VerifyOptions{Roots: list(rsaRoot, root), Intermediates: list(bob, middle, root)}, "alice members root", 0, ""},
		"anchor that is no root":     {alice, VerifyOptions{Roots: list(middle)}, "alice members", 0, ""},
		"itself is the anchor":       {alice, VerifyOptions{Roots: list(alice)}, "alice", 0, ""},
		"self-signed anchor":         {selfSigned, VerifyOptions{Roots: list(selfSigned)}, "nobody", 0, ""},
		"no intermediate":            {alice, VerifyOptions{Roots: list(root)}, "", Untrusted, "alice"},
		"no roots":                   {alice, VerifyOptions{Intermediates: list(middle, root)}, "", Untrusted, "root"},
		"other root":                 {alice, VerifyOptions{Roots: list(rsaRoot), Intermediates: list(middle)}, "", Untrusted, "members"},
		"self-signed":                {selfSigned, VerifyOptions{Roots: list(root)}, "", Untrusted, "nobody"},
		"expired":                    {late, VerifyOptions{Roots: list(root), Intermediates: list(middle)}, "", Expired, "late"},
		"valid then":                 {late, VerifyOptions{Roots: list(root), Intermediates: list(middle), Time: now.Add(-65 * time.Minute)}, "", NotYetValid, "root"},
		"not yet valid":              {early, VerifyOptions{Roots: list(root), Intermediates: list(middle)}, "", NotYetValid, "early"},
		"valid later":                {early, VerifyOptions{Roots: list(root), Intermediates: list(middle), Time: now.Add(2 * time.Hour)}, "early members root", 0, ""},
		"expired intermediate":       {belowLate, VerifyOptions{Roots: list(root), Intermediates: list(lateMiddle)}, "", Expired, "late middle"},
		"issued by a member":         {belowAlice, VerifyOptions{Roots: list(root), Intermediates: list(alice, middle)}, "", NotAuthority, "alice"},
		"issued by a trusted member": {belowAlice, VerifyOptions{Roots: list(alice)}, "", NotAuthority, "alice"},
		"forged":                     {forged, VerifyOptions{Roots: list(root), Intermediates: list(middle)}, "", BadSignature, "mallory"},
		"SHA-1":                      {sha1Leaf, VerifyOptions{Roots: list(rsaRoot)}, "", WeakSignature, "dave"},
		"SHA-1 allowed":              {sha1Leaf, VerifyOptions{Roots: list(rsaRoot), AllowSHA1: true}, "dave rsa root", 0, ""},
		"SHA-1 on the anchor":        {belowSHA1Root, VerifyOptions{Roots: list(sha1Root)}, "erin sha1 root", 0, ""},
		"short key":                  {weak, VerifyOptions{Roots: list(root)}, "", WeakKey, "frank"},
		"short key allowed":          {weak, VerifyOptions{Roots: list(root), MinRSABits: 1024}, "frank root", 0, ""},
		"longer key wanted":          {alice, VerifyOptions{Roots: list(root), Intermediates: list(middle), MinRSABits: 3072}, "", WeakKey, "alice"},
		"smallest curve":             {issue(t, root, p224, member("p")), VerifyOptions{Roots: list(root)}, "p root", 0, ""},
		"depth":                      {alice, VerifyOptions{Roots: list(root), Intermediates: list(middle), MaxDepth: 3}, "alice members root", 0, ""},
		"too deep":                   {alice, VerifyOptions{Roots: list(root), Intermediates: list(middle), MaxDepth: 2}, "", TooLong, "alice"},
		"path length":                {tooDeep, VerifyOptions{Roots: list(root), Intermediates: list(tooDeep.up, noPath)}, "", TooLong, "no path"},
		"any purpose":                {serverOnly, VerifyOptions{Roots: list(root)}, "s root", 0, ""},
		"server purpose":             {serverOnly, VerifyOptions{Roots: list(root), Purpose: ServerPurpose}, "s root", 0, ""},
		"client purpose":             {serverOnly, VerifyOptions{Roots: list(root), Purpose: ClientPurpose}, "", WrongPurpose, "s"},
		"member as client":           {alice, VerifyOptions{Roots: list(middle), Purpose: ClientPurpose}, "alice members", 0, ""},
		"unknown critical":           {critical, VerifyOptions{Roots: list(root)}, "", BadCertificate, "h"},
		"name constraint":            {outside, VerifyOptions{Roots: list(root), Intermediates: list(constrained)}, "", BadCertificate, "i"},
		"key changed, old first":     {byB, VerifyOptions{Roots: list(renewedA, renewedB)}, "k renewed", 0, ""},
		"key changed, new first":     {byB, VerifyOptions{Roots: list(renewedB, renewedA)}, "k renewed", 0, ""},
		"key changed, new unknown":   {byB, VerifyOptions{Roots: list(renewedA)}, "", BadSignature, "k"},
		"revoked": {alice, VerifyOptions{Roots: list(root), Intermediates: list(middle),
			CRLs: crls(middle.crl(t, middle.key, tomorrow, alice))}, "", Revoked, "alice"},
		"another revoked": {bob, VerifyOptions{Roots: list(root), Intermediates: list(middle),
			CRLs: crls(middle.crl(t, middle.key, tomorrow, alice))}, "bob members root", 0, ""},
		"issuer revoked": {alice, VerifyOptions{Roots: list(root), Intermediates: list(middle),
			CRLs: crls(root.crl(t, root.key, tomorrow, middle))}, "", Revoked, "members"},
		"revoked by an old list": {alice, VerifyOptions{Roots: list(root), Intermediates: list(middle),
			CRLs: crls(middle.crl(t, middle.key, yesterday, alice))}, "", Revoked, "alice"},
		"old list of others": {bob, VerifyOptions{Roots: list(root), Intermediates: list(middle),
			CRLs: crls(middle.crl(t, middle.key, yesterday, alice))}, "bob members root", 0, ""},
		"list of another authority": {alice, VerifyOptions{Roots: list(root), Intermediates: list(middle),
			CRLs: crls(rsaRoot.crl(t, rsaRoot.key, tomorrow, alice))}, "alice members root", 0, ""},
		"forged list": {alice, VerifyOptions{Roots: list(root), Intermediates: list(middle),
			CRLs: crls(impostor.crl(t, impostor.key, tomorrow, alice))}, "", BadRevocation, "alice"},
		"revoked below an anchor that is no root": {alice, VerifyOptions{Roots: list(middle),
			CRLs: crls(middle.crl(t, middle.key, tomorrow, alice))}, "", Revoked, "alice"},
		"list of who may sign none": {belowNoCRLSign, VerifyOptions{Roots: list(root), Intermediates: list(noCRLSign),
			CRLs: crls(noCRLSignList)}, "", BadRevocation, "j"},
		"list of the issuer of an anchor that is no root": {bob, VerifyOptions{Roots: list(middle),
			CRLs: crls(root.crl(t, root.key, tomorrow), middle.crl(t, middle.key, tomorrow))}, "bob members", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := test.leaf.cert(t)
			chain, err := leaf.Verify(test.options)
			if test.reason != 0 {
				var v *VerifyError
				if !errors.As(err, &v) || v.Reason != test.reason || v.Certificate.CommonName != test.at {
					t.Fatalf("got %v, %v; want %v of %s", chain, err, test.reason, test.at)
				}
				if !strings.Contains(err.Error(), "CN="+test.at) || chain != nil {
					t.Errorf("%v, chain %v", err, chain)
				}
				t.Log(err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range chain {
				names = append(names, c.CommonName)
			}
			if got := strings.Join(names, " "); got != test.chain {
				t.Errorf("chain %q, want %q", got, test.chain)
			}
			if chain[0] != leaf {
				t.Error("the chain does not start with the certificate")
			}
		})
	}
}

// TestLongChains: a chain of the longest length passes, and one more does not.
func TestLongChains(t *testing.T) {
	id := issue(t, nil, ecKey(t), authority("root"))
	root := id.cert(t)
	var middle []*Certificate
	for n := 2; n <= maxChain+1; n++ {
		id = issue(t, id, ecKey(t), authority(fmt.Sprint("authority ", n)))
		chain, err := id.cert(t).Verify(VerifyOptions{Roots: []*Certificate{root}, Intermediates: middle})
		var v *VerifyError
		switch {
		case n <= maxChain && (err != nil || len(chain) != n):
			t.Errorf("chain of %d: %d, %v", n, len(chain), err)
		case n > maxChain && (!errors.As(err, &v) || v.Reason != TooLong):
			t.Errorf("chain of %d: %v", n, err)
		}
		middle = append(middle, id.cert(t))
	}
}

func TestVerifyInParallel(t *testing.T) {
	root, middle := newIssuer(t)
	options := VerifyOptions{Roots: []*Certificate{root.cert(t)}, Intermediates: []*Certificate{middle.cert(t)}}
	alice := issue(t, middle, ecKey(t), member("alice")).cert(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := alice.Verify(options); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestVerifyZeroCertificate(t *testing.T) {
	if _, err := new(Certificate).Verify(VerifyOptions{Roots: []*Certificate{nil, {}}}); err == nil {
		t.Error("no error")
	}
	if new(Certificate).MatchesHost("a") {
		t.Error("matches")
	}
}

func TestParseCRLs(t *testing.T) {
	root := issue(t, nil, ecKey(t), authority("root"))
	next := now.Add(time.Hour)
	text := append(root.crl(t, root.key, next), root.crl(t, root.key, next, root)...)
	list, err := ParseCRLs(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Issuer != "CN=root,O=Test" || !list[1].NextUpdate.Equal(next.Truncate(time.Second)) {
		t.Errorf("got %+v", list)
	}
	for name, text := range map[string]string{
		"empty":       "",
		"certificate": string(root.pem()),
		"damaged":     "-----BEGIN X509 CRL-----\nx\n-----END X509 CRL-----\n",
		"not DER":     "-----BEGIN X509 CRL-----\naGVsbG8=\n-----END X509 CRL-----\n",
	} {
		if _, err := ParseCRLs([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReasonNames(t *testing.T) {
	seen := map[string]bool{}
	for r := Untrusted; r <= BadCertificate; r++ {
		if seen[r.String()] || r.String() == "" {
			t.Errorf("reason %d is called %q", int(r), r)
		}
		seen[r.String()] = true
	}
	if Reason(0).String() != "reason 0" || Reason(99).String() != "reason 99" {
		t.Error("unknown reasons")
	}
}
