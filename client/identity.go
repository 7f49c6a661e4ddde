package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"croft/internal/openssl"
	"croft/urn"
)

// Identity is who calls: a member's certificate and keys.
type Identity struct {
	URN            urn.URN
	CertificatePEM []byte // the chain, the member's first
	KeyPEM         []byte
	LoginKey       string   // file of the private key for logins; "" if there is none
	PublicKeys     []string // for logins, lines as in authorized_keys
	UserCredential string   // "" if there is none
}

// LoadIdentity reads a member's folder, as croft member add makes it:
// cert.pem and key.pem, and if they are there id_ed25519, id_ed25519.pub and
// user-credential.xml.
func LoadIdentity(dir string) (*Identity, error) {
	id := new(Identity)
	var err error
	if id.CertificatePEM, err = os.ReadFile(filepath.Join(dir, "cert.pem")); err != nil {
		return nil, fmt.Errorf("read member: %w (croft member add NAME makes one, --member names a folder)", err)
	}
	if id.KeyPEM, err = os.ReadFile(filepath.Join(dir, "key.pem")); err != nil {
		return nil, fmt.Errorf("read member: %w", err)
	}
	chain, err := openssl.ParsePEM(id.CertificatePEM)
	if err != nil {
		return nil, fmt.Errorf("read member %s: %w", filepath.Join(dir, "cert.pem"), err)
	}
	for _, uri := range chain[0].URIs {
		if name, err := urn.Parse(uri); err == nil {
			id.URN = name
			break
		}
	}
	if id.URN.IsZero() {
		return nil, fmt.Errorf("read member %s: no urn:publicid in the certificate's subjectAltName", filepath.Join(dir, "cert.pem"))
	}
	if key := filepath.Join(dir, "id_ed25519"); exists(key) {
		id.LoginKey = key
	}
	public, err := readIfThere(filepath.Join(dir, "id_ed25519.pub"))
	if err != nil {
		return nil, fmt.Errorf("read member: %w", err)
	}
	for line := range strings.Lines(public) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			id.PublicKeys = append(id.PublicKeys, line)
		}
	}
	if id.UserCredential, err = readIfThere(filepath.Join(dir, "user-credential.xml")); err != nil {
		return nil, fmt.Errorf("read member: %w", err)
	}
	return id, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readIfThere(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}
