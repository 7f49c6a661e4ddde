package wiring

import (
	"fmt"
	"net/netip"
	"slices"

	"croft/drivers"
)

// Machine is one that nodes are on.
type Machine struct {
	Name string // for messages
	// Underlay is its address in the network between the machines, by which
	// VXLAN goes; zero for none.
	Underlay netip.Addr
	// Uplinks are its interfaces to the testbed's switches, by which links leave
	// with VLAN tags.
	Uplinks []string
	// Alone says that no other machine has nodes that its own can be linked to.
	Alone bool
}

// Part is what one machine has of a link.
type Part struct {
	Machine *Machine
	Link    drivers.Link // with the machine's ends only
	Way     Way
}

// Tunnelled reports whether the parts of a link are joined by VXLAN.
func Tunnelled(parts []Part) bool { return len(parts) > 0 && len(parts[0].Way.Peers) > 0 }

// Divide says what each machine has of a link whose ends are at the given
// machines, in the order of the machines' first ends. Machines are joined by the
// link's VLAN where it leaves all of them by uplinks, and else by VXLAN.
func Divide(l drivers.Link, at []*Machine) ([]Part, error) {
	var parts []Part
	for i, e := range l.Ends {
		k := slices.IndexFunc(parts, func(p Part) bool { return p.Machine == at[i] })
		if k < 0 {
			k = len(parts)
			one := l
			one.Ends = nil
			parts = append(parts, Part{Machine: at[i], Link: one})
		}
		p := &parts[k]
		p.Link.Ends = append(p.Link.Ends, e)
		if p.Way.Uplink == "" && l.VLAN != 0 && slices.Contains(at[i].Uplinks, e.Leaves) {
			p.Way.Uplink = e.Leaves
		}
	}
	for i := range parts {
		parts[i].Way.Machines = len(parts)
	}
	if l.SharedVLAN != "" {
		return parts, joinShared(l, parts)
	}
	tagged := len(parts) > 1 && !slices.ContainsFunc(parts, func(p Part) bool { return p.Way.Uplink == "" })
	for i := range parts {
		p := &parts[i]
		if tagged {
			p.Link.VNI = 0
			continue
		}
		p.Way.Uplink, p.Link.VLAN = "", 0
		if len(parts) == 1 {
			p.Link.VNI = 0
			continue
		}
		if !p.Machine.Underlay.IsValid() {
			return nil, fmt.Errorf("it would join machines (%s, %s), and %s has no address between machines: the operator gives one as its underlay in croft.yaml",
				parts[0].Machine.Name, parts[1].Machine.Name, p.Machine.Name)
		}
		p.Way.Local = p.Machine.Underlay
		for k := range parts {
			if k != i {
				p.Way.Peers = append(p.Way.Peers, parts[k].Machine.Underlay)
			}
		}
	}
	return parts, nil
}

// joinShared joins the parts of a link to a shared VLAN. What is not on one
// machine alone has to leave it by an uplink: that which the link leaves by, or
// the first.
func joinShared(l drivers.Link, parts []Part) error {
	for i := range parts {
		p := &parts[i]
		p.Link.VNI = 0
		switch {
		case l.VLAN != 0 && len(p.Machine.Uplinks) > 0:
			if p.Way.Uplink == "" {
				p.Way.Uplink = p.Machine.Uplinks[0]
			}
		case p.Machine.Alone:
		case l.VLAN == 0:
			return fmt.Errorf("the shared VLAN %q has no tag, without which it does not reach beyond one machine: the operator gives it one in the inventory", l.SharedVLAN)
		default:
			return fmt.Errorf("machine %s has no way to the shared VLAN %q: the operator names the interface to it under uplinks in croft.yaml", p.Machine.Name, l.SharedVLAN)
		}
	}
	return nil
}
