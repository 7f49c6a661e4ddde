package ssh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"croft/drivers"
	"croft/request"
	"croft/urn"
)

// Connect makes a link between machines. Their addresses are set when they
// start; here it is about the network between them: the operator's command
// makes it on the switches, a cable needs nothing. What can be done in neither
// way is refused.
func (d *Driver) Connect(ctx context.Context, l drivers.Link) error {
	if r, ok := d.journal.get(l.Sliver); ok && r.Whole {
		return nil
	}
	d.linking.Lock()
	defer d.linking.Unlock()
	ports, err := d.ports(l)
	if err == nil {
		err = d.joinable(l, ports)
	}
	if err != nil {
		return fmt.Errorf("connecting %s: %w", l.Sliver, err)
	}
	r := record{Sliver: l.Sliver, Link: &l}
	if err := d.journal.put(r); err != nil {
		return fmt.Errorf("connecting %s: %w", l.Sliver, err)
	}
	if err := d.runLinks(ctx, "connect", l, ports); err != nil {
		undo := d.runLinks(context.WithoutCancel(ctx), "disconnect", l, nil)
		if undo == nil {
			undo = d.journal.drop(l.Sliver)
		}
		return fmt.Errorf("connecting %s: %w", l.Sliver, errors.Join(err, undo))
	}
	r.Whole = true
	if err := d.journal.put(r); err != nil {
		return fmt.Errorf("connecting %s: %w", l.Sliver, err)
	}
	return nil
}

// port is an end of a link on a machine.
type port struct {
	machine Machine
	own     Interface
}

func (p port) String() string { return p.machine.Name + ":" + p.own.Name }

// ports finds what a link joins.
func (d *Driver) ports(l drivers.Link) ([]port, error) {
	var ports []port
	all := d.journal.all()
	for _, e := range l.Ends {
		r, m, err := d.nodeAndMachine(e.Node)
		if err != nil {
			return nil, err
		}
		if !r.Node.Slice.Equal(l.Slice) {
			return nil, fmt.Errorf("node %s is of %s, the link is of %s", e.Node, r.Node.Slice, l.Slice)
		}
		if (e.Out != request.Shape{}) || (e.In != request.Shape{}) {
			return nil, fmt.Errorf("interface %q: machines given out whole cannot shape links: leave out capacity, latency and loss", e.Interface)
		}
		at := slices.IndexFunc(r.Node.Interfaces, func(i drivers.Interface) bool { return i.Name == e.Interface })
		if at < 0 {
			return nil, fmt.Errorf("node %s has no interface %q", e.Node, e.Interface)
		}
		own, ok := m.own(r.Node.Interfaces[at].Component)
		if !ok {
			return nil, fmt.Errorf("interface %q is none of the interfaces that the inventory has of machine %s: declare one, or bind the interface to one that is free",
				e.Interface, m.Name)
		}
		for _, other := range all {
			if other.Link == nil || other.Sliver.Equal(l.Sliver) {
				continue
			}
			if slices.ContainsFunc(other.Link.Ends, func(o drivers.End) bool { return o.Node.Equal(e.Node) && o.Interface == e.Interface }) {
				return nil, fmt.Errorf("interface %q of %s is in link %s already", e.Interface, e.Node, other.Sliver)
			}
		}
		ports = append(ports, port{m, own})
	}
	return ports, nil
}

// joinable refuses a link that only a command could make, where there is none.
func (d *Driver) joinable(l drivers.Link, ports []port) error {
	if len(d.c.Links.Command) > 0 || len(ports) < 2 {
		return nil
	}
	if l.SharedVLAN != "" {
		return fmt.Errorf("the shared VLAN %s cannot be joined: croft.yaml has no machines.links.command", l.SharedVLAN)
	}
	if len(ports) == 2 && ports[0].own.Peer.Equal(ports[1].own.ID) {
		return nil
	}
	first := ports[0].own.Switch
	for _, p := range ports {
		if p.own.Switch == "" || p.own.Switch != first || !slices.Contains(d.c.Links.PlainSwitches, first) {
			return fmt.Errorf("%s and %s are not joined by a cable, and there is no way to set up switches: "+
				"croft.yaml needs machines.links.command, or the switch of both among machines.links.plain_switches", ports[0], p)
		}
	}
	return nil
}

// runLinks has the operator's command make a link's network exactly that of
// some ports, or remove it.
func (d *Driver) runLinks(ctx context.Context, action string, l drivers.Link, ports []port) error {
	if len(d.c.Links.Command) == 0 {
		return nil
	}
	var ends []string
	for _, p := range ports {
		ends = append(ends, p.String())
	}
	vlan := ""
	if l.VLAN != 0 {
		vlan = strconv.Itoa(l.VLAN)
	}
	env := []string{
		"CROFT_ACTION=" + action, "CROFT_LINK=" + l.Sliver.String(), "CROFT_SLICE=" + l.Slice.String(),
		"CROFT_VLAN=" + vlan, "CROFT_SHARED_VLAN=" + l.SharedVLAN, "CROFT_ENDS=" + strings.Join(ends, " "),
	}
	// The nodes' logs are where their users look.
	about := l.Sliver
	if len(l.Ends) > 0 {
		about = l.Ends[0].Node
	}
	return d.run(ctx, about, d.c.Links.Limit, d.c.Links.Command, env)
}

// leaveLinks takes a node that is removed out of the links that it is in.
func (d *Driver) leaveLinks(ctx context.Context, node urn.URN) error {
	d.linking.Lock()
	defer d.linking.Unlock()
	for _, r := range d.journal.all() {
		if r.Link == nil || !slices.ContainsFunc(r.Link.Ends, func(e drivers.End) bool { return e.Node.Equal(node) }) {
			continue
		}
		l := *r.Link
		l.Ends = slices.DeleteFunc(slices.Clone(l.Ends), func(e drivers.End) bool { return e.Node.Equal(node) })
		ports, err := d.ports(l)
		if err == nil {
			err = d.runLinks(ctx, "connect", l, ports)
		}
		if err != nil {
			return fmt.Errorf("taking %s out of link %s: %w", node, r.Sliver, err)
		}
		r.Link = &l
		if err := d.journal.put(r); err != nil {
			return err
		}
	}
	return nil
}

// disconnectLink removes a link.
func (d *Driver) disconnectLink(ctx context.Context, r record) error {
	d.linking.Lock()
	defer d.linking.Unlock()
	// Its ends may have changed since it was looked up.
	if now, ok := d.journal.get(r.Sliver); ok {
		r = now
	}
	r.Whole = false
	err := d.journal.put(r)
	if err == nil {
		err = d.runLinks(ctx, "disconnect", *r.Link, nil)
	}
	if err == nil {
		err = d.journal.drop(r.Sliver)
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", r.Sliver, err)
	}
	return nil
}
