// Package umltest runs tests of a package once more inside User-Mode Linux,
// whose kernel has what the one of this machine may lack: netem, and cgroups of
// version 2 with all controllers.
package umltest

import (
	"bytes"
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed init.sh
var initScript []byte

// inside is in the environment of tests that run inside.
const inside = "CROFT_INSIDE_UML"

// limit bounds the time of a run.
const limit = 6 * time.Minute

// Inside reports whether the test runs inside User-Mode Linux.
func Inside() bool { return os.Getenv(inside) != "" }

// Run runs the tests of the calling package whose names match a pattern,
// without spaces and commas, inside User-Mode Linux. They see this machine's
// files and write to a disk of their own. The program is that of the package,
// built without the race detector, which the kernel has no room for.
func Run(t *testing.T, pattern string) {
	t.Helper()
	text := Output(t, false, "-test.v", "-test.run", pattern)
	if !strings.Contains(text, "--- PASS") {
		t.Errorf("inside User-Mode Linux:\n%s", text)
	}
}

// Output runs the package's test program with these arguments, without spaces
// and commas, and returns what it writes. The test that calls it fails when
// the program does. A kernel that is to be first is so before all that is not
// of real time on this machine, if that is allowed: its clock stands still
// whenever it waits for a processor.
func Output(t testing.TB, first bool, args ...string) string {
	t.Helper()
	kernel, err := exec.LookPath("linux.uml")
	switch {
	case Inside():
		t.Skip("this is inside User-Mode Linux already")
	case err != nil:
		t.Skip("SKIPPED: there is no User-Mode Linux (apt-get install user-mode-linux)")
	case os.Geteuid() != 0:
		t.Skip("SKIPPED: root of User-Mode Linux gets at files as the user who runs it (sudo go test …)")
	}
	dir := t.TempDir()
	program, script := filepath.Join(dir, "program"), filepath.Join(dir, "init")
	if err := os.WriteFile(script, initScript, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, ".").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the tests cannot be built once more: %v: %s", err, out)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, kernel, "mem=1G", "rootfstype=hostfs", "ro", "quiet", "loglevel=1", "init="+script,
		"con=null", "con0=null,fd:1", "con1=null", "uml_dir="+dir, "croftrun="+program+","+strings.Join(args, ","))
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := startFirst(cmd, first); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	text := out.String()
	if err != nil || !strings.Contains(text, "croft-status 0") {
		t.Errorf("inside User-Mode Linux: %v\n%s", err, text)
	}
	return text
}

// startFirst starts a command from a thread whose policy it inherits.
func startFirst(cmd *exec.Cmd, first bool) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends here
		if first {
			unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
		}
		started <- cmd.Start()
	}()
	return <-started
}
