package startup_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"croft/drivers"
	"croft/startup"
	"croft/urn"
)

// local is a driver whose only node is this machine: commands end with their
// context, as those of real drivers do, and what they leave in sessions of its
// own does not.
type local struct {
	drivers.Driver
	most    int64 // of what a command is given to read; 0 for all
	dialled []string
	to      string // where every dial leads to; "" lets it fail
}

var errUnreachable = errors.New("unreachable")

func (l *local) Exec(ctx context.Context, _ urn.URN, c drivers.Command) error {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	if l.most > 0 && c.Stdin != nil {
		cmd.Stdin = io.LimitReader(c.Stdin, l.most)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit) && exit.Exited():
		return &drivers.ExitError{Status: exit.ExitCode()}
	}
	return err
}

func (l *local) Dial(ctx context.Context, _ urn.URN, network, address string) (net.Conn, error) {
	l.dialled = append(l.dialled, address)
	if l.to == "" {
		return nil, errUnreachable
	}
	return new(net.Dialer).DialContext(ctx, network, l.to)
}

func here(t *testing.T) startup.Node {
	t.Helper()
	return startup.Node{Driver: &local{}, Dir: t.TempDir()}
}

// patience is how long anything may take before a test gives up.
const patience = time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
