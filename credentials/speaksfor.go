package credentials

import (
	"crypto"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"croft/credentials/xmldsig"
	"croft/urn"
)

// A KeyID is what ABAC calls a principal by: the SHA-1 digest of its public
// key (of the subjectPublicKey bit string), in lower-case hex. It is computed
// from the key, never taken from what a certificate says of itself.
type KeyID string

// KeyIDOf returns the id of a public key.
func KeyIDOf(key crypto.PublicKey) (KeyID, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("key id: %w", err)
	}
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &info); err != nil {
		return "", fmt.Errorf("key id: %w", err)
	}
	digest := sha1.Sum(info.Key.Bytes)
	return KeyID(hex.EncodeToString(digest[:])), nil
}

// statement is what an ABAC credential says: whoever satisfies all tails has
// the head's role. The head's principal is the signer.
type statement struct {
	signer    urn.URN
	principal KeyID
	role      string
	tails     []tail
}

// tail is a principal (no role), a role of it (no linked), or the role of all
// who have the principal's linked role.
type tail struct {
	principal KeyID
	linked    string
	role      string
}

// maxTails bounds the tails of one statement.
const maxTails = 16

func readStatement(f *fields, signer named) (*statement, error) {
	if f.abac == nil {
		return nil, errors.New("an ABAC credential that states nothing")
	}
	all := f.abac.Elements()
	if len(all) != 1 || !all[0].Is("", "rt0") {
		return nil, fmt.Errorf("line %d: want one <rt0> in <abac>", f.abac.Line)
	}
	s := &statement{signer: signer.urn}
	heads := 0
	for _, e := range all[0].Elements() {
		part, err := readTail(e)
		switch {
		case e.Is("", "version"):
			version, err := value(e)
			if err != nil {
				return nil, err
			}
			if version != "1.0" && version != "1.1" {
				return nil, fmt.Errorf("line %d: RT0 version %.20q; want 1.1", e.Line, version)
			}
		case err != nil:
			return nil, err
		case e.Is("", "head"):
			if heads++; heads > 1 || part.role == "" || part.linked != "" {
				return nil, fmt.Errorf("line %d: want one head, which is a role of its signer", e.Line)
			}
			s.principal, s.role = part.principal, part.role
		case e.Is("", "tail"):
			if len(s.tails) == maxTails {
				return nil, fmt.Errorf("line %d: more than %d tails", e.Line, maxTails)
			}
			s.tails = append(s.tails, part)
		default:
			return nil, fmt.Errorf("line %d: <%s> in <rt0>", e.Line, e.Name.Local)
		}
	}
	if heads == 0 || len(s.tails) == 0 {
		return nil, errors.New("an ABAC statement without head or tail")
	}
	own, err := KeyIDOf(signer.certificate.PublicKey)
	if err != nil {
		return nil, err
	}
	if own != s.principal {
		return nil, fmt.Errorf("states a role of %s, but is signed by %s (%s)", s.principal, own, signer.urn)
	}
	return s, nil
}

func readTail(e *xmldsig.Element) (tail, error) {
	var t tail
	if !e.Is("", "head") && !e.Is("", "tail") {
		return t, nil
	}
	seen := map[string]bool{}
	for _, c := range e.Elements() {
		name := c.Name.Local
		if c.Name.Space != "" || seen[name] {
			return t, fmt.Errorf("line %d: <%s> does not belong there", c.Line, name)
		}
		seen[name] = true
		var err error
		switch name {
		case "ABACprincipal":
			t.principal, err = readPrincipal(c)
		case "role":
			t.role, err = readRole(c)
		case "linking_role":
			t.linked, err = readRole(c)
		default:
			err = fmt.Errorf("line %d: <%s> does not belong there", c.Line, name)
		}
		if err != nil {
			return t, err
		}
	}
	if t.principal == "" || (t.linked != "" && t.role == "") {
		return t, fmt.Errorf("line %d: <%s> without a principal, or with a linking_role and no role", e.Line, e.Name.Local)
	}
	return t, nil
}

func readPrincipal(e *xmldsig.Element) (KeyID, error) {
	var id KeyID
	for _, c := range e.Elements() {
		switch {
		case c.Is("", "keyid") && id == "":
			text, err := value(c)
			if err != nil {
				return "", err
			}
			if id, err = parseKeyID(text); err != nil {
				return "", fmt.Errorf("line %d: %w", c.Line, err)
			}
		case c.Is("", "mnemonic"): // for people; proves nothing
		default:
			return "", fmt.Errorf("line %d: <%s> in ABACprincipal", c.Line, c.Name.Local)
		}
	}
	return id, nil
}

func parseKeyID(text string) (KeyID, error) {
	text = strings.ToLower(text)
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != sha1.Size {
		return "", fmt.Errorf("%.60q is no key id; want 40 hex digits", text)
	}
	return KeyID(text), nil
}

func readRole(e *xmldsig.Element) (string, error) {
	text, err := value(e)
	if err == nil && !isRole(text) {
		err = fmt.Errorf("line %d: %.60q is no role", e.Line, text)
	}
	return text, err
}

// isRole reports whether s can name a role.
func isRole(s string) bool {
	for _, r := range s {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// speak decides for whom the call is made. Who names somebody else in
// geni_speaking_for must bring a statement of that user:
//
//	user.speaks_for_user <- caller
//
// by the keys of both (geni_abac 1; GENI's "speaks-for").
func (p *Principal) speak(user urn.URN) {
	if user.IsZero() || user.Equal(p.Caller.URN) {
		p.User = p.Caller.URN
		return
	}
	caller, err := KeyIDOf(p.Caller.Certificate.PublicKey)
	if err != nil {
		p.denied = because(err, "%s cannot speak for %s", p.Caller.URN, user)
		return
	}
	if !strings.EqualFold(string(user.Type), string(urn.User)) {
		p.denied = refuse("geni_speaking_for names %s, which is no user", user)
		return
	}
	for i, c := range p.usable {
		s := c.statement
		if s == nil || !s.signer.Equal(user) {
			continue
		}
		if strings.EqualFold(s.role, "speaks_for_"+string(s.principal)) && len(s.tails) == 1 && s.tails[0] == (tail{principal: caller}) {
			p.User, p.userKey = user, s.principal
			id := c.id
			p.SpeaksBy = &id
			p.usable = append(p.usable[:i:i], p.usable[i+1:]...)
			return
		}
	}
	p.denied = refuse("geni_speaking_for names %s, but no credential among those that count is that user's statement "+
		"that %s (key %s) speaks for it", user, p.Caller.URN, caller)
	for _, c := range p.usable {
		if c.statement != nil {
			p.useless(c.index, fmt.Errorf("is a statement of %s and not that %s speaks for %s", c.statement.signer, p.Caller.URN, user))
		}
	}
}
