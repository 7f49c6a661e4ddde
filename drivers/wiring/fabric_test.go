package wiring

import (
	"os"
	"strings"
	"testing"
)

// TestFabric looks into the network namespace of the bridges.
func TestFabric(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: network namespaces need root (sudo go test …)")
	}
	f := fabric{pin: t.TempDir() + "/switch"}
	if err := f.addBridge("l0"); err != nil {
		t.Fatal(err)
	}
	defer f.remove()
	own, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	links, err := f.handle.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		for _, family := range []int{2, 10} {
			addrs, err := f.handle.AddrList(l, family)
			if err != nil || len(addrs) > 0 {
				t.Errorf("%s has addresses: %v, %v", l.Attrs().Name, addrs, err)
			}
		}
	}
	err = InNetwork(int(f.ns), func() error {
		for name, want := range map[string]string{
			"ipv4/ip_forward": "0", "ipv6/conf/all/disable_ipv6": "1", "ipv6/conf/default/disable_ipv6": "1", "ipv6/conf/l0/disable_ipv6": "1",
		} {
			got, err := os.ReadFile("/proc/sys/net/" + name)
			if err == nil && strings.TrimSpace(string(got)) != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// Another manager finds it as it was.
	f.close()
	g := fabric{pin: f.pin}
	if err := g.adopt(); err != nil {
		t.Fatal(err)
	}
	if names, err := g.names(); err != nil || len(names) != 1 || names[0] != "l0" {
		t.Errorf("names after the restart: %v, %v", names, err)
	}
	if err := g.erase("l0", "n7.1"); err != nil {
		t.Errorf("erase: %v", err)
	}
	if names, err := g.names(); err != nil || len(names) != 0 {
		t.Errorf("names after erase: %v, %v", names, err)
	}
	if err := g.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.pin); err == nil {
		t.Error("the pin is left")
	}
	for range 20 {
		// No thread has stayed elsewhere, the main one least of all.
		err := OnThread(func() error { return nil })
		if now, linkErr := os.Readlink("/proc/self/ns/net"); err != nil || linkErr != nil || now != own {
			t.Fatalf("the process is in network %s, was in %s; %v", now, own, err)
		}
	}
}
