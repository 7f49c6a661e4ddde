package driverstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"croft/drivers"
	"croft/request"
)

func testLifeCycle(t *testing.T, r *rig) {
	if r.d.Name() == "" {
		t.Error("the driver has no name")
	}
	r.must(r.d.Check(r.ctx), "check")
	n := r.node(1, 1)
	r.must(r.d.Make(r.ctx, n), "make")
	r.shows(n.Sliver, drivers.NodeKind, false)
	r.notRunning(n)

	r.must(r.d.Start(r.ctx, n.Sliver), "start")
	r.shows(n.Sliver, drivers.NodeKind, true)
	r.says(n.Sliver, "hostname", n.Hostname)
	r.says(n.Sliver, "id -u", "0")
	r.says(n.Sliver, "echo kept > /var/tmp/file; cat /var/tmp/file", "kept")
	r.says(n.Sliver, "cat /sys/class/net/eth1/address", n.Interfaces[0].MAC.String())
	var log bytes.Buffer
	r.must(r.d.Log(r.ctx, n.Sliver, &log), "log")
	if log.Len() == 0 {
		t.Error("the log of a node that has booted is empty")
	}

	r.must(r.d.Stop(r.ctx, n.Sliver), "stop")
	r.shows(n.Sliver, drivers.NodeKind, false)
	r.notRunning(n)
	r.must(r.d.Start(r.ctx, n.Sliver), "start again")
	r.says(n.Sliver, "cat /var/tmp/file", "kept")
	r.must(r.d.Restart(r.ctx, n.Sliver), "restart")
	r.shows(n.Sliver, drivers.NodeKind, true)
	r.says(n.Sliver, "cat /var/tmp/file", "kept")
	r.must(r.d.Remove(r.ctx, n.Sliver), "remove")
	if f := r.find(n.Sliver); f != nil {
		t.Errorf("List has a node that was removed: %+v", *f)
	}
	// What comes after it under its name is new.
	r.up(n)
	r.says(n.Sliver, "cat /var/tmp/file 2>/dev/null; true", "")
}

// notRunning checks how a node that is stopped answers.
func (r *rig) notRunning(n drivers.Node) {
	r.t.Helper()
	_, err := r.d.Dial(r.ctx, n.Sliver, "tcp", "127.0.0.1:22")
	r.is(err, drivers.ErrNotRunning, "dial a stopped node")
	err = r.d.Exec(r.ctx, n.Sliver, drivers.Command{Args: []string{"true"}})
	r.is(err, drivers.ErrNotRunning, "exec in a stopped node")
	r.must(r.d.Log(r.ctx, n.Sliver, &bytes.Buffer{}), "log of a stopped node")
}

func testTwice(t *testing.T, r *rig) {
	a, b := r.node(1, 1), r.node(2, 1)
	twice := func(what string, f func() error) {
		t.Helper()
		r.must(f(), "%s", what)
		r.must(f(), "%s for the second time", what)
	}
	twice("make", func() error { return r.d.Make(r.ctx, a) })
	twice("stop what has not started", func() error { return r.d.Stop(r.ctx, a.Sliver) })
	twice("start", func() error { return r.d.Start(r.ctx, a.Sliver) })
	r.says(a.Sliver, "echo here > /dev/shm/x; cat /dev/shm/x", "here")
	r.must(r.d.Make(r.ctx, a), "make what runs")
	r.must(r.d.Start(r.ctx, a.Sliver), "start what runs")
	r.says(a.Sliver, "cat /dev/shm/x", "here") // the same run of the node
	twice("restart", func() error { return r.d.Restart(r.ctx, a.Sliver) })
	if r.s.Links {
		r.up(b)
		twice("connect", func() error { return r.d.Connect(r.ctx, r.link(1, a, b)) })
		r.pings(a, 1, b)
		twice("remove the link", func() error { return r.d.Remove(r.ctx, r.link(1, a, b).Sliver) })
	}
	twice("update users", func() error { return r.d.UpdateUsers(r.ctx, a.Sliver, users(r.person("ann"))) })
	twice("stop", func() error { return r.d.Stop(r.ctx, a.Sliver) })
	twice("restart what is stopped", func() error { return r.d.Restart(r.ctx, a.Sliver) })
	twice("remove", func() error { return r.d.Remove(r.ctx, a.Sliver) })
	if f := r.find(a.Sliver); f != nil {
		t.Errorf("List has a node that was removed: %+v", *f)
	}
}

