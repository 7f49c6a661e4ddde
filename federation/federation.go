// Package federation makes a stand-alone federation in a folder: a
// certification authority, members and slices with their certificates, keys
// and credentials, as clients of the AM API expect them.
//
//	pki/        ca.pem ca-key.pem   certification authority
//	            sa.pem sa-key.pem   slice authority: signs credentials
//	            server.pem server-key.pem
//	trusted/    ca.pem              trust roots of the aggregate
//	members/NAME/  cert.pem key.pem id_ed25519 id_ed25519.pub user-credential.xml
//	slices/NAME/   slice.pem slice.json credential-MEMBER.xml
//
// Every step finishes what an interrupted one began, and none replaces a key.
package federation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"croft/internal/atomicfile"
	"croft/urn"
)

// Federation is a federation in a folder.
type Federation struct {
	dir       string
	now       func() time.Time
	authority urn.Authority
	ca, sa    issuer
}

// Options say what federation to make.
type Options struct {
	// Authority names it: what all its URNs begin with.
	Authority urn.Authority
	// Manager is the URN of the aggregate that the server certificate is for.
	Manager urn.URN
	// Hosts are the names and IP addresses under which clients reach it.
	Hosts []string
}

// Change says what became of one file.
type Change struct {
	File   string `json:"file"`           // relative to the federation's folder
	What   string `json:"what,omitempty"` // what it is, for people
	Action Action `json:"action"`
}

// Action is what was done to a file.
type Action string

// The actions.
const (
	Made    Action = "made"
	Kept    Action = "kept"
	Renewed Action = "renewed"
)

// Validity of what the federation issues.
const (
	authorityValidity = 10 * 365 * 24 * time.Hour
	serverValidity    = 2 * 365 * 24 * time.Hour
	memberValidity    = 2 * 365 * 24 * time.Hour
	// What ends sooner than this is renewed by the command that made it.
	renewBefore = 60 * 24 * time.Hour
	// Clocks differ a little between machines.
	backdated = time.Hour
)

// DefaultSliceValidity is how long a slice and its credentials last if nobody
// says otherwise.
const DefaultSliceValidity = 30 * 24 * time.Hour

// ErrExists says that a name is taken.
var ErrExists = errors.New("exists already")

// Init makes a federation in dir, or what is missing of it. now is the clock
// that certificates are dated by.
func Init(dir string, o Options, now func() time.Time) (*Federation, []Change, error) {
	if _, err := urn.New(o.Authority, urn.AuthorityType, "ca"); err != nil {
		return nil, nil, fmt.Errorf("make federation: %w", err)
	}
	for _, sub := range []string{"", "trusted", "members", "slices"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, nil, fmt.Errorf("make federation: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "pki"), 0o700); err != nil {
		return nil, nil, fmt.Errorf("make federation: %w", err)
	}
	f := &Federation{dir: dir, now: now, authority: o.Authority}
	var log changes
	if err := f.makeAuthorities(&log); err != nil {
		return nil, log, err
	}
	if err := f.makeServer(o, &log); err != nil {
		return nil, log, err
	}
	if err := log.ensure(f, "trusted/ca.pem", "trust root of the aggregate", 0o644, func() ([]byte, error) {
		return os.ReadFile(f.path("pki/ca.pem"))
	}); err != nil {
		return nil, log, err
	}
	return f, log, nil
}

// Open returns the federation in dir.
func Open(dir string, now func() time.Time) (*Federation, error) {
	f := &Federation{dir: dir, now: now}
	if _, err := os.Stat(f.path("pki/ca.pem")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no federation in %s (croft init makes one, --dir names another folder)", dir)
	}
	if err := f.readAuthorities(); err != nil {
		return nil, err
	}
	return f, nil
}

// Authority returns the federation's name space.
func (f *Federation) Authority() urn.Authority { return f.authority }

// RootFile is the file of the federation's root certificate.
func (f *Federation) RootFile() string { return f.path("pki/ca.pem") }

func (f *Federation) path(file string) string { return filepath.Join(f.dir, filepath.FromSlash(file)) }

// changes notes what a step does.
type changes []Change

func (c *changes) add(file, what string, a Action) {
	*c = append(*c, Change{File: file, What: what, Action: a})
}

// ensure makes a file unless it is there.
func (c *changes) ensure(f *Federation, file, what string, mode fs.FileMode, contents func() ([]byte, error)) error {
	if _, err := os.Stat(f.path(file)); err == nil {
		c.add(file, what, Kept)
		return nil
	}
	data, err := contents()
	if err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	switch err := atomicfile.Create(f.path(file), data, mode); {
	case errors.Is(err, fs.ErrExist):
		c.add(file, what, Kept)
	case err != nil:
		return err
	default:
		c.add(file, what, Made)
	}
	return nil
}

// replace makes a file, or anew if it is there.
func (c *changes) replace(f *Federation, file, what string, mode fs.FileMode, data []byte) error {
	action := Made
	if _, err := os.Stat(f.path(file)); err == nil {
		action = Renewed
	}
	if err := atomicfile.Write(f.path(file), data, mode); err != nil {
		return err
	}
	c.add(file, what, action)
	return nil
}
