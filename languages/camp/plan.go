package camp

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strings"

	"croft/languages"
	"croft/languages/archive"
	"croft/languages/camp/pdp"
	"croft/languages/tree"
	"croft/request"
)

// Plan is a deployment plan as it is written.
type Plan struct {
	Name, Description, Origin string
	Tags                      []string
	Artifacts                 []Artifact
	Services                  []Service // also those written in the place of a fulfillment
	Package                   *pdp.Package
	Warnings                  []languages.Problem
}

// Artifact is a part of the application.
type Artifact struct {
	ID, Name, Description string
	Tags                  []string
	Type                  string
	Content               []byte
	URL                   string // of content that is elsewhere
	File                  string // the content's name in the package
	Requirements          []Requirement
	attributes            *tree.Node
	place                 request.Place
}

// Requirement is what an artifact needs.
type Requirement struct {
	Type    string
	Service string // id of the service, or artifact, that fulfills it
	Href    string // of a resource of the platform that does
	place   request.Place
}

// Service is something that the platform provides to the application.
type Service struct {
	ID, Name, Description string
	Tags                  []string
	Href                  string
	Characteristics       []Characteristic
	place                 request.Place
}

// Characteristic says what a service is like.
type Characteristic struct {
	Type       string
	attributes *tree.Node
	place      request.Place
}

// Attribute is an attribute of a characteristic as text, in whatever name space
// it is written; "" if it has none.
func (c *Characteristic) Attribute(name string) string {
	v := attribute(c.attributes, name)
	if v == nil || v.Kind == tree.List || v.Kind == tree.Map {
		return ""
	}
	return v.Text
}

// maxPlan bounds what a plan may hold.
const maxPlan = 2000

type parser struct {
	plan     *Plan
	read     func(string) ([]byte, error)
	problems []languages.Problem
	ids      map[string]bool
}

// Parse reads a plan. Files of its package are read by read, nil if it came
// without one. Errors are *languages.Error with all that is wrong.
func Parse(document []byte, read func(name string) ([]byte, error)) (*Plan, error) {
	root, err := tree.Parse(document, tree.Limits{Bytes: 16 << 20, Nodes: 200_000, Depth: 40})
	if err != nil {
		var wrong *tree.Error
		if !errors.As(err, &wrong) {
			return nil, err
		}
		return nil, &languages.Error{Problems: []languages.Problem{{Place: request.Place{Line: wrong.Line, Column: wrong.Column}, What: wrong.What, Hint: wrong.Hint}}}
	}
	p := &parser{plan: &Plan{}, read: read, ids: map[string]bool{}}
	p.top(root)
	if len(p.problems) > 0 {
		return nil, &languages.Error{Problems: p.problems}
	}
	return p.plan, nil
}

func placeOf(n *tree.Node) request.Place {
	return request.Place{Line: n.Line, Column: n.Column, Path: n.Path()}
}

func (p *parser) wrong(n *tree.Node, what, hint string) {
	p.problems = append(p.problems, languages.Problem{Place: placeOf(n), What: what, Hint: hint})
}

func (p *parser) top(root *tree.Node) {
	if !root.Is(tree.Map) {
		p.wrong(root, "a plan is a map, this is "+root.Kind.String(), "")
		return
	}
	switch v := root.Get("camp_version"); {
	case v == nil:
		p.wrong(root, "the plan does not say its version", "camp_version: CAMP 1.1")
	case v.Text != "CAMP 1.1":
		p.wrong(v, fmt.Sprintf("plans of %q are not read", v.Text), "CAMP 1.1 is")
	}
	p.plan.Name, p.plan.Description, p.plan.Tags = p.common(root)
	p.plan.Origin = p.text(root.Get("origin"))
	artifacts, services := p.list(root.Get("artifacts")), p.list(root.Get("services"))
	if len(artifacts)+len(services) > maxPlan {
		p.wrong(root, fmt.Sprintf("the plan has %d artifacts and services", len(artifacts)+len(services)), fmt.Sprintf("at most %d", maxPlan))
		return
	}
	for _, n := range services {
		p.service(n, "")
	}
	for i, n := range artifacts {
		p.artifact(n, i)
	}
	p.unused(root, "camp_version", "name", "description", "tags", "origin", "artifacts", "services")
}

// unused warns of attributes that nobody looks at. Those with a colon are
// extensions, which are allowed and mean something elsewhere.
func (p *parser) unused(n *tree.Node, known ...string) {
	for _, e := range n.Entries {
		used := false
		for _, k := range known {
			used = used || e.Key.Text == k
		}
		if !used {
			p.plan.Warnings = append(p.plan.Warnings, languages.Problem{Place: placeOf(e.Value),
				What: fmt.Sprintf("the attribute %q is kept, but means nothing here", e.Key.Text)})
		}
	}
}

func (p *parser) text(n *tree.Node) string {
	if n == nil {
		return ""
	}
	if n.Kind == tree.List || n.Kind == tree.Map {
		p.wrong(n, "a string is wanted, this is "+n.Kind.String(), "")
		return ""
	}
	return n.Text
}

func (p *parser) list(n *tree.Node) []*tree.Node {
	if n == nil || n.Kind == tree.Null {
		return nil
	}
	if !n.Is(tree.List) {
		p.wrong(n, "a list is wanted, this is "+n.Kind.String(), "")
	}
	return n.Items
}

func (p *parser) common(n *tree.Node) (name, description string, tags []string) {
	for _, t := range p.list(n.Get("tags")) {
		tags = append(tags, p.text(t))
	}
	return p.text(n.Get("name")), p.text(n.Get("description")), tags
}

