package wiring_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/wiring"
	"croft/request"
	"croft/urn"
)

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: network namespaces need root (sudo go test …)")
	}
}

// host is a computer of the tests: a network namespace.
type host struct {
	t    testing.TB
	node drivers.Node
	ns   *os.File
}

// boot gives a host a new network namespace.
func (h *host) boot() {
	h.t.Helper()
	h.halt()
	err := wiring.OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		var err error
		h.ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) halt() {
	if h.ns != nil {
		h.ns.Close()
		h.ns = nil
	}
}

func (h *host) fd() int { return int(h.ns.Fd()) }

// run runs a command in a host's network.
func (h *host) run(command string, args ...string) (string, error) {
	var out []byte
	err := wiring.InNetwork(h.fd(), func() error {
		var err error
		out, err = exec.Command(command, args...).CombinedOutput()
		return err
	})
	return strings.TrimSpace(string(out)), err
}

func (h *host) reaches(link int, to *host) error {
	address := address(link, to.number()).Addr().String()
	// The first packet may be lost to address resolution.
	if _, err := h.run("ping", "-n", "-c", "1", "-W", "2", address); err == nil {
		return nil
	}
	out, err := h.run("ping", "-n", "-c", "2", "-i", "0.2", "-W", "2", address)
	if err != nil {
		return fmt.Errorf("%s does not reach %s over link %d: %w: %s", h.node.Hostname, to.node.Hostname, link, err, out)
	}
	return nil
}

// apart reports whether a host gets no answer of another one.
func (h *host) apart(link int, from *host) bool {
	_, err := h.run("ping", "-n", "-c", "1", "-W", "1", address(link, from.number()).Addr().String())
	return err != nil
}

func (h *host) number() int {
	var n int
	fmt.Sscanf(h.node.Hostname, "h%d", &n)
	return n
}

func sliver(name string) urn.URN { return urn.URN{Authority: "x", Type: urn.Sliver, Name: name} }

func address(link, number int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(link), byte(number)}), 24)
}

// bench is a switch with hosts around it.
type bench struct {
	t     testing.TB
	dir   string
	hosts map[urn.URN]*host
	sw    *wiring.Switch
	// outside is the network that links leave by; nil for that of the test.
	outside *os.File
}

func newBench(t testing.TB) *bench { return newBenchIn(t, nil) }

func newBenchIn(t testing.TB, outside *os.File) *bench {
	needRoot(t)
	b := &bench{t: t, dir: t.TempDir(), hosts: map[urn.URN]*host{}, outside: outside}
	b.open()
	t.Cleanup(func() {
		// Relays outlive the manager: links are taken apart, so that they end.
		for _, l := range b.sw.Links() {
			if err := b.sw.Disconnect(l.Sliver); err != nil {
				t.Errorf("taking a link apart: %v", err)
			}
		}
		b.sw.Close()
		for _, h := range b.hosts {
			h.halt()
		}
		unix.Unmount(filepath.Join(b.dir, "switch"), unix.MNT_DETACH)
	})
	return b
}

