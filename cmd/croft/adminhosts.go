package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"croft/admin"
	"croft/urn"
)

func (a *app) adminHosts(cmd *cobra.Command, d *admin.Client, _ []string) error {
	list, err := d.Hosts(cmd.Context())
	if err != nil || a.json {
		return a.jsonOr(list, err)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tTYPES\tSTATE\tFREE CORES\tFREE MEMORY\tFREE DISK\tNODES\tWHY")
	for _, h := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, orDash(strings.Join(h.Types, ",")), h.State,
			freeOf(h.Capacity.Cores, h.Taken.Cores, "%g"), freeOf(float64(h.Capacity.Memory), float64(h.Taken.Memory), "%.0f MiB"),
			freeOf(float64(h.Capacity.Disk), float64(h.Taken.Disk), "%.0f MiB"), nodesOn(h), oneLine(h.Why))
	}
	return w.Flush()
}

// oneLine is a text for a table.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == '\r' || c == '\t' }), "; ")
}

// freeOf is what is left of what is there, "-" where that is not counted.
func freeOf(all, taken float64, format string) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf(format+" of "+format, all-taken, all)
}

// nodesOn names the nodes on a host.
func nodesOn(h admin.Host) string {
	const few = 8
	var names []string
	for i, s := range h.Slivers {
		if i == few {
			names = append(names, fmt.Sprintf("and %d more", len(h.Slivers)-few))
			break
		}
		names = append(names, s.Slice.Name+"/"+string(s.ClientID))
	}
	return orDash(strings.Join(names, " "))
}

func (a *app) adminMachines(cmd *cobra.Command, d *admin.Client, _ []string) error {
	m, err := d.Machines(cmd.Context())
	if err != nil || a.json {
		return a.jsonOr(m, err)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "DRIVER\tSLIVER\tSLICE\tNAME\tKIND\tTHERE\tAMISS")
	for _, t := range m.Things {
		there := "no"
		switch {
		case t.Running:
			there = "runs"
		case t.There:
			there = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Driver, t.Sliver, orDash(t.Slice.Name), orDash(string(t.ClientID)), t.Kind, there, orDash(oneLine(t.Amiss)))
	}
	for _, name := range m.Silent {
		a.warn("the driver %s does not answer", name)
	}
	return w.Flush()
}

// adminOnHost does something to a host, and says when it is done.
func (a *app) adminOnHost(cmd *cobra.Command, d *admin.Client, text, done string, do func(urn.URN) error) error {
	host, err := d.FindHost(cmd.Context(), text)
	if err == nil {
		err = do(host)
	}
	if err != nil || a.json {
		return a.jsonOr(admin.Name{URN: host}, err)
	}
	fmt.Fprintf(a.out, "%s %s\n", host, done)
	return nil
}
