package rspec

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/beevik/etree"

	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// annotation puts slivers into one document.
type annotation struct {
	*document
	manager urn.URN
	gateway Gateway
	edits   edits

	nodes map[request.ClientID]*slivers.Sliver // to be shown
	links map[request.ClientID]*slivers.Sliver
	used  map[*slivers.Sliver]bool // found in the document

	components map[slivers.End]urn.URN           // of the interfaces of all nodes shown, by node and interface
	known      func(iface request.ClientID) bool // an interface of a node of the slice, in whatever document
}

// annotate notes the edits that make the document a manifest of the slivers.
// Nodes and links of ours that have none are taken out.
func (a *annotation) annotate() {
	own := map[*slivers.Sliver]bool{}
	for _, n := range a.document.nodes {
		if n.ours {
			own[a.nodes[n.id]] = true
		}
	}
	for _, l := range a.document.links {
		if a.reachOf(l, a.known) != elsewhere {
			own[a.links[l.id]] = true
		}
	}
	// What has a sliver but is not ours is of a manager that once was us,
	// unless the sliver is that of something that is ours.
	for _, n := range a.document.nodes {
		switch s := a.nodes[n.id]; {
		case s != nil && (n.ours || !own[s]):
			a.used[s] = true
			a.node(n, s)
		case n.ours:
			a.removeElement(&a.edits, n.Element)
		}
	}
	for _, l := range a.document.links {
		reach := a.reachOf(l, a.known)
		switch s := a.links[l.id]; {
		case s != nil && (reach != elsewhere || !own[s]):
			a.used[s] = true
			a.link(l, s)
		case reach == within || reach == across:
			a.removeElement(&a.edits, l.Element)
		}
	}
}

// setURN sets an attribute unless it names the same thing already.
func (a *annotation) setURN(e *etree.Element, key string, id urn.URN) {
	if id.IsZero() {
		return
	}
	if is, err := urn.Parse(attr(e, key)); err == nil && is.Equal(id) {
		return
	}
	a.setAttr(&a.edits, e, key, id.String())
}

func (a *annotation) setMissing(e *etree.Element, key, value string) {
	if attr(e, key) == "" && value != "" {
		a.setAttr(&a.edits, e, key, value)
	}
}

func (a *annotation) node(n *nodeElement, s *slivers.Sliver) {
	e, facts := n.Element, s.Node
	if facts == nil {
		facts = &slivers.NodeFacts{}
	}
	a.setURN(e, "component_id", facts.Host)
	a.setMissing(e, "component_manager_id", a.managerOf(s).String())
	a.setURN(e, "sliver_id", s.URN)
	switch text := strings.ToLower(attr(e, "exclusive")); {
	case facts.Exclusive && text != "true" && text != "1":
		a.setAttr(&a.edits, e, "exclusive", "true")
	case !facts.Exclusive && text != "false" && text != "0":
		a.setAttr(&a.edits, e, "exclusive", "false")
	}
	var kids []fragment
	types := a.childrenOf(e, "sliver_type")
	if len(types) == 0 && facts.SliverType != "" {
		kids = append(kids, sliverType(e, facts))
	} else if len(types) > 0 {
		a.setMissing(types[0], "name", string(facts.SliverType))
	}
	kids = append(kids, a.nodeInterfaces(e, s)...)
	kids = append(kids, a.host(e, facts.Hostname)...)
	kids = append(kids, a.services(e, s, facts)...)
	a.appendTo(&a.edits, e, kids)
}

// host writes the name of a node: over that of an earlier manifest, or as an
// element to be added.
func (a *annotation) host(e *etree.Element, name string) []fragment {
	f := fragment{name: named(e, "host")}
	f.attr("name", name)
	for i, h := range a.childrenOf(e, "host") {
		if i > 0 || name == "" {
			a.removeElement(&a.edits, h)
			continue
		}
		f.name = h.FullTag()
		var b strings.Builder
		f.write(&b, "")
		a.edits.replace(a.spans[h].start, a.spans[h].after, b.String())
		name = ""
	}
	if name == "" {
		return nil
	}
	return []fragment{f}
}

