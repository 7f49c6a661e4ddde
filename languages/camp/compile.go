package camp

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/languages"
	"croft/languages/tree"
	"croft/request"
)

// Namespace is that of the types that this platform knows.
const Namespace = "org.testbed:"

// What this platform knows, without the name space.
var (
	artifactTypes       = []string{"script", "service", "archive", "file"}
	requirementTypes    = []string{"HostOn", "DependsOn"}
	characteristicTypes = []string{"Node", "Link"}
	nodeAttributes      = []string{"count", "image", "os", "distribution", "version", "cores", "memory", "disk", "sliver_type", "hardware_type",
		"architecture", "site", "exclusive", "links", "environment"}
	linkAttributes     = []string{"capacity", "latency", "loss"}
	artifactAttributes = []string{"path", "environment", "root"}
)

// maxNodes bounds what a plan may ask for.
const maxNodes = 5000

// defaultLink joins the nodes of a plan that has no links.
const defaultLink request.ClientID = "lan"

type compiler struct {
	plan     *Plan
	req      *request.Request
	hosts    map[string][]request.ClientID // service → its nodes
	links    map[string]int                // service → index in req.Links
	index    map[request.ClientID]int      // node → index in req.Nodes
	steps    map[string][]request.StepName // artifact → its steps
	problems []languages.Problem
}

func compile(plan *Plan, _ languages.Scope) (*request.Request, []languages.Problem) {
	c := &compiler{plan: plan, req: &request.Request{}, hosts: map[string][]request.ClientID{}, links: map[string]int{},
		index: map[request.ClientID]int{}, steps: map[string][]request.StepName{}}
	wants := map[string]*Characteristic{} // services that are nodes
	for i := range plan.Services {
		c.link(&plan.Services[i])
	}
	for i := range plan.Services {
		s := &plan.Services[i]
		if n := c.node(s); n != nil {
			wants[s.ID] = n
		}
	}
	c.join(wants)
	for _, a := range c.ordered() {
		c.artifact(a)
	}
	if len(c.req.Nodes) == 0 && len(c.problems) == 0 {
		c.wrong(request.Place{}, "the plan asks for no nodes", "a service with the characteristic "+Namespace+"Node")
	}
	return c.req, c.problems
}

func (c *compiler) wrong(at request.Place, what, hint string) {
	c.problems = append(c.problems, languages.Problem{Place: at, What: what, Hint: hint})
}

// known takes the name space off a type that this platform knows.
func (c *compiler) known(what, name string, all []string, at request.Place) (string, bool) {
	short, own := strings.CutPrefix(name, Namespace)
	if own && slices.Contains(all, short) {
		return short, true
	}
	hint := fmt.Sprintf("this platform has %s%s", Namespace, strings.Join(all, ", "+Namespace))
	if near := inventory.Nearest(short, all); len(near) > 0 {
		hint = "did you mean " + Namespace + near[0] + "?"
	}
	c.wrong(at, fmt.Sprintf("the %s %q is unresolved: nothing here provides it", what, name), hint)
	return "", false
}

// attribute finds an attribute that may be written with or without the name
// space.
func attribute(n *tree.Node, name string) *tree.Node {
	if v := n.Get(Namespace + name); v != nil {
		return v
	}
	return n.Get(name)
}

// attributes checks that nothing is there that nobody knows.
func (c *compiler) attributes(n *tree.Node, known []string, besides ...string) {
	for _, e := range n.Entries {
		name := strings.TrimPrefix(e.Key.Text, Namespace)
		if slices.Contains(known, name) || slices.Contains(besides, e.Key.Text) {
			continue
		}
		hint := ""
		if near := inventory.Nearest(name, known); len(near) > 0 {
			hint = "did you mean " + Namespace + near[0] + "?"
		}
		c.wrong(placeOf(e.Key), fmt.Sprintf("there is no attribute %q", e.Key.Text), hint)
	}
}

// number reads a number, which may be written as a string.
func (c *compiler) number(n *tree.Node, name string, least, most float64) float64 {
	v := attribute(n, name)
	if v == nil {
		return 0
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(v.Text), 64)
	if err != nil || math.IsNaN(x) || x < least || x > most {
		c.wrong(placeOf(v), fmt.Sprintf("%s is %s", name, v.Short()), fmt.Sprintf("a number from %g to %g", least, most))
		return 0
	}
	return x
}

