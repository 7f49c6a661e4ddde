package aggregate

import (
	"context"
	"fmt"
	"strings"

	"croft/credentials"
	"croft/slivers"
	"croft/urn"
)

// Target is what a call is about: a whole slice, or some of its slivers.
type Target struct {
	Slice   urn.URN
	Slivers []urn.URN // empty for the whole slice
}

// Whole reports whether the target is a whole slice.
func (t Target) Whole() bool { return len(t.Slivers) == 0 }

// Resolve reads the urns argument of a call: one slice URN, or slivers of one
// slice (AM API v3, "urns").
func (s *Service) Resolve(ctx context.Context, urns []urn.URN) (Target, error) {
	if len(urns) == 0 {
		return Target{}, refuse(BadArgs, "no urns: want one slice URN, or sliver URNs of one slice")
	}
	var named, parts []urn.URN
	seen := map[urn.URN]bool{}
	for _, u := range urns {
		if seen[u.Canonical()] {
			continue
		}
		seen[u.Canonical()] = true
		switch u.Type.Canonical() {
		case urn.Slice:
			named = append(named, u)
		case urn.Sliver:
			parts = append(parts, u)
		default:
			return Target{}, refuse(BadArgs, "%s names neither a slice nor a sliver", u)
		}
	}
	switch {
	case len(named) == 1 && len(parts) == 0:
		return Target{Slice: named[0]}, nil
	case len(named) > 1:
		return Target{}, refuse(BadArgs, "%d slice URNs: name one slice", len(named))
	case len(named) == 1:
		return Target{}, refuse(BadArgs, "a slice URN beside sliver URNs: name the slice or its slivers")
	}
	found, err := s.Store.Find(ctx, parts)
	if err != nil {
		return Target{}, err
	}
	t := Target{}
	for _, v := range found {
		if v.Allocation == slivers.Unallocated {
			continue
		}
		if t.Slice.IsZero() {
			t.Slice = v.Slice
		}
		if !v.Slice.Equal(t.Slice) {
			return Target{}, refuse(BadArgs, "slivers of more than one slice: %s and %s", t.Slice, v.Slice)
		}
	}
	if t.Slice.IsZero() {
		return Target{}, &Error{Item: parts[0].String(), Kind: NotFound, Err: fmt.Errorf("no such sliver here: it never was, or has expired or been deleted")}
	}
	t.Slivers = parts
	return t, nil
}

// Outcome is what became of one sliver in a call.
type Outcome struct {
	Sliver slivers.Sliver
	Err    error // why it was not done; nil if it was. With best effort only.
	// Startup are the steps of a node's start-up graph. In answers to Status
	// and Describe only, without what they have written.
	Startup []StepView
	// Notes are what befell a node that goes on all the same, for its users. In
	// answers to Status and Describe only.
	Notes []string
}

// Error is what is wrong with the sliver, or what was with the call on it: ""
// for nothing. A step that failed, or a limit that was reached, does not make
// the sliver fail, but is told.
func (o Outcome) Error() string {
	switch {
	case o.Err != nil:
		return o.Err.Error()
	case o.Sliver.Fault != "":
		return o.Sliver.Fault
	}
	for _, st := range o.Startup {
		if st.State == slivers.StepFailed {
			return fmt.Sprintf("start-up step %s failed: %s", st.Name, st.Reason)
		}
	}
	return strings.Join(o.Notes, "; ")
}

// pick returns the live slivers of a target. Slivers that are named but not
// there are an error, or, with best effort, outcomes.
func (s *Service) pick(ctx context.Context, t Target, bestEffort bool) (all, picked []slivers.Sliver, lost []Outcome, err error) {
	if all, err = s.live(ctx, t.Slice); err != nil {
		return nil, nil, nil, err
	}
	if t.Whole() {
		return all, all, nil, nil
	}
	byURN := make(map[urn.URN]slivers.Sliver, len(all))
	for _, v := range all {
		byURN[v.URN.Canonical()] = v
	}
	for _, u := range t.Slivers {
		if v, ok := byURN[u.Canonical()]; ok {
			picked = append(picked, v)
			continue
		}
		err := refuse(NotFound, "no such sliver in %s: it never was, or has expired or been deleted", t.Slice)
		err.Item = u.String()
		if !bestEffort {
			return nil, nil, nil, err
		}
		lost = append(lost, Outcome{
			Sliver: slivers.Sliver{URN: u, Slice: t.Slice, Allocation: slivers.Unallocated, Operational: slivers.PendingAllocation, Expires: s.Clock()},
			Err:    err,
		})
	}
	return all, picked, lost, nil
}

// Present returns an error unless all of a target is there, for a caller who
// may make a call on it.
func (s *Service) Present(ctx context.Context, p *credentials.Principal, call credentials.Call, t Target) error {
	if _, err := p.May(call, t.Slice, t.Slivers...); err != nil {
		return fail(string(call), t.Slice, err)
	}
	_, picked, _, err := s.pick(ctx, t, false)
	if err == nil && len(picked) == 0 {
		err = refuse(NotFound, "the slice has no slivers here")
	}
	if err != nil {
		return fail(string(call), t.Slice, err)
	}
	return nil
}

func urnsOf(list []slivers.Sliver) []urn.URN {
	urns := make([]urn.URN, len(list))
	for i := range list {
		urns[i] = list[i].URN
	}
	return urns
}
