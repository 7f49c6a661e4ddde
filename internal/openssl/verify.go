package openssl

// #include "glue.h"
import "C"

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"
)

// maxChain is the longest chain that is built or taken from a peer.
const maxChain = 16

// defaultRSABits is the smallest RSA key when the options do not say.
const defaultRSABits = 2048

// Purpose is what a certificate is used for. Certificates that do not limit
// their use (most do not) are good for every purpose.
type Purpose int

// The purposes that Verify can ask for.
const (
	AnyPurpose Purpose = iota
	ClientPurpose
	ServerPurpose
)

// VerifyOptions says what a chain has to satisfy.
type VerifyOptions struct {
	// Roots are the trust anchors. Each counts whether it signed itself or
	// not, also when it is the very certificate to verify.
	Roots []*Certificate
	// Intermediates may be used to build the chain and are not trusted.
	Intermediates []*Certificate
	// CRLs say which certificates are revoked. An issuer without a list
	// revokes nothing; a list past its date still revokes what it names.
	CRLs []*CRL
	// Time is when the chain has to be valid; the zero Time is now.
	Time time.Time
	// AllowSHA1 accepts signatures over SHA-1 digests, as older federations
	// made them. MD5 and older ones never pass.
	AllowSHA1 bool
	// MinRSABits is the smallest RSA modulus in the chain; 0 is 2048.
	MinRSABits int
	// MaxDepth is the largest number of certificates in the chain, the
	// first and the anchor counted; 0 is 16, which is also the most.
	MaxDepth int
	Purpose  Purpose
}

// Reason is the kind of a verification failure.
type Reason int

// The reasons for which a chain is refused.
const (
	Untrusted      Reason = iota + 1 // leads to no trust anchor
	Expired                          // a certificate's time is over
	NotYetValid                      // a certificate's time has not come
	Revoked                          // a CRL names a certificate
	WeakKey                          // a key is too short
	WeakSignature                    // a signature over SHA-1 (not allowed) or an older digest
	BadSignature                     // a signature is not by the issuer's key
	NotAuthority                     // an issuer may not issue certificates
	TooLong                          // the chain has too many certificates
	WrongPurpose                     // a certificate excludes this use
	NameMismatch                     // the certificate is for another host
	BadRevocation                    // a CRL cannot be used
	BadCertificate                   // an extension is broken, unknown and critical, or violated
)

func (r Reason) String() string {
	names := [...]string{
		Untrusted: "untrusted", Expired: "expired", NotYetValid: "not yet valid", Revoked: "revoked",
		WeakKey: "weak key", WeakSignature: "weak signature", BadSignature: "bad signature",
		NotAuthority: "issuer is no authority", TooLong: "chain too long", WrongPurpose: "wrong purpose",
		NameMismatch: "wrong name", BadRevocation: "unusable revocation list", BadCertificate: "bad certificate",
	}
	if r <= 0 || int(r) >= len(names) {
		return fmt.Sprintf("reason %d", int(r))
	}
	return names[r]
}

// VerifyError says why a chain was refused and which certificate is at fault.
type VerifyError struct {
	Reason      Reason
	Certificate *Certificate // the one at fault
	Depth       int          // its place in the chain; 0 is the certificate that was verified
	Detail      string       // the finding, with a hint where there is one

	code int // X509_V_ERR_…
}

func (e *VerifyError) Error() string {
	return fmt.Sprintf("certificate of %s: %s", e.Certificate, e.Detail)
}

// Verify builds a chain from the certificate to one of the roots and checks
// it. The chain returned starts with c and ends with the anchor. A refusal is
// a *VerifyError.
func (c *Certificate) Verify(o VerifyOptions) (chain []*Certificate, err error) {
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	if o.MinRSABits == 0 {
		o.MinRSABits = defaultRSABits
	}
	if o.MaxDepth <= 0 || o.MaxDepth > maxChain {
		o.MaxDepth = maxChain
	}
	if c.native == nil {
		return nil, errors.New("verify certificate: not made by ParseCertificate")
	}
	// OpenSSL picks one issuer by name and does not go back. Where an
	// authority has changed its key and both certificates are known, try
	// again without the one that did not fit.
	for {
		chain, wrong, err := c.verifyOnce(&o)
		if wrong == nil || !o.drop(wrong) {
			if err == nil {
				err = checkStrength(chain, &o)
			}
			if err != nil {
				return nil, err
			}
			return chain, nil
		}
	}
}

