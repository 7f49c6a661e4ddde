package rspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/beevik/etree"

	"croft/languages"
	"croft/request"
	"croft/urn"
)

// maxProblems bounds what an author is told at once, maxNoted what is kept to
// choose it from.
const (
	maxProblems = 100
	maxNoted    = 1000
)

// compiler turns a document into a request.
type compiler struct {
	*document
	scope   languages.Scope
	request request.Request

	errors, advice []languages.Problem

	existing map[request.ClientID]request.ClientID // interface → node that the slice has
	standing map[string]bool                       // nodes that the slice has, by lower-case client_id
	nodeIDs  map[string]*nodeElement               // by lower-case client_id
	linkIDs  map[string]*etree.Element
	ends     map[request.ClientID]*etree.Element // interface → the interface_ref that took it
	made     map[request.ClientID]*request.Interface
	saidOnce map[string]bool

	steps map[string]int // how many there are, by the beginning of their names
}

func compile(d *document, scope languages.Scope) *compiler {
	c := &compiler{
		document: d,
		scope:    scope,
		existing: map[request.ClientID]request.ClientID{},
		standing: map[string]bool{},
		nodeIDs:  map[string]*nodeElement{},
		linkIDs:  map[string]*etree.Element{},
		ends:     map[request.ClientID]*etree.Element{},
		made:     map[request.ClientID]*request.Interface{},
		saidOnce: map[string]bool{},
	}
	for _, n := range scope.Existing {
		c.standing[strings.ToLower(string(n.Node))] = true
		for _, i := range n.Interfaces {
			c.existing[i] = n.Node
		}
	}
	c.root()
	c.duplicates()
	c.classes()
	for _, n := range d.nodes {
		if n.ours && !c.hopeless() {
			c.node(n)
		}
	}
	for i := range c.request.Nodes {
		n := &c.request.Nodes[i]
		for j := range n.Interfaces {
			c.made[n.Interfaces[j].ID] = &n.Interfaces[j]
		}
	}
	for _, l := range d.links {
		if !c.hopeless() {
			c.link(l)
		}
	}
	c.groups()
	c.rootWishes()
	if len(c.request.Nodes)+len(c.request.Links) == 0 && len(c.errors) == 0 {
		c.warn(d.tree.root, "nothing in this document is for this aggregate", c.managersHint())
	}
	return c
}

// hopeless reports whether enough is wrong to stop looking for more.
func (c *compiler) hopeless() bool { return len(c.errors) >= maxNoted }

// problems returns what is wrong, in the order of the document.
func (c *compiler) problems() []languages.Problem { return inOrder(c.errors) }

func (c *compiler) warnings() []languages.Problem { return inOrder(c.advice) }

func inOrder(ps []languages.Problem) []languages.Problem {
	slices.SortStableFunc(ps, func(a, b languages.Problem) int {
		if a.Place.Line != b.Place.Line {
			return a.Place.Line - b.Place.Line
		}
		return a.Place.Column - b.Place.Column
	})
	if more := len(ps) - maxProblems; more > 0 {
		what := fmt.Sprintf("%d more problems from here on", more)
		if len(ps) >= maxNoted {
			what = "many more problems from here on"
		}
		ps = append(ps[:maxProblems:maxProblems], languages.Problem{Place: ps[maxProblems].Place, What: what})
	}
	return ps
}

// fail notes that the element makes the document wrong.
func (c *compiler) fail(e *etree.Element, what, hint string) {
	if !c.hopeless() {
		c.failAt(c.placeOf(e), what, hint)
	}
}

func (c *compiler) failAt(p request.Place, what, hint string) {
	if !c.hopeless() {
		c.errors = append(c.errors, languages.Problem{Place: p, What: what, Hint: hint})
	}
}

// warn notes something that the author should know of the element.
func (c *compiler) warn(e *etree.Element, what, hint string) {
	if len(c.advice) >= maxNoted {
		return
	}
	c.advice = append(c.advice, languages.Problem{Place: c.placeOf(e), What: what, Hint: hint})
}

