package openssl

// #include "glue.h"
import "C"

// Error is what OpenSSL says went wrong.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func newError(e *C.glue_error) *Error { return &Error{C.GoString(&e.text[0])} }
