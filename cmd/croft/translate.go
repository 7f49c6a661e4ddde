package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"croft/languages"
	"croft/languages/radl"
	"croft/rspec"
	"croft/urn"
)

func (a *app) translateCommand() *cobra.Command {
	var to, manager string
	var values func() (map[string]any, error)
	c := &cobra.Command{
		Use:   "translate FILE",
		Short: "Write a request in another language",
		Long: `Write the request in FILE, of any language that croft reads, in another one; -
reads standard input. No server is asked.

  rspec  a GENI 3 request RSpec: what would be asked of the testbed. Warnings on
         standard error say what an RSpec cannot hold, such as start-up steps of
         several nodes that wait for each other.
  radl   RADL in the text form, of RADL
  json   RADL in the JSON form, of RADL`,
		Example: "  croft translate cluster.radl --to rspec\n  croft translate cluster.radl --to json --input NODES=3",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			document, err := a.readRequest(args[0])
			if err != nil {
				return err
			}
			inputs, err := values()
			if err != nil {
				return err
			}
			text, err := a.translate(cmd.Context(), args[0], []byte(document), inputs, to, manager)
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		},
	}
	c.Flags().StringVar(&to, "to", "rspec", "`language` to write: rspec, radl or json")
	c.Flags().StringVar(&manager, "manager", "", "`URN` of the component manager that nodes are asked of (default: that of --dir)")
	values = inputFlags(c)
	return c
}

func (a *app) translate(ctx context.Context, name string, document []byte, inputs map[string]any, to, manager string) ([]byte, error) {
	switch to {
	case "radl", "json":
		if !(radl.Language{}).Detect(document) {
			return nil, fmt.Errorf("translate %s: only RADL can be written as RADL", name)
		}
		d, _, err := radl.Parse(document, inputs)
		if err != nil {
			return nil, a.mistakes(name, err)
		}
		if to == "json" {
			return d.JSON()
		}
		return d.Text()
	case "rspec":
	default:
		return nil, fmt.Errorf("translate %s: --to %q: want rspec, radl or json", name, to)
	}
	scope := languages.Scope{Inputs: inputs}
	testbed, err := a.testbed()
	if err != nil {
		return nil, err
	}
	switch {
	case manager != "":
		id, err := urn.Parse(manager)
		if err != nil {
			return nil, err
		}
		scope.Managers = []urn.URN{id}
	case testbed != nil:
		scope.Managers = testbed.Managers()
	}
	language, err := a.languages().For(document)
	if err != nil {
		return nil, a.mistakes(name, err)
	}
	compiled, err := language.Compile(ctx, document, scope)
	if err != nil {
		return nil, a.mistakes(name, err)
	}
	text, lost := rspec.WriteRequest(compiled.Request)
	for _, f := range findings("warning", append(compiled.Warnings, lost...)) {
		fmt.Fprintln(a.errs, f.text(name))
	}
	return text, nil
}

// mistakes writes what is wrong with a document, line by line.
func (a *app) mistakes(name string, err error) error {
	var wrong *languages.Error
	if !errors.As(err, &wrong) {
		return fmt.Errorf("translate %s: %w", name, err)
	}
	for _, f := range findings("error", wrong.Problems) {
		fmt.Fprintln(a.errs, f.text(name))
	}
	return exitStatus(1)
}
