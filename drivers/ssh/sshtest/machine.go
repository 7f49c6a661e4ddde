package sshtest

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

const sshd = "/usr/sbin/sshd"

// Machine is a machine of a lab.
type Machine struct {
	Name string
	Host string // where its SSH server is reached
	Port int

	lab     *Lab
	dir     string
	netns   string
	nics    []string
	hostKey ssh.Signer
	door    net.Listener

	mu        sync.Mutex
	conns     map[net.Conn]bool
	unplugged bool
	refuses   bool
	boots     int
	process   *exec.Cmd     // nil: off
	ended     chan struct{} // closed when process has ended
	base      map[string]string
}

// Machine makes a machine with some network interfaces, eth1 and so on, and
// turns it on. It returns when its SSH server answers.
func (l *Lab) Machine(name string, nics int) (*Machine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.machines[name]; m != nil {
		return m, nil
	}
	m := &Machine{Name: name, lab: l, dir: filepath.Join(l.dir, name), netns: l.prefix + name, conns: map[net.Conn]bool{}}
	l.machines[name] = m
	if err := m.build(nics); err != nil {
		return nil, fmt.Errorf("make machine %s: %w", name, err)
	}
	if err := m.PowerOn(); err != nil {
		return nil, err
	}
	if err := m.wait(); err != nil {
		return nil, err
	}
	m.base = m.state()
	return m, nil
}

func (m *Machine) build(nics int) error {
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return err
	}
	signer, private, err := newKey(m.Name)
	if err != nil {
		return err
	}
	m.hostKey = signer
	if err := os.WriteFile(filepath.Join(m.dir, "host-key"), private, 0o600); err != nil {
		return err
	}
	if err := m.install(); err != nil {
		return err
	}
	if err := ip("netns", "add", m.netns); err != nil {
		return err
	}
	for i := range nics {
		nic := "eth" + strconv.Itoa(i+1)
		port := m.Name + "." + nic
		err := errors.Join(
			ip("-n", m.lab.switchNS(), "link", "add", port, "type", "veth", "peer", "name", nic, "netns", m.netns),
			ip("-n", m.lab.switchNS(), "link", "set", port, "up"))
		if err != nil {
			return err
		}
		m.nics = append(m.nics, nic)
	}
	if m.door, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	a := m.door.Addr().(*net.TCPAddr)
	m.Host, m.Port = a.IP.String(), a.Port
	go m.serve()
	return nil
}

// install puts an empty disk over the host's system: what is on it is the
// machine's own.
func (m *Machine) install() error {
	for _, d := range []string{"upper", "work", "root"} {
		if err := os.RemoveAll(filepath.Join(m.dir, d)); err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(m.dir, d), 0o755); err != nil {
			return err
		}
	}
	upper := filepath.Join(m.dir, "upper")
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{
		{"home", 0o755}, {"root", 0o700}, {"tmp", 0o777 | os.ModeSticky}, {"srv", 0o755}, {"mnt", 0o755}, {"media", 0o755}, {"scratch", 0o777 | os.ModeSticky},
		{"var/tmp", 0o777 | os.ModeSticky}, {"var/mail", 0o775}, {"var/lib/croft", 0o700}, {"root/.ssh", 0o700},
	} {
		path := filepath.Join(upper, d.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(path, d.mode); err != nil {
			return err
		}
		// Nothing of the host's shows through.
		if err := unix.Setxattr(path, "trusted.overlay.opaque", []byte("y"), 0); err != nil {
			return fmt.Errorf("make %s empty: %w", d.path, err)
		}
	}
	if err := os.Remove(filepath.Join(upper, "var/lib/croft")); err != nil {
		return err
	}
	for name, f := range m.lab.accounts {
		if err := f.write(upper + name); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(upper, "root/.ssh/authorized_keys"), ssh.MarshalAuthorizedKey(m.lab.Key.PublicKey()), 0o600)
}

// accountFiles are those that change with accounts. A machine has them from
// the host as they were when the lab was made: others may change the host's.
var accountFiles = []string{"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/subuid", "/etc/subgid", "/etc/hosts"}

// accountFile is one of them.
type accountFile struct {
	text     []byte
	mode     os.FileMode
	uid, gid int
}

func readAccounts() (map[string]accountFile, error) {
	files := map[string]accountFile{}
	for _, name := range accountFiles {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var st unix.Stat_t
		if err == nil {
			err = unix.Stat(name, &st)
		}
		if err != nil {
			return nil, err
		}
		files[name] = accountFile{text, os.FileMode(st.Mode & 0o777), int(st.Uid), int(st.Gid)}
	}
	return files, nil
}

func (f accountFile) write(path string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, f.text, 0o600), os.Chown(path, f.uid, f.gid), os.Chmod(path, f.mode))
}

