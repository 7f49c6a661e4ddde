package credentials

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/internal/openssl"
	"croft/urn"
)

func TestIdentify(t *testing.T) {
	f := newFixture(t)
	between := issue(t, f.proj, spec{urn: "urn:publicid:IDN+example.org:proj:sub+authority+sa", ca: true})
	plain := issue(t, f.root, spec{cn: "a CA between", ca: true})
	userCA := issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+user+mallory", ca: true})
	strange := issue(t, nil, spec{urn: "urn:publicid:IDN+example.org+authority+sa", ca: true})
	past, old := time.Now().Add(-time.Minute), time.Now().Add(-time.Hour)
	for _, c := range []struct {
		name string
		who  *entity
		says string // "" if known
	}{
		{"a member", f.alice, ""},
		{"a member of a project", f.carol, ""},
		{"three authorities up", issue(t, between, spec{urn: "urn:publicid:IDN+example.org:proj:sub+user+deep"}), ""},
		{"a CA without a name between", issue(t, plain, spec{urn: "urn:publicid:IDN+example.org+user+plain"}), ""},
		{"a tool", f.tool, ""},
		{"another way to write the URN", issue(t, f.root, spec{urn: "urn:publicid:IDN+EXAMPLE.org+user+alice"}), ""},
		{"no trust root", issue(t, strange, spec{urn: aliceURN}), "chains to no trust root of this aggregate"},
		{"expired", issue(t, f.root, spec{urn: aliceURN, notBefore: old, notAfter: past}), "expired"},
		{"not yet valid", issue(t, f.root, spec{urn: aliceURN, notBefore: time.Now().Add(time.Hour)}), "not valid before"},
		{"no URN", issue(t, f.root, spec{cn: "somebody"}), "no URN"},
		{"two URNs", issue(t, f.root, spec{urn: aliceURN, more: []string{"urn:publicid:IDN+example.org+user+bob"}}), "two URNs"},
		{"a broken URN", issue(t, f.root, spec{cn: "x", more: []string{"urn:publicid:IDN+example.org"}}), "want urn:publicid"},
		{"a slice", f.slice, "not a user"},
		{"an authority", f.root, "not a user"},
		{"issued by a user", issue(t, f.alice, spec{urn: "urn:publicid:IDN+example.org+user+x"}), "invalid CA certificate"},
		{"issued by a user with a CA", issue(t, userCA, spec{urn: "urn:publicid:IDN+example.org+user+x"}), "which is no authority"},
		{"issued by a project for all", issue(t, f.proj, spec{urn: "urn:publicid:IDN+example.org+user+x"}), "an authority for other names"},
		{"issued by a project for its neighbour", issue(t, f.proj, spec{urn: "urn:publicid:IDN+example.org:project+user+x"}), "an authority for other names"},
		{"issued with the wrong key", issue(t, f.root, spec{urn: aliceURN, signedBy: f.bob.key}), "signature"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // the second time from memory
				caller, err := f.trust.Identify(c.who.certificates(t))
				if c.says != "" {
					wantRefusal(t, err, c.says)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if want := c.who.cert.URIs[0].String(); !strings.EqualFold(caller.URN.String(), want) {
					t.Fatalf("%s, want %s", caller.URN, want)
				}
			}
		})
	}
	if c := f.caller(t, f.alice); c.UUID != "33178d77-a930-40b1-9469-3aae08755743" {
		t.Errorf("uuid %q", c.UUID)
	}
	_, err := f.trust.Identify(nil)
	wantRefusal(t, err, "no client certificate")
	_, err = f.trust.Identify(make([]*openssl.Certificate, 100))
	wantRefusal(t, err, "at most 16")
}

// crl makes a revocation list of an authority.
func crl(t testing.TB, by *entity, number int64, revoked ...*entity) []byte {
	t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, e := range revoked {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: e.cert.SerialNumber, RevocationTime: time.Now().Add(-time.Minute)})
	}
	der, err := x509.CreateRevocationList(rand.Reader, template, by.cert, by.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

// The folder is looked at again while it is used, and what was remembered is
// forgotten with what it rested on.
func TestTrustFollowsItsFolder(t *testing.T) {
	f := newFixture(t)
	verifier := NewVerifier(f.trust, nil)
	credential := f.sign(t, f.proj, f.alice, f.slice)
	ask := func(who *entity) error {
		t.Helper()
		caller, err := f.trust.Identify(who.certificates(t))
		if err != nil {
			return err
		}
		p, err := verifier.Verify(context.Background(), caller, sfa(credential))
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.May(Allocate, urn.MustParse(sliceURN))
		return err
	}
	if err := ask(f.alice); err != nil {
		t.Fatal(err)
	}

	other := issue(t, nil, spec{urn: "urn:publicid:IDN+other.net+authority+sa", ca: true})
	dave := issue(t, other, spec{urn: "urn:publicid:IDN+other.net+user+dave"})
	wantRefusal(t, ask(dave), "not a trust root")
	writeFile(t, filepath.Join(f.dir, "other.PEM"), other.chain)
	wantRefusal(t, ask(dave), "gives rights") // known, but not the owner

	list := filepath.Join(f.dir, "revoked.pem")
	writeFile(t, list, crl(t, f.root, 1, f.alice))
	wantRefusal(t, ask(f.alice), "revoked")
	writeFile(t, list, crl(t, f.root, 2, f.proj))
	wantRefusal(t, ask(f.alice), "signer", "revoked")
	writeFile(t, list, crl(t, f.root, 3, f.slice))
	wantRefusal(t, ask(f.alice), "target_gid", "revoked")
	writeFile(t, list, crl(t, f.root, 4, f.bob))
	if err := ask(f.alice); err != nil {
		t.Fatal(err)
	}

	// Half-written: what was there stays in force.
	writeFile(t, list, crl(t, f.root, 5, f.alice))
	writeFile(t, list, []byte("-----BEGIN X509 CRL-----\nMIIC"))
	if err := ask(f.alice); err != nil {
		t.Fatal("the last list that was read is number 4: ", err)
	}
	writeFile(t, filepath.Join(f.dir, "root.pem"), []byte("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"))
	if err := ask(f.alice); err != nil {
		t.Fatal(err)
	}
	remove(t, list)
	remove(t, filepath.Join(f.dir, "root.pem"))
	wantRefusal(t, ask(f.alice), "trust root")
	if err := os.Rename(f.dir, f.dir+".gone"); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, ask(dave), "not a trust root")
}

