package openssl

// #cgo noescape glue_handshake
// #cgo nocallback glue_handshake
// #include "glue.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// defaultHandshakeTimeout bounds a handshake when the settings do not.
const defaultHandshakeTimeout = 30 * time.Second

// What a refused client may still send before it is cut off.
const (
	lingerTimeout = 500 * time.Millisecond
	lingerBytes   = 256 << 10
)

// plainHTTPAnswer is for those who left the s out of https.
const plainHTTPAnswer = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"This port speaks HTTPS, not HTTP.\n"

// Conn is a TLS connection over a net.Conn. All methods may be called by
// several goroutines at once. The handshake takes place at the first Handshake,
// Read or Write.
type Conn struct {
	inner    net.Conn
	settings *nativeContext
	client   *ClientConfig // nil on a server
	name     string        // the server's, for a client
	timeout  time.Duration // of the handshake
	onFailed func(net.Addr, error)

	handshakeMu  sync.Mutex
	handshakeErr error
	verdict      error // why the peer's certificates were refused
	established  atomic.Bool
	closed       atomic.Bool
	// What the handshake found; not changed once it is established.
	peer                        []*Certificate
	version, cipher, serverName string

	// nativeMu guards every call into OpenSSL; none of them waits.
	nativeMu sync.Mutex
	ssl      *C.SSL // nil before the handshake and after Close
	broken   error  // when set, OpenSSL must not be called again
	cleanup  runtime.Cleanup

	readMu  sync.Mutex // held by a Read from begin to end
	readErr error      // how reading ended
	receive []byte     // buffer for ciphertext: the handshake's, then Read's
	grow    bool       // receive was too small

	writeMu  sync.Mutex // held by a Write from begin to end
	writeErr error      // how writing ended

	// sendMu keeps records in the order in which OpenSSL made them. It is
	// taken before nativeMu.
	sendMu  sync.Mutex
	sendErr error
}

func newConn(inner net.Conn, settings *nativeContext, timeout time.Duration) *Conn {
	if timeout <= 0 {
		timeout = defaultHandshakeTimeout
	}
	return &Conn{inner: inner, settings: settings, timeout: timeout}
}

// PeerCertificates returns what the peer showed, its own certificate first,
// and nil before the handshake. On a server they are not verified. The caller
// must not change the list.
func (c *Conn) PeerCertificates() []*Certificate {
	if !c.established.Load() {
		return nil
	}
	return c.peer
}

// Version returns the protocol, "TLSv1.2" or "TLSv1.3", or "" before the
// handshake.
func (c *Conn) Version() string {
	if !c.established.Load() {
		return ""
	}
	return c.version
}

// CipherSuite returns OpenSSL's name of the cipher, or "" before the handshake.
func (c *Conn) CipherSuite() string {
	if !c.established.Load() {
		return ""
	}
	return c.cipher
}

// ServerName returns the DNS name of the server that the client asked for, or
// "" when it named none.
func (c *Conn) ServerName() string {
	if !c.established.Load() {
		return ""
	}
	return c.serverName
}

// NetConn returns the connection below. Reading or writing it breaks TLS.
func (c *Conn) NetConn() net.Conn { return c.inner }

// Handshake does the TLS handshake unless it is done already. When ctx ends
// first, the connection is closed. A connection whose handshake failed is of
// no more use.
func (c *Conn) Handshake(ctx context.Context) error {
	if c.established.Load() {
		return nil
	}
	c.handshakeMu.Lock()
	defer c.handshakeMu.Unlock()
	if c.established.Load() || c.handshakeErr != nil {
		return c.handshakeErr
	}
	err := c.handshakeWithin(ctx)
	switch {
	case err == nil:
		c.established.Store(true)
		return nil
	case err == io.EOF:
		// Gone without a word, as port checkers do: nothing to report.
		c.handshakeErr = err
		return err
	}
	c.handshakeErr = fmt.Errorf("TLS handshake with %s: %w", c.inner.RemoteAddr(), err)
	if c.onFailed != nil && !c.closed.Load() {
		c.onFailed(c.inner.RemoteAddr(), c.handshakeErr)
	}
	return c.handshakeErr
}

func (c *Conn) handshakeWithin(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, &timeoutError{c.timeout})
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.inner.Close() })
	err := c.handshake()
	if !stop() {
		return context.Cause(ctx)
	}
	return err
}

// timeoutError is a net.Error, as callers of a net.Conn expect.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string   { return fmt.Sprintf("not done after %v", e.after) }
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Temporary() bool { return true }
func (e *timeoutError) Unwrap() error   { return os.ErrDeadlineExceeded }

