// Package urn holds the names that a federation gives to everything it knows:
// publicid URNs such as
//
//	urn:publicid:IDN+example.org:proj+slice+exp1
//
// An authority (with optional sub-authorities after colons), a type and a name.
// Authorities compare case-insensitively (Federation AM API, "Identifiers").
package urn

import (
	"fmt"
	"strings"
)

const prefix = "urn:publicid:IDN+"

// maxLength bounds what Parse reads; no federation uses names near it.
const maxLength = 1024

// URN is one name. The zero URN names nothing.
//
// URNs that name the same thing are equal by Equal; as keys of a map use
// Canonical, because == tells apart authorities that differ in case only.
type URN struct {
	Authority Authority
	Type      Type
	Name      string
}

// Type says what kind of thing a URN names.
type Type string

// Canonical returns the type in lower case.
func (t Type) Canonical() Type { return Type(strings.ToLower(string(t))) }

// The types that the AM API gives a meaning to. Others are legal.
const (
	User          Type = "user"
	Slice         Type = "slice"
	Sliver        Type = "sliver"
	AuthorityType Type = "authority"
	Node          Type = "node"
	Link          Type = "link"
	Interface     Type = "interface"
	Image         Type = "image"
	Tool          Type = "tool"
)

// Authority is the name space a URN belongs to: a top authority and its
// sub-authorities, such as "example.org:proj".
type Authority string

// Equal reports whether two authorities are the same, whatever their case.
func (a Authority) Equal(b Authority) bool { return strings.EqualFold(string(a), string(b)) }

// Canonical returns the authority in lower case.
func (a Authority) Canonical() Authority { return Authority(strings.ToLower(string(a))) }

// Covers reports whether b is a or a sub-authority of a.
func (a Authority) Covers(b Authority) bool {
	x, y := string(a.Canonical()), string(b.Canonical())
	return x != "" && (x == y || strings.HasPrefix(y, x+":"))
}

// Top returns the authority without its sub-authorities.
func (a Authority) Top() Authority {
	top, _, _ := strings.Cut(string(a), ":")
	return Authority(top)
}

// New makes a URN out of its parts. It returns an error for parts that a URN
// cannot hold.
func New(authority Authority, typ Type, name string) (URN, error) {
	u := URN{Authority: authority, Type: typ, Name: name}
	return u, u.check()
}

// Parse reads a publicid URN. The words urn, publicid and IDN are read in any
// case, as real testbeds write them ("urn:publicId:IDN"). White space around
// the URN is not part of it.
func Parse(s string) (URN, error) {
	s = strings.TrimSpace(s)
	if len(s) > maxLength {
		return URN{}, fmt.Errorf("urn of %d characters: longer than %d", len(s), maxLength)
	}
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return URN{}, fmt.Errorf("urn %q: does not start with %s", s, prefix)
	}
	parts := strings.SplitN(s[len(prefix):], "+", 3)
	if len(parts) != 3 {
		return URN{}, fmt.Errorf("urn %q: want %sAUTHORITY+TYPE+NAME", s, prefix)
	}
	u := URN{Authority: Authority(parts[0]), Type: Type(parts[1]), Name: parts[2]}
	if err := u.check(); err != nil {
		return URN{}, err
	}
	return u, nil
}

// MustParse is Parse for URNs written in a program.
func MustParse(s string) URN {
	u, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func (u URN) check() error {
	for _, part := range []struct{ what, text string }{
		{"authority", string(u.Authority)}, {"type", string(u.Type)}, {"name", u.Name},
	} {
		if part.text == "" {
			return fmt.Errorf("urn %q: empty %s", u, part.what)
		}
		for _, r := range part.text {
			if r <= ' ' || r == 0x7f || r == '<' || r == '>' || r == '"' || r == '\ufffd' {
				return fmt.Errorf("urn %q: character %q in its %s", u, r, part.what)
			}
		}
	}
	if strings.Contains(string(u.Authority), "+") || strings.Contains(string(u.Type), "+") {
		return fmt.Errorf("urn %q: a + in its authority or type", u)
	}
	return nil
}

// String returns the URN as written in documents, or "" for the zero URN.
func (u URN) String() string {
	if u.IsZero() {
		return ""
	}
	return prefix + string(u.Authority) + "+" + string(u.Type) + "+" + u.Name
}

// IsZero reports whether the URN names nothing.
func (u URN) IsZero() bool { return u == URN{} }

// Canonical returns the URN with its authority and type in lower case: the
// form that is equal for all ways to write one name.
func (u URN) Canonical() URN {
	u.Authority = u.Authority.Canonical()
	u.Type = u.Type.Canonical()
	return u
}

// Equal reports whether two URNs name the same thing.
func (u URN) Equal(v URN) bool { return u.Canonical() == v.Canonical() }

// MarshalText writes the URN as String does.
func (u URN) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads what Parse reads; empty text is the zero URN.
func (u *URN) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*u = URN{}
		return nil
	}
	v, err := Parse(string(text))
	if err != nil {
		return err
	}
	*u = v
	return nil
}
