package wiring

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"croft/drivers"
)

// Way is how a link goes on beyond its machine: to other machines by VXLAN
// (RFC 7348) with the link's VNI, or by an interface of the machine with the
// link's VLAN tag. The zero Way is that of a link within the machine. A link
// with a shared VLAN is joined to all others with the same, on the machine too.
type Way struct {
	// Local is the machine's address in the network between the machines, Peers
	// are those of the link's other machines; none without VXLAN.
	Local netip.Addr   `json:",omitzero"`
	Peers []netip.Addr `json:",omitempty"`
	// Uplink is the interface of the machine that the link leaves by; "" for
	// none.
	Uplink string `json:",omitempty"`
	// Machines is how many have a part of the link.
	Machines int `json:",omitempty"`
}

const (
	// tunnelPort is that of VXLAN at IANA.
	tunnelPort = 4789
	// Bytes that a tunnel adds to a frame: its own header, UDP's and IP's, and
	// that of the frame within.
	tunnelRoom4, tunnelRoom6 = 50, 70

	maxVNI = 1<<24 - 1
	maxTag = 4094

	// frameMTU is that of links within a machine.
	frameMTU = 1500
)

// check refuses a way that a link cannot go.
func (w Way) check(l drivers.Link) error {
	switch {
	case len(w.Peers) > 0 && (l.VNI < 1 || l.VNI > maxVNI):
		return fmt.Errorf("it goes to other machines, and %d is no VXLAN identifier", l.VNI)
	case len(w.Peers) > 0 && (!w.Local.IsValid() || slices.ContainsFunc(w.Peers, func(p netip.Addr) bool { return p.Is4() != w.Local.Is4() })):
		return errors.New("the addresses of its machines are not all there, or of different kinds")
	case w.Uplink != "" && (l.VLAN < 1 || l.VLAN > maxTag):
		return fmt.Errorf("it leaves by %s, and %d is no VLAN tag", w.Uplink, l.VLAN)
	case w.Uplink != "" && len(w.Peers) > 0:
		return errors.New("it leaves by an interface and by VXLAN")
	}
	return nil
}

// goesOn reports whether a link may have more ends than those it names: on
// other machines, or of other links.
func goesOn(l drivers.Link) bool { return l.VNI != 0 || l.VLAN != 0 || l.SharedVLAN != "" }

func tunnelName(link int) string { return "t" + strconv.Itoa(link) }

// segmentName names the bridge of a shared VLAN.
func segmentName(vlan string) string {
	sum := sha256.Sum256([]byte(vlan))
	return "s" + hex.EncodeToString(sum[:5])
}

// trunkName names the inner end of what leads to an uplink; of is the bridge.
func trunkName(of string) string { return "p" + of }

// segmentPair names the ends of what joins a link to its segment.
func segmentPair(link int) (near, far string) {
	return "j" + strconv.Itoa(link), "k" + strconv.Itoa(link)
}

// wayParts names what the way of a link has in the switch. Of a shared VLAN it
// has the segment together with all others that are in it.
func wayParts(r *linkRecord) (own, segment []string) {
	if len(r.Way.Peers) > 0 {
		own = append(own, tunnelName(r.Slot))
	}
	if r.Link.SharedVLAN != "" {
		near, far := segmentPair(r.Slot)
		name := segmentName(r.Link.SharedVLAN)
		return append(own, near, far), []string{name, trunkName(name)}
	}
	if r.Way.Uplink != "" {
		own = append(own, trunkName(bridgeName(r.Slot)))
	}
	return own, nil
}

// lastIn reports whether no other link is in the segment of a link.
func (s *Switch) lastIn(r *linkRecord) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.links {
		if o != r && o.Link.SharedVLAN == r.Link.SharedVLAN {
			return false
		}
	}
	return true
}

// buildWay makes the way of a link, whose bridge is there, or what of it is
// missing. netMu is held.
func (s *Switch) buildWay(r *linkRecord) error {
	bridge := bridgeName(r.Slot)
	if len(r.Way.Peers) > 0 {
		if err := s.addTunnel(tunnelName(r.Slot), bridge, r.Link.VNI, r.Way); err != nil {
			return err
		}
	}
	if r.Link.SharedVLAN != "" {
		segment := segmentName(r.Link.SharedVLAN)
		if err := s.fabric.addBridge(segment); err != nil {
			return err
		}
		near, far := segmentPair(r.Slot)
		if err := s.fabric.addPair(near, bridge, far, segment); err != nil {
			return err
		}
		bridge = segment
	}
	if r.Way.Uplink != "" {
		return s.addTrunk(trunkName(bridge), bridge, r.Way.Uplink, r.Link.VLAN)
	}
	return nil
}

