package tosca

import (
	"fmt"
	"net/netip"

	"croft/capacity"
	"croft/languages/tosca/model"
	"croft/languages/tosca/values"
	"croft/languages/tree"
	"croft/request"
)

// attachment is an interface of a computer on a network.
type attachment struct {
	computer, network *instance
	via               *instance           // the port node, or nil
	relation          *model.Relationship // of the testbed profile, or nil
	id                request.ClientID
	address           netip.Prefix
}

// defaultLAN joins the computers of templates that have no network.
const defaultLAN = "lan"

// links makes the interfaces of computers and the links that join them.
func (d *deployment) links() {
	var nets []*instance
	for _, i := range d.instances {
		switch i.role {
		case network:
			nets = append(nets, i)
		case port:
			d.attachPort(i)
		case computer:
			for _, t := range i.targets {
				if t.instance.role == network {
					d.attach(&attachment{computer: i, network: t.instance, relation: t.relationship})
				}
			}
		}
	}
	for _, n := range nets {
		d.link(n)
	}
	if len(nets) == 0 {
		d.joinAll()
	}
}

func (d *deployment) attachPort(i *instance) {
	a := &attachment{via: i}
	for _, t := range i.targets {
		switch t.instance.role {
		case network:
			a.network = t.instance
		case computer:
			a.computer = t.instance
		case software:
			if t.instance.host != nil && t.relationship.Type.IsNamed("BindsTo") {
				a.computer = t.instance.host
			}
		}
	}
	s := i.part.service
	switch {
	case a.network == nil:
		s.Tell(i.node.Entry, "its requirement link leads to one", "port %s is on no network", i.node.Name)
	case a.computer == nil:
		s.Tell(i.node.Entry, "its requirement binding leads to one", "port %s is of no computer", i.node.Name)
	default:
		d.attach(a)
	}
}

// attach gives a computer an interface.
func (d *deployment) attach(a *attachment) {
	c := a.computer
	a.id = request.ClientID(fmt.Sprintf("%s:if%d", c.id, len(c.ports)))
	s, at := c.part.service, c.node.Entry
	var wish, mac string
	switch {
	case a.via != nil:
		wish, at = text(a.via.node.Property("ip_address", a.via.index)), a.via.node.Entry
		s = a.via.part.service
	case a.relation != nil:
		wish, mac = text(a.relation.Property("address", c.index)), text(a.relation.Property("mac_address", c.index))
		at = entryOf(a.relation)
		if name := text(a.relation.Property("interface", c.index)); name != "" {
			a.id = request.ClientID(fmt.Sprintf("%s:%s", c.id, notInNames.ReplaceAllString(name, "-")))
		}
	}
	a.address = d.addressOf(s, at, wish, a.network)
	c.ports, a.network.ports = append(c.ports, a), append(a.network.ports, a)
	if c.exists || c.request == nil {
		s.Tell(at, "", "node %s is there already, and gets no further interface", c.id)
		return
	}
	for _, have := range c.request.Interfaces {
		if have.ID == a.id {
			s.Tell(at, "", "node %s has an interface %s already", c.id, a.id)
			return
		}
	}
	made := request.Interface{ID: a.id, Place: d.place(s, at), MAC: mac}
	c.request.Interfaces = append(c.request.Interfaces, made)
}

// addressOf reads the address of an interface, with the length of the
// network's prefix where it has none.
func (d *deployment) addressOf(s *model.Service, at *tree.Node, wish string, net *instance) netip.Prefix {
	if wish == "" {
		return netip.Prefix{}
	}
	if p, err := netip.ParsePrefix(wish); err == nil {
		return p
	}
	a, err := netip.ParseAddr(wish)
	if err != nil {
		s.Tell(at, "", "%q is no address", wish)
		return netip.Prefix{}
	}
	bits := 24
	if a.Is6() {
		bits = 64
	}
	if cidr, err := netip.ParsePrefix(text(net.node.Property("cidr", net.index))); err == nil {
		bits = cidr.Bits()
		if !cidr.Contains(a) {
			s.Tell(at, "", "address %s is not in the network %s", a, cidr)
		}
	}
	return netip.PrefixFrom(a, bits)
}

