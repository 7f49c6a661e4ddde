package advert

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// The namespaces of advertisements that are read. ProtoGENI 2 is what GENI 3
// was made of: what an inventory needs of the two is the same.
const (
	geni3      = "http://www.geni.net/resources/rspec/3"
	protogeni2 = "http://www.protogeni.net/resources/rspec/2"
	emulab     = "http://www.protogeni.net/resources/rspec/ext/emulab/1"
)

// maxBytes bounds what is read: ten times the largest testbed's advertisement.
const maxBytes = 64 << 20

// document is an advertisement as it stands.
type document struct {
	nodes    []xmlNode
	links    []xmlLink
	external []xmlExternal
	vlans    []xmlVLAN
	others   []string // names of further elements on top
}

type xmlNode struct {
	XMLName   xml.Name
	ID        string `xml:"component_id,attr"`
	Name      string `xml:"component_name,attr"`
	Manager   string `xml:"component_manager_id,attr"`
	Exclusive string `xml:"exclusive,attr"`
	Hardware  []struct {
		Name  string `xml:"name,attr"`
		Types []struct {
			Slots  string `xml:"type_slots,attr"`
			Static string `xml:"static,attr"`
		} `xml:"http://www.protogeni.net/resources/rspec/ext/emulab/1 node_type"`
	} `xml:"hardware_type"`
	Types []struct {
		Name   string     `xml:"name,attr"`
		Images []xmlImage `xml:"disk_image"`
	} `xml:"sliver_type"`
	Locations []struct {
		Country   string `xml:"country,attr"`
		Latitude  string `xml:"latitude,attr"`
		Longitude string `xml:"longitude,attr"`
	} `xml:"location"`
	Available []struct {
		Now string `xml:"now,attr"`
	} `xml:"available"`
	Interfaces []struct {
		XMLName xml.Name
		ID      string `xml:"component_id,attr"`
		Role    string `xml:"role,attr"`
	} `xml:"interface"`
	Features []struct {
		Name   string `xml:"name,attr"`
		Weight string `xml:"weight,attr"`
		Local  string `xml:"local_operator,attr"`
		Global string `xml:"global_operator,attr"`
	} `xml:"http://www.protogeni.net/resources/rspec/ext/emulab/1 fd"`
}

type xmlImage struct {
	Name        string `xml:"name,attr"`
	URL         string `xml:"url,attr"`
	OS          string `xml:"os,attr"`
	Version     string `xml:"version,attr"`
	Description string `xml:"description,attr"`
	Default     string `xml:"default,attr"`
}

type xmlLink struct {
	ID   string `xml:"component_id,attr"`
	Ends []struct {
		ID string `xml:"component_id,attr"`
	} `xml:"interface_ref"`
	Properties []struct {
		Capacity string `xml:"capacity,attr"`
	} `xml:"property"`
}

type xmlExternal struct {
	Interface string `xml:"component_id,attr"`
	Manager   string `xml:"component_manager_id,attr"`
}

type xmlVLAN struct {
	Name       string `xml:"name,attr"`
	Restricted string `xml:"restricted,attr"`
}

// declaration11 is an XML declaration of version 1.1, which some testbeds
// write without using anything of it and which the XML package refuses.
var declaration11 = regexp.MustCompile(`^\s*<\?xml\s+version=["']1\.1["']`)

// read reads an advertisement. It reads no DTD and fetches nothing.
func read(data []byte) (*document, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%d bytes; at most %d are read", len(data), maxBytes)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if found := declaration11.Find(data); found != nil {
		data = append(bytes.Replace(bytes.TrimLeft(found, " \t\r\n"), []byte("1.1"), []byte("1.0"), 1), data[len(found):]...)
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "us-ascii") {
			return in, nil
		}
		return nil, fmt.Errorf("encoding %s; write it as UTF-8", charset)
	}
	doc := &document{}
	if err := doc.root(d); err != nil {
		line, _ := d.InputPos()
		var syntax *xml.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("line %d: not XML: %s", syntax.Line, syntax.Msg)
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("not XML: there is no element in it")
		}
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	return doc, nil
}

// root finds the root element and reads what is in it.
func (doc *document) root(d *xml.Decoder) error {
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.Directive:
			return errors.New("a document type declaration; advertisements have none")
		case xml.StartElement:
			if err := checkRoot(token); err != nil {
				return err
			}
			return doc.children(d)
		}
	}
}

func checkRoot(root xml.StartElement) error {
	typ := ""
	for _, a := range root.Attr {
		if a.Name.Local == "type" && a.Name.Space == "" {
			typ = a.Value
		}
	}
	switch {
	case root.Name.Local == "RSpec":
		return fmt.Errorf("an SFA version 1 RSpec (type %s), not a GENI version 3 advertisement", typ)
	case root.Name.Local != "rspec":
		return fmt.Errorf("the root element is %s, not rspec", root.Name.Local)
	case root.Name.Space != geni3 && root.Name.Space != protogeni2:
		return fmt.Errorf("an rspec of namespace %q; GENI version 3 (%s) is read", root.Name.Space, geni3)
	case !strings.EqualFold(typ, "advertisement"):
		return fmt.Errorf("an rspec of type %q, not an advertisement", typ)
	}
	return nil
}

func (doc *document) children(d *xml.Decoder) error {
	seen := map[string]bool{}
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.Directive:
			return errors.New("a document type declaration; advertisements have none")
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if err := doc.child(d, token); err != nil {
				return err
			}
			if name := token.Name.Local; !seen[name] {
				seen[name] = true
				doc.others = append(doc.others, name)
			}
		}
	}
}

func (doc *document) child(d *xml.Decoder, start xml.StartElement) error {
	core := start.Name.Space == geni3 || start.Name.Space == protogeni2
	switch name := start.Name.Local; {
	case core && name == "node":
		var n xmlNode
		if err := d.DecodeElement(&n, &start); err != nil {
			return err
		}
		doc.nodes = append(doc.nodes, n)
	case core && name == "link":
		var l xmlLink
		if err := d.DecodeElement(&l, &start); err != nil {
			return err
		}
		doc.links = append(doc.links, l)
	case core && name == "external_ref":
		var e xmlExternal
		if err := d.DecodeElement(&e, &start); err != nil {
			return err
		}
		doc.external = append(doc.external, e)
	case name == "rspec_shared_vlan":
		var v struct {
			Available []xmlVLAN `xml:"available"`
		}
		if err := d.DecodeElement(&v, &start); err != nil {
			return err
		}
		doc.vlans = append(doc.vlans, v.Available...)
	default:
		return d.Skip()
	}
	return nil
}
