package namespace

import (
	"context"
	"fmt"

	"croft/drivers"
	"croft/urn"
)

// Connect implements drivers.Driver.
func (d *Driver) Connect(ctx context.Context, l drivers.Link) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("connect link %s: %w", l.Sliver, err)
	}
	return d.wires.Connect(l)
}

// Shapes implements drivers.Shaper.
func (d *Driver) Shapes(l drivers.Link) error { return d.wires.Shapes(l) }

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
