package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"croft/urn"
)

// Phase is how far Up has come.
type Phase string

// The phases, in their order.
const (
	Allocating   Phase = "allocating"
	Provisioning Phase = "provisioning"
	Making       Phase = "making"   // waits until slivers are made
	Starting     Phase = "starting" // waits until they are ready
	Done         Phase = "ready"
)

// Progress is told while Up works.
type Progress struct {
	Phase   Phase
	Slivers []Sliver
	// Done is how many of the slivers are through with the phase.
	Done int
	// Output is what the aggregate says about the request, once.
	Output string
}

// UpRequest is what Up is to bring up.
type UpRequest struct {
	Slice       urn.URN
	Credentials []Credential
	Request     string
	Users       []User
	End         time.Time      // zero leaves it to the aggregate
	Inputs      map[string]any // values for the parameters of the request
}

// Times between two questions to the aggregate, which grow slowly: what is ready
// is to be known soon after it is.
const (
	firstPoll = 100 * time.Millisecond
	lastPoll  = 2 * time.Second
)

// FailedError says that slivers did not become ready.
type FailedError struct{ Slivers []Sliver }

func (e *FailedError) Error() string {
	var b strings.Builder
	b.WriteString("not ready:")
	for _, s := range e.Slivers {
		fmt.Fprintf(&b, "\n  %s: %s", s.URN, s.Operational)
		if s.Error != "" {
			b.WriteString(": " + s.Error)
		}
	}
	return b.String()
}

// Up allocates what a request asks for, provisions and starts it and waits
// until it is ready. What is allocated but cannot be provisioned is given
// back; what fails later stays, to be looked at.
func (c *Client) Up(ctx context.Context, u UpRequest, report func(Progress)) (*Described, error) {
	report(Progress{Phase: Allocating})
	allocated, err := retry(ctx, func() (*Described, error) {
		return c.AllocateWith(ctx, u.Slice, u.Credentials, u.Request, u.End, u.Inputs)
	})
	if err != nil {
		return nil, err
	}
	mine := make([]urn.URN, len(allocated.Slivers))
	for i, s := range allocated.Slivers {
		mine[i] = s.URN
	}
	report(Progress{Phase: Provisioning, Slivers: allocated.Slivers, Output: allocated.Output})
	provisioned, err := retry(ctx, func() (*Described, error) {
		return c.Provision(ctx, mine, u.Credentials, ProvisionOptions{Users: u.Users, End: u.End})
	})
	if err != nil {
		var refused *APIError
		if errors.As(err, &refused) {
			if _, err2 := c.Delete(ctx, mine, u.Credentials, false); err2 != nil {
				return nil, fmt.Errorf("%w; giving back what was allocated: %w", err, err2)
			}
			return nil, fmt.Errorf("%w (what was allocated has been given back)", err)
		}
		return nil, err
	}
	slivers, err := c.await(ctx, u, provisioned.Slivers, Making, settled, report)
	if err != nil {
		return nil, err
	}
	var idle []urn.URN
	for _, s := range slivers {
		if s.Operational == "geni_notready" {
			idle = append(idle, s.URN)
		}
	}
	if len(idle) > 0 {
		if _, err := retry(ctx, func() ([]Sliver, error) {
			return c.Perform(ctx, idle, u.Credentials, "geni_start", ActionOptions{})
		}); err != nil {
			return nil, err
		}
	}
	if slivers, err = c.await(ctx, u, slivers, Starting, ready, report); err != nil {
		return nil, err
	}
	report(Progress{Phase: Done, Slivers: slivers, Done: len(slivers)})
	return retry(ctx, func() (*Described, error) {
		return c.Describe(ctx, mine, u.Credentials, GENI3)
	})
}

// settled reports whether a sliver waits for nothing (AM API v3, "Sliver
// Operational States").
func settled(s Sliver) bool {
	switch s.Operational {
	case "geni_notready", "geni_ready", "geni_failed":
		return true
	}
	return false
}

func ready(s Sliver) bool { return s.Operational == "geni_ready" }

// await asks for the slivers' states until all of them are as wanted, or one
// has failed.
func (c *Client) await(ctx context.Context, u UpRequest, slivers []Sliver, phase Phase, wanted func(Sliver) bool, report func(Progress)) ([]Sliver, error) {
	mine := make([]urn.URN, len(slivers))
	for i, s := range slivers {
		mine[i] = s.URN
	}
	for pause := firstPoll; ; pause = min(pause+pause/4, lastPoll) {
		var failed []Sliver
		done := 0
		for _, s := range slivers {
			if s.Operational == "geni_failed" {
				failed = append(failed, s)
			}
			if wanted(s) {
				done++
			}
		}
		report(Progress{Phase: phase, Slivers: slivers, Done: done})
		if len(failed) > 0 {
			return nil, &FailedError{failed}
		}
		if done == len(slivers) {
			return slivers, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("%s: %d of %d slivers done: %w", phase, done, len(slivers), err)
		}
		status, err := retry(ctx, func() (*Described, error) { return c.Status(ctx, mine, u.Credentials) })
		if err != nil {
			return nil, err
		}
		slivers = status.Slivers
	}
}

// busyFor is how long a busy aggregate is asked again.
const busyFor = time.Minute

// retry repeats a call that the aggregate answers with busy.
func retry[T any](ctx context.Context, call func() (T, error)) (T, error) {
	var waited time.Duration
	for pause := firstPoll; ; pause = min(pause+pause/4, lastPoll) {
		v, err := call()
		var refused *APIError
		if err == nil || !errors.As(err, &refused) || !refused.Busy() || waited >= busyFor {
			return v, err
		}
		if sleep(ctx, pause) != nil {
			return v, err
		}
		waited += pause
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
