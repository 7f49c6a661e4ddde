package aggregate

import (
	"errors"
	"fmt"
	"slices"

	"croft/request"
	"croft/slivers"
)

// extended are the links of a slice that a request adds ends to.
type extended map[request.ClientID]*slivers.Sliver

// extend finds the links of the slice that a request adds ends to. In the
// request that it returns, to be mapped, these links have all their ends, the
// old ones, too; a link to which nothing is added is left out.
func extend(have []slivers.Sliver, req *request.Request) (*request.Request, extended, error) {
	if !slices.ContainsFunc(req.Links, func(l request.Link) bool { return l.Existing }) {
		return req, nil, nil
	}
	whole, more := *req, extended{}
	whole.Links = nil
	for _, l := range req.Links {
		if !l.Existing {
			whole.Links = append(whole.Links, l)
			continue
		}
		i := slices.IndexFunc(have, func(v slivers.Sliver) bool { return v.Link != nil && v.ClientID == l.ID })
		if i < 0 {
			return nil, nil, &Error{Item: string(l.ID), Kind: NotFound, Err: fmt.Errorf("%s: the slice has no link of that client_id", l.Place)}
		}
		v := &have[i]
		if v.Operational == slivers.Failed || v.Goal == slivers.Release {
			return nil, nil, &Error{Item: string(l.ID), Kind: Unsupported, Err: errors.New("the link has failed and takes no further ends"), Hint: "delete it first"}
		}
		if len(v.Link.Route) > 0 {
			return nil, nil, &Error{Item: string(l.ID), Kind: Unsupported, Err: errors.New("the link runs over wires of the testbed that carry so much and no more, and no ends can be added to it"),
				Hint: "join the new nodes by a link of their own"}
		}
		added := slices.DeleteFunc(slices.Clone(l.Ends), func(e request.End) bool { return endOf(v.Link, e.Node, e.Interface) })
		if len(added) == 0 {
			continue
		}
		l.Ends = nil
		for _, e := range v.Link.Ends {
			l.Ends = append(l.Ends, request.End{Node: e.Node, Interface: e.Interface, Existing: true, Place: l.Place})
		}
		l.Ends = append(l.Ends, added...)
		whole.Links = append(whole.Links, l)
		more[l.ID] = v
	}
	return &whole, more, nil
}

// endOf reports whether a link joins an interface.
func endOf(l *slivers.LinkFacts, node, iface request.ClientID) bool {
	return slices.ContainsFunc(l.Ends, func(e slivers.End) bool { return e.Node == node && e.Interface == iface })
}

// withoutLater is a link without the ends of some nodes that came later, or that
// it can go on without; ok is false if another end is among them.
func withoutLater(l *slivers.LinkFacts, gone func(slivers.End) bool) (rest []slivers.End, ok bool) {
	for _, e := range l.Ends {
		switch {
		case !gone(e):
			rest = append(rest, e)
		case !e.Later && !e.Loose:
			return nil, false
		}
	}
	return rest, true
}
