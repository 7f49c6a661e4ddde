// Package driverstest is the conformance test of drivers: what every one of
// them promises, tried on the real thing.
package driverstest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"croft/capacity"
	"croft/drivers"
	"croft/request"
	"croft/urn"
)

// Subject is a driver to test, with a state of its own that is empty.
type Subject struct {
	// Open opens the driver on the subject's state, as a manager that starts
	// does. A driver that is an io.Closer is closed before the next call.
	Open func(t *testing.T) drivers.Driver

	// Prepare completes a node before it is made: host, sliver type, image.
	// nil leaves nodes as they are.
	Prepare func(n *drivers.Node)

	// Traces lists everything of the driver's on the machines, whatever
	// remains when something is forgotten: processes, namespaces, mounts,
	// links, files. nil: the test asks the driver only.
	Traces func(t *testing.T) []string

	// Worker is a command that opens the driver on the subject's state and
	// calls Churn with it and standard output; the test kills it. nil: the
	// driver's state does not outlive a manager that is killed.
	Worker func(t *testing.T) *exec.Cmd

	// Links says that the driver connects nodes.
	Links bool

	// Hollow says that nothing runs on the driver's nodes: they have states and
	// nothing else. What goes on inside of nodes is not looked at then, and the
	// parts of the test that are about nothing else are skipped.
	Hollow bool

	// Sudo says that users become root by sudo; otherwise they log in as root.
	Sudo bool

	// Plain says that users do not become root at all.
	Plain bool

	// Given says that nodes have the interfaces of their machines, also those
	// that nobody asked for.
	Given bool
}

// patience bounds each wait of the tests. It is far above what anything takes.
const patience = 90 * time.Second

// parts are the parts of the conformance test.
var parts = []struct {
	name   string
	test   func(t *testing.T, r *rig)
	inside bool // it is about what goes on inside of nodes
}{
	{"life cycle", testLifeCycle, false},
	{"every call twice", testTwice, false},
	{"wrong order", testWrongOrder, false},
	{"unknown slivers", testUnknown, false},
	{"bad nodes", testBadNodes, false},
	{"commands", testCommands, true},
	{"commands end with their context", testCancel, true},
	{"several users", testUsers, true},
	{"users of a stopped node", testUsersOfStopped, true},
	{"files", testFiles, true},
	{"sessions", testSessions, true},
	{"steps", testSteps, true},
	{"link", testLink, false},
	{"link holds over restarts", testLinkRestart, false},
	{"LAN", testLAN, false},
	{"shaped links", testShaped, true},
	{"interface without a link", testUnlinked, true},
	{"slices apart", testSlicesApart, true},
	{"many at once", testParallel, false},
	{"manager restarts", testManagerRestart, false},
	{"manager is killed", testKilled, false},
}

// Run runs the conformance test. The function makes a new subject for each
// part of it.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			s := subject(t)
			if part.inside && s.Hollow {
				t.Skip("nothing runs on nodes of this driver")
			}
			r := newRig(t, s)
			part.test(t, r)
			r.end()
		})
	}
}

// long reports whether this is a long campaign.
func long() bool { return os.Getenv("CROFT_SOAK") != "" }

// RunLong is RunPart for a part that seldom shows what others do not: it is run
// in long campaigns.
func RunLong(t *testing.T, name string, subject func(t *testing.T) Subject) {
	if long() {
		RunPart(t, name, subject)
	}
}

// RunPart runs one part of the conformance test, for further configurations
// of a driver that passes all of it.
func RunPart(t *testing.T, name string, subject func(t *testing.T) Subject) {
	t.Run(name, func(t *testing.T) {
		for _, part := range parts {
			if part.name == name {
				r := newRig(t, subject(t))
				part.test(t, r)
				r.end()
				return
			}
		}
		t.Fatalf("the conformance test has no part %q", name)
	})
}

// rig is one subject under test.
type rig struct {
	t      *testing.T
	ctx    context.Context
	s      Subject
	d      drivers.Driver
	before []string
}

