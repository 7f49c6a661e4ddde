package inventory_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"croft/capacity"
	"croft/inventory"
	"croft/urn"
)

func TestLoad(t *testing.T) {
	s, err := inventory.Load("testdata/testbed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Manager.String(), "urn:publicid:IDN+testbed.example.org+authority+cm"; got != want {
		t.Errorf("manager %s, want %s", got, want)
	}
	if got, want := s.Managers()[1].String(), "urn:publicid:IDN+testbed.example.org+authority+am"; got != want {
		t.Errorf("alias %s, want %s", got, want)
	}
	if len(s.Hosts) != 6 || len(s.Switches) != 3 {
		t.Fatalf("%d hosts and %d switches, want 6 and 3", len(s.Hosts), len(s.Switches))
	}

	h, ok := s.Host(urn.MustParse("urn:publicid:IDN+TESTBED.example.org+node+pc003"))
	if !ok {
		t.Fatal("no pc003")
	}
	if h.Site != "campus" || !h.Exclusive || h.Shared || h.Capacity != (capacity.Amount{Cores: 16000, Memory: 65536, Disk: 953674}) {
		t.Errorf("pc003 is %+v", *h)
	}
	if len(h.Interfaces) != 3 || h.Interfaces[0].Role != inventory.Control || h.Interfaces[2].Speed != 10_000_000 {
		t.Errorf("interfaces of pc003 are %+v", h.Interfaces)
	}
	if got, want := h.Interfaces[2].ID.String(), "urn:publicid:IDN+testbed.example.org+interface+pc003:eth2"; got != want {
		t.Errorf("interface %s, want %s", got, want)
	}

	pc5 := s.Hosts[4]
	if pc5.OutOfService != "a broken fan" || pc5.Properties["gpus"] != "2" || pc5.Properties["processor"] != "E5-2630v3" {
		t.Errorf("pc005 is %+v", pc5)
	}
	shared := s.Hosts[5]
	if shared.Exclusive || !shared.Shared || shared.MaxSlivers != 20 || shared.Types[0] != inventory.Namespace {
		t.Errorf("vmhost is %+v", shared)
	}

	ns, _ := s.Type("default-vm")
	if ns == nil || ns.Name != "namespace" || ns.Driver != "namespace" || ns.Default != (capacity.Amount{Cores: 500, Memory: 512, Disk: 512}) || len(ns.Images) != 1 {
		t.Errorf("default-vm is %+v", ns)
	}
	if raw, _ := s.Type("raw-pc"); raw == nil || !raw.WholeHost || !raw.Shaping {
		t.Errorf("raw-pc is %+v", raw)
	}
	if s.Images[0].Version != "12" || s.Images[1].URL == "" {
		t.Errorf("images are %+v", s.Images)
	}

	// 4 hosts with two cables each, two single cables, two leaves with two
	// trunks each to the spine.
	if len(s.Links) != 8+2+4 {
		t.Fatalf("%d links, want 14", len(s.Links))
	}
	if l := s.Links[7]; l.Name != "pc004:eth2-leaf2:Gi1/4" || l.Capacity != 10_000_000 {
		t.Errorf("eighth link is %+v", l)
	}
	if l := s.Links[9]; l.Name != "spine:Te1/2-external" || !l.Ends[1].Node.IsZero() {
		t.Errorf("external link is %+v", l)
	}
	if l := s.Links[13]; l.Name != "leaf2-spine-2" || l.Capacity != 40_000_000 || l.Ends[1].Node != s.Switches[2].ID {
		t.Errorf("last trunk is %+v", l)
	}
	if s.Switches[0].Ports[0].Speed != 10_000_000 || len(s.Switches[0].Ports) != 6 {
		t.Errorf("ports of leaf1 are %+v", s.Switches[0].Ports)
	}
	if s.Pools.Addresses != "10.20.0.0/16" || len(s.Pools.VLANs) != 2 || s.Pools.VLANs[1] != (inventory.VLANRange{First: 300, Last: 300}) {
		t.Errorf("pools are %+v", s.Pools)
	}
	if len(s.SharedVLANs) != 1 || !s.SharedVLANs[0].Restricted || s.SharedVLANs[0].Tag != 1750 {
		t.Errorf("shared VLANs are %+v", s.SharedVLANs)
	}
}

