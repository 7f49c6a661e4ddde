package credentials

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"croft/credentials/rt0"
	"croft/internal/openssl"
	"croft/urn"
)

// A Policy is an operator's word on who may do what, in RT0. Its lines are
//
//	# a comment
//	principal geant = certificate "geant.pem"
//	principal lab = key 4ba5c8c1a0d8c4c3a1b6e0a3f3f1d2a9c7b5e4d0
//	aggregate.Allocate <- sfa.Allocate & geant.project_x
//	aggregate.trusted  <- geant.partner.member
//	aggregate.Shutdown <- aggregate.trusted & lab.operator
//	aggregate.any      <- sfa.any & "example.org".user
//
// "aggregate" is this aggregate manager: every statement of the file is its
// own. Its role of the name of a call (Calls, in any case) holds those who may
// make that call, its role "any" those who may make every call. For a call of
// which the file says nothing, neither by its name nor by "any", the rule of
// the SFA holds.
//
// "sfa" stands for that rule: the role of the name of a call, or "any" for the
// call in question, holds who has an SFA credential for it. A quoted authority
// stands for its name space: its role "user" holds the users whose
// certificates are of the authority or a sub-authority, its role "slice" holds
// everybody when the slice is of it. Roles of other principals are proven by
// the ABAC credentials in the call.
type Policy struct {
	statements []rt0.Statement
	calls      map[string]bool // for which it says something: Calls and "any", in lower case
}

// The principals that a policy has by itself. Key ids are hex digits, and
// authorities are quoted, so they collide with neither.
const (
	selfPrincipal = "aggregate"
	sfaPrincipal  = "sfa"
	anyCall       = "any"
)

// maxPolicy bounds a policy file.
const maxPolicy = 1 << 20

// ReadPolicy reads a policy file. Certificates in it are named relative to it.
func ReadPolicy(path string) (*Policy, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	if info.Size() > maxPolicy {
		return nil, fmt.Errorf("read policy %s: longer than %d bytes", path, maxPolicy)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	p, err := ParsePolicy(string(text), func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		return os.ReadFile(name)
	})
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", path, err)
	}
	return p, nil
}

