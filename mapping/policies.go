package mapping

import (
	"fmt"
	"slices"

	"croft/inventory"
	"croft/request"
)

// about reports whether a policy is about a node on a host as a type.
func about(p *inventory.Policy, w *want, h *inventory.Host, t *inventory.SliverType) bool {
	switch {
	case p.SliverType != "":
		return t.Name == p.SliverType
	case p.HardwareType != "":
		return slices.Contains(h.HardwareTypes, p.HardwareType)
	}
	return w.wantsFeature(p.Feature)
}

// disallows is the policy by which a slice may have no node on a host as a
// type; nil if there is none.
func (b *board) disallows(w *want, h *inventory.Host, t *inventory.SliverType) *inventory.Policy {
	for _, p := range b.policies {
		if p.Most == 0 && p.Holds(b.slice) && about(p, w, h, t) {
			return p
		}
	}
	return nil
}

// limit is a policy that lets the slice have some nodes: how many more.
type limit struct {
	policy *inventory.Policy
	left   int
}

// limits are those that hold for the slice, less the nodes that it has.
func (b *board) limits(existing []ExistingNode) []limit {
	var all []limit
	for _, p := range b.policies {
		if p.Most == 0 || !p.Holds(b.slice) {
			continue
		}
		l := limit{p, p.Most}
		for i := range existing {
			// What features the nodes wanted is not known any more.
			h, known := b.snapshot.Host(existing[i].Host)
			if !known || p.Feature != "" {
				continue
			}
			if t, known := b.snapshot.Type(existing[i].SliverType); known && about(p, &want{}, h, t) {
				l.left--
			}
		}
		all = append(all, l)
	}
	return all
}

func describe(p *inventory.Policy) string {
	switch {
	case p.SliverType != "":
		return "of sliver type " + string(p.SliverType)
	case p.HardwareType != "":
		return "on hosts of hardware type " + p.HardwareType
	}
	return "that want feature " + p.Feature
}

// refuseLimits refuses a request for more than the slice may have: those nodes
// counted that cannot but fall under a policy.
func (b *board) refuseLimits(limits []limit, wants []*want, req *request.Request) *Refusal {
	for _, l := range limits {
		var under []int
		for _, w := range wants {
			if len(w.options) > 0 && !slices.ContainsFunc(w.options, func(o option) bool {
				return !about(l.policy, w, b.slots[o.slot].host, b.types[o.kind])
			}) {
				under = append(under, w.nodes...)
			}
		}
		if len(under) <= l.left {
			continue
		}
		slices.Sort(under)
		n := &req.Nodes[under[max(0, l.left)]]
		why := fmt.Sprintf("asks for %s %s; the policy of this testbed gives a slice at most %d", plural(len(under), "node"), describe(l.policy), l.policy.Most)
		if had := l.policy.Most - l.left; had > 0 {
			why += fmt.Sprintf(", and this one has %d", had)
		}
		return &Refusal{Kind: Disallowed, Item: n.ID, Place: n.Place, Why: why}
	}
	return nil
}
