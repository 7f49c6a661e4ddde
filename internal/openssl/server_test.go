package openssl

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// testServer is an http.Server over this package. Its answer names the caller
// once the chain has been verified, as an application does it.
type testServer struct {
	addr     string
	url      string
	root     *identity // of the server and of members
	members  *identity // issues member certificates
	mu       sync.Mutex
	accepted int
	failures chan error
}

type countingListener struct {
	net.Listener
	s *testServer
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.s.mu.Lock()
		l.s.accepted++
		l.s.mu.Unlock()
	}
	return c, err
}

func startServer(t testing.TB, key crypto.Signer, timeout time.Duration) *testServer {
	t.Helper()
	root, members := newIssuer(t)
	s := &testServer{root: root, members: members, failures: make(chan error, 1000)}
	id := issue(t, root, key, server)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewListener(countingListener{inner, s}, &ServerConfig{
		CertificatePEM: id.pem(), KeyPEM: id.keyPEM(), HandshakeTimeout: timeout,
		OnHandshakeError: func(_ net.Addr, err error) { s.failures <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.addr = inner.Addr().String()
	s.url = "https://" + s.addr
	roots := []*Certificate{root.cert(t)}
	srv := &http.Server{
		ConnContext: ConnContext,
		ErrorLog:    log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, ok := FromContext(r.Context())
			if !ok {
				http.Error(w, "no connection", http.StatusInternalServerError)
				return
			}
			peer := c.PeerCertificates()
			_, err := peer[0].Verify(VerifyOptions{Roots: roots, Intermediates: peer[1:], Purpose: ClientPurpose, MinRSABits: 1024, AllowSHA1: true})
			if err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
			if r.Method == http.MethodPost {
				w.Header().Set("Content-Type", "application/octet-stream")
				io.Copy(w, r.Body)
				return
			}
			fmt.Fprintf(w, "hello %s over %s", strings.Join(peer[0].URIs, " "), c.Version())
		}),
	}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return s
}

func (s *testServer) failure(t testing.TB) error {
	t.Helper()
	select {
	case err := <-s.failures:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the server reported no failed handshake")
		return nil
	}
}

func (s *testServer) member(t testing.TB, key crypto.Signer) *identity {
	return issue(t, s.members, key, member("alice"))
}

// client returns an http.Client over this package.
func (s *testServer) client(t testing.TB, id *identity) *http.Client {
	t.Helper()
	c := &ClientConfig{Roots: []*Certificate{s.root.cert(t)}}
	if id != nil {
		c.CertificatePEM, c.KeyPEM = id.chainPEM(), id.keyPEM()
	}
	tr := &http.Transport{DialTLSContext: c.DialTLSContext}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 60 * time.Second}
}

// goConfig is crypto/tls's way to the server. The callback keeps crypto/tls
// from parsing the client's own certificate, which it could not.
func (s *testServer) goConfig(t testing.TB, id *identity, version uint16) *tls.Config {
	t.Helper()
	root, err := x509.ParseCertificate(s.root.der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	own := &tls.Certificate{PrivateKey: id.key}
	for i := id; i != nil && i.up != nil; i = i.up {
		own.Certificate = append(own.Certificate, i.der)
	}
	return &tls.Config{RootCAs: pool, MinVersion: version, MaxVersion: version,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }}
}

func get(t testing.TB, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

const aliceURN = "urn:publicid:IDN+example.org:proj+user+alice"

// TestGoRefusesTheHandshake shows why this package exists: a server of
// crypto/tls that asks for no verification at all.
func TestGoRefusesTheHandshake(t *testing.T) {
	s := startServer(t, ecKey(t), 0)
	alice := s.member(t, rsaKey(t, 2048))
	srv := issue(t, s.root, ecKey(t), server)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		a, b := net.Pipe()
		goServer := tls.Server(a, &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{srv.der}, PrivateKey: srv.key}},
			ClientAuth:   tls.RequireAnyClientCert, MinVersion: version, MaxVersion: version,
		})
		client, err := Client(b, &ClientConfig{CertificatePEM: alice.chainPEM(), KeyPEM: alice.keyPEM(), InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, client)
		err = goServer.Handshake()
		a.Close()
		client.Close()
		if err == nil || !strings.Contains(err.Error(), "x509: ") {
			t.Errorf("%s: crypto/tls: %v, want an error of x509: is this package still needed?", tls.VersionName(version), err)
		} else {
			t.Logf("%s: crypto/tls: %v", tls.VersionName(version), err)
		}
	}
}

