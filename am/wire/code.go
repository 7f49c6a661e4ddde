// Package wire holds the shapes that all versions of the AM API share on the
// wire: the code struct that every reply carries, dates, URNs, credentials and
// options, and the one table that turns an error into a geni_code.
package wire

import (
	"errors"
	"fmt"

	"croft/aggregate"
	"croft/credentials"
)

// Code is a geni_code (AM API v3, "Return Struct").
type Code int

// The codes that Croft gives.
const (
	Success               Code = 0
	BadArgs               Code = 1
	Error                 Code = 2
	Forbidden             Code = 3
	BadVersion            Code = 4
	ServerError           Code = 5
	TooBig                Code = 6
	Refused               Code = 7
	Unavailable           Code = 11
	SearchFailed          Code = 12
	Unsupported           Code = 13
	Busy                  Code = 14
	AlreadyExists         Code = 17
	VLANUnavailable       Code = 24
	InsufficientBandwidth Code = 25
	ServerBusy            Code = -32001
)

var names = map[Code]string{
	Success: "SUCCESS", BadArgs: "BADARGS", Error: "ERROR", Forbidden: "FORBIDDEN", BadVersion: "BADVERSION",
	ServerError: "SERVERERROR", TooBig: "TOOBIG", Refused: "REFUSED", 8: "TIMEDOUT", 9: "DBERROR", 10: "RPCERROR",
	Unavailable: "UNAVAILABLE", SearchFailed: "SEARCHFAILED", Unsupported: "UNSUPPORTED", Busy: "BUSY", 15: "EXPIRED",
	16: "INPROGRESS", AlreadyExists: "ALREADYEXISTS", VLANUnavailable: "VLAN_UNAVAILABLE", InsufficientBandwidth: "INSUFFICIENT_BANDWIDTH",
	ServerBusy: "SERVERBUSY",
}

// String returns the code's name in the AM API.
func (c Code) String() string {
	if name, ok := names[c]; ok {
		return name
	}
	return fmt.Sprintf("code %d", int(c))
}

// CodeOf is the table: what code an error has.
func CodeOf(err error) Code {
	var (
		arg    *ArgError
		rights *credentials.Refusal
		failed *aggregate.Error
	)
	switch {
	case err == nil:
		return Success
	case errors.As(err, &arg):
		return BadArgs
	case errors.As(err, &failed):
		return codeOfKind(failed.Kind)
	case errors.As(err, &rights):
		return Forbidden
	case errors.Is(err, ErrTooBig):
		return TooBig
	case errors.Is(err, ErrServerBusy):
		return ServerBusy
	}
	return ServerError
}

func codeOfKind(k aggregate.Kind) Code {
	switch k {
	case aggregate.BadArgs:
		return BadArgs
	case aggregate.BadVersion:
		return BadVersion
	case aggregate.Forbidden:
		return Forbidden
	case aggregate.NotFound:
		return SearchFailed
	case aggregate.TooBig:
		return TooBig
	case aggregate.NoBandwidth:
		return InsufficientBandwidth
	case aggregate.NoVLAN:
		return VLANUnavailable
	case aggregate.Refused:
		return Refused
	case aggregate.Unsupported:
		return Unsupported
	case aggregate.Busy:
		return Busy
	case aggregate.Unavailable:
		return Unavailable
	case aggregate.Exists:
		return AlreadyExists
	case aggregate.NotPermitted:
		return BadArgs
	}
	return ServerError
}

// ErrTooBig is wrapped by what says that a request is over a limit of size.
var ErrTooBig = errors.New("request too big")

// ErrServerBusy says that the server has too much to do.
var ErrServerBusy = errors.New("the server is busy: try again in a moment")

// amType is what Croft calls itself in code structs.
const amType = "croft"

// Reply makes the struct that every call returns. Output is for people; it is
// required with an error and may carry warnings beside a value.
func Reply(value any, output string, err error) map[string]any {
	code := CodeOf(err)
	if err != nil {
		value, output = "", err.Error()
	}
	return map[string]any{
		"code":   map[string]any{"geni_code": int(code), "am_type": amType, "am_code": int(code)},
		"value":  value,
		"output": output,
	}
}
