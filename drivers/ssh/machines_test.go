package ssh_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"croft/drivers"
	"croft/drivers/driverstest"
	"croft/drivers/ssh"
	"croft/drivers/ssh/sshtest"
	"croft/request"
	"croft/urn"
)

// Users become root where the machine is made anew.
func TestConformanceReimaged(t *testing.T) {
	given := func(t *testing.T) driverstest.Subject {
		reimager := lab(t).Reimager(t)
		s := subject(t, func(_ *sshtest.Machine, m *ssh.Machine) {
			m.Reimage = &ssh.Reimage{Command: reimager.Command, Limit: time.Minute, AtEnd: true}
		})
		s.Plain, s.Sudo = false, true
		return s
	}
	driverstest.RunPart(t, "life cycle", given)
	driverstest.RunPart(t, "several users", given)
	driverstest.RunLong(t, "link", given)
	driverstest.RunLong(t, "manager restarts", given)
}

// The manager's account need not be root.
func TestConformanceBySudo(t *testing.T) {
	bySudo := func(t *testing.T) driverstest.Subject {
		return subject(t, func(m *sshtest.Machine, d *ssh.Machine) {
			if m.Name > "m2" {
				return // no part needs more
			}
			d.User = "ops"
			t.Cleanup(m.Rebase)
			script := `id ops >/dev/null 2>&1 && exit
				useradd -m -p '*' -s /bin/bash ops && echo 'ops ALL=(ALL:ALL) NOPASSWD: ALL' >/etc/sudoers.d/ops &&
				cp -r /root/.ssh /home/ops/ && chown -R ops /home/ops`
			if out, err := m.Run(script); err != nil {
				t.Fatalf("make the account ops: %v %s", err, out)
			}
			t.Cleanup(func() {
				if out, err := m.Run("userdel -r ops 2>/dev/null; rm /etc/sudoers.d/ops"); err != nil {
					t.Errorf("remove the account ops: %v %s", err, out)
				}
			})
			m.Rebase()
		})
	}
	driverstest.RunPart(t, "life cycle", bySudo)
	driverstest.RunPart(t, "commands end with their context", bySudo)
	driverstest.RunLong(t, "commands", bySudo)
	driverstest.RunLong(t, "several users", bySudo)
}

// one is a driver of one machine, and a node on it.
type one struct {
	*ssh.Driver
	t        *testing.T
	ctx      context.Context
	m        *sshtest.Machine
	s        setup
	node     drivers.Node
	declared *ssh.Machine
}

func newOne(t *testing.T, change func(*one)) *one {
	t.Helper()
	l := lab(t)
	// No measure of speed: what runs tests is busy.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	o := &one{t: t, ctx: ctx, m: machines(t, 2)[0]}
	second := declared(machines(t, 2)[1])
	o.s = setup{Dir: t.TempDir(), KeyFile: l.KeyFile(), Machines: []ssh.Machine{declared(o.m), second}}
	o.declared = &o.s.Machines[0]
	o.node = node(1)
	if change != nil {
		change(o)
	}
	o.open()
	t.Cleanup(func() {
		o.m.Unplug(false)
		found, err := o.List(context.Background())
		for _, f := range found {
			err = errors.Join(err, o.Remove(context.Background(), f.Sliver))
		}
		if err != nil {
			t.Errorf("clean up: %v", err)
		}
		o.Close()
		if left := o.m.Changes(); len(left) > 0 {
			t.Errorf("left on the machine:\n\t%s", strings.Join(left, "\n\t"))
		}
	})
	return o
}

// node is node-N with its first interface, on machine mN.
func node(number int) drivers.Node {
	n := drivers.Node{
		Sliver:   urn.MustParse(fmt.Sprintf("urn:publicid:IDN+conformance.example+sliver+n%d", number)),
		Slice:    urn.MustParse("urn:publicid:IDN+conformance.example+slice+one"),
		Hostname: fmt.Sprintf("node-%d", number),
		Interfaces: []drivers.Interface{{
			Name: request.ClientID(fmt.Sprintf("n%d:if0", number)), Device: "eth1",
			Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.77.1.%d/24", number))},
		}},
	}
	place(&n)
	return n
}