func TestDigest(t *testing.T) {
	data, err := os.ReadFile("testdata/testbed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	digest := func(text string) string {
		s, err := inventory.Parse([]byte(text), "inventory.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest
	}
	original := digest(string(data))
	if again := digest("# another comment\n" + strings.ReplaceAll(string(data), "16GiB", "16384 MiB")); again != original {
		t.Error("the digest depends on how the file is written")
	}
	if other := digest(strings.ReplaceAll(string(data), "16GiB", "17GiB")); other == original {
		t.Error("the digest does not depend on a host's memory")
	}
	if other := digest(strings.ReplaceAll(string(data), "gpus: 2", "gpus: 3")); other == original {
		t.Error("the digest does not depend on properties")
	}
}

// host wraps the fields of one host into a whole inventory.
func host(fields string) string {
	return "authority: example.org\nhosts:\n  - name: h1\n    " + strings.ReplaceAll(fields, "\n", "\n    ") + "\n"
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"i.yaml:1:1: the file is empty (at least authority and hosts are needed)"}},
		{"only a comment", "# later\n", []string{"i.yaml:1:1: the file is empty (at least authority and hosts are needed)"}},
		{"not a mapping", "- a\n", []string{"i.yaml:1:1: an inventory is a mapping of fields, got a list"}},
		{"not YAML", "authority: example.org\n hosts: []\n", []string{"not YAML: mapping value is not allowed"}},
		{"not UTF-8", "authority: ex\xffmple\n", []string{"i.yaml:1:14: a byte that is not UTF-8"}},
		{"two documents", "authority: a\n---\nauthority: b\n", []string{"i.yaml:3:1: a second YAML document"}},
		{"missing fields", "sites: []\n", []string{
			"i.yaml:1:1: authority: an inventory has no authority", "i.yaml:1:1: hosts: an inventory has no hosts"}},
		{"no hosts", "authority: a\nhosts: []\n", []string{"i.yaml:2:8: hosts: no hosts"}},
		{"empty list", "authority: a\nhosts:\n", []string{"i.yaml:2:8: hosts: want a list, got nothing (write - name: host1)"}},
		{"field twice", host("cores: 1\ncores: 2"), []string{"i.yaml:5:5: key cores stands twice in one mapping"}},
		{"unknown field", host("memroy: 8GiB"), []string{`i.yaml:4:5: hosts[0].memroy: a host has no field "memroy" (did you mean memory?)`}},
		{"no unit", host("memory: 8"), []string{"i.yaml:4:13: hosts[0].memory: want a size such as 8 GiB, got 8 without a unit (write 8 MiB or 8 GiB)"}},
		{"wrong unit", host("memory: 8 gigs"), []string{`i.yaml:4:13: hosts[0].memory: want a size such as 8 GiB, got "8 gigs"`}},
		{"ambiguous unit", host("memory: 8G"), []string{`got "8G"`}},
		{"too little", host("memory: 3 KiB"), []string{`got "3 KiB", less than a MiB`}},
		{"size of nothing", host("memory:"), []string{"i.yaml:4:13: hosts[0].memory: want a size such as 8 GiB, got nothing"}},
		{"quoted number", host(`cores: "4"`), []string{`i.yaml:4:12: hosts[0].cores: want a number of cores, got "4" (write it without quotes)`}},
		{"no cores", host("cores: 0"), []string{"want a number of cores, got 0 (from 0.001 to 1000000)"}},
		{"hexadecimal", host("cores: 0x10"), []string{"want a number of cores, got 0x10"}},
		{"yes", host("shared: yes"), []string{`hosts[0].shared: want true or false, got "yes"`}},
		{"an underlay beside interfaces", host("underlay_capacity: 1 Gbps\ninterfaces: [{name: eth1}]"), []string{"a host with interfaces for links has no underlay"}},
		{"neither", host("shared: false\nexclusive: false"), []string{"neither exclusive nor shared"}},
		{"unknown type", host("sliver_types: [namspace]"), []string{`i.yaml:4:20: hosts[0].sliver_types[0]: no sliver type "namspace" is declared (did you mean namespace?)`}},
		{"no type", host("sliver_types: []"), []string{"hosts[0].sliver_types: no sliver type (leave the field out for namespace)"}},
		{"unknown site", host("site: campus"), []string{`no site "campus" is declared (declare it under sites)`}},
		{"unknown image", host("images: debian"), []string{`no image "debian" is declared (declare it under images)`}},
		{"everything at once", host("cores: many\nmemory: 1\ndisk: [1]\nmax_slivers: 1.5\nout_of_service: \"\""), []string{
			"i.yaml:4:12: hosts[0].cores", "i.yaml:5:13: hosts[0].memory", "i.yaml:6:11: hosts[0].disk", "i.yaml:7:18: hosts[0].max_slivers", "i.yaml:8:21: hosts[0].out_of_service"}},
		{"host twice", "authority: a\nhosts:\n- name: h[1-3]\n- name: h2\n", []string{`i.yaml:4:9: hosts[1].name: there is a host "h2" already`}},
		{"backwards", "authority: a\nhosts:\n- name: h[3-1]\n", []string{`"h[3-1]" counts down from 3 to 1`}},
		{"widths", "authority: a\nhosts:\n- name: h[01-100]\n", []string{"01 and 100 differ in width"}},
		{"too many", "authority: a\nhosts:\n- name: h[1-999999]\n", []string{"more than 100000 names"}},
		{"open range", "authority: a\nhosts:\n- name: 'h[1-9'\n", []string{`want a name or a range of names, got "h[1-9"`}},
		{"a host's URN for many", "authority: a\nhosts:\n- name: h[1-2]\n  urn: urn:publicid:IDN+a+node+x\n", []string{"one URN for several hosts"}},
		{"not a URN", host("urn: h1"), []string{`want a URN, got "h1" (urn:publicid:IDN+AUTHORITY+TYPE+NAME)`}},
		{"same URN", "authority: a\nhosts:\n- name: h1\n- name: h2\n  urn: urn:publicid:IDN+A+node+h1\n", []string{"node h2 has the URN of node h1"}},
		{"interface twice", host("interfaces:\n- {name: eth0}\n- {name: 'eth[0-1]'}"), []string{`a second interface "eth0"`}},
		{"rate without a unit", host("interfaces:\n- {name: eth0, speed: 1000}"), []string{"hosts[0].interfaces[0].speed: want a rate such as 1 Gbps, got 1000 without a unit"}},
		{"manager of a wrong type", "authority: a\nmanager: urn:publicid:IDN+a+node+cm\nhosts: [{name: h}]\n", []string{"a component manager is of type authority, got node"}},
		{"no driver", "authority: a\nsliver_types: [{name: vm}]\nhosts: [{name: h}]\n", []string{"sliver_types[0].driver: sliver type vm has no driver"}},
		{"alias taken", "authority: a\nsliver_types: [{name: vm, driver: simulated, aliases: [namespace]}, {name: namespace}]\nhosts: [{name: h}]\n",
			[]string{`a second sliver type is called "namespace"`}},
		{"address as network", "authority: a\nhosts: [{name: h}]\npools: {addresses: 10.0.0.1/8}\n", []string{"write the network: 10.0.0.0/8"}},
		{"VLAN tags", "authority: a\nhosts: [{name: h}]\npools: {vlans: [0, 200-100, 4094-4095]}\n", []string{`"0" are no VLAN tags`, `"200-100"`, `"4094-4095"`}},
		{"cable to nowhere", wired("- {hosts: 'h[1-2]', interfaces: eth0, switch: sw2}"), []string{`no switch "sw2" is declared (did you mean sw1`}},
		{"cable from nowhere", wired("- {hosts: 'h[1-3]', interfaces: eth0, switch: sw1}"), []string{`no host "h3" is declared`}},
		{"no such interface", wired("- {hosts: h1, interfaces: 'eth[0-1]', switch: sw1}"), []string{`host h1 has no interface "eth1" (did you mean eth0?)`}},
		{"cabled twice", wired("- {hosts: h1, interfaces: eth0, switch: sw1}\n- {ends: ['h1:eth0', 'h2:eth0']}"), []string{"h1:eth0 is on link h1:eth0-sw1 already"}},
		{"port twice", wired("- {ends: ['h1:eth0', 'sw1:1']}\n- {ends: ['h2:eth0', 'sw1:1']}"), []string{"port 1 of switch sw1 has a cable already"}},
		{"uneven", wired("- {hosts: 'h[1-2]', interfaces: eth0, switch: 'sw[1-3]'}"), []string{"2 hosts cannot be dealt out equally to 3 switches"}},
		{"ports missing", wired("- {hosts: 'h[1-2]', interfaces: eth0, switch: sw1, ports: p1}"), []string{"1 ports for 2 cables to each switch"}},
		{"half a cable", wired("- {ends: ['h1:eth0']}"), []string{"want a list of two"}},
		{"both ways", wired("- {ends: ['h1:eth0', 'sw1:1'], hosts: h1}"), []string{`a cable has no field "hosts"`}},
		{"trunk to itself", wired("") + "trunks: [{between: [sw1, sw1]}]\n", []string{"a trunk from switch sw1 to itself"}},
		{"unknown alias", "authority: *a\nhosts: []\n", []string{"alias *a of an anchor that is not above it"}},
		{"tag", "authority: !!str a\nhosts: []\n", []string{"tag !!str"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := inventory.Parse([]byte(c.text), "i.yaml")
			if err == nil {
				t.Fatal("no error")
			}
			if s != nil {
				t.Error("a snapshot beside an error")
			}
			var problems *inventory.Error
			if !errors.As(err, &problems) {
				t.Fatalf("error is a %T", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
			if len(c.want) != len(problems.Problems) {
				t.Errorf("%d problems, want %d:\n%v", len(problems.Problems), len(c.want), err)
			}
			for _, p := range problems.Problems {
				if p.Line == 0 || p.Column == 0 {
					t.Errorf("no line or column: %v", p)
				}
			}
		})
	}
}

