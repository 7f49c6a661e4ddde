package inventory_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/capacity"
	"croft/inventory"
	"croft/urn"
)

// machine is one that nothing is too large for and that has every driver.
var machine = inventory.Machine{Cores: 64, Memory: 1 << 20, Disk: 1 << 22, Drivers: []string{"docker", "namespace", "simulated"},
	IsDirectory: func(path string) bool { return path == "/srv/debian12" }}

func TestCheck(t *testing.T) {
	small := machine
	small.Cores, small.Memory, small.Disk = 2, 1024, 1024
	const sized = "authority: a\nhosts:\n- {name: h1, cores: 4, memory: 8 GiB, disk: 10 GiB}\n"
	for _, c := range []struct {
		name, text string
		machine    inventory.Machine
		want       []string
	}{
		{"nothing to say", sized, machine, nil},
		{"larger than the machine", sized, small, []string{
			"i.yaml:3:1: hosts: the hosts share out 4 cores; this machine has 2",
			"i.yaml:3:1: hosts: the hosts share out 8 GiB of memory; this machine has 1 GiB",
			"i.yaml:3:1: hosts: the hosts share out 10 GiB of disk; this machine has 1 GiB"}},
		{"unused type", sized + "sliver_types: [{name: vm, driver: simulated}]\n", machine, []string{"i.yaml:4:17: sliver_types[0]: no host offers sliver type vm"}},
		{"unknown driver", sized + "sliver_types: [{name: namespace, driver: simulate}]\n", machine, []string{`there is no driver "simulate" (did you mean simulated?)`}},
		{"image of no type", sized + "images: [{name: x}]\n", machine, []string{"no sliver type has image x"}},
		{"containers without images", sized + "sliver_types: [{name: namespace, driver: docker}]\n", machine, []string{"sliver type namespace has no images"}},
		{"container image without a source", sized + "images: [{name: x}]\nsliver_types: [{name: namespace, driver: docker, images: x}]\n", machine, []string{"runs images by the names"}},
		{"image without a source", sized + "images: [{name: x}]\nsliver_types: [{name: namespace, images: x}]\n", machine, []string{"image x has no source"}},
		{"relative source", sized + "images: [{name: x, source: images/x}]\nsliver_types: [{name: namespace, images: x}]\n", machine, []string{"no absolute path"}},
		{"absent source", sized + "images: [{name: x, source: /srv/x}]\nsliver_types: [{name: namespace, images: x}]\n", machine, []string{"i.yaml:4:28: images[0].source: there is no directory /srv/x"}},
		{"present source", sized + "images: [{name: x, source: /srv/debian12}]\nsliver_types: [{name: namespace, images: x}]\n", machine, nil},
		{"image nobody boots", "authority: a\nhosts:\n- {name: h1, cores: 4, images: x}\nimages: [{name: x, source: /srv/debian12}, {name: y, source: /srv/debian12}]\nsliver_types: [{name: namespace, images: [x, y]}]\n",
			machine, []string{"no host that offers namespace boots image y"}},
		{"too small", "authority: a\nhosts:\n- {name: h1, cores: 0.05}\n", machine, []string{"host h1 is too small for a namespace node"}},
		{"endless", "authority: a\nhosts:\n- {name: 'h[1-3]'}\n", machine, []string{"host h1 takes any number of nodes"}},
		{"all out", "authority: a\nhosts:\n- {name: h1, cores: 1, out_of_service: moving}\n", machine, []string{"every host is out of service"}},
		{"shared raw-pc", "authority: a\nsliver_types: [{name: raw-pc, driver: simulated}]\nhosts:\n- {name: h1, sliver_types: raw-pc, shared: true}\n", machine,
			[]string{"host h1 is shared, but each of its nodes takes the whole of it"}},
		{"hardware type mistyped", "authority: a\nhardware_types: [{name: d430, cores: 4}]\nhosts:\n- {name: h1, hardware_types: d43O, cores: 1}\n", machine,
			[]string{"i.yaml:2:19: hardware_types[0]: no host is of hardware type \"d430\"", `hardware type "d43O" is not declared, so it gives the host nothing (did you mean d430?)`}},
		{"empty site", sized + "sites: [{name: s1, country: BE}, {name: s2, latitude: 1}]\n", machine,
			[]string{`nothing stands at site "s1"`, `nothing stands at site "s2"`, `site "s2" has no country`, "only one of latitude and longitude"}},
		{"apart", wired("- {hosts: h1, interfaces: eth0, switch: sw1}") + "pools: {vlans: [10-20, 15]}\nshared_vlans: [{name: v, tag: 11}]\n", machine,
			[]string{"no cable leads to h2", "VLAN tags 15-15 overlap 10-20", "tag 11 of shared VLAN v is in the pool for links", "host h1 takes any number"}},
		{"no trunk", strings.Replace(wired("- {hosts: 'h[1-2]', interfaces: eth0, switch: 'sw[1-2]'}"), "name: sw1", "name: 'sw[1-2]'", 1), machine,
			[]string{"no trunk leads from sw1 to sw2", "takes any number"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, advice, err := inventory.Check([]byte(c.text), "i.yaml", c.machine)
			if err != nil || s == nil {
				t.Fatal(err)
			}
			var lines []string
			for _, a := range advice {
				lines = append(lines, a.String())
			}
			all := strings.Join(lines, "\n")
			for _, want := range c.want {
				if !strings.Contains(all, want) {
					t.Errorf("advice lacks %q:\n%s", want, all)
				}
			}
			if len(advice) != len(c.want) {
				t.Errorf("%d pieces of advice, want %d:\n%s", len(advice), len(c.want), all)
			}
		})
	}
}

