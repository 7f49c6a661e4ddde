package mappingtest

import (
	"fmt"
	"slices"
	"strings"

	"croft/inventory"
	"croft/mapping"
	"croft/request"
	"croft/urn"
)

// hasFeature looks a feature up among those of a host, and its properties.
func hasFeature(h *inventory.Host, name string) bool {
	_, property := h.Properties[name]
	return property || slices.ContainsFunc(h.Features, func(f inventory.Feature) bool { return f.Name == name })
}

// wishes says what of a node's wishes one host does not answer to.
func wishes(c Case, n *request.Node, choice *Choice) []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("node %s on %s: ", n.ID, choice.Host.Name)+fmt.Sprintf(format, args...))
	}
	h := choice.Host
	if n.Site != "" && n.Site != h.Site {
		say("wants site %s", n.Site)
	}
	if n.Architecture != "" && !strings.EqualFold(n.Architecture, h.Architecture) {
		say("wants architecture %s", n.Architecture)
	}
	wanted := map[string]bool{}
	for _, f := range n.Features {
		wanted[f.Name] = true
		if f.Weight >= 1 && !hasFeature(h, f.Name) {
			say("wants feature %s", f.Name)
		}
	}
	for _, f := range h.Features {
		counted := slices.ContainsFunc(c.Snapshot.Features, func(t inventory.FeatureType) bool { return t.Name == f.Name })
		if f.Weight >= 1 && !counted && !wanted[f.Name] {
			say("the host is kept for those who want %s", f.Name)
		}
	}
	for _, class := range c.Request.Classes {
		if class.Name == n.Class && len(class.Types) > 0 && !slices.ContainsFunc(class.Types, func(t string) bool { return slices.Contains(h.HardwareTypes, t) }) {
			say("is of class %s", n.Class)
		}
	}
	if choice.Type.WholeHost {
		most, has := n.Most, h.Capacity
		if most.Cores > 0 && has.Cores > most.Cores || most.Memory > 0 && has.Memory > most.Memory || most.Disk > 0 && has.Disk > most.Disk || most.GPUs > 0 && has.GPUs > most.GPUs {
			say("has %v, at most %v is wanted", has, most)
		}
	}
	for _, p := range c.Snapshot.Policies {
		if p.Most == 0 && p.Holds(c.Options.Slice) && under(&p, n, h, choice.Type) {
			say("the policy forbids it")
		}
	}
	return wrong
}

// under reports whether a policy counts a node.
func under(p *inventory.Policy, n *request.Node, h *inventory.Host, t *inventory.SliverType) bool {
	if p.SliverType != "" {
		return p.SliverType == t.Name
	}
	if p.HardwareType != "" {
		return slices.Contains(h.HardwareTypes, p.HardwareType)
	}
	return slices.ContainsFunc(n.Features, func(f request.Feature) bool { return f.Name == p.Feature })
}

// company says what is wrong with where nodes are to each other; a nil Choice
// is a node not placed yet.
func company(c Case, choices []*Choice) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	at := func(id request.ClientID) *inventory.Host {
		for i := range c.Request.Nodes {
			if c.Request.Nodes[i].ID == id && choices[i] != nil {
				return choices[i].Host
			}
		}
		for _, n := range c.Occupancy.Existing {
			if n.ID == id {
				h, _ := c.Snapshot.Host(n.Host)
				return h
			}
		}
		return nil
	}
	for _, g := range c.Request.Groups {
		if g.Weight > 0 && g.Weight < 1 {
			continue
		}
		for i, a := range g.Nodes {
			for _, z := range g.Nodes[:i] {
				x, y := at(a), at(z)
				if x == nil || y == nil || a == z {
					continue
				}
				same := x.Name == y.Name
				switch g.By {
				case request.BySwitch:
					same = home(c, x) == home(c, y)
				case request.BySite:
					same = x.Site == y.Site
				}
				if same == g.Apart {
					say("%s and %s are not as group %s wants", a, z, g.Name)
				}
			}
		}
	}
	for i := range c.Request.Nodes {
		n := &c.Request.Nodes[i]
		if p := at(n.Parent); n.Parent != "" && p != nil && choices[i] != nil && !choices[i].Host.Parent.Equal(p.ID) {
			say("%s is not on a part of the host of %s", n.ID, n.Parent)
		}
	}
	for _, class := range c.Request.Classes {
		if class.Weight < 1 {
			continue
		}
		var common []string
		first := true
		for i := range c.Request.Nodes {
			if c.Request.Nodes[i].Class != class.Name || choices[i] == nil {
				continue
			}
			types := choices[i].Host.HardwareTypes
			if first {
				common, first = types, false
				continue
			}
			common = slices.DeleteFunc(slices.Clone(common), func(t string) bool { return !slices.Contains(types, t) })
		}
		if !first && len(class.Types) > 0 {
			common = slices.DeleteFunc(slices.Clone(common), func(t string) bool { return !slices.Contains(class.Types, t) })
		}
		if !first && len(common) == 0 {
			say("class %s is mixed", class.Name)
		}
	}
	for _, p := range c.Snapshot.Policies {
		if p.Most == 0 || !p.Holds(c.Options.Slice) {
			continue
		}
		have := 0
		for _, n := range c.Occupancy.Existing {
			h, known := c.Snapshot.Host(n.Host)
			t, typed := c.Snapshot.Type(n.SliverType)
			if known && typed && p.Feature == "" && under(&p, &request.Node{}, h, t) {
				have++
			}
		}
		had := have
		for i := range choices {
			if choices[i] != nil && under(&p, &c.Request.Nodes[i], choices[i].Host, choices[i].Type) {
				have++
			}
		}
		if have > p.Most && have > had {
			say("%d nodes where a policy gives %d", have, p.Most)
		}
	}
	return wrong
}

