package simulated_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/drivers"
	"croft/drivers/driverstest"
	"croft/drivers/simulated"
	"croft/urn"
)

// workerVariable has the test binary be a manager that works until it is
// killed, with its journal in the file that it names.
const workerVariable = "CROFT_TEST_SIMULATED_WORKER"

func TestMain(m *testing.M) {
	if file := os.Getenv(workerVariable); file != "" {
		if err := work(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func work(file string) error {
	d, err := simulated.New(simulated.Config{File: file})
	if err != nil {
		return err
	}
	return driverstest.Churn(context.Background(), d, nil, os.Stdout)
}

func open(t testing.TB, c simulated.Config) *simulated.Driver {
	t.Helper()
	d, err := simulated.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestConformance runs what applies to nodes with nothing inside: life cycle,
// every call twice, wrong order, unknown slivers, bad nodes, links and LANs,
// many at once, and managers that restart and are killed.
func TestConformance(t *testing.T) {
	driverstest.Run(t, func(t *testing.T) driverstest.Subject {
		file := filepath.Join(t.TempDir(), "journal")
		return driverstest.Subject{
			Hollow: true, Links: true,
			Open: func(t *testing.T) drivers.Driver { return open(t, simulated.Config{File: file}) },
			Worker: func(t *testing.T) *exec.Cmd {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), workerVariable+"="+file)
				return cmd
			},
		}
	})
}

func node(name, host string) drivers.Node {
	return drivers.Node{
		Sliver: urn.URN{Authority: "lab.example", Type: urn.Sliver, Name: name}, Hostname: name + ".exp.lab.example",
		Host: urn.URN{Authority: "lab.example", Type: urn.Node, Name: host},
	}
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name, list string
		fails      []simulated.Operation // of the node a on pc1
	}{
		{"none", "# nothing\n\n", nil},
		{"by client_id", "start a", []simulated.Operation{simulated.Start}},
		{"by client_id and slice", "start a.exp.*", []simulated.Operation{simulated.Start}},
		{"by host", "make pc1 no power # since Monday", []simulated.Operation{simulated.Make}},
		{"by the URN of the host", "make urn:publicid:IDN+lab.example+node+pc1", []simulated.Operation{simulated.Make}},
		{"by the URN of the sliver", "stop urn:publicid:IDN+lab.example+sliver+a", []simulated.Operation{simulated.Stop}},
		{"everything", "* *", []simulated.Operation{simulated.Make}},
		{"another", "* pc10\nstart b\nmake pc?? no", nil},
		{"several", "start b\nstop a\nremove pc*", []simulated.Operation{simulated.Stop, simulated.Remove}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "faults")
			d := open(t, simulated.Config{Faults: simulated.NewFaults(nil, 1, file)})
			ctx := context.Background()
			if err := os.WriteFile(file, []byte(test.list), 0o600); err != nil {
				t.Fatal(err)
			}
			a := node("a", "pc1")
			var failed []simulated.Operation
			for _, step := range []struct {
				op simulated.Operation
				do func() error
			}{
				{simulated.Make, func() error { return d.Make(ctx, a) }},
				{simulated.Start, func() error { return d.Start(ctx, a.Sliver) }},
				{simulated.Stop, func() error { return d.Stop(ctx, a.Sliver) }},
				{simulated.Remove, func() error { return d.Remove(ctx, a.Sliver) }},
			} {
				if err := step.do(); errors.Is(err, drivers.ErrNotFound) {
					break // it was not made
				} else if err != nil {
					failed = append(failed, step.op)
				}
			}
			if fmt.Sprint(failed) != fmt.Sprint(test.fails) {
				t.Errorf("%v failed, want %v", failed, test.fails)
			}
		})
	}
}

