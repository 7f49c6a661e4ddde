package rspec_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"croft/capacity"
	"croft/inventory"
	"croft/request"
	"croft/rspec"
	"croft/urn"
)

// testbed is a testbed with everything in it, of n hosts.
func testbed(n int) *inventory.Snapshot {
	id := func(typ urn.Type, format string, args ...any) urn.URN {
		u, err := urn.New("example.org", typ, fmt.Sprintf(format, args...))
		if err != nil {
			panic(err)
		}
		return u
	}
	s := snapshot()
	s.Sites = []inventory.Site{{Name: "lab", Country: "BE", Latitude: 51.036145, Longitude: 3.734761}, {Name: "cellar"}}
	s.Images = []inventory.Image{{ID: image, Name: "debian12", Description: "Debian 12 & tools", OS: "Linux", Version: "12"}, {ID: id(urn.Image, "small")}}
	s.Types = []inventory.SliverType{
		{Name: "namespace", Driver: "namespace", Images: []urn.URN{image, id(urn.Image, "small")}},
		{Name: "raw-pc", Driver: "simulated", Images: []urn.URN{image}},
	}
	s.SharedVLANs = []inventory.SharedVLAN{{Name: "mesoscale", Tag: 1750}, {Name: "private", Restricted: true}}
	s.External = []inventory.External{{Interface: urn.MustParse("urn:publicid:IDN+backbone.example.net+interface+r1:xe-0/0/1"), Manager: urn.MustParse("urn:publicid:IDN+backbone.example.net+authority+cm")}}
	sw := inventory.Switch{ID: id(urn.Node, "sw1"), Name: "sw1", Site: "lab"}
	for i := range n {
		h := inventory.Host{
			ID: id(urn.Node, "pc%d", i), Name: fmt.Sprintf("pc%d", i), Site: []string{"lab", "cellar"}[i%2], HardwareTypes: []string{"d430", "pc"},
			Types: []request.SliverType{"raw-pc"}, Exclusive: true,
			Interfaces: []inventory.Interface{
				{ID: id(urn.Interface, "pc%d:eth0", i), Name: "eth0", Speed: 1e6, Role: inventory.Control},
				{ID: id(urn.Interface, "pc%d:eth1", i), Name: "eth1", Speed: 1e7, Role: inventory.Experimental},
			},
		}
		if i%3 == 0 {
			h.Types, h.Shared, h.MaxSlivers = []request.SliverType{"namespace", "raw-pc"}, true, 20
			h.Images = []urn.URN{image}
			h.Properties = map[string]string{"gpus": "2", "processor": "E5-2630v3", "load": "-1.5e0"}
		}
		s.Hosts = append(s.Hosts, h)
		port := id(urn.Interface, "sw1:%d", i)
		sw.Ports = append(sw.Ports, inventory.Interface{ID: port, Name: fmt.Sprint(i)})
		s.Links = append(s.Links, inventory.Link{
			ID: id(urn.Link, "pc%d:eth1-sw1", i), Name: fmt.Sprintf("cable%d", i), Capacity: capacity.Kbps(1e7),
			Ends: [2]inventory.Port{{Node: h.ID, Interface: h.Interfaces[1].ID}, {Node: sw.ID, Interface: port}},
		})
	}
	s.Switches = []inventory.Switch{sw}
	return s
}

// odd makes every other host unavailable.
func odd(h *inventory.Host) bool {
	return h.Name[len(h.Name)-1]%2 == 1
}

