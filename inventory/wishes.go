package inventory

import (
	"fmt"
	"maps"
	"slices"

	"croft/request"
	"croft/urn"
)

// buildParents resolves the hosts that others are parts of.
func (b *builder) buildParents() {
	for i := range b.decl.hosts.value {
		d := &b.decl.hosts.value[i]
		f := d.it.parent
		if !f.valid {
			continue
		}
		names, err := expand(d.it.name.value.text)
		parent, known := b.nodes[f.value.text]
		if err != nil {
			continue // reported already
		}
		if !known || parent.isSwitch {
			b.add(f.at, f.path, fmt.Sprintf("no host %q is declared", f.value.text), b.didYouMean(f.value.text, b.nodeNames, "declare it under hosts"))
			continue
		}
		for _, name := range names {
			n, known := b.nodes[name]
			switch {
			case !known || n.isSwitch:
			case n.index == parent.index:
				b.add(f.at, f.path, fmt.Sprintf("host %s is no part of itself", name), "")
			default:
				b.snapshot.Hosts[n.index].Parent = b.snapshot.Hosts[parent.index].ID
			}
		}
	}
}

// features are those of a host.
func (b *builder) features(f field[[]featureDecl]) []Feature {
	var all []Feature
	for _, d := range f.value {
		name := d.name.value.text
		if slices.ContainsFunc(all, func(o Feature) bool { return o.Name == name }) {
			b.add(d.name.at, d.name.path, fmt.Sprintf("feature %q stands here twice", name), "")
			continue
		}
		if d.weight.given && d.amount.given {
			b.add(d.weight.at, d.weight.path, fmt.Sprintf("feature %q has a weight and an amount", name), "what is used up needs no weight")
		}
		all = append(all, Feature{Name: name, Weight: d.weight.value, Amount: d.amount.value})
	}
	return all
}

// typeLimits are the most nodes of each type on a host.
func (b *builder) typeLimits(f field[map[string]int]) map[request.SliverType]int {
	var all map[request.SliverType]int
	for _, name := range slices.Sorted(maps.Keys(f.value)) {
		if b.types[request.SliverType(name)] == nil {
			b.add(f.at, join(f.path, name), fmt.Sprintf("no sliver type %q is declared", name),
				b.didYouMean(name, b.typeNames, "declare it under sliver_types"))
			continue
		}
		if all == nil {
			all = map[request.SliverType]int{}
		}
		all[request.SliverType(name)] = f.value[name]
	}
	return all
}

// buildFeatures checks that a feature counts alike on all hosts.
func (b *builder) buildFeatures() {
	amounts, told := map[string]bool{}, map[string]bool{}
	known := map[string]bool{}
	for i := range b.snapshot.Hosts {
		h := &b.snapshot.Hosts[i]
		for _, f := range h.Features {
			if known[f.Name] && amounts[f.Name] != (f.Amount > 0) && !told[f.Name] {
				told[f.Name] = true
				p := b.places[h.Name]
				b.add(p.at, p.path, fmt.Sprintf("feature %q has an amount on some hosts and none on others", f.Name), "give all of them amounts, or none")
			}
			known[f.Name] = true
			amounts[f.Name] = f.Amount > 0
		}
	}
	for _, d := range b.decl.features.value {
		name := d.it.name.value.text
		switch {
		case slices.ContainsFunc(b.snapshot.Features, func(t FeatureType) bool { return t.Name == name }):
			b.add(d.it.name.at, d.it.name.path, fmt.Sprintf("a second feature %q", name), "")
		case amounts[name]:
			b.add(d.it.costs.at, d.it.costs.path, fmt.Sprintf("feature %q has amounts, so it costs nothing", name), "")
		default:
			b.snapshot.Features = append(b.snapshot.Features, FeatureType{Name: name, FirstOnly: d.it.costs.value.text == "first"})
		}
	}
}

func authorities(f field[[]word]) []urn.Authority {
	var all []urn.Authority
	for _, w := range f.value {
		all = append(all, urn.Authority(w.text))
	}
	return all
}

func (b *builder) buildPolicies() {
	for _, d := range b.decl.policies.value {
		p := Policy{SliverType: request.SliverType(d.it.sliverType.value.text), HardwareType: d.it.hardwareType.value.text,
			Feature: d.it.feature.value.text, Most: int(d.it.most.value), Authorities: authorities(d.it.authorities)}
		named := 0
		for _, text := range []string{string(p.SliverType), p.HardwareType, p.Feature} {
			if text != "" {
				named++
			}
		}
		if named != 1 {
			b.add(d.at, d.path, "a policy is about one of sliver_type, hardware_type and feature", "write one policy for each")
			continue
		}
		if f := d.it.sliverType; f.valid && b.types[p.SliverType] == nil {
			b.add(f.at, f.path, fmt.Sprintf("no sliver type %q is declared", p.SliverType), b.didYouMean(string(p.SliverType), b.typeNames, "declare it under sliver_types"))
			continue
		}
		b.snapshot.Policies = append(b.snapshot.Policies, p)
	}
}
