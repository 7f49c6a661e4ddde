package namespace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/internal/nodeinit"
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
		if p.ended() && !errors.As(err, &exit) {
			err = errors.Join(err, drivers.ErrNotRunning)
		}
		return fmt.Errorf("exec in node %s: %s: %w", sliver, c.Args[0], err)
	}
	return nil
}

func (d *Driver) exec(ctx context.Context, n *node, p *initProcess, c drivers.Command) error {
	conn, err := d.dialControl(ctx, n, p)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	what, err := json.Marshal(nodeinit.Exec{Args: c.Args, Env: c.Env, User: c.User})
	if err != nil {
		return err
	}
	ch, requests, err := conn.OpenChannel(nodeinit.ChannelExec, what)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	defer ch.Close()
	ended := make(chan error, 1)
	go func() {
		err := errors.New("the node ended the command's session")
		for r := range requests {
			switch r.Type {
			case "exit-status":
				var m struct{ Status uint32 }
				if ssh.Unmarshal(r.Payload, &m) == nil {
					err = exitStatus(int(m.Status))
				}
			case "exit-signal":
				var m struct {
					Name    string
					Core    bool
					Message string
					Lang    string
				}
				if ssh.Unmarshal(r.Payload, &m) == nil {
					err = exitStatus(128 + int(nodeinit.Signals[m.Name])) // as shells say it
				}
			}
			if r.WantReply {
				r.Reply(false, nil)
			}
		}
		ended <- err
	}()
	go func() {
		if c.Stdin != nil {
			io.Copy(ch, c.Stdin)
		}
		ch.CloseWrite()
	}()
	stdout, stderr := outputs(c)
	var out sync.WaitGroup
	var outErr, errErr error
	out.Go(func() { _, outErr = io.Copy(stdout, ch) })
	out.Go(func() { _, errErr = io.Copy(stderr, ch.Stderr()) })
	out.Wait()
	if outErr != nil || errErr != nil {
		ch.Close()
	}
	err = <-ended
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, outErr, errErr)
}

// outputs returns writers that two goroutines may use, also when the command
// has one for both streams.
func outputs(c drivers.Command) (stdout, stderr io.Writer) {
	var mu sync.Mutex
	guard := func(w io.Writer) io.Writer {
		if w == nil {
			return io.Discard
		}
		return writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return w.Write(p)
		})
	}
	return guard(c.Stdout), guard(c.Stderr)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func exitStatus(status int) error {
	if status == 0 {
		return nil
	}
	return &drivers.ExitError{Status: status}
}

// setAccounts tells a running node who its users are.
func (d *Driver) setAccounts(ctx context.Context, n *node, p *initProcess, users []request.User) error {
	conn, err := d.dialControl(ctx, n, p)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	ch, requests, err := conn.OpenChannel(nodeinit.ChannelAccounts, nil)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	go ssh.DiscardRequests(requests)
	if err := json.NewEncoder(ch).Encode(accounts(users)); err != nil {
		return fmt.Errorf("tell the node: %w", errors.Join(err, ctx.Err()))
	}
	// A node that has answered and closed already needs no end of the input.
	if err := ch.CloseWrite(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("tell the node: %w", errors.Join(err, ctx.Err()))
	}
	const maxAnswer = 4096
	answer, err := io.ReadAll(io.LimitReader(ch, maxAnswer))
	if err != nil || ctx.Err() != nil {
		return fmt.Errorf("wait for the node: %w", errors.Join(err, ctx.Err()))
	}
	if len(answer) > 0 {
		return fmt.Errorf("the node says: %s", bytes.ToValidUTF8(answer, []byte("?")))
	}
	return nil
}

// dialControl connects to a node's init. The socket lies where only the host's
// root gets, so that the node asks for no proof; its host key tells that it is
// the node.
func (d *Driver) dialControl(ctx context.Context, n *node, p *initProcess) (*ssh.Client, error) {
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
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	conn, channels, requests, err := ssh.NewClientConn(c, "control", &ssh.ClientConfig{
		User: "driver", HostKeyCallback: ssh.FixedHostKey(key.PublicKey()),
	})
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("reach the node's init: %w", errors.Join(err, ctx.Err()))
	}
	return ssh.NewClient(conn, channels, requests), nil
}
