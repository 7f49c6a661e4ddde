package openssl

// #cgo noescape glue_read
// #cgo nocallback glue_read
// #cgo noescape glue_write
// #cgo nocallback glue_write
// #cgo noescape glue_outgoing
// #cgo nocallback glue_outgoing
// #include "glue.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
	"unsafe"
)

const (
	// Buffers for ciphertext: one that idle connections can afford, one for
	// those that transfer much, and one to send the records of a chunk.
	smallBuffer = 4 << 10
	largeBuffer = 32 << 10
	writeChunk  = 64 << 10
	sendBuffer  = writeChunk + 4<<10

	// farewellTimeout bounds how long Close tries to say goodbye.
	farewellTimeout = time.Second
)

var sendBuffers = sync.Pool{New: func() any { return new([sendBuffer]byte) }}

// Read reads what the peer wrote. It returns io.EOF after the peer's
// close_notify. When the connection ends without one, it returns
// io.ErrUnexpectedEOF; except on a server between records, where that is
// io.EOF too, because many clients leave so and an HTTP request says by itself
// where it ends (the body of a response may not).
func (c *Conn) Read(p []byte) (int, error) {
	if err := c.Handshake(context.Background()); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	c.readMu.Lock()
	defer c.readMu.Unlock()
	var in []byte
	for c.readErr == nil {
		var r C.glue_result
		s, err := c.enter()
		if err != nil {
			return 0, err
		}
		C.glue_read(s, unsafe.Pointer(unsafe.SliceData(in)), C.size_t(len(in)),
			unsafe.Pointer(&p[0]), C.size_t(len(p)), &r)
		c.leave(&r)
		if r.outgoing != 0 {
			c.trySend()
		}
		switch r.status {
		case C.GLUE_DONE:
			return int(r.n), nil
		case C.GLUE_CLOSED:
			c.readErr = io.EOF
		case C.GLUE_WANT_DATA:
			in, err = c.fetch()
			if err == io.EOF {
				if r.partial != 0 || c.client != nil {
					err = io.ErrUnexpectedEOF
				}
				c.readErr = err
			} else if err != nil {
				return 0, err // a deadline may be moved
			}
		default:
			c.readErr = fmt.Errorf("read from %s: %w", c.inner.RemoteAddr(), newError(&r.error))
		}
	}
	return 0, c.readErr
}

// fetch waits for ciphertext from the peer.
func (c *Conn) fetch() ([]byte, error) {
	if c.receive == nil {
		c.receive = make([]byte, smallBuffer)
	} else if c.grow {
		c.receive = make([]byte, largeBuffer)
	}
	n, err := c.inner.Read(c.receive)
	c.grow = n == smallBuffer && len(c.receive) == smallBuffer
	if n > 0 {
		return c.receive[:n], nil // an error comes again at the next read
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return nil, err
}

// Write writes to the peer. After an error, also after a deadline, nothing
// more can be written: a record may have been cut.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.Handshake(context.Background()); err != nil {
		return 0, err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	done := 0
	for done < len(p) && c.writeErr == nil {
		chunk := p[done:min(len(p), done+writeChunk)]
		var r C.glue_result
		s, err := c.enter()
		if err != nil {
			return done, err
		}
		C.glue_write(s, unsafe.Pointer(&chunk[0]), C.size_t(len(chunk)), &r)
		c.leave(&r)
		if r.status != C.GLUE_DONE {
			c.writeErr = fmt.Errorf("write to %s: %w", c.inner.RemoteAddr(), newError(&r.error))
		} else if err := c.send(); err != nil {
			c.writeErr = err
		} else {
			done += int(r.n)
		}
	}
	return done, c.writeErr
}

// send passes on all ciphertext that OpenSSL has made.
func (c *Conn) send() error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	return c.sendLocked()
}

// trySend is send for a reader: when a writer is sending, that one takes
// along what there is, and reading must not wait for it.
func (c *Conn) trySend() {
	if c.sendMu.TryLock() {
		defer c.sendMu.Unlock()
		c.sendLocked()
	}
}

func (c *Conn) sendLocked() error {
	buf := sendBuffers.Get().(*[sendBuffer]byte)
	defer sendBuffers.Put(buf)
	for c.sendErr == nil {
		n := c.outgoing(buf[:])
		if n == 0 {
			break
		}
		if _, err := c.inner.Write(buf[:n]); err != nil {
			c.sendErr = err
		}
	}
	return c.sendErr
}

// outgoing takes what is to be sent from OpenSSL. What is left when the
// connection breaks (an alert) is sent as well.
func (c *Conn) outgoing(buf []byte) int {
	c.nativeMu.Lock()
	defer c.nativeMu.Unlock()
	if c.ssl == nil {
		return 0
	}
	return int(C.glue_outgoing(c.ssl, unsafe.Pointer(unsafe.SliceData(buf)), C.size_t(len(buf))))
}

// CloseWrite tells the peer that nothing more will be written; reading goes
// on.
func (c *Conn) CloseWrite() error {
	if !c.established.Load() {
		return errors.New("close for writing: no handshake yet")
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.writeErr != nil {
		return c.writeErr
	}
	c.closeNotify()
	c.writeErr = net.ErrClosed
	return c.send()
}

func (c *Conn) closeNotify() {
	if s, err := c.enter(); err == nil {
		C.glue_close_notify(s)
		c.nativeMu.Unlock()
	}
}

// Close says goodbye to the peer, unless a Write is under way, and closes the
// connection. Reads and Writes under way end with an error.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	if c.established.Load() && c.sendMu.TryLock() {
		c.inner.SetWriteDeadline(time.Now().Add(farewellTimeout))
		c.closeNotify()
		c.sendLocked()
		c.sendMu.Unlock()
	}
	err := c.inner.Close()
	c.nativeMu.Lock()
	defer c.nativeMu.Unlock()
	if c.ssl != nil {
		c.cleanup.Stop()
		C.SSL_free(c.ssl)
		c.ssl = nil
	}
	return err
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.inner.LocalAddr() }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.inner.RemoteAddr() }

// SetDeadline bounds reading and writing, the handshake included.
func (c *Conn) SetDeadline(t time.Time) error { return c.inner.SetDeadline(t) }

// SetReadDeadline bounds reading; after it has passed, a later one lets reading
// go on.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.inner.SetReadDeadline(t) }

// SetWriteDeadline bounds writing; once it has passed during a Write, the
// connection cannot be written any more.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.inner.SetWriteDeadline(t) }