// link makes the link of a network.
func (d *deployment) link(i *instance) {
	s, n := i.part.service, i.node
	l := &request.Link{ID: i.id, Place: d.place(s, n.Entry), Type: "lan"}
	i.link = l
	if v := text(n.Property("link_type", i.index)); v != "" {
		l.Type = request.LinkType(v)
	}
	if v := text(n.Property("shared_vlan", i.index)); v != "" {
		l.SharedVLAN = v
	} else if n.Has("select", "selectable") {
		if l.SharedVLAN = text(n.Property("network_name", i.index)); l.SharedVLAN == "" {
			s.Tell(n.Entry, "network_name names the shared VLAN", "network %s is to be selected, and has no network_name", n.Name)
		}
	}
	d.properties(i, l)
	d.addresses++
	d.assignAddresses(i, d.addresses)
	for _, a := range i.ports {
		l.Ends = append(l.Ends, request.End{Node: a.computer.id, Interface: a.id, Existing: a.computer.exists, Place: d.place(s, n.Entry)})
	}
	if len(l.Ends) == 0 && l.SharedVLAN == "" {
		s.Warn(n.Entry, "", "nothing is on network %s: it is left out", n.Name)
		return
	}
	d.request.Links = append(d.request.Links, *l)
}

func (d *deployment) properties(i *instance, l *request.Link) {
	p := request.Property{Place: l.Place}
	if q, ok := i.node.Property("bandwidth", i.index).(values.Quantity); ok {
		p.Capacity = capacity.Kbps(q.Amount / 1000)
	}
	if q, ok := i.node.Property("latency", i.index).(values.Quantity); ok {
		p.LatencyMs = q.Amount * 1000
	}
	if f, ok := i.node.Property("loss", i.index).(float64); ok {
		p.Loss = f
	}
	if p.Capacity > 0 || p.LatencyMs > 0 || p.Loss > 0 {
		l.Properties = append(l.Properties, p)
	}
}

// assignAddresses gives addresses to the interfaces on a network that asked
// for none: of its cidr, or of one that is made up.
func (d *deployment) assignAddresses(i *instance, number int) {
	cidr, err := netip.ParsePrefix(text(i.node.Property("cidr", i.index)))
	if err != nil {
		if v := text(i.node.Property("cidr", i.index)); v != "" {
			i.part.service.Tell(i.node.Entry, "want one such as 10.1.0.0/24", "cidr %q of network %s is no prefix", v, i.node.Name)
			return
		}
		cidr = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(128 + number/256%64), byte(number % 256), 0}), 24)
	}
	next := cidr.Masked().Addr().Next()
	if a, err := netip.ParseAddr(text(i.node.Property("start_ip", i.index))); err == nil && cidr.Contains(a) {
		next = a
	}
	taken := map[netip.Addr]bool{}
	if a, err := netip.ParseAddr(text(i.node.Property("gateway_ip", i.index))); err == nil {
		taken[a] = true
	}
	for _, a := range i.ports {
		if a.address.IsValid() {
			if taken[a.address.Addr()] {
				i.part.service.Tell(i.node.Entry, "", "address %s is on network %s twice", a.address.Addr(), i.node.Name)
			}
			taken[a.address.Addr()] = true
		}
	}
	for _, a := range i.ports {
		if !a.address.IsValid() {
			for taken[next] {
				next = next.Next()
			}
			if !cidr.Contains(next) || !cidr.Contains(next.Next()) {
				i.part.service.Tell(i.node.Entry, "", "network %s has no addresses left in %s", i.node.Name, cidr)
				return
			}
			a.address = netip.PrefixFrom(next, cidr.Bits())
			taken[next] = true
		}
		d.setAddress(a)
	}
}