func TestFaultsSay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults")
	if err := os.WriteFile(file, []byte("make pc1 no power # since Monday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, simulated.Config{Faults: simulated.NewFaults(nil, 1, file)})
	err := d.Make(context.Background(), node("a", "pc1"))
	if err == nil || !strings.HasSuffix(err.Error(), ": no power") || !strings.Contains(err.Error(), "simulated make") {
		t.Errorf("error is %v", err)
	}
	for list, want := range map[string]string{"\nboot a": ":2: \"boot\" is none", "start": ":1: what does start fail for?", "make [": ":1: \"[\": "} {
		if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.Make(context.Background(), node("a", "pc1")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("list %q: error is %v, want %s", list, err, want)
		}
	}
}

// TestRates has a share of operations fail, the same ones for a seed.
func TestRates(t *testing.T) {
	failures := func(seed uint64) string {
		d := open(t, simulated.Config{Faults: simulated.NewFaults(map[simulated.Operation]float64{simulated.Make: 0.25}, seed, "")})
		var s strings.Builder
		for i := range 400 {
			if d.Make(context.Background(), node(fmt.Sprint("n", i), "pc1")) != nil {
				s.WriteByte('x')
			} else {
				s.WriteByte('.')
			}
		}
		return s.String()
	}
	first := failures(7)
	if n := strings.Count(first, "x"); n < 60 || n > 140 {
		t.Errorf("%d of 400 failed at a rate of 1/4", n)
	}
	if failures(7) != first {
		t.Error("the same seed has others fail")
	}
	if failures(8) == first {
		t.Error("another seed has the same ones fail")
	}
}

func TestTimes(t *testing.T) {
	waited := map[time.Duration]int{}
	d := open(t, simulated.Config{
		Times: map[simulated.Operation]time.Duration{simulated.Make: 2 * time.Second, simulated.Start: 5 * time.Second},
		Wait:  func(_ context.Context, d time.Duration) error { waited[d]++; return nil },
	})
	ctx, a := context.Background(), node("a", "pc1")
	if err := errors.Join(d.Make(ctx, a), d.Start(ctx, a.Sliver), d.Stop(ctx, a.Sliver)); err != nil {
		t.Fatal(err)
	}
	if waited[2*time.Second] != 1 || waited[5*time.Second] != 1 || waited[0] != 1 {
		t.Errorf("waited %v", waited)
	}
}

// TestTornJournal opens a journal at every length that a killed manager can
// leave: what was written as a whole is there.
func TestTornJournal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	d, err := simulated.New(simulated.Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := errors.Join(d.Make(ctx, node("a", "pc1")), d.Start(ctx, node("a", "pc1").Sliver), d.Make(ctx, node("b", "pc2")), d.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		if err := os.WriteFile(file, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := simulated.New(simulated.Config{File: file})
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		found, err := d.List(ctx)
		lines := strings.Count(string(whole[:n]), "\n")
		if want := []int{0, 1, 1, 2}[lines]; err != nil || len(found) != want {
			t.Fatalf("%d bytes: %d nodes, %v; want %d", n, len(found), err, want)
		}
		// It goes on where it was.
		if err := errors.Join(d.Make(ctx, node("c", "pc3")), d.Close()); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		again := open(t, simulated.Config{File: file})
		if after, err := again.List(ctx); err != nil || len(after) != len(found)+1 {
			t.Fatalf("%d bytes: %d nodes after one more, %v", n, len(after), err)
		}
		again.Close()
	}
}

// TestJournalStaysSmall changes few nodes often.
func TestJournalStaysSmall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	d := open(t, simulated.Config{File: file})
	ctx, a := context.Background(), node("a", "pc1")
	if err := d.Make(ctx, a); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if err := d.Restart(ctx, a.Sliver); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 400_000 {
		t.Errorf("the journal of one node has %d bytes", info.Size())
	}
	again := open(t, simulated.Config{File: file})
	if found, err := again.List(ctx); err != nil || len(found) != 1 || !found[0].Running {
		t.Errorf("after all that there is %+v, %v", found, err)
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add("start a the disk\n* *\n# x\nmake pc[1-9]")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := simulated.ParseFaults(text)
		if err != nil && list != nil {
			t.Error("faults and an error")
		}
		for _, l := range list {
			if l.Pattern == "" || l.Says == "" {
				t.Errorf("%+v", l)
			}
		}
	})
}

// BenchmarkMake makes nodes beside those that are there already.
func BenchmarkMake(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := open(b, simulated.Config{File: filepath.Join(b.TempDir(), "journal")})
			ctx := context.Background()
			for i := range n {
				if err := d.Make(ctx, node(fmt.Sprint("n", i), "pc1")); err != nil {
					b.Fatal(err)
				}
			}
			a := node("a", "pc1")
			for b.Loop() {
				if err := errors.Join(d.Make(ctx, a), d.Start(ctx, a.Sliver), d.Remove(ctx, a.Sliver)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