func (o *one) open() {
	o.t.Helper()
	if o.Driver != nil {
		o.Close()
	}
	d, err := o.s.open(logger(o.t))
	if err != nil {
		o.t.Fatal(err)
	}
	o.Driver = d
}

func (o *one) up() {
	o.t.Helper()
	o.must(o.Make(o.ctx, o.node), "make")
	o.must(o.Start(o.ctx, o.node.Sliver), "start")
}

func (o *one) must(err error, what string) {
	o.t.Helper()
	if err != nil {
		o.t.Fatalf("%s: %v", what, err)
	}
}

// fails checks that an error tells something.
func (o *one) fails(err error, what, want string) {
	o.t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		o.t.Errorf("%s: got %v, want an error that says %q", what, err, want)
	}
}

// found is what List says of the node.
func (o *one) found() *drivers.Found {
	o.t.Helper()
	list, err := o.List(o.ctx)
	o.must(err, "list")
	for _, f := range list {
		if f.Sliver.Equal(o.node.Sliver) {
			return &f
		}
	}
	return nil
}

// ailing checks that the machine is told to be out of order, for a reason; ""
// for that it is not.
func (o *one) ailing(reason string) {
	o.t.Helper()
	for _, a := range o.Health() {
		if a.Host.Equal(hostURN("m1")) {
			if reason == "" || !strings.Contains(a.Reason, reason) {
				o.t.Errorf("the machine is said to be out of order: %s; want %q", a.Reason, reason)
			}
			return
		}
	}
	if reason != "" {
		o.t.Errorf("the machine is not said to be out of order; want %q", reason)
	}
}

func (o *one) run(user, script string) (string, error) {
	var out bytes.Buffer
	err := o.Exec(o.ctx, o.node.Sliver, drivers.Command{Args: []string{"/bin/sh", "-c", script}, User: user, Stdout: &out, Stderr: &out})
	return strings.TrimSpace(out.String()), err
}

func user(t *testing.T, login string) request.User {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := cryptossh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return request.User{
		URN:   urn.MustParse("urn:publicid:IDN+conformance.example+user+" + login),
		Login: login, Keys: []string{strings.TrimSpace(string(cryptossh.MarshalAuthorizedKey(key)))},
	}
}

func TestMachineDoesNotAnswer(t *testing.T) {
	o := newOne(t, nil)
	o.up()
	o.ailing("")
	o.m.Unplug(true)
	if f := o.found(); f == nil || !f.Whole || !f.Running {
		t.Errorf("a machine that does not answer is listed as %+v, want it as it was", f)
	}
	o.ailing("does not answer")
	// From here on nobody waits for nothing.
	o.m.Refuse(true)
	o.fails(o.UpdateUsers(o.ctx, o.node.Sliver, []request.User{user(t, "ann")}), "update users", "machine m1")
	if _, err := o.run("", "true"); err == nil {
		t.Error("a command on a machine that does not answer: done")
	}
	if _, err := o.Dial(o.ctx, o.node.Sliver, "tcp", "127.0.0.1:22"); err == nil {
		t.Error("dialled a machine that does not answer")
	}
	o.m.Refuse(false)
	if f := o.found(); f == nil || !f.Running {
		t.Errorf("a machine that answers again is listed as %+v", f)
	}
	o.ailing("")
	o.m.Refuse(true)
	o.fails(o.Remove(o.ctx, o.node.Sliver), "remove", "machine m1")
	o.ailing("could not be made clean")
	// A manager that starts meanwhile knows of it.
	o.open()
	if f := o.found(); f == nil || f.Whole {
		t.Errorf("a node that could not be removed is listed as %+v, want it not whole", f)
	}
	other := o.node
	other.Sliver = urn.MustParse("urn:publicid:IDN+conformance.example+sliver+other")
	o.m.Refuse(false)
	o.fails(o.Make(o.ctx, other), "another node on a machine that was not cleaned", "is held by "+o.node.Sliver.String())
	o.must(o.Remove(o.ctx, o.node.Sliver), "remove")
	o.ailing("")
	o.must(o.Make(o.ctx, other), "make the next node")
}

