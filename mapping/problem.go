package mapping

import (
	"slices"

	"croft/capacity"
	"croft/inventory"
	"croft/mapping/solver"
	"croft/request"
	"croft/urn"
)

// job is one request on its way to a placement.
type job struct {
	*board
	req       *request.Request
	links     *linkage
	delays    *delays // put into the request; nil for none
	wants     []*want
	wantOf    []*want // by node
	objective Objective
	options   Options
	limits    []limit
	offers    map[offerKey]*offers
	sparing   bool                      // links over switches are scarce
	scarce    bool                      // there are fewer tags than links that take one
	internal  map[urn.URN]capacity.Kbps // of links within hosts, of this placement
}

// offerKey names the hosts for a want as a type.
type offerKey struct {
	want *want
	kind int
}

// offers are the hosts where a want can be made as a type, with what that
// costs beside what the solver counts.
type offers struct {
	hosts []int32
	costs []float64
}

// layout says what the solver's nodes and links are in the request.
type layout struct {
	problem *solver.Problem
	kinds   []int   // request node → its type
	stands  []int32 // existing node → the solver's, -1 if it has none
	bridges []int32 // request link → the node that joins a LAN, -1 if none
	ends    [][]int32
	linkOf  []int32  // solver link → request link
	shared  [][]bool // request link → at each end, whether it may share the interface
}

// problem hands the job to the solver. hints are where the nodes could be; nil
// if that is not known.
func (j *job) problem(hints []option) *layout {
	n := len(j.req.Nodes)
	l := &layout{problem: &solver.Problem{Testbed: j.testbed, Weights: j.objective.weights()}, kinds: make([]int, n),
		stands: make([]int32, len(j.links.existing)), bridges: make([]int32, len(j.req.Links)), ends: make([][]int32, len(j.req.Links)),
		shared: make([][]bool, len(j.req.Links))}
	p := l.problem
	j.taken(&p.Taken)
	company := make([]int, len(j.slots))
	for i := range hints {
		company[hints[i].slot]++
	}
	for i := range j.req.Nodes {
		p.Nodes = append(p.Nodes, j.node(i, hints, company, l))
	}
	for _, c := range j.req.Classes {
		p.Classes = append(p.Classes, solver.NodeClass{Name: string(c.Name), Weight: c.Weight})
	}
	for i := range l.stands {
		l.stands[i] = -1
	}
	for i := range j.req.Nodes {
		p.Nodes[i].Parent = j.solverNode(l, j.links.parent[i])
	}
	for i := range j.req.Links {
		j.link(i, l)
	}
	for i := range j.links.groups {
		g := &j.links.groups[i]
		out := solver.Group{Name: g.group.Name, Apart: g.group.Apart, BySwitch: g.group.By == request.BySwitch, ByZone: g.group.By == request.BySite}
		if !g.hard() {
			out.Weight = g.group.Weight
		}
		for _, m := range g.members {
			if v := j.solverNode(l, m); v >= 0 {
				out.Nodes = append(out.Nodes, v)
			}
		}
		p.Groups = append(p.Groups, out)
	}
	j.quotas(l)
	return l
}

// taken tells the solver what is taken.
func (j *job) taken(t *solver.Taken) {
	// Nodes join the links of a LAN at no cost of their own.
	for i := len(j.slots); i < len(j.testbed.Spec().Hosts); i++ {
		t.Hosts = append(t.Hosts, solver.HostUse{Host: int32(i), Slots: []solver.HostType{{Type: typeBridge, Slots: 1}}})
	}
	if j.occupancy == nil {
		return
	}
	stands := []solver.HostType{{Type: typeStanding, Slots: 1}}
	uses := make([]solver.HostFeature, 0, 4*len(j.occupancy.Hosts))
	for i := range j.slots {
		s := &j.slots[i]
		if s.taken == 0 {
			continue
		}
		from := len(uses)
		size, free := dimensions(s.size), dimensions(s.free)
		for k := range size {
			if size[k] < endless && size[k] != free[k] {
				uses = append(uses, solver.HostFeature{Feature: featureCores + solver.FeatureID(k), Weight: float64(size[k] - free[k])})
			}
		}
		if most := s.host.MaxSlivers; most > 0 {
			uses = append(uses, solver.HostFeature{Feature: featurePlaces, Weight: float64(most - s.places)})
		}
		for k := range j.extras {
			at := i*len(j.extras) + k
			if had := j.ground.extra[at]; had < endless && had != j.extra[at] {
				uses = append(uses, solver.HostFeature{Feature: firstExtra + solver.FeatureID(k), Weight: float64(had-j.extra[at]) / 1000})
			}
		}
		t.Hosts = append(t.Hosts, solver.HostUse{Host: int32(i), Slots: stands, Additives: uses[from:len(uses):len(uses)],
			Loopback: int64(j.occupancy.Hosts[s.host.ID.Canonical()].Internal)})
	}
	for id, u := range j.occupancy.Wires {
		if w, known := j.byWire[id]; known {
			t.Wires = append(t.Wires, solver.WireUse{Wire: w, Exclusive: u.Exclusive, Bandwidth: int64(u.Bandwidth)})
		}
	}
	slices.SortFunc(t.Wires, func(a, b solver.WireUse) int { return int(a.Wire) - int(b.Wire) })
}

