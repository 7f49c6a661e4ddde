package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"croft/client"
	"croft/languages/archive"
	"croft/languages/tosca"
	"croft/urn"
)

func (a *app) versionCommand() *cobra.Command {
	return a.calls(&cobra.Command{
		Use:   "version",
		Short: "Ask an aggregate what it speaks (GetVersion)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open()
			if err != nil {
				return err
			}
			v, err := s.Version(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(v)
			}
			w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
			fmt.Fprintf(w, "aggregate\t%s\n", s.URL())
			fmt.Fprintf(w, "AM API\t%d\n", v.API)
			for name, url := range v.APIVersions {
				fmt.Fprintf(w, "  version %s\t%s\n", name, url)
			}
			fmt.Fprintf(w, "requests\t%s\n", formats(v.RequestFormats))
			fmt.Fprintf(w, "advertisements\t%s\n", formats(v.AdFormats))
			var types []string
			for _, t := range v.CredentialTypes {
				types = append(types, t.Type+" "+t.Version)
			}
			fmt.Fprintf(w, "credentials\t%s\n", strings.Join(types, ", "))
			return w.Flush()
		},
	})
}

func formats(list []client.Format) string {
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.Type + " " + f.Version
	}
	return strings.Join(names, ", ")
}

func (a *app) listCommand() *cobra.Command {
	var available, raw, mine bool
	c := a.calls(&cobra.Command{
		Use:     "list",
		Short:   "List what an aggregate has (ListResources)",
		Example: "  croft list --available\n  croft list --raw > advertisement.xml\n  croft list --slices",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open()
			if err != nil {
				return err
			}
			if mine {
				return a.listSlices(cmd.Context(), s)
			}
			document, err := s.ListResources(cmd.Context(), s.userCredentials(), client.ListOptions{Available: available})
			if err != nil {
				return err
			}
			if raw {
				return a.writeDocument(document)
			}
			ad, err := client.ReadAdvertisement(document)
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(ad)
			}
			return a.writeAd(ad)
		},
	})
	c.Flags().BoolVar(&available, "available", false, "only what is free")
	c.Flags().BoolVar(&raw, "raw", false, "the advertisement as it is")
	c.Flags().BoolVar(&mine, "slices", false, "instead, the slices that the member has something in, also by the REST APIs (of a Croft)")
	return c
}

func (a *app) writeAd(ad *client.Advertisement) error {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tFREE\tEXCLUSIVE\tSLIVER TYPES\tHARDWARE TYPES")
	for _, n := range ad.Nodes {
		name := n.Name
		if name == "" {
			name = n.ID
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, yesNo(n.Available), yesNo(n.Exclusive),
			orDash(strings.Join(n.SliverTypes, ",")), orDash(strings.Join(n.HardwareTypes, ",")))
	}
	return w.Flush()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (a *app) writeDocument(document string) error {
	if !strings.HasSuffix(document, "\n") {
		document += "\n"
	}
	_, err := io.WriteString(a.out, document)
	return err
}

// readRequest reads a request from a file, or from standard input for "-".
func (a *app) readRequest(file string) (string, error) {
	if file == "-" {
		data, err := io.ReadAll(a.in)
		if archive.Is(data) {
			return tosca.Encode(data), err
		}
		return string(data), err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read request: %w", err)
	}
	return toscaRequest(context.Background(), file, data)
}

// writeDescribed tells about slivers, and about the manifest if asked to.
func (a *app) writeDescribed(d *client.Described, raw bool) error {
	switch {
	case raw:
		return a.writeDocument(d.RSpec)
	case a.json:
		return a.writeJSON(d)
	}
	return a.writeSlivers(d.Slivers)
}

// onSlice is a command whose first argument is a slice.
func (a *app) onSlice(c *cobra.Command, run func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, args []string) error) *cobra.Command {
	c.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.open()
		if err != nil {
			return err
		}
		slice, creds, err := s.slice(args[0])
		if err != nil {
			return err
		}
		return run(cmd, s, slice, creds, args)
	}
	return a.calls(c)
}