func TestOpenTrust(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct{ name, file, content, says string }{
		{"broken", "x.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "x.pem"},
		{"a key", "k.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "neither a certificate nor a revocation list"},
		{"empty", "e.pem", "", "neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(f.dir, c.file), []byte(c.content))
			defer remove(t, path)
			if _, err := OpenTrust(f.dir, TrustOptions{}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v", err)
			}
		})
	}
	t.Run("no folder", func(t *testing.T) {
		if _, err := OpenTrust(f.dir+"/nowhere", TrustOptions{}); err == nil {
			t.Fatal("opened")
		}
	})
	t.Run("other files do not count", func(t *testing.T) {
		writeFile(t, filepath.Join(f.dir, "README"), []byte("x"))
		writeFile(t, filepath.Join(f.dir, ".hidden.pem"), []byte("x"))
		var log bytes.Buffer
		trust, err := OpenTrust(f.dir, TrustOptions{Limits: map[string][]urn.Authority{"typo.pem": {"x"}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil || len(trust.Roots()) != 1 || len(trust.CRLs()) != 0 {
			t.Fatal(trust, err)
		}
		if !strings.Contains(log.String(), "typo.pem") {
			t.Errorf("the log does not name the limit of no root: %s", &log)
		}
	})
}

func TestWeakKeysAndDigests(t *testing.T) {
	f := newFixture(t)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weak := issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+user+weak", key: small})
	weakSigner := issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+authority+weak", key: small})
	byWeak := f.sign(t, weakSigner, f.alice, f.slice)
	sha1 := f.sign(t, f.root, f.alice, f.slice, func(i *Issue) { i.SHA1 = true })
	old := issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+user+old", signature: x509.SHA1WithRSA})

	t.Run("by default", func(t *testing.T) {
		_, err := f.trust.Identify(weak.certificates(t))
		wantRefusal(t, err, "RSA key of 1024 bits", "only the operator")
		_, err = f.may(t, f.alice, sfa(byWeak), Allocate, sliceURN)
		wantRefusal(t, err, "signer", "1024")
		if _, err := f.may(t, f.alice, sfa(sha1), Allocate, sliceURN); err != nil {
			t.Error(err)
		}
		if c := f.caller(t, old); c.URN.Name != "old" {
			t.Error(c)
		}
	})
	f.open(t, TrustOptions{MinRSABits: 1024, RefuseSHA1: true})
	t.Run("as the operator says", func(t *testing.T) {
		if c := f.caller(t, weak); c.URN.Name != "weak" {
			t.Error(c)
		}
		if _, err := f.may(t, f.alice, sfa(byWeak), Allocate, sliceURN); err != nil {
			t.Error(err)
		}
		_, err := f.may(t, f.alice, sfa(sha1), Allocate, sliceURN)
		wantRefusal(t, err, "SHA-1")
		_, err = f.trust.Identify(old.certificates(t))
		wantRefusal(t, err, "SHA-1")
	})
}

// A signature needs a chain up to a root that signed itself, as xmlsec1 wants.
func TestTrustInAnIntermediate(t *testing.T) {
	f := newFixture(t)
	credential := f.sign(t, f.proj, f.carol, f.slice)
	remove(t, filepath.Join(f.dir, "root.pem"))
	only := writeFile(t, filepath.Join(f.dir, "proj.pem"), f.proj.chain[:bytes.Index(f.proj.chain, []byte("-----END"))+len("-----END CERTIFICATE-----\n")])
	_, err := f.may(t, f.carol, sfa(credential), Allocate, sliceURN)
	wantRefusal(t, err, "ends at an intermediate authority")
	if err := xmlsec1(t, []byte(credential), "", only); err == nil {
		t.Error("xmlsec1 takes it")
	}
}
