package namespace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"croft/drivers"
)

// fabric is the network namespace with the bridges of the links and the outer
// ends of the nodes' interfaces (their ports). It is made when the first port
// or link is, and goes with the last. Its user serializes calls.
type fabric struct {
	pin    string // file that the namespace is mounted on, so that it outlives the manager
	ns     netns.NsHandle
	handle *netlink.Handle // nil while there is no fabric
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
	f.ns, f.handle = ns, h
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
	made := make(chan error, 1)
	go func() {
		// The thread is never unlocked: it ends with the goroutine, and with
		// it its hold on the new namespace.
		runtime.LockOSThread()
		made <- func() error {
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
			own := fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
			return unix.Mount(own, f.pin, "", unix.MS_BIND, "")
		}()
	}()
	if err := <-made; err != nil {
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
	// One by one, in case that something else on the machine keeps the
	// namespace alive.
	links, err := f.handle.LinkList()
	if err != nil {
		return fmt.Errorf("list the network of the links: %w", err)
	}
	for _, l := range links {
		if l.Type() == "bridge" || l.Type() == "veth" {
			f.handle.LinkDel(l)
		}
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
	links, err := f.handle.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the network of the links: %w", err)
	}
	var out []string
	for _, l := range links {
		if l.Type() == "bridge" || l.Type() == "veth" {
			out = append(out, l.Attrs().Name)
		}
	}
	return out, nil
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

// addPort makes an interface of the node whose init is pid, on a bridge, or
// without a carrier when bridge is "".
func (f *fabric) addPort(port, bridge, device string, mac net.HardwareAddr, pid int) error {
	if err := f.ensure(); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = port, 1500
	if bridge != "" {
		b, err := f.handle.LinkByName(bridge)
		if err != nil {
			return fmt.Errorf("find bridge %s: %w", bridge, err)
		}
		attrs.MasterIndex, attrs.Flags = b.Attrs().Index, net.FlagUp
	}
	err := f.handle.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: device, PeerHardwareAddr: mac, PeerMTU: 1500, PeerNamespace: netlink.NsPid(pid),
	})
	if err != nil {
		return fmt.Errorf("make interface %s: %w", device, err)
	}
	return nil
}

// plug puts a port on a bridge, or takes it off ("").
func (f *fabric) plug(port, bridge string) error {
	p, err := f.handle.LinkByName(port)
	if err != nil {
		return fmt.Errorf("find port %s: %w", port, err)
	}
	if bridge == "" {
		if err := errors.Join(f.handle.LinkSetDown(p), f.handle.LinkSetNoMaster(p)); err != nil {
			return fmt.Errorf("unplug %s: %w", port, err)
		}
		return nil
	}
	b, err := f.handle.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("find bridge %s: %w", bridge, err)
	}
	if err := f.handle.LinkSetMaster(p, b); err != nil {
		return fmt.Errorf("plug %s into %s: %w", port, bridge, err)
	}
	if err := f.handle.LinkSetUp(p); err != nil {
		return fmt.Errorf("plug %s into %s: %w", port, bridge, err)
	}
	return nil
}

// del removes a port or a bridge; it may be gone already.
func (f *fabric) del(name string) error {
	if f.handle == nil {
		return nil
	}
	l, err := f.handle.LinkByName(name)
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		return nil
	}
	if err == nil {
		err = f.handle.LinkDel(l)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// inNetwork runs f on a thread that is in the network namespace of a process,
// so that the sockets it opens belong there. The thread ends afterwards.
func inNetwork(p *initProcess, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := p.control(func(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) })
		if err != nil {
			done <- fmt.Errorf("enter the node's network: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// configure gives the interfaces of a node their addresses. It runs inside
// the node's network.
func configure(interfaces []drivers.Interface) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("configure the interfaces: %w", err)
	}
	defer h.Close()
	up := func(name string, addresses []netip.Prefix) error {
		l, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		for _, a := range addresses {
			addr := netlink.Addr{IPNet: &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}}
			if a.Addr().Is6() {
				addr.Flags = unix.IFA_F_NODAD // usable at once; the addresses are the aggregate's to keep apart
			}
			if err := h.AddrAdd(l, &addr); err != nil {
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

// dialIn connects from inside a node. The address is literal: a name would be
// looked up on the host.
func dialIn(ctx context.Context, p *initProcess, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") && !strings.HasPrefix(network, "udp") {
		return nil, fmt.Errorf("dial %s %s: want tcp or udp", network, address)
	}
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("dial %s: want an IP address and a port: %w", address, err)
	}
	var conn net.Conn
	err := inNetwork(p, func() error {
		var d net.Dialer
		var err error
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}
