package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"croft/client"
	"croft/drivers/ssh/sshtest"
	"croft/urn"
)

// patience is how long anything may take here before a test gives up. It is no
// measure of speed: machines that run tests are busy.
const patience = 2 * time.Minute

// soak reports whether the long forms of campaigns are wanted.
func soak() bool { return os.Getenv("CROFT_SOAK") != "" }

// program is the built binary, by whether it has the race detector.
var program struct {
	sync.Mutex
	dir   string
	built map[bool]string
}

func TestMain(m *testing.M) {
	sshtest.Init()
	status := m.Run()
	if program.dir != "" {
		os.RemoveAll(program.dir)
	}
	os.Exit(status)
}

// build returns the program, which it builds when it is first asked for.
func build(t testing.TB, race bool) string {
	t.Helper()
	program.Lock()
	defer program.Unlock()
	if program.built == nil {
		dir, err := os.MkdirTemp("", "croft-e2e")
		if err != nil {
			t.Fatal(err)
		}
		program.dir, program.built = dir, map[bool]string{}
	}
	if program.built[race] == "" {
		file := filepath.Join(program.dir, fmt.Sprintf("croft-%v", race))
		args := []string{"build", "-o", file}
		if race {
			args = append(args, "-race")
		}
		out, err := exec.Command("go", append(args, "croft/cmd/croft")...).CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		program.built[race] = file
	}
	return program.built[race]
}

// repository returns the name of a file of this repository.
func repository(t testing.TB, elements ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(append([]string{dir}, elements...)...)
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the working folder")
		}
		dir = filepath.Dir(dir)
	}
}

func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s (scripts/setup test installs it)", p)
		}
	}
}

// testbed is a federation in a folder, and its server.
type testbed struct {
	testing.TB
	dir     string // CROFT_DIR
	bin     string // the program, a copy of this testbed's own
	url     string
	root    string // PEM file
	manager urn.URN

	server *exec.Cmd
	ended  chan struct{} // closed when the server has
	status error
	log    string // the server's log file
}

const authority = "example.org"

// ports gives every testbed of this run ports of its own.
var ports atomic.Int32

// setting changes a line of croft.yaml.
type setting struct{ old, new string }

// newTestbed makes a federation, and starts its server.
func newTestbed(t testing.TB, settings ...setting) *testbed {
	t.Helper()
	b := newFederation(t, settings...)
	b.start()
	return b
}

func newFederation(t testing.TB, settings ...setting) *testbed {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: nodes are made of namespaces (run the tests as root or with sudo)")
	}
	return newFolder(t, settings...)
}

