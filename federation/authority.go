package federation

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"croft/urn"
)

// issuer is a certificate with its key.
type issuer struct {
	cert *x509.Certificate
	key  *rsa.PrivateKey
}

// subject is what a certificate is to say.
type subject struct {
	urn      urn.URN
	email    string
	hosts    []string
	validity time.Duration
	usage    x509.KeyUsage
	purposes []x509.ExtKeyUsage
	ca       bool
	uuid     uuid.UUID // zero for a new one
}

func (f *Federation) makeAuthorities(log *changes) error {
	// A new key would not fit the old certificate, and everything issued with
	// it would be lost.
	for _, name := range []string{"ca", "sa"} {
		_, certErr := os.Stat(f.path("pki/" + name + ".pem"))
		_, keyErr := os.Stat(f.path("pki/" + name + "-key.pem"))
		if certErr == nil && errors.Is(keyErr, fs.ErrNotExist) {
			return fmt.Errorf("pki/%s-key.pem is missing, the key of pki/%s.pem (restore it, or make a federation in another --dir)", name, name)
		}
	}
	key, err := log.ensureKey(f, "pki/ca-key.pem", "key of the certification authority", authorityBits)
	if err != nil {
		return err
	}
	if err := log.ensure(f, "pki/ca.pem", "certification authority", 0o644, func() ([]byte, error) {
		cert, err := f.issue(issuer{key: key}, key, subject{
			urn:      urn.URN{Authority: f.authority, Type: urn.AuthorityType, Name: "ca"},
			validity: authorityValidity,
			usage:    x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
			ca:       true,
		})
		if err != nil {
			return nil, err
		}
		return encodeCertificates(cert), nil
	}); err != nil {
		return err
	}
	if f.ca, err = f.readIssuer("ca"); err != nil {
		return err
	}
	found, err := URNOf(f.ca.cert)
	if err != nil {
		return fmt.Errorf("certification authority: %w", err)
	}
	if !found.Authority.Equal(f.authority) {
		return fmt.Errorf("folder %s holds the federation %s, not %s (another --dir is needed)", f.dir, found.Authority, f.authority)
	}
	f.authority = found.Authority
	saKey, err := log.ensureKey(f, "pki/sa-key.pem", "key of the slice authority", keyBits)
	if err != nil {
		return err
	}
	if err := log.ensure(f, "pki/sa.pem", "slice authority: signs credentials", 0o644, func() ([]byte, error) {
		cert, err := f.issue(f.ca, saKey, subject{
			urn:      urn.URN{Authority: f.authority, Type: urn.AuthorityType, Name: "sa"},
			validity: authorityValidity,
			usage:    x509.KeyUsageDigitalSignature,
		})
		if err != nil {
			return nil, err
		}
		return encodeCertificates(cert, f.ca.cert), nil
	}); err != nil {
		return err
	}
	f.sa, err = f.readIssuer("sa")
	return err
}

func (f *Federation) readAuthorities() (err error) {
	if f.ca, err = f.readIssuer("ca"); err != nil {
		return err
	}
	if f.sa, err = f.readIssuer("sa"); err != nil {
		return err
	}
	name, err := URNOf(f.ca.cert)
	if err != nil {
		return fmt.Errorf("certification authority: %w", err)
	}
	f.authority = name.Authority
	return nil
}

func (f *Federation) readIssuer(name string) (issuer, error) {
	chain, err := readCertificates(f.path("pki/" + name + ".pem"))
	if err != nil {
		return issuer{}, err
	}
	key, err := readKey(f.path("pki/" + name + "-key.pem"))
	if err != nil {
		return issuer{}, err
	}
	if !key.PublicKey.Equal(chain[0].PublicKey) {
		return issuer{}, fmt.Errorf("pki/%s-key.pem is not the key of pki/%s.pem", name, name)
	}
	return issuer{cert: chain[0], key: key}, nil
}

