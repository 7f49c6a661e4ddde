// Package openssl is a small binding to the system's OpenSSL 3: certificates,
// the verification of their chains, and TLS connections.
//
// Croft does not use crypto/x509 and crypto/tls for what comes from outside,
// because crypto/x509 refuses to parse certificates whose Authority Information
// Access extension names a method OID with a 128-bit arc
// (2.25.305821105408246119474742976030998643995). The certificate authorities
// of Emulab, and so most accounts of Fed4FIRE, issue all their member
// certificates with that very extension, and crypto/tls parses the peer's
// certificate during the handshake, where no option turns that off. OpenSSL
// reads such certificates; the existing Go bindings to it are archived, while
// OpenSSL itself is well kept and the glue is small.
//
// Building needs a C compiler and OpenSSL's headers (Debian, Ubuntu:
// apt-get install gcc libssl-dev).
//
// What crosses into C is bytes in memory only: the network is read and written
// by Go, so deadlines and cancellation are those of the net.Conn below. No C
// code calls back into Go.
package openssl

// #cgo LDFLAGS: -lssl -lcrypto
// #include "glue.h"
import "C"

// Version returns the name and version of the OpenSSL library in use, such as
// "OpenSSL 3.0.19 27 Jan 2026".
func Version() string { return C.GoString(C.OpenSSL_version(C.OPENSSL_VERSION)) }