// newFolder makes a federation.
func newFolder(t testing.TB, settings ...setting) *testbed {
	t.Helper()
	_, isTest := t.(*testing.T)
	built := build(t, isTest)
	work, err := os.MkdirTemp("", "croft-e2e-testbed")
	if err != nil {
		t.Fatal(err)
	}
	b := &testbed{
		TB: t, dir: filepath.Join(work, "data"), bin: filepath.Join(work, "croft"),
		manager: urn.URN{Authority: authority, Type: urn.AuthorityType, Name: "cm"},
		log:     filepath.Join(work, "log"),
	}
	t.Cleanup(func() {
		b.end()
		os.RemoveAll(work)
	})
	if err := copyFile(built, b.bin); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	b.url = "https://" + address + "/am/3.0"
	b.root = filepath.Join(b.dir, "trusted", "ca.pem")
	b.must("init", "--authority", authority, "--listen", address)
	// Apart from the usual ports, which servers have that people try, and from
	// those of other runs.
	from := 12400 + 200*((os.Getpid()+int(ports.Add(1)))%45)
	gateway := from
	for gateway >= from && gateway < from+200 {
		at, err := net.ResolveTCPAddr("tcp", freeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		gateway = at.Port
	}
	b.edit("croft.yaml", append(settings,
		setting{"from: 22000", fmt.Sprintf("from: %d", from)},
		setting{"to: 29999", fmt.Sprintf("to: %d", from+199)},
		setting{"port: 2222", fmt.Sprintf("port: %d", gateway)})...)
	return b
}

// copyFile copies a program. No process may be forked meanwhile: it would hold
// the copy open for writing until it execs, and the copy could not be run.
func copyFile(from, to string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// edit changes a file of the testbed.
func (b *testbed) edit(file string, settings ...setting) {
	b.Helper()
	path := filepath.Join(b.dir, file)
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	text := string(data)
	for _, s := range settings {
		if !strings.Contains(text, s.old) {
			b.Fatalf("%s has no %q", file, s.old)
		}
		text = strings.Replace(text, s.old, s.new, 1)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

// start starts the server and waits until it says where it listens.
func (b *testbed) start() {
	b.Helper()
	log, err := os.OpenFile(b.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	b.server = exec.Command(b.bin, "serve", "--config", filepath.Join(b.dir, "croft.yaml"))
	b.server.Env = b.environment()
	b.server.Stderr = log
	out, err := b.server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := b.server.Start(); err != nil {
		b.Fatal(err)
	}
	b.ended = make(chan struct{})
	line := make(chan string, 1)
	go func() {
		r := bufio.NewReader(out)
		first, _ := r.ReadString('\n')
		line <- first
		_, _ = io.Copy(io.Discard, r)
		b.status = b.server.Wait()
		close(b.ended)
	}()
	select {
	case said := <-line:
		if !strings.Contains(said, b.url) {
			<-b.ended
			b.Fatalf("the server said %q and ended: %v\n%s", said, b.status, b.logTail())
		}
	case <-time.After(patience):
		b.kill()
		b.Fatalf("the server says nothing\n%s", b.logTail())
	}
}

func (b *testbed) environment() []string {
	return append(os.Environ(), "CROFT_DIR="+b.dir, "GORACE=halt_on_error=1 exitcode=66 atexit_sleep_ms=0")
}

// stop stops the server as an operator does; it must end well.
func (b *testbed) stop() {
	b.Helper()
	if b.server == nil {
		return
	}
	if err := b.server.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		b.Error(err)
	}
	select {
	case <-b.ended:
		if b.status != nil {
			b.Errorf("the server ended with %v\n%s", b.status, b.logTail())
		}
	case <-time.After(patience):
		b.Errorf("the server does not stop\n%s", b.logTail())
		b.kill()
	}
	b.server = nil
}

// kill ends the server as a power loss does.
func (b *testbed) kill() {
	b.Helper()
	if b.server == nil {
		return
	}
	_ = b.server.Process.Kill()
	<-b.ended
	b.server = nil
}

// end gives back what a test has left and looks for what is left after that.
func (b *testbed) end() {
	if b.Failed() {
		b.Logf("the server's log ends with:\n%s", b.logTail())
	}
	if b.server != nil {
		slices, _ := os.ReadDir(filepath.Join(b.dir, "slices"))
		for _, s := range slices {
			b.croft("delete", s.Name())
		}
		b.awaitNothing()
		b.stop()
	}
	if left := b.leftovers(); len(left) > 0 {
		b.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

func (b *testbed) logTail() string {
	data, _ := os.ReadFile(b.log)
	if len(data) > 8000 {
		data = data[len(data)-8000:]
	}
	return string(data)
}

// leftovers are the processes of nodes, and mounts below the testbed's folder.
// A node's file system holds the program, out of that folder, which gives its
// processes away.
func (b *testbed) leftovers() []string {
	work := filepath.Base(filepath.Dir(b.dir)) // mounts tell paths from the root of a file system on
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		b.Fatal(err)
	}
	var found []string
	namespaces, _ := filepath.Glob("/proc/[0-9]*/ns/mnt")
	for _, file := range namespaces {
		if ns, err := os.Readlink(file); err != nil || ns == own {
			continue
		}
		process := strings.TrimSuffix(file, "/ns/mnt")
		mounts, _ := os.ReadFile(process + "/mountinfo")
		inside := false
		for line := range strings.Lines(string(mounts)) {
			// Whoever copies the host's mounts has where links are, too.
			inside = inside || strings.Contains(line, "/"+work+"/") && !strings.Contains(line, "/switch ")
		}
		if inside {
			command, _ := os.ReadFile(process + "/cmdline")
			found = append(found, fmt.Sprintf("%s: %s", process, bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "/"+work+"/") {
			found = append(found, "mount: "+strings.TrimSpace(line))
		}
	}
	return found
}

// awaitNothing waits until no node is left.
func (b *testbed) awaitNothing() {
	b.Helper()
	b.await("nodes to go", func() bool { return len(b.leftovers()) == 0 })
}

// await waits until something is so.
func (b *testbed) await(what string, so func() bool) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			b.Fatalf("waited for %s in vain: %v\n%s", what, b.leftovers(), b.logTail())
		case <-tick.C:
		}
	}
}

// result is what a command did.
type result struct {
	out, err string
	status   int
}

// croft runs a command.
func (b *testbed) croft(args ...string) result {
	b.Helper()
	return b.croftIn("", args...)
}

func (b *testbed) croftIn(stdin string, args ...string) result {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.bin, args...)
	cmd.Env = b.environment()
	return runCommand(b, cmd, stdin)
}

func runCommand(t testing.TB, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatalf("%s: %v", strings.Join(cmd.Args, " "), err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// must runs a command that has to work, and returns what it printed.
func (b *testbed) must(args ...string) string {
	b.Helper()
	r := b.croft(args...)
	if r.status != 0 {
		b.Fatalf("croft %s: status %d\n%s%s", strings.Join(args, " "), r.status, r.out, r.err)
	}
	return r.out
}

// refused runs a command that has to fail, and wants to be told why.
func (b *testbed) refused(why string, args ...string) {
	b.Helper()
	r := b.croft(args...)
	if r.status == 0 {
		b.Errorf("croft %s: worked\n%s", strings.Join(args, " "), r.out)
	}
	if !strings.Contains(r.err, why) {
		b.Errorf("croft %s: standard error %q does not say %q", strings.Join(args, " "), r.err, why)
	}
}

// slice makes a slice and returns its URN.
func (b *testbed) slice(name string) urn.URN {
	b.Helper()
	b.must("slice", "add", name)
	return urn.URN{Authority: authority, Type: urn.Slice, Name: name}
}

// credential is alice's for a slice.
func (b *testbed) credential(slice urn.URN) client.Credential {
	b.Helper()
	return client.SFA(b.read("slices", slice.Name, "credential-alice.xml"))
}

// read returns a file of the testbed.
func (b *testbed) read(elements ...string) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{b.dir}, elements...)...))
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

// caller is alice, calling from Go.
func (b *testbed) caller() *client.Client {
	b.Helper()
	who, err := client.LoadIdentity(filepath.Join(b.dir, "members", "alice"))
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.New(client.Options{URL: b.url, Identity: who, Roots: []byte(b.read("trusted", "ca.pem")), Timeout: patience})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// request reads a request of testdata.
func request(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(repository(t, "testdata", "requests", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