// TestClients lets every kind of client that is at hand call with Emulab's
// kind of certificate.
func TestClients(t *testing.T) {
	for _, serverKey := range []struct {
		name string
		key  crypto.Signer
	}{{"EC server", ecKey(t)}, {"RSA server", rsaKey(t, 2048)}} {
		s := startServer(t, serverKey.key, 0)
		alice := s.member(t, rsaKey(t, 2048))
		dir := t.TempDir()
		cert, key, ca := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")
		for file, text := range map[string][]byte{cert: alice.chainPEM(), key: alice.keyPEM(), ca: s.root.pem()} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range []struct {
			name          string
			version       uint16
			openssl, curl []string
			python        string
		}{
			{"TLSv1.2", tls.VersionTLS12, []string{"-tls1_2"}, []string{"--tls-max", "1.2"}, "TLSv1_2"},
			{"TLSv1.3", tls.VersionTLS13, []string{"-tls1_3"}, []string{"--tlsv1.3"}, "TLSv1_3"},
		} {
			want := "hello " + aliceURN + " urn:uuid:33178d77-a930-40b1-9469-3aae08755743 over " + v.name
			check := func(t *testing.T, out string) {
				t.Helper()
				if !strings.Contains(out, want) {
					t.Errorf("answer %q, want %q", out, want)
				}
			}
			t.Run(serverKey.name+"/"+v.name+"/go", func(t *testing.T) {
				tr := &http.Transport{TLSClientConfig: s.goConfig(t, alice, v.version)}
				defer tr.CloseIdleConnections()
				_, body := get(t, &http.Client{Transport: tr}, s.url)
				check(t, body)
			})
			t.Run(serverKey.name+"/"+v.name+"/s_client", func(t *testing.T) {
				args := append([]string{"s_client", "-connect", s.addr, "-cert", cert, "-cert_chain", cert, "-key", key, "-CAfile", ca,
					"-verify_return_error", "-servername", "am.example.org", "-ign_eof"}, v.openssl...)
				check(t, run(t, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "openssl", args...))
			})
			t.Run(serverKey.name+"/"+v.name+"/curl", func(t *testing.T) {
				args := append([]string{"-sS", "--cert", cert, "--key", key, "--cacert", ca, s.url}, v.curl...)
				check(t, run(t, "", "curl", args...))
			})
			t.Run(serverKey.name+"/"+v.name+"/python", func(t *testing.T) {
				check(t, run(t, "", "python3", "-c", `
import http.client, ssl, sys
addr, cert, key, ca, version = sys.argv[1:]
c = ssl.create_default_context(cafile=ca)
c.load_cert_chain(cert, key)
c.minimum_version = c.maximum_version = ssl.TLSVersion[version]
h = http.client.HTTPSConnection(addr, context=c)
for i in range(3):
    h.request("GET", "/")
    print(h.getresponse().read().decode())
body = b"x" * 3000000
h.request("POST", "/", body)
assert h.getresponse().read() == body
`, s.addr, cert, key, ca, v.python))
			})
		}
		t.Run(serverKey.name+"/own", func(t *testing.T) {
			_, body := get(t, s.client(t, alice), s.url)
			if !strings.Contains(body, aliceURN) {
				t.Error(body)
			}
		})
	}
}

func run(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed (apt-get install openssl curl python3): %v", name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%s: %v", name, err)
	}
	return string(out)
}

