package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/client"
	"croft/urn"
)

// seed is that of all random choices; CROFT_SEED repeats a run.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("CROFT_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatalf("CROFT_SEED: %v", err)
		}
	}
	t.Logf("CROFT_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// holder is a slice and what its owner knows of it.
type holder struct {
	slice urn.URN
	creds []client.Credential
	// held are the slivers that Allocate has acknowledged and no Delete was
	// sent for.
	held map[urn.URN]bool
	// unsure: a call was on its way when the server was killed.
	unsure bool
}

// allocateAndDelete calls Allocate and Delete in turn until the server is gone.
func (h *holder) allocateAndDelete(c *client.Client, request string) error {
	for {
		h.unsure = true
		var refused *client.APIError
		if len(h.held) == 0 {
			d, err := c.Allocate(context.Background(), h.slice, h.creds, request, time.Time{})
			if errors.As(err, &refused) {
				return err
			}
			if err != nil {
				return nil // killed
			}
			for _, s := range d.Slivers {
				h.held[s.URN] = true
			}
		} else {
			_, err := c.Delete(context.Background(), []urn.URN{h.slice}, h.creds, false)
			if errors.As(err, &refused) {
				return err
			}
			if err != nil {
				return nil
			}
			h.held = map[urn.URN]bool{}
		}
		h.unsure = false
	}
}

// check compares what the restarted server knows with what was acknowledged.
func (h *holder) check(c *client.Client, whole int) error {
	d, err := c.Status(context.Background(), []urn.URN{h.slice}, h.creds)
	var refused *client.APIError
	switch {
	case errors.As(err, &refused) && refused.Code == 12:
		d = &client.Described{}
	case err != nil:
		return err
	}
	if n := len(d.Slivers); n != 0 && n != whole {
		return fmt.Errorf("%s has %d slivers: a part of a request", h.slice, n)
	}
	if h.unsure {
		return nil // done or not done, both are right
	}
	if len(d.Slivers) != len(h.held) {
		return fmt.Errorf("%s has %d slivers, acknowledged were %d", h.slice, len(d.Slivers), len(h.held))
	}
	for _, s := range d.Slivers {
		if !h.held[s.URN] || s.Allocation != "geni_allocated" {
			return fmt.Errorf("%s: %s is %s and was not acknowledged like that", h.slice, s.URN, s.Allocation)
		}
	}
	return nil
}

// What was acknowledged is there after kill -9, and nothing is there by half.
func TestKillInAllocate(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	random := seed(t)
	rounds, holders := 4, make([]*holder, 4)
	if soak() {
		rounds = 100
	}
	for i := range holders {
		slice := b.slice(fmt.Sprintf("h%d", i))
		holders[i] = &holder{slice: slice, creds: []client.Credential{b.credential(slice)}}
	}
	text := request(t, "two-nodes.rspec")
	for round := range rounds {
		c := b.caller()
		var wg sync.WaitGroup
		for _, h := range holders {
			h.held, h.unsure = map[urn.URN]bool{}, false
			wg.Go(func() {
				if err := h.allocateAndDelete(c, text); err != nil {
					t.Error(err)
				}
			})
		}
		// Anywhere in the first calls, or later.
		time.Sleep(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
		b.kill()
		wg.Wait()
		b.start()
		c = b.caller()
		for _, h := range holders {
			if err := h.check(c, 3); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			b.croft("delete", h.slice.Name)
		}
		// All of it can be had again: nothing unseen holds it.
		for _, h := range holders {
			b.must("allocate", h.slice.Name, repository(t, "testdata", "requests", "two-nodes.rspec"))
			b.must("delete", h.slice.Name)
		}
		if t.Failed() {
			return
		}
	}
}

// A slice whose nodes were being made when the server was killed becomes
// ready under the next one, or can be given back.
func TestKillInProvision(t *testing.T) {
	t.Parallel()
	need(t, "ssh")
	b := newTestbed(t)
	random := seed(t)
	rounds := 3
	if soak() {
		rounds = 50
	}
	slice := b.slice("made")
	creds := []client.Credential{b.credential(slice)}
	targets := []urn.URN{slice}
	ctx := context.Background()
	who, err := client.LoadIdentity(filepath.Join(b.dir, "members", "alice"))
	if err != nil {
		t.Fatal(err)
	}
	users := []client.User{{URN: who.URN, Keys: who.PublicKeys}}
	for round := range rounds {
		c := b.caller()
		if _, err := c.Allocate(ctx, slice, creds, request(t, "two-nodes.rspec"), time.Time{}); err != nil {
			t.Fatal(err)
		}
		provisioned := make(chan error, 1)
		go func() {
			_, err := c.Provision(ctx, targets, creds, client.ProvisionOptions{Users: users})
			if err == nil {
				_, err = c.Perform(ctx, targets, creds, "geni_start", client.ActionOptions{})
			}
			provisioned <- err
		}()
		time.Sleep(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
		b.kill()
		<-provisioned
		b.start()

		c = b.caller()
		if round%2 == 1 {
			// Given back at once.
			b.must("delete", "made")
			b.awaitNothing()
			continue
		}
		d, err := c.Status(ctx, targets, creds)
		if err != nil {
			t.Fatalf("round %d: acknowledged by Allocate, then: %v", round, err)
		}
		if d.Slivers[0].Allocation == "geni_allocated" {
			b.must("provision", "made")
		}
		b.await("slivers to be made", func() bool { return b.states(c, slice, creds, "geni_notready", "geni_configuring", "geni_ready") })
		b.await("slivers to settle", func() bool { return b.states(c, slice, creds, "geni_notready", "geni_ready") })
		if !b.states(c, slice, creds, "geni_ready") {
			b.must("action", "made", "geni_start")
		}
		b.await("slivers to be ready", func() bool { return b.states(c, slice, creds, "geni_ready") })
		b.must("ssh", "made", "node0", "--", "ping -c 1 -W 10 10.10.1.2")
		b.must("delete", "made")
		b.awaitNothing()
	}
}

// states reports whether all slivers of a slice are in one of the states.
func (b *testbed) states(c *client.Client, slice urn.URN, creds []client.Credential, states ...string) bool {
	b.Helper()
	d, err := c.Status(context.Background(), []urn.URN{slice}, creds)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range d.Slivers {
		if s.Operational == "geni_failed" {
			b.Fatalf("%s failed: %s", s.URN, s.Error)
		}
		if !strings.Contains(" "+strings.Join(states, " ")+" ", " "+s.Operational+" ") {
			return false
		}
	}
	return true
}
