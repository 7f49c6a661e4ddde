package driverstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"croft/drivers"
	"croft/urn"
)

// KillsVariable is the environment variable with the number of times that
// the test kills a manager; unset means a few, or many in a long campaign.
const KillsVariable = "CROFT_TEST_KILLS"

const fewKills, manyKills = 5, 50

// Churn makes, connects, stops and removes nodes for ever. It writes a line
// before each operation. It is what a Subject's Worker runs, to be killed.
func Churn(ctx context.Context, d drivers.Driver, prepare func(*drivers.Node), w io.Writer) error {
	r := &rig{ctx: ctx, d: d, s: Subject{Prepare: prepare, Links: true}}
	for round := 0; ; round++ {
		a, b := r.node(1, 1), r.node(2, 1)
		l := r.link(1, a, b)
		for _, step := range []struct {
			name string
			call func() error
		}{
			{"make", func() error { return d.Make(ctx, a) }},
			{"start", func() error { return d.Start(ctx, a.Sliver) }},
			{"make", func() error { return d.Make(ctx, b) }},
			{"connect", func() error { return d.Connect(ctx, l) }},
			{"start", func() error { return d.Start(ctx, b.Sliver) }},
			{"restart", func() error { return d.Restart(ctx, a.Sliver) }},
			{"update", func() error { return d.UpdateUsers(ctx, b.Sliver, nil) }},
			{"stop", func() error { return d.Stop(ctx, b.Sliver) }},
			{"remove", func() error { return d.Remove(ctx, l.Sliver) }},
			{"remove", func() error { return d.Remove(ctx, a.Sliver) }},
			{"remove", func() error { return d.Remove(ctx, b.Sliver) }},
		} {
			if _, err := fmt.Fprintf(w, "%d %s\n", round, step.name); err != nil {
				return err
			}
			if err := step.call(); err != nil {
				return fmt.Errorf("%s: %w", step.name, err)
			}
		}
	}
}

func testKilled(t *testing.T, r *rig) {
	if r.s.Worker == nil {
		t.Skip("the driver's state does not outlive a manager that is killed")
	}
	kills := fewKills
	if long() {
		kills = manyKills
	}
	if text := os.Getenv(KillsVariable); text != "" {
		n, err := strconv.Atoi(text)
		r.must(err, "read %s", KillsVariable)
		kills = n
	}
	r.ctx = context.Background()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range kills {
		r.close()
		where := r.killOne(random)
		r.d = r.s.Open(t)
		r.checkSurvivors(where)
		for _, f := range r.list() {
			r.must(r.d.Remove(r.ctx, f.Sliver), "kill %d (%s): remove what was left", i, where)
		}
		r.nothingLeft()
		if t.Failed() {
			t.Fatalf("kill %d was in: %s", i, where)
		}
	}
}

// killOne lets a manager work and kills it somewhere in the middle of an
// operation.
func (r *rig) killOne(random *rand.Rand) string {
	r.t.Helper()
	cmd := r.s.Worker(r.t)
	out, err := cmd.StdoutPipe()
	r.must(err, "start a manager")
	cmd.Stderr = os.Stderr
	r.must(cmd.Start(), "start a manager")
	where := ""
	for range 1 + random.IntN(14) {
		line, err := readLine(out)
		if err != nil {
			cmd.Process.Kill()
			r.t.Fatalf("the manager ended by itself after %q: %v", where, errors.Join(err, cmd.Wait()))
		}
		where = line
	}
	delay := time.Duration(random.Int64N(int64(40 * time.Millisecond)))
	time.Sleep(delay) // the moment is what is random
	r.must(cmd.Process.Kill(), "kill a manager")
	cmd.Wait()
	return fmt.Sprintf("%s, %v later", where, delay)
}

// checkSurvivors checks that what List calls whole is so.
func (r *rig) checkSurvivors(where string) {
	r.t.Helper()
	seen := map[urn.URN]bool{}
	for _, f := range r.list() {
		if seen[f.Sliver] {
			r.t.Errorf("%s: List has %s twice", where, f.Sliver)
		}
		seen[f.Sliver] = true
		if f.Kind != drivers.NodeKind || !f.Whole {
			continue
		}
		if !f.Running {
			r.must(r.d.Start(r.ctx, f.Sliver), "%s: start %s, which is whole", where, f.Sliver)
		}
		if _, err := r.shell(f.Sliver, "true"); err != nil {
			r.t.Errorf("%s: %s, which runs: %v", where, f.Sliver, err)
		}
	}
}
