package credentials

import (
	"slices"
	"time"

	"croft/urn"
)

// localValidity is how long the rights of a local principal would last, were
// it kept: it is made anew for every call.
const localValidity = 10 * 365 * 24 * time.Hour

// All is the privilege to do everything.
const All = "*"

// Using are the privileges of who may see, operate and give back what a slice
// has, and neither add to it nor keep it for longer.
func Using() []string { return []string{"info", "startslice", "deletesliver"} }

// A LocalRight is a right that needs no signed credential: privileges on a
// slice, or on all slices of an authority (SliceAuthority).
type LocalRight struct {
	Target     urn.URN
	Privileges []string
}

// SliceAuthority is the URN that stands for the slices of an authority.
func SliceAuthority(a urn.Authority) urn.URN {
	return urn.URN{Authority: a, Type: urn.AuthorityType, Name: "sa"}
}

// Local returns the principal of a member whom something other than a
// certificate has proven, such as a password: it has all rights on the slices
// of one authority, and none besides. No policy is asked: the accounts of a
// site are its own rule.
func Local(member urn.URN, authority urn.Authority, now func() time.Time) *Principal {
	return LocalWith(member, now, []LocalRight{{SliceAuthority(authority), []string{All}}})
}

// LocalWith is Local with other rights.
func LocalWith(member urn.URN, now func() time.Time, rights []LocalRight) *Principal {
	return &Principal{Caller: &Caller{URN: member}, User: member, now: now, usable: locally(member, now(), rights)}
}

// locally are rights as if credentials gave them.
func locally(member urn.URN, now time.Time, rights []LocalRight) []indexed {
	expires := now.Add(localValidity)
	list := make([]indexed, len(rights))
	for i, r := range rights {
		own := &verified{
			id:    Identity{Kind: "local", Owner: member, Target: r.Target, Expires: expires},
			owner: member, target: r.Target, expires: expires, until: expires,
		}
		for _, name := range r.Privileges {
			own.privileges = append(own.privileges, Privilege{Name: name})
		}
		list[i] = indexed{i, own}
	}
	return list
}

// Owning has a verifier give members rights of their own, without any
// credential: own tells them for a member, none for most. No policy is asked
// for them. It is set before the verifier is used.
func (v *Verifier) Owning(own func(member urn.URN) []LocalRight) { v.own = own }

// mayOwn looks for a right of the principal's own on a slice.
func (p *Principal) mayOwn(call Call, target urn.URN) (Grant, bool) {
	if call == ListResources || len(p.own) == 0 {
		return Grant{}, false
	}
	for _, c := range p.own {
		granted := slices.ContainsFunc(c.privileges, func(p Privilege) bool { return p.grants(call) })
		if granted && covers(c.target, target) {
			grant := Grant{Expires: c.expires, Rights: c.privileges, Credential: c.id, Proof: []Identity{c.id}}
			if p.SpeaksBy != nil {
				grant.Proof = append(grant.Proof, *p.SpeaksBy)
			}
			return grant, true
		}
	}
	return Grant{}, false
}

// Authorities are those whose slices are the principal's own (Owning).
func (p *Principal) Authorities() []urn.Authority {
	var list []urn.Authority
	for _, c := range p.own {
		if isAuthority(c.target) {
			list = append(list, c.target.Authority)
		}
	}
	return list
}
