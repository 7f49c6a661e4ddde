package rest

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	"croft/aggregate"
	"croft/credentials"
	"croft/urn"
)

// faces are the names of all faces in authorities.
var faces = []string{"im", "camp", "zoe"}

// Authorities are those that the slices of a member are in that were made by
// the faces of a site.
func Authorities(site urn.Authority, member urn.URN) []urn.Authority {
	list := make([]urn.Authority, len(faces))
	for i, face := range faces {
		list[i] = authority(site, face, member)
	}
	return list
}

// Rights are what the AM API lets a member do without a credential, for it is
// the member who has made them by a face: everything with their own slices.
func Rights(site urn.Authority, member urn.URN) []credentials.LocalRight {
	var list []credentials.LocalRight
	for _, a := range Authorities(site, member) {
		list = append(list, credentials.LocalRight{Target: credentials.SliceAuthority(a), Privileges: []string{credentials.All}})
	}
	return list
}

// PrincipalOf acts for a member on the slices that the member has made by the
// faces of a site, and on lent ones, which Slices has told. Those come from
// the AM API, where what they get and how long they last is a matter of their
// own credentials: here they are seen, operated and given back.
func PrincipalOf(site urn.Authority, member urn.URN, clock func() time.Time, lent ...urn.URN) *credentials.Principal {
	rights := Rights(site, member)
	for _, slice := range lent {
		if !slices.ContainsFunc(Authorities(site, member), slice.Authority.Equal) {
			rights = append(rights, credentials.LocalRight{Target: slice, Privileges: credentials.Using()})
		}
	}
	return credentials.LocalWith(member, clock, rights)
}

// Slices lists the slices that the identity's member sees through every face:
// those made by any of them, and those of the AM API all of whose nodes the
// member has reserved there. Each has something live.
func (i *Identity) Slices(ctx context.Context, service *aggregate.Service) ([]aggregate.Held, error) {
	return service.SlicesOf(ctx, i.Member, Authorities(service.Manager().Authority.Top(), i.Member))
}

// DerivedID names a slice in faces that did not make it, in letters and digits.
// It is always the same one.
func DerivedID(slice urn.URN) string {
	sum := sha256.Sum256([]byte(slice.Canonical().String()))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
}
