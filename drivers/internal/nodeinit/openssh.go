package nodeinit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Where the image has OpenSSH's server, and what that works with in the node.
const (
	sshdPath    = "/usr/sbin/sshd"
	sshDir      = "/run/croft-ssh"
	sshdConfig  = sshDir + "/sshd_config"
	sshdHostKey = sshDir + "/host_key"
	sshdKeys    = sshDir + "/keys"
	privsepDir  = "/run/sshd"
)

// openSSH serves logins by the image's own sshd, one for each connection: what
// the node's init accepts becomes its input and output, as of old by inetd.
type openSSH struct {
	log   *slog.Logger
	procs *processes
	env   []string // NAME=value, of all sessions

	mu    sync.Mutex
	keys  map[string][]string // login → lines
	conns map[int]*process
}

// newOpenSSH prepares for the image's sshd. It is nil if the image has none
// that can be used.
func newOpenSSH(log *slog.Logger, procs *processes, hostKey []byte, env []string) *openSSH {
	st, err := os.Stat(sshdPath)
	if err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return nil
	}
	o := &openSSH{log: log, procs: procs, env: env, keys: map[string][]string{}, conns: map[int]*process{}}
	err = errors.Join(makeTemporary(), makeDir(sshDir), makeDir(sshdKeys), makeDir(privsepDir), replaceFile(sshdHostKey, hostKey, 0o600, 0), o.configure(false))
	if err == nil {
		err = o.test()
	}
	if err != nil {
		log.Warn("the image's sshd is not used; logins are served all the same", "err", err)
		return nil
	}
	log.Info("logins are served by the image's sshd")
	return o
}

// makeTemporary makes the directory that sshd puts the sockets of agents into,
// where the image has forgotten it.
func makeTemporary() error {
	err := os.Mkdir("/tmp", 0o777)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod("/tmp", 0o777|fs.ModeSticky)
}

func makeDir(name string) error {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return err
	}
	return os.Chmod(name, 0o755)
}

// configure writes the configuration. Nothing of the image's own counts.
func (o *openSSH) configure(rootKeys bool) error {
	root := "no"
	if rootKeys {
		root = "prohibit-password"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HostKey %s\nAuthorizedKeysFile %s/%%u\nPermitRootLogin %s\n", sshdHostKey, sshdKeys, root)
	b.WriteString("AuthenticationMethods publickey\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n" +
		"MaxAuthTries 20\nUseDNS no\nX11Forwarding no\nAllowAgentForwarding yes\nAllowTcpForwarding yes\nPrintMotd no\nPrintLastLog no\n" +
		"AcceptEnv LANG LC_*\nSubsystem sftp internal-sftp\n")
	var set []string
	for _, v := range o.env {
		if !strings.ContainsAny(v, "\"\\\n") {
			set = append(set, `"`+v+`"`)
		}
	}
	if len(set) > 0 {
		fmt.Fprintf(&b, "SetEnv %s\n", strings.Join(set, " "))
	}
	return replaceFile(sshdConfig, []byte(b.String()), 0o600, 0)
}

// test has sshd look at its configuration.
func (o *openSSH) test() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	p, err := o.procs.start(sshdPath, []string{sshdPath, "-t", "-f", sshdConfig}, &syscall.ProcAttr{
		Dir: "/", Env: []string{"PATH=" + rootPath}, Files: []uintptr{0, w.Fd(), w.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	w.Close()
	if err != nil {
		return err
	}
	var said bytes.Buffer
	said.ReadFrom(r)
	if status := <-p.done; status.ExitStatus() != 0 {
		return fmt.Errorf("sshd -t: status %d: %s", status.ExitStatus(), strings.TrimSpace(said.String()))
	}
	return nil
}

// setAccounts makes the keys those of the accounts, and cuts off logins of
// accounts that have lost one. Accounts that went altogether are ended by
// their processes.
func (o *openSSH) setAccounts(accounts []Account, rootKeys bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := map[string][]string{}
	var all []string
	for _, a := range accounts {
		keys[a.Login] = a.Keys
		all = append(all, a.Keys...)
	}
	if rootKeys {
		keys["root"] = all
	}
	for login, lines := range keys {
		if err := replaceFile(path.Join(sshdKeys, login), []byte(strings.Join(lines, "\n")+"\n"), 0o644, 0); err != nil {
			return fmt.Errorf("write the keys of %s: %w", login, err)
		}
	}
	entries, err := os.ReadDir(sshdKeys)
	if err != nil {
		return fmt.Errorf("look for old keys: %w", err)
	}
	for _, e := range entries {
		if _, wanted := keys[e.Name()]; !wanted {
			if err := os.Remove(path.Join(sshdKeys, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove old keys: %w", err)
			}
		}
	}
	if err := o.configure(rootKeys); err != nil {
		return fmt.Errorf("configure sshd: %w", err)
	}
	lost := map[string]bool{}
	for login, before := range o.keys {
		for _, k := range before {
			if !slices.Contains(keys[login], k) {
				lost[login] = true
			}
		}
	}
	o.keys = keys
	for pid, p := range o.conns {
		if who := loginOf(pid); lost[who] {
			o.log.Info("login cut off", "account", who)
			p.signal(syscall.SIGKILL)
		}
	}
	return nil
}

// loginOf tells whom an sshd serves, as it says in its title: "sshd: ann
// [priv]", "sshd-session: root@pts/0".
func loginOf(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	_, title, ok := strings.Cut(strings.TrimRight(string(data), "\x00"), ": ")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(title, " ")
	name, _, _ = strings.Cut(name, "@")
	return name
}

// serve hands a connection over.
func (o *openSSH) serve(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	f, err := tcp.File()
	if err != nil {
		o.log.Warn("take a connection", "err", err)
		return
	}
	if err := unix.SetNonblock(int(f.Fd()), false); err != nil {
		o.log.Warn("take a connection", "err", err)
	}
	o.mu.Lock()
	p, err := o.procs.start(sshdPath, []string{sshdPath, "-i", "-e", "-f", sshdConfig}, &syscall.ProcAttr{
		Dir: "/", Env: []string{"PATH=" + rootPath}, Files: []uintptr{f.Fd(), f.Fd(), 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err == nil {
		o.conns[p.pid] = p
	}
	o.mu.Unlock()
	f.Close()
	tcp.Close() // sshd has it
	if err != nil {
		o.log.Warn("start sshd", "err", err)
		return
	}
	<-p.done
	o.mu.Lock()
	delete(o.conns, p.pid)
	o.mu.Unlock()
}
