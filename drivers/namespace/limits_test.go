package namespace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"croft/capacity"
	"croft/drivers"
	"croft/drivers/namespace"
	"croft/urn"
)

// TestLimitsReached has nodes that want more than they may have: they go on, and it
// shows.
func TestLimitsReached(t *testing.T) {
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("SKIPPED: disks need mkfs.ext4 (apt-get install e2fsprogs)")
	}
	// An image of its own: the host's system may lie on what cannot be one.
	d := open(t, namespace.Config{Dir: t.TempDir(), Processes: 64, Images: images(makeImage(t))})
	defer d.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, test := range []struct {
		name, script string
		limits       capacity.Amount
		note         string
	}{
		{"memory", "head -c 400M /dev/zero | tail >/dev/null; true", capacity.Amount{Memory: 64}, "memory of 64 MiB"},
		{"processes", "i=0; trap 'kill $p' EXIT; while [ $i -lt 200 ]; do i=$((i+1)); sleep 60 & p=\"$p $!\"; done", capacity.Amount{}, "reached its 64 processes"},
		{"disk", "dd if=/dev/zero of=/var/tmp/big bs=1M count=200 2>/dev/null; stat -c %s /var/tmp/big", capacity.Amount{Disk: 48}, "disk of 48 MiB is full"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := drivers.Node{
				Sliver: urn.URN{Authority: "x", Type: urn.Sliver, Name: test.name}, Slice: urn.URN{Authority: "x", Type: urn.Slice, Name: "s"},
				Hostname: "limited", Image: "small", Capacity: test.limits,
			}
			if err := errors.Join(d.Make(ctx, n), d.Start(ctx, n.Sliver)); err != nil {
				t.Fatal(err)
			}
			defer d.Remove(ctx, n.Sliver)
			notes, err := d.Notes(ctx, n.Sliver)
			if err != nil || len(notes) > 0 {
				t.Fatalf("notes before: %q, %v", notes, err)
			}
			var out bytes.Buffer
			run := func(script string) error {
				out.Reset()
				return d.Exec(ctx, n.Sliver, drivers.Command{Args: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out})
			}
			err = run(test.script) // it may be the one that is killed
			notes, noteErr := d.Notes(ctx, n.Sliver)
			if noteErr != nil || !strings.Contains(strings.Join(notes, "; "), test.note) {
				t.Errorf("notes %q, %v, want %q; the script: %v %s", notes, noteErr, test.note, err, out.String())
			}
			// The node goes on, also after a restart, with what is on its disk.
			if err := run("rm -f /var/tmp/big; echo mark > /var/tmp/mark && sync && echo ok"); err != nil || !strings.Contains(out.String(), "ok") {
				t.Errorf("the node does not go on: %v %s", err, out.String())
			}
			if err := d.Restart(ctx, n.Sliver); err != nil {
				t.Fatal(err)
			}
			if err := run("cat /var/tmp/mark"); err != nil || strings.TrimSpace(out.String()) != "mark" {
				t.Errorf("after a restart: %v %s", err, out.String())
			}
			if notes, err := d.Notes(ctx, n.Sliver); err != nil || len(notes) > 0 {
				t.Errorf("notes after a restart: %q, %v", notes, err)
			}
		})
	}
	t.Run("cores", func(t *testing.T) { heldToCores(ctx, t, d) })
}

