package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"croft/slivers"
	"croft/urn"
)

// Reserve records a document and its slivers, unless more has been taken of
// what they use since they were mapped.
func (s *Store) Reserve(ctx context.Context, r slivers.Reservation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range r.Slivers {
		if what := s.taken.conflict(&r.Slivers[i], r.Mapped); what != "" {
			return fmt.Errorf("reserving %s: %w", what, slivers.ErrConflict)
		}
	}
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		for _, x := range r.Extensions {
			if err := s.extend(ctx, tx, x); err != nil {
				return err
			}
		}
		if err := knowSlice(ctx, tx, r.Slice, r.Document.Received); err != nil {
			return err
		}
		var id slivers.DocumentID
		row := tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) + 1 FROM documents WHERE slice = ?", key(r.Slice))
		if err := row.Scan(&id); err != nil {
			return err
		}
		inputs, err := writeInputs(r.Document.Inputs)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO documents(slice, id, media_type, bytes, inputs, received) VALUES(?, ?, ?, ?, ?, ?)",
			key(r.Slice), id, r.Document.MediaType, append([]byte{}, r.Document.Bytes...), inputs, r.Document.Received.UnixNano())
		if err != nil {
			return err
		}
		for i := range r.Slivers {
			v := &r.Slivers[i]
			v.Document = id
			record, err := json.Marshal(v)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "INSERT INTO slivers(key, slice, document, record) VALUES(?, ?, ?, ?)",
				key(v.URN), key(r.Slice), id, string(record))
			if err != nil {
				return err
			}
			if err := recordEvent(ctx, tx, v, r.Document.Received); err != nil {
				return err
			}
		}
		return addSteps(ctx, tx, id, r.Steps, r.Tasks)
	})
	if err != nil {
		return fmt.Errorf("reserving %d slivers for %s: %w", len(r.Slivers), r.Slice, err)
	}
	for i := range r.Slivers {
		s.taken.add(&r.Slivers[i])
	}
	return nil
}

// extend adds ends to a link. They take nothing of the occupancy.
func (s *Store) extend(ctx context.Context, tx *sql.Tx, x slivers.Extension) error {
	found, err := find(ctx, tx, []urn.URN{x.Link})
	if err != nil {
		return err
	}
	if len(found) == 0 || found[0].Link == nil || found[0].Goal == slivers.Release {
		return fmt.Errorf("adding ends to %s: %w", x.Link, slivers.ErrConflict)
	}
	before := found[0]
	after, facts := before, *before.Link
	facts.Grown = true
	facts.Ends = append(facts.Ends[:len(facts.Ends):len(facts.Ends)], x.Ends...)
	after.Link = &facts
	return s.rewrite(ctx, tx, &before, &after)
}

// rewrite brings the row of a sliver from before to after.
func (s *Store) rewrite(ctx context.Context, tx *sql.Tx, before, after *slivers.Sliver) error {
	if !after.URN.Equal(before.URN) || !after.Slice.Equal(before.Slice) || after.Document != before.Document {
		return fmt.Errorf("changing sliver %s: its URN, slice and document are fixed", before.URN)
	}
	if after.Goal == slivers.Forgotten {
		return s.forget(ctx, tx, after)
	}
	was, err := json.Marshal(before)
	if err != nil {
		return err
	}
	is, err := json.Marshal(after)
	if err != nil {
		return err
	}
	if string(was) == string(is) {
		return nil
	}
	if _, err := tx.ExecContext(ctx, "UPDATE slivers SET record = ? WHERE key = ?", string(is), key(after.URN)); err != nil {
		return err
	}
	if before.Allocation != after.Allocation || before.Operational != after.Operational ||
		before.Goal != after.Goal || before.Fault != after.Fault {
		return recordEvent(ctx, tx, after, s.clock())
	}
	return nil
}

// forget drops a sliver and its steps, with the last one of a document the document, and
// with the last one of a slice the slice, unless it is shut down.
func (s *Store) forget(ctx context.Context, tx *sql.Tx, v *slivers.Sliver) error {
	for _, step := range []struct {
		statement string
		args      []any
	}{
		{"DELETE FROM steps WHERE sliver = ?", []any{key(v.URN)}},
		{"DELETE FROM slivers WHERE key = ?", []any{key(v.URN)}},
		{`DELETE FROM documents WHERE slice = ?1 AND id = ?2
			AND NOT EXISTS (SELECT 1 FROM slivers WHERE slice = ?1 AND document = ?2)`, []any{key(v.Slice), v.Document}},
		{`DELETE FROM slices WHERE key = ?1 AND NOT shutdown
			AND NOT EXISTS (SELECT 1 FROM slivers WHERE slice = ?1)`, []any{key(v.Slice)}},
	} {
		if _, err := tx.ExecContext(ctx, step.statement, step.args...); err != nil {
			return fmt.Errorf("dropping sliver %s: %w", v.URN, err)
		}
	}
	return recordEvent(ctx, tx, v, s.clock())
}

func recordEvent(ctx context.Context, tx *sql.Tx, v *slivers.Sliver, at time.Time) error {
	record, err := json.Marshal(slivers.Event{
		At: at.UTC(), Sliver: v.URN, ClientID: string(v.ClientID),
		Allocation: v.Allocation, Operational: v.Operational, Goal: v.Goal, Fault: v.Fault,
	})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO events(at, slice, record) VALUES(?, ?, ?)",
		at.UnixNano(), key(v.Slice), string(record))
	return err
}

// Events returns what happened to the slivers of a slice.
func (s *Store) Events(ctx context.Context, slice urn.URN) ([]slivers.Event, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT record FROM events WHERE slice = ? ORDER BY id", key(slice))
	if err != nil {
		return nil, fmt.Errorf("reading the events of %s: %w", slice, err)
	}
	defer rows.Close()
	var list []slivers.Event
	for rows.Next() {
		var record []byte
		if err := rows.Scan(&record); err != nil {
			return nil, fmt.Errorf("reading the events of %s: %w", slice, err)
		}
		var e slivers.Event
		if err := json.Unmarshal(record, &e); err != nil {
			return nil, fmt.Errorf("reading the events of %s: %w", slice, err)
		}
		list = append(list, e)
	}
	return list, rows.Err()
}
