package openssl

// #include "glue.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// ClientConfig says how a client presents itself and what it expects of a
// server. It may serve many connections and must not be changed or copied
// after the first.
type ClientConfig struct {
	// CertificatePEM is the client's certificate, followed by those of its
	// issuers; KeyPEM is its key, unencrypted. Both or neither are given.
	CertificatePEM, KeyPEM []byte
	// Roots are the trust anchors for servers. Those of the system do not
	// count.
	Roots []*Certificate
	// ServerName is the DNS name or IP address that the server's
	// certificate must be for. DialTLSContext takes it from the address
	// when it is empty.
	ServerName string
	// AllowSHA1 and MinRSABits are as in VerifyOptions.
	AllowSHA1  bool
	MinRSABits int
	// InsecureSkipVerify accepts every certificate that VerifyPeer does.
	InsecureSkipVerify bool
	// VerifyPeer, when set, judges the certificates that the server sent
	// (its own first), after the other checks unless those are skipped.
	// An error ends the handshake before the client has shown anything.
	VerifyPeer func(chain []*Certificate) error
	// HandshakeTimeout bounds a handshake; 0 is 30 seconds.
	HandshakeTimeout time.Duration
	// Time returns the current time; nil is time.Now.
	Time func() time.Time

	once     sync.Once
	settings *nativeContext
	err      error
}

// Client returns the client's side of a TLS connection over conn.
func Client(conn net.Conn, c *ClientConfig) (*Conn, error) {
	return c.newConn(conn, c.ServerName)
}

func (c *ClientConfig) newConn(inner net.Conn, name string) (*Conn, error) {
	c.once.Do(func() { c.settings, c.err = c.prepare() })
	if c.err != nil {
		return nil, fmt.Errorf("set up TLS client: %w", c.err)
	}
	if !c.InsecureSkipVerify && name == "" {
		return nil, errors.New("set up TLS client: no name of the server to check (ServerName)")
	}
	conn := newConn(inner, c.settings, c.HandshakeTimeout)
	conn.client = c
	conn.name = name
	return conn, nil
}

func (c *ClientConfig) prepare() (*nativeContext, error) {
	if !c.InsecureSkipVerify && len(c.Roots) == 0 {
		return nil, errors.New("no trust roots to verify servers with (Roots)")
	}
	settings, err := newContext(false, c.AllowSHA1)
	if err == nil && (len(c.CertificatePEM) > 0 || len(c.KeyPEM) > 0) {
		err = settings.setIdentity(c.CertificatePEM, c.KeyPEM)
	}
	return settings, err
}

// verify judges the chain that a server of this name sent.
func (c *ClientConfig) verify(chain []*Certificate, name string) error {
	if len(chain) == 0 {
		return errors.New("server showed no certificate")
	}
	if !c.InsecureSkipVerify {
		o := VerifyOptions{Roots: c.Roots, Intermediates: chain[1:], Purpose: ServerPurpose,
			AllowSHA1: c.AllowSHA1, MinRSABits: c.MinRSABits}
		if c.Time != nil {
			o.Time = c.Time()
		}
		if _, err := chain[0].Verify(o); err != nil {
			return err
		}
		if !chain[0].MatchesHost(name) {
			return &VerifyError{Reason: NameMismatch, Certificate: chain[0], code: C.X509_V_ERR_HOSTNAME_MISMATCH,
				Detail: fmt.Sprintf("not for %s; it is for %s", name, chain[0].hosts())}
		}
	}
	if c.VerifyPeer != nil {
		return c.VerifyPeer(chain)
	}
	return nil
}

// verdictCode is what OpenSSL chooses the alert by.
func verdictCode(err error) C.int {
	var v *VerifyError
	if errors.As(err, &v) && v.code != C.X509_V_OK {
		return C.int(v.code)
	}
	return C.X509_V_ERR_APPLICATION_VERIFICATION
}

// DialTLSContext connects and does the handshake. It is for the field of that
// name of an http.Transport, which then speaks HTTP/1.1 over it.
func (c *ClientConfig) DialTLSContext(ctx context.Context, network, addr string) (net.Conn, error) {
	name := c.ServerName
	if name == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", addr, err)
		}
		name = host
	}
	var d net.Dialer
	inner, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn, err := c.newConn(inner, name)
	if err != nil {
		inner.Close()
		return nil, err
	}
	if err := conn.Handshake(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
