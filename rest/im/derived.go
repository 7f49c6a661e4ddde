package im

import (
	"strings"
	"time"

	"croft/aggregate"
	"croft/capacity"
	"croft/languages/radl"
	"croft/request"
	"croft/slivers"
)

// texts are the documents that an infrastructure was made of.
func (c *call) texts(x *infrastructure) ([]documentRecord, error) {
	if !x.derived() {
		return x.Documents, nil
	}
	documents, err := c.Service.Store.Documents(c.ctx, x.slice)
	if err != nil {
		return nil, err
	}
	var list []documentRecord
	for _, d := range documents {
		list = append(list, documentRecord{MediaType: d.MediaType, Text: d.Bytes})
	}
	return list, nil
}

// expires is when the first of the machines does; nil if there are none.
func (x *infrastructure) expires() *time.Time {
	var first *time.Time
	for _, o := range x.all {
		if end := o.Sliver.Expires.UTC(); first == nil || end.Before(*first) {
			first = &end
		}
	}
	return first
}

// tosca reports whether a media type is one of TOSCA's.
func tosca(mediaType string) bool { return strings.Contains(mediaType, "tosca") }

// describe is the RADL of an infrastructure that this face has not made.
func (x *infrastructure) describe() *radl.Document {
	var networks []string
	of := map[request.ClientID]map[request.ClientID]string{} // by nodes and interfaces
	for _, o := range x.all {
		v := o.Sliver
		if v.Kind != slivers.Link || v.Link == nil {
			continue
		}
		networks = append(networks, string(v.ClientID))
		for _, e := range v.Link.Ends {
			if of[e.Node] == nil {
				of[e.Node] = map[request.ClientID]string{}
			}
			of[e.Node][e.Interface] = string(v.ClientID)
		}
	}
	var nodes []radl.Known
	for _, o := range x.all {
		if o.Sliver.Node != nil {
			nodes = append(nodes, known(o, of[o.Sliver.ClientID]))
		}
	}
	return radl.Describe(networks, nodes)
}

// known is a node as it is described. networks are those of its interfaces.
func known(o aggregate.Outcome, networks map[request.ClientID]string) radl.Known {
	v := o.Sliver
	k := radl.Known{
		Node: v.ClientID, Cores: float64(v.Node.Capacity.Cores) / float64(capacity.Core), Memory: int64(v.Node.Capacity.Memory) << 20,
	}
	if !v.Node.Image.IsZero() {
		k.Image = v.Node.Image.String()
	}
	for _, i := range v.Node.Interfaces {
		link := radl.KnownInterface{Network: networks[i.ID]}
		if len(i.Addresses) > 0 {
			link.Address = i.Addresses[0].Addr().String()
		}
		k.Interfaces = append(k.Interfaces, link)
	}
	return k
}