// HostKey is the machine's public key.
func (m *Machine) HostKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(m.hostKey.PublicKey())))
}

// On reports whether the machine has power.
func (m *Machine) On() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process != nil
}

// Boots counts how often the machine was booted.
func (m *Machine) Boots() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boots
}

// Hang has the machine's system not heed what it is told: it goes down by
// power only. It ends with the next boot.
func (m *Machine) Hang() error {
	return os.WriteFile(m.inside("/run/stuck"), nil, 0o600)
}

// inside is the path by which a file of the running machine is reached.
func (m *Machine) inside(path string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return "/nonexistent"
	}
	return fmt.Sprintf("/proc/%d/root%s", m.process.Process.Pid, path)
}

// PowerOn turns the machine on.
func (m *Machine) PowerOn() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		return nil
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "console"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self)
	cmd.Env = []string{
		initVariable + "=" + m.dir, "CROFT_TEST_NAME=" + m.Name, "CROFT_TEST_NICS=" + strings.Join(m.nics, " "),
		fmt.Sprintf("CROFT_TEST_BOOT=%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		// The machine ends with the test, however that ends.
		Pdeathsig: syscall.SIGKILL,
	}
	if err := m.start(cmd); err != nil {
		return fmt.Errorf("turn on %s: %w", m.Name, err)
	}
	m.boots++
	ended := make(chan struct{})
	m.process, m.ended = cmd, ended
	return nil
}

// start starts a process in the machine's network. Its thread stays until the
// process ends: parent-death signals are of threads.
func (m *Machine) start(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		ns, err := netns.GetFromName(m.netns)
		if err == nil {
			err = netns.Set(ns)
			ns.Close()
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err != nil {
			return
		}
		cmd.Wait()
		m.down(cmd)
	}()
	return <-started
}

// down notes that the machine's first process has ended, and boots the machine
// again if that was why.
func (m *Machine) down(cmd *exec.Cmd) {
	m.mu.Lock()
	if m.process == cmd {
		m.process = nil
	}
	close(m.ended)
	m.mu.Unlock()
	if cmd.ProcessState.ExitCode() == exitReboot {
		if err := m.PowerOn(); err != nil {
			panic(err)
		}
	}
}

// PowerOff takes the power away.
func (m *Machine) PowerOff() {
	m.mu.Lock()
	cmd, ended := m.process, m.ended
	m.process = nil
	m.mu.Unlock()
	if cmd == nil {
		return
	}
	cmd.Process.Kill()
	<-ended
}

// Reimage puts the disk back to what it was at first, and boots the machine.
func (m *Machine) Reimage() error {
	m.PowerOff()
	if err := m.install(); err != nil {
		return err
	}
	return m.PowerOn()
}

// Reset makes the machine what it was at first, also its network, and returns
// when it answers.
func (m *Machine) Reset() error {
	m.Unplug(false)
	if err := m.Reimage(); err != nil {
		return err
	}
	if err := m.wait(); err != nil {
		return err
	}
	m.Rebase()
	return nil
}

// Unplug takes the machine off the network that the manager reaches it by, or
// puts it back: whoever calls it hears nothing.
func (m *Machine) Unplug(unplug bool) { m.setNetwork(unplug, false) }

// Refuse has the machine drop all connections, as one whose SSH server has
// died, or take them again: whoever calls it is told at once.
func (m *Machine) Refuse(refuse bool) { m.setNetwork(false, refuse) }

func (m *Machine) setNetwork(unplugged, refuses bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unplugged, m.refuses = unplugged, refuses
	for c := range m.conns {
		c.Close()
	}
	m.conns = map[net.Conn]bool{}
}

// SetMAC gives an interface, from 0, another hardware address.
func (m *Machine) SetMAC(nic int, mac net.HardwareAddr) error {
	return ip("-n", m.netns, "link", "set", m.nics[nic], "address", mac.String())
}

// MAC is the hardware address of an interface.
func (m *Machine) MAC(nic int) (string, error) {
	out, err := exec.Command("ip", "-n", m.netns, "-br", "link", "show", m.nics[nic]).Output()
	f := strings.Fields(string(out))
	if err != nil || len(f) < 3 {
		return "", fmt.Errorf("hardware address of %s: %w", m.nics[nic], err)
	}
	return f[2], nil
}

// serve carries connections to the machine's SSH server.
func (m *Machine) serve() {
	for {
		c, err := m.door.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		m.conns[c] = true
		unplugged, on := m.unplugged, m.process != nil && !m.refuses
		m.mu.Unlock()
		if unplugged {
			continue // no answer, until somebody loses patience
		}
		if !on {
			c.Close()
			continue
		}
		go m.carry(c)
	}
}

