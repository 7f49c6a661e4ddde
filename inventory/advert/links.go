package advert

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/urn"
)

// takeLinks takes over the cabling: hosts to switches, switches to switches,
// hosts to hosts, and either to what lies outside.
func (t *testbed) takeLinks(doc *document) {
	cabled := map[string]bool{}
	twice, odd, outside := 0, 0, 0
	for _, l := range doc.links {
		if len(l.Ends) != 2 {
			odd++
			continue
		}
		a, z := t.ends[l.Ends[0].ID], t.ends[l.Ends[1].ID]
		aID, zID := l.Ends[0].ID, l.Ends[1].ID
		if a.host == nil && z.host != nil { // hosts first
			a, z, aID, zID = z, a, zID, aID
		}
		speed := rate(l)
		busy := false
		for _, e := range []struct {
			endpoint
			id string
		}{{a, aID}, {z, zID}} {
			busy = busy || (e.host != nil && cabled[e.id])
		}
		if busy {
			twice++
			continue
		}
		if a.host != nil {
			cabled[aID] = true
		}
		if z.host != nil {
			cabled[zID] = true
		}
		switch {
		case a.host != nil && z.swtch != nil:
			t.speedOf(a, speed)
			t.cables = append(t.cables, cable{host: a.host, iface: a.host.interfaces[a.index].name, to: z.swtch.name, port: z.port, capacity: speed})
		case a.host != nil && z.host != nil:
			t.speedOf(a, speed)
			t.speedOf(z, speed)
			t.cables = append(t.cables, cable{host: a.host, iface: a.host.interfaces[a.index].name,
				to: z.host.name + ":" + z.host.interfaces[z.index].name, rest: true, capacity: speed})
		case a.swtch != nil && z.swtch != nil:
			t.trunks = append(t.trunks, trunk{[2]string{end(a), end(z)}, speed})
		default:
			if !t.outward(a, z, aID, zID, speed) {
				outside++
			}
		}
	}
	if twice > 0 {
		t.note("%d links are left out: an interface of theirs is on another link", twice)
	}
	if odd > 0 {
		t.note("%d links are left out: they do not join two interfaces", odd)
	}
	if outside > 0 {
		t.note("%d links are left out: they end at interfaces that are nowhere described", outside)
	}
}

// end is a switch or its port, as trunks name it.
func end(e endpoint) string {
	if e.port == "" {
		return e.swtch.name
	}
	return e.swtch.name + ":" + e.port
}

// outward takes over a link to an interface elsewhere.
func (t *testbed) outward(a, z endpoint, aID, zID string, speed capacity.Kbps) bool {
	inside, outID := a, zID
	if a.host == nil && a.swtch == nil {
		inside, outID = z, aID
	}
	id, err := urn.Parse(outID)
	if err != nil || (inside.host == nil && inside.swtch == nil) {
		return false
	}
	if t.refsOf[outID] > 1 {
		return false // everybody's way out is no cable
	}
	c := cable{to: id.String(), rest: true, capacity: speed}
	if inside.host != nil {
		t.speedOf(inside, speed)
		c.host, c.iface = inside.host, inside.host.interfaces[inside.index].name
	} else if inside.port != "" {
		c.port = end(inside)
	} else {
		return false
	}
	t.cables = append(t.cables, c)
	return true
}

// speedOf notes the speed of a host's interface: that of its link.
func (t *testbed) speedOf(e endpoint, speed capacity.Kbps) {
	e.host.interfaces[e.index].speed = speed
}

// amount is how capacities are written: kbit/s as such, or with a unit.
var amount = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) *([A-Za-z/]*)$`)

// units in kbit/s, of those seen.
var units = map[string]float64{"": 1, "kbps": 1, "k": 1, "mbps": 1e3, "m": 1e3, "gbps": 1e6, "g": 1e6, "mb/s": 8e3, "gb/s": 8e6}

// rate is the capacity of a link; 0 if it is not known.
func rate(l xmlLink) capacity.Kbps {
	for _, p := range l.Properties {
		m := amount.FindStringSubmatch(strings.TrimSpace(p.Capacity))
		if m == nil {
			continue
		}
		scale, known := units[strings.ToLower(m[2])]
		n, err := strconv.ParseFloat(m[1], 64)
		if kbps := math.Round(n * scale); err == nil && known && kbps >= 1 && kbps < 1e12 {
			return capacity.Kbps(kbps)
		}
	}
	return 0
}

// takeRest takes over shared VLANs and references to other aggregates.
func (t *testbed) takeRest(doc *document) {
	vlans := map[string]bool{}
	for _, v := range doc.vlans {
		name := strings.TrimSpace(v.Name)
		if !labelled(name) || vlans[name] {
			continue
		}
		vlans[name] = true
		t.vlans = append(t.vlans, inventory.SharedVLAN{Name: name, Restricted: strings.EqualFold(v.Restricted, "true")})
	}
	seen := map[urn.URN]bool{}
	for _, e := range doc.external {
		iface, err1 := urn.Parse(e.Interface)
		manager, err2 := urn.Parse(e.Manager)
		if err1 != nil || err2 != nil {
			t.note("an external_ref without URNs is left out: %q at %q", e.Interface, e.Manager)
			continue
		}
		if !seen[iface.Canonical()] {
			seen[iface.Canonical()] = true
			t.external = append(t.external, inventory.External{Interface: iface, Manager: manager})
		}
	}
}
