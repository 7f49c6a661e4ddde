package rest

import (
	"context"
	"sync"
)

// Locks serializes what is done to things of a name. The zero Locks is ready
// for use.
type Locks struct {
	mu   sync.Mutex
	held map[string]*held
}

type held struct {
	slot    chan struct{}
	waiting int
}

// Lock waits for a name to be free and takes it.
func (l *Locks) Lock(ctx context.Context, name string) (unlock func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*held{}
	}
	h := l.held[name]
	if h == nil {
		h = &held{slot: make(chan struct{}, 1)}
		l.held[name] = h
	}
	h.waiting++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.waiting--; h.waiting == 0 {
			delete(l.held, name)
		}
	}
	select {
	case h.slot <- struct{}{}:
		return func() { <-h.slot; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
