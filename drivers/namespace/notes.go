package namespace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"croft/urn"
)

// A disk counts as full when less than this is free: a part of it, or bytes,
// whichever is more.
const (
	fullPart  = 0.01
	fullBytes = 2 << 20
)

// Notes implements drivers.Noter: which limits a node has reached since it was
// started.
func (d *Driver) Notes(_ context.Context, sliver urn.URN) ([]string, error) {
	n, err := d.find(sliver)
	if err != nil {
		return nil, fmt.Errorf("notes: %w", err)
	}
	p := n.running()
	if p == nil {
		return nil, nil
	}
	d.mu.Lock()
	limits := n.rec.Node.Capacity
	d.mu.Unlock()
	var out []string
	killed, refused := d.cgroups.events(n.slot)
	if killed > 0 {
		out = append(out, fmt.Sprintf("the node has used up its memory of %d MiB: %s ended", limits.Memory, count(killed, "process was", "processes were")))
	}
	if refused > 0 {
		out = append(out, fmt.Sprintf("the node has reached its %d processes: %s not started", d.cfg.Processes, count(refused, "more was", "more were")))
	}
	if limits.Disk > 0 {
		var st unix.Statfs_t
		err := unix.Statfs(fmt.Sprintf("/proc/%d/root", p.PID), &st)
		free, least := float64(st.Bavail)*float64(st.Bsize), max(fullBytes, fullPart*float64(st.Blocks)*float64(st.Bsize))
		if err == nil && !p.Ended() && st.Blocks > 0 && (free < least || st.Ffree == 0) {
			out = append(out, fmt.Sprintf("the node's disk of %d MiB is full", limits.Disk))
		}
	}
	return out, nil
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// events counts the processes that the kernel has killed for want of memory in
// a node's group, and those that it has not started for want of a place.
func (c *cgroups) events(slot int) (killed, refused int64) {
	for _, g := range c.groups(slot) {
		killed = max(killed, counter(filepath.Join(g, "memory.oom_control"), "oom_kill"), counter(filepath.Join(g, "memory.events"), "oom_kill"))
		refused = max(refused, counter(filepath.Join(g, "pids.events"), "max"))
	}
	return killed, refused
}

// counter reads one counter of a file of lines "name value"; 0 if it is not
// there.
func counter(file, name string) int64 {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[0] == name {
			value, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return value
		}
	}
	return 0
}