func testWrongOrder(t *testing.T, r *rig) {
	a, b := r.node(1, 1), r.node(2, 1)
	r.is(r.d.Start(r.ctx, a.Sliver), drivers.ErrNotFound, "start before make")
	if r.s.Links {
		l := r.link(1, a, b)
		r.must(r.d.Make(r.ctx, a), "make")
		r.is(r.d.Connect(r.ctx, l), drivers.ErrNotFound, "connect a node that is not made")
		if f := r.find(l.Sliver); f != nil {
			t.Errorf("List has a link that failed: %+v", *f)
		}
		// Connect before the nodes run.
		r.must(r.d.Make(r.ctx, b), "make")
		r.must(r.d.Connect(r.ctx, l), "connect stopped nodes")
		r.shows(l.Sliver, drivers.LinkKind, false)
		r.must(r.d.Start(r.ctx, a.Sliver), "start")
		r.must(r.d.Start(r.ctx, b.Sliver), "start")
		r.pings(a, 1, b)
		// Nodes go before their link.
		r.must(r.d.Remove(r.ctx, a.Sliver), "remove a node of a link")
		r.must(r.d.Remove(r.ctx, b.Sliver), "remove a node of a link")
		r.must(r.d.Remove(r.ctx, l.Sliver), "remove a link without nodes")
	}
	r.must(r.d.Make(r.ctx, a), "make")
	r.must(r.d.UpdateUsers(r.ctx, a.Sliver, nil), "update the users of a node that has not started")
	r.must(r.d.Remove(r.ctx, a.Sliver), "remove what has not started")
}

func testUnknown(t *testing.T, r *rig) {
	none := sliver("none")
	for name, call := range map[string]func() error{
		"start":        func() error { return r.d.Start(r.ctx, none) },
		"stop":         func() error { return r.d.Stop(r.ctx, none) },
		"restart":      func() error { return r.d.Restart(r.ctx, none) },
		"update users": func() error { return r.d.UpdateUsers(r.ctx, none, nil) },
		"exec":         func() error { return r.d.Exec(r.ctx, none, drivers.Command{Args: []string{"true"}}) },
		"log":          func() error { return r.d.Log(r.ctx, none, &bytes.Buffer{}) },
		"dial": func() error {
			_, err := r.d.Dial(r.ctx, none, "tcp", "127.0.0.1:22")
			return err
		},
	} {
		r.is(call(), drivers.ErrNotFound, name+" of an unknown sliver")
	}
	r.must(r.d.Remove(r.ctx, none), "remove an unknown sliver")
}

func testBadNodes(t *testing.T, r *rig) {
	names, err := r.d.Accounts(r.ctx, r.node(1).Image)
	r.must(err, "list the accounts")
	if !slices.Contains(names, "root") {
		t.Errorf("accounts of the image: %q, want root among them", names)
	}
	good := r.person("ann").user
	with := func(change func(*request.User)) []request.User {
		u := good
		u.Keys = slices.Clone(u.Keys)
		change(&u)
		return []request.User{u}
	}
	for name, list := range map[string][]request.User{
		"login of the image":   with(func(u *request.User) { u.Login = "root" }),
		"no login":             with(func(u *request.User) { u.Login = "" }),
		"login with a path":    with(func(u *request.User) { u.Login = "../x" }),
		"login with a line":    with(func(u *request.User) { u.Login = "x\nroot" }),
		"key that is none":     with(func(u *request.User) { u.Keys[0] = "ssh-rsa nonsense" }),
		"key with options":     with(func(u *request.User) { u.Keys[0] = `command="x" ` + u.Keys[0] }),
		"two keys in one line": with(func(u *request.User) { u.Keys[0] += "\n" + u.Keys[0] }),
		"login twice":          append(with(func(*request.User) {}), good),
	} {
		n := r.node(1)
		n.Users = list
		if err := r.d.Make(r.ctx, n); err == nil {
			t.Errorf("%s: made", name)
		}
		if f := r.find(n.Sliver); f != nil {
			t.Errorf("%s: List has the node that failed: %+v", name, *f)
			r.must(r.d.Remove(r.ctx, n.Sliver), "remove")
		}
	}
	n := r.node(1)
	r.up(n)
	if err := r.d.UpdateUsers(r.ctx, n.Sliver, with(func(u *request.User) { u.Login = "root" })); err == nil {
		t.Error("update to a login of the image: done")
	}
}

