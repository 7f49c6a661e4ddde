package aggregate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"croft/languages"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// portName is what a published port of a node is called among Entrances.
func portName(node urn.URN, number int) urn.URN {
	node.Name += ":" + strconv.Itoa(number)
	return node
}

// published reports whether a port is carried to a node.
func published(p request.Port) bool {
	return (p.Protocol == "" || strings.EqualFold(p.Protocol, "tcp")) && p.Number > 0 && p.Number < 1<<16
}

// unpublished warns of ports that are asked for in vain.
func unpublished(req *request.Request) (warnings []languages.Problem) {
	for _, n := range req.Nodes {
		for _, p := range n.Ports {
			if !published(p) {
				warnings = append(warnings, languages.Problem{Place: p.Place,
					What: fmt.Sprintf("port %d/%s of node %s is not reached from outside", p.Number, p.Protocol, n.ID),
					Hint: "ports of tcp are"})
			}
		}
	}
	return warnings
}

// openPorts opens the ports of a node that its request wants reached from
// outside, at the numbers that they had where those are free.
func (s *Service) openPorts(ctx context.Context, v *slivers.Sliver) ([]slivers.Port, error) {
	if !s.hasEntrance(v) {
		return v.Node.Ports, nil
	}
	ports := make([]slivers.Port, len(v.Node.Ports))
	for i, p := range v.Node.Ports {
		ports[i] = p
		if !published(p.Port) {
			continue
		}
		to := portsOf(v, p.Number)
		public, err := s.Entrances.Open(ctx, portName(v.URN, p.Number), p.Public.Port, s.dialer(v.URN, to...))
		if err != nil {
			return nil, fmt.Errorf("opening port %d of %s to the outside: %w", p.Number, v.ClientID, err)
		}
		ports[i].Public = public
	}
	return ports, nil
}

// portsOf lists where a server may listen in a node: on all its addresses or
// on one of a link.
func portsOf(v *slivers.Sliver, number int) []string {
	list := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	for _, i := range v.Node.Interfaces {
		for _, p := range i.Addresses {
			list = append(list, p.Addr())
		}
	}
	var out []string
	for _, a := range list {
		out = append(out, netip.AddrPortFrom(a, uint16(number)).String())
	}
	return out
}

// dialer connects to a node, while it lives, at the first of some addresses
// that takes the connection.
func (s *Service) dialer(node urn.URN, addresses ...string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		found, err := s.Store.Find(ctx, []urn.URN{node})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 || !found[0].Live(s.Clock()) {
			return nil, fmt.Errorf("node %s: %w", node, slivers.ErrNotFound)
		}
		d, err := s.driver(&found[0])
		if err != nil {
			return nil, err
		}
		var failed []error
		for _, a := range addresses {
			c, err := d.Dial(ctx, node, "tcp", a)
			if err == nil {
				return c, nil
			}
			failed = append(failed, err)
		}
		return nil, errors.Join(failed...)
	}
}

// closeWays ends the ways in to a node.
func (s *Service) closeWays(v *slivers.Sliver) {
	if v.Node == nil {
		return
	}
	s.Entrances.Close(v.URN)
	for _, p := range v.Node.Ports {
		s.Entrances.Close(portName(v.URN, p.Number))
	}
}
