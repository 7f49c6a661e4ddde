package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/internal/records"
)

// nodeRecord is a node as node.json has it.
type nodeRecord struct {
	Slot    int
	Whole   bool // false while it is made or removed
	Node    drivers.Node
	HostKey []byte // SSH private key, PEM
}

// runRecord is a running node as run.json has it.
type runRecord struct {
	PID    int
	Start  uint64 // clock ticks since boot, tells processes of one PID apart
	Boot   string // the kernel's boot id
	Ready  bool   // users can log in
	System string // the generated image in use, "" for an image directory
}

// stateDir is the state directory.
type stateDir struct {
	path string
	lock *os.File
}

// lockPatience is how long a new driver waits for one that is just ending.
const lockPatience = 3 * time.Second

func openState(path string) (*stateDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	// Others must not get at the nodes' files: there are programs among them
	// that run as their owner.
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	s := &stateDir{path: path}
	for _, sub := range []string{"nodes", "discarded", "system"} {
		if err := os.MkdirAll(s.in(sub), 0o700); err != nil {
			return nil, fmt.Errorf("state directory: %w", err)
		}
	}
	s.lock, err = os.OpenFile(s.in("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		err = unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			s.lock.Close()
			return nil, fmt.Errorf("state directory %s: another manager uses it (stop that one, or give this one a directory of its own): %w", path, err)
		}
	}
}

func (s *stateDir) close() error { return s.lock.Close() }

func (s *stateDir) in(elem ...string) string {
	return filepath.Join(append([]string{s.path}, elem...)...)
}

func (s *stateDir) nodeDir(slot int) string { return s.in("nodes", strconv.Itoa(slot)) }

// load reads all records. What was begun before its record was written is
// nothing yet, and is cleaned away.
func (s *stateDir) load() ([]nodeRecord, error) {
	var nodes []nodeRecord
	entries, err := os.ReadDir(s.in("nodes"))
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	for _, e := range entries {
		dir := s.in("nodes", e.Name())
		var r nodeRecord
		err := records.Read(filepath.Join(dir, "node.json"), &r)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, records.ErrNeverWritten) {
			if err := removeTree(dir); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if strconv.Itoa(r.Slot) != e.Name() {
			return nil, fmt.Errorf("read the state: %s says that it is of slot %d", dir, r.Slot)
		}
		nodes = append(nodes, r)
	}
	return nodes, nil
}

// putNode writes the record of a node. Only a whole one is worth waiting for
// the disk: what a power failure leaves of another is cleaned away.
func (s *stateDir) putNode(r nodeRecord) error {
	return records.Write(filepath.Join(s.nodeDir(r.Slot), "node.json"), r, r.Whole)
}