func newRig(t *testing.T, s Subject) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, s: s}
	r.d = s.Open(t)
	r.before = r.traces()
	t.Cleanup(func() {
		// Also a test that failed cleans up.
		ctx := context.Background()
		if r.d == nil {
			r.d = s.Open(t)
		}
		found, err := r.d.List(ctx)
		for _, f := range found {
			err = errors.Join(err, r.d.Remove(ctx, f.Sliver))
		}
		if err != nil {
			t.Errorf("clean up: %v", err)
		}
		r.close()
	})
	return r
}

func (r *rig) close() {
	if c, ok := r.d.(io.Closer); ok {
		if err := c.Close(); err != nil {
			r.t.Errorf("close the driver: %v", err)
		}
	}
	r.d = nil
}

// reopen is a restart of the manager.
func (r *rig) reopen() {
	r.close()
	r.d = r.s.Open(r.t)
}

// end removes what is left and looks for leaks.
func (r *rig) end() {
	r.t.Helper()
	for _, f := range r.list() {
		r.must(r.d.Remove(r.ctx, f.Sliver), "remove %s", f.Sliver)
	}
	r.nothingLeft()
}

func (r *rig) traces() []string {
	if r.s.Traces == nil {
		return nil
	}
	got := r.s.Traces(r.t)
	slices.Sort(got)
	return got
}

// nothingLeft checks that the driver has left no trace. What the kernel does
// in its own time is waited for.
func (r *rig) nothingLeft() {
	r.t.Helper()
	if found := r.list(); len(found) != 0 {
		r.t.Errorf("List after everything was removed: %+v", found)
	}
	var after []string
	r.eventually("no trace is left", func() error {
		after = r.traces()
		if !slices.Equal(after, r.before) {
			return fmt.Errorf("traces\n\t%s\nwere before\n\t%s", strings.Join(after, "\n\t"), strings.Join(r.before, "\n\t"))
		}
		return nil
	})
}

// eventually waits until a check succeeds.
func (r *rig) eventually(what string, check func() error) {
	r.t.Helper()
	deadline := time.Now().Add(patience / 3)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not so after %v: %v", what, patience/3, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (r *rig) must(err error, format string, args ...any) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf(format+": %v", append(args, err)...)
	}
}

// is checks that an error is of a kind.
func (r *rig) is(err, want error, what string) {
	r.t.Helper()
	if !errors.Is(err, want) {
		r.t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func (r *rig) list() []drivers.Found {
	r.t.Helper()
	found, err := r.d.List(r.ctx)
	r.must(err, "list")
	return found
}

// find returns what List says of a sliver, or nil.
func (r *rig) find(sliver urn.URN) *drivers.Found {
	r.t.Helper()
	var out *drivers.Found
	for _, f := range r.list() {
		if f.Sliver.Equal(sliver) {
			if out != nil {
				r.t.Errorf("List has %s twice", sliver)
			}
			out = &f
		}
	}
	return out
}

// shows checks what List says of a sliver.
func (r *rig) shows(sliver urn.URN, kind drivers.Kind, running bool) {
	r.t.Helper()
	f := r.find(sliver)
	if f == nil {
		r.t.Errorf("List does not have %s", sliver)
		return
	}
	if !f.Whole || f.Kind != kind || f.Running != running {
		r.t.Errorf("List says %+v, want a whole %s, running %v", *f, kind, running)
	}
}

const authority = urn.Authority("conformance.example")

func sliver(name string) urn.URN { return urn.URN{Authority: authority, Type: urn.Sliver, Name: name} }

func slice(name string) urn.URN {
	return urn.URN{Authority: authority + ":tests", Type: urn.Slice, Name: name}
}

// node describes a node of slice "one" with some interfaces, whose addresses
// are 10.77.LINK.NUMBER/24 and fd77:LINK::NUMBER/64.
func (r *rig) node(number int, links ...int) drivers.Node {
	name := fmt.Sprintf("node-%d", number)
	n := drivers.Node{
		Sliver:   sliver(name),
		Slice:    slice("one"),
		Hostname: name,
		Capacity: capacity.Amount{Cores: capacity.Core, Memory: 512},
	}
	for i, link := range links {
		n.Interfaces = append(n.Interfaces, drivers.Interface{
			Name:   request.ClientID(fmt.Sprintf("%s:if%d", name, i)),
			Device: fmt.Sprintf("eth%d", i+1),
			MAC:    net.HardwareAddr{0x02, 0x77, 0, byte(link), byte(number), byte(i)},
			Addresses: []netip.Prefix{
				netip.PrefixFrom(address4(link, number), 24),
				netip.PrefixFrom(address6(link, number), 64),
			},
		})
	}
	if r.s.Prepare != nil {
		r.s.Prepare(&n)
	}
	return n
}

func address4(link, number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, byte(link), byte(number)})
}

