package openssl

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"
)

// FuzzParseCertificate: whatever the bytes, no crash, and what is read is the
// same when read again; it can be verified against itself.
func FuzzParseCertificate(f *testing.F) {
	root, middle := newIssuer(f)
	for _, id := range []*identity{root, middle, issue(f, middle, rsaKey(f, 2048), member("alice")),
		issue(f, root, edKey(f), server), issue(f, root, rsaKey(f, 1024), server)} {
		f.Add(id.der)
	}
	anchors := []*Certificate{root.cert(f), middle.cert(f)}
	f.Fuzz(func(t *testing.T, der []byte) {
		c, err := ParseCertificate(der)
		if err != nil {
			if c != nil {
				t.Error("a certificate and an error")
			}
			return
		}
		if !bytes.Equal(c.DER, der) || c.Fingerprint != sha256.Sum256(der) {
			t.Error("DER changed")
		}
		for _, names := range [][]string{c.URIs, c.Emails, c.DNSNames, {c.CommonName}} {
			for _, n := range names {
				if checkName(n) != nil {
					t.Errorf("name %q", n)
				}
			}
		}
		c.MatchesHost("localhost")
		c.MatchesHost("127.0.0.1")
		for _, roots := range [][]*Certificate{anchors, {c}} {
			o := VerifyOptions{Roots: roots, Intermediates: []*Certificate{c}, Time: time.Unix(1.8e9, 0), Purpose: ClientPurpose}
			if chain, err := c.Verify(o); (err == nil) != (len(chain) > 0) {
				t.Errorf("chain of %d, %v", len(chain), err)
			}
		}
	})
}

// FuzzParsePEM reads both kinds of PEM files.
func FuzzParsePEM(f *testing.F) {
	root, middle := newIssuer(f)
	f.Add(append(root.pem(), middle.pem()...))
	f.Add(append(root.pem(), middle.keyPEM()...))
	f.Add(root.crl(f, root.key, now.Add(time.Hour), middle))
	f.Fuzz(func(t *testing.T, text []byte) {
		if list, err := ParsePEM(text); (err == nil) != (len(list) > 0) {
			t.Errorf("%d certificates, %v", len(list), err)
		}
		crls, err := ParseCRLs(text)
		if (err == nil) != (len(crls) > 0) {
			t.Errorf("%d lists, %v", len(crls), err)
		}
		if err == nil {
			middle.cert(t).Verify(VerifyOptions{Roots: []*Certificate{root.cert(t)}, CRLs: crls})
		}
	})
}
