package rest

import (
	"fmt"
	"sync"
	"time"
)

// Throttled says that there were too many wrong passwords or tokens, of one
// account or from one address.
type Throttled struct{ After time.Duration }

func (e *Throttled) Error() string {
	return fmt.Sprintf("too many wrong logins: try again in %s", e.After.Round(time.Second))
}

// How many wrong attempts are let pass at once, and how quickly more are.
const (
	sourceAttempts  = 20
	accountAttempts = 10
	attemptEvery    = 6 * time.Second
	maxBuckets      = 10000
)

// throttle counts wrong attempts by keys. A key that has used up its attempts
// gets one more every attemptEvery.
type throttle struct {
	clock func() time.Time
	mu    sync.Mutex
	full  map[string]time.Time // when all attempts of a key are there again
}

func newThrottle(clock func() time.Time) *throttle {
	return &throttle{clock: clock, full: map[string]time.Time{}}
}

// wait is how long a key has to wait until its next attempt; 0 if it may now.
func (t *throttle) wait(key string, most int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	full, now := t.full[key], t.clock()
	if !full.After(now) {
		return 0
	}
	return max(0, full.Sub(now)-time.Duration(most-1)*attemptEvery)
}

// wrong notes a wrong attempt.
func (t *throttle) wrong(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	if len(t.full) >= maxBuckets {
		for k, full := range t.full {
			if !full.After(now) {
				delete(t.full, k)
			}
		}
	}
	from := t.full[key]
	if from.Before(now) {
		from = now
	}
	if _, known := t.full[key]; known || len(t.full) < maxBuckets {
		t.full[key] = from.Add(attemptEvery)
	}
}