func (d *deployment) setAddress(a *attachment) {
	if a.computer.request == nil {
		return
	}
	for k := range a.computer.request.Interfaces {
		if f := &a.computer.request.Interfaces[k]; f.ID == a.id {
			f.Addresses = []netip.Prefix{a.address}
		}
	}
}

// joinAll puts the computers of a template without networks on one LAN, so
// that what is on them reaches each other.
func (d *deployment) joinAll() {
	var computers []*instance
	for _, i := range d.instances {
		if i.role == computer && !i.exists {
			computers = append(computers, i)
		}
	}
	if len(computers) < 2 {
		return
	}
	at := computers[0].request.Place
	l := request.Link{ID: d.name(defaultLAN, false, 0), Place: at, Type: "lan"}
	bits := 24
	for 1<<(32-bits)-2 < len(computers) {
		bits--
	}
	next := netip.AddrFrom4([4]byte{10, 128, 0, 1})
	for _, c := range computers {
		id := request.ClientID(fmt.Sprintf("%s:if%d", c.id, len(c.request.Interfaces)))
		c.request.Interfaces = append(c.request.Interfaces, request.Interface{ID: id, Place: at, Addresses: []netip.Prefix{netip.PrefixFrom(next, bits)}})
		c.ports = append(c.ports, &attachment{computer: c, id: id, address: netip.PrefixFrom(next, bits)})
		l.Ends = append(l.Ends, request.End{Node: c.id, Interface: id, Place: at})
		next = next.Next()
	}
	d.request.Links = append(d.request.Links, l)
}

// groups makes wishes about placement of policies.
func (d *deployment) groups() {
	for _, p := range d.parts {
		for _, policy := range p.service.Policies {
			d.policy(p, policy)
		}
		for _, name := range p.service.Workflows.Names {
			w, _ := p.service.Workflows.Get(name)
			if name == "deploy" || name == "install" {
				p.service.Tell(w.Node, "create, configure and start run by themselves, in the order of relationships", "workflow %s would have to run instead of what the types say; imperative workflows do not run here", name)
				continue
			}
			p.service.Warn(w.Node, "", "workflow %s does not run here", name)
		}
	}
}

func (d *deployment) policy(p *part, policy *model.Policy) {
	s := p.service
	if policy.Triggers {
		s.Warn(policy.Entry, "", "triggers of policy %s do not run here", policy.Name)
	}
	t := policy.Type
	apart, together, site := t.IsNamed("Apart"), t.IsNamed("Together"), t.IsNamed("Site")
	if !apart && !together && !site {
		if t.IsNamed("Placement") {
			s.Warn(policy.Entry, "there are Together, Apart and Site of org.croft.testbed:1.0", "policy %s of type %s has no effect here", policy.Name, typeName(t))
		}
		return
	}
	var on []*instance
	seen := map[*instance]bool{}
	for _, i := range d.members(p, policy.Targets, 0) {
		if i.host != nil && !seen[i.host] {
			seen[i.host] = true
			on = append(on, i.host)
		}
	}
	if site {
		for _, i := range on {
			if i.request != nil {
				i.request.Site = text(policy.Property("site", 0))
			}
		}
		return
	}
	g := request.Group{Name: policy.Name, Apart: apart, By: request.Closeness(text(policy.Property("by", 0))), Place: d.place(s, policy.Entry)}
	for _, i := range on {
		g.Nodes = append(g.Nodes, i.id)
	}
	if len(g.Nodes) > 1 {
		d.request.Groups = append(d.request.Groups, g)
	}
}

// members are the instances of nodes and groups, by their names.
func (d *deployment) members(p *part, names []string, depth int) []*instance {
	var made []*instance
	for _, name := range names {
		if n, ok := p.service.Nodes.Get(name); ok {
			made = append(made, d.of[n]...)
		} else if g, ok := p.service.Groups.Get(name); ok && depth < 20 {
			made = append(made, d.members(p, g.Members, depth+1)...)
		}
	}
	return made
}
