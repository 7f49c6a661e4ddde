// Package aggregate is the service that every face of Croft talks to: one
// operation for each thing that a user can do, on a verified principal. It
// authorizes, detects the language of a document, compiles, maps, reserves and
// renders; and its keepers make what was reserved real, free what has expired,
// and bring the machines to what the store says.
package aggregate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"croft/credentials"
	"croft/drivers"
	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/slivers"
	"croft/startup"
	"croft/urn"
)

// Leases bounds how long slivers are given.
type Leases struct {
	Allocated      time.Duration // to what is allocated, if the caller asks for nothing
	AllocatedMax   time.Duration // the most that may be asked for it
	Provisioned    time.Duration // to what is provisioned, if the caller asks for nothing
	ProvisionedMax time.Duration // the most that may be asked for it
}

// Entrances opens the ways in to nodes: addresses that SSH clients connect to.
type Entrances interface {
	// Open listens for logins to a node and connects them by dial. Port is the
	// port that the node had before, or 0 for any free one. Opening again what
	// is open is success.
	Open(ctx context.Context, node urn.URN, port int, dial func(context.Context) (net.Conn, error)) (slivers.Login, error)
	// Close ends it, and the connections through it.
	Close(node urn.URN)
}

// Config is what a Service works with. All members but Gateway and Reconcile are needed.
type Config struct {
	Inventory func() *inventory.Snapshot // the testbed as declared now
	Languages languages.Set
	Mapper    mapping.Mapper
	Store     slivers.Store
	Drivers   map[string]drivers.Driver // by the name that inventories use
	Entrances Entrances
	Gateway   Gateway // the SSH gateway; the zero one is none
	Leases    Leases
	Installs  startup.Fetcher // gets the archives of start-up graphs; its zero value will do
	Clock     func() time.Time
	Random    io.Reader
	Log       *slog.Logger
	// Reconcile is how often the machines are compared with the store; zero
	// leaves it at a minute.
	Reconcile time.Duration
}

// Service is an aggregate. Its methods may be called by many at once; calls on
// one slice are done one after the other.
type Service struct {
	Config
	slices *locks
	// placing is held by who maps and reserves: shared, or alone by who was
	// too late too often.
	placing sync.RWMutex
	ads     adCache

	access *access
	drains drains

	changes changes
	endings endings

	// Keepers.
	ctx      context.Context
	stop     context.CancelFunc
	keepers  sync.WaitGroup
	working  *workers
	starting *starter
	mending  *reconciler
	expiries chan struct{} // that something expires at another time than before
}

// New makes a service. Start sets its keepers going.
func New(c Config) *Service {
	s := &Service{Config: c, slices: newLocks(), expiries: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.working = newWorkers(s)
	s.mending = &reconciler{Service: s, repairs: map[urn.URN][]time.Time{}}
	s.access = newAccess(s)
	s.Store = watchedStore{c.Store, s.access, &s.changes}
	s.starting = newStarter(s)
	return s
}

// Start reconciles the machines with the store and sets the keepers going.
// The service may be called before Start has returned.
func (s *Service) Start(ctx context.Context) error {
	if err := s.drains.read(ctx, s.Store); err != nil {
		return err
	}
	if err := s.mending.run(ctx, true); err != nil {
		return err
	}
	s.keepers.Go(s.expire)
	s.keepers.Go(s.mending.keep)
	return nil
}

// Close stops the keepers and waits for them. Nodes go on running.
func (s *Service) Close() {
	s.stop()
	s.working.wait()
	s.starting.wait()
	s.keepers.Wait()
}

// busyAfter is how long a call waits for an earlier one on its slice.
const busyAfter = 20 * time.Second

// lock serializes the calls on one slice.
func (s *Service) lock(ctx context.Context, slice urn.URN) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, busyAfter)
	defer cancel()
	unlock, err = s.slices.lock(ctx, slice.Canonical())
	if err != nil {
		return nil, refuse(Busy, "another call on %s has not ended: try again", slice)
	}
	return unlock, nil
}

// enter authorizes a call on a slice and locks the slice. A slice that is shut
// down is closed to all calls that do not say open.
func (s *Service) enter(ctx context.Context, p *credentials.Principal, call credentials.Call, t Target, open bool) (credentials.Grant, func(), error) {
	slice := t.Slice
	if slice.Type.Canonical() != urn.Slice {
		return credentials.Grant{}, nil, refuse(BadArgs, "%q is not the URN of a slice", slice)
	}
	grant, err := p.May(call, slice, t.Slivers...)
	if err != nil {
		return grant, nil, err
	}
	unlock, err := s.lock(ctx, slice)
	if err != nil {
		return grant, nil, err
	}
	down, err := s.isShutdown(ctx, slice)
	if err == nil && down && !open {
		err = &Error{Kind: Forbidden, Err: errors.New("the slice has been shut down"), Hint: "ask the operator of this aggregate"}
	}
	if err != nil {
		unlock()
		return grant, nil, err
	}
	return grant, unlock, nil
}

// live returns the slivers that a slice has, in the order of their documents.
// Those of a slice that is shut down are kept for the operator, also past their
// end.
func (s *Service) live(ctx context.Context, slice urn.URN) ([]slivers.Sliver, error) {
	all, err := s.Store.OfSlice(ctx, slice)
	if err != nil {
		return nil, err
	}
	kept, err := s.isShutdown(ctx, slice)
	if err != nil {
		return nil, err
	}
	now := s.Clock()
	var live []slivers.Sliver
	for _, v := range all {
		if v.Live(now) || kept && v.Allocation != slivers.Unallocated {
			live = append(live, v)
		}
	}
	return live, nil
}

// isShutdown reports whether a slice has been shut down.
func (s *Service) isShutdown(ctx context.Context, slice urn.URN) (bool, error) {
	known, err := s.Store.Slice(ctx, slice)
	if errors.Is(err, slivers.ErrNotFound) {
		return false, nil
	}
	return known.Shutdown, err
}
