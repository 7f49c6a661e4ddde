package aggregate

import (
	"context"
	"sync"

	"croft/urn"
)

// locks is a lock for each slice, made when it is wanted and dropped when
// nobody wants it.
type locks struct {
	mu sync.Mutex
	of map[urn.URN]*sliceLock
}

type sliceLock struct {
	held    chan struct{} // of one place: full while locked
	wanting int
}

func newLocks() *locks { return &locks{of: map[urn.URN]*sliceLock{}} }

// lock waits for the slice's lock until ctx ends.
func (l *locks) lock(ctx context.Context, slice urn.URN) (unlock func(), err error) {
	l.mu.Lock()
	k := l.of[slice]
	if k == nil {
		k = &sliceLock{held: make(chan struct{}, 1)}
		l.of[slice] = k
	}
	k.wanting++
	l.mu.Unlock()

	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.wanting--; k.wanting == 0 {
			delete(l.of, slice)
		}
	}
	select {
	case k.held <- struct{}{}:
		return func() { <-k.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
