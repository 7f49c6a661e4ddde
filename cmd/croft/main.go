// Command croft is an aggregate manager for federated testbeds, a stand-alone
// federation to go with it, and a client for any aggregate of the AM API.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"croft/drivers/namespace"
)

func main() {
	// A node's first process is this program too.
	namespace.Init()
	a := &app{in: os.Stdin, out: os.Stdout, errs: os.Stderr, now: time.Now}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}

// exitStatus is an error that has been told already: only the status is left.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("status %d", int(s)) }

// run runs the program and returns its exit status.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintln(a.errs, "croft:", err)
	return 1
}
