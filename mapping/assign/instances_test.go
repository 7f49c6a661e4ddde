package assign

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"croft/mapping/assign/assigntest"
	"croft/mapping/solver"
)

// shared is the folder of the published instances; the test is skipped if they
// are not at hand.
func shared(tb testing.TB) string {
	dir, err := findShared()
	if err != nil {
		tb.Skip(err)
	}
	return dir
}

// findShared finds that folder beside the repository.
func findShared() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above")
		}
		dir = up
	}
	// A checkout may stand beside the folder, or deeper.
	for _, way := range []string{"..", filepath.Join("..", "..")} {
		found := filepath.Join(dir, way, "shared", "mapping")
		if _, err := os.Stat(filepath.Join(found, "check.py")); err == nil {
			return found, nil
		}
	}
	return "", errors.New("the instances are not at hand: want ../shared/mapping beside the repository")
}

// instance is a testbed, a request that fits on it, and what others make of it.
type instance struct {
	name, ptop, top string // the files' names
	planted         float64
	assign          float64 // the best score of assign; 0 if it found none
}

// own lists the instances of testdata.
func own(tb testing.TB) []instance {
	dir := filepath.Join("testdata", "instances")
	table, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		tb.Fatal(err)
	}
	var all []instance
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		f := strings.Split(line, "\t")
		planted, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, instance{name: f[0], ptop: filepath.Join(dir, f[1]), top: filepath.Join(dir, f[0]+".top"), planted: planted})
	}
	return all
}

var plantedScore = regexp.MustCompile(`score=([0-9.]+)`)

// published lists the instances that assign was measured on.
func published(tb testing.TB) []instance {
	dir := shared(tb)
	table, err := os.ReadFile(filepath.Join(dir, "assign-results.tsv"))
	if err != nil {
		tb.Fatal(err)
	}
	var all []instance
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		f := strings.Split(line, "\t")
		x := instance{name: f[0], ptop: filepath.Join(dir, "ptop", f[1]), top: filepath.Join(dir, "top", f[0]+".top")}
		if m := plantedScore.FindStringSubmatch(f[8]); m != nil {
			x.planted, _ = strconv.ParseFloat(m[1], 64)
		}
		if f[3] != "0" {
			x.assign, _ = strconv.ParseFloat(f[5], 64)
		}
		all = append(all, x)
	}
	return all
}

// TestInstances maps the small instances and has each answer judged.
func TestInstances(t *testing.T) {
	for _, x := range own(t) {
		t.Run(x.name, func(t *testing.T) { hold(t, x) })
	}
}

// TestPublishedInstances does the same with those that assign was measured on.
func TestPublishedInstances(t *testing.T) {
	for _, x := range published(t) {
		// The large ones take minutes with -race: they are for the soak.
		if os.Getenv("CROFT_SOAK") == "" && !strings.HasPrefix(x.name, "p50-") {
			continue
		}
		t.Run(x.name, func(t *testing.T) { hold(t, x) })
	}
}

// hold maps an instance, which must give no violation and a good score.
func hold(t *testing.T, x instance) {
	sol, v := mapped(t, x)
	t.Logf("score %.4f, planted %.4f, assign %.4f", v.Score, x.planted, x.assign)
	if v.Violations != 0 || len(v.Errors) > 0 {
		t.Errorf("%d violations, errors %q", v.Violations, v.Errors)
	}
	if math.Abs(v.Score-sol.Score) > 1e-3 {
		t.Errorf("score %.4f, own sum %.4f", v.Score, sol.Score)
	}
	if x.assign > 0 && v.Score > x.assign+1e-3 {
		t.Errorf("score %.4f, assign finds %.4f", v.Score, x.assign)
	}
	if v.Score > x.planted*1.05+1e-3 {
		t.Errorf("score %.4f is more than 5 %% over the planted %.4f", v.Score, x.planted)
	}
}

