package inventory

import (
	"crypto/sha256"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"croft/urn"
)

// Watcher holds the inventory of a file and reads it again on demand. While
// the file is wrong, the last good snapshot stays. It may be used by many at
// once.
type Watcher struct {
	path string

	mu       sync.Mutex
	snapshot *Snapshot
	seen     stamp             // of the file when it was read last, right or wrong
	content  [sha256.Size]byte // read last
	require  func(*Snapshot) error
}

// stamp tells whether a file was touched without reading it.
type stamp struct {
	modified time.Time
	size     int64
}

// Open loads the inventory in a file and watches over it.
func Open(path string) (*Watcher, error) {
	w := &Watcher{path: path}
	if _, err := w.Reload(); err != nil {
		return nil, err
	}
	return w, nil
}

// Snapshot returns the last good snapshot.
func (w *Watcher) Snapshot() *Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshot
}

// Require has snapshots refused for which check returns an error, as if the
// file were wrong. The one that is held stays.
func (w *Watcher) Require(check func(*Snapshot) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.require = check
}

// Reload reads the file and reports whether the inventory has changed. If the
// file is wrong, the error says how, and the snapshot stays as it was.
func (w *Watcher) Reload() (changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reload()
}

// Poll is Reload if the file looks touched since it was read, else nothing: a
// wrong file is told of once, not each time.
func (w *Watcher) Poll() (changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	info, err := os.Stat(w.path)
	if err == nil && (stamp{info.ModTime(), info.Size()}) == w.seen {
		return false, nil
	}
	if err != nil && w.seen == (stamp{}) {
		return false, nil // still absent
	}
	return w.reload()
}

func (w *Watcher) reload() (bool, error) {
	// The stamp is taken before reading: a write in between is seen next time.
	w.seen = stamp{}
	if info, err := os.Stat(w.path); err == nil {
		w.seen = stamp{info.ModTime(), info.Size()}
	}
	data, err := readFile(w.path)
	if err != nil {
		return false, err
	}
	content := sha256.Sum256(data)
	if w.snapshot != nil && content == w.content {
		return false, nil
	}
	s, err := Parse(data, w.path)
	if err != nil {
		return false, err
	}
	if w.require != nil {
		if err := w.require(s); err != nil {
			return false, fmt.Errorf("%s: %w", w.path, err)
		}
	}
	w.content = content
	changed := w.snapshot == nil || s.Digest != w.snapshot.Digest
	if changed {
		w.snapshot = s
	}
	return changed, nil
}

// Changes is how one snapshot's hosts differ from another's.
type Changes struct {
	Added, Removed, Altered []urn.URN // in the order of the inventories
}

// Compare tells what became of the hosts of a snapshot in the next one. Nodes
// on a removed host keep it until they are given back.
func Compare(before, after *Snapshot) Changes {
	index := func(s *Snapshot) map[urn.URN]*Host {
		hosts := make(map[urn.URN]*Host, len(s.Hosts))
		for i := range s.Hosts {
			hosts[s.Hosts[i].ID.Canonical()] = &s.Hosts[i]
		}
		return hosts
	}
	old, now := index(before), index(after)
	var c Changes
	for i := range before.Hosts {
		h := &before.Hosts[i]
		switch stays := now[h.ID.Canonical()]; {
		case stays == nil:
			c.Removed = append(c.Removed, h.ID)
		case !reflect.DeepEqual(h, stays):
			c.Altered = append(c.Altered, h.ID)
		}
	}
	for i := range after.Hosts {
		if h := &after.Hosts[i]; old[h.ID.Canonical()] == nil {
			c.Added = append(c.Added, h.ID)
		}
	}
	return c
}