func testCommands(t *testing.T, r *rig) {
	n := r.node(1)
	ann := r.person("ann")
	n.Users = users(ann)
	r.up(n)
	var out, errs bytes.Buffer
	err := r.d.Exec(r.ctx, n.Sliver, drivers.Command{
		Args:  []string{"/bin/sh", "-c", `read line; echo "$line $CROFT_X $#:$1"; echo oops >&2; exit 7`, "sh", "two words; $(false)"},
		Env:   []string{"CROFT_X=a b"},
		Stdin: strings.NewReader("from stdin\n"), Stdout: &out, Stderr: &errs,
	})
	var exit *drivers.ExitError
	if !errors.As(err, &exit) || exit.Status != 7 {
		t.Errorf("a command that exits with 7: %v", err)
	}
	if got, want := out.String(), "from stdin a b 1:two words; $(false)\n"; got != want {
		t.Errorf("standard output %q, want %q", got, want)
	}
	if got, want := errs.String(), "oops\n"; got != want {
		t.Errorf("standard error %q, want %q", got, want)
	}

	out.Reset()
	err = r.d.Exec(r.ctx, n.Sliver, drivers.Command{
		Args: []string{"sh", "-c", `echo "$(id -un) $HOME $(pwd) $USER"; echo ok > /dev/stderr; test -w ~`}, User: "ann", Stdout: &out,
	})
	r.must(err, "a command as a user")
	if got, want := strings.TrimSpace(out.String()), "ann /home/ann /home/ann ann"; got != want {
		t.Errorf("a command as a user says %q, want %q", got, want)
	}
	if err := r.d.Exec(r.ctx, n.Sliver, drivers.Command{Args: []string{"true"}, User: "nobody-here"}); err == nil || errors.As(err, &exit) && exit.Status == 0 {
		t.Error("a command as an account that does not exist: done")
	}
	err = r.d.Exec(r.ctx, n.Sliver, drivers.Command{Args: []string{"no-such-program"}})
	if !errors.As(err, &exit) || exit.Status != 127 {
		t.Errorf("a program that does not exist: %v, want status 127", err)
	}
	// What a command leaves running does not hold it up.
	r.says(n.Sliver, "sleep 1000 & echo started", "started")

	const size = 8 << 20
	out.Reset()
	err = r.d.Exec(r.ctx, n.Sliver, drivers.Command{Args: []string{"cat"}, Stdin: strings.NewReader(strings.Repeat("0123456789abcdef", size/16)), Stdout: &out})
	r.must(err, "cat")
	if out.Len() != size {
		t.Errorf("%d bytes through cat, want %d", out.Len(), size)
	}
	_, err = r.shell(n.Sliver, "kill -TERM $$")
	if !errors.As(err, &exit) || exit.Status != 128+15 {
		t.Errorf("a command that is killed: %v, want status 143", err)
	}
}

