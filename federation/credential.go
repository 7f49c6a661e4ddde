package federation

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"croft/credentials"
)

// What credentials let their owners do. The slice's are all rights, as
// Emulab's clearinghouse gives; the user's are those of GENI's.
var (
	userPrivileges  = []credentials.Privilege{{Name: "refresh"}, {Name: "resolve"}, {Name: "info"}}
	slicePrivileges = []credentials.Privilege{{Name: "*", Delegate: true}}
)

// ensureUserCredential sees to the credential with which a member asks for
// what is not about a slice. It lasts as long as the member's certificate and
// is renewed with it.
func (f *Federation) ensureUserCredential(m *Member, renew bool, log *changes) error {
	const what = "user credential"
	file := "members/" + m.Name + "/user-credential.xml"
	if _, err := os.Stat(f.path(file)); err == nil && !renew {
		log.add(file, what, Kept)
		return nil
	}
	chain := encodeCertificates(m.Certificate, f.ca.cert)
	signed, err := f.sign(chain, chain, userPrivileges, m.Certificate.NotAfter)
	if err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	return log.replace(f, file, what, 0o600, signed)
}

func (f *Federation) makeSliceCredential(s *Slice, m *Member, expires time.Time, log *changes) error {
	file := "slices/" + s.Name + "/credential-" + m.Name + ".xml"
	owner := encodeCertificates(m.Certificate, f.ca.cert)
	target := encodeCertificates(s.Certificate, f.ca.cert)
	signed, err := f.sign(owner, target, slicePrivileges, expires)
	if err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	return log.replace(f, file, "slice credential, until "+expires.Format(time.RFC3339), 0o600, signed)
}

func (f *Federation) sign(owner, target []byte, rights []credentials.Privilege, expires time.Time) ([]byte, error) {
	return credentials.Sign(credentials.Issue{
		Issuer: credentials.Issuer{
			Key:    f.sa.key,
			Chain:  encodeCertificates(f.sa.cert, f.ca.cert),
			Random: rand.Reader,
		},
		Owner: owner, Target: target, Privileges: rights, Expires: expires,
	})
}
