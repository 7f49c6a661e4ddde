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
	node       *request.Node      // the first of them
	nodes      []int              // their indexes in the request
	images     []*inventory.Image // any of them, in order of preference; none if open
	sliverType string             // canonical; "" if open
	bound      int                // slot; -1 if open
	hint       int                // slot that it would rather have; -1 for none
	shaping    bool               // a link of theirs has a rate, a latency or a loss
	wired      int                // interfaces that links join
	group      int                // nodes that links join, directly or not, if drivers matter; else 0
	drivers    []string           // those that existing nodes of the group allow; nil for any
	features   []request.Feature
	class      *request.Class
	extra      [][]extraUse // by kind: what a node takes beside its capacity

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
	image     *urn.URN // of the snapshot; nil for the type's own
}

// extraUse is what a node takes of something counted beside capacities.
type extraUse struct {
	index  int // in ground.extras
	amount int64
}

// stage is how far a slot came towards taking a node. Later stages are nearer.
type stage int

const (
	byBinding stage = iota
	bySite
	byHardware
	byArchitecture
	byType
	byPolicy
	byImage
	byFeature
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
	images := map[request.Image][]*inventory.Image{}
	for i := range req.Nodes {
		n := &req.Nodes[i]
		key := wantKey(n, links, i)
		if w := byKey[key]; w != nil {
			w.nodes = append(w.nodes, i)
			continue
		}
		w := &want{node: n, nodes: []int{i}, shaping: links.shaped[i] != nil, wired: links.owned[i],
			group: links.group[i], drivers: links.pinned[links.group[i]], features: n.Features}
		if c := links.class[i]; c >= 0 {
			w.class = &req.Classes[c]
		}
		if r := b.resolve(w, images, links); r != nil {
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

// wantKey is equal for nodes that every host treats alike and that stand alike
// to other nodes.
func wantKey(n *request.Node, links *linkage, i int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s|%q|%d|%q|%q|%q|%q|%q|%v|%v|%v|%d|%v|%d|%v", n.Component.Canonical(), n.ComponentName, n.Exclusive, n.SliverType,
		n.HardwareTypes, n.Class, n.Architecture, n.Site, n.Capacity, n.Most, links.shaped[i] != nil, links.owned[i], len(links.used[i]) > 0, links.group[i], links.sets[i])
	if n.Hint != "" {
		fmt.Fprintf(&s, "|hint %q", n.Hint)
	}
	for _, image := range append([]request.Image{n.Image}, n.OtherImages...) {
		image.Place = request.Place{}
		fmt.Fprintf(&s, "|%q", image)
	}
	for _, f := range n.Features {
		fmt.Fprintf(&s, "|%q %g %g", f.Name, f.Weight, f.Amount)
	}
	if n.Parent != "" || links.isParent[n.ID] {
		fmt.Fprintf(&s, "|part %d", i)
	}
	for _, f := range n.Interfaces {
		if !f.Component.IsZero() {
			fmt.Fprintf(&s, "|%s", f.Component.Canonical())
		}
	}
	return s.String()
}

// resolve looks up the names in a want.
func (b *board) resolve(w *want, images map[request.Image][]*inventory.Image, links *linkage) *Refusal {
	n := w.node
	for _, c := range []capacity.Amount{n.Capacity, n.Most} {
		if c.Cores < 0 || c.Memory < 0 || c.Disk < 0 || c.GPUs < 0 {
			return &Refusal{Kind: Contradicts, Why: "asks for less than nothing: " + c.String()}
		}
	}
	if most := n.Most.Or(capacity.Amount{Cores: endless, Memory: endless, Disk: endless, GPUs: endless}); !n.Capacity.Fits(most) {
		return &Refusal{Kind: Contradicts, Why: fmt.Sprintf("asks for at least %s and at most %s", asks(n.Capacity, most), has(n.Capacity, most))}
	}
	if r := b.resolveImages(w, images); r != nil {
		return r
	}
	if n.Site != "" && !slices.ContainsFunc(b.snapshot.Sites, func(s inventory.Site) bool { return s.Name == n.Site }) {
		var names []string
		for _, s := range b.snapshot.Sites {
			names = append(names, s.Name)
		}
		hint := "none is declared here"
		if len(names) > 0 {
			hint = nearestOr(n.Site, names, "there are "+some(names))
		}
		return &Refusal{Kind: Impossible, Why: fmt.Sprintf("no site %q here", n.Site), Hint: hint}
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
	if r := b.resolveFeatures(w); r != nil {
		return r
	}
	var r *Refusal
	w.bound, r = b.bound(n)
	w.hint = b.hinted(n.Hint)
	return r
}

// hinted finds the host that a hint names; -1 if there is none of that name.
func (b *board) hinted(hint string) int {
	if hint == "" {
		return -1
	}
	if i, known := b.byName[hint]; known {
		return i
	}
	if id, err := urn.Parse(hint); err == nil {
		if i, known := b.byID[id.Canonical()]; known {
			return i
		}
	}
	return -1
}

// resolveImages finds the images that would do, the one wished for first. It
// refuses if there is none of them.
func (b *board) resolveImages(w *want, known map[request.Image][]*inventory.Image) *Refusal {
	var first *Refusal
	wishes := w.node.OtherImages
	if !w.node.Image.IsZero() {
		wishes = append([]request.Image{w.node.Image}, wishes...)
	}
	for _, wanted := range wishes {
		key := wanted
		key.Place = request.Place{}
		found, looked := known[key]
		if !looked {
			var r *Refusal
			if found, r = findImages(b.snapshot, wanted); r != nil && first == nil {
				first = r
			}
			known[key] = found
		}
		for _, image := range found {
			if !slices.Contains(w.images, image) {
				w.images = append(w.images, image)
			}
		}
	}
	if len(wishes) > 0 && len(w.images) == 0 {
		if first == nil {
			_, first = findImages(b.snapshot, wishes[0])
		}
		return first
	}
	return nil
}

// resolveFeatures looks up what is counted of the features, and of the types.
func (b *board) resolveFeatures(w *want) *Refusal {
	w.extra = make([][]extraUse, len(b.types))
	var uses []extraUse
	for _, f := range w.features {
		at := b.extraOf(amountOf(f.Name))
		switch {
		case f.Amount < 0 || f.Weight < 0:
			return &Refusal{Kind: Contradicts, Place: f.Place, Why: fmt.Sprintf("wants less than nothing of feature %s", f.Name)}
		case f.Amount > 0 && at < 0 && f.Weight >= 1:
			return &Refusal{Kind: Impossible, Place: f.Place, Why: fmt.Sprintf("wants an amount of feature %s, which no host has amounts of", f.Name), Hint: b.featureHint(f.Name)}
		case f.Amount > 0 && at >= 0:
			uses = append(uses, extraUse{at, thousandths(f.Amount)})
		}
	}
	for kind, t := range b.types {
		w.extra[kind] = uses
		if at := b.extraOf(limitOn(t.Name)); at >= 0 {
			w.extra[kind] = append(slices.Clone(uses), extraUse{at, 1000})
		}
	}
	return nil
}

// hasFeature reports whether a host has a feature, and what it costs those who
// do not want it.
func hasFeature(h *inventory.Host, name string) bool {
	for i := range h.Features {
		if h.Features[i].Name == name {
			return true
		}
	}
	_, known := h.Properties[name]
	return known
}

func (w *want) wantsFeature(name string) bool {
	return slices.ContainsFunc(w.features, func(f request.Feature) bool { return f.Name == name })
}

// lacksFeature is a feature that a node cannot do without and that a host does
// not have, or one that the host keeps for those who want it; "" if there is
// none.
func (b *board) lacksFeature(w *want, h *inventory.Host) (lacking, kept string) {
	for _, f := range w.features {
		if f.Weight >= 1 && !hasFeature(h, f.Name) {
			return f.Name, ""
		}
	}
	for _, f := range h.Features {
		if _, global := b.global[f.Name]; f.Weight >= 1 && !global && !w.wantsFeature(f.Name) {
			return "", f.Name
		}
	}
	return "", ""
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
	// Most hosts have one option or none.
	room := len(b.slots)
	if w.bound >= 0 {
		room = 1
	}
	w.options, w.first, w.stages = make([]option, 0, room), make([]int32, len(b.slots)+1), make([]stage, len(b.slots))
	known := map[int32][]declared{}
	for i := range b.slots {
		w.first[i] = int32(len(w.options))
		if w.bound >= 0 && w.bound != i {
			continue
		}
		all, looked := known[b.twins[i]]
		if !looked || w.interfacesBound() {
			all = b.declared(w, i)
			known[b.twins[i]] = all
		}
		for rank := range all {
			o, at := all[rank].option, all[rank].at
			o.slot = i
			if at == fits {
				at = b.now(w, &o)
			}
			if at == fits {
				w.options = append(w.options, o)
			}
			w.stages[i] = max(w.stages[i], at)
		}
	}
	w.first[len(b.slots)] = int32(len(w.options))
}

// declared is an option as the inventory has it, whatever is taken, and how far
// it goes; fits if nothing but what is taken can be in the way.
type declared struct {
	option option
	at     stage
}

func (w *want) interfacesBound() bool {
	return slices.ContainsFunc(w.node.Interfaces, func(f request.Interface) bool { return !f.Component.IsZero() })
}

func (b *board) declared(w *want, at int) []declared {
	all := make([]declared, 0, len(b.slots[at].types))
	for rank, kind := range b.slots[at].types {
		o, reached := b.offer(w, at, kind)
		o.rank = rank
		all = append(all, declared{o, reached})
	}
	return all
}

// option is the way to place a node on a host as a type, and how far that goes.
func (b *board) option(w *want, at, kind int) (option, stage) {
	o, reached := b.offer(w, at, kind)
	if reached == fits {
		reached = b.now(w, &o)
	}
	return o, reached
}

// offer is what a host could be to a node if it were empty.
func (b *board) offer(w *want, at, kind int) (option, stage) {
	s, t, n := &b.slots[at], b.types[kind], w.node
	o := option{slot: at, kind: kind, whole: t.WholeHost}
	isWanted := func(wanted string) bool { return slices.Contains(s.host.HardwareTypes, wanted) }
	if n.Site != "" && n.Site != s.host.Site {
		return o, bySite
	}
	if len(n.HardwareTypes) > 0 && !slices.ContainsFunc(n.HardwareTypes, isWanted) {
		return o, byHardware
	}
	if w.class != nil && len(w.class.Types) > 0 && !slices.ContainsFunc(s.host.HardwareTypes, func(t string) bool { return slices.Contains(w.class.Types, t) }) {
		return o, byHardware
	}
	if n.Architecture != "" && !strings.EqualFold(n.Architecture, s.host.Architecture) {
		return o, byArchitecture
	}
	if w.sliverType != "" && w.sliverType != string(t.Name) || w.sliverType == "" && t.Delay {
		return o, byType
	}
	if b.disallows(w, s.host, t) != nil {
		return o, byPolicy
	}
	var ok bool
	if o.image, ok = imageFor(t, s.host, w.images); !ok {
		return o, byImage
	}
	if lacking, kept := b.lacksFeature(w, s.host); lacking != "" || kept != "" {
		return o, byFeature
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
	if w.shaping && !t.Shaping && !t.Delay {
		return o, byShaping
	}
	if w.drivers != nil && !slices.Contains(w.drivers, t.LinkedBy()) {
		return o, byDriver
	}
	o.demand = w.asked(t)
	if !o.demand.Fits(s.size) {
		return o, bySize
	}
	if o.whole {
		if !s.host.Capacity.Fits(n.Most.Or(capacity.Amount{Cores: endless, Memory: endless, Disk: endless, GPUs: endless})) {
			return o, bySize
		}
		o.demand = s.host.Capacity
	}
	for _, u := range w.extra[kind] {
		if u.amount > b.ground.extra[at*len(b.extras)+u.index] {
			return o, bySize
		}
	}
	return o, fits
}

// asked is what a node takes as a type: what it wants, else the type's default
// as far as the node lets it.
func (w *want) asked(t *inventory.SliverType) capacity.Amount {
	n := w.node
	a := t.Default
	if m := n.Most; m != (capacity.Amount{}) {
		m = m.Or(capacity.Amount{Cores: endless, Memory: endless, Disk: endless, GPUs: endless})
		a = capacity.Amount{Cores: min(a.Cores, m.Cores), Memory: min(a.Memory, m.Memory), Disk: min(a.Disk, m.Disk), GPUs: min(a.GPUs, m.GPUs)}
	}
	return n.Capacity.Or(a)
}

// now is how far an offer goes with what is taken.
func (b *board) now(w *want, o *option) stage {
	s := &b.slots[o.slot]
	switch {
	case s.out != "":
		return byService
	case s.closed, o.exclusive && s.others, o.whole && s.taken > 0:
		return byOwner
	case s.places <= 0, !o.demand.Fits(s.free):
		return byRoom
	}
	for _, u := range w.extra[o.kind] {
		if u.amount > b.extra[o.slot*len(b.extras)+u.index] {
			return byRoom
		}
	}
	return fits
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
