package openssl

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// pipe connects a client and a server over TCP on the loopback.
func pipe(t testing.TB, srv, cl *identity, c *ClientConfig) (client, server *Conn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewListener(inner, &ServerConfig{CertificatePEM: srv.chainPEM(), KeyPEM: srv.keyPEM()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if cl != nil {
		c.CertificatePEM, c.KeyPEM = cl.chainPEM(), cl.keyPEM()
	}
	if client, err = Client(conn, c); err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = accepted.(*Conn)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// connected is pipe with the handshake done.
func connected(t testing.TB) (client, srv *Conn) {
	t.Helper()
	root := issue(t, nil, ecKey(t), authority("root"))
	client, srv = pipe(t, issue(t, root, ecKey(t), server), issue(t, root, ecKey(t), member("alice")),
		&ClientConfig{Roots: []*Certificate{root.cert(t)}, ServerName: "am.example.org"})
	errs := make(chan error)
	go func() { errs <- client.Handshake(context.Background()) }()
	if err := srv.Handshake(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	return client, srv
}

func TestBeforeTheHandshake(t *testing.T) {
	root := issue(t, nil, ecKey(t), authority("root"))
	client, _ := pipe(t, issue(t, root, ecKey(t), server), nil, &ClientConfig{InsecureSkipVerify: true})
	if client.PeerCertificates() != nil || client.Version() != "" || client.CipherSuite() != "" || client.ServerName() != "" {
		t.Error("something is known before the handshake")
	}
	if err := client.CloseWrite(); err == nil {
		t.Error("CloseWrite before the handshake")
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Handshake(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("handshake after Close: %v", err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after Close: %v", err)
	}
	if err := client.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

func TestWhatTheHandshakeFinds(t *testing.T) {
	client, srv := connected(t)
	if client.Version() != "TLSv1.3" || srv.Version() != "TLSv1.3" {
		t.Error(client.Version(), srv.Version())
	}
	if client.CipherSuite() != srv.CipherSuite() || !strings.HasPrefix(client.CipherSuite(), "TLS_") {
		t.Error(client.CipherSuite(), srv.CipherSuite())
	}
	if got := client.PeerCertificates(); len(got) != 1 || got[0].CommonName != "am.example.org" {
		t.Error(got)
	}
	if got := srv.PeerCertificates(); len(got) != 1 || got[0].CommonName != "alice" {
		t.Error(got)
	}
}

func TestClientVerifies(t *testing.T) {
	root, other := issue(t, nil, ecKey(t), authority("root")), issue(t, nil, ecKey(t), authority("other"))
	middle := issue(t, root, ecKey(t), authority("middle"))
	expired := func(c *x509.Certificate) {
		server(c)
		c.NotBefore, c.NotAfter = now.Add(-2*time.Hour), now.Add(-time.Hour)
	}
	clientOnly := func(c *x509.Certificate) { server(c); c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }
	sha1 := func(c *x509.Certificate) { server(c); c.SignatureAlgorithm = x509.SHA1WithRSA }
	rsaRoot := issue(t, nil, rsaKey(t, 2048), authority("rsa"))
	roots := []*Certificate{root.cert(t), rsaRoot.cert(t)}
	errPeer := errors.New("not the one")
	for name, test := range map[string]struct {
		srv    *identity
		config *ClientConfig
		reason Reason // 0: accepted
		alert  string
	}{
		"good":         {issue(t, root, ecKey(t), server), &ClientConfig{Roots: roots, ServerName: "am.example.org"}, 0, ""},
		"by address":   {issue(t, root, ecKey(t), server), &ClientConfig{Roots: roots, ServerName: "127.0.0.1"}, 0, ""},
		"intermediate": {issue(t, middle, ecKey(t), server), &ClientConfig{Roots: roots, ServerName: "localhost"}, 0, ""},
		"wrong name": {issue(t, root, ecKey(t), server), &ClientConfig{Roots: roots, ServerName: "www.example.org"},
			NameMismatch, "bad certificate"},
		"untrusted": {issue(t, other, ecKey(t), server), &ClientConfig{Roots: roots, ServerName: "localhost"},
			Untrusted, "unknown certificate authority"},
		"expired": {issue(t, root, ecKey(t), expired), &ClientConfig{Roots: roots, ServerName: "localhost"},
			Expired, "expired certificate"},
		"by the clock given": {issue(t, root, ecKey(t), server), &ClientConfig{Roots: roots, ServerName: "localhost",
			Time: func() time.Time { return now.Add(-2 * time.Hour) }}, NotYetValid, "bad certificate"},
		"client certificate": {issue(t, root, ecKey(t), clientOnly), &ClientConfig{Roots: roots, ServerName: "localhost"},
			WrongPurpose, "unsupported certificate"},
		"SHA-1":         {issue(t, rsaRoot, ecKey(t), sha1), &ClientConfig{Roots: roots, ServerName: "localhost"}, WeakSignature, ""},
		"SHA-1 allowed": {issue(t, rsaRoot, ecKey(t), sha1), &ClientConfig{Roots: roots, ServerName: "localhost", AllowSHA1: true}, 0, ""},
		"skipped":       {issue(t, other, ecKey(t), expired), &ClientConfig{InsecureSkipVerify: true}, 0, ""},
		"refused by callback": {issue(t, root, ecKey(t), server), &ClientConfig{Roots: roots, ServerName: "localhost",
			VerifyPeer: func([]*Certificate) error { return errPeer }}, -1, "handshake failure"},
		"refused by callback alone": {issue(t, other, ecKey(t), server), &ClientConfig{InsecureSkipVerify: true,
			VerifyPeer: func([]*Certificate) error { return errPeer }}, -1, "handshake failure"},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+"/"+tls.VersionName(version), func(t *testing.T) {
				a, b := tcpPair(t)
				goServer := tls.Server(a, &tls.Config{MinVersion: version, MaxVersion: version, Certificates: []tls.Certificate{goIdentity(test.srv)}})
				serverErr := make(chan error, 1)
				go func() {
					_, err := goServer.Read(make([]byte, 1))
					serverErr <- err
				}()
				client, err := Client(b, &ClientConfig{Roots: test.config.Roots, ServerName: test.config.ServerName, Time: test.config.Time,
					AllowSHA1: test.config.AllowSHA1, InsecureSkipVerify: test.config.InsecureSkipVerify, VerifyPeer: test.config.VerifyPeer})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				err = client.Handshake(t.Context())
				var v *VerifyError
				switch {
				case test.reason == 0:
					if err != nil {
						t.Fatal(err)
					}
					client.Write([]byte("x"))
				case test.reason < 0:
					if !errors.Is(err, errPeer) {
						t.Errorf("got %v", err)
					}
				case !errors.As(err, &v) || v.Reason != test.reason:
					t.Errorf("got %v, want %v", err, test.reason)
				default:
					t.Log(err)
				}
				err = <-serverErr
				if version == tls.VersionTLS13 {
					// OpenSSL sends this alert in plain text, for the sake
					// of middleboxes; crypto/tls does not understand it.
					test.alert = ""
				}
				if test.reason == 0 && err != nil || test.reason != 0 && (err == nil || !strings.Contains(err.Error(), test.alert)) {
					t.Errorf("server saw %v, want %q", err, test.alert)
				}
				if client.PeerCertificates() == nil != (test.reason != 0) {
					t.Error("PeerCertificates of", name)
				}
			})
		}
	}
}

func goIdentity(id *identity) tls.Certificate {
	own := tls.Certificate{PrivateKey: id.key}
	for i := id; i != nil && i.up != nil; i = i.up {
		own.Certificate = append(own.Certificate, i.der)
	}
	return own
}

func tcpPair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if b, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if a, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestClientSetUp(t *testing.T) {
	root := issue(t, nil, ecKey(t), authority("root"))
	a, _ := net.Pipe()
	defer a.Close()
	for name, c := range map[string]*ClientConfig{
		"no roots":    {ServerName: "a"},
		"no name":     {Roots: []*Certificate{root.cert(t)}},
		"only a key":  {InsecureSkipVerify: true, KeyPEM: root.keyPEM()},
		"only a cert": {InsecureSkipVerify: true, CertificatePEM: root.pem()},
		"wrong key":   {InsecureSkipVerify: true, CertificatePEM: root.pem(), KeyPEM: issue(t, nil, ecKey(t), authority("b")).keyPEM()},
	} {
		if _, err := Client(a, c); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestEnds tells the end that the peer announced from one that it did not.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end      func(from *Conn)
		onServer bool // the one who reads
		want     error
	}{
		"client, close":                  {func(c *Conn) { c.Close() }, false, io.EOF},
		"client, half closed":            {func(c *Conn) { c.CloseWrite() }, false, io.EOF},
		"client, cut":                    {func(c *Conn) { c.inner.Close() }, false, io.ErrUnexpectedEOF},
		"client, cut within a record":    {cutRecord, false, io.ErrUnexpectedEOF},
		"server, close":                  {func(c *Conn) { c.Close() }, true, io.EOF},
		"server, half closed":            {func(c *Conn) { c.CloseWrite() }, true, io.EOF},
		"server, cut between records":    {func(c *Conn) { c.inner.Close() }, true, io.EOF},
		"server, cut within a record":    {cutRecord, true, io.ErrUnexpectedEOF},
		"server, cut in the header":      {cutHeader, true, io.ErrUnexpectedEOF},
		"client, cut in the header":      {cutHeader, false, io.ErrUnexpectedEOF},
		"client, something else is sent": {func(c *Conn) { c.inner.Write([]byte("hello, world, no TLS")); c.inner.Close() }, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := connected(t)
			if !test.onServer {
				from, to = to, from
			}
			if _, err := from.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			test.end(from)
			got := make([]byte, 5)
			if _, err := io.ReadFull(to, got); err != nil || string(got) != "hello" {
				t.Fatalf("%q, %v", got, err)
			}
			for range 2 { // the end stays
				n, err := to.Read(got)
				if n != 0 || test.want != nil && err != test.want || err == nil || test.want == nil && errors.Is(err, io.EOF) {
					t.Errorf("read %d, %v; want %v", n, err, test.want)
				}
			}
		})
	}
}

// cutRecord sends the first half of a record and hangs up.
func cutRecord(c *Conn) { cut(c, 30) }
func cutHeader(c *Conn) { cut(c, 3) }

func cut(c *Conn, n int) {
	inner := c.inner
	recorded := &recorder{Conn: inner}
	c.inner = recorded
	c.Write(make([]byte, 100))
	inner.Write(recorded.sent.Bytes()[:n])
	inner.Close()
}

type recorder struct {
	net.Conn
	sent bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) { return r.sent.Write(p) }

func TestHalfClose(t *testing.T) {
	client, srv := connected(t)
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("x")); err == nil {
		t.Error("write after CloseWrite")
	}
	if _, err := srv.Read(make([]byte, 1)); err != io.EOF {
		t.Error(err)
	}
	if _, err := srv.Write([]byte("still here")); err != nil {
		t.Fatal(err)
	}
	srv.Close()
	if got, err := io.ReadAll(client); err != nil || string(got) != "still here" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestReadDeadline(t *testing.T) {
	client, srv := connected(t)
	for range 3 {
		srv.SetReadDeadline(time.Now().Add(-time.Second))
		_, err := srv.Read(make([]byte, 1))
		var ne net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
			t.Fatalf("got %v", err)
		}
		srv.SetReadDeadline(time.Time{})
		client.Write([]byte("go on"))
		got := make([]byte, 5)
		if _, err := io.ReadFull(srv, got); err != nil || string(got) != "go on" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	// A deadline set from elsewhere ends a Read under way.
	errs := make(chan error)
	go func() {
		_, err := srv.Read(make([]byte, 1))
		errs <- err
	}()
	srv.SetReadDeadline(time.Now())
	if err := <-errs; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestWriteDeadline(t *testing.T) {
	client, _ := connected(t)
	client.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	_, err := client.Write(make([]byte, 64<<20)) // nobody reads
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	client.SetWriteDeadline(time.Time{})
	if _, err := client.Write([]byte("x")); err == nil {
		t.Error("wrote after a record was cut")
	}
}

// TestCloseUnblocks: Close ends Reads and Writes that wait.
func TestCloseUnblocks(t *testing.T) {
	client, _ := connected(t)
	var wg sync.WaitGroup
	writing := make(chan struct{})
	wg.Go(func() {
		if _, err := client.Read(make([]byte, 1)); err == nil {
			t.Error("read something")
		}
	})
	wg.Go(func() {
		client.Write(make([]byte, 1<<20))
		close(writing)
		if _, err := client.Write(make([]byte, 64<<20)); err == nil {
			t.Error("wrote all")
		}
	})
	select {
	case <-writing:
	case <-time.After(50 * time.Millisecond): // blocked already
	}
	client.Close()
	wg.Wait()
}

func TestHandshakeCancelled(t *testing.T) {
	a, b := tcpPair(t)
	client, err := Client(b, &ClientConfig{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		a.Read(make([]byte, 1)) // the handshake has begun
		cancel()
	}()
	if err := client.Handshake(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := io.Copy(io.Discard, a); err != nil {
		t.Errorf("the connection is not closed: %v", err)
	}
}

// TestParallelUse has many goroutines read, write and close one connection;
// it is for the race detector above all.
func TestParallelUse(t *testing.T) {
	for range 5 {
		client, srv := connected(t)
		const writers, each, size = 4, 50, 40000
		var wg sync.WaitGroup
		for _, c := range []*Conn{client, srv} {
			for i := range writers {
				wg.Go(func() {
					record := bytes.Repeat([]byte{byte('a' + i)}, size)
					for range each {
						if n, err := c.Write(record); n != size || err != nil {
							t.Errorf("wrote %d: %v", n, err)
							return
						}
					}
				})
			}
			wg.Go(func() {
				seen := map[byte]int{}
				got := make([]byte, size)
				for range writers * each {
					if _, err := io.ReadFull(c, got); err != nil {
						t.Error(err)
						return
					}
					if len(bytes.Trim(got, string(got[:1]))) != 0 {
						t.Error("two writes are mixed")
						return
					}
					seen[got[0]]++
				}
				for b, n := range seen {
					if n != each {
						t.Errorf("%d of %c", n, b)
					}
				}
			})
		}
		wg.Wait()
		for range 4 {
			wg.Go(func() { client.Close() })
			wg.Go(func() { srv.Read(make([]byte, 10)) })
			wg.Go(func() { client.Read(make([]byte, 10)) })
			wg.Go(func() { client.Write(make([]byte, 10)) })
			wg.Go(func() { srv.Handshake(context.Background()); srv.PeerCertificates(); srv.Version() })
		}
		wg.Wait()
	}
}

// TestManyConnections looks for what is not freed: in the end the process must
// not have grown with the number of connections. Half of them are never
// closed by the one side, some fail.
func TestManyConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: thousands of handshakes")
	}
	root := issue(t, nil, ecKey(t), authority("root"))
	srvID, cl := issue(t, root, ecKey(t), server), issue(t, root, ecKey(t), member("alice"))
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewListener(inner, &ServerConfig{CertificatePEM: srvID.pem(), KeyPEM: srvID.keyPEM()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	good := &ClientConfig{Roots: []*Certificate{root.cert(t)}, CertificatePEM: cl.chainPEM(), KeyPEM: cl.keyPEM()}
	bad := &ClientConfig{Roots: []*Certificate{issue(t, nil, ecKey(t), authority("other")).cert(t)}}
	dial := func(n int) {
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range n / 4 {
					if (i+w)%10 == 0 {
						if _, err := bad.DialTLSContext(t.Context(), "tcp", inner.Addr().String()); err == nil {
							t.Error("accepted")
						}
						continue
					}
					c, err := good.DialTLSContext(t.Context(), "tcp", inner.Addr().String())
					if err != nil {
						t.Error(err)
						return
					}
					c.Write(make([]byte, 20000))
					if _, err := io.ReadFull(c, make([]byte, 20000)); err != nil {
						t.Error(err)
					}
					if i%2 == 0 {
						c.Close()
					} else {
						c.(*Conn).inner.Close() // leaves the rest to the collector
					}
				}
			})
		}
		wg.Wait()
		for range 3 {
			runtime.GC()
		}
	}
	const n = 2000
	dial(500)
	before := residentKB(t)
	dial(n)
	grown := residentKB(t) - before
	// What is not freed of a connection is 10 KB at the very least.
	t.Logf("grown by %d KB from %d KB", grown, before)
	if grown > n*4 {
		t.Errorf("grown by %d KB from %d KB within %d connections", grown, before, n)
	}
}

func residentKB(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
