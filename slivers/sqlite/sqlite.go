// Package sqlite is the store of slivers on SQLite, in WAL mode and with
// synchronous=FULL: what it has acknowledged survives a power loss.
package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"croft/mapping"
	"croft/slivers"
	"croft/urn"
)

var (
	//go:embed schema.sql
	schema string
	//go:embed steps.sql
	stepsSchema string
	//go:embed drains.sql
	drainsSchema string
	//go:embed inputs.sql
	inputsSchema string
	//go:embed stepids.sql
	stepIDsSchema string
)

// migrations bring a database from one user_version to the next; the first
// one makes it. What stands here is never changed, only added to.
func migrations() []string {
	return []string{schema, stepsSchema, drainsSchema, inputsSchema, stepIDsSchema}
}

// Store implements slivers.Store. One process at a time may have a database
// open; Open's caller sees to that.
type Store struct {
	clock func() time.Time
	read  *sql.DB
	write *sql.DB

	// mu is held by whoever writes, from reading what the decision rests on
	// until the commit, and guards taken.
	mu    sync.Mutex
	taken *occupancy

	updates updates
}

var _ slivers.Store = (*Store)(nil)

// eventsKept is how long events are kept: long enough to look into last
// month's trouble.
const eventsKept = 90 * 24 * time.Hour

// Open opens the database in a file, or makes it. Events are stamped by clock.
func Open(ctx context.Context, file string, clock func() time.Time) (*Store, error) {
	dsn := func(extra string) string {
		return "file:" + (&url.URL{Path: file}).EscapedPath() +
			"?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=5000&_foreign_keys=1" + extra
	}
	write, err := sql.Open("sqlite3", dsn("&_txlock=immediate"))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", file, err)
	}
	write.SetMaxOpenConns(1)
	s := &Store{clock: clock, write: write}
	if err := s.migrate(ctx); err != nil {
		write.Close()
		return nil, fmt.Errorf("opening %s: %w", file, err)
	}
	if _, err := write.ExecContext(ctx, "DELETE FROM events WHERE at < ?", clock().Add(-eventsKept).UnixNano()); err != nil {
		write.Close()
		return nil, fmt.Errorf("opening %s: dropping old events: %w", file, err)
	}
	if s.read, err = sql.Open("sqlite3", dsn("&_query_only=1")); err != nil {
		write.Close()
		return nil, fmt.Errorf("opening %s: %w", file, err)
	}
	s.read.SetMaxOpenConns(4)
	all, err := s.All(ctx)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("opening %s: %w", file, err)
	}
	s.taken = newOccupancy(all)
	return s, nil
}

func (s *Store) migrate(ctx context.Context) error {
	var version int
	if err := s.write.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	todo := migrations()
	if version > len(todo) {
		return fmt.Errorf("its format is version %d, this program knows %d: use the program that made it", version, len(todo))
	}
	if version == len(todo) {
		return nil
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for _, statements := range todo[version:] {
			if _, err := tx.ExecContext(ctx, statements); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(todo)))
		return err
	})
}

// Close closes the database.
func (s *Store) Close() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	return errors.Join(append(errs, s.write.Close())...)
}

func (s *Store) inTx(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return tx.Commit()
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// Occupancy tells what is taken now.
func (s *Store) Occupancy() mapping.Occupancy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken.snapshot()
}

// OccupancyOf tells what slivers take, if there are no others.
func (s *Store) OccupancyOf(list []slivers.Sliver) mapping.Occupancy {
	o := newOccupancy(list)
	o.version = 0
	return o.snapshot()
}

// Slice returns a slice, or slivers.ErrNotFound.
func (s *Store) Slice(ctx context.Context, slice urn.URN) (slivers.Slice, error) {
	list, err := s.slices(ctx, "WHERE key = ?", key(slice))
	if err != nil {
		return slivers.Slice{}, err
	}
	if len(list) == 0 {
		return slivers.Slice{}, fmt.Errorf("slice %s: %w", slice, slivers.ErrNotFound)
	}
	return list[0], nil
}

// Slices lists all slices.
func (s *Store) Slices(ctx context.Context) ([]slivers.Slice, error) {
	return s.slices(ctx, "ORDER BY created, key")
}

func (s *Store) slices(ctx context.Context, where string, args ...any) ([]slivers.Slice, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT urn, shutdown, created FROM slices "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading slices: %w", err)
	}
	defer rows.Close()
	var list []slivers.Slice
	for rows.Next() {
		var name string
		var v slivers.Slice
		var created int64
		if err := rows.Scan(&name, &v.Shutdown, &created); err != nil {
			return nil, fmt.Errorf("reading slices: %w", err)
		}
		if v.URN, err = urn.Parse(name); err != nil {
			return nil, fmt.Errorf("reading slices: %w", err)
		}
		v.Created = stamp(created)
		list = append(list, v)
	}
	return list, rows.Err()
}

// SetShutdown marks a slice as shut down, or lifts that.
func (s *Store) SetShutdown(ctx context.Context, slice urn.URN, down bool, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if err := knowSlice(ctx, tx, slice, at); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "UPDATE slices SET shutdown = ? WHERE key = ?", down, key(slice))
		return err
	})
	if err != nil {
		return fmt.Errorf("marking slice %s: %w", slice, err)
	}
	return nil
}

