package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"croft/client"
	"croft/urn"
)

// quick has the simulated driver take no time.
var quick = setting{"# simulated:", "simulated: {times: {make: 0s, start: 0s, stop: 0s}, faults: faults.txt}\n# simulated:"}

// newSimulated is a testbed of simulated nodes with an inventory of its own. It
// needs no root.
func newSimulated(t testing.TB, inventory string, settings ...setting) *testbed {
	t.Helper()
	b := newFolder(t, append(settings, quick)...)
	b.write("inventory.yaml", inventory)
	b.start()
	return b
}

// write replaces a file of the testbed in one step, as editors do.
func (b *testbed) write(file, text string) {
	b.Helper()
	path := filepath.Join(b.dir, file)
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		b.Fatal(err)
	}
}

// request writes a request of one or more elements and returns its file.
func (b *testbed) request(elements string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "request.rspec")
	text := `<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3">` + elements + "</rspec>"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// logged is all that the server has logged.
func (b *testbed) logged() string {
	b.Helper()
	data, err := os.ReadFile(b.log)
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

// node is the one node of a slice.
func (b *testbed) node(slice string) client.ManifestNode {
	b.Helper()
	m := readManifest(b, b.must("describe", slice, "--raw"))
	if len(m.Nodes) != 1 {
		b.Fatalf("slice %s has nodes %v", slice, nodeIDs(m))
	}
	return m.Nodes[0]
}

// advertised returns the nodes of the advertisement by name.
func (b *testbed) advertised(args ...string) map[string]client.AdNode {
	b.Helper()
	nodes := map[string]client.AdNode{}
	for _, n := range readAd(b, b.must(append([]string{"list", "--raw"}, args...)...)).Nodes {
		nodes[n.Name] = n
	}
	return nodes
}

const pair = `<node client_id="a"><interface client_id="a:0"/></node><node client_id="b"><interface client_id="b:0"/></node>
<link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link>`

// Testbeds made after real ones are served and used, without root.
func TestSimulatedTestbeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, authority string
		nodes           int // of the advertisement, switches too
		bound           string
		host            string
	}{
		{"emulab", "emulab.example.net", 46,
			`<node client_id="n" component_id="urn:publicid:IDN+emulab.example.net+node+pc405" exclusive="true"><sliver_type name="raw-pc"><disk_image name="urn:publicid:IDN+emulab.example.net+image+FBSD14-64-STD"/></sliver_type></node>`, "pc405"},
		{"instageni-rack", "rack1.example.edu", 6,
			`<node client_id="n" component_id="urn:publicid:IDN+rack1.example.edu+node+pc2" exclusive="false"><sliver_type name="default-vm"/></node>`, "pc2"},
		{"wireless", "hall.example.eu", 33,
			`<node client_id="n" component_id="urn:publicid:IDN+hall.example.eu+node+mobile3"><hardware_type name="MOBILE"/></node>`, "mobile3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(repository(t, "testdata", "inventories", c.name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			b := newSimulated(t, string(text))
			b.tryOut(c.nodes, c.bound, c.host)
			if manager := b.advertised()[c.host].Manager; manager != "urn:publicid:IDN+"+c.authority+"+authority+cm" {
				t.Errorf("the manager is %s", manager)
			}
		})
	}
}

// tryOut uses a simulated testbed: a pair of nodes anywhere and one that is
// bound to a host.
func (b *testbed) tryOut(nodes int, bound, host string) {
	b.Helper()
	ad := b.must("list", "--raw")
	if n := len(readAd(b, ad).Nodes); n != nodes {
		b.Errorf("%d nodes are advertised, want %d", n, nodes)
	}
	if !strings.Contains(ad, "are simulated") {
		b.Error("the advertisement does not say that its nodes are simulated")
	}
	b.validAs(ad, "all-ad.xsd")

	b.slice("pair")
	b.must("up", "pair", b.request(pair))
	m := b.must("describe", "pair", "--raw")
	b.validAs(m, "manifest.xsd")
	for _, n := range readManifest(b, m).Nodes {
		if len(n.Logins) != 0 || len(n.Users) != 0 {
			b.Errorf("a login is offered to the simulated node %s: %+v", n.ClientID, n)
		}
	}

	if !b.advertised()[host].Available {
		b.Fatalf("%s is not available", host)
	}
	b.slice("bound")
	b.must("allocate", "bound", b.request(bound))
	if n := b.node("bound"); !strings.HasSuffix(n.Component, "+node+"+host) {
		b.Errorf("bound to %s, placed on %s", host, n.Component)
	}
	if d := b.advertised(); d[host].Available != !d[host].Exclusive {
		b.Errorf("with a node on it: %+v", d[host])
	}
	if _, listed := b.advertised("--available")[host]; listed != b.advertised()[host].Available {
		b.Errorf("%s is among what is available: %v", host, listed)
	}
	b.must("provision", "bound")
	b.validAs(b.must("describe", "bound", "--raw"), "manifest.xsd")
	b.must("delete", "bound")
	b.must("delete", "pair")
	b.await("the host to be free", func() bool { return b.advertised()[host].Available })
}