func testCancel(t *testing.T, r *rig) {
	n := r.node(1)
	r.up(n)
	ctx, cancel := context.WithCancel(r.ctx)
	started := &lineWriter{line: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		done <- r.d.Exec(ctx, n.Sliver, drivers.Command{
			Args: []string{"/bin/sh", "-c", "echo $$ > /run/pid; echo started; sleep 1000"}, Stdout: started,
		})
	}()
	select {
	case <-started.line:
	case err := <-done:
		t.Fatalf("the command ended: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("exec with a context that ended: %v", err)
	}
	r.eventually("the command has ended", func() error {
		out, err := r.shell(n.Sliver, `kill -0 $(cat /run/pid) 2>/dev/null && grep -v ') Z' /proc/$(cat /run/pid)/stat; true`)
		if err == nil && out != "" {
			err = errors.New("it runs")
		}
		return err
	})
}

// lineWriter tells when something was written to it.
type lineWriter struct {
	once sync.Once
	line chan struct{}
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.line) })
	return len(p), nil
}

// pings checks that one node reaches another over a link, over IPv4 and IPv6.
func (r *rig) pings(from drivers.Node, link int, to ...drivers.Node) {
	r.t.Helper()
	for _, n := range to {
		number := int(n.Interfaces[0].MAC[4])
		for _, address := range []string{address4(link, number).String(), address6(link, number).String()} {
			// The first packet may be lost to address resolution.
			if out, err := r.shell(from.Sliver, fmt.Sprintf("ping -n -c 1 -W 5 %s || ping -n -c 3 -W 5 %s", address, address)); err != nil {
				r.t.Errorf("%s does not reach %s (%s): %v %s", from.Hostname, n.Hostname, address, err, out)
			}
		}
	}
}

// separated checks that one node does not reach another over IPv4.
func (r *rig) separated(from drivers.Node, link, number int) {
	r.t.Helper()
	if r.s.Hollow {
		return
	}
	address := address4(link, number)
	if out, err := r.shell(from.Sliver, fmt.Sprintf("ping -n -c 2 -i 0.2 -W 1 %s", address)); err == nil {
		r.t.Errorf("%s reaches %s: %s", from.Hostname, address, out)
	}
}

func (r *rig) needLinks() {
	r.t.Helper()
	if !r.s.Links {
		r.t.Skip("the driver connects no nodes")
	}
}

func testLink(t *testing.T, r *rig) {
	r.needLinks()
	a, b := r.node(1, 1, 2), r.node(2, 1, 2)
	r.up(a, b)
	r.must(r.d.Connect(r.ctx, r.link(1, a, b)), "connect")
	r.must(r.d.Connect(r.ctx, r.link(2, a, b)), "connect a second link")
	r.shows(r.link(1, a, b).Sliver, drivers.LinkKind, false)
	r.pings(a, 1, b)
	r.pings(b, 1, a)
	r.pings(a, 2, b)
	for i, iface := range a.Interfaces {
		r.says(a.Sliver, "cat /sys/class/net/"+iface.Device+"/address", iface.MAC.String())
		r.says(a.Sliver, fmt.Sprintf("ip -o -4 addr show dev %s | awk '{print $4}'", iface.Device), a.Interfaces[i].Addresses[0].String())
	}
	// A link ends, the other one goes on.
	r.must(r.d.Remove(r.ctx, r.link(1, a, b).Sliver), "remove a link")
	r.separated(a, 1, 2)
	r.pings(a, 2, b)
	// An interface is in one link only, and a link in one slice.
	c := r.node(3, 2)
	r.up(c)
	l := r.link(3, a)
	l.Ends = []drivers.End{{Node: a.Sliver, Interface: a.Interfaces[1].Name}, {Node: c.Sliver, Interface: c.Interfaces[0].Name}}
	if err := r.d.Connect(r.ctx, l); err == nil {
		t.Error("connected an interface that is in a link already")
	}
	l.Ends[0].Interface = "no such interface"
	if err := r.d.Connect(r.ctx, l); err == nil {
		t.Error("connected an interface that does not exist")
	}
	if f := r.find(l.Sliver); f != nil {
		t.Errorf("List has a link that failed: %+v", *f)
	}
}