// node is a node of the request.
func (j *job) node(i int, hints []option, company []int, l *layout) solver.Node {
	w, n := j.wantOf[i], &j.req.Nodes[i]
	kind, hint := -1, int32(-1)
	exclusive := false
	if hints != nil {
		kind, hint = hints[i].kind, int32(hints[i].slot)
		// Whoever wants a host to itself shares it with others of the slice
		// only if it must.
		exclusive = n.Exclusive == request.Yes && company[hints[i].slot] == 1 && j.slots[hints[i].slot].taken == 0
	} else if len(w.options) > 0 {
		kind = w.options[0].kind
	}
	l.kinds[i] = kind
	t := j.types[kind]
	o := j.offersOf(w, kind)
	v := solver.Node{Name: string(n.ID), Types: []solver.TypeID{firstType + solver.TypeID(kind)}, Class: -1, Slots: 1,
		Fixed: -1, Hint: hint, Parent: -1, Hosts: o.hosts, Costs: o.costs, Exclusive: exclusive || t.WholeHost, NoTrivialMix: n.NoTrivialMix}
	if len(o.hosts) == 1 {
		v.Fixed = o.hosts[0]
	}
	if w.class != nil {
		v.Class = int32(j.links.class[i])
		if types := j.classTypes(w.class, kind); len(types) > 0 {
			v.Types = types
		}
	}
	want := func(f solver.FeatureID, amount float64) {
		v.Desires = append(v.Desires, solver.Desire{Feature: f, Weight: 0.5, Amount: amount})
	}
	if !t.WholeHost {
		for k, d := range dimensions(w.asked(t)) {
			if d > 0 {
				want(featureCores+solver.FeatureID(k), float64(d))
			}
		}
		want(featurePlaces, 1)
	}
	for _, u := range w.extra[kind] {
		want(firstExtra+solver.FeatureID(u.index), float64(u.amount)/1000)
	}
	for _, f := range w.features {
		if id, global := j.global[f.Name]; global {
			v.Desires = append(v.Desires, solver.Desire{Feature: id})
		}
	}
	return v
}

// classTypes are the types, each on hosts of one hardware type of a class.
func (j *job) classTypes(c *request.Class, kind int) []solver.TypeID {
	var all []solver.TypeID
	names := c.Types
	if len(names) == 0 {
		for on := range j.firstHW {
			if on.kind == kind {
				names = append(names, on.hardware)
			}
		}
		slices.Sort(names)
	}
	for _, name := range names {
		if id, known := j.firstHW[typeOn{kind, name}]; known {
			all = append(all, id)
		}
	}
	return all
}

// offersOf lists the hosts for a want as a type.
func (j *job) offersOf(w *want, kind int) *offers {
	key := offerKey{w, kind}
	if o := j.offers[key]; o != nil {
		return o
	}
	o := &offers{hosts: make([]int32, 0, len(w.options)), costs: make([]float64, 0, len(w.options))}
	for i := range w.options {
		if w.options[i].kind == kind {
			o.hosts = append(o.hosts, int32(w.options[i].slot))
			o.costs = append(o.costs, j.costOf(w, &w.options[i]))
		}
	}
	j.offers[key] = o
	return o
}

// optionOn is the option of a want on a host as a type.
func (j *job) optionOn(w *want, host int32, kind int) *option {
	for i := w.first[host]; i < w.first[host+1]; i++ {
		if w.options[i].kind == kind {
			return &w.options[i]
		}
	}
	return nil
}

