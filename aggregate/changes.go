package aggregate

import "sync"

// changes lets others wait for the next change of a sliver or a step. The zero
// changes is ready for use.
type changes struct {
	mu   sync.Mutex
	next chan struct{}
}

// Changed is closed when a sliver or a step changes after the call.
func (s *Service) Changed() <-chan struct{} {
	c := &s.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}
