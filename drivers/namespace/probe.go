package namespace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/urn"
)

// checkDir is where Check makes its node, a state directory of its own inside
// of the driver's.
const checkDir = "check"

// Check implements drivers.Driver. It looks for what is known to be needed,
// and then makes a node and throws it away, because no list of needs is ever
// complete.
func (d *Driver) Check(ctx context.Context) error {
	if err := d.needs(); err != nil {
		return fmt.Errorf("namespace driver: %w", err)
	}
	if err := d.tryNode(ctx); err != nil {
		return fmt.Errorf("namespace driver: a node made as a test does not work: %w", err)
	}
	return nil
}

func (d *Driver) needs() error {
	if os.Geteuid() != 0 {
		return errors.New("not running as root: making user ids, bridges and overlays for nodes needs it (run croft serve as root)")
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return fmt.Errorf("ask for the kernel's version: %w", err)
	}
	release := string(bytes.TrimRight(uts.Release[:], "\x00"))
	if major, minor := 0, 0; true {
		fmt.Sscanf(release, "%d.%d", &major, &minor)
		if major < 5 || major == 5 && minor < 19 {
			return fmt.Errorf("kernel %s: overlays with mapped owners need Linux 5.19 or later (Debian 12, Ubuntu 22.10)", release)
		}
	}
	for _, limit := range []string{"user", "mnt", "net", "pid", "ipc", "uts"} {
		data, err := os.ReadFile("/proc/sys/user/max_" + limit + "_namespaces")
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the kernel has no %s namespaces", limit)
		}
		if err == nil && strings.TrimSpace(string(data)) == "0" {
			return fmt.Errorf("%s namespaces are switched off (sysctl user.max_%s_namespaces=10000)", limit, limit)
		}
	}
	file := d.state.in("attributes")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return fmt.Errorf("write to the state directory: %w", err)
	}
	defer os.Remove(file)
	if err := unix.Setxattr(file, "user.overlay.test", []byte("y"), 0); err != nil {
		return fmt.Errorf("the file system of %s has no user attributes: %w (put it on ext4, xfs or btrfs)", d.state.path, err)
	}
	return nil
}

func (d *Driver) tryNode(ctx context.Context) (err error) {
	if d.cfg.IDs.Nodes <= checkSlots {
		return nil // this is the driver of a check
	}
	if err := d.wipeCheck(); err != nil {
		return err
	}
	inner, err := d.openCheck()
	if err != nil {
		return err
	}
	sliver := urn.URN{Authority: "check", Type: urn.Sliver, Name: "check"}
	defer func() {
		err = errors.Join(err, inner.Remove(context.WithoutCancel(ctx), sliver), inner.Close(), removeTree(d.state.in(checkDir)))
	}()
	node := drivers.Node{Sliver: sliver, Slice: sliver, Hostname: "check"}
	if err := inner.Make(ctx, node); err != nil {
		return err
	}
	if err := inner.Start(ctx, sliver); err != nil {
		return err
	}
	return inner.Exec(ctx, sliver, drivers.Command{Args: []string{"/bin/sh", "-c", "test \"$(id -u)\" = 0"}})
}

// openCheck opens a driver below this one, on the range of ids that no node
// of this one gets.
func (d *Driver) openCheck() (*Driver, error) {
	cfg := d.cfg
	cfg.Dir, cfg.Wires = d.state.in(checkDir), nil
	usable := uint32(d.cfg.IDs.Nodes - checkSlots)
	cfg.IDs = IDRange{First: d.cfg.IDs.First + usable*idsPerNode, Nodes: checkSlots}
	return New(cfg)
}

// wipeCheck removes what a test node has left.
func (d *Driver) wipeCheck() error {
	dir := d.state.in(checkDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	inner, err := d.openCheck()
	if err != nil {
		return fmt.Errorf("clean up after a check: %w", err)
	}
	ctx := context.Background()
	found, err := inner.List(ctx)
	for _, f := range found {
		err = errors.Join(err, inner.Remove(ctx, f.Sliver))
	}
	if err := errors.Join(err, inner.Close()); err != nil {
		return fmt.Errorf("clean up after a check: %w", err)
	}
	return removeTree(dir)
}
