package credentials

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"croft/internal/openssl"
	"croft/urn"
)

// entity is somebody with a key and a certificate.
type entity struct {
	key   crypto.Signer
	cert  *x509.Certificate
	chain []byte // PEM, its own certificate first
	up    *entity
}

// spec says how an entity's certificate is to be made.
type spec struct {
	urn       string
	cn        string // instead of one made of the URN
	ca        bool
	key       crypto.Signer // nil: RSA with 2048 bits
	notBefore time.Time
	notAfter  time.Time
	more      []string // further URIs
	signature x509.SignatureAlgorithm
	signedBy  crypto.Signer // instead of the issuer's key
}

var keys struct {
	sync.Mutex
	rsa  []*rsa.PrivateKey
	next map[testing.TB]int
}

// rsaKey hands out RSA keys that differ within one test, and makes them once
// for all tests.
func rsaKey(t testing.TB) *rsa.PrivateKey {
	keys.Lock()
	defer keys.Unlock()
	if keys.next == nil {
		keys.next = map[testing.TB]int{}
	}
	n := keys.next[t]
	keys.next[t]++
	if n == len(keys.rsa) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		keys.rsa = append(keys.rsa, key)
	}
	return keys.rsa[n]
}

func ecdsaKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue makes an entity; up nil makes a root.
func issue(t testing.TB, up *entity, s spec) *entity {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	e := &entity{key: s.key, up: up}
	if e.key == nil {
		e.key = rsaKey(t)
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: s.cn},
		NotBefore: s.notBefore, NotAfter: s.notAfter,
		BasicConstraintsValid: true, IsCA: s.ca, SignatureAlgorithm: s.signature,
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(100 * 24 * time.Hour)
	}
	if s.ca {
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	}
	uris := s.more
	if s.urn != "" {
		name := urn.MustParse(s.urn)
		if s.cn == "" {
			template.Subject.CommonName = string(name.Authority) + "." + string(name.Type) + "." + name.Name
		}
		uris = append([]string{s.urn}, uris...)
	}
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	parent, signer := template, e.key
	if up != nil {
		parent, signer = up.cert, up.key
	}
	if s.signedBy != nil {
		// CreateCertificate wants the key that the parent names.
		forged := *parent
		forged.PublicKey = s.signedBy.Public()
		parent, signer = &forged, s.signedBy
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, e.key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if e.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	e.chain = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if up != nil {
		e.chain = append(e.chain, up.chain...)
	}
	return e
}

// certificates returns the entity's chain as a TLS connection hands it over.
func (e *entity) certificates(t testing.TB) []*openssl.Certificate {
	t.Helper()
	chain, err := openssl.ParsePEM(e.chain)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

func (e *entity) issuer() Issuer { return Issuer{Key: e.key, Chain: e.chain, Random: rand.Reader} }

// xmlsec1 verifies the signature that an XPath expression picks, against the
// PEM files.
func xmlsec1(t testing.TB, document []byte, xpath string, roots ...string) error {
	t.Helper()
	program, err := exec.LookPath("xmlsec1")
	if err != nil {
		t.Skip("needs xmlsec1 (apt-get install xmlsec1)")
	}
	file := filepath.Join(t.TempDir(), "credential.xml")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--verify"}
	if xpath != "" {
		args = append(args, "--node-xpath", xpath)
	}
	for _, root := range roots {
		args = append(args, "--trusted-pem", root)
	}
	var output bytes.Buffer
	cmd := exec.Command(program, append(args, file)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return &xmlsecError{output.String()}
	}
	return nil
}

type xmlsecError struct{ output string }

func (e *xmlsecError) Error() string { return "xmlsec1: " + e.output }

func writeFile(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (e *entity) keyPEM(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(e.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func pemOf(c *openssl.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.DER})
}
