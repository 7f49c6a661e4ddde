package mapping

import (
	"fmt"
	"slices"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/request"
	"croft/urn"
)

// want is what one or several nodes of a request ask for alike.
type want struct {
	node       *request.Node // the first of them
	nodes      []int         // their indexes in the request
	image      *inventory.Image
	sliverType string   // canonical; "" if open
	bound      int      // slot; -1 if open
	shaping    bool     // a link of theirs has a rate, a latency or a loss
	wired      int      // interfaces that links join
	group      int      // nodes that links join, directly or not, if drivers matter; else 0
	drivers    []string // those that existing nodes of the group allow; nil for any

	options []option // in the order of slots
	first   []int32  // index in options of each slot's first; one more than slots
	stages  []stage  // of each slot
}

// option is one way to place a node.
type option struct {
	slot      int
	kind      int // index of the type in board.types
	rank      int // place of the type in the host's list
	exclusive bool
	whole     bool
	demand    capacity.Amount
	image     urn.URN
}

// stage is how far a slot came towards taking a node. Later stages are nearer.
type stage int

const (
	byBinding stage = iota
	byHardware
	byType
	byImage
	byUse
	byInterfaces
	byShaping
	byDriver
	bySize
	byService
	byOwner
	byRoom
	fits
)

// wants sorts the nodes of a request into groups that ask for the same. It
// refuses what cannot be meant.
func (b *board) wants(req *request.Request, links *linkage) ([]*want, *Refusal) {
	byKey := map[string]*want{}
	var all []*want
	images := map[request.Image]*inventory.Image{}
	for i := range req.Nodes {
		n := &req.Nodes[i]
		key := wantKey(n, links, i)
		if w := byKey[key]; w != nil {
			w.nodes = append(w.nodes, i)
			continue
		}
		w := &want{node: n, nodes: []int{i}, shaping: links.shaped[i] != nil, wired: len(links.used[i]),
			group: links.group[i], drivers: links.pinned[links.group[i]]}
		if r := b.resolve(w, images); r != nil {
			r.Item = n.ID
			if r.Place == (request.Place{}) {
				r.Place = n.Place
			}
			return nil, r
		}
		byKey[key] = w
		all = append(all, w)
	}
	return all, nil
}

// wantKey is equal for nodes that every host treats alike.
func wantKey(n *request.Node, links *linkage, i int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s|%q|%d|%q|%q|%q|%q|%v|%v|%d|%d", n.Component.Canonical(), n.ComponentName, n.Exclusive, n.SliverType,
		n.HardwareTypes, n.Image.Name, n.Image.URL, n.Capacity, links.shaped[i] != nil, len(links.used[i]), links.group[i])
	for _, f := range n.Interfaces {
		if !f.Component.IsZero() {
			fmt.Fprintf(&s, "|%s", f.Component.Canonical())
		}
	}
	return s.String()
}

// resolve looks up the names in a want.
func (b *board) resolve(w *want, images map[request.Image]*inventory.Image) *Refusal {
	n := w.node
	if c := n.Capacity; c.Cores < 0 || c.Memory < 0 || c.Disk < 0 {
		return &Refusal{Kind: Contradicts, Why: "asks for less than nothing: " + n.Capacity.String()}
	}
	if !n.Image.IsZero() {
		wanted := n.Image
		wanted.Place = request.Place{}
		image, known := images[wanted]
		if !known {
			var r *Refusal
			if image, r = findImage(b.snapshot, n.Image); r != nil {
				return r
			}
			images[wanted] = image
		}
		w.image = image
	}
	if n.SliverType != "" {
		t, known := b.snapshot.Type(n.SliverType)
		if !known {
			var names []string
			for _, t := range b.types {
				names = append(names, string(t.Name))
			}
			return &Refusal{Kind: Impossible, Place: n.TypePlace, Why: fmt.Sprintf("no sliver type %q here", n.SliverType),
				Hint: nearestOr(string(n.SliverType), names, "there are "+some(names))}
		}
		w.sliverType = string(t.Name)
	}
	var r *Refusal
	w.bound, r = b.bound(n)
	return r
}

