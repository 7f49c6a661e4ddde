package wiring

import (
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/request"
)

// A shaped end of a link has a bridge of its own, which its port is plugged
// into. Between that and the link's bridge is a veth pair, whose two ends do
// the shaping, each of what it sends. So it does not matter to them when ports
// come and go, and nodes have no hand in it.
//
//	port — l7.1 — y7.1 ═ x7.1 — l7              the kernel shapes
//	port — l7.1 — y7.1 ═ v7.1 ~ relay ~ u7.1 ═ x7.1 — l7
//
// A link of two ends that the kernel shapes has no legs: its ports do it, which
// is a third of the work when links come and go.

func legBridge(link, end int) string { return bridgeName(link) + "." + strconv.Itoa(end) }

func legEnd(letter string, link, end int) string {
	return letter + strconv.Itoa(link) + "." + strconv.Itoa(end)
}

// legs are the legs that a link has.
func (s *Switch) legs(l drivers.Link) []leg {
	legs := plan(l)
	if len(l.Ends) == 2 && !goesOn(l) && len(legs) > 0 {
		if k, err := s.kernel(); err == nil && !k.relayed(legs[0]) {
			return nil
		}
	}
	return legs
}

// portShape is what the port of an end does to what it sends to its node, in a
// link without legs.
func (s *Switch) portShape(l drivers.Link, e drivers.End) request.Shape {
	legs := plan(l)
	switch {
	case len(legs) == 0 || len(s.legs(l)) > 0:
		return request.Shape{}
	case keyOf(l.Ends[legs[0].end]) == keyOf(e):
		return legs[0].back
	}
	return legs[0].out
}

// linkParts names all that a link may have in the switch.
func (s *Switch) linkParts(r *linkRecord) []string {
	out := []string{bridgeName(r.Slot)}
	for _, leg := range s.legs(r.Link) {
		out = append(out, legBridge(r.Slot, leg.end))
		for _, letter := range []string{"x", "y", "u", "v"} {
			out = append(out, legEnd(letter, r.Slot, leg.end))
		}
	}
	return out
}

// bridgeOf names the bridge that the port of an end belongs in.
func (s *Switch) bridgeOf(r *linkRecord, e drivers.End) string {
	for _, leg := range s.legs(r.Link) {
		if keyOf(r.Link.Ends[leg.end]) == keyOf(e) {
			return legBridge(r.Slot, leg.end)
		}
	}
	return bridgeName(r.Slot)
}

// build makes what a link has in the switch beside its ports, or what of it is
// missing. netMu is held.
func (s *Switch) build(r *linkRecord) error {
	if s.fabric.handle != nil && s.built[r.Slot] {
		return nil
	}
	if err := s.fabric.addBridge(bridgeName(r.Slot)); err != nil {
		return err
	}
	if err := s.buildWay(r); err != nil {
		return err
	}
	if len(plan(r.Link)) > 0 {
		k, err := s.kernel()
		if err == nil {
			err = shapes(r.Link, k)
		}
		if err == nil {
			err = s.buildLegs(r, s.legs(r.Link), k)
		}
		if err != nil {
			return err
		}
	}
	s.built[r.Slot] = true
	return nil
}

func (s *Switch) buildLegs(r *linkRecord, legs []leg, k kernel) error {
	var relayed []leg
	for _, leg := range legs {
		near, far := legEnd("y", r.Slot, leg.end), legEnd("x", r.Slot, leg.end)
		if err := s.fabric.addBridge(legBridge(r.Slot, leg.end)); err != nil {
			return err
		}
		if k.relayed(leg) {
			relayed = append(relayed, leg)
			err := errors.Join(
				s.fabric.addPair(near, legBridge(r.Slot, leg.end), legEnd("v", r.Slot, leg.end), ""),
				s.fabric.addPair(far, bridgeName(r.Slot), legEnd("u", r.Slot, leg.end), ""),
				s.fabric.wireOnly(near, far))
			if err != nil {
				return err
			}
			continue
		}
		if err := s.fabric.addPair(near, legBridge(r.Slot, leg.end), far, bridgeName(r.Slot)); err != nil {
			return err
		}
		if err := s.fabric.shape(near, far, leg); err != nil {
			return err
		}
	}
	if len(relayed) > 0 {
		return s.startRelay(r, relayed)
	}
	return nil
}

// addPair makes a veth pair within the switch, each end on a bridge or ("") on
// none.
func (f *fabric) addPair(a, aBridge, b, bBridge string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = a, 1500
	err := f.handle.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: b, PeerMTU: 1500})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make the pair of %s and %s: %w", a, b, err)
	}
	for _, end := range []struct{ name, bridge string }{{a, aBridge}, {b, bBridge}} {
		l, err := f.handle.LinkByName(end.name)
		if err == nil && end.bridge != "" {
			var index int
			if index, err = f.bridge(end.bridge); err == nil {
				err = f.handle.LinkSetMasterByIndex(l, index)
			}
		}
		if err == nil {
			err = f.handle.LinkSetUp(l)
		}
		if err != nil {
			return fmt.Errorf("set up %s: %w", end.name, err)
		}
	}
	return nil
}

// shape has the kernel shape what goes through a pair.
func (f *fabric) shape(near, far string, leg leg) error {
	out, err := f.handle.LinkByName(near)
	if err == nil {
		err = setShape(f.handle, out.Attrs().Index, leg.out)
	}
	var back netlink.Link
	if err == nil {
		back, err = f.handle.LinkByName(far)
	}
	if err == nil {
		err = setShape(f.handle, back.Attrs().Index, leg.back)
	}
	if err != nil {
		return fmt.Errorf("shape %s and %s: %w", near, far, err)
	}
	return nil
}

// Commands of ethtool (linux/ethtool.h) that switch something on or off.
const (
	setTxChecksum = 0x17
	setScatter    = 0x19
	setTSO        = 0x1f
	setGSO        = 0x24
)

// wireOnly makes interfaces send frames as they would be on a wire: cut to
// size, with their checksums.
func (f *fabric) wireOnly(names ...string) error {
	return InNetwork(int(f.ns), func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, name := range names {
			for _, command := range []uint32{setTSO, setGSO, setTxChecksum, setScatter} {
				value := struct{ command, data uint32 }{command, 0}
				ifreq, err := unix.NewIfreq(name)
				if err != nil {
					return err
				}
				req := struct {
					name [unix.IFNAMSIZ]byte
					data unsafe.Pointer
					_    [16]byte
				}{data: unsafe.Pointer(&value)}
				copy(req.name[:], ifreq.Name())
				_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
				if e != 0 && e != unix.EOPNOTSUPP {
					return fmt.Errorf("switch off the offloads of %s: %w", name, e)
				}
			}
		}
		return nil
	})
}
