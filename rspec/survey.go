package rspec

import (
	"strings"

	"github.com/beevik/etree"

	"croft/languages"
	"croft/request"
	"croft/urn"
)

// document is an RSpec of a format that is read here, with its nodes and
// links told apart by whom they are for.
type document struct {
	*tree
	format   Format
	managers []urn.URN
	nodes    []*nodeElement
	links    []*linkElement

	// interfaces has the interfaces of all nodes; the first one where several
	// have one client_id.
	interfaces map[request.ClientID]*interfaceElement
}

// interfaceElement is an interface of a node of the document.
type interfaceElement struct {
	*etree.Element
	node *nodeElement
}

// nodeElement is a node of the document.
type nodeElement struct {
	*etree.Element
	id      request.ClientID
	manager urn.URN // zero if it names none, or none that is a URN
	ours    bool
}

// linkElement is a link of the document.
type linkElement struct {
	*etree.Element
	id       request.ClientID
	managers []*etree.Element
	ends     []*etree.Element // interface_ref
	ours     bool             // it names this aggregate
	others   bool             // it names another one
}

// open reads a document of one of the formats.
func open(text []byte, limits Limits, managers []urn.URN) (*document, error) {
	t, err := read(text, limits)
	if err != nil {
		if !detect(text) {
			return nil, &languages.UnknownVersion{Found: "not an RSpec", Offered: versions()}
		}
		return nil, err
	}
	if !strings.EqualFold(t.root.Tag, "rspec") {
		return nil, &languages.UnknownVersion{Found: "an XML document with the root element " + t.root.Tag, Offered: versions()}
	}
	format, ok := formatOfNamespace(t.namespace(t.root))
	if !ok || t.root.Tag != "rspec" {
		return nil, &languages.UnknownVersion{Found: foundInstead(t.root.Tag, t.namespace(t.root)), Offered: versions()}
	}
	d := &document{tree: t, format: format, managers: managers, interfaces: map[request.ClientID]*interfaceElement{}}
	for _, c := range t.root.Child {
		c, ok := c.(*etree.Element)
		if !ok {
			continue
		}
		switch {
		case d.core(c, "node"):
			d.surveyNode(c)
		case d.core(c, "link"):
			d.surveyLink(c)
		}
	}
	return d, nil
}

func (d *document) surveyNode(e *etree.Element) {
	n := &nodeElement{Element: e, id: request.ClientID(attr(e, "client_id"))}
	manager := attr(e, "component_manager_id")
	if manager == "" {
		n.ours = true
	} else if id, err := urn.Parse(manager); err == nil {
		n.manager, n.ours = id, d.isUs(id)
	}
	d.nodes = append(d.nodes, n)
	for _, i := range d.childrenOf(e, "interface") {
		if id := request.ClientID(attr(i, "client_id")); id != "" && d.interfaces[id] == nil {
			d.interfaces[id] = &interfaceElement{i, n}
		}
	}
}

func (d *document) surveyLink(e *etree.Element) {
	l := &linkElement{Element: e, id: request.ClientID(attr(e, "client_id")), ends: d.childrenOf(e, "interface_ref")}
	l.managers = d.childrenOf(e, "component_manager")
	for _, m := range l.managers {
		if id, err := urn.Parse(attr(m, "name")); err == nil && d.isUs(id) {
			l.ours = true
		} else if attr(m, "name") != "" {
			l.others = true
		}
	}
	d.links = append(d.links, l)
}

// core reports whether an element is one of the format's own.
func (d *document) core(e *etree.Element, tag string) bool {
	return d.is(e, d.format.Namespace(), tag)
}

// childrenOf returns the children of a name of the format's own.
func (d *document) childrenOf(e *etree.Element, tag string) []*etree.Element {
	return d.children(e, d.format.Namespace(), tag)
}

func (d *document) isUs(manager urn.URN) bool {
	for _, m := range d.managers {
		if m.Equal(manager) {
			return true
		}
	}
	return false
}

// reach says which aggregates a link concerns.
type reach int

const (
	elsewhere reach = iota // others only
	within                 // this one only
	across                 // this one's nodes and others'
	transit                // others' nodes, by way of this aggregate
)

// reachOf tells which aggregates a link concerns. known reports whether an
// interface that the document does not have belongs to a node that the slice
// has here already.
func (d *document) reachOf(l *linkElement, known func(request.ClientID) bool) reach {
	var own, foreign, unknown int
	for _, ref := range l.ends {
		id := request.ClientID(attr(ref, "client_id"))
		switch i := d.interfaces[id]; {
		case i != nil && i.node.ours:
			own++
		case i != nil:
			foreign++
		case known != nil && known(id):
			own++
		default:
			unknown++
		}
	}
	switch {
	case own > 0 && foreign == 0 && (unknown == 0 || !l.others):
		return within
	case own > 0:
		return across
	case l.ours && foreign > 0:
		return transit
	case l.ours:
		return within
	case l.others || foreign > 0 || !d.hasOwnNodes():
		return elsewhere
	}
	return within // it joins nothing that exists, and blames nobody else
}

func (d *document) hasOwnNodes() bool {
	for _, n := range d.nodes {
		if n.ours {
			return true
		}
	}
	return len(d.nodes) == 0
}
