package aggregate

import (
	"context"
	"slices"

	"croft/credentials"
	"croft/languages"
	"croft/mapping"
	"croft/slivers"
	"croft/urn"
)

// Planned is what a document would get now.
type Planned struct {
	Slivers  []slivers.Sliver // as they would be; nothing is reserved, and no name stays
	Warnings []languages.Problem
}

// Plan says what Allocate would give for a document, and reserves nothing.
func (s *Service) Plan(ctx context.Context, p *credentials.Principal, slice urn.URN, document []byte, o AllocateOptions) (*Planned, error) {
	return s.PlanWithout(ctx, p, slice, document, o, nil)
}

// PlanWithout is Plan as if some slivers were not there: those of which
// without is true.
func (s *Service) PlanWithout(ctx context.Context, p *credentials.Principal, slice urn.URN, document []byte, o AllocateOptions, without func(*slivers.Sliver) bool) (*Planned, error) {
	planned, err := s.plan(ctx, p, slice, document, o, without)
	if err != nil {
		return nil, fail("plan", slice, err)
	}
	return planned, nil
}

func (s *Service) plan(ctx context.Context, p *credentials.Principal, slice urn.URN, document []byte, o AllocateOptions, without func(*slivers.Sliver) bool) (*Planned, error) {
	grant, err := p.May(credentials.Allocate, slice)
	if err != nil {
		return nil, err
	}
	now := s.Clock()
	expires, err := s.leaseFor(now, grant.Expires, o.End, s.Leases.Allocated, s.Leases.AllocatedMax)
	if err != nil {
		return nil, err
	}
	have, err := s.live(ctx, slice)
	if err != nil {
		return nil, err
	}
	language, err := s.Languages.For(document)
	if err != nil {
		return nil, err
	}
	snapshot := s.Inventory()
	scope, err := s.scope(ctx, slice, have)
	if err != nil {
		return nil, err
	}
	scope.Managers, scope.Inputs = snapshot.Managers(), o.Inputs
	if o.Documents != nil {
		scope.Documents = o.Documents
	}
	compiled, err := language.Compile(ctx, document, scope)
	if err != nil {
		return nil, err
	}
	if err := unknownIn(have, compiled.Request); err != nil {
		return nil, err
	}
	steps, err := s.compileSteps(ctx, slice, compiled.Request, have)
	if err != nil {
		return nil, err
	}
	if len(compiled.Request.Nodes)+len(compiled.Request.Links) == 0 {
		return &Planned{Warnings: compiled.Warnings}, nil
	}
	whole, more, err := extend(have, compiled.Request)
	if err != nil {
		return nil, err
	}
	occupancy, err := s.occupancyWithout(ctx, without)
	if err != nil {
		return nil, err
	}
	occupancy.Existing = existingNodes(have, more)
	placed, _, err := s.place(snapshot, occupancy, whole, slice, now, expires, have, more)
	if err != nil {
		return nil, err
	}
	_, tasks := placedSteps(steps, compiled.Request.Steps, placed, have)
	if _, err := s.imageCommands(ctx, snapshot, tasks, placed); err != nil {
		return nil, err
	}
	return &Planned{Slivers: placed, Warnings: compiled.Warnings}, nil
}

func (s *Service) occupancyWithout(ctx context.Context, without func(*slivers.Sliver) bool) (mapping.Occupancy, error) {
	if without == nil {
		return s.Store.Occupancy(), nil
	}
	all, err := s.Store.All(ctx)
	if err != nil {
		return mapping.Occupancy{}, err
	}
	return s.Store.OccupancyOf(slices.DeleteFunc(all, func(v slivers.Sliver) bool { return without(&v) })), nil
}
