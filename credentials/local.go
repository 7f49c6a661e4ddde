package credentials

import (
	"time"

	"croft/urn"
)

// localValidity is how long the rights of a local principal would last, were
// it kept: it is made anew for every call.
const localValidity = 10 * 365 * 24 * time.Hour

// Local returns the principal of a member whom something other than a
// certificate has proven, such as a password: it has all rights on the slices
// of one authority, and none besides. No policy is asked: the accounts of a
// site are its own rule.
func Local(member urn.URN, authority urn.Authority, now func() time.Time) *Principal {
	target := urn.URN{Authority: authority, Type: urn.AuthorityType, Name: "sa"}
	expires := now().Add(localValidity)
	return &Principal{
		Caller: &Caller{URN: member}, User: member, now: now,
		usable: []indexed{{0, &verified{
			id:    Identity{Kind: "local", Owner: member, Target: target, Expires: expires},
			owner: member, target: target, privileges: []Privilege{{Name: "*"}}, expires: expires, until: expires,
		}}},
	}
}
