package radl

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"croft/languages"
	"croft/request"
)

// lan is a network that machines of the request share.
type lan struct {
	name   string
	aspect *Aspect
	public bool
	cidr   netip.Prefix // zero if it has none
	shared string       // shared VLAN of the testbed; "" for none
	ports  []request.Port
	ends   []lanEnd
}

type lanEnd struct {
	machine, iface int
	want           netip.Addr // zero leaves it open
	place          request.Place
}

// network is a network of the document, by its name; nil if there is none.
func (c *compiler) network(name string) *lan {
	if l := c.lans[name]; l != nil {
		return l
	}
	a := c.definitions.aspects[Network][name]
	if a == nil {
		return nil
	}
	l := &lan{name: name, aspect: a}
	c.lans[name] = l
	c.lanOrder = append(c.lanOrder, l)
	for i := range a.Features {
		f := &a.Features[i]
		switch f.Name {
		case "outbound":
			l.public = strings.EqualFold(f.Value.Text, "yes")
		case "cidr":
			p, err := netip.ParsePrefix(f.Value.Text)
			if err != nil {
				c.refuseFeature(a, f, fmt.Sprintf("network %s: the cidr %q is no network", name, shorten(f.Value.Text)), "want such as 10.1.0.0/24")
				continue
			}
			l.cidr = p.Masked()
		case "provider_id":
			l.shared = f.Value.Text
		case "outports":
			c.ports(l, f)
		}
	}
	if l.public && l.shared != "" {
		// On a public network it is the pool of addresses of a cloud.
		c.keep(c.place(a, a.Offset, "network "+name), fmt.Sprintf("network %s: the pool of addresses %q is kept and not used: nodes are reached at addresses of this testbed", name, shorten(l.shared)), "")
		l.shared = ""
	}
	return l
}

// refuseFeature refuses a feature of an aspect of this document or an earlier
// one.
func (c *compiler) refuseFeature(a *Aspect, f *Feature, what, hint string) {
	at := f.Offset
	if c.definitions.earlier[a] {
		at = 0
	}
	c.refuse(at, what, hint)
}

// networkFeature tells of features of networks that have no effect here.
func (c *compiler) networkFeature(a *Aspect, f *Feature) {
	what := ""
	switch f.Name {
	case "outbound", "outports", "provider_id", "cidr":
		return
	case "create":
		if !strings.EqualFold(f.Value.Text, "no") {
			return // networks are always created
		}
		what = "networks are made for every slice"
	case "sg_name":
		what = "there are no security groups here"
	case "router", "proxy_host":
		what = "nodes are reached by the logins of the manifest"
	default:
		what = "nobody here knows it"
	}
	c.keep(c.place(a, f.Offset, "network "+a.Name), fmt.Sprintf("network %s: %s is kept and has no effect: %s", a.Name, f.Name, what), "")
}

// maxPorts bounds the ports of a network.
const maxPorts = 256

// ports reads the ports to be reached from outside.
func (c *compiler) ports(l *lan, f *Feature) {
	list, _, _ := parseOutports(f.Value.Text)
	place := c.place(l.aspect, f.Value.Offset, "network "+l.name)
	for _, p := range list {
		if p.protocol == "icmp" {
			c.keep(place, fmt.Sprintf("network %s: ICMP is not let in from outside", l.name), "")
			continue
		}
		if p.from != "" {
			c.keep(place, fmt.Sprintf("network %s: outports are open to all, not only to %s", l.name, p.from), "")
		}
		if p.local != p.first {
			c.keep(place, fmt.Sprintf("network %s: port %d outside, for %d, has the number that the testbed gives it", l.name, p.first, p.local), "the manifest says which")
		}
		for n := p.first; n <= p.last; n++ {
			number := n
			if p.first == p.last {
				number = p.local
			}
			if number == 0 {
				continue
			}
			if len(l.ports) >= maxPorts {
				c.refuseFeature(l.aspect, f, fmt.Sprintf("network %s: more than %d ports", l.name, maxPorts), "")
				return
			}
			l.ports = append(l.ports, request.Port{
				Name: strconv.Itoa(number) + "-" + p.protocol, Number: number, Protocol: p.protocol, Place: place,
			})
		}
	}
}