// wired is a testbed of two hosts and a switch with the given cables.
func wired(cables string) string {
	s := "authority: a\nhosts: [{name: 'h[1-2]', interfaces: [{name: eth0}]}]\nswitches: [{name: sw1}]\n"
	if cables != "" {
		s += "cables:\n" + cables + "\n"
	}
	return s
}

func TestBounds(t *testing.T) {
	laughs := "authority: a\nx0: &x0 [a, a, a, a, a, a, a, a, a, a]\n"
	for i := 1; i < 9; i++ {
		last, this := string(rune('0'+i-1)), string(rune('0'+i))
		laughs += "x" + this + ": &x" + this + " [" + strings.Repeat("*x"+last+", ", 9) + "*x" + last + "]\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"size", "authority: a\n#" + strings.Repeat("x", 9<<20), "at most"},
		{"flow nesting", strings.Repeat("[", 100_000), "nested deeper"},
		{"block nesting", strings.Repeat("- ", 50_000) + "a", "nested deeper"},
		{"mappings", strings.Repeat("{a: ", 50_000), "nested deeper"},
		{"expansion", laughs, "values, aliases expanded"},
		{"an alias in its anchor", "authority: a\nx: &x [*x]\n", "inside its own anchor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := inventory.Parse([]byte(c.text), "i.yaml")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.200v, want %q", err, c.want)
			}
		})
	}
}