// verifyOnce runs OpenSSL's verification. When a signature is wrong, it also
// returns the issuer whose key did not fit.
func (c *Certificate) verifyOnce(o *VerifyOptions) (chain []*Certificate, wrong *Certificate, err error) {
	known := map[*C.X509]*Certificate{c.native.x: c}
	roots, others := nativeList(o.Roots, known), nativeList(o.Intermediates, known)
	var crls []*C.X509_CRL
	for _, l := range o.CRLs {
		if l != nil && l.native != nil {
			crls = append(crls, l.native.x)
		}
	}
	q := C.glue_verify_request{
		leaf: c.native.x, time: C.int64_t(o.Time.Unix()), max_depth: C.int(o.MaxDepth), purpose: nativePurpose(o.Purpose),
	}
	var r C.glue_verify_result
	done := C.glue_verify(&q,
		unsafe.SliceData(roots), C.size_t(len(roots)),
		unsafe.SliceData(others), C.size_t(len(others)),
		unsafe.SliceData(crls), C.size_t(len(crls)), &r)
	runtime.KeepAlive(c)
	runtime.KeepAlive(o)
	if done == 0 {
		return nil, nil, errors.New("verify certificate: out of memory")
	}
	defer C.glue_stack_free(r.chain)
	for i := range C.glue_stack_len(r.chain) {
		x := C.glue_stack_at(r.chain, i)
		link := known[x]
		if link == nil {
			C.X509_up_ref(x)
			if link, err = newCertificate(x); err != nil {
				C.X509_free(r.certificate)
				return nil, nil, err
			}
		}
		chain = append(chain, link)
	}
	if len(chain) > 0 {
		chain[0] = c // where c is an anchor too, OpenSSL takes that one
	}
	at := c
	if r.certificate != nil {
		if at = known[r.certificate]; at == nil {
			at = c
		}
		C.X509_free(r.certificate)
	}
	if r.ok == 1 {
		if len(chain) > o.MaxDepth {
			return nil, nil, &VerifyError{Reason: TooLong, Certificate: c, Detail: fmt.Sprintf(
				"its chain has %d certificates, more than %d", len(chain), o.MaxDepth), code: C.X509_V_ERR_CERT_CHAIN_TOO_LONG}
		}
		return chain, nil, nil
	}
	e := newVerifyError(int(r.reason), at, int(r.depth), o)
	if depth := int(r.depth); e.Reason == BadSignature && depth+1 < len(chain) {
		wrong = chain[depth+1]
	}
	return nil, wrong, e
}

// drop leaves a certificate out of the candidates and reports whether another
// one of the same name is left to try.
func (o *VerifyOptions) drop(wrong *Certificate) (more bool) {
	without := func(list []*Certificate) []*Certificate {
		var kept []*Certificate
		for _, c := range list {
			if c == nil || c.Fingerprint == wrong.Fingerprint {
				continue
			}
			kept = append(kept, c)
			more = more || string(c.RawSubject) == string(wrong.RawSubject)
		}
		return kept
	}
	o.Roots, o.Intermediates = without(o.Roots), without(o.Intermediates)
	return more
}

func nativeList(list []*Certificate, known map[*C.X509]*Certificate) []*C.X509 {
	var out []*C.X509
	for _, c := range list {
		if c != nil && c.native != nil {
			out = append(out, c.native.x)
			if known[c.native.x] == nil {
				known[c.native.x] = c
			}
		}
	}
	return out
}

func nativePurpose(p Purpose) C.int {
	switch p {
	case ClientPurpose:
		return C.X509_PURPOSE_SSL_CLIENT
	case ServerPurpose:
		return C.X509_PURPOSE_SSL_SERVER
	}
	return 0
}

