package mapping

import (
	"fmt"
	"slices"

	"croft/capacity"
	"croft/inventory"
	"croft/mapping/solver"
	"croft/urn"
)

// compile makes the testbed that the solver searches.
func (g *ground) compile() error {
	s := g.snapshot
	spec := &solver.Spec{
		Types:    []string{"bridge", "standing"},
		Features: []solver.FeatureType{{Name: "cores"}, {Name: "memory"}, {Name: "disk"}, {Name: "gpus"}, {Name: "places"}},
		Media:    []string{"ethernet"},
	}
	for _, t := range g.types {
		spec.Types = append(spec.Types, string(t.Name))
	}
	for _, name := range g.extras {
		spec.Features = append(spec.Features, solver.FeatureType{Name: name})
	}
	for i := range spec.Features {
		spec.Features[i].Kind = solver.Additive
	}
	for _, f := range s.Features {
		kind := solver.GlobalOneFree
		if f.FirstOnly {
			kind = solver.GlobalFirstCosts
		}
		g.global[f.Name] = solver.FeatureID(len(spec.Features))
		spec.Features = append(spec.Features, solver.FeatureType{Name: f.Name, Kind: kind})
	}
	for i := range g.slots {
		spec.Hosts = append(spec.Hosts, g.hostSpec(spec, i))
		g.hostNames[g.slots[i].host.Name] = i
	}
	bridge := []solver.HostType{{Type: typeBridge, Slots: plenty, Static: true}}
	for i := range s.Switches {
		g.hostNames[s.Switches[i].Name] = len(spec.Hosts)
		spec.Hosts = append(spec.Hosts, solver.Host{Name: s.Switches[i].Name, Switch: true, Types: bridge, Parent: -1, Unique: true, Zone: g.zone(s.Switches[i].Site)})
	}
	spec.Hosts = append(spec.Hosts, solver.Host{Name: "the network of the hosts", Switch: true, Types: bridge, Parent: -1, Unique: true, Zone: -1})
	g.wire(spec)
	var err error
	if g.testbed, err = solver.Compile(spec); err != nil {
		return err
	}
	g.findHomes()
	return nil
}

// zone numbers sites.
func (g *ground) zone(site string) int32 {
	z, known := g.zones[site]
	if !known {
		z = int32(len(g.zones))
		g.zones[site] = z
	}
	return z
}

func (g *ground) hostSpec(spec *solver.Spec, i int) solver.Host {
	s := &g.slots[i]
	h := solver.Host{Name: s.host.Name, Parent: int32(s.parent), Loopback: int64(s.host.Internal), Zone: g.zone(s.host.Site),
		Types: []solver.HostType{{Type: typeStanding, Slots: plenty, Static: true}}}
	shared := false
	for _, kind := range s.types {
		offer := solver.HostType{Type: firstType + solver.TypeID(kind), Slots: plenty, Static: true}
		if g.types[kind].WholeHost {
			offer.Slots, offer.Static = 1, false
		} else {
			shared = true
		}
		h.Types = append(h.Types, offer)
		for _, name := range s.host.HardwareTypes {
			on := typeOn{kind, name}
			id, known := g.firstHW[on]
			if !known {
				id = solver.TypeID(len(spec.Types))
				g.firstHW[on] = id
				spec.Types = append(spec.Types, string(g.types[kind].Name)+" on "+name)
			}
			offer.Type = id
			if !slices.ContainsFunc(h.Types, func(t solver.HostType) bool { return t.Type == id }) {
				h.Types = append(h.Types, offer)
			}
		}
	}
	if shared {
		h.Types = append(h.Types, solver.HostType{Type: typeBridge, Slots: plenty, Static: true})
	}
	add := func(f solver.FeatureID, amount float64) {
		h.Features = append(h.Features, solver.HostFeature{Feature: f, Weight: amount})
	}
	for k, amount := range dimensions(s.size) {
		if amount < endless {
			add(featureCores+solver.FeatureID(k), float64(amount))
		}
	}
	if s.host.MaxSlivers > 0 {
		add(featurePlaces, float64(s.host.MaxSlivers))
	}
	for k := range g.extras {
		if has := g.extra[i*len(g.extras)+k]; has < endless && has > 0 {
			add(firstExtra+solver.FeatureID(k), float64(has)/1000)
		}
	}
	for _, f := range s.host.Features {
		if id, ok := g.global[f.Name]; ok {
			add(id, f.Weight)
		}
	}
	return h
}

