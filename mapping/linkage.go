package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/request"
	"croft/urn"
)

// linkage is how links tie the nodes of a request together and to nodes that
// the slice has already.
type linkage struct {
	req      *request.Request
	existing []ExistingNode
	nodes    map[request.ClientID]int // index in req.Nodes
	stands   map[request.ClientID]int // index in existing
	ends     [][]endpoint             // by link
	used     [][]int                  // by node: indexes of its interfaces that links join
	owned    []int                    // by node: how many of those links need for themselves if the node has a host to itself
	shaped   []*shape                 // by node: what asks for shaping, if anything does
	near     [][]int                  // by node: the nodes it has links to
	group    []int                    // by node: which nodes need one driver; 0 if that does not matter
	pinned   [][]string               // by group: drivers that existing nodes allow; nil for any
	shapes   [][]endShape             // by link: what its ends do
	rates    []capacity.Kbps          // by link: what it takes of wires
	native   []bool                   // by link: only interfaces of just its rate will do
	sets     [][]int                  // by node: groups; classes follow them in number
	groups   []grouping
	class    []int // by node: index in req.Classes, -1 for none
	parent   []endpoint
	isParent map[request.ClientID]bool
	unshaped []unshaped
}

// grouping is a group with its nodes resolved.
type grouping struct {
	group   *request.Group
	members []endpoint
	link    *request.Link // that keeps its ends apart; nil for a group of the request
}

// hard reports whether the group is a condition.
func (g *grouping) hard() bool { return g.group.Weight <= 0 || g.group.Weight >= 1 }

// endpoint is a resolved end of a link.
type endpoint struct {
	node, existing int // one of them is -1
	iface          int // index in the node's or existing node's interfaces
}

// shape is a property of a link that asks for something.
type shape struct {
	link     *request.Link
	property *request.Property
}

// linkTypes are the types of link that are made as plain layer-2 links: also
// tunnels, since those of one aggregate's nodes need none. Documents write them
// in all cases.
var linkTypes = []string{"", "lan", "ethernet", "vlan", "gre-tunnel", "egre-tunnel", "gre", "egre", "vxlan"}

// newLinkage resolves the ends of links and refuses links that contradict
// themselves or are of a kind that no driver makes. delays are the delay nodes
// that are in the request already; nil for none.
func newLinkage(b *board, existing []ExistingNode, req *request.Request, delays *delays) (*linkage, *Refusal) {
	l := &linkage{
		req: req, existing: existing,
		nodes: make(map[request.ClientID]int, len(req.Nodes)), stands: make(map[request.ClientID]int, len(existing)),
		ends: make([][]endpoint, len(req.Links)), used: make([][]int, len(req.Nodes)), shaped: make([]*shape, len(req.Nodes)),
		near: make([][]int, len(req.Nodes)), group: make([]int, len(req.Nodes)),
		shapes: make([][]endShape, len(req.Links)), rates: make([]capacity.Kbps, len(req.Links)), native: make([]bool, len(req.Links)),
	}
	for i := range existing {
		l.stands[existing[i].ID] = i
	}
	for i := range req.Nodes {
		n := &req.Nodes[i]
		if _, twice := l.nodes[n.ID]; twice {
			return nil, &Refusal{Kind: Contradicts, Item: n.ID, Place: n.Place, Why: "a second node of that client_id", Hint: "client_ids must differ"}
		}
		if _, stands := l.stands[n.ID]; stands {
			return nil, &Refusal{Kind: Contradicts, Item: n.ID, Place: n.Place, Why: "the slice has a node of that client_id already", Hint: "name it otherwise"}
		}
		l.nodes[n.ID] = i
		if r := checkInterfaces(n); r != nil {
			return nil, r
		}
	}
	links := map[request.ClientID]bool{}
	used := map[endpoint]request.ClientID{}
	for i := range req.Links {
		link := &req.Links[i]
		refuse := func(kind Kind, place request.Place, why, hint string) (*linkage, *Refusal) {
			if place == (request.Place{}) {
				place = link.Place
			}
			return nil, &Refusal{Kind: kind, Item: link.ID, Place: place, Why: why, Hint: hint}
		}
		if links[link.ID] {
			return refuse(Contradicts, link.Place, "a second link of that client_id", "client_ids must differ")
		}
		links[link.ID] = true
		if !slices.Contains(linkTypes, strings.ToLower(string(link.Type))) {
			return refuse(Impossible, link.Place, fmt.Sprintf("links of type %q cannot be made here", link.Type), "leave link_type out, or write lan")
		}
		if link.SharedVLAN != "" {
			if r := sharedVLAN(b.snapshot, b.slice, link); r != nil {
				return refuse(r.Kind, link.Place, r.Why, r.Hint)
			}
		}
		if len(link.Ends) == 0 {
			return refuse(Contradicts, link.Place, "joins nothing", "name the interfaces that it joins")
		}
		for _, end := range link.Ends {
			e, r := l.resolve(end)
			if r != nil {
				return refuse(r.Kind, end.Place, r.Why, r.Hint)
			}
			if other, taken := used[e]; taken {
				why := fmt.Sprintf("interface %s is on link %s already", end.Interface, other)
				if other == link.ID {
					why = fmt.Sprintf("joins interface %s twice", end.Interface)
				}
				return refuse(Contradicts, end.Place, why, "give the node another interface")
			}
			used[e] = link.ID
			l.ends[i] = append(l.ends[i], e)
			if e.node >= 0 {
				l.used[e.node] = append(l.used[e.node], e.iface)
			}
		}
		if r := l.shape(b, i); r != nil {
			return nil, r
		}
		l.rates[i] = max(l.rates[i], delays.rate(link.ID))
	}
	l.findNear()
	l.findOwned()
	if r := l.findSets(b); r != nil {
		return nil, r
	}
	return l, l.findGroups(b)
}

