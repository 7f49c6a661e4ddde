package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"croft/inventory"
	"croft/mapping"
	"croft/request"
	"croft/urn"
)

// mapped is what --json prints.
type mapped struct {
	Placement   *mapping.Placement   `json:"placement,omitempty"`
	Explanation *mapping.Explanation `json:"explanation,omitempty"`
	Refusal     *mapping.Refusal     `json:"refusal,omitempty"`
}

func (a *app) printPlacement(testbed *inventory.Snapshot, p *mapping.Placement) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tHOST\tSLIVER TYPE\tTAKES")
	for _, n := range p.Nodes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s", n.Node, n.Host.Name, n.SliverType, n.Capacity)
		if n.Delays != "" {
			fmt.Fprintf(w, "\tput in, a delay node of %s", n.Delays)
		}
		fmt.Fprintln(w)
	}
	if len(p.Links) > 0 {
		fmt.Fprintln(w, "\nLINK\tVLAN\tWAY\tSHAPES")
	}
	names := map[urn.URN]string{}
	for _, l := range testbed.Links {
		names[l.ID.Canonical()] = l.Name
	}
	for _, l := range p.Links {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Link, vlanOf(l.VLAN), wayOf(names, &l), shapesOf(&l))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(p.Left) > 0 {
		fmt.Fprintf(a.out, "\nNo room for the optional %v.\n", p.Left)
	}
	if p.Cut {
		fmt.Fprintln(a.errs, "the search was cut by the limit of time: there may be a better placement")
	}
	return nil
}

func vlanOf(tag int) string {
	if tag == 0 {
		return "-"
	}
	return strconv.Itoa(tag)
}

// wayOf writes where a link runs.
func wayOf(names map[urn.URN]string, l *mapping.LinkPlacement) string {
	if !l.Within.IsZero() && len(l.Route) == 0 {
		return "within " + l.Within.Name
	}
	var parts []string
	for _, c := range l.Route {
		name := names[c.Wire.Canonical()]
		if name == "" {
			name = c.Wire.Name
		}
		if c.Bandwidth > 0 {
			name += fmt.Sprintf(" (%d kbit/s)", c.Bandwidth)
		}
		parts = append(parts, name)
	}
	if len(parts) == 0 {
		return "between hosts"
	}
	return strings.Join(parts, ", ")
}

func shapesOf(l *mapping.LinkPlacement) string {
	var parts []string
	for _, e := range l.Ends {
		for _, d := range []struct {
			name  string
			shape request.Shape
		}{{"sends", e.Out}, {"receives", e.In}} {
			if s := shapeOf(d.shape); s != "" {
				parts = append(parts, fmt.Sprintf("%s %s %s", e.Interface, d.name, s))
			}
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}

func shapeOf(s request.Shape) string {
	var parts []string
	if s.Capacity > 0 {
		parts = append(parts, fmt.Sprintf("%d kbit/s", s.Capacity))
	}
	if s.LatencyMs > 0 {
		parts = append(parts, fmt.Sprintf("%g ms", s.LatencyMs))
	}
	if s.JitterMs > 0 {
		parts = append(parts, fmt.Sprintf("±%g ms", s.JitterMs))
	}
	if s.Loss > 0 {
		parts = append(parts, fmt.Sprintf("%g %% lost", s.Loss))
	}
	return strings.Join(parts, " ")
}

// printExplanation tells how the answer came about.
func (a *app) printExplanation(x *mapping.Explanation) error {
	fmt.Fprintln(a.out)
	for _, n := range x.Nodes {
		fmt.Fprintf(a.out, "%s: %d of %d hosts could take it", n.Node, n.Candidates, n.Hosts)
		var lost []string
		for _, why := range slices.Sorted(maps.Keys(n.LostTo)) {
			lost = append(lost, fmt.Sprintf("%d %s", n.LostTo[why], why))
		}
		if len(lost) > 0 {
			fmt.Fprintf(a.out, "; in the way: %s", strings.Join(lost, ", "))
		}
		fmt.Fprintln(a.out)
		if n.Host == "" {
			continue
		}
		fmt.Fprintf(a.out, "  on %s, which costs %.3g for itself", n.Host, n.Costs)
		if n.Costs > n.Least {
			fmt.Fprintf(a.out, "; %s costs %.3g, but not with the rest of the request", n.Cheapest, n.Least)
		} else {
			fmt.Fprint(a.out, ", as little as any")
		}
		fmt.Fprintln(a.out)
	}
	if x.Score > 0 || x.Steps > 0 {
		fmt.Fprintf(a.out, "score %.3f after %d steps:", x.Score, x.Steps)
		for _, p := range x.Parts {
			fmt.Fprintf(a.out, " %s %.3f", p.What, p.Cost)
		}
		fmt.Fprintln(a.out)
	}
	for _, t := range x.Trunks {
		fmt.Fprintf(a.out, "trunk %s\n", t)
	}
	return nil
}
