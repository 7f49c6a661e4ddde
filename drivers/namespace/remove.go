package namespace

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth is how deep removeTree follows directories before it moves what
// lies deeper up to the top.
const maxDepth = 64

// removeTree removes a directory whatever a node's users have put into it:
// also trees that are deeper than the driver can have files open.
func removeTree(dir string) error {
	top, err := openAt(nil, dir)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return os.Remove(dir)
	}
	if err == nil {
		r := remover{top: top}
		err = r.empty(top, 0)
		top.Close()
	}
	if err == nil {
		err = os.Remove(dir)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

type remover struct {
	top   *os.File
	moved int
}

// empty removes what is in a directory. What it moves to the top is removed
// by the loop over the top, which goes on until nothing is there.
func (r *remover) empty(dir *os.File, depth int) error {
	for {
		if _, err := dir.Seek(0, 0); err != nil {
			return err
		}
		names, err := dir.Readdirnames(-1)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := r.remove(dir, name, depth); err != nil {
				return err
			}
		}
	}
}

func (r *remover) remove(dir *os.File, name string, depth int) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return &os.PathError{Op: "unlink", Path: name, Err: err}
	}
	if depth >= maxDepth {
		r.moved++
		to := ".croft-" + strconv.Itoa(r.moved)
		if err := unix.Renameat2(int(dir.Fd()), name, int(r.top.Fd()), to, unix.RENAME_NOREPLACE); err != nil {
			return &os.PathError{Op: "rename", Path: name, Err: err}
		}
		return nil
	}
	sub, err := openAt(dir, name)
	if err != nil {
		return err
	}
	err = r.empty(sub, depth+1)
	sub.Close()
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR); err != nil {
		return &os.PathError{Op: "rmdir", Path: name, Err: err}
	}
	return nil
}

// openAt opens a directory, never through a symbolic link.
func openAt(dir *os.File, name string) (*os.File, error) {
	at := unix.AT_FDCWD
	if dir != nil {
		at = int(dir.Fd())
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
