package slivers

import (
	"context"
	"errors"
	"time"

	"croft/mapping"
	"croft/request"
	"croft/urn"
)

// Store keeps slices, their documents and slivers. What a method that writes
// has returned nil for survives a crash of the process and of the machine;
// what it returned an error for left nothing. Implementations pass the
// conformance test of slivers/storetest.
type Store interface {
	// Occupancy tells what is taken, by all slivers that the store holds.
	Occupancy() mapping.Occupancy

	// OccupancyOf tells what slivers take, if there are no others. Its Version
	// is that of no reservation.
	OccupancyOf(list []Sliver) mapping.Occupancy

	// Slice returns a slice that has or had slivers here, or ErrNotFound.
	Slice(ctx context.Context, slice urn.URN) (Slice, error)

	// Slices lists all slices, the oldest first.
	Slices(ctx context.Context) ([]Slice, error)

	// SlicesOf lists the slices that have slivers here and either are of one
	// of some authorities or have a node of a member (NodeFacts.Owner), the
	// oldest first.
	SlicesOf(ctx context.Context, member urn.URN, authorities []urn.Authority) ([]Slice, error)

	// Documents returns the documents of a slice, in the order they came.
	Documents(ctx context.Context, slice urn.URN) ([]Document, error)

	// OfSlice returns the slivers of a slice in the order they were reserved,
	// also those being released.
	OfSlice(ctx context.Context, slice urn.URN) ([]Sliver, error)

	// Find returns slivers by their URNs, in that order. Those that the store
	// does not hold are left out.
	Find(ctx context.Context, slivers []urn.URN) ([]Sliver, error)

	// All returns every sliver.
	All(ctx context.Context) ([]Sliver, error)

	// Reserve records a document and the slivers placed for it, and makes the
	// slice known. It returns ErrConflict if more has been taken, since the
	// occupancy that they were mapped on, of a host or a wire that they use, or
	// if a VLAN tag of theirs has been.
	Reserve(ctx context.Context, r Reservation) error

	// Update changes slivers in one step: change gets those of the URNs that
	// the store holds and alters them in place; its error undoes everything
	// and is returned. A sliver whose Goal becomes Forgotten is dropped with
	// its steps, and with the last sliver of a document, the document.
	Update(ctx context.Context, slivers []urn.URN, change func([]*Sliver) error) error

	// SetShutdown marks a slice as shut down, or lifts that.
	SetShutdown(ctx context.Context, slice urn.URN, down bool, at time.Time) error

	// Steps returns the steps of a slice's start-up graph, in the order of its
	// documents.
	Steps(ctx context.Context, slice urn.URN) ([]Step, error)

	// Task returns what a step is to do, or ErrNotFound.
	Task(ctx context.Context, step StepID) (request.Step, error)

	// UpdateSteps changes steps in one step: change gets those that the
	// store holds and alters how they go; its error undoes everything
	// and is returned.
	UpdateSteps(ctx context.Context, steps []StepID, change func([]*Step) error) error

	// SetStepOutput keeps what a step has written, in place of what was kept
	// before. A step that is gone is no error.
	SetStepOutput(ctx context.Context, step StepID, output StepOutput) error

	// StepOutput returns what a step has written, or ErrNotFound.
	StepOutput(ctx context.Context, step StepID) (StepOutput, error)

	// Drain records that a host takes no new slivers; of a host that is
	// drained already it changes the reason.
	Drain(ctx context.Context, d Drain) error

	// Undrain ends that, or returns ErrNotFound.
	Undrain(ctx context.Context, host urn.URN) error

	// Drains lists the hosts that are drained, in the order of their names.
	Drains(ctx context.Context) ([]Drain, error)

	// Events returns what happened to the slivers of a slice, the oldest first.
	Events(ctx context.Context, slice urn.URN) ([]Event, error)

	Close() error
}

// Errors of a Store.
var (
	ErrNotFound = errors.New("not in the store")
	ErrConflict = errors.New("the testbed changed meanwhile")
)

// Reservation is what an Allocate commits.
type Reservation struct {
	Slice    urn.URN
	Document Document // its ID is given by the store
	Slivers  []Sliver // their Document is set by the store
	Mapped   int64    // Version of the occupancy that they were mapped on
	// Extensions are ends added to links that the slice has. One that has ended
	// meanwhile is a conflict.
	Extensions []Extension
	// Steps are the start-up graph; their Document is set by the store. Tasks
	// are what they do, in the same order.
	Steps []Step
	Tasks []request.Step
}

// Extension adds ends to a link.
type Extension struct {
	Link urn.URN
	Ends []End
}

// Drain says that the operator lets no new slivers on a host. What is there
// stays.
type Drain struct {
	Host   urn.URN
	Reason string
	Since  time.Time
}

// Event is a change of state of a sliver.
type Event struct {
	At          time.Time
	Sliver      urn.URN
	ClientID    string
	Allocation  Allocation
	Operational Operational
	Goal        Goal
	Fault       string
}
