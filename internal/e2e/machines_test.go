package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"croft/drivers/ssh/sshtest"
)

// TestMachines gives two machines out whole, which are reached by SSH and have
// board management controllers, and looks whether they are clean after that.
func TestMachines(t *testing.T) {
	t.Parallel()
	sshtest.Need(t)
	need(t, "ssh")
	lab, err := sshtest.NewLab()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	one, err := lab.Machine("pc1", 1)
	if err != nil {
		t.Fatal(err)
	}
	two, err := lab.Machine("pc2", 1)
	if err != nil {
		t.Fatal(err)
	}
	command, err := lab.SwitchCommand()
	if err != nil {
		t.Fatal(err)
	}

	redfish := &sshtest.Redfish{Machine: one, User: "croft", Password: "secret"}
	service := httptest.NewServer(redfish)
	defer service.Close()
	ipmi := sshtest.NewIPMI(t, two)
	b := newFederation(t, setting{"log:\n  level", fmt.Sprintf("machines: {key: %q, links: {command: [%q, %q, %q]}}\nlog:\n  level",
		lab.KeyFile(), command[0], command[1], command[2])})
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var macs []string
	inventory := "authority: " + authority + `
sliver_types: [{name: raw-pc, driver: ssh}]
switches: [{name: sw}]
cables: [{hosts: "pc[1-2]", interfaces: eth1, switch: sw}]
hosts:
`
	for _, h := range []struct {
		m        *sshtest.Machine
		protocol string
		address  string
	}{{one, "redfish", service.URL}, {two, "ipmi", ipmi.Address}} {
		mac, err := h.m.MAC(0)
		if err != nil {
			t.Fatal(err)
		}
		macs = append(macs, mac)
		inventory += fmt.Sprintf(`  - name: %s
    sliver_types: raw-pc
    interfaces: [{name: eth1, mac: %q}]
    access:
      address: %s
      port: %d
      host_keys: %q
      scratch: /scratch
      boot_limit: 15
      power: {protocol: %s, address: %q, user: croft, password_file: %q}
`, h.m.Name, mac, h.m.Host, h.m.Port, h.m.HostKey(), h.protocol, h.address, password)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "inventory.yaml"), []byte(inventory), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	said := func(what, text string) { t.Logf("%s:\n%s", what, strings.TrimSpace(text)) }

	ready := func(count int) bool { return strings.Count(b.must("status", "bare"), " ready ") == count }

	b.slice("bare")
	file := filepath.Join(t.TempDir(), "request.rspec")
	text := strings.NewReplacer(`exclusive="false"`, `exclusive="true"`, `"namespace"`, `"raw-pc"`).Replace(request(t, "two-nodes.rspec"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said("croft up", b.must("up", "bare", file))
	m := readManifest(t, b.must("describe", "bare", "--raw"))
	ids := nodeIDs(m)
	for _, n := range m.Nodes {
		if !slices.Contains(macs, n.Interfaces[0].MAC) {
			t.Errorf("%s: the manifest says %s, the machines have %s", n.ClientID, n.Interfaces[0].MAC, macs)
		}
		out := b.must("ssh", "bare", n.ClientID, "--", "id -un; hostname; cat /sys/class/net/eth1/address; ip -o -4 addr show dev eth1")
		said("croft ssh "+n.ClientID, out)
		if !strings.HasPrefix(out, "alice\n"+n.ClientID+".") || !strings.Contains(out, n.Interfaces[0].MAC) || !strings.Contains(out, n.Interfaces[0].Addresses[0]) {
			t.Errorf("%s says\n%s", n.ClientID, out)
		}
		if r := b.croft("ssh", "bare", n.ClientID, "--", "sudo -n id -u"); r.status == 0 {
			t.Errorf("%s: root on a machine that nobody makes anew: %s", n.ClientID, r.out)
		}
		b.must("ssh", "bare", n.ClientID, "--", "echo here >kept; echo x >/scratch/x; nohup sleep 1000 >/dev/null 2>&1 & echo '* * * * * true' | crontab - 2>/dev/null; true")
	}
	said("ping", b.must("ssh", "bare", ids[0], "--", "ping -c 2 -i 0.2 -W 10 "+m.Nodes[1].Interfaces[0].Addresses[0]))

	// One machine heeds its system, the other its controller only.
	if err := two.Hang(); err != nil {
		t.Fatal(err)
	}
	boots := []int{one.Boots(), two.Boots()}
	said("croft action", b.must("action", "bare", "geni_restart"))
	b.await("the machines to boot", func() bool {
		return one.Boots() > boots[0] && two.Boots() > boots[1] && ready(3)
	})
	said("croft status", b.must("status", "bare"))
	for _, id := range ids {
		if out := b.must("ssh", "bare", id, "--", "cat kept"); out != "here\n" {
			t.Errorf("%s has lost its files: %q", id, out)
		}
	}
	if calls := ipmi.Calls(); len(calls) == 0 {
		t.Error("a machine that hung was booted without its controller")
	} else {
		said("what the IPMI controller was told", strings.Join(calls, "\n"))
	}
	if done := redfish.Done(); len(done) != 0 {
		t.Errorf("a machine that boots by itself was reset: %q", done)
	}

	// Off and on again, by power.
	b.must("action", "bare", "geni_stop")
	b.await("the machines to be off", func() bool { return !one.On() && !two.On() })
	b.await("the nodes to be stopped", func() bool { return strings.Count(b.must("status", "bare"), " notready ") == 2 })
	b.must("action", "bare", "geni_start")
	b.await("the machines to be on", func() bool { return ready(3) })
	if done := redfish.Done(); !slices.Contains(done, "On") {
		t.Errorf("Redfish was told %q", done)
	}
	said("what the Redfish controller was told", strings.Join(redfish.Done(), "\n"))

	// A manager that is killed finds its machines again.
	b.kill()
	b.start()
	b.await("the slivers to be ready", func() bool { return ready(3) })
	b.must("ssh", "bare", ids[1], "--", "cat kept")

	said("croft delete", b.must("delete", "bare"))
	b.await("the machines to be clean", func() bool {
		return len(one.Changes())+len(two.Changes()) == 0 && !strings.Contains(b.must("admin", "slivers"), "pc")
	})
	if links, err := lab.Links(); err != nil || len(links) > 0 {
		t.Errorf("the switch has %q, %v", links, err)
	}
}

// A machine that cannot be made clean takes no new nodes until it is, and its
// operator is told why, whether cleaning fails or the command that makes the
// machine anew.
func TestUncleanMachines(t *testing.T) {
	t.Parallel()
	sshtest.Need(t)
	lab, err := sshtest.NewLab()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	reimager := lab.Reimager(t)
	told := filepath.Join(t.TempDir(), "told")
	reimage := fmt.Sprintf(`reimage: {command: [/bin/sh, -c, %q, reimage], limit: 60}`,
		`env | grep ^CROFT_ | sort >'`+told+`'; `+reimager.Command[2])
	inventory := "authority: " + authority + "\nsliver_types: [{name: raw-pc, driver: ssh}]\nhosts:\n"
	machines := map[string]*sshtest.Machine{}
	for name, more := range map[string]string{"pc1": "scratch: /scratch", "pc2": reimage} {
		m, err := lab.Machine(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		mac, err := m.MAC(0)
		if err != nil {
			t.Fatal(err)
		}
		machines[name] = m
		inventory += fmt.Sprintf("  - {name: %s, sliver_types: raw-pc, interfaces: [{name: eth1, mac: %q}], access: {address: %s, port: %d, host_keys: %q, boot_limit: 15, %s}}\n",
			name, mac, m.Host, m.Port, m.HostKey(), more)
	}
	b := newFederation(t, setting{"log:\n  level", fmt.Sprintf("machines: {key: %q}\nlog:\n  level", lab.KeyFile())}, setting{"reconcile: 1m", "reconcile: 1s"})
	b.write("inventory.yaml", inventory)
	b.start()
	host := func(name string) string {
		for line := range strings.Lines(b.must("admin", "hosts")) {
			if strings.HasPrefix(line, name+" ") {
				return line
			}
		}
		t.Fatalf("croft admin hosts does not list %s", name)
		return ""
	}
	on := func(name string) string {
		return b.request(fmt.Sprintf(`<node client_id="n" component_id="urn:publicid:IDN+%s+node+%s"><sliver_type name="raw-pc"/></node>`, authority, name))
	}
	reasons := map[string]string{"pc1": "scratch /scratch cannot be emptied", "pc2": "the image server is out of order"}
	for name := range reasons {
		b.slice(name)
		b.must("up", name, on(name))
		b.must("ssh", name, "n", "--", "echo x >/tmp/left")
		if line := host(name); !strings.Contains(line, "in service") || !strings.Contains(line, name+"/n") {
			t.Errorf("croft admin hosts says %q", line)
		}
	}
	if out, err := machines["pc1"].Run("mkdir /scratch/mnt && mount -t tmpfs none /scratch/mnt"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	reimager.Fail(true)
	for name, reason := range reasons {
		b.must("delete", name)
		b.await("the operator to be told", func() bool {
			line := host(name)
			return strings.Contains(line, "ailing") && strings.Contains(line, reason)
		})
	}
	// Also under a manager that knows of it by its journal alone.
	b.kill()
	b.start()
	for name, reason := range reasons {
		b.await("the operator to be told again", func() bool { return strings.Contains(host(name), reason) })
		t.Logf("croft admin hosts: %s", host(name))
		if b.advertised()[name].Available {
			t.Errorf("%s is advertised as available", name)
		}
		b.refused(reason, "allocate", name, on(name))
		// Forgetting it makes the machine no cleaner.
		b.must("admin", "delete", "--force", name)
		b.await("the machine to be looked at", func() bool { return strings.Contains(host(name), reason) })
		b.refused(reason, "allocate", name, on(name))
	}
	t.Logf("croft admin machines:\n%s", b.must("admin", "machines"))
	if out, err := machines["pc1"].Run("umount /scratch/mnt"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	reimager.Fail(false)
	for name := range reasons {
		b.await("the machine to be in service", func() bool { return strings.Contains(host(name), "in service") })
		if left := machines[name].Changes(); len(left) > 0 {
			t.Errorf("left on %s:\n\t%s", name, strings.Join(left, "\n\t"))
		}
		b.must("up", name, on(name))
	}
	environment, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the command was told\n%s", environment)
	mac, _ := machines["pc2"].MAC(0)
	for _, want := range []string{"CROFT_HOST=pc2\n", "CROFT_IMAGE=\n", "CROFT_MACS=" + mac + "\n", "CROFT_ADDRESS=", "CROFT_SLICE=urn:publicid:IDN+" + authority + "+slice+pc2\n"} {
		if !strings.Contains(string(environment), want) {
			t.Errorf("the command that makes a machine anew was not told %q", want)
		}
	}
}
