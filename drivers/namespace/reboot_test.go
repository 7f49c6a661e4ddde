package namespace_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/namespace"
	"croft/urn"
)

// TestReboot takes away, while no manager runs, what a reboot takes away, and
// checks that the next manager makes it again.
func TestReboot(t *testing.T) {
	cfg := namespace.Config{Dir: t.TempDir()}
	o := newOne(t, cfg, nil)
	other := drivers.Node{
		Sliver: urn.MustParse("urn:publicid:IDN+isolation.example+sliver+two"), Slice: o.sliver, Hostname: "two",
		Interfaces: []drivers.Interface{{Name: "if0", Device: "eth1", Addresses: []netip.Prefix{netip.MustParsePrefix("10.66.0.2/24")}}},
	}
	link := drivers.Link{
		Sliver: urn.MustParse("urn:publicid:IDN+isolation.example+sliver+link"), Slice: o.sliver,
		Ends: []drivers.End{{Node: o.sliver, Interface: "if0"}, {Node: other.Sliver, Interface: "if0"}},
	}
	t.Cleanup(func() {
		if err := errors.Join(o.d.Remove(context.Background(), other.Sliver), o.d.Remove(context.Background(), link.Sliver)); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(o.d.Make(o.ctx, other), o.d.Start(o.ctx, other.Sliver), o.d.Connect(o.ctx, link)); err != nil {
		t.Fatal(err)
	}
	o.must("ping -n -c 1 10.66.0.2; echo kept > /root/file")
	if err := o.d.Close(); err != nil {
		t.Fatal(err)
	}

	runs, err := filepath.Glob(filepath.Join(cfg.Dir, "nodes", "*", "run.json"))
	if err != nil || len(runs) != 2 {
		t.Fatalf("running nodes %q, %v", runs, err)
	}
	for _, file := range runs {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var run map[string]any
		if err := json.Unmarshal(data, &run); err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(int(run["PID"].(float64)), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		// The PID is now that of somebody else: this test's.
		run["PID"], run["Boot"] = os.Getpid(), "another boot"
		if data, err = json.Marshal(run); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Unmount(filepath.Join(cfg.Dir, "switch"), unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}

	o.d = open(t, cfg)
	found, err := o.d.List(o.ctx)
	if err != nil || len(found) != 3 {
		t.Fatalf("List after the reboot: %+v, %v", found, err)
	}
	for _, f := range found {
		if !f.Whole || f.Running {
			t.Errorf("List after the reboot: %+v", f)
		}
	}
	if err := errors.Join(o.d.Start(o.ctx, o.sliver), o.d.Start(o.ctx, other.Sliver)); err != nil {
		t.Fatal(err)
	}
	if got := o.must("ping -n -c 1 -W 10 10.66.0.2 >/dev/null && cat /root/file"); got != "kept" {
		t.Errorf("after the reboot the node says %q", got)
	}
}
