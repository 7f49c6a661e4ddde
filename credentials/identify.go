package credentials

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"croft/internal/openssl"
	"croft/urn"
)

// A Caller is who holds the key of a connection.
type Caller struct {
	URN urn.URN
	// Email and UUID are as the certificate has them, or empty.
	Email, UUID string
	Certificate *openssl.Certificate
}

// remembered bounds how long a verified certificate or credential is relied
// on, besides its own expiry: revocation lists have an end, too.
const remembered = time.Hour

// maxChain bounds the certificates that a peer or a document may hand over.
const maxChain = 16

// Identify verifies the certificate chain of a client, its own certificate
// first, and reads who it is. The error is a *Refusal.
func (t *Trust) Identify(chain []*openssl.Certificate) (*Caller, error) {
	if len(chain) == 0 {
		return nil, refuse("no client certificate: this server knows its callers by their certificates")
	}
	if len(chain) > maxChain {
		return nil, refuse("a chain of %d certificates; at most %d are looked at", len(chain), maxChain)
	}
	digest := sha256.New()
	for _, c := range chain {
		digest.Write(c.Fingerprint[:])
	}
	key := [sha256.Size]byte(digest.Sum(nil))
	a, now := t.current(), t.options.Now()
	if caller, ok := t.callers.get(key, a.generation, now); ok {
		return caller, nil
	}
	n, err := t.verify(a, chain[0], chain[1:])
	if err != nil {
		return nil, asRefusal(err)
	}
	if !slices.ContainsFunc(t.options.Callers, func(typ urn.Type) bool { return strings.EqualFold(string(typ), string(n.urn.Type)) }) {
		return nil, refuse("the certificate names %s, which is not a user; log in with a member's certificate", n.urn)
	}
	caller := &Caller{URN: n.urn, Certificate: chain[0]}
	if len(chain[0].Emails) > 0 {
		caller.Email = chain[0].Emails[0]
	}
	for _, uri := range chain[0].URIs {
		if len(uri) > len("urn:uuid:") && strings.EqualFold(uri[:len("urn:uuid:")], "urn:uuid:") {
			caller.UUID = uri[len("urn:uuid:"):]
			break
		}
	}
	t.callers.put(key, a.generation, earliest(n.until, now.Add(remembered)), caller)
	return caller, nil
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
