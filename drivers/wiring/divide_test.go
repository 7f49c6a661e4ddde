package wiring_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"croft/drivers"
	"croft/drivers/wiring"
	"croft/request"
)

func TestDivide(t *testing.T) {
	one := &wiring.Machine{Name: "one", Underlay: netip.MustParseAddr("192.0.2.1"), Uplinks: []string{"eth1", "eth2"}}
	two := &wiring.Machine{Name: "two", Underlay: netip.MustParseAddr("192.0.2.2"), Uplinks: []string{"eth1"}}
	three := &wiring.Machine{Name: "three", Underlay: netip.MustParseAddr("2001:db8::3")}
	lost := &wiring.Machine{Name: "lost"}
	alone := &wiring.Machine{Name: "alone", Alone: true}
	// Parts are written so: machine, numbers of its ends, what joins it to the
	// others, and on how many machines the link is.
	for _, c := range []struct {
		name   string
		link   drivers.Link
		leaves []string // by end
		at     []*wiring.Machine
		parts  []string
		err    string
	}{
		{name: "no ends"},
		{name: "within a machine", link: drivers.Link{VNI: 5001, VLAN: 100}, leaves: []string{"eth1", "eth1"}, at: []*wiring.Machine{one, one}, parts: []string{"one 0,1 of 1"}},
		{name: "within a machine that has no address", at: []*wiring.Machine{lost, lost}, parts: []string{"lost 0,1 of 1"}},
		{name: "by VXLAN", link: drivers.Link{VNI: 5001}, at: []*wiring.Machine{one, two},
			parts: []string{"one 0 vni 5001 from 192.0.2.1 to 192.0.2.2 of 2", "two 1 vni 5001 from 192.0.2.2 to 192.0.2.1 of 2"}},
		{name: "a LAN by VXLAN", link: drivers.Link{VNI: 5001}, at: []*wiring.Machine{two, one, two, three, one}, parts: []string{
			"two 0,2 vni 5001 from 192.0.2.2 to 192.0.2.1 2001:db8::3 of 3",
			"one 1,4 vni 5001 from 192.0.2.1 to 192.0.2.2 2001:db8::3 of 3",
			"three 3 vni 5001 from 2001:db8::3 to 192.0.2.2 192.0.2.1 of 3"}},
		{name: "to a machine without an address", link: drivers.Link{VNI: 5001}, at: []*wiring.Machine{one, lost}, err: "it would join machines (one, lost), and lost has no address"},
		{name: "by uplinks", link: drivers.Link{VNI: 5001, VLAN: 100}, leaves: []string{"eth2", "eth1"}, at: []*wiring.Machine{one, two},
			parts: []string{"one 0 vlan 100 by eth2 of 2", "two 1 vlan 100 by eth1 of 2"}},
		{name: "by uplinks of machines without addresses", link: drivers.Link{VLAN: 100}, leaves: []string{"eth1", "eth0"},
			at: []*wiring.Machine{two, {Name: "switched", Uplinks: []string{"eth0"}}}, parts: []string{"two 0 vlan 100 by eth1 of 2", "switched 1 vlan 100 by eth0 of 2"}},
		{name: "by uplinks without a tag", link: drivers.Link{VNI: 5001}, leaves: []string{"eth1", "eth1"}, at: []*wiring.Machine{one, two},
			parts: []string{"one 0 vni 5001 from 192.0.2.1 to 192.0.2.2 of 2", "two 1 vni 5001 from 192.0.2.2 to 192.0.2.1 of 2"}},
		{name: "an interface on paper at one end", link: drivers.Link{VNI: 5001, VLAN: 100}, leaves: []string{"eth1", "eth7"}, at: []*wiring.Machine{one, two},
			parts: []string{"one 0 vni 5001 from 192.0.2.1 to 192.0.2.2 of 2", "two 1 vni 5001 from 192.0.2.2 to 192.0.2.1 of 2"}},
		{name: "an uplink of another end of the machine", link: drivers.Link{VLAN: 100}, leaves: []string{"", "eth1", "eth2"}, at: []*wiring.Machine{one, two, one},
			parts: []string{"one 0,2 vlan 100 by eth2 of 2", "two 1 vlan 100 by eth1 of 2"}},
		{name: "a shared VLAN", link: drivers.Link{VNI: 5001, VLAN: 50, SharedVLAN: "campus"}, leaves: []string{"eth2", "", "eth1"}, at: []*wiring.Machine{one, two, one},
			parts: []string{"one 0,2 vlan 50 by eth2 of 2", "two 1 vlan 50 by eth1 of 2"}},
		{name: "a shared VLAN of one machine", link: drivers.Link{SharedVLAN: "lab"}, at: []*wiring.Machine{alone}, parts: []string{"alone 0 of 1"}},
		{name: "a shared VLAN without a tag", link: drivers.Link{SharedVLAN: "lab"}, at: []*wiring.Machine{one}, err: `the shared VLAN "lab" has no tag`},
		{name: "a shared VLAN without a way", link: drivers.Link{VLAN: 50, SharedVLAN: "campus"}, at: []*wiring.Machine{one, three}, err: `machine three has no way to the shared VLAN "campus"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.at {
				e := drivers.End{Interface: request.ClientID(fmt.Sprint(i))}
				if c.leaves != nil {
					e.Leaves = c.leaves[i]
				}
				c.link.Ends = append(c.link.Ends, e)
			}
			parts, err := wiring.Divide(c.link, c.at)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range parts {
				got = append(got, written(&p))
			}
			if !slices.Equal(got, c.parts) {
				t.Errorf("parts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.parts, "\n"))
			}
			if tunnelled := strings.Contains(strings.Join(c.parts, ""), "vni"); wiring.Tunnelled(parts) != tunnelled {
				t.Errorf("tunnelled: %v", !tunnelled)
			}
			if len(c.link.Ends) != len(c.at) {
				t.Errorf("the link has %d ends left of %d", len(c.link.Ends), len(c.at))
			}
		})
	}
}

func written(p *wiring.Part) string {
	var ends []string
	for _, e := range p.Link.Ends {
		ends = append(ends, string(e.Interface))
	}
	s := p.Machine.Name + " " + strings.Join(ends, ",")
	if p.Link.VNI != 0 {
		s += fmt.Sprintf(" vni %d", p.Link.VNI)
	}
	if p.Way.Local.IsValid() {
		s += " from " + p.Way.Local.String()
	}
	for i, peer := range p.Way.Peers {
		if i == 0 {
			s += " to"
		}
		s += " " + peer.String()
	}
	if p.Link.VLAN != 0 {
		s += fmt.Sprintf(" vlan %d", p.Link.VLAN)
	}
	if p.Way.Uplink != "" {
		s += " by " + p.Way.Uplink
	}
	return s + fmt.Sprintf(" of %d", p.Way.Machines)
}
