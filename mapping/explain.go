package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"croft/inventory"
	"croft/request"
)

// refuseOne says why no host takes a node of a want, nothing else of the
// request being placed.
func (b *board) refuseOne(w *want, links *linkage) *Refusal {
	n := w.node
	r := &Refusal{Item: n.ID, Place: n.Place}
	furthest, slots := byBinding, []int(nil)
	for i, st := range w.stages {
		if w.bound >= 0 && i != w.bound {
			continue
		}
		if st > furthest {
			furthest, slots = st, nil
		}
		if st == furthest {
			slots = append(slots, i)
		}
	}
	switch furthest {
	case byShaping:
		return links.shaped[w.nodes[0]].refusal()
	case byDriver:
		return links.refuseDrivers(w.nodes[0])
	case bySize:
		b.explainSize(r, w, slots)
	case byService:
		r.Kind = Unavailable
		s := &b.slots[slots[0]]
		r.Why = fmt.Sprintf("%s is out of service: %s", b.call(w, slots[0]), s.out)
		if len(slots) > 1 {
			r.Why = fmt.Sprintf("all %d hosts that could take it are out of service; %s: %s", len(slots), s.host.Name, s.out)
		}
	case byOwner:
		b.explainOwner(r, w, slots)
	case byRoom:
		r.Kind = Full
		r.Why, r.Hint = b.explainRoom(w, slots, "")
	default:
		r.Kind = Impossible
		b.explainLack(r, w, furthest)
	}
	if w.bound >= 0 && r.Kind != Impossible && r.Hint == "" && b.elsewhere(w) {
		r.Hint = "others could take it: leave component_id out"
	}
	return r
}

// call names a host for a node that may be bound to it.
func (b *board) call(w *want, slot int) string {
	if w.bound >= 0 {
		return "component " + b.slots[slot].host.Name
	}
	return "host " + b.slots[slot].host.Name
}

// elsewhere reports whether a bound node would have a place if it were not.
func (b *board) elsewhere(w *want) bool {
	open := *w
	open.bound = -1
	b.consider(&open)
	return len(open.options) > 0
}

// explainLack says which of a node's wishes no host answers to.
func (b *board) explainLack(r *Refusal, w *want, at stage) {
	n := w.node
	if w.bound >= 0 {
		h := b.slots[w.bound].host
		r.Why, r.Hint = b.hostLacks(w, h, at), ""
		if at == byType {
			r.Hint = "it offers " + types(h.Types)
		}
		if at == byHardware {
			r.Hint = "it is of " + some(h.HardwareTypes)
		}
		return
	}
	where := "host"
	if len(n.HardwareTypes) > 0 {
		where = "host of hardware type " + strings.Join(n.HardwareTypes, " or ")
	}
	if w.sliverType != "" && at > byType {
		where += " that offers " + w.sliverType
	}
	if len(w.images) > 0 && at > byImage {
		where += " and boots " + w.images[0].Name
	}
	defer func() {
		said := func(name string) bool { return strings.Contains(r.Why, name[strings.LastIndexByte(name, ' ')+1:]) }
		if names := b.conflict(w); slices.ContainsFunc(names, func(name string) bool { return !said(name) }) {
			r.Why += "; these cannot be had together: " + strings.Join(names, ", ")
		}
	}()
	switch at {
	case bySite:
		r.Why, r.Hint = fmt.Sprintf("no host stands at site %s", n.Site), ""
	case byArchitecture:
		var names []string
		for i := range b.slots {
			if a := b.slots[i].host.Architecture; a != "" && !slices.Contains(names, a) {
				names = append(names, a)
			}
		}
		r.Why, r.Hint = fmt.Sprintf("no %s is of architecture %s", where, n.Architecture), "no host says its architecture"
		if len(names) > 0 {
			r.Hint = "there are " + some(names)
		}
	case byPolicy:
		r.Kind = Disallowed
		r.Why, r.Hint = "the policy of this testbed does not give it to this slice", ""
		for i := range b.slots {
			for _, kind := range b.slots[i].types {
				if p := b.disallows(w, b.slots[i].host, b.types[kind]); p != nil && w.stages[i] == byPolicy {
					r.Why = "the policy of this testbed gives this slice no nodes " + describe(p)
					return
				}
			}
		}
	case byFeature:
		b.explainFeature(r, w, where)
	case byBinding, byHardware:
		var names []string
		for i := range b.slots {
			for _, t := range b.slots[i].host.HardwareTypes {
				if !slices.Contains(names, t) {
					names = append(names, t)
				}
			}
		}
		r.Why = "no " + where
		if r.Hint = "no host names a hardware type"; len(names) > 0 {
			wanted := ""
			if len(n.HardwareTypes) > 0 {
				wanted = n.HardwareTypes[0]
			}
			r.Hint = nearestOr(wanted, names, "there are "+some(names))
		}
		switch {
		case len(n.HardwareTypes) > 0:
		case w.class != nil:
			r.Why, r.Hint = fmt.Sprintf("no host is of a hardware type of class %s: %s", w.class.Name, strings.Join(w.class.Types, ", ")), "there are "+some(names)
		default:
			r.Why, r.Hint = "there are no hosts", ""
		}
	case byType:
		r.Why = fmt.Sprintf("no %s offers sliver type %s", where, w.sliverType)
		r.Hint = b.offering(n)
	case byImage:
		what := "an image"
		if len(w.images) > 0 {
			what = "image " + w.images[0].Name
		}
		r.Why = fmt.Sprintf("no %s boots %s", where, what)
		r.Hint = b.bootable(w)
		if r.Place = n.Image.Place; r.Place == (request.Place{}) {
			r.Place = n.Place
		}
	case byUse:
		if n.Exclusive == request.No {
			r.Why, r.Hint = fmt.Sprintf("no %s is shared", where), `write exclusive="true"`
		} else {
			r.Why, r.Hint = fmt.Sprintf("no %s is given out whole", where), `write exclusive="false"`
		}
	case byInterfaces:
		r.Why = fmt.Sprintf("no %s has the interfaces for it", where)
		for i, st := range w.stages {
			if st == byInterfaces {
				r.Hint = fmt.Sprintf("host %s %s", b.slots[i].host.Name, interfacesLack(w, b.slots[i].host, true))
				break
			}
		}
	}
}

