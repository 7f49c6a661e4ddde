package zapp

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/languages"
	"croft/request"
)

// compiler makes a request of an App.
type compiler struct {
	app      *App
	scope    languages.Scope
	has      map[request.ClientID]bool // nodes of the slice
	nodes    map[string]bool           // names of all instances
	problems []languages.Problem
}

func compile(app *App, scope languages.Scope) (*request.Request, []languages.Problem) {
	c := &compiler{app: app, scope: scope, has: map[request.ClientID]bool{}, nodes: map[string]bool{}}
	for _, e := range scope.Existing {
		c.has[e.Node] = true
	}
	for _, s := range app.Services {
		for i := range s.Total {
			name := instance(&s, i)
			if c.nodes[name] {
				c.wrong(s.place, fmt.Sprintf("two services would have a node called %s", name), "name one of them otherwise")
			}
			c.nodes[name] = true
		}
	}
	req := &request.Request{}
	link := request.Link{ID: Link, Place: app.place, Type: "lan", Existing: slices.Contains(scope.Links, Link)}
	elastic := c.elastic()
	for i := range app.Services {
		s := &app.Services[i]
		before := c.startedBefore(s)
		for k := range s.Total {
			id := request.ClientID(instance(s, k))
			if c.has[id] {
				if !link.Existing {
					link.Ends = append(link.Ends, request.End{Node: id, Interface: Interface(id), Place: s.place, Existing: true})
				}
				continue
			}
			if k >= s.Essential && !elastic {
				continue
			}
			if len(c.nodes) > 1 {
				link.Ends = append(link.Ends, request.End{Node: id, Interface: Interface(id), Place: s.place})
			}
			req.Nodes = append(req.Nodes, c.node(s, k))
			req.Steps = append(req.Steps, c.step(s, id, before))
		}
	}
	if len(req.Nodes) > 0 && (len(link.Ends) > 1 || link.Existing && len(link.Ends) > 0) {
		req.Links = append(req.Links, link)
	}
	return req, c.problems
}

// elastic reports whether nodes are asked for that the ZApp can do without.
func (c *compiler) elastic() bool {
	given, ok := c.scope.Inputs["elastic"]
	return !ok || fmt.Sprint(given) != "false"
}

// instance is the name of a node of a service.
func instance(s *Service, number int) string { return s.Name + strconv.Itoa(number) }

// Instance is a node that a service may have.
type Instance struct {
	Service   *Service
	Number    int // from 0
	Node      request.ClientID
	Essential bool
}

// Instances lists the nodes that a ZApp may have, in its own order.
func (a *App) Instances() []Instance {
	var list []Instance
	for i := range a.Services {
		s := &a.Services[i]
		for k := range s.Total {
			list = append(list, Instance{Service: s, Number: k, Node: request.ClientID(instance(s, k)), Essential: k < s.Essential})
		}
	}
	return list
}

// Interface is the name of a node's interface to the link.
func Interface(node request.ClientID) request.ClientID { return node + ":0" }

// StepOf is the name of the step that starts a node's service.
func StepOf(node request.ClientID) request.StepName { return request.StepName(node) + ".service" }

func (c *compiler) wrong(at request.Place, what, hint string) {
	// Every instance of a service has the same mistakes.
	if p := (languages.Problem{Place: at, What: what, Hint: hint}); !slices.Contains(c.problems, p) {
		c.problems = append(c.problems, p)
	}
}

// startedBefore are the steps of the services that come just before in the
// start order; those before them come before. Nothing waits for nodes that may
// be missing.
func (c *compiler) startedBefore(s *Service) []request.StepName {
	var order float64
	found := false
	for _, o := range c.app.Services {
		if o.Order < s.Order && o.Essential > 0 && (!found || o.Order > order) {
			order, found = o.Order, true
		}
	}
	var before []request.StepName
	for _, o := range c.app.Services {
		for i := range o.Essential {
			if id := request.ClientID(instance(&o, i)); found && o.Order == order && !c.has[id] {
				before = append(before, StepOf(id))
			}
		}
	}
	return before
}