// links makes a LAN of every network that machines are on, or adds them to the
// one that the slice has, and gives addresses to the machines on networks that
// have a CIDR.
func (c *compiler) links() {
	standing, taken := map[request.ClientID]bool{}, map[request.ClientID]bool{}
	for _, id := range c.scope.Links {
		standing[id], taken[id] = true, true
	}
	for _, e := range c.scope.Existing {
		taken[e.Node] = true
	}
	for i := range c.request.Nodes {
		taken[c.request.Nodes[i].ID] = true
	}
	for _, l := range c.lanOrder {
		if len(l.ends) == 0 {
			continue
		}
		c.addresses(l)
		place := c.place(l.aspect, l.aspect.Offset, "network "+l.name)
		link := request.Link{ID: request.ClientID(l.name), Place: place, Type: "lan", SharedVLAN: l.shared, Manager: c.manager(), Loose: true}
		link.Existing = standing[link.ID] && c.definitions.before[l.name]
		for n := 2; taken[link.ID] && !link.Existing; n++ {
			link.ID = request.ClientID(fmt.Sprintf("%s-%d", l.name, n))
		}
		taken[link.ID] = true
		for _, e := range l.ends {
			n := &c.request.Nodes[c.machines[e.machine].node]
			link.Ends = append(link.Ends, request.End{Node: n.ID, Interface: n.Interfaces[e.iface].ID, Place: e.place})
		}
		c.request.Links = append(c.request.Links, link)
	}
}

// addresses gives the machines of a network theirs: those that they ask for,
// and others of the network's CIDR.
func (c *compiler) addresses(l *lan) {
	const usual = 24 // bits of the network of an address that comes without one
	taken := map[netip.Addr]bool{}
	for i := range l.ends {
		e := &l.ends[i]
		if !e.want.IsValid() {
			continue
		}
		if taken[e.want] {
			n := c.request.Nodes[c.machines[e.machine].node]
			c.problems = append(c.problems, problemAt(e.place, fmt.Sprintf("two machines of network %s have the address %s, one of them %s", l.name, e.want, n.ID),
				"an address in a system is that of all its machines: deploy one of it, or leave the address out"))
			return
		}
		taken[e.want] = true
		if l.cidr.IsValid() && !l.cidr.Contains(e.want) {
			c.problems = append(c.problems, problemAt(e.place, fmt.Sprintf("the address %s is not of network %s, %s", e.want, l.name, l.cidr), ""))
			return
		}
	}
	if !l.cidr.IsValid() {
		for _, e := range l.ends {
			if e.want.IsValid() {
				bits := usual
				if e.want.Is6() {
					bits = 64
				}
				c.setAddress(e, netip.PrefixFrom(e.want, bits))
			}
		}
		return
	}
	for _, e := range c.scope.Existing {
		for _, a := range e.Addresses {
			taken[a.Addr()] = true
		}
	}
	next := l.cidr.Addr().Next() // the first is the network's own
	for _, e := range l.ends {
		if e.want.IsValid() {
			c.setAddress(e, netip.PrefixFrom(e.want, l.cidr.Bits()))
			continue
		}
		for taken[next] {
			next = next.Next()
		}
		if !l.cidr.Contains(next) || next.Is4() && !l.cidr.Contains(next.Next()) { // the last is for broadcasts
			c.problems = append(c.problems, problemAt(e.place, fmt.Sprintf("network %s, %s, has too few addresses for its %d machines", l.name, l.cidr, len(l.ends)), "give it a larger cidr"))
			return
		}
		c.setAddress(e, netip.PrefixFrom(next, l.cidr.Bits()))
		next = next.Next()
	}
}

func (c *compiler) setAddress(e lanEnd, p netip.Prefix) {
	n := &c.request.Nodes[c.machines[e.machine].node]
	n.Interfaces[e.iface].Addresses = []netip.Prefix{p}
}

func problemAt(p request.Place, what, hint string) languages.Problem {
	if p.Line > 0 && p.Path != "" {
		// A place with a path is told without its column.
		what, p.Path = p.Path+": "+strings.TrimPrefix(what, p.Path+": "), ""
	}
	return languages.Problem{Place: p, What: what, Hint: hint}
}

// inOrder sorts problems by where they are.
func inOrder(list []languages.Problem) []languages.Problem {
	slices.SortStableFunc(list, func(a, b languages.Problem) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column))
	})
	return list
}
