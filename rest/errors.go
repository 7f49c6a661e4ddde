package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"croft/aggregate"
)

// Error is a refusal with the HTTP status that tells it.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Refuse makes an *Error.
func Refuse(status int, format string, args ...any) *Error {
	return &Error{Status: status, Err: fmt.Errorf(format, args...)}
}

// Status is the HTTP status that tells an error: that of an *Error, or what
// the kind of an *aggregate.Error means.
func Status(err error) int {
	var own *Error
	var slow *Throttled
	var refused *aggregate.Error
	switch {
	case errors.As(err, &own):
		return own.Status
	case errors.As(err, &slow):
		return http.StatusTooManyRequests
	case errors.Is(err, ErrWrong), errors.Is(err, ErrMissing):
		return http.StatusUnauthorized
	case errors.Is(err, ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrNoRecord):
		return http.StatusNotFound
	case !errors.As(err, &refused):
		return http.StatusInternalServerError
	}
	switch refused.Kind {
	case aggregate.BadArgs, aggregate.BadVersion, aggregate.NotPermitted:
		return http.StatusBadRequest
	case aggregate.Forbidden:
		return http.StatusForbidden
	case aggregate.NotFound:
		return http.StatusNotFound
	case aggregate.Refused, aggregate.Exists, aggregate.Unsupported:
		return http.StatusConflict
	case aggregate.TooBig, aggregate.NoBandwidth, aggregate.Busy, aggregate.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Explain sets the headers that go with an error and returns its status and
// text. What went wrong within the server is not told to callers.
func Explain(w http.ResponseWriter, err error) (status int, text string) {
	status, text = Status(err), err.Error()
	var slow *Throttled
	switch {
	case errors.As(err, &slow):
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(slow.After.Seconds()+0.999))))
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="croft", charset="UTF-8"`)
	case status == http.StatusInternalServerError:
		text = "the server could not do it; its log says more"
	}
	return status, text
}
