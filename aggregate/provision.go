package aggregate

import (
	"context"
	"fmt"
	"time"

	"croft/credentials"
	"croft/drivers"
	"croft/languages"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// ProvisionOptions are what Provision can be told.
type ProvisionOptions struct {
	Users      []request.User // who can log in; their keys as callers wrote them
	End        time.Time      // when the slivers should expire; zero leaves it open
	BestEffort bool
	Start      bool              // nodes start as soon as they are made
	Version    languages.Version // of the manifest

	by urn.URN // who provisions
}

// Described is the answer to Provision and Describe.
type Described struct {
	Slice    urn.URN
	Manifest []byte
	Slivers  []Outcome
}

// Provision starts to make allocated slivers real. It returns at once; the
// slivers are geni_pending_allocation until their machines are there.
func (s *Service) Provision(ctx context.Context, p *credentials.Principal, t Target, o ProvisionOptions) (*Described, error) {
	d, err := s.provision(ctx, p, t, o)
	if err != nil {
		return nil, fail("provision", t.Slice, err)
	}
	return d, nil
}

func (s *Service) provision(ctx context.Context, p *credentials.Principal, t Target, o ProvisionOptions) (*Described, error) {
	grant, unlock, err := s.enter(ctx, p, credentials.Provision, t, false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	o.by = p.User
	return s.realize(ctx, grant, t, o)
}

// realize is Provision for a caller who may and who has the slice's lock.
func (s *Service) realize(ctx context.Context, grant credentials.Grant, t Target, o ProvisionOptions) (*Described, error) {
	if err := s.offers(o.Version); err != nil {
		return nil, err
	}
	users, err := cleanUsers(o.Users)
	if err != nil {
		return nil, err
	}
	now := s.Clock()
	expires, err := s.leaseFor(now, grant.Expires, o.End, s.Leases.Provisioned, s.Leases.ProvisionedMax)
	if err != nil {
		return nil, err
	}
	_, picked, outcomes, err := s.pick(ctx, t, o.BestEffort)
	if err != nil {
		return nil, err
	}
	var todo []slivers.Sliver
	for _, v := range picked {
		switch {
		case v.Allocation == slivers.Allocated:
			todo = append(todo, v)
		case t.Whole():
			// Provision on a slice touches its allocated slivers only.
		default:
			err := refuse(Unsupported, "the sliver is provisioned already")
			err.Item = v.URN.String()
			if !o.BestEffort {
				return nil, err
			}
			outcomes = append(outcomes, Outcome{Sliver: v, Err: err})
		}
	}
	if len(todo) == 0 && len(outcomes) == 0 {
		return nil, &Error{Item: t.Slice.String(), Kind: NotFound, Err: fmt.Errorf("no allocated sliver in this slice"),
			Hint: "Allocate first; an allocation that is not provisioned expires after some minutes"}
	}
	accounts := accountsOf{service: s, known: map[string][]string{}}
	plans := make(map[urn.URN]plan, len(todo))
	for _, v := range todo {
		if v.Node == nil {
			continue
		}
		taken, err := accounts.of(ctx, &v)
		if err != nil {
			return nil, err
		}
		plans[v.URN.Canonical()] = plan{users: assignLogins(addUsers(users, v.Node.Wanted), nil, taken), ports: v.Node.Ports}
	}
	var opened []slivers.Sliver
	undo := func() {
		for i := range opened {
			s.closeWays(&opened[i])
		}
	}
	for _, v := range todo {
		if v.Node == nil || !s.hasEntrance(&v) {
			continue
		}
		opened = append(opened, v)
		login, err := s.open(ctx, v.URN, 0)
		if err != nil {
			undo()
			return nil, err
		}
		ports, err := s.openPorts(ctx, &v)
		if err != nil {
			undo()
			return nil, err
		}
		k := v.URN.Canonical()
		plans[k] = plan{users: plans[k].users, login: login, ports: ports}
	}
	err = s.Store.Update(ctx, urnsOf(todo), func(held []*slivers.Sliver) error {
		if len(held) != len(todo) {
			return refuse(NotFound, "a sliver of %s ended meanwhile", t.Slice)
		}
		for i, v := range held {
			if v.Allocation != slivers.Allocated || v.Goal != slivers.NoGoal {
				return refuse(Busy, "a sliver of %s changed meanwhile: try again", t.Slice)
			}
			v.Allocation, v.Operational, v.Goal = slivers.Provisioned, slivers.PendingAllocation, slivers.Make
			v.Expires, v.AutoStart = expires, o.Start
			if v.Node != nil {
				plan := plans[v.URN.Canonical()]
				v.Node.Users, v.Node.Login, v.Node.Ports = plan.users, plan.login, plan.ports
				v.Node.Owner = o.by
			}
			todo[i] = *v
		}
		return nil
	})
	if err != nil {
		undo()
		return nil, err
	}
	s.wakeExpiry()
	s.working.kick(t.Slice)
	manifest, err := s.manifest(ctx, s.Inventory(), t.Slice, todo, o.Version)
	if err != nil {
		return nil, err
	}
	done := make([]Outcome, 0, len(todo)+len(outcomes))
	for _, v := range todo {
		done = append(done, Outcome{Sliver: v})
	}
	return &Described{Slice: t.Slice, Manifest: manifest, Slivers: append(done, outcomes...)}, nil
}

// plan is what a node gets when it is provisioned.
type plan struct {
	users []request.User
	login slivers.Login
	ports []slivers.Port
}

// accountsOf asks drivers for the accounts of images, each once.
type accountsOf struct {
	service *Service
	known   map[string][]string
}

func (a accountsOf) of(ctx context.Context, v *slivers.Sliver) ([]string, error) {
	image := imageSource(a.service.Inventory(), v.Node.Image)
	k := v.Node.Driver + "\x00" + image
	if names, ok := a.known[k]; ok {
		return names, nil
	}
	d, err := a.service.driver(v)
	if err != nil {
		return nil, err
	}
	names, err := d.Accounts(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("reading the accounts of image %s: %w", v.Node.Image, err)
	}
	a.known[k] = names
	return names, nil
}

func (s *Service) driver(v *slivers.Sliver) (drivers.Driver, error) {
	name := ""
	switch {
	case v.Node != nil:
		name = v.Node.Driver
	case v.Link != nil:
		name = v.Link.Driver
	}
	d, ok := s.Drivers[name]
	if !ok {
		return nil, refuse(Internal, "the driver %q of sliver %s is not running here", name, v.URN)
	}
	return d, nil
}

// hasEntrance reports whether a node gets a login port of its own.
func (s *Service) hasEntrance(v *slivers.Sliver) bool { return !s.Gateway.Only && s.takesLogins(v) }

// takesLogins reports whether users can log in to a node.
func (s *Service) takesLogins(v *slivers.Sliver) bool {
	d, err := s.driver(v)
	return err == nil && drivers.TakesLogins(d)
}

// loginAddress is where nodes take logins, seen from inside of them.
const loginAddress = "127.0.0.1:22"

// open makes the way in to a node.
func (s *Service) open(ctx context.Context, node urn.URN, port int) (slivers.Login, error) {
	login, err := s.Entrances.Open(ctx, node, port, s.dialer(node, loginAddress))
	if err != nil {
		return slivers.Login{}, fmt.Errorf("opening a login port for %s: %w", node, err)
	}
	return login, nil
}
