package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"croft/urn"
)

// Load reads the inventory in a file. Errors in what it says are an *Error.
func Load(path string) (*Snapshot, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(data, path)
}

// readFile reads no more of a file than Parse accepts and a byte over, so that
// a wrong path to something endless is an error and not the end.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the inventory: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the inventory %s: %w", path, err)
	}
	return data, nil
}

// Parse reads an inventory. name stands for it in messages. The error is an
// *Error with everything that was found wrong, each with its line.
func Parse(data []byte, name string) (*Snapshot, error) {
	b, err := build(data, name)
	if err != nil {
		return nil, err
	}
	return b.snapshot, nil
}

// build reads the file and makes a snapshot of it.
func build(data []byte, name string) (*builder, error) {
	p := &problems{file: name}
	root, ok := readYAML(data, p)
	if !ok {
		return nil, p.err()
	}
	file, _ := fileKind.read(p, root, "")
	b := &builder{problems: p, decl: file.it, snapshot: &Snapshot{}, places: map[string]place{}}
	// A file with mistakes is still built, to report those that only show then.
	b.all()
	if err := p.err(); err != nil {
		return nil, err
	}
	digest, err := b.snapshot.digest()
	if err != nil {
		return nil, fmt.Errorf("%s: digest: %w", name, err)
	}
	b.snapshot.Digest = digest
	b.snapshot.hosts = make(map[urn.URN]int, len(b.snapshot.Hosts))
	for i := range b.snapshot.Hosts {
		b.snapshot.hosts[b.snapshot.Hosts[i].ID.Canonical()] = i
	}
	return b, nil
}

// digest hashes the content of the snapshot, whatever file it came from.
func (s *Snapshot) digest() (string, error) {
	content := *s
	content.Digest = ""
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(&content); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
