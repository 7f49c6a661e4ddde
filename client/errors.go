package client

import (
	"fmt"
	"strings"
)

// APIError is an aggregate's refusal of a call.
type APIError struct {
	Method string // "Allocate"
	Code   int    // geni_code
	AMType string // am_type, such as "protogeni"; may be empty
	AMCode int    // am_code; what aggregates say whose codes are not GENI's
	Output string // why
}

// codeNames are the geni_codes (AM API v3, "Return codes").
var codeNames = map[int]string{
	0: "SUCCESS", 1: "BADARGS", 2: "ERROR", 3: "FORBIDDEN", 4: "BADVERSION", 5: "SERVERERROR",
	6: "TOOBIG", 7: "REFUSED", 8: "TIMEDOUT", 9: "DBERROR", 10: "RPCERROR", 11: "UNAVAILABLE",
	12: "SEARCHFAILED", 13: "UNSUPPORTED", 14: "BUSY", 15: "EXPIRED", 16: "INPROGRESS",
	17: "ALREADYEXISTS", 24: "VLAN_UNAVAILABLE", 25: "INSUFFICIENT_BANDWIDTH", -32001: "SERVERBUSY",
}

// Name returns the code's name, such as "SEARCHFAILED".
func (e *APIError) Name() string {
	if name, ok := codeNames[e.Code]; ok {
		return name
	}
	return "UNKNOWN"
}

func (e *APIError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%d)", e.Name(), e.Code)
	if e.AMCode != 0 && e.AMCode != e.Code {
		fmt.Fprintf(&b, " [%s %d]", e.AMType, e.AMCode)
	}
	if e.Output != "" {
		b.WriteString(": " + e.Output)
	}
	return b.String()
}

// Busy reports whether the same call may work a little later.
func (e *APIError) Busy() bool {
	return e.Code == 14 || e.Code == -32001
}

// ReplyError says that a reply is not what the AM API promises.
type ReplyError struct {
	Method string
	Where  string // member of the reply: "value.geni_slivers[0].geni_sliver_urn"
	What   string
}

func (e *ReplyError) Error() string {
	return fmt.Sprintf("reply to %s: %s: %s", e.Method, e.Where, e.What)
}
