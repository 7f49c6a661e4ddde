package namespace_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/capacity"
	"croft/drivers"
	"croft/drivers/namespace"
	"croft/urn"
)

// one is a driver with one running node, for tests of what is inside.
type one struct {
	t      *testing.T
	ctx    context.Context
	dir    string
	d      *namespace.Driver
	sliver urn.URN
}

func newOne(t *testing.T, cfg namespace.Config, change func(*drivers.Node)) *one {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	o := &one{t: t, ctx: ctx, dir: cfg.Dir, d: open(t, cfg), sliver: urn.MustParse("urn:publicid:IDN+isolation.example+sliver+one")}
	t.Cleanup(func() {
		if err := o.d.Remove(context.Background(), o.sliver); err != nil {
			t.Error(err)
		}
		if err := o.d.Close(); err != nil {
			t.Error(err)
		}
		cancel()
	})
	n := drivers.Node{
		Sliver: o.sliver, Slice: o.sliver, Hostname: "one",
		Capacity:   capacity.Amount{Cores: capacity.Core, Memory: 1024},
		Interfaces: []drivers.Interface{{Name: "if0", Device: "eth1", Addresses: []netip.Prefix{netip.MustParsePrefix("10.66.0.1/24")}}},
	}
	if change != nil {
		change(&n)
	}
	if err := o.d.Make(ctx, n); err != nil {
		t.Fatal(err)
	}
	if err := o.d.Start(ctx, o.sliver); err != nil {
		t.Fatal(err)
	}
	return o
}

// run runs a script as the node's root; the result holds both streams.
func (o *one) run(script string) (string, error) {
	var out bytes.Buffer
	err := o.d.Exec(o.ctx, o.sliver, drivers.Command{Args: []string{"/bin/bash", "-c", script}, Stdout: &out, Stderr: &out})
	return out.String(), err
}

func (o *one) must(script string) string {
	o.t.Helper()
	out, err := o.run(script)
	if err != nil {
		o.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(out)
}

// hostSecret puts files with a secret at places of the host that no node may
// see, as far as they are ours to write, and returns the secret.
func hostSecret(t *testing.T, protected string) string {
	t.Helper()
	needRoot(t)
	secret := fmt.Sprintf("croft-secret-%d-%d", os.Getpid(), time.Now().UnixNano())
	for _, dir := range []string{protected, "/root", "/home", "/run", "/var/lib", "/opt", "/srv", "/usr/local/etc", "/etc", "/tmp", "/dev/shm", "/mnt"} {
		file := filepath.Join(dir, secret)
		// Readable by all: it is not the mode that must keep it away.
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o644); err != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(file) })
	}
	return secret
}