// validAs checks a document where the schemas are at hand.
func (b *testbed) validAs(document, schema string) {
	b.Helper()
	t, ok := b.TB.(*testing.T)
	if !ok {
		return
	}
	t.Run(schema, func(t *testing.T) { valid(t, document, filepath.Join(schemas(t), schema)) })
}

// An advertisement becomes an inventory, which is served.
func TestImport(t *testing.T) {
	t.Parallel()
	b := newFolder(t, quick)
	file := repository(t, "inventory", "advert", "testdata", "rack.xml")
	if r := b.croft("inventory", "import", file); r.status != 0 || !strings.Contains(r.out, "driver: simulated") || !strings.Contains(r.err, "note: host interconnect-campus") {
		t.Errorf("import: status %d\n%.200s\n%s", r.status, r.out, r.err)
	}
	b.refused("in its authority", "inventory", "import", file, "--authority", "a b")
	b.refused("no such file", "inventory", "import", filepath.Join(b.dir, "nothing.xml"))
	b.refused("not an advertisement", "inventory", "import", repository(t, "testdata", "requests", "one-node.rspec"))
	b.must("inventory", "import", file, "--out", filepath.Join(b.dir, "inventory.yaml"))
	b.must("inventory", "check")
	b.start()
	b.tryOut(14, `<node client_id="n" component_id="urn:publicid:IDN+rack.example.org+node+pc3" exclusive="true"><sliver_type name="raw-pc"/></node>`, "pc3")
}

// An operator has operations fail while the server runs.
func TestFaultsOnDemand(t *testing.T) {
	t.Parallel()
	b := newSimulated(t, small("h1", "h2"))
	b.write("faults.txt", "# a broken disk\nstart a the disk is broken\nmake h2\n")
	b.slice("exp")
	file := b.request(`<node client_id="a" component_id="urn:publicid:IDN+lab.example.org+node+h1"/>`)
	b.refused("the disk is broken", "up", "exp", file)
	b.must("delete", "exp")
	b.refused("as the list of faults says", "up", "exp", b.request(`<node client_id="b" component_id="urn:publicid:IDN+lab.example.org+node+h2"/>`))
	b.must("delete", "exp")
	b.write("faults.txt", "")
	b.must("up", "exp", file)
}

// small is an inventory of hosts that hold four nodes each.
func small(hosts ...string) string {
	text := `authority: lab.example.org
sliver_types: [{name: vm, driver: simulated, cores: 1, memory: 1GiB}]
hosts:
`
	for _, h := range hosts {
		text += fmt.Sprintf("  - {name: %s, sliver_types: vm, cores: 4, memory: 8GiB, shared: true}\n", h)
	}
	return text
}

// hangup has the server read its inventory again.
func (b *testbed) hangup() {
	b.Helper()
	if err := b.server.Process.Signal(syscall.SIGHUP); err != nil {
		b.Fatal(err)
	}
}

func (b *testbed) awaitHost(name string, there bool) {
	b.Helper()
	b.await(fmt.Sprintf("host %s to be advertised: %v", name, there), func() bool {
		_, is := b.advertised()[name]
		return is == there
	})
}

func on(host string) string {
	return `<node client_id="n" component_id="urn:publicid:IDN+lab.example.org+node+` + host + `"/>`
}

