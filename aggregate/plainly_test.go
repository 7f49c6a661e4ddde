package aggregate

import (
	"context"
	"slices"
	"testing"

	"croft/drivers"
	"croft/request"
	"croft/slivers"
	"croft/startup"
	"croft/urn"
)

// users notes as whom commands are run.
type users struct {
	drivers.Driver
	as []string
}

func (u *users) Exec(_ context.Context, _ urn.URN, c drivers.Command) error {
	u.as = append(u.as, c.User)
	return nil
}

// Where users do not become root, nothing of what they ask for is done by it.
func TestStepsWithoutRoot(t *testing.T) {
	node := &slivers.Sliver{Node: &slivers.NodeFacts{Users: []request.User{{Login: "ann"}}}}
	for _, c := range []struct {
		name            string
		wanted, given   bool
		account, writes string
	}{
		{"root is given", true, true, startup.Root, ""},
		{"root is given and not wanted", false, true, "ann", ""},
		{"root is not given", true, false, "ann", "ann"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &users{}
			j := &stepJob{node: startup.Node{Driver: d, NoRoot: !c.given}, sliver: node, task: &request.Step{Root: c.wanted}}
			if got := j.account(); got != c.account {
				t.Errorf("runs as %q, want %q", got, c.account)
			}
			if err := j.node.Write(context.Background(), request.File{Path: "/etc/cron.d/x", Mode: 0o644}, j.account()); err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(d.as, func(u string) bool { return u != c.writes }) || len(d.as) == 0 {
				t.Errorf("files are written as %q, want %q", d.as, c.writes)
			}
		})
	}
}
