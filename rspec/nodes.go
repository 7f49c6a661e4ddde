package rspec

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"

	"github.com/beevik/etree"

	"croft/capacity"
	"croft/request"
)

// node compiles a node of ours.
func (c *compiler) node(e *nodeElement) {
	n := request.Node{
		ID:      c.clientID(e.Element, "node", "node0"),
		Place:   c.placeOf(e.Element),
		Manager: e.manager,
	}
	n.Component, n.ComponentName = component(e.Element)
	n.Exclusive = c.boolean(e.Element, "exclusive")
	for _, h := range c.childrenOf(e.Element, "hardware_type") {
		if name := attr(h, "name"); name != "" {
			n.HardwareTypes = append(n.HardwareTypes, name)
		} else {
			c.warn(h, "hardware_type without a name is passed over", "")
		}
	}
	c.sliverType(e.Element, &n)
	for i, f := range c.childrenOf(e.Element, "interface") {
		n.Interfaces = append(n.Interfaces, c.iface(f, fmt.Sprintf("%s:if%d", n.ID, i)))
	}
	c.wants(e.Element, &n)
	c.startup(e.Element, n.ID)
	c.nodeWishes(e.Element)
	c.request.Nodes = append(c.request.Nodes, n)
}

// sliverType reads how a node is to be made, and from what image.
func (c *compiler) sliverType(e *etree.Element, n *request.Node) {
	types := c.childrenOf(e, "sliver_type")
	if len(types) == 0 {
		return
	}
	if len(types) > 1 {
		c.fail(types[1], fmt.Sprintf("second sliver_type of node %q", n.ID), "keep one")
	}
	t := types[0]
	n.SliverType = request.SliverType(attr(t, "name"))
	n.TypePlace = c.placeOf(t)
	if n.SliverType == "" {
		c.warn(t, "sliver_type without a name: any will do", "")
	}
	images := c.childrenOf(t, "disk_image")
	if len(images) > 1 {
		c.fail(images[1], fmt.Sprintf("second disk_image of node %q", n.ID), "a node boots one")
	}
	if len(images) > 0 {
		n.Image = c.image(images[0])
	}
	for _, x := range c.children(t, nsEmulab, "xen") {
		c.xen(x, n)
	}
}

// image reads a disk_image. Testbeds take a URL in either attribute.
func (c *compiler) image(e *etree.Element) request.Image {
	i := request.Image{Name: attr(e, "name"), URL: attr(e, "url"), Place: c.placeOf(e)}
	if isURL(i.Name) && i.URL == "" {
		i.Name, i.URL = "", i.Name
	}
	if i.IsZero() {
		c.warn(e, "disk_image without name or url: the default is taken", "")
		return request.Image{}
	}
	return i
}

func isURL(s string) bool {
	s = strings.ToLower(s)
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// xen reads Emulab's sizes of virtual machines: cores, memory in MB, disk in
// GB.
func (c *compiler) xen(e *etree.Element, n *request.Node) {
	number := func(key string, scale float64) int64 {
		text := attr(e, key)
		if text == "" {
			return 0
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v*scale < 1<<40) {
			c.fail(e, fmt.Sprintf("%s=%q", key, text), "it is a number")
			return 0
		}
		return int64(math.Ceil(v * scale))
	}
	wish := capacity.Amount{
		Cores:  capacity.Cores(number("cores", float64(capacity.Core))),
		Memory: capacity.MiB(number("ram", 1)),
		Disk:   capacity.MiB(number("disk", float64(capacity.GiB))),
	}
	n.Capacity = wish.Or(n.Capacity)
}

// maxAddresses bounds those of one interface.
const maxAddresses = 100

// iface compiles an interface of a node of ours.
func (c *compiler) iface(e *etree.Element, example string) request.Interface {
	i := request.Interface{ID: c.clientID(e, "interface", example), Place: c.placeOf(e)}
	var name string
	if i.Component, name = component(e); name != "" && attr(e, "component_id") != "*" {
		c.warn(e, fmt.Sprintf("component_id %q of the interface is no URN and is passed over", name), "")
	}
	if mac := attr(e, "mac_address"); mac != "" {
		if hw, ok := parseMAC(mac); ok {
			i.MAC = hw.String()
		} else {
			c.fail(e, fmt.Sprintf("mac_address %q", mac), "write six bytes, such as 02:00:00:00:00:01, not a multicast address")
		}
	}
	for n, ip := range c.childrenOf(e, "ip") {
		if n == maxAddresses {
			c.fail(ip, fmt.Sprintf("more than %d addresses on interface %q", maxAddresses, i.ID), "")
			break
		}
		p, ok := c.address(ip)
		if !ok {
			continue
		}
		for _, q := range i.Addresses {
			if q.Addr() == p.Addr() {
				c.fail(ip, fmt.Sprintf("address %s stands twice on interface %q", p.Addr(), i.ID), "remove one")
			}
		}
		i.Addresses = append(i.Addresses, p)
	}
	return i
}

// parseMAC reads an Ethernet address of one interface, also as twelve digits.
func parseMAC(text string) (net.HardwareAddr, bool) {
	if len(text) == 12 && !strings.ContainsAny(text, ":-.") {
		text = text[:4] + "." + text[4:8] + "." + text[8:]
	}
	hw, err := net.ParseMAC(text)
	if err != nil || len(hw) != 6 || hw[0]&1 == 1 {
		return nil, false
	}
	return hw, true
}
