package openssl

// #include "glue.h"
import "C"

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"runtime"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// maxCertificate is the largest certificate that is read, in bytes.
const maxCertificate = 64 << 10

// Certificate is an X.509 certificate as it was read. It is made by
// ParseCertificate, ParsePEM or a connection, and not changed afterwards;
// copies may be used by several goroutines.
type Certificate struct {
	// DER is the whole certificate.
	DER []byte
	// Subject and Issuer are names for people, as RFC 2253 writes them.
	// Compare names by RawSubject and RawIssuer.
	Subject, Issuer string
	// CommonName is the most specific one of the subject, or "".
	CommonName string
	// RawSubject and RawIssuer are the names in DER.
	RawSubject, RawIssuer []byte
	Serial                *big.Int
	NotBefore, NotAfter   time.Time // UTC, both included
	// URIs, Emails and DNSNames are the subject's alternative names, in the
	// certificate's order. A name with a control character (a NUL above
	// all) does not parse.
	URIs, Emails, DNSNames []string
	// PublicKey is an *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey,
	// or nil for another kind of key.
	PublicKey crypto.PublicKey
	// KeyBits is the size of the key: of RSA's modulus, of the curve.
	KeyBits int
	// IsCA says that the basic constraints name a certificate authority.
	IsCA bool
	// SignatureAlgorithm is OpenSSL's name of what the issuer signed with,
	// such as "sha256WithRSAEncryption".
	SignatureAlgorithm string
	// SHA1Signed says that the issuer signed a SHA-1 digest.
	SHA1Signed bool
	// Fingerprint is the SHA-256 digest of DER.
	Fingerprint [32]byte

	weakDigest bool // older than SHA-1
	rsaKey     bool
	native     *nativeCertificate
}

// nativeCertificate owns a reference to OpenSSL's form of a certificate. It is
// an object of its own so that copies of a Certificate share it.
type nativeCertificate struct{ x *C.X509 }

// own takes over the caller's reference to x.
func own(x *C.X509) *nativeCertificate {
	n := &nativeCertificate{x}
	runtime.AddCleanup(n, func(x *C.X509) { C.X509_free(x) }, x)
	return n
}

// ParseCertificate reads one certificate in DER. It refuses more than 64 KiB,
// data after the certificate, encodings that are not DER, and subject
// alternative names that are broken or contain control characters.
func ParseCertificate(der []byte) (*Certificate, error) {
	if len(der) == 0 {
		return nil, errors.New("read certificate: empty")
	}
	if len(der) > maxCertificate {
		return nil, fmt.Errorf("read certificate: %d bytes, more than %d", len(der), maxCertificate)
	}
	var e C.glue_error
	x := C.glue_parse_certificate((*C.uchar)(&der[0]), C.size_t(len(der)), &e)
	if x == nil {
		return nil, fmt.Errorf("read certificate: %w", newError(&e))
	}
	return newCertificate(x)
}

// newCertificate reads the fields out of x and takes over the caller's
// reference to it.
func newCertificate(x *C.X509) (*Certificate, error) {
	c := &Certificate{native: own(x)}
	defer runtime.KeepAlive(c)
	var out *C.uchar
	c.DER = take(&out, C.glue_certificate_der(x, &out))
	if len(c.DER) == 0 || len(c.DER) > maxCertificate {
		return nil, fmt.Errorf("read certificate: %d bytes, want 1 to %d", len(c.DER), maxCertificate)
	}
	c.Fingerprint = sha256.Sum256(c.DER)

	subject, issuer := C.X509_get_subject_name(x), C.X509_get_issuer_name(x)
	c.Subject = string(take(&out, C.glue_name_text(subject, &out)))
	c.Issuer = string(take(&out, C.glue_name_text(issuer, &out)))
	c.RawSubject = take(&out, C.glue_name_der(subject, &out))
	c.RawIssuer = take(&out, C.glue_name_der(issuer, &out))
	c.CommonName = string(take(&out, C.glue_common_name(subject, &out)))
	if err := checkName(c.CommonName); err != nil {
		return nil, fmt.Errorf("read certificate of %s: common name: %w", c.Subject, err)
	}

	var negative C.int
	c.Serial = new(big.Int).SetBytes(take(&out, C.glue_serial(x, &out, &negative)))
	if negative != 0 {
		c.Serial.Neg(c.Serial)
	}
	var ok bool
	if c.NotBefore, ok = goTime(C.X509_get0_notBefore(x)); !ok {
		return nil, fmt.Errorf("read certificate of %s: start of its validity is no time", c.Subject)
	}
	if c.NotAfter, ok = goTime(C.X509_get0_notAfter(x)); !ok {
		return nil, fmt.Errorf("read certificate of %s: end of its validity is no time", c.Subject)
	}

	var keyType C.int
	c.KeyBits = int(C.glue_key_bits(x, &keyType))
	c.rsaKey = keyType == C.EVP_PKEY_RSA || keyType == C.EVP_PKEY_RSA_PSS
	c.PublicKey = goKey(take(&out, C.glue_public_key(x, &out)))
	c.IsCA = C.glue_is_ca(x) != 0
	var digest C.int
	c.SignatureAlgorithm = C.GoString(C.glue_signature_algorithm(x, &digest))
	switch digest {
	case C.NID_sha1:
		c.SHA1Signed = true
	case C.NID_md5, C.NID_md5_sha1, C.NID_md4, C.NID_md2, C.NID_mdc2, C.NID_ripemd160:
		c.weakDigest = true
	}
	if err := c.readAlternativeNames(); err != nil {
		return nil, fmt.Errorf("read certificate of %s: subject alternative names: %w", c.Subject, err)
	}
	return c, nil
}

