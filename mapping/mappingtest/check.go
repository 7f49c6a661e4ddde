// Package mappingtest judges mappers. It shares no code with any: what makes a
// placement valid is written here a second time, slowly and plainly.
package mappingtest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/mapping"
	"croft/request"
	"croft/urn"
)

// Case is what a mapper is given.
type Case struct {
	Snapshot  *inventory.Snapshot
	Occupancy mapping.Occupancy
	Request   *request.Request
	Options   mapping.Options
}

// Choice is where a node goes and what it is made as.
type Choice struct {
	Host *inventory.Host
	Type *inventory.SliverType
}

// Valid says what is wrong with a placement; nothing if it is right.
func Valid(c Case, p *mapping.Placement) []string {
	c, wrong := optional(c, p)
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	asked, plain := c, p
	var delays []string
	if c, plain, delays = delayed(c, p); len(delays) > 0 {
		return append(wrong, delays...)
	}
	if len(p.Nodes) != len(c.Request.Nodes) || len(p.Links) != len(c.Request.Links) {
		return []string{fmt.Sprintf("%d nodes and %d links placed of %d and %d", len(p.Nodes), len(p.Links), len(c.Request.Nodes), len(c.Request.Links))}
	}
	choices := make([]*Choice, len(p.Nodes))
	for i, n := range p.Nodes {
		host, ok := c.Snapshot.Host(n.Host)
		if !ok {
			say("node %s is on %s, which does not exist", n.Node, n.Host)
			return wrong
		}
		t, ok := c.Snapshot.Type(n.SliverType)
		if !ok || t.Name != n.SliverType {
			say("node %s is made as %q, which does not exist", n.Node, n.SliverType)
			return wrong
		}
		choices[i] = &Choice{host, t}
		asked := &c.Request.Nodes[i]
		if n.Node != asked.ID {
			say("node %s stands where %s should", n.Node, asked.ID)
		}
		wrong = append(wrong, nodeFacts(c, asked, &n, choices[i])...)
	}
	wrong = append(wrong, Together(c, choices)...)
	wrong = append(wrong, hardwareAddresses(c, p)...)
	wrong = append(wrong, linkFacts(asked, plain)...)
	wrong = append(wrong, cabling(c, p)...)
	for i := range c.Request.Links {
		able := make([]bool, len(p.Links[i].Ends))
		for k, e := range p.Links[i].Ends {
			able[k] = !e.Existing || !namedUnable(c, &c.Request.Links[i].Ends[k])
			for n := range p.Nodes {
				if !e.Existing && p.Nodes[n].Node == e.Node {
					able[k] = choices[n].Type.Shaping || choices[n].Type.Delay
				}
			}
		}
		wrong = append(wrong, shaped(c, &c.Request.Links[i], &p.Links[i], able)...)
	}
	return wrong
}

// Possible looks through all choices for one that is valid together. It is for
// small requests only.
func Possible(c Case) bool {
	choices := make([]*Choice, len(c.Request.Nodes))
	var try func(i int) bool
	try = func(i int) bool {
		if i == len(choices) {
			return true
		}
		for h := range c.Snapshot.Hosts {
			for _, name := range c.Snapshot.Hosts[h].Types {
				t, _ := c.Snapshot.Type(name)
				choices[i] = &Choice{&c.Snapshot.Hosts[h], t}
				if len(Together(c, choices)) == 0 && try(i+1) {
					return true
				}
			}
		}
		choices[i] = nil
		return false
	}
	return try(0)
}

// Emptied is the case on a testbed that nobody uses and where every host works.
func Emptied(c Case) Case {
	snapshot := *c.Snapshot
	snapshot.Hosts = slices.Clone(snapshot.Hosts)
	for i := range snapshot.Hosts {
		snapshot.Hosts[i].OutOfService = ""
	}
	c.Snapshot = &snapshot
	c.Occupancy.Hosts = nil
	return c
}

