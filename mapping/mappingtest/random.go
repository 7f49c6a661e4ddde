package mappingtest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"croft/capacity"
	"croft/inventory"
	"croft/mapping"
	"croft/request"
	"croft/urn"
)

// Random makes a case with at most so many hosts and nodes: tight enough that
// often it only just fits, or just does not.
func Random(r *rand.Rand, hosts, nodes int) Case {
	const authority = "test.example.org"
	name := func(typ urn.Type, n string) urn.URN { return urn.URN{Authority: authority, Type: typ, Name: n} }
	chance := func(percent int) bool { return r.IntN(100) < percent }
	s := &inventory.Snapshot{Authority: authority, Manager: name(urn.AuthorityType, "cm")}
	for i := range 3 {
		n := fmt.Sprintf("image%d", i)
		s.Images = append(s.Images, inventory.Image{ID: name(urn.Image, n), Name: n, URL: "https://images.example.org/" + n})
	}
	s.Types = []inventory.SliverType{
		{Name: "namespace", Driver: "namespace", Default: capacity.Amount{Cores: 500, Memory: 256}, Aliases: []request.SliverType{"default-vm"}},
		{Name: "vm", Driver: "namespace", Default: capacity.Amount{Cores: 1000, Memory: 512, Disk: 100}, Images: []urn.URN{s.Images[0].ID, s.Images[1].ID}, Shaping: true},
		{Name: "raw-pc", Driver: "simulated", WholeHost: true, Images: []urn.URN{s.Images[2].ID}},
	}
	slice := func(i int) urn.URN { return name(urn.Slice, fmt.Sprintf("s%d", i)) }
	c := Case{Snapshot: s, Request: &request.Request{}, Options: mapping.Options{Slice: slice(0), Seed: r.Uint64()}}
	c.Occupancy.Hosts = map[urn.URN]mapping.Use{}
	for i := range 1 + r.IntN(hosts) {
		n := fmt.Sprintf("h%d", i)
		h := inventory.Host{ID: name(urn.Node, n), Name: n, HardwareTypes: []string{[]string{"small", "large"}[r.IntN(2)]}}
		for _, t := range r.Perm(3)[:1+r.IntN(2)] {
			h.Types = append(h.Types, s.Types[t].Name)
		}
		h.Exclusive = chance(70)
		h.Shared = !h.Exclusive || chance(60)
		h.Capacity = capacity.Amount{Cores: capacity.Cores(500 * (1 + r.IntN(8))), Memory: capacity.MiB(256 * (1 + r.IntN(8)))}
		if chance(30) {
			h.Capacity.Disk = capacity.MiB(100 * (1 + r.IntN(4)))
		}
		if chance(10) {
			h.Capacity = capacity.Amount{}
		}
		if chance(30) {
			h.MaxSlivers = 1 + r.IntN(3)
		}
		if chance(10) {
			h.OutOfService = "broken"
		}
		if chance(10) {
			h.Images = []urn.URN{s.Images[r.IntN(3)].ID}
		}
		for j := range r.IntN(4) {
			role := inventory.Experimental
			if j == 0 {
				role = inventory.Control
			}
			f := fmt.Sprintf("eth%d", j)
			h.Interfaces = append(h.Interfaces, inventory.Interface{ID: name(urn.Interface, n+":"+f), Name: f, Role: role})
		}
		if chance(40) {
			use := mapping.Use{Slivers: 1, Amount: capacity.Amount{Cores: 500, Memory: 256}, Exclusive: chance(30), Slices: []urn.URN{slice(r.IntN(2)).Canonical()}}
			// A node that takes the whole of a host leaves nothing of it, which
			// the sums alone cannot say.
			if !slices.Contains(h.Types, "raw-pc") || h.Capacity != (capacity.Amount{}) {
				c.Occupancy.Hosts[h.ID.Canonical()] = use
			}
		}
		s.Hosts = append(s.Hosts, h)
	}
	picky := chance(30)
	for i := range 1 + r.IntN(nodes) {
		c.Request.Nodes = append(c.Request.Nodes, randomNode(r, s, i, picky))
	}
	if chance(30) {
		standsOn(&c, &s.Hosts[0], slice(0).Canonical())
		c.Occupancy.Existing = []mapping.ExistingNode{{ID: "old", Host: s.Hosts[0].ID, SliverType: s.Hosts[0].Types[0], Interfaces: []mapping.ExistingInterface{
			{ID: "old:if0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.10.1.7/24")}}, {ID: "old:if1", Linked: true}}}}
	}
	randomLinks(r, &c)
	return c
}

