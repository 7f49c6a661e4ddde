package tosca

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"croft/languages"
	"croft/languages/playbook"
	"croft/languages/tosca/model"
	"croft/languages/tosca/values"
	"croft/languages/tree"
	"croft/request"
)

// What a deployment may have at most.
const (
	maxInstances     = 20_000
	maxSubstitutions = 8 // within each other
)

// part is a service of a deployment: the one of the document, or one that
// substitutes a node of another.
type part struct {
	service *model.Service
	prefix  string // of the names of its nodes
	outer   *instance
}

// instance is one of the nodes that a template stands for.
type instance struct {
	part  *part
	node  *model.Node
	index int64
	id    request.ClientID
	role  role

	host    *instance     // that it runs on; a computer is its own
	targets []target      // what it needs
	inner   *part         // that substitutes it
	request *request.Node // of computers
	link    *request.Link // of networks
	ports   []*attachment // of computers and networks
	steps   []stepOf      // in order
	exists  bool          // a node that the slice has already
}

// target is an instance at the other end of a relationship.
type target struct {
	relationship *model.Relationship
	instance     *instance
}

// role is what becomes of an instance.
type role int

const (
	software role = iota // steps on its host
	computer             // a node
	network              // a link
	port                 // an interface
	volume               // disk of a node
	abstract             // another service in its place
)

// deployment makes a request of a service.
type deployment struct {
	ctx       context.Context
	playbooks playbook.Policy
	prepared  map[request.ClientID]bool // nodes that have a step that sees to Ansible
	source    *Source
	scope     languages.Scope
	templates []*model.Service
	parts     []*part
	instances []*instance
	of        map[*model.Node][]*instance
	ids       map[request.ClientID]bool
	request   request.Request
	resolve   func(values.Piece) (string, bool) // nil: references stay
	current   *stepContext
	addresses int // networks that were given addresses
}

// plan finds out what there is and what it needs.
func (d *deployment) plan(s *model.Service) {
	d.of, d.ids = map[*model.Node][]*instance{}, map[request.ClientID]bool{}
	d.expand(s, "", nil, 0)
	for _, i := range d.instances {
		d.classify(i)
	}
	for _, p := range d.parts {
		d.relate(p)
	}
	d.hosts()
}

