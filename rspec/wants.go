package rspec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/beevik/etree"

	"croft/capacity"
	"croft/request"
)

// What nodes and links want of the mapping is written in the extensions that
// Emulab's documents have, and where the field has no form for it, in elements
// of Croft's own namespace:
//
//	<node …>
//	  <emulab:fd name="ssd" weight="1"/>                      a feature: wanted by its weight, needed from 1 on or with violatable="true"
//	  <emulab:fd name="scratch" weight="200" local_operator="+"/>  so much of it
//	  <emulab:hint_to value="pc7"/>                            a component, by name or URN, rather than others
//	  <emulab:disallow_trivial_mix/>                           all links within the host, or all out of it
//	  <relation type="subnode_of" client_id="carrier"/>        on a part of that node's host
//	  <croft:node site="north" architecture="x86_64" optional="true"/>
//	  <croft:at_least cores="2" memory="2048" disk="10240" gpus="1"/>  memory and disk in MiB
//	  <croft:at_most cores="8"/>
//	  <croft:feature name="ssd" weight="0.5" amount="2"/>      as fd, weight 1 if it says none
//	  <croft:image os="linux" distribution="debian" min_version="11"/>  or name, or url: one that would do as well
//	</node>
//	<emulab:vclass name="fast" weight="hard"><emulab:physical_type name="d430"/>…</emulab:vclass>
//	                                                           a class: nodes whose hardware_type is "fast"
//	<croft:group name="g" place="apart" by="host" weight="0.5"><croft:member client_id="a"/>…</croft:group>
//	<link …>
//	  <emulab:interswitch allow="no"/> <emulab:best_effort/> <emulab:link_multiplexing/> (multiplex_ok) <emulab:trivial_ok/>
//	  <croft:link trivial="false" multiplexed="false"/>
//	  <component_hop><interface_ref client_id="a:if0" component_id="urn:…"/></component_hop>  an end's interface
//	  <property …><croft:jitter ms="2"/></property>
//	</link>

// maxWants bounds what one node can want of a kind, and the groups and classes
// of a document.
const maxWants = 1000

// wants reads what a node of ours wants.
func (c *compiler) wants(e *etree.Element, n *request.Node) {
	for _, f := range c.children(e, nsEmulab, "fd") {
		c.emulabFeature(f, n)
	}
	for _, f := range c.children(e, nsCroft, "feature") {
		c.feature(f, n)
	}
	for _, r := range c.childrenOf(e, "relation") {
		switch attr(r, "type") {
		case "subnode_of":
			if n.Parent != "" {
				c.fail(r, fmt.Sprintf("second parent of node %q", n.ID), "keep one")
			}
			n.Parent = request.ClientID(attr(r, "client_id"))
			if n.Parent == "" {
				c.fail(r, "relation without a client_id", "name the node that it is a part of")
			}
		default:
			c.warn(r, fmt.Sprintf("relation of type %q is kept but has no effect", attr(r, "type")), "subnode_of places a node on a part of another one's host")
		}
	}
	for _, x := range c.children(e, nsEmulab, "hint_to") {
		n.Hint = attr(x, "value")
		if n.Hint == "" {
			c.warn(x, "hint_to without a value has no effect", "name a component in it")
		}
	}
	for range c.children(e, nsEmulab, "disallow_trivial_mix") {
		n.NoTrivialMix = true
	}
	for _, x := range c.children(e, nsCroft, "node") {
		n.Site, n.Architecture = attr(x, "site"), attr(x, "architecture")
		n.Optional = c.boolean(x, "optional") == request.Yes
		n.Preemptible = c.boolean(x, "preemptible") == request.Yes
	}
	for _, x := range c.children(e, nsCroft, "at_least") {
		n.Capacity = c.size(x).Or(n.Capacity)
	}
	for _, x := range c.children(e, nsCroft, "at_most") {
		n.Most = c.size(x)
	}
	for _, x := range c.children(e, nsCroft, "image") {
		if len(n.OtherImages) == maxWants {
			break
		}
		i := request.Image{Name: attr(x, "name"), URL: attr(x, "url"), Place: c.placeOf(x), System: request.System{
			OS: attr(x, "os"), Distribution: attr(x, "distribution"), Version: attr(x, "version"),
			MinVersion: attr(x, "min_version"), MaxVersion: attr(x, "max_version")}}
		if i.IsZero() {
			c.warn(x, "image that names nothing is passed over", "")
			continue
		}
		n.OtherImages = append(n.OtherImages, i)
	}
	for _, class := range c.request.Classes {
		for i, h := range n.HardwareTypes {
			if h == string(class.Name) && n.Class == "" {
				n.Class = class.Name
				n.HardwareTypes = slices.Concat(n.HardwareTypes[:i], n.HardwareTypes[i+1:])
				break
			}
		}
	}
}