func advertisement(t testing.TB, s *inventory.Snapshot, available func(*inventory.Host) bool, o rspec.AdvertisementOptions) []byte {
	t.Helper()
	ad, err := rspec.Advertisement(s, available, o)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func TestAdvertisementGolden(t *testing.T) {
	golden(t, "advertisement.xml", advertisement(t, testbed(4), odd, rspec.AdvertisementOptions{Now: noon}))
	golden(t, "advertisement-available.xml", advertisement(t, testbed(4), odd, rspec.AdvertisementOptions{Now: noon, AvailableOnly: true}))
}

func TestAdvertisementIsValid(t *testing.T) {
	dir := schemaTool(t)
	bare := snapshot()
	bare.Hosts = []inventory.Host{{ID: urn.URN{Authority: "example.org", Type: urn.Node, Name: `x<&>"`}}}
	documents := map[string][]byte{
		"everything": advertisement(t, testbed(9), odd, rspec.AdvertisementOptions{Now: noon}),
		"available":  advertisement(t, testbed(9), odd, rspec.AdvertisementOptions{AvailableOnly: true}),
		"large":      advertisement(t, testbed(2000), nil, rspec.AdvertisementOptions{}),
		"empty":      advertisement(t, snapshot(), nil, rspec.AdvertisementOptions{}),
		"bare host":  advertisement(t, bare, nil, rspec.AdvertisementOptions{}),
	}
	for _, schema := range []string{"ad.xsd", "all-ad.xsd"} {
		for name, why := range violations(t, filepath.Join(dir, schema), documents) {
			t.Errorf("%s: not valid by %s: %s", name, schema, why)
		}
	}
}

func TestAdvertisementTells(t *testing.T) {
	ad := string(advertisement(t, testbed(4), odd, rspec.AdvertisementOptions{Now: noon}))
	for _, want := range []string{
		`type="advertisement" generated="2026-03-01T12:00:00Z"`,
		`<node component_id="urn:publicid:IDN+example.org+node+pc0" component_manager_id="urn:publicid:IDN+example.org+authority+cm" component_name="pc0" exclusive="false">`,
		`component_name="pc1" exclusive="true">`,
		`<hardware_type name="d430">`,
		`<emulab:node_type type_slots="20"/>`,
		`<disk_image name="urn:publicid:IDN+example.org+image+debian12" os="Linux" version="12" description="Debian 12 &amp; tools" default="true"/>`,
		`<location country="BE" latitude="51.036145" longitude="3.734761"/>`,
		`<action name="geni_start" next="geni_configuring">`,
		`<action name="geni_updating_users_cancel" next="geni_ready">`,
		`<action name="geni_update_users_cancel" next="geni_ready">`,
		`<emulab:fd name="gpus" weight="2"/>`, `<emulab:fd name="load" weight="-1.5e0"/>`,
		`Simulated`, `are simulated`, `nobody can log in`, `<available name="mesoscale" localTag="1750"/>`, `restricted="true"`, `<external_ref `,
		`capacity="10000000"`, `role="control"`,
	} {
		if !strings.Contains(ad, want) {
			t.Errorf("does not tell %s", want)
		}
	}
	if n := strings.Count(ad, `<available now="false"/>`); n != 2 {
		t.Errorf("%d hosts are not available, want 2", n)
	}
	some := string(advertisement(t, testbed(4), odd, rspec.AdvertisementOptions{AvailableOnly: true}))
	if strings.Contains(some, "+pc0") || !strings.Contains(some, "+pc1") || strings.Contains(some, `now="false"`) {
		t.Error("does not leave out what is not available, or its links")
	}
}

func TestCatalogueIsUsedAgain(t *testing.T) {
	c, err := rspec.NewCatalogue(testbed(5))
	if err != nil {
		t.Fatal(err)
	}
	o := rspec.AdvertisementOptions{Now: noon}
	first := c.Ad(nil, odd, o).Bytes()
	_ = c.Ad(nil, nil, rspec.AdvertisementOptions{AvailableOnly: true})
	if !bytes.Equal(first, c.Ad(nil, odd, o).Bytes()) || !bytes.Equal(first, advertisement(t, testbed(5), odd, o)) {
		t.Error("the same testbed and availability give another advertisement")
	}
}

func TestAdvertisementOfNothing(t *testing.T) {
	if _, err := rspec.Advertisement(nil, nil, rspec.AdvertisementOptions{}); err == nil {
		t.Error("no error without an inventory")
	}
}
