package mappingtest

import (
	"fmt"
	"math/rand/v2"

	"croft/capacity"
	"croft/inventory"
	"croft/mapping"
	"croft/request"
	"croft/urn"
)

// Wired makes a case on a testbed with switches, cables and trunks, features,
// sites and parts: whole machines, and some shared ones. Its requests have
// links of all kinds, groups and classes.
func Wired(r *rand.Rand, hosts, nodes int) Case {
	const authority = "test.example.org"
	name := func(typ urn.Type, n string) urn.URN { return urn.URN{Authority: authority, Type: typ, Name: n} }
	chance := func(percent int) bool { return r.IntN(100) < percent }
	s := &inventory.Snapshot{Authority: authority, Manager: name(urn.AuthorityType, "cm"), Sites: []inventory.Site{{Name: "north"}, {Name: "south"}}}
	s.Types = []inventory.SliverType{
		{Name: "raw-pc", Driver: "simulated", WholeHost: true, Shaping: chance(50)},
		{Name: "vm", Driver: "simulated", Default: capacity.Amount{Cores: 1000}, Shaping: true},
	}
	s.Features = []inventory.FeatureType{{Name: "licence", FirstOnly: chance(50)}}
	s.SharedVLANs = []inventory.SharedVLAN{{Name: "campus", Tag: 120}}
	if chance(70) {
		s.Pools.VLANs = []inventory.VLANRange{{First: 100, Last: 101 + r.IntN(8)}}
	}
	if chance(20) {
		s.Policies = []inventory.Policy{{HardwareType: "big", Most: 1 + r.IntN(2)}}
	}
	sites := []string{"north", "south"}
	for i := range 1 + r.IntN(3) {
		n := fmt.Sprintf("sw%d", i)
		s.Switches = append(s.Switches, inventory.Switch{ID: name(urn.Node, n), Name: n, Site: sites[i%2]})
		for k := range i {
			for t := range r.IntN(3) {
				l := fmt.Sprintf("trunk%d-%d-%d", k, i, t)
				s.Links = append(s.Links, inventory.Link{ID: name(urn.Link, l), Name: l, Capacity: capacity.Kbps(1000 * (1 + r.IntN(4))), Ends: [2]inventory.Port{
					{Node: s.Switches[k].ID, Interface: name(urn.Interface, n+":"+l)}, {Node: s.Switches[i].ID, Interface: name(urn.Interface, "o"+n+":"+l)}}})
			}
		}
	}
	for i := range 2 + r.IntN(hosts) {
		n := fmt.Sprintf("h%d", i)
		h := inventory.Host{ID: name(urn.Node, n), Name: n, Site: sites[r.IntN(2)], HardwareTypes: []string{[]string{"small", "big"}[r.IntN(2)], "pc"},
			Types: []request.SliverType{"raw-pc"}, Exclusive: true, Capacity: capacity.Amount{Cores: 4000}, Architecture: "x86_64"}
		if chance(40) {
			h.Types, h.Shared, h.Exclusive = []request.SliverType{"vm"}, true, false
			h.MaxSlivers = 1 + r.IntN(4)
			h.Internal = capacity.Kbps(2000 * r.IntN(2))
			if chance(30) {
				h.TypeLimits = map[request.SliverType]int{"vm": 2}
			}
		}
		if chance(30) {
			h.Features = append(h.Features, inventory.Feature{Name: "ssd", Weight: []float64{0, 0.2, 1}[r.IntN(3)]})
		}
		if chance(30) {
			h.Features = append(h.Features, inventory.Feature{Name: "scratch", Amount: 10})
		}
		if chance(20) {
			h.Features = append(h.Features, inventory.Feature{Name: "licence", Weight: 0.3})
		}
		if chance(30) {
			h.Capacity.GPUs = 1 + r.Int64N(3)
		}
		if i > 0 && chance(15) {
			h.Parent = s.Hosts[r.IntN(len(s.Hosts))].ID
		}
		for k := range r.IntN(4) {
			f := fmt.Sprintf("eth%d", k)
			id := name(urn.Interface, n+":"+f)
			speed := capacity.Kbps([]int{0, 1000, 1000, 2000}[r.IntN(4)])
			h.Interfaces = append(h.Interfaces, inventory.Interface{ID: id, Name: f, Speed: speed, Role: inventory.Experimental})
			if chance(10) {
				continue // no cable
			}
			to := &s.Switches[r.IntN(len(s.Switches))]
			s.Links = append(s.Links, inventory.Link{ID: name(urn.Link, n+f), Name: n + f, Capacity: speed,
				Ends: [2]inventory.Port{{Node: h.ID, Interface: id}, {Node: to.ID, Interface: name(urn.Interface, to.Name+":"+n+f)}}})
		}
		s.Hosts = append(s.Hosts, h)
	}
	c := Case{Snapshot: s, Request: &request.Request{}, Options: mapping.Options{Slice: name(urn.Slice, "s0"), Seed: r.Uint64()}}
	c.Occupancy.Hosts = map[urn.URN]mapping.Use{}
	wiredOccupancy(r, &c)
	wiredRequest(r, &c, 1+r.IntN(nodes))
	return c
}