func text(n *tree.Node, name string) string {
	if v := attribute(n, name); v != nil && v.Kind != tree.List && v.Kind != tree.Map {
		return v.Text
	}
	return ""
}

// is finds the characteristic of a type.
func (s *Service) is(typ string) *Characteristic {
	for i := range s.Characteristics {
		if s.Characteristics[i].Type == Namespace+typ {
			return &s.Characteristics[i]
		}
	}
	return nil
}

func (c *compiler) link(s *Service) {
	k := s.is("Link")
	if k == nil {
		return
	}
	c.attributes(k.attributes, linkAttributes, "characteristic_type")
	l := request.Link{ID: request.ClientID(s.ID), Place: s.place, Type: "lan"}
	p := request.Property{
		Capacity:  capacity.Kbps(c.number(k.attributes, "capacity", 1, 1e12)),
		LatencyMs: c.number(k.attributes, "latency", 0, 1e6),
		Loss:      c.number(k.attributes, "loss", 0, 100),
		Place:     k.place,
	}
	if p.Capacity != 0 || p.LatencyMs != 0 || p.Loss != 0 {
		l.Properties = append(l.Properties, p)
	}
	c.links[s.ID] = len(c.req.Links)
	c.req.Links = append(c.req.Links, l)
}

// node makes the nodes of a service.
func (c *compiler) node(s *Service) *Characteristic {
	for i := range s.Characteristics {
		c.known("characteristic type", s.Characteristics[i].Type, characteristicTypes, s.Characteristics[i].place)
	}
	k := s.is("Node")
	if s.Href != "" {
		typ, ok := fromHref(s.Href)
		if !ok {
			c.wrong(s.place, fmt.Sprintf("the service %q is unresolved: %q is no component template of this platform", s.ID, s.Href), "")
			return nil
		}
		c.add(s, request.Node{SliverType: typ}, 1)
		return &Characteristic{place: s.place}
	}
	if k == nil {
		if s.is("Link") == nil && len(s.Characteristics) == 0 {
			c.wrong(s.place, fmt.Sprintf("the service %q says neither what it is like nor where it is", s.ID), "characteristics, or a href")
		}
		return nil
	}
	c.attributes(k.attributes, nodeAttributes, "characteristic_type")
	at := k.attributes
	n := request.Node{
		SliverType:   request.SliverType(text(at, "sliver_type")),
		Architecture: text(at, "architecture"),
		Site:         text(at, "site"),
		Image: request.Image{Name: text(at, "image"), Place: k.place,
			System: request.System{OS: text(at, "os"), Distribution: text(at, "distribution"), Version: text(at, "version")}},
		Capacity: capacity.Amount{
			Cores:  capacity.Cores(math.Ceil(c.number(at, "cores", 0, 1e6) * float64(capacity.Core))),
			Memory: capacity.MiB(c.number(at, "memory", 0, 1e12)),
			Disk:   capacity.MiB(c.number(at, "disk", 0, 1e12)),
		},
		Env: c.environment(attribute(at, "environment")),
	}
	if n.Image.IsZero() {
		n.Image = request.Image{}
	}
	if t := text(at, "hardware_type"); t != "" {
		n.HardwareTypes = []string{t}
	}
	switch e := attribute(at, "exclusive"); {
	case e == nil:
	case e.Text == "true":
		n.Exclusive = request.Yes
	case e.Text == "false":
		n.Exclusive = request.No
	default:
		c.wrong(placeOf(e), fmt.Sprintf("exclusive is %s", e.Short()), "true or false")
	}
	count := 1
	if attribute(at, "count") != nil {
		x := c.number(at, "count", 1, maxNodes)
		if count = int(x); float64(count) != x {
			c.wrong(placeOf(attribute(at, "count")), fmt.Sprintf("count is %g", x), "a whole number")
		}
	}
	c.add(s, n, count)
	return k
}

// fromHref is the sliver type of a component template of the platform, by its
// URI.
func fromHref(href string) (request.SliverType, bool) {
	u, err := url.Parse(href)
	if err != nil || !strings.Contains(u.Path, "platformComponentTemplates/") {
		return "", false
	}
	name := path.Base(u.Path)
	return request.SliverType(name), name != "" && name != "platformComponentTemplates"
}

func nodeName(service string, number, count int) request.ClientID {
	if count == 1 {
		return request.ClientID(service)
	}
	return request.ClientID(fmt.Sprintf("%s-%d", service, number))
}

