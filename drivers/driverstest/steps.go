package driverstest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"croft/drivers"
	"croft/request"
	"croft/startup"
)

// testSteps runs steps of a start-up graph in a node, with what its image has.
func testSteps(t *testing.T, r *rig) {
	n := r.node(1)
	n.Users = users(r.person("ann"))
	r.up(n)
	root := func() bool {
		t.Helper()
		given, err := drivers.GivesRoot(r.ctx, r.d, n.Sliver)
		r.must(err, "ask for root")
		return given
	}()
	at := func() startup.Node { return startup.Node{Driver: r.d, Sliver: n.Sliver, NoRoot: !root} }
	account := "ann"
	if root {
		account = startup.Root
	}
	ended := func(a startup.Attempt, status int, output string) startup.Result {
		t.Helper()
		got, err := at().Read(r.ctx, a)
		r.must(err, "read")
		if !got.Ended || got.Status != status || string(got.Output.Head) != output {
			t.Errorf("step %s: ended %v with %d (%s) and wrote %q, want %d and %q", a.Step, got.Ended, got.Status, got.Life, got.Output.Head, status, output)
		}
		return got
	}
	command := func(text string) string { return startup.Command(&request.Run{Command: text}, nil) }

	user := startup.Attempt{Step: "user", Number: 1}
	r.must(at().Launch(r.ctx, user, "ann", startup.Once, command(`id -un; echo "$HOME"; pwd; echo K=V > $CROFT_OUTPUTS; exit 3`), nil), "launch")
	got, err := at().Read(r.ctx, user)
	r.must(err, "read")
	lines := strings.Split(string(got.Output.Head), "\n")
	if got.Status != 3 || got.Outputs["K"] != "V" || len(lines) != 4 || lines[0] != "ann" || lines[1] != lines[2] {
		t.Errorf("a user's step: %+v, it wrote %q", got, got.Output.Head)
	}

	// It outlives who launched it, and is found again.
	long := startup.Attempt{Step: "long", Number: 1}
	text := command("echo run; while [ ! -e /var/tmp/go ]; do sleep 1; done; echo over; rm /var/tmp/go")
	ctx, cancel := context.WithCancel(r.ctx)
	begun := make(chan struct{})
	broken := make(chan error, 1)
	go func() {
		broken <- at().Launch(ctx, long, account, startup.Once, text, func() { close(begun) })
	}()
	select {
	case <-begun:
	case err := <-broken:
		t.Fatalf("launching ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the step does not begin")
	}
	cancel()
	<-broken
	if _, closes := r.d.(io.Closer); closes && r.s.Worker != nil {
		r.reopen()
	}
	if got, err := at().Read(r.ctx, long); err != nil || got.Life != startup.Alive {
		t.Errorf("without its launcher: %+v, %v", got, err)
	}
	again := make(chan error, 1)
	go func() { again <- at().Launch(r.ctx, long, account, startup.Once, text, nil) }()
	r.must(at().Write(r.ctx, request.File{Path: "/var/tmp/go", Mode: 0o644}, account), "write a file")
	r.must(<-again, "launch again")
	ended(long, 0, "run\nover\n")

	// It can be ended.
	endless := startup.Attempt{Step: "endless", Number: 1}
	begun = make(chan struct{})
	go func() {
		again <- at().Launch(r.ctx, endless, "ann", startup.Again, command("sleep 1000"), func() { close(begun) })
	}()
	<-begun
	r.must(at().End(r.ctx, endless), "end")
	r.must(<-again, "launch what is ended")
	if got, err := at().Read(r.ctx, endless); err != nil || got.Life != startup.Gone || got.Ended {
		t.Errorf("after End: %+v, %v", got, err)
	}

	// An archive belongs to whom it is unpacked for.
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	r.must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o640, Size: 4}), "make an archive")
	_, err = w.Write([]byte("text"))
	r.must(err, "make an archive")
	r.must(w.Close(), "make an archive")
	_, err = at().Install(r.ctx, startup.Fetcher{Dir: t.TempDir()}, &request.Install{URL: "a.tar", Path: "/var/tmp/site", Content: archive.Bytes()}, "ann")
	r.must(err, "install")
	r.says(n.Sliver, "cat /var/tmp/site/d/f; echo; ls -l /var/tmp/site/d/f | cut -c1-10; set -- $(ls -l /var/tmp/site/d/f); echo $3; rm -r /var/tmp/site", "text\n-rw-r-----\nann")

	if !root {
		err := at().Launch(r.ctx, startup.Attempt{Step: "root", Number: 1}, startup.Root, startup.Once, command("id"), nil)
		var refused *startup.Refusal
		if !errors.As(err, &refused) {
			t.Errorf("a step of root's where users are not root: %v", err)
		}
	}

	// The hosts file keeps what is the node's own.
	if root {
		r.says(n.Sliver, "echo 10.9.9.9 mine >> /etc/hosts; echo ok", "ok")
		r.must(at().SetHosts(r.ctx, "10.8.8.8 other\n"), "set hosts")
		r.must(at().SetHosts(r.ctx, "10.8.8.8 other\n10.8.8.9 third\n"), "set hosts")
		r.says(n.Sliver, "grep -c -e mine -e other -e third /etc/hosts; grep -c 'begin croft' /etc/hosts", "3\n1")
		r.must(at().SetHosts(r.ctx, ""), "set hosts")
		r.says(n.Sliver, "grep -c -e other -e croft /etc/hosts; sed -i /mine/d /etc/hosts; echo ok", "0\nok")
	}
}
