package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"croft/admin"
	"croft/internal/config"
	"croft/urn"
)

const adminHelp = `See and do, as the operator of the aggregate, what needs no credential: on the
machine that croft serve runs on, as root or as the user it runs as.

A SLICE is a URN, or the name of a slice that is known here. Everything that is
done this way is in the server's audit log.`

func (a *app) adminCommand() *cobra.Command {
	c := group(&cobra.Command{Use: "admin", Short: "What the operator of the aggregate can do", Long: adminHelp})
	var path string
	c.PersistentFlags().StringVar(&path, "config", "", "configuration `file` of the server (default: croft.yaml in --dir)")
	door := func() (*admin.Client, error) {
		if path == "" {
			path = filepath.Join(a.dir, "croft.yaml")
		}
		conf, err := config.Load(path)
		if err != nil {
			return nil, err
		}
		return admin.NewClient(admin.Socket(conf.State)), nil
	}
	add := func(c2 *cobra.Command, run func(cmd *cobra.Command, d *admin.Client, args []string) error) {
		c2.RunE = func(cmd *cobra.Command, args []string) error {
			d, err := door()
			if err != nil {
				return err
			}
			return run(cmd, d, args)
		}
		c.AddCommand(c2)
	}
	add(&cobra.Command{Use: "slices", Short: "List the slices that are known", Args: cobra.NoArgs}, a.adminSlices)
	add(&cobra.Command{Use: "slivers [SLICE]", Short: "List what is given out, also what is being removed", Args: cobra.MaximumNArgs(1)}, a.adminSlivers)
	add(&cobra.Command{
		Use: "strays", Short: "List hosts that the inventory has no place for any more",
		Long: `List the hosts that have gone from the inventory, or shrunk in it, under nodes that
are on them, and until when those nodes may stay.`,
		Args: cobra.NoArgs,
	}, a.adminStrays)
	add(&cobra.Command{Use: "events SLICE", Short: "Tell what happened to a slice's slivers", Args: cobra.ExactArgs(1)}, a.adminEvents)
	add(&cobra.Command{
		Use: "shutdown SLICE", Short: "Emergency stop of a slice",
		Long: `Stop all of the slice at once and close it to its users. Its slivers stay as they
are, also past their end, until croft admin lift or croft admin delete.`,
		Args: cobra.ExactArgs(1),
	}, a.adminOnSlice("is shut down", (*admin.Client).Shutdown))
	add(&cobra.Command{
		Use: "lift SLICE", Short: "Open a slice again that was shut down",
		Long: `Open a slice again that was shut down. Its nodes stay stopped until they are
started; what would have ended meanwhile ends now.`,
		Args: cobra.ExactArgs(1),
	}, a.adminOnSlice("is open again", (*admin.Client).Lift))
	var force bool
	remove := &cobra.Command{
		Use: "delete SLICE|SLIVER", Short: "Give back a slice's slivers, or one sliver",
		Long: `Give back a slice's slivers, or one sliver, also of a slice that is shut down.

Its host stays taken until the driver has removed it. With --force, what cannot
be removed within some seconds, for its machine does not answer any more, is
forgotten: the host is free again, and LEFT says what may still be there.`,
		Example: "  croft admin delete exp1\n  croft admin delete --force urn:publicid:IDN+example.org+sliver+…",
		Args:    cobra.ExactArgs(1),
	}
	remove.Flags().BoolVar(&force, "force", false, "also forget what cannot be removed")
	add(remove, func(cmd *cobra.Command, d *admin.Client, args []string) error {
		return a.adminDelete(cmd, d, args[0], force)
	})
	add(&cobra.Command{
		Use: "hosts", Short: "List the hosts: whether they take nodes, what is free, and what runs there",
		Args: cobra.NoArgs,
	}, a.adminHosts)
	add(&cobra.Command{
		Use: "machines", Short: "Compare what is on the machines with what should be",
		Long: `List what the drivers have, and how it differs from what the store says. A server
that runs mends such differences by itself (reconcile in croft.yaml).`,
		Args: cobra.NoArgs,
	}, a.adminMachines)
	var reason string
	drain := &cobra.Command{
		Use: "drain HOST", Short: "Let no new slivers on a host",
		Long: `Let no new slivers on a host; what is there stays until its leases end. It is
advertised as unavailable, also after a restart, until croft admin undrain.`,
		Example: "  croft admin drain pc17 --reason 'new disks on Monday'",
		Args:    cobra.ExactArgs(1),
	}
	drain.Flags().StringVar(&reason, "reason", "", "why, for those who ask for the host")
	add(drain, func(cmd *cobra.Command, d *admin.Client, args []string) error {
		return a.adminOnHost(cmd, d, args[0], "takes no new slivers", func(host urn.URN) error { return d.Drain(cmd.Context(), host, reason) })
	})
	add(&cobra.Command{Use: "undrain HOST", Short: "Let new slivers on a host again", Args: cobra.ExactArgs(1)},
		func(cmd *cobra.Command, d *admin.Client, args []string) error {
			return a.adminOnHost(cmd, d, args[0], "takes new slivers", func(host urn.URN) error { return d.Undrain(cmd.Context(), host) })
		})
	return c
}

