package ssh_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/drivers"
	"croft/drivers/driverstest"
	"croft/drivers/ssh"
	"croft/drivers/ssh/sshtest"
	"croft/urn"
)

// churnFile names, in the environment of a worker, the file that says what it
// works with; see driverstest.Churn.
const churnFile = "CROFT_TEST_CHURN"

func TestMain(m *testing.M) {
	sshtest.Init()
	if file := os.Getenv(churnFile); file != "" {
		fmt.Fprintln(os.Stderr, churn(file))
		os.Exit(1)
	}
	status := m.Run()
	if shared.lab != nil {
		if err := shared.lab.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "closing the lab:", err)
			status = 1
		}
	}
	os.Exit(status)
}

// shared is the lab of all tests. Each leaves its machines as they were.
var shared struct {
	sync.Mutex
	lab *sshtest.Lab
}

func lab(t testing.TB) *sshtest.Lab {
	t.Helper()
	sshtest.Need(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.lab == nil {
		l, err := sshtest.NewLab()
		if err != nil {
			t.Fatal(err)
		}
		shared.lab = l
	}
	return shared.lab
}

const labMachines = 8

// machines turns on the lab's machines.
func machines(t testing.TB, count int) []*sshtest.Machine {
	t.Helper()
	l := lab(t)
	list := make([]*sshtest.Machine, count)
	for i := range list {
		m, err := l.Machine(fmt.Sprintf("m%d", i+1), 2)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = m
		t.Cleanup(func() {
			// What a test that failed has left is not the next one's matter.
			if t.Failed() {
				if err := m.Reset(); err != nil {
					t.Errorf("reset %s: %v", m.Name, err)
				}
			}
		})
	}
	return list
}

var manager = urn.MustParse("urn:publicid:IDN+conformance.example+authority+cm")

func hostURN(name string) urn.URN {
	return urn.MustParse("urn:publicid:IDN+conformance.example+node+" + name)
}

func nicURN(machine, nic string) urn.URN {
	return urn.MustParse("urn:publicid:IDN+conformance.example+interface+" + machine + ":" + nic)
}

// declared is a machine as an inventory would declare it.
func declared(m *sshtest.Machine) ssh.Machine {
	out := ssh.Machine{
		Host: hostURN(m.Name), Name: m.Name, Address: m.Host, Port: m.Port, User: "root",
		HostKeys: []string{m.HostKey()}, Scratch: []string{"/scratch", "/var/tmp"}, BootLimit: time.Minute,
	}
	for _, nic := range []string{"eth1", "eth2"} {
		out.Interfaces = append(out.Interfaces, ssh.Interface{ID: nicURN(m.Name, nic), Name: nic, Switch: "switch"})
	}
	return out
}

// setup is what a worker needs to open the driver as its test does.
type setup struct {
	Dir, KeyFile string
	Machines     []ssh.Machine
	Links        ssh.Links
}

func (s setup) open(log *slog.Logger) (*ssh.Driver, error) {
	key, err := ssh.LoadKey(s.KeyFile)
	if err != nil {
		return nil, err
	}
	return ssh.New(ssh.Config{
		Dir: s.Dir, Manager: manager, Key: key, Machines: func() []ssh.Machine { return s.Machines }, Links: s.Links,
		Poll: 20 * time.Millisecond, SoftLimit: 3 * time.Second, Answer: 5 * time.Second, Logger: log,
	})
}

func churn(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var s setup
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	d, err := s.open(nil)
	if err != nil {
		return err
	}
	return driverstest.Churn(context.Background(), d, place, os.Stdout)
}

// place puts node-N on machine mN.
func place(n *drivers.Node) {
	number := strings.TrimPrefix(n.Hostname, "node-")
	n.Host = hostURN("m" + number)
	for i := range n.Interfaces {
		n.Interfaces[i].Component = nicURN("m"+number, fmt.Sprintf("eth%d", i+1))
	}
}

// testLog writes the driver's log to the test's.
type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// subject is a driver of the lab's machines for the conformance test. change
// may declare them otherwise.
func subject(t *testing.T, change func(*sshtest.Machine, *ssh.Machine)) driverstest.Subject {
	l := lab(t)
	command, err := l.SwitchCommand()
	if err != nil {
		t.Fatal(err)
	}
	s := setup{Dir: t.TempDir(), KeyFile: l.KeyFile(), Links: ssh.Links{Command: command}}
	all := machines(t, labMachines)
	for _, m := range all {
		d := declared(m)
		if change != nil {
			change(m, &d)
		}
		s.Machines = append(s.Machines, d)
	}
	return driverstest.Subject{
		Open: func(t *testing.T) drivers.Driver {
			d, err := s.open(logger(t))
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		// The interfaces of a machine have the addresses that they have: the
		// test's machines are fitted with those that it looks for.
		Prepare: func(n *drivers.Node) {
			place(n)
			for _, m := range all {
				for i, x := range n.Interfaces {
					if hostURN(m.Name).Equal(n.Host) {
						if err := m.SetMAC(i, x.MAC); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		},
		Traces: func(t *testing.T) []string {
			list, err := l.Links()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range all {
				list = append(list, m.Changes()...)
			}
			for _, sub := range []string{"slivers", "logs"} {
				files, err := os.ReadDir(filepath.Join(s.Dir, sub))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					list = append(list, sub+" "+f.Name())
				}
			}
			return list
		},
		Worker: func(t *testing.T) *exec.Cmd {
			file := filepath.Join(t.TempDir(), "setup")
			text, err := json.Marshal(s)
			if err == nil {
				err = os.WriteFile(file, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), churnFile+"="+file)
			return cmd
		},
		Links: true,
		Plain: true, Given: true,
	}
}

func TestConformance(t *testing.T) {
	driverstest.Run(t, func(t *testing.T) driverstest.Subject { return subject(t, nil) })
}
