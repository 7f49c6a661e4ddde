package aggregate

import (
	"context"
	"sync"
	"time"

	"croft/slivers"
	"croft/urn"
)

// endings are those who want to know of documents that end by themselves. The
// zero endings is ready for use.
type endings struct {
	mu   sync.Mutex
	tell []func(context.Context, urn.URN, []StepView)
}

// lastWords bounds how long the output of a document that ends is read.
const lastWords = 20 * time.Second

// WhenEnding has a function called whenever a service has ended that ends what
// its document asked for, before the slivers are released: with the slice, and
// the document's steps and what they have written. It must be quick, and call
// nothing that waits for the slice.
func (s *Service) WhenEnding(tell func(ctx context.Context, slice urn.URN, steps []StepView)) {
	s.endings.mu.Lock()
	defer s.endings.mu.Unlock()
	s.endings.tell = append(s.endings.tell, tell)
}

// tellEnding calls those who want to know.
func (s *Service) tellEnding(ctx context.Context, slice urn.URN, list []slivers.Sliver) {
	s.endings.mu.Lock()
	tell := s.endings.tell
	s.endings.mu.Unlock()
	if len(tell) == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	views, err := s.views(limited, slice, list, true)
	if err != nil {
		s.Log.Warn("reading the output of what ends", "slice", slice.String(), "error", err)
	}
	for _, f := range tell {
		f(ctx, slice, views)
	}
}
