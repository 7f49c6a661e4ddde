package rspec

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/beevik/etree"

	"croft/capacity"
	"croft/request"
	"croft/urn"
)

// link compiles a link if this aggregate has a part in it.
func (c *compiler) link(e *linkElement) {
	reach := c.reachOf(e, func(id request.ClientID) bool { _, ok := c.existing[id]; return ok })
	if reach == elsewhere {
		return
	}
	shared, tag := c.sharedVLAN(e)
	switch reach {
	case transit:
		c.fail(e.Element, fmt.Sprintf("link %q of other aggregates passes through this one, which has no stitching", e.id),
			"take its component_manager "+c.managerOf(e).String()+" off the link")
		return
	case across:
		if shared == "" {
			c.crossing(e)
			return
		}
		c.warn(e.Element, fmt.Sprintf("of link %q, this aggregate joins its own nodes to the shared VLAN %s", e.id, shared), "")
	}
	l := request.Link{
		ID:         c.clientID(e.Element, "link", "link0"),
		Place:      c.placeOf(e.Element),
		Manager:    c.managerOf(e),
		SharedVLAN: shared,
		VLAN:       tag,
	}
	c.linkOnce(e)
	for i, t := range c.childrenOf(e.Element, "link_type") {
		name := request.LinkType(attr(t, "name"))
		if i > 0 && name != l.Type {
			c.fail(t, fmt.Sprintf("second link_type of link %q", e.id), "keep one")
		} else {
			l.Type = name
		}
	}
	if e.others && !e.ours {
		c.warn(e.Element, fmt.Sprintf("link %q names another component manager, but joins nodes of this one: made here", e.id), c.managersHint())
	}
	if isTunnel(l.Type) {
		c.warn(e.Element, fmt.Sprintf("link %q between nodes of one aggregate is made as a plain link, not as %s", e.id, l.Type), "")
	}
	l.Ends = c.linkEnds(e, shared != "")
	if len(e.ends) == 0 {
		c.fail(e.Element, fmt.Sprintf("link %q joins nothing", e.id), `add <interface_ref client_id="…"/> for each interface`)
	}
	c.addresses(e, l.Ends)
	l.Properties = c.properties(e)
	c.linkWants(e.Element, &l)
	c.linkWishes(e.Element)
	c.request.Links = append(c.request.Links, l)
}

func isTunnel(t request.LinkType) bool {
	return t == "gre-tunnel" || t == "egre-tunnel"
}

// managerOf is the first of our names that a link has, as spelt; zero if it
// has none.
func (c *compiler) managerOf(e *linkElement) urn.URN {
	for _, m := range e.managers {
		if id, err := urn.Parse(attr(m, "name")); err == nil && c.isUs(id) {
			return id
		}
	}
	return urn.URN{}
}

// crossing refuses a link that needs this aggregate and another one.
func (c *compiler) crossing(e *linkElement) {
	kind := "stitched link"
	for _, t := range c.childrenOf(e.Element, "link_type") {
		if name := attr(t, "name"); name != "" {
			kind = name + " link"
		}
	}
	var own, foreign []string
	for _, ref := range e.ends {
		id := attr(ref, "client_id")
		if i := c.interfaces[request.ClientID(id)]; i != nil && i.node.ours {
			own = append(own, id)
		} else {
			foreign = append(foreign, id)
		}
	}
	c.fail(e.Element, fmt.Sprintf("link %q is a %s from %s here to %s at another aggregate; this one joins its own nodes only",
		e.id, kind, listed(own), listed(foreign)),
		"take the link out and reach the other nodes by their public addresses")
}

// linkOnce checks that a link's name is given once.
func (c *compiler) linkOnce(e *linkElement) {
	if e.id == "" {
		return
	}
	key := strings.ToLower(string(e.id))
	if first := c.linkIDs[key]; first != nil {
		c.fail(e.Element, fmt.Sprintf("client_id %q is that of the link in line %d already", e.id, c.placeOf(first).Line),
			"client_ids of links are compared without regard to case: give each its own")
		return
	}
	c.linkIDs[key] = e.Element
}

