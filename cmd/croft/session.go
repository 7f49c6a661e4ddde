package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"croft/client"
	"croft/federation"
	"croft/internal/config"
	"croft/urn"
)

// session is one aggregate and who calls it.
type session struct {
	*client.Client
	who    *client.Identity
	member string // the name that the member's files bear
	app    *app
}

// calls gives a command the flags of those that call an aggregate.
func (a *app) calls(c *cobra.Command) *cobra.Command {
	f := c.Flags()
	f.StringVar(&a.am, "am", "", "`URL` of the aggregate (default: the one of croft.yaml in --dir)")
	f.StringVar(&a.member, "member", "", "`folder` with cert.pem and key.pem, or name of a member in --dir (default alice)")
	f.BoolVar(&a.insecure, "insecure", false, "do not check the aggregate's certificate")
	f.DurationVar(&a.timeout, "timeout", 2*time.Minute, "how long to wait for the answer to a call")
	return c
}

// open prepares calls to the aggregate.
func (a *app) open() (*session, error) {
	dir := a.memberDir()
	who, err := client.LoadIdentity(dir)
	if err != nil {
		return nil, err
	}
	url := a.am
	if url == "" {
		conf, err := config.Load(a.path("croft.yaml"))
		if err != nil {
			return nil, fmt.Errorf("%w; or name an aggregate with --am", err)
		}
		url = conf.URL()
	}
	roots, err := a.roots()
	if err != nil {
		return nil, err
	}
	if a.insecure {
		a.warn("--insecure: %s may be anybody. Whoever answers there gets your credentials.", url)
	}
	c, err := client.New(client.Options{URL: url, Identity: who, Roots: roots, Insecure: a.insecure, Timeout: a.timeout})
	if err != nil {
		return nil, err
	}
	return &session{Client: c, who: who, member: filepath.Base(dir), app: a}, nil
}

// memberDir is the folder of the member who calls.
func (a *app) memberDir() string {
	switch {
	case a.member == "":
		return a.path("members", firstMember)
	case strings.ContainsRune(a.member, filepath.Separator):
		return filepath.Clean(a.member)
	}
	if dir := a.path("members", a.member); isDirectory(dir) {
		return dir
	}
	return a.member
}

// roots are the certificates that an aggregate's may come from: the
// federation's and the system's.
func (a *app) roots() ([]byte, error) {
	root, err := os.ReadFile(a.path("pki", "ca.pem"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("trust roots: %w", err)
	}
	return append(root, client.SystemRoots()...), nil
}

// slice resolves a slice given by name or URN, and reads its credential.
func (s *session) slice(name string) (urn.URN, []client.Credential, error) {
	id := urn.URN{Authority: s.who.URN.Authority, Type: urn.Slice, Name: name}
	if strings.Contains(name, ":") {
		var err error
		if id, err = urn.Parse(name); err != nil {
			return id, nil, fmt.Errorf("slice: %w", err)
		}
	}
	if id.Type != urn.Slice || strings.ContainsAny(id.Name, "/\\") {
		return id, nil, fmt.Errorf("%s is not a slice", name)
	}
	file := federation.CredentialFile(s.app.dir, id.Name, s.member)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && !id.Authority.Equal(s.who.URN.Authority) {
		// A slice of the REST APIs needs none: its aggregate knows whose it is.
		return id, s.userCredentials(), nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil, fmt.Errorf("no credential %s (croft slice add %s --member %s)", file, id.Name, s.member)
	}
	if err != nil {
		return id, nil, fmt.Errorf("read credential: %w", err)
	}
	return id, []client.Credential{client.SFA(string(data))}, nil
}

// userCredentials are those for calls that are not about a slice.
func (s *session) userCredentials() []client.Credential {
	if s.who.UserCredential == "" {
		return nil
	}
	return []client.Credential{client.SFA(s.who.UserCredential)}
}

// users are those whose keys the nodes get.
func (s *session) users() ([]client.User, error) {
	if len(s.who.PublicKeys) == 0 {
		return nil, fmt.Errorf("member %s has no id_ed25519.pub: nobody could log in", s.member)
	}
	return []client.User{{URN: s.who.URN, Keys: s.who.PublicKeys}}, nil
}

// parseEnd reads a time given by a person: a date, or a span from now.
func (a *app) parseEnd(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var span config.Duration
	if err := span.UnmarshalText([]byte(strings.TrimPrefix(text, "+"))); err == nil && span > 0 {
		return a.now().Add(span.Std()), nil
	}
	t, err := client.ParseTime(text)
	if err != nil {
		return t, fmt.Errorf("%q is not a time: want a date such as 2026-01-02T15:04:05Z, or a span from now such as 12h or 3d", text)
	}
	return t, nil
}
