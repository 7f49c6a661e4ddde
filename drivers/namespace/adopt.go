package namespace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"croft/drivers/internal/process"
	"croft/drivers/internal/records"
	"croft/urn"
)

// adopt reads the state and makes it true: nodes that run are taken over,
// what was half started is ended, and what belongs to nothing is removed.
func (d *Driver) adopt() error {
	nodes, err := d.state.load()
	if err != nil {
		return err
	}
	for _, r := range nodes {
		d.nodes[r.Node.Sliver.Canonical()] = &node{slot: r.Slot, rec: r}
	}
	for _, n := range d.nodes {
		if err := d.adoptNode(n); err != nil {
			return fmt.Errorf("take over node %s: %w", n.rec.Node.Sliver, err)
		}
	}
	if err := d.sweep(); err != nil {
		return err
	}
	if err := d.wipeCheck(); err != nil {
		return err
	}
	d.tidy()
	return nil
}

func (d *Driver) adoptNode(n *node) error {
	var run runRecord
	err := records.Read(d.runFile(n), &run)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if run.Boot != d.boot {
		return nil
	}
	p, err := process.Watch(run.PID, run.Start)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrProcessDone) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	n.proc, n.system = p, run.System
	if !run.Ready || !n.rec.Whole {
		return d.stop(context.Background(), n, 0)
	}
	d.log.Info("node taken over", "sliver", n.rec.Node.Sliver.String(), "pid", run.PID)
	d.attend(n, p)
	return nil
}

// sweep removes what earlier managers have left and no record names.
func (d *Driver) sweep() error {
	slots := []int{}
	for _, n := range d.nodes {
		if n.running() == nil {
			if err := d.clear(n); err != nil {
				return err
			}
			continue
		}
		slots = append(slots, n.slot)
	}
	err := d.wires.Sweep(func(sliver urn.URN) bool {
		n := d.nodes[sliver.Canonical()]
		return n != nil && n.running() != nil
	})
	if err != nil {
		return err
	}
	for _, slot := range d.cgroups.slots() {
		if !slices.Contains(slots, slot) {
			if err := d.cgroups.remove(slot); err != nil {
				return err
			}
		}
	}
	return d.sweepSystem()
}

// sweepSystem removes generated images of other hosts' systems than the
// present one, as far as no node runs on them. It is called before there are
// other callers.
func (d *Driver) sweepSystem() error {
	entries, err := os.ReadDir(d.state.in("system"))
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	s, err := newSkeleton("/", d.protected)
	if err != nil {
		return err
	}
	d.skeleton, d.skeletonHash = s, s.hash()
	used := map[string]bool{d.skeletonHash: true}
	for _, n := range d.nodes {
		n.mu.Lock() // it may end by itself
		used[n.system] = true
		n.mu.Unlock()
	}
	for _, e := range entries {
		if !used[e.Name()] {
			if err := removeTree(d.state.in("system", e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
