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
	w, err := s.understand(ctx, grant, slice, document, o)
	if err != nil {
		return nil, err
	}
	if w.nothing() {
		return &Planned{Warnings: w.compiled.Warnings}, nil
	}
	occupancy, err := s.occupancyWithout(ctx, without)
	if err != nil {
		return nil, err
	}
	placed, _, err := s.placeWanted(w, occupancy)
	if err != nil {
		return nil, err
	}
	_, tasks := placedSteps(w.steps, w.compiled.Request.Steps, placed, w.have)
	if _, err := s.imageCommands(ctx, w.snapshot, tasks, placed); err != nil {
		return nil, err
	}
	return &Planned{Slivers: placed, Warnings: slices.Concat(w.compiled.Warnings, untagged(w.compiled.Request, placed))}, nil
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
