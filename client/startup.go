package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"croft/urn"
)

// Step is a step of a node's start-up, as a Croft tells of it.
type Step struct {
	Name    string            `json:"croft_step"`
	Kind    string            `json:"croft_kind"`
	State   string            `json:"croft_state"` // waiting, running, done, failed, skipped
	Attempt int               `json:"croft_attempt"`
	Status  int               `json:"croft_status"` // exit status
	Reason  string            `json:"croft_reason,omitempty"`
	Started time.Time         `json:"croft_started,omitzero"`
	Ended   time.Time         `json:"croft_ended,omitzero"`
	Alive   bool              `json:"croft_alive,omitempty"` // a service that runs
	Outputs map[string]string `json:"croft_outputs,omitempty"`
	Output  string            `json:"croft_output,omitempty"` // if it was asked for
}

// Over reports whether the step has ended, well or not.
func (s Step) Over() bool { return s.State == "done" || s.State == "failed" || s.State == "skipped" }

func (r *reader) steps(v any, where string) []Step {
	if v == nil {
		return nil
	}
	var out []Step
	for i, item := range r.list(v, where) {
		at := fmt.Sprintf("%s[%d]", where, i)
		m := r.object(item, at)
		if r.err != nil {
			return nil
		}
		s := Step{
			Name: r.text(m, "croft_step", at), Kind: r.text(m, "croft_kind", at), State: r.text(m, "croft_state", at),
			Attempt: r.number(m, "croft_attempt", at), Status: r.number(m, "croft_status", at), Reason: r.text(m, "croft_reason", at),
			Started: r.time(m, "croft_started", at), Ended: r.time(m, "croft_ended", at), Output: r.text(m, "croft_output", at),
		}
		s.Alive, _ = m["croft_alive"].(bool)
		if m["croft_outputs"] != nil {
			given := r.object(m["croft_outputs"], at+".croft_outputs")
			s.Outputs = make(map[string]string, len(given))
			for name := range given {
				s.Outputs[name] = r.text(given, name, at+".croft_outputs")
			}
		}
		out = append(out, s)
	}
	return out
}

// LogOptions direct Log.
type LogOptions struct {
	Output  bool // what steps have written
	Console bool // the consoles of nodes
}

// Log is Status with what slivers of a Croft have written.
func (c *Client) Log(ctx context.Context, targets []urn.URN, creds []Credential, o LogOptions) (*Described, error) {
	options := map[string]any{}
	if o.Output {
		options["croft_output"] = true
	}
	if o.Console {
		options["croft_console"] = true
	}
	return c.status(ctx, targets, creds, options)
}

// StartupError says that steps of nodes that are ready did not do well.
type StartupError struct{ Slivers []Sliver }

func (e *StartupError) Error() string {
	var b strings.Builder
	b.WriteString("the nodes are ready, but their start-up went wrong:")
	for _, s := range e.Slivers {
		for _, st := range s.Startup {
			if st.State == "failed" || st.State == "skipped" {
				fmt.Fprintf(&b, "\n  %s: %s", st.Name, st.State)
				if st.Reason != "" {
					b.WriteString(": " + st.Reason)
				}
			}
		}
	}
	return b.String()
}

// AwaitStartup waits until the steps of slivers are over. The error is a
// *StartupError if one failed or was skipped.
func (c *Client) AwaitStartup(ctx context.Context, targets []urn.URN, creds []Credential, report func(done, all int)) error {
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		status, err := retry(ctx, func() (*Described, error) { return c.Status(ctx, targets, creds) })
		if err != nil {
			return err
		}
		var all, over int
		for _, s := range status.Slivers {
			all += len(s.Startup)
			for _, st := range s.Startup {
				if st.Over() {
					over++
				}
			}
		}
		report(over, all)
		if over == all {
			wrong := slices.DeleteFunc(status.Slivers, func(s Sliver) bool {
				return !slices.ContainsFunc(s.Startup, func(st Step) bool { return st.State == "failed" || st.State == "skipped" })
			})
			if len(wrong) > 0 {
				return &StartupError{wrong}
			}
			return nil
		}
		if err := sleep(ctx, pause); err != nil {
			return fmt.Errorf("start-up: %d of %d steps are over: %w", over, all, err)
		}
	}
}