func address6(link, number int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 3: byte(link), 15: byte(number)})
}

// link joins the nodes' interfaces that were described for that link.
func (r *rig) link(number int, nodes ...drivers.Node) drivers.Link {
	l := drivers.Link{Sliver: sliver(fmt.Sprintf("link-%d", number)), Slice: nodes[0].Slice}
	for _, n := range nodes {
		for _, i := range n.Interfaces {
			if i.MAC[3] == byte(number) {
				l.Ends = append(l.Ends, drivers.End{Node: n.Sliver, Interface: i.Name})
			}
		}
	}
	return l
}

// up makes and starts nodes.
func (r *rig) up(nodes ...drivers.Node) {
	r.t.Helper()
	for _, n := range nodes {
		r.must(r.d.Make(r.ctx, n), "make %s", n.Sliver)
		r.must(r.d.Start(r.ctx, n.Sliver), "start %s", n.Sliver)
	}
}

// shell runs a script as root in a node and returns its output; nothing on
// hollow nodes.
func (r *rig) shell(sliver urn.URN, script string) (string, error) {
	if r.s.Hollow {
		return "", nil
	}
	var out, errs bytes.Buffer
	err := r.d.Exec(r.ctx, sliver, drivers.Command{Args: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &errs})
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String()), err
}

// says checks the output of a script in a node.
func (r *rig) says(sliver urn.URN, script, want string) {
	r.t.Helper()
	got, err := r.shell(sliver, script)
	r.must(err, "%s in %s", script, sliver)
	if r.s.Hollow {
		return
	}
	if got != want {
		r.t.Errorf("%s in %s: got %q, want %q", script, sliver, got, want)
	}
}

// person is somebody with a key pair.
type person struct {
	user    request.User
	keyFile string
}

func (r *rig) person(login string) person {
	r.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	r.must(err, "make a key")
	key, err := ssh.NewPublicKey(public)
	r.must(err, "make a key")
	block, err := ssh.MarshalPrivateKey(private, login)
	r.must(err, "make a key")
	file := filepath.Join(r.t.TempDir(), "id_ed25519")
	r.must(os.WriteFile(file, pem.EncodeToMemory(block), 0o600), "write a key")
	return person{
		user: request.User{
			URN:   urn.URN{Authority: authority, Type: urn.User, Name: login},
			Login: login,
			Keys:  []string{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))},
		},
		keyFile: file,
	}
}

func users(people ...person) []request.User {
	var out []request.User
	for _, p := range people {
		out = append(out, p.user)
	}
	return out
}

// door is a port on the loopback address that leads to a node's SSH port by
// Dial.
type door struct {
	r    *rig
	port string
}

func (r *rig) door(sliver urn.URN) door {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	r.must(err, "listen")
	r.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				n, err := r.d.Dial(r.ctx, sliver, "tcp", "127.0.0.1:22")
				if err != nil {
					return
				}
				defer n.Close()
				go func() {
					io.Copy(n, c)
					if h, ok := n.(interface{ CloseWrite() error }); ok {
						h.CloseWrite()
					}
				}()
				io.Copy(c, n)
			}()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	r.must(err, "listen")
	return door{r: r, port: port}
}

// options are those of the OpenSSH programs.
func (d door) options(p person) []string {
	return []string{
		"-F", "none", "-i", p.keyFile, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=20",
	}
}

// run runs an OpenSSH program and returns what it wrote.
func (d door) run(program string, args ...string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		d.r.t.Skipf("SKIPPED: %s is not installed (apt-get install openssh-client)", program)
	}
	cmd := exec.CommandContext(d.r.ctx, path, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", program, err, errs.String())
	}
	return strings.TrimSpace(out.String()), err
}

// ssh runs a command as an account over SSH.
func (d door) ssh(p person, account, command string) (string, error) {
	return d.run("ssh", append(d.options(p), "-p", d.port, account+"@127.0.0.1", command)...)
}
