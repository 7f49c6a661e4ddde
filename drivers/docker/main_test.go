package docker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/docker"
	"croft/drivers/driverstest"
	"croft/urn"
)

// The environment of a worker, see driverstest.Churn: its state directory and
// the engine's socket.
const (
	churnDir    = "CROFT_TEST_CHURN"
	churnSocket = "CROFT_TEST_DOCKER"
)

// remapped has the engine give the users of containers other ids on the host.
const remapped = "CROFT_TEST_USERNS"

var manager = urn.URN{Authority: "conformance.example", Type: urn.AuthorityType, Name: "am"}

func TestMain(m *testing.M) {
	docker.Init()
	if dir := os.Getenv(churnDir); dir != "" {
		fmt.Fprintln(os.Stderr, churn(dir))
		os.Exit(1)
	}
	status := m.Run()
	if shared != nil {
		shared.stop()
	}
	os.Exit(status)
}

func churn(dir string) error {
	d, err := docker.New(docker.Config{Dir: dir, Manager: manager, Hosts: []docker.Host{hostAt(os.Getenv(churnSocket))}})
	if err != nil {
		return err
	}
	return driverstest.Churn(context.Background(), d, useImage(fullImage), os.Stdout)
}

func hostAt(socket string) docker.Host { return docker.Host{Name: "test", Address: "unix://" + socket} }

// engine is a Docker engine of the test's own: socket, data, and nothing of the
// host's networks.
type engine struct {
	dir     string
	cmd     *exec.Cmd
	api     *client.Client
	log     bytes.Buffer
	address string // where it listens by TCP with TLS
	images  map[string]error
	ended   chan struct{}
}

// The engine of all tests, once one has asked for it, or why there is none.
var (
	starting  sync.Once
	shared    *engine
	sharedErr error
)

// errNoEngine says that tests are skipped.
var errNoEngine = errors.New("no Docker engine")

func (e *engine) socket() string { return filepath.Join(e.dir, "sock") }

// startEngine starts an engine in a network, or (nil) that of the test. It ends
// with the thread.
func startEngine(network *os.File) (*engine, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: starting dockerd needs root (sudo go test …)", errNoEngine)
	}
	path, err := exec.LookPath("dockerd")
	if err != nil {
		return nil, fmt.Errorf("%w: dockerd is not installed (apt-get install docker.io)", errNoEngine)
	}
	// Short: it is part of names of sockets.
	dir, err := os.MkdirTemp("", "dk")
	if err != nil {
		return nil, err
	}
	e := &engine{dir: dir, images: map[string]error{}, ended: make(chan struct{})}
	if err := writePKI(dir + "/pki"); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e.address = l.Addr().String()
	l.Close()
	args := []string{path}
	if os.Getenv(remapped) != "" {
		if args, err = remapUsers(dir, path); err != nil {
			return nil, err
		}
	}
	args = append(args, "--host", "tcp://"+e.address, "--tlsverify", "--tlscacert", dir+"/pki/ca.pem",
		"--tlscert", dir+"/pki/server.pem", "--tlskey", dir+"/pki/server-key.pem", "--data-root", dir+"/data", "--exec-root", dir+"/run", "--pidfile", dir+"/pid",
		"--host", "unix://"+e.socket(), "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
		"--userland-proxy=false", "--group", "root", "--config-file", dir+"/daemon.json", "--shutdown-timeout", "1")
	e.cmd = exec.Command(args[0], args[1:]...)
	e.cmd.Stdout, e.cmd.Stderr = &e.log, &e.log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setsid: true}
	if err := os.WriteFile(dir+"/daemon.json", []byte("{}"), 0o600); err != nil {
		return nil, err
	}
	start := e.cmd.Start
	if network != nil { // it keeps that of the thread that starts it
		start = func() error {
			if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			return e.cmd.Start()
		}
	}
	if err := start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	go func() {
		defer close(e.ended)
		e.cmd.Wait()
	}()
	if e.api, err = client.New(client.WithHost("unix://" + e.socket())); err != nil {
		e.stop()
		return nil, err
	}
	const patience = 30 * time.Second
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, err := e.api.Ping(context.Background(), client.PingOptions{})
		if err == nil {
			return e, nil
		}
		gone := false
		select {
		case <-e.ended:
			gone = true
		default:
		}
		if gone || time.Now().After(deadline) {
			e.stop()
			return nil, fmt.Errorf("%w: dockerd does not come up: %w\n%s", errNoEngine, err, e.log.String())
		}
	}
}

// remapUsers is the command that starts an engine which has user ids for its
// containers, without the host's files saying so.
func remapUsers(dir, engine string) ([]string, error) {
	if err := os.WriteFile(dir+"/ids", []byte("nobody:300000:65536\n"), 0o644); err != nil {
		return nil, err
	}
	// The containers' root has to get to its files.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	const script = `mount --make-rprivate / && mount --bind "$1" /etc/subuid && mount --bind "$1" /etc/subgid && shift && exec "$@"`
	return []string{"unshare", "--mount", "sh", "-c", script, "sh", dir + "/ids", engine, "--userns-remap", "nobody:nogroup"}, nil
}

