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
	for _, slot := range d.trash {
		taken[slot] = true
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
				return err
			}
		}
	}
	if err := os.Remove(d.state.linkFile(r.Slot)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove its record: %w", err)
	}
	delete(d.fabric.bridges, bridgeName(r.Slot))
	d.mu.Lock()
	delete(d.links, key)
	d.trash = append(d.trash, r.Slot)
	first := len(d.trash) == 1
	d.mu.Unlock()
	if first {
		d.background.Go(d.takeOut)
	}
	return nil
}

// takeOut deletes bridges that nothing is plugged into, as long as there are
// any, as many as there are at once. The slots of those that it cannot delete
// stay out of use, and the next start of the driver sweeps.
func (d *Driver) takeOut() {
	for {
		d.mu.Lock()
		slots := slices.Clone(d.trash)
		d.mu.Unlock()
		if len(slots) == 0 {
			return
		}
		var names []string
		for _, slot := range slots {
			names = append(names, bridgeName(slot))
		}
		if err := d.eraseNow(names); err != nil {
			d.log.Error("remove bridges", "err", err)
			return
		}
		d.mu.Lock()
		d.trash = slices.DeleteFunc(d.trash, func(slot int) bool { return slices.Contains(slots, slot) })
		d.mu.Unlock()
	}
}

func (d *Driver) eraseNow(names []string) error {
	d.netMu.Lock()
	if d.fabric.handle == nil {
		d.netMu.Unlock()
		return nil // they went with it
	}
	e, err := d.fabric.eraser()
	d.netMu.Unlock()
	if err != nil {
		return err
	}
	defer e.Close()
	return e.erase(names...)
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
		if err := d.fabric.addPort(portName(n.slot, i), portGroup(n.slot), bridge, iface.Device, mac, pid); err != nil {
			return fmt.Errorf("interface %s: %w", iface.Name, err)
		}
	}
	return nil
}

// shutNode takes a node off its links.
func (d *Driver) shutNode(n *node) error {
	d.netMu.Lock()
	defer d.netMu.Unlock()
	if !n.plugged || d.fabric.handle == nil {
		return nil
	}
	return d.fabric.shut(portGroup(n.slot))
}

// ownMAC makes up an address for an interface that was given none: a local
// one, the same at each start.
func ownMAC(sliver urn.URN, name request.ClientID) net.HardwareAddr {
	sum := sha256.Sum256([]byte(sliver.Canonical().String() + "\x00" + string(name)))
	return net.HardwareAddr{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]}
}
