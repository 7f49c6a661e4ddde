package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What a removed node leaves on disk is deleted apart, one node after the
// other: freeing the blocks of a disk takes the host longer than everything
// else about a node, and nobody needs to wait for it.

// discard moves the directory of a node, if there is one, out of the way, at
// once and whole.
func (d *Driver) discard(slot int) error {
	dir := d.state.nodeDir(slot)
	// Earlier nodes that had this slot may not have been deleted yet.
	for n := 0; ; n++ {
		to := d.state.in("discarded", fmt.Sprintf("%d-%d", slot, n))
		err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
		if err == nil {
			break
		}
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if _, missing := os.Lstat(dir); errors.Is(missing, os.ErrNotExist) {
			return nil
		}
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