func (a *annotation) managerOf(s *slivers.Sliver) urn.URN {
	if !s.Manager.IsZero() {
		return s.Manager
	}
	return a.manager
}

// sliverType is the type of a node whose request left it open.
func sliverType(parent *etree.Element, facts *slivers.NodeFacts) fragment {
	t := fragment{name: named(parent, "sliver_type")}
	t.attr("name", string(facts.SliverType))
	if !facts.Image.IsZero() {
		image := fragment{name: named(parent, "disk_image")}
		image.attr("name", facts.Image.String())
		t.kids = append(t.kids, image)
	}
	return t
}

// nodeInterfaces annotates the interfaces of a node and returns those that the
// document does not have.
func (a *annotation) nodeInterfaces(e *etree.Element, s *slivers.Sliver) []fragment {
	if s.Node == nil {
		return nil
	}
	elements := map[request.ClientID]*etree.Element{}
	for _, i := range a.childrenOf(e, "interface") {
		elements[request.ClientID(attr(i, "client_id"))] = i
	}
	var kids []fragment
	for j := range s.Node.Interfaces {
		i := &s.Node.Interfaces[j]
		element := elements[i.ID]
		if element == nil {
			kids = append(kids, interfaceFragment(e, s, i))
			continue
		}
		a.setURN(element, "component_id", interfaceComponent(s, i))
		if hw, ok := parseMAC(attr(element, "mac_address")); len(i.MAC) > 0 && !(ok && hw.String() == i.MAC.String()) {
			a.setAttr(&a.edits, element, "mac_address", i.MAC.String())
		}
		a.appendTo(&a.edits, element, a.ips(element, i.Addresses))
	}
	return kids
}

// ips completes the addresses of an interface and returns those that the
// document does not have. What it says is left as it is, also where it says
// nothing ("", 0.0.0.0).
func (a *annotation) ips(e *etree.Element, addresses []netip.Prefix) []fragment {
	elements := map[netip.Addr]*etree.Element{}
	for _, ip := range a.childrenOf(e, "ip") {
		text, _, _ := strings.Cut(attr(ip, "address"), "/")
		if addr, err := netip.ParseAddr(text); err == nil {
			elements[addr.Unmap()] = ip
		}
	}
	var kids []fragment
	for _, p := range addresses {
		ip := elements[p.Addr()]
		if ip == nil {
			kids = append(kids, ipFragment(e, p))
			continue
		}
		if _, ok := lookupAttr(ip, "netmask"); !ok && !strings.Contains(attr(ip, "address"), "/") {
			a.setAttr(&a.edits, ip, "netmask", netmask(p))
		}
		if _, ok := lookupAttr(ip, "type"); !ok {
			a.setAttr(&a.edits, ip, "type", addressType(p))
		}
	}
	return kids
}

// interfaceComponent names the component behind an interface. Interfaces that
// only exist in their node, on a host that is shared, are named after both.
func interfaceComponent(s *slivers.Sliver, i *slivers.Interface) urn.URN {
	if !i.Component.IsZero() || s.Node.Host.IsZero() {
		return i.Component
	}
	device := i.Device
	if device == "" {
		device = string(i.ID)
	}
	id, err := urn.New(s.Node.Host.Authority, urn.Interface, s.Node.Host.Name+":"+s.URN.Name+":"+device)
	if err != nil {
		return urn.URN{}
	}
	return id
}

func interfaceFragment(parent *etree.Element, s *slivers.Sliver, i *slivers.Interface) fragment {
	f := fragment{name: named(parent, "interface")}
	f.attr("client_id", string(i.ID))
	f.attr("component_id", interfaceComponent(s, i).String())
	f.attr("mac_address", i.MAC.String())
	for _, p := range i.Addresses {
		f.kids = append(f.kids, ipFragment(parent, p))
	}
	return f
}

