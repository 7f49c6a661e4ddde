package aggregate

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"croft/request"
	"croft/slivers"
	"croft/startup"
)

// ownAddress says of an address of this machine that nothing may be fetched
// from it, unless a node of the slice has the same one on a link.
func (g *graph) ownAddress(a netip.Addr) string {
	for _, v := range g.nodes {
		for _, i := range v.Node.Interfaces {
			if slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr() == a }) {
				return ""
			}
		}
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return "not known to be none of the manager's"
	}
	for _, own := range list {
		if p, err := netip.ParsePrefix(own.String()); err == nil && p.Addr().Unmap() == a {
			return "the manager's"
		}
	}
	return ""
}

// environment resolves the variables that a step of a node gets.
func (g *graph) environment(v *slivers.Sliver, task *request.Step) ([]startup.Variable, error) {
	env := []startup.Variable{
		{Name: "CROFT_SLICE", Value: v.Slice.String()},
		{Name: "CROFT_NODE", Value: string(v.ClientID)},
		{Name: "CROFT_STEP", Value: string(task.Name)},
	}
	for _, list := range [][]request.Variable{v.Node.Env, task.Env} {
		for _, x := range list {
			value, err := g.value(x.Value)
			if err != nil {
				return nil, fmt.Errorf("variable %s: %w", x.Name, err)
			}
			env = append(env, startup.Variable{Name: x.Name, Value: value})
		}
	}
	return env, nil
}

// value resolves a value.
func (g *graph) value(v request.Value) (string, error) {
	var b strings.Builder
	for _, p := range v {
		switch {
		case p.Attribute != nil:
			text, err := g.attribute(*p.Attribute)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		case p.Output != nil:
			i := slices.IndexFunc(g.steps, func(s slivers.Step) bool { return s.Name == p.Output.Step })
			if i < 0 {
				return "", fmt.Errorf("step %s is gone", p.Output.Step)
			}
			text, ok := g.steps[i].Outputs[p.Output.Name]
			if !ok {
				return "", fmt.Errorf("step %s has given no output %s", p.Output.Step, p.Output.Name)
			}
			b.WriteString(text)
		default:
			b.WriteString(p.Text)
		}
	}
	return b.String(), nil
}

// attribute tells what is known of a node.
func (g *graph) attribute(a request.Attribute) (string, error) {
	v := g.nodes[a.Node]
	if v == nil {
		return "", fmt.Errorf("node %s is gone", a.Node)
	}
	none := func(what string) error { return fmt.Errorf("node %s has no %s", a.Node, what) }
	switch a.Name {
	case request.AttrHostname:
		return v.Node.Hostname, nil
	case request.AttrName:
		return label(string(v.ClientID)), nil
	case request.AttrLoginHost, request.AttrLoginPort:
		switch {
		case v.Node.Login.Host == "":
			return "", none("login")
		case a.Name == request.AttrLoginHost:
			return v.Node.Login.Host, nil
		}
		return strconv.Itoa(v.Node.Login.Port), nil
	case request.AttrSliver:
		return v.URN.String(), nil
	case request.AttrSlice:
		return v.Slice.String(), nil
	case request.AttrSliceName:
		return v.Slice.Name, nil
	case request.AttrFirstUser:
		return firstUser(v), nil
	case request.AttrOwner:
		return v.Node.Owner.Name, nil
	case request.AttrPublicHost, request.AttrPublicPort:
		i := slices.IndexFunc(v.Node.Ports, func(p slivers.Port) bool { return p.Name == a.Port })
		switch {
		case i < 0:
			return "", none(fmt.Sprintf("port %q", a.Port))
		case v.Node.Ports[i].Public.Host == "":
			return "", none(fmt.Sprintf("public address for its port %q", a.Port))
		case a.Name == request.AttrPublicHost:
			return v.Node.Ports[i].Public.Host, nil
		}
		return strconv.Itoa(v.Node.Ports[i].Public.Port), nil
	case request.AttrAddress, request.AttrPrefix, request.AttrMAC, request.AttrDevice:
		i, err := g.iface(v, a.Interface)
		if err != nil {
			return "", err
		}
		switch {
		case a.Name == request.AttrMAC:
			return i.MAC.String(), nil
		case a.Name == request.AttrDevice:
			return i.Device, nil
		case len(i.Addresses) == 0:
			return "", fmt.Errorf("interface %s of node %s has no address", i.ID, a.Node)
		case a.Name == request.AttrPrefix:
			return i.Addresses[0].String(), nil
		}
		return i.Addresses[0].Addr().String(), nil
	}
	return "", none(fmt.Sprintf("attribute %q", a.Name))
}

// iface finds an interface of a node by its name, or the first that a link
// joins.
func (g *graph) iface(v *slivers.Sliver, id request.ClientID) (*slivers.Interface, error) {
	for i := range v.Node.Interfaces {
		f := &v.Node.Interfaces[i]
		if f.ID == id || id == "" && g.linkOf(v, f.ID) != nil {
			return f, nil
		}
	}
	if id == "" {
		return nil, fmt.Errorf("node %s has no interface in a link", v.ClientID)
	}
	return nil, fmt.Errorf("node %s has no interface %q", v.ClientID, id)
}

// linkOf finds the link that joins an interface, or nil.
func (g *graph) linkOf(v *slivers.Sliver, id request.ClientID) *slivers.Sliver {
	return g.ends[linkEnd{v.URN.Canonical(), id}]
}

// firstUser is the account that steps of a node run as.
func firstUser(v *slivers.Sliver) string {
	for _, u := range v.Node.Users {
		if u.Login != "" {
			return u.Login
		}
	}
	return startup.Root
}

// hostLines are the lines of a node's hosts file for the nodes of its slice:
// each by the address that it has on a link with this one, or by its first.
func (g *graph) hostLines(v *slivers.Sliver) string {
	near := map[string]bool{} // names of links of this node
	for _, i := range v.Node.Interfaces {
		if l := g.linkOf(v, i.ID); l != nil {
			near[l.URN.Name] = true
		}
	}
	if len(near) == 0 {
		return ""
	}
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(g.nodes)) {
		n := g.nodes[id]
		name := label(string(id))
		names := n.Node.Hostname
		if name != names {
			names += " " + name
		}
		for _, alias := range n.Node.Aliases {
			if alias = label(alias); alias != name && alias != n.Node.Hostname {
				names += " " + alias
			}
		}
		var first, best, links string
		for _, i := range n.Node.Interfaces {
			l := g.linkOf(n, i.ID)
			if l == nil || len(i.Addresses) == 0 {
				continue
			}
			a := i.Addresses[0].Addr().String()
			if first == "" {
				first = a
			}
			if best == "" && near[l.URN.Name] {
				best = a
			}
			// As Emulab has it: each of a node's addresses under a name of its own.
			links += fmt.Sprintf("%s %s-%s\n", a, name, label(string(l.ClientID)))
		}
		if best == "" {
			best = first
		}
		if best != "" && n != v {
			fmt.Fprintf(&b, "%s %s\n", best, names)
		}
		b.WriteString(links)
	}
	return b.String()
}
