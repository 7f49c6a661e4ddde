package openssl

// #include <stdlib.h>
// #include "glue.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// nativeContext owns the settings that connections are made from.
type nativeContext struct {
	ctx    *C.SSL_CTX
	server bool
}

func newContext(server, sha1 bool) (*nativeContext, error) {
	var e C.glue_error
	ctx := C.glue_context_new(cBool(server), cBool(sha1), &e)
	if ctx == nil {
		return nil, newError(&e)
	}
	n := &nativeContext{ctx, server}
	runtime.AddCleanup(n, func(ctx *C.SSL_CTX) { C.SSL_CTX_free(ctx) }, ctx)
	return n, nil
}

// setIdentity reads the certificate (with its issuers after it) and the key
// that connections show.
func (n *nativeContext) setIdentity(certificate, key []byte) error {
	chain, err := ParsePEM(certificate)
	if err != nil {
		return fmt.Errorf("own certificate: %w", err)
	}
	if len(chain) > maxChain {
		return fmt.Errorf("own certificate: %d certificates, more than %d", len(chain), maxChain)
	}
	if len(key) == 0 {
		return errors.New("own key: none given")
	}
	native := nativeList(chain, map[*C.X509]*Certificate{})
	var e C.glue_error
	ok := C.glue_context_identity(n.ctx, unsafe.SliceData(native), C.size_t(len(native)),
		unsafe.Pointer(&key[0]), C.size_t(len(key)), &e)
	runtime.KeepAlive(chain)
	runtime.KeepAlive(n)
	if ok == 0 {
		return fmt.Errorf("own key for the certificate of %s: %w (an unencrypted PEM key that belongs to the certificate is needed)",
			chain[0], newError(&e))
	}
	return nil
}

// newConn makes OpenSSL's side of one connection; name is the server's, sent
// by a client.
func (n *nativeContext) newConn(name string) (*C.SSL, error) {
	var text *C.char
	if name != "" && parseIP(name) == nil { // addresses are not sent (RFC 6066, section 3)
		text = C.CString(name)
		defer C.free(unsafe.Pointer(text))
	}
	var e C.glue_error
	s := C.glue_conn_new(n.ctx, cBool(n.server), text, &e)
	runtime.KeepAlive(n)
	if s == nil {
		return nil, newError(&e)
	}
	return s, nil
}

func cBool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
