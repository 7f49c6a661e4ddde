package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"croft/capacity"
	"croft/request"
)

// wish is one thing that nodes want of their hosts, and how a want is without
// it.
type wish struct {
	name string
	drop func(*want, *request.Node)
}

// wishes lists what a want asks for.
func (w *want) wishes() []wish {
	n := w.node
	var all []wish
	add := func(name string, drop func(*want, *request.Node)) { all = append(all, wish{name, drop}) }
	if n.Site != "" {
		add("site "+n.Site, func(_ *want, n *request.Node) { n.Site = "" })
	}
	if len(n.HardwareTypes) > 0 {
		add("hardware type "+strings.Join(n.HardwareTypes, " or "), func(_ *want, n *request.Node) { n.HardwareTypes = nil })
	}
	if w.class != nil {
		add("class "+string(n.Class), func(w *want, _ *request.Node) { w.class = nil })
	}
	if n.Architecture != "" {
		add("architecture "+n.Architecture, func(_ *want, n *request.Node) { n.Architecture = "" })
	}
	if w.sliverType != "" {
		add("sliver type "+w.sliverType, func(w *want, _ *request.Node) { w.sliverType = "" })
	}
	if len(w.images) > 0 {
		add("image "+w.images[0].Name, func(w *want, _ *request.Node) { w.images = nil })
	}
	for _, f := range w.features {
		if f.Weight >= 1 {
			add("feature "+f.Name, func(w *want, _ *request.Node) {
				w.features = slices.DeleteFunc(slices.Clone(w.features), func(x request.Feature) bool { return x.Name == f.Name })
			})
		}
	}
	if n.Exclusive != request.Open {
		add(fmt.Sprintf("exclusive=%v", n.Exclusive == request.Yes), func(_ *want, n *request.Node) { n.Exclusive = request.Open })
	}
	if n.Capacity != (capacity.Amount{}) {
		add("a size of "+sizeOf(n.Capacity), func(_ *want, n *request.Node) { n.Capacity = capacity.Amount{} })
	}
	return all
}

// wishesOfLinks lists what its links want of the hosts of a want.
func (w *want) wishesOfLinks() []wish {
	var all []wish
	if w.wired > 0 {
		all = append(all, wish{plural(w.wired, "interface") + " for its links", func(w *want, _ *request.Node) { w.wired = 0 }})
	}
	if w.shaping {
		all = append(all, wish{"a link that is shaped", func(w *want, _ *request.Node) { w.shaping = false }})
	}
	if w.group > 0 {
		all = append(all, wish{"the driver of the nodes that it is linked to", func(w *want, _ *request.Node) { w.group, w.drivers = 0, nil }})
	}
	return all
}

// without is a want without some of its wishes.
func (w *want) without(dropped []wish) *want {
	few, node := *w, *w.node
	few.node = &node
	for _, x := range dropped {
		x.drop(&few, &node)
	}
	return &few
}

// conflict is a smallest set of what a node wants that no host has together,
// however free the testbed is: each of them taken away, some host would do.
// Nothing if that is but one.
func (b *board) conflict(w *want) []string {
	wishes := w.wishes()
	possible := func(kept []wish) bool {
		few := w.without(slices.DeleteFunc(slices.Clone(wishes), func(x wish) bool {
			return slices.ContainsFunc(kept, func(k wish) bool { return k.name == x.name })
		}))
		for i := range b.slots {
			if w.bound >= 0 && w.bound != i {
				continue
			}
			for _, kind := range b.slots[i].types {
				if _, at := b.offer(few, i, kind); at == fits {
					return true
				}
			}
		}
		return false
	}
	kept := slices.Clone(wishes)
	for _, x := range wishes {
		fewer := slices.DeleteFunc(slices.Clone(kept), func(k wish) bool { return k.name == x.name })
		if !possible(fewer) {
			kept = fewer
		}
	}
	if len(kept) < 2 {
		return nil
	}
	var names []string
	for _, k := range kept {
		names = append(names, k.name)
	}
	return names
}

// Bounds of the search for what cannot hold together: of each try, and of all
// of them, in possibilities looked at.
const (
	conflictTry = 20_000
	conflictAll = 4_000_000
)

// dispute is a set of nodes that have no places together, on the way to a
// smallest one.
type dispute struct {
	*job
	board *board
	wants []*want
	links *linkage
	left  int // effort
	// gone is what was dropped of each want.
	gone map[*want][]wish
}

// impossible reports whether nodes are proved to have no places together, with
// what is dropped.
func (d *dispute) impossible(nodes []int) bool {
	var some []*want
	size := 0
	for _, w := range d.wants {
		few := w
		if gone := d.gone[w]; len(gone) > 0 {
			few = w.without(gone)
			d.board.consider(few)
		} else {
			copied := *w
			few = &copied
		}
		few.nodes = nil
		for _, n := range w.nodes {
			if slices.Contains(nodes, n) {
				few.nodes = append(few.nodes, n)
			}
		}
		if len(few.nodes) > 0 {
			some = append(some, few)
			size += len(few.nodes) * (len(few.options) + len(d.board.slots)/8)
		}
	}
	o := d.options
	o.Effort = conflictTry
	if d.left -= size + conflictTry/10; d.left < 0 {
		return false
	}
	_, _, how := arrange(d.board, some, d.links, d.objective.Layout, o)
	return how == proved
}

