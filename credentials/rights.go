package credentials

import (
	"slices"
	"strings"

	"croft/urn"
)

// A Call is an operation of the AM API that needs a right. Version 2's names
// stand beside version 3's.
type Call string

// The calls. ListResources is the advertisement; what version 2 lists of one
// slice is a Describe.
const (
	ListResources            Call = "ListResources"
	Describe                 Call = "Describe"
	Status                   Call = "Status"
	Allocate                 Call = "Allocate"
	Provision                Call = "Provision"
	PerformOperationalAction Call = "PerformOperationalAction"
	Renew                    Call = "Renew"
	Delete                   Call = "Delete"
	Update                   Call = "Update"
	Cancel                   Call = "Cancel"
	Shutdown                 Call = "Shutdown"
	CreateSliver             Call = "CreateSliver"
	SliverStatus             Call = "SliverStatus"
	RenewSliver              Call = "RenewSliver"
	DeleteSliver             Call = "DeleteSliver"
)

// Calls are all calls there are.
func Calls() []Call {
	return []Call{ListResources, Describe, Status, Allocate, Provision, PerformOperationalAction, Renew, Delete,
		Update, Cancel, Shutdown, CreateSliver, SliverStatus, RenewSliver, DeleteSliver}
}

var (
	reading  = []Call{Describe, Status, SliverStatus}
	making   = []Call{Allocate, Provision, CreateSliver, Update, Cancel}
	acting   = []Call{PerformOperationalAction}
	renewing = []Call{Renew, RenewSliver}
	deleting = []Call{Delete, DeleteSliver}
	stopping = []Call{Shutdown}
)

// privilegeCalls says which calls a privilege grants. It follows the table of
// the reference implementation (GENI-NSF/geni-tools, sfa.trust.rights): the
// rights of the SFA first, then those named like operations. ListResources is
// in none: any valid credential will do.
var privilegeCalls = map[string][]Call{
	"*":         slices.Concat(reading, making, acting, renewing, deleting, stopping),
	"authority": slices.Concat(reading, making, acting, renewing, deleting, stopping),
	"embed":     slices.Concat(reading, making, acting, renewing, deleting, stopping),
	"sa":        slices.Concat(reading, making, acting, renewing, deleting),
	"control":   slices.Concat(reading, making, acting, renewing, deleting),
	"operator":  slices.Concat(reading, stopping),
	"info":      reading,
	// What bind (tickets), refresh, resolve (registries) and ma (members)
	// are rights to is no call of the AM API.
	"bind": nil, "refresh": nil, "resolve": nil, "ma": nil,

	// Emulab's.
	"pi":          slices.Concat(reading, making, acting, renewing, deleting),
	"instantiate": slices.Concat(reading, making, acting),

	"createsliver":      slices.Concat(making, acting),
	"createslice":       making,
	"updateslice":       making,
	"startslice":        acting,
	"stopslice":         acting,
	"resetslice":        acting,
	"renewsliver":       renewing,
	"deletesliver":      deleting,
	"deleteslice":       deleting,
	"sliverstatus":      reading,
	"getsliceresources": reading,
	"shutdown":          stopping,
}

func (p Privilege) grants(c Call) bool {
	return slices.Contains(privilegeCalls[strings.ToLower(p.Name)], c)
}

// mayPassOn reports whether the owner of p may give child to somebody: p is
// delegatable and grants everything that child grants.
func (p Privilege) mayPassOn(child Privilege) bool {
	if !p.Delegate {
		return false
	}
	own, passed := strings.ToLower(p.Name), strings.ToLower(child.Name)
	if own == passed || own == "*" {
		return true
	}
	calls := privilegeCalls[passed]
	return len(calls) > 0 && passed != "*" && !slices.ContainsFunc(calls, func(c Call) bool { return !p.grants(c) })
}

// overSlices are the names of authorities whose rights extend to the slices
// of their name space: slice authorities, and those above them. Others
// (component managers, member authorities) own other things.
var overSlices = []string{"sa", "root", "ca", "ch"}

// covers reports whether rights on one thing are rights on another: a slice or
// a sliver for itself, an authority for the slices in its name space.
func covers(own, target urn.URN) bool {
	if own.Equal(target) {
		return true
	}
	return isAuthority(own) && slices.Contains(overSlices, strings.ToLower(own.Name)) &&
		strings.EqualFold(string(target.Type), string(urn.Slice)) && own.Authority.Covers(target.Authority)
}
