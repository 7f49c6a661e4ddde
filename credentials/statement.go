package credentials

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"croft/internal/openssl"
)

// A Statement is what an ABAC credential says in RT0: whoever satisfies all of
// Body has Role. The role is always the signer's own.
type Statement struct {
	Role string
	Body []Term
}

// A Term is a principal, by its public key; with Role, those to whom the
// principal gives the role; with Link as well, those to whom anybody with the
// principal's role Link gives it.
type Term struct {
	Principal *openssl.Certificate
	Link      string
	Role      string
}

// SpeaksFor is the statement by which a user lets a tool call in the user's
// name (GENI's speaks-for). The user signs it.
func SpeaksFor(user, tool *openssl.Certificate) (Statement, error) {
	id, err := KeyIDOf(user.PublicKey)
	if err != nil {
		return Statement{}, err
	}
	return Statement{Role: "speaks_for_" + string(id), Body: []Term{{Principal: tool}}}, nil
}

// SignStatement makes an ABAC credential (geni_abac 1).
func SignStatement(i Issuer, s Statement, expires time.Time) ([]byte, error) {
	chain, err := openssl.ParsePEM(i.Chain)
	if err != nil {
		return nil, fmt.Errorf("sign a statement: issuer: %w", err)
	}
	if len(s.Body) == 0 || len(s.Body) > maxTails {
		return nil, fmt.Errorf("sign a statement: %d terms; want 1 to %d", len(s.Body), maxTails)
	}
	var b strings.Builder
	b.WriteString("<type>abac</type><serial></serial><owner_gid></owner_gid><target_gid></target_gid><uuid></uuid>")
	b.WriteString("<expires>" + expires.UTC().Format(time.RFC3339) + "</expires><abac><rt0><version>1.1</version>")
	if err := writeTerm(&b, "head", Term{Principal: chain[0], Role: s.Role}); err != nil {
		return nil, fmt.Errorf("sign a statement: head: %w", err)
	}
	for _, t := range s.Body {
		if err := writeTerm(&b, "tail", t); err != nil {
			return nil, fmt.Errorf("sign a statement: tail: %w", err)
		}
	}
	b.WriteString("</rt0></abac>")
	return i.sign(envelope{body: b.String()})
}

func writeTerm(b *strings.Builder, name string, t Term) error {
	if t.Principal == nil {
		return errors.New("no principal")
	}
	id, err := KeyIDOf(t.Principal.PublicKey)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "<%s><ABACprincipal><keyid>%s</keyid>", name, id)
	if u, err := nameOf(t.Principal); err == nil {
		b.WriteString("<mnemonic>" + escape(u.String()) + "</mnemonic>")
	}
	b.WriteString("</ABACprincipal>")
	for _, r := range []struct{ name, role string }{{"role", t.Role}, {"linking_role", t.Link}} {
		if r.role == "" {
			continue
		}
		if !isRole(r.role) {
			return fmt.Errorf("%q is no role: want letters, digits, - and _", r.role)
		}
		b.WriteString("<" + r.name + ">" + r.role + "</" + r.name + ">")
	}
	b.WriteString("</" + name + ">")
	return nil
}
