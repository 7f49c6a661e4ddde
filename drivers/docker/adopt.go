package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moby/moby/client"

	"croft/drivers"
	"croft/urn"
)

// adopt takes over what a host has of the manager's, once: what was begun and
// is of no use is removed, and what runs gets the interfaces that it lacks.
func (d *Driver) adopt(ctx context.Context, h *host) error {
	if h.adopted.Load() {
		return nil
	}
	// A host that does not answer keeps nobody longer than they have time for.
	select {
	case h.adopting <- struct{}{}:
		defer func() { <-h.adopting }()
	case <-ctx.Done():
		return fmt.Errorf("on Docker host %s: wait for it to be taken over: %w", h.Name, ctx.Err())
	}
	if h.adopted.Load() {
		return nil
	}
	if err := d.undoAll(ctx, h); err != nil {
		return err
	}
	if err := d.endAll(ctx, h); err != nil {
		return err
	}
	list, err := h.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: d.ours(kindScratch)})
	if err := h.saw(err); err != nil {
		return err
	}
	for _, c := range list.Items {
		if err := h.discard(ctx, c.ID); err != nil {
			return err
		}
	}
	if err := d.sweep(ctx, h); err != nil {
		return err
	}
	if err := d.adoptLinks(ctx, h); err != nil {
		return err
	}
	h.adopted.Store(true)
	return nil
}

func (d *Driver) adoptLinks(ctx context.Context, h *host) error {
	nodes, err := d.list(ctx, h, nil)
	if err != nil {
		return err
	}
	var up []urn.URN
	for _, n := range nodes {
		if n.running {
			up = append(up, n.rec.Node.Sliver)
		}
	}
	if h.wires == nil {
		// The switch is of this machine, and so is one host: what is not up
		// there is not up.
		err = d.wires.Sweep(func(sliver urn.URN) bool { return slices.ContainsFunc(up, sliver.Equal) })
	} else if _, running, findErr := h.wires.find(ctx); findErr != nil || !running {
		err = findErr // it is made when there is something for it to do
	} else if err = h.wires.Sweep(ctx, up); err == nil {
		err = h.wires.idle(ctx)
	}
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if !n.running || !n.whole || len(n.rec.Node.Interfaces) == 0 {
			continue
		}
		has, err := n.plugged(ctx)
		if err == nil && !has {
			err = d.plug(ctx, n)
		}
		if errors.Is(err, drivers.ErrNotRunning) {
			continue // it has just ended
		}
		if err != nil {
			// It may be ending; starting it again mends it.
			d.log.Warn("a node that runs has no links", "sliver", n.rec.Node.Sliver.String(), "error", fmt.Errorf("take over: %w", err))
		}
	}
	return nil
}
