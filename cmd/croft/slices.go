package main

import (
	"context"
	"fmt"
	"text/tabwriter"
)

// listSlices lists the slices that the member has something in.
func (a *app) listSlices(ctx context.Context, s *session) error {
	list, err := s.Slices(ctx, s.userCredentials())
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(list)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SLICE\tSLIVERS\tEXPIRES")
	for _, v := range list {
		fmt.Fprintf(w, "%s\t%d\t%s\n", v.URN, v.Slivers, when(v.Expires))
	}
	return w.Flush()
}