// TestHostFilesOutOfReach tries, as root of a node, the ways by which a tree
// below the node's own could come to light.
func TestHostFilesOutOfReach(t *testing.T) {
	protected := t.TempDir()
	secret := hostSecret(t, protected)
	shadow, err := os.ReadFile("/etc/shadow")
	if err != nil {
		t.Fatal(err)
	}
	o := newOne(t, namespace.Config{Protected: []string{protected}}, nil)
	for _, dir := range []string{"/root", "/home", "/opt", "/srv", "/mnt", "/usr/local/bin", "/usr/local/lib"} {
		if got := o.must("ls -A " + dir); got != "" {
			t.Errorf("%s of the node is not empty: %s", dir, got)
		}
	}
	if got := o.must("ls -A /run | sort | tr '\n' ' '"); got != "croft lock" {
		t.Errorf("/run of the node has %q", got)
	}
	if got := o.must("find / -xdev -type s; find /run /tmp /var /dev -type s"); got != "" {
		t.Errorf("the node sees sockets: %s", got)
	}
	// seek looks through everything that is in sight at the moment, with
	// nothing but the shell, which may be the only program left. The names of
	// the host's files have the secret in them.
	seek := fmt.Sprintf(`echo looked: /*; echo /*%[1]s* /!(proc|sys)/{,*/,*/*/,*/*/*/}*%[1]s*; for f in %[2]s %[3]s; do [ -e $f ] && echo there: $f; done; echo done`,
		secret, protected, o.dir)
	for _, way := range []struct{ name, script string }{
		{"as it is", `:`},
		{"everything unmounted", `umount -a -l -t overlay,tmpfs,sysfs,devpts,mqueue 2>/dev/null; for m in /usr/local /usr /sys /run /tmp /dev/shm /dev/mqueue; do umount -l $m 2>/dev/null; done`},
		{"root mounted again", `mount -o remount,rw / 2>/dev/null; mount --bind / /mnt; ls -a /mnt`},
		{"nested namespaces", `unshare -Urmpf --mount-proc sh -c 'umount -l /usr; umount -l /; mount -o remount,rw /; ls -a /'`},
		{"pivoted away", `mkdir -p /mnt/n; mount -t tmpfs n /mnt/n; mkdir /mnt/n/old; cd /mnt/n; pivot_root . old; cd /`},
		{"root of process 1", `ls -a /proc/1/root/ /proc/1/cwd/ /proc/1/root/.. /proc/1/cwd/../../..`},
		{"open files of process 1", `for f in /proc/1/fd/* /proc/1/map_files/*; do ls -a $f/ $f/.. $f/../.. 2>/dev/null; done; ls -lR /proc/1/task/*/root/ 2>/dev/null | head -50`},
		{"chroot", `chroot /proc/1/root ls -a /; cd /proc/1/cwd; ls -a ../../../..`},
		{"host's disk", `for d in $(cut -d' ' -f1,2 /proc/partitions); do :; done; mknod /dev/croftdisk b 254 0 && cat /dev/croftdisk | head -c 100`},
	} {
		t.Run(way.name, func(t *testing.T) {
			script := fmt.Sprintf(`unshare -m --propagation private bash -O extglob -O dotglob -O nullglob -c %s`, quote(way.script+"; "+seek))
			out, _ := o.run(script)
			if strings.Contains(out, secret) || strings.Contains(out, "there: ") {
				t.Errorf("the node's root finds the host's files:\n%s", out)
			}
			if !strings.Contains(out, "looked: /") || !strings.Contains(out, "\ndone") {
				t.Errorf("the search did not work:\n%s", out)
			}
		})
	}
	if got := o.must("cat /etc/shadow"); strings.TrimSpace(string(shadow)) == got {
		t.Error("the node has the host's shadow file")
	}
	for line := range strings.Lines(string(shadow)) {
		if f := strings.Split(line, ":"); len(f) > 1 && len(f[1]) > 4 {
			if got := o.must("cat /etc/shadow"); strings.Contains(got, f[1]) {
				t.Errorf("the node's shadow file has the password of the host's %s", f[0])
			}
		}
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// TestHostProcessesOutOfReach looks for processes, namespaces and files of the
// manager.
func TestHostProcessesOutOfReach(t *testing.T) {
	leaked, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer leaked.Close()
	// A descriptor that the manager's own code or a library forgot to close on exec.
	file, err := leaked.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inheritable(t, file)
	o := newOne(t, namespace.Config{}, nil)

	for pid := range strings.FieldsSeq(o.must("ls /proc | grep '^[0-9]'")) {
		out, err := o.run("cat /proc/" + pid + "/status; tr '\\0' ' ' < /proc/" + pid + "/cmdline")
		if err == nil && strings.Contains(out, "Uid:\t65534") {
			t.Errorf("process %s is not the node's: %s", pid, out)
		}
	}
	// Sockets of another network namespace are in none of the node's lists.
	fds := o.must(`for f in /proc/1/fd/*; do
		to=$(readlink $f) || continue
		case $to in
		socket:*) inode=${to#socket:[}; grep -qw "${inode%]}" /proc/net/tcp /proc/net/tcp6 /proc/net/unix || echo "$to" ;;
		/dev/null | */console.log | anon_inode:\[event* | pipe:*) ;;
		*) echo "$to" ;;
		esac
	done`)
	if fds != "" {
		t.Errorf("process 1 holds what is not the node's: %s", fds)
	}
	status := o.must("cat /proc/1/status")
	for line := range strings.Lines(status) {
		if groups, ok := strings.CutPrefix(line, "Groups:"); ok && strings.TrimSpace(groups) != "" {
			t.Errorf("process 1 has groups of the host: %s", groups)
		}
	}
	if env := o.must("tr '\\0' '\\n' < /proc/1/environ"); strings.Contains(env, churnDir) || strings.Contains(env, "GOPATH") || strings.Contains(env, "GOCACHE") {
		t.Errorf("process 1 has the manager's environment: %s", env)
	}
	if out, err := o.run("keyctl show 2>&1"); err == nil {
		t.Errorf("the node reads keys: %s", out)
	}
	// None of the namespaces is the host's.
	for _, ns := range []string{"user", "mnt", "net", "pid", "uts", "ipc", "cgroup"} {
		host, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.must("readlink /proc/1/ns/" + ns); got == host {
			t.Errorf("the node shares the host's %s namespace", ns)
		}
		if got := o.must("readlink /proc/self/ns/" + ns + "; readlink /proc/1/ns/" + ns); strings.Count(got, strings.SplitN(got, "\n", 2)[0]) != 2 {
			t.Errorf("commands are in another %s namespace than process 1: %s", ns, got)
		}
	}
}

// TestRefused lists what the node's root must not be able to do.
func TestRefused(t *testing.T) {
	o := newOne(t, namespace.Config{}, nil)
	for _, try := range []struct{ name, script string }{
		{"make a block device", `mknod /tmp/b b 254 0`},
		{"make a character device", `mknod /tmp/c c 1 1`},
		{"write to the host's sysctls", `echo 1 > /proc/sys/kernel/panic`},
		{"write to core_pattern", `echo '|/bin/sh' > /proc/sys/kernel/core_pattern`},
		{"press a system request key", `echo h > /proc/sysrq-trigger`},
		{"write to sysfs", `mount -o remount,rw /sys; echo 1 > /sys/kernel/uevent_seqnum || echo x > /sys/kernel/uevent_helper || echo 0 > /sys/kernel/mm/ksm/run`},
		{"mount debugfs", `mount -t debugfs d /mnt`},
		{"mount tracefs", `mount -t tracefs d /mnt`},
		{"mount devtmpfs", `mount -t devtmpfs d /mnt && ls /mnt | grep -q .`},
		{"mount an ext4 image", `dd if=/dev/zero of=/tmp/i bs=1M count=4 2>/dev/null; mke2fs -q -F /tmp/i && mount -o loop /tmp/i /mnt`},
		{"set the clock", `date -s 2001-01-01`},
		{"load a module", `modprobe dummy || insmod /nonexistent.ko`},
		{"read the kernel's log", `dmesg | grep -q .`},
		{"raise its memory limit", `mkdir -p /mnt/m; mount -t cgroup -o memory m /mnt/m && echo -1 > /mnt/m/memory.limit_in_bytes`},
		{"leave its cgroup", `mkdir -p /mnt/p; mount -t cgroup -o pids p /mnt/p && mkdir /mnt/p/x && echo $$ > /mnt/p/x/cgroup.procs`},
		{"write a release agent", `mkdir -p /mnt/p; mount -t cgroup -o pids p /mnt/p && echo /bin/sh > /mnt/p/release_agent`},
		{"write to cgroup 2", `mkdir -p /mnt/u; mount -t cgroup2 u /mnt/u && mkdir /mnt/u/x`},
		{"write to the running binary", `echo x >> /proc/1/exe || echo x >> /run/croft/init`},
		{"write to the host's libraries", `for f in /run/croft/lib/*; do echo x >> $f && exit 0; done; exit 1`},
		{"talk to the hypervisor", `python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'`},
		{"use the kernel's crypto sockets", `python3 -c 'import socket; socket.socket(38, socket.SOCK_SEQPACKET)'`},
		{"open a file by its handle", `python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(304, -100, None, 0) < 0)'`},
		{"raw disks", `head -c 1 /dev/vda || head -c 1 /dev/sda || head -c 1 /dev/mem || head -c 1 /dev/kmsg`},
		{"kernel memory", `head -c 1 /proc/kcore`},
		{"lower its own oom score below its start", `echo -1000 > /proc/1/oom_score_adj`},
	} {
		t.Run(try.name, func(t *testing.T) {
			if out, err := o.run("unshare -m bash -c " + quote(try.script)); err == nil {
				t.Errorf("%s: done\n%s", try.script, out)
			}
		})
	}
	// And what it must be able to do.
	for _, can := range []string{
		"mount -t tmpfs t /mnt && umount /mnt",
		"mkdir -p /tmp/ns && unshare -Urm mount -t tmpfs t /tmp/ns",
		"ip link add br0 type bridge && ip link set br0 up && ip link del br0",
		"! test -w /dev/net/tun || { ip tuntap add dev tap0 mode tap && ip link del tap0; }", // as far as the host lets everybody
		"echo 1 > /proc/sys/net/ipv4/ip_forward && grep -q 1 /proc/sys/net/ipv4/ip_forward",
		"hostname other && hostname one",
		"chown 1234:1234 /tmp && chown 0:0 /tmp",
		"echo x > /usr/bin/x && rm /usr/bin/x",
		"echo y > /dev/stderr",
	} {
		if out, err := o.run(can); err != nil {
			t.Errorf("%s: %v\n%s", can, err, out)
		}
	}
}

// TestNothingReachable has a listener on every address of the host and tries
// to reach it from a node.
func TestNothingReachable(t *testing.T) {
	o := newOne(t, namespace.Config{}, nil)
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	reached := make(chan net.Addr, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached <- c.RemoteAddr()
			c.Close()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	targets := []string{"10.66.0.2", "10.66.0.254", "169.254.169.254"}
	for _, a := range addrs {
		targets = append(targets, a.(*net.IPNet).IP.String())
	}
	for _, host := range targets {
		script := fmt.Sprintf("timeout 2 bash -c 'exec 3<>/dev/tcp/%s/%d'", host, port)
		if out, err := o.run(script); err == nil {
			t.Errorf("the node reaches %s: %s", host, out)
		}
	}
	select {
	case from := <-reached:
		t.Errorf("the host's listener was reached from %v", from)
	default:
	}
	if got := o.must("ip -4 route show default; ip -6 route show default"); got != "" {
		t.Errorf("the node has a default route: %s", got)
	}
	if got := o.must("ls /sys/class/net | grep -v -x -e lo -e eth1 -e 'tunl0' -e 'sit0' -e 'ip6tnl0' -e 'gre0' -e 'gretap0' -e 'erspan0' -e 'ip_vti0' -e 'ip6_vti0' -e 'ip6gre0'; true"); got != "" {
		t.Errorf("the node has interfaces %s", got)
	}
}

// TestHostSideOfLinks checks that links are nowhere in the host's own network.
func TestHostSideOfLinks(t *testing.T) {
	before, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	o := newOne(t, namespace.Config{}, nil)
	link := urn.MustParse("urn:publicid:IDN+isolation.example+sliver+link")
	if err := o.d.Connect(o.ctx, drivers.Link{Sliver: link, Slice: o.sliver, Ends: []drivers.End{{Node: o.sliver, Interface: "if0"}}}); err != nil {
		t.Fatal(err)
	}
	defer o.d.Remove(context.Background(), link)
	names := map[string]bool{}
	for _, i := range before {
		names[i.Name] = true
	}
	after, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range after {
		if !names[i.Name] && driverNames.MatchString(i.Name) {
			t.Errorf("the host has a new interface %s", i.Name)
		}
	}
}

// TestDiskIsNobodys checks whose the files of a node are on the host: a
// program that the node's root lets run as its owner must not be root's.
func TestDiskIsNobodys(t *testing.T) {
	o := newOne(t, namespace.Config{}, nil)
	o.must("cp /bin/bash /usr/bin/shell && chmod 4755 /usr/bin/shell && cp /bin/bash /home/shell && chmod 4755 /home/shell")
	found := 0
	err := filepath.Walk(filepath.Join(o.dir, "nodes"), func(path string, st os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if filepath.Base(path) == "shell" {
			found++
			if uid := ownerOf(st); uid < testIDs().First || st.Mode()&os.ModeSetuid == 0 {
				t.Errorf("%s is %v of user %d on the host", path, st.Mode(), uid)
			}
		}
		return nil
	})
	if err != nil || found != 2 {
		t.Errorf("found %d programs, %v", found, err)
	}
	if st, err := os.Stat(o.dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the state directory has mode %v, %v", st.Mode(), err)
	}
}

// TestLimits checks that a node that asks for more than its own fails, and lives on.
func TestLimits(t *testing.T) {
	o := newOne(t, namespace.Config{Processes: 100}, func(n *drivers.Node) { n.Capacity.Memory = 128 })
	var log bytes.Buffer
	if err := o.d.Log(o.ctx, o.sliver, &log); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "no cgroups") {
		t.Skipf("SKIPPED: %s", log.String())
	}
	if out, err := o.run("set -o pipefail; head -c 300000000 /dev/zero | tail -c 290000000 | wc -c"); err == nil {
		t.Errorf("a program had 300 MB in a node of 128 MiB: %s", out)
	}
	if out := o.must("echo alive"); out != "alive" {
		t.Errorf("after memory ran out the node says %q", out)
	}
	out, err := o.run("for i in $(seq 200); do sleep 2 & done")
	if !strings.Contains(out, "Resource temporarily unavailable") {
		t.Errorf("a node of 100 processes ran 200: %v %s", err, out)
	}
	waitFor(t, "room for another process", func() bool { _, err := o.run("echo alive"); return err == nil })
}