func (a *app) allocateCommand() *cobra.Command {
	var end string
	var raw bool
	var values func() (map[string]any, error)
	c := a.onSlice(&cobra.Command{
		Use:   "allocate SLICE FILE",
		Short: "Reserve what a request asks for (Allocate)",
		Long: `Reserve what the request in FILE asks for, all or nothing; - reads standard
input. The reservation ends soon (10 minutes at most aggregates) unless it is
provisioned. croft up does all steps at once.`,
		Example: "  croft allocate exp1 request.rspec",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, args []string) error {
		request, err := a.readRequest(args[1])
		if err != nil {
			return err
		}
		until, err := a.parseEnd(end)
		if err != nil {
			return err
		}
		inputs, err := values()
		if err != nil {
			return err
		}
		d, err := s.AllocateWith(cmd.Context(), slice, creds, request, until, inputs)
		if err != nil {
			return err
		}
		a.writeRemarks(d.Output)
		return a.writeDescribed(d, raw)
	})
	endFlag(c, &end)
	rawFlag(c, &raw)
	values = inputFlags(c)
	return c
}

func (a *app) provisionCommand() *cobra.Command {
	var end string
	var raw bool
	c := a.onSlice(&cobra.Command{
		Use:   "provision SLICE",
		Short: "Make real what is reserved (Provision)",
		Long: `Make real what is reserved for the slice, with the member's SSH key. Nodes are
made in the background: croft status tells how far they are, and croft action
SLICE geni_start starts them.`,
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, _ []string) error {
		users, err := s.users()
		if err != nil {
			return err
		}
		until, err := a.parseEnd(end)
		if err != nil {
			return err
		}
		d, err := s.Provision(cmd.Context(), []urn.URN{slice}, creds, client.ProvisionOptions{Users: users, End: until})
		if err != nil {
			return err
		}
		return a.writeDescribed(d, raw)
	})
	endFlag(c, &end)
	rawFlag(c, &raw)
	return c
}

func (a *app) statusCommand() *cobra.Command {
	return a.onSlice(&cobra.Command{
		Use:   "status SLICE",
		Short: "Tell the states of a slice's slivers (Status)",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, _ []string) error {
		d, err := s.Status(cmd.Context(), []urn.URN{slice}, creds)
		if err != nil {
			return err
		}
		return a.writeDescribed(d, false)
	})
}

func (a *app) describeCommand() *cobra.Command {
	var raw, outputs bool
	c := a.onSlice(&cobra.Command{
		Use:   "describe SLICE",
		Short: "Tell about a slice's nodes and how to log in (Describe)",
		Long: `Tell about a slice's nodes and how to log in. With --tosca, tell the outputs of
the TOSCA templates that were deployed in the slice: those that are known by
now.`,
		Example: "  croft describe exp1\n  croft describe exp1 --raw > manifest.xml\n  croft describe exp1 --tosca",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, _ []string) error {
		if outputs {
			d, err := s.Outputs(cmd.Context(), slice, creds)
			if err != nil {
				return err
			}
			return a.writeOutputs(d.Outputs)
		}
		d, err := s.Describe(cmd.Context(), []urn.URN{slice}, creds, client.GENI3)
		if err != nil {
			return err
		}
		if raw || a.json {
			return a.writeDescribed(d, raw)
		}
		return a.writeNodes(d, s.who.URN)
	})
	rawFlag(c, &raw)
	c.Flags().BoolVar(&outputs, "tosca", false, "the outputs of TOSCA templates instead")
	return c
}

