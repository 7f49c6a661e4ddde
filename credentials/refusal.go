package credentials

import "fmt"

// A Refusal says why somebody is not known, or may not do something. Its text
// is for the caller; the AM API answers it with FORBIDDEN.
type Refusal struct {
	Text string
	Err  error // the cause, if there is one
}

func (r *Refusal) Error() string { return r.Text }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(format string, args ...any) *Refusal {
	return &Refusal{Text: fmt.Sprintf(format, args...)}
}

func because(err error, format string, args ...any) *Refusal {
	return &Refusal{Text: fmt.Sprintf(format, args...) + ": " + err.Error(), Err: err}
}

// asRefusal makes any error one.
func asRefusal(err error) *Refusal {
	if r, ok := err.(*Refusal); ok {
		return r
	}
	return &Refusal{Text: err.Error(), Err: err}
}