// checkInterfaces refuses a node whose interfaces clash.
func checkInterfaces(n *request.Node) *Refusal {
	seen := map[string]bool{}
	for i := range n.Interfaces {
		f := &n.Interfaces[i]
		refuse := func(why string) *Refusal {
			return &Refusal{Kind: Contradicts, Item: n.ID, Place: f.Place, Why: why, Hint: "every interface needs its own"}
		}
		if seen["id "+string(f.ID)] {
			return refuse(fmt.Sprintf("a second interface %s", f.ID))
		}
		seen["id "+string(f.ID)] = true
		if component := f.Component.Canonical().String(); component != "" {
			if seen[component] {
				return refuse(fmt.Sprintf("a second interface on component %s", f.Component))
			}
			seen[component] = true
		}
	}
	return nil
}

func sharedVLAN(snapshot *inventory.Snapshot, slice urn.URN, link *request.Link) *Refusal {
	name := link.SharedVLAN
	var names []string
	for i := range snapshot.SharedVLANs {
		v := &snapshot.SharedVLANs[i]
		if v.Name == name && !v.Open(slice) {
			return &Refusal{Kind: Disallowed, Why: fmt.Sprintf("the shared VLAN %q is restricted, and slices of %s are not allowed on it", name, slice.Authority),
				Hint: "ask the operator"}
		}
		if v.Name == name && link.VLAN != 0 && v.Tag != 0 && link.VLAN != v.Tag && name != strconv.Itoa(link.VLAN) {
			return &Refusal{Kind: NoVLAN, Why: fmt.Sprintf("asks for VLAN tag %d, but that of the shared VLAN %s is %d", link.VLAN, name, v.Tag), Hint: "leave the tag out"}
		}
		if v.Name == name {
			return nil
		}
		names = append(names, v.Name)
	}
	hint := "none is declared here"
	if len(names) > 0 {
		hint = nearestOr(name, names, "there are "+some(names))
	}
	return &Refusal{Kind: Impossible, Why: fmt.Sprintf("no shared VLAN %q here", name), Hint: hint}
}

// resolve finds the interface that an end names.
func (l *linkage) resolve(end request.End) (endpoint, *Refusal) {
	none := endpoint{-1, -1, -1}
	var names []string
	if i, ok := l.nodes[end.Node]; ok && !end.Existing {
		for j, f := range l.req.Nodes[i].Interfaces {
			if f.ID == end.Interface {
				return endpoint{i, -1, j}, nil
			}
			names = append(names, string(f.ID))
		}
	} else if i, ok := l.stands[end.Node]; ok && end.Existing {
		for j, f := range l.existing[i].Interfaces {
			if f.ID == end.Interface && f.Linked {
				return none, &Refusal{Kind: Unavailable, Why: fmt.Sprintf("interface %s of node %s is on a link of the slice already", f.ID, end.Node)}
			}
			if f.ID == end.Interface {
				return endpoint{-1, i, j}, nil
			}
			names = append(names, string(f.ID))
		}
	} else {
		for id := range l.nodes {
			names = append(names, string(id))
		}
		slices.Sort(names)
		return none, &Refusal{Kind: Contradicts, Why: fmt.Sprintf("joins node %s, which is neither in the request nor in the slice", end.Node),
			Hint: nearestOr(string(end.Node), names, "")}
	}
	return none, &Refusal{Kind: Contradicts, Why: fmt.Sprintf("joins interface %s, which node %s does not have", end.Interface, end.Node),
		Hint: nearestOr(string(end.Interface), names, "")}
}