func (c *compiler) add(s *Service, n request.Node, count int) {
	if len(c.req.Nodes)+count > maxNodes {
		c.wrong(s.place, fmt.Sprintf("the plan asks for more than %d nodes", maxNodes), "")
		return
	}
	n.Place = s.place
	for i := range count {
		n := n
		n.ID = nodeName(s.ID, i, count)
		if _, taken := c.index[n.ID]; taken {
			c.wrong(s.place, fmt.Sprintf("two nodes would be called %s", n.ID), "give one of the services another id")
			return
		}
		c.index[n.ID] = len(c.req.Nodes)
		c.hosts[s.ID] = append(c.hosts[s.ID], n.ID)
		c.req.Nodes = append(c.req.Nodes, n)
	}
}

// environment reads a map of names and values.
func (c *compiler) environment(n *tree.Node) []request.Variable {
	if n == nil {
		return nil
	}
	if !n.Is(tree.Map) {
		c.wrong(placeOf(n), "the environment is "+n.Kind.String(), "a map of names and values")
		return nil
	}
	var all []request.Variable
	for _, e := range n.Entries {
		if e.Value.Kind == tree.List || e.Value.Kind == tree.Map || e.Key.Text == "" || strings.ContainsAny(e.Key.Text, "=\x00") {
			c.wrong(placeOf(e.Value), fmt.Sprintf("%s is no variable", e.Key.Short()), "NAME: value")
			continue
		}
		all = append(all, request.Variable{Name: e.Key.Text, Value: request.Text(e.Value.Text)})
	}
	return all
}

// join gives the nodes interfaces to the links that they name, or to a LAN of
// all if the plan has no links.
func (c *compiler) join(wants map[string]*Characteristic) {
	if len(c.links) == 0 && len(c.req.Nodes) > 1 {
		c.links[string(defaultLink)] = 0
		c.req.Links = append(c.req.Links, request.Link{ID: defaultLink, Type: "lan", Place: c.req.Nodes[0].Place})
		for i := range c.req.Nodes {
			c.plug(i, 0)
		}
		return
	}
	for _, s := range c.plan.Services {
		k := wants[s.ID]
		if k == nil || k.attributes == nil {
			continue
		}
		v := attribute(k.attributes, "links")
		if v == nil {
			continue
		}
		names := v.Items
		if !v.Is(tree.List) {
			names = []*tree.Node{v}
		}
		for _, name := range names {
			l, ok := c.links[strings.TrimPrefix(name.Text, "id:")]
			if !ok {
				c.wrong(placeOf(name), fmt.Sprintf("%s is no link of the plan", name.Short()), "links are services with the characteristic "+Namespace+"Link")
				continue
			}
			for _, id := range c.hosts[s.ID] {
				c.plug(c.index[id], l)
			}
		}
	}
	for i := range c.req.Links {
		if l := &c.req.Links[i]; len(l.Ends) < 2 {
			c.wrong(l.Place, fmt.Sprintf("the link %s joins %d nodes", l.ID, len(l.Ends)), Namespace+"links of the nodes that it joins name it")
		}
	}
}

func (c *compiler) plug(node, link int) {
	n, l := &c.req.Nodes[node], &c.req.Links[link]
	name := request.ClientID(fmt.Sprintf("%s:%d", n.ID, len(n.Interfaces)))
	n.Interfaces = append(n.Interfaces, request.Interface{ID: name, Place: n.Place})
	l.Ends = append(l.Ends, request.End{Node: n.ID, Interface: name, Place: l.Place})
}

// ordered sorts artifacts so that those that others depend on come before
// them.
func (c *compiler) ordered() []*Artifact {
	const open, begun, done = 0, 1, 2
	state := map[string]int{}
	byID := map[string]*Artifact{}
	for i := range c.plan.Artifacts {
		byID[c.plan.Artifacts[i].ID] = &c.plan.Artifacts[i]
	}
	var list []*Artifact
	var visit func(a *Artifact) bool
	visit = func(a *Artifact) bool {
		switch state[a.ID] {
		case begun:
			return false
		case done:
			return true
		}
		state[a.ID] = begun
		for _, r := range a.Requirements {
			if b := byID[r.Service]; r.Type == Namespace+"DependsOn" && b != nil && !visit(b) {
				c.wrong(r.place, fmt.Sprintf("artifact %s depends on itself by way of %s", a.ID, b.ID), "")
				state[a.ID] = done
				return true
			}
		}
		state[a.ID] = done
		list = append(list, a)
		return true
	}
	for i := range c.plan.Artifacts {
		visit(&c.plan.Artifacts[i])
	}
	return list
}

