package advert_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"croft/inventory"
	"croft/inventory/advert"
	"croft/mapping"
	"croft/request"
	"croft/urn"
)

var update = flag.Bool("update", false, "rewrite golden files")

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestGolden imports testbeds made after real ones of three kinds.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name                   string
		hosts, switches, links int
		notes                  []string
	}{
		{"rack", 11, 3, 33, []string{"host interconnect-campus is advertised without a sliver type and put out of service"}},
		{"cloud", 2, 0, 2, []string{"nodes of 2 component managers are served as one testbed, cloud.example.net:northVMs", "transit-net is advertised without"}},
		{"wireless", 13, 1, 18, []string{`"urn:publicid:IDN+radio.example.eu+node+mobile 7" is no URN`, "6 links are left out: an interface of theirs is on another link"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, err := advert.Import(read(t, c.name+".xml"), c.name+".xml", advert.Options{})
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", c.name+".yaml")
			if *update {
				if err := os.WriteFile(golden, i.YAML, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := read(t, c.name+".yaml"); !bytes.Equal(want, i.YAML) {
				t.Errorf("the inventory differs from %s:\n%s", golden, i.YAML)
			}
			s := i.Snapshot
			if len(s.Hosts) != c.hosts || len(s.Switches) != c.switches || len(s.Links) != c.links {
				t.Errorf("%d hosts, %d switches, %d links; want %d, %d, %d", len(s.Hosts), len(s.Switches), len(s.Links), c.hosts, c.switches, c.links)
			}
			notes := strings.Join(i.Notes, "\n")
			for _, want := range c.notes {
				if !strings.Contains(notes, want) {
					t.Errorf("notes lack %q:\n%s", want, notes)
				}
			}
		})
	}
}

func TestRack(t *testing.T) {
	i, err := advert.Import(read(t, "rack.xml"), "rack.xml", advert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := i.Snapshot
	pc8, ok := s.Host(urn.MustParse("urn:publicid:IDN+rack.example.org+node+pc8"))
	if !ok || !pc8.Exclusive || pc8.Shared || pc8.MaxSlivers != 20 || len(pc8.Types) != 2 || pc8.OutOfService != "" {
		t.Fatalf("pc8 is %+v", pc8)
	}
	if len(pc8.Images) != 0 || len(s.Hosts[0].Images) != 3 {
		t.Errorf("pc8 boots %v, pc1 boots %v", pc8.Images, s.Hosts[0].Images)
	}
	raw, _ := s.Type("raw-pc")
	if raw == nil || !raw.WholeHost || raw.Driver != "simulated" || raw.Images[0].Name != "ops:UBUNTU22-64-STD" {
		t.Errorf("raw-pc is %+v", raw)
	}
	if pc8.Interfaces[0].ID.Name != "pc8:eth0" || pc8.Interfaces[0].Role != inventory.Control {
		// The order of interfaces may be another than in the advertisement.
		if !slices.ContainsFunc(pc8.Interfaces, func(f inventory.Interface) bool { return f.Role == inventory.Control && f.Name == "eth0" }) {
			t.Errorf("interfaces of pc8 are %+v", pc8.Interfaces)
		}
	}
	if len(s.SharedVLANs) != 2 || !s.SharedVLANs[1].Restricted || len(s.External) != 1 {
		t.Errorf("shared VLANs %+v, external %+v", s.SharedVLANs, s.External)
	}
	trunk := s.Links[0]
	for _, l := range s.Links {
		if l.Ends[0].Node.Name == "switch1" && l.Ends[1].Node.Name == "switch2" {
			trunk = l
		}
	}
	if trunk.Capacity != 40_000_000 {
		t.Errorf("the trunk is %+v", trunk)
	}

	// A document of the field, with the names of the advertisement, finds its
	// way.
	req := &request.Request{Nodes: []request.Node{
		{ID: "a", Component: urn.MustParse("urn:publicid:IDN+rack.example.org+node+pc2"), SliverType: "raw-pc",
			Image: request.Image{Name: "urn:publicid:IDN+rack.example.org+image+ops:FBSD14-64-STD"}},
		{ID: "b", SliverType: "emulab-xen", Exclusive: request.No},
		{ID: "c", SliverType: "raw-pc", Image: request.Image{URL: "https://rack.example.org/image?uuid=debian12-64-std"}},
	}}
	p, err := new(mapping.Optimizer).Map(s, mapping.Occupancy{}, req, mapping.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Nodes[0].Host.Name != "pc2" || p.Nodes[1].Host.Name != "pc9" || p.Nodes[2].Host.Name != "pc8" {
		t.Errorf("nodes are on %v", p.Nodes)
	}
}

func TestOptions(t *testing.T) {
	i, err := advert.Import(read(t, "rack.xml"), "rack.xml", advert.Options{Authority: "mine.example.org", Driver: "docker", KeepUnavailable: true})
	if err != nil {
		t.Fatal(err)
	}
	s := i.Snapshot
	if s.Manager.String() != "urn:publicid:IDN+mine.example.org+authority+cm" {
		t.Errorf("manager is %s", s.Manager)
	}
	// Experimenters' documents name components and managers as before.
	pc3, ok := s.Host(urn.MustParse("urn:publicid:IDN+rack.example.org+node+pc3"))
	if !ok || !strings.Contains(pc3.OutOfService, "not available") {
		t.Errorf("pc3 is %+v", pc3)
	}
	if !slices.ContainsFunc(s.Aliases, func(u urn.URN) bool { return u.String() == "urn:publicid:IDN+rack.example.org+authority+cm" }) {
		t.Errorf("aliases are %v", s.Aliases)
	}
	if raw, _ := s.Type("raw-pc"); raw.Driver != "docker" {
		t.Errorf("driver is %s", raw.Driver)
	}
}

func TestRefused(t *testing.T) {
	const open = `<rspec xmlns="http://www.geni.net/resources/rspec/3" type="advertisement">`
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "there is no element in it"},
		{"text", "hello", "not XML"},
		{"cut off", open + "<node", "not XML"},
		{"cut off between nodes", open + "<node component_id='urn:publicid:IDN+a+node+b'/>", "unexpected EOF"},
		{"document type", "<!DOCTYPE rspec [<!ENTITY x 'y'>]>" + open + "</rspec>", "document type declaration"},
		{"document type inside", open + "<!DOCTYPE rspec></rspec>", "document type declaration"},
		{"entity", open + "<node component_id='&x;'/></rspec>", "not XML"},
		{"encoding", "<?xml version='1.0' encoding='ISO-8859-1'?>" + open + "</rspec>", "write it as UTF-8"},
		{"SFA", "<RSpec type='SFA'/>", "SFA version 1 RSpec"},
		{"ProtoGENI 0.2", "<rspec xmlns='http://www.protogeni.net/resources/rspec/0.2' type='advertisement'/>", "GENI version 3"},
		{"request", strings.Replace(open, "advertisement", "request", 1) + "</rspec>", `of type "request", not an advertisement`},
		{"another element", "<html/>", "root element is html"},
		{"empty", open + "</rspec>", "it advertises nothing"},
		{"OpenFlow", open + "<datapath xmlns='urn:openflow'/></rspec>", "OpenFlow datapaths, but no nodes"},
		{"links only", open + "<link/></rspec>", "no nodes, only link"},
		{"nameless", open + "<node component_name='x'/></rspec>", "the testbed has no name"},
		{"switches only", open + "<node component_id='urn:publicid:IDN+a+node+b'><hardware_type name='switch'/></node></rspec>", "no node to place anything on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, err := advert.Import([]byte(c.text), "ad.xml", advert.Options{})
			if err == nil {
				t.Fatalf("imported as\n%s", i.YAML)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "import ad.xml: ") {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}

var componentID = regexp.MustCompile(`component_id="([^"]*)"`)

// TestCorpus imports advertisements of real testbeds where they are at hand.
func TestCorpus(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above")
		}
		dir = filepath.Dir(dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "../shared/corpus/rspec/advertisement/*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the corpus of RSpecs is not beside the repository, in ../shared")
	}
	reasons := []string{"SFA version 1", "GENI version 3", "OpenFlow datapaths", "no nodes", "has no name"}
	imported := 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			i, err := advert.Import(data, filepath.Base(file), advert.Options{})
			if err != nil {
				if !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(err.Error(), r) }) {
					t.Error(err)
				}
				return
			}
			imported++
			given := map[string]bool{}
			for _, m := range componentID.FindAllSubmatch(data, -1) {
				if id, err := urn.Parse(string(m[1])); err == nil {
					given[id.String()] = true
				}
			}
			for _, h := range i.Snapshot.Hosts {
				// Those names of nodes that are URNs stay what they were.
				if !given[h.ID.String()] && !slices.ContainsFunc(i.Notes, func(n string) bool { return strings.Contains(n, "is no URN") }) {
					t.Errorf("%s is not in the advertisement", h.ID)
				}
			}
			if _, _, err := inventory.Check(i.YAML, "inventory.yaml", inventory.Machine{Drivers: []string{"simulated", "namespace"}}); err != nil {
				t.Error(err)
			}
		})
	}
	if imported < len(files)*3/4 {
		t.Errorf("only %d of %d imported", imported, len(files))
	}
}

// FuzzImport checks that an inventory made of anything is one.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"rack.xml", "cloud.xml", "wireless.xml"} {
		f.Add(read(f, name))
	}
	f.Add([]byte(`<rspec xmlns="http://www.protogeni.net/resources/rspec/2" type="advertisement"><node component_id="urn:publicid:IDN+a+node+b c" component_manager_id="urn:publicid:IDN+a+authority+cm"><sliver_type name="true"/></node></rspec>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := advert.Import(data, "ad.xml", advert.Options{})
		if err != nil {
			if strings.Contains(err.Error(), "is no inventory") {
				t.Error(err)
			}
			return
		}
		if len(i.Snapshot.Hosts) == 0 {
			t.Error("no hosts")
		}
	})
}

func BenchmarkImport(b *testing.B) {
	data := read(b, "rack.xml")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := advert.Import(data, "rack.xml", advert.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
