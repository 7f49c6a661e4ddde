package rspec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"net/netip"
	"strings"
	"testing"

	"croft/capacity"
	"croft/languages"
	"croft/request"
	"croft/rspec"
	"croft/urn"
)

func TestDetect(t *testing.T) {
	const root = `<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request"/>`
	for _, test := range []struct {
		name, document string
		want           bool
	}{
		{"plain", root, true},
		{"declaration", `<?xml version="1.0"?>` + root, true},
		{"XML 1.1", `<?xml version="1.1" encoding="UTF-8"?>` + root, true},
		{"byte order mark", "\ufeff" + root, true},
		{"blank lines before", "\n\n  " + root, true},
		{"comment and instruction before", "<!-- <other/> --><?php echo 1?>\n" + root, true},
		{"long comment before", "<!--" + strings.Repeat("x", 40000) + "-->" + root, true},
		{"prefix", `<p:rspec xmlns:p="x"/>`, true},
		{"SFA", `<RSpec type="SFA"></RSpec>`, true},
		{"of no namespace", `<rspec></rspec>`, true},
		{"document type", `<!DOCTYPE rspec SYSTEM "x.dtd">` + root, true},
		{"text before", "here it is\n" + root, true},
		{"escaped once too often", html.EscapeString(root), true},
		{"escaped twice too often", html.EscapeString(html.EscapeString(root)), true},
		{"not closed", `<rspec`, false},
		{"empty", "", false},
		{"blank", " \n", false},
		{"another root", `<specification><rspec/></specification>`, false},
		{"a root that starts alike", `<rspecs/>`, false},
		{"comment never closed", `<!-- ` + root, false},
		{"YAML", "tosca_definitions_version: tosca_2_0\n# <rspec>\n" + strings.Repeat("a: b\n", 60) + "<rspec/>", false},
		{"RADL", "network public (outbound = 'yes')\n", false},
		{"JSON", `{"name": "<rspec"}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (rspec.Language{}).Detect([]byte(test.document)); got != test.want {
				t.Errorf("Detect = %v, want %v", got, test.want)
			}
		})
	}
}

// asked wraps the content of a GENI 3 request.
func asked(content string) []byte {
	return []byte(`<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">` + "\n" + content + "\n</rspec>")
}

func TestCompile(t *testing.T) {
	c := compile(t, asked(`<node client_id="a" component_manager_id="urn:publicId:IDN+EXAMPLE.org+authority+am" component_id="urn:publicid:IDN+example.org+node+pc7" component_name="x" exclusive="true">
  <sliver_type name="raw-pc"><disk_image name=" https://images.example.org/1 " version="2"/><xen xmlns="http://www.protogeni.net/resources/rspec/ext/emulab/1" cores="2" ram="512" disk="1.5"/></sliver_type>
  <hardware_type name="d430"/><hardware_type name="d710"/>
  <interface client_id="a:0" component_id="urn:publicid:IDN+example.org+interface+pc7:eth1" mac_address="0200000000fe">
    <ip address="10.0.0.1" netmask="255.255.254.0"/><ip address="fd00::1" netmask="48" type="ipv6"/></interface>
</node>
<node client_id="b" component_name="pc8" exclusive="0"><sliver_type name="x"><disk_image name="deb" url="http://a"/></sliver_type><interface client_id="b:0"/></node>
<node client_id="c" component_id="*"/>
<link client_id="l"><component_manager name="urn:publicid:IDN+example.org+authority+CM"/><component_manager name="urn:publicid:IDN+example.org+authority+cm"/>
 <interface_ref client_id="a:0"/><interface_ref client_id="b:0"/><link_type name="lan"/>
 <property source_id="a:0" dest_id="b:0" capacity="1000.4" latency="2.5" packet_loss="3"/><property source_id="b:0" dest_id="a:0"/></link>`), scope())
	r := c.Request
	if len(r.Nodes) != 3 || len(r.Links) != 1 {
		t.Fatalf("%d nodes, %d links", len(r.Nodes), len(r.Links))
	}
	a, b, l := r.Nodes[0], r.Nodes[1], r.Links[0]
	check := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("version", c.Version.Type+c.Version.Version, "GENI3")
	check("manager", a.Manager, "urn:publicid:IDN+EXAMPLE.org+authority+am")
	check("component", a.Component, "urn:publicid:IDN+example.org+node+pc7")
	check("component name of a bound node", a.ComponentName, "")
	check("component name", b.ComponentName, "pc8")
	check("any component", r.Nodes[2].ComponentName+r.Nodes[2].Component.String(), "")
	check("exclusive", []request.Choice{a.Exclusive, b.Exclusive, r.Nodes[2].Exclusive}, []request.Choice{request.Yes, request.No, request.Open})
	check("sliver type", a.SliverType, "raw-pc")
	check("place of the sliver type", a.TypePlace, `line 3, rspec/node[client_id="a"]/sliver_type`)
	check("image by URL", a.Image.Name+" "+a.Image.URL, " https://images.example.org/1")
	check("image by both", b.Image.Name+" "+b.Image.URL, "deb http://a")
	check("place of the image", a.Image.Place, `line 3, rspec/node[client_id="a"]/sliver_type/disk_image`)
	check("capacity", a.Capacity, capacity.Amount{Cores: 2000, Memory: 512, Disk: 1536})
	check("hardware", a.HardwareTypes, "[d430 d710]")
	check("interface", a.Interfaces[0].Component.Name+" "+a.Interfaces[0].MAC, "pc7:eth1 02:00:00:00:00:fe")
	check("addresses", a.Interfaces[0].Addresses, []netip.Prefix{netip.MustParsePrefix("10.0.0.1/23"), netip.MustParsePrefix("fd00::1/48")})
	check("place of the interface", a.Interfaces[0].Place, `line 5, rspec/node[client_id="a"]/interface[client_id="a:0"]`)
	check("link", fmt.Sprintf("%s %s %s", l.ID, l.Type, l.Manager), "l lan urn:publicid:IDN+example.org+authority+cm")
	check("place of the link", l.Place, `line 10, rspec/link[client_id="l"]`)
	check("ends", []request.ClientID{l.Ends[0].Node, l.Ends[0].Interface, l.Ends[1].Node, l.Ends[1].Interface}, "[a a:0 b b:0]")
	check("properties", len(l.Properties), 1)
	p := l.Properties[0]
	check("property", fmt.Sprintf("%s %s %d %g %g", p.From, p.To, p.Capacity, p.LatencyMs, p.Loss), "a:0 b:0 1000 2.5 3")
	check("place of the property", p.Place, `line 12, rspec/link[client_id="l"]/property[1]`)
	if a.Place.Column != 1 || a.Interfaces[0].Place.Column != 3 {
		t.Errorf("columns %d and %d, want 1 and 3", a.Place.Column, a.Interfaces[0].Place.Column)
	}
}

func TestCompileMistakesGolden(t *testing.T) {
	report, err := rspec.Language{}.Check(requestFile(t, "mistakes.rspec"), scope())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range report.Problems {
		fmt.Fprintln(&b, "problem:", p)
	}
	for _, p := range report.Warnings {
		fmt.Fprintln(&b, "warning:", p)
	}
	for _, p := range report.Schema {
		fmt.Fprintln(&b, "schema:", p)
	}
	golden(t, "mistakes.txt", []byte(b.String()))
}

func TestWarningsGolden(t *testing.T) {
	var b strings.Builder
	requests := goodRequests(t)
	for _, name := range []string{"start-up", "shaped-links", "several-managers", "shared-vlan", "extensions", "lan-of-three"} {
		fmt.Fprintf(&b, "%s.rspec\n", name)
		for _, w := range compile(t, requests[name], scope()).Warnings {
			fmt.Fprintln(&b, "  ", w)
		}
	}
	golden(t, "warnings.txt", []byte(b.String()))
}

// Each mistake is told with where it is and what would work.
func TestCompileRefuses(t *testing.T) {
	const two = `<node client_id="a"><interface client_id="a:0"/></node><node client_id="b"><interface client_id="b:0"/></node>`
	ip := func(attributes string) string {
		return `<node client_id="a"><interface client_id="a:0"><ip ` + attributes + `/></interface></node>`
	}
	for _, test := range []struct{ name, content, want string }{
		{"node of the slice again", `<node client_id="STANDING"/>`, `the slice has a node "STANDING" already`},
		{"node names alike", `<node client_id="a"/><node client_id="A"/>`, `client_id "A" is that of the node in line 2 already`},
		{"node name of another aggregate", `<node client_id="a"/><node client_id="a" component_manager_id="urn:publicid:IDN+x+authority+cm"/>`, `client_id "a" is that of the node`},
		{"interface names alike", `<node client_id="a"><interface client_id="i"/></node><node client_id="b"><interface client_id="i"/></node>`, `client_id "i" is that of the interface in line 2 already`},
		{"link names alike", two + `<link client_id="l"><interface_ref client_id="a:0"/></link><link client_id="L"><interface_ref client_id="b:0"/></link>`, `client_id "L" is that of the link`},
		{"no name", `<node client_id=" "/>`, `node without a client_id`},
		{"long name", `<node client_id="` + strings.Repeat("x", 256) + `"/>`, `client_id of 256 characters`},
		{"name that cannot be shown", `<node client_id="a&#9;b"/>`, `has a character that cannot be shown`},
		{"exclusive", `<node client_id="a" exclusive="yes"/>`, `exclusive="yes"`},
		{"nothing to refer to", two + `<link client_id="l"><interface_ref client_id="a:O"/></link>`, `no node has an interface "a:O" (did you mean a:0?)`},
		{"far from anything", two + `<link client_id="l"><interface_ref client_id="elsewhere"/></link>`, `there are a:0, b:0`},
		{"interface on two links", two + `<link client_id="l"><interface_ref client_id="a:0"/></link><link client_id="m"><interface_ref client_id="a:0"/></link>`, `interface "a:0" is on link "l" already`},
		{"interface twice on a link", two + `<link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="a:0"/></link>`, `interface "a:0" is on this link twice`},
		{"link to nothing", two + `<link client_id="l"/>`, `link "l" joins nothing`},
		{"property of something else", two + `<link client_id="l"><interface_ref client_id="a:0"/><property source_id="a:0" dest_id="b:0"/></link>`, `dest_id="b:0" is no interface of link "l" (it joins a:0)`},
		{"property to itself", two + `<link client_id="l"><interface_ref client_id="a:0"/><property source_id="a:0" dest_id="a:0"/></link>`, `property from "a:0" to itself`},
		{"rate", two + `<link client_id="l"><interface_ref client_id="a:0"/><property source_id="a:0" dest_id="l" capacity="1G"/></link>`, `capacity="1G" (it is a number of kbit/s)`},
		{"negative latency", two + `<link client_id="l"><interface_ref client_id="a:0"/><property source_id="a:0" dest_id="l" latency="-1"/></link>`, `latency="-1"`},
		{"latency that is no number", two + `<link client_id="l"><interface_ref client_id="a:0"/><property source_id="a:0" dest_id="l" latency="NaN"/></link>`, `latency="NaN"`},
		{"loss over all", two + `<link client_id="l"><interface_ref client_id="a:0"/><property source_id="a:0" dest_id="l" packet_loss="101"/></link>`, `packet_loss="101"`},
		{"no address", ip(`netmask="255.0.0.0"`), `ip without an address`},
		{"not an address", ip(`address="10.0.0"`), `"10.0.0" is not an IP address`},
		{"mask with holes", ip(`address="10.0.0.1" netmask="255.0.255.0"`), `netmask "255.0.255.0" of 10.0.0.1`},
		{"mask of the other kind", ip(`address="10.0.0.1" netmask="ffff::"`), `netmask "ffff::"`},
		{"mask too long", ip(`address="10.0.0.1" netmask="33"`), `netmask "33"`},
		{"network address", ip(`address="10.0.0.0" netmask="255.255.255.0"`), `10.0.0.0/24 is the network itself`},
		{"broadcast address", ip(`address="10.0.1.255" netmask="255.255.254.0"`), `10.0.1.255/23 is the broadcast address`},
		{"multicast address", ip(`address="224.0.0.5" netmask="24"`), `is a multicast address`},
		{"loopback address", ip(`address="127.0.0.5" netmask="8"`), `is a loopback address`},
		{"type of the other kind", ip(`address="fd00::1" type="ipv4"`), `fd00::1 is not of type ipv4`},
		{"zone", ip(`address="fe80::1%eth0"`), `is not an IP address`},
		{"one address on two ends", `<node client_id="a"><interface client_id="a:0"><ip address="10.0.0.1"/></interface></node><node client_id="b"><interface client_id="b:0"><ip address="10.0.0.1" netmask="25"/></interface></node><link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link>`, `address 10.0.0.1 of interface "b:0" is that of "a:0" on link "l" too`},
		{"multicast MAC", `<node client_id="a"><interface client_id="a:0" mac_address="ff:ff:ff:ff:ff:ff"/></node>`, `mac_address "ff:ff:ff:ff:ff:ff"`},
		{"two sliver types", `<node client_id="a"><sliver_type name="x"/><sliver_type name="y"/></node>`, `second sliver_type of node "a"`},
		{"size", `<node client_id="a"><sliver_type name="x"><e:xen xmlns:e="http://www.protogeni.net/resources/rspec/ext/emulab/1" ram="1 GB"/></sliver_type></node>`, `ram="1 GB"`},
		{"link across aggregates", two + `<node client_id="c" component_manager_id="urn:publicid:IDN+x+authority+cm"><interface client_id="c:0"/></node><link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="c:0"/></link>`, `link "l" is a stitched link from a:0 here to c:0 at another aggregate`},
		{"tunnel to another aggregate", two + `<node client_id="c" component_manager_id="urn:publicid:IDN+x+authority+cm"><interface client_id="c:0"/></node><link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="c:0"/><link_type name="gre-tunnel"/></link>`, `link "l" is a gre-tunnel link`},
		{"link to a node that is not in the document", two + `<link client_id="l"><component_manager name="urn:publicid:IDN+x+authority+cm"/><interface_ref client_id="a:0"/><interface_ref client_id="far:0"/></link>`, `at another aggregate`},
		{"transit", `<node client_id="c" component_manager_id="urn:publicid:IDN+x+authority+cm"><interface client_id="c:0"/></node><link client_id="l"><component_manager name="urn:publicid:IDN+example.org+authority+cm"/><interface_ref client_id="c:0"/></link>`, `link "l" of other aggregates passes through this one`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := scope()
			s.Existing = []languages.Existing{{Node: "standing", Interfaces: []request.ClientID{"standing:0"}}}
			_, err := rspec.Language{}.Compile(context.Background(), asked(test.content), s)
			var wrong *languages.Error
			if !errors.As(err, &wrong) {
				t.Fatalf("error %v, want an *Error", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("says\n%v\nwant\n%s", err, test.want)
			}
			for _, p := range wrong.Problems {
				if p.Place.Line == 0 || p.Place.Path == "" {
					t.Errorf("no place: %v", p)
				}
			}
		})
	}
}

// What looks wrong and is not.
func TestCompileAccepts(t *testing.T) {
	for _, test := range []struct {
		name, content string
		nodes, links  int
		warning       string
	}{
		{"two interfaces of a node on one link", `<node client_id="a"><interface client_id="a:0"/><interface client_id="a:1"/></node><link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="a:1"/></link>`, 1, 1, ""},
		{"a node and a link of one name", `<node client_id="a"><interface client_id="a:0"/></node><node client_id="b"><interface client_id="b:0"/></node><link client_id="a"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link>`, 2, 1, ""},
		{"a link to a node of the slice", `<node client_id="a"><interface client_id="a:0"/></node><link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="standing:0"/></link>`, 1, 1, ""},
		{"a link of other aggregates, with mistakes", `<node client_id="c" component_manager_id="urn:publicid:IDN+x+authority+cm"><interface/></node><link client_id="l"><component_manager name="urn:publicid:IDN+x+authority+cm"/><interface_ref client_id="nothing"/></link>`, 0, 0, "nothing in this document is for this aggregate"},
		{"only extensions", `<x xmlns="urn:x"/>`, 0, 0, "nothing in this document is for this aggregate"},
		{"one end", `<node client_id="a"><interface client_id="a:0"/></node><link client_id="l"><interface_ref client_id="a:0"/></link>`, 1, 1, `link "l" has one end only`},
		{"tunnel at home", `<node client_id="a"><interface client_id="a:0"/></node><node client_id="b"><interface client_id="b:0"/></node><link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/><link_type name="egre-tunnel"/></link>`, 2, 1, "made as a plain link"},
		{"a shared VLAN across aggregates", `<node client_id="a"><interface client_id="a:0"/></node><node client_id="c" component_manager_id="urn:publicid:IDN+x+authority+cm"><interface client_id="c:0"/></node><link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="c:0"/><s:link_shared_vlan xmlns:s="http://www.geni.net/resources/rspec/ext/shared-vlan/1" name="v"/></link>`, 1, 1, "joins its own nodes to the shared VLAN v"},
		{"no netmask", `<node client_id="a"><interface client_id="a:0"><ip address="10.0.0.1" type=""/></interface></node>`, 1, 0, "taken as /24"},
		{"length in the address", `<node client_id="a"><interface client_id="a:0"><ip address="10.0.0.1/30"/></interface></node>`, 1, 0, ""},
		{"no address but zeros", `<node client_id="a"><interface client_id="a:0"><ip address="0.0.0.0" netmask="0.0.0.0"/></interface></node>`, 1, 0, "is read as none"},
		{"point to point", `<node client_id="a"><interface client_id="a:0"><ip address="10.0.0.0" netmask="255.255.255.254"/></interface></node>`, 1, 0, ""},
		{"loss as a fraction", `<node client_id="a"><interface client_id="a:0"/></node><link client_id="l"><interface_ref client_id="a:0"/><property source_id="a:0" packet_loss="0.05"/></link>`, 1, 1, "read as 0.05 percent"},
		{"networks apart", `<node client_id="a"><interface client_id="a:0"><ip address="10.0.0.1" netmask="24"/></interface></node><node client_id="b"><interface client_id="b:0"><ip address="10.0.1.1" netmask="24"/></interface></node><link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link>`, 2, 1, "different networks"},
		{"another manager's name on a link of ours", `<node client_id="a"><interface client_id="a:0"/></node><node client_id="b"><interface client_id="b:0"/></node><link client_id="l"><component_manager name="urn:publicid:IDN+x+authority+cm"/><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link>`, 2, 1, "names another component manager"},
		{"a sliver type that has no name", `<node client_id="a"><sliver_type/></node>`, 1, 0, "sliver_type without a name"},
		{"foreign nodes inside of extensions", `<x xmlns="urn:x"><node xmlns="http://www.geni.net/resources/rspec/3"/></x><node client_id="a"/>`, 1, 0, ""},
		{"text among the elements", `stray <node client_id="a">text</node> …`, 1, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := scope()
			s.Existing = []languages.Existing{{Node: "standing", Interfaces: []request.ClientID{"standing:0"}}}
			c := compile(t, asked(test.content), s)
			if len(c.Request.Nodes) != test.nodes || len(c.Request.Links) != test.links {
				t.Errorf("%d nodes and %d links, want %d and %d", len(c.Request.Nodes), len(c.Request.Links), test.nodes, test.links)
			}
			if said := fmt.Sprint(c.Warnings); !strings.Contains(said, test.warning) || test.warning == "" && len(c.Warnings) > 0 {
				t.Errorf("warnings %s, want %q", said, test.warning)
			}
		})
	}
}

func TestCompileEndOfTheSlice(t *testing.T) {
	s := scope()
	s.Existing = []languages.Existing{{Node: "standing", Interfaces: []request.ClientID{"standing:0"}}}
	c := compile(t, asked(`<node client_id="a"><interface client_id="a:0"/></node><link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="standing:0"/></link>`), s)
	end := c.Request.Links[0].Ends[1]
	if !end.Existing || end.Node != "standing" || end.Interface != "standing:0" {
		t.Errorf("end %+v, want that of the slice's node", end)
	}
}

func TestSharedVLAN(t *testing.T) {
	c := compile(t, requestFile(t, "shared-vlan.rspec"), scope())
	if a, b := c.Request.Links[0].SharedVLAN, c.Request.Links[1].SharedVLAN; a != "mesoscale" || b != "lab" {
		t.Errorf("shared VLANs %q and %q, want mesoscale and lab", a, b)
	}
}

func TestManagers(t *testing.T) {
	for _, test := range []struct {
		name, manager string
		ours          bool
	}{
		{"ours", "urn:publicid:IDN+example.org+authority+cm", true},
		{"further name", "urn:publicid:IDN+example.org+authority+am", true},
		{"another case", "URN:PublicID:idn+EXAMPLE.ORG+Authority+cm", true},
		{"blanks around", " urn:publicid:IDN+example.org+authority+cm\n", true},
		{"empty", "", true},
		{"another name", "urn:publicid:IDN+example.org+authority+sa", false},
		{"another case of the name", "urn:publicid:IDN+example.org+authority+CM", false},
		{"another authority", "urn:publicid:IDN+example.net+authority+cm", false},
		{"sub-authority", "urn:publicid:IDN+example.org:site+authority+cm", false},
		{"no URN", "example.org", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := compile(t, asked(`<node client_id="a" component_manager_id="`+test.manager+`"/>`), scope())
			if got := len(c.Request.Nodes) == 1; got != test.ours {
				t.Errorf("ours: %v, want %v", got, test.ours)
			}
		})
	}
	t.Run("none known", func(t *testing.T) {
		c := compile(t, asked(`<node client_id="a"/>`), languages.Scope{Managers: []urn.URN{}})
		if len(c.Request.Nodes) != 1 {
			t.Error("a node that names no manager is not ours")
		}
	})
}

