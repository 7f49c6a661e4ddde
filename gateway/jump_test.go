package gateway_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"croft/aggregate"
	"croft/aggregate/aggregatetest/surroundings"
	"croft/gateway"
	"croft/urn"
)

var alice = urn.MustParse("urn:publicid:IDN+example.org+user+alice")

// directory is one node, "node.exp", that one key opens.
type directory struct {
	t    *testing.T
	key  string
	dial gateway.Dial

	mu   sync.Mutex
	open bool
	cuts []context.CancelCauseFunc
	left int
}

func (d *directory) Members(_ context.Context, key string) ([]urn.URN, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.open || key != d.key {
		return nil, nil
	}
	return []urn.URN{alice}, nil
}

func (d *directory) Reachable(context.Context, string) ([]string, error) {
	return []string{"node.exp"}, nil
}

func (d *directory) Reach(_ context.Context, key, name string, port int) (*aggregate.Visit, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !d.open || key != d.key || name != "node.exp" || port != 22:
		return nil, &aggregate.Error{Kind: aggregate.NotFound, Err: errors.New("no such node")}
	}
	ctx, cut := context.WithCancelCause(context.Background())
	d.cuts = append(d.cuts, cut)
	return &aggregate.Visit{Member: alice, Sliver: nodeA, Name: name, Open: ctx, Dial: d.dial, Leave: func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.left++
	}}, nil
}

func (d *directory) cut(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = false
	for _, cut := range d.cuts {
		cut(errors.New(why))
	}
}

