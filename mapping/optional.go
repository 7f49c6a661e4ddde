package mapping

import (
	"slices"

	"croft/inventory"
	"croft/request"
)

// withOptional places a request, and where there is no room for all of it,
// leaves out optional nodes: the last ones of the request first, and as few as
// it finds.
func (m *Optimizer) withOptional(g *ground, snapshot *inventory.Snapshot, occupancy *Occupancy, req *request.Request, options Options, x *Explanation) (*Placement, *Refusal) {
	p, r := m.whole(g, snapshot, occupancy, req, options, x)
	if r == nil {
		return p, nil
	}
	var optional []request.ClientID
	for i := range req.Nodes {
		if req.Nodes[i].Optional {
			optional = append(optional, req.Nodes[i].ID)
		}
	}
	if len(optional) == 0 || r.Kind == Contradicts {
		return nil, r
	}
	try := func(left []request.ClientID) *Placement {
		fewer := Without(req, left...)
		if len(fewer.Nodes)+len(fewer.Links) == 0 {
			return nil
		}
		*x = Explanation{}
		q, _ := m.whole(g, snapshot, occupancy, fewer, options, x)
		return q
	}
	left := slices.Clone(optional)
	best := try(left)
	if best == nil {
		return nil, r
	}
	told := *x
	// Take them back: in halves while that works, then one by one.
	var back func(some []request.ClientID)
	back = func(some []request.ClientID) {
		without := slices.DeleteFunc(slices.Clone(left), func(id request.ClientID) bool { return slices.Contains(some, id) })
		if len(without) > 0 { // all of them do not fit
			if q := try(without); q != nil {
				best, left, told = q, without, *x
				return
			}
		}
		if len(some) > 1 {
			back(some[:len(some)/2])
			back(some[len(some)/2:])
		}
	}
	back(optional)
	*x = told
	best.Left = left
	return best, nil
}

// Without is a request less some nodes: their ends of links, links that join
// nothing then, and their part in groups go with them.
func Without(req *request.Request, nodes ...request.ClientID) *request.Request {
	gone := func(id request.ClientID) bool { return slices.Contains(nodes, id) }
	fewer := *req
	fewer.Nodes = slices.DeleteFunc(slices.Clone(req.Nodes), func(n request.Node) bool { return gone(n.ID) })
	for i := range fewer.Nodes {
		if gone(fewer.Nodes[i].Parent) {
			fewer.Nodes[i].Parent = ""
		}
	}
	fewer.Links = nil
	for _, l := range req.Links {
		l.Ends = slices.DeleteFunc(slices.Clone(l.Ends), func(e request.End) bool { return !e.Existing && gone(e.Node) })
		if len(l.Ends) > 0 {
			fewer.Links = append(fewer.Links, l)
		}
	}
	fewer.Groups = slices.Clone(req.Groups)
	for i := range fewer.Groups {
		fewer.Groups[i].Nodes = slices.DeleteFunc(slices.Clone(fewer.Groups[i].Nodes), gone)
	}
	return &fewer
}
