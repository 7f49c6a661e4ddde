package openssl

import (
	"context"
	"fmt"
	"net"
	"time"
)

// ServerConfig says how a server presents itself. A client must show a
// certificate and prove to have its key; any certificate passes the handshake.
// Whether its chain leads to a trust root is for the application to Verify
// afterwards: it can then say clearly what is wrong, which a TLS alert cannot.
type ServerConfig struct {
	// CertificatePEM is the server's certificate, followed by those of its
	// issuers; KeyPEM is its key, unencrypted (PKCS#8, PKCS#1 or SEC 1).
	CertificatePEM, KeyPEM []byte
	// HandshakeTimeout bounds a handshake; 0 is 30 seconds.
	HandshakeTimeout time.Duration
	// OnHandshakeError, when set, is told of every handshake that failed,
	// by several goroutines at once. net/http does not log them.
	OnHandshakeError func(client net.Addr, err error)
}

type listener struct {
	net.Listener
	settings *nativeContext
	config   ServerConfig
}

// NewListener returns a listener whose Accept returns a *Conn for each
// connection that inner accepts. Accept does not wait for the handshake, which
// takes place when the connection is first read.
func NewListener(inner net.Listener, c *ServerConfig) (net.Listener, error) {
	settings, err := newContext(true, true)
	if err == nil {
		err = settings.setIdentity(c.CertificatePEM, c.KeyPEM)
	}
	if err != nil {
		return nil, fmt.Errorf("set up TLS server on %s: %w", inner.Addr(), err)
	}
	return &listener{inner, settings, *c}, nil
}

func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := newConn(inner, l.settings, l.config.HandshakeTimeout)
	c.onFailed = l.config.OnHandshakeError
	return c, nil
}

type connKey struct{}

// ConnContext is for the field of that name of an http.Server: it makes the
// connection known to the handlers of its requests.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// FromContext returns the connection that a request came by, where the server
// has ConnContext.
func FromContext(ctx context.Context) (*Conn, bool) {
	c, ok := ctx.Value(connKey{}).(*Conn)
	return c, ok
}
