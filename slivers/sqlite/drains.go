package sqlite

import (
	"context"
	"fmt"

	"croft/slivers"
	"croft/urn"
)

// Drain records that a host takes no new slivers.
func (s *Store) Drain(ctx context.Context, d slivers.Drain) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.write.ExecContext(ctx, "INSERT INTO drains(key, urn, reason, since) VALUES(?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET reason = excluded.reason",
		key(d.Host), d.Host.String(), d.Reason, d.Since.UnixNano())
	if err != nil {
		return fmt.Errorf("draining %s: %w", d.Host, err)
	}
	return nil
}

// Undrain ends it.
func (s *Store) Undrain(ctx context.Context, host urn.URN) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	done, err := s.write.ExecContext(ctx, "DELETE FROM drains WHERE key = ?", key(host))
	if err != nil {
		return fmt.Errorf("undraining %s: %w", host, err)
	}
	if n, err := done.RowsAffected(); err == nil && n == 0 {
		return fmt.Errorf("undraining %s: %w", host, slivers.ErrNotFound)
	}
	return nil
}

// Drains lists the hosts that are drained.
func (s *Store) Drains(ctx context.Context) ([]slivers.Drain, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT urn, reason, since FROM drains ORDER BY key")
	if err != nil {
		return nil, fmt.Errorf("reading which hosts are drained: %w", err)
	}
	defer rows.Close()
	var list []slivers.Drain
	for rows.Next() {
		var name string
		var since int64
		var d slivers.Drain
		if err := rows.Scan(&name, &d.Reason, &since); err != nil {
			return nil, fmt.Errorf("reading which hosts are drained: %w", err)
		}
		if d.Host, err = urn.Parse(name); err != nil {
			return nil, fmt.Errorf("reading which hosts are drained: %w", err)
		}
		d.Since = stamp(since)
		list = append(list, d)
	}
	return list, rows.Err()
}