func signer(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// host is a jump host that listens.
type host struct {
	*directory
	address string
	key     ssh.Signer // that opens the node
	show    ssh.PublicKey
	log     *surroundings.Log
	stop    func()
}

func newHost(t *testing.T) *host {
	t.Helper()
	key := signer(t)
	h := &host{key: key, log: new(surroundings.Log), directory: &directory{t: t, open: true, dial: node(t, "node"),
		key: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))}}
	hostKey, err := gateway.OpenHostKey(filepath.Join(t.TempDir(), "key"), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h.show = hostKey.PublicKey()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.address = l.Addr().String()
	j := gateway.NewJump(gateway.JumpConfig{Nodes: h.directory, HostKey: hostKey, Testbed: "example.org", Clock: time.Now,
		Log: slog.New(slog.NewTextHandler(h.log, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- j.Serve(ctx, l) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(h.stop)
	return h
}

func (h *host) login(t *testing.T, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	t.Helper()
	c, err := ssh.Dial("tcp", h.address, &ssh.ClientConfig{User: "anybody", Auth: auth, HostKeyCallback: ssh.FixedHostKey(h.show), Timeout: 30 * time.Second})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func (h *host) client(t *testing.T) *ssh.Client {
	t.Helper()
	c, err := h.login(t, ssh.PublicKeys(h.key))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// logged waits for a line of the log that has all the words.
func (h *host) logged(t *testing.T, words ...string) {
	t.Helper()
	for range 1000 {
		for line := range strings.Lines(h.log.String()) {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("no line with %q in\n%s", words, h.log)
}

func TestJump(t *testing.T) {
	h := newHost(t)
	c := h.client(t)
	n, err := c.Dial("tcp", "node.exp:22")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(n, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if err := n.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(n); err != nil || string(got) != "node\nhello\n" {
		t.Errorf("the node says %q, %v", got, err)
	}
	h.logged(t, "method=direct-tcpip", "code=SUCCESS", "sent=6", "received=11", "end=closed", "caller="+alice.String(),
		"key="+ssh.FingerprintSHA256(h.key.PublicKey()), "sliver="+nodeA.String(), "to=node.exp:22", "account=anybody")
	c.Close()
	h.logged(t, "method=connection", "channels=1", "end=\"the client has left\"")
	h.stop()
	if h.left != 1 {
		t.Errorf("%d visits were left", h.left)
	}
}

func TestJumpRefuses(t *testing.T) {
	h := newHost(t)
	c := h.client(t)
	for _, to := range []string{"127.0.0.1:22", "node.exp:23", "other.exp:22", "localhost:22", "[::1]:22"} {
		if n, err := c.Dial("tcp", to); err == nil {
			n.Close()
			t.Errorf("%s was reached", to)
		}
	}
	for _, kind := range []string{"direct-streamlocal@openssh.com", "x11", "auth-agent@openssh.com", "tun@openssh.com", "forwarded-tcpip", ""} {
		if ch, _, err := c.OpenChannel(kind, nil); err == nil {
			ch.Close()
			t.Errorf("a channel %q was opened", kind)
		}
	}
	for _, data := range [][]byte{nil, {0}, {0xff, 0xff, 0xff, 0xff}, ssh.Marshal(struct {
		H string
		P uint32
		O string
		Q uint32
	}{"node.exp", 22 + 1<<16, "", 0})} {
		if ch, _, err := c.OpenChannel("direct-tcpip", data); err == nil {
			ch.Close()
			t.Errorf("a channel to %x was opened", data)
		}
	}
	if l, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
		t.Error("it forwards back")
	}
	if ok, _, err := c.SendRequest("keepalive@openssh.com", true, nil); ok || err != nil {
		t.Errorf("a request of OpenSSH's: %v, %v", ok, err)
	}
	h.logged(t, "code=FORBIDDEN", "to=localhost:22", "end=\"no such node\"")

	for name, auth := range map[string][]ssh.AuthMethod{
		"another key": {ssh.PublicKeys(signer(t))}, "a password": {ssh.Password("secret")}, "nothing": nil,
	} {
		if c, err := h.login(t, auth...); err == nil {
			c.Close()
			t.Errorf("%s lets in", name)
		}
	}
	h.logged(t, "method=login", "code=FORBIDDEN", "opens no node")
	cert := &ssh.Certificate{Key: h.key.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, h.key); err != nil {
		t.Fatal(err)
	}
	certified, err := ssh.NewCertSigner(cert, h.key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.login(t, ssh.PublicKeys(certified)); err == nil {
		t.Error("a certificate lets in")
	}
}

func TestJumpHasNoShell(t *testing.T) {
	h := newHost(t)
	c := h.client(t)
	for _, test := range []struct {
		name string
		do   func(*ssh.Session) error
	}{
		{"a shell", func(s *ssh.Session) error {
			if err := s.RequestPty("xterm", 24, 80, nil); err != nil {
				return err
			}
			if err := s.Shell(); err != nil {
				return err
			}
			return s.Wait()
		}},
		{"a command", func(s *ssh.Session) error { return s.Run("id") }},
		{"sftp", func(s *ssh.Session) error { return s.Run("internal-sftp") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := c.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			var said surroundings.Log
			s.Stderr = &said
			if err := test.do(s); err == nil || err.(*ssh.ExitError).ExitStatus() != 1 {
				t.Errorf("it ended with %v", err)
			}
			for _, want := range []string{"SSH gateway of example.org", "no shell", "ssh -J", "node.exp"} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("%q does not say %q", said.String(), want)
				}
			}
		})
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"auth-agent-req@openssh.com", "x11-req", "env"} {
		if ok, err := s.SendRequest(kind, true, nil); ok || err != nil {
			t.Errorf("%s: %v, %v", kind, ok, err)
		}
	}
}

func TestJumpIsCut(t *testing.T) {
	h := newHost(t)
	c := h.client(t)
	n, err := c.Dial("tcp", "node.exp:22")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(n, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	h.cut("the key has been taken away")
	if rest, _ := io.ReadAll(n); len(rest) > 0 {
		t.Errorf("after the cut came %q", rest)
	}
	if err := c.Wait(); err == nil {
		t.Log("the connection ended in order")
	}
	h.logged(t, "method=direct-tcpip", "end=\"the key has been taken away\"")
	h.logged(t, "method=connection", "end=\"the key opens no node any more\"")
	if _, err := h.login(t, ssh.PublicKeys(h.key)); err == nil {
		t.Error("the key still lets in")
	}
}

func TestJumpBounds(t *testing.T) {
	t.Run("failed logins", func(t *testing.T) {
		h := newHost(t)
		stranger := signer(t)
		for range 22 {
			if _, err := h.login(t, ssh.PublicKeys(stranger)); err == nil {
				t.Fatal("a stranger is in")
			}
		}
		if _, err := h.login(t, ssh.PublicKeys(h.key)); err == nil {
			t.Error("after so many failures from an address, it is let in at once")
		}
	})
	t.Run("channels", func(t *testing.T) {
		h := newHost(t)
		c := h.client(t)
		open := 0
		for range 80 {
			if _, err := c.Dial("tcp", "node.exp:22"); err == nil {
				open++
			}
		}
		if open != 64 {
			t.Errorf("%d channels at once, want 64", open)
		}
	})
	t.Run("connections", func(t *testing.T) {
		h := newHost(t)
		var all []net.Conn
		for range 64 {
			c, err := net.Dial("tcp", h.address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, 9)); err != nil { // "SSH-2.0-C"
				t.Fatalf("connection %d: %v", len(all), err)
			}
			all = append(all, c)
		}
		c, err := net.Dial("tcp", h.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got, err := io.ReadAll(c); len(got) > 0 {
			t.Errorf("connection 65 from an address is told %q, %v", got, err)
		}
	})
}

func TestHostKeyStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	first, err := gateway.OpenHostKey(file, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	again, err := gateway.OpenHostKey(file, rand.Reader)
	if err != nil || !bytes.Equal(again.PublicKey().Marshal(), first.PublicKey().Marshal()) {
		t.Errorf("another key: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.OpenHostKey(file, rand.Reader); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file without a key: %v", err)
	}
}
