package aggregate

import (
	"context"
	"errors"
	"time"

	"croft/credentials"
	"croft/slivers"
	"croft/urn"
)

// Held is a slice that a member has something in.
type Held struct {
	slivers.Slice
	Slivers []slivers.Sliver // its live ones
}

// SlicesOf lists the slices that a member has something in, the oldest first:
// those of authorities that are the member's own, and of the others those in
// which all nodes are the member's. Nobody's right is asked: it is for those
// who know the member otherwise than by a credential.
func (s *Service) SlicesOf(ctx context.Context, member urn.URN, authorities []urn.Authority) ([]Held, error) {
	known, err := s.Store.SlicesOf(ctx, member, authorities)
	if err != nil {
		return nil, fail("list the slices of a member", nil, err)
	}
	var list []Held
	for _, k := range known {
		live, err := s.live(ctx, k.URN)
		if err != nil {
			return nil, fail("list the slices of a member", nil, err)
		}
		if len(live) > 0 && (among(authorities, k.URN.Authority) || allOf(live, member)) {
			list = append(list, Held{k, live})
		}
	}
	return list, nil
}

// Expires is when the first of the slivers does.
func (h *Held) Expires() time.Time {
	var first time.Time
	for _, v := range h.Slivers {
		if first.IsZero() || v.Expires.Before(first) {
			first = v.Expires
		}
	}
	return first
}

// SlicesOfPrincipal is SlicesOf for a caller whom a certificate proves.
func (s *Service) SlicesOfPrincipal(ctx context.Context, p *credentials.Principal) ([]Held, error) {
	if p.User.IsZero() {
		return nil, fail("list the slices of a member", nil, &Error{Kind: Forbidden, Err: errors.New("it is not proven whom the call is for")})
	}
	return s.SlicesOf(ctx, p.User, p.Authorities())
}

func among(authorities []urn.Authority, a urn.Authority) bool {
	for _, b := range authorities {
		if b.Equal(a) {
			return true
		}
	}
	return false
}

// allOf reports whether there are nodes, and all of them a member's.
func allOf(list []slivers.Sliver, member urn.URN) bool {
	some := false
	for _, v := range list {
		if v.Node == nil {
			continue
		}
		if !v.Node.Owner.Equal(member) {
			return false
		}
		some = true
	}
	return some
}
