package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"croft/client"
	"croft/urn"
)

const exclusiveNode = `<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">
  <node client_id="n" exclusive="true"><sliver_type name="namespace"/></node>
</rspec>`

// Many callers ask for the whole of a host, of which there are fewer than
// callers: no host is given twice.
func TestNothingIsGivenTwice(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	const callers = 6
	times := 4
	if soak() {
		times = 200
	}
	c := b.caller()
	var mu sync.Mutex
	owner := map[string]urn.URN{} // by component
	given, refusals := 0, 0
	var wg sync.WaitGroup
	for i := range callers {
		slice := b.slice(fmt.Sprintf("x%d", i))
		creds := []client.Credential{b.credential(slice)}
		wg.Go(func() {
			for range times {
				d, err := c.Allocate(context.Background(), slice, creds, exclusiveNode, time.Time{})
				var refused *client.APIError
				switch {
				case errors.As(err, &refused) && (refused.Code == 6 || refused.Busy()):
					mu.Lock()
					refusals++
					mu.Unlock()
					continue
				case err != nil:
					t.Errorf("%s: %v", slice, err)
					return
				}
				component := readManifest(t, d.RSpec).Nodes[0].Component
				mu.Lock()
				given++
				if other, taken := owner[component]; taken {
					t.Errorf("%s was given to %s and to %s", component, other, slice)
				}
				owner[component] = slice
				mu.Unlock()

				mu.Lock()
				delete(owner, component) // from the moment on that Delete is sent
				mu.Unlock()
				if _, err := c.Delete(context.Background(), []urn.URN{slice}, creds, false); err != nil {
					t.Errorf("%s: %v", slice, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if given == 0 {
		t.Error("nobody got a host")
	}
	t.Logf("%d given, %d refused", given, refusals)
}

// What is allocated and not provisioned goes by itself, and so does what was
// provisioned when its time is over.
func TestExpiry(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, setting{"allocated: 10m", "allocated: 2s"})
	slice := b.slice("short")
	file := repository(t, "testdata", "requests", "one-node.rspec")
	b.must("allocate", "short", file)
	gone := func() bool {
		_, err := b.caller().Status(context.Background(), []urn.URN{slice}, []client.Credential{b.credential(slice)})
		var refused *client.APIError
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		return refused != nil && refused.Code == 12
	}
	b.await("an allocation to expire", gone)

	b.must("up", "short", file)
	b.must("renew", "short", "3s")
	b.await("a provisioned slice to expire", gone)
	b.awaitNothing()
}