// standsOn lets a node of a slice take of a host what it must have.
func standsOn(c *Case, h *inventory.Host, slice urn.URN) {
	t, _ := c.Snapshot.Type(h.Types[0])
	use := mapping.Use{Slivers: 1, Amount: t.Default, Exclusive: t.WholeHost || !h.Shared, Slices: []urn.URN{slice}}
	if t.WholeHost {
		use.Amount = h.Capacity
	}
	c.Occupancy.Hosts[h.ID.Canonical()] = use
}

func randomNode(r *rand.Rand, s *inventory.Snapshot, i int, picky bool) request.Node {
	chance := func(percent int) bool {
		if !picky {
			percent /= 8
		}
		return r.IntN(100) < percent
	}
	n := request.Node{ID: request.ClientID(fmt.Sprintf("n%d", i)), Place: request.Place{Line: i + 1}}
	if chance(70) {
		n.Exclusive = request.Choice(1 + r.IntN(2))
	}
	if chance(50) {
		n.SliverType = []request.SliverType{"namespace", "vm", "raw-pc", "default-vm"}[r.IntN(4)]
	}
	if chance(10) {
		n.Component = s.Hosts[r.IntN(len(s.Hosts))].ID
	} else if chance(5) {
		n.ComponentName = s.Hosts[r.IntN(len(s.Hosts))].Name
	}
	if chance(15) {
		n.HardwareTypes = []string{[]string{"small", "large"}[r.IntN(2)]}
	}
	if chance(15) {
		image := s.Images[r.IntN(3)]
		n.Image = []request.Image{{Name: image.Name}, {Name: image.ID.String()}, {URL: image.URL}}[r.IntN(3)]
	}
	if r.IntN(2) == 0 {
		n.Capacity.Cores = capacity.Cores(500 * (1 + r.IntN(4)))
	}
	if r.IntN(4) == 0 {
		n.Capacity.Memory = capacity.MiB(256 * (1 + r.IntN(3)))
	}
	return n
}

func randomLinks(r *rand.Rand, c *Case) {
	for i := range r.IntN(3) {
		l := request.Link{ID: request.ClientID(fmt.Sprintf("l%d", i)), Place: request.Place{Line: 100 + i}}
		for j := range c.Request.Nodes {
			if r.IntN(2) == 0 {
				continue
			}
			n := &c.Request.Nodes[j]
			f := request.Interface{ID: request.ClientID(fmt.Sprintf("%s:if%d", n.ID, len(n.Interfaces)))}
			if r.IntN(4) == 0 {
				f.Addresses = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 10, byte(i + 1), byte(10 + j)}), 24)}
			}
			n.Interfaces = append(n.Interfaces, f)
			l.Ends = append(l.Ends, request.End{Node: n.ID, Interface: f.ID})
		}
		if len(c.Occupancy.Existing) > 0 && i == 0 && r.IntN(2) == 0 {
			l.Ends = append(l.Ends, request.End{Node: "old", Interface: "old:if0", Existing: true})
		}
		if r.IntN(30) == 0 {
			l.Properties = []request.Property{{Capacity: 1000}}
		}
		if len(l.Ends) > 0 {
			c.Request.Links = append(c.Request.Links, l)
		}
	}
}
