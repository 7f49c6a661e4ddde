// Package sshtest makes machines for tests of what manages machines: each is a
// set of Linux namespaces with a file system of its own over this machine's, a
// real sshd, network interfaces that are wired to a switch, and a power button.
// Nothing of them is in the host's network: they are reached through ports on
// the loopback address.
package sshtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Lab is some machines and the switch that they are wired to.
type Lab struct {
	Key ssh.Signer // the manager's

	dir     string
	keyFile string
	prefix  string // of the names of network namespaces

	accounts map[string]accountFile // of the host, by name

	mu       sync.Mutex
	machines map[string]*Machine
}

// Need skips a test where there can be no lab.
func Need(t testing.TB) {
	t.Helper()
	if err := Possible(); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
}

// Possible reports what a lab lacks here.
func Possible() error {
	if os.Geteuid() != 0 {
		return errors.New("machines out of namespaces need root (sudo go test …)")
	}
	for program, pkg := range map[string]string{sshd: "openssh-server", "/usr/sbin/useradd": "passwd", "/usr/bin/setpriv": "util-linux"} {
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("%s is not installed (apt-get install %s)", program, pkg)
		}
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return errors.New("ip is not installed (apt-get install iproute2)")
	}
	return nil
}

// labPrefix begins the names of all labs' network namespaces; the process id
// of the lab follows, and what tells the labs of one process apart.
const labPrefix = "croft-lab-"

// NewLab makes a lab without machines. Close ends it.
func NewLab() (*Lab, error) {
	if err := removeOldLabs(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", labPrefix+strconv.Itoa(os.Getpid())+"-*")
	if err != nil {
		return nil, err
	}
	l := &Lab{dir: dir, prefix: filepath.Base(dir) + "-", machines: map[string]*Machine{}}
	var private []byte
	if l.accounts, err = readAccounts(); err == nil {
		l.Key, private, err = newKey("manager")
	}
	if err == nil {
		l.keyFile = filepath.Join(dir, "manager-key")
		err = os.WriteFile(l.keyFile, private, 0o600)
	}
	if err == nil {
		err = ip("netns", "add", l.switchNS())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a lab: %w", err), l.Close())
	}
	return l, nil
}

// removeOldLabs removes network namespaces of tests that were killed.
func removeOldLabs() error {
	entries, err := os.ReadDir("/run/netns")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), labPrefix)
		number, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(number)
		if !ours || err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		if err := ip("netns", "del", e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the machines and removes everything.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, m := range l.machines {
		errs = append(errs, m.close())
	}
	if _, err := os.Stat("/run/netns/" + l.switchNS()); err == nil {
		errs = append(errs, ip("netns", "del", l.switchNS()))
	}
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

// KeyFile has the manager's private key.
func (l *Lab) KeyFile() string { return l.keyFile }

func (l *Lab) switchNS() string { return l.prefix + "switch" }

// switchScript makes links on the lab's switch: it is what an operator would
// write for a switch of his.
const switchScript = `#!/bin/sh
set -eu
ns=$1
# Interface names are short.
bridge=l$(printf %s "$CROFT_LINK" | cksum | cut -d' ' -f1)
echo "$CROFT_ACTION $CROFT_LINK: ${CROFT_ENDS:-}"
case $CROFT_ACTION in
connect)
  ip -n "$ns" link show "$bridge" >/dev/null 2>&1 || ip -n "$ns" link add "$bridge" type bridge mcast_snooping 0
  for port in $(ip -n "$ns" -o link show master "$bridge" | sed 's/^[0-9]*: \([^@:]*\).*/\1/'); do
    ip -n "$ns" link set "$port" nomaster
  done
  for end in $CROFT_ENDS; do
    ip -n "$ns" link set "$(echo "$end" | tr : .)" master "$bridge"
  done
  ip -n "$ns" link set "$bridge" up
  ;;
disconnect) ip -n "$ns" link del "$bridge" 2>/dev/null || ! ip -n "$ns" link show "$bridge" >/dev/null 2>&1 ;;
esac
`

// SwitchCommand is the command that makes links on the switch.
func (l *Lab) SwitchCommand() ([]string, error) {
	file := filepath.Join(l.dir, "switch")
	if err := os.WriteFile(file, []byte(switchScript), 0o700); err != nil {
		return nil, err
	}
	return []string{"/bin/sh", file, l.switchNS()}, nil
}

// Links lists the networks on the switch.
func (l *Lab) Links() ([]string, error) {
	out, err := exec.Command("ip", "-n", l.switchNS(), "-o", "link", "show", "type", "bridge").Output()
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 1 {
			names = append(names, strings.TrimSuffix(f[1], ":"))
		}
	}
	return names, nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func newKey(comment string) (ssh.Signer, []byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return nil, nil, err
	}
	return signer, pem.EncodeToMemory(block), nil
}

// Reimager is a command that puts machines of the lab back to what they were
// at first.
type Reimager struct {
	Command []string

	mu    sync.Mutex
	asked []string
	fail  bool
}

// Asked lists the runs of the command: machine and image.
func (r *Reimager) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.asked...)
}

// Fail has further runs fail, or not.
func (r *Reimager) Fail(fail bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = fail
}

// Reimager makes such a command. It works until the test ends.
func (l *Lab) Reimager(t testing.TB) *Reimager {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed (apt-get install curl)")
	}
	r := &Reimager{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		name, image := q.FormValue("host"), q.FormValue("image")
		r.mu.Lock()
		r.asked = append(r.asked, name+" "+image)
		fail := r.fail
		r.mu.Unlock()
		l.mu.Lock()
		m := l.machines[name]
		l.mu.Unlock()
		if fail || m == nil {
			http.Error(w, "the image server is out of order", http.StatusInternalServerError)
			return
		}
		if err := m.Reimage(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s has image %q\n", name, image)
	}))
	t.Cleanup(server.Close)
	r.Command = []string{"/bin/sh", "-c", `curl -sS --fail-with-body -d "host=$CROFT_HOST" --data-urlencode "image=$CROFT_IMAGE" ` + server.URL}
	return r
}
