package aggregate

import (
	"context"
	"fmt"
	"time"

	"croft/credentials"
	"croft/slivers"
)

// RenewOptions are what Renew can be told.
type RenewOptions struct {
	BestEffort bool
	AsLate     bool // geni_extend_alap: as late as possible, at most the time asked for
}

// Renew makes slivers expire at another time, also an earlier one. The time is
// honoured or the call fails (AM API v3, Renew), unless o.AsLate.
func (s *Service) Renew(ctx context.Context, p *credentials.Principal, t Target, end time.Time, o RenewOptions) ([]Outcome, error) {
	outcomes, err := s.renew(ctx, p, t, end, o)
	if err != nil {
		return nil, fail("renew", t.Slice, err)
	}
	return outcomes, nil
}

func (s *Service) renew(ctx context.Context, p *credentials.Principal, t Target, end time.Time, o RenewOptions) ([]Outcome, error) {
	grant, unlock, err := s.enter(ctx, p, credentials.Renew, t, false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	_, picked, outcomes, err := s.pick(ctx, t, o.BestEffort)
	if err != nil {
		return nil, err
	}
	if len(picked) == 0 && len(outcomes) == 0 {
		return nil, refuse(NotFound, "the slice has no slivers here")
	}
	now := s.Clock()
	end = end.UTC().Truncate(time.Second)
	if !end.After(now) {
		return nil, refuse(BadArgs, "expiration_time %s is not in the future", end.Format(time.RFC3339))
	}
	// One expiry for all of them: the earliest limit counts. With best effort,
	// those that cannot be kept so long stay as they are.
	latest := latestExpiry{at: grant.Expires, why: "the credential expires"}
	var kept []slivers.Sliver
	for _, v := range picked {
		limit := latest.of(now, s.Leases, v.Allocation)
		switch {
		case !end.After(limit.at):
		case o.AsLate:
			end = limit.at
		default:
			err := limit.refuse(end)
			if !o.BestEffort {
				return nil, err
			}
			err.Item = v.URN.String()
			outcomes = append(outcomes, Outcome{Sliver: v, Err: err})
			continue
		}
		kept = append(kept, v)
	}
	picked = kept
	err = s.Store.Update(ctx, urnsOf(picked), func(held []*slivers.Sliver) error {
		if len(held) != len(picked) {
			return refuse(NotFound, "a sliver of %s ended meanwhile", t.Slice)
		}
		for i, v := range held {
			if !v.Live(now) {
				return refuse(NotFound, "sliver %s ended meanwhile", v.URN)
			}
			v.Expires = end
			picked[i] = *v
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.wakeExpiry()
	return append(done(picked), outcomes...), nil
}

// latestExpiry is the latest that slivers may expire, and why.
type latestExpiry struct {
	at  time.Time
	why string
}

// of returns the limit for slivers of a state: the credential's or the site's,
// in whole seconds.
func (l latestExpiry) of(now time.Time, leases Leases, state slivers.Allocation) latestExpiry {
	most := leases.ProvisionedMax
	if state == slivers.Allocated {
		most = leases.AllocatedMax
	}
	if limit := now.Add(most); limit.Before(l.at) {
		l = latestExpiry{at: limit, why: fmt.Sprintf("%s slivers are given for at most %s here", state, most)}
	}
	l.at = l.at.UTC().Truncate(time.Second)
	return l
}

func (l latestExpiry) refuse(asked time.Time) *Error {
	return &Error{Kind: NotPermitted, Err: fmt.Errorf("%s is too late: %s at %s", asked.Format(time.RFC3339), l.why, l.at.Format(time.RFC3339)),
		Hint: "ask for that time, or set geni_extend_alap"}
}
