package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"croft/request"
	"croft/slivers"
	"croft/urn"
)

func addSteps(ctx context.Context, tx *sql.Tx, document slivers.DocumentID, steps []slivers.Step, tasks []request.Step) error {
	if len(steps) != len(tasks) {
		return fmt.Errorf("%d steps with %d tasks", len(steps), len(tasks))
	}
	for i := range steps {
		p := &steps[i]
		p.Document = document
		task, err := json.Marshal(tasks[i])
		if err != nil {
			return fmt.Errorf("writing step %s: %w", p.Name, err)
		}
		record, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("writing step %s: %w", p.Name, err)
		}
		made, err := tx.ExecContext(ctx, "INSERT INTO steps(slice, document, sliver, task, record) VALUES(?, ?, ?, ?, ?)",
			key(p.Slice), document, key(p.Sliver), string(task), string(record))
		if err != nil {
			return fmt.Errorf("writing step %s: %w", p.Name, err)
		}
		id, err := made.LastInsertId()
		if err != nil {
			return fmt.Errorf("writing step %s: %w", p.Name, err)
		}
		p.ID = slivers.StepID(id)
	}
	return nil
}

// Steps returns the steps of a slice.
func (s *Store) Steps(ctx context.Context, slice urn.URN) ([]slivers.Step, error) {
	return querySteps(ctx, s.read, "WHERE slice = ? ORDER BY document, id", key(slice))
}

func querySteps(ctx context.Context, q querier, where string, args ...any) ([]slivers.Step, error) {
	rows, err := q.QueryContext(ctx, "SELECT id, record FROM steps "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading steps: %w", err)
	}
	defer rows.Close()
	var list []slivers.Step
	for rows.Next() {
		var id slivers.StepID
		var record []byte
		if err := rows.Scan(&id, &record); err != nil {
			return nil, fmt.Errorf("reading steps: %w", err)
		}
		var v slivers.Step
		if err := json.Unmarshal(record, &v); err != nil {
			return nil, fmt.Errorf("reading steps: %w", err)
		}
		v.ID = id
		list = append(list, v)
	}
	return list, rows.Err()
}

// Task returns what a step is to do.
func (s *Store) Task(ctx context.Context, step slivers.StepID) (request.Step, error) {
	var text []byte
	var task request.Step
	err := s.read.QueryRowContext(ctx, "SELECT task FROM steps WHERE id = ?", step).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		err = slivers.ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal(text, &task)
	}
	if err != nil {
		return task, fmt.Errorf("reading the task of step %d: %w", step, err)
	}
	return task, nil
}

// UpdateSteps changes steps in one step.
func (s *Store) UpdateSteps(ctx context.Context, ids []slivers.StepID, change func([]*slivers.Step) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inTx(ctx, func(tx *sql.Tx) error {
		var held []slivers.Step
		for rest := ids; len(rest) > 0; {
			n := min(len(rest), findChunk)
			args := make([]any, n)
			for i, id := range rest[:n] {
				args[i] = id
			}
			rest = rest[n:]
			list, err := querySteps(ctx, tx, "WHERE id IN (?"+strings.Repeat(",?", n-1)+") ORDER BY id", args...)
			if err != nil {
				return err
			}
			held = append(held, list...)
		}
		pointers := make([]*slivers.Step, len(held))
		for i := range held {
			pointers[i] = &held[i]
		}
		if err := change(pointers); err != nil {
			return err
		}
		for i := range held {
			record, err := json.Marshal(&held[i])
			if err != nil {
				return fmt.Errorf("changing step %s: %w", held[i].Name, err)
			}
			if _, err := tx.ExecContext(ctx, "UPDATE steps SET record = ? WHERE id = ?", string(record), held[i].ID); err != nil {
				return fmt.Errorf("changing step %s: %w", held[i].Name, err)
			}
		}
		return nil
	})
}

// SetStepOutput keeps what a step has written.
func (s *Store) SetStepOutput(ctx context.Context, step slivers.StepID, output slivers.StepOutput) error {
	text, err := json.Marshal(output)
	if err != nil {
		return fmt.Errorf("keeping the output of step %d: %w", step, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.write.ExecContext(ctx, "UPDATE steps SET output = ? WHERE id = ?", string(text), step); err != nil {
		return fmt.Errorf("keeping the output of step %d: %w", step, err)
	}
	return nil
}

// StepOutput returns what a step has written.
func (s *Store) StepOutput(ctx context.Context, step slivers.StepID) (slivers.StepOutput, error) {
	var text sql.NullString
	var output slivers.StepOutput
	err := s.read.QueryRowContext(ctx, "SELECT output FROM steps WHERE id = ?", step).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		err = slivers.ErrNotFound
	}
	if err == nil && text.Valid {
		err = json.Unmarshal([]byte(text.String), &output)
	}
	if err != nil {
		return output, fmt.Errorf("reading the output of step %d: %w", step, err)
	}
	return output, nil
}
