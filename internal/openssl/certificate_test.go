package openssl

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestGoRefusesWhatWeRead(t *testing.T) {
	root := issue(t, nil, ecKey(t), authority("root"))
	alice := issue(t, root, rsaKey(t, 2048), member("alice"))
	if _, err := x509.ParseCertificate(alice.der); err == nil {
		t.Error("crypto/x509 now reads Emulab's certificates: this package may not be needed any more")
	} else {
		t.Logf("crypto/x509: %v", err)
	}
	if _, err := ParseCertificate(alice.der); err != nil {
		t.Error(err)
	}
}

func TestFields(t *testing.T) {
	root := issue(t, nil, ecKey(t), authority("root"))
	alice := issue(t, root, rsaKey(t, 2048), member("alice"))
	c := alice.cert(t)
	check := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	check("DER", c.DER, alice.der)
	check("Subject", c.Subject, "CN=alice,O=Test")
	check("Issuer", c.Issuer, "CN=root,O=Test")
	check("CommonName", c.CommonName, "alice")
	check("RawIssuer", c.RawIssuer, root.cert(t).RawSubject)
	check("URIs", c.URIs, []string{
		"urn:publicid:IDN+example.org:proj+user+alice", "urn:uuid:33178d77-a930-40b1-9469-3aae08755743"})
	check("Emails", c.Emails, []string{"alice@example.org"})
	check("DNSNames", len(c.DNSNames), 0)
	check("Serial", c.Serial.Cmp(alice.tmpl.SerialNumber), 0)
	check("NotBefore", c.NotBefore, alice.tmpl.NotBefore.UTC().Truncate(time.Second))
	check("NotAfter", c.NotAfter, alice.tmpl.NotAfter.UTC().Truncate(time.Second))
	check("PublicKey", c.PublicKey.(*rsa.PublicKey).Equal(alice.key.Public()), true)
	check("KeyBits", c.KeyBits, 2048)
	check("IsCA", c.IsCA, false)
	check("root IsCA", root.cert(t).IsCA, true)
	check("SignatureAlgorithm", c.SignatureAlgorithm, "ecdsa-with-SHA256")
	check("SHA1Signed", c.SHA1Signed, false)
	check("Fingerprint", c.Fingerprint, sha256.Sum256(alice.der))
	check("String", c.String(), "CN=alice,O=Test")
}

// TestFieldsAgainstGo compares with what crypto/x509 reads where it can.
func TestFieldsAgainstGo(t *testing.T) {
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaRoot := issue(t, nil, rsaKey(t, 2048), authority("Größe, \"Inc\" + more"))
	negative := func(c *x509.Certificate) { server(c); c.SerialNumber = new(big.Int).Lsh(big.NewInt(255), 150) }
	far := func(c *x509.Certificate) {
		server(c)
		c.NotBefore = time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC)
		c.NotAfter = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	for name, id := range map[string]*identity{
		"rsa root":     rsaRoot,
		"ec":           issue(t, rsaRoot, ecKey(t), server),
		"p521":         issue(t, rsaRoot, p521, server),
		"ed25519":      issue(t, rsaRoot, edKey(t), server),
		"by ed25519":   issue(t, issue(t, nil, edKey(t), authority("ed")), ecKey(t), server),
		"long serial":  issue(t, rsaRoot, ecKey(t), negative),
		"far times":    issue(t, rsaRoot, ecKey(t), far),
		"sha1":         issue(t, rsaRoot, ecKey(t), func(c *x509.Certificate) { server(c); c.SignatureAlgorithm = x509.SHA1WithRSA }),
		"pss":          issue(t, rsaRoot, ecKey(t), func(c *x509.Certificate) { server(c); c.SignatureAlgorithm = x509.SHA384WithRSAPSS }),
		"no subject":   issue(t, rsaRoot, ecKey(t), func(c *x509.Certificate) { c.DNSNames = []string{"a.example.org"} }),
		"multi-valued": issue(t, rsaRoot, ecKey(t), func(c *x509.Certificate) { c.RawSubject = multiValuedName(t) }),
	} {
		t.Run(name, func(t *testing.T) {
			c := id.cert(t)
			g, err := x509.ParseCertificate(id.der)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []struct {
				what      string
				got, want any
			}{
				{"RawSubject", c.RawSubject, g.RawSubject},
				{"RawIssuer", c.RawIssuer, g.RawIssuer},
				{"CommonName", c.CommonName, g.Subject.CommonName},
				{"Serial", c.Serial.String(), g.SerialNumber.String()},
				{"NotBefore", c.NotBefore, g.NotBefore},
				{"NotAfter", c.NotAfter, g.NotAfter},
				{"DNSNames", c.DNSNames, g.DNSNames},
				{"IsCA", c.IsCA, g.IsCA},
				{"PublicKey", c.PublicKey, g.PublicKey},
				{"SHA1Signed", c.SHA1Signed, g.SignatureAlgorithm == x509.SHA1WithRSA},
			} {
				if !reflect.DeepEqual(f.got, f.want) {
					t.Errorf("%s: got %v, want %v", f.what, f.got, f.want)
				}
			}
			if c.String() == "" {
				t.Error("String is empty")
			}
		})
	}
	if got, want := rsaRoot.cert(t).Subject, `CN=Größe\, \"Inc\" \+ more,O=Test`; got != want {
		t.Errorf("Subject: got %s, want %s", got, want)
	}
}