func TestVersions(t *testing.T) {
	const other = "*languages.UnknownVersion"
	for _, test := range []struct{ name, document, want string }{
		{"GENI 3", `<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request"/>`, "GENI 3"},
		{"ProtoGENI 2", `<rspec xmlns="http://www.protogeni.net/resources/rspec/2" type="request"/>`, "ProtoGENI 2"},
		{"ProtoGENI 0.1", `<rspec xmlns="http://www.protogeni.net/resources/rspec/0.1"/>`, "document is ProtoGENI 0.1"},
		{"ProtoGENI 0.2 without www", `<rspec xmlns="http://protogeni.net/resources/rspec/0.2"/>`, "document is ProtoGENI 0.2"},
		{"SFA", `<RSpec type="SFA"/>`, "document is an SFA RSpec"},
		{"no namespace", `<rspec type="request"/>`, "document is an rspec element in no namespace"},
		{"slip of the pen", `<rspec xmlns="http://www.geni.net/resource/rspec/3"/>`, "GENI 3 is http://www.geni.net/resources/rspec/3"},
		{"something else", `<rspec xmlns="urn:x"/>`, "an rspec in the namespace urn:x"},
		{"another document", `<html/>`, "root element html"},
		{"no XML", "node: one", "not an RSpec"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := rspec.Language{}.Compile(context.Background(), []byte(test.document), scope())
			if err == nil {
				if got := c.Version.Type + " " + c.Version.Version; got != test.want {
					t.Errorf("version %s, want %s", got, test.want)
				}
				return
			}
			var unknown *languages.UnknownVersion
			if !errors.As(err, &unknown) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "GENI 3, ProtoGENI 2") {
				t.Errorf("error %v, want %s with %q", err, other, test.want)
			}
		})
	}
}

