package e2e

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"croft/drivers/ssh/sshtest"
)

// backend is a driver in the workload of kills.
type backend struct {
	driver   string
	slices   int    // that use it at a time
	top      string // of the inventory, beside the types and hosts
	types    string
	hosts    string
	settings []setting
	// node is the sliver_type element of requests.
	node string
	// there counts the nodes that run, without asking the manager; nil if
	// nobody else knows.
	there func(*testbed) (int, error)
	// reach is a command that a user can do on node a if its link to node b
	// works; "" if users cannot log in.
	reach string
	// scarce: there is room for one slice at a time, once the last is gone.
	scarce bool
	// changes lists what is left when nothing should be; nil if there counts
	// it.
	changes func() []string
}

// backends are the drivers that work on this machine.
func backends(t *testing.T) []backend {
	// What is missing is in the list of skipped tests.
	absent := func(driver string, why error) {
		t.Run("driver "+driver, func(t *testing.T) { t.Skip(why) })
	}
	list := []backend{{
		driver: "simulated", slices: 2, node: `<sliver_type name="sim"/>`,
		types: "  - {name: sim, driver: simulated, cores: 1, memory: 1GiB, disk: 1GiB}\n",
		hosts: "  - {name: s1, sliver_types: [sim], cores: 64, memory: 64GiB, disk: 64GiB, shared: true}\n",
		// Slow enough to be killed in the middle.
		settings: []setting{{"# simulated:", "simulated: {times: {make: 50ms, start: 50ms, stop: 20ms, users: 20ms, connect: 20ms, remove: 20ms}, faults: faults.txt}\n# simulated:"}},
	}}
	if os.Getuid() != 0 {
		absent("namespace, ssh and docker", errors.New("they need root"))
		return list
	}
	list = append(list, backend{
		driver: "namespace", slices: 2, node: `<sliver_type name="ns"/>`, reach: "ping -c 1 -W 10 10.1.1.2",
		types: "  - {name: ns, driver: namespace, cores: 1, memory: 64MiB, disk: 64MiB}\n",
		hosts: "  - {name: n1, sliver_types: [ns], cores: 64, memory: 64GiB, disk: 64GiB, shared: true}\n",
		there: (*testbed).namespaces,
	})
	if err := sshtest.Possible(); err != nil {
		absent("ssh", err)
	} else {
		list = append(list, machineBackend(t))
	}
	engine, err := startDocker(t)
	if err != nil {
		absent("docker", err)
		return list
	}
	return append(list, backend{
		driver: "docker", slices: 1, node: `<sliver_type name="box"/>`,
		// Busybox's ping is for root: the other node answers who it is.
		reach:    "nc -w 5 10.1.1.2 9 < /dev/null; grep '^10.1.1.2 .* 0x2 ' /proc/net/arp",
		top:      "images: [{name: small, source: \"" + dockerImage + "\"}]\n",
		types:    "  - {name: box, driver: docker, images: [small], cores: 1, memory: 1GiB, disk: 64MiB}\n",
		hosts:    "  - {name: d1, sliver_types: [box], cores: 64, memory: 64GiB, disk: 64GiB, shared: true}\n",
		settings: []setting{{"# docker:", "docker: {hosts: [{name: local, address: \"" + string(engine) + "\"}]}\n# docker:"}},
		there:    engine.containers,
	})
}

// namespaces counts the nodes of namespaces that run: those that have a mount
// namespace with this testbed's folder in it, and a network of their own.
func (b *testbed) namespaces() (int, error) {
	mounts, networks := map[string]bool{}, map[string]bool{}
	for _, line := range b.leftovers() {
		process, _, ok := strings.Cut(line, ": ")
		if !ok || !strings.HasPrefix(process, "/proc/") {
			if !strings.Contains(line, "/switch") { // where links are
				return 0, fmt.Errorf("a mount on the host: %s", line)
			}
			continue
		}
		mnt, err := os.Readlink(process + "/ns/mnt")
		net, netErr := os.Readlink(process + "/ns/net")
		if errors.Join(err, netErr) != nil {
			continue // it has just ended
		}
		mounts[mnt], networks[net] = true, true
	}
	if len(mounts) != len(networks) {
		return 0, fmt.Errorf("%d mount namespaces, %d network namespaces:\n%s", len(mounts), len(networks), strings.Join(b.leftovers(), "\n"))
	}
	return len(mounts), nil
}

