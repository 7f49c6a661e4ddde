package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/urn"
)

func (a *app) validateCommand() *cobra.Command {
	var manager string
	var values func() (map[string]any, error)
	c := &cobra.Command{
		Use:   "validate FILE",
		Short: "Say whether a request would be understood",
		Long: `Read a request as the aggregate in --dir would, and say what is wrong with it,
line by line; - reads standard input. Exit status is 0 if it would be accepted
by a testbed that nobody uses. Warnings are about what has no effect here, and
about what breaks the schema although aggregates accept it.

Nodes of other aggregates are not looked at. Without an aggregate in --dir,
--manager says whose nodes to look at, and what they ask for is not compared
with any testbed.`,
		Example: "  croft validate request.rspec",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			testbed, err := a.testbed()
			if err != nil {
				return err
			}
			var managers []urn.URN
			switch {
			case manager != "":
				id, err := urn.Parse(manager)
				if err != nil {
					return err
				}
				managers, testbed = []urn.URN{id}, nil
			case testbed != nil:
				managers = testbed.Managers()
			}
			inputs, err := values()
			if err != nil {
				return err
			}
			request, err := a.readRequest(args[0])
			if err != nil {
				return err
			}
			return a.validate(cmd.Context(), args[0], []byte(request), managers, inputs, testbed)
		},
	}
	c.Flags().StringVar(&manager, "manager", "", "`URN` of the component manager that nodes are asked of")
	values = inputFlags(c)
	return c
}

// testbed is the inventory of the aggregate in --dir, or nil if there is none.
func (a *app) testbed() (*inventory.Snapshot, error) {
	testbed, err := inventory.Load(a.path("inventory.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return testbed, err
}

// unplaceable tells why a request that is understood would not be given, were
// nothing taken.
func (a *app) unplaceable(ctx context.Context, testbed *inventory.Snapshot, request []byte, scope languages.Scope) ([]finding, error) {
	language, err := a.languages().For(request)
	if err != nil {
		return nil, err
	}
	compiled, err := language.Compile(ctx, request, scope)
	if err != nil {
		return nil, err
	}
	if len(compiled.Request.Nodes)+len(compiled.Request.Links) == 0 {
		return []finding{{Kind: "error", Message: "the document asks for nothing of this aggregate",
			Hint: "its nodes have component_manager_id " + testbed.Manager.String() + ", or none"}}, nil
	}
	_, err = new(mapping.Optimizer).Map(testbed, mapping.Occupancy{}, compiled.Request,
		mapping.Options{Seed: 1, Slice: urn.URN{Authority: testbed.Authority, Type: urn.Slice, Name: "validate"}})
	var refusal *mapping.Refusal
	if !errors.As(err, &refusal) {
		return nil, err
	}
	what := refusal.Why
	if refusal.Item != "" {
		what = string(refusal.Item) + ": " + what
	}
	at := refusal.Place
	return []finding{{at.Line, at.Column, at.Path, "error", what, refusal.Hint}}, nil
}

// finding is one thing to tell the author of a document.
type finding struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Kind    string `json:"kind"` // "error", "warning" or "advice"
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func findings(kind string, problems []languages.Problem) []finding {
	var out []finding
	for _, p := range problems {
		out = append(out, finding{p.Place.Line, p.Place.Column, p.Place.Path, kind, p.What, p.Hint})
	}
	return out
}

func (a *app) validate(ctx context.Context, name string, request []byte, managers []urn.URN, inputs map[string]any, testbed *inventory.Snapshot) error {
	scope := languages.Scope{Managers: managers, Inputs: inputs}
	report, err := a.check(ctx, request, scope)
	found := []finding{}
	var mistakes *languages.Error
	switch {
	case errors.As(err, &mistakes):
		found = findings("error", mistakes.Problems)
	case err != nil:
		found = []finding{{Kind: "error", Message: err.Error()}}
	default:
		found = append(found, findings("error", report.Problems)...)
		if testbed != nil && len(found) == 0 {
			if found, err = a.unplaceable(ctx, testbed, request, scope); err != nil {
				return fmt.Errorf("validate %s: %w", name, err)
			}
		}
		found = append(found, findings("warning", report.Warnings)...)
		found = append(found, findings("warning", report.Schema)...)
	}
	valid := true
	for _, f := range found {
		valid = valid && f.Kind != "error"
	}
	if a.json {
		out := map[string]any{"file": name, "valid": valid, "findings": found}
		if report != nil {
			out["nodes"], out["links"] = report.Nodes, report.Links
		}
		if err := a.writeJSON(out); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			fmt.Fprintln(a.out, f.text(name))
		}
		if valid {
			fmt.Fprintf(a.out, "%s would be understood: nodes %d, links %d\n", name, report.Nodes, report.Links)
		}
	}
	if !valid {
		if !a.json {
			fmt.Fprintf(a.errs, "croft: %s would be refused\n", name)
		}
		return exitStatus(1)
	}
	return nil
}

// text writes a finding in the way of compilers.
func (f finding) text(file string) string {
	s := file
	if f.Line > 0 {
		s += fmt.Sprintf(":%d", f.Line)
		if f.Column > 0 {
			s += fmt.Sprintf(":%d", f.Column)
		}
	}
	s += ": " + f.Kind + ": "
	if f.Path != "" {
		s += f.Path + ": "
	}
	s += f.Message
	if f.Hint != "" {
		s += " (" + f.Hint + ")"
	}
	return s
}