func TestCheckTestbed(t *testing.T) {
	data, err := os.ReadFile("testdata/testbed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := machine
	m.IsDirectory = nil
	_, advice, err := inventory.Check(data, "testbed.yaml", m)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range advice {
		// "pc" is a hardware type in name only.
		if !strings.Contains(a.What, `hardware type "pc" is not declared`) {
			t.Error(a)
		}
	}
	_, advice, err = inventory.Check([]byte("authority: a\n"), "i.yaml", m)
	if err == nil || advice != nil {
		t.Errorf("a wrong inventory gives %v, %v", advice, err)
	}
}

func TestStarter(t *testing.T) {
	for _, c := range []struct {
		start       inventory.Start
		hosts       int
		first, last string
	}{
		{inventory.Start{Authority: "testbed.example.org", Hostname: "lab7", Cores: 8, Memory: 16384, Disk: 100_000}, 2, "host1", "host2"},
		{inventory.Start{Authority: "a:sub", Cores: 1, Memory: 1000, Hosts: 3}, 3, "host1", "host3"},
		{inventory.Start{Authority: "a", Hostname: "x\ny: z", Cores: 2, Memory: 2048, Hosts: 1}, 1, "host1", "host1"},
	} {
		t.Run(string(c.start.Authority), func(t *testing.T) {
			data, err := inventory.Starter(c.start)
			if err != nil {
				t.Fatal(err)
			}
			s, advice, err := inventory.Check(data, "inventory.yaml", inventory.Machine{
				Cores: c.start.Cores, Memory: c.start.Memory, Disk: c.start.Disk, Drivers: []string{"namespace"}})
			if err != nil {
				t.Fatalf("%v in\n%s", err, data)
			}
			for _, a := range advice {
				t.Error(a)
			}
			if len(s.Hosts) != c.hosts || s.Hosts[0].Name != c.first || s.Hosts[c.hosts-1].Name != c.last {
				t.Fatalf("hosts are %+v", s.Hosts)
			}
			var sum capacity.Amount
			for _, h := range s.Hosts {
				sum = sum.Plus(h.Capacity)
			}
			if want := capacity.Cores(c.start.Cores) * capacity.Core; sum.Cores > want || sum.Cores < want-capacity.Cores(c.hosts) {
				t.Errorf("%d thousandths of a core of %d are shared out", sum.Cores, want)
			}
			if sum.Memory > c.start.Memory || sum.Memory <= c.start.Memory-capacity.MiB(c.hosts) {
				t.Errorf("%d MiB of %d are shared out", sum.Memory, c.start.Memory)
			}
		})
	}
	for _, wrong := range []inventory.Start{
		{Authority: "a", Cores: 0, Memory: 1024},
		{Authority: "", Cores: 1, Memory: 1024},
		{Authority: "a b", Cores: 1, Memory: 1024},
		{Authority: "a", Cores: 1, Memory: 1024, Hosts: -1},
	} {
		if data, err := inventory.Starter(wrong); err == nil {
			t.Errorf("%+v gives\n%s", wrong, data)
		}
	}
}

// TestStarterUncommented reads the commented-out parts too: they are what the
// operator will try first.
func TestStarterUncommented(t *testing.T) {
	data, err := inventory.Starter(inventory.Start{Authority: "a", Cores: 4, Memory: 4096, Disk: 4096})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if rest, commented := strings.CutPrefix(line, "#"); commented && !strings.HasPrefix(rest, " ") || commented && strings.HasPrefix(rest, "  ") {
			line = rest
		}
		lines = append(lines, line)
	}
	s, err := inventory.Parse([]byte(strings.Join(lines, "")), "inventory.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(lines, ""))
	}
	if len(s.Images) != 1 || len(s.Sites) != 1 || s.Hosts[0].OutOfService == "" || s.Pools.Addresses != inventory.DefaultAddresses {
		t.Errorf("%+v", s)
	}
}