func (c *Conn) handshake() error {
	if err := c.open(); err != nil {
		return err
	}
	var in []byte
	for heard := false; ; {
		var r C.glue_result
		s, err := c.enter()
		if err != nil {
			return err
		}
		C.glue_handshake(s, unsafe.Pointer(unsafe.SliceData(in)), C.size_t(len(in)), &r)
		c.leave(&r)
		if r.outgoing != 0 {
			// When it failed, this is the alert; the reason is more
			// telling than that it could not be sent.
			if err := c.send(); err != nil && r.status != C.GLUE_FAILED {
				return err
			}
		}
		in = nil
		switch r.status {
		case C.GLUE_DONE:
			return c.settle()
		case C.GLUE_VERIFY:
			if err := c.judge(); err != nil {
				return err
			}
		case C.GLUE_WANT_DATA:
			if in, err = c.fetch(); err != nil {
				if err == io.EOF && heard {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
			heard = true
		case C.GLUE_CLOSED:
			return io.ErrUnexpectedEOF
		default:
			if c.verdict != nil {
				return c.verdict
			}
			if r.reason == C.GLUE_REASON_PLAIN_HTTP && c.settings.server {
				io.WriteString(c.inner, plainHTTPAnswer)
			}
			if c.settings.server {
				c.linger()
			}
			return handshakeError(&r)
		}
	}
}

// linger lets the client read why it is refused: closing at once, with data of
// the client unread, would reset the connection and could discard the alert.
func (c *Conn) linger() {
	if half, ok := c.inner.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	c.inner.SetReadDeadline(time.Now().Add(lingerTimeout))
	io.CopyN(io.Discard, c.inner, lingerBytes)
}

func handshakeError(r *C.glue_result) error {
	err := newError(&r.error)
	switch r.reason {
	case C.GLUE_REASON_PLAIN_HTTP:
		return fmt.Errorf("peer speaks plain HTTP: %w", err)
	case C.GLUE_REASON_NO_CERTIFICATE:
		return fmt.Errorf("client showed no certificate: %w", err)
	case C.GLUE_REASON_OLD_PROTOCOL:
		return fmt.Errorf("peer speaks neither TLS 1.2 nor 1.3: %w", err)
	case C.GLUE_REASON_NO_CIPHER:
		return fmt.Errorf("no cipher in common (ECDHE with AES-GCM or ChaCha20 is needed): %w", err)
	}
	return err
}

// open makes OpenSSL's side of the connection.
func (c *Conn) open() error {
	c.nativeMu.Lock()
	defer c.nativeMu.Unlock()
	if c.closed.Load() {
		return net.ErrClosed
	}
	s, err := c.settings.newConn(c.name)
	if err != nil {
		return err
	}
	c.ssl = s
	c.cleanup = runtime.AddCleanup(c, func(s *C.SSL) { C.SSL_free(s) }, s)
	return nil
}

// enter takes nativeMu for a call into OpenSSL, unless there is an error.
func (c *Conn) enter() (*C.SSL, error) {
	c.nativeMu.Lock()
	err := c.broken
	if c.ssl == nil {
		err = net.ErrClosed
	}
	if err != nil {
		c.nativeMu.Unlock()
		return nil, err
	}
	return c.ssl, nil
}

// leave ends what enter began.
func (c *Conn) leave(r *C.glue_result) {
	if r.status == C.GLUE_FAILED {
		c.broken = newError(&r.error)
	}
	c.nativeMu.Unlock()
}

// judge gives a client's verdict on the server's certificates.
func (c *Conn) judge() error {
	chain, err := c.peerChain()
	if err == nil {
		err = c.client.verify(chain, c.name)
	}
	s, errClosed := c.enter()
	if errClosed != nil {
		return errClosed
	}
	defer c.nativeMu.Unlock()
	code := C.int(C.X509_V_OK)
	if err != nil {
		c.verdict = err
		code = verdictCode(err)
	} else {
		c.peer = chain
	}
	C.glue_set_verdict(s, code)
	return nil
}

// settle keeps what the handshake found.
func (c *Conn) settle() error {
	if c.client == nil {
		chain, err := c.peerChain()
		if err != nil {
			return err
		}
		c.peer = chain
	}
	if len(c.peer) == 0 {
		return errors.New("peer showed no certificate")
	}
	s, err := c.enter()
	if err != nil {
		return err
	}
	defer c.nativeMu.Unlock()
	c.version = C.GoString(C.SSL_get_version(s))
	c.cipher = C.GoString(C.SSL_CIPHER_get_name(C.SSL_get_current_cipher(s)))
	c.serverName = c.name
	if name := C.SSL_get_servername(s, C.TLSEXT_NAMETYPE_host_name); c.client == nil && name != nil {
		c.serverName = C.GoString(name)
	}
	return nil
}

// peerChain reads the certificates that the peer sent.
func (c *Conn) peerChain() ([]*Certificate, error) {
	s, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer c.nativeMu.Unlock()
	stack := C.glue_peer_chain(s)
	defer C.glue_stack_free(stack)
	n := int(C.glue_stack_len(stack))
	if n > maxChain {
		return nil, fmt.Errorf("peer sent %d certificates, more than %d", n, maxChain)
	}
	chain := make([]*Certificate, 0, n)
	for i := range n {
		x := C.glue_stack_at(stack, C.int(i))
		C.X509_up_ref(x)
		cert, err := newCertificate(x)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the peer: %w", i+1, err)
		}
		chain = append(chain, cert)
	}
	return chain, nil
}
