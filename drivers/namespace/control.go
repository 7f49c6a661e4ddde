package namespace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/internal/control"
	"croft/drivers/internal/process"
	"croft/request"
	"croft/urn"
)

// Exec implements drivers.Driver. The command ends with the context, and with
// the manager.
func (d *Driver) Exec(ctx context.Context, sliver urn.URN, c drivers.Command) error {
	n, err := d.find(sliver)
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	p := n.running()
	if p == nil {
		return fmt.Errorf("exec in node %s: %w", sliver, drivers.ErrNotRunning)
	}
	if len(c.Args) == 0 {
		return fmt.Errorf("exec in node %s: no command given", sliver)
	}
	if err := d.exec(ctx, n, p, c); err != nil {
		var exit *drivers.ExitError
		if p.Ended() && !errors.As(err, &exit) {
			err = errors.Join(err, drivers.ErrNotRunning)
		}
		return fmt.Errorf("exec in node %s: %s: %w", sliver, c.Args[0], err)
	}
	return nil
}

func (d *Driver) exec(ctx context.Context, n *node, p *process.Process, c drivers.Command) error {
	conn, err := d.dialControl(ctx, n, p)
	if err != nil {
		return err
	}
	defer conn.Close()
	return control.Exec(ctx, conn, c)
}

// setAccounts tells a running node who its users are.
func (d *Driver) setAccounts(ctx context.Context, n *node, p *process.Process, users []request.User) error {
	conn, err := d.dialControl(ctx, n, p)
	if err != nil {
		return err
	}
	defer conn.Close()
	return control.SetAccounts(ctx, conn, users)
}

// dialControl connects to a node's init. The socket lies where only the host's
// root gets, so that the node asks for no proof; its host key tells that it is
// the node.
func (d *Driver) dialControl(ctx context.Context, n *node, p *process.Process) (*ssh.Client, error) {
	key, err := d.hostKey(n)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenFile(d.state.nodeDir(n.slot), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("reach the node's init: %w", err)
	}
	defer dir.Close()
	var c net.Conn
	// From inside the node's network: the node's end of the connection belongs
	// to the network that this end is in, and must not be of the host's.
	err = inNetwork(p, func() error {
		var dialer net.Dialer
		c, err = dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/control", dir.Fd()))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reach the node's init: %w", err)
	}
	conn, err := control.Handshake(ctx, c, key.PublicKey())
	if err != nil {
		return nil, fmt.Errorf("reach the node's init: %w", err)
	}
	return conn, nil
}
