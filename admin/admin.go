// Package admin is the operator's door: what the operator of an aggregate can
// see and do without any credential, on the machine that it runs on. A running
// server listens on a UNIX socket in its state directory, of which only root and
// the server's own user can make use; JSON over HTTP crosses it. Every action is
// a line of the audit log.
//
//	GET  /slices                 []Slice
//	GET  /slivers[?slice=URN]    []Sliver
//	GET  /strays                 []Stray
//	GET  /hosts                  []Host
//	GET  /machines               Machines
//	GET  /events?slice=URN       []Event
//	POST /shutdown, /lift        Name{slice}
//	POST /drain, /undrain        Name{host}
//	POST /delete                 Name{slice or sliver} → []Sliver
package admin

import (
	"path/filepath"
	"time"

	"croft/aggregate"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// Socket is where a server with a state directory listens.
func Socket(state string) string { return filepath.Join(state, "admin.sock") }

// Slice is a slice that is known here.
type Slice struct {
	URN      urn.URN   `json:"urn"`
	Shutdown bool      `json:"shutdown"`
	Created  time.Time `json:"created"`
	Slivers  int       `json:"slivers"`          // that it has
	Leaving  int       `json:"leaving"`          // given back, but not off the machines yet
	Expires  time.Time `json:"expires,omitzero"` // the first of its slivers
}

// Sliver is a node or link that is reserved or on the machines.
type Sliver struct {
	URN         urn.URN          `json:"urn"`
	Slice       urn.URN          `json:"slice"`
	Kind        slivers.Kind     `json:"kind"`
	ClientID    request.ClientID `json:"client_id"`
	Host        string           `json:"host,omitempty"`
	Type        string           `json:"sliver_type,omitempty"`
	Allocation  string           `json:"allocation"`
	Operational string           `json:"operational"`
	Doing       string           `json:"doing,omitempty"` // what is being done to it: "make", "release", …
	Fault       string           `json:"fault,omitempty"`
	Created     time.Time        `json:"created"`
	Expires     time.Time        `json:"expires"`
	Login       string           `json:"login,omitempty"` // host:port of its SSH server
	Users       []string         `json:"users,omitempty"` // accounts
	Left        string           `json:"left,omitempty"`  // of one that was deleted by force: what may still be there
}

// Event is something that happened to a sliver.
type Event struct {
	At          time.Time `json:"at"`
	Sliver      urn.URN   `json:"sliver"`
	ClientID    string    `json:"client_id"`
	Allocation  string    `json:"allocation"`
	Operational string    `json:"operational"`
	Doing       string    `json:"doing,omitempty"`
	Fault       string    `json:"fault,omitempty"`
}

// Name says what a command is about.
type Name struct {
	URN    urn.URN `json:"urn"`
	Reason string  `json:"reason,omitempty"` // of a drain
	Force  bool    `json:"force,omitempty"`  // of a deletion: also what cannot be removed
}

// failure is the answer to what was not done.
type failure struct {
	Code    int    `json:"code"` // as a geni_code
	Message string `json:"error"`
}

func sliceOf(s aggregate.SliceSummary) Slice {
	return Slice{URN: s.URN, Shutdown: s.Shutdown, Created: s.Created, Slivers: s.Slivers, Leaving: s.Leaving, Expires: s.Expires}
}

func sliverOf(v slivers.Sliver) Sliver {
	s := Sliver{
		URN: v.URN, Slice: v.Slice, Kind: v.Kind, ClientID: v.ClientID, Allocation: string(v.Allocation),
		Operational: string(v.Operational), Doing: string(v.Goal), Fault: v.Fault, Created: v.Created, Expires: v.Expires,
	}
	if v.Node != nil {
		s.Host, s.Type, s.Login = v.Node.HostName, string(v.Node.SliverType), address(v.Node.Login)
		for _, u := range v.Node.Users {
			s.Users = append(s.Users, u.Login)
		}
	}
	return s
}

func eventOf(e slivers.Event) Event {
	return Event{
		At: e.At, Sliver: e.Sliver, ClientID: e.ClientID, Allocation: string(e.Allocation),
		Operational: string(e.Operational), Doing: string(e.Goal), Fault: e.Fault,
	}
}

// convert makes a list of what crosses the socket; it is never null in JSON.
func convert[A, B any](list []A, one func(A) B) []B {
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = one(v)
	}
	return out
}
