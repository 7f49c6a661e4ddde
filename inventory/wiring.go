package inventory

import (
	"fmt"
	"slices"
	"strings"

	"croft/capacity"
	"croft/urn"
)

func (b *builder) buildSwitches() {
	for _, d := range b.decl.switches.value {
		if !d.it.name.valid {
			continue
		}
		names, ok := b.names(d.it.name, len(b.snapshot.Switches), maxHosts, "switches")
		if !ok {
			continue
		}
		if d.it.urn.given && len(names) > 1 {
			b.add(d.it.urn.at, d.it.urn.path, "one URN for several switches", "leave it out, or declare the switches one by one")
			d.it.urn = field[urn.URN]{}
		}
		site := b.site(d.it.site)
		for _, name := range names {
			if !b.claim(name, node{isSwitch: true, index: len(b.snapshot.Switches)}, d.it.name) {
				continue
			}
			b.snapshot.Switches = append(b.snapshot.Switches, Switch{
				ID:   b.name(urn.Node, name, d.it.urn, d.it.name.at, d.it.name.path),
				Name: name, Site: site, HardwareTypes: texts(d.it.hardwareTypes),
			})
		}
	}
}

// wiring makes links and knows which interfaces and names are taken.
type wiring struct {
	*builder
	cabled map[urn.URN]string // interfaces by canonical URN, with their link
	links  map[string]bool    // by name
	ports  map[string]bool    // of switches, by switch:port
}

func (b *builder) buildLinks() {
	w := wiring{b, map[urn.URN]string{}, map[string]bool{}, map[string]bool{}}
	for _, c := range b.decl.cables.value {
		if c.rule != nil {
			w.rule(c.rule)
		} else {
			w.pair(c.pair)
		}
	}
	for i := range b.decl.trunks.value {
		w.trunk(&b.decl.trunks.value[i])
	}
}

// end is one end of a link to be.
type end struct {
	port  Port
	name  string // host:interface, or the switch
	speed capacity.Kbps
}

// hostEnd finds an interface of a host.
func (w *wiring) hostEnd(host, iface string, at position, path string) (end, bool) {
	n, known := w.nodes[host]
	if !known || n.isSwitch {
		w.add(at, path, fmt.Sprintf("no host %q is declared", host), w.didYouMean(host, w.nodeNames, "declare it under hosts"))
		return end{}, false
	}
	h := &w.snapshot.Hosts[n.index]
	var names []string
	for _, i := range h.Interfaces {
		if i.Name == iface {
			return end{Port{h.ID, i.ID}, host + ":" + iface, i.Speed}, true
		}
		names = append(names, i.Name)
	}
	hint := w.didYouMean(iface, names, oneOf(names))
	if len(names) == 0 {
		hint = "declare its interfaces"
	}
	w.add(at, path, fmt.Sprintf("host %s has no interface %q", host, iface), hint)
	return end{}, false
}

// switchEnd makes a port of a switch.
func (w *wiring) switchEnd(name, port string, speed capacity.Kbps, at position, path string) (end, bool) {
	n, known := w.nodes[name]
	if !known || !n.isSwitch {
		w.add(at, path, fmt.Sprintf("no switch %q is declared", name), w.didYouMean(name, w.nodeNames, "declare it under switches"))
		return end{}, false
	}
	s := &w.snapshot.Switches[n.index]
	if !portName.MatchString(port) {
		w.add(at, path, fmt.Sprintf("%q is no name for a port", port), "letters, digits and . _ / : + @ -")
		return end{}, false
	}
	key := name + ":" + port
	if w.ports[key] {
		w.add(at, path, fmt.Sprintf("port %s of switch %s has a cable already", port, name), "")
		return end{}, false
	}
	w.ports[key] = true
	id := w.name(urn.Interface, name+":"+port, field[urn.URN]{}, at, path)
	s.Ports = append(s.Ports, Interface{ID: id, Name: port, Speed: speed, Role: Experimental})
	return end{Port{s.ID, id}, name, speed}, true
}