// Together says what is wrong with nodes being where they are; a nil Choice is
// a node not placed yet. What is wrong with some nodes stays wrong with more.
func Together(c Case, choices []*Choice) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	type load struct {
		amount        capacity.Amount
		nodes, wholes int
		exclusive     bool
	}
	loads := map[string]*load{}
	for i, choice := range choices {
		if choice == nil {
			continue
		}
		n := &c.Request.Nodes[i]
		wrong = append(wrong, alone(c, n, choice)...)
		l := loads[choice.Host.Name]
		if l == nil {
			l = &load{}
			loads[choice.Host.Name] = l
		}
		l.nodes++
		if choice.Type.WholeHost {
			l.wholes++
		} else {
			l.amount = l.amount.Plus(takes(n, choice))
		}
		if isExclusive(n, choice) {
			l.exclusive = true
		}
	}
	for name, l := range loads {
		var host *inventory.Host
		for i := range c.Snapshot.Hosts {
			if c.Snapshot.Hosts[i].Name == name {
				host = &c.Snapshot.Hosts[i]
			}
		}
		use := c.Occupancy.Hosts[host.ID.Canonical()]
		if host.OutOfService != "" {
			say("%s is out of service", name)
		}
		strangers := false
		for _, s := range use.Slices {
			strangers = strangers || !s.Equal(c.Options.Slice) || c.Options.Slice.IsZero()
		}
		if strangers && (use.Exclusive || l.exclusive) {
			say("%s is not given whole to one slice", name)
		}
		for _, n := range c.Occupancy.Existing {
			t, _ := c.Snapshot.Type(n.SliverType)
			if n.Host.Equal(host.ID) && use.Slivers > 0 && t != nil && t.WholeHost {
				say("%s is the whole of what node %s has", name, n.ID)
			}
		}
		if l.wholes > 1 || (l.wholes == 1 && (l.nodes > 1 || use.Slivers > 0)) {
			say("a node that takes the whole of %s is not alone there", name)
		}
		if host.MaxSlivers > 0 && use.Slivers+l.nodes > host.MaxSlivers {
			say("%s has more than %d nodes", name, host.MaxSlivers)
		}
		sum := use.Amount.Plus(l.amount)
		if has := host.Capacity; (has.Cores > 0 && l.amount.Cores > 0 && sum.Cores > has.Cores) ||
			(has.Memory > 0 && l.amount.Memory > 0 && sum.Memory > has.Memory) ||
			(has.Disk > 0 && l.amount.Disk > 0 && sum.Disk > has.Disk) || (l.amount.GPUs > 0 && sum.GPUs > has.GPUs) {
			say("%s gives %v of %v", name, sum, has)
		}
	}
	for _, link := range c.Request.Links {
		drivers := map[string]bool{}
		for k, e := range link.Ends {
			if e.Existing && namedUnable(c, &link.Ends[k]) && mustShape(c, &link, k) {
				say("link %s cannot be shaped", link.ID)
			}
			for _, n := range c.Occupancy.Existing {
				if t, known := c.Snapshot.Type(n.SliverType); known && e.Existing && n.ID == e.Node {
					drivers[t.LinkedBy()] = true
				}
			}
			for i := range c.Request.Nodes {
				if !e.Existing && c.Request.Nodes[i].ID == e.Node && choices[i] != nil {
					drivers[choices[i].Type.LinkedBy()] = true
				}
			}
		}
		if len(drivers) > 1 {
			say("link %s joins nodes of several drivers", link.ID)
		}
		if link.Trivial == request.No && !apart(c, &link, choices) {
			say("link %s stays within a host", link.ID)
		}
	}
	wrong = append(wrong, company(c, choices)...)
	return append(wrong, amounts(c, choices)...)
}