func (c *compiler) node(s *Service, number int) request.Node {
	id := request.ClientID(instance(s, number))
	n := request.Node{
		ID: id, Place: s.place,
		Image:    request.Image{Name: s.Image, Place: s.imagePlace},
		Capacity: capacity.Amount{Cores: s.Cores, Memory: s.Memory},
		Optional: number >= s.Essential, Preemptible: number >= s.Essential,
	}
	if len(c.nodes) > 1 {
		n.Interfaces = []request.Interface{{ID: Interface(id), Place: s.place}}
	}
	for _, v := range s.Environment {
		n.Env = append(n.Env, request.Variable{Name: v.Name, Value: c.value(v, id)})
	}
	for _, p := range s.Ports {
		n.Ports = append(n.Ports, request.Port{Name: p.Name, Number: p.Number, Protocol: p.Protocol, URL: p.URL, Place: p.place})
	}
	return n
}

// step starts the service of a node. A command that is left open is that of
// the image.
func (c *compiler) step(s *Service, id request.ClientID, before []request.StepName) request.Step {
	return request.Step{
		Name: StepOf(id), Node: id, Place: s.place, After: before,
		Service: &request.Service{
			Run:     request.Run{Command: s.Command, Dir: s.WorkDir},
			Restart: c.app.Autorestart && !s.Monitor,
			Ends:    s.Monitor,
		},
	}
}

var variable = regexp.MustCompile(`\{([a-z_]+)(?:#([^{}]*))?\}`)

// value puts what is known in place of the variables of a text, and attributes
// of nodes in place of those that are known later.
func (c *compiler) value(v Variable, self request.ClientID) request.Value {
	var parts request.Value
	text := func(s string) {
		if s != "" {
			parts = append(parts, request.Part{Text: s})
		}
	}
	at := 0
	for _, m := range variable.FindAllStringSubmatchIndex(v.Value, -1) {
		text(v.Value[at:m[0]])
		at = m[1]
		name, whose := v.Value[m[2]:m[3]], ""
		if m[4] >= 0 {
			whose = v.Value[m[4]:m[5]]
		}
		part, known := c.known(name, whose, self)
		if !known {
			c.unknown(v, name, whose)
		}
		parts = append(parts, part)
	}
	text(v.Value[at:])
	return parts
}

// known is what a variable stands for.
func (c *compiler) known(name, whose string, self request.ClientID) (request.Part, bool) {
	attribute := func(node request.ClientID, a request.AttributeName) (request.Part, bool) {
		return request.Part{Attribute: &request.Attribute{Node: node, Name: a}}, true
	}
	if name == "dns_name" {
		if whose == "self" {
			return attribute(self, request.AttrName)
		}
		if !c.nodes[whose] {
			return request.Part{}, false
		}
		return attribute(request.ClientID(whose), request.AttrName)
	}
	if whose != "" {
		return request.Part{}, false
	}
	if given, ok := c.scope.Inputs[name]; ok && slices.Contains(inputs, name) {
		return request.Part{Text: fmt.Sprint(given)}, true
	}
	switch name {
	case "user_name":
		return attribute(self, request.AttrOwner)
	case "execution_id", "execution_name":
		return attribute(self, request.AttrSliceName)
	case "deployment_name":
		if len(c.scope.Managers) > 0 {
			return request.Part{Text: string(c.scope.Managers[0].Authority)}, true
		}
		return request.Part{Text: "croft"}, true
	}
	return request.Part{}, false
}

var inputs = []string{"user_name", "execution_id", "execution_name", "deployment_name"}

func (c *compiler) unknown(v Variable, name, whose string) {
	if name == "dns_name" {
		var all []string
		for n := range c.nodes {
			all = append(all, n)
		}
		slices.SortFunc(all, cmp.Compare)
		hint := "instances are called " + strings.Join(all[:min(len(all), 5)], ", ")
		if near := inventory.Nearest(whose, all); len(near) > 0 {
			hint = "did you mean " + near[0] + "?"
		}
		c.wrong(v.place, fmt.Sprintf("%s names %q, which is no instance of a service", v.Name, whose), hint)
		return
	}
	c.wrong(v.place, fmt.Sprintf("%s has a variable {%s} that nobody knows", v.Name, name), "known are "+strings.Join(inputs, ", ")+", dns_name#NAME")
}