// TestOldClients: keys and signatures that Verify may refuse get through the
// handshake, so that the refusal can be explained.
func TestOldClients(t *testing.T) {
	s := startServer(t, rsaKey(t, 2048), 0)
	oldRoot := issue(t, nil, rsaKey(t, 1024), authority("old"))
	sha1 := func(c *x509.Certificate) { member("old")(c); c.SignatureAlgorithm = x509.SHA1WithRSA }
	expired := func(c *x509.Certificate) {
		member("late")(c)
		c.NotBefore, c.NotAfter = now.Add(-2*time.Hour), now.Add(-time.Hour)
	}
	selfSigned := issue(t, nil, ecKey(t), member("nobody"))
	selfSigned.up = &identity{der: selfSigned.der} // show it
	for name, test := range map[string]struct {
		id     *identity
		status int
		says   string
	}{
		"ed25519":     {s.member(t, edKey(t)), 200, aliceURN},
		"ec":          {s.member(t, ecKey(t)), 200, aliceURN},
		"rsa 1024":    {s.member(t, rsaKey(t, 1024)), 200, aliceURN},
		"rsa 3072":    {s.member(t, rsaKey(t, 3072)), 200, aliceURN},
		"sha1 chain":  {issue(t, issue(t, oldRoot, rsaKey(t, 1024), authority("older")), rsaKey(t, 1024), sha1), 403, "neither a trust root"},
		"expired":     {issue(t, s.members, ecKey(t), expired), 403, "expired at"},
		"self-signed": {selfSigned, 403, "signed by itself"},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+"/"+tls.VersionName(version), func(t *testing.T) {
				tr := &http.Transport{TLSClientConfig: s.goConfig(t, test.id, version)}
				defer tr.CloseIdleConnections()
				status, body := get(t, &http.Client{Transport: tr}, s.url)
				if status != test.status || !strings.Contains(body, test.says) {
					t.Errorf("%d %s; want %d %s", status, body, test.status, test.says)
				}
			})
		}
		t.Run(name+"/own", func(t *testing.T) {
			if status, body := get(t, s.client(t, test.id), s.url); status != test.status || !strings.Contains(body, test.says) {
				t.Errorf("%d %s; want %d %s", status, body, test.status, test.says)
			}
		})
	}
}

func TestRefusedHandshakes(t *testing.T) {
	s := startServer(t, rsaKey(t, 2048), 0)
	alice := s.member(t, rsaKey(t, 2048))
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, text := range map[string][]byte{cert: alice.pem(), key: alice.keyPEM()} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	identity := []string{"-cert", cert, "-key", key}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no certificate, 1.2": {[]string{"-tls1_2"}, "client showed no certificate"},
		"no certificate, 1.3": {[]string{"-tls1_3"}, "client showed no certificate"},
		"TLS 1.1":             {append(identity, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), "neither TLS 1.2 nor 1.3"},
		"RSA key exchange":    {append(identity, "-tls1_2", "-cipher", "AES128-GCM-SHA256"), "no cipher in common"},
		"CBC":                 {append(identity, "-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA"), "no cipher in common"},
	} {
		t.Run(name, func(t *testing.T) {
			out := run(t, "GET / HTTP/1.0\r\n\r\n", "openssl", append([]string{"s_client", "-connect", s.addr, "-ign_eof"}, test.args...)...)
			if strings.Contains(out, "hello") {
				t.Fatal(out)
			}
			if err := s.failure(t); !strings.Contains(err.Error(), test.want) {
				t.Errorf("server says %q, want %q", err, test.want)
			}
			if !strings.Contains(out, "alert") {
				t.Errorf("client saw no alert: %s", out)
			}
		})
	}
	t.Run("our client without certificate", func(t *testing.T) {
		_, err := s.client(t, nil).Get(s.url)
		if err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("client says %v", err)
		}
		if err := s.failure(t); !strings.Contains(err.Error(), "client showed no certificate") {
			t.Error(err)
		}
	})
	t.Run("renegotiation", func(t *testing.T) {
		// s_client asks for a renegotiation when a line is R.
		out := run(t, "R\nGET / HTTP/1.0\r\n\r\n", "openssl", append([]string{"s_client", "-connect", s.addr, "-tls1_2"}, identity...)...)
		if !strings.Contains(out, "RENEGOTIATING") || !strings.Contains(out, "no renegotiation") {
			t.Error(out)
		}
	})
	t.Run("plain HTTP", func(t *testing.T) {
		resp, err := http.Get("http://" + s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 400 || !strings.Contains(string(body), "HTTPS") {
			t.Errorf("%s %s", resp.Status, body)
		}
		if err := s.failure(t); !strings.Contains(err.Error(), "plain HTTP") {
			t.Error(err)
		}
	})
	t.Run("port checker", func(t *testing.T) {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		get(t, s.client(t, alice), s.url) // by now the other one is gone
		select {
		case err := <-s.failures:
			t.Errorf("reported: %v", err)
		default:
		}
	})
}