func TestAliases(t *testing.T) {
	s, err := inventory.Parse([]byte(`
authority: example.org
hosts:
  - &first
    name: h1
    cores: 4
    memory: 8 GiB
  - <<: *first
    name: h2
    cores: 2
`), "i.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if s.Hosts[1].Name != "h2" || s.Hosts[1].Capacity != (capacity.Amount{Cores: 2000, Memory: 8192}) {
		t.Errorf("h2 is %+v", s.Hosts[1])
	}
}

func TestProblemLimit(t *testing.T) {
	text := "authority: a\nhosts:\n" + strings.Repeat("- {name: h, x: 1}\n", 5000)
	_, err := inventory.Parse([]byte(text), "i.yaml")
	var problems *inventory.Error
	if !errors.As(err, &problems) || len(problems.Problems) > 101 {
		t.Fatalf("%.300v", err)
	}
}

func TestManager(t *testing.T) {
	s, err := inventory.Parse([]byte(`
authority: example.org
manager: urn:publicid:IDN+example.org+authority+am
manager_aliases: [urn:publicid:IDN+Example.org+authority+cm, urn:publicid:IDN+example.org:rack+authority+am]
hosts: [{name: h}]
`), "i.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range s.Managers() {
		names = append(names, m.String())
	}
	want := "urn:publicid:IDN+example.org+authority+am urn:publicid:IDN+example.org+authority+cm urn:publicid:IDN+example.org:rack+authority+am"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("managers are %s, want %s", got, want)
	}
}

// TestHostOfCopy looks up hosts in a snapshot that was put together from
// another.
func TestHostOfCopy(t *testing.T) {
	s, err := inventory.Parse([]byte("authority: a\nhosts: [{name: 'h[1-3]'}]\n"), "i.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := *s
	changed.Hosts = []inventory.Host{s.Hosts[2], s.Hosts[0]}
	for i, want := range []bool{true, false, true} {
		h, ok := changed.Host(s.Hosts[i].ID)
		if ok != want || (ok && h.Name != s.Hosts[i].Name) {
			t.Errorf("%s is found: %v, %v", s.Hosts[i].Name, ok, h)
		}
	}
}

// BenchmarkParse reads testbeds written as one range and host by host.
func BenchmarkParse(b *testing.B) {
	const hosts = 10_000
	var flat strings.Builder
	flat.WriteString("authority: a\nhosts:\n")
	for i := range hosts {
		fmt.Fprintf(&flat, "  - name: pc%d\n    cores: 8\n    memory: 16 GiB\n    interfaces: [{name: \"eth[0-3]\", speed: 1 Gbps}]\n", i)
	}
	short := fmt.Sprintf("authority: a\nhosts:\n  - name: pc[0-%d]\n    cores: 8\n    memory: 16 GiB\n    interfaces: [{name: \"eth[0-3]\", speed: 1 Gbps}]\n", hosts-1)
	for name, text := range map[string]string{"range": short, "flat": flat.String()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s, err := inventory.Parse([]byte(text), "i.yaml"); err != nil || len(s.Hosts) != hosts {
					b.Fatal(err)
				}
			}
		})
	}
}