// emulabFeature reads a desire as Emulab writes it: the weight of an additive
// one is its amount.
func (c *compiler) emulabFeature(e *etree.Element, n *request.Node) {
	f := request.Feature{Name: attr(e, "name"), Place: c.placeOf(e)}
	weight := c.number(e, "weight", 1e9)
	switch {
	case f.Name == "":
		c.fail(e, "fd without a name", "name the feature")
		return
	case attr(e, "local_operator") == "+":
		f.Weight, f.Amount = 1, weight
	case c.boolean(e, "violatable") == request.Yes:
		f.Weight = max(1, weight)
	default:
		f.Weight = weight
	}
	c.addFeature(e, n, f)
}

func (c *compiler) feature(e *etree.Element, n *request.Node) {
	f := request.Feature{Name: attr(e, "name"), Place: c.placeOf(e), Weight: 1, Amount: c.number(e, "amount", 1e9)}
	if attr(e, "weight") != "" {
		f.Weight = c.number(e, "weight", 1e9)
	}
	if f.Name == "" {
		c.fail(e, "feature without a name", "name the feature")
		return
	}
	c.addFeature(e, n, f)
}

func (c *compiler) addFeature(e *etree.Element, n *request.Node, f request.Feature) {
	switch {
	case len(n.Features) == maxWants:
		c.fail(e, fmt.Sprintf("more than %d features of node %q", maxWants, n.ID), "")
	case len(n.Features) < maxWants:
		n.Features = append(n.Features, f)
	}
}

// number reads a number from 0 upwards; 0 if there is none.
func (c *compiler) number(e *etree.Element, key string, most float64) float64 {
	text := attr(e, key)
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= most) {
		c.fail(e, fmt.Sprintf("%s=%q", key, text), "it is a number from 0 on")
		return 0
	}
	return v
}

func (c *compiler) size(e *etree.Element) capacity.Amount {
	return capacity.Amount{
		Cores:  capacity.Cores(math.Round(c.number(e, "cores", 1e6) * float64(capacity.Core))),
		Memory: capacity.MiB(math.Ceil(c.number(e, "memory", 1e12))),
		Disk:   capacity.MiB(math.Ceil(c.number(e, "disk", 1e12))),
		GPUs:   int64(math.Ceil(c.number(e, "gpus", 1e6))),
	}
}

// classes reads the classes of the document.
func (c *compiler) classes() {
	for _, v := range c.children(c.tree.root, nsEmulab, "vclass") {
		class := request.Class{Name: request.ClassName(attr(v, "name")), Place: c.placeOf(v), Weight: 1}
		if attr(v, "weight") != "hard" {
			class.Weight = c.number(v, "weight", 1e9)
		}
		for _, t := range c.children(v, nsEmulab, "physical_type") {
			if name := attr(t, "name"); name != "" && len(class.Types) < maxWants {
				class.Types = append(class.Types, name)
			}
		}
		if class.Name == "" {
			c.fail(v, "vclass without a name", "nodes are of a class by a hardware_type of its name")
			continue
		}
		if len(c.request.Classes) == maxWants {
			c.fail(v, fmt.Sprintf("more than %d classes", maxWants), "")
			return
		}
		c.request.Classes = append(c.request.Classes, class)
	}
}