// linkEnds resolves the interfaces that a link joins. Interfaces of other
// aggregates' nodes are left out.
func (c *compiler) linkEnds(e *linkElement, shared bool) []request.End {
	var ends []request.End
	for _, ref := range e.ends {
		id := request.ClientID(attr(ref, "client_id"))
		if id == "" {
			c.fail(ref, "interface_ref without a client_id", "name an interface of a node")
			continue
		}
		end := request.End{Interface: id, Place: c.placeOf(ref)}
		if i := c.interfaces[id]; i != nil {
			if !i.node.ours {
				continue
			}
			end.Node = i.node.id
		} else if node, ok := c.existing[id]; ok {
			end.Node, end.Existing = node, true
		} else {
			c.fail(ref, fmt.Sprintf("no node has an interface %q", id), c.nearest(string(id)))
			continue
		}
		if first := c.ends[id]; first != nil {
			where := "on link " + strconv.Quote(attr(first.Parent(), "client_id")) + " already"
			if first.Parent() == e.Element {
				where = "on this link twice"
			}
			c.fail(ref, fmt.Sprintf("interface %q is %s", id, where), "give the node another interface")
			continue
		}
		c.ends[id] = ref
		ends = append(ends, end)
	}
	if len(ends) == 1 && len(e.ends) == 1 && !shared {
		c.warn(e.Element, fmt.Sprintf("link %q has one end only", e.id), "")
	}
	return ends
}

// nearest suggests interfaces for one that does not exist, to the first few
// authors' slips of a document.
func (c *compiler) nearest(id string) string {
	if len(c.errors) > 20 {
		return ""
	}
	best, distance, alike := "", math.MaxInt, 0
	var some []string
	for _, n := range c.nodes {
		if !n.ours {
			continue
		}
		for _, i := range c.childrenOf(n.Element, "interface") {
			name := attr(i, "client_id")
			if name == "" || len(some) == 1000 {
				continue
			}
			some = append(some, name)
			d, a := editDistance(id, name), commonPrefix(id, name)
			if d < distance || d == distance && a > alike {
				best, distance, alike = name, d, a
			}
		}
	}
	switch {
	case len(some) == 0:
		return `nodes get interfaces by <interface client_id="…"/>`
	case distance <= max(1, len(id)/3):
		return "did you mean " + best + "?"
	}
	return "there are " + listed(some)
}

