package wiring

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"croft/request"
)

// fabric is the network namespace with the bridges of the links and the outer
// ends of the nodes' interfaces (their ports). It is made when the first port
// or link is, and goes with the last. Its user serializes calls.
type fabric struct {
	pin     string // file that the namespace is mounted on, so that it outlives the manager
	ns      netns.NsHandle
	handle  *netlink.Handle // nil while there is no fabric
	bridges map[string]int  // indices of bridges that were looked up
}

func portName(node, i int) string { return "n" + strconv.Itoa(node) + "." + strconv.Itoa(i) }

func bridgeName(link int) string { return "l" + strconv.Itoa(link) }

// adopt takes over a fabric that an earlier manager has left.
func (f *fabric) adopt() error {
	var st unix.Statfs_t
	err := unix.Statfs(f.pin, &st)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", f.pin, err)
	}
	if st.Type != unix.NSFS_MAGIC {
		// Of before a reboot, or from a manager that ended while it made it.
		if err := os.Remove(f.pin); err != nil {
			return fmt.Errorf("remove the old %s: %w", f.pin, err)
		}
		return nil
	}
	return f.use()
}

// use opens the pinned namespace.
func (f *fabric) use() error {
	ns, err := netns.GetFromPath(f.pin)
	if err != nil {
		return fmt.Errorf("open the network of the links: %w", err)
	}
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		ns.Close()
		return fmt.Errorf("open the network of the links: %w", err)
	}
	f.ns, f.handle, f.bridges = ns, h, map[string]int{}
	return nil
}

// ensure makes the fabric, if there is none.
func (f *fabric) ensure() error {
	if f.handle != nil {
		return nil
	}
	file, err := os.OpenFile(f.pin, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make the network of the links: %w", err)
	}
	file.Close()
	err = OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		for _, set := range []struct{ name, value string }{
			// No address ever, also no link-local one: bridges forward
			// frames and say nothing themselves.
			{"ipv6/conf/all/disable_ipv6", "1"},
			{"ipv6/conf/default/disable_ipv6", "1"},
			{"ipv4/ip_forward", "0"},
		} {
			err := os.WriteFile("/proc/sys/net/"+set.name, []byte(set.value), 0)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("set %s: %w", set.name, err)
			}
		}
		return unix.Mount("/proc/thread-self/ns/net", f.pin, "", unix.MS_BIND, "")
	})
	if err != nil {
		os.Remove(f.pin)
		return fmt.Errorf("make the network of the links: %w", err)
	}
	return f.use()
}

// remove ends the fabric and all that is left in it.
func (f *fabric) remove() error {
	if f.handle == nil {
		return nil
	}
	f.close()
	if err := unix.Unmount(f.pin, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("give up the network of the links: %w", err)
	}
	if err := os.Remove(f.pin); err != nil {
		return fmt.Errorf("give up the network of the links: %w", err)
	}
	return nil
}

// close lets go of the fabric, which stays.
func (f *fabric) close() {
	if f.handle != nil {
		f.handle.Close()
		f.ns.Close()
		f.handle = nil
	}
}

// names lists what is in the fabric, ports and bridges.
func (f *fabric) names() ([]string, error) {
	if f.handle == nil {
		return nil, nil
	}
	links, err := listLinks(f.handle)
	if err != nil {
		return nil, fmt.Errorf("list the network of the links: %w", err)
	}
	var out []string
	for _, l := range links {
		if l.Type() == "bridge" || l.Type() == "veth" || l.Type() == "vxlan" {
			out = append(out, l.Attrs().Name)
		}
	}
	return out, nil
}

// listLinks lists the interfaces of a network. The kernel says when they
// changed while it did, and the list begins anew.
func listLinks(h *netlink.Handle) ([]netlink.Link, error) {
	for {
		links, err := h.LinkList()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return links, err
		}
	}
}

func (f *fabric) addBridge(name string) error {
	if err := f.ensure(); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Flags = name, net.FlagUp
	snooping := false
	// A wire between the nodes carries also what an ordinary bridge keeps to
	// itself (LLDP and the like), except what the kernel never lets through.
	groups := uint16(0xfff8)
	err := f.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping, GroupFwdMask: &groups})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make bridge %s: %w", name, err)
	}
	return nil
}

// bridge finds the index of a bridge.
func (f *fabric) bridge(name string) (int, error) {
	if index, known := f.bridges[name]; known {
		return index, nil
	}
	b, err := f.handle.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("find bridge %s: %w", name, err)
	}
	f.bridges[name] = b.Attrs().Index
	return b.Attrs().Index, nil
}