// ParsePolicy reads a policy; certificate returns the PEM files that it names.
func ParsePolicy(text string, certificate func(name string) ([]byte, error)) (*Policy, error) {
	p := &Policy{calls: map[string]bool{}}
	r := policyReader{certificate: certificate, principals: map[string]string{selfPrincipal: selfPrincipal, sfaPrincipal: sfaPrincipal}}
	var lines []int
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		var err error
		if rest, ok := strings.CutPrefix(line, "principal "); ok {
			err = r.principal(rest)
		} else {
			var s rt0.Statement
			if s, err = r.statement(line); err == nil {
				p.statements = append(p.statements, s)
				lines = append(lines, i+1)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	// A role of the aggregate that is neither a call nor used is a call
	// misspelt.
	used := map[rt0.Role]bool{}
	for _, s := range p.statements {
		for _, t := range s.Body {
			used[rt0.Role{Principal: t.Principal, Name: t.Role}] = true
			used[rt0.Role{Principal: t.Principal, Name: t.Link}] = true
		}
	}
	for i, s := range p.statements {
		switch {
		case isCall(s.Head.Name):
			p.calls[s.Head.Name] = true
		case !used[s.Head]:
			return nil, fmt.Errorf("line %d: aggregate.%s is no call, and no other line uses it; the calls are %v, any", lines[i], s.Head.Name, Calls())
		}
	}
	return p, nil
}

// isCall reports whether a role is a call's, in lower case, or "any".
func isCall(role string) bool {
	return role == anyCall || slices.ContainsFunc(Calls(), func(c Call) bool { return roleOf(c) == role })
}

func roleOf(c Call) string { return strings.ToLower(string(c)) }

type policyReader struct {
	certificate func(string) ([]byte, error)
	principals  map[string]string // the name in the file → the principal in RT0
}

// principal reads: NAME = key HEX, or NAME = certificate "FILE".
func (r *policyReader) principal(text string) error {
	name, is, found := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	kind, value, also := strings.Cut(strings.TrimSpace(is), " ")
	value = strings.TrimSpace(value)
	if !found || !also || !isRole(name) {
		return fmt.Errorf("%q: want principal NAME = key HEX, or principal NAME = certificate \"FILE\"", text)
	}
	if _, twice := r.principals[name]; twice {
		return fmt.Errorf("the principal %s is there already", name)
	}
	switch kind {
	case "key":
		id, err := parseKeyID(value)
		if err != nil {
			return err
		}
		r.principals[name] = string(id)
	case "certificate":
		data, err := r.certificate(strings.Trim(value, `"`))
		if err != nil {
			return fmt.Errorf("principal %s: %w", name, err)
		}
		chain, err := openssl.ParsePEM(data)
		if err != nil {
			return fmt.Errorf("principal %s: %s: %w", name, value, err)
		}
		id, err := KeyIDOf(chain[0].PublicKey)
		if err != nil {
			return fmt.Errorf("principal %s: %s: %w", name, value, err)
		}
		r.principals[name] = string(id)
	default:
		return fmt.Errorf("principal %s: %q; want key or certificate", name, kind)
	}
	return nil
}

// statement reads: aggregate.ROLE <- TERM & TERM …
func (r *policyReader) statement(line string) (rt0.Statement, error) {
	head, body, found := strings.Cut(line, "<-")
	if !found {
		return rt0.Statement{}, fmt.Errorf("%q: want aggregate.ROLE <- TERM, or principal NAME = …", line)
	}
	h, err := r.term(strings.TrimSpace(head))
	if err != nil {
		return rt0.Statement{}, err
	}
	if h.Principal != selfPrincipal || h.Role == "" || h.Link != "" {
		return rt0.Statement{}, fmt.Errorf("%q: only roles of aggregate can be given here; those of others are given by their credentials", strings.TrimSpace(head))
	}
	s := rt0.Statement{Head: rt0.Role{Principal: selfPrincipal, Name: h.Role}}
	for _, text := range strings.Split(body, "&") {
		t, err := r.term(strings.TrimSpace(text))
		if err != nil {
			return rt0.Statement{}, err
		}
		s.Body = append(s.Body, t)
	}
	return s, nil
}

func (r *policyReader) term(text string) (rt0.Term, error) {
	if rest, quoted := strings.CutPrefix(text, `"`); quoted {
		authority, role, found := strings.Cut(rest, `".`)
		if _, err := urn.New(urn.Authority(authority), urn.User, "x"); err != nil || !found || (role != "user" && role != "slice") {
			return rt0.Term{}, fmt.Errorf(`%q: want "AUTHORITY".user or "AUTHORITY".slice`, text)
		}
		return rt0.Term{Principal: quote(urn.Authority(authority)), Role: role}, nil
	}
	parts := strings.Split(text, ".")
	if len(parts) > 3 || slices.ContainsFunc(parts, func(s string) bool { return !isRole(s) }) {
		return rt0.Term{}, fmt.Errorf("%q: want PRINCIPAL, PRINCIPAL.ROLE or PRINCIPAL.ROLE.ROLE", text)
	}
	principal, known := r.principals[parts[0]]
	if !known {
		return rt0.Term{}, fmt.Errorf("%q: no principal %s; declare it in a line above (principal %s = key …)", text, parts[0], parts[0])
	}
	t := rt0.Term{Principal: principal}
	switch len(parts) {
	case 2:
		t.Role = parts[1]
	case 3:
		t.Link, t.Role = parts[1], parts[2]
	}
	// The names of calls are read in any case.
	if principal == selfPrincipal || principal == sfaPrincipal {
		if lower := strings.ToLower(t.Role); isCall(lower) && t.Link == "" {
			t.Role = lower
		} else if principal == sfaPrincipal {
			return rt0.Term{}, fmt.Errorf("%q: sfa has the roles %v, any", text, Calls())
		}
	}
	return t, nil
}

func quote(a urn.Authority) string { return `"` + string(a.Canonical()) + `"` }

// decides reports whether the policy says anything of a call.
func (p *Policy) decides(c Call) bool { return p.calls[anyCall] || p.calls[roleOf(c)] }

// mayByPolicy proves that the user has the call's role.
func (p *Principal) mayByPolicy(call Call, target urn.URN, slivers []urn.URN) (Grant, error) {
	subject, err := p.key()
	if err != nil {
		return Grant{}, because(err, "%s may not call %s", p.name(), call)
	}
	// What was stated: by the policy, by credentials, and as facts.
	all := slices.Clone(p.policy.statements)
	rules := len(all)
	var proofs []Identity // of the statements behind rules
	now := p.now()
	for _, c := range p.usable {
		if c.statement != nil && c.expires.After(now) {
			all = append(all, c.statement.rt0(c.expires))
			proofs = append(proofs, c.id)
		}
	}
	credentials := len(all)
	fact := func(principal, role string, expires time.Time) {
		all = append(all, rt0.Statement{Head: rt0.Role{Principal: principal, Name: role}, Body: []rt0.Term{{Principal: subject}}, Expires: expires})
	}
	grant, reasons := p.mayBySFA(call, target, slivers)
	if reasons == nil {
		fact(sfaPrincipal, roleOf(call), grant.Expires)
		fact(sfaPrincipal, anyCall, grant.Expires)
	}
	sfaFacts := len(all)
	for _, s := range p.policy.statements {
		for _, t := range s.Body {
			if !strings.HasPrefix(t.Principal, `"`) {
				continue
			}
			authority := urn.Authority(strings.Trim(t.Principal, `"`))
			on := map[string]urn.URN{"user": p.User, "slice": target}[t.Role]
			if !on.IsZero() && authority.Covers(on.Authority) {
				fact(t.Principal, t.Role, time.Time{})
			}
		}
	}

	proof, found := rt0.Prove(all, rt0.Role{Principal: selfPrincipal, Name: roleOf(call)}, subject)
	if byAny, ok := rt0.Prove(all, rt0.Role{Principal: selfPrincipal, Name: anyCall}, subject); ok && !found {
		proof, found = byAny, true
	}
	if !found {
		return Grant{}, p.refusal(call, target, p.policy.explain(call), reasons)
	}
	granted := Grant{Expires: p.Caller.Certificate.NotAfter}
	if !proof.Expires.IsZero() {
		granted.Expires = earliest(granted.Expires, proof.Expires)
	}
	for _, i := range proof.Statements {
		switch {
		case i >= rules && i < credentials:
			granted.Proof = append(granted.Proof, proofs[i-rules])
		case i >= credentials && i < sfaFacts && granted.Rights == nil:
			granted.Rights, granted.Credential = grant.Rights, grant.Credential
			granted.Proof = append(granted.Proof, grant.Proof...)
		}
	}
	if p.SpeaksBy != nil && !slices.Contains(granted.Proof, *p.SpeaksBy) {
		granted.Proof = append(granted.Proof, *p.SpeaksBy)
	}
	if granted.Credential.Digest == "" && len(granted.Proof) > 0 {
		granted.Credential = granted.Proof[0]
	}
	return granted, nil
}

// explain says what the policy asks for.
func (p *Policy) explain(call Call) string {
	var rules []string
	for _, s := range p.statements {
		if s.Head.Name == roleOf(call) || s.Head.Name == anyCall {
			rules = append(rules, s.String())
		}
	}
	return "this aggregate's policy asks for " + strings.Join(rules, " or ")
}

// key returns the principal that the user is in RT0.
func (p *Principal) key() (string, error) {
	if p.SpeaksBy != nil {
		return string(p.userKey), nil
	}
	id, err := KeyIDOf(p.Caller.Certificate.PublicKey)
	return string(id), err
}

func (s *statement) rt0(expires time.Time) rt0.Statement {
	out := rt0.Statement{Head: rt0.Role{Principal: string(s.principal), Name: s.role}, Expires: expires}
	for _, t := range s.tails {
		out.Body = append(out.Body, rt0.Term{Principal: string(t.principal), Link: t.linked, Role: t.role})
	}
	return out
}
