package aggregate

import (
	"context"
	"time"

	"croft/credentials"
	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/slivers"
	"croft/urn"
)

// wanted is a document that has been understood for a slice.
type wanted struct {
	snapshot *inventory.Snapshot
	have     []slivers.Sliver // what the slice has already
	document slivers.Document
	compiled *languages.Compiled
	steps    []slivers.Step
	now      time.Time
	expires  time.Time // of what is to be reserved
	by       urn.URN   // who reserves
}

// understand reads a document for a slice. It refuses what no testbed could
// give.
func (s *Service) understand(ctx context.Context, grant credentials.Grant, slice urn.URN, document []byte, o AllocateOptions) (*wanted, error) {
	w := &wanted{snapshot: s.Inventory(), now: s.Clock(), by: o.by}
	var err error
	if w.expires, err = s.leaseFor(w.now, grant.Expires, o.End, s.Leases.Allocated, s.Leases.AllocatedMax); err != nil {
		return nil, err
	}
	if w.have, err = s.live(ctx, slice); err != nil {
		return nil, err
	}
	language, err := s.Languages.For(document)
	if err != nil {
		return nil, err
	}
	w.document = slivers.Document{Slice: slice, MediaType: language.MediaType(), Bytes: document, Inputs: o.Inputs, Received: w.now}
	scope, err := s.scope(ctx, slice, w.have)
	if err != nil {
		return nil, err
	}
	scope.Managers, scope.Inputs = w.snapshot.Managers(), o.Inputs
	if o.Documents != nil {
		scope.Documents = o.Documents
	}
	if w.compiled, err = language.Compile(ctx, document, scope); err != nil {
		return nil, err
	}
	if err := unknownIn(w.have, w.compiled.Request); err != nil {
		return nil, err
	}
	w.steps, err = s.compileSteps(ctx, slice, w.compiled.Request, w.have)
	return w, err
}

// nothing tells whether the document asks for nothing of this aggregate.
func (w *wanted) nothing() bool {
	return len(w.compiled.Request.Nodes)+len(w.compiled.Request.Links) == 0
}

// placeWanted maps what is wanted beside what is taken, and says what slivers
// that gives and which ends the slice's links get.
func (s *Service) placeWanted(w *wanted, occupancy mapping.Occupancy) ([]slivers.Sliver, []slivers.Extension, error) {
	whole, more, err := extend(w.have, w.compiled.Request)
	if err != nil {
		return nil, nil, err
	}
	occupancy.Existing = existingNodes(w.have, more)
	return s.place(w.snapshot, occupancy, whole, w.document.Slice, w.now, w.expires, w.have, more)
}