// makeServer sees to a server certificate that is good for the hosts asked
// for, and issues a new one if the old one is not, or not for long.
func (f *Federation) makeServer(o Options, log *changes) error {
	const file, what = "pki/server.pem", "server certificate"
	key, err := log.ensureKey(f, "pki/server-key.pem", "key of the server", keyBits)
	if err != nil {
		return err
	}
	old, err := readCertificates(f.path(file))
	switch {
	case err == nil:
		if f.good(old[0], key) && !slices.ContainsFunc(o.Hosts, func(h string) bool { return !names(old[0], h) }) {
			log.add(file, what, Kept)
			return nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	cert, err := f.issue(f.ca, key, subject{
		urn:      o.Manager,
		hosts:    o.Hosts,
		validity: serverValidity,
		usage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		purposes: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	return log.replace(f, file, what, 0o644, encodeCertificates(cert, f.ca.cert))
}

// good reports whether a certificate is for a key, of this federation, and
// will be for a while.
func (f *Federation) good(c *x509.Certificate, key *rsa.PrivateKey) bool {
	return key.PublicKey.Equal(c.PublicKey) && c.CheckSignatureFrom(f.ca.cert) == nil &&
		f.now().Add(renewBefore).Before(c.NotAfter)
}

// names reports whether a certificate is good for a host.
func names(c *x509.Certificate, host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return slices.ContainsFunc(c.IPAddresses, ip.Equal)
	}
	return c.VerifyHostname(host) == nil
}

// issue makes a certificate. An issuer without certificate signs its own.
func (f *Federation) issue(by issuer, key *rsa.PrivateKey, s subject) (*x509.Certificate, error) {
	if s.uuid == uuid.Nil {
		s.uuid = uuid.New()
	}
	now := f.now().UTC().Truncate(time.Second)
	t := &x509.Certificate{
		Subject: pkix.Name{
			Organization:       []string{string(s.urn.Authority)},
			OrganizationalUnit: []string{string(s.urn.Type)},
			CommonName:         s.urn.Name,
		},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(s.validity),
		KeyUsage:              s.usage,
		ExtKeyUsage:           s.purposes,
		BasicConstraintsValid: true,
		IsCA:                  s.ca,
		SignatureAlgorithm:    x509.SHA256WithRSA,
		URIs: []*url.URL{
			{Scheme: "urn", Opaque: strings.TrimPrefix(s.urn.String(), "urn:")},
			{Scheme: "urn", Opaque: "uuid:" + s.uuid.String()},
		},
	}
	// Common names have at most 64 characters (RFC 5280, upper bounds).
	if len(t.Subject.CommonName) > 64 {
		t.Subject.CommonName = s.uuid.String()
	}
	if len(s.urn.Authority) > 64 {
		t.Subject.Organization = nil
	}
	if s.email != "" {
		t.EmailAddresses = []string{s.email}
	}
	for _, host := range s.hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	parent := by.cert
	if parent == nil {
		parent = t
	} else if t.NotAfter.After(parent.NotAfter) {
		t.NotAfter = parent.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, by.key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate for %s: %w", s.urn, err)
	}
	return x509.ParseCertificate(der)
}

// URNOf returns the URN in a certificate's subjectAltName.
func URNOf(c *x509.Certificate) (urn.URN, error) {
	for _, u := range c.URIs {
		if name, err := urn.Parse(u.String()); err == nil {
			return name, nil
		}
	}
	return urn.URN{}, fmt.Errorf("certificate of %q: no urn:publicid in its subjectAltName", c.Subject)
}

// uuidOf returns the UUID in a certificate's subjectAltName, or the zero UUID.
func uuidOf(c *x509.Certificate) uuid.UUID {
	for _, u := range c.URIs {
		if text, ok := strings.CutPrefix(u.String(), "urn:uuid:"); ok {
			if id, err := uuid.Parse(text); err == nil {
				return id
			}
		}
	}
	return uuid.Nil
}