func TestNoResumption(t *testing.T) {
	s := startServer(t, ecKey(t), 0)
	alice := s.member(t, ecKey(t))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c := s.goConfig(t, alice, version)
		c.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		for range 3 {
			conn, err := tls.Dial("tcp", s.addr, c)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
			answer, _ := io.ReadAll(conn)
			if conn.ConnectionState().DidResume || !bytes.Contains(answer, []byte(aliceURN)) {
				t.Errorf("%s: resumed %v, %s", tls.VersionName(version), conn.ConnectionState().DidResume, answer)
			}
			conn.Close()
		}
	}
}

func TestServerName(t *testing.T) {
	root := issue(t, nil, ecKey(t), authority("root"))
	for _, name := range []string{"am.example.org", "127.0.0.1"} {
		cl, srv := pipe(t, issue(t, root, ecKey(t), server), issue(t, root, ecKey(t), member("alice")),
			&ClientConfig{Roots: []*Certificate{root.cert(t)}, ServerName: name})
		go cl.Handshake(t.Context())
		if err := srv.Handshake(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := name
		if name == "127.0.0.1" {
			want = "" // addresses are not sent
		}
		if got := srv.ServerName(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestServerSetUp(t *testing.T) {
	root := issue(t, nil, ecKey(t), authority("root"))
	a, b := issue(t, root, ecKey(t), server), issue(t, root, ecKey(t), server)
	for name, test := range map[string]struct {
		cert, key []byte
		want      string
	}{
		"key of another":     {a.pem(), b.keyPEM(), "key"},
		"no key":             {a.pem(), nil, "own key: none"},
		"key is text":        {a.pem(), []byte("hello"), "own key"},
		"certificate is key": {a.keyPEM(), a.keyPEM(), "no CERTIFICATE block"},
		"encrypted key":      {a.pem(), encryptedKey(t, b), "unencrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			_, err = NewListener(l, &ServerConfig{CertificatePEM: test.cert, KeyPEM: test.key})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func encryptedKey(t *testing.T, id *identity) []byte {
	out := run(t, string(id.keyPEM()), "openssl", "pkcs8", "-topk8", "-passout", "pass:x")
	if !strings.Contains(out, "ENCRYPTED") {
		t.Skip("openssl made no encrypted key: " + out)
	}
	return []byte(out)
}

// TestSlowClients: those who connect and say nothing hold up nobody, and are
// cut off.
func TestSlowClients(t *testing.T) {
	s := startServer(t, ecKey(t), 3*time.Second)
	var idle []net.Conn
	for range 50 {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte{22, 3, 1})
		idle = append(idle, c)
	}
	if _, body := get(t, s.client(t, s.member(t, ecKey(t))), s.url); !strings.Contains(body, aliceURN) {
		t.Error(body)
	}
	for _, c := range idle {
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("not cut off")
		}
		err := s.failure(t)
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("server says %v", err)
		}
	}
}

func TestKeepAlive(t *testing.T) {
	s := startServer(t, ecKey(t), 0)
	c := s.client(t, s.member(t, ecKey(t)))
	for range 20 {
		get(t, c, s.url)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accepted != 1 {
		t.Errorf("%d connections for 20 requests one after the other", s.accepted)
	}
}

// TestLargeBodies sends as much as the largest documents, both ways and in
// parallel.
func TestLargeBodies(t *testing.T) {
	s := startServer(t, ecKey(t), 0)
	c := s.client(t, s.member(t, ecKey(t)))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			body := bytes.Repeat([]byte(fmt.Sprintf("%07d\n", i)), 20<<20/8)
			resp, err := c.Post(s.url, "application/octet-stream", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d of %d bytes: %v", len(got), len(body), err)
			}
		})
	}
	wg.Wait()
}