// wire lays the cables: those that are declared; where none are, hosts reach
// the network by their interfaces, and hosts without interfaces reach it
// without limit. Where cables are declared, an interface without one leads
// nowhere.
func (g *ground) wire(spec *solver.Spec) {
	s := g.snapshot
	at := map[urn.URN]int32{}
	speed := map[urn.URN]capacity.Kbps{}
	network := int32(len(spec.Hosts) - 1)
	for i := range g.slots {
		at[g.slots[i].host.ID.Canonical()] = int32(i)
		for _, f := range g.slots[i].host.Interfaces {
			speed[f.ID.Canonical()] = f.Speed
			g.wired = g.wired || f.Role != inventory.Control
		}
	}
	for i := range s.Switches {
		at[s.Switches[i].ID.Canonical()] = int32(len(g.slots) + i)
	}
	for i := range s.Links {
		l := &s.Links[i]
		a, knownA := at[l.Ends[0].Node.Canonical()]
		b, knownB := at[l.Ends[1].Node.Canonical()]
		if !knownA || !knownB || a == b || g.keeps(l.Ends[0]) || g.keeps(l.Ends[1]) {
			continue // out of this testbed, or for management
		}
		rate := l.Capacity
		for _, end := range l.Ends {
			if v := speed[end.Interface.Canonical()]; v > 0 && (rate == 0 || v < rate) {
				rate = v
			}
		}
		w := wire{id: l.ID, ends: [2]int32{a, b}, ifaces: [2]urn.URN{l.Ends[0].Interface, l.Ends[1].Interface}}
		w.trunk = spec.Hosts[a].Switch && spec.Hosts[b].Switch
		g.lay(spec, w, l.Name, rate, false)
	}
	for i := range g.slots {
		h := g.slots[i].host
		if g.slots[i].interfaces == 0 && h.Underlay > 0 {
			// Links that leave the host share what it has: the wire goes by the
			// host's own name.
			g.lay(spec, wire{id: h.ID, ends: [2]int32{int32(i), network}}, h.Name, h.Underlay, false)
			continue
		}
		if g.slots[i].interfaces == 0 {
			g.lay(spec, wire{ends: [2]int32{int32(i), network}}, h.Name, 0, true)
			continue
		}
		if len(s.Links) > 0 {
			continue
		}
		for _, f := range h.Interfaces {
			if f.Role != inventory.Control {
				g.lay(spec, wire{id: f.ID, ends: [2]int32{int32(i), network}, ifaces: [2]urn.URN{f.ID}}, h.Name+":"+f.Name, f.Speed, false)
			}
		}
	}
}

// keeps reports whether an end is an interface that no experiment gets.
func (g *ground) keeps(end inventory.Port) bool {
	i, known := g.byID[end.Node.Canonical()]
	if !known {
		return false
	}
	for _, f := range g.slots[i].host.Interfaces {
		if f.ID.Equal(end.Interface) {
			return f.Role == inventory.Control
		}
	}
	return false
}

// lay adds a wire. Interfaces of a speed that is known are a medium of their
// own besides, for links that must have just that speed.
func (g *ground) lay(spec *solver.Spec, w wire, name string, rate capacity.Kbps, virtual bool) {
	out := solver.Wire{Name: name, A: w.ends[0], B: w.ends[1], Bandwidth: unbounded, Media: []solver.MediumID{0}, Virtual: virtual}
	for i, f := range w.ifaces {
		text := ""
		if !f.IsZero() {
			text = f.Canonical().String()
		}
		if i == 0 {
			out.AIface = text
		} else {
			out.BIface = text
		}
	}
	if rate > 0 {
		out.Bandwidth = min(int64(rate), unbounded)
		if !w.trunk {
			m, known := g.media[rate]
			if !known && len(spec.Media) < 64 {
				m, known = solver.MediumID(len(spec.Media)), true
				g.media[rate] = m
				spec.Media = append(spec.Media, fmt.Sprintf("ethernet of %d kbit/s", rate))
			}
			if known {
				out.Media = append(out.Media, m)
			}
		}
	}
	if virtual {
		for m := range spec.Media {
			if m > 0 {
				out.Media = append(out.Media, solver.MediumID(m))
			}
		}
	}
	if !w.id.IsZero() {
		g.byWire[w.id.Canonical()] = int32(len(g.wires))
	}
	g.wires = append(g.wires, w)
	spec.Wires = append(spec.Wires, out)
}

// findHomes gives each host the switch that groups count it at: the first
// declared one that it has a cable to.
func (g *ground) findHomes() {
	g.home = make([]int32, len(g.slots))
	for i := range g.home {
		g.home[i] = -1
	}
	for _, w := range g.wires {
		for e, h := range w.ends {
			if int(h) >= len(g.slots) {
				continue
			}
			if peer := w.ends[1-e]; int(peer) >= len(g.slots) && (g.home[h] < 0 || peer < g.home[h]) {
				g.home[h] = peer
			}
		}
	}
}