func (c *Certificate) readAlternativeNames() error {
	var names *C.GENERAL_NAMES
	switch C.glue_alternative_names(c.native.x, &names) {
	case 0:
		return nil
	case -1:
		return errors.New("broken, or given more than once")
	}
	defer C.GENERAL_NAMES_free(names)
	for i := C.int(0); ; i++ {
		var kind C.int
		var text *C.uchar
		n := C.glue_alternative_name(names, i, &kind, &text)
		if n < 0 {
			return nil
		}
		if text == nil {
			continue
		}
		name := C.GoStringN((*C.char)(unsafe.Pointer(text)), n)
		if err := checkName(name); err != nil {
			return fmt.Errorf("name %d: %w", i+1, err)
		}
		switch kind {
		case C.GEN_URI:
			c.URIs = append(c.URIs, name)
		case C.GEN_EMAIL:
			c.Emails = append(c.Emails, name)
		case C.GEN_DNS:
			c.DNSNames = append(c.DNSNames, name)
		}
	}
}

// checkName refuses what could make two readers see two names.
func checkName(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not text", s)
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		return fmt.Errorf("%q has a control character", s)
	}
	return nil
}

// String returns the subject, or the first alternative name of a certificate
// without one.
func (c *Certificate) String() string {
	if c.Subject != "" {
		return c.Subject
	}
	for _, names := range [][]string{c.URIs, c.DNSNames, c.Emails} {
		if len(names) > 0 {
			return names[0]
		}
	}
	return "serial " + c.Serial.String()
}

// MatchesHost reports whether the certificate is for a DNS name or an IP
// address: one of its alternative names, or the common name when it has no
// alternative DNS name, as certificates of older aggregates do.
func (c *Certificate) MatchesHost(host string) bool {
	if c.native == nil {
		return false
	}
	defer runtime.KeepAlive(c)
	if ip := parseIP(host); ip != nil {
		return C.glue_match_ip(c.native.x, (*C.uchar)(unsafe.SliceData(ip)), C.size_t(len(ip))) == 1
	}
	if host == "" || checkName(host) != nil {
		return false
	}
	name := []byte(host)
	return C.glue_match_host(c.native.x, (*C.char)(unsafe.Pointer(unsafe.SliceData(name))), C.size_t(len(name))) == 1
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

// take copies what a glue function allocated and frees it.
func take(p **C.uchar, n C.int) []byte {
	defer func() {
		C.glue_free(unsafe.Pointer(*p))
		*p = nil
	}()
	if n <= 0 || *p == nil {
		return nil
	}
	return C.GoBytes(unsafe.Pointer(*p), n)
}

func goTime(t *C.ASN1_TIME) (time.Time, bool) {
	var f [6]C.int
	if C.glue_time(t, &f[0]) == 0 {
		return time.Time{}, false
	}
	return time.Date(int(f[0]), time.Month(f[1]), int(f[2]), int(f[3]), int(f[4]), int(f[5]), 0, time.UTC), true
}

// goKey gives the kinds of keys that callers can use; what else there is
// stays a matter of OpenSSL's.
func goKey(spki []byte) crypto.PublicKey {
	key, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return nil
	}
	switch key.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
		return key
	}
	return nil
}

// hosts names what a server's certificate is for.
func (c *Certificate) hosts() string {
	if len(c.DNSNames) > 0 {
		return strings.Join(c.DNSNames, ", ")
	}
	return c.String()
}