// explainFeature says which feature no host has.
func (b *board) explainFeature(r *Refusal, w *want, where string) {
	for i, st := range w.stages {
		if st != byFeature {
			continue
		}
		lacking, kept := b.lacksFeature(w, b.slots[i].host)
		if kept != "" {
			r.Why, r.Hint = fmt.Sprintf("every %s is kept for nodes that want feature %s", where, kept), "ask for the feature if you need it"
			continue
		}
		r.Why, r.Hint = fmt.Sprintf("no %s has feature %s", where, lacking), b.featureHint(lacking)
		for _, f := range w.features {
			if f.Name == lacking && f.Place != (request.Place{}) {
				r.Place = f.Place
			}
		}
		return
	}
}

// featureHint names features that there are.
func (b *board) featureHint(name string) string {
	var names []string
	for i := range b.slots {
		for _, f := range b.slots[i].host.Features {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	if slices.Contains(names, name) {
		return "other hosts have it"
	}
	if len(names) == 0 {
		return "no features are declared here"
	}
	return nearestOr(name, names, "there are "+some(names))
}

// hostLacks says which wish of a node the host that it is bound to does not
// answer to.
func (b *board) hostLacks(w *want, h *inventory.Host, at stage) string {
	prefix := "component " + h.Name + " "
	switch at {
	case byHardware:
		return prefix + "is not of hardware type " + strings.Join(w.node.HardwareTypes, " or ")
	case byType:
		return prefix + "does not offer sliver type " + w.sliverType
	case byImage:
		if len(w.images) > 0 {
			return prefix + "does not boot image " + w.images[0].Name
		}
		return prefix + "boots no image"
	case bySite:
		return prefix + "does not stand at site " + w.node.Site
	case byArchitecture:
		if h.Architecture == "" {
			return prefix + "does not say its architecture"
		}
		return prefix + "is of architecture " + h.Architecture
	case byPolicy:
		return prefix + "is not given to this slice by the policy of this testbed"
	case byFeature:
		lacking, kept := b.lacksFeature(w, h)
		if kept != "" {
			return prefix + "is kept for nodes that want feature " + kept
		}
		return prefix + "does not have feature " + lacking
	case byUse:
		if w.node.Exclusive == request.No {
			return prefix + "is given out whole only"
		}
		return prefix + "is not given out whole"
	case byInterfaces:
		return prefix + interfacesLack(w, h, true)
	}
	return prefix + "offers nothing that nodes can be made as"
}

// offering lists the sliver types that a node could have on the hosts it may
// go to.
func (b *board) offering(n *request.Node) string {
	var names []request.SliverType
	for i := range b.slots {
		h := b.slots[i].host
		isWanted := func(wanted string) bool { return slices.Contains(h.HardwareTypes, wanted) }
		if len(n.HardwareTypes) > 0 && !slices.ContainsFunc(n.HardwareTypes, isWanted) {
			continue
		}
		for _, t := range h.Types {
			if !slices.Contains(names, t) {
				names = append(names, t)
			}
		}
	}
	return "they offer " + types(names)
}

// bootable lists the images that a node could have as the type it asks for.
func (b *board) bootable(w *want) string {
	var names []string
	for _, t := range b.types {
		if w.sliverType != "" && w.sliverType != string(t.Name) {
			continue
		}
		for _, id := range t.Images {
			for _, image := range b.snapshot.Images {
				if image.ID == id && !slices.Contains(names, image.Name) {
					names = append(names, image.Name)
				}
			}
		}
	}
	if len(names) == 0 {
		return "leave disk_image out: such nodes have a system of their own"
	}
	return "they boot " + some(names)
}

func types(names []request.SliverType) string {
	var all []string
	for _, n := range names {
		all = append(all, string(n))
	}
	if len(all) == 0 {
		return "nothing"
	}
	return some(all)
}

// refuseAll says why nodes that each have a place have none together. It looks
// for the first node in the request's order that has no place beside those
// before it: what fits does so with fewer nodes too, so half of the guesses can
// be left out each time.
func (j *job) refuseAll(b *board, wants []*want, r *Refusal) *Refusal {
	req, o := j.req, j.options
	// Each guess gets a part of the effort.
	o.Effort = max(10_000, cmp.Or(o.Effort, DefaultEffort)/10)
	fitting, left := 0, b
	first := 1 + sort.Search(len(req.Nodes)-1, func(i int) bool {
		_, after, how := arrange(b, firstNodes(wants, i+1), j.links, j.objective.Layout, o)
		if how == found && i+1 > fitting {
			fitting, left = i+1, after
		}
		return how != found
	})
	if first > len(req.Nodes) || first-1 != fitting {
		first = min(fitting+1, len(req.Nodes))
	}
	node := first - 1
	n := &req.Nodes[node]
	r.Item, r.Place = n.ID, n.Place
	var w *want
	for _, candidate := range wants {
		if slices.Contains(candidate.nodes, node) {
			w = candidate
		}
	}
	var slots []int
	for i := range b.slots {
		if w.first[i] < w.first[i+1] {
			slots = append(slots, i)
		}
	}
	beside := ""
	if fitting > 0 {
		beside = " beside " + plural(fitting, "node") + " of this request"
	}
	r.Why = left.explainBeside(w, slots, beside)
	r.Conflict = j.disputed(b, wants, first)
	for i, c := range r.Conflict {
		if i == 0 {
			r.Why += "; these cannot hold together: "
		} else {
			r.Why += "; "
		}
		r.Why += c.String()
	}
	for _, g := range j.links.sets[node] {
		if grouping := &j.links.groups[g]; grouping.hard() && len(r.Conflict) == 0 {
			r.Why += "; " + grouping.String()
		}
	}
	if r.GaveUp {
		r.Why = "no arrangement was found before the search gave up: " + r.Why
	}
	if fitting > 0 {
		r.Hint = fmt.Sprintf("the first %d of %d nodes fit", fitting, len(req.Nodes))
	}
	return r
}

// String says what the group wants, for people.
func (g *grouping) String() string {
	if g.link != nil {
		return fmt.Sprintf("link %s must leave the hosts of its %d ends", g.link.ID, len(g.members))
	}
	how, by := "together", g.group.By
	if g.group.Apart {
		how = "apart"
	}
	if by == "" {
		by = request.ByHost
	}
	return fmt.Sprintf("group %s wants %d nodes %s by %s", g.group.Name, len(g.members), how, by)
}

// explainBeside is explainRoom for hosts that others of the request are on: a
// host may also be taken whole, or have room that another arrangement of the
// others would need.
func (b *board) explainBeside(w *want, slots []int, beside string) string {
	var open, roomy []int
	for _, at := range slots {
		s := &b.slots[at]
		whole := w.options[w.first[at]].whole
		if s.places > 0 && (!whole || s.taken == 0) {
			open = append(open, at)
			if b.demandOf(w, at).Fits(s.free) {
				roomy = append(roomy, at)
			}
		}
	}
	switch {
	case len(open) == 0:
		if len(slots) == 1 {
			return fmt.Sprintf("no place is left on %s, the only host that could take it,%s", b.slots[slots[0]].host.Name, beside)
		}
		return fmt.Sprintf("no place is left on any of the %d hosts that could take it%s", len(slots), beside)
	case len(roomy) > 0:
		return "fits by itself, but in no arrangement with the others of this request"
	}
	why, _ := b.explainRoom(w, open, beside)
	return why
}

// firstNodes are wants for the first nodes of a request.
func firstNodes(wants []*want, count int) []*want {
	var some []*want
	for _, w := range wants {
		few := *w
		few.nodes = nil
		for _, n := range w.nodes {
			if n < count {
				few.nodes = append(few.nodes, n)
			}
		}
		if len(few.nodes) > 0 {
			some = append(some, &few)
		}
	}
	return some
}