// A machine that does not let the manager in takes no nodes.
func TestKeyMissing(t *testing.T) {
	o := newOne(t, nil)
	o.declared.User = "ops"
	o.fails(o.Make(o.ctx, o.node), "make", "does it have the manager's key")
	o.ailing("does it have the manager's key")
	o.declared.User = "root"
	o.must(o.Make(o.ctx, o.node), "make")
	o.found()
	o.ailing("")
}

// A machine that goes off the network in the middle of operations: whatever
// was under way ends, and afterwards the machine is made clean.
func TestUnpluggedInTheMiddle(t *testing.T) {
	o := newOne(t, func(o *one) { o.node.Users = []request.User{user(t, "ann"), user(t, "bob")} })
	for i := range 6 {
		delay := time.Duration(i) * 60 * time.Millisecond
		timer := time.AfterFunc(delay, func() { o.m.Refuse(true) })
		err := o.Make(o.ctx, o.node)
		if err == nil {
			err = o.Start(o.ctx, o.node.Sliver)
		}
		timer.Stop()
		o.m.Refuse(false)
		t.Logf("unplugged after %s: %v", delay, err)
		if f := o.found(); f != nil {
			o.must(o.Remove(o.ctx, f.Sliver), "remove")
		}
		if left := o.m.Changes(); len(left) > 0 {
			t.Fatalf("unplugged after %s, left on the machine:\n\t%s", delay, strings.Join(left, "\n\t"))
		}
		o.ailing("")
	}
}

func TestHostKeyChanged(t *testing.T) {
	o := newOne(t, nil)
	o.up()
	good := o.declared.HostKeys
	o.declared.HostKeys = []string{machines(t, 2)[1].HostKey()}
	o.open()
	if f := o.found(); f == nil || !f.Whole {
		t.Errorf("the node is listed as %+v", f)
	}
	o.ailing("which is not the one in the inventory")
	err := o.Restart(o.ctx, o.node.Sliver)
	var key *ssh.HostKeyError
	if !errors.As(err, &key) || key.Machine != "m1" {
		t.Errorf("restart of a machine with another key: %v", err)
	}
	if _, err := o.run("", "true"); !errors.As(err, &key) {
		t.Errorf("a command on a machine with another key: %v", err)
	}
	o.declared.HostKeys = good
	o.open()
	o.must(o.Restart(o.ctx, o.node.Sliver), "restart")
	o.ailing("")
}

// What accounts leave, and what they do against being cleaned.
func TestClean(t *testing.T) {
	o := newOne(t, func(o *one) { o.node.Users = []request.User{user(t, "ann"), user(t, "bob")} })
	o.up()
	for _, leave := range []struct{ user, script string }{
		{"ann", "echo x >~/file; mkdir -p ~/a/b; chmod 0 ~/a; touch '/tmp/two words' /var/tmp/x /scratch/x /dev/shm/x"},
		{"ann", "mkdir -p /tmp/d/e && touch /tmp/d/e/f && ln -s /etc/passwd /tmp/d/link && chmod 500 /tmp/d"},
		{"ann", "rm -rf ~/.ssh; ln -s /etc ~/.ssh"},
		{"bob", "rm -rf ~/.ssh; touch ~/.ssh; mkfifo /tmp/pipe"},
		{"ann", "ipcmk -M 4096 >/dev/null; ipcmk -Q >/dev/null; ipcmk -S 1 >/dev/null; ipcs | grep -c ann"},
		{"bob", "(trap '' TERM HUP INT; setsid sh -c 'while :; do sleep 1; done' >/dev/null 2>&1 &)"},
		// One that comes back as often as it is ended.
		{"ann", "(setsid sh -c 'while :; do sh -c \"sleep 0.01\" & wait; done' >/dev/null 2>&1 &)"},
		{"", "touch /scratch/of-root; mkdir -p /scratch/deep/er"},
	} {
		if out, err := o.run(leave.user, leave.script); err != nil {
			t.Fatalf("%s as %s: %v %s", leave.script, leave.user, err, out)
		}
	}
	// Keys are written in spite of what became of the directory.
	ann, bob := user(t, "ann"), user(t, "bob")
	o.must(o.UpdateUsers(o.ctx, o.node.Sliver, []request.User{ann, bob}), "update users")
	for _, u := range []request.User{ann, bob} {
		if out, err := o.run(u.Login, "cat ~/.ssh/authorized_keys"); err != nil || out != u.Keys[0] {
			t.Errorf("the keys of %s are %q, %v", u.Login, out, err)
		}
	}
	o.must(o.Remove(o.ctx, o.node.Sliver), "remove")
	if left := o.m.Changes(); len(left) > 0 {
		t.Errorf("left on the machine:\n\t%s", strings.Join(left, "\n\t"))
	}
	out, err := o.m.Run("hostname; ipcs -m -q -s | grep -c 20000; ls /dev/shm /scratch /tmp /var/tmp | grep -v :")
	if want := "m1\n0"; out != want {
		t.Errorf("after cleaning the machine says %q, %v; want %q", out, err, want)
	}
}

