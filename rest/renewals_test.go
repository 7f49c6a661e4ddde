package rest_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/rest"
	"croft/urn"
)

// What the faces make is renewed while its member has an account, up to the
// site's maximum, and says when it ends; slices of the AM API end with their
// leases.
func TestRenewals(t *testing.T) {
	t.Parallel()
	for _, d := range doors() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c := surroundings.StandingClock(time.Now().Truncate(time.Second))
			h := newHouse(t, c)
			begun := c.Now()
			slice := d.open(h)
			h.await("it is ready", func() bool { return d.list(h, "alice")[slice.String()].up })
			lease := h.service.Leases.ProvisionedMax
			renewals := &rest.Renewals{Service: h.service.Service, Members: []urn.URN{alice, alice}, Lifetime: 5 * lease / 2, Clock: c.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
			expires := func() time.Time {
				held, err := h.service.SlicesOf(h.Context(), alice, rest.Authorities("example.org", alice))
				if err != nil || len(held) == 0 {
					return time.Time{}
				}
				return held[0].Expires()
			}
			if d.name == "am" {
				before := expires()
				c.Advance(before.Sub(c.Now()) - time.Minute)
				renewals.Pass(h.Context())
				if got := expires(); !got.Equal(before) {
					t.Errorf("a slice of the AM API ends at %s, want %s", got, before)
				}
				return
			}
			first := expires()
			renewals.Pass(h.Context())
			if got := expires(); !got.Equal(first) || !got.Equal(begun.Add(lease)) {
				t.Errorf("at once it ends at %s, and renewed at %s; want %s", first, got, begun.Add(lease))
			}
			for _, step := range []struct{ after, end time.Duration }{
				{lease * 3 / 4, lease * 7 / 4}, {lease * 3 / 2, lease * 5 / 2}, {lease * 9 / 4, lease * 5 / 2},
			} {
				c.Advance(begun.Add(step.after).Sub(c.Now()))
				renewals.Pass(h.Context())
				if got, want := expires(), begun.Add(step.end); !got.Equal(want) {
					t.Errorf("after %s it ends at %s, want %s", step.after, got, want)
				}
				if got := shown(h, d.list(h, "alice")[slice.String()].at); !got.Equal(expires()) {
					t.Errorf("after %s it says that it ends at %s, not at %s", step.after, got, expires())
				}
			}
			// Without an account there is nobody to renew it for.
			renewals.Members = nil
			renewals.Lifetime *= 2
			renewals.Pass(h.Context())
			if got, want := expires(), begun.Add(lease*5/2); !got.Equal(want) {
				t.Errorf("without an account it ends at %s, want %s", got, want)
			}
			c.Advance(lease)
			held, err := h.service.Slivers(h.Context(), slice)
			if err != nil || len(held) == 0 || held[0].Live(c.Now()) {
				t.Errorf("after its end: %v, %v", held, err)
			}
			if x, there := d.list(h, "alice")[slice.String()]; there && !x.ended && !x.goes {
				t.Error("after its end it is still listed")
			}
		})
	}
}

// shown is the end that a thing tells of itself.
func shown(h *house, at string) time.Time {
	h.Helper()
	var v struct {
		Zoe  float64   `json:"time_expire"`
		CAMP time.Time `json:"org.testbed:expires"`
	}
	status, text := h.call("alice", http.MethodGet, at, "")
	if err := json.Unmarshal(text, &v); err == nil && status == http.StatusOK {
		if v.Zoe > 0 {
			return time.UnixMicro(int64(v.Zoe * 1e6))
		}
		return v.CAMP
	}
	var data struct{ Data struct{ Expires time.Time } }
	h.must("alice", http.MethodGet, at+"/data", "", &data)
	var machine struct {
		Expires time.Time `json:"croft.expires"`
	}
	h.must("alice", http.MethodGet, at+"/vms/0/croft.expires", "", &machine)
	if !machine.Expires.Equal(data.Data.Expires) {
		h.Errorf("the machine ends at %s, its infrastructure at %s", machine.Expires, data.Data.Expires)
	}
	return data.Data.Expires
}
