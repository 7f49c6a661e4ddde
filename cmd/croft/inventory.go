package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"croft/inventory"
)

func (a *app) inventoryCommand() *cobra.Command {
	c := group(&cobra.Command{Use: "inventory", Short: "The testbed as it is declared"})
	c.AddCommand(
		&cobra.Command{
			Use:     "schema",
			Short:   "Print the JSON schema of inventories, for editors",
			Example: "  croft inventory schema > inventory.schema.json",
			Args:    cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				_, err := a.out.Write(inventory.Schema())
				return err
			},
		},
		&cobra.Command{
			Use:   "check [FILE]",
			Short: "Check an inventory: mistakes, and what is probably not meant",
			Long: `Read an inventory as the server does and tell what is wrong with it, line by
line. Advice about what is legal but probably not meant does not change the
exit status. FILE is inventory.yaml in --dir if it is left out.`,
			Args: cobra.MaximumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				file := a.path("inventory.yaml")
				if len(args) == 1 {
					file = args[0]
				}
				return a.checkInventory(file)
			},
		},
		a.importCommand(),
	)
	return c
}

func (a *app) checkInventory(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("check inventory: %w", err)
	}
	machine, err := thisMachine(".")
	if err != nil {
		return err
	}
	machine.Disk = 0 // what is free changes by the minute
	testbed, advice, err := inventory.Check(data, file, machine)
	var mistakes *inventory.Error
	if err != nil && !errors.As(err, &mistakes) {
		return err
	}
	if a.json {
		found := inventoryFindings("advice", advice)
		if mistakes != nil {
			found = append(inventoryFindings("error", mistakes.Problems), found...)
		}
		if err := a.writeJSON(map[string]any{"file": file, "valid": mistakes == nil, "findings": found}); err != nil {
			return err
		}
	} else {
		for _, p := range advice {
			fmt.Fprintf(a.out, "%s\n", p)
		}
		if mistakes != nil {
			fmt.Fprintln(a.errs, mistakes)
		} else {
			fmt.Fprintf(a.out, "%s: %d hosts, of %s\n", file, len(testbed.Hosts), testbed.Manager)
		}
	}
	if mistakes != nil {
		return exitStatus(1)
	}
	return nil
}

func inventoryFindings(kind string, problems []inventory.Problem) []finding {
	out := []finding{}
	for _, p := range problems {
		out = append(out, finding{p.Line, p.Column, p.Path, kind, p.What, p.Hint})
	}
	return out
}
