package credentials

import (
	"context"
	"crypto/sha256"
	"path/filepath"
	"testing"
	"time"

	"croft/urn"
)

func TestCache(t *testing.T) {
	now := time.Unix(1000, 0)
	key := func(s string) [sha256.Size]byte { return sha256.Sum256([]byte(s)) }
	c := newCache[string](2)
	c.put(key("a"), 1, now.Add(time.Minute), "A")
	for _, q := range []struct {
		name       string
		generation uint64
		at         time.Time
		ok         bool
	}{
		{"there", 1, now, true},
		{"until its end", 1, now.Add(time.Minute - 1), true},
		{"not at its end", 1, now.Add(time.Minute), false},
		{"nor ever again", 1, now, false},
	} {
		t.Run(q.name, func(t *testing.T) {
			if v, ok := c.get(key("a"), q.generation, q.at); ok != q.ok || (ok && v != "A") {
				t.Fatal(v, ok)
			}
		})
	}
	t.Run("other trust roots", func(t *testing.T) {
		c.put(key("a"), 1, now.Add(time.Minute), "A")
		if _, ok := c.get(key("a"), 2, now); ok {
			t.Fatal("remembered")
		}
	})
	t.Run("bounded, the last used stay", func(t *testing.T) {
		for _, s := range []string{"a", "b"} {
			c.put(key(s), 1, now.Add(time.Minute), s)
		}
		c.get(key("a"), 1, now)
		c.put(key("c"), 1, now.Add(time.Minute), "c")
		c.put(key("c"), 1, now.Add(time.Minute), "C")
		_, a := c.get(key("a"), 1, now)
		_, b := c.get(key("b"), 1, now)
		last, _ := c.get(key("c"), 1, now)
		if !a || b || last != "C" || len(c.entries) != 2 || c.recent.Len() != 2 {
			t.Fatal(a, b, last, len(c.entries))
		}
	})
}

// A credential is verified once, and remembered no longer than anything in it
// lasts.
func TestCredentialsAreRemembered(t *testing.T) {
	f := newFixture(t)
	shortLived := issue(t, f.root, spec{urn: "urn:publicid:IDN+example.org+user+short", notAfter: f.now.Add(10 * time.Minute)})
	for _, c := range []struct {
		name  string
		who   *entity
		value string
		until time.Time
	}{
		{"to its expiry", f.alice, f.sign(t, f.root, f.alice, f.slice, expires(f.now.Add(20*time.Minute))), f.now.Add(20 * time.Minute)},
		{"to its owner's expiry", shortLived, f.sign(t, f.root, shortLived, f.slice), f.now.Add(10 * time.Minute)},
		{"to the expiry of what it was delegated from", f.bob,
			f.delegate(t, f.sign(t, f.root, f.alice, f.slice, expires(f.now.Add(3*time.Minute))), f.alice, f.bob, expires(f.now.Add(2*time.Minute))), f.now.Add(2 * time.Minute)},
		{"for an hour at most", f.alice, f.sign(t, f.root, f.alice, f.slice, expires(f.now.Add(20*time.Hour))), f.now.Add(time.Hour)},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := NewVerifier(f.trust, nil)
			caller := f.caller(t, c.who)
			for range 2 {
				p, err := v.Verify(context.Background(), caller, sfa(c.value))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.May(Allocate, urn.MustParse(sliceURN)); err != nil {
					t.Fatal(err)
				}
			}
			if v.cache.recent.Len() != 1 {
				t.Fatalf("%d entries", v.cache.recent.Len())
			}
			entry := v.cache.recent.Front().Value.(*cached[*verified])
			if d := entry.until.Sub(c.until); d < -time.Second || d > time.Second {
				t.Errorf("remembered until %v, want %v", entry.until, c.until)
			}
		})
	}
}

// What was remembered ends with time, and a principal's rights, too.
func TestRightsEnd(t *testing.T) {
	f := newFixture(t)
	v := NewVerifier(f.trust, nil)
	caller := f.caller(t, f.alice)
	value := sfa(f.sign(t, f.root, f.alice, f.slice, expires(f.now.Add(time.Minute))))
	early, err := v.Verify(context.Background(), caller, value)
	if err != nil {
		t.Fatal(err)
	}
	on := urn.MustParse(sliceURN)
	if _, err := early.May(Renew, on); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(2 * time.Minute)
	_, err = early.May(Renew, on)
	wantRefusal(t, err, "credential 1: expired at")
	late, err := v.Verify(context.Background(), caller, value)
	if err != nil {
		t.Fatal(err)
	}
	_, err = late.May(Renew, on)
	wantRefusal(t, err, "credential 1: expired at")

	f.now = f.alice.cert.NotAfter.Add(time.Second)
	_, err = f.trust.Identify(f.alice.certificates(t))
	wantRefusal(t, err, "expired")
}

// Verify looks at the context before it works.
func TestVerifyStops(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := NewVerifier(f.trust, nil).Verify(ctx, f.caller(t, f.alice), sfa("x")); err == nil {
		t.Fatal("no error")
	}
	if _, err := NewVerifier(f.trust, nil).Verify(context.Background(), nil, Presented{}); err == nil {
		t.Fatal("no error without a caller")
	}
}

// Many callers at once, while the folder changes.
func TestParallelUse(t *testing.T) {
	f := newFixture(t)
	trust, err := OpenTrust(f.dir, TrustOptions{CheckEvery: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	v := NewVerifier(trust, nil)
	value := sfa(f.sign(t, f.root, f.alice, f.slice), f.sign(t, f.proj, f.alice, f.slice))
	other := issue(t, nil, spec{urn: "urn:publicid:IDN+other.net+authority+sa", ca: true})
	chain := f.alice.certificates(t)
	done := make(chan error)
	for range 4 {
		go func() {
			for range 50 {
				caller, err := trust.Identify(chain)
				if err != nil {
					done <- err
					return
				}
				p, err := v.Verify(context.Background(), caller, value)
				if err == nil {
					_, err = p.May(Allocate, urn.MustParse(sliceURN))
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	path := filepath.Join(f.dir, "other.pem")
	for range 20 {
		writeFile(t, path, other.chain)
		remove(t, path)
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
