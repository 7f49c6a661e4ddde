package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// linkRequest asks for nodes, each of a sliver type and on a host, and for
// links, each with the nodes that it joins and what else is in it. Node i of
// link k has the address 10.1.k.i, both from 1 on.
func linkRequest(nodes [][3]string, links []linkWish) string {
	var b strings.Builder
	for i, n := range nodes {
		fmt.Fprintf(&b, `<node client_id=%q exclusive="false" component_id="urn:publicid:IDN+%s+node+%s"><sliver_type name=%q/>`, n[0], authority, n[2], n[1])
		for k, l := range links {
			if l.joins(n[0]) {
				fmt.Fprintf(&b, `<interface client_id="%s:if%d"><ip address="10.1.%d.%d" netmask="255.255.255.0" type="ipv4"/></interface>`, n[0], k+1, k+1, l.first+i+1)
			}
		}
		b.WriteString("</node>")
	}
	for k, l := range links {
		fmt.Fprintf(&b, `<link client_id="link%d">`, k+1)
		for _, n := range strings.Fields(l.nodes) {
			fmt.Fprintf(&b, `<interface_ref client_id="%s:if%d"/>`, n, k+1)
		}
		b.WriteString(l.more + "</link>")
	}
	return b.String()
}

type linkWish struct {
	nodes string // that it joins
	first int    // added to the numbers of its addresses
	more  string // in its element
}

func (l linkWish) joins(node string) bool {
	return strings.Contains(" "+l.nodes+" ", " "+node+" ")
}

// reaches is a command that a user can do on a node of any kind if it reaches an
// address: busybox's ping is for root, so that what counts is that the other
// node answers who it is.
func reaches(address string) string {
	return fmt.Sprintf("{ nc -w 3 %[1]s 9 < /dev/null || ping -c 1 -W 3 %[1]s; } > /dev/null 2>&1; grep '^%[1]s .* 0x2 ' /proc/net/arp", address)
}

// TestLinksBetweenDrivers joins a namespace and a container, in both orders.
func TestLinksBetweenDrivers(t *testing.T) {
	t.Parallel()
	need(t, "ssh")
	b := newFederation(t)
	engine, err := startDocker(t)
	if err != nil {
		t.Skip(err)
	}
	b.edit("croft.yaml", setting{"# docker:", "docker: {hosts: [{name: local, address: \"" + string(engine) + "\"}]}\n# docker:"})
	b.write("inventory.yaml", `
authority: `+authority+`
images: [{name: small, source: "`+dockerImage+`"}]
sliver_types:
  - {name: ns, driver: namespace, cores: 1, memory: 64MiB, disk: 64MiB, shaping: true}
  - {name: box, driver: docker, images: [small], cores: 1, memory: 1GiB, disk: 64MiB, shaping: true}
hosts:
  - {name: n1, sliver_types: [ns], cores: 64, memory: 64GiB, disk: 64GiB, shared: true}
  - {name: d1, sliver_types: [box], cores: 64, memory: 64GiB, disk: 64GiB, shared: true}
`)
	b.start()
	slice := b.slice("mixed")
	file := b.request(linkRequest([][3]string{{"a", "ns", "n1"}, {"b", "box", "d1"}}, []linkWish{{nodes: "a b"}}))
	b.must("up", "mixed", file)
	both := func(when string) {
		t.Helper()
		for node, address := range map[string]string{"a": "10.1.1.2", "b": "10.1.1.1"} {
			if r := b.croft("ssh", "mixed", node, "--", reaches(address)); r.status != 0 {
				t.Errorf("%s, %s does not reach the other node: %s%s", when, node, r.out, r.err)
			}
		}
		b.asTold(when, slice)
	}
	both("when they are made")
	b.kill()
	b.start()
	both("after the manager was killed")
	b.must("action", "mixed", "geni_restart")
	b.await("the nodes to be up again", func() bool { return strings.Count(b.must("status", "mixed"), " ready ") == 3 })
	both("after a restart of both")
	b.must("delete", "mixed")
	b.awaitNothing()
	if n, err := engine.containers(nil); n > 0 || err != nil {
		t.Errorf("%d containers are left: %v", n, err)
	}
}
