package namespace

import (
	"context"
	"fmt"

	"croft/drivers"
	"croft/drivers/wiring"
	"croft/urn"
)

// Connect implements drivers.Driver.
func (d *Driver) Connect(ctx context.Context, l drivers.Link) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("connect link %s: %w", l.Sliver, err)
	}
	here, err := d.here(l)
	if err != nil {
		return fmt.Errorf("connect link %s: %w", l.Sliver, err)
	}
	return d.wires.Connect(here.Link, here.Way)
}

// Shapes implements drivers.Shaper.
func (d *Driver) Shapes(l drivers.Link) error {
	here, err := d.here(l)
	if err != nil {
		return err
	}
	return d.wires.Shapes(here.Link, here.Way)
}

// here is what this machine has of a link: all of it.
func (d *Driver) here(l drivers.Link) (wiring.Part, error) {
	at := make([]*wiring.Machine, len(l.Ends))
	for i := range at {
		at[i] = d.cfg.Machine
	}
	parts, err := wiring.Divide(l, at)
	if err != nil || len(parts) == 0 {
		return wiring.Part{Link: l}, err
	}
	return parts[0], nil
}

// NodesFirst implements drivers.NodesFirst.
func (d *Driver) NodesFirst() bool { return true }

// lookup finds a node for its links.
func (d *Driver) lookup(sliver urn.URN) (drivers.Node, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[sliver.Canonical()]
	if n == nil {
		return drivers.Node{}, false
	}
	return n.rec.Node, true
}