func ipFragment(parent *etree.Element, p netip.Prefix) fragment {
	f := fragment{name: named(parent, "ip")}
	f.attr("address", p.Addr().String())
	f.attr("netmask", netmask(p))
	f.attr("type", addressType(p))
	return f
}

func addressType(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "ipv4"
	}
	return "ipv6"
}

// netmask writes the mask as RSpecs do: with dots for IPv4, as a length for
// IPv6.
func netmask(p netip.Prefix) string {
	if p.Addr().Is4() {
		return net.IP(net.CIDRMask(p.Bits(), 32)).String()
	}
	return strconv.Itoa(p.Bits())
}

// services writes who can log in to a node and how: into the services of the
// document, or as one to be added.
func (a *annotation) services(e *etree.Element, s *slivers.Sliver, facts *slivers.NodeFacts) []fragment {
	have := a.childrenOf(e, "services")
	for _, services := range have { // logins of an earlier manifest
		for child := range services.ChildElementsSeq() {
			if a.core(child, "login") || a.is(child, nsUser, "services_user") || a.is(child, nsProxy, "proxy") || a.is(child, nsCroft, "port") {
				a.removeElement(&a.edits, child)
			}
		}
	}
	if s.Allocation != slivers.Provisioned {
		return nil
	}
	parent := e
	if len(have) > 0 {
		parent = have[0]
	}
	logins := append(a.logins(parent, s, facts), ports(facts)...)
	if len(have) > 0 || len(logins) == 0 {
		a.appendTo(&a.edits, parent, logins)
		return nil
	}
	return []fragment{{name: named(e, "services"), kids: logins}}
}

// logins are the elements for each user of a node: login, and services_user
// of the extension user/1 with the keys that open it; before them, jFed's
// proxy where there is a way in through a gateway, whose own login is among
// them (Federation RSpec, "SSH Proxy").
func (a *annotation) logins(parent *etree.Element, s *slivers.Sliver, facts *slivers.NodeFacts) []fragment {
	var proxies, list []fragment
	login := func(at slivers.Login, user string) {
		f := fragment{name: named(parent, "login")}
		f.attr("authentication", "ssh-keys")
		f.attr("hostname", at.Host)
		f.attr("port", strconv.Itoa(at.Port))
		f.attr("username", user)
		list = append(list, f)
	}
	behind := slivers.Login{Host: a.gateway.nameOf(s), Port: 22}
	if behind.Host == "" && facts.Login.Host == "" {
		return nil
	}
	told := map[string]bool{} // logins at the gateway
	for _, u := range facts.Users {
		if u.Login == "" {
			continue
		}
		if facts.Login.Host != "" {
			login(facts.Login, u.Login)
		}
		if behind.Host == "" {
			continue
		}
		at := a.gateway.User
		if at == "" {
			at = u.Login
		}
		f := fragment{name: "proxy:proxy"}
		f.attr("xmlns:proxy", nsProxy)
		f.attr("proxy", at+"@"+hostPort(a.gateway.Login))
		f.attr("for", u.Login+"@"+hostPort(behind))
		proxies = append(proxies, f)
		if !told[at] {
			login(a.gateway.Login, at)
			told[at] = true
		}
		login(behind, u.Login)
	}
	list = append(proxies, list...)
	for _, u := range facts.Users {
		if u.Login == "" {
			continue
		}
		f := fragment{name: "user:services_user"}
		f.attr("xmlns:user", nsUser)
		f.attr("login", u.Login)
		f.attr("user_urn", u.URN.String())
		for _, key := range u.Keys {
			f.kids = append(f.kids, fragment{name: "user:public_key", text: key})
		}
		list = append(list, f)
	}
	return list
}

// ports tell where ports of a node are reached from outside.
func ports(facts *slivers.NodeFacts) []fragment {
	var list []fragment
	for _, p := range facts.Ports {
		if p.Public.Host == "" {
			continue
		}
		f := fragment{name: "croft:port"}
		f.attr("xmlns:croft", nsCroft)
		f.attr("name", p.Name)
		f.attr("number", strconv.Itoa(p.Number))
		f.attr("public_host", p.Public.Host)
		f.attr("public_port", strconv.Itoa(p.Public.Port))
		f.attr("url", p.Link())
		list = append(list, f)
	}
	return list
}

