package docker_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"croft/drivers"
	"croft/drivers/docker"
	"croft/drivers/driverstest"
	"croft/urn"
)

// farParts are the parts of the conformance test for hosts that are other
// machines, or are taken for one: all but those about links.
var farParts = []string{"commands", "commands end with their context", "files", "unknown slivers"}

// longParts are those of long campaigns only: how users are told does not
// depend on the way to the host.
var longParts = []string{"several users", "users of a stopped node"}

func farSubject(t *testing.T, h docker.Host) driverstest.Subject {
	e := need(t, fullImage)
	cfg := docker.Config{Dir: t.TempDir(), Hosts: []docker.Host{h}}
	return driverstest.Subject{
		Open:    func(t *testing.T) drivers.Driver { return open(t, cfg) },
		Prepare: func(n *drivers.Node) { n.Image, n.Interfaces = fullImage, nil },
		Traces:  func(t *testing.T) []string { return e.traces(t, cfg.Dir) },
		Sudo:    true,
	}
}

func TestTLS(t *testing.T) {
	e := need(t, fullImage)
	h := e.tlsHost()
	for _, part := range farParts {
		driverstest.RunPart(t, part, func(t *testing.T) driverstest.Subject { return farSubject(t, h) })
	}
	for _, part := range longParts {
		driverstest.RunLong(t, part, func(t *testing.T) driverstest.Subject { return farSubject(t, h) })
	}
	t.Run("of another authority", func(t *testing.T) {
		stranger := filepath.Join(t.TempDir(), "pki")
		if err := writePKI(stranger); err != nil {
			t.Fatal(err)
		}
		for name, tls := range map[string]docker.TLS{
			"the engine is":  {Authority: stranger + "/ca.pem", Certificate: h.TLS.Certificate, Key: h.TLS.Key},
			"the manager is": {Authority: h.TLS.Authority, Certificate: stranger + "/client.pem", Key: stranger + "/client-key.pem"},
		} {
			bad := h
			bad.TLS = tls
			d := open(t, docker.Config{Dir: t.TempDir(), Hosts: []docker.Host{bad}})
			if err := d.Check(t.Context()); err == nil {
				t.Errorf("%s of another authority, and is talked to", name)
			}
			d.Close()
		}
	})
	if _, err := docker.New(docker.Config{Dir: t.TempDir(), Manager: manager, Hosts: []docker.Host{{Name: "open", Address: h.Address}}}); err == nil {
		t.Error("TCP without TLS is taken")
	}
}

