package federation

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"
)

// Keys are RSA: SFA credentials are signed with rsa-sha256, and clients as old
// as M2Crypto and Java 6 read them.
const (
	authorityBits = 3072
	keyBits       = 2048
)

// ensureKey returns the RSA key in a file, which it makes if it is missing.
func (c *changes) ensureKey(f *Federation, file, what string, bits int) (*rsa.PrivateKey, error) {
	err := c.ensure(f, file, what, 0o600, func() ([]byte, error) {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
	})
	if err != nil {
		return nil, err
	}
	return readKey(f.path(file))
}

func readKey(path string) (*rsa.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("read key %s: no PEM in it", path)
	}
	var key crypto.PrivateKey
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		err = fmt.Errorf("PEM block %q is no private key", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", path, err)
	}
	k, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read key %s: not an RSA key", path)
	}
	return k, nil
}

// readCertificates reads the certificates of a PEM file, at least one.
func readCertificates(path string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	var chain []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read certificate %s: %w", path, err)
		}
		chain = append(chain, cert)
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("read certificate %s: no certificate in it", path)
	}
	return chain, nil
}

func encodeCertificates(chain ...*x509.Certificate) []byte {
	var out []byte
	for _, c := range chain {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

// ensureLoginKey makes an Ed25519 key pair for SSH, or the public half of the
// one that is there.
func (c *changes) ensureLoginKey(f *Federation, file, comment string) error {
	err := c.ensure(f, file, "key for logins", 0o600, func() ([]byte, error) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		block, err := ssh.MarshalPrivateKey(key, comment)
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(block), nil
	})
	if err != nil {
		return err
	}
	return c.ensure(f, file+".pub", "", 0o644, func() ([]byte, error) {
		data, err := os.ReadFile(f.path(file))
		if err != nil {
			return nil, err
		}
		signer, err := ssh.ParsePrivateKey(data)
		if err != nil {
			var locked *ssh.PassphraseMissingError
			if errors.As(err, &locked) {
				return nil, fmt.Errorf("%s has a passphrase: make %s.pub with ssh-keygen -y", file, file)
			}
			return nil, err
		}
		line := ssh.MarshalAuthorizedKey(signer.PublicKey())
		return append(line[:len(line)-1], []byte(" "+comment+"\n")...), nil
	})
}
