package credentials

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"croft/credentials/xmldsig"
	"croft/internal/openssl"
	"croft/urn"
)

// verified is a credential of which everything was checked that does not
// depend on the caller, the call or the target. It holds nothing of the
// document.
type verified struct {
	id         Identity
	owner      urn.URN
	target     urn.URN
	privileges []Privilege
	statement  *statement // of an ABAC credential; nil otherwise
	expires    time.Time  // of the credential
	until      time.Time  // the first expiry of anything that it was proven with
}

// Identity says which credential it was, for logs: nothing in it is secret.
type Identity struct {
	// Digest is the SHA-256 digest of the credential as it came, in hex.
	Digest string
	// Kind is "privilege" or "abac".
	Kind string
	// Owner and Target are zero for ABAC credentials.
	Owner, Target, Signer urn.URN
	Expires               time.Time
	// Delegations is how often it was passed on.
	Delegations int
}

// String names the credential in one line.
func (i Identity) String() string {
	digest := i.Digest
	if len(digest) > 16 {
		digest = digest[:16]
	}
	if i.Kind == "abac" {
		return fmt.Sprintf("abac by %s (%s)", i.Signer, digest)
	}
	return fmt.Sprintf("%s on %s by %s (%s)", i.Owner, i.Target, i.Signer, digest)
}

// LogValue is what an audit log needs.
func (i Identity) LogValue() slog.Value {
	attributes := []slog.Attr{slog.String("kind", i.Kind), slog.String("digest", i.Digest), slog.String("signer", i.Signer.String()), slog.Time("expires", i.Expires)}
	if i.Kind != "abac" {
		attributes = append(attributes, slog.String("owner", i.Owner.String()), slog.String("target", i.Target.String()), slog.Int("delegations", i.Delegations))
	}
	return slog.GroupValue(attributes...)
}

// maxDelegations bounds the chain of a delegated credential.
const maxDelegations = 10

// maxSignatures bounds the signatures of one document, maxTried those over one
// credential.
const (
	maxSignatures = 2 * (maxDelegations + 1)
	maxTried      = 3
)

// reader verifies one document.
type reader struct {
	trust   *Trust
	anchors *anchors
	now     time.Time
	doc     *document
	until   time.Time
}

// read verifies a credential as it came in a call.
func (t *Trust) read(a *anchors, value string) (*verified, error) {
	doc, err := readDocument([]byte(value))
	if err != nil {
		return nil, err
	}
	r := &reader{trust: t, anchors: a, now: t.options.Now(), doc: doc}
	r.until = r.now.Add(remembered)
	v, err := r.credential(doc.credential, 0)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256([]byte(value))
	v.id.Digest = hex.EncodeToString(digest[:])
	v.id.Expires = v.expires
	v.until = r.until
	return v, nil
}

func (r *reader) note(until time.Time) { r.until = earliest(r.until, until) }

// credential verifies one credential element: its signature, then, read out
// of the signed element alone, what it says, and the credential that it was
// delegated from.
func (r *reader) credential(e *xmldsig.Element, delegations int) (*verified, error) {
	if delegations > maxDelegations {
		return nil, fmt.Errorf("delegated more than %d times", maxDelegations)
	}
	signed, signer, chain, err := r.signed(e)
	if err != nil {
		return nil, err
	}
	f, err := readFields(signed)
	if err != nil {
		return nil, err
	}
	if !f.expires.After(r.now) {
		return nil, fmt.Errorf("expired at %s", f.expires.Format(time.RFC3339))
	}
	r.note(f.expires)
	v := &verified{expires: f.expires}
	v.id.Kind, v.id.Signer = f.kind, signer.urn
	switch f.kind {
	case "privilege":
	case "abac":
		if delegations > 0 || f.parent != nil {
			return nil, errors.New("an ABAC credential within a delegation")
		}
		v.statement, err = readStatement(f, signer)
		return v, err
	default:
		return nil, fmt.Errorf("credentials of the type %.40q are not understood; want privilege or abac", f.kind)
	}
	if v.owner, err = r.gid("owner", f.ownerGID, f.ownerURN, chain); err != nil {
		return nil, err
	}
	if v.target, err = r.gid("target", f.targetGID, f.targetURN, chain); err != nil {
		return nil, err
	}
	v.privileges = f.privileges
	v.id.Owner, v.id.Target = v.owner, v.target
	if f.parent == nil {
		switch {
		case !isAuthority(signer.urn):
			return nil, fmt.Errorf("signed by %s, which is no authority", signer.urn)
		case !signer.urn.Authority.Covers(v.target.Authority):
			return nil, fmt.Errorf("signed by %s, which is no authority over %s", signer.urn, v.target)
		}
		return v, nil
	}
	parent, err := r.credential(f.parent, delegations+1)
	if err != nil {
		if delegations == 0 {
			err = fmt.Errorf("delegated from a credential that does not count: %w", err)
		}
		return nil, err
	}
	v.id.Delegations = parent.id.Delegations + 1
	return v, delegated(parent, v, signer.urn)
}

// delegated checks a step of delegation.
func delegated(parent, child *verified, signer urn.URN) error {
	switch {
	case !signer.Equal(parent.owner):
		return fmt.Errorf("delegated by %s, but %s is the owner of what is delegated", signer, parent.owner)
	case !child.target.Equal(parent.target):
		return fmt.Errorf("delegated for %s from a credential for %s", child.target, parent.target)
	case child.expires.After(parent.expires):
		return fmt.Errorf("expires at %s, after the credential that it was delegated from (%s)",
			child.expires.Format(time.RFC3339), parent.expires.Format(time.RFC3339))
	}
	for _, p := range child.privileges {
		allowed := false
		for _, own := range parent.privileges {
			allowed = allowed || own.mayPassOn(p)
		}
		if !allowed {
			return fmt.Errorf("passes on the privilege %.40q, which the credential that it was delegated from does not allow", p.Name)
		}
	}
	return nil
}

