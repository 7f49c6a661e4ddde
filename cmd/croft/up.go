package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"croft/client"
	"croft/urn"
)

func (a *app) upCommand() *cobra.Command {
	var end string
	var wait time.Duration
	var values func() (map[string]any, error)
	var startup bool
	c := a.onSlice(&cobra.Command{
		Use:   "up SLICE FILE",
		Short: "Reserve, make and start what a request asks for, and wait until it is ready",
		Long: `Allocate, provision and start what the request in FILE asks for, and wait until
all of it is ready: until you can log in. Standard output gets the nodes and
their logins, standard error the progress. - reads standard input.

What is reserved but cannot be made is given back. What fails later stays as it
is, to be looked at (croft status) or given back (croft delete).

With --wait-startup, wait also until all steps of the nodes' start-up are over,
and fail if one of them failed (croft log tells why).`,
		Example: "  croft up exp1 request.rspec --end 3d\n  croft ssh exp1 node0",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, args []string) error {
		request, err := a.readRequest(args[1])
		if err != nil {
			return err
		}
		until, err := a.parseEnd(end)
		if err != nil {
			return err
		}
		inputs, err := values()
		if err != nil {
			return err
		}
		users, err := s.users()
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		show := newProgress(a.errs)
		d, err := s.Up(ctx, client.UpRequest{
			Slice: slice, Credentials: creds, Request: request, Users: users, End: until, Inputs: inputs,
		}, func(p client.Progress) {
			if p.Output != "" {
				show.pause()
				a.writeRemarks(p.Output)
			}
			show.report(p)
		})
		if err == nil && startup {
			err = s.AwaitStartup(ctx, urnsOf(d.Slivers), creds, show.steps)
		}
		show.close()
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				return fmt.Errorf("%w\nthe slivers are still there: %s, or %s", err, a.command("status "+args[0]), a.command("delete "+args[0]))
			}
			return err
		}
		if a.json {
			return a.writeJSON(d)
		}
		return a.writeNodes(d, s.who.URN)
	})
	endFlag(c, &end)
	values = inputFlags(c)
	c.Flags().BoolVar(&startup, "wait-startup", false, "wait also until the nodes' start-up is over")
	c.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait until all is ready")
	return c
}

// progress shows how far up has come: a bar on a terminal, lines elsewhere.
type progress struct {
	out   io.Writer
	bar   *progressbar.ProgressBar // nil: lines
	begun time.Time
	last  string
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, begun: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(-1,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetDescription(string(client.Allocating)),
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSpinnerType(14),
			progressbar.OptionSetWidth(30),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

// pause makes room for something else.
func (p *progress) pause() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

func (p *progress) report(r client.Progress) {
	if p.bar != nil {
		p.bar.Describe(string(r.Phase))
		if n := len(r.Slivers); n > 0 {
			p.bar.ChangeMax(n)
			// What is not ready yet is not the end, however far it is.
			_ = p.bar.Set(min(r.Done, n-1))
		}
		return
	}
	line := string(r.Phase)
	if n := len(r.Slivers); n > 0 && r.Phase != client.Provisioning {
		line += fmt.Sprintf(" (%d of %d slivers)", r.Done, n)
	}
	if line == p.last {
		return
	}
	p.last = line
	fmt.Fprintf(p.out, "%6.1fs  %s\n", time.Since(p.begun).Seconds(), line)
}

// steps tells how far the start-up is.
func (p *progress) steps(done, all int) {
	if all == 0 {
		return
	}
	line := fmt.Sprintf("start-up (%d of %d steps)", done, all)
	if p.bar != nil {
		p.bar.Describe(line)
		return
	}
	if line != p.last {
		p.last = line
		fmt.Fprintf(p.out, "%6.1fs  %s\n", time.Since(p.begun).Seconds(), line)
	}
}

func urnsOf(list []client.Sliver) []urn.URN {
	urns := make([]urn.URN, len(list))
	for i, v := range list {
		urns[i] = v.URN
	}
	return urns
}

func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Clear()
		fmt.Fprint(p.out, "\r"+strings.Repeat(" ", 8)+"\r")
	}
}
