// Package cgroup finds the control groups of the machine, of whichever version,
// and keeps the processes that carry nodes' links in groups of their own.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Hierarchies are the trees of groups that the machine has.
type Hierarchies struct {
	Dirs    []string          // where they are mounted, each once
	ByName  map[string]string // controllers of version 1 → mount point
	Unified string            // mount point of version 2, ""
}

// Find looks for the machine's hierarchies.
func Find() (Hierarchies, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Hierarchies{}, fmt.Errorf("look for cgroups: %w", err)
	}
	return Parse(string(data)), nil
}

// Parse takes the hierarchies from a mountinfo file, proc_pid_mountinfo(5).
func Parse(mountinfo string) Hierarchies {
	h := Hierarchies{ByName: map[string]string{}}
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		at := f[4]
		switch g[0] {
		case "cgroup2":
			if h.Unified == "" {
				h.Unified = at
				h.Dirs = append(h.Dirs, at)
			}
		case "cgroup":
			for o := range strings.SplitSeq(g[2], ",") {
				wanted := o == "memory" || o == "cpu" || o == "pids" || o == "name=systemd"
				if wanted && h.ByName[o] == "" {
					h.ByName[o] = at
					if !slices.Contains(h.Dirs, at) {
						h.Dirs = append(h.Dirs, at)
					}
				}
			}
		}
	}
	return h
}

// weights give a group the processor before others, in version 1 and 2.
var weights = map[string]string{"cpu.shares": "262144", "cpu.weight": "10000"}

// Settle moves a process out of the manager's own groups into one of a name,
// which stays when the manager ends and has the processor before others: what
// nodes do does not hold it up.
func (h Hierarchies) Settle(name string, pid int) error {
	for _, d := range h.Dirs {
		if _, err := os.Stat(filepath.Join(d, "cpu.rt_runtime_us")); err == nil {
			// A relay's threads are of real time, for which only the root of
			// this hierarchy has time.
			if os.WriteFile(filepath.Join(d, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0) == nil {
				continue
			}
		}
		err := settle(filepath.Join(d, name), pid)
		if errors.Is(err, fs.ErrNotExist) {
			err = settle(filepath.Join(d, name), pid) // somebody thought that nobody wants it any more
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("move process %d into a cgroup of its own: %w", pid, err)
		}
	}
	return nil
}

func settle(group string, pid int) error {
	if err := os.MkdirAll(group, 0o755); err != nil {
		return err
	}
	for file, weight := range weights {
		// Only where the group has this: nothing is made by it.
		if f, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0); err == nil {
			f.WriteString(weight)
			f.Close()
		}
	}
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// RemoveAll removes the groups of a name from all hierarchies.
func (h Hierarchies) RemoveAll(name string) error {
	var errs []error
	for _, d := range h.Dirs {
		errs = append(errs, Remove(filepath.Join(d, name)))
	}
	return errors.Join(errs...)
}

// How often, and after which time, a group that the kernel calls busy is
// tried again.
const (
	busyTries = 500
	busyPause = 2 * time.Millisecond
)

// Remove removes a group and those below it, whose processes have ended. The
// kernel calls a group busy for a moment after its last process.
func Remove(dir string) error {
	var err error
	for range busyTries {
		entries, readErr := os.ReadDir(dir)
		if errors.Is(readErr, fs.ErrNotExist) {
			return nil
		}
		for _, e := range entries {
			if e.IsDir() {
				if err := Remove(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
		if err = unix.Rmdir(dir); err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(busyPause)
	}
	return fmt.Errorf("remove cgroup %s: %w", dir, err)
}
