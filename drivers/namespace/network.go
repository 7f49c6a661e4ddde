package namespace

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"croft/drivers/internal/process"
	"croft/drivers/wiring"
)

// inNetwork runs f on a thread that is in the network namespace of a process,
// so that the sockets it opens belong there.
func inNetwork(p *process.Process, f func() error) error {
	return wiring.OnThread(func() error {
		err := p.Control(func(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) })
		if err != nil {
			return fmt.Errorf("enter the node's network: %w", err)
		}
		return f()
	})
}

// dialIn connects from inside a node. The address is literal: a name would be
// looked up on the host.
func dialIn(ctx context.Context, p *process.Process, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") && !strings.HasPrefix(network, "udp") {
		return nil, fmt.Errorf("dial %s %s: want tcp or udp", network, address)
	}
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("dial %s: want an IP address and a port: %w", address, err)
	}
	var conn net.Conn
	err := inNetwork(p, func() error {
		var d net.Dialer
		var err error
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}
