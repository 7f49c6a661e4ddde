package e2e

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"croft/client"
	"croft/urn"
)

// device begins what `ip addr` says of one device.
var device = regexp.MustCompile(`(?m)^\d+: `)

// asTold checks that the devices of a slice's nodes have the hardware and IP
// addresses that the manifest tells, and that nodes show the host keys that the
// aggregate tells. It returns the keys.
func (b *testbed) asTold(when string, slice urn.URN) map[string]string {
	b.Helper()
	d, err := b.caller().Describe(context.Background(), []urn.URN{slice}, []client.Credential{b.credential(slice)}, client.GENI3)
	if err != nil {
		b.Fatal(err)
	}
	m, err := client.ReadManifest(d.RSpec)
	if err != nil || len(m.Nodes) == 0 {
		b.Fatalf("%d nodes, %v in\n%s", len(m.Nodes), err, d.RSpec)
	}
	for _, n := range m.Nodes {
		// croft ssh refuses other keys than the one that was told.
		r := b.croft("ssh", slice.Name, n.ClientID, "--", "PATH=$PATH:/sbin:/usr/sbin ip addr")
		if r.status != 0 || len(n.Interfaces) == 0 {
			b.Errorf("%s, ip addr on %s with %d interfaces: %+v", when, n.ClientID, len(n.Interfaces), r)
		}
		for _, i := range n.Interfaces {
			if i.MAC == "" || len(i.Addresses) == 0 {
				b.Errorf("%s, interface %s is told without addresses: %+v", when, i.ClientID, i)
			}
			found := ""
			for _, text := range device.Split(r.out, -1) {
				if strings.Contains(strings.ToLower(text), "link/ether "+strings.ToLower(i.MAC)+" ") {
					found = text
				}
			}
			for _, a := range i.Addresses {
				if !strings.Contains(found, "inet "+a+"/") {
					b.Errorf("%s, interface %s: no device with %s and %s in\n%s", when, i.ClientID, i.MAC, a, r.out)
				}
			}
		}
	}
	keys := map[string]string{}
	for _, v := range d.Slivers {
		if v.HostKey != "" {
			keys[v.ClientID] = v.HostKey
		}
	}
	if len(keys) != len(m.Nodes) {
		b.Errorf("%s, host keys of %d of %d nodes are told: %v", when, len(keys), len(m.Nodes), keys)
	}
	return keys
}

// TestHostKeysArePinned has a node show another key than the one that was told.
func TestHostKeysArePinned(t *testing.T) {
	t.Parallel()
	need(t, "ssh")
	b := newTestbed(t)
	slice := b.slice("keys")
	b.must("up", "keys", repository(t, "testdata", "requests", "two-nodes.rspec"))
	keys := b.asTold("when they are made", slice)
	if keys["node0"] == keys["node1"] {
		t.Errorf("both nodes have the key %s", keys["node0"])
	}
	files, err := filepath.Glob(filepath.Join(b.dir, "slices", "keys", "known_nodes", "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("remembered: %q, %v", files, err)
	}
	// The ssh_config has the keys, too; with the nodes' files exchanged, they
	// are others.
	config := b.must("ssh", "keys", "--config")
	if strings.Count(config, "StrictHostKeyChecking yes") < 2 || strings.Contains(config, "accept-new") {
		t.Errorf("not pinned in\n%s", config)
	}
	alias := func(file string) string { return "HostKeyAlias=" + filepath.Base(file) }
	j := b.jumper("alice", slice, "node0")
	direct := j.node.Logins[0]
	try := func(key string) result {
		return j.run("ssh", "-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile="+key, "-o", alias(key), "-p", direct.Port, direct.User+"@"+direct.Host, "true")
	}
	statuses := 0
	for _, f := range files {
		if r := try(f); r.status == 0 {
			statuses++
		} else if !strings.Contains(r.err, "Host key verification failed") {
			t.Errorf("refused, but: %+v", r)
		}
	}
	if statuses != 1 {
		t.Errorf("node0 shows the key of %d nodes", statuses)
	}
	b.must("action", "keys", "geni_restart")
	b.await("the nodes to be up again", func() bool { return strings.Count(b.must("status", "keys"), " ready ") == 3 })
	after := b.asTold("after a restart", slice)
	if after["node0"] != keys["node0"] {
		t.Errorf("after a restart, the key of node0 is %s, was %s", after["node0"], keys["node0"])
	}
	b.must("delete", "keys")
	b.awaitNothing()
}
