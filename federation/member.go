package federation

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"github.com/google/uuid"

	"croft/urn"
)

// memberName is the rule for user names (AM API v3, "Identifiers").
var memberName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]{0,7}$`)

// Member is somebody who can use the federation's aggregates.
type Member struct {
	Name        string
	URN         urn.URN
	Dir         string // the folder with the member's files
	Certificate *x509.Certificate
}

// UUID returns the member's UUID, as the certificate has it.
func (m *Member) UUID() uuid.UUID { return uuidOf(m.Certificate) }

// AddMember makes a member, or what is missing of one. A certificate or
// credential that ends soon is renewed; keys stay. An empty e-mail address
// stands for NAME@AUTHORITY.
func (f *Federation) AddMember(name, email string) (*Member, []Change, error) {
	if !memberName.MatchString(name) {
		return nil, nil, fmt.Errorf("member name %q: want a letter and up to 7 letters, digits or underscores", name)
	}
	folder := "members/" + name + "/"
	if err := os.MkdirAll(f.path(folder), 0o700); err != nil {
		return nil, nil, fmt.Errorf("make member %s: %w", name, err)
	}
	if email == "" {
		email = name + "@" + string(f.authority.Top())
	}
	m := &Member{Name: name, URN: urn.URN{Authority: f.authority, Type: urn.User, Name: name}, Dir: f.path(folder)}
	var log changes
	key, err := log.ensureKey(f, folder+"key.pem", "key of the certificate", keyBits)
	if err != nil {
		return nil, log, err
	}
	s := subject{
		urn:      m.URN,
		email:    email,
		validity: memberValidity,
		usage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		purposes: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	certFile := folder + "cert.pem"
	old, err := readCertificates(f.path(certFile))
	switch {
	case err == nil && f.good(old[0], key):
		m.Certificate = old[0]
		log.add(certFile, "certificate of "+m.URN.String(), Kept)
	case err == nil:
		s.uuid = uuidOf(old[0])
		if len(old[0].EmailAddresses) > 0 {
			s.email = old[0].EmailAddresses[0]
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, log, err
	}
	renewed := m.Certificate == nil
	if renewed {
		if m.Certificate, err = f.issue(f.ca, key, s); err != nil {
			return nil, log, err
		}
		chain := encodeCertificates(m.Certificate, f.ca.cert)
		if err := log.replace(f, certFile, "certificate of "+m.URN.String(), 0o644, chain); err != nil {
			return nil, log, err
		}
	}
	if err := log.ensureLoginKey(f, folder+"id_ed25519", name+"@"+string(f.authority)); err != nil {
		return nil, log, err
	}
	return m, log, f.ensureUserCredential(m, renewed, &log)
}

// Member returns a member.
func (f *Federation) Member(name string) (*Member, error) {
	if !memberName.MatchString(name) {
		return nil, fmt.Errorf("%q is not the name of a member", name)
	}
	chain, err := readCertificates(f.path("members/" + name + "/cert.pem"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no member %s in this federation (croft member add %s)", name, name)
	}
	if err != nil {
		return nil, err
	}
	id, err := URNOf(chain[0])
	if err != nil {
		return nil, err
	}
	return &Member{Name: name, URN: id, Dir: f.path("members/" + name), Certificate: chain[0]}, nil
}