// refusal says that a link cannot be given what it asks for.
func (s *shape) refusal() *Refusal {
	p := s.property
	var wanted []string
	kind := Impossible
	if p.Capacity != 0 {
		kind = Bandwidth
		wanted = append(wanted, fmt.Sprintf("a capacity of %d kbit/s", p.Capacity))
	}
	if p.LatencyMs != 0 {
		wanted = append(wanted, fmt.Sprintf("a latency of %g ms", p.LatencyMs))
	}
	if p.JitterMs != 0 {
		wanted = append(wanted, fmt.Sprintf("a jitter of %g ms", p.JitterMs))
	}
	if p.Loss != 0 {
		wanted = append(wanted, fmt.Sprintf("a loss of %g %%", p.Loss))
	}
	place := p.Place
	if place == (request.Place{}) {
		place = s.link.Place
	}
	return &Refusal{Kind: kind, Item: s.link.ID, Place: place,
		Why:  "asks for " + strings.Join(wanted, " and ") + ", but links of these nodes cannot be shaped here",
		Hint: "leave the property out: the link runs as fast as its hosts let it"}
}

// typesOf are the types that an existing node may be of.
func (b *board) typesOf(n *ExistingNode) []*inventory.SliverType {
	if t, known := b.snapshot.Type(n.SliverType); known && n.SliverType != "" {
		return []*inventory.SliverType{t}
	}
	h, known := b.snapshot.Host(n.Host)
	if !known {
		return b.types // its host left the inventory: nothing speaks against it
	}
	var types []*inventory.SliverType
	for _, t := range b.types {
		if slices.Contains(h.Types, t.Name) {
			types = append(types, t)
		}
	}
	return types
}

// findNear lists for each node those that it has links to.
func (l *linkage) findNear() {
	for _, ends := range l.ends {
		if len(ends) > 16 {
			continue // everybody is near everybody on a large LAN: it tells nothing
		}
		for _, a := range ends {
			for _, z := range ends {
				if a.node >= 0 && z.node >= 0 && a.node != z.node {
					l.near[a.node] = append(l.near[a.node], z.node)
				}
			}
		}
	}
}

// findSets resolves groups, classes and parents.
func (l *linkage) findSets(b *board) *Refusal {
	l.sets, l.class = make([][]int, len(l.req.Nodes)), make([]int, len(l.req.Nodes))
	l.parent, l.isParent = make([]endpoint, len(l.req.Nodes)), map[request.ClientID]bool{}
	resolve := func(id request.ClientID) (endpoint, bool) {
		if i, ok := l.nodes[id]; ok {
			return endpoint{i, -1, -1}, true
		}
		i, ok := l.stands[id]
		return endpoint{-1, i, -1}, ok
	}
	missing := func(item request.ClientID, place request.Place, what string, id request.ClientID) *Refusal {
		var names []string
		for i := range l.req.Nodes {
			names = append(names, string(l.req.Nodes[i].ID))
		}
		return &Refusal{Kind: Contradicts, Item: item, Place: place,
			Why: fmt.Sprintf("%s %s, which is neither in the request nor in the slice", what, id), Hint: nearestOr(string(id), names, "")}
	}
	for i := range l.req.Groups {
		g := &l.req.Groups[i]
		if g.By != "" && g.By != request.ByHost && g.By != request.BySwitch && g.By != request.BySite {
			return &Refusal{Kind: Contradicts, Item: request.ClientID(g.Name), Place: g.Place, Why: fmt.Sprintf("groups nodes by %q", g.By), Hint: "by host, switch or site"}
		}
		made := grouping{group: g}
		for _, id := range g.Nodes {
			e, ok := resolve(id)
			if !ok {
				return missing(request.ClientID(g.Name), g.Place, "groups node", id)
			}
			if slices.Contains(made.members, e) {
				continue
			}
			made.members = append(made.members, e)
			if e.node >= 0 {
				l.sets[e.node] = append(l.sets[e.node], i)
			}
		}
		l.groups = append(l.groups, made)
	}
	l.findLeaving(b)
	for i := range l.req.Nodes {
		n := &l.req.Nodes[i]
		l.class[i] = slices.IndexFunc(l.req.Classes, func(c request.Class) bool { return c.Name == n.Class && n.Class != "" })
		if n.Class != "" && l.class[i] < 0 {
			return &Refusal{Kind: Contradicts, Item: n.ID, Place: n.Place, Why: fmt.Sprintf("is of class %s, which the request does not define", n.Class)}
		}
		l.parent[i] = endpoint{-1, -1, -1}
		if n.Parent != "" {
			e, ok := resolve(n.Parent)
			if !ok || e.node == i {
				return missing(n.ID, n.Place, "is to be on a part of the host of node", n.Parent)
			}
			l.parent[i] = e
			l.isParent[n.Parent] = true
		}
	}
	return nil
}

