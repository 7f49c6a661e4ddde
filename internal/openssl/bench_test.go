package openssl

import (
	"crypto"
	"crypto/tls"
	"io"
	"net"
	"testing"
)

// The benchmarks run each thing with this package and with crypto/tls, with a
// client certificate that both can read.

func benchIdentities(b *testing.B, key crypto.Signer) (root, srv, cl *identity) {
	root = issue(b, nil, ecKey(b), authority("root"))
	return root, issue(b, root, key, server), issue(b, root, key, server)
}

// benchListener starts a server of the kind; dial connects to it with a client
// of the same kind, the handshake done.
func benchListener(b *testing.B, kind string, key crypto.Signer) (l net.Listener, dial func() net.Conn) {
	root, srv, cl := benchIdentities(b, key)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { inner.Close() })
	addr := inner.Addr().String()
	if kind == "crypto-tls" {
		l = tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{goIdentity(srv)},
			ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true})
		config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{goIdentity(cl)}}
		return l, func() net.Conn {
			c, err := tls.Dial("tcp", addr, config)
			if err != nil {
				b.Fatal(err)
			}
			return c
		}
	}
	l, err = NewListener(inner, &ServerConfig{CertificatePEM: srv.pem(), KeyPEM: srv.keyPEM()})
	if err != nil {
		b.Fatal(err)
	}
	config := &ClientConfig{CertificatePEM: cl.pem(), KeyPEM: cl.keyPEM(), Roots: []*Certificate{root.cert(b)}}
	return l, func() net.Conn {
		c, err := config.DialTLSContext(b.Context(), "tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
}

func eachKind(b *testing.B, f func(b *testing.B, kind string, key crypto.Signer)) {
	for name, key := range map[string]crypto.Signer{"ecdsa": ecKey(b), "rsa2048": rsaKey(b, 2048)} {
		for _, kind := range []string{"openssl", "crypto-tls"} {
			b.Run(name+"/"+kind, func(b *testing.B) { f(b, kind, key) })
		}
	}
}

// BenchmarkHandshake is a connection, a byte each way, and its end; both sides
// work on this machine.
func BenchmarkHandshake(b *testing.B) {
	eachKind(b, func(b *testing.B, kind string, key crypto.Signer) {
		l, dial := benchListener(b, kind, key)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					io.Copy(c, c)
				}()
			}
		}()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			one := make([]byte, 1)
			for pb.Next() {
				c := dial()
				c.Write(one)
				if _, err := io.ReadFull(c, one); err != nil {
					b.Error(err)
				}
				c.Close()
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handshakes/s")
	})
}

// BenchmarkTransfer sends one way over one connection.
func BenchmarkTransfer(b *testing.B) {
	eachKind(b, func(b *testing.B, kind string, key crypto.Signer) {
		l, dial := benchListener(b, kind, key)
		done := make(chan int64)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, c)
			c.Close()
			done <- n
		}()
		c := dial()
		chunk := make([]byte, 1<<20)
		b.SetBytes(int64(len(chunk)))
		b.ResetTimer()
		for range b.N {
			if _, err := c.Write(chunk); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
		if n := <-done; n != int64(b.N)*int64(len(chunk)) {
			b.Errorf("received %d", n)
		}
	})
}

func BenchmarkParseCertificate(b *testing.B) {
	root := issue(b, nil, ecKey(b), authority("root"))
	der := issue(b, root, rsaKey(b, 2048), member("alice")).der
	for b.Loop() {
		if _, err := ParseCertificate(der); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerify is a chain of three with 100 trust roots.
func BenchmarkVerify(b *testing.B) {
	root := issue(b, nil, rsaKey(b, 2048), authority("root"))
	middle := issue(b, root, rsaKey(b, 2048), authority("members"))
	alice := issue(b, middle, rsaKey(b, 2048), member("alice")).cert(b)
	o := VerifyOptions{Roots: []*Certificate{root.cert(b)}, Intermediates: []*Certificate{middle.cert(b)}}
	for range 99 {
		o.Roots = append(o.Roots, issue(b, nil, ecKey(b), authority("other")).cert(b))
	}
	for b.Loop() {
		if _, err := alice.Verify(o); err != nil {
			b.Fatal(err)
		}
	}
}