// checkStrength judges keys and digests. How the anchor is signed does not
// matter: it is trusted for what it is.
func checkStrength(chain []*Certificate, o *VerifyOptions) error {
	for i, link := range chain {
		fail := func(r Reason, code int, format string, args ...any) error {
			return &VerifyError{Reason: r, Certificate: link, Depth: i, Detail: fmt.Sprintf(format, args...), code: code}
		}
		if i < len(chain)-1 {
			if link.weakDigest {
				return fail(WeakSignature, C.X509_V_ERR_CA_MD_TOO_WEAK, "signed with %s, which can be forged", link.SignatureAlgorithm)
			}
			if link.SHA1Signed && !o.AllowSHA1 {
				return fail(WeakSignature, C.X509_V_ERR_CA_MD_TOO_WEAK, "signed with %s; SHA-1 is not allowed here", link.SignatureAlgorithm)
			}
		}
		if link.rsaKey && link.KeyBits < o.MinRSABits {
			return fail(WeakKey, C.X509_V_ERR_EE_KEY_TOO_SMALL, "RSA key of %d bits, want at least %d", link.KeyBits, o.MinRSABits)
		}
		if _, ec := link.PublicKey.(*ecdsa.PublicKey); ec && link.KeyBits < 224 {
			return fail(WeakKey, C.X509_V_ERR_EE_KEY_TOO_SMALL, "elliptic curve of %d bits, want at least 224", link.KeyBits)
		}
	}
	return nil
}

func newVerifyError(code int, at *Certificate, depth int, o *VerifyOptions) *VerifyError {
	e := &VerifyError{Certificate: at, Depth: depth, code: code,
		Detail: C.GoString(C.X509_verify_cert_error_string(C.long(code)))}
	const layout = "2006-01-02 15:04:05Z"
	switch code {
	case C.X509_V_ERR_CERT_HAS_EXPIRED:
		e.Reason = Expired
		e.Detail = fmt.Sprintf("expired at %s", at.NotAfter.Format(layout))
	case C.X509_V_ERR_CERT_NOT_YET_VALID:
		e.Reason = NotYetValid
		e.Detail = fmt.Sprintf("not valid before %s (it is %s here)", at.NotBefore.Format(layout), o.Time.UTC().Format(layout))
	case C.X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, C.X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
		C.X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, C.X509_V_ERR_CERT_UNTRUSTED, C.X509_V_ERR_CERT_REJECTED:
		e.Reason = Untrusted
		e.Detail = fmt.Sprintf("issued by %s, which is neither a trust root nor leads to one", at.Issuer)
	case C.X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, C.X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		e.Reason = Untrusted
		e.Detail = "signed by itself and not a trust root"
	case C.X509_V_ERR_CERT_REVOKED:
		e.Reason = Revoked
		e.Detail = fmt.Sprintf("revoked by %s", at.Issuer)
	case C.X509_V_ERR_CERT_SIGNATURE_FAILURE, C.X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE,
		C.X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY:
		e.Reason = BadSignature
		e.Detail = fmt.Sprintf("its signature was not made by the known key of %s", at.Issuer)
	case C.X509_V_ERR_INVALID_CA, C.X509_V_ERR_KEYUSAGE_NO_CERTSIGN, C.X509_V_ERR_INVALID_NON_CA:
		e.Reason = NotAuthority
		e.Detail = "used as an issuer, which it may not be: " + e.Detail
	case C.X509_V_ERR_CERT_CHAIN_TOO_LONG, C.X509_V_ERR_PATH_LENGTH_EXCEEDED:
		e.Reason = TooLong
	case C.X509_V_ERR_INVALID_PURPOSE:
		e.Reason = WrongPurpose
	case C.X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER, C.X509_V_ERR_CRL_SIGNATURE_FAILURE,
		C.X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE, C.X509_V_ERR_KEYUSAGE_NO_CRL_SIGN,
		C.X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION, C.X509_V_ERR_DIFFERENT_CRL_SCOPE,
		C.X509_V_ERR_CRL_PATH_VALIDATION_ERROR, C.X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD,
		C.X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD:
		e.Reason = BadRevocation
		e.Detail = fmt.Sprintf("the revocation list of %s cannot be used: %s", at.Issuer, e.Detail)
	default:
		e.Reason = BadCertificate
	}
	return e
}
