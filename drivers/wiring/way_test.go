package wiring_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/wiring"
	"croft/request"
	"croft/urn"
)

// machine is a machine of the tests: a network namespace, which an interface
// joins to the others, and a switch whose links leave by that.
type machine struct {
	*bench
	*wiring.Machine
	at    *host
	share *wiring.Share
	n     int
}

// newMachines makes machines and what joins them, which is the last host.
func newMachines(t *testing.T, count int) ([]*machine, *host) {
	needRoot(t)
	between := &host{t: t}
	between.boot()
	t.Cleanup(between.halt)
	ip := func(h *host, args ...string) {
		t.Helper()
		if out, err := h.run("ip", args...); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	ip(between, "link", "add", "br0", "type", "bridge")
	ip(between, "link", "set", "br0", "up")
	var list []*machine
	for n := 1; n <= count; n++ {
		at := &host{t: t}
		at.boot()
		t.Cleanup(at.halt)
		port := fmt.Sprintf("m%d", n)
		// Through the process's own descriptors: the namespaces have no names.
		ip(between, "link", "add", port, "type", "veth", "peer", "name", "up0", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), at.fd()))
		ip(between, "link", "set", port, "master", "br0", "up")
		ip(at, "link", "set", "lo", "up")
		ip(at, "addr", "add", fmt.Sprintf("192.0.2.%d/24", n), "dev", "up0")
		ip(at, "link", "set", "up0", "up")
		m := &machine{bench: newBenchIn(t, at.ns), at: at, n: n,
			Machine: &wiring.Machine{Name: port, Underlay: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), Uplinks: []string{"up0"}}}
		m.join()
		list = append(list, m)
	}
	return list, between
}

func (m *machine) join() {
	m.t.Helper()
	var err error
	m.share, err = m.sw.Join("ways", func(u urn.URN) (drivers.Node, bool) {
		h := m.hosts[u.Canonical()]
		if h == nil {
			return drivers.Node{}, false
		}
		return h.node, true
	}, nil)
	m.must(err)
}

// again closes a machine's switch and opens it, as a manager that starts does.
func (m *machine) again() {
	m.t.Helper()
	m.open()
	m.join()
	m.must(m.share.Sweep(func(urn.URN) bool { return true }))
}

// of makes a host of a slice on a machine. It takes part in link 1.
func (m *machine) of(slice string, number int) *host {
	h := m.host(number, 1)
	h.node.Slice.Name = slice
	return h
}