// signed finds the signature over e, verifies it and its signer, and returns
// the element that it signs, which is e itself.
func (r *reader) signed(e *xmldsig.Element) (*xmldsig.Element, named, []*openssl.Certificate, error) {
	id := e.ID()
	if id == "" {
		return nil, named{}, nil, fmt.Errorf("line %d: the credential has no xml:id, so nothing can sign it", e.Line)
	}
	all := xmldsig.Signatures(r.doc.signatures)
	if len(all) > maxSignatures {
		return nil, named{}, nil, fmt.Errorf("%d signatures; at most %d are looked at", len(all), maxSignatures)
	}
	var problem error
	tried := 0
	for _, element := range all {
		s, err := xmldsig.ReadSignature(element)
		if err != nil {
			if problem == nil {
				problem = err
			}
			continue
		}
		if s.Target != id {
			continue
		}
		if tried++; tried > maxTried {
			break
		}
		signed, signer, chain, err := r.signature(s)
		if err == nil && signed != e {
			err = fmt.Errorf("the signature signs something else")
		}
		if err == nil {
			return signed, signer, chain, nil
		}
		problem = err
	}
	if problem == nil {
		problem = fmt.Errorf("no signature over the credential %q", id)
	}
	return nil, named{}, nil, problem
}

func (r *reader) signature(s *xmldsig.Signature) (*xmldsig.Element, named, []*openssl.Certificate, error) {
	fail := func(err error) (*xmldsig.Element, named, []*openssl.Certificate, error) {
		return nil, named{}, nil, err
	}
	if s.SHA1 && r.trust.options.RefuseSHA1 {
		return fail(errors.New("signed with SHA-1, which this aggregate does not accept"))
	}
	chain, err := r.trust.parse(s.Certificates)
	if err != nil {
		return fail(fmt.Errorf("signer: %w", err))
	}
	leaf, err := leafOf(chain)
	if err != nil {
		return fail(fmt.Errorf("signer: %w", err))
	}
	signed, err := s.Verify(r.doc.xml, leaf.PublicKey)
	if err != nil {
		return fail(err)
	}
	signer, err := r.trust.verify(r.anchors, leaf, chain)
	if err != nil {
		return fail(fmt.Errorf("signer: %w", err))
	}
	if !signer.complete {
		// xmlsec1 and the tools built on it want a whole chain.
		return fail(fmt.Errorf("signer: the chain of %s ends at an intermediate authority; "+
			"credentials need the root above it among the trust roots", signer.urn))
	}
	r.note(signer.until)
	return signed, signer, chain, nil
}

// leafOf returns the one certificate that issued none of the others: the
// signer's, wherever it stands among them.
func leafOf(chain []*openssl.Certificate) (*openssl.Certificate, error) {
	var leaf *openssl.Certificate
	for i, c := range chain {
		issued := false
		for j, other := range chain {
			issued = issued || (i != j && string(other.RawIssuer) == string(c.RawSubject))
		}
		if issued {
			continue
		}
		if leaf != nil && leaf.Fingerprint != c.Fingerprint {
			return nil, fmt.Errorf("two certificates that may be the signer's, %s and %s", leaf, c)
		}
		leaf = c
	}
	if leaf == nil {
		return nil, errors.New("no certificate among them is the signer's")
	}
	return leaf, nil
}

// gid verifies a certificate that stands in a credential and returns its URN,
// which the element beside it repeats.
func (r *reader) gid(what, text, written string, others []*openssl.Certificate) (urn.URN, error) {
	ders, err := decodeGID(text)
	if err != nil {
		return urn.URN{}, fmt.Errorf("%s_gid: %w", what, err)
	}
	chain, err := r.trust.parse(ders)
	if err != nil {
		return urn.URN{}, fmt.Errorf("%s_gid: %w", what, err)
	}
	n, err := r.trust.verify(r.anchors, chain[0], append(chain[1:len(chain):len(chain)], others...))
	if err != nil {
		return urn.URN{}, fmt.Errorf("%s_gid: %w", what, err)
	}
	r.note(n.until)
	if written != "" {
		name, err := urn.Parse(written)
		if err != nil {
			return urn.URN{}, fmt.Errorf("%s_urn: %w", what, err)
		}
		if !name.Equal(n.urn) {
			return urn.URN{}, fmt.Errorf("%s_urn is %s, but the certificate beside it is that of %s", what, name, n.urn)
		}
	}
	return n.urn, nil
}

// decodeGID returns the DER certificates of a gid: PEM, its own first, in
// whatever lines, or bare base64.
func decodeGID(text string) ([][]byte, error) {
	const begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
	var bodies []string
	if !strings.Contains(text, "-----") {
		bodies = []string{text}
	}
	for rest := text; ; {
		_, after, found := strings.Cut(rest, begin)
		if !found {
			break
		}
		body, next, found := strings.Cut(after, end)
		if !found {
			return nil, errors.New("a certificate that does not end")
		}
		bodies = append(bodies, body)
		rest = next
		if len(bodies) > maxChain {
			return nil, fmt.Errorf("more than %d certificates", maxChain)
		}
	}
	var ders [][]byte
	for _, body := range bodies {
		der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(body), ""))
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		if len(der) == 0 {
			return nil, errors.New("no certificate")
		}
		ders = append(ders, der)
	}
	if len(ders) == 0 {
		return nil, errors.New("no certificate")
	}
	return ders, nil
}
