package namespace_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/driverstest"
	"croft/drivers/namespace"
)

// churnDir names the state directory in the environment of a worker, see
// driverstest.Churn.
const churnDir = "CROFT_TEST_CHURN"

func TestMain(m *testing.M) {
	namespace.Init()
	if dir := os.Getenv(churnDir); dir != "" {
		fmt.Fprintln(os.Stderr, churn(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func churn(dir string) error {
	first, err := strconv.ParseUint(os.Getenv("CROFT_TEST_IDS"), 10, 32)
	if err != nil {
		return err
	}
	d, err := namespace.New(namespace.Config{Dir: dir, IDs: namespace.IDRange{First: uint32(first), Nodes: testNodes}})
	if err != nil {
		return err
	}
	return driverstest.Churn(context.Background(), d, nil, os.Stdout)
}

// testNodes is how many nodes a test may have.
const testNodes = 64

// testIDs are user ids of this test process, apart from those of another one.
func testIDs() namespace.IDRange {
	const processes = 120
	return namespace.IDRange{First: 0x60000000 + uint32(os.Getpid()%processes)*testNodes<<16, Nodes: testNodes}
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: nodes out of namespaces need root (sudo go test …)")
	}
}

// open opens a driver on a directory, with the test's ids.
func open(t testing.TB, cfg namespace.Config) *namespace.Driver {
	t.Helper()
	needRoot(t)
	if cfg.IDs == (namespace.IDRange{}) {
		cfg.IDs = testIDs()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	d, err := namespace.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// testLog writes the driver's log to the test's.
type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

func subject(t *testing.T, cfg namespace.Config) driverstest.Subject {
	needRoot(t)
	cfg.Dir = t.TempDir()
	var last *namespace.Driver
	return driverstest.Subject{
		Open: func(t *testing.T) drivers.Driver {
			last = open(t, cfg)
			return last
		},
		Traces: func(t *testing.T) []string { return traces(t, cfg.Dir, last) },
		Worker: func(t *testing.T) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), churnDir+"="+cfg.Dir, fmt.Sprintf("CROFT_TEST_IDS=%d", testIDs().First))
			return cmd
		},
		Links: true,
		Sudo:  hasSudo(),
	}
}

func hasSudo() bool {
	_, err := os.Stat("/usr/bin/sudo")
	return err == nil
}

func TestConformance(t *testing.T) {
	needRoot(t)
	driverstest.Run(t, func(t *testing.T) driverstest.Subject { return subject(t, namespace.Config{}) })
}

// driverNames are the names that ports and bridges have, and that none of the
// host's interfaces may have.
var driverNames = regexp.MustCompile(`^[nl]\d+(\.\d+)?$`)

// traces lists everything that a driver on dir has on the machine.
func traces(t *testing.T, dir string, d *namespace.Driver) []string {
	t.Helper()
	var out []string
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		// The generated image is of no node and stays.
		if err == nil && !strings.HasPrefix(path, filepath.Join(dir, "system")+"/") {
			out = append(out, "file "+path)
		}
		return nil // what goes away meanwhile is gone
	}))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) {
			out = append(out, "mount "+strings.TrimSpace(line))
		}
	}
	ids := testIDs()
	processes, err := filepath.Glob("/proc/[0-9]*/status")
	must(err)
	for _, file := range processes {
		status, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(status), "\nUid:")
		fields := strings.Fields(after)
		if len(fields) == 0 {
			continue
		}
		uid, err := strconv.ParseUint(fields[0], 10, 32)
		must(err)
		if uid >= uint64(ids.First) && uid < uint64(ids.First)+uint64(ids.Nodes)<<16 {
			out = append(out, fmt.Sprintf("process %s of uid %d", filepath.Dir(file), uid))
		}
	}
	// Namespaces that no process is in are held by files.
	own, err := filepath.Glob("/proc/self/fd/*")
	must(err)
	for _, file := range own {
		to, err := os.Readlink(file)
		if err == nil && (strings.Contains(to, "net:[") || strings.Contains(to, "user:[") || strings.Contains(to, "pidfd") || strings.Contains(to, dir)) {
			out = append(out, "open file "+regexp.MustCompile(`\[\d+\]`).ReplaceAllString(to, "[]"))
		}
	}
	interfaces, err := net.Interfaces()
	must(err)
	for _, i := range interfaces {
		if driverNames.MatchString(i.Name) {
			out = append(out, "host interface "+i.Name)
		}
	}
	for _, c := range d.CgroupDirs() {
		groups, err := filepath.Glob(filepath.Join(c, d.CgroupName()+"*"))
		must(err)
		for _, g := range groups {
			out = append(out, "cgroup "+g)
		}
	}
	return out
}

// inheritable lets programs that are started inherit a file.
func inheritable(t *testing.T, f *os.File) {
	t.Helper()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
}

func ownerOf(st os.FileInfo) uint32 { return st.Sys().(*syscall.Stat_t).Uid }
