package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// app is what all commands share.
type app struct {
	in        io.Reader
	out, errs io.Writer
	now       func() time.Time

	dir  string // of the federation and the server
	json bool   // answers for scripts

	am       string // URL of the aggregate
	member   string // folder or name of the member who calls
	insecure bool   // do not check the aggregate's certificate
	timeout  time.Duration
}

// path names a file of the federation.
func (a *app) path(elements ...string) string {
	return filepath.Join(append([]string{a.dir}, elements...)...)
}

const rootHelp = `Croft is an aggregate manager for federated testbeds (GENI AM API v3).

A testbed of one machine, in two terminals:

  croft init                          make a federation in ./croft-data
  sudo croft serve                    run its aggregate manager

  croft slice add exp1                make a slice, with a credential for alice
  croft up exp1 request.rspec         reserve, make and start what it asks for
  croft ssh exp1 node0                log in to a node of it
  croft delete exp1                   give everything back

The commands under "Experiments" work with any aggregate of the AM API: name it
with --am, and the folder with your certificate and key with --member.

Exit status: 0 on success only. What an aggregate refuses is told on standard
error with the name and number of its code, such as SEARCHFAILED (12).`

func (a *app) rootCommand() *cobra.Command {
	root := group(&cobra.Command{
		Use:           "croft",
		Short:         "An aggregate manager for federated testbeds, and a client for all of them",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	dir := os.Getenv("CROFT_DIR")
	if dir == "" {
		dir = "croft-data"
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.dir, "dir", dir, "`folder` of the federation and its server (or CROFT_DIR)")
	flags.BoolVar(&a.json, "json", false, "answer in JSON, for scripts")

	const testbed, experiments = "testbed", "experiments"
	root.AddGroup(
		&cobra.Group{ID: testbed, Title: "Testbed:"},
		&cobra.Group{ID: experiments, Title: "Experiments:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(testbed, a.initCommand(), serveCommand(a), a.memberCommand(), a.sliceCommand(), a.inventoryCommand(), a.imageCommand(), a.accountCommand(), a.openapiCommand(), a.adminCommand())
	add(experiments,
		a.validateCommand(), a.translateCommand(), a.mapCommand(), a.toscaCommand(),
		a.versionCommand(), a.listCommand(), a.probeCommand(),
		a.upCommand(), a.sshCommand(), a.logCommand(),
		a.allocateCommand(), a.provisionCommand(), a.statusCommand(), a.describeCommand(),
		a.actionCommand(), a.renewCommand(), a.deleteCommand(), a.shutdownCommand(),
	)
	root.AddCommand(policyTopic())
	// What cobra says about wrong use is followed by where to read on.
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usageError(c, err) })
	explainArgs(root)
	return root
}

// group makes a command that has nothing but subcommands show its help, and
// fail when it is given what is none of them.
func group(c *cobra.Command) *cobra.Command {
	c.SuggestionsMinimumDistance = 2
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		err := fmt.Errorf("%s has no command %q", c.CommandPath(), args[0])
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			err = fmt.Errorf("%w (did you mean %s?)", err, strings.Join(near, " or "))
		}
		return err
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

// explainArgs adds to complaints about arguments how the command is used.
func explainArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError(c, err)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		explainArgs(sub)
	}
}

func usageError(c *cobra.Command, err error) error {
	usage := c.UseLine()
	if c.HasSubCommands() {
		usage = c.CommandPath() + " COMMAND"
	}
	return fmt.Errorf("%w\nusage: %s\nmore:  %s --help", err, usage, c.CommandPath())
}