// writeNodes lists the nodes of a manifest.
func (a *app) writeNodes(d *client.Described, who urn.URN) error {
	if d.RSpec == "" {
		return a.writeSlivers(d.Slivers)
	}
	m, err := client.ReadManifest(d.RSpec)
	if err != nil {
		return err
	}
	states := map[string]client.Sliver{}
	for _, s := range d.Slivers {
		states[s.URN.String()] = s
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tSTATE\tLOGIN\tADDRESSES\tEXPIRES")
	for _, n := range m.Nodes {
		state, known := states[n.Sliver]
		if !known {
			continue // another aggregate's
		}
		login := "-"
		if l, ok := n.LoginOf(who); ok {
			login = "ssh://" + l.User + "@" + net.JoinHostPort(l.Host, l.Port)
			if at, ok := n.ProxyOf(l); ok {
				login += " via " + net.JoinHostPort(at.Host, at.Port)
			}
		}
		var addresses []string
		for _, i := range n.Interfaces {
			addresses = append(addresses, i.Addresses...)
		}
		told := short(state.Operational)
		if state.Allocation != "geni_provisioned" {
			told = short(state.Allocation)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", n.ClientID, told, login, orDash(strings.Join(addresses, ",")), when(state.Expires))
	}
	return w.Flush()
}

func (a *app) actionCommand() *cobra.Command {
	return a.onSlice(&cobra.Command{
		Use:   "action SLICE ACTION",
		Short: "Start, stop or restart a slice's slivers (PerformOperationalAction)",
		Long: `Do an operational action on all slivers of the slice: geni_start, geni_stop,
geni_restart, geni_update_users (which gives the nodes the member's SSH key as it
is now), croft_rerun_startup (which tries again what failed of the nodes'
start-up, at aggregates that are Crofts), or what else the aggregate's advertisement names.`,
		Example:   "  croft action exp1 geni_restart",
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"geni_start", "geni_stop", "geni_restart", "geni_update_users", "croft_rerun_startup"},
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, args []string) error {
		var o client.ActionOptions
		if args[1] == "geni_update_users" {
			users, err := s.users()
			if err != nil {
				return err
			}
			o.Users = users
		}
		slivers, err := s.Perform(cmd.Context(), []urn.URN{slice}, creds, args[1], o)
		if err != nil {
			return err
		}
		return a.writeSlivers(slivers)
	})
}

func (a *app) renewCommand() *cobra.Command {
	return a.onSlice(&cobra.Command{
		Use:   "renew SLICE TIME",
		Short: "Keep a slice's slivers until a time (Renew)",
		Long: `Ask for another end of all slivers of the slice: a date (2026-01-02T15:04:05Z)
or a span from now (12h, 3d).`,
		Example: "  croft renew exp1 3d",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, args []string) error {
		until, err := a.parseEnd(args[1])
		if err != nil {
			return err
		}
		if until.IsZero() {
			return fmt.Errorf("renew: no time given")
		}
		slivers, err := s.Renew(cmd.Context(), []urn.URN{slice}, creds, until, false)
		if err != nil {
			return err
		}
		return a.writeSlivers(slivers)
	})
}

func (a *app) deleteCommand() *cobra.Command {
	return a.onSlice(&cobra.Command{
		Use:   "delete SLICE",
		Short: "Give back all slivers of a slice (Delete)",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, _ []string) error {
		slivers, err := s.Delete(cmd.Context(), []urn.URN{slice}, creds, false)
		if err != nil {
			return err
		}
		return a.writeSlivers(slivers)
	})
}

func (a *app) shutdownCommand() *cobra.Command {
	return a.onSlice(&cobra.Command{
		Use:   "shutdown SLICE",
		Short: "Emergency stop of a slice (Shutdown)",
		Long: `Stop everything of the slice at once, for good: only an operator of the
aggregate can lift it. To give slivers back, use croft delete.`,
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, _ []string) error {
		if err := s.Shutdown(cmd.Context(), slice, creds); err != nil {
			return err
		}
		if a.json {
			return a.writeJSON(true)
		}
		fmt.Fprintf(a.out, "%s is shut down\n", slice)
		return nil
	})
}

func endFlag(c *cobra.Command, end *string) {
	c.Flags().StringVar(end, "end", "", "until when: a `time` (2026-01-02T15:04:05Z) or a span from now (12h, 3d)")
}

func rawFlag(c *cobra.Command, raw *bool) {
	c.Flags().BoolVar(raw, "raw", false, "the manifest as it is")
}
