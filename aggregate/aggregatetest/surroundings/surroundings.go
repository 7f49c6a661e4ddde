// Package surroundings has what tests put around an aggregate: a clock that is
// moved by hand, a log that is read while it is written, ways in that listen
// nowhere, a driver that seems to take logins.
//
// It does not know package aggregate, so that the tests inside of that package
// can use it, too. Others take package aggregatetest.
package surroundings

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"croft/drivers/simulated"
	"croft/slivers"
	"croft/slivers/sqlite"
	"croft/urn"
)

// Clock is a clock that can be moved ahead.
type Clock struct {
	mu    sync.Mutex
	from  func() time.Time
	ahead time.Duration
}

// StandingClock makes a clock that stands still until it is moved.
func StandingClock(at time.Time) *Clock {
	return &Clock{from: func() time.Time { return at }}
}

// GoingClock makes one that goes like the machine's.
func GoingClock() *Clock { return &Clock{from: time.Now} }

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.from().Add(c.ahead)
}

// Advance moves the clock ahead.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// Log is a log that can be read while it is written.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is all that was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Reset forgets it.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// Entrances gives every node a port of 127.0.0.1 and listens nowhere.
type Entrances struct {
	mu   sync.Mutex
	next int
	open map[urn.URN]slivers.Login
	dial map[urn.URN]func(context.Context) (net.Conn, error)
}

// Open gives a node the port asked for, or the next one.
func (e *Entrances) Open(_ context.Context, node urn.URN, port int, dial func(context.Context) (net.Conn, error)) (slivers.Login, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l, ok := e.open[node.Canonical()]; ok {
		return l, nil
	}
	if port == 0 {
		e.next++
		port = 22000 + e.next
	}
	l := slivers.Login{Host: "127.0.0.1", Port: port}
	if e.open == nil {
		e.open, e.dial = map[urn.URN]slivers.Login{}, map[urn.URN]func(context.Context) (net.Conn, error){}
	}
	e.open[node.Canonical()], e.dial[node.Canonical()] = l, dial
	return l, nil
}

// Close takes a node's port away.
func (e *Entrances) Close(node urn.URN) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, node.Canonical())
	delete(e.dial, node.Canonical())
}

// Dial connects to a node as whoever comes in by its port.
func (e *Entrances) Dial(ctx context.Context, node urn.URN) (net.Conn, error) {
	e.mu.Lock()
	dial := e.dial[node.Canonical()]
	e.mu.Unlock()
	if dial == nil {
		return nil, errors.New("no way in to " + node.String())
	}
	return dial(ctx)
}

// ClosedEntrances let nobody in.
type ClosedEntrances struct{}

// Open fails.
func (ClosedEntrances) Open(context.Context, urn.URN, int, func(context.Context) (net.Conn, error)) (slivers.Login, error) {
	return slivers.Login{}, errors.New("nobody can log in")
}

// Close has nothing to close.
func (ClosedEntrances) Close(urn.URN) {}

// Reachable is the simulated driver with nodes that seem to take logins, so
// that manifests tell of them.
type Reachable struct{ *simulated.Driver }

// TakesLogins says so.
func (Reachable) TakesLogins() bool { return true }

// OpenStore makes a store that ends with the test.
func OpenStore(t testing.TB, clock func() time.Time) slivers.Store {
	t.Helper()
	store, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "croft.db"), clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// NewKey makes a public key as a caller sends it.
func NewKey(t testing.TB) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}