// What a host costs where another one does as well: little, so that it decides
// only between hosts that are alike in what costs more.
const (
	offHint      = 0.3  // a node elsewhere than it would rather be
	lateType     = 0.1  // for each type that the host names before
	sharedHost   = 0.05 // a node that is alone, on a host that several can share
	wholeHost    = 0.05 // a node that shares, on an empty host that could be given out whole
	freshHost    = 0.02 // a node that shares, on an empty host
	fullestFirst = 0.02 // a node that shares, on a host that is empty otherwise; less the fuller it is
)

// costOf is what an option costs beside what the solver counts: unwanted
// features, wanted ones that are not there, and what is scarce.
func (j *job) costOf(w *want, o *option) float64 {
	s := &j.slots[o.slot]
	cost := lateType * float64(o.rank)
	if w.hint >= 0 && w.hint != o.slot {
		cost += offHint
	}
	for _, f := range w.features {
		if f.Weight < 1 && !hasFeature(s.host, f.Name) {
			cost += f.Weight
		}
	}
	for i := range s.host.Features {
		f := &s.host.Features[i]
		if _, global := j.global[f.Name]; f.Weight > 0 && f.Weight < 1 && !global && !w.wantsFeature(f.Name) {
			cost += f.Weight
		}
	}
	if o.exclusive {
		cost += j.objective.Scarce * j.size[o.slot]
		if s.host.Shared {
			cost += sharedHost
		}
		return cost
	}
	if s.taken == 0 && j.objective.Layout == Pack {
		cost += freshHost
		if s.host.Exclusive {
			cost += wholeHost
		}
	}
	full := j.fullness(o)
	if j.objective.Layout == Spread {
		return cost + fullestFirst*full
	}
	return cost + fullestFirst*(1-full)
}

// fullness is how much of a host would be taken with the option, from 0 to 1.
func (j *job) fullness(o *option) float64 {
	s := &j.slots[o.slot]
	size, free := dimensions(s.size), dimensions(s.free.Minus(o.demand))
	sum, n := 0.0, 0.0
	for k := range size {
		if size[k] < endless && size[k] > 0 {
			sum += 1 - float64(free[k])/float64(size[k])
			n++
		}
	}
	if most := s.host.MaxSlivers; most > 0 {
		sum += 1 - float64(s.places-1)/float64(most)
		n++
	}
	if n == 0 {
		return 0
	}
	return min(1, max(0, sum/n))
}

// solverNode is the solver's node for one of the request or of the slice, made
// when it is first needed; -1 for none.
func (j *job) solverNode(l *layout, e endpoint) int32 {
	if e.node >= 0 {
		return int32(e.node)
	}
	if e.existing < 0 {
		return -1
	}
	if l.stands[e.existing] >= 0 {
		return l.stands[e.existing]
	}
	x := &j.links.existing[e.existing]
	host, known := j.byID[x.Host.Canonical()]
	if !known {
		return -1 // its host left the inventory
	}
	v := solver.Node{Name: string(x.ID), Types: []solver.TypeID{typeStanding}, Class: -1, Slots: 1, Fixed: int32(host), Hint: -1, Parent: -1, Hosts: []int32{int32(host)}}
	for _, f := range j.testbed.Spec().Hosts[host].Features {
		// It has what it has, and pays for nothing again.
		v.Desires = append(v.Desires, solver.Desire{Feature: f.Feature})
	}
	l.stands[e.existing] = int32(len(l.problem.Nodes))
	l.problem.Nodes = append(l.problem.Nodes, v)
	return l.stands[e.existing]
}

