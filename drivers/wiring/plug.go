package wiring

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/internal/records"
	"croft/request"
	"croft/urn"
)

// Plug makes the interfaces of a node in its network namespace, of which ns is
// a descriptor (see NetworkOf), each in its link, and gives them their
// addresses. Loopback comes up, too. What is there already stays as it is, so
// that it can be called again for a node that it has failed for.
func (s *Switch) Plug(n drivers.Node, ns int) error { return s.plugIn(s.cfg.Unowned, n, ns) }

func (s *Switch) plugIn(owner string, n drivers.Node, ns int) error {
	if err := s.plug(owner, n, ns); err != nil {
		return fmt.Errorf("plug in node %s: %w", n.Sliver, err)
	}
	err := InNetwork(ns, func() error { return configure(n.Interfaces) })
	if err != nil {
		return fmt.Errorf("plug in node %s: %w", n.Sliver, err)
	}
	return nil
}

func (s *Switch) plug(owner string, n drivers.Node, ns int) error {
	if len(n.Interfaces) == 0 {
		return nil
	}
	s.netMu.Lock()
	defer s.netMu.Unlock()
	s.mu.Lock()
	again := s.ports[n.Sliver.Canonical()] != nil
	s.mu.Unlock()
	var devices []string
	if again {
		var err error
		if devices, err = devicesOf(ns); err != nil {
			return err
		}
	}
	r, err := s.claim(owner, n)
	if err != nil {
		return err
	}
	for i, iface := range n.Interfaces {
		if slices.Contains(devices, iface.Device) {
			continue
		}
		s.mu.Lock()
		l := s.joined[endKey{n.Sliver.Canonical(), iface.Name}]
		s.mu.Unlock()
		bridge, shape, mtu := "", request.Shape{}, frameMTU
		if l != nil {
			if err := s.build(l); err != nil { // new after a reboot
				return err
			}
			end := drivers.End{Node: n.Sliver, Interface: iface.Name}
			bridge, shape, mtu = s.bridgeOf(l, end), s.portShape(l.Link, end), s.nodeMTU(l.Way)
		}
		mac := iface.MAC
		if len(mac) == 0 {
			mac = ownMAC(n.Sliver, iface.Name)
		}
		if err := s.fabric.addPort(portName(r.Slot, i), portIndex(r.Slot, i), portGroup(r.Slot), bridge, iface.Device, mtu, mac, ns); err != nil {
			return fmt.Errorf("interface %s: %w", iface.Name, err)
		}
		if err := setShape(s.fabric.handle, portIndex(r.Slot, i), shape); err != nil {
			return fmt.Errorf("interface %s: %w", iface.Name, err)
		}
	}
	return nil
}

// claim gives a node a slot for its ports. netMu is held.
func (s *Switch) claim(owner string, n drivers.Node) (*portRecord, error) {
	key := n.Sliver.Canonical()
	s.mu.Lock()
	r := s.ports[key]
	if r == nil {
		taken := map[int]bool{}
		for _, p := range s.ports {
			taken[p.Slot] = true
		}
		r = &portRecord{Slot: freeSlot(taken), Owner: owner}
	}
	r.Node = drivers.Node{Sliver: n.Sliver, Slice: n.Slice, Interfaces: n.Interfaces}
	s.ports[key] = r
	record := *r
	s.mu.Unlock()
	return r, records.Write(s.portFile(record.Slot), record, false)
}

// Unplug takes a node off its links, at once. Its interfaces lose their
// carrier and go with its network namespace.
func (s *Switch) Unplug(node urn.URN) error {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	key := node.Canonical()
	s.mu.Lock()
	r := s.ports[key]
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	if s.fabric.handle != nil {
		if err := s.fabric.shut(portGroup(r.Slot)); err != nil {
			return fmt.Errorf("unplug node %s: %w", node, err)
		}
	}
	s.mu.Lock()
	delete(s.ports, key)
	s.mu.Unlock()
	if err := s.forget(r); err != nil {
		return fmt.Errorf("unplug node %s: %w", node, err)
	}
	return s.tidy()
}

func (s *Switch) forget(r *portRecord) error { return removeFile(s.portFile(r.Slot)) }

// ownMAC makes up an address for an interface that was given none: a local
// one, the same at each start.
func ownMAC(sliver urn.URN, name request.ClientID) net.HardwareAddr {
	sum := sha256.Sum256([]byte(sliver.Canonical().String() + "\x00" + string(name)))
	return net.HardwareAddr{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]}
}

// devicesOf lists the interfaces in a network.
func devicesOf(ns int) ([]string, error) {
	var out []string
	err := InNetwork(ns, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		links, err := listLinks(h)
		for _, l := range links {
			out = append(out, l.Attrs().Name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	return out, nil
}

// configure gives the interfaces of a node their addresses. It runs inside
// the node's network.
func configure(interfaces []drivers.Interface) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("configure the interfaces: %w", err)
	}
	defer h.Close()
	list, err := listLinks(h)
	if err != nil {
		return fmt.Errorf("configure the interfaces: %w", err)
	}
	up := func(name string, addresses []netip.Prefix) error {
		at := slices.IndexFunc(list, func(l netlink.Link) bool { return l.Attrs().Name == name })
		if at < 0 {
			return fmt.Errorf("there is none of that name: %w", unix.ENODEV)
		}
		l := list[at]
		for _, a := range addresses {
			addr := netlink.Addr{IPNet: &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}}
			if a.Addr().Is6() {
				addr.Flags = unix.IFA_F_NODAD // usable at once; the addresses are the aggregate's to keep apart
			}
			if err := h.AddrAdd(l, &addr); err != nil && !errors.Is(err, unix.EEXIST) {
				return fmt.Errorf("address %s: %w", a, err)
			}
		}
		return h.LinkSetUp(l)
	}
	if err := up("lo", nil); err != nil {
		return fmt.Errorf("configure lo: %w", err)
	}
	for _, i := range interfaces {
		if err := up(i.Device, i.Addresses); err != nil {
			return fmt.Errorf("configure interface %s (%s): %w", i.Name, i.Device, err)
		}
	}
	return nil
}