func (e *engine) stop() {
	e.cmd.Process.Signal(syscall.SIGTERM)
	<-e.ended
	os.RemoveAll(e.dir)
}

// need returns the engine with an image.
func need(t testing.TB, image string) *engine {
	t.Helper()
	starting.Do(func() { shared, sharedErr = keepEngine(nil) })
	if sharedErr != nil {
		if errors.Is(sharedErr, errNoEngine) {
			t.Skipf("SKIPPED: %v", sharedErr)
		}
		t.Fatal(sharedErr)
	}
	shared.have(t, image)
	return shared
}

// keepEngine starts an engine on a thread that does not end.
func keepEngine(network *os.File) (e *engine, err error) {
	started := make(chan struct{})
	go func() {
		// The engine gets its signal when the thread that started it ends.
		runtime.LockOSThread()
		e, err = startEngine(network)
		close(started)
		select {}
	}()
	<-started
	return e, err
}

// have sees to it that the engine has an image.
func (e *engine) have(t testing.TB, image string) {
	t.Helper()
	err, known := e.images[image]
	if !known {
		err = e.importImage(image)
		e.images[image] = err
	}
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("SKIPPED: image %s cannot be made here: %v", image, err)
	}
	if err != nil {
		t.Fatalf("make image %s: %v", image, err)
	}
}

func (e *engine) importImage(name string) error {
	content, w := io.Pipe()
	go func() { w.CloseWithError(writeImage(w, name)) }()
	r, err := e.api.ImageImport(context.Background(), client.ImageImportSource{Source: content, SourceName: "-"}, name,
		client.ImageImportOptions{Changes: []string{"ENV FROM_IMAGE=yes"}})
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

func useImage(name string) func(*drivers.Node) {
	return func(n *drivers.Node) { n.Image = name }
}

func open(t testing.TB, cfg docker.Config) *docker.Driver {
	t.Helper()
	cfg.Manager = manager
	if cfg.Hosts == nil {
		cfg.Hosts = []docker.Host{hostAt(shared.socket())}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	d, err := docker.New(cfg)
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

func subject(t *testing.T, image string) driverstest.Subject {
	e := need(t, image)
	cfg := docker.Config{Dir: t.TempDir()}
	return driverstest.Subject{
		Open:    func(t *testing.T) drivers.Driver { return open(t, cfg) },
		Prepare: useImage(image),
		Traces:  func(t *testing.T) []string { return e.traces(t, cfg.Dir) },
		Worker: func(t *testing.T) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), churnDir+"="+cfg.Dir, churnSocket+"="+e.socket())
			return cmd
		},
		Links: true,
		Sudo:  image == fullImage,
	}
}

func TestConformance(t *testing.T) {
	need(t, fullImage)
	driverstest.Run(t, func(t *testing.T) driverstest.Subject { return subject(t, fullImage) })
}

// TestSmallImage is about images that have neither sudo nor an SSH server, nor
// a package system.
func TestSmallImage(t *testing.T) {
	need(t, smallImage)
	for _, part := range []string{"life cycle", "several users", "steps", "interface without a link"} {
		driverstest.RunPart(t, part, func(t *testing.T) driverstest.Subject { return subject(t, smallImage) })
	}
	for _, part := range []string{"commands", "sessions", "manager restarts", "link"} {
		driverstest.RunLong(t, part, func(t *testing.T) driverstest.Subject { return subject(t, smallImage) })
	}
}

// traces lists everything that a driver has on the engine and in its state
// directory.
func (e *engine) traces(t *testing.T, dir string) []string {
	t.Helper()
	ctx := context.Background()
	var out []string
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	containers, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true})
	must(err)
	for _, c := range containers.Items {
		out = append(out, "container "+strings.Join(c.Names, " "))
	}
	volumes, err := e.api.VolumeList(ctx, client.VolumeListOptions{})
	must(err)
	for _, v := range volumes.Items {
		out = append(out, "volume "+v.Name)
	}
	networks, err := e.api.NetworkList(ctx, client.NetworkListOptions{})
	must(err)
	for _, n := range networks.Items {
		out = append(out, "network "+n.Name)
	}
	images, err := e.api.ImageList(ctx, client.ImageListOptions{All: true})
	must(err)
	for _, i := range images.Items {
		out = append(out, "image "+strings.Join(i.RepoTags, " "))
	}
	must(filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			out = append(out, "file "+path)
		}
		return nil // what goes away meanwhile is gone
	}))
	sum := sha256.Sum256([]byte(dir))
	groups, err := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/croft-%x*", sum[:4]))
	must(err)
	for _, g := range groups {
		out = append(out, "cgroup "+g)
	}
	return out
}