func TestCleaningFails(t *testing.T) {
	o := newOne(t, nil)
	o.up()
	if out, err := o.m.Run("mkdir /scratch/mnt && mount -t tmpfs none /scratch/mnt"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	o.fails(o.Remove(o.ctx, o.node.Sliver), "remove", "scratch /scratch cannot be emptied")
	o.ailing("could not be made clean after " + o.node.Sliver.String())
	if f := o.found(); f == nil || f.Whole {
		t.Errorf("the node is listed as %+v, want it not whole", f)
	}
	o.ailing("could not be made clean")
	if out, err := o.m.Run("umount /scratch/mnt"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	o.must(o.Remove(o.ctx, o.node.Sliver), "remove")
	o.ailing("")
}

func TestMachineOfAnotherManager(t *testing.T) {
	o := newOne(t, nil)
	const theirs = "urn:publicid:IDN+other.example+sliver+x urn:publicid:IDN+other.example+authority+cm"
	if out, err := o.m.Run("mkdir -p /var/lib/croft && echo '" + theirs + "' >/var/lib/croft/owner"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	o.fails(o.Make(o.ctx, o.node), "make", "the machine is held by urn:publicid:IDN+other.example+sliver+x")
	if f := o.found(); f != nil {
		t.Errorf("the node that failed is listed: %+v", *f)
	}
	o.ailing("in use by urn:publicid:IDN+other.example+sliver+x of the manager urn:publicid:IDN+other.example+authority+cm")
	if out, err := o.m.Run("cat /var/lib/croft/owner && rm -r /var/lib/croft"); err != nil || out != theirs {
		t.Errorf("the other manager's mark is %q, %v", out, err)
	}
	o.must(o.Make(o.ctx, o.node), "make")
}

// A manager that has lost its journal finds on the machines what it had.
func TestJournalLost(t *testing.T) {
	o := newOne(t, func(o *one) { o.node.Users = []request.User{user(t, "ann")} })
	o.up()
	o.s.Dir = t.TempDir()
	o.open()
	if f := o.found(); f == nil || f.Whole || f.Kind != drivers.NodeKind {
		t.Fatalf("a node that the journal does not have is listed as %+v", f)
	}
	o.ailing("which nobody knows")
	o.must(o.Remove(o.ctx, o.node.Sliver), "remove")
	o.ailing("")
	if left := o.m.Changes(); len(left) > 0 {
		t.Errorf("left on the machine:\n\t%s", strings.Join(left, "\n\t"))
	}
}

// A machine that somebody else boots has not got its node running.
func TestBootedByOthers(t *testing.T) {
	o := newOne(t, nil)
	o.up()
	o.m.PowerOff()
	o.must(o.m.PowerOn(), "turn on")
	deadline := time.Now().Add(time.Minute)
	for f := o.found(); f == nil || f.Running; f = o.found() {
		if time.Now().After(deadline) {
			t.Fatalf("listed as %+v, want it not running", f)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := o.run("", "true"); !errors.Is(err, drivers.ErrNotRunning) {
		t.Errorf("a command on it: %v", err)
	}
	o.must(o.Start(o.ctx, o.node.Sliver), "start")
	if out, err := o.run("", "ip -o -4 addr show dev eth1"); err != nil || !strings.Contains(out, "10.77.1.1/24") {
		t.Errorf("addresses %q, %v", out, err)
	}
}

func TestLinksWithoutCommand(t *testing.T) {
	two := node(2)
	link := drivers.Link{
		Sliver: urn.MustParse("urn:publicid:IDN+conformance.example+sliver+l"), Slice: two.Slice,
		Ends: []drivers.End{{Node: node(1).Sliver, Interface: "n1:if0"}, {Node: two.Sliver, Interface: "n2:if0"}},
	}
	for _, c := range []struct {
		name   string
		change func(*one, *drivers.Node, *drivers.Link)
		want   string // "" if it can be made
	}{
		{"over a switch", func(*one, *drivers.Node, *drivers.Link) {}, "m1:eth1 and m1:eth1 are not joined by a cable"},
		{"over a plain switch", func(o *one, _ *drivers.Node, _ *drivers.Link) { o.s.Links.PlainSwitches = []string{"switch"} }, ""},
		{"over a cable", func(o *one, _ *drivers.Node, _ *drivers.Link) {
			for i, peer := range []string{"m2", "m1"} {
				own := &o.s.Machines[i].Interfaces[0]
				own.Switch, own.Peer = "", nicURN(peer, "eth1")
			}
		}, ""},
		{"shaped", func(_ *one, _ *drivers.Node, l *drivers.Link) { l.Ends[0].Out.LatencyMs = 10 }, "cannot shape links"},
		{"an interface that the machine has not got", func(_ *one, n *drivers.Node, _ *drivers.Link) { n.Interfaces[0].Component = urn.URN{} },
			`interface "n2:if0" is none of the interfaces that the inventory has of machine m2`},
		{"a shared VLAN", func(_ *one, _ *drivers.Node, l *drivers.Link) { l.SharedVLAN = "campus" }, "the shared VLAN campus cannot be joined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			second, l := two, link
			second.Interfaces, l.Ends = slices.Clone(two.Interfaces), slices.Clone(link.Ends)
			o := newOne(t, func(o *one) { c.change(o, &second, &l) })
			o.must(o.Make(o.ctx, o.node), "make")
			o.must(o.Make(o.ctx, second), "make")
			err := o.Connect(o.ctx, l)
			if c.want != "" {
				o.fails(err, "connect", c.want)
				return
			}
			o.must(err, "connect")
		})
	}
}

// Nothing of the machine's own is taken for an account's.
func TestHomeOfOthers(t *testing.T) {
	o := newOne(t, func(o *one) { o.node.Users = []request.User{user(t, "ann")} })
	if out, err := o.m.Run("mkdir /home/ann && echo precious >/home/ann/file"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	o.must(o.Make(o.ctx, o.node), "make")
	o.fails(o.Start(o.ctx, o.node.Sliver), "start", "the machine has a directory /home/ann of its own")
	o.must(o.Remove(o.ctx, o.node.Sliver), "remove")
	if out, err := o.m.Run("cat /home/ann/file && rm -r /home/ann"); err != nil || out != "precious" {
		t.Errorf("the machine's file is %q, %v", out, err)
	}
}

// What a machine cannot be given is refused before it is touched.
func TestRefused(t *testing.T) {
	o := newOne(t, nil)
	for name, c := range map[string]struct {
		change func(*drivers.Node)
		want   string
	}{
		"a host without access":      {func(n *drivers.Node) { n.Host = hostURN("m99") }, "the inventory has no access for it"},
		"another host's interface":   {func(n *drivers.Node) { n.Interfaces[0].Component = nicURN("m2", "eth1") }, "machine m1 has no interface"},
		"a host name of two lines":   {func(n *drivers.Node) { n.Hostname = "a\nb" }, "hostname"},
		"an account of the machine":  {func(n *drivers.Node) { n.Users = []request.User{user(t, "daemon")} }, "there is one of that name"},
		"an image that is not there": {func(n *drivers.Node) { n.Image = "other" }, "no way to get"},
	} {
		n := o.node
		n.Interfaces = slices.Clone(n.Interfaces)
		c.change(&n)
		o.fails(o.Make(o.ctx, n), name, c.want)
		if left := o.m.Changes(); len(left) > 0 {
			t.Errorf("%s: left on the machine:\n\t%s", name, strings.Join(left, "\n\t"))
		}
	}
}