func (m *Machine) carry(c net.Conn) {
	defer c.Close()
	var inner net.Conn
	dialled := make(chan error)
	go func() {
		runtime.LockOSThread()
		ns, err := netns.GetFromName(m.netns)
		if err == nil {
			err = netns.Set(ns)
			ns.Close()
		}
		if err == nil {
			inner, err = net.Dial("tcp", "127.0.0.1:22")
		}
		dialled <- err
	}()
	if <-dialled != nil {
		return
	}
	defer inner.Close()
	m.mu.Lock()
	m.conns[inner] = true
	m.mu.Unlock()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{c, inner}, {inner, c}} {
		go func() {
			io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
	c.Close()
	inner.Close()
	<-done
	m.mu.Lock()
	delete(m.conns, c)
	delete(m.conns, inner)
	m.mu.Unlock()
}

// wait waits until the SSH server answers.
func (m *Machine) wait() error {
	deadline := time.Now().Add(time.Minute)
	for {
		c, err := net.Dial("tcp", m.door.Addr().String())
		if err == nil {
			c.SetDeadline(deadline)
			var line string
			line, err = bufio.NewReader(c).ReadString('\n')
			c.Close()
			if strings.HasPrefix(line, "SSH-") {
				return nil
			}
		}
		if time.Now().After(deadline) {
			console, _ := os.ReadFile(filepath.Join(m.dir, "console"))
			return fmt.Errorf("machine %s does not answer: %w\n%s", m.Name, err, console)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Changes lists what is on the machine that was not when it was made: files,
// changed account databases, processes of accounts, and addresses.
func (m *Machine) Changes() []string {
	var list []string
	now := m.state()
	for what, text := range now {
		if was, known := m.base[what]; !known || was != text {
			list = append(list, fmt.Sprintf("%s: %s%s", m.Name, what, text))
		}
	}
	for what := range m.base {
		if _, still := now[what]; !still {
			list = append(list, fmt.Sprintf("%s: %s is gone", m.Name, what))
		}
	}
	slices.Sort(list)
	return list
}

// Rebase takes the machine as it is for what it was when it was made.
func (m *Machine) Rebase() { m.base = m.state() }

// ownAccounts are where the driver's accounts have their user ids.
const ownAccounts = 20000

func (m *Machine) state() map[string]string {
	all := map[string]string{}
	upper := filepath.Join(m.dir, "upper")
	filepath.WalkDir(upper, func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, upper)
		switch {
		case err != nil:
			return nil // it goes away as we look
		case name == "/var/log", name == "/root", name == "/run":
			return fs.SkipDir // of the system's, or of the tests' root
		case strings.HasPrefix(name, "/etc/") && strings.HasSuffix(name, "-"), name == "/etc/.pwd.lock", name == "/var/lib/sudo":
			return nil
		}
		text := ""
		if slices.Contains(accountFiles, name) {
			data, _ := os.ReadFile(path)
			text = fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		if e.IsDir() {
			if _, err := os.Lstat(name); err == nil {
				return nil // the host's, which something was written in
			}
		}
		all["file "+name] = text
		return nil
	})
	out, _ := exec.Command("ip", "-n", m.netns, "-br", "address", "show", "scope", "global").Output()
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 {
			all["address "+strings.Join(f[2:], " ")] = ""
		}
	}
	m.mu.Lock()
	process := m.process
	m.mu.Unlock()
	if process == nil {
		return all
	}
	space, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", process.Process.Pid))
	processes, _ := filepath.Glob("/proc/[1-9]*")
	for _, p := range processes {
		var st unix.Stat_t
		if unix.Stat(p, &st) != nil || st.Uid < ownAccounts || st.Uid > ownAccounts+10000 {
			continue
		}
		if its, err := os.Readlink(p + "/ns/pid"); err == nil && its == space {
			line, _ := os.ReadFile(p + "/cmdline")
			all["process "+strings.ReplaceAll(string(line), "\x00", " ")] = ""
		}
	}
	return all
}

func (m *Machine) close() error {
	if m.door != nil {
		m.door.Close()
	}
	m.Unplug(true)
	m.PowerOff()
	if _, err := os.Stat("/run/netns/" + m.netns); err != nil {
		return nil
	}
	return ip("netns", "del", m.netns)
}

// Run runs a script on the machine as root, with the manager's key.
func (m *Machine) Run(script string) (string, error) {
	c, err := ssh.Dial("tcp", m.door.Addr().String(), &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(m.lab.Key)}, HostKeyCallback: ssh.FixedHostKey(m.hostKey.PublicKey()),
		Timeout: time.Minute,
	})
	if err != nil {
		return "", err
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		return "", err
	}
	defer s.Close()
	out, err := s.CombinedOutput(script)
	return strings.TrimSpace(string(out)), err
}
