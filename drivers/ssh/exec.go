package ssh

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"croft/drivers"
	"croft/urn"
)

// Exec runs a command on a machine, over a connection of its own: servers
// bound the sessions of one.
func (d *Driver) Exec(ctx context.Context, sliver urn.URN, c drivers.Command) error {
	r, m, err := d.nodeAndMachine(sliver)
	switch {
	case err != nil:
		return fmt.Errorf("command in %s: %w", sliver, err)
	case !r.Running:
		return fmt.Errorf("command in %s: %w", sliver, drivers.ErrNotRunning)
	case len(c.Args) == 0 || strings.Contains(c.Args[0], "="):
		return fmt.Errorf("command in %s: %q is no program", sliver, c.Args)
	}
	for _, v := range c.Env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" || strings.HasPrefix(name, "-") {
			return fmt.Errorf("command in %s: %q is not NAME=value", sliver, v)
		}
	}
	err = d.exec(ctx, m, c)
	var exit *drivers.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("command in %s: %w", sliver, err)
	}
	return err
}

func (d *Driver) exec(ctx context.Context, m Machine, c drivers.Command) error {
	client, err := d.dial(ctx, m)
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := newSession(ctx, client)
	if err != nil {
		return err
	}
	mark := "croft-" + rand.Text()
	out, errs := newMarked(c.Stdout, mark), newMarked(c.Stderr, mark)
	s.Stdout, s.Stderr = out, errs
	stdin, err := s.StdinPipe()
	if err != nil {
		return err
	}
	args := append([]string{mark, c.User}, c.Env...)
	if err := s.Start(m.shell(execScript, append(args, c.Args...))); err != nil {
		return fmt.Errorf("machine %s: %w", m.Name, err)
	}
	go func() {
		if c.Stdin != nil {
			// A command need not read all of it.
			_, _ = io.Copy(stdin, c.Stdin)
		}
		stdin.Close()
	}()
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	outDone, errsDone := out.done, errs.done
	for outDone != nil || errsDone != nil {
		select {
		case <-outDone:
			outDone = nil
		case <-errsDone:
			errsDone = nil
		case err := <-ended:
			// The writers have all that came: without marks, the connection broke.
			if !out.found() || !errs.found() {
				return fmt.Errorf("machine %s: the connection broke: %w", m.Name, errors.Join(err, ctx.Err()))
			}
			outDone, errsDone = nil, nil
		case <-ctx.Done():
			d.stopExec(ctx, m, mark)
			return ctx.Err()
		}
	}
	if err := errors.Join(out.failed(), errs.failed()); err != nil {
		return err
	}
	text := errs.trailer()
	if text == "stopped" {
		return drivers.ErrNotRunning
	}
	status, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("machine %s says that the command ended with %q", m.Name, text)
	}
	if status != 0 {
		return &drivers.ExitError{Status: status}
	}
	return nil
}

// stopExec ends a command whose context has ended.
func (d *Driver) stopExec(ctx context.Context, m Machine, mark string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.c.Answer)
	defer cancel()
	if _, err := d.do(ctx, m, "", "stop-exec", mark); err != nil {
		d.c.Logger.Warn("ending a command", "host", m.Host.String(), "error", err)
	}
}

// marked passes on what a command writes, up to the mark that says that it has
// ended. It holds back only what may be the beginning of the mark.
type marked struct {
	to   io.Writer // nil: nowhere
	mark []byte
	done chan struct{} // closed when the mark was seen, and what follows it

	mu    sync.Mutex
	held  []byte
	seen  bool
	rest  []byte // after the mark, to the end of its line
	whole bool
	err   error
}

func newMarked(to io.Writer, mark string) *marked {
	return &marked{to: to, mark: append([]byte{1}, mark...), done: make(chan struct{})}
}

// maxTrailer bounds what follows a mark.
const maxTrailer = 64

func (w *marked) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(p)
	if w.seen {
		w.trail(p)
		return n, nil
	}
	w.held = append(w.held, p...)
	if at := bytes.Index(w.held, w.mark); at >= 0 {
		rest := w.held[at+len(w.mark):]
		w.pass(w.held[:at])
		w.seen = true
		w.trail(rest)
		return n, nil
	}
	keep := overlap(w.held, w.mark)
	w.pass(w.held[:len(w.held)-keep])
	w.held = append(w.held[:0], w.held[len(w.held)-keep:]...)
	return n, nil
}

// overlap is the length of the longest end of text that begins mark.
func overlap(text, mark []byte) int {
	for n := min(len(text), len(mark)-1); n > 0; n-- {
		if bytes.HasPrefix(mark, text[len(text)-n:]) {
			return n
		}
	}
	return 0
}

func (w *marked) pass(p []byte) {
	if w.to == nil || w.err != nil || len(p) == 0 {
		return
	}
	_, w.err = w.to.Write(p)
}

func (w *marked) trail(p []byte) {
	if w.whole {
		return
	}
	w.rest = append(w.rest, p[:min(len(p), maxTrailer)]...)
	if end := bytes.IndexByte(w.rest, '\n'); end >= 0 || len(w.rest) >= maxTrailer {
		w.rest = w.rest[:max(end, 0)]
		w.whole = true
		close(w.done)
	}
}

func (w *marked) found() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.whole
}

func (w *marked) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *marked) trailer() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(string(w.rest))
}
