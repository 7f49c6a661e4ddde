package client

import (
	"encoding/xml"
	"fmt"
)

// Advertisement is what a client needs to know of an advertisement.
type Advertisement struct {
	Nodes []AdNode `json:"nodes"`
	Links int      `json:"links"` // how many
}

// AdNode is one component.
type AdNode struct {
	ID            string   `json:"component_id"`
	Name          string   `json:"component_name"`
	Manager       string   `json:"component_manager_id"`
	Exclusive     bool     `json:"exclusive"`
	Available     bool     `json:"available"`
	HardwareTypes []string `json:"hardware_types"`
	SliverTypes   []string `json:"sliver_types"`
}

type xmlAd struct {
	XMLName xml.Name
	Nodes   []struct {
		ID        string `xml:"component_id,attr"`
		Name      string `xml:"component_name,attr"`
		Manager   string `xml:"component_manager_id,attr"`
		Exclusive string `xml:"exclusive,attr"`
		Available struct {
			Now string `xml:"now,attr"`
		} `xml:"available"`
		Hardware []named `xml:"hardware_type"`
		Slivers  []named `xml:"sliver_type"`
	} `xml:"node"`
	Links []struct{} `xml:"link"`
}

type named struct {
	Name string `xml:"name,attr"`
}

// ReadAdvertisement reads an advertisement.
func ReadAdvertisement(document string) (*Advertisement, error) {
	var x xmlAd
	if err := decodeXML(document, &x); err != nil {
		return nil, fmt.Errorf("read advertisement: %w", err)
	}
	if x.XMLName.Local != "rspec" {
		return nil, fmt.Errorf("read advertisement: root element is %q, not rspec", x.XMLName.Local)
	}
	ad := &Advertisement{Links: len(x.Links)}
	for _, n := range x.Nodes {
		node := AdNode{
			ID: n.ID, Name: n.Name, Manager: n.Manager,
			Exclusive: isTrue(n.Exclusive), Available: isTrue(n.Available.Now),
		}
		for _, h := range n.Hardware {
			node.HardwareTypes = append(node.HardwareTypes, h.Name)
		}
		for _, s := range n.Slivers {
			node.SliverTypes = append(node.SliverTypes, s.Name)
		}
		ad.Nodes = append(ad.Nodes, node)
	}
	return ad, nil
}

// isTrue reads an xs:boolean, also in the capitals that some aggregates use.
func isTrue(s string) bool { return s == "true" || s == "1" || s == "True" || s == "TRUE" }
