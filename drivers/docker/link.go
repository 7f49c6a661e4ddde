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

	"croft/drivers"
	"croft/drivers/wiring"
	"croft/request"
	"croft/urn"
)

// errElsewhere is what network returns for containers whose processes are not
// this machine's, though the socket is.
var errElsewhere = errors.New("its processes are not of this machine (Docker in a virtual machine, or this program in a container?)")

// Connect implements drivers.Driver.
func (d *Driver) Connect(ctx context.Context, l drivers.Link) error {
	ctx, cancel := brief(ctx)
	defer cancel()
	err := d.connect(ctx, l)
	if err != nil {
		return errors.Join(fmt.Errorf("connect link %s: %w", l.Sliver, err), d.disconnect(context.WithoutCancel(ctx), l.Sliver))
	}
	return nil
}

func (d *Driver) connect(ctx context.Context, l drivers.Link) error {
	parts, err := d.divide(l)
	if err != nil {
		return err
	}
	for _, p := range parts {
		h := d.hostAt(p.Machine)
		if h == nil {
			if err := d.wires.Connect(p.Link, p.Way); err != nil {
				return err
			}
			continue
		}
		if err := d.connectFar(ctx, h, p); err != nil {
			return fmt.Errorf("on Docker host %s: %w", h.Name, err)
		}
	}
	return nil
}

// connectFar makes the part of a link that another machine has. Nodes that run
// lack their interfaces if the switch there has been lost.
func (d *Driver) connectFar(ctx context.Context, h *host, p wiring.Part) error {
	var found []*node
	var nodes []drivers.Node
	for _, e := range p.Link.Ends {
		n, err := d.find(ctx, e.Node)
		if err != nil {
			return err
		}
		found, nodes = append(found, n), append(nodes, n.rec.Node)
	}
	if err := h.wires.Connect(ctx, p.Link, p.Way, nodes); err != nil {
		return err
	}
	for _, n := range found {
		if !n.running {
			continue
		}
		has, err := n.plugged(ctx)
		if err == nil && !has {
			err = d.plug(ctx, n)
		}
		if err != nil && !errors.Is(err, drivers.ErrNotRunning) { // it may have just ended
			return err
		}
	}
	return nil
}

// disconnect removes a link from all machines.
func (d *Driver) disconnect(ctx context.Context, link urn.URN) error {
	ctx, cancel := brief(ctx)
	defer cancel()
	errs := []error{d.wires.Disconnect(link)}
	d.tidy()
	for _, h := range d.hosts {
		if h.wires != nil {
			errs = append(errs, h.wires.disconnect(ctx, link))
		}
	}
	return errors.Join(errs...)
}

// links are those of all machines, each once.
func (d *Driver) links(ctx context.Context) ([]drivers.Found, error) {
	all := d.wires.Links()
	for _, h := range d.hosts {
		if h.wires == nil {
			continue
		}
		list, err := h.wires.list(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	var out []drivers.Found
	parts := map[urn.URN]int{}
	for _, l := range all {
		key := l.Sliver.Canonical()
		if parts[key]++; parts[key] == 1 {
			out = append(out, drivers.Found{Sliver: l.Sliver, Kind: drivers.LinkKind, Whole: true})
		}
		i := slices.IndexFunc(out, func(f drivers.Found) bool { return f.Sliver.Equal(l.Sliver) })
		out[i].Whole = out[i].Whole && l.Whole
	}
	for _, l := range all {
		i := slices.IndexFunc(out, func(f drivers.Found) bool { return f.Sliver.Equal(l.Sliver) })
		out[i].Whole = out[i].Whole && parts[l.Sliver.Canonical()] >= l.Way.Machines
	}
	return out, nil
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
		h := d.hostAt(p.Machine)
		if h == nil {
			err = d.wires.Shapes(p.Link, p.Way)
		} else if p.Link.Ends != nil {
			err = h.shapes(p.Link, p.Way)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shapes asks a host's switch. Of links that ask for nothing it need not be
// asked, and so need not be there.
func (h *host) shapes(l drivers.Link, w wiring.Way) error {
	plain := w.Uplink == "" && len(w.Peers) == 0
	for _, e := range l.Ends {
		plain = plain && e.Out == (request.Shape{}) && e.In == (request.Shape{})
	}
	if plain {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), adoptTime)
	defer cancel()
	if err := h.wires.Shapes(ctx, l, w); err != nil {
		return fmt.Errorf("on Docker host %s: %w", h.Name, err)
	}
	return nil
}

// hostAt is the Docker host that a machine is; nil for this one.
func (d *Driver) hostAt(m *wiring.Machine) *host {
	for _, h := range d.hosts {
		if h.wires != nil && h.machine == m {
			return h
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
		if h.wires != nil {
			at[i] = h.machine
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

// networkOf opens the network of a process of this machine, which is one of a
// container.
func networkOf(pid int, id string) (*os.File, error) {
	ns, err := wiring.NetworkOf(pid)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errElsewhere
	}
	if err != nil {
		return nil, err
	}
	// The process may be another one by now, or be of another machine. The
	// control groups of a container have its name.
	groups, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil || !strings.Contains(string(groups), id) {
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
	if n.host.wires != nil {
		pid, err := n.pid(ctx)
		if err == nil {
			err = n.host.wires.Plug(ctx, n.rec.Node, pid, n.id)
		}
		return err
	}
	ns, err := n.network(ctx)
	if err != nil {
		return fmt.Errorf("find its network: %w", err)
	}
	defer ns.Close()
	return d.wires.Plug(n.rec.Node, int(ns.Fd()))
}

// unplug takes a node off its links.
func (d *Driver) unplug(ctx context.Context, n *node) error {
	if len(n.rec.Node.Interfaces) > 0 && n.host.wires != nil {
		return n.host.wires.forget(ctx, n.rec.Node.Sliver)
	}
	return d.wires.Unplug(n.rec.Node.Sliver)
}

// plugged reports whether a node that runs has all its interfaces.
func (n *node) plugged(ctx context.Context) (bool, error) {
	if n.host.wires != nil {
		pid, err := n.pid(ctx)
		if err != nil {
			return false, err
		}
		return n.host.wires.Plugged(ctx, n.rec.Node, pid, n.id)
	}
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
