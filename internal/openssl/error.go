package openssl

// #include "glue.h"
import "C"

import (
	"net"
)

// Error is what OpenSSL says went wrong.
type Error struct {
	Text string
	code uint64
}

func (e *Error) Error() string { return e.Text }

func newError(e *C.glue_error) *Error {
	return &Error{Text: C.GoString(&e.text[0]), code: uint64(e.code)}
}

// parseIP reads an address, also one in brackets, into 4 or 16 bytes.
func parseIP(host string) []byte {
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	ip := net.ParseIP(host)
	if v4 := ip.To4(); v4 != nil {
		return v4
	}
	return ip
}