// addPort makes an interface of the node whose network is ns, on a bridge, or
// without a carrier when bridge is "". The ports of a node have a group, by
// which they are shut.
func (f *fabric) addPort(port string, index int, group uint32, bridge, device string, mtu int, mac net.HardwareAddr, ns int) error {
	if err := f.ensure(); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Index, attrs.MTU, attrs.Group = port, index, frameMTU, group
	if bridge != "" {
		index, err := f.bridge(bridge)
		if err != nil {
			return err
		}
		attrs.MasterIndex, attrs.Flags = index, net.FlagUp
	}
	veth := &netlink.Veth{
		LinkAttrs: attrs, PeerName: device, PeerHardwareAddr: mac, PeerMTU: uint32(mtu), PeerNamespace: netlink.NsFd(ns),
	}
	err := f.handle.LinkAdd(veth)
	if errors.Is(err, unix.EEXIST) {
		// Of the node's last run: the kernel has not come to it yet.
		if err := f.erase(port); err != nil {
			return err
		}
		err = f.handle.LinkAdd(veth)
	}
	if err != nil {
		return fmt.Errorf("make interface %s: %w", device, err)
	}
	return nil
}

// shut takes the carrier off all ports of a node at once.
func (f *fabric) shut(group uint32) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Change = unix.IFF_UP
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(group)))
	if err := f.execute(req); err != nil && !isGone(err) {
		return fmt.Errorf("shut the ports of group %d: %w", group, err)
	}
	return nil
}

// plug puts a port, which shapes what it sends, on a bridge, or takes it off
// (""). A port may be missing:
// it goes with its node's network, at a time of the kernel's, and the node's
// root can remove the interface. It is plugged when the node starts again.
func (f *fabric) plug(port, bridge string, shape request.Shape) error {
	p, err := f.handle.LinkByName(port)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find port %s: %w", port, err)
	}
	if bridge == "" {
		err = f.handle.LinkSetDown(p) // a bridge that goes lets it loose
	} else {
		index, findErr := f.bridge(bridge)
		if findErr != nil {
			return findErr
		}
		// What it has of an earlier link goes. Mostly there is nothing.
		f.handle.QdiscDel(&netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: p.Attrs().Index, Parent: netlink.HANDLE_ROOT}})
		if err := setShape(f.handle, p.Attrs().Index, shape); err != nil {
			return err
		}
		err = f.handle.LinkSetMasterByIndex(p, index)
		if err == nil {
			err = f.handle.LinkSetUp(p)
		}
	}
	if err != nil && !isGone(err) {
		return fmt.Errorf("plug %s into %q: %w", port, bridge, err)
	}
	return nil
}

// isGone reports whether an error says that an interface does not exist.
func isGone(err error) bool {
	var none netlink.LinkNotFoundError
	return errors.As(err, &none) || errors.Is(err, unix.ENODEV)
}

// execute carries out a request in the fabric, on a connection of its own.
func (f *fabric) execute(req *nl.NetlinkRequest) error {
	e, err := f.eraser()
	if err != nil {
		return err
	}
	defer e.Close()
	return e.execute(req)
}

// eraser is a connection to the fabric for deletions. It may be used without
// the fabric's lock.
type eraser struct{ *nl.NetlinkSocket }

func (f *fabric) eraser() (eraser, error) {
	s, err := nl.GetNetlinkSocketAt(f.ns, netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return eraser{}, fmt.Errorf("open the network of the links: %w", err)
	}
	return eraser{s}, nil
}

func (e eraser) execute(req *nl.NetlinkRequest) error {
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: e.NetlinkSocket}}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// trashGroup is the group of what erase deletes.
const trashGroup = 1 << 30

// erase deletes ports and bridges, which may be gone already, in one step: the
// kernel takes tens of milliseconds for a deletion, of whatever size.
func (e eraser) erase(names ...string) error {
	for _, name := range names {
		req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
		req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
		req.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(trashGroup)))
		if err := e.execute(req); err != nil && !isGone(err) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	req := nl.NewNetlinkRequest(unix.RTM_DELLINK, unix.NLM_F_ACK)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(trashGroup)))
	if err := e.execute(req); err != nil && !isGone(err) {
		return fmt.Errorf("remove %q: %w", names, err)
	}
	return nil
}

// erase deletes ports and bridges at once.
func (f *fabric) erase(names ...string) error {
	if f.handle == nil {
		return nil
	}
	e, err := f.eraser()
	if err != nil {
		return err
	}
	defer e.Close()
	return e.erase(names...)
}

// portIndex numbers interface i of a node. Where both ends of a veth pair have
// one number, each in its network, the kernel takes up to a second to notice a
// carrier; nodes count from 1.
func portIndex(node, i int) int { return 1<<20 + node<<8 + i }

// portGroup numbers the group of a node's ports. 0 is the kernel's default.
func portGroup(node int) uint32 { return uint32(node) + 1 }
