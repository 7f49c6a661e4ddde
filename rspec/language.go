// Package rspec is the language of GENI: request RSpecs are read, and
// advertisements and manifests written. It follows the GENI v3 schemas and the
// Federation AM API's text on RSpecs where they agree with what testbeds do,
// and what testbeds do where they don't.
//
// A manifest is the text of its request with annotations put in, so that
// everything that an experimenter wrote and nobody here understands is still
// in it as it was.
package rspec

import (
	"context"

	"croft/languages"
)

// Language reads request RSpecs of GENI 3 and ProtoGENI 2. The zero Language
// is ready for use.
type Language struct {
	Limits Limits
}

var _ languages.Language = Language{}

// Versions lists GENI 3 and ProtoGENI 2.
func (Language) Versions() []languages.Version { return versions() }

// MediaType labels RSpecs in the store.
func (Language) MediaType() string { return MediaType }

// Detect reports whether the document's first element is called rspec,
// whatever its prefix, namespace and version; comments, declarations and
// processing instructions before it do not matter, nor does one escaping too
// many.
func (Language) Detect(document []byte) bool { return detect(document) }

// Compile reads a request RSpec. A document that is no RSpec of a version
// that Croft reads is an *languages.UnknownVersion, one with mistakes an
// *languages.Error that has all of them. Parts of the document that belong to
// other component managers are checked only for being XML.
func (l Language) Compile(ctx context.Context, document []byte, scope languages.Scope) (*languages.Compiled, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, err := open(document, l.Limits, scope.Managers)
	if err != nil {
		return nil, err
	}
	c := compile(d, scope)
	if problems := c.problems(); len(problems) > 0 {
		return nil, &languages.Error{Problems: problems}
	}
	return &languages.Compiled{Version: d.format.Version(), Request: &c.request, Warnings: c.warnings()}, nil
}

// Report is what there is to say about a document.
type Report struct {
	Format   Format
	Problems []languages.Problem // why this aggregate would refuse it
	Warnings []languages.Problem // what it would take differently than written, or not do
	Schema   []languages.Problem // where it breaks the schema of its format, although aggregates accept it
	Nodes    int                 // how many nodes and links are for this aggregate
	Links    int
}

// Check tells everything about a document that its author may want to know:
// what Compile would, and where a stricter aggregate would refuse it. The
// error is that of Compile for documents that cannot be read at all.
func (l Language) Check(document []byte, scope languages.Scope) (*Report, error) {
	d, err := open(document, l.Limits, scope.Managers)
	if err != nil {
		return nil, err
	}
	c := compile(d, scope)
	return &Report{
		Format:   d.format,
		Problems: c.problems(),
		Warnings: c.warnings(),
		Schema:   schemaProblems(d),
		Nodes:    len(c.request.Nodes),
		Links:    len(c.request.Links),
	}, nil
}
