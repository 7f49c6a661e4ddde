package aggregate

import (
	"context"
	"errors"
	"fmt"

	"croft/credentials"
	"croft/languages"
	"croft/mapping"
	"croft/slivers"
)

// Kind says what sort of refusal an Error is. The am room has the one table
// that turns kinds into geni_codes.
type Kind int

// The kinds of Error.
const (
	Internal     Kind = iota
	BadArgs           // an argument is missing or malformed, also a document
	BadVersion        // a document or RSpec version that is not offered
	Forbidden         // the caller lacks the right, or the slice is shut down
	NotFound          // slice or sliver unknown here, also deleted or expired
	TooBig            // the request does not fit the testbed
	NoBandwidth       // a link's rate cannot be given
	Refused           // not in the state that the sliver is in
	Unsupported       // this aggregate never does that
	Busy              // try again
	Unavailable       // the thing asked for is taken or out of service
	Exists            // a name is taken in the slice
	NotPermitted      // an expiry that may not be had
	NoVLAN            // no VLAN tag is left for a link
)

// Error is why an operation was not done.
type Error struct {
	Op   string // what was being done: "allocate"
	Item string // to what: a URN or a client_id; may be empty
	Kind Kind
	Err  error
	Hint string // what would work; may be empty
}

func (e *Error) Error() string {
	s := e.Op
	if e.Item != "" {
		s += " " + e.Item
	}
	s += ": " + e.Err.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

func refuse(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// fail makes an *Error of what a room below said.
func fail(op string, item fmt.Stringer, err error) error {
	var own *Error
	if errors.As(err, &own) {
		e := *own
		if e.Op == "" {
			e.Op = op
		}
		if e.Item == "" && item != nil {
			e.Item = item.String()
		}
		return &e
	}
	e := &Error{Op: op, Kind: kindOf(err), Err: err}
	if item != nil {
		e.Item = item.String()
	}
	return e
}

func kindOf(err error) Kind {
	var (
		document *languages.Error
		version  *languages.UnknownVersion
		mapped   *mapping.Refusal
		rights   *credentials.Refusal
	)
	switch {
	case errors.As(err, &document):
		return BadArgs
	case errors.As(err, &version):
		return BadVersion
	case errors.As(err, &rights):
		return Forbidden
	case errors.As(err, &mapped):
		switch mapped.Kind {
		case mapping.Bandwidth:
			return NoBandwidth
		case mapping.Unavailable:
			return Unavailable
		case mapping.Full:
			return TooBig
		case mapping.Contradicts:
			return BadArgs
		case mapping.NoVLAN:
			return NoVLAN
		case mapping.Disallowed:
			return Forbidden
		}
		return mappedImpossible
	case errors.Is(err, slivers.ErrNotFound):
		return NotFound
	case errors.Is(err, slivers.ErrConflict), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Busy
	}
	return Internal
}

// mappedImpossible is the kind of a request for what the testbed does not
// have: the document names something wrong (an image, a component, a type).
const mappedImpossible = BadArgs