// wiredOccupancy lets others have some of it.
func wiredOccupancy(r *rand.Rand, c *Case) {
	theirs := urn.URN{Authority: "test.example.org", Type: urn.Slice, Name: "theirs"}.Canonical()
	c.Occupancy.Wires, c.Occupancy.VLANs = map[urn.URN]mapping.WireUse{}, map[int]int{}
	for i := range c.Snapshot.Hosts {
		h := &c.Snapshot.Hosts[i]
		if r.IntN(4) > 0 {
			continue
		}
		use := mapping.Use{Slivers: 1, Amount: capacity.Amount{Cores: 1000}, Slices: []urn.URN{theirs}, Types: map[request.SliverType]int{h.Types[0]: 1}}
		if h.Exclusive {
			use.Exclusive, use.Amount = true, h.Capacity
		}
		for _, f := range h.Features {
			if f.Amount > 0 {
				use.Features = map[string]float64{f.Name: 4}
			}
		}
		c.Occupancy.Hosts[h.ID.Canonical()] = use
	}
	for _, l := range c.Snapshot.Links {
		if r.IntN(5) == 0 {
			trunk := isSwitch(*c, l.Ends[0].Node)
			c.Occupancy.Wires[l.ID.Canonical()] = mapping.WireUse{Bandwidth: min(l.Capacity, 500), Links: 1, Exclusive: !trunk && r.IntN(2) == 0}
		}
	}
	if r.IntN(2) == 0 {
		c.Occupancy.VLANs[100] = 1
	}
}

func wiredRequest(r *rand.Rand, c *Case, nodes int) {
	req := c.Request
	chance := func(percent int) bool { return r.IntN(100) < percent }
	for i := range nodes {
		n := request.Node{ID: request.ClientID(fmt.Sprintf("n%d", i)), Place: request.Place{Line: i + 1}, Optional: chance(10)}
		if chance(50) {
			n.SliverType = []request.SliverType{"raw-pc", "vm"}[r.IntN(2)]
		}
		if chance(15) {
			n.HardwareTypes = []string{[]string{"small", "big"}[r.IntN(2)]}
		}
		if chance(15) {
			n.Site = []string{"north", "south"}[r.IntN(2)]
		}
		if chance(10) {
			n.Architecture = "X86_64"
		}
		if chance(15) {
			n.Features = append(n.Features, request.Feature{Name: "ssd", Weight: []float64{0.3, 1}[r.IntN(2)]})
		}
		if chance(15) {
			n.Features = append(n.Features, request.Feature{Name: "scratch", Weight: 1, Amount: float64(1 + r.IntN(6))})
		}
		if chance(10) {
			n.Capacity.GPUs = 1 + r.Int64N(2)
		}
		if chance(10) {
			n.Most.Cores = 2000
		}
		req.Nodes = append(req.Nodes, n)
	}
	if chance(25) && nodes > 1 {
		req.Classes = []request.Class{{Name: "same", Weight: []float64{0.5, 1}[r.IntN(2)], Types: []string{"small", "big"}}}
		for i := range req.Nodes {
			if chance(50) {
				req.Nodes[i].Class = "same"
			}
		}
	}
	if chance(30) && nodes > 1 {
		g := request.Group{Name: "g", Apart: chance(50), By: []request.Closeness{request.ByHost, request.BySwitch, request.BySite}[r.IntN(3)], Weight: []float64{0, 0.5, 1}[r.IntN(3)]}
		for i := range req.Nodes {
			if chance(50) {
				g.Nodes = append(g.Nodes, req.Nodes[i].ID)
			}
		}
		req.Groups = append(req.Groups, g)
	}
	if chance(10) && nodes > 1 {
		req.Nodes[nodes-1].Parent = req.Nodes[0].ID
	}
	for i := range r.IntN(nodes + 2) {
		l := request.Link{ID: request.ClientID(fmt.Sprintf("l%d", i)), Place: request.Place{Line: 100 + i},
			Multiplexed: request.Choice(r.IntN(3) * r.IntN(2)), Trivial: request.Choice(2 * (r.IntN(5) / 4)), NoInterswitch: chance(10), BestEffort: chance(10)}
		for _, k := range r.Perm(nodes)[:1+r.IntN(min(3, nodes))] {
			n := &req.Nodes[k]
			f := request.Interface{ID: request.ClientID(fmt.Sprintf("%s:if%d", n.ID, len(n.Interfaces)))}
			n.Interfaces = append(n.Interfaces, f)
			l.Ends = append(l.Ends, request.End{Node: n.ID, Interface: f.ID})
		}
		if chance(40) {
			l.Properties = []request.Property{{Capacity: capacity.Kbps(500 * (1 + r.IntN(4)))}}
		} else if chance(10) && len(l.Ends) > 1 {
			l.Properties = []request.Property{{From: l.Ends[0].Interface, Capacity: 500, LatencyMs: 10}}
		}
		if chance(10) {
			l.SharedVLAN = "campus"
		}
		req.Links = append(req.Links, l)
	}
}