// hostPort writes the address of a login.
func hostPort(l slivers.Login) string {
	return net.JoinHostPort(l.Host, strconv.Itoa(l.Port))
}

func (a *annotation) link(l *linkElement, s *slivers.Sliver) {
	e := l.Element
	a.setURN(e, "sliver_id", s.URN)
	// Required by manifest.xsd; 0 for untagged, whatever was asked for.
	a.setAttr(&a.edits, e, "vlantag", strconv.Itoa(tagOf(s)))
	ends := map[request.ClientID]slivers.End{}
	if s.Link != nil {
		for _, end := range s.Link.Ends {
			ends[end.Interface] = end
		}
	}
	for _, ref := range l.ends {
		if end, ok := ends[request.ClientID(attr(ref, "client_id"))]; ok {
			a.setURN(ref, "sliver_id", end.Sliver)
			a.setURN(ref, "component_id", a.component(end))
		}
	}
	if !l.ours {
		f := fragment{name: named(e, "component_manager")}
		f.attr("name", a.managerOf(s).String())
		a.appendTo(&a.edits, e, []fragment{f})
	}
}

// tagOf is the VLAN tag of a link; 0 if it has none.
func tagOf(s *slivers.Sliver) int {
	if s.Link == nil {
		return 0
	}
	return s.Link.VLAN
}

// component is that of the interface at an end of a link; zero if its node is
// not shown.
func (a *annotation) component(end slivers.End) urn.URN {
	return a.components[slivers.End{Node: end.Node, Interface: end.Interface}]
}

// nodeFragment is the element of a node that no RSpec asked for.
func (a *annotation) nodeFragment(root *etree.Element, s *slivers.Sliver) fragment {
	f := fragment{name: named(root, "node")}
	f.attr("client_id", string(s.ClientID))
	facts := s.Node
	if facts == nil {
		facts = &slivers.NodeFacts{}
	}
	f.attr("component_id", facts.Host.String())
	f.attr("component_manager_id", a.managerOf(s).String())
	f.attr("exclusive", strconv.FormatBool(facts.Exclusive))
	f.attr("sliver_id", s.URN.String())
	if facts.SliverType != "" {
		f.kids = append(f.kids, sliverType(root, facts))
	}
	for i := range facts.Interfaces {
		f.kids = append(f.kids, interfaceFragment(root, s, &facts.Interfaces[i]))
	}
	if facts.Hostname != "" {
		host := fragment{name: named(root, "host")}
		host.attr("name", facts.Hostname)
		f.kids = append(f.kids, host)
	}
	if s.Allocation == slivers.Provisioned {
		if logins := append(a.logins(root, s, facts), ports(facts)...); len(logins) > 0 {
			f.kids = append(f.kids, fragment{name: named(root, "services"), kids: logins})
		}
	}
	if facts.Preemptible {
		f.kids = append(f.kids, croft("node", pair{"preemptible", "true"}))
	}
	return f
}

// linkFragment is the element of a link that no RSpec asked for.
func (a *annotation) linkFragment(root *etree.Element, s *slivers.Sliver) fragment {
	f := fragment{name: named(root, "link")}
	f.attr("client_id", string(s.ClientID))
	f.attr("sliver_id", s.URN.String())
	f.attr("vlantag", strconv.Itoa(tagOf(s)))
	manager := fragment{name: named(root, "component_manager")}
	manager.attr("name", a.managerOf(s).String())
	f.kids = append(f.kids, manager)
	if s.Link == nil {
		return f
	}
	for _, end := range s.Link.Ends {
		ref := fragment{name: named(root, "interface_ref")}
		ref.attr("client_id", string(end.Interface))
		ref.attr("component_id", a.component(end).String())
		ref.attr("sliver_id", end.Sliver.String())
		f.kids = append(f.kids, ref)
	}
	return f
}