// smallest drops nodes that are not needed for the others to have no places
// together: in halves while that works, then one by one.
func (d *dispute) smallest(nodes []int) []int {
	var drop func(some []int)
	drop = func(some []int) {
		fewer := slices.DeleteFunc(slices.Clone(nodes), func(n int) bool { return slices.Contains(some, n) })
		if len(fewer) > 0 && d.impossible(fewer) {
			nodes = fewer
			return
		}
		if len(some) > 1 {
			drop(some[:len(some)/2])
			drop(some[len(some)/2:])
		}
	}
	// The last one is part of it: those before it have places together.
	if len(nodes) > 1 {
		drop(slices.Clone(nodes[:len(nodes)-1]))
	}
	return nodes
}

// disputed is a smallest set of wants that have no places together, as far as
// it is found cheaply: nodes of the first ones of a request, and what they want
// that is in the way. Nothing if there is no more to tell than that they are
// too many.
func (j *job) disputed(b *board, wants []*want, first int) []Claim {
	d := &dispute{job: j, board: b, wants: wants, links: j.links, left: conflictAll, gone: map[*want][]wish{}}
	nodes := make([]int, first)
	for i := range nodes {
		nodes[i] = i
	}
	if first < 2 || first > maxDisputed || !d.impossible(nodes) {
		return nil
	}
	nodes = d.smallest(nodes)
	var told []Claim
	for _, w := range wants {
		var ids []request.ClientID
		for _, n := range nodes {
			if slices.Contains(w.nodes, n) {
				ids = append(ids, j.req.Nodes[n].ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		var names []string
		if w.bound >= 0 {
			names = append(names, "component "+b.slots[w.bound].host.Name)
		}
		for _, x := range append(w.wishes(), w.wishesOfLinks()...) {
			before := d.gone[w]
			d.gone[w] = append(slices.Clone(before), x)
			if !d.impossible(nodes) {
				d.gone[w] = before
				names = append(names, x.name)
			}
		}
		told = append(told, Claim{ids, names})
	}
	for g := range j.links.groups {
		if d.needs(g, nodes) {
			told = append(told, j.claimOf(&j.links.groups[g]))
		}
	}
	if len(told) < 2 && len(nodes) > 2 {
		return nil
	}
	return told
}

// maxDisputed bounds the requests that are looked at so.
const maxDisputed = 200

// claimOf tells of a group.
func (j *job) claimOf(g *grouping) Claim {
	c := Claim{Wants: []string{g.String()}}
	for _, m := range g.members {
		if m.node >= 0 {
			c.Nodes = append(c.Nodes, j.req.Nodes[m.node].ID)
		} else {
			c.Nodes = append(c.Nodes, j.links.existing[m.existing].ID)
		}
	}
	return c
}

// needs reports whether a group is in the way: without it, and those that were
// found not to be, the nodes would have places.
func (d *dispute) needs(g int, nodes []int) bool {
	group := &d.links.groups[g]
	if !group.hard() || !slices.ContainsFunc(nodes, func(n int) bool { return slices.Contains(d.links.sets[n], g) }) {
		return false
	}
	less := *d.links
	less.sets = make([][]int, len(d.links.sets))
	for n, sets := range d.links.sets {
		less.sets[n] = slices.DeleteFunc(slices.Clone(sets), func(x int) bool { return x == g })
	}
	with := d.links
	d.links = &less
	if d.impossible(nodes) {
		return false // it stays out, so that what is told is a smallest set
	}
	d.links = with
	return true
}

// Claim is what some nodes want, as a part of what cannot hold together.
type Claim struct {
	Nodes []request.ClientID
	Wants []string // none for a place at all
}

// String writes the claim for people.
func (c Claim) String() string {
	const most = 4
	who := "node "
	if len(c.Nodes) > 1 {
		who = "nodes "
	}
	for i, id := range c.Nodes[:min(len(c.Nodes), most)] {
		if i > 0 {
			who += ", "
		}
		who += string(id)
	}
	if more := len(c.Nodes) - most; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	return who + ": " + cmp.Or(strings.Join(c.Wants, ", "), "anywhere")
}

// sizeOf writes what there is of a size.
func sizeOf(a capacity.Amount) string {
	var parts []string
	if a.Cores > 0 {
		parts = append(parts, cores(a.Cores))
	}
	if a.Memory > 0 {
		parts = append(parts, fmt.Sprintf("%d MiB of memory", a.Memory))
	}
	if a.Disk > 0 {
		parts = append(parts, fmt.Sprintf("%d MiB of disk", a.Disk))
	}
	if a.GPUs > 0 {
		parts = append(parts, plural(int(a.GPUs), "GPU"))
	}
	return strings.Join(parts, " and ")
}