// link is a link of the request: one of the solver's between two nodes, or one
// from each end to a node that joins them.
func (j *job) link(i int, l *layout) {
	link := &j.req.Links[i]
	ends := j.links.ends[i]
	l.bridges[i] = -1
	l.ends[i] = make([]int32, len(ends))
	nodes := make([]int32, len(ends))
	reached := 0
	for k, e := range ends {
		l.ends[i][k] = -1
		if nodes[k] = j.solverNode(l, e); nodes[k] >= 0 {
			reached++
		}
	}
	if reached == 0 {
		return
	}
	mixed := false
	l.shared[i] = make([]bool, len(ends))
	for k, e := range ends {
		l.shared[i][k] = j.sharesInterface(link, e, l)
		mixed = mixed || l.shared[i][k] != l.shared[i][0]
	}
	if len(ends) == 1 && link.SharedVLAN == "" && l.shared[i][0] {
		return // nothing passes, and no interface is its own
	}
	out := solver.Link{Name: string(link.ID), Emulated: l.shared[i][0], Trivial: link.Trivial != request.No, NoInterswitch: link.NoInterswitch}
	for _, e := range ends {
		if e.node >= 0 && j.types[l.kinds[e.node]].WholeHost {
			out.Trivial = false // nobody else is on its host
		}
	}
	if j.links.native[i] {
		out.Trivial = false // nothing within a host keeps to the rate
		out.Medium = j.media[j.links.rates[i]]
	}
	add := func(x solver.Link, k int) {
		l.ends[i][k] = int32(len(l.problem.Links))
		l.linkOf = append(l.linkOf, int32(i))
		l.problem.Links = append(l.problem.Links, x)
	}
	if len(ends) == 2 && reached == 2 && nodes[0] != nodes[1] && link.SharedVLAN == "" && !mixed {
		out.A, out.B, out.Bandwidth = nodes[0], nodes[1], int64(j.links.rates[i])
		out.AIface, out.BIface = j.interfaceOf(ends[0]), j.interfaceOf(ends[1])
		add(out, 0)
		l.ends[i][1] = l.ends[i][0]
		return
	}
	l.bridges[i] = int32(len(l.problem.Nodes))
	bridge := solver.Node{Name: string(link.ID), Types: []solver.TypeID{typeBridge}, Class: -1, Slots: 1, Fixed: -1, Hint: -1, Parent: -1, Hosts: j.bridgeHosts()}
	for _, v := range nodes {
		if v < 0 {
			continue
		}
		if h := max(l.problem.Nodes[v].Hint, l.problem.Nodes[v].Fixed); h >= 0 && j.home[h] >= 0 {
			bridge.Hint = j.home[h]
			break
		}
	}
	l.problem.Nodes = append(l.problem.Nodes, bridge)
	for k, v := range nodes {
		if v < 0 {
			continue
		}
		out.A, out.B = v, l.bridges[i]
		out.AIface = j.interfaceOf(ends[k])
		out.Bandwidth = j.endRate(i, k)
		out.Emulated = l.shared[i][k]
		add(out, k)
	}
}

// endRate is what one end of a LAN needs.
func (j *job) endRate(i, k int) int64 {
	if j.req.Links[i].BestEffort {
		return 0
	}
	if j.links.native[i] || len(j.links.ends[i]) == 2 {
		return int64(j.links.rates[i])
	}
	s := j.links.shapes[i][k]
	return int64(max(s.out.Capacity, s.in.Capacity))
}

// sharesInterface reports whether a link may share the interface that it leaves
// a host by: nodes that share a host must, nodes with a host to themselves do
// if the link says so.
func (j *job) sharesInterface(link *request.Link, e endpoint, l *layout) bool {
	switch {
	case link.Multiplexed == request.Yes, !j.wired:
		return true
	case link.Multiplexed == request.No:
		return false
	case e.node >= 0:
		return !j.types[l.kinds[e.node]].WholeHost
	}
	return slices.ContainsFunc(j.typesOf(&j.links.existing[e.existing]), func(t *inventory.SliverType) bool { return !t.WholeHost })
}

// interfaceOf names the host's interface that an end must use; "" if any.
func (j *job) interfaceOf(e endpoint) string {
	id := ""
	if e.node >= 0 {
		if c := j.req.Nodes[e.node].Interfaces[e.iface].Component; !c.IsZero() {
			id = c.Canonical().String()
		}
	} else if c := j.links.existing[e.existing].Interfaces[e.iface].Component; !c.IsZero() {
		id = c.Canonical().String()
	}
	return id
}

// bridgeHosts are where LANs are joined: the switches.
func (j *job) bridgeHosts() []int32 {
	hosts := make([]int32, 0, len(j.snapshot.Switches)+1)
	for h := len(j.slots); h < len(j.testbed.Spec().Hosts); h++ {
		hosts = append(hosts, int32(h))
	}
	return hosts
}

// quotas hands the policy's limits to the solver.
func (j *job) quotas(l *layout) {
	for _, limit := range j.limits {
		q := solver.Quota{Name: describe(limit.policy), Max: int32(max(0, limit.left))}
		for h := range j.slots {
			if limit.policy.HardwareType == "" || slices.Contains(j.slots[h].host.HardwareTypes, limit.policy.HardwareType) {
				q.Hosts = append(q.Hosts, int32(h))
			}
		}
		for v := range j.req.Nodes {
			if limit.policy.HardwareType != "" || about(limit.policy, j.wantOf[v], nil, j.types[l.kinds[v]]) {
				q.Nodes = append(q.Nodes, int32(v))
			}
		}
		l.problem.Quotas = append(l.problem.Quotas, q)
	}
}