// connect makes a link of hosts on machines, and returns its parts.
func connect(t *testing.T, l drivers.Link, at ...*machine) []wiring.Part {
	t.Helper()
	var machines []*wiring.Machine
	for _, m := range at {
		machines = append(machines, m.Machine)
	}
	parts, err := wiring.Divide(l, machines)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		for _, m := range at {
			if m.Machine == p.Machine {
				if err := m.share.Connect(p.Link, p.Way); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
	return parts
}

// TestTunnel joins three hosts on three machines.
func TestTunnel(t *testing.T) {
	ms, _ := newMachines(t, 3)
	var hosts []*host
	for i, m := range ms {
		hosts = append(hosts, m.of("s", i+1))
	}
	l := link(1, hosts...)
	l.VNI = 5001
	connect(t, l, ms...)
	for i, m := range ms {
		m.plug(hosts[i])
	}
	all := func(when string) {
		t.Helper()
		for i, h := range hosts {
			if err := h.reaches(1, hosts[(i+1)%len(hosts)]); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	all("when it is made")
	if out, err := hosts[0].run("ip", "-o", "link", "show", "eth1"); err != nil || !strings.Contains(out, " mtu 1450 ") {
		t.Errorf("the interface is %s, %v: want an MTU of 1450", out, err)
	}
	// Who sends more gets it through all the same, in fragments.
	if out, err := hosts[0].run("ping", "-n", "-c", "1", "-W", "5", "-s", "4000", address(1, 2).Addr().String()); err != nil {
		t.Errorf("large packets: %v: %s", err, out)
	}
	ms[0].again()
	all("after a restart of the manager")
	// A second link of the same identifier cannot be.
	other := ms[0].of("r", 9)
	bad := link(1, other)
	bad.Sliver, bad.VNI = sliver("bad"), 5001
	err := ms[0].share.Connect(bad, wiring.Way{Local: ms[0].Underlay, Peers: []netip.Addr{ms[1].Underlay}, Machines: 2})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("an identifier twice: %v", err)
	}
	for _, m := range ms {
		m.must(m.share.Disconnect(l.Sliver))
	}
	// Its identifier is free at once.
	connect(t, l, ms...)
	all("when it is made again")
}

// TestSharedVLAN joins slices on machines by a shared VLAN, with its tag.
func TestSharedVLAN(t *testing.T) {
	ms, between := newMachines(t, 2)
	a, b, c, d := ms[0].of("a", 1), ms[1].of("b", 2), ms[1].of("c", 3), ms[0].of("d", 4)
	on := func(number int, h *host, m *machine, vlan string, tag int) drivers.Link {
		t.Helper()
		l := link(1, h)
		l.Sliver, l.SharedVLAN, l.VLAN = sliver(fmt.Sprintf("l%d", number)), vlan, tag
		connect(t, l, m)
		m.plug(h)
		return l
	}
	on(1, a, ms[0], "campus", 120)
	on(2, b, ms[1], "campus", 120)
	on(3, c, ms[1], "lab", 121)
	last := on(4, d, ms[0], "campus", 120)
	heard := listen(between, "m1")
	for _, to := range []*host{b, d} {
		if err := a.reaches(1, to); err != nil {
			t.Error(err)
		}
	}
	tags := map[int]bool{}
	for _, f := range heard() {
		if binary.BigEndian.Uint16(f.data[12:]) == unix.ETH_P_ARP {
			tags[f.tag] = true
		}
	}
	if !tags[120] || len(tags) != 1 {
		t.Errorf("ARP leaves with the tags %v, want 120", tags)
	}
	if !c.apart(1, a) {
		t.Error("a shared VLAN hears another one")
	}
	ms[0].must(ms[0].share.Disconnect(last.Sliver))
	if !a.apart(1, d) {
		t.Error("a link that was removed is still in the shared VLAN")
	}
	if err := a.reaches(1, b); err != nil {
		t.Errorf("when another link has left: %v", err)
	}
	ms[0].again()
	if err := a.reaches(1, b); err != nil {
		t.Errorf("after a restart of the manager: %v", err)
	}
	for _, m := range ms {
		for _, l := range m.sw.Links() {
			m.must(m.sw.Disconnect(l.Sliver))
		}
		if out, err := m.at.run("ip", "-o", "link"); err != nil || strings.Contains(out, "croft") {
			t.Errorf("left on a machine: %s, %v", out, err)
		}
	}
}

// TestNothingCrosses has hosts of all kinds of links send whatever may go
// astray, and sees who hears it.
func TestNothingCrosses(t *testing.T) {
	ms, _ := newMachines(t, 2)
	type party struct {
		segment string
		h       *host
		heard   func() []frame
	}
	var all []party
	add := func(segment string, l drivers.Link, hosts []*host, at ...*machine) {
		t.Helper()
		for i, h := range hosts {
			l.Ends = append(l.Ends, drivers.End{Node: h.node.Sliver, Interface: request.ClientID("if1")})
			l.Slice = h.node.Slice
			all = append(all, party{segment: segment, h: h})
			defer at[i].plug(h)
		}
		l.Sliver = sliver(fmt.Sprintf("link%d", len(all)))
		connect(t, l, at...)
	}
	one, two := ms[0], ms[1]
	add("tunnel of a", drivers.Link{VNI: 5001}, []*host{one.of("a", 1), two.of("a", 2)}, one, two)
	add("tunnel of b", drivers.Link{VNI: 5002}, []*host{one.of("b", 3), two.of("b", 4)}, one, two)
	add("within a machine", drivers.Link{}, []*host{one.of("c", 5), one.of("c", 6)}, one, one)
	add("within a machine, another", drivers.Link{}, []*host{one.of("d", 7), one.of("d", 8)}, one, one)
	add("VLAN 120", drivers.Link{VLAN: 120, SharedVLAN: "campus"}, []*host{one.of("e", 9)}, one)
	add("VLAN 120", drivers.Link{VLAN: 120, SharedVLAN: "campus"}, []*host{two.of("f", 10)}, two)
	add("VLAN 121", drivers.Link{VLAN: 121, SharedVLAN: "lab"}, []*host{one.of("g", 11)}, one)
	add("VLAN 121", drivers.Link{VLAN: 121, SharedVLAN: "lab"}, []*host{two.of("h", 12)}, two)
	for i := range all {
		all[i].heard = listen(all[i].h, "eth1")
	}
	outside := listen(one.at, "up0")
	for i, p := range all {
		for _, f := range stray(i) {
			inject(t, p.h, "eth1", f)
		}
	}
	// A segment's own hosts hear all of it, the others nothing.
	const kinds = 7
	for i, p := range all {
		want := map[int]int{}
		for k, o := range all {
			if k != i && o.segment == p.segment {
				want[k] = kinds
			}
		}
		got := map[int]int{}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			for _, f := range p.heard() {
				if from, is := strayFrom(f.data); is {
					got[from]++
				}
			}
			if fmt.Sprint(got) == fmt.Sprint(want) || time.Now().After(deadline) {
				break
			}
		}
		for from, n := range got {
			if want[from] == 0 {
				t.Errorf("host %d (%s) hears %d frames of host %d (%s)", i, p.segment, n, from, all[from].segment)
			}
		}
		for from, n := range want {
			if got[from] < n {
				t.Errorf("host %d (%s) hears %d of %d frames of host %d, in its own segment", i, p.segment, got[from], n, from)
			}
		}
	}
	// The network between the machines sees what leaves in VXLAN and with tags,
	// and nothing as it is.
	for _, f := range outside() {
		if _, is := strayFrom(f.data); is && f.tag != 120 && f.tag != 121 && !bytes.Contains(f.data[:42], []byte{0x12, 0xb5}) {
			t.Errorf("a frame leaves as it is: %x", f.data[:min(len(f.data), 64)])
		}
	}
}

const strayMark = "croft stray "

// stray is what a host sends that wants to be heard by others: each kind once.
func stray(from int) [][]byte {
	mark := fmt.Appendf(nil, "%s%03d.", strayMark, from)
	broadcast := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	source := net.HardwareAddr{2, 0, 0, 9, 9, byte(from)}
	frame := func(to net.HardwareAddr, kind uint16, head ...byte) []byte {
		f := append(append([]byte{}, to...), source...)
		f = binary.BigEndian.AppendUint16(f, kind)
		return append(append(f, head...), mark...)
	}
	ip := []byte{0x45, 0, 0, 44, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 1, byte(from), 255, 255, 255, 255, 0, 9, 0, 9, 0, 24, 0, 0}
	// Bridges drop packets whose checksum is wrong.
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	ip6 := append([]byte{0x60, 0, 0, 0, 0, 16, 59, 64, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(from)},
		0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	arp := []byte{0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 9, 9, byte(from), 10, 0, 1, byte(from), 0, 0, 0, 0, 0, 0, 10, 0, 1, 2}
	return [][]byte{
		frame(broadcast, unix.ETH_P_ARP, arp...),
		frame(broadcast, unix.ETH_P_IP, ip...),
		frame(net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, unix.ETH_P_IPV6, ip6...),
		frame(broadcast, 0x88b5),
		frame(net.HardwareAddr{2, 0, 0, 1, 2, 3}, 0x88b5), // to nobody: flooded
		frame(broadcast, unix.ETH_P_8021Q, 0, 120, 0x88, 0xb5),
		frame(broadcast, unix.ETH_P_8021Q, 0, 121, 0x88, 0xb5),
	}
}

func strayFrom(data []byte) (from int, is bool) {
	_, rest, is := bytes.Cut(data, []byte(strayMark))
	if !is {
		return 0, false
	}
	_, err := fmt.Sscanf(string(rest[:min(3, len(rest))]), "%d", &from)
	return from, err == nil
}

// inject sends a frame by an interface of a host.
func inject(t *testing.T, h *host, device string, data []byte) {
	t.Helper()
	err := wiring.InNetwork(h.fd(), func() error {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, data, 0, &unix.SockaddrLinklayer{Ifindex: i.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// frame is what came by an interface; the tag is that which the kernel has
// taken off it, 0 for none.
type frame struct {
	data []byte
	tag  int
}

// listen hears all that comes in by an interface of a host. The function returns
// what has come since it was last called.
func listen(h *host, device string) func() []frame {
	h.t.Helper()
	fd := -1
	err := wiring.InNetwork(h.fd(), func() error {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		all := uint16(unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8)
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index})
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { unix.Close(fd) })
	return func() []frame {
		var out []frame
		for {
			data, aux := make([]byte, 2048), make([]byte, 256)
			n, auxN, _, _, err := unix.Recvmsg(fd, data, aux, 0)
			if err != nil {
				return out
			}
			f := frame{data: data[:n]}
			messages, _ := unix.ParseSocketControlMessage(aux[:auxN])
			for _, m := range messages {
				const tagAt, validAt, valid = 16, 0, unix.TP_STATUS_VLAN_VALID
				if m.Header.Type == unix.PACKET_AUXDATA && len(m.Data) >= 20 && binary.NativeEndian.Uint32(m.Data[validAt:])&valid != 0 {
					f.tag = int(binary.NativeEndian.Uint16(m.Data[tagAt:]) & 0xfff)
				}
			}
			out = append(out, f)
		}
	}
}