// Hosts come and go while they are in use; no sliver is lost.
func TestReload(t *testing.T) {
	t.Parallel()
	b := newSimulated(t, small("h1", "h2"))
	slice := b.slice("exp")
	b.must("up", "exp", b.request(on("h2")))

	b.write("inventory.yaml", small("h1", "h3"))
	b.hangup()
	b.awaitHost("h3", true)
	b.awaitHost("h2", false)
	log := b.logged()
	if !strings.Contains(log, "removed=h2") || !strings.Contains(log, "+node+h2 why=\"it is not in the inventory\" slivers=1") {
		t.Errorf("the log does not say what became of h2:\n%s", log)
	}
	if out := b.must("admin", "strays"); !strings.Contains(out, "+node+h2  it is not in the inventory  1 ") {
		t.Errorf("admin strays says\n%s", out)
	}
	b.validAs(b.must("list", "--raw"), "ad.xsd")

	// The sliver is what it was.
	holds := func() {
		t.Helper()
		if n := b.node("exp"); !strings.HasSuffix(n.Component, "+node+h2") {
			t.Errorf("the node is on %s", n.Component)
		}
		b.must("renew", "exp", "1d")
		b.must("action", "exp", "geni_restart")
		b.await("the node to be ready", func() bool {
			d, err := b.caller().Status(context.Background(), []urn.URN{slice}, []client.Credential{b.credential(slice)})
			return err == nil && len(d.Slivers) == 1 && d.Slivers[0].Operational == "geni_ready"
		})
	}
	holds()
	b.slice("other")
	b.must("up", "other", b.request(on("h3")))
	b.slice("third")
	b.refused("h2", "allocate", "third", b.request(on("h2")))

	// A wrong file changes nothing; neither does one of another testbed, or for
	// another driver.
	for name, text := range map[string]string{
		"wrong":          "authority: lab.example.org\nhosts: 7\n",
		"another's":      strings.Replace(small("h9"), "lab.example.org", "other.example.org", 1),
		"another driver": small("h1") + "  - {name: h9, shared: true, cores: 1, memory: 1GiB}\n",
	} {
		before := strings.Count(b.logged(), "stays as it was")
		b.write("inventory.yaml", text)
		b.hangup()
		b.await("the server to refuse an inventory: "+name, func() bool { return strings.Count(b.logged(), "stays as it was") > before })
		if d := b.advertised(); len(d) != 2 || d["h3"].Name == "" {
			t.Errorf("%s: the testbed has become %v", name, d)
		}
	}

	// Also a server that starts anew has it.
	b.write("inventory.yaml", small("h1", "h3"))
	b.stop()
	b.start()
	holds()

	// A host that comes back has on it what it had. No signal: the file is
	// watched.
	b.write("inventory.yaml", strings.Replace(small("h1", "h2", "h3"), "h2, sliver_types: vm, cores: 4", "h2, sliver_types: vm, cores: 1", 1))
	b.awaitHost("h2", true)
	if b.advertised()["h2"].Available {
		t.Error("h2 is available, and is all taken")
	}
	b.refused("h2", "allocate", "third", b.request(on("h2")))
	b.must("delete", "exp")
	b.await("h2 to be free", func() bool { return b.advertised()["h2"].Available })
	b.must("allocate", "third", b.request(on("h2")))
}

// A host that shrinks keeps what is on it, and takes nothing until it fits.
func TestHostShrinks(t *testing.T) {
	t.Parallel()
	b := newSimulated(t, small("h1"))
	for _, s := range []string{"s1", "s2", "s3"} {
		b.slice(s)
		b.must("up", s, b.request(on("h1")))
	}
	b.write("inventory.yaml", strings.Replace(small("h1"), "cores: 4", "cores: 2", 1))
	b.hangup()
	b.await("the host to be full", func() bool { return !b.advertised()["h1"].Available })
	if log := b.logged(); !strings.Contains(log, "are taken of 2 cores") {
		t.Errorf("the log does not say that h1 is too small:\n%s", log)
	}
	b.slice("s4")
	b.refused("h1", "allocate", "s4", b.request(on("h1")))
	b.must("status", "s1")
	b.must("delete", "s1")
	b.refused("h1", "allocate", "s4", b.request(on("h1"))) // two nodes fill it
	b.must("delete", "s2")
	b.await("the host to have room", func() bool { return b.advertised()["h1"].Available })
	b.must("allocate", "s4", b.request(on("h1")))
}
