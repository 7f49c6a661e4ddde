package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"croft/slivers"
	"croft/urn"
)

// update is a call of Update that waits for its turn.
type update struct {
	ctx    context.Context
	urns   []urn.URN
	change func([]*slivers.Sliver) error

	before, after []slivers.Sliver
	done          bool // with Store.mu
	err           error
}

// updates are the calls that wait. While one transaction is on its way to the
// disk others gather, and go there together in the next one.
type updates struct {
	mu      sync.Mutex
	waiting []*update
}

func (u *updates) add(call *update) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiting = append(u.waiting, call)
}

func (u *updates) take() []*update {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.waiting
	u.waiting = nil
	return all
}

// Update changes slivers in one step. Calls that come at the same time share a
// transaction, each as if it had its own.
func (s *Store) Update(ctx context.Context, urns []urn.URN, change func([]*slivers.Sliver) error) error {
	call := &update{ctx: ctx, urns: urns, change: change}
	s.updates.add(call)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !call.done {
		s.updateAll(s.updates.take())
	}
	return call.err
}

// updateAll does what calls want, in their order. mu is held.
func (s *Store) updateAll(calls []*update) {
	// The end of one call's context must not undo what others have done.
	ctx := context.Background()
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		for _, c := range calls {
			if c.err = c.ctx.Err(); c.err != nil {
				continue
			}
			if _, err := tx.ExecContext(ctx, "SAVEPOINT one"); err != nil {
				return err
			}
			if c.err = s.updateOne(ctx, tx, c); c.err != nil {
				if _, err := tx.ExecContext(ctx, "ROLLBACK TO one"); err != nil {
					return errors.Join(c.err, err)
				}
			}
			if _, err := tx.ExecContext(ctx, "RELEASE one"); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range calls {
		c.done = true
		if c.err == nil && err != nil {
			c.err = fmt.Errorf("changing slivers: %w", err)
		}
		if c.err != nil {
			continue
		}
		for i := range c.after {
			if c.after[i].Goal == slivers.Forgotten {
				s.taken.remove(&c.before[i])
			}
		}
	}
}

func (s *Store) updateOne(ctx context.Context, tx *sql.Tx, c *update) error {
	var err error
	if c.before, err = find(ctx, tx, c.urns); err != nil {
		return err
	}
	if c.after, err = find(ctx, tx, c.urns); err != nil {
		return err
	}
	pointers := make([]*slivers.Sliver, len(c.after))
	for i := range c.after {
		pointers[i] = &c.after[i]
	}
	if err := c.change(pointers); err != nil {
		return err
	}
	for i := range c.after {
		if err := s.rewrite(ctx, tx, &c.before[i], &c.after[i]); err != nil {
			return err
		}
	}
	return nil
}
