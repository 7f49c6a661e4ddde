// Package control is the driver's side of what nodeinit serves inside of nodes:
// commands and accounts, over an SSH connection that only the driver can make.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"croft/drivers"
	"croft/drivers/internal/nodeinit"
	"croft/request"
)

// Handshake begins the driver's connection to a node's init over a stream. The
// host key tells that it is the node; that the node asks for no proof is the
// stream's business: only the driver can open it.
func Handshake(ctx context.Context, c net.Conn, hostKey ssh.PublicKey) (*ssh.Client, error) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	conn, channels, requests, err := ssh.NewClientConn(c, "control", &ssh.ClientConfig{
		User: "driver", HostKeyCallback: ssh.FixedHostKey(hostKey),
	})
	if err != nil {
		c.Close()
		return nil, errors.Join(err, ctx.Err())
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// Exec runs a command in the node, as drivers.Driver says it. When the context
// ends it closes the connection.
func Exec(ctx context.Context, conn *ssh.Client, c drivers.Command) error {
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

// SetAccounts tells a running node who its users are. When the context ends it
// closes the connection.
func SetAccounts(ctx context.Context, conn *ssh.Client, users []request.User) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	ch, requests, err := conn.OpenChannel(nodeinit.ChannelAccounts, nil)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	go ssh.DiscardRequests(requests)
	if err := json.NewEncoder(ch).Encode(Accounts(users)); err != nil {
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

// Accounts are users as nodes know them.
func Accounts(users []request.User) []nodeinit.Account {
	out := []nodeinit.Account{}
	for _, u := range users {
		out = append(out, nodeinit.Account{Login: u.Login, Note: u.URN.String(), Keys: u.Keys})
	}
	return out
}