// machineBackend is two machines that are reached by SSH, and given out whole.
func machineBackend(t *testing.T) backend {
	lab, err := sshtest.NewLab()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	command, err := lab.SwitchCommand()
	if err != nil {
		t.Fatal(err)
	}
	var machines []*sshtest.Machine
	hosts := ""
	for _, name := range []string{"pc1", "pc2"} {
		m, err := lab.Machine(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		mac, err := m.MAC(0)
		if err != nil {
			t.Fatal(err)
		}
		machines = append(machines, m)
		hosts += fmt.Sprintf("  - {name: %s, sliver_types: raw-pc, interfaces: [{name: eth1, mac: %q}], access: {address: %s, port: %d, host_keys: %q, scratch: /scratch, boot_limit: 15}}\n",
			name, mac, m.Host, m.Port, m.HostKey())
	}
	return backend{
		driver: "ssh", slices: 1, node: `<sliver_type name="raw-pc"/>`, reach: "ping -c 1 -W 10 10.1.1.2", scarce: true,
		top:   "switches: [{name: sw}]\ncables: [{hosts: \"pc[1-2]\", interfaces: eth1, switch: sw}]\n",
		types: "  - {name: raw-pc, driver: ssh}\n",
		hosts: hosts,
		settings: []setting{{"log:\n  level", fmt.Sprintf("machines: {key: %q, links: {command: [%q, %q, %q]}}\nlog:\n  level",
			lab.KeyFile(), command[0], command[1], command[2])}},
		changes: func() []string {
			var list []string
			for _, m := range machines {
				list = append(list, m.Changes()...)
			}
			links, err := lab.Links()
			if err != nil {
				list = append(list, err.Error())
			}
			return append(list, links...)
		},
	}
}

// engine is the address of a Docker engine.
type engine string

const dockerImage = "croft-e2e/small:1"

// startDocker starts an engine of the test's own, with nothing of the host's
// networks, and gives it an image.
func startDocker(t *testing.T) (engine, error) {
	for _, program := range []string{"dockerd", "docker", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%w (scripts/setup test installs it)", err)
		}
	}
	dir, err := os.MkdirTemp("", "dk") // short: it is part of the names of sockets
	if err != nil {
		return "", err
	}
	e := engine("unix://" + dir + "/sock")
	if err := os.WriteFile(dir+"/daemon.json", []byte("{}"), 0o600); err != nil {
		return "", err
	}
	var log bytes.Buffer
	cmd := exec.Command("dockerd", "--data-root", dir+"/data", "--exec-root", dir+"/run", "--pidfile", dir+"/pid", "--host", string(e),
		"--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--userland-proxy=false",
		"--group", "root", "--config-file", dir+"/daemon.json", "--shutdown-timeout", "1")
	cmd.Stdout, cmd.Stderr = &log, &log
	// It ends with the thread that has started it: also when this test is
	// killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setsid: true}
	started, died, ended, done := make(chan error), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(died)
			<-done
		}
	}()
	if err := <-started; err != nil {
		close(done)
		return "", err
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		close(done)
		<-ended
		if t.Failed() {
			t.Logf("dockerd says:\n%.4000s", log.String())
		}
		os.RemoveAll(dir)
	})
	for {
		if _, err := e.docker(nil, "version"); err == nil {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-died:
			return "", fmt.Errorf("dockerd does not come up here: %.1000s", log.String())
		}
	}
	image, err := busyboxImage()
	if err != nil {
		return "", err
	}
	if out, err := e.docker(image, "import", "-", dockerImage); err != nil {
		return "", fmt.Errorf("importing an image: %w: %s", err, out)
	}
	return e, nil
}

func (e engine) docker(stdin io.Reader, args ...string) (string, error) {
	cmd := exec.Command("docker", append([]string{"--host", string(e)}, args...)...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// containers counts those that run.
func (e engine) containers(*testbed) (int, error) {
	out, err := e.docker(nil, "ps", "--quiet", "--filter", "status=running")
	if err != nil {
		return 0, fmt.Errorf("docker ps: %w: %s", err, out)
	}
	return len(strings.Fields(out)), nil
}

// busyboxImage is a small system of this machine's busybox.
func busyboxImage() (io.Reader, error) {
	program, err := exec.LookPath("busybox")
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	applets, err := exec.Command(program, "--list").Output()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	var errs []error
	put := func(h tar.Header, content []byte) {
		h.Size = int64(len(content))
		errs = append(errs, w.WriteHeader(&h))
		_, err := w.Write(content)
		errs = append(errs, err)
	}
	for _, name := range []string{"bin", "dev", "etc", "home", "proc", "root", "run", "sys", "var", "var/lib", "var/log"} {
		put(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}, nil)
	}
	put(tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil)
	put(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, binary)
	for _, name := range strings.Fields(string(applets)) {
		if name != "busybox" {
			put(tar.Header{Typeflag: tar.TypeSymlink, Name: filepath.Join("bin", name), Linkname: "busybox", Mode: 0o777}, nil)
		}
	}
	for name, content := range map[string]string{
		"etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
		"etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
	} {
		put(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, []byte(content))
	}
	put(tar.Header{Typeflag: tar.TypeReg, Name: "etc/shadow", Mode: 0o640}, []byte("root:*:19000:0:99999:7:::\n"))
	return &out, errors.Join(append(errs, w.Close())...)
}