// apart reports whether the nodes of a link are all on different hosts, as far
// as they are placed.
func apart(c Case, link *request.Link, choices []*Choice) bool {
	on := map[urn.URN]request.ClientID{}
	stand := func(node request.ClientID, host urn.URN) bool {
		other, taken := on[host.Canonical()]
		on[host.Canonical()] = node
		return !taken || other == node
	}
	for _, e := range link.Ends {
		for _, n := range c.Occupancy.Existing {
			if e.Existing && n.ID == e.Node && !stand(e.Node, n.Host) {
				return false
			}
		}
		for i := range c.Request.Nodes {
			if !e.Existing && c.Request.Nodes[i].ID == e.Node && choices[i] != nil && !stand(e.Node, choices[i].Host.ID) {
				return false
			}
		}
	}
	return true
}

// takes is what a node takes of its host: what it wants, else what its type
// does, but not more than it lets itself be given.
func takes(n *request.Node, choice *Choice) capacity.Amount {
	a, most := n.Capacity.Or(choice.Type.Default), n.Most
	if n.Capacity.Cores == 0 && most.Cores > 0 {
		a.Cores = min(a.Cores, most.Cores)
	}
	if n.Capacity.Memory == 0 && most.Memory > 0 {
		a.Memory = min(a.Memory, most.Memory)
	}
	if n.Capacity.Disk == 0 && most.Disk > 0 {
		a.Disk = min(a.Disk, most.Disk)
	}
	if n.Capacity.GPUs == 0 && most.GPUs > 0 {
		a.GPUs = min(a.GPUs, most.GPUs)
	}
	return a
}

func isExclusive(n *request.Node, choice *Choice) bool {
	if choice.Type.WholeHost {
		return true
	}
	if n.Exclusive == request.Open {
		return !choice.Host.Shared
	}
	return n.Exclusive == request.Yes
}

// alone says what is wrong with one node's choice, whatever else there is.
func alone(c Case, n *request.Node, choice *Choice) []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("node %s on %s: ", n.ID, choice.Host.Name)+fmt.Sprintf(format, args...))
	}
	host, t := choice.Host, choice.Type
	if !n.Component.IsZero() && !n.Component.Equal(host.ID) {
		say("is bound to %s", n.Component)
	}
	if n.Component.IsZero() && n.ComponentName != "" && !strings.EqualFold(n.ComponentName, host.Name) {
		say("is bound to %s", n.ComponentName)
	}
	if len(n.HardwareTypes) > 0 {
		any := false
		for _, wanted := range n.HardwareTypes {
			for _, has := range host.HardwareTypes {
				any = any || wanted == has
			}
		}
		if !any {
			say("wants hardware %q", n.HardwareTypes)
		}
	}
	if n.SliverType != "" && n.SliverType != t.Name && !slices.Contains(t.Aliases, n.SliverType) {
		say("wants sliver type %s", n.SliverType)
	}
	if !slices.Contains(host.Types, t.Name) {
		say("%s is not offered", t.Name)
	}
	switch {
	case t.WholeHost:
	case isExclusive(n, choice) && !host.Exclusive:
		say("is not given whole")
	case !isExclusive(n, choice) && !host.Shared:
		say("is not shared")
	}
	if asked, has := takes(n, choice), host.Capacity; (has.Cores > 0 && asked.Cores > has.Cores) ||
		(has.Memory > 0 && asked.Memory > has.Memory) || (has.Disk > 0 && asked.Disk > has.Disk) || asked.GPUs > has.GPUs {
		say("wants %v of %v", asked, has)
	}
	bootable := func(id urn.URN) bool {
		return slices.Contains(t.Images, id) && (len(host.Images) == 0 || slices.Contains(host.Images, id))
	}
	if n.Image.IsZero() {
		if len(t.Images) > 0 && !slices.ContainsFunc(t.Images, bootable) {
			say("boots nothing")
		}
	} else {
		found := false
		for _, image := range c.Snapshot.Images {
			if (n.Image.Name == image.Name || n.Image.Name == image.ID.String() || (n.Image.URL != "" && n.Image.URL == image.URL)) && bootable(image.ID) {
				found = true
			}
		}
		if !found {
			say("does not boot %v", n.Image)
		}
	}
	wrong = append(wrong, wishes(c, n, choice)...)
	wired := 0
	for i := range c.Request.Links {
		for k, e := range c.Request.Links[i].Ends {
			if e.Node != n.ID || e.Existing {
				continue
			}
			if c.Request.Links[i].Multiplexed != request.Yes {
				wired++
			}
			if !t.Shaping && !t.Delay && mustShape(c, &c.Request.Links[i], k) {
				say("link %s cannot be shaped", c.Request.Links[i].ID)
			}
		}
	}
	if t.WholeHost && len(host.Interfaces) > 0 {
		for _, i := range host.Interfaces {
			if i.Role != inventory.Control {
				wired--
			}
		}
		if wired > 0 {
			say("lacks %d interfaces", wired)
		}
	}
	return wrong
}

