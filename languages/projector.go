package languages

import (
	"context"

	"croft/request"
)

// Projector is a Language whose documents have outputs: values that they give
// back once what they ask for is there.
type Projector interface {
	Language

	// Outputs tells the outputs of a document that was compiled within the
	// scope; what is not known yet is left out. Values are strings, numbers,
	// booleans, nil, lists and maps.
	Outputs(ctx context.Context, document []byte, scope Scope, run Run) (map[string]any, error)
}

// Run tells how what a document asked for goes.
type Run interface {
	// Attribute is an attribute of a node; false if it is not known, or not
	// known yet.
	Attribute(request.Attribute) (string, bool)
	// Output is a value that a step gave.
	Output(request.Output) (string, bool)
}