func (b *bench) open() {
	b.t.Helper()
	if b.sw != nil {
		b.sw.Close()
	}
	var err error
	b.sw, err = wiring.Open(wiring.Config{Dir: b.dir, Outside: b.outside, Nodes: func(u urn.URN) (drivers.Node, bool) {
		h := b.hosts[u.Canonical()]
		if h == nil {
			return drivers.Node{}, false
		}
		return h.node, true
	}})
	b.must(err)
	b.must(b.sw.Sweep(func(u urn.URN) bool { h := b.hosts[u.Canonical()]; return h != nil && h.ns != nil }))
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// host makes a host with an interface for each link.
func (b *bench) host(number int, links ...int) *host {
	n := drivers.Node{Sliver: sliver(fmt.Sprintf("h%d", number)), Slice: urn.URN{Authority: "x", Type: urn.Slice, Name: "s"}, Hostname: fmt.Sprintf("h%d", number)}
	for i, l := range links {
		n.Interfaces = append(n.Interfaces, drivers.Interface{
			Name: request.ClientID(fmt.Sprintf("if%d", l)), Device: fmt.Sprintf("eth%d", i+1),
			MAC: []byte{2, 0, 0, 0, byte(number), byte(l)}, Addresses: []netip.Prefix{address(l, number)},
		})
	}
	h := &host{t: b.t, node: n}
	b.hosts[n.Sliver.Canonical()] = h
	return h
}

func (b *bench) plug(hosts ...*host) {
	b.t.Helper()
	for _, h := range hosts {
		if h.ns == nil {
			h.boot()
		}
		b.must(b.sw.Plug(h.node, h.fd()))
	}
}

func link(number int, hosts ...*host) drivers.Link {
	l := drivers.Link{Sliver: sliver(fmt.Sprintf("l%d", number)), Slice: hosts[0].node.Slice}
	for _, h := range hosts {
		l.Ends = append(l.Ends, drivers.End{Node: h.node.Sliver, Interface: request.ClientID(fmt.Sprintf("if%d", number))})
	}
	return l
}

// empty checks that nothing is left of anything.
func (b *bench) empty() {
	b.t.Helper()
	for _, pattern := range []string{"links/*", "ports/*", "switch"} {
		if left, _ := filepath.Glob(filepath.Join(b.dir, pattern)); len(left) > 0 {
			b.t.Errorf("left: %q", left)
		}
	}
	if l := b.sw.Links(); len(l) > 0 {
		b.t.Errorf("links left: %v", l)
	}
}

func TestLinks(t *testing.T) {
	b := newBench(t)
	one, two, three := b.host(1, 1, 2), b.host(2, 1), b.host(3, 2)
	l1, l2 := link(1, one, two), link(2, one, three)
	b.plug(one)                 // before its links
	b.must(b.sw.Connect(l1))    // between a running node and one that is not
	b.must(b.sw.Connect(l2))    //
	b.plug(two, three)          // after its link
	b.plug(one)                 // again
	b.must(b.sw.Connect(l1))    // again
	b.must(one.reaches(1, two)) //
	b.must(one.reaches(2, three))
	if mac, err := one.run("cat", "/proc/net/dev"); err != nil || !strings.Contains(mac, "eth2") {
		t.Errorf("interfaces: %s, %v", mac, err)
	}
	out, err := one.run("ip", "-o", "link", "show", "eth2")
	if err != nil || !strings.Contains(out, "02:00:00:00:01:02") {
		t.Errorf("the interface is %s, %v", out, err)
	}
	// The manager ends and comes back; what is there goes on meanwhile.
	b.sw.Close()
	b.must(one.reaches(1, two))
	b.open()
	if got := len(b.sw.Links()); got != 2 {
		t.Errorf("%d links after a restart, want 2", got)
	}
	b.must(one.reaches(1, two))
	// A node restarts: its network is a new one.
	b.must(b.sw.Unplug(two.node.Sliver))
	two.boot()
	b.plug(two)
	b.must(two.reaches(1, one))
	// One whose end nobody has noticed.
	two.boot()
	b.plug(two)
	b.must(two.reaches(1, one))

	b.must(b.sw.Disconnect(l1.Sliver))
	if !one.apart(1, two) {
		t.Error("a link that was removed carries frames")
	}
	b.must(one.reaches(2, three))
	b.must(b.sw.Connect(l1))
	b.must(one.reaches(1, two))
	for _, h := range []*host{one, two, three} {
		b.must(b.sw.Unplug(h.node.Sliver))
		b.must(b.sw.Unplug(h.node.Sliver))
	}
	for _, l := range []drivers.Link{l1, l2} {
		b.must(b.sw.Disconnect(l.Sliver))
		b.must(b.sw.Disconnect(l.Sliver))
	}
	b.empty()
}

func TestLAN(t *testing.T) {
	b := newBench(t)
	one, two, three, outside := b.host(1, 1), b.host(2, 1), b.host(3, 1), b.host(4, 1)
	b.plug(one, two, three, outside)
	b.must(b.sw.Connect(link(1, one, two, three)))
	for _, from := range []*host{one, two, three} {
		for _, to := range []*host{one, two, three} {
			if from != to {
				b.must(from.reaches(1, to))
			}
		}
		if !from.apart(1, outside) {
			t.Errorf("%s reaches a host that is not in the LAN", from.node.Hostname)
		}
	}
}

func TestConnectRefuses(t *testing.T) {
	b := newBench(t)
	one, two, other := b.host(1, 1), b.host(2, 1), b.host(3, 1)
	other.node.Slice.Name = "other"
	b.plug(one)
	for _, test := range []struct {
		name string
		link drivers.Link
		want string
	}{
		{"no ends", drivers.Link{Sliver: sliver("l"), Slice: one.node.Slice}, "no ends"},
		{"no name", drivers.Link{Slice: one.node.Slice, Ends: link(1, one, two).Ends}, "no sliver URN"},
		{"a node's name", drivers.Link{Sliver: one.node.Sliver, Slice: one.node.Slice, Ends: link(1, one, two).Ends}, "a node of that name"},
		{"unknown node", drivers.Link{Sliver: sliver("l"), Slice: one.node.Slice, Ends: []drivers.End{{Node: sliver("none"), Interface: "if1"}}}, "no such sliver"},
		{"unknown interface", link(2, one, two), `no interface "if2"`},
		{"another slice", link(1, one, other), "links do not leave their slice"},
		{"twice", link(1, one, one), "twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := b.sw.Connect(test.link)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if len(b.sw.Links()) > 0 {
				t.Error("the link is there")
			}
		})
	}
	b.must(b.sw.Connect(link(1, one, two)))
	again := link(1, one, two)
	again.Sliver = sliver("again")
	if err := b.sw.Connect(again); err == nil || !strings.Contains(err.Error(), "in link") {
		t.Errorf("an interface in two links: %v", err)
	}
}

