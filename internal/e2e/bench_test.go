package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"croft/client"
	"croft/urn"
)

// BenchmarkCalls measures calls per second over TLS, from 1 and 8 clients, each
// with a connection and a slice of its own. Allocate and Delete count as one. A
// call that is answered with BUSY is made again and not counted; busy/op says
// how often that was.
func BenchmarkCalls(b *testing.B) {
	bed := newTestbed(b)
	const most = 8
	type user struct {
		*client.Client
		slice urn.URN
		creds []client.Credential
	}
	users := make([]user, most)
	for i := range users {
		slice := bed.slice(fmt.Sprintf("b%d", i))
		users[i] = user{bed.caller(), slice, []client.Credential{bed.credential(slice)}}
	}
	mine := []client.Credential{client.SFA(bed.read("members", "alice", "user-credential.xml"))}
	text := request(b, "one-node.rspec")
	ctx := context.Background()
	for _, call := range []struct {
		name string
		do   func(user) error
	}{
		{"GetVersion", func(u user) error { _, err := u.Version(ctx); return err }},
		{"ListResources", func(u user) error { _, err := u.ListResources(ctx, mine, client.ListOptions{}); return err }},
		{"Allocate+Delete", func(u user) error {
			if _, err := u.Allocate(ctx, u.slice, u.creds, text, time.Time{}); err != nil {
				return err
			}
			_, err := u.Delete(ctx, []urn.URN{u.slice}, u.creds, false)
			return err
		}},
	} {
		for _, clients := range []int{1, most} {
			b.Run(fmt.Sprintf("%s/clients=%d", call.name, clients), func(b *testing.B) {
				var left atomic.Int64
				left.Store(int64(b.N))
				failed := make(chan error, clients)
				var busy atomic.Int64
				b.ResetTimer()
				for _, u := range users[:clients] {
					go func() {
						for left.Add(-1) >= 0 {
							err := call.do(u)
							for isBusy(err) {
								busy.Add(1)
								err = call.do(u)
							}
							if err != nil {
								failed <- err
								return
							}
						}
						failed <- nil
					}()
				}
				for range clients {
					if err := <-failed; err != nil {
						b.Error(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
				b.ReportMetric(float64(busy.Load())/float64(b.N), "busy/op")
			})
		}
	}
}

func isBusy(err error) bool {
	var refused *client.APIError
	return errors.As(err, &refused) && refused.Busy()
}
