package startup_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/request"
	"croft/startup"
)

// me is the account that the tests run as.
func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if u.Uid != "0" {
		t.Skip("needs root: steps are run as accounts of a machine")
	}
	return u.Username
}

func command(text string, env ...startup.Variable) string {
	return startup.Command(&request.Run{Command: text, Dir: "/"}, env)
}

func launch(t *testing.T, n startup.Node, a startup.Attempt, account, text string) startup.Result {
	t.Helper()
	ctx := within(t)
	if err := n.Launch(ctx, a, account, startup.Once, text, nil); err != nil {
		t.Fatal(err)
	}
	r, err := n.Read(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	account := me(t)
	n := here(t)
	for i, c := range []struct {
		name, text, output string
		status             int
		outputs            map[string]string
	}{
		{"says and ends", "echo one; echo two >&2", "one\ntwo\n", 0, nil},
		{"fails", "echo no; exit 7", "no\n", 7, nil},
		{"is ended by a signal", "kill -TERM $$", "", 143, nil},
		{"gives outputs", `echo A=1 > $CROFT_OUTPUTS; printf 'B= x=y \r\nno\nA=2' >> "$CROFT_OUTPUTS"`, "", 0, map[string]string{"A": "2", "B": " x=y "}},
		{"has nothing to read", "cat; echo end", "end\n", 0, nil},
		{"is not there", "exec /does/not/exist", "", 127, nil},
		{"writes no zero", `printf 'a\0b'`, "a\x00b", 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := launch(t, n, startup.Attempt{Step: request.StepName(fmt.Sprintf("s%d", i)), Number: 1}, account, command(c.text))
			if !r.Ended || r.Status != c.status || r.Life != startup.Gone {
				t.Errorf("%+v, want the end with status %d", r, c.status)
			}
			if got := string(r.Output.Head); got != c.output && c.output != "" {
				t.Errorf("output %q, want %q", got, c.output)
			}
			if len(r.Outputs) != len(c.outputs) {
				t.Errorf("outputs %q, want %q", r.Outputs, c.outputs)
			}
			for name, want := range c.outputs {
				if r.Outputs[name] != want {
					t.Errorf("output %s is %q, want %q", name, r.Outputs[name], want)
				}
			}
		})
	}
}

func TestEnvironmentIsTakenLiterally(t *testing.T) {
	t.Parallel()
	account := me(t)
	value := "a 'b' \"c\" $HOME `id` \\ \n; exit 9 #é"
	r := launch(t, here(t), startup.Attempt{Step: "s", Number: 1}, account,
		command(`printf %s "$X"`, startup.Variable{Name: "X", Value: "first"}, startup.Variable{Name: "X", Value: value}))
	if got := string(r.Output.Head); got != value || r.Status != 0 {
		t.Errorf("the step saw %q and ended with %d", got, r.Status)
	}
	args := []string{"printf", "[%s]", "a b", "", "$X", "'"}
	r = launch(t, here(t), startup.Attempt{Step: "s", Number: 1}, account, startup.Command(&request.Run{Args: args, Dir: "/"}, nil))
	if got, want := string(r.Output.Head), "[a b][][$X][']"; got != want {
		t.Errorf("arguments came as %q, want %q", got, want)
	}
}

// A manager that is killed while it tells a command leaves no attempt that runs
// a part of it.
func TestCommandArrivesInPart(t *testing.T) {
	t.Parallel()
	account := me(t)
	n, a := here(t), startup.Attempt{Step: "s", Number: 1}
	cut := n
	cut.Driver = &local{most: 5}
	ctx := within(t)
	err := cut.Launch(ctx, a, account, startup.Once, command("echo whole"), nil)
	if err == nil || !strings.Contains(err.Error(), "did not arrive whole") {
		t.Errorf("a part of a command was launched: %v", err)
	}
	if r, err := n.Read(ctx, a); err != nil || r.Life != startup.None {
		t.Errorf("after that the attempt is %+v, %v", r, err)
	}
	if r := launch(t, n, a, account, command("echo whole")); string(r.Output.Head) != "whole\n" || r.Status != 0 {
		t.Errorf("the whole command ended with %d and wrote %q", r.Status, r.Output.Head)
	}
}

