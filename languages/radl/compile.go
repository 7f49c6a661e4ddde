package radl

import (
	"context"
	"fmt"
	"strings"

	"croft/languages"
	"croft/languages/playbook"
	"croft/request"
	"croft/urn"
)

// maxNodes bounds the machines of one document.
const maxNodes = 20000

// Language reads RADL. The zero Language is ready for use.
type Language struct {
	Playbooks playbook.Policy
}

var _ languages.Language = Language{}

var version1 = languages.Version{Type: "RADL", Version: "1", Extensions: []string{}}

// Versions lists RADL 1.
func (Language) Versions() []languages.Version { return []languages.Version{version1} }

// MediaType labels RADL in the store.
func (Language) MediaType() string { return MediaType }

// Detect reports whether a document looks like RADL: after comments comes one
// of its keywords, or a JSON list of objects with its classes.
func (Language) Detect(document []byte) bool { return detect(document) }

// Compile reads a document: machines become nodes, networks become LANs, and
// recipes steps of the start-up graph.
func (l Language) Compile(ctx context.Context, document []byte, scope languages.Scope) (*languages.Compiled, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, s, problems := parse(document, scope.Inputs)
	if len(problems) > 0 {
		return nil, &languages.Error{Problems: inOrder(problems)}
	}
	c := &compiler{language: l, scope: scope, document: d, source: s, request: &request.Request{}, told: map[string]bool{}}
	c.secrets()
	c.define(readEarlier(scope.Documents))
	c.compile(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(c.problems) > 0 {
		return nil, &languages.Error{Problems: inOrder(c.problems)}
	}
	return &languages.Compiled{Version: version1, Request: c.request, Warnings: inOrder(c.warnings)}, nil
}

// compiler makes a request of a document.
type compiler struct {
	language    Language
	scope       languages.Scope
	document    *Document
	source      *Source
	definitions *definitions

	request  *request.Request
	problems []languages.Problem
	warnings []languages.Problem
	told     map[string]bool // warnings that were given

	plans    map[string]*plan
	lans     map[string]*lan
	lanOrder []*lan
	machines []machine
}

// machine is a node of the request with what it was made of.
type machine struct {
	plan   *plan
	number int // of the machines of its system
	node   int // index in the request
}

func (c *compiler) refuse(at int, what, hint string) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, languages.Problem{Place: c.source.Place(at), What: what, Hint: hint})
	}
}

// keep tells that something is kept and has no effect, or another than was
// written; once for every text.
func (c *compiler) keep(p request.Place, what, hint string) {
	if c.told[what] || len(c.warnings) >= maxProblems {
		return
	}
	c.told[what] = true
	c.warnings = append(c.warnings, problemAt(p, what, hint))
}

func (c *compiler) compile(ctx context.Context) {
	c.plans, c.lans = map[string]*plan{}, map[string]*lan{}
	next := c.numbers()
	total := 0.0
	for _, item := range c.document.Items {
		d, ok := item.(*Deploy)
		if !ok {
			continue
		}
		def := c.definitions.aspects[System][d.System]
		if def == nil {
			continue // told by define
		}
		if !c.ours(d) {
			continue
		}
		if total += d.Number.Num; total > maxNodes {
			c.refuse(d.Number.Offset, fmt.Sprintf("more than %d machines", maxNodes), "")
			return
		}
		p := c.plans[d.System]
		if p == nil {
			p = c.plan(def, d)
			c.plans[d.System] = p
		}
		for range int(d.Number.Num) {
			c.machine(p, next[d.System])
			next[d.System]++
		}
		if ctx.Err() != nil {
			return
		}
	}
	c.links() // also after mistakes, so that all are told
	c.startup()
	c.unused()
}

// numbers says, for systems, which number their next machine gets: one more
// than those that the slice has.
func (c *compiler) numbers() map[string]int {
	next := map[string]int{}
	for _, e := range c.scope.Existing {
		name := string(e.Node)
		i := strings.LastIndexByte(name, '-')
		if i < 0 {
			continue
		}
		if n, ok := index(name[i+1:]); ok {
			next[name[:i]] = max(next[name[:i]], n+1)
		}
	}
	return next
}

// ours reports whether a deploy is for this aggregate: it names no cloud, or
// this one.
func (c *compiler) ours(d *Deploy) bool {
	if d.Cloud == "" {
		return true
	}
	var names []string
	for _, m := range c.scope.Managers {
		for _, name := range []string{m.String(), string(m.Authority), string(m.Authority.Top())} {
			if strings.EqualFold(name, d.Cloud) {
				return true
			}
			names = append(names, name)
		}
	}
	if strings.EqualFold(d.Cloud, cloudType) {
		return true
	}
	hint := "leave it out"
	if len(names) > 1 {
		hint += ", or call it " + names[1]
	}
	c.refuse(d.Offset, fmt.Sprintf("there is no cloud %q here", d.Cloud), hint)
	return false
}

// cloudType is what recipes are told of the kind of cloud that they run in.
const cloudType = "croft"

// manager is the component manager as nodes name it.
func (c *compiler) manager() urn.URN {
	if len(c.scope.Managers) == 0 {
		return urn.URN{}
	}
	return c.scope.Managers[0]
}

// machine adds a node.
func (c *compiler) machine(p *plan, number int) {
	n := p.node
	n.ID = request.ClientID(fmt.Sprintf("%s-%d", p.name, number))
	n.Manager = c.manager()
	n.Interfaces = nil
	n.Aliases = nil
	for i := range p.interfaces {
		f := &p.interfaces[i]
		if f.dns != "" {
			n.Aliases = append(n.Aliases, strings.ReplaceAll(f.dns, "#N#", fmt.Sprint(number)))
		}
		if f.lan == nil {
			continue
		}
		own := request.Interface{ID: request.ClientID(fmt.Sprintf("%s:if%d", n.ID, i)), Place: f.place}
		f.lan.ends = append(f.lan.ends, lanEnd{machine: len(c.machines), iface: len(n.Interfaces), want: f.ip, place: f.place})
		n.Interfaces = append(n.Interfaces, own)
	}
	c.machines = append(c.machines, machine{plan: p, number: number, node: len(c.request.Nodes)})
	c.request.Nodes = append(c.request.Nodes, n)
}

// unused tells of what the document defines for machines that it does not ask
// for here.
func (c *compiler) unused() {
	for _, item := range c.document.Items {
		a, ok := item.(*Aspect)
		if !ok || a.Reference {
			continue
		}
		switch a.Class {
		case Ansible:
			c.keep(c.place(a, a.Offset, "ansible "+a.Name), fmt.Sprintf("the ansible host %s is kept and not used: recipes run in the nodes themselves", a.Name), "")
		case Network:
			for i := range a.Features {
				c.networkFeature(a, &a.Features[i])
			}
		}
	}
}