// editDistance counts the letters to change, add or take out to get from a to
// b (Levenshtein).
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return math.MaxInt
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// listed writes names for people, a few of them.
func listed(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// addresses checks those of a link's ends against one another.
func (c *compiler) addresses(e *linkElement, ends []request.End) {
	holders := map[netip.Addr]request.ClientID{}
	var networks []netip.Prefix
	for _, end := range ends {
		i := c.made[end.Interface]
		if i == nil || end.Existing {
			continue
		}
		for _, p := range i.Addresses {
			if other, taken := holders[p.Addr()]; taken {
				c.failAt(i.Place, fmt.Sprintf("address %s of interface %q is that of %q on link %q too", p.Addr(), i.ID, other, e.id),
					"give each interface of a link its own")
				continue
			}
			holders[p.Addr()] = i.ID
			if p.Addr().Is4() {
				networks = append(networks, p.Masked())
			}
		}
	}
	for _, n := range networks {
		if n != networks[0] {
			c.warn(e.Element, fmt.Sprintf("link %q joins addresses of different networks, %s and %s: they cannot talk directly", e.id, networks[0], n), "")
			break
		}
	}
}

// properties reads what a link should give. Those that ask for nothing, which
// editors write by the dozen, are passed over.
func (c *compiler) properties(e *linkElement) []request.Property {
	joined := map[request.ClientID]bool{}
	for _, ref := range e.ends {
		joined[request.ClientID(attr(ref, "client_id"))] = true
	}
	var wishes []request.Property
	for _, p := range c.childrenOf(e.Element, "property") {
		from := c.propertyEnd(e, p, "source_id", joined)
		to := c.propertyEnd(e, p, "dest_id", joined)
		if from == to && from != "" {
			c.fail(p, fmt.Sprintf("property from %q to itself", from), "name two interfaces of the link")
		}
		wish := request.Property{
			From: from, To: to,
			Capacity:  capacity.Kbps(math.Round(c.amount(p, "capacity", 1e12, "kbit/s"))),
			LatencyMs: c.amount(p, "latency", 1e7, "milliseconds"),
			Loss:      c.amount(p, "packet_loss", 100, "percent"),
			JitterMs:  c.jitter(p),
			Place:     c.placeOf(p),
		}
		if wish.Loss > 0 && wish.Loss < 1 {
			c.warn(p, fmt.Sprintf("packet_loss=%q is read as %g percent, as the Federation AM API says", attr(p, "packet_loss"), wish.Loss),
				"Emulab reads a fraction: there, this is "+strconv.FormatFloat(wish.Loss*100, 'g', 6, 64)+" percent")
		}
		if wish.Capacity != 0 || wish.LatencyMs != 0 || wish.Loss != 0 || wish.JitterMs != 0 {
			wishes = append(wishes, wish)
		}
	}
	return wishes
}

// propertyEnd reads one end of a property: an interface of the link, or the
// link itself (Emulab's way to write what a LAN gives one of its members).
func (c *compiler) propertyEnd(e *linkElement, p *etree.Element, key string, joined map[request.ClientID]bool) request.ClientID {
	id := request.ClientID(attr(p, key))
	if id == e.id {
		return ""
	}
	if id != "" && !joined[id] {
		var names []string
		for _, ref := range e.ends[:min(len(e.ends), 6)] {
			names = append(names, attr(ref, "client_id"))
		}
		c.fail(p, fmt.Sprintf("%s=%q is no interface of link %q", key, id, e.id), "it joins "+listed(names))
	}
	return id
}

// amount reads a number of a property; 0 if there is none.
func (c *compiler) amount(p *etree.Element, key string, most float64, unit string) float64 {
	text := attr(p, key)
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= most) {
		c.fail(p, fmt.Sprintf("%s=%q", key, text), "it is a number of "+unit)
		return 0
	}
	return v
}

// sharedVLAN reads the shared VLAN of a link and the tag that the link asks for,
// "" and 0 for none: of children of the link, or of interfaces that it joins, in
// either of the two namespaces in use, or the tag as the link's own attribute.
func (c *compiler) sharedVLAN(e *linkElement) (name string, tag int) {
	elements := []*etree.Element{e.Element}
	for _, ref := range e.ends {
		if i := c.interfaces[request.ClientID(attr(ref, "client_id"))]; i != nil && i.node.ours {
			elements = append(elements, i.Element)
		}
	}
	for _, from := range elements {
		for _, ns := range []string{nsSharedVLAN, nsSharedVLANOld} {
			for _, v := range c.children(from, ns, "link_shared_vlan") {
				name, tag = attr(v, "name"), c.tag(v)
				if name == "" && tag != 0 {
					name = strconv.Itoa(tag)
				}
				if name != "" {
					return name, tag
				}
			}
		}
	}
	return "", c.tag(e.Element)
}

// tag is the VLAN tag that an element asks for; 0 if it leaves that open.
func (c *compiler) tag(e *etree.Element) int {
	text := strings.TrimSpace(attr(e, "vlantag"))
	if text == "" || strings.EqualFold(text, "any") {
		return 0
	}
	const last = 4094 // IEEE 802.1Q
	tag, err := strconv.Atoi(text)
	if err != nil || tag < 0 || tag > last {
		c.fail(e, fmt.Sprintf("vlantag=%q", text), fmt.Sprintf("it is a VLAN tag, 1 to %d; leave it out and the link gets one if it needs one", last))
		return 0
	}
	return tag
}