func testLinkRestart(t *testing.T, r *rig) {
	r.needLinks()
	a, b := r.node(1, 1), r.node(2, 1)
	r.up(a, b)
	r.must(r.d.Connect(r.ctx, r.link(1, a, b)), "connect")
	r.must(r.d.Restart(r.ctx, a.Sliver), "restart one end")
	r.pings(a, 1, b)
	r.must(r.d.Stop(r.ctx, b.Sliver), "stop the other end")
	r.separated(a, 1, 2)
	r.shows(r.link(1, a, b).Sliver, drivers.LinkKind, false)
	r.must(r.d.Start(r.ctx, b.Sliver), "start the other end")
	r.pings(b, 1, a)
	r.must(r.d.Stop(r.ctx, a.Sliver), "stop")
	r.must(r.d.Stop(r.ctx, b.Sliver), "stop")
	r.must(r.d.Start(r.ctx, a.Sliver), "start")
	r.must(r.d.Start(r.ctx, b.Sliver), "start")
	r.pings(a, 1, b)
}

func testLAN(t *testing.T, r *rig) {
	r.needLinks()
	a, b, c := r.node(1, 1), r.node(2, 1), r.node(3, 1)
	r.up(a, b, c)
	r.must(r.d.Connect(r.ctx, r.link(1, a, b, c)), "connect")
	r.pings(a, 1, b, c)
	r.pings(b, 1, a, c)
	r.pings(c, 1, a, b)
	r.must(r.d.Remove(r.ctx, b.Sliver), "remove a node of a LAN")
	r.pings(a, 1, c)
}

func testUnlinked(t *testing.T, r *rig) {
	n := r.node(1, 1)
	r.up(n)
	r.says(n.Sliver, "cat /sys/class/net/eth1/address", n.Interfaces[0].MAC.String())
	r.says(n.Sliver, "ip -o -4 addr show dev eth1 | awk '{print $4}'", n.Interfaces[0].Addresses[0].String())
	if !r.s.Given {
		r.says(n.Sliver, "ls /sys/class/net | grep -c ^eth", "1")
	}
}

func testSlicesApart(t *testing.T, r *rig) {
	r.needLinks()
	// Two slices with the same addresses.
	a, b := r.node(1, 1), r.node(2, 1)
	c, d := r.node(3, 1), r.node(4, 1)
	c.Slice, d.Slice = slice("two"), slice("two")
	d.Interfaces[0].Addresses = b.Interfaces[0].Addresses
	r.up(a, b, c, d)
	r.must(r.d.Connect(r.ctx, r.link(1, a, b)), "connect")
	l := r.link(1, c, d)
	l.Sliver = sliver("link-of-two")
	r.must(r.d.Connect(r.ctx, l), "connect the other slice")
	r.pings(a, 1, b)
	mac := func(n drivers.Node) string {
		r.t.Helper()
		script := fmt.Sprintf("ping -n -c 1 -W 5 %[1]s >/dev/null; ip neigh show %[1]s | grep -o 'lladdr [^ ]*'", address4(1, 2))
		out, err := r.shell(n.Sliver, script)
		r.must(err, "ask %s who has an address", n.Hostname)
		return out
	}
	if got, want := mac(a), "lladdr "+b.Interfaces[0].MAC.String(); got != want {
		t.Errorf("the first slice finds %q, want %q", got, want)
	}
	if got, want := mac(c), "lladdr "+d.Interfaces[0].MAC.String(); got != want {
		t.Errorf("the second slice finds %q, want %q", got, want)
	}
	r.separated(a, 1, 3)
	r.separated(c, 1, 1)
	x := drivers.Link{Sliver: sliver("across"), Slice: a.Slice, Ends: []drivers.End{
		{Node: a.Sliver, Interface: a.Interfaces[0].Name}, {Node: c.Sliver, Interface: c.Interfaces[0].Name}}}
	if err := r.d.Connect(r.ctx, x); err == nil {
		t.Error("connected nodes of two slices")
	}
}