// artifact makes steps of an artifact, one for each node that it goes to.
func (c *compiler) artifact(a *Artifact) {
	typ, ok := c.known("artifact type", a.Type, artifactTypes, a.place)
	if ok {
		c.attributes(a.attributes, artifactAttributes, "id", "name", "description", "tags", "artifact_type", "content", "requirements")
	}
	var hosts []request.ClientID
	var after []request.StepName
	for _, r := range a.Requirements {
		kind, known := c.known("requirement type", r.Type, requirementTypes, r.place)
		switch {
		case !known:
			ok = false
		case kind == "DependsOn":
			if c.steps[r.Service] == nil && !slices.ContainsFunc(c.plan.Artifacts, func(b Artifact) bool { return b.ID == r.Service }) {
				c.wrong(r.place, fmt.Sprintf("the requirement is unresolved: there is no artifact %q", r.Service), "fulfillment: id:ARTIFACT")
			}
			after = append(after, c.steps[r.Service]...)
		case r.Href != "":
			c.wrong(r.place, fmt.Sprintf("the requirement is unresolved: %q is no node of the plan", r.Href), "fulfillment: { href: … } makes one of a component template")
		case len(c.hosts[r.Service]) == 0:
			c.wrong(r.place, fmt.Sprintf("the requirement is unresolved: %q is no service with the characteristic %sNode", r.Service, Namespace), "")
		default:
			hosts = append(hosts, c.hosts[r.Service]...)
		}
	}
	if !ok || len(c.problems) > 0 {
		return
	}
	if len(hosts) == 0 {
		if len(c.req.Nodes) != 1 {
			c.wrong(a.place, fmt.Sprintf("artifact %s does not say where it goes", a.ID), "a requirement "+Namespace+"HostOn")
			return
		}
		hosts = []request.ClientID{c.req.Nodes[0].ID}
	}
	slices.SortFunc(hosts, func(x, y request.ClientID) int { return cmp.Compare(c.index[x], c.index[y]) })
	for _, host := range slices.Compact(hosts) {
		s := request.Step{Name: request.StepName(fmt.Sprintf("%s.%s", host, a.ID)), Node: host, Place: a.place, After: after,
			Env: c.environment(attribute(a.attributes, "environment")), Root: text(a.attributes, "root") == "true"}
		if !c.fill(&s, a, typ) {
			return
		}
		c.req.Steps = append(c.req.Steps, s)
		c.steps[a.ID] = append(c.steps[a.ID], s.Name)
	}
}

// fill says what a step does.
func (c *compiler) fill(s *request.Step, a *Artifact, typ string) bool {
	to := text(a.attributes, "path")
	if a.URL != "" && typ != "archive" {
		c.wrong(a.place, fmt.Sprintf("artifact %s is at %s, where it is not fetched from", a.ID, a.URL), "put it into the package, or make it an "+Namespace+"archive")
		return false
	}
	if to != "" && !path.IsAbs(to) {
		c.wrong(a.place, fmt.Sprintf("path %q is not absolute", to), "")
		return false
	}
	// Scripts lie where they can be looked at.
	file := "/opt/camp/" + a.ID + "/" + cmp.Or(path.Base(a.File), "content")
	if a.File == "" {
		file = "/opt/camp/" + a.ID + "/content"
	}
	switch typ {
	case "script", "service":
		if to != "" {
			file = to
		}
		s.Files = []request.File{{Path: file, Mode: 0o755, Content: a.Content}}
		run := request.Run{Args: []string{file}}
		if typ == "script" {
			s.Run = &run
		} else {
			s.Service = &request.Service{Run: run, Restart: true}
		}
	case "archive":
		s.Install = &request.Install{URL: cmp.Or(a.URL, a.File, a.ID), Content: a.Content, Path: cmp.Or(to, "/opt/camp/"+a.ID)}
		if a.URL != "" {
			s.Install.Content = nil
		}
	case "file":
		if to == "" {
			c.wrong(a.place, fmt.Sprintf("artifact %s does not say where it goes", a.ID), Namespace+"path: /…")
			return false
		}
		s.Files = []request.File{{Path: to, Mode: 0o644, Content: a.Content}}
	}
	return true
}
