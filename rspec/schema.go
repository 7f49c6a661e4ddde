package rspec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/beevik/etree"

	"croft/languages"
)

// shape is what the schema of requests says of an element: the attributes and
// children that it may have besides those of extensions.
type shape struct {
	required, optional []string
	children           []string
	closed             bool // it takes no extensions
}

// shapes are the elements of requests by name (request.xsd of GENI 3 and
// ProtoGENI 2). In a component_hop, interface_ref has another shape; see
// hopRef.
func shapes() map[string]shape {
	return map[string]shape{
		"rspec": {required: []string{"type"}, optional: []string{"generated", "generated_by", "expires"}, children: []string{"node", "link"}},
		"node": {
			required: []string{"client_id"},
			optional: []string{"component_id", "component_manager_id", "component_name", "exclusive", "colocate"},
			children: []string{"relation", "location", "services", "interface", "hardware_type", "sliver_type"},
		},
		"relation":          {required: []string{"type", "client_id"}},
		"location":          {required: []string{"country"}, optional: []string{"longitude", "latitude"}},
		"services":          {children: []string{"login", "install", "execute"}},
		"login":             {required: []string{"authentication"}, optional: []string{"hostname", "port"}},
		"install":           {required: []string{"url", "install_path"}},
		"execute":           {required: []string{"shell", "command"}},
		"interface":         {required: []string{"client_id"}, optional: []string{"component_id"}, children: []string{"ip"}},
		"ip":                {required: []string{"address"}, optional: []string{"netmask", "type"}},
		"hardware_type":     {required: []string{"name"}},
		"sliver_type":       {required: []string{"name"}, children: []string{"disk_image"}},
		"disk_image":        {required: []string{"name"}, optional: []string{"os", "version", "description"}},
		"link":              {required: []string{"client_id"}, children: []string{"property", "link_type", "interface_ref", "component_manager", "component_hop"}},
		"property":          {required: []string{"source_id", "dest_id"}, optional: []string{"capacity", "latency", "packet_loss"}},
		"link_type":         {required: []string{"name"}, optional: []string{"class"}},
		"interface_ref":     {required: []string{"client_id"}},
		"component_manager": {required: []string{"name"}, closed: true},
		"component_hop":     {optional: []string{"component_id"}, children: []string{"component_manager", "interface_ref"}},
	}
}

var (
	xsDateTime = regexp.MustCompile(`^\s*-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?\s*$`)
	xsBoolean  = regexp.MustCompile(`^\s*(true|false|1|0)\s*$`)
)

// schemaProblems tells where a document breaks the schema of its format.
// Extensions are not looked into.
func schemaProblems(d *document) []languages.Problem {
	s := &schemaChecker{document: d, shapes: shapes()}
	s.element(d.tree.root, s.shapes["rspec"])
	return inOrder(s.problems)
}

type schemaChecker struct {
	*document
	shapes   map[string]shape
	problems []languages.Problem
}

func (s *schemaChecker) note(e *etree.Element, format string, args ...any) {
	if len(s.problems) < maxNoted {
		s.problems = append(s.problems, languages.Problem{Place: s.placeOf(e), What: fmt.Sprintf(format, args...)})
	}
}

func (s *schemaChecker) element(e *etree.Element, is shape) {
	if len(s.problems) >= maxNoted {
		return
	}
	s.attributes(e, is)
	for _, c := range e.Child {
		switch c := c.(type) {
		case *etree.CharData:
			if strings.TrimSpace(c.Data) != "" {
				s.note(e, "the schema has no text in %s", e.Tag)
			}
		case *etree.Element:
			s.child(e, c, is)
		}
	}
}

func (s *schemaChecker) child(e, c *etree.Element, is shape) {
	switch s.namespace(c) {
	case s.format.Namespace():
		if !slices.Contains(is.children, c.Tag) {
			s.note(c, "the schema has no %s in %s", c.Tag, e.Tag)
			return
		}
		shape := s.shapes[c.Tag]
		if e.Tag == "component_hop" && c.Tag == "interface_ref" {
			shape = hopRef
		}
		s.element(c, shape)
	case "":
		s.note(c, "element %s in no namespace: extensions need one of their own", c.Tag)
	default:
		if is.closed {
			s.note(c, "the schema has no extensions in %s", e.Tag)
		}
	}
}

// hopRef is an interface_ref of a component_hop.
var hopRef = shape{required: []string{"component_id", "component_manager_id"}, optional: []string{"client_id"}}

func (s *schemaChecker) attributes(e *etree.Element, is shape) {
	for _, key := range is.required {
		if _, ok := lookupAttr(e, key); !ok {
			s.note(e, "the schema wants %s in %s", key, e.Tag)
		}
	}
	for i := range e.Attr {
		a := &e.Attr[i]
		if _, ok := declares(a); ok {
			continue
		}
		if a.Space != "" {
			if is.closed {
				s.note(e, "the schema has no extensions in %s", e.Tag)
			}
			continue
		}
		switch {
		case !slices.Contains(is.required, a.Key) && !slices.Contains(is.optional, a.Key):
			s.note(e, "the schema has no %s in %s", a.Key, e.Tag)
		case (a.Key == "generated" || a.Key == "expires") && !xsDateTime.MatchString(a.Value):
			s.note(e, "%s=%q is no xs:dateTime, such as 2024-05-31T12:00:00Z", a.Key, a.Value)
		case a.Key == "exclusive" && !xsBoolean.MatchString(a.Value):
			s.note(e, "exclusive=%q is not true or false", a.Value)
		case a.Key == "type" && e.Tag == "rspec" && strings.TrimSpace(a.Value) != "request":
			s.note(e, "type=%q is not request", a.Value)
		}
	}
}
