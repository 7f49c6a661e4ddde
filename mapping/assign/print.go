package assign

import (
	"bufio"
	"fmt"
	"io"

	"croft/mapping/solver"
)

// Write prints a solution as assign does.
func Write(w io.Writer, p *solver.Problem, sol *solver.Solution) error {
	out := bufio.NewWriter(w)
	spec := p.Testbed.Spec()
	fmt.Fprintf(out, "   BEST SCORE:  %.2f in %d iters and 0 seconds\n", sol.Score, sol.Steps)
	fmt.Fprintf(out, "With %d violations\n", sol.Violations)
	for _, r := range sol.Reasons {
		fmt.Fprintf(out, "*** %s\n", r.Text)
	}
	fmt.Fprintln(out, "Nodes:")
	for v := range p.Nodes {
		if sol.Hosts == nil || sol.Hosts[v] < 0 {
			fmt.Fprintf(out, "unassigned: %s\n", p.Nodes[v].Name)
			continue
		}
		fmt.Fprintf(out, "%s %s\n", p.Nodes[v].Name, spec.Hosts[sol.Hosts[v]].Name)
	}
	fmt.Fprintln(out, "End Nodes\nEdges:")
	for l := range p.Links {
		link := &p.Links[l]
		var r solver.Route
		if sol.Routes != nil {
			r = sol.Routes[l]
		}
		out.WriteString(link.Name)
		switch r.Kind {
		case solver.NoRoute:
			fmt.Fprintln(out, "  Mapping Failed")
			continue
		case solver.TrivialRoute:
			h := spec.Hosts[sol.Hosts[link.A]].Name
			fmt.Fprintf(out, " trivial %s:loopback (%s/null,(null)) %s:loopback (%s/null,(null)) \n", h, h, h, h)
			continue
		case solver.DirectRoute:
			out.WriteString(" direct")
			wire(out, spec, r.Wires[0])
			wire(out, spec, r.Wires[0])
		case solver.IntraswitchRoute:
			out.WriteString(" intraswitch")
			wires(out, spec, r.Wires)
		case solver.InterswitchRoute:
			out.WriteString(" interswitch ")
			wires(out, spec, r.Wires)
		}
		out.WriteByte('\n')
	}
	fmt.Fprintln(out, "End Edges\nEnd solution")
	return out.Flush()
}

func wires(out *bufio.Writer, spec *solver.Spec, ws []int32) {
	for _, w := range ws {
		wire(out, spec, w)
	}
}

func wire(out *bufio.Writer, spec *solver.Spec, w int32) {
	x := &spec.Wires[w]
	fmt.Fprintf(out, " %s (%s,%s)", x.Name, iface(spec, x.A, x.AIface), iface(spec, x.B, x.BIface))
}

func iface(spec *solver.Spec, host int32, name string) string {
	if name == "" {
		return spec.Hosts[host].Name + "/(null)"
	}
	return spec.Hosts[host].Name + "/" + name
}
