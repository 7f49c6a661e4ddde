package aggregate

import (
	"fmt"
	"slices"

	"croft/drivers"
	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// linker is the driver of a link that some driver makes so far ("" for none)
// and that gets an end of another one: of two, the one that spans machines.
func (s *Service) linker(so, of string) (string, error) {
	switch {
	case so == "" || so == of:
		return of, nil
	case inventory.LinkedBy(so) != inventory.LinkedBy(of):
		return "", fmt.Errorf("a link between nodes of the drivers %s and %s cannot be made here", so, of)
	}
	for _, name := range []string{so, of} {
		if _, spans := s.Drivers[name].(drivers.Spanner); spans {
			return name, nil
		}
	}
	return "", fmt.Errorf("a link between nodes of the drivers %s and %s cannot be made here: neither joins nodes of others", so, of)
}

// tunnelPool gives out VXLAN network identifiers.
type tunnelPool struct {
	pool  []inventory.VNIRange
	taken map[int]int
	start uint64 // from where on: those who map at the same time seldom meet
	given map[int]bool
}

func (p *tunnelPool) size() (n int) {
	for _, r := range p.pool {
		n += r.Last - r.First + 1
	}
	return n
}

// next takes an identifier; 0 if none is left.
func (p *tunnelPool) next() int {
	size := p.size()
	for i := range size {
		at := int((p.start + uint64(i)) % uint64(size))
		for _, r := range p.pool {
			if n := r.Last - r.First + 1; at >= n {
				at -= n
				continue
			}
			vni := r.First + at
			if p.taken[vni] == 0 && !p.given[vni] {
				if p.given == nil {
					p.given = map[int]bool{}
				}
				p.given[vni] = true
				return vni
			}
			break
		}
	}
	return 0
}

// span gives a link between machines its identifier. vni is the one that it has
// already.
func (s *Service) span(pool *tunnelPool, l *request.Link, v *slivers.Sliver, vni int) error {
	spanner, ok := s.Drivers[v.Link.Driver].(drivers.Spanner)
	if !ok {
		return nil
	}
	refused := &mapping.Refusal{Item: l.ID, Place: l.Place}
	needs, err := spanner.Spans(driverLink(v))
	switch {
	case err != nil:
		refused.Kind, refused.Why = mapping.Unavailable, fmt.Sprintf("the link cannot be made: %v", err)
		return refused
	case !needs:
		return nil
	}
	if v.Link.VNI = vni; vni == 0 {
		v.Link.VNI = pool.next()
	}
	if v.Link.VNI == 0 {
		refused.Kind = mapping.NoVLAN
		refused.Why = fmt.Sprintf("no VXLAN identifier is left for it: links between machines have all %d of the testbed's", pool.size())
		refused.Hint = "links within a machine need none; or ask the operator for a larger pool (pools.vnis of the inventory)"
		return refused
	}
	return nil
}

// untagged warns of links that ask for a VLAN tag and take none.
func untagged(req *request.Request, placed []slivers.Sliver) (warnings []languages.Problem) {
	for _, l := range req.Links {
		if l.VLAN == 0 || !slices.ContainsFunc(placed, func(v slivers.Sliver) bool { return v.Link != nil && v.ClientID == l.ID && v.Link.VLAN == 0 }) {
			continue
		}
		warnings = append(warnings, languages.Problem{Place: l.Place,
			What: fmt.Sprintf("link %s asks for VLAN tag %d and takes none here", l.ID, l.VLAN), Hint: "links over switches have tags, where the testbed gives tags to links"})
	}
	return warnings
}

// interfaceName is the name of a host's own interface; "" if it has none such.
func interfaceName(snapshot *inventory.Snapshot, host, component urn.URN) string {
	h, ok := snapshot.Host(host)
	if !ok || component.IsZero() {
		return ""
	}
	for i := range h.Interfaces {
		if h.Interfaces[i].ID.Equal(component) {
			return h.Interfaces[i].Name
		}
	}
	return ""
}

func driverLink(v *slivers.Sliver) drivers.Link {
	l := drivers.Link{Sliver: v.URN, Slice: v.Slice, VLAN: v.Link.VLAN, VNI: v.Link.VNI, SharedVLAN: v.Link.SharedVLAN}
	for _, e := range v.Link.Ends {
		l.Ends = append(l.Ends, drivers.End{Node: e.Sliver, Interface: e.Interface, Host: e.Host, Driver: e.Driver, Leaves: e.Leaves, Out: e.Out, In: e.In})
	}
	return l
}