func TestWatcher(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	if _, err := inventory.Open(path); err == nil {
		t.Fatal("opened a file that is not there")
	}
	var written time.Time
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		// File systems may keep time in steps coarser than this test.
		if written.IsZero() {
			written = time.Now()
		}
		written = written.Add(time.Second)
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	write("authority: a\nhosts: [{name: 'h[1-2]'}]\n")
	w, err := inventory.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	first := w.Snapshot()
	expect := func(what string, gotChanged bool, gotErr error, changed, wrong bool) {
		t.Helper()
		if gotChanged != changed || (gotErr != nil) != wrong {
			t.Errorf("%s: changed %v, error %v", what, gotChanged, gotErr)
		}
	}
	changed, err := w.Reload()
	expect("untouched", changed, err, false, false)
	changed, err = w.Poll()
	expect("untouched, polled", changed, err, false, false)

	write("authority: a\nhosts: [{name: 'h[1-2]', memory: lots}]\n")
	changed, err = w.Poll()
	expect("wrong", changed, err, false, true)
	var problems *inventory.Error
	if !errors.As(err, &problems) {
		t.Errorf("error is a %T", err)
	}
	if w.Snapshot() != first {
		t.Error("a wrong file replaced the snapshot")
	}
	changed, err = w.Poll()
	expect("wrong as before, polled", changed, err, false, false)
	changed, err = w.Reload()
	expect("wrong as before", changed, err, false, true)

	write("authority: a\nhosts: [{name: 'h[1-2]'}]  # as it was\n")
	changed, err = w.Poll()
	expect("mended", changed, err, false, false)
	if w.Snapshot() != first {
		t.Error("an equal inventory replaced the snapshot")
	}

	write("authority: a\nhosts: [{name: h1, cores: 2}, {name: h3}]\n")
	changed, err = w.Poll()
	expect("another", changed, err, true, false)
	c := inventory.Compare(first, w.Snapshot())
	node := func(name string) string { return "[" + urn.MustParse("urn:publicid:IDN+a+node+"+name).String() + "]" }
	if fmt.Sprint(c.Added) != node("h3") || fmt.Sprint(c.Removed) != node("h2") || fmt.Sprint(c.Altered) != node("h1") {
		t.Errorf("changes are %+v", c)
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	changed, err = w.Poll()
	expect("gone", changed, err, false, true)
	changed, err = w.Poll()
	expect("still gone", changed, err, false, false)
	if w.Snapshot() == nil {
		t.Error("no snapshot any more")
	}
}

func ExampleParse() {
	s, err := inventory.Parse([]byte(`
authority: testbed.example.org
hosts:
  - name: pc[1-3]
    cores: 4
    memory: 8 GiB
`), "inventory.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range s.Hosts {
		fmt.Println(h.ID, h.Capacity.Memory)
	}
	_, err = inventory.Parse([]byte("authority: testbed.example.org\nhosts:\n  - name: pc1\n    memory: 8\n"), "inventory.yaml")
	fmt.Println(err)
	// Output:
	// urn:publicid:IDN+testbed.example.org+node+pc1 8192
	// urn:publicid:IDN+testbed.example.org+node+pc2 8192
	// urn:publicid:IDN+testbed.example.org+node+pc3 8192
	// inventory.yaml:4:13: hosts[0].memory: want a size such as 8 GiB, got 8 without a unit (write 8 MiB or 8 GiB)
}