// groups reads which nodes belong together or apart.
func (c *compiler) groups() {
	for _, e := range c.children(c.tree.root, nsCroft, "group") {
		g := request.Group{Name: attr(e, "name"), Place: c.placeOf(e), By: request.Closeness(attr(e, "by")), Weight: c.number(e, "weight", 1e9)}
		switch place := attr(e, "place"); place {
		case "apart":
			g.Apart = true
		case "together":
		default:
			c.fail(e, fmt.Sprintf("place=%q of group %q", place, g.Name), "it is together or apart")
		}
		switch g.By {
		case "":
			g.By = request.ByHost
		case request.ByHost, request.BySwitch, request.BySite:
		default:
			c.fail(e, fmt.Sprintf("by=%q of group %q", g.By, g.Name), "it is host, switch or site")
		}
		for _, m := range c.children(e, nsCroft, "member") {
			id := request.ClientID(attr(m, "client_id"))
			other := c.nodeIDs[strings.ToLower(string(id))]
			if other != nil && !other.ours {
				continue // another aggregate's
			}
			if other == nil && !c.standing[strings.ToLower(string(id))] {
				c.fail(m, fmt.Sprintf("group %q has no node %q to put %s", g.Name, id, attr(e, "place")), "name nodes of the document")
				continue
			}
			if len(g.Nodes) < 10*maxWants {
				g.Nodes = append(g.Nodes, id)
			}
		}
		if len(c.request.Groups) == maxWants {
			c.fail(e, fmt.Sprintf("more than %d groups", maxWants), "")
			return
		}
		c.request.Groups = append(c.request.Groups, g)
	}
}

// linkWants reads how a link may run.
func (c *compiler) linkWants(e *etree.Element, l *request.Link) {
	flag := func(x *etree.Element, key string) request.Choice {
		if _, said := lookupAttr(x, key); said {
			return c.boolean(x, key)
		}
		return request.Yes
	}
	for _, name := range []string{"link_multiplexing", "multiplex_ok"} {
		for _, x := range c.children(e, nsEmulab, name) {
			l.Multiplexed = flag(x, "enabled")
		}
	}
	for _, x := range c.children(e, nsEmulab, "trivial_ok") {
		l.Trivial = flag(x, "enabled")
	}
	for _, x := range c.children(e, nsEmulab, "best_effort") {
		l.BestEffort = flag(x, "enabled") == request.Yes
	}
	for _, x := range c.children(e, nsEmulab, "interswitch") {
		switch allow := strings.ToLower(attr(x, "allow")); allow {
		case "no", "false", "0":
			l.NoInterswitch = true
		case "yes", "true", "1", "":
		default:
			c.fail(x, fmt.Sprintf("allow=%q", allow), "it is yes or no")
		}
	}
	for _, x := range c.children(e, nsCroft, "link") {
		if c := c.boolean(x, "multiplexed"); c != request.Open {
			l.Multiplexed = c
		}
		if c := c.boolean(x, "trivial"); c != request.Open {
			l.Trivial = c
		}
		if c := c.boolean(x, "interswitch"); c != request.Open {
			l.NoInterswitch = c == request.No
		}
		if c := c.boolean(x, "best_effort"); c != request.Open {
			l.BestEffort = c == request.Yes
		}
		if l.VLAN == 0 {
			l.VLAN = c.tag(x)
		}
	}
	for _, hop := range c.childrenOf(e, "component_hop") {
		for _, ref := range c.childrenOf(hop, "interface_ref") {
			id := request.ClientID(attr(ref, "client_id"))
			component, _ := component(ref)
			if i := c.made[id]; i != nil && !component.IsZero() && i.Component.IsZero() {
				i.Component = component
			}
		}
	}
}

// jitter reads the deviation of a property's latency.
func (c *compiler) jitter(p *etree.Element) float64 {
	for _, x := range c.children(p, nsCroft, "jitter") {
		return c.number(x, "ms", 1e7)
	}
	return 0
}
