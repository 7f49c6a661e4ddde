package gateway

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/crypto/ssh"

	"croft/internal/atomicfile"
)

// OpenHostKey reads the gateway's host key from a file, as OpenSSH keeps them,
// or makes one. Clients remember it: it has to survive a crash once it has been
// shown.
func OpenHostKey(file string, random io.Reader) (ssh.Signer, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = makeHostKey(file, random)
	}
	if err != nil {
		return nil, fmt.Errorf("host key of the SSH gateway: %w", err)
	}
	key, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("host key of the SSH gateway: %s: %w (remove the file to have a new one made)", file, err)
	}
	return key, nil
}

func makeHostKey(file string, random io.Reader) ([]byte, error) {
	_, private, err := ed25519.GenerateKey(random)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "croft gateway")
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(block)
	return data, atomicfile.Write(file, data, 0o600)
}