func testParallel(t *testing.T, r *rig) {
	const count = 8
	var nodes []drivers.Node
	for i := range count {
		if r.s.Links {
			nodes = append(nodes, r.node(i+1, i+1, (i+count-1)%count+1))
		} else {
			nodes = append(nodes, r.node(i+1))
		}
	}
	each := func(what string, f func(i int) error) {
		t.Helper()
		errs := make([]error, count)
		var all sync.WaitGroup
		for i := range count {
			all.Go(func() { errs[i] = f(i) })
		}
		all.Wait()
		r.must(errors.Join(errs...), "%s", what)
	}
	each("make and start", func(i int) error {
		return errors.Join(r.d.Make(r.ctx, nodes[i]), r.d.Start(r.ctx, nodes[i].Sliver))
	})
	if r.s.Links {
		// Link i joins node i and the next one.
		each("connect and restart", func(i int) error {
			return errors.Join(r.d.Connect(r.ctx, r.link(i+1, nodes[i], nodes[(i+1)%count])), r.d.Restart(r.ctx, nodes[i].Sliver))
		})
		for i := range count {
			r.pings(nodes[i], i+1, nodes[(i+1)%count])
		}
	}
	each("look", func(i int) error {
		_, err := r.d.List(r.ctx)
		_, shell := r.shell(nodes[i].Sliver, "true")
		return errors.Join(err, shell)
	})
	each("remove", func(i int) error {
		return errors.Join(r.d.Remove(r.ctx, sliver(fmt.Sprintf("link-%d", i+1))), r.d.Remove(r.ctx, nodes[i].Sliver))
	})
}

func testManagerRestart(t *testing.T, r *rig) {
	if _, ok := r.d.(interface{ Close() error }); !ok || r.s.Worker == nil {
		t.Skip("nodes of this driver end with the manager")
	}
	a, b, stopped := r.node(1, 1), r.node(2, 1), r.node(3)
	ann, bob := r.person("ann"), r.person("bob")
	a.Users = users(ann)
	r.up(a, b)
	r.must(r.d.Make(r.ctx, stopped), "make")
	if r.s.Links {
		r.must(r.d.Connect(r.ctx, r.link(1, a, b)), "connect")
	}
	// A program of the user's that must go on.
	r.says(a.Sliver, "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! > /run/pid; echo mark > /run/mark; echo ok", "ok")
	const alive = "kill -0 $(cat /run/pid) && cat /run/mark"
	r.reopen()
	r.shows(a.Sliver, drivers.NodeKind, true)
	r.shows(b.Sliver, drivers.NodeKind, true)
	r.shows(stopped.Sliver, drivers.NodeKind, false)
	r.says(a.Sliver, alive, "mark")
	r.must(r.d.Start(r.ctx, a.Sliver), "start what runs")
	r.says(a.Sliver, alive, "mark")
	if r.s.Links {
		r.shows(r.link(1, a, b).Sliver, drivers.LinkKind, false)
		r.pings(a, 1, b)
		r.must(r.d.Restart(r.ctx, b.Sliver), "restart a node that was taken over")
		r.pings(a, 1, b)
	}
	var door door
	if !r.s.Hollow {
		door = r.door(a.Sliver)
		if out, err := door.ssh(ann, "ann", "id -un"); err != nil || out != "ann" {
			t.Errorf("login after the restart: %q, %v", out, err)
		}
	}
	r.must(r.d.UpdateUsers(r.ctx, a.Sliver, users(bob)), "update users")
	if !r.s.Hollow {
		if out, err := door.ssh(bob, "bob", "id -un"); err != nil || out != "bob" {
			t.Errorf("login of a new user after the restart: %q, %v", out, err)
		}
	}
	r.must(r.d.Start(r.ctx, stopped.Sliver), "start a node of before")
	r.must(r.d.Stop(r.ctx, a.Sliver), "stop a node that was taken over")
	r.notRunning(a)
	r.reopen()
	r.shows(a.Sliver, drivers.NodeKind, false)
	r.must(r.d.Start(r.ctx, a.Sliver), "start")
	if r.s.Hollow {
		return
	}
	if out, err := r.door(a.Sliver).ssh(bob, "bob", "id -un"); err != nil || out != "bob" {
		t.Errorf("login after a restart of the node: %q, %v", out, err)
	}
}
