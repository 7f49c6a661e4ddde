package aggregate

import (
	"context"
	"fmt"
	"slices"

	"croft/credentials"
	"croft/languages"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// Outputs tells the outputs of the documents of a slice, by their names: those
// that are known by now. Of outputs with the same name, that of the last
// document counts.
func (s *Service) Outputs(ctx context.Context, p *credentials.Principal, slice urn.URN) (map[string]any, error) {
	outputs, err := s.outputs(ctx, p, slice)
	if err != nil {
		return nil, fail("tell the outputs of", slice, err)
	}
	return outputs, nil
}

func (s *Service) outputs(ctx context.Context, p *credentials.Principal, slice urn.URN) (map[string]any, error) {
	if _, err := p.May(credentials.Describe, slice); err != nil {
		return nil, err
	}
	documents, err := s.Store.Documents(ctx, slice)
	if err != nil {
		return nil, err
	}
	outputs := map[string]any{}
	var g *graph
	for i, d := range documents {
		language, ok := s.Languages.ByMediaType(d.MediaType)
		projector, projects := language.(languages.Projector)
		if !ok || !projects {
			continue
		}
		if g == nil {
			if g, err = s.graph(ctx, slice); err != nil {
				return nil, err
			}
		}
		scope := languages.Scope{Managers: s.Inventory().Managers(), Inputs: d.Inputs}
		for _, v := range g.nodes {
			if v.Document < d.ID {
				scope.Existing = append(scope.Existing, existingNames([]slivers.Sliver{*v})...)
			}
		}
		for _, before := range documents[:i] {
			scope.Documents = append(scope.Documents, languages.Document{MediaType: before.MediaType, Bytes: before.Bytes})
		}
		of, err := projector.Outputs(ctx, d.Bytes, scope, running{g})
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", d.ID, err)
		}
		for name, v := range of {
			outputs[name] = v
		}
	}
	return outputs, nil
}

// running tells languages how what their documents asked for goes.
type running struct{ *graph }

// Attribute is an attribute of a node.
func (r running) Attribute(a request.Attribute) (string, bool) {
	text, err := r.attribute(a)
	return text, err == nil
}

// Output is a value that a step gave.
func (r running) Output(o request.Output) (string, bool) {
	i := slices.IndexFunc(r.steps, func(s slivers.Step) bool { return s.Name == o.Step })
	if i < 0 {
		return "", false
	}
	text, ok := r.steps[i].Outputs[o.Name]
	return text, ok
}
