package namespace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"croft/drivers"
	"croft/request"
	"croft/urn"
)

// Connect implements drivers.Driver.
func (d *Driver) Connect(ctx context.Context, l drivers.Link) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("connect link %s: %w", l.Sliver, err)
	}
	if err := d.connect(l); err != nil {
		return fmt.Errorf("connect link %s: %w", l.Sliver, err)
	}
	return nil
}

func (d *Driver) connect(l drivers.Link) error {
	if l.Sliver.IsZero() {
		return errors.New("it has no sliver URN")
	}
	d.netMu.Lock()
	defer d.netMu.Unlock()
	key := l.Sliver.Canonical()
	d.mu.Lock()
	r := d.links[key]
	if r != nil && r.Whole {
		d.mu.Unlock()
		return nil
	}
	err := d.checkLink(l)
	if err == nil && r == nil {
		r = &linkRecord{Slot: d.freeLinkSlot()}
		d.links[key] = r
	}
	if err == nil {
		r.Link = l
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if err := d.wire(r); err != nil {
		return errors.Join(err, d.unwire(key, r))
	}
	return nil
}

func (d *Driver) wire(r *linkRecord) error {
	if err := d.state.putLink(*r); err != nil {
		return err
	}
	if err := d.fabric.addBridge(bridgeName(r.Slot)); err != nil {
		return err
	}
	for _, end := range r.Link.Ends {
		n, i, err := d.end(end)
		if err != nil {
			return err
		}
		if n.plugged {
			if err := d.fabric.plug(portName(n.slot, i), bridgeName(r.Slot)); err != nil {
				return err
			}
		}
	}
	whole := *r
	whole.Whole = true
	if err := d.state.putLink(whole); err != nil {
		return err
	}
	d.mu.Lock()
	r.Whole = true
	d.mu.Unlock()
	return nil
}

// end finds the node and the number of the interface of one end.
func (d *Driver) end(e drivers.End) (*node, int, error) {
	n, err := d.find(e.Node)
	if err != nil {
		return nil, 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(n.rec.Node.Interfaces, func(i drivers.Interface) bool { return i.Name == e.Interface })
	if i < 0 {
		return nil, 0, fmt.Errorf("node %s has no interface %q", e.Node, e.Interface)
	}
	return n, i, nil
}

// checkLink is called with mu held.
func (d *Driver) checkLink(l drivers.Link) error {
	key := l.Sliver.Canonical()
	if _, isNode := d.nodes[key]; isNode {
		return errors.New("there is a node of that name")
	}
	if len(l.Ends) == 0 {
		return errors.New("it has no ends")
	}
	for i, e := range l.Ends {
		n := d.nodes[e.Node.Canonical()]
		if n == nil {
			return fmt.Errorf("end %d: node %s: %w", i+1, e.Node, drivers.ErrNotFound)
		}
		if !n.rec.Node.Slice.Equal(l.Slice) {
			return fmt.Errorf("end %d: node %s is of slice %s, the link of %s: links do not leave their slice", i+1, e.Node, n.rec.Node.Slice, l.Slice)
		}
		if !slices.ContainsFunc(n.rec.Node.Interfaces, func(f drivers.Interface) bool { return f.Name == e.Interface }) {
			return fmt.Errorf("end %d: node %s has no interface %q", i+1, e.Node, e.Interface)
		}
		if slices.ContainsFunc(l.Ends[:i], func(o drivers.End) bool { return sameEnd(o, e) }) {
			return fmt.Errorf("end %d: interface %q of node %s is in it twice", i+1, e.Interface, e.Node)
		}
		if other := d.linkAt(e); other != nil && !other.Link.Sliver.Equal(l.Sliver) {
			return fmt.Errorf("end %d: interface %q of node %s is in link %s already", i+1, e.Interface, e.Node, other.Link.Sliver)
		}
	}
	return nil
}

func sameEnd(a, b drivers.End) bool { return a.Node.Equal(b.Node) && a.Interface == b.Interface }

// linkAt finds the link of an interface. It is called with mu held.
func (d *Driver) linkAt(e drivers.End) *linkRecord {
	for _, r := range d.links {
		if slices.ContainsFunc(r.Link.Ends, func(o drivers.End) bool { return sameEnd(o, e) }) {
			return r
		}
	}
	return nil
}

// freeLinkSlot is called with mu held.
func (d *Driver) freeLinkSlot() int {
	taken := map[int]bool{}
	for _, r := range d.links {
		taken[r.Slot] = true
	}
	for slot := 0; ; slot++ {
		if !taken[slot] {
			return slot
		}
	}
}

func (d *Driver) removeLink(key urn.URN) error {
	d.netMu.Lock()
	d.mu.Lock()
	r := d.links[key]
	d.mu.Unlock()
	var err error
	if r != nil {
		err = d.unwire(key, r)
	}
	d.netMu.Unlock()
	if err != nil {
		return err
	}
	return d.tidy()
}

// unwire removes a link in whatever state it is. netMu is held.
func (d *Driver) unwire(key urn.URN, r *linkRecord) error {
	d.mu.Lock()
	r.Whole = false
	record := *r
	d.mu.Unlock()
	if _, err := os.Stat(d.state.linkFile(r.Slot)); err == nil {
		if err := d.state.putLink(record); err != nil {
			return err
		}
	}
	if d.fabric.handle != nil {
		for _, end := range r.Link.Ends {
			n, i, err := d.end(end)
			if err != nil || !n.plugged {
				continue
			}
			if err := d.fabric.plug(portName(n.slot, i), ""); err != nil {
				// A node can remove its own interface, and the port with it.
				d.log.Debug("unplug", "link", r.Link.Sliver.String(), "err", err)
			}
		}
		if err := d.fabric.del(bridgeName(r.Slot)); err != nil {
			return err
		}
	}
	if err := os.Remove(d.state.linkFile(r.Slot)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove its record: %w", err)
	}
	d.mu.Lock()
	delete(d.links, key)
	d.mu.Unlock()
	return nil
}

// plugNode makes the interfaces of a node that boots, each in its link.
func (d *Driver) plugNode(n *node, pid int) error {
	d.netMu.Lock()
	defer d.netMu.Unlock()
	for i, iface := range n.rec.Node.Interfaces {
		d.mu.Lock()
		r := d.linkAt(drivers.End{Node: n.rec.Node.Sliver, Interface: iface.Name})
		bridge := ""
		if r != nil {
			bridge = bridgeName(r.Slot)
		}
		d.mu.Unlock()
		if bridge != "" {
			if err := d.fabric.addBridge(bridge); err != nil { // new after a reboot
				return err
			}
		}
		n.plugged = true
		mac := iface.MAC
		if len(mac) == 0 {
			mac = ownMAC(n.rec.Node.Sliver, iface.Name)
		}
		if err := d.fabric.addPort(portName(n.slot, i), bridge, iface.Device, mac, pid); err != nil {
			return fmt.Errorf("interface %s: %w", iface.Name, err)
		}
	}
	return nil
}

// unplugNode removes the ports of a node. netMu is held.
func (d *Driver) unplugNode(n *node) error {
	if !n.plugged {
		return nil
	}
	for i := range n.rec.Node.Interfaces {
		if err := d.fabric.del(portName(n.slot, i)); err != nil {
			return err
		}
	}
	n.plugged = false
	return nil
}

// ownMAC makes up an address for an interface that was given none: a local
// one, the same at each start.
func ownMAC(sliver urn.URN, name request.ClientID) net.HardwareAddr {
	sum := sha256.Sum256([]byte(sliver.Canonical().String() + "\x00" + string(name)))
	return net.HardwareAddr{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]}
}
