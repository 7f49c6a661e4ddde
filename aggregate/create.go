package aggregate

import (
	"context"
	"errors"
	"time"

	"croft/credentials"
	"croft/languages"
	"croft/request"
	"croft/urn"
)

// CreateOptions are what Create can be told.
type CreateOptions struct {
	Users  []request.User
	End    time.Time // when the slivers should expire; zero leaves it open
	Inputs map[string]any
}

// Created is the answer to Create.
type Created struct {
	Described
	Warnings []languages.Problem
}

// Create is Allocate, Provision and the start of all nodes in one: CreateSliver
// of AM API v2. It needs a slice that has nothing here, and leaves nothing if
// it fails.
func (s *Service) Create(ctx context.Context, p *credentials.Principal, slice urn.URN, document []byte, o CreateOptions) (*Created, error) {
	c, err := s.create(ctx, p, slice, document, o)
	if err != nil {
		return nil, fail("create", slice, err)
	}
	return c, nil
}

func (s *Service) create(ctx context.Context, p *credentials.Principal, slice urn.URN, document []byte, o CreateOptions) (*Created, error) {
	grant, unlock, err := s.enter(ctx, p, credentials.CreateSliver, Target{Slice: slice}, false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	have, err := s.live(ctx, slice)
	if err != nil {
		return nil, err
	}
	if len(have) > 0 {
		return nil, &Error{Kind: Exists, Err: errors.New("the slice has slivers here already"), Hint: "DeleteSliver first"}
	}
	if _, err := cleanUsers(o.Users); err != nil {
		return nil, err
	}
	reserved, err := s.reserve(ctx, grant, slice, document, AllocateOptions{Inputs: o.Inputs, by: p.User})
	if err != nil {
		return nil, err
	}
	described, err := s.realize(ctx, grant, Target{Slice: slice}, ProvisionOptions{Users: o.Users, End: o.End, Start: true, Version: reserved.Version, by: p.User})
	if err != nil {
		return nil, errors.Join(err, s.release(context.WithoutCancel(ctx), slice, reserved.Slivers))
	}
	return &Created{Described: *described, Warnings: reserved.Warnings}, nil
}