// findLeaving keeps the ends of links apart that must leave their hosts: those
// that say so, and those whose rate is just that of interfaces.
func (l *linkage) findLeaving(b *board) {
	for i, ends := range l.ends {
		link := &l.req.Links[i]
		if link.Trivial != request.No && !l.native[i] {
			continue
		}
		made := grouping{link: link, group: &request.Group{Name: string(link.ID), Apart: true, By: request.ByHost, Place: link.Place}}
		shared := 0
		for _, e := range ends {
			e.iface = -1
			if slices.Contains(made.members, e) {
				continue
			}
			made.members = append(made.members, e)
			if b.mayShare(l, e) {
				shared++
			}
		}
		if shared < 2 {
			continue
		}
		for _, e := range made.members {
			if e.node >= 0 {
				l.sets[e.node] = append(l.sets[e.node], len(l.groups))
			}
		}
		l.groups = append(l.groups, made)
	}
}

// mayShare reports whether the node at an end may have its host in common with
// others.
func (b *board) mayShare(l *linkage, e endpoint) bool {
	if e.existing >= 0 {
		return slices.ContainsFunc(b.typesOf(&l.existing[e.existing]), func(t *inventory.SliverType) bool { return !t.WholeHost })
	}
	t, known := b.snapshot.Type(l.req.Nodes[e.node].SliverType)
	return !known || !t.WholeHost
}

// findOwned counts the interfaces that nodes with a host to themselves do not
// share: those of all links but the ones that say that they may be.
func (l *linkage) findOwned() {
	l.owned = make([]int, len(l.req.Nodes))
	for i, ends := range l.ends {
		for _, e := range ends {
			if e.node >= 0 && l.req.Links[i].Multiplexed != request.Yes {
				l.owned[e.node]++
			}
		}
	}
}

// findGroups joins the nodes whose links need one driver. With one driver in
// the testbed there are no groups.
func (l *linkage) findGroups(b *board) *Refusal {
	l.pinned = [][]string{nil}
	if !slices.ContainsFunc(b.types, func(t *inventory.SliverType) bool { return t.LinkedBy() != b.types[0].LinkedBy() }) {
		return nil
	}
	parent := make([]int, len(l.req.Nodes))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, ends := range l.ends {
		last := -1
		for _, e := range ends {
			if e.node < 0 {
				continue
			}
			if last >= 0 {
				parent[root(e.node)] = root(last)
			}
			last = e.node
		}
	}
	size, existing := map[int]int{}, map[int]bool{}
	for i := range parent {
		size[root(i)]++
	}
	for _, ends := range l.ends {
		if !slices.ContainsFunc(ends, func(e endpoint) bool { return e.existing >= 0 }) {
			continue
		}
		for _, e := range ends {
			if e.node >= 0 {
				existing[root(e.node)] = true
			}
		}
	}
	number := map[int]int{}
	for i := range parent {
		r := root(i)
		if size[r] == 1 && !existing[r] {
			continue // it may be made by whatever driver
		}
		if number[r] == 0 {
			number[r] = len(l.pinned)
			l.pinned = append(l.pinned, nil)
		}
		l.group[i] = number[r]
	}
	return l.pin(b)
}

// pin restricts groups to the drivers of existing nodes that they are linked
// to.
func (l *linkage) pin(b *board) *Refusal {
	for i, ends := range l.ends {
		group := 0
		var allowed []string
		restricted := false
		for _, e := range ends {
			if e.node >= 0 {
				group = l.group[e.node]
				continue
			}
			var drivers []string
			for _, t := range b.typesOf(&l.existing[e.existing]) {
				drivers = append(drivers, t.LinkedBy())
			}
			if restricted {
				drivers = common(allowed, drivers)
			}
			allowed, restricted = drivers, true
		}
		if !restricted {
			continue
		}
		if group > 0 && l.pinned[group] != nil {
			allowed = common(l.pinned[group], allowed)
		}
		if len(allowed) == 0 {
			return &Refusal{Kind: Impossible, Item: l.req.Links[i].ID, Place: l.req.Links[i].Place,
				Why: "joins nodes whose drivers cannot be linked", Hint: "links join nodes of one driver, or containers and namespaces"}
		}
		if group > 0 {
			l.pinned[group] = allowed
		}
	}
	return nil
}
