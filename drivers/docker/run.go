package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"croft/urn"
)

// start boots a node and waits until its users can log in.
func (d *Driver) start(ctx context.Context, n *node) error {
	ctx, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	began := !n.running
	if began {
		_, err := n.host.api.ContainerStart(ctx, n.id, client.ContainerStartOptions{})
		if err := n.host.saw(err); err != nil {
			return err
		}
	}
	err := d.settle(ctx, n)
	if err != nil && began {
		err = fmt.Errorf("%w%s", err, d.lastWords(context.WithoutCancel(ctx), n))
		err = errors.Join(err, d.stop(context.WithoutCancel(ctx), n, 0))
	}
	return err
}

// settle completes a container that runs: an earlier manager may have ended
// before it did.
func (d *Driver) settle(ctx context.Context, n *node) error {
	if err := d.plug(ctx, n); err != nil {
		return err
	}
	// The init answers when there are accounts and logins.
	conn, err := d.control(ctx, n)
	if err != nil {
		return err
	}
	return conn.Close()
}

// stop ends a node: asked, for at most grace, then made to.
func (d *Driver) stop(ctx context.Context, n *node, grace time.Duration) error {
	if err := d.unplug(ctx, n); err != nil {
		return err
	}
	return d.end(ctx, n.host, ending{Host: n.host.Name, ID: n.id}, grace)
}

const (
	maxLog    = 4 << 20
	lastLines = 5
)

// Log implements drivers.Driver.
func (d *Driver) Log(ctx context.Context, sliver urn.URN, w io.Writer) error {
	n, err := d.find(ctx, sliver)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	if err := n.log(ctx, w, "all"); err != nil {
		return fmt.Errorf("log of node %s: %w", sliver, err)
	}
	return nil
}

func (n *node) log(ctx context.Context, w io.Writer, tail string) error {
	r, err := n.host.api.ContainerLogs(ctx, n.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: tail})
	if err := n.host.saw(err); err != nil {
		return err
	}
	defer r.Close()
	_, err = stdcopy.StdCopy(w, w, io.LimitReader(r, maxLog))
	return err
}

// lastWords quotes the end of a node's console.
func (d *Driver) lastWords(ctx context.Context, n *node) string {
	var out bytes.Buffer
	if err := n.log(ctx, &out, strconv.Itoa(lastLines)); err != nil || out.Len() == 0 {
		return ""
	}
	return ": " + strings.ToValidUTF8(strings.TrimSpace(out.String()), "?")
}

// isStopped reports whether an error of the engine's says that a container
// does not run.
func isStopped(err error) bool { return errdefs.IsConflict(err) }