// mapped maps an instance and has the answer judged.
func mapped(tb testing.TB, x instance) (*solver.Solution, *assigntest.Verdict) {
	tb.Helper()
	ptop, top := read(tb, x.ptop), read(tb, x.top)
	p, sol := solve(tb, ptop, top)
	return sol, judged(tb, x, p, sol)
}

func judged(tb testing.TB, x instance, p *solver.Problem, sol *solver.Solution) *assigntest.Verdict {
	tb.Helper()
	var out strings.Builder
	if err := Write(&out, p, sol); err != nil {
		tb.Fatal(err)
	}
	v, err := assigntest.Judge(read(tb, x.ptop), read(tb, x.top), out.String())
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func read(tb testing.TB, file string) string {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func solve(tb testing.TB, ptop, top string) (*solver.Problem, *solver.Solution) {
	tb.Helper()
	testbed, err := ReadTestbed(strings.NewReader(ptop))
	if err != nil {
		tb.Fatal(err)
	}
	req, err := ReadRequest(testbed, strings.NewReader(top))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := req.Problem()
	if err != nil {
		tb.Fatal(err)
	}
	sol, err := solver.Solve(context.Background(), p, solver.Options{Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return p, sol
}

var checked = regexp.MustCompile(`violations=(\d+) score=([0-9.]+) errors=(\d+)`)

// TestJudgesAgree compares the judge with the independent checker that came
// with the instances, on good mappings and on ones that were spoilt.
func TestJudgesAgree(t *testing.T) {
	check := filepath.Join(shared(t), "check.py")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	for i, x := range own(t) {
		p, sol := solve(t, read(t, x.ptop), read(t, x.top))
		r := rand.New(rand.NewPCG(uint64(i), 3))
		for spoilt := range 4 {
			if spoilt > 0 { // two nodes change places, a third stands elsewhere; their links stay as they are
				a, b := r.IntN(len(sol.Hosts)), r.IntN(len(sol.Hosts))
				sol.Hosts[a], sol.Hosts[b] = sol.Hosts[b], sol.Hosts[a]
				sol.Hosts[r.IntN(len(sol.Hosts))] = sol.Hosts[a]
			}
			v := judged(t, x, p, sol)
			var text strings.Builder
			if err := Write(&text, p, sol); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "out")
			if err := os.WriteFile(out, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			said, err := exec.Command(python, check, x.ptop, x.top, out).CombinedOutput()
			m := checked.FindStringSubmatch(string(said))
			if err != nil || m == nil {
				t.Fatalf("%s: check.py: %v\n%s", x.name, err, said)
			}
			if (m[3] == "0") != (len(v.Errors) == 0) {
				t.Errorf("%s, spoilt %d: errors %q, check.py says %s", x.name, spoilt, v.Errors, said)
			}
			if score, _ := strconv.ParseFloat(m[2], 64); m[3] == "0" && (m[1] != strconv.Itoa(v.Violations) || math.Abs(score-v.Score) > 1e-3) {
				t.Errorf("%s, spoilt %d: %d violations, score %.4f; check.py says %s", x.name, spoilt, v.Violations, v.Score, said)
			}
		}
	}
}

// BenchmarkInstances maps every instance at hand. Beside the time it reports
// what the answer is worth; B/op is all memory taken, given back or not.
func BenchmarkInstances(b *testing.B) {
	all := own(b)
	if _, err := findShared(); err == nil {
		all = append(all, published(b)...)
	}
	for _, x := range all {
		b.Run(x.name, func(b *testing.B) {
			ptop, top := read(b, x.ptop), read(b, x.top)
			b.ReportAllocs()
			var p *solver.Problem
			var sol *solver.Solution
			for b.Loop() {
				p, sol = solve(b, ptop, top)
			}
			v := judged(b, x, p, sol)
			b.ReportMetric(float64(v.Violations+len(v.Errors)), "violations")
			b.ReportMetric(v.Score, "score")
			b.ReportMetric(x.planted, "planted")
			b.ReportMetric(x.assign, "assign")
		})
	}
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
