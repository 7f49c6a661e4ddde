package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/mapping/assign"
	"croft/mapping/solver"
	"croft/urn"
)

func (a *app) mapCommand() *cobra.Command {
	var o mapOptions
	c := &cobra.Command{
		Use:   "map INVENTORY REQUEST",
		Short: "Show where a request would be placed, without reserving",
		Long: `Place a request on an inventory of which nothing is taken, and print where its
nodes would go and which wires its links would take. Nothing is reserved and no
server is asked. With --explain it also tells, for each node, how many hosts
could take it and what is in the way of the others, what the placement costs,
and what the trunks between switches carry.

With --assign the two files are a ptop and a top file as Emulab's assign reads
them, and the mapping is printed as assign prints it.

Exit status: 0 if it was placed, 1 if not. With --assign, as assign has it: 0 if
it was placed without violations, 1 if not (another seed may help), 2 if it is
impossible, 255 if a file cannot be read.`,
		Example: "  croft map inventory.yaml request.rspec\n  croft map --assign testbed.ptop experiment.top",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.assign {
				return a.mapAssign(cmd.Context(), args[0], args[1], o)
			}
			return a.mapRequest(cmd.Context(), args[0], args[1], o)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&o.assign, "assign", false, "read and write the formats of Emulab's assign")
	flags.Uint64Var(&o.seed, "seed", 1, "of every random choice: the same seed gives the same mapping")
	flags.Float64Var(&o.effort, "effort", 1, "how much to search, as a multiple of what is usual")
	flags.DurationVar(&o.limit, "limit", 0, "end the search after this time; the result says if it was cut")
	flags.BoolVar(&o.explain, "explain", false, "tell how the answer came about")
	return c
}

type mapOptions struct {
	assign bool
	seed   uint64
	effort float64
	limit  time.Duration

	explain bool
}

func (a *app) mapAssign(ctx context.Context, ptop, top string, o mapOptions) error {
	request, problem, err := readAssign(ptop, top)
	if err != nil {
		fmt.Fprintln(a.errs, "croft: map:", err)
		return exitStatus(assignUnreadable)
	}
	solution := &solver.Solution{Outcome: solver.Impossible, Reasons: request.Forbidden()}
	if solution.Violations = len(solution.Reasons); solution.Violations == 0 {
		options := solver.Options{Seed: o.seed, Effort: o.effort, Clock: a.now}
		if o.limit > 0 {
			options.Deadline = a.now().Add(o.limit)
		}
		if solution, err = solver.Solve(ctx, problem, options); err != nil {
			return fmt.Errorf("map: %w", err)
		}
	}
	for _, r := range solution.Reasons {
		fmt.Fprintln(a.errs, r)
	}
	if solution.Cut {
		fmt.Fprintln(a.errs, "the search was cut by the limit of time")
	}
	if err := assign.Write(a.out, problem, solution); err != nil {
		return err
	}
	if solution.Outcome == solver.Placed {
		return nil
	}
	fmt.Fprintf(a.errs, "croft: not mapped: %s, %d violations\n", solution.Outcome, solution.Violations)
	if solution.Outcome == solver.Impossible {
		return exitStatus(assignImpossible)
	}
	return exitStatus(1)
}

// Exit statuses of assign, which Emulab's scripts go by.
const (
	assignImpossible = 2   // trying again would not help
	assignUnreadable = 255 // a mistake in the input
)

// readAssign reads files of assign's.
func readAssign(ptop, top string) (*assign.Request, *solver.Problem, error) {
	testbedFile, err := os.Open(ptop)
	if err != nil {
		return nil, nil, err
	}
	defer testbedFile.Close()
	testbed, err := assign.ReadTestbed(testbedFile)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", ptop, err)
	}
	requestFile, err := os.Open(top)
	if err != nil {
		return nil, nil, err
	}
	defer requestFile.Close()
	request, err := assign.ReadRequest(testbed, requestFile)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", top, err)
	}
	problem, err := request.Problem()
	return request, problem, err
}

func (a *app) mapRequest(ctx context.Context, file, name string, o mapOptions) error {
	testbed, err := inventory.Load(file)
	if err != nil {
		return err
	}
	document, err := a.readRequest(name)
	if err != nil {
		return err
	}
	set := a.languages()
	language, err := set.For([]byte(document))
	if err != nil {
		return fmt.Errorf("map %s: %w", name, err)
	}
	compiled, err := language.Compile(ctx, []byte(document), languages.Scope{Managers: testbed.Managers()})
	if err != nil {
		return fmt.Errorf("map %s: %w", name, err)
	}
	options := mapping.Options{Seed: o.seed, Start: o.seed, Effort: int(o.effort * mapping.DefaultEffort), DelayNodes: true,
		Slice: urn.URN{Authority: testbed.Authority, Type: urn.Slice, Name: "map"}}
	if o.limit > 0 {
		options.Deadline, options.Clock = a.now().Add(o.limit), a.now
	}
	placement, why, err := new(mapping.Optimizer).Explain(testbed, mapping.Occupancy{}, compiled.Request, options)
	var refusal *mapping.Refusal
	if err != nil && !errors.As(err, &refusal) {
		return fmt.Errorf("map %s: %w", name, err)
	}
	if !o.explain {
		why = nil
	}
	switch {
	case a.json:
		if err := a.writeJSON(mapped{placement, why, refusal}); err != nil {
			return err
		}
	case refusal == nil:
		if err := a.printPlacement(testbed, placement); err != nil {
			return err
		}
	}
	if why != nil && !a.json {
		if err := a.printExplanation(why); err != nil {
			return err
		}
	}
	if refusal != nil {
		return fmt.Errorf("map %s: %w", name, err)
	}
	return nil
}