func TestSSH(t *testing.T) {
	e := need(t, fullImage)
	h := startSSH(t, e)
	for _, part := range []string{"commands", "files"} {
		driverstest.RunPart(t, part, func(t *testing.T) driverstest.Subject { return farSubject(t, h) })
	}
	for _, part := range longParts {
		driverstest.RunLong(t, part, func(t *testing.T) driverstest.Subject { return farSubject(t, h) })
	}
	t.Run("another host key", func(t *testing.T) {
		bad := h
		bad.SSH.KnownHosts = filepath.Join(t.TempDir(), "known_hosts")
		key, _ := newKey(t)
		address := strings.TrimPrefix(strings.SplitN(h.Address, "@", 2)[1], "//")
		address, _, _ = strings.Cut(address, "/")
		if err := os.WriteFile(bad.SSH.KnownHosts, []byte(knownhosts.Line([]string{address}, key.PublicKey())+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		d := open(t, docker.Config{Dir: t.TempDir(), Hosts: []docker.Host{bad}})
		defer d.Close()
		if err := d.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "key") {
			t.Errorf("check: %v, want that the host's key is another one", err)
		}
	})
}

// TestSeveralHosts has one host that does not answer, then does.
func TestSeveralHosts(t *testing.T) {
	e := need(t, smallImage)
	pc := func(name string) urn.URN { return urn.URN{Authority: "example.org", Type: urn.Node, Name: name} }
	late := docker.Host{Name: "late", TLS: e.tlsHost().TLS, Components: []urn.URN{pc("far")}}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	late.Address = "tcp://" + closed.Addr().String()
	closed.Close()
	var way net.Listener // outlives the nodes
	t.Cleanup(func() {
		if way != nil {
			way.Close()
		}
	})
	r := newRig(t, docker.Config{Hosts: []docker.Host{late, hostAt(e.socket())}})
	if err := r.d.Check(t.Context()); err != nil {
		t.Errorf("one of two hosts is there, and the check fails: %v", err)
	}
	if got := r.d.Health(); len(got) != 1 || !got[0].Host.Equal(pc("far")) || !strings.Contains(got[0].Reason, "late") {
		t.Errorf("health: %+v", got)
	}
	here := r.node("here", smallImage)
	here.Host = pc("near")
	r.up(here)
	there := r.node("there", smallImage)
	there.Host = pc("far")
	if err := r.d.Make(t.Context(), there); err == nil {
		t.Error("made a node on a host that does not answer")
	}
	if out, err := r.sh(here, "echo on"); err != nil || out != "on" {
		t.Errorf("the other host's node: %q, %v", out, err)
	}
	if _, err := r.d.List(t.Context()); err == nil {
		t.Error("List tells all, though a host does not answer")
	}
	// It comes up: a way to the engine at its address.
	if way, err = net.Listen("tcp", closed.Addr().String()); err != nil {
		t.Fatal(err)
	}
	go relay(way, strings.TrimPrefix(e.tlsHost().Address, "tcp://"))
	if _, err := r.d.List(t.Context()); err != nil {
		t.Errorf("List when the host is up: %v", err)
	}
	if got := r.d.Health(); len(got) != 0 {
		t.Errorf("health when the host is up: %+v", got)
	}
}

func relay(l net.Listener, to string) {
	relayBy(l, func() (net.Conn, error) { return net.Dial("tcp", to) })
}

func relayBy(l net.Listener, dial func() (net.Conn, error)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			d, err := dial()
			if err != nil {
				return
			}
			defer d.Close()
			go io.Copy(d, c)
			io.Copy(c, d)
		}()
	}
}

// tlsHost is the engine by TCP.
func (e *engine) tlsHost() docker.Host {
	pki := filepath.Join(e.dir, "pki")
	return docker.Host{Name: "far", Address: "tcp://" + e.address,
		TLS: docker.TLS{Authority: pki + "/ca.pem", Certificate: pki + "/client.pem", Key: pki + "/client-key.pem"}}
}

// writePKI makes an authority and certificates of an engine and of its client.
func writePKI(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, caKey, err := certify(dir, "ca", nil, nil)
	if err != nil {
		return err
	}
	for _, name := range []string{"server", "client"} {
		if _, _, err := certify(dir, name, ca, caKey); err != nil {
			return err
		}
	}
	return nil
}

func certify(dir, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if ca == nil {
		c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign
		ca, caKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, caKey)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + "-key.pem": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			return nil, nil, err
		}
	}
	made, err := x509.ParseCertificate(der)
	return made, key, err
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(block)
}

// startSSH runs OpenSSH's server on the loopback address, by which the engine's
// socket is reached.
func startSSH(t *testing.T, e *engine) docker.Host {
	t.Helper()
	sshd := "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("SKIPPED: sshd is not installed (apt-get install openssh-server)")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	hostKey, hostPEM := newKey(t)
	userKey, userPEM := newKey(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	l.Close()
	for name, content := range map[string][]byte{
		"host": hostPEM, "user": userPEM, "authorized": ssh.MarshalAuthorizedKey(userKey.PublicKey()),
		"known_hosts": []byte(knownhosts.Line([]string{address}, hostKey.PublicKey()) + "\n"),
		"config": fmt.Appendf(nil, "ListenAddress 127.0.0.1:%s\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\n"+
			"PermitRootLogin prohibit-password\nPasswordAuthentication no\nUsePAM no\nMaxSessions 100\n", port, at("host"), at("authorized")),
	} {
		if err := os.WriteFile(at(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, sshd, "-D", "-e", "-f", at("config"))
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	return docker.Host{Name: "far", Address: "ssh://root@" + address + e.socket(), SSH: docker.SSH{Key: at("user"), KnownHosts: at("known_hosts")}}
}