// nodeFacts says what is wrong with what a placement says of a node.
func nodeFacts(c Case, asked *request.Node, n *mapping.NodePlacement, choice *Choice) []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("node %s: ", n.Node)+fmt.Sprintf(format, args...))
	}
	if n.Exclusive != isExclusive(asked, choice) {
		say("exclusive is %v", n.Exclusive)
	}
	want := takes(asked, choice)
	if choice.Type.WholeHost {
		want = choice.Host.Capacity
	}
	if n.Capacity != want {
		say("has %v, want %v", n.Capacity, want)
	}
	if len(choice.Type.Images) > 0 && !slices.Contains(choice.Type.Images, n.Image) {
		say("boots %s, which %s cannot", n.Image, n.SliverType)
	}
	if len(choice.Type.Images) == 0 && !n.Image.IsZero() {
		say("boots %s", n.Image)
	}
	if len(n.Interfaces) != len(asked.Interfaces) {
		say("%d interfaces of %d", len(n.Interfaces), len(asked.Interfaces))
		return wrong
	}
	components := map[urn.URN]bool{}
	for i, f := range n.Interfaces {
		wanted := asked.Interfaces[i]
		if f.ID != wanted.ID {
			say("interface %s stands where %s should", f.ID, wanted.ID)
		}
		if !wanted.Component.IsZero() && !wanted.Component.Equal(f.Component) {
			say("interface %s is %s instead of %s", f.ID, f.Component, wanted.Component)
		}
		if !f.Component.IsZero() {
			own := false
			for _, hi := range choice.Host.Interfaces {
				own = own || (hi.ID.Equal(f.Component) && hi.Role != inventory.Control)
			}
			if !own || components[f.Component] {
				say("interface %s cannot be %s", f.ID, f.Component)
			}
			components[f.Component] = true
		}
		if len(wanted.Addresses) > 0 && !slices.Equal(wanted.Addresses, f.Addresses) {
			say("interface %s has %v instead of %v", f.ID, f.Addresses, wanted.Addresses)
		}
	}
	return wrong
}

func hardwareAddresses(c Case, p *mapping.Placement) []string {
	var wrong []string
	seen := map[string]request.ClientID{}
	for i, n := range p.Nodes {
		for j, f := range n.Interfaces {
			mac := f.MAC.String()
			asked := c.Request.Nodes[i].Interfaces[j].MAC
			switch {
			case len(f.MAC) != 6 || f.MAC[0]&1 != 0:
				wrong = append(wrong, fmt.Sprintf("interface %s has MAC %s", f.ID, mac))
			case asked != "" && asked != mac:
				wrong = append(wrong, fmt.Sprintf("interface %s has MAC %s instead of %s", f.ID, mac, asked))
			case asked == "" && f.MAC[0]&2 == 0:
				wrong = append(wrong, fmt.Sprintf("interface %s has a MAC of somebody else, %s", f.ID, mac))
			case seen[mac] != "":
				wrong = append(wrong, fmt.Sprintf("interfaces %s and %s have one MAC", f.ID, seen[mac]))
			}
			seen[mac] = f.ID
		}
	}
	return wrong
}

