// Package languages says what a request language is: a way to write a request
// down. Each language is a folder of its own (rspec, and languages/… for the
// others) and passes the conformance test of languages/languagestest.
package languages

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"croft/request"
	"croft/urn"
)

// Version names a document format as GetVersion lists it (AM API v3,
// geni_request_rspec_versions).
type Version struct {
	Type       string // such as "GENI"; compares case-insensitively
	Version    string // such as "3"
	Schema     string // URL of the schema; may be empty
	Namespace  string // XML namespace; may be empty
	Extensions []string
}

// Is reports whether the version is the one that a caller names by type and
// version.
func (v Version) Is(typ, version string) bool {
	return strings.EqualFold(v.Type, typ) && strings.EqualFold(v.Version, version)
}

// Language reads documents of one kind. Implementations hold no state and may
// be used by many callers at once; they never read the network or a file.
type Language interface {
	// Versions lists the formats that the language reads, the preferred first.
	Versions() []Version

	// MediaType is what the stored originals of the language are labelled
	// with, such as "application/rspec+xml".
	MediaType() string

	// Detect reports whether the document looks like one of this language,
	// right or wrong. It must be quick and must not trust its input.
	Detect(document []byte) bool

	// Compile reads a document. Errors are *Error (what is wrong and where) or
	// *UnknownVersion.
	Compile(ctx context.Context, document []byte, scope Scope) (*Compiled, error)
}

// Scope is what a document is read against.
type Scope struct {
	// Managers are the component managers that are this aggregate: the first
	// is its own name, the others are further spellings of it.
	Managers []urn.URN

	// Existing lists the nodes that the slice has here already, so that links
	// can join them.
	Existing []Existing

	// Links are the names of the links that the slice has already.
	Links []request.ClientID

	// Documents are those that the slice has already, in the order in which
	// they came. A document may refer to what those before it define.
	Documents []Document

	// Inputs are values that the caller gave for parameters of the document
	// (option croft_inputs of Allocate; values are strings, numbers, booleans,
	// lists and maps).
	Inputs map[string]any
}

// Existing is a node that the slice has already.
type Existing struct {
	Node       request.ClientID
	Interfaces []request.ClientID
	Addresses  []netip.Prefix
}

// Document is one that a slice has already, of whatever language.
type Document struct {
	MediaType string
	Bytes     []byte
	Inputs    map[string]any // values that came for its parameters
}

// Compiled is a document understood.
type Compiled struct {
	Version Version
	Request *request.Request
	// Warnings are things that the author should know but that do not stop the
	// request: wishes that are kept in the manifest but have no effect here.
	Warnings []Problem
}

// Problem is one thing to tell the author of a document.
type Problem struct {
	Place request.Place
	What  string // what is wrong: "two nodes are called a"
	Hint  string // what would work; may be empty
}

// String writes the problem for people.
func (p Problem) String() string {
	s := p.What
	if at := p.Place.String(); at != "" {
		s = at + ": " + s
	}
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// Error says why a document was not understood. All problems that were found
// are in it.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "; ")
}

// UnknownVersion says that a document is of a format that nobody here reads.
type UnknownVersion struct {
	Found   string    // what the document claims to be
	Offered []Version // what would be read
}

func (e *UnknownVersion) Error() string {
	names := make([]string, len(e.Offered))
	for i, v := range e.Offered {
		names[i] = v.Type + " " + v.Version
	}
	return fmt.Sprintf("document is %s; this aggregate reads %s", e.Found, strings.Join(names, ", "))
}

// Set is the languages that an aggregate reads, in the order of detection:
// the stricter ones first.
type Set []Language

// For returns the language of a document, or an *Error if it looks like none.
func (s Set) For(document []byte) (Language, error) {
	var offered []string
	for _, l := range s {
		if l.Detect(document) {
			return l, nil
		}
		for _, v := range l.Versions() {
			offered = append(offered, v.Type+" "+v.Version)
		}
	}
	return nil, &Error{Problems: []Problem{{
		What: "the document is of no format that is known here",
		Hint: "this aggregate reads " + strings.Join(offered, ", "),
	}}}
}

// ByMediaType returns the language that a stored original was read by.
func (s Set) ByMediaType(mediaType string) (Language, bool) {
	for _, l := range s {
		if l.MediaType() == mediaType {
			return l, true
		}
	}
	return nil, false
}