// home is the switch that a host is counted at: the first declared of those it
// has a cable to.
func home(c Case, h *inventory.Host) string {
	for i := range c.Snapshot.Switches {
		s := &c.Snapshot.Switches[i]
		for _, l := range c.Snapshot.Links {
			for e := range l.Ends {
				if l.Ends[e].Node.Equal(s.ID) && l.Ends[1-e].Node.Equal(h.ID) && !isControl(c, l.Ends[1-e].Interface) {
					return s.Name
				}
			}
		}
	}
	return ""
}

func isControl(c Case, id urn.URN) bool {
	for i := range c.Snapshot.Hosts {
		for _, f := range c.Snapshot.Hosts[i].Interfaces {
			if f.ID.Equal(id) {
				return f.Role == inventory.Control
			}
		}
	}
	return false
}

// amounts says of which host more is given of features and types than it has.
func amounts(c Case, choices []*Choice) []string {
	var wrong []string
	for i := range c.Snapshot.Hosts {
		h := &c.Snapshot.Hosts[i]
		use := c.Occupancy.Hosts[h.ID.Canonical()]
		types, features, more := map[request.SliverType]int{}, map[string]float64{}, map[string]bool{}
		for t, n := range use.Types {
			types[t] = n
		}
		for f, n := range use.Features {
			features[f] = n
		}
		for k, choice := range choices {
			if choice == nil || choice.Host.Name != h.Name {
				continue
			}
			types[choice.Type.Name]++
			more[string(choice.Type.Name)] = true
			for _, f := range c.Request.Nodes[k].Features {
				if f.Amount > 0 && hasFeature(h, f.Name) {
					features[f.Name] += f.Amount
					more[f.Name] = true
				}
			}
		}
		for t, most := range h.TypeLimits {
			if types[t] > most && more[string(t)] {
				wrong = append(wrong, fmt.Sprintf("%s has %d nodes of type %s, at most %d", h.Name, types[t], t, most))
			}
		}
		for _, f := range h.Features {
			if f.Amount > 0 && features[f.Name] > f.Amount+1e-9 && more[f.Name] {
				wrong = append(wrong, fmt.Sprintf("%s gives %g of feature %s, it has %g", h.Name, features[f.Name], f.Name, f.Amount))
			}
		}
	}
	return wrong
}

// optional says what is wrong with the nodes that a placement leaves out, and
// returns the case without them.
func optional(c Case, p *mapping.Placement) (Case, []string) {
	var wrong []string
	if len(p.Left) == 0 {
		return c, nil
	}
	fewer := *c.Request
	fewer.Nodes, fewer.Links = nil, nil
	for _, n := range c.Request.Nodes {
		if !slices.Contains(p.Left, n.ID) {
			fewer.Nodes = append(fewer.Nodes, n)
		} else if !n.Optional {
			wrong = append(wrong, fmt.Sprintf("node %s is left out", n.ID))
		}
	}
	for _, l := range c.Request.Links {
		var ends []request.End
		for _, e := range l.Ends {
			if e.Existing || !slices.Contains(p.Left, e.Node) {
				ends = append(ends, e)
			}
		}
		if l.Ends = ends; len(ends) > 0 {
			fewer.Links = append(fewer.Links, l)
		}
	}
	c.Request = &fewer
	return c, wrong
}
