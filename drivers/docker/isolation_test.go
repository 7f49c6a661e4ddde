package docker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"croft/capacity"
	"croft/drivers"
	"croft/drivers/docker"
	"croft/urn"
)

// rig is a driver with nodes that are removed afterwards.
type rig struct {
	t *testing.T
	d *docker.Driver
}

func newRig(t *testing.T, cfg docker.Config) rig {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	r := rig{t, open(t, cfg)}
	t.Cleanup(func() {
		found, err := r.d.List(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, f := range found {
			if err := r.d.Remove(context.Background(), f.Sliver); err != nil {
				t.Error(err)
			}
		}
		r.d.Close()
	})
	return r
}

func (r rig) node(name, image string) drivers.Node {
	return drivers.Node{
		Sliver:   urn.URN{Authority: "conformance.example", Type: urn.Sliver, Name: name},
		Slice:    urn.URN{Authority: "conformance.example", Type: urn.Slice, Name: "one"},
		Hostname: name, Image: image, Capacity: capacity.Amount{Cores: capacity.Core, Memory: 128},
	}
}

func (r rig) up(n drivers.Node) drivers.Node {
	r.t.Helper()
	if err := r.d.Make(r.t.Context(), n); err != nil {
		r.t.Fatal(err)
	}
	if err := r.d.Start(r.t.Context(), n.Sliver); err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r rig) sh(n drivers.Node, script string) (string, error) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	err := r.d.Exec(ctx, n.Sliver, drivers.Command{Args: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out})
	return strings.TrimSpace(out.String()), err
}

// TestIsolation lets the root of a node try what must not work.
func TestIsolation(t *testing.T) {
	for _, image := range []string{fullImage, smallImage} {
		t.Run(image, func(t *testing.T) {
			need(t, image)
			r := newRig(t, docker.Config{})
			n := r.up(r.node("caged", image))
			for _, try := range []struct{ name, script string }{
				{"mount", "mount -t tmpfs none /mnt || mount -t tmpfs none /tmp"},
				{"mount the disk's device", "mknod /tmp/disk b 254 0"},
				{"make a device", "mknod /tmp/mem c 1 1"},
				{"unmount", "umount /proc/sys || umount /sys"},
				{"write over the shared program", "echo x > /run/croft/init"},
				{"put something beside it", "touch /run/croft/other"},
				{"make it writable", "mount -o remount,rw /run/croft"},
				{"a kernel setting", "echo x > /proc/sys/kernel/core_pattern"},
				{"a setting of the control groups", "for f in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; do [ -e $f ] && echo 900000000 > $f && exit 0; done; exit 1"},
				{"the clock", "date -s '2001-01-01'; test $(date +%Y) = 2001"},
				{"restart of the machine", "echo b > /proc/sysrq-trigger"},
				{"namespaces of the host", "nsenter -t 1 -m -- true && nsenter --mount=/proc/1/ns/mnt true && unshare -m true"},
				{"the kernel's log", "dmesg | grep ."},
				{"another host name", "hostname other"},
			} {
				if out, err := r.sh(n, try.script); err == nil {
					t.Errorf("%s: done: %s", try.name, out)
				}
			}
			// Nothing but itself: no way out, no other network.
			if out, err := r.sh(n, "ls /sys/class/net | grep -v '^lo$' | grep -v '^[a-z]*[0-9]*tnl0$' | grep -v -E '^(sit0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|ip6gre0|dummy0)$'"); out != "" {
				t.Errorf("a node without links has interfaces: %s %v", out, err)
			}
			r.mounts(n)
		})
	}
}