func (c *compiler) managersHint() string {
	if len(c.managers) == 0 {
		return ""
	}
	return "its component_manager_id is " + c.managers[0].String()
}

// root checks what kind of RSpec the document is.
func (c *compiler) root() {
	typ, ok := lookupAttr(c.tree.root, "type")
	switch {
	case typ == "request":
	case strings.EqualFold(typ, "request"):
		c.warn(c.tree.root, fmt.Sprintf("type=%q is read as request", typ), `write type="request"`)
	case !ok || typ == "":
		c.warn(c.tree.root, "no type: read as a request", `write type="request"`)
	case strings.EqualFold(typ, "manifest"):
		c.fail(c.tree.root, "this is a manifest, not a request",
			`to ask for the same again, change type to "request" and take out component_id, sliver_id, host and login`)
	default:
		c.fail(c.tree.root, fmt.Sprintf("type=%q: not a request", typ), `write type="request"`)
	}
}

// duplicates checks that names are given once where anything of ours is
// involved. Nodes and links are told apart case-insensitively, as host names
// are (and as Emulab does); interfaces exactly, over the whole document.
func (c *compiler) duplicates() {
	for _, n := range c.nodes {
		if n.id == "" {
			continue
		}
		key := strings.ToLower(string(n.id))
		first := c.nodeIDs[key]
		if first == nil {
			c.nodeIDs[key] = n
			if n.ours && c.standing[key] {
				c.fail(n.Element, fmt.Sprintf("the slice has a node %q already", n.id), "give the new node another client_id")
			}
			continue
		}
		if n.ours || first.ours {
			c.fail(n.Element, fmt.Sprintf("client_id %q is that of the node in line %d already", n.id, c.placeOf(first.Element).Line),
				"client_ids of nodes are compared without regard to case: give each its own")
		}
	}
	for _, n := range c.nodes {
		for _, i := range c.childrenOf(n.Element, "interface") {
			id := request.ClientID(attr(i, "client_id"))
			if id == "" {
				continue
			}
			first := c.interfaces[id]
			if first.Element != i && (n.ours || first.node.ours) {
				c.fail(i, fmt.Sprintf("client_id %q is that of the interface in line %d already", id, c.placeOf(first.Element).Line),
					"interfaces need client_ids that are unique in the whole document, such as node:if0")
			}
		}
	}
}

// clientID reads the client_id of an element of ours.
func (c *compiler) clientID(e *etree.Element, what, example string) request.ClientID {
	id := attr(e, "client_id")
	switch {
	case id == "":
		c.fail(e, what+" without a client_id", fmt.Sprintf("add one, such as client_id=%q", example))
	case len(id) > 255:
		c.fail(e, fmt.Sprintf("client_id of %d characters", len(id)), "255 are enough")
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }):
		c.fail(e, fmt.Sprintf("client_id %q has a character that cannot be shown", id), "use letters, digits and -._:")
	}
	return request.ClientID(id)
}

// component reads a component_id: a URN, a bare name, or "*" for any.
func component(e *etree.Element) (id urn.URN, name string) {
	text := attr(e, "component_id")
	if id, err := urn.Parse(text); err == nil {
		return id, ""
	}
	if text == "" || text == "*" {
		text = attr(e, "component_name")
	}
	if text == "*" {
		text = ""
	}
	return urn.URN{}, text
}

// boolean reads an xs:boolean, and what people write instead.
func (c *compiler) boolean(e *etree.Element, key string) request.Choice {
	text, ok := lookupAttr(e, key)
	if !ok || text == "" {
		return request.Open
	}
	switch strings.ToLower(text) {
	case "true", "1":
		return request.Yes
	case "false", "0":
		return request.No
	}
	c.fail(e, fmt.Sprintf("%s=%q", key, text), "it is true or false")
	return request.Open
}
