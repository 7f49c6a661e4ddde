package rspec

import (
	"encoding/xml"
	"fmt"

	"github.com/beevik/etree"
)

// unheard says what becomes of wishes that this version of Croft keeps in the
// manifest and does not carry out. Elements that are for clients only (where
// to draw a node, what it is called) are not among them.
func (c *compiler) unheard(name xml.Name) string {
	if name.Space == c.format.Namespace() {
		switch name.Local {
		case "login", "host":
			return "it is what a manifest tells: written anew"
		}
		return ""
	}
	switch name {
	case xml.Name{Space: nsEmulab, Local: "routable_control_ip"}:
		return "nodes get no public address of their own"
	case xml.Name{Space: nsEmulab, Local: "blockstore"}:
		return "there are no block stores"
	case xml.Name{Space: nsEmulab, Local: "openflow_controller"}, xml.Name{Space: nsOpenFlow3, Local: "sliver"}, xml.Name{Space: nsOpenFlow4, Local: "sliver"}:
		return "there is no OpenFlow"
	case xml.Name{Space: nsEmulab, Local: "vlan_tagging"}, xml.Name{Space: nsEmulab, Local: "link_attribute"}:
		return "links have no such settings"
	case xml.Name{Space: nsDelay, Local: "sliver_type_shaping"}:
		return "traffic is not shaped by nodes"
	case xml.Name{Space: nsStitch, Local: "stitching"}:
		return "there is no stitching"
	}
	switch name.Local {
	case "services_post_boot_script":
		return "the script is not run"
	case "firewall_config", "firewall":
		return "no firewall is set up"
	case "lease":
		return "there are no reservations for later"
	}
	return ""
}

// noEffect warns of a wish, once for each kind and node or link.
func (c *compiler) noEffect(of, e *etree.Element) {
	why := c.unheard(xml.Name{Space: c.namespace(e), Local: e.Tag})
	if why == "" {
		return
	}
	key := fmt.Sprintf("%p %s", of, e.Tag)
	if c.saidOnce[key] {
		return
	}
	c.saidOnce[key] = true
	c.warn(e, e.Tag+" is kept but has no effect: "+why, "")
}

// nodeWishes warns of what a node of ours wishes in vain.
func (c *compiler) nodeWishes(e *etree.Element) {
	if attr(e, "colocate") != "" {
		c.warn(e, "colocate is kept but has no effect", "")
	}
	for child := range e.ChildElementsSeq() {
		c.noEffect(e, child)
		for grandchild := range child.ChildElementsSeq() {
			c.noEffect(e, grandchild)
		}
	}
}

func (c *compiler) linkWishes(e *etree.Element) {
	for child := range e.ChildElementsSeq() {
		c.noEffect(e, child)
	}
}

func (c *compiler) rootWishes() {
	for child := range c.tree.root.ChildElementsSeq() {
		c.noEffect(c.tree.root, child)
	}
}
