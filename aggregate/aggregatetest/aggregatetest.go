// Package aggregatetest makes aggregates of simulated nodes for the tests of
// what stands in front of an aggregate.
package aggregatetest

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"testing"
	"time"

	"croft/aggregate"
	"croft/aggregate/aggregatetest/surroundings"
	"croft/drivers"
	"croft/drivers/simulated"
	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/rspec"
	"croft/slivers"
)

// Config says what an aggregate is like. Only the inventory is needed.
type Config struct {
	Inventory string // YAML, whose sliver types are of the driver "simulated"

	Languages languages.Set       // RSpecs when empty
	Simulated simulated.Config    // how nodes behave
	Entrances aggregate.Entrances // when nil, nobody can log in to any node
	Leases    aggregate.Leases    // usual ones when zero
	Clock     func() time.Time    // the machine's when nil
	Log       *slog.Logger        // nowhere when nil
}

// Aggregate is a service that has been started, and what it works with.
type Aggregate struct {
	*aggregate.Service
	Store  slivers.Store
	Driver *simulated.Driver
}

// New makes and starts an aggregate, which ends with the test.
func New(t testing.TB, c Config) *Aggregate {
	t.Helper()
	if c.Languages == nil {
		c.Languages = languages.Set{rspec.Language{}}
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if c.Leases == (aggregate.Leases{}) {
		c.Leases = aggregate.Leases{Allocated: 10 * time.Minute, AllocatedMax: 2 * time.Hour, Provisioned: 24 * time.Hour, ProvisionedMax: 7 * 24 * time.Hour}
	}
	if c.Simulated.Now == nil {
		c.Simulated.Now = c.Clock
	}
	a := &Aggregate{Store: surroundings.OpenStore(t, c.Clock)}
	var err error
	if a.Driver, err = simulated.New(c.Simulated); err != nil {
		t.Fatal(err)
	}
	var driver drivers.Driver = surroundings.Reachable{Driver: a.Driver}
	if c.Entrances == nil {
		driver, c.Entrances = a.Driver, surroundings.ClosedEntrances{}
	}
	snapshot, err := inventory.Parse([]byte(c.Inventory), "inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	a.Service = aggregate.New(aggregate.Config{
		Inventory: func() *inventory.Snapshot { return snapshot }, Languages: c.Languages, Mapper: new(mapping.Optimizer),
		Store: a.Store, Drivers: map[string]drivers.Driver{"simulated": driver}, Entrances: c.Entrances,
		Leases: c.Leases, Clock: c.Clock, Random: rand.Reader, Log: c.Log,
	})
	t.Cleanup(a.Close)
	if err := a.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return a
}