// connect makes a link.
func (w *wiring) connect(name string, given field[urn.URN], a, z end, rate capacity.Kbps, at position, path string) {
	if len(w.snapshot.Links) >= maxLinks {
		if len(w.snapshot.Links) == maxLinks {
			w.add(at, path, fmt.Sprintf("more than %d links", maxLinks), "")
		}
		return
	}
	if w.links[name] {
		w.add(at, path, fmt.Sprintf("a second link %q", name), "give one of them a name of its own")
		return
	}
	w.links[name] = true
	for _, e := range []end{a, z} {
		key := e.port.Interface.Canonical()
		if other, taken := w.cabled[key]; taken {
			w.add(at, path, fmt.Sprintf("%s is on link %s already", e.name, other), "")
			return
		}
		w.cabled[key] = name
	}
	if rate == 0 {
		rate = slower(a.speed, z.speed)
	}
	w.snapshot.Links = append(w.snapshot.Links, Link{
		ID: w.name(urn.Link, name, given, at, path), Name: name, Ends: [2]Port{a.port, z.port}, Capacity: rate,
	})
}

// slower is the lesser of two speeds, of which 0 is not known.
func slower(a, b capacity.Kbps) capacity.Kbps {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

func (w *wiring) rule(d *placed[cableRuleDecl]) {
	r := &d.it
	if !r.hosts.valid || !r.interfaces.valid || !r.switches.valid || (r.ports.given && !r.ports.valid) {
		return
	}
	lists := make([][]string, 4)
	for i, f := range []field[word]{r.hosts, r.interfaces, r.switches, r.ports} {
		names, err := expand(f.value.text)
		if err != nil {
			w.add(f.at, f.path, err.Error(), "write ranges as pc[001-160]")
			return
		}
		lists[i] = names
	}
	hosts, interfaces, switches, ports := lists[0], lists[1], lists[2], lists[3]
	if len(hosts)%len(switches) != 0 {
		w.add(r.switches.at, r.switches.path,
			fmt.Sprintf("%d hosts cannot be dealt out equally to %d switches", len(hosts), len(switches)),
			"write one rule for each share")
		return
	}
	each := len(hosts) / len(switches)
	if r.ports.given && len(ports) != each*len(interfaces) {
		w.add(r.ports.at, r.ports.path,
			fmt.Sprintf("%d ports for %d cables to each switch", len(ports), each*len(interfaces)), "")
		return
	}
	for i, host := range hosts {
		to := switches[i/each]
		for j, iface := range interfaces {
			a, ok := w.hostEnd(host, iface, r.hosts.at, r.hosts.path)
			if !ok {
				return // the next ones would say the same
			}
			portName, name := a.name, a.name+"-"+to
			if r.ports.given {
				portName = ports[i%each*len(interfaces)+j]
				name += ":" + portName
			}
			z, ok := w.switchEnd(to, portName, slower(r.capacity.value, a.speed), r.switches.at, r.switches.path)
			if !ok {
				return
			}
			w.connect(name, field[urn.URN]{}, a, z, r.capacity.value, d.at, d.path)
		}
	}
}

func (w *wiring) pair(d *placed[cablePairDecl]) {
	if len(d.it.ends.value) != 2 {
		return
	}
	// The speed of a switch port is what the other end has, so hosts go first.
	words := slices.Clone(d.it.ends.value)
	var ends [2]end
	isSwitch := func(text string) bool {
		name, _, _ := strings.Cut(text, ":")
		return w.nodes[name].isSwitch
	}
	var speed capacity.Kbps
	for _, switches := range []bool{false, true} {
		for i, e := range words {
			if isSwitch(e.text) != switches {
				continue
			}
			var ok bool
			if ends[i], ok = w.cableEnd(e, speed); !ok {
				return
			}
			speed = slower(speed, ends[i].speed)
		}
	}
	if ends[0].port.Node.IsZero() && ends[1].port.Node.IsZero() {
		w.add(d.at, d.path, "a cable with both ends outside this testbed", "")
		return
	}
	name := words[0].text + "-" + words[1].text
	if d.it.name.valid {
		name = d.it.name.value.text
	} else if ends[0].port.Node.IsZero() || ends[1].port.Node.IsZero() {
		for i := range ends {
			if ends[i].port.Node.IsZero() {
				name = words[1-i].text + "-external"
			}
		}
	}
	w.connect(name, d.it.urn, ends[0], ends[1], d.it.capacity.value, d.at, d.path)
}

// cableEnd reads host:interface, switch:port, or the URN of an interface
// elsewhere.
func (w *wiring) cableEnd(e word, speed capacity.Kbps) (end, bool) {
	if len(e.text) > 4 && strings.EqualFold(e.text[:4], "urn:") {
		id, err := urn.Parse(e.text)
		if err != nil {
			w.add(e.at, e.path, err.Error(), "")
			return end{}, false
		}
		return end{Port{Interface: id}, e.text, 0}, true
	}
	name, at, found := strings.Cut(e.text, ":")
	if !found {
		w.add(e.at, e.path, fmt.Sprintf("%q names no interface", e.text), "write host:interface or switch:port")
		return end{}, false
	}
	if n, known := w.nodes[name]; known && n.isSwitch {
		return w.switchEnd(name, at, speed, e.at, e.path)
	}
	return w.hostEnd(name, at, e.at, e.path)
}

func (w *wiring) trunk(d *placed[trunkDecl]) {
	if len(d.it.between.value) != 2 {
		return
	}
	var sides [2][]string
	var ports [2]string
	for i, e := range d.it.between.value {
		pattern, port, _ := strings.Cut(e.text, ":")
		names, err := expand(pattern)
		if err != nil {
			w.add(e.at, e.path, err.Error(), "write ranges as leaf[1-8]")
			return
		}
		sides[i], ports[i] = names, port
	}
	count := max(1, int(d.it.count.value))
	total := len(sides[0]) * len(sides[1]) * count
	if total > maxNames {
		w.add(d.at, d.path, fmt.Sprintf("more than %d trunks", maxNames), "")
		return
	}
	if total > 1 && (ports[0] != "" || ports[1] != "") {
		w.add(d.at, d.path, "a port for several trunks", "leave the port out, or declare the trunks one by one")
		return
	}
	if total > 1 && d.it.urn.given {
		w.add(d.it.urn.at, d.it.urn.path, "one URN for several trunks", "leave it out, or declare the trunks one by one")
		return
	}
	number := 0
	for _, one := range sides[0] {
		for _, other := range sides[1] {
			if one == other {
				w.add(d.at, d.path, fmt.Sprintf("a trunk from switch %s to itself", one), "")
				return
			}
			for i := range count {
				number++
				name := one + "-" + other
				if d.it.name.valid {
					name = d.it.name.value.text
					if total > 1 {
						name = fmt.Sprintf("%s-%d", name, number)
					}
				} else if count > 1 {
					name = fmt.Sprintf("%s-%d", name, i+1)
				}
				if !w.trunkLink(d, name, [2]string{one, other}, ports) {
					return
				}
			}
		}
	}
}

func (w *wiring) trunkLink(d *placed[trunkDecl], name string, switches, ports [2]string) bool {
	var ends [2]end
	for i := range ends {
		port := ports[i]
		if port == "" {
			port = name
		}
		e := d.it.between.value[i]
		var ok bool
		if ends[i], ok = w.switchEnd(switches[i], port, d.it.capacity.value, e.at, e.path); !ok {
			return false
		}
		ends[i].name = switches[i] + ":" + port
	}
	w.connect(name, d.it.urn, ends[0], ends[1], d.it.capacity.value, d.at, d.path)
	return true
}
