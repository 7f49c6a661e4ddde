package namespace

import (
	"fmt"
	"os"
	"path/filepath"
)

// What a removed node leaves on disk is deleted apart, one node after the
// other: freeing the blocks of a disk takes the host longer than everything
// else about a node, and nobody needs to wait for it.

// discard moves the directory of a node out of the way, at once and whole.
func (d *Driver) discard(dir string) error {
	to, err := os.MkdirTemp(d.state.in("discarded"), "")
	if err != nil {
		return fmt.Errorf("discard %s: %w", dir, err)
	}
	if err := os.Rename(dir, filepath.Join(to, "node")); err != nil {
		return fmt.Errorf("discard %s: %w", dir, err)
	}
	select {
	case d.discarded <- struct{}{}:
	default: // it is to look already
	}
	return nil
}

// deleteDiscarded deletes what has been discarded, also by an earlier driver,
// until the driver is closed.
func (d *Driver) deleteDiscarded() {
	dir := d.state.in("discarded")
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			d.log.Warn("what is left of removed nodes cannot be listed", "error", err)
		}
		for _, e := range entries {
			select {
			case <-d.closing:
				return
			default:
			}
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				d.log.Warn("what is left of a removed node cannot be deleted", "error", err)
			}
		}
		select {
		case <-d.discarded:
		case <-d.closing:
			return
		}
	}
}
