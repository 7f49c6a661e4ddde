package credentials

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"
)

// cache remembers what was verified, by the digest of what it was read from:
// until a time, for one generation of trust roots, and a bounded number.
type cache[T any] struct {
	mu      sync.Mutex
	size    int
	entries map[[sha256.Size]byte]*list.Element
	recent  list.List // of *cached[T], the last used first
}

type cached[T any] struct {
	key        [sha256.Size]byte
	generation uint64
	until      time.Time
	value      T
}

func newCache[T any](size int) *cache[T] {
	return &cache[T]{size: size, entries: map[[sha256.Size]byte]*list.Element{}}
}

func (c *cache[T]) get(key [sha256.Size]byte, generation uint64, now time.Time) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, found := c.entries[key]
	if !found {
		return value, false
	}
	entry := at.Value.(*cached[T])
	if entry.generation != generation || !now.Before(entry.until) {
		c.recent.Remove(at)
		delete(c.entries, key)
		return value, false
	}
	c.recent.MoveToFront(at)
	return entry.value, true
}

func (c *cache[T]) put(key [sha256.Size]byte, generation uint64, until time.Time, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, found := c.entries[key]; found {
		c.recent.Remove(at)
	}
	c.entries[key] = c.recent.PushFront(&cached[T]{key, generation, until, value})
	for c.recent.Len() > c.size {
		last := c.recent.Back()
		c.recent.Remove(last)
		delete(c.entries, last.Value.(*cached[T]).key)
	}
}
