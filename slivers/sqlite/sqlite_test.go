package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/slivers"
	"croft/slivers/sqlite"
	"croft/slivers/storetest"
)

func clock() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func open(t *testing.T, file string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), file, clock)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		file := filepath.Join(t.TempDir(), "a file#with?odd%20name.db")
		s := open(t, file)
		t.Cleanup(func() { s.Close() })
		return storetest.Subject{Store: s, Reopen: func(t *testing.T) slivers.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, file)
			return s
		}}
	})
}

func TestDurability(t *testing.T) {
	file := filepath.Join(t.TempDir(), "croft.db")
	s := open(t, file)
	defer s.Close()
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var mode string
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal_mode %q, %v; want wal", mode, err)
	}
}

func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "croft.db")
	open(t, file).Close()
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if _, err := sqlite.Open(context.Background(), file, clock); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("opening a database of version 99: %v", err)
	}
}
