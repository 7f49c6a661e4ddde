package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"croft/client"
	"croft/urn"
)

func (a *app) logCommand() *cobra.Command {
	var step string
	var console bool
	c := a.onSlice(&cobra.Command{
		Use:   "log SLICE [NODE]",
		Short: "Tell how the start-up of nodes goes, and what it has written",
		Long: `List the steps of the nodes' start-up (install and execute of an RSpec, recipes
and scripts of other languages) with their states, and print what each has
written so far. With a node, of that node only; with --step, only what that step
has written. With --console, print what the console of the node has said
instead.

The state of a step is waiting, running, done, failed or skipped. A failed step
does not make its node fail.`,
		Example: "  croft log exp1\n  croft log exp1 node0\n  croft log exp1 node0 --step node0-execute-1\n  croft log exp1 node0 --console",
		Args:    cobra.RangeArgs(1, 2),
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, args []string) error {
		of := []urn.URN{slice}
		if len(args) > 1 {
			all, err := s.Status(cmd.Context(), of, creds)
			if err != nil {
				return err
			}
			k := slices.IndexFunc(all.Slivers, func(v client.Sliver) bool { return v.ClientID == args[1] })
			if k < 0 {
				return fmt.Errorf("slice %s has no node %s here", args[0], args[1])
			}
			of = []urn.URN{all.Slivers[k].URN}
		}
		d, err := s.Log(cmd.Context(), of, creds, client.LogOptions{Output: !console, Console: console})
		if err != nil {
			return err
		}
		list := d.Slivers
		if step != "" {
			for _, v := range list {
				for _, st := range v.Startup {
					if st.Name == step {
						fmt.Fprint(a.out, st.Output)
						return nil
					}
				}
			}
			return fmt.Errorf("there is no step %s (there is: %s)", step, orDash(strings.Join(stepNames(list), ", ")))
		}
		if a.json {
			return a.writeJSON(list)
		}
		if console {
			for _, v := range list {
				a.writeLog(v.ClientID, v.Console)
			}
			return nil
		}
		if err := a.writeSteps(list); err != nil {
			return err
		}
		for _, v := range list {
			for _, st := range v.Startup {
				a.writeLog(st.Name, st.Output)
			}
		}
		return nil
	})
	c.Flags().StringVar(&step, "step", "", "only what this `step` has written")
	c.Flags().BoolVar(&console, "console", false, "what the console of the node has said")
	return c
}

func stepNames(list []client.Sliver) []string {
	var names []string
	for _, v := range list {
		for _, st := range v.Startup {
			names = append(names, st.Name)
		}
	}
	return names
}

// writeLog prints a text under a heading, if there is any.
func (a *app) writeLog(of, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(a.out, "\n--- %s\n%s", of, text)
	if !strings.HasSuffix(text, "\n") {
		fmt.Fprintln(a.out)
	}
}

// writeSteps lists the steps of slivers.
func (a *app) writeSteps(list []client.Sliver) error {
	if len(stepNames(list)) == 0 {
		fmt.Fprintln(a.out, "no start-up steps")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tSTEP\tSTATE\tSTARTED\tTOOK\tREASON")
	for _, v := range list {
		for _, st := range v.Startup {
			state, took := st.State, "-"
			if st.Alive {
				state += " (running)"
			}
			if st.Over() && !st.Started.IsZero() && !st.Ended.IsZero() {
				took = st.Ended.Sub(st.Started).String()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.ClientID, st.Name, state, when(st.Started), took, st.Reason)
		}
	}
	return w.Flush()
}
