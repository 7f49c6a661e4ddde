package aggregate

import (
	"context"

	"croft/credentials"
	"croft/drivers"
	"croft/languages"
	"croft/slivers"
	"croft/urn"
)

// Status tells the states of slivers.
func (s *Service) Status(ctx context.Context, p *credentials.Principal, t Target, bestEffort bool) ([]Outcome, error) {
	outcomes, err := s.status(ctx, p, t, bestEffort)
	if err != nil {
		return nil, fail("status", t.Slice, err)
	}
	return outcomes, nil
}

func (s *Service) status(ctx context.Context, p *credentials.Principal, t Target, bestEffort bool) ([]Outcome, error) {
	if _, err := p.May(credentials.Status, t.Slice, t.Slivers...); err != nil {
		return nil, err
	}
	_, picked, outcomes, err := s.pick(ctx, t, bestEffort)
	if err != nil {
		return nil, err
	}
	if len(picked) == 0 && len(outcomes) == 0 {
		return nil, refuse(NotFound, "the slice has no slivers here")
	}
	told, err := s.told(ctx, t.Slice, picked)
	if err != nil {
		return nil, err
	}
	return append(told, outcomes...), nil
}

// told are outcomes with how far the slivers' start-up is.
func (s *Service) told(ctx context.Context, slice urn.URN, list []slivers.Sliver) ([]Outcome, error) {
	views, err := s.views(ctx, slice, list, false)
	if err != nil {
		return nil, err
	}
	of := map[urn.URN][]StepView{}
	for _, v := range views {
		of[v.Sliver.Canonical()] = append(of[v.Sliver.Canonical()], v)
	}
	outcomes := done(list)
	for i := range outcomes {
		outcomes[i].Startup = of[outcomes[i].Sliver.URN.Canonical()]
		outcomes[i].Notes = s.notes(ctx, &outcomes[i].Sliver)
	}
	return outcomes, nil
}

// notes are what a node's driver has to say about it. A driver that does not
// answer says nothing.
func (s *Service) notes(ctx context.Context, v *slivers.Sliver) []string {
	if v.Node == nil || v.Allocation != slivers.Provisioned {
		return nil
	}
	d, err := s.driver(v)
	if err != nil {
		return nil
	}
	noter, ok := d.(drivers.Noter)
	if !ok {
		return nil
	}
	list, err := noter.Notes(ctx, v.URN)
	if err != nil {
		return nil // it is being made, or removed
	}
	return list
}

// Describe returns the manifest of slivers, in the version asked for, and
// their states. A slice that has nothing here has an empty manifest.
func (s *Service) Describe(ctx context.Context, p *credentials.Principal, t Target, version languages.Version) (*Described, error) {
	d, err := s.describe(ctx, p, t, version)
	if err != nil {
		return nil, fail("describe", t.Slice, err)
	}
	return d, nil
}

func (s *Service) describe(ctx context.Context, p *credentials.Principal, t Target, version languages.Version) (*Described, error) {
	if _, err := p.May(credentials.Describe, t.Slice, t.Slivers...); err != nil {
		return nil, err
	}
	if err := s.offers(version); err != nil {
		return nil, err
	}
	_, picked, _, err := s.pick(ctx, t, false)
	if err != nil {
		return nil, err
	}
	manifest, err := s.manifest(ctx, s.Inventory(), t.Slice, picked, version)
	if err != nil {
		return nil, err
	}
	told, err := s.told(ctx, t.Slice, picked)
	if err != nil {
		return nil, err
	}
	return &Described{Slice: t.Slice, Manifest: manifest, Slivers: told}, nil
}

func done(list []slivers.Sliver) []Outcome {
	outcomes := make([]Outcome, len(list))
	for i, v := range list {
		outcomes[i] = Outcome{Sliver: v}
	}
	return outcomes
}