// id takes the id of a service or artifact, or makes one up.
func (p *parser) id(n *tree.Node, otherwise string) string {
	id := p.text(n.Get("id"))
	if id != "" && p.ids[id] {
		p.wrong(n.Get("id"), fmt.Sprintf("the id %q is there twice", id), "")
	}
	if id == "" {
		id = otherwise
		for i := 2; p.ids[id]; i++ {
			id = fmt.Sprintf("%s-%d", otherwise, i)
		}
	}
	p.ids[id] = true
	return id
}

// service reads a service and returns its id.
func (p *parser) service(n *tree.Node, otherwise string) string {
	if !n.Is(tree.Map) {
		p.wrong(n, "a service is a map, this is "+n.Kind.String(), "")
		return ""
	}
	s := Service{place: placeOf(n)}
	s.Name, s.Description, s.Tags = p.common(n)
	s.ID = p.id(n, cmp.Or(word(s.Name), otherwise, "service"))
	s.Href = p.text(n.Get("href"))
	for _, c := range p.list(n.Get("characteristics")) {
		if !c.Is(tree.Map) {
			p.wrong(c, "a characteristic is a map, this is "+c.Kind.String(), "")
			continue
		}
		typ := p.text(c.Get("characteristic_type"))
		if typ == "" {
			p.wrong(c, "the characteristic does not say its type", "characteristic_type: org.testbed:Node")
		}
		s.Characteristics = append(s.Characteristics, Characteristic{Type: typ, attributes: c, place: placeOf(c)})
	}
	if s.Href != "" && len(s.Characteristics) > 0 {
		p.wrong(n, "the service has a href and characteristics", "a href names a service that is there: its characteristics are its own")
	}
	p.unused(n, "id", "name", "description", "tags", "href", "characteristics")
	p.plan.Services = append(p.plan.Services, s)
	return s.ID
}

func (p *parser) artifact(n *tree.Node, number int) {
	if !n.Is(tree.Map) {
		p.wrong(n, "an artifact is a map, this is "+n.Kind.String(), "")
		return
	}
	a := Artifact{attributes: n, place: placeOf(n)}
	a.Name, a.Description, a.Tags = p.common(n)
	otherwise := word(a.Name)
	if otherwise == "" {
		otherwise = fmt.Sprintf("artifact-%d", number)
	}
	a.ID = p.id(n, otherwise)
	if a.Type = p.text(n.Get("artifact_type")); a.Type == "" {
		p.wrong(n, "the artifact does not say its type", "artifact_type: org.testbed:script")
	}
	p.content(&a, n)
	for i, r := range p.list(n.Get("requirements")) {
		if !r.Is(tree.Map) {
			p.wrong(r, "a requirement is a map, this is "+r.Kind.String(), "")
			continue
		}
		need := Requirement{Type: p.text(r.Get("requirement_type")), place: placeOf(r)}
		if need.Type == "" {
			p.wrong(r, "the requirement does not say its type", "requirement_type: org.testbed:HostOn")
		}
		switch f := r.Get("fulfillment"); {
		case f == nil:
			p.wrong(r, "the requirement does not say what fulfills it", "fulfillment: id:SERVICE")
		case f.Is(tree.Map):
			need.Service = p.service(f, fmt.Sprintf("%s-%d", a.ID, i))
		default:
			text := p.text(f)
			id, ok := strings.CutPrefix(text, "id:")
			switch {
			case ok:
				need.Service = id
			case strings.Contains(text, "/"):
				need.Href = text
			default:
				p.wrong(f, fmt.Sprintf("the fulfillment is %q", text), "id:SERVICE, the URI of a resource of the platform, or a service")
			}
		}
		p.unused(r, "requirement_type", "fulfillment", "name", "description", "tags")
		a.Requirements = append(a.Requirements, need)
	}
	p.plan.Artifacts = append(p.plan.Artifacts, a)
}

// content finds what an artifact is.
func (p *parser) content(a *Artifact, n *tree.Node) {
	c := n.Get("content")
	if c == nil {
		p.wrong(n, "the artifact has no content", "content: { href: FILE }, or content: { data: BASE64 }")
		return
	}
	if !c.Is(tree.Map) || (c.Get("href") == nil) == (c.Get("data") == nil) {
		p.wrong(c, "the content has either a href or data", "content: { href: FILE }")
		return
	}
	if d := c.Get("data"); d != nil {
		text := p.text(d)
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			p.wrong(d, "the data is no base64", "")
		}
		a.Content = raw
		return
	}
	href := p.text(c.Get("href"))
	switch scheme, _, ok := strings.Cut(href, "://"); {
	case ok && (scheme == "http" || scheme == "https"):
		a.URL = href
	case ok:
		p.wrong(c.Get("href"), fmt.Sprintf("content at %s:// is not fetched", scheme), "a file of the package, http or https")
	case p.read == nil:
		p.wrong(c.Get("href"), fmt.Sprintf("the plan came without a package, so there is no %q", href), "send a package, or content: { data: BASE64 }")
	default:
		name, err := archive.CleanName(path.Clean(href))
		if err == nil {
			a.File = name
			a.Content, err = p.read(name)
		}
		if err != nil {
			p.wrong(c.Get("href"), fmt.Sprintf("the package has no file %q", href), "")
		}
	}
}

// word makes a word that can be a part of a name.
func word(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			b.WriteRune(r)
		case r == ' ', r == '_', r == '.':
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// Label is what an artifact is called: its name, or its id.
func (a *Artifact) Label() string { return cmp.Or(a.Name, a.ID) }
