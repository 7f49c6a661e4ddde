package rest

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"croft/aggregate"
	"croft/slivers"
	"croft/urn"
)

// Renewals keep what members have made by the faces, whose APIs have no way to
// ask for more time: for as long as the member has an account, and for Lifetime
// at most. Slices of the AM API are renewed there.
type Renewals struct {
	Service  *aggregate.Service
	Members  []urn.URN // of accounts
	Lifetime time.Duration
	Clock    func() time.Time
	After    func(time.Duration) <-chan time.Time // time.After, but for tests
	Log      *slog.Logger
}

// maxBetween bounds how long slices are not looked at.
const maxBetween = time.Hour

// Run renews until ctx ends.
func (r *Renewals) Run(ctx context.Context) {
	if r.Lifetime <= 0 {
		return
	}
	for ctx.Err() == nil {
		r.Pass(ctx)
		select {
		case <-ctx.Done():
		case <-r.After(min(maxBetween, r.Service.Leases.ProvisionedMax/8)):
		}
	}
}

// Pass renews once what has less than half of the longest lease left.
func (r *Renewals) Pass(ctx context.Context) {
	site := r.Service.Manager().Authority.Top()
	seen := map[urn.URN]bool{}
	for _, member := range r.Members {
		if seen[member.Canonical()] {
			continue
		}
		seen[member.Canonical()] = true
		own := Authorities(site, member)
		held, err := r.Service.SlicesOf(ctx, member, own)
		if err != nil && ctx.Err() == nil {
			r.Log.Error("renewing slices of the REST APIs", "member", member.String(), "error", err)
		}
		for _, h := range held {
			if !slices.ContainsFunc(own, h.URN.Authority.Equal) {
				continue
			}
			if err := r.renew(ctx, member, h); err != nil && ctx.Err() == nil {
				r.Log.Warn("renewing a slice of the REST APIs", "slice", h.URN.String(), "error", err)
			}
		}
	}
}

func (r *Renewals) renew(ctx context.Context, member urn.URN, h aggregate.Held) error {
	now, longest := r.Clock(), r.Service.Leases.ProvisionedMax
	end := now.Add(longest)
	if last := h.Created.Add(r.Lifetime); last.Before(end) {
		end = last
	}
	end = end.UTC().Truncate(time.Second)
	t := aggregate.Target{Slice: h.URN}
	for _, v := range h.Slivers {
		if v.Allocation == slivers.Provisioned && v.Expires.Before(now.Add(longest/2)) && v.Expires.Before(end) {
			t.Slivers = append(t.Slivers, v.URN)
		}
	}
	if len(t.Slivers) == 0 {
		return nil
	}
	principal := PrincipalOf(r.Service.Manager().Authority.Top(), member, r.Clock)
	_, err := r.Service.Renew(ctx, principal, t, end, aggregate.RenewOptions{BestEffort: true, AsLate: true})
	return err
}
