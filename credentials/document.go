package credentials

import (
	"fmt"
	"strings"
	"time"

	"croft/credentials/xmldsig"
)

// document is a signed-credential as it was parsed: its shape is right, and
// nothing in it is proven.
type document struct {
	xml        *xmldsig.Document
	credential *xmldsig.Element
	signatures *xmldsig.Element
}

// readDocument parses a signed-credential: one credential, then its
// signatures, and nothing else.
func readDocument(data []byte) (*document, error) {
	doc, err := xmldsig.Parse(data, xmldsig.Limits{})
	if err != nil {
		return nil, err
	}
	if err := doc.CheckIDs(); err != nil {
		return nil, err
	}
	if !doc.Root.Is("", "signed-credential") {
		return nil, fmt.Errorf("the document is a <%s>, not a <signed-credential>", doc.Root.Name.Local)
	}
	d := &document{xml: doc}
	for _, e := range doc.Root.Elements() {
		switch {
		case e.Is("", "credential") && d.credential == nil:
			d.credential = e
		case e.Is("", "signatures") && d.signatures == nil:
			d.signatures = e
		default:
			return nil, fmt.Errorf("line %d: <%s> in a signed-credential; want one credential and one signatures", e.Line, e.Name.Local)
		}
	}
	if d.credential == nil || d.signatures == nil {
		return nil, fmt.Errorf("a signed-credential without credential or without signatures")
	}
	return d, nil
}

// fields are what a credential element says of itself.
type fields struct {
	kind                 string // "privilege", "abac", …
	ownerGID, ownerURN   string
	targetGID, targetURN string
	expires              time.Time
	privileges           []Privilege
	abac                 *xmldsig.Element
	parent               *xmldsig.Element // a credential element
}

// readFields reads the children of a credential element; every field once at
// most. Fields that it does not know have no effect.
func readFields(e *xmldsig.Element) (*fields, error) {
	f := &fields{}
	seen := map[string]bool{}
	expires := ""
	text := map[string]*string{
		"type": &f.kind, "owner_gid": &f.ownerGID, "owner_urn": &f.ownerURN,
		"target_gid": &f.targetGID, "target_urn": &f.targetURN, "expires": &expires,
	}
	for _, c := range e.Elements() {
		if c.Name.Space != "" {
			continue
		}
		name := c.Name.Local
		if seen[name] {
			return nil, fmt.Errorf("line %d: a second <%s>", c.Line, name)
		}
		seen[name] = true
		var err error
		switch {
		case text[name] != nil:
			*text[name], err = value(c)
		case name == "privileges":
			f.privileges, err = readPrivileges(c)
		case name == "abac":
			f.abac = c
		case name == "parent":
			f.parent, err = readParent(c)
		}
		if err != nil {
			return nil, err
		}
	}
	if !seen["type"] || !seen["expires"] {
		return nil, fmt.Errorf("line %d: a credential without type or expires", e.Line)
	}
	var err error
	if f.expires, err = parseTime(expires); err != nil {
		return nil, err
	}
	return f, nil
}

func value(e *xmldsig.Element) (string, error) {
	s, err := e.Value()
	return strings.Trim(s, " \t\r\n"), err
}

func readParent(e *xmldsig.Element) (*xmldsig.Element, error) {
	all := e.Elements()
	if len(all) != 1 || !all[0].Is("", "credential") {
		return nil, fmt.Errorf("line %d: <parent> holds something other than one credential", e.Line)
	}
	return all[0], nil
}

// maxPrivileges bounds the privileges of one credential.
const maxPrivileges = 100

func readPrivileges(e *xmldsig.Element) ([]Privilege, error) {
	var list []Privilege
	for _, p := range e.Elements() {
		if len(list) == maxPrivileges {
			return nil, fmt.Errorf("line %d: more than %d privileges", p.Line, maxPrivileges)
		}
		if !p.Is("", "privilege") {
			return nil, fmt.Errorf("line %d: <%s> among the privileges", p.Line, p.Name.Local)
		}
		var one Privilege
		seen := map[string]bool{}
		for _, c := range p.Elements() {
			if seen[c.Name.Local] {
				return nil, fmt.Errorf("line %d: a second <%s> in a privilege", c.Line, c.Name.Local)
			}
			seen[c.Name.Local] = true
			text, err := value(c)
			if err != nil {
				return nil, err
			}
			switch {
			case c.Is("", "name"):
				one.Name = text
			case c.Is("", "can_delegate"):
				if one.Delegate, err = parseBool(text); err != nil {
					return nil, fmt.Errorf("line %d: %w", c.Line, err)
				}
			default:
				return nil, fmt.Errorf("line %d: <%s> in a privilege", c.Line, c.Name.Local)
			}
		}
		if one.Name == "" {
			return nil, fmt.Errorf("line %d: a privilege without a name", p.Line)
		}
		list = append(list, one)
	}
	return list, nil
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "true":
		return true, nil
	case "0", "false", "":
		return false, nil
	}
	return false, fmt.Errorf("can_delegate is %q, not true, false, 1 or 0", s)
}

// timeForms are the ways in which the field writes an expiry, after the
// fraction of a second. Without a zone, it is UTC.
var timeForms = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05",
}

func parseTime(s string) (time.Time, error) {
	if len(s) <= 40 {
		for _, form := range timeForms {
			// time.Parse takes a fraction of a second in any form.
			if t, err := time.Parse(form, strings.ToUpper(s)); err == nil {
				return t.UTC(), nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("expiry %.40q is no time such as 2030-01-31T12:00:00Z", s)
}