// heldToCores has two processes of a node want all of the processors.
func heldToCores(ctx context.Context, t *testing.T, d *namespace.Driver) {
	n := drivers.Node{
		Sliver: urn.URN{Authority: "x", Type: urn.Sliver, Name: "n"}, Slice: urn.URN{Authority: "x", Type: urn.Slice, Name: "s"},
		Hostname: "n", Image: "small", Capacity: capacity.Amount{Cores: capacity.Core / 5},
	}
	if err := errors.Join(d.Make(ctx, n), d.Start(ctx, n.Sliver)); err != nil {
		t.Fatal(err)
	}
	defer d.Remove(ctx, n.Sliver)
	// The image has a shell and little else.
	const script = `for i in 1 2; do while :; do :; done & p="$p $!"; done
read from rest </proc/uptime; sleep 2; read to rest </proc/uptime
kill $p; wait $p; times >/var/tmp/times; { read own; read children; } </var/tmp/times; echo $children $from $to`
	var out bytes.Buffer
	if err := d.Exec(ctx, n.Sliver, drivers.Command{Args: []string{"/bin/sh", "-c", script}, Stdout: &out}); err != nil {
		t.Fatalf("the node does not go on: %v %s", err, out.String())
	}
	var um, sm int
	var us, ss, from, to float64
	if _, err := fmt.Sscanf(out.String(), "%dm%fs %dm%fs %f %f", &um, &us, &sm, &ss, &from, &to); err != nil {
		t.Fatalf("the node says %q: %v", out.String(), err)
	}
	used := float64(60*(um+sm)) + us + ss
	// A fifth, and what a period of 100 ms makes of it at both ends.
	if allowed := (to-from)/5 + 0.3; used > allowed {
		t.Errorf("processes of a fifth of a core have used %.2f s in %.2f s, want at most %.2f", used, to-from, allowed)
	}
	if used == 0 {
		t.Errorf("nothing has run: %s", out.String())
	}
}

// TestFullOfProcesses asks much at once of a node that has no process left. Its
// init must need none itself.
func TestFullOfProcesses(t *testing.T) {
	d := open(t, namespace.Config{Dir: t.TempDir(), Processes: 40, Images: images(makeImage(t))})
	defer d.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n := drivers.Node{
		Sliver: urn.URN{Authority: "x", Type: urn.Sliver, Name: "n"}, Slice: urn.URN{Authority: "x", Type: urn.Slice, Name: "s"},
		Hostname: "n", Image: "small",
	}
	if err := errors.Join(d.Make(ctx, n), d.Start(ctx, n.Sliver)); err != nil {
		t.Fatal(err)
	}
	defer d.Remove(ctx, n.Sliver)
	run := func(script string) (string, error) {
		var out bytes.Buffer
		err := d.Exec(ctx, n.Sliver, drivers.Command{Args: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out})
		return out.String(), err
	}
	// The shell ends at the first that it cannot start; those before stay.
	if _, err := run("i=0; while [ $i -lt 60 ]; do i=$((i+1)); sleep 3 & done"); err == nil {
		t.Error("the node has more processes than it may have")
	}
	var refused atomic.Int32
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			for range 5 {
				if _, err := run("true"); err != nil {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	if refused.Load() == 0 {
		t.Error("the node has never been full")
	}
	for { // until the first processes have ended
		out, err := run("echo ok")
		if err == nil && out == "ok\n" {
			break
		}
		if n, _ := d.List(ctx); ctx.Err() != nil || len(n) != 1 || !n[0].Running {
			t.Fatalf("the node does not go on: %q, %v", out, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestOwners checks that files keep their owners over a restart.
func TestOwners(t *testing.T) {
	d := open(t, namespace.Config{Dir: t.TempDir()})
	defer d.Close()
	ctx := context.Background()
	n := drivers.Node{Sliver: urn.URN{Authority: "x", Type: urn.Sliver, Name: "n"}, Slice: urn.URN{Authority: "x", Type: urn.Slice, Name: "s"}, Hostname: "n"}
	if err := errors.Join(d.Make(ctx, n), d.Start(ctx, n.Sliver)); err != nil {
		t.Fatal(err)
	}
	defer d.Remove(ctx, n.Sliver)
	for _, script := range []string{"touch /var/tmp/f && chown 1234:56 /var/tmp/f", ""} {
		if script == "" {
			if err := d.Restart(ctx, n.Sliver); err != nil {
				t.Fatal(err)
			}
			script = "true"
		}
		var out bytes.Buffer
		err := d.Exec(ctx, n.Sliver, drivers.Command{Args: []string{"/bin/sh", "-c", script + " && stat -c %u:%g /var/tmp/f"}, Stdout: &out})
		if err != nil || strings.TrimSpace(out.String()) != "1234:56" {
			t.Errorf("the file is of %s, %v", out.String(), err)
		}
	}
}
