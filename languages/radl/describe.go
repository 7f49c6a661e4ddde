package radl

import (
	"fmt"
	"slices"

	"croft/request"
)

// Known is a node as it is, whatever language it was asked for in.
type Known struct {
	Node       request.ClientID
	Cores      float64 // 0 if it is not known, as Memory
	Memory     int64   // bytes
	Image      string  // "" if it is not known
	Interfaces []KnownInterface
}

// KnownInterface is an interface of a Known.
type KnownInterface struct {
	Network string // "" for none
	Address string // "" for none
}

// unlinked is the network that interfaces are shown on that no link joins.
const unlinked = "croft_unlinked"

// Describe is a document that would ask for what there is: for each node a
// system that is deployed once, for each link a network. Numbered nodes of one
// name (web-0, web-1) are one system, like the first of them.
func Describe(networks []string, nodes []Known) *Document {
	d := &Document{}
	for _, n := range networks {
		d.Items = append(d.Items, &Aspect{Class: Network, Name: safeName(n), Features: []Feature{TextFeature("outbound", "no")}})
	}
	if slices.ContainsFunc(nodes, func(k Known) bool {
		return slices.ContainsFunc(k.Interfaces, func(i KnownInterface) bool { return i.Network == "" })
	}) {
		d.Items = append(d.Items, &Aspect{Class: Network, Name: unlinked, Features: []Feature{TextFeature("outbound", "no")}})
	}
	numbers := map[string]*Deploy{}
	var deploys []Item
	for _, k := range nodes {
		base, _ := systemOf(k.Node)
		name := safeName(base)
		if earlier := numbers[name]; earlier != nil {
			earlier.Number.Num++
			earlier.Number.Text = decimal(earlier.Number.Num)
			continue
		}
		d.Items = append(d.Items, k.system(name))
		deploy := &Deploy{System: name, Number: WholeFeature("", 1).Value}
		numbers[name] = deploy
		deploys = append(deploys, deploy)
	}
	d.Items = append(d.Items, deploys...)
	return d
}

func (k *Known) system(name string) *Aspect {
	s := &Aspect{Class: System, Name: name}
	if k.Cores > 0 {
		s.Features = append(s.Features, NumberFeature("cpu.count", k.Cores))
	}
	if k.Memory > 0 {
		s.Features = append(s.Features, WholeFeature("memory.size", k.Memory))
	}
	if k.Image != "" {
		s.Features = append(s.Features, TextFeature("disk.0.image.url", k.Image))
	}
	for n, i := range k.Interfaces {
		network := unlinked
		if i.Network != "" {
			network = safeName(i.Network)
		}
		s.Features = append(s.Features, TextFeature(fmt.Sprintf("net_interface.%d.connection", n), network))
		if i.Address != "" {
			s.Features = append(s.Features, TextFeature(fmt.Sprintf("net_interface.%d.ip", n), i.Address))
		}
	}
	return s
}