func multiValuedName(t *testing.T) []byte {
	der, err := asn1.Marshal(pkix.RDNSequence{
		{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "first"}},
		{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "last"}, {Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "unit"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// alternativeNames is the extension with URIs (or other kinds of names) of
// exactly these bytes.
func alternativeNames(tag byte, names ...string) pkix.Extension {
	var all []byte
	for _, n := range names {
		all = append(all, tlv(tag, []byte(n))...)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: tlv(0x30, all)}
}

func TestRefusedCertificates(t *testing.T) {
	key := ecKey(t)
	with := func(ext ...pkix.Extension) []byte {
		return issue(t, nil, key, func(c *x509.Certificate) {
			c.Subject.CommonName = "x"
			c.ExtraExtensions = ext
		}).der
	}
	good := with()
	long := issue(t, nil, key, func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Value: make([]byte, maxCertificate)}}
	}).der
	// The outer length in a longer form than needed: BER, not DER.
	ber := append([]byte{0x30, 0x83, 0}, good[2:]...)
	for name, test := range map[string]struct {
		der  []byte
		want string
	}{
		"empty":             {nil, "empty"},
		"text":              {[]byte("hello"), "read certificate"},
		"cut":               {good[:len(good)-1], "read certificate"},
		"data after":        {append(bytes.Clone(good), 0), "data after"},
		"not DER":           {ber, "not DER"},
		"too large":         {long, "more than 65536"},
		"NUL in URI":        {with(alternativeNames(0x86, "urn:publicid:IDN+a+user+alice\x00.evil")), "control character"},
		"NUL in DNS":        {with(alternativeNames(0x82, "am.example.org\x00.evil.org")), "control character"},
		"NUL in mail":       {with(alternativeNames(0x81, "a@example.org\x00")), "control character"},
		"line end in URI":   {with(alternativeNames(0x86, "urn:a\nurn:b")), "control character"},
		"not text":          {with(alternativeNames(0x86, "urn:\xff")), "not text"},
		"broken names":      {with(pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: []byte{0x30, 5, 0x86}}), "broken"},
		"names given twice": {duplicateNames(t), "more than once"},
		"NUL in CN": {issue(t, nil, key, func(c *x509.Certificate) { c.Subject.CommonName = "a\x00b" }).der,
			"control character"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseCertificate(test.der)
			if err == nil {
				t.Fatalf("read: %v", c)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
		})
	}
}

// duplicateNames makes a certificate with two subjectAltName extensions, which
// Go refuses to make: it swaps the OID of another extension of equal length.
func duplicateNames(t *testing.T) []byte {
	names := alternativeNames(0x86, "urn:a")
	other := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 99}, Value: alternativeNames(0x86, "urn:b").Value}
	der := issue(t, nil, ecKey(t), func(c *x509.Certificate) {
		c.Subject.CommonName = "x"
		c.ExtraExtensions = []pkix.Extension{names, other}
	}).der
	out := bytes.Replace(der, []byte{0x06, 3, 0x55, 0x1d, 99}, []byte{0x06, 3, 0x55, 0x1d, 17}, 1)
	if bytes.Equal(out, der) {
		t.Fatal("no extension to rename")
	}
	return out
}

