package openssl

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// now is the time the test certificates are valid around.
var now = time.Now()

// emulabAIA is an Authority Information Access extension with the method OID
// 2.25.305821105408246119474742976030998643995, as Emulab's authorities put it
// into member certificates. It is built by hand because no Go type holds such
// an OID as numbers.
func emulabAIA() pkix.Extension {
	arc, _ := new(big.Int).SetString("305821105408246119474742976030998643995", 10)
	oid := base128(arc)
	oid = append([]byte{2*40 + 25}, oid...)
	location := tlv(0x86, []byte("https://www.example.org:12369/protogeni/xmlrpc/sa"))
	access := tlv(0x30, append(tlv(0x06, oid), location...))
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 1}, Value: tlv(0x30, access)}
}

func base128(n *big.Int) []byte {
	out := []byte{byte(new(big.Int).And(n, big.NewInt(0x7f)).Int64())}
	for n = new(big.Int).Rsh(n, 7); n.Sign() > 0; n = new(big.Int).Rsh(n, 7) {
		out = append([]byte{0x80 | byte(new(big.Int).And(n, big.NewInt(0x7f)).Int64())}, out...)
	}
	return out
}

func tlv(tag byte, value []byte) []byte {
	switch n := len(value); {
	case n < 0x80:
		return append([]byte{tag, byte(n)}, value...)
	case n < 0x100:
		return append([]byte{tag, 0x81, byte(n)}, value...)
	default:
		return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, value...)
	}
}

func memberURIs() []*url.URL {
	var list []*url.URL
	for _, s := range []string{
		"urn:publicid:IDN+example.org:proj+user+alice",
		"urn:uuid:33178d77-a930-40b1-9469-3aae08755743",
	} {
		u, err := url.Parse(s)
		if err != nil {
			panic(err)
		}
		list = append(list, u)
	}
	return list
}

// identity is a certificate with its key.
type identity struct {
	der  []byte
	key  crypto.Signer
	tmpl *x509.Certificate
	up   *identity
}

func (id *identity) cert(t testing.TB) *Certificate {
	t.Helper()
	c, err := ParseCertificate(id.der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// chainPEM is the certificate and its issuers, the root left out.
func (id *identity) chainPEM() []byte {
	out := id.pem()
	for i := id.up; i != nil && i.up != nil; i = i.up {
		out = append(out, i.pem()...)
	}
	return out
}

func (id *identity) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.der})
}

func (id *identity) keyPEM() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(id.key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

var serial = struct {
	sync.Mutex
	n int64
}{n: 1000}

// issue makes a certificate; up nil makes it sign itself.
func issue(t testing.TB, up *identity, key crypto.Signer, change func(*x509.Certificate)) *identity {
	t.Helper()
	serial.Lock()
	serial.n++
	n := serial.n
	serial.Unlock()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(n),
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
	}
	change(tmpl)
	if up == nil {
		up = &identity{tmpl: tmpl, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, up.tmpl, key.Public(), up.key)
	if err != nil {
		t.Fatal(err)
	}
	id := &identity{der: der, key: key, tmpl: tmpl}
	if up.der != nil {
		id.up = up
	}
	return id
}

func authority(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject = pkix.Name{Organization: []string{"Test"}, CommonName: name}
		c.IsCA = true
		c.BasicConstraintsValid = true
		c.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
		c.SubjectKeyId = []byte(name)
	}
}

func member(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject = pkix.Name{Organization: []string{"Test"}, CommonName: name}
		c.URIs = memberURIs()
		c.EmailAddresses = []string{name + "@example.org"}
		c.ExtraExtensions = []pkix.Extension{emulabAIA()}
	}
}

func server(c *x509.Certificate) {
	c.Subject = pkix.Name{CommonName: "am.example.org"}
	c.DNSNames = []string{"am.example.org", "localhost"}
	c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
}

func ecKey(t testing.TB) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func edKey(t testing.TB) crypto.Signer {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rsaKey makes a key of a size once for all tests: RSA keys are slow to make.
func rsaKey(t testing.TB, bits int) crypto.Signer {
	t.Helper()
	rsaKeys.Lock()
	defer rsaKeys.Unlock()
	if k := rsaKeys.bySize[bits]; k != nil {
		return k
	}
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	rsaKeys.bySize[bits] = k
	return k
}

var rsaKeys = struct {
	sync.Mutex
	bySize map[int]*rsa.PrivateKey
}{bySize: map[int]*rsa.PrivateKey{}}

// newIssuer makes a root and an intermediate authority.
func newIssuer(t testing.TB) (root, intermediate *identity) {
	t.Helper()
	root = issue(t, nil, ecKey(t), authority("root"))
	return root, issue(t, root, ecKey(t), authority("members"))
}