// expand makes the instances of a service, and of those that substitute its
// nodes.
func (d *deployment) expand(s *model.Service, prefix string, outer *instance, depth int) *part {
	p := &part{service: s, prefix: prefix, outer: outer}
	d.parts = append(d.parts, p)
	s.SetRuntime(&runtime{d, p})
	for _, name := range s.Nodes.Names {
		n, _ := s.Nodes.Get(name)
		count, known := s.CountOf(n)
		if !known {
			s.Tell(n.Count, "", "how many nodes %s stands for is not known", name)
			continue
		}
		if len(d.instances)+int(count) > maxInstances {
			s.Tell(n.Entry, "", "the service has more than %d nodes", maxInstances)
			return p
		}
		for index := range count {
			i := &instance{part: p, node: n, index: index}
			i.id = d.name(prefix+name, n.Count != nil, index)
			d.instances = append(d.instances, i)
			d.of[n] = append(d.of[n], i)
			if n.Has("substitute", "substitutable") {
				i.role = abstract
				d.substitute(i, depth)
			}
		}
	}
	return p
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// name makes a client ID that nobody else has.
func (d *deployment) name(base string, counted bool, index int64) request.ClientID {
	base = strings.Trim(notInNames.ReplaceAllString(base, "-"), "-.")
	if base == "" {
		base = "node"
	}
	if counted {
		base += "-" + strconv.FormatInt(index, 10)
	}
	id := request.ClientID(base)
	for n := 2; d.ids[id]; n++ {
		id = request.ClientID(fmt.Sprintf("%s-%d", base, n))
	}
	d.ids[id] = true
	return id
}

// substitute finds a template of the archive that can stand for a node.
func (d *deployment) substitute(i *instance, depth int) {
	s, n := i.part.service, i.node
	if depth >= maxSubstitutions {
		s.Tell(n.Entry, "", "node %s: more than %d templates substitute within each other", n.Name, maxSubstitutions)
		return
	}
	for _, t := range d.templates {
		m := t.Substitution
		if m == nil || m.Type == nil || n.Type == nil || !sameType(m.Type, n.Type) {
			continue
		}
		if t.Unit == s.Unit || !t.Admits(n, i.index) {
			continue
		}
		inputs := map[string]any{}
		for property, input := range m.Properties {
			if v := n.Property(property, i.index); input != "" && v != nil && values.Known(v) {
				inputs[input] = values.Plain(v)
			}
		}
		own := *d.source
		own.Entry, own.Others = t.Unit.Name, nil
		result, err := own.Check(d.ctx, inputs, true)
		if err != nil || result.Service == nil {
			return
		}
		if !result.Valid() {
			for _, p := range result.Problems {
				if !p.Warning {
					s.Tell(n.Entry, p.Hint, "node %s is substituted by %s, which cannot be deployed: %s", n.Name, t.Unit.Name, p.What)
					break
				}
			}
			return
		}
		i.inner = d.expand(result.Service, string(i.id)+".", i, depth+1)
		return
	}
	s.Tell(n.Entry, "list a template with substitution_mappings of that type under Other-Definitions", "no template of the archive substitutes node %s of type %s", n.Name, typeName(n.Type))
}

// sameType reports whether a template that stands for a type can stand for a
// node of another. Files that were read twice have types of their own.
func sameType(offered, wanted *model.Type) bool {
	for at, steps := wanted, 0; at != nil && steps < 200; at, steps = at.Parent, steps+1 {
		if at == offered || at.Name == offered.Name && at.Unit != nil && offered.Unit != nil && at.Unit.Name == offered.Unit.Name {
			return true
		}
	}
	return false
}

// classify says what becomes of an instance.
func (d *deployment) classify(i *instance) {
	if i.role == abstract {
		return
	}
	t, n := i.node.Type, i.node
	switch {
	case t.IsNamed("Compute"), t.IsNamed("Abstract.Compute"):
		i.role = computer
		i.host = i
	case t.IsNamed("Network"):
		i.role = network
	case t.IsNamed("Port"):
		i.role = port
	case t.IsNamed("Storage.BlockStorage"):
		i.role = volume
	default:
		i.role = software
		for _, u := range unmade {
			if t.IsNamed(u.name) {
				i.part.service.Tell(n.Entry, u.instead, "node %s is of type %s, which is not made here", n.Name, typeName(t))
				break
			}
		}
	}
	if n.Has("select", "selectable") {
		d.choose(i)
	}
}

// unmade are types that a testbed has nothing for, and what does instead.
var unmade = []struct{ name, instead string }{
	{"Abstract.Storage", "attach a Storage.BlockStorage to a computer, or run an object store as software on one"},
	{"LoadBalancer", "run a load balancer as software on a computer"},
	{"Container.Application", "run the container as software on a computer"},
}

// choose finds what a selected node is: one that the slice has already, or
// else a host of the testbed that its node_filter and its properties tell.
func (d *deployment) choose(i *instance) {
	s, n := i.part.service, i.node
	switch i.role {
	case network: // a shared VLAN: see links.go
	case computer:
		for _, e := range d.scope.Existing {
			if e.Node == i.id {
				i.exists = true
			}
		}
		if !i.exists && !d.ofTestbed(i) {
			s.Tell(n.Entry, "select chooses among the nodes that the slice has already, by name; or among the hosts of the testbed, by a node_filter or properties of capabilities",
				"node %s is to be selected, and the slice has no node %s", n.Name, i.id)
		}
	default:
		s.Tell(n.Entry, "", "node %s of type %s cannot be selected: computers and networks can", n.Name, typeName(n.Type))
	}
}

// ofTestbed takes a selected computer for a host of the testbed. It reports
// false if nothing is said of that host.
func (d *deployment) ofTestbed(i *instance) bool {
	s, n := i.part.service, i.node
	i.request = &request.Node{ID: i.id, Place: d.place(s, n.Entry)}
	bare := *i.request
	if n.Filter != nil {
		(&wants{s: s, node: i.request}).filter(n.Filter.Node, n.Filter.Unit, i)
	}
	d.capabilities(i)
	return n.Filter != nil || !reflect.DeepEqual(bare, *i.request)
}

// relate finds the instances at the ends of relationships.
func (d *deployment) relate(p *part) {
	for _, name := range p.service.Nodes.Names {
		n, _ := p.service.Nodes.Get(name)
		for _, i := range d.of[n] {
			for _, r := range n.Out {
				for _, to := range d.targets(i, r) {
					i.targets = append(i.targets, target{r, to})
				}
			}
		}
	}
}

// targets are the instances that a relationship of an instance leads to.
func (d *deployment) targets(i *instance, r *model.Relationship) []*instance {
	s := i.part.service
	all := d.of[r.Target]
	if len(all) == 0 {
		if !r.Assignment.Optional {
			s.Tell(entryOf(r), "", "requirement %s of node %s: node %s stands for no node", r.Assignment.Name, i.node.Name, r.Target.Name)
		}
		return nil
	}
	count := int64(1)
	if r.Take > 0 {
		count = r.Take
	} else if r.Assignment.Count != nil {
		if c, ok := s.Evaluate(model.Assigned{Node: r.Assignment.Count, Unit: s.Unit}, &i.node.Entity, i.index).(int64); ok {
			count = c
		}
	}
	first := i.index
	if at := r.Assignment.Index; at != nil {
		v, ok := s.Evaluate(model.Assigned{Node: at, Unit: s.Unit}, &i.node.Entity, i.index).(int64)
		if !ok || v < 0 || v >= int64(len(all)) {
			s.Tell(at, "", "node %s has no index %s: there are %d", r.Target.Name, at.Short(), len(all))
			return nil
		}
		first = v
	}
	if count > int64(len(all)) {
		s.Tell(entryOf(r), "", "requirement %s of node %s wants %d nodes, and there are %d of %s", r.Assignment.Name, i.node.Name, count, len(all), r.Target.Name)
		count = int64(len(all))
	}
	var made []*instance
	for k := range count {
		to := all[(first+k)%int64(len(all))]
		made = append(made, d.within(to, r.Capability))
	}
	return made
}

// within goes to the node in a substituting service that has a capability of
// an abstract node.
func (d *deployment) within(i *instance, capability string) *instance {
	for steps := 0; i.inner != nil && steps < maxSubstitutions; steps++ {
		pair, ok := i.inner.service.Substitution.Capabilities[capability]
		if !ok {
			return i
		}
		n, ok := i.inner.service.Nodes.Get(pair[0])
		if !ok || len(d.of[n]) == 0 {
			return i
		}
		i, capability = d.of[n][0], pair[1]
	}
	return i
}

func entryOf(r *model.Relationship) *tree.Node {
	if r.Assignment.Entry != nil {
		return r.Assignment.Entry
	}
	return r.Source.Entry
}

// hosts finds the computer that each piece of software runs on.
func (d *deployment) hosts() {
	for n := 0; n < len(d.instances); n++ {
		i := d.instances[n]
		if i.role == software {
			i.host = d.hostOf(i, 0)
			if i.host == nil && d.hasSteps(i) {
				i.part.service.Tell(i.node.Entry, "give it a host: a requirement with a HostedOn relationship to a computer, or a type derived from Compute", "node %s of type %s runs on no computer", i.node.Name, typeName(i.node.Type))
			}
		}
	}
}

func (d *deployment) hostOf(i *instance, depth int) *instance {
	if i.host == nil && depth <= 100 {
		i.host = d.findHost(i, depth)
	}
	return i.host
}

func (d *deployment) findHost(i *instance, depth int) *instance {
	for _, t := range i.targets {
		if isHosting(t.relationship) {
			if t.instance.role == computer {
				return t.instance
			}
			if h := d.hostOf(t.instance, depth+1); h != nil {
				return h
			}
		}
	}
	for _, a := range i.node.Requirements {
		if !a.Fulfilled && a.IsHosting() {
			return d.newHost(i, a)
		}
	}
	if i.part.outer != nil && i.part.outer.host == nil {
		// A node of a substituting service, whose host is that of the whole.
		for r, pair := range i.part.service.Substitution.Requirements {
			if pair[0] != i.node.Name {
				continue
			}
			for _, t := range i.part.outer.targets {
				if t.relationship.Assignment.Name == r && t.instance.role == computer {
					return t.instance
				}
			}
		}
	}
	return nil
}

func isHosting(r *model.Relationship) bool {
	return r.Type.IsNamed("HostedOn") || r.Type == nil && r.Assignment.Name == "host" || r.Type != nil && strings.EqualFold(lastWord(r.Type.Name), "HostedOn")
}

func lastWord(s string) string {
	if i := strings.LastIndexAny(s, ".:"); i >= 0 {
		return s[i+1:]
	}
	return s
}

// newHost makes the computer that a requirement wants and the template has
// not; the testbed has it.
func (d *deployment) newHost(i *instance, a *model.Assignment) *instance {
	h := &instance{part: i.part, node: i.node, role: computer, id: d.name(string(i.id)+"-host", false, 0)}
	h.host = h
	h.request = d.wanted(h, i, a)
	d.instances = append(d.instances, h)
	return h
}

// order sorts the instances so that each comes after all that it needs.
func (d *deployment) order() []*instance {
	var sorted []*instance
	state := map[*instance]int{}
	var visit func(i *instance, way []string)
	visit = func(i *instance, way []string) {
		switch state[i] {
		case 2:
			return
		case 1:
			from := slices.Index(way, string(i.id))
			i.part.service.Tell(i.node.Entry, "", "nodes need each other in a circle: %s", strings.Join(append(way[max(0, from):], string(i.id)), " → "))
			return
		}
		state[i] = 1
		way = append(way, string(i.id))
		for _, t := range i.targets {
			visit(t.instance, way)
		}
		if i.inner != nil {
			for _, other := range d.instances {
				if other.part == i.inner {
					visit(other, way)
				}
			}
		}
		state[i] = 2
		sorted = append(sorted, i)
	}
	for _, i := range d.instances {
		visit(i, nil)
	}
	return sorted
}

// place is where something stands, for people who sent the document.
func (d *deployment) place(s *model.Service, n *tree.Node) request.Place {
	if n == nil {
		return request.Place{Path: "service_template"}
	}
	p := request.Place{Line: n.Line, Column: n.Column, Path: n.Path()}
	if s.Unit.Name != d.source.Entry {
		p.Path = filepath.ToSlash(s.Unit.Name) + ": " + p.Path
	}
	return p
}