func TestFormatOf(t *testing.T) {
	for _, test := range []struct {
		typ, version string
		want         rspec.Format
		ok           bool
	}{
		{"GENI", "3", rspec.GENI3, true}, {"geni", "3", rspec.GENI3, true}, {"ProtoGENI", "2", rspec.ProtoGENI2, true},
		{"protogeni", " 2 ", rspec.ProtoGENI2, true}, {"GENI", "2", 0, false}, {"", "", 0, false},
	} {
		if got, ok := rspec.FormatOf(test.typ, test.version); got != test.want || ok != test.ok {
			t.Errorf("FormatOf(%q, %q) = %v, %v", test.typ, test.version, got, ok)
		}
	}
}

// Documents come in all the ways that XML can be written, and in some that it
// can't.
func TestXMLAsItComes(t *testing.T) {
	plain := string(requestFile(t, "two-nodes.rspec"))
	body := plain[strings.Index(plain, "<rspec"):]
	latin := strings.Replace(body, "</rspec>", "<!-- \xe9t\xe9 --></rspec>", 1)
	for _, test := range []struct{ name, document string }{
		{"no declaration", body},
		{"XML 1.1", `<?xml version="1.1"?>` + body},
		{"standalone", `<?xml version='1.0' standalone='yes'?>` + body},
		{"declares what it is not", `<?xml version="1.0" encoding="UTF-16"?>` + body},
		{"Latin 1", `<?xml version="1.0" encoding="ISO-8859-1"?>` + latin},
		{"byte order mark", "\ufeff" + plain},
		{"blank lines before the declaration", "\n\n" + plain},
		{"carriage returns", strings.ReplaceAll(plain, "\n", "\r\n")},
		{"HTML-escaped", html.EscapeString(plain)},
		{"HTML-escaped twice", html.EscapeString(html.EscapeString(plain))},
		{"comment and instruction before", "<!-- a --><?b c?>" + body},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := bytes.Clone([]byte(test.document))
			c := compile(t, []byte(test.document), scope())
			if len(c.Request.Nodes) != 2 || len(c.Request.Links) != 1 || len(c.Warnings) != 0 {
				t.Errorf("%d nodes, %d links, warnings %v", len(c.Request.Nodes), len(c.Request.Links), c.Warnings)
			}
			if !bytes.Equal(before, []byte(test.document)) {
				t.Error("the document was changed")
			}
			m := manifest(t, rspec.ManifestInput{
				Documents: nil, Slivers: nil, Now: noon,
			})
			if len(m) == 0 {
				t.Error("no manifest")
			}
		})
	}
}

