// Package rt0 proves memberships in roles from statements of RT0, the language
// of ABAC credentials (Li, Mitchell, Winsborough: Design of a Role-based Trust
// Management Framework). A statement is one of
//
//	A.r <- B            B has A's role r
//	A.r <- B.s          whoever has B's role s has A's role r
//	A.r <- B.l.s        whoever has the role s of anybody with B's role l has A's role r
//	A.r <- T1 & T2 …    whoever satisfies all of these terms has A's role r
//
// Whether a statement may be believed (its head's principal signed it) is for
// the caller to know.
package rt0

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Role is a role that a principal defines.
type Role struct{ Principal, Name string }

func (r Role) String() string { return r.Principal + "." + r.Name }

// A Term is a principal (Role and Link empty), a role of the principal (Link
// empty), or the role of everybody who has the principal's role Link.
type Term struct{ Principal, Link, Role string }

func (t Term) String() string {
	s := t.Principal
	if t.Link != "" {
		s += "." + t.Link
	}
	if t.Role != "" {
		s += "." + t.Role
	}
	return s
}

// A Statement says that who satisfies all terms of Body has the role Head,
// until Expires (zero: for ever).
type Statement struct {
	Head    Role
	Body    []Term
	Expires time.Time
}

func (s Statement) String() string {
	terms := make([]string, len(s.Body))
	for i, t := range s.Body {
		terms[i] = t.String()
	}
	return fmt.Sprintf("%s <- %s", s.Head, strings.Join(terms, " & "))
}

// A Proof says which statements prove a membership, by their index, and until
// when.
type Proof struct {
	Statements []int
	Expires    time.Time // zero: for ever
}

// Prove reports whether subject has the role goal, and by the proof that holds
// the longest.
func Prove(statements []Statement, goal Role, subject string) (Proof, bool) {
	p := prover{statements: statements, members: map[Role]map[string]fact{}, readers: map[Role]map[int]bool{}, waiting: map[int]bool{}}
	// Derive everything that follows, until nothing follows any more. Every
	// step adds a member or lengthens a membership to one of finitely many
	// expiries, so it ends.
	for i := range statements {
		p.wait(i)
	}
	for len(p.queue) > 0 {
		i := p.queue[0]
		p.queue = p.queue[1:]
		delete(p.waiting, i)
		if p.apply(i) {
			for reader := range p.readers[statements[i].Head] {
				p.wait(reader)
			}
		}
	}
	f, ok := p.members[goal][subject]
	if !ok {
		return Proof{}, false
	}
	seen := map[int]bool{}
	p.collect(goal, subject, seen, map[member]bool{})
	proof := Proof{Expires: f.expires}
	for i := range seen {
		proof.Statements = append(proof.Statements, i)
	}
	slices.Sort(proof.Statements)
	return proof, true
}

type prover struct {
	statements []Statement
	members    map[Role]map[string]fact
	readers    map[Role]map[int]bool // the statements that looked at a role
	queue      []int                 // statements to apply (again)
	waiting    map[int]bool          // those in queue
}

func (p *prover) wait(i int) {
	if !p.waiting[i] {
		p.waiting[i] = true
		p.queue = append(p.queue, i)
	}
}

// role returns the members of a role for the statement i.
func (p *prover) role(r Role, i int) map[string]fact {
	if p.readers[r] == nil {
		p.readers[r] = map[int]bool{}
	}
	p.readers[r][i] = true
	return p.members[r]
}

// fact is a membership: the statement that gives it, and what it rests on.
type fact struct {
	statement int
	expires   time.Time
	by        []member
}

type member struct {
	role      Role
	principal string
}

// longer reports whether a ends after b.
func longer(a, b time.Time) bool { return !b.IsZero() && (a.IsZero() || a.After(b)) }

func first(a, b time.Time) time.Time {
	if longer(a, b) {
		return b
	}
	return a
}

// apply derives what one statement gives now and reports whether any of it is
// new.
func (p *prover) apply(i int) bool {
	s := p.statements[i]
	if len(s.Body) == 0 {
		return false
	}
	found := p.term(s.Body[0], i)
	for _, t := range s.Body[1:] {
		both := map[string]fact{}
		for principal, f := range p.term(t, i) {
			if g, ok := found[principal]; ok {
				both[principal] = fact{expires: first(f.expires, g.expires), by: slices.Concat(g.by, f.by)}
			}
		}
		found = both
	}
	changed := false
	for principal, f := range found {
		f.statement, f.expires = i, first(f.expires, s.Expires)
		old, known := p.members[s.Head][principal]
		if known && !longer(f.expires, old.expires) {
			continue
		}
		if p.members[s.Head] == nil {
			p.members[s.Head] = map[string]fact{}
		}
		p.members[s.Head][principal] = f
		changed = true
	}
	return changed
}

// term returns who satisfies a term now, for the statement i.
func (p *prover) term(t Term, i int) map[string]fact {
	found := map[string]fact{}
	switch {
	case t.Role == "":
		found[t.Principal] = fact{}
	case t.Link == "":
		r := Role{t.Principal, t.Role}
		for principal, f := range p.role(r, i) {
			found[principal] = fact{expires: f.expires, by: []member{{r, principal}}}
		}
	default:
		link := Role{t.Principal, t.Link}
		for between, f := range p.role(link, i) {
			r := Role{between, t.Role}
			for principal, g := range p.role(r, i) {
				expires := first(f.expires, g.expires)
				if old, known := found[principal]; !known || longer(expires, old.expires) {
					found[principal] = fact{expires: expires, by: []member{{link, between}, {r, principal}}}
				}
			}
		}
	}
	return found
}

// collect notes the statements that a membership rests on.
func (p *prover) collect(r Role, principal string, statements map[int]bool, done map[member]bool) {
	m := member{r, principal}
	if done[m] {
		return
	}
	done[m] = true
	f := p.members[r][principal]
	statements[f.statement] = true
	for _, b := range f.by {
		p.collect(b.role, b.principal, statements, done)
	}
}
