package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/internal/control"
	"croft/drivers/internal/nodeinit"
	"croft/drivers/wiring"
	"croft/urn"
)

// Exec implements drivers.Driver. The command ends with the context, and with
// the manager.
func (d *Driver) Exec(ctx context.Context, sliver urn.URN, c drivers.Command) error {
	n, err := d.up(ctx, sliver)
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	if len(c.Args) == 0 {
		return fmt.Errorf("exec in node %s: no command given", sliver)
	}
	conn, err := d.control(ctx, n)
	if err == nil {
		err = control.Exec(ctx, conn, c)
		conn.Close()
	}
	if err != nil {
		return fmt.Errorf("exec in node %s: %s: %w", sliver, c.Args[0], err)
	}
	return nil
}

// Dial implements drivers.Driver. The address is literal.
func (d *Driver) Dial(ctx context.Context, sliver urn.URN, network, address string) (net.Conn, error) {
	n, err := d.up(ctx, sliver)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if !strings.HasPrefix(network, "tcp") && !strings.HasPrefix(network, "udp") {
		return nil, fmt.Errorf("dial node %s: %s %s: want tcp or udp", sliver, network, address)
	}
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("dial node %s: %s: want an IP address and a port: %w", sliver, address, err)
	}
	c, err := d.dialIn(ctx, n, network, address)
	if err != nil {
		return nil, fmt.Errorf("dial node %s: %w", sliver, err)
	}
	return c, nil
}

// dialIn connects from the node's network. On this machine a thread of the
// manager goes there; on another one, a program in the container connects.
func (d *Driver) dialIn(ctx context.Context, n *node, network, address string) (net.Conn, error) {
	far := func() (net.Conn, error) {
		if address == nodeinit.ControlName {
			return d.join(ctx, n, nodeinit.Control)
		}
		return d.join(ctx, n, network, address)
	}
	if !n.host.local() {
		return far()
	}
	ns, err := n.network(ctx)
	if errors.Is(err, errElsewhere) {
		return far()
	}
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	var conn net.Conn
	err = wiring.InNetwork(int(ns.Fd()), func() error {
		var dialer net.Dialer
		var err error
		conn, err = dialer.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// up finds a node that runs.
func (d *Driver) up(ctx context.Context, sliver urn.URN) (*node, error) {
	n, err := d.find(ctx, sliver)
	if err == nil && !n.running {
		return nil, fmt.Errorf("node %s: %w", sliver, drivers.ErrNotRunning)
	}
	return n, err
}

// control connects to a node's init.
func (d *Driver) control(ctx context.Context, n *node) (*ssh.Client, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(n.rec.HostKey))
	if err != nil {
		return nil, fmt.Errorf("read the node's host key: %w", err)
	}
	c, err := d.dialInit(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("reach the node's init: %w", err)
	}
	conn, err := control.Handshake(ctx, c, key)
	if err != nil {
		return nil, fmt.Errorf("reach the node's init: %w", err)
	}
	return conn, nil
}

// initPause is between two attempts to reach the init of a node that boots.
const initPause = 5 * time.Millisecond

// dialInit opens a stream to a node's init, for which it waits.
func (d *Driver) dialInit(ctx context.Context, n *node) (net.Conn, error) {
	for {
		c, err := d.dialIn(ctx, n, "unix", nodeinit.ControlName)
		if !errors.Is(err, unix.ECONNREFUSED) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(initPause):
		}
	}
}

// join runs a program in the node that connects to something there, and
// returns the stream that the program makes of it.
func (d *Driver) join(ctx context.Context, n *node, to ...string) (net.Conn, error) {
	cmd := nodeinit.Command(len(d.program.Libraries) > 0, nodeinit.StageConnect, to...)
	e, err := n.host.api.ExecCreate(ctx, n.id, client.ExecCreateOptions{
		User: "0", AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: cmd, WorkingDir: "/",
	})
	if isStopped(err) {
		return nil, errors.Join(drivers.ErrNotRunning, err)
	}
	if err := n.host.saw(err); err != nil {
		return nil, err
	}
	r, err := n.host.api.ExecAttach(ctx, e.ID, client.ExecAttachOptions{})
	if err := n.host.saw(err); err != nil {
		return nil, err
	}
	s := &stream{Conn: r.Conn, in: r.Reader}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	err = s.greet()
	if !stop() && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
