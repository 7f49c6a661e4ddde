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
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"croft/capacity"
)

// cgroups holds the nodes to their capacity, by whichever version of cgroups
// the kernel has. A node gets a group in each hierarchy, below one of the
// driver's, so that it is no part of the manager's own group (a service
// manager that stops the manager would end it otherwise).
type cgroups struct {
	name      string // of the driver's group
	dirs      []string
	byName    map[string]string // controller → mount point
	unified   string            // mount point of version 2, ""
	processes int
	log       *slog.Logger
}

func openCgroups(stateDir string, processes int, log *slog.Logger) (*cgroups, error) {
	sum := sha256.Sum256([]byte(stateDir))
	c := &cgroups{name: "croft-" + hex.EncodeToString(sum[:4]), byName: map[string]string{}, processes: processes, log: log}
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("look for cgroups: %w", err)
	}
	c.read(string(data))
	return c, nil
}

// read takes the hierarchies from a mountinfo file, proc_pid_mountinfo(5).
func (c *cgroups) read(mountinfo string) {
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		at := f[4]
		switch g[0] {
		case "cgroup2":
			if c.unified == "" {
				c.unified = at
				c.dirs = append(c.dirs, at)
			}
		case "cgroup":
			for o := range strings.SplitSeq(g[2], ",") {
				wanted := o == "memory" || o == "cpu" || o == "pids" || o == "name=systemd"
				if wanted && c.byName[o] == "" {
					c.byName[o] = at
					if !slices.Contains(c.dirs, at) {
						c.dirs = append(c.dirs, at)
					}
				}
			}
		}
	}
}

func (c *cgroups) groups(slot int) []string {
	var out []string
	for _, d := range c.dirs {
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
	if c.unified != "" {
		for _, dir := range []string{c.unified, filepath.Join(c.unified, c.name)} {
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
	if at := c.byName[controller]; at != "" {
		return filepath.Join(at, c.name, strconv.Itoa(slot))
	}
	return ""
}

// v2 is the group of a slot in the hierarchy of version 2, "" if there is none.
func (c *cgroups) v2(slot int) string {
	if c.unified == "" {
		return ""
	}
	return filepath.Join(c.unified, c.name, strconv.Itoa(slot))
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
		if err := removeGroup(g); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// relayGroup is the group, in a hierarchy, of processes that carry the nodes'
// links. It is beside the nodes' groups: their work does not hold it up.
func (c *cgroups) relayGroup(dir string) string { return filepath.Join(dir, c.name+"-relays") }

// relayWeights give the relays the processor before others, in version 1 and 2.
var relayWeights = map[string]string{"cpu.shares": "262144", "cpu.weight": "10000"}

// settle moves a process out of the manager's own groups into one that stays
// when the manager ends.
func (c *cgroups) settle(pid int) error {
	for _, d := range c.dirs {
		if _, err := os.Stat(filepath.Join(d, "cpu.rt_runtime_us")); err == nil {
			// A relay's threads are of real time, for which only the root of
			// this hierarchy has time.
			if os.WriteFile(filepath.Join(d, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0) == nil {
				continue
			}
		}
		group := c.relayGroup(d)
		err := os.MkdirAll(group, 0o755)
		for file, weight := range relayWeights {
			// Only where the group has this: nothing is made by it.
			if f, openErr := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0); openErr == nil {
				f.WriteString(weight)
				f.Close()
			}
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("move process %d into a cgroup of its own: %w", pid, err)
		}
	}
	return nil
}

// removeAll removes the driver's own groups, if no node has one in them. The
// kernel may still be busy with the last node's.
func (c *cgroups) removeAll() {
	for _, d := range c.dirs {
		group := filepath.Join(d, c.name)
		if err := removeGroup(c.relayGroup(d)); err != nil {
			c.log.Debug("remove the relays' cgroup", "err", err)
		}
		for range busyTries {
			entries, err := os.ReadDir(group)
			inUse := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() })
			if err != nil || inUse || !errors.Is(unix.Rmdir(group), unix.EBUSY) {
				break
			}
			time.Sleep(busyPause)
		}
	}
}

// slots lists the slots that have a group.
func (c *cgroups) slots() []int {
	var out []int
	for _, d := range c.dirs {
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

// How often, and after which time, a group that the kernel calls busy is
// tried again.
const (
	busyTries = 500
	busyPause = 2 * time.Millisecond
)

// removeGroup removes a group and those that the node has made below it. The
// kernel calls a group busy for a moment after its last process.
func removeGroup(dir string) error {
	var err error
	for range busyTries {
		entries, readErr := os.ReadDir(dir)
		if errors.Is(readErr, fs.ErrNotExist) {
			return nil
		}
		for _, e := range entries {
			if e.IsDir() {
				if err := removeGroup(filepath.Join(dir, e.Name())); err != nil {
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
