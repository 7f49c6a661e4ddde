package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/client"

	"croft/drivers"
	"croft/drivers/wiring"
	"croft/urn"
)

// errElsewhere is what network returns for containers whose processes are not
// this machine's, though the socket is.
var errElsewhere = errors.New("its processes are not of this machine (Docker in a virtual machine, or this program in a container?)")

// farLinks says why a host's containers get no links.
func (h *host) farLinks() error {
	return fmt.Errorf("on Docker host %s, which is another machine: the driver docker makes links between containers of this machine only", h.Name)
}

// Connect implements drivers.Driver.
func (d *Driver) Connect(ctx context.Context, l drivers.Link) error {
	parts, err := d.divide(l)
	if err != nil {
		return fmt.Errorf("connect link %s: %w", l.Sliver, err)
	}
	for _, p := range parts {
		if err := d.wires.Connect(p.Link, p.Way); err != nil {
			return err
		}
	}
	return nil
}

// Spans implements drivers.Spanner.
func (d *Driver) Spans(l drivers.Link) (bool, error) {
	parts, err := d.divide(l)
	return wiring.Tunnelled(parts), err
}

// Shapes implements drivers.Shaper.
func (d *Driver) Shapes(l drivers.Link) error {
	parts, err := d.divide(l)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := d.wires.Shapes(p.Link, p.Way); err != nil {
			return err
		}
	}
	return nil
}

// divide says what the machines of a link's nodes have of it.
func (d *Driver) divide(l drivers.Link) ([]wiring.Part, error) {
	at := make([]*wiring.Machine, len(l.Ends))
	for i, e := range l.Ends {
		at[i] = d.cfg.Machine
		if e.Driver != "" && e.Driver != d.Name() {
			continue // other drivers' nodes are here
		}
		h, err := d.hostOf(e.Host)
		if err != nil {
			return nil, fmt.Errorf("end %d: %w", i+1, err)
		}
		if !h.local() {
			return nil, fmt.Errorf("end %d: %w", i+1, h.farLinks())
		}
	}
	return wiring.Divide(l, at)
}

// HostKey implements drivers.HostKeyTeller.
func (d *Driver) HostKey(ctx context.Context, sliver urn.URN) (string, error) {
	ctx, cancel := brief(ctx)
	defer cancel()
	n, err := d.find(ctx, sliver)
	if err != nil {
		return "", fmt.Errorf("host key: %w", err)
	}
	return n.rec.HostKey, nil
}

// NodesFirst implements drivers.NodesFirst.
func (d *Driver) NodesFirst() bool { return true }

// lookup tells the switch of nodes that it may connect. It is also called while
// a host is taken over.
func (d *Driver) lookup(sliver urn.URN) (drivers.Node, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), adoptTime)
	defer cancel()
	for _, h := range d.hosts {
		if !h.local() {
			continue
		}
		found, err := d.list(ctx, h, &sliver)
		if err == nil && len(found) > 0 && found[0].whole {
			return found[0].rec.Node, true
		}
	}
	return drivers.Node{}, false
}

// network opens the network of a container that runs on this machine.
func (n *node) network(ctx context.Context) (*os.File, error) {
	r, err := n.host.api.ContainerInspect(ctx, n.id, client.ContainerInspectOptions{})
	if err := n.host.saw(err); err != nil {
		return nil, err
	}
	if r.Container.State == nil || !r.Container.State.Running || r.Container.State.Pid <= 0 {
		return nil, drivers.ErrNotRunning
	}
	ns, err := wiring.NetworkOf(r.Container.State.Pid)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errElsewhere
	}
	if err != nil {
		return nil, err
	}
	// The process may be another one by now, or be of another machine. The
	// control groups of a container have its name.
	groups, err := os.ReadFile("/proc/" + strconv.Itoa(r.Container.State.Pid) + "/cgroup")
	if err != nil || !strings.Contains(string(groups), n.id) {
		ns.Close()
		return nil, errElsewhere
	}
	return ns, nil
}

// plug makes the interfaces of a node that runs.
func (d *Driver) plug(ctx context.Context, n *node) error {
	if len(n.rec.Node.Interfaces) == 0 {
		return nil
	}
	ns, err := n.network(ctx)
	if err != nil {
		return fmt.Errorf("find its network: %w", err)
	}
	defer ns.Close()
	return d.wires.Plug(n.rec.Node, int(ns.Fd()))
}

// plugged reports whether a node that runs has all its interfaces.
func (n *node) plugged(ctx context.Context) (bool, error) {
	ns, err := n.network(ctx)
	if err != nil {
		return false, err
	}
	defer ns.Close()
	all := true
	err = wiring.InNetwork(int(ns.Fd()), func() error {
		present, err := net.Interfaces()
		for _, want := range n.rec.Node.Interfaces {
			all = all && slices.ContainsFunc(present, func(i net.Interface) bool { return i.Name == want.Device })
		}
		return err
	})
	return all, err
}