// mounts checks that a node's file systems are its own, or bound by the engine.
func (r rig) mounts(n drivers.Node) {
	r.t.Helper()
	containers, err := shared.api.ContainerList(r.t.Context(), client.ContainerListOptions{})
	if err != nil || len(containers.Items) != 1 {
		r.t.Fatalf("containers: %d, %v", len(containers.Items), err)
	}
	c, err := shared.api.ContainerInspect(r.t.Context(), containers.Items[0].ID, client.ContainerInspectOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range c.Container.Mounts {
		if m.Type != "volume" || m.RW {
			r.t.Errorf("mount %+v, want the read-only volume with the init only", m)
		}
	}
	h := c.Container.HostConfig
	if h.Privileged || h.PidMode.IsHost() || h.NetworkMode != "none" || h.IpcMode.IsHost() || h.UTSMode.IsHost() {
		r.t.Errorf("%+v is not apart from the host", h)
	}
	wantNew := n.Image == smallImage // no sudo in it
	if got := strings.Contains(strings.Join(h.SecurityOpt, " "), "no-new-privileges"); got != wantNew {
		r.t.Errorf("no-new-privileges of %s: %v, want %v", n.Image, got, wantNew)
	}
}

// TestLimits lets a node hit its limits. It survives.
func TestLimits(t *testing.T) {
	need(t, smallImage)
	r := newRig(t, docker.Config{Processes: 40})
	n := r.up(r.node("small", smallImage))
	if out, err := r.sh(n, "head -c 300000000 /dev/zero | tail"); err == nil {
		t.Errorf("300 MB of memory in a node with 128: %s", out)
	}
	if out, err := r.sh(n, "for i in $(seq 100); do sleep 100 & done; echo all"); err == nil && strings.HasSuffix(out, "all") && !strings.Contains(out, "fork") {
		t.Errorf("100 processes in a node with 40: %s", out)
	}
	if out, err := r.sh(n, "kill -KILL -1; echo alive"); err != nil || !strings.HasSuffix(out, "alive") {
		t.Errorf("after its limits: %q, %v", out, err)
	}
}

// TestEndsByItself is about nodes whose root ends them.
func TestEndsByItself(t *testing.T) {
	need(t, smallImage)
	r := newRig(t, docker.Config{})
	n := r.up(r.node("moody", smallImage))
	r.sh(n, "kill -TERM 1; sleep 10")
	running := func() bool {
		found, err := r.d.List(t.Context())
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		return found[0].Running
	}
	for deadline := time.Now().Add(20 * time.Second); running(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it runs on")
		}
	}
	if _, err := r.sh(n, "true"); !errors.Is(err, drivers.ErrNotRunning) {
		t.Errorf("exec: %v", err)
	}
	if err := r.d.Start(t.Context(), n.Sliver); err != nil {
		t.Error(err)
	}
	if out, err := r.sh(n, "echo $FROM_IMAGE"); err != nil || out != "yes" {
		t.Errorf("started again: %q, %v; want the image's environment", out, err)
	}
}

func TestImages(t *testing.T) {
	need(t, smallImage)
	r := newRig(t, docker.Config{})
	for _, image := range []string{"", "croft-test/none:1", "not an image", "../x"} {
		if err := r.d.Make(t.Context(), r.node("x", image)); err == nil {
			t.Errorf("image %q: made", image)
		}
	}
	names, err := r.d.Accounts(t.Context(), smallImage)
	if want := "[root nobody service sshd]"; err != nil || fmt.Sprint(names) != want {
		t.Errorf("accounts %v, %v; want %s", names, err, want)
	}
}

// An engine with userns-remap, where a container's root is nobody of the host.
func TestRemappedUsers(t *testing.T) {
	need(t, smallImage)
	if os.Getenv(remapped) != "" {
		r := newRig(t, docker.Config{})
		n := r.up(r.node("n", smallImage))
		if out, err := r.sh(n, "cat /proc/self/uid_map"); err != nil || !strings.Contains(out, "300000") {
			t.Fatalf("the ids of the node's users are %q, %v", out, err)
		}
		return
	}
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("SKIPPED: %v (apt-get install uidmap)", err)
		}
	}
	run := "^TestRemappedUsers$|^TestSmallImage$/^life_cycle$"
	if os.Getenv("CROFT_SOAK") != "" {
		run = "^TestRemappedUsers$|^TestSmallImage$|^TestConformance$|^TestIsolation$"
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", run, "-test.v")
	cmd.Env = append(os.Environ(), remapped+"=1")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "SKIPPED: "+errNoEngine.Error()) {
		t.Skipf("SKIPPED: no engine with userns-remap:\n%s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestRemappedUsers") {
		t.Errorf("%v\n%s", err, out)
	}
}