// linkFacts says what is wrong with links and the addresses on them.
func linkFacts(c Case, p *mapping.Placement) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	given := map[netip.Addr]bool{}
	var networks []netip.Prefix
	for _, n := range c.Request.Nodes {
		for _, f := range n.Interfaces {
			for _, a := range f.Addresses {
				given[a.Addr()] = true
				networks = append(networks, a.Masked())
			}
		}
	}
	for _, n := range c.Occupancy.Existing {
		for _, f := range n.Interfaces {
			for _, a := range f.Addresses {
				given[a.Addr()] = true
				networks = append(networks, a.Masked())
			}
		}
	}
	type side struct {
		host      urn.URN
		addresses []netip.Prefix
		given     bool
	}
	for i, link := range c.Request.Links {
		if p.Links[i].Link != link.ID {
			say("link %s stands where %s should", p.Links[i].Link, link.ID)
		}
		var sides []side
		for _, e := range link.Ends {
			s := side{}
			for j, n := range p.Nodes {
				for k, f := range n.Interfaces {
					if !e.Existing && n.Node == e.Node && f.ID == e.Interface {
						s = side{n.Host, f.Addresses, len(c.Request.Nodes[j].Interfaces[k].Addresses) > 0}
					}
				}
			}
			for _, n := range c.Occupancy.Existing {
				for _, f := range n.Interfaces {
					if e.Existing && n.ID == e.Node && f.ID == e.Interface {
						s = side{n.Host, f.Addresses, true}
					}
				}
			}
			sides = append(sides, s)
		}
		within := sides[0].host
		onLink := map[netip.Addr]bool{}
		var assigned, asked []netip.Prefix
		for _, s := range sides {
			if !s.host.Equal(within) {
				within = urn.URN{}
			}
			if !s.given && len(s.addresses) != 1 {
				say("link %s has an end with addresses %v", link.ID, s.addresses)
			}
			for _, a := range s.addresses {
				if onLink[a.Addr()] && !s.given {
					say("link %s has address %s twice", link.ID, a)
				}
				onLink[a.Addr()] = true
				if s.given {
					asked = append(asked, a.Masked())
				} else {
					assigned = append(assigned, a)
				}
			}
		}
		if len(sides) > 1 && link.Trivial == request.No {
			within = urn.URN{}
		}
		if len(sides) > 1 && len(p.Links[i].Route) > 0 {
			within = urn.URN{} // out to the switch and back
		}
		if !p.Links[i].Within.Equal(within) {
			say("link %s is said to be within %s, not %s", link.ID, p.Links[i].Within, within)
		}
		for _, a := range assigned {
			if given[a.Addr()] {
				say("link %s is assigned %s, which is given", link.ID, a)
			}
			given[a.Addr()] = true // so that other links are checked against it
			if a.Masked() != assigned[0].Masked() {
				say("link %s is assigned %s and %s", link.ID, a, assigned[0])
			}
			if len(asked) > 0 && !slices.Contains(asked, a.Masked()) {
				say("link %s is assigned %s, its addresses are in %v", link.ID, a, asked)
			}
			if a.Addr() == a.Masked().Addr() && a.Bits() < 31 {
				say("link %s is assigned the address of a network, %s", link.ID, a)
			}
		}
		if len(assigned) > 0 && len(asked) == 0 {
			for _, used := range networks {
				if used.Overlaps(assigned[0]) {
					say("link %s is assigned %s, which is in use as %s", link.ID, assigned[0].Masked(), used)
				}
			}
		}
		if len(assigned) > 0 {
			networks = append(networks, assigned[0].Masked())
		}
	}
	return wrong
}
