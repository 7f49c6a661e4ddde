package aggregate

import (
	"context"
	"slices"
	"time"

	"croft/credentials"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// Action is an operational action (AM API v3, PerformOperationalAction).
type Action string

// The actions that this aggregate knows. UpdatingUsersCancel has a second
// spelling, which Emulab implements and advertises.
const (
	Start               Action = "geni_start"
	Stop                Action = "geni_stop"
	Restart             Action = "geni_restart"
	UpdateUsers         Action = "geni_update_users"
	UpdatingUsersCancel Action = "geni_updating_users_cancel"
	UpdateUsersCancel   Action = "geni_update_users_cancel"
	// RerunStartup tries again what failed of the start-up of nodes, and what
	// was skipped for it. It is Croft's own.
	RerunStartup Action = "croft_rerun_startup"
)

// ActOptions are what Act can be told.
type ActOptions struct {
	BestEffort bool
	Users      []request.User // of UpdateUsers
}

// settleTime is how long Act waits for slivers that are changing already.
// Scripts act right after Provision, when nodes are being made.
const settleTime = 15 * time.Second

// Act performs an operational action. It returns when the action has begun.
func (s *Service) Act(ctx context.Context, p *credentials.Principal, t Target, action Action, o ActOptions) ([]Outcome, error) {
	outcomes, err := s.act(ctx, p, t, action, o)
	if err != nil {
		return nil, fail("perform "+string(action), t.Slice, err)
	}
	return outcomes, nil
}

func (s *Service) act(ctx context.Context, p *credentials.Principal, t Target, action Action, o ActOptions) ([]Outcome, error) {
	_, unlock, err := s.enter(ctx, p, credentials.PerformOperationalAction, t, false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	switch action {
	case Start, Stop, Restart, UpdateUsers, UpdatingUsersCancel, UpdateUsersCancel, RerunStartup:
	default:
		return nil, refuse(Unsupported, "%q is no action of this aggregate: it has %s, %s, %s, %s, %s, %s", action,
			Start, Stop, Restart, UpdateUsers, UpdatingUsersCancel, RerunStartup)
	}
	users, err := cleanUsers(o.Users)
	if err != nil {
		return nil, err
	}
	if action == UpdateUsers && len(users) == 0 {
		return nil, refuse(BadArgs, "%s needs the option geni_users", action)
	}
	if err := s.settle(ctx, t, action); err != nil {
		return nil, err
	}
	_, picked, outcomes, err := s.pick(ctx, t, o.BestEffort)
	if err != nil {
		return nil, err
	}
	if len(picked) == 0 && len(outcomes) == 0 {
		return nil, refuse(NotFound, "the slice has no slivers here")
	}
	accounts := accountsOf{service: s, known: map[string][]string{}}
	logins := map[urn.URN][]request.User{}
	if action == UpdateUsers {
		for _, v := range picked {
			if v.Node == nil {
				continue
			}
			taken, err := accounts.of(ctx, &v)
			if err != nil {
				return nil, err
			}
			logins[v.URN.Canonical()] = mergeUsers(v.Node.Users, assignLogins(users, v.Node.Users, taken))
		}
	}
	refused := make([]error, len(picked))
	err = s.Store.Update(ctx, urnsOf(picked), func(held []*slivers.Sliver) error {
		if len(held) != len(picked) {
			return refuse(NotFound, "a sliver of %s ended meanwhile", t.Slice)
		}
		for i, v := range held {
			err := begin(v, action, logins[v.URN.Canonical()])
			if err != nil {
				err.Item = v.URN.String()
				if !o.BestEffort {
					return err
				}
				refused[i] = err
			}
			picked[i] = *v
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if action == RerunStartup {
		if err := s.rerun(ctx, t.Slice, picked); err != nil {
			return nil, err
		}
	}
	s.working.kick(t.Slice)
	for i, v := range picked {
		outcomes = append(outcomes, Outcome{Sliver: v, Err: refused[i]})
	}
	return outcomes, nil
}

// mergeUsers replaces the keys of those who are listed and leaves the others
// (AM API v3, geni_update_users).
func mergeUsers(already, listed []request.User) []request.User {
	out := slices.Clone(already)
	for _, u := range listed {
		if k := slices.IndexFunc(out, func(v request.User) bool { return v.URN.Equal(u.URN) }); k >= 0 {
			out[k] = u
		} else {
			out = append(out, u)
		}
	}
	return out
}

// begin brings one sliver into the state in which an action is under way.
// Links have no actions of their own: what is done to a slice's nodes leaves
// them as they are.
func begin(v *slivers.Sliver, action Action, users []request.User) *Error {
	if v.Allocation != slivers.Provisioned || v.Goal == slivers.Release {
		return refuse(Unsupported, "%s needs a provisioned sliver: Provision it first", action)
	}
	if v.Operational == slivers.Failed {
		return refuse(Unsupported, "the sliver has failed: %s", v.Fault)
	}
	if v.Node == nil {
		return nil
	}
	set := func(state slivers.Operational, goal slivers.Goal) *Error {
		v.Operational, v.Goal = state, goal
		return nil
	}
	wrong := func(kind Kind) *Error {
		return refuse(kind, "%s is not possible while the sliver is %s", action, v.Operational)
	}
	switch action {
	case RerunStartup:
		return nil
	case Start:
		switch v.Operational {
		case slivers.NotReady:
			return set(slivers.Configuring, slivers.Start)
		case slivers.Ready, slivers.Configuring:
			return nil
		}
	case Stop:
		switch v.Operational {
		case slivers.Ready:
			return set(slivers.Stopping, slivers.Stop)
		case slivers.NotReady, slivers.Stopping:
			return nil
		}
	case Restart:
		if v.Operational == slivers.Ready {
			return set(slivers.Configuring, slivers.Restart)
		}
	case UpdateUsers:
		if v.Operational != slivers.Ready {
			return wrong(Refused)
		}
		v.Node.Users = users
		return set(slivers.UpdatingUsers, slivers.SetUsers)
	case UpdatingUsersCancel, UpdateUsersCancel:
		// Updates take milliseconds: by the time of this call there is none
		// under way, and what was asked for has been done.
		if v.Operational == slivers.Ready || v.Operational == slivers.UpdatingUsers {
			return nil
		}
		return wrong(Refused)
	}
	return wrong(Unsupported)
}

// settle waits until no sliver of a target is changing by itself, a while at
// most.
func (s *Service) settle(ctx context.Context, t Target, action Action) error {
	if action == UpdatingUsersCancel || action == UpdateUsersCancel {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		idle := s.working.idle(t.Slice)
		_, picked, _, err := s.pick(ctx, t, true)
		if err != nil {
			return err
		}
		k := slices.IndexFunc(picked, func(v slivers.Sliver) bool {
			return v.Allocation == slivers.Provisioned && v.Goal != slivers.NoGoal && v.Goal != slivers.Release
		})
		if k < 0 {
			return nil
		}
		select {
		case <-idle:
			// The worker has ended its round; look again, and if there is
			// still something to do, what is left waits for another sliver.
			if s.working.quiet(t.Slice) {
				return nil
			}
		case <-ctx.Done():
			return refuse(Busy, "sliver %s is %s: try again when it has ended", picked[k].URN, picked[k].Operational)
		}
	}
}
