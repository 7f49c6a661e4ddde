package zoe

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"croft/aggregate"
	"croft/languages/zapp"
	"croft/rest"
	"croft/slivers"
)

// maxLine bounds a line of a log; longer ones are broken.
const maxLine = 64 << 10

// logs streams what a service writes until it ends, each line after the time
// at which it was read.
func (c *call) logs() error {
	e, i, err := c.instance()
	if err != nil {
		return err
	}
	select {
	case c.streams <- struct{}{}:
		defer func() { <-c.streams }()
	default:
		return rest.Refuse(http.StatusServiceUnavailable, "too many logs are being followed: try again later")
	}
	control := http.NewResponseController(c.w)
	// A stream lasts as long as its service.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.WriteHeader(http.StatusOK)
	_ = control.Flush()
	out := &stamped{out: c.w, flush: control.Flush, clock: c.Clock}
	err = c.follow(c.ctx, e, i, out)
	out.end()
	if err != nil && c.ctx.Err() == nil {
		c.Log.Warn("a log broke off", "execution", e.ID, "service", string(i.Node), "error", err)
	}
	return nil
}

// follow writes what the service of a node writes, once it has begun.
func (c *call) follow(ctx context.Context, e *execution, i instance, w io.Writer) error {
	step := zapp.StepOf(i.Node)
	for ctx.Err() == nil {
		changed := c.Service.Changed()
		views, err := c.Service.Startup(ctx, c.principal(e), aggregate.Target{Slice: e.Slice}, false)
		if err != nil && !missing(err) {
			return err
		}
		state := slivers.StepState("")
		for _, v := range views {
			if v.Name == step || e.derived() && v.Node == i.Node && (state == "" || state == slivers.StepDone) {
				step, state = v.Name, v.State // of several, the one that goes on
			}
		}
		switch state {
		case slivers.StepRunning, slivers.StepDone, slivers.StepFailed:
			err := c.Service.FollowStep(ctx, c.principal(e), e.Slice, step, w)
			if missing(err) {
				return nil
			}
			return err
		case slivers.StepSkipped:
			return nil
		}
		now := c.snapshot(func(o *execution) bool { return o.ID == e.ID })
		if len(now) == 0 {
			return nil
		}
		if now[0].Status.ended() || now[0].Status == cleaning {
			return c.kept(now[0], i, w)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-c.After(c.Every):
		}
	}
	return ctx.Err()
}

// stamped writes lines, each after the time at which it was written.
type stamped struct {
	out   io.Writer
	flush func() error
	clock func() time.Time
	line  []byte
}

func (s *stamped) Write(p []byte) (int, error) {
	s.line = append(s.line, p...)
	for {
		k := bytes.IndexByte(s.line, '\n')
		if k < 0 && len(s.line) <= maxLine {
			return len(p), nil
		}
		if k < 0 {
			k = maxLine
		}
		text := bytes.TrimSuffix(s.line[:k], []byte("\r"))
		err := s.write(text)
		s.line = bytes.TrimPrefix(s.line[k:], []byte("\n"))
		if err != nil {
			return 0, err
		}
	}
}

func (s *stamped) write(text []byte) error {
	// Clients take other ends of lines for ones, too.
	text = bytes.ToValidUTF8(bytes.Map(func(r rune) rune {
		switch r {
		case '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
			return ' '
		}
		return r
	}, text), []byte("\ufffd"))
	line := append([]byte(s.clock().UTC().Format("2006-01-02T15:04:05.000000Z")+" "), text...)
	if _, err := s.out.Write(append(line, '\n')); err != nil {
		return err
	}
	return s.flush()
}

// end writes a last line that was not ended.
func (s *stamped) end() {
	if len(s.line) > 0 {
		_ = s.write(s.line)
		s.line = nil
	}
}