// leaveWay removes the way of a link, at once: others may get its identifier,
// its tag or its shared VLAN right afterwards. netMu is held.
func (s *Switch) leaveWay(r *linkRecord) error {
	names, segment := wayParts(r)
	last := segment == nil || s.lastIn(r)
	if last {
		names = append(names, segment...)
	}
	if r.Way.Uplink != "" && last {
		if err := s.removeTrunk(r.Way.Uplink, r.Link.VLAN); err != nil {
			return err
		}
	}
	for _, name := range names {
		delete(s.fabric.bridges, name)
	}
	if len(names) == 0 {
		return nil
	}
	return s.fabric.erase(names...)
}

// ways reports why no link can go a way on this machine, or nil.
func (s *Switch) ways(w Way) error {
	if w.Uplink == "" && len(w.Peers) == 0 {
		return nil
	}
	h, err := s.outside()
	if err != nil {
		return err
	}
	defer h.Close()
	if w.Uplink != "" {
		if _, err := h.LinkByName(w.Uplink); err != nil {
			return fmt.Errorf("this machine has no interface %s to leave by: %w", w.Uplink, err)
		}
		return nil
	}
	found := false
	err = InNetwork(int(s.machine.Fd()), func() error {
		addresses, err := net.InterfaceAddrs()
		for _, a := range addresses {
			p, parseErr := netip.ParsePrefix(a.String())
			found = found || parseErr == nil && p.Addr().WithZone("") == w.Local
		}
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("no interface of this machine has the address %s, which links to other machines go by", w.Local)
	}
	return err
}

// outside opens the network of the machine.
func (s *Switch) outside() (*netlink.Handle, error) {
	var h *netlink.Handle
	err := InNetwork(int(s.machine.Fd()), func() error {
		var err error
		h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the network of the machine: %w", err)
	}
	return h, nil
}

// addTunnel makes the VXLAN of a link. Its packets are sent and received in the
// network of the machine; its frames come out in the switch.
func (s *Switch) addTunnel(name, bridge string, vni int, w Way) error {
	if _, err := s.fabric.handle.LinkByName(name); err == nil {
		return nil
	}
	h, err := s.outside()
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	// Frames of full size pass: what the network between the machines cannot
	// take is sent in fragments. Nodes are told to send less (see nodeMTU).
	attrs.Name, attrs.MTU, attrs.Namespace = name, frameMTU, netlink.NsFd(int(s.fabric.ns))
	err = h.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: vni, SrcAddr: w.Local.AsSlice(), Port: tunnelPort, Learning: true})
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("the VXLAN identifier %d is in use on this machine, by somebody else", vni)
	}
	if err != nil {
		return fmt.Errorf("make the VXLAN %d: %w", vni, err)
	}
	// It has no carrier until it knows where to send.
	t, err := s.fabric.handle.LinkByName(name)
	for _, peer := range w.Peers {
		if err == nil {
			err = s.fabric.handle.NeighAppend(&netlink.Neigh{
				LinkIndex: t.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT | netlink.NUD_NOARP,
				Flags: netlink.NTF_SELF, IP: peer.AsSlice(), HardwareAddr: make(net.HardwareAddr, 6),
			})
		}
	}
	var index int
	if err == nil {
		index, err = s.fabric.bridge(bridge)
	}
	if err == nil {
		err = s.fabric.handle.LinkSetMasterByIndex(t, index)
	}
	if err == nil {
		err = s.fabric.handle.LinkSetUp(t)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("set up the VXLAN %d: %w", vni, err), s.fabric.erase(name))
	}
	return nil
}

// nodeMTU is what interfaces of nodes in a link send at most.
func (s *Switch) nodeMTU(w Way) int {
	if len(w.Peers) == 0 {
		return frameMTU
	}
	room := tunnelRoom4
	if w.Local.Is6() {
		room = tunnelRoom6
	}
	return min(frameMTU, s.underlayMTU(w.Local)-room)
}

// underlayMTU is that of the machine's interface with an address.
func (s *Switch) underlayMTU(local netip.Addr) int {
	mtu := frameMTU
	err := InNetwork(int(s.machine.Fd()), func() error {
		list, err := net.Interfaces()
		for _, i := range list {
			addresses, _ := i.Addrs()
			for _, a := range addresses {
				if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().WithZone("") == local {
					mtu = i.MTU
				}
			}
		}
		return err
	})
	if err != nil {
		s.log.Warn("look for the network between the machines", "address", local.String(), "err", err)
	}
	return mtu
}