func TestURIsInOrder(t *testing.T) {
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("urn:publicid:IDN+a+user+u%d", 19-i))
	}
	id := issue(t, nil, ecKey(t), func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{alternativeNames(0x86, want...)}
	})
	if got := id.cert(t).URIs; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestMatchesHost(t *testing.T) {
	key := ecKey(t)
	srv := issue(t, nil, key, server).cert(t)
	wild := issue(t, nil, key, func(c *x509.Certificate) { c.DNSNames = []string{"*.example.org"} }).cert(t)
	old := issue(t, nil, key, func(c *x509.Certificate) { c.Subject.CommonName = "old.example.org" }).cert(t)
	for _, test := range []struct {
		c    *Certificate
		host string
		want bool
	}{
		{srv, "am.example.org", true}, {srv, "AM.Example.ORG", true}, {srv, "localhost", true},
		{srv, "127.0.0.1", true}, {srv, "::1", true}, {srv, "[::1]", true},
		{srv, "example.org", false}, {srv, "127.0.0.2", false}, {srv, "", false}, {srv, "am.example.org\x00", false},
		{wild, "a.example.org", true}, {wild, "a.b.example.org", false}, {wild, "example.org", false},
		{old, "old.example.org", true}, {old, "new.example.org", false},
	} {
		if got := test.c.MatchesHost(test.host); got != test.want {
			t.Errorf("%s for %q: %v", test.c, test.host, got)
		}
	}
}

func TestParsePEM(t *testing.T) {
	a, b := issue(t, nil, ecKey(t), authority("a")), issue(t, nil, ecKey(t), authority("b"))
	broken := bytes.Replace(b.pem(), []byte("MII"), []byte("M!I"), 1)
	broken = bytes.Replace(broken, []byte("\nMI"), []byte("\n!I"), 1)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, test := range map[string]struct {
		text []byte
		want string // subjects, or the error when it starts with "!"
	}{
		"one":             {a.pem(), "CN=a,O=Test"},
		"two":             {join(a.pem(), b.pem()), "CN=a,O=Test CN=b,O=Test"},
		"text between":    {join([]byte("Bag Attributes\n"), a.pem(), []byte("subject=x\n\n"), b.pem()), "CN=a,O=Test CN=b,O=Test"},
		"key first":       {join(a.keyPEM(), a.pem()), "CN=a,O=Test"},
		"line ends":       {bytes.ReplaceAll(a.pem(), []byte("\n"), []byte("\r\n")), "CN=a,O=Test"},
		"no end of line":  {bytes.TrimSpace(a.pem()), "CN=a,O=Test"},
		"none":            {a.keyPEM(), "!no CERTIFICATE"},
		"empty":           {nil, "!no CERTIFICATE"},
		"second broken":   {join(a.pem(), broken), fmt.Sprintf("!CERTIFICATE block 2 at line %d", 1+bytes.Count(a.pem(), []byte("\n")))},
		"second cut":      {join(a.pem(), b.pem()[:100]), "!CERTIFICATE block 2"},
		"cut before next": {join(a.pem()[:100], []byte("\n"), b.pem()), "!CERTIFICATE block 1 at line 1"},
		"not DER": {[]byte("\n\n-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"),
			"!CERTIFICATE block 1 at line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := ParsePEM(test.text)
			if wanted, isErr := strings.CutPrefix(test.want, "!"); isErr {
				if err == nil || !strings.Contains(err.Error(), wanted) {
					t.Errorf("error %v, want %q", err, wanted)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range list {
				got = append(got, c.Subject)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestCopiesOutliveTheOriginal would crash if a copy of a Certificate did not
// keep OpenSSL's object.
func TestCopiesOutliveTheOriginal(t *testing.T) {
	root := issue(t, nil, ecKey(t), authority("root"))
	alice := issue(t, root, ecKey(t), member("alice"))
	for range 50 {
		a, r := *alice.cert(t), *root.cert(t)
		runtime.GC()
		if _, err := a.Verify(VerifyOptions{Roots: []*Certificate{&r}}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEd25519Key(t *testing.T) {
	id := issue(t, nil, edKey(t), authority("ed"))
	if k, ok := id.cert(t).PublicKey.(ed25519.PublicKey); !ok || !k.Equal(id.key.Public()) {
		t.Errorf("got %T", id.cert(t).PublicKey)
	}
}
