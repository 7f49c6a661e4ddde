package docker_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/docker"
	"croft/drivers/driverstest"
	"croft/drivers/wiring"
	"croft/request"
	"croft/urn"
)

// TestFarLinks is about links on a host that is taken for another machine: what
// makes them there is worked through the engine.
func TestFarLinks(t *testing.T) {
	e := need(t, fullImage)
	far := func(t *testing.T) driverstest.Subject {
		s := farSubject(t, e.tlsHost())
		s.Prepare, s.Links = useImage(fullImage), true
		return s
	}
	driverstest.RunPart(t, "link", far)
	for _, part := range []string{"LAN", "link holds over restarts", "slices apart", "interface without a link", "manager restarts"} {
		driverstest.RunLong(t, part, far)
	}
}

// elsewhere is an engine on a machine of its own: a network namespace.
type elsewhere struct {
	*engine
	host docker.Host
	ns   *os.File
}

// startElsewhere starts engines that a bridge joins, whose machines have the
// addresses 192.0.2.1 and on.
func startElsewhere(t *testing.T, count int) []*elsewhere {
	t.Helper()
	network := func() (ns *os.File) {
		err := wiring.OnThread(func() error {
			err := unix.Unshare(unix.CLONE_NEWNET)
			if err == nil {
				ns, err = os.Open("/proc/thread-self/ns/net")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		return ns
	}
	ip := func(ns *os.File, args ...string) {
		t.Helper()
		err := wiring.InNetwork(int(ns.Fd()), func() error {
			out, err := exec.Command("ip", args...).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	between := network()
	ip(between, "link", "add", "br0", "up", "type", "bridge")
	var list []*elsewhere
	for n := 1; n <= count; n++ {
		m := &elsewhere{ns: network()}
		port := fmt.Sprintf("m%d", n)
		ip(between, "link", "add", port, "type", "veth", "peer", "name", "up0", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.ns.Fd()))
		ip(between, "link", "set", port, "master", "br0", "up")
		ip(m.ns, "link", "set", "lo", "up")
		ip(m.ns, "addr", "add", fmt.Sprintf("192.0.2.%d/24", n), "dev", "up0")
		ip(m.ns, "link", "set", "up0", "up")
		e, err := keepEngine(m.ns)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.stop)
		m.engine = e
		e.have(t, smallImage)
		// The way there: the engine listens on its own loopback address.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		at := int(m.ns.Fd())
		go relayBy(l, func() (c net.Conn, err error) {
			err = wiring.InNetwork(at, func() error {
				c, err = net.Dial("tcp", e.address)
				return err
			})
			return c, err
		})
		m.host = e.tlsHost()
		m.host.Name, m.host.Address = port, "tcp://"+l.Addr().String()
		m.host.Underlay, m.host.Uplinks = netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), []string{"up0"}
		m.host.Components = []urn.URN{{Authority: "example.org", Type: urn.Node, Name: port}}
		list = append(list, m)
	}
	return list
}

// TestLinksBetweenHosts joins containers of two machines by VXLAN and by a
// VLAN, kills what makes the links on one of them, and looks for what is left.
func TestLinksBetweenHosts(t *testing.T) {
	need(t, smallImage)
	ms := startElsewhere(t, 2)
	r := newRig(t, docker.Config{Hosts: []docker.Host{ms[0].host, ms[1].host}})
	var nodes []drivers.Node
	for i, m := range ms {
		n := r.node(fmt.Sprintf("n%d", i+1), smallImage)
		n.Host = m.host.Components[0]
		for k := 1; k <= 2; k++ {
			n.Interfaces = append(n.Interfaces, drivers.Interface{Name: ifName(k), Device: fmt.Sprintf("eth%d", k), MAC: net.HardwareAddr{2, 0, 0, 0, byte(k), byte(i + 1)},
				Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(k), byte(i + 1)}), 24)}})
		}
		nodes = append(nodes, n)
	}
	link := func(k int) drivers.Link {
		l := drivers.Link{Sliver: urn.URN{Authority: "example.org", Type: urn.Sliver, Name: fmt.Sprintf("link%d", k)}, Slice: nodes[0].Slice}
		for _, n := range nodes {
			l.Ends = append(l.Ends, drivers.End{Node: n.Sliver, Interface: ifName(k), Host: n.Host, Driver: "docker"})
		}
		return l
	}
	tunnel, vlan := link(1), link(2)
	if spans, err := r.d.Spans(tunnel); !spans || err != nil {
		t.Errorf("a link between machines needs an identifier: %v, %v", spans, err)
	}
	tunnel.VNI, vlan.VLAN = 5001, 130
	vlan.Ends[0].Leaves, vlan.Ends[1].Leaves = "up0", "up0"
	if spans, err := r.d.Spans(vlan); spans || err != nil {
		t.Errorf("a link with a VLAN tag needs an identifier: %v, %v", spans, err)
	}
	for _, n := range nodes {
		r.up(n)
	}
	for _, l := range []drivers.Link{tunnel, vlan} {
		if err := r.d.Connect(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	reach := func(when string) {
		t.Helper()
		for k := 1; k <= 2; k++ {
			to := fmt.Sprintf("10.0.%d.2", k)
			if out, err := r.sh(nodes[0], "ping -c 3 -W 5 "+to); err != nil {
				t.Errorf("%s: %s: %v: %s", when, to, err, out)
			}
		}
	}
	reach("when they are made")
	if out, err := ms[1].api.ContainerKill(t.Context(), r.switchOf(ms[1].engine), client.ContainerKillOptions{}); err != nil {
		t.Fatal(out, err)
	}
	found, err := r.d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Kind == drivers.LinkKind && f.Whole {
			t.Errorf("link %s is whole, and half of it has gone", f.Sliver)
		}
	}
	for _, l := range []drivers.Link{tunnel, vlan} {
		if err := r.d.Remove(t.Context(), l.Sliver); err != nil {
			t.Fatal(err)
		}
		if err := r.d.Connect(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	reach("when they are made again")
	for _, u := range []urn.URN{tunnel.Sliver, vlan.Sliver, nodes[0].Sliver, nodes[1].Sliver} {
		if err := r.d.Remove(t.Context(), u); err != nil {
			t.Error(err)
		}
	}
	for _, m := range ms {
		list, err := m.api.ContainerList(t.Context(), client.ContainerListOptions{All: true})
		if err != nil || len(list.Items) > 0 {
			t.Errorf("%d containers are left: %v", len(list.Items), err)
		}
	}
}

func ifName(k int) request.ClientID { return request.ClientID(fmt.Sprintf("if%d", k)) }

// switchOf finds what makes links on an engine's machine.
func (r *rig) switchOf(e *engine) string {
	r.t.Helper()
	list, err := e.api.ContainerList(r.t.Context(), client.ContainerListOptions{Filters: make(client.Filters).Add("label", "croft.kind=switch")})
	if err != nil || len(list.Items) != 1 {
		r.t.Fatalf("%d switches, want 1: %v", len(list.Items), err)
	}
	return list.Items[0].ID
}
