package wiring_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
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
}

func newBench(t testing.TB) *bench {
	needRoot(t)
	b := &bench{t: t, dir: t.TempDir(), hosts: map[urn.URN]*host{}}
	b.open()
	t.Cleanup(func() {
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
	b.sw, err = wiring.Open(wiring.Config{Dir: b.dir, Nodes: func(u urn.URN) (drivers.Node, bool) {
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
