package namespace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"croft/capacity"
	"croft/drivers/internal/cgroup"
)

// cgroups holds the nodes to their capacity, by whichever version of cgroups
// the kernel has. A node gets a group in each hierarchy, below one of the
// driver's, so that it is no part of the manager's own group (a service
// manager that stops the manager would end it otherwise).
type cgroups struct {
	cgroup.Hierarchies
	name      string // of the driver's group
	processes int
	log       *slog.Logger
}

func openCgroups(stateDir string, processes int, log *slog.Logger) (*cgroups, error) {
	h, err := cgroup.Find()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(stateDir))
	return &cgroups{Hierarchies: h, name: "croft-" + hex.EncodeToString(sum[:4]), processes: processes, log: log}, nil
}

func (c *cgroups) groups(slot int) []string {
	var out []string
	for _, d := range c.Dirs {
		out = append(out, filepath.Join(d, c.name, strconv.Itoa(slot)))
	}
	return out
}

// group is where the processes of a node begin, in each hierarchy.
type group struct {
	tasks   []string // of version 1: what a thread writes to so as to be in it
	unified *os.File // of version 2; nil if there is none
}

// enter puts the calling thread into the group, as far as it is of version 1;
// what it starts is there from its beginning. A process that is moved later
// holds up all that fork or end on the machine meanwhile.
func (g *group) enter() error {
	for _, name := range g.tasks {
		if err := os.WriteFile(name, []byte("0"), 0); err != nil {
			return fmt.Errorf("enter a cgroup: %w", err)
		}
	}
	return nil
}

func (g *group) close() {
	if g.unified != nil {
		g.unified.Close()
	}
}

// prepare makes the group of a slot, with the limits of memory and processes.
// A limit that the kernel cannot keep is returned in missing; zero amounts set
// none. The caller closes the group.
func (c *cgroups) prepare(slot int, a capacity.Amount) (g *group, missing []string, err error) {
	g = &group{}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	for _, dir := range c.groups(slot) {
		err := os.MkdirAll(dir, 0o755)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
			continue // in a container, for one: what it would have limited is missing
		}
		if err != nil {
			return nil, nil, fmt.Errorf("make cgroup: %w", err)
		}
		if dir != c.v2(slot) {
			g.tasks = append(g.tasks, filepath.Join(dir, "tasks"))
			continue
		}
		if g.unified, err = os.Open(dir); err != nil {
			return nil, nil, fmt.Errorf("make cgroup: %w", err)
		}
	}
	if c.Unified != "" {
		for _, dir := range []string{c.Unified, filepath.Join(c.Unified, c.name)} {
			for _, controller := range []string{"+memory", "+cpu", "+pids"} {
				os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controller), 0)
			}
		}
	}
	if a.Memory > 0 {
		bytes := strconv.FormatInt(int64(a.Memory)<<20, 10)
		if !c.set(c.v1("memory", slot), "memory.limit_in_bytes", bytes) && !c.set(c.v2(slot), "memory.max", bytes) {
			missing = append(missing, "memory")
		}
	}
	n := strconv.Itoa(c.processes)
	if !c.set(c.v1("pids", slot), "pids.max", n) && !c.set(c.v2(slot), "pids.max", n) {
		missing = append(missing, "processes")
	}
	return g, missing, nil
}

// limitCores holds a slot to its cores, or reports that the kernel cannot. Zero
// sets no limit, and takes away one that there is.
func (c *cgroups) limitCores(slot int, cores capacity.Cores) bool {
	const period = 100_000 // microseconds
	if cores == 0 {
		return c.set(c.v1("cpu", slot), "cpu.cfs_quota_us", "-1") || c.set(c.v2(slot), "cpu.max", "max")
	}
	quota := strconv.FormatInt(max(1000, int64(cores)*period/int64(capacity.Core)), 10)
	return c.set(c.v1("cpu", slot), "cpu.cfs_period_us", strconv.Itoa(period)) && c.set(c.v1("cpu", slot), "cpu.cfs_quota_us", quota) ||
		c.set(c.v2(slot), "cpu.max", quota+" "+strconv.Itoa(period))
}

// v1 is the group of a slot in the hierarchy of a controller, "" if there is
// none of version 1.
func (c *cgroups) v1(controller string, slot int) string {
	if at := c.ByName[controller]; at != "" {
		return filepath.Join(at, c.name, strconv.Itoa(slot))
	}
	return ""
}

// v2 is the group of a slot in the hierarchy of version 2, "" if there is none.
func (c *cgroups) v2(slot int) string {
	if c.Unified == "" {
		return ""
	}
	return filepath.Join(c.Unified, c.name, strconv.Itoa(slot))
}

// set reports whether a group, if there is one, could be given a value.
func (c *cgroups) set(dir, file, value string) bool {
	if dir == "" {
		return false
	}
	err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0)
	if err != nil {
		c.log.Debug("cgroup limit", "file", filepath.Join(dir, file), "err", err)
	}
	return err == nil
}

// remove removes the groups of a slot, whose processes have ended.
func (c *cgroups) remove(slot int) error {
	var errs []error
	for _, g := range c.groups(slot) {
		if err := cgroup.Remove(g); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// relays is the group of processes that carry the nodes' links. It is beside
// that of the nodes.
func (c *cgroups) relays() string { return c.name + "-relays" }

// removeAll removes the driver's own groups, if no node has one in them.
func (c *cgroups) removeAll() {
	if err := c.RemoveAll(c.relays()); err != nil {
		c.log.Debug("remove the relays' cgroup", "err", err)
	}
	for _, d := range c.Dirs {
		group := filepath.Join(d, c.name)
		entries, err := os.ReadDir(group)
		if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() }) {
			continue
		}
		if err := cgroup.Remove(group); err != nil {
			c.log.Debug("remove the nodes' cgroup", "err", err)
		}
	}
}

// slots lists the slots that have a group.
func (c *cgroups) slots() []int {
	var out []int
	for _, d := range c.Dirs {
		entries, err := os.ReadDir(filepath.Join(d, c.name))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if slot, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() && !slices.Contains(out, slot) {
				out = append(out, slot)
			}
		}
	}
	return out
}