func TestPlaceBehindADeclaration(t *testing.T) {
	document := "<?xml version=\"1.0\"\n?><rspec xmlns=\"http://www.geni.net/resources/rspec/3\" type=\"request\">\n <!-- é --><node client_id=\"a\"/></rspec>"
	c := compile(t, []byte(document), scope())
	if p := c.Request.Nodes[0].Place; p.Line != 3 || p.Column != 12 {
		t.Errorf("node at line %d, column %d, want 3 and 12", p.Line, p.Column)
	}
}

func TestNotWellFormed(t *testing.T) {
	const root = `<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">`
	for _, test := range []struct{ name, document, want string }{
		{"document type", `<!DOCTYPE rspec [<!ENTITY a "b">]>` + root + "&a;</rspec>", "document type declaration"},
		{"entity", root + "<node client_id=\"&a;\"/></rspec>", "invalid character entity"},
		{"ampersand", root + `<a x="b && c"/></rspec>`, "write &amp; for &"},
		{"less than", root + `<a x="b < c"/></rspec>`, "write &lt; for <"},
		{"attribute twice", root + `<node client_id="a" client_id="b"/></rspec>`, "attribute client_id stands twice in element node"},
		{"attribute twice by prefix", root + `<node xmlns:a="x" xmlns:b="x" a:c="" b:c=""/></rspec>`, "attribute b:c stands twice"},
		{"prefix not declared", root + `<a:b/></rspec>`, `prefix "a" of element a:b is not declared`},
		{"prefix of an attribute not declared", root + `<node a:b=""/></rspec>`, `prefix "a" of attribute a:b is not declared`},
		{"prefix gone", root + `<c xmlns:a="x"/><a:b/></rspec>`, `prefix "a" of element a:b is not declared`},
		{"prefix declared as nothing", root + `<node xmlns:a=""/></rspec>`, `declares the prefix "a" as nothing`},
		{"reserved prefix", root + `<node xmlns:xmlns="x"/></rspec>`, "reserved"},
		{"two roots", root + "</rspec>" + root + "</rspec>", "second root element"},
		{"text outside", root + "</rspec>text", "text outside of the rspec element"},
		{"declaration inside", root + `<?xml version="1.0"?></rspec>`, "XML declaration inside the document"},
		{"never closed", root + "<node>", "element node is never closed"},
		{"closed by another", root + "<node></link></rspec>", "end tag </link> where <node> of line 1 is open"},
		{"comment with dashes", root + "<!-- -- --></rspec>", "not well-formed"},
		{"control character", root + "<node client_id=\"\x01\"/></rspec>", "not well-formed"},
		{"not UTF-8", root + "<node client_id=\"\xff\"/></rspec>", "not valid UTF-8"},
		{"UTF-16", "\xff\xfe<\x00r\x00", "UTF-16"},
		{"deep", root + strings.Repeat("<a>", 200) + strings.Repeat("</a>", 200) + "</rspec>", "nested deeper than 100"},
		{"namespace with blanks", root + `<node xmlns:a="http://a b"/></rspec>`, "is not a URI"},
		{"colons", root + `<a:b:c xmlns:a="x"/></rspec>`, "not well-formed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := rspec.Language{}.Compile(context.Background(), []byte(test.document), scope())
			var wrong *languages.Error
			var unknown *languages.UnknownVersion
			if !errors.As(err, &wrong) && !errors.As(err, &unknown) || !strings.Contains(err.Error(), test.want) && test.name != "UTF-16" {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	document := requestFile(t, "two-nodes.rspec")
	for name, l := range map[string]rspec.Limits{
		"bytes": {Bytes: 100}, "depth": {Depth: 3}, "elements": {Elements: 20},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rspec.Language{Limits: l}.Compile(context.Background(), document, scope())
			var wrong *languages.Error
			if !errors.As(err, &wrong) {
				t.Errorf("error %v, want an *Error", err)
			}
		})
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	_, err := rspec.Language{}.Compile(context.Background(), asked(strings.Repeat(`<node/>`, 5000)), scope())
	var wrong *languages.Error
	if !errors.As(err, &wrong) || len(wrong.Problems) != 101 {
		t.Fatalf("%d problems, want 100 and how many more", len(wrong.Problems))
	}
}
