package assign

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"croft/mapping/solver"
)

// shared finds the folder of the instances beside the repository.
func shared(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("no go.mod above")
		}
		dir = up
	}
	dir = filepath.Join(dir, "..", "shared", "mapping")
	if _, err := os.Stat(filepath.Join(dir, "check.py")); err != nil {
		t.Skip("the instances are not at hand: want ../shared/mapping beside the repository")
	}
	return dir
}

var checked = regexp.MustCompile(`violations=(\d+) score=([0-9.]+) errors=(\d+)`)

// TestInstances maps the instances and has each answer judged by check.py.
// It prints a table with -v.
func TestInstances(t *testing.T) {
	dir := shared(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	table, err := os.ReadFile(filepath.Join(dir, "assign-results.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-18s %4s %9s %9s %9s %8s %8s", "case", "viol", "score", "planted", "assign", "seconds", "assign")
	under, cases := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		f := strings.Split(line, "\t")
		// The large ones take minutes with -race: they are for the soak.
		if os.Getenv("CROFT_SOAK") == "" && !strings.HasPrefix(f[0], "p50-") {
			continue
		}
		topFile, ptopFile := filepath.Join(dir, "top", f[0]+".top"), filepath.Join(dir, "ptop", f[1])
		started := time.Now()
		p, sol := mapFiles(t, ptopFile, topFile)
		took := time.Since(started)
		out := filepath.Join(t.TempDir(), "out")
		var text bytes.Buffer
		if err := Write(&text, p, sol); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(out, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(python, filepath.Join(dir, "check.py"), ptopFile, topFile, out).CombinedOutput()
		m := checked.FindStringSubmatch(string(said))
		if err != nil || m == nil {
			t.Fatalf("%s: check.py: %v\n%s", f[0], err, said)
		}
		score, _ := strconv.ParseFloat(m[2], 64)
		best, _ := strconv.ParseFloat(f[5], 64)
		var planted float64
		if m := regexp.MustCompile(`score=([0-9.]+)`).FindStringSubmatch(f[8]); m != nil {
			planted, _ = strconv.ParseFloat(m[1], 64)
		}
		t.Logf("%-18s %4s %9.2f %9.2f %9.2f %8.3f %8s", f[0], m[1], score, planted, best, took.Seconds(), f[6])
		if m[1] != "0" || m[3] != "0" {
			t.Errorf("%s: %s", f[0], said)
		}
		if d := score - sol.Score; d > 1e-3 || d < -1e-3 {
			t.Errorf("%s: score %.4f, own sum %.4f", f[0], score, sol.Score)
		}
		if f[3] != "0" && score > best+1e-3 {
			t.Errorf("%s: score %.2f, assign finds %.2f", f[0], score, best)
		}
		if score > planted*1.05+1e-3 {
			t.Errorf("%s: score %.2f is more than 5 %% over the planted %.2f", f[0], score, planted)
		}
		cases++
		if score <= planted+1e-3 {
			under++
		}
	}
	t.Logf("%d of %d at or under the planted score", under, cases)
}

func mapFiles(t *testing.T, ptop, top string) (*solver.Problem, *solver.Solution) {
	t.Helper()
	pf, err := os.Open(ptop)
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	tf, err := os.Open(top)
	if err != nil {
		t.Fatal(err)
	}
	defer tf.Close()
	tb, err := ReadTestbed(pf)
	if err != nil {
		t.Fatal(err)
	}
	req, err := ReadRequest(tb, tf)
	if err != nil {
		t.Fatal(err)
	}
	p, err := req.Problem()
	if err != nil {
		t.Fatal(err)
	}
	sol, err := solver.Solve(context.Background(), p, solver.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return p, sol
}

const examplePtop = `node s switch:1 *lan:* - - 
node a pc:1 pcvm:4 - ssd:0.1 ?+ram:10 - trivial_bw:100
node b pc:1 pcvm:4 - ?+ram:10 -
link a0 a:a/eth0 s:(null) 100 0 0 ethernet
link b0 b:b/eth0 s:(null) 100 0 0 ethernet
set-type-limit pcvm 8
policy desire ssd limit 2
`

const exampleTop = `make-vclass any 0.5 pc pcvm
node x any ssd:1
node y pc
link l x y 50 0 0 ethernet fixsrciface:eth0
fix-node y b
`

func TestMistakesNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, ptop, top, want string }{
		{"unknown directive", "foo\n", "", "ptop line 1: unknown directive"},
		{"undeclared end", "node a pc:1\nlink l a b 1 0 0 ethernet\n", "", "ptop line 2: link l: node b is not declared"},
		{"type without slots", "node a pc\n", "", "ptop line 1: node a: type"},
		{"bandwidth", "node a pc:1\nnode b pc:1\nlink l a b 0 0 0 e\n", "", "ptop line 3: link l: bandwidth"},
		{"fixed to nothing", examplePtop, "node v pc\nfix-node v zz\n", "top line 2: fix-node v: the testbed has no node zz"},
		{"flag", examplePtop, "node v pc\nnode w pc\nlink l v w 1 0 0 ethernet quick\n", "top line 3: link l: unknown flag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb, err := ReadTestbed(strings.NewReader(c.ptop))
			if err == nil {
				_, err = ReadRequest(tb, strings.NewReader(c.top))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(examplePtop, exampleTop)
	f.Fuzz(func(t *testing.T, ptop, top string) {
		tb, err := ReadTestbed(strings.NewReader(ptop))
		if err != nil {
			return
		}
		req, err := ReadRequest(tb, strings.NewReader(top))
		if err != nil || len(req.Nodes) > 20 || len(req.Links) > 20 {
			return
		}
		p, err := req.Problem()
		if err != nil {
			return
		}
		sol, err := solver.Solve(context.Background(), p, solver.Options{Effort: 0.01})
		if err != nil {
			return
		}
		if err := Write(&bytes.Buffer{}, p, sol); err != nil {
			t.Error(err)
		}
	})
}