// Who reads an attempt does not disturb others who do.
func TestReadAtOnce(t *testing.T) {
	t.Parallel()
	account := me(t)
	n, a := here(t), startup.Attempt{Step: "s", Number: 1}
	launch(t, n, a, account, command("echo written; echo A=1 > $CROFT_OUTPUTS"))
	ctx := within(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				r, err := n.Read(ctx, a)
				if err != nil || string(r.Output.Head) != "written\n" || r.Outputs["A"] != "1" {
					t.Errorf("read %q and %q, %v", r.Output.Head, r.Outputs, err)
				}
			}
		})
	}
	all.Wait()
	if left, err := filepath.Glob(filepath.Join(n.Dir, "s/1/read*")); err != nil || len(left) > 0 {
		t.Errorf("reading has left %q, %v", left, err)
	}
}

// What many launch at once, and again after its end, runs once.
func TestAttemptRunsOnce(t *testing.T) {
	t.Parallel()
	account := me(t)
	n, a := here(t), startup.Attempt{Step: "s", Number: 1}
	mark := filepath.Join(t.TempDir(), "mark")
	text := command("echo run >> " + mark + "; sleep 0.2")
	ctx := within(t)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := n.Launch(ctx, a, account, startup.Once, text, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	launch(t, n, a, account, text)
	if got, _ := os.ReadFile(mark); string(got) != "run\n" {
		t.Errorf("it ran so often: %q", got)
	}
	launch(t, n, startup.Attempt{Step: "s", Number: 2}, account, text)
	if got, _ := os.ReadFile(mark); string(got) != "run\nrun\n" {
		t.Errorf("the second attempt: %q", got)
	}
}

// An attempt goes on when who launched it is gone, and is found again.
func TestAttemptOutlivesItsLauncher(t *testing.T) {
	t.Parallel()
	account := me(t)
	n, a := here(t), startup.Attempt{Step: "s", Number: 1}
	gate := filepath.Join(t.TempDir(), "gate")
	text := command("echo begun; while [ ! -e " + gate + " ]; do sleep 0.1; done; echo done; exit 3")
	ctx, cancel := context.WithCancel(within(t))
	begun := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- n.Launch(ctx, a, account, startup.Once, text, func() { close(begun) }) }()
	select {
	case <-begun:
	case <-time.After(patience):
		t.Fatal("it does not begin")
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the launch that was broken off succeeded")
	}
	if r, err := n.Read(within(t), a); err != nil || r.Life != startup.Alive || r.Ended {
		t.Fatalf("after its launcher: %+v, %v", r, err)
	}
	again := make(chan startup.Result, 1)
	go func() { again <- launch(t, n, a, account, text) }()
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-again:
		if r.Status != 3 || string(r.Output.Head) != "begun\ndone\n" {
			t.Errorf("found again: %+v, output %q", r, r.Output.Head)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}

func TestEndTakesDaemonsToo(t *testing.T) {
	t.Parallel()
	account := me(t)
	n, a := here(t), startup.Attempt{Step: "s", Number: 1}
	pids := filepath.Join(t.TempDir(), "pids")
	text := command("trap '' TERM; setsid sh -c 'echo $$ >> " + pids + "; sleep 1000' & echo $$ >> " + pids + "; wait; sleep 1000")
	ctx := within(t)
	ended := make(chan error, 1)
	go func() { ended <- n.Launch(ctx, a, account, startup.Once, text, nil) }()
	var list []string
	for len(list) < 2 {
		if ctx.Err() != nil {
			t.Fatal("it does not begin")
		}
		time.Sleep(20 * time.Millisecond)
		data, _ := os.ReadFile(pids)
		list = strings.Fields(string(data))
	}
	if err := n.End(ctx, a); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, p := range list {
		if stat, err := os.ReadFile("/proc/" + p + "/stat"); err == nil && !bytes.Contains(stat, []byte(") Z")) {
			t.Errorf("process %s is still there: %s", p, stat)
		}
	}
	if r, err := n.Read(ctx, a); err != nil || r.Ended || r.Life != startup.Gone {
		t.Errorf("%+v, %v: want it gone without a status", r, err)
	}
}

func TestServiceIsStartedAgain(t *testing.T) {
	t.Parallel()
	account := me(t)
	n, a := here(t), startup.Attempt{Step: "s", Number: 1}
	mark := filepath.Join(t.TempDir(), "mark")
	ctx := within(t)
	ended := make(chan error, 1)
	go func() {
		ended <- n.Launch(ctx, a, account, startup.Again, command("echo run >> "+mark+"; exit 4"), nil)
	}()
	for {
		data, _ := os.ReadFile(mark)
		if strings.Count(string(data), "run") >= 2 {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("it is not started again")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := n.End(ctx, a); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if r, err := n.Read(ctx, a); err != nil || !strings.Contains(string(r.Output.Head), "ended with status 4") {
		t.Errorf("output %q, %v", r.Output.Head, err)
	}
}

func TestLongOutputKeepsBothEnds(t *testing.T) {
	t.Parallel()
	account := me(t)
	r := launch(t, here(t), startup.Attempt{Step: "s", Number: 1}, account, command("echo begin; seq 100000; echo end"))
	const whole = len("begin\nend\n") + 588895
	if got := len(r.Output.Head) + len(r.Output.Tail) + int(r.Output.Left); got != whole {
		t.Errorf("%d bytes in all, want %d", got, whole)
	}
	if !strings.HasPrefix(string(r.Output.Head), "begin\n1\n") || !strings.HasSuffix(string(r.Output.Tail), "100000\nend\n") || len(r.Output.Head) > 64<<10 {
		t.Errorf("kept %d and %d bytes", len(r.Output.Head), len(r.Output.Tail))
	}
}

func TestAccountsThatAreNotThere(t *testing.T) {
	t.Parallel()
	me(t)
	r := launch(t, here(t), startup.Attempt{Step: "s", Number: 1}, "no-such-account", command("echo no"))
	if r.Status != 126 || !strings.Contains(string(r.Output.Head), "no account no-such-account") {
		t.Errorf("%+v, output %q", r, r.Output.Head)
	}
}

// A step of another account is that account's alone, and its notes are root's.
func TestStepsOfOtherAccounts(t *testing.T) {
	t.Parallel()
	me(t)
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("needs an account nobody: %v", err)
	}
	n := here(t)
	for dir := n.Dir; dir != "/"; dir = filepath.Dir(dir) { // the test's own folders are its own
		if st, err := os.Stat(dir); err == nil && st.Mode()&0o001 == 0 {
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := startup.Attempt{Step: "s", Number: 1}
	r := launch(t, n, a, "nobody", command(`id -u; echo "$USER"; echo K=V >> $CROFT_OUTPUTS; echo out >&2
ls $CROFT_STEP_DIR; echo 0 > ${CROFT_STEP_DIR}status; touch ${CROFT_STEP_DIR}claim/x; true`))
	out := string(r.Output.Head)
	if !strings.HasPrefix(out, u.Uid+"\nnobody\nout\n") || r.Outputs["K"] != "V" || r.Status != 0 {
		t.Errorf("status %d, output %q, outputs %q", r.Status, out, r.Outputs)
	}
	if n := strings.Count(strings.ToLower(out), "permission denied"); n != 3 {
		t.Errorf("%d refusals, want 3: %q", n, out)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	account := me(t)
	n := here(t)
	at := filepath.Join(t.TempDir(), "a b", "c'd")
	if err := n.Write(within(t), request.File{Path: at, Mode: 0o750, Content: []byte("\x00content\n")}, account); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(at); string(got) != "\x00content\n" || st.Mode().Perm() != 0o750 {
		t.Errorf("%q of mode %o", got, st.Mode().Perm())
	}
	err = n.Write(within(t), request.File{Path: "/proc/no/such", Mode: 0o644}, account)
	if status, failed := startup.Failed(err); !failed || status == 0 {
		t.Errorf("a file that cannot be: %v", err)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	account := me(t)
	n, a := here(t), startup.Attempt{Step: "s", Number: 1}
	ctx := within(t)
	ended := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		ended <- n.Launch(ctx, a, account, startup.Once, command("for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done"), func() { close(begun) })
	}()
	<-begun
	var text bytes.Buffer
	if err := n.Follow(ctx, a, &text); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for i := range 5 {
		if !strings.Contains(text.String(), "line "+strconv.Itoa(i+1)) {
			t.Errorf("line %d is missing in %q", i+1, text.String())
		}
	}
}