func TestOpenCleans(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"links/1.json": "", "links/2.json.tmp": "half", "ports/4.json": `{"Slot":4}`,
		"links/3.json": `{"Slot":3,"Link":{"Sliver":"urn:publicid:IDN+x+sliver+l"}}`,
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	none := func(urn.URN) (drivers.Node, bool) { return drivers.Node{}, false }
	s, err := wiring.Open(wiring.Config{Dir: dir, Nodes: none})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if l := s.Links(); len(l) != 1 || l[0].Whole || l[0].Sliver.Name != "l" {
		t.Errorf("links %+v", l)
	}
	for _, gone := range []string{"links/1.json", "links/2.json.tmp", "ports/4.json"} {
		if _, err := os.Lstat(filepath.Join(dir, gone)); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "links/5.json"), []byte("{nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := wiring.Open(wiring.Config{Dir: dir, Nodes: none}); err == nil {
		t.Error("read a broken record")
	}
}

// TestCrossing has root of a node try to get frames into another slice: every
// kind of destination, tagged and untagged, with addresses that are not its
// own.
func TestCrossing(t *testing.T) {
	b := newBench(t)
	one, two, three, four := b.host(1, 1), b.host(2, 1), b.host(3, 2), b.host(4, 2)
	three.node.Slice.Name, four.node.Slice.Name = "other", "other"
	b.plug(one, two, three, four)
	shaped := link(1, one, two)
	shaped.Ends[0].Out.LatencyMs = 1
	b.must(b.sw.Connect(shaped))
	b.must(b.sw.Connect(link(2, three, four)))
	b.must(one.reaches(1, two))
	b.must(three.reaches(2, four))
	const mark = "croft crosses the wires"
	frames := func(from *host) [][]byte {
		var out [][]byte
		for _, to := range [][]byte{
			{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0x80, 0xc2, 0, 0, 0}, {1, 0x80, 0xc2, 0, 0, 0xe}, {0x33, 0x33, 0, 0, 0, 1},
			three.node.Interfaces[0].MAC, four.node.Interfaces[0].MAC, two.node.Interfaces[0].MAC,
		} {
			for _, source := range [][]byte{from.node.Interfaces[0].MAC, three.node.Interfaces[0].MAC, {2, 9, 9, 9, 9, 9}} {
				for _, kind := range [][]byte{{0x88, 0xb5}, {0x81, 0, 0, 1, 0x88, 0xb5}, {0x81, 0, 0, 2, 0x88, 0xb5}, {0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x88, 0xb5}, {0x08, 0x06}} {
					out = append(out, slices.Concat(to, source, kind, []byte(mark), make([]byte, 60)))
				}
			}
		}
		return out
	}
	heard := func(h *host) *os.File {
		f, err := h.listen()
		b.must(err)
		return f
	}
	inside, outside := heard(two), []*os.File{heard(three), heard(four)}
	defer inside.Close()
	sent := frames(one)
	b.must(one.emit(sent))
	// What the slice's own node hears tells when all have passed.
	got, err := countMarked(inside, mark, len(sent)/2)
	if err != nil || got < len(sent)/2 {
		t.Errorf("the slice's own node hears %d of %d frames, %v", got, len(sent), err)
	}
	for i, f := range outside {
		if got, err := countMarked(f, mark, 0); err != nil || got > 0 {
			t.Errorf("node %d of the other slice hears %d frames, %v", i+3, got, err)
		}
		f.Close()
	}
	b.must(three.reaches(2, four))
}

// listen opens a socket that hears all frames of a host's first interface.
func (h *host) listen() (*os.File, error) {
	var f *os.File
	err := wiring.InNetwork(h.fd(), func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0x0300) // ETH_P_ALL
		if err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), "packets")
		return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	})
	return f, err
}

// emit sends frames from a host's first interface.
func (h *host) emit(frames [][]byte) error {
	return wiring.InNetwork(h.fd(), func() error {
		i, err := net.InterfaceByName("eth1")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, frame := range frames {
			if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: i.Index, Halen: 6}); err != nil {
				return err
			}
		}
		return nil
	})
}

// countMarked counts the frames with a mark that come until there are enough,
// or none comes for a second. enough 0 is: until none comes.
func countMarked(f *os.File, mark string, enough int) (int, error) {
	count := 0
	for buf := make([]byte, 2048); enough == 0 || count < enough; {
		n, _, err := unix.Recvfrom(int(f.Fd()), buf, 0)
		if errors.Is(err, unix.EAGAIN) {
			return count, nil
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return count, err
		}
		if strings.Contains(string(buf[:n]), mark) {
			count++
		}
	}
	return count, nil
}