// bound finds the host that a node names; -1 if it names none.
func (b *board) bound(n *request.Node) (int, *Refusal) {
	name := n.ComponentName
	switch {
	case !n.Component.IsZero():
		for i := range b.slots {
			if b.slots[i].host.ID.Equal(n.Component) {
				return i, nil
			}
		}
		name = n.Component.Name
	case name != "":
		if i, known := b.byName[name]; known {
			return i, nil
		}
		for i := range b.slots {
			if strings.EqualFold(b.slots[i].host.Name, name) {
				return i, nil
			}
		}
	default:
		return -1, nil
	}
	what := n.Component.String()
	if what == "" {
		what = n.ComponentName
	}
	var names []string
	for i := range b.slots {
		names = append(names, b.slots[i].host.Name)
	}
	otherwise := "leave component_id out to get any that fits"
	if len(names) <= 8 {
		otherwise = "there are " + some(names)
	}
	return -1, &Refusal{Kind: Impossible, Why: fmt.Sprintf("no component %s here", what), Hint: nearestOr(name, names, otherwise)}
}

func nearestOr(word string, names []string, otherwise string) string {
	if near := inventory.Nearest(word, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return otherwise
}

// consider lists the options of a want on a board, and how far each slot came.
func (b *board) consider(w *want) {
	w.options, w.first, w.stages = nil, make([]int32, len(b.slots)+1), make([]stage, len(b.slots))
	for i := range b.slots {
		w.first[i] = int32(len(w.options))
		if w.bound >= 0 && w.bound != i {
			continue
		}
		for rank, kind := range b.slots[i].types {
			o, at := b.option(w, i, kind)
			o.rank = rank
			if at == fits {
				w.options = append(w.options, o)
			}
			w.stages[i] = max(w.stages[i], at)
		}
	}
	w.first[len(b.slots)] = int32(len(w.options))
}

// option is the way to place a node on a host as a type, and how far that goes.
func (b *board) option(w *want, at, kind int) (option, stage) {
	s, t, n := &b.slots[at], b.types[kind], w.node
	o := option{slot: at, kind: kind, whole: t.WholeHost}
	isWanted := func(wanted string) bool { return slices.Contains(s.host.HardwareTypes, wanted) }
	if len(n.HardwareTypes) > 0 && !slices.ContainsFunc(n.HardwareTypes, isWanted) {
		return o, byHardware
	}
	if w.sliverType != "" && w.sliverType != string(t.Name) {
		return o, byType
	}
	var ok bool
	if o.image, ok = imageFor(t, s.host, w.image); !ok {
		return o, byImage
	}
	// A type that takes whole hosts is exclusive whatever the document says:
	// documents in the field say otherwise, and Emulab accepts them.
	o.exclusive = o.whole || n.Exclusive == request.Yes || (n.Exclusive == request.Open && !s.host.Shared)
	if (o.exclusive && !o.whole && !s.host.Exclusive) || (!o.exclusive && !s.host.Shared) {
		return o, byUse
	}
	if interfacesLack(w, s.host, o.whole) != "" {
		return o, byInterfaces
	}
	if w.shaping && !t.Shaping {
		return o, byShaping
	}
	if w.drivers != nil && !slices.Contains(w.drivers, t.Driver) {
		return o, byDriver
	}
	o.demand = n.Capacity.Or(t.Default)
	if !o.demand.Fits(s.size) {
		return o, bySize
	}
	if o.whole {
		o.demand = s.host.Capacity
	}
	switch {
	case s.out != "":
		return o, byService
	case s.closed, o.exclusive && s.others, o.whole && s.taken > 0:
		return o, byOwner
	case s.places <= 0, !o.demand.Fits(s.free):
		return o, byRoom
	}
	return o, fits
}

// interfacesLack says what a host's interfaces lack for a node.
func interfacesLack(w *want, h *inventory.Host, whole bool) string {
	experimental := 0
	for _, i := range h.Interfaces {
		if i.Role != inventory.Control {
			experimental++
		}
	}
	for _, f := range w.node.Interfaces {
		if f.Component.IsZero() {
			continue
		}
		found := slices.IndexFunc(h.Interfaces, func(i inventory.Interface) bool { return i.ID.Equal(f.Component) })
		if found < 0 {
			return fmt.Sprintf("has no interface %s", f.Component)
		}
		if h.Interfaces[found].Role == inventory.Control {
			return fmt.Sprintf("keeps interface %s for itself", f.Component)
		}
	}
	if whole && len(h.Interfaces) > 0 && w.wired > experimental {
		return fmt.Sprintf("has %s for links", plural(experimental, "interface"))
	}
	return ""
}
