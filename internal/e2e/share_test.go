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

// Many callers ask for the whole of a host at once, and there are fewer hosts
// than callers: as many as there are hosts get one, each another.
func TestNothingIsGivenTwice(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	hosts := len(readAd(t, b.must("list", "--raw")).Nodes)
	callers := 3 * hosts
	rounds := 5
	if soak() {
		rounds = 300
	}
	slices := make([]urn.URN, callers)
	creds := make([][]client.Credential, callers)
	clients := make([]*client.Client, callers)
	for i := range callers {
		slices[i] = b.slice(fmt.Sprintf("x%d", i))
		creds[i] = []client.Credential{b.credential(slices[i])}
		clients[i] = b.caller()
	}
	for round := range rounds {
		got := make([]string, callers) // components
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for {
					d, err := clients[i].Allocate(context.Background(), slices[i], creds[i], exclusiveNode, time.Time{})
					var refused *client.APIError
					switch {
					case err == nil:
						got[i] = readManifest(t, d.RSpec).Nodes[0].Component
					case !errors.As(err, &refused) || refused.Code != 6 && !refused.Busy():
						t.Errorf("%s: %v", slices[i], err)
					case refused.Busy():
						continue
					}
					return
				}
			})
		}
		wg.Wait()
		owner := map[string]urn.URN{}
		for i, component := range got {
			if component == "" {
				continue
			}
			if other, taken := owner[component]; taken {
				t.Errorf("round %d: %s was given to %s and to %s", round, component, other, slices[i])
			}
			owner[component] = slices[i]
			if _, err := clients[i].Delete(context.Background(), []urn.URN{slices[i]}, creds[i], false); err != nil {
				t.Fatal(err)
			}
		}
		if len(owner) != hosts {
			t.Errorf("round %d: %d of %d hosts were given", round, len(owner), hosts)
		}
	}
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