func (a *app) adminSlices(cmd *cobra.Command, d *admin.Client, _ []string) error {
	list, err := d.Slices(cmd.Context())
	if err != nil || a.json {
		return a.jsonOr(list, err)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SLICE\tSTATE\tSLIVERS\tLEAVING\tSINCE\tEXPIRES")
	for _, s := range list {
		state := "open"
		if s.Shutdown {
			state = "shut down"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", s.URN, state, s.Slivers, s.Leaving, when(s.Created), when(s.Expires))
	}
	return w.Flush()
}

// jsonOr writes a value as JSON, unless there is an error.
func (a *app) jsonOr(v any, err error) error {
	if err != nil {
		return err
	}
	return a.writeJSON(v)
}

func (a *app) adminSlivers(cmd *cobra.Command, d *admin.Client, args []string) error {
	var slice urn.URN
	var err error
	if len(args) > 0 {
		if slice, err = d.Find(cmd.Context(), args[0]); err != nil {
			return err
		}
	}
	list, err := d.Slivers(cmd.Context(), slice)
	if err != nil || a.json {
		return a.jsonOr(list, err)
	}
	return a.writeAdminSlivers(list)
}

func (a *app) adminStrays(cmd *cobra.Command, d *admin.Client, _ []string) error {
	list, err := d.Strays(cmd.Context())
	if err != nil || a.json {
		return a.jsonOr(list, err)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tWHY\tSLIVERS\tUNTIL")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", s.Host, s.Why, len(s.Slivers), when(s.Until))
	}
	return w.Flush()
}

func (a *app) writeAdminSlivers(list []admin.Sliver) error {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SLIVER\tSLICE\tNAME\tHOST\tALLOCATION\tSTATE\tDOING\tEXPIRES\tUSERS\tFAULT")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.URN, s.Slice.Name, s.ClientID, orDash(s.Host), short(s.Allocation),
			short(s.Operational), orDash(s.Doing), when(s.Expires), orDash(strings.Join(s.Users, ",")), oneLine(s.Fault))
	}
	return w.Flush()
}

func (a *app) adminEvents(cmd *cobra.Command, d *admin.Client, args []string) error {
	slice, err := d.Find(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	list, err := d.Events(cmd.Context(), slice)
	if err != nil || a.json {
		return a.jsonOr(list, err)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tSLIVER\tNAME\tALLOCATION\tSTATE\tDOING\tFAULT")
	for _, e := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At.UTC().Format("2006-01-02T15:04:05.000Z"), e.Sliver, orDash(e.ClientID),
			short(e.Allocation), short(e.Operational), orDash(e.Doing), oneLine(e.Fault))
	}
	return w.Flush()
}

// adminOnSlice is a command that does something to a slice, and what is said
// when it is done.
func (a *app) adminOnSlice(done string, do func(*admin.Client, context.Context, urn.URN) error) func(*cobra.Command, *admin.Client, []string) error {
	return func(cmd *cobra.Command, d *admin.Client, args []string) error {
		slice, err := d.Find(cmd.Context(), args[0])
		if err == nil {
			err = do(d, cmd.Context(), slice)
		}
		if err != nil || a.json {
			return a.jsonOr(admin.Name{URN: slice}, err)
		}
		fmt.Fprintf(a.out, "%s %s\n", slice, done)
		return nil
	}
}

func (a *app) adminDelete(cmd *cobra.Command, d *admin.Client, text string, force bool) error {
	name, err := d.Find(cmd.Context(), text)
	if err != nil {
		return err
	}
	list, err := d.Delete(cmd.Context(), name, force)
	if err != nil || a.json {
		return a.jsonOr(list, err)
	}
	if err := a.writeAdminSlivers(list); err != nil {
		return err
	}
	for _, s := range list {
		if s.Left != "" {
			a.warn("%s: %s", s.URN, s.Left)
		}
	}
	return nil
}