func knowSlice(ctx context.Context, tx *sql.Tx, slice urn.URN, at time.Time) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO slices(key, urn, shutdown, created) VALUES(?, ?, 0, ?) ON CONFLICT DO NOTHING",
		key(slice), slice.String(), at.UnixNano())
	return err
}

// SlicesOf lists the slices of authorities and those with nodes of a member.
func (s *Store) SlicesOf(ctx context.Context, member urn.URN, authorities []urn.Authority) ([]slivers.Slice, error) {
	// URNs are compared as the store keeps them, but for case; who else has
	// a name that differs in nothing else is told apart below.
	where, args := "json_extract(record, '$.Node.Owner') = ? COLLATE NOCASE", []any{member.String()}
	for _, a := range authorities {
		prefix := strings.TrimSuffix(key(urn.URN{Authority: a, Type: urn.Slice, Name: "x"}), "x")
		where += " OR slice >= ? AND slice < ?"
		args = append(args, prefix, prefix+"\U0010ffff")
	}
	list, err := s.slices(ctx, "WHERE key IN (SELECT slice FROM slivers WHERE "+where+") ORDER BY created, key", args...)
	if err != nil {
		return nil, err
	}
	var kept []slivers.Slice
	for _, v := range list {
		mine := slices.ContainsFunc(authorities, v.URN.Authority.Equal)
		if !mine {
			held, err := s.OfSlice(ctx, v.URN)
			if err != nil {
				return nil, err
			}
			mine = slices.ContainsFunc(held, func(v slivers.Sliver) bool { return v.Node != nil && v.Node.Owner.Equal(member) })
		}
		if mine {
			kept = append(kept, v)
		}
	}
	return kept, nil
}

// Documents returns the documents of a slice.
func (s *Store) Documents(ctx context.Context, slice urn.URN) ([]slivers.Document, error) {
	rows, err := s.read.QueryContext(ctx,
		"SELECT id, media_type, bytes, inputs, received FROM documents WHERE slice = ? ORDER BY id", key(slice))
	if err != nil {
		return nil, fmt.Errorf("reading the documents of %s: %w", slice, err)
	}
	defer rows.Close()
	var list []slivers.Document
	for rows.Next() {
		d := slivers.Document{Slice: slice}
		var received int64
		var inputs string
		err := rows.Scan(&d.ID, &d.MediaType, &d.Bytes, &inputs, &received)
		if err == nil {
			d.Inputs, err = readInputs(inputs)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the documents of %s: %w", slice, err)
		}
		d.Received = stamp(received)
		list = append(list, d)
	}
	return list, rows.Err()
}

// readInputs reads the column inputs.
func readInputs(text string) (map[string]any, error) {
	if text == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var inputs map[string]any
	err := decoder.Decode(&inputs)
	return inputs, err
}

// writeInputs makes the column inputs.
func writeInputs(inputs map[string]any) (string, error) {
	if len(inputs) == 0 {
		return "", nil
	}
	text, err := json.Marshal(inputs)
	return string(text), err
}

// OfSlice returns the slivers of a slice.
func (s *Store) OfSlice(ctx context.Context, slice urn.URN) ([]slivers.Sliver, error) {
	return query(ctx, s.read, "WHERE slice = ? ORDER BY rowid", key(slice))
}

// All returns every sliver.
func (s *Store) All(ctx context.Context) ([]slivers.Sliver, error) {
	return query(ctx, s.read, "ORDER BY rowid")
}

// Find returns slivers by their URNs.
func (s *Store) Find(ctx context.Context, urns []urn.URN) ([]slivers.Sliver, error) {
	return find(ctx, s.read, urns)
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// findChunk keeps the variables of one statement under SQLite's limit.
const findChunk = 500

func find(ctx context.Context, q querier, urns []urn.URN) ([]slivers.Sliver, error) {
	found := make(map[urn.URN]slivers.Sliver, len(urns))
	for rest := urns; len(rest) > 0; {
		n := min(len(rest), findChunk)
		args := make([]any, n)
		for i, u := range rest[:n] {
			args[i] = key(u)
		}
		rest = rest[n:]
		list, err := query(ctx, q, "WHERE key IN (?"+strings.Repeat(",?", n-1)+")", args...)
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			found[v.URN.Canonical()] = v
		}
	}
	list := make([]slivers.Sliver, 0, len(urns))
	for _, u := range urns {
		if v, ok := found[u.Canonical()]; ok {
			list = append(list, v)
			delete(found, u.Canonical())
		}
	}
	return list, nil
}

func query(ctx context.Context, q querier, where string, args ...any) ([]slivers.Sliver, error) {
	rows, err := q.QueryContext(ctx, "SELECT record FROM slivers "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading slivers: %w", err)
	}
	defer rows.Close()
	var list []slivers.Sliver
	for rows.Next() {
		var record []byte
		if err := rows.Scan(&record); err != nil {
			return nil, fmt.Errorf("reading slivers: %w", err)
		}
		var v slivers.Sliver
		if err := json.Unmarshal(record, &v); err != nil {
			return nil, fmt.Errorf("reading slivers: %w", err)
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// key is the form of a URN that rows are found by.
func key(u urn.URN) string { return u.Canonical().String() }

func stamp(ns int64) time.Time { return time.Unix(0, ns).UTC() }
