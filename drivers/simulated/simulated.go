// Package simulated is a driver without machines: its nodes are records that
// go through the states of real ones in the times that its configuration says,
// and that fail on demand. It is for trying a testbed's inventory, for
// teaching, and for load tests; nobody can log in to its nodes.
package simulated

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"croft/drivers"
	"croft/request"
	"croft/urn"
)

// Operation is one of the things a driver does.
type Operation string

// The operations that can be made slow or to fail.
const (
	Make        Operation = "make"
	Start       Operation = "start"
	Stop        Operation = "stop"
	UpdateUsers Operation = "users"
	Connect     Operation = "connect"
	Remove      Operation = "remove"
)

// Config says how the simulation goes.
type Config struct {
	// File keeps what exists over restarts; "" keeps it in memory only.
	File string
	// Times is how long operations take; what is missing takes no time.
	Times map[Operation]time.Duration
	// Fail is asked before each operation: its error is the operation's. It
	// may be nil.
	Fail func(op Operation, sliver urn.URN) error
	// Wait waits for a duration or until the context ends; nil waits for real.
	Wait func(context.Context, time.Duration) error
	Now  func() time.Time
	Log  *slog.Logger
}

// Driver implements drivers.Driver.
type Driver struct {
	Config
	mu     sync.Mutex
	things map[urn.URN]*thing
}

var _ drivers.Driver = (*Driver)(nil)

// thing is a node or a link that exists.
type thing struct {
	Sliver  urn.URN
	Kind    drivers.Kind
	Node    *drivers.Node
	Link    *drivers.Link
	Running bool
	History []string
}

// historyKept is how many lines of history a node keeps.
const historyKept = 200

// New makes a driver with what its file says exists.
func New(c Config) (*Driver, error) {
	if c.Wait == nil {
		c.Wait = wait
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d := &Driver{Config: c, things: map[urn.URN]*thing{}}
	if c.File == "" {
		return d, nil
	}
	data, err := os.ReadFile(c.File)
	if errors.Is(err, os.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("simulated driver: %w", err)
	}
	var list []*thing
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("simulated driver: %s: %w", c.File, err)
	}
	for _, t := range list {
		d.things[t.Sliver.Canonical()] = t
	}
	return d, nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Name is "simulated".
func (d *Driver) Name() string { return "simulated" }

// Check always finds what it needs.
func (d *Driver) Check(context.Context) error { return nil }

// Accounts of simulated images are those that any system has.
func (d *Driver) Accounts(context.Context, string) ([]string, error) {
	return []string{"root", "daemon", "bin", "sys", "nobody"}, nil
}

// do lets an operation take its time, unless it is to fail.
func (d *Driver) do(ctx context.Context, op Operation, sliver urn.URN) error {
	if d.Fail != nil {
		if err := d.Fail(op, sliver); err != nil {
			return fmt.Errorf("simulated %s of %s: %w", op, sliver, err)
		}
	}
	return d.Wait(ctx, d.Times[op])
}

// change changes a thing under the lock and keeps the result. The thing is nil
// if the driver does not have it.
func (d *Driver) change(sliver urn.URN, note string, how func(*thing) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.things[sliver.Canonical()]
	if err := how(t); err != nil {
		return err
	}
	if t = d.things[sliver.Canonical()]; t != nil {
		t.History = append(t.History, d.Now().UTC().Format(time.RFC3339)+" "+note)
		t.History = t.History[max(0, len(t.History)-historyKept):]
	}
	return d.save()
}

func (d *Driver) save() error {
	if d.File == "" {
		return nil
	}
	list := make([]*thing, 0, len(d.things))
	for _, t := range d.things {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *thing) int { return strings.Compare(a.Sliver.String(), b.Sliver.String()) })
	data, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("simulated driver: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(d.File), ".simulated-*")
	if err != nil {
		return fmt.Errorf("simulated driver: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, bytes.NewReader(data))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("simulated driver: %w", err)
	}
	return os.Rename(f.Name(), d.File)
}

func (d *Driver) has(sliver urn.URN, kind drivers.Kind) (*thing, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.things[sliver.Canonical()]
	return t, t != nil && t.Kind == kind
}

func notFound(sliver urn.URN) error { return fmt.Errorf("%s: %w", sliver, drivers.ErrNotFound) }

// Make makes a node.
func (d *Driver) Make(ctx context.Context, n drivers.Node) error {
	if _, ok := d.has(n.Sliver, drivers.NodeKind); ok {
		return nil
	}
	if err := d.do(ctx, Make, n.Sliver); err != nil {
		return err
	}
	return d.change(n.Sliver, "made on "+n.Host.Name, func(*thing) error {
		d.things[n.Sliver.Canonical()] = &thing{Sliver: n.Sliver, Kind: drivers.NodeKind, Node: &n}
		return nil
	})
}

// Start boots a node.
func (d *Driver) Start(ctx context.Context, sliver urn.URN) error {
	return d.run(ctx, Start, sliver, true)
}

// Stop halts a node.
func (d *Driver) Stop(ctx context.Context, sliver urn.URN) error {
	return d.run(ctx, Stop, sliver, false)
}

// Restart stops and starts a node.
func (d *Driver) Restart(ctx context.Context, sliver urn.URN) error {
	if err := d.Stop(ctx, sliver); err != nil {
		return err
	}
	return d.Start(ctx, sliver)
}

func (d *Driver) run(ctx context.Context, op Operation, sliver urn.URN, running bool) error {
	if _, ok := d.has(sliver, drivers.NodeKind); !ok {
		return notFound(sliver)
	}
	if err := d.do(ctx, op, sliver); err != nil {
		return err
	}
	return d.change(sliver, string(op), func(t *thing) error {
		if t == nil {
			return notFound(sliver)
		}
		t.Running = running
		return nil
	})
}

// UpdateUsers records a node's users.
func (d *Driver) UpdateUsers(ctx context.Context, sliver urn.URN, users []request.User) error {
	if _, ok := d.has(sliver, drivers.NodeKind); !ok {
		return notFound(sliver)
	}
	if err := d.do(ctx, UpdateUsers, sliver); err != nil {
		return err
	}
	return d.change(sliver, fmt.Sprintf("%d users", len(users)), func(t *thing) error {
		if t == nil {
			return notFound(sliver)
		}
		t.Node.Users = slices.Clone(users)
		return nil
	})
}

// Connect makes a link between nodes that exist.
func (d *Driver) Connect(ctx context.Context, l drivers.Link) error {
	if _, ok := d.has(l.Sliver, drivers.LinkKind); ok {
		return nil
	}
	for _, e := range l.Ends {
		n, ok := d.has(e.Node, drivers.NodeKind)
		if !ok {
			return fmt.Errorf("connecting %s: %w", l.Sliver, notFound(e.Node))
		}
		if !slices.ContainsFunc(n.Node.Interfaces, func(i drivers.Interface) bool { return i.Name == e.Interface }) {
			return fmt.Errorf("connecting %s: node %s has no interface %q", l.Sliver, e.Node, e.Interface)
		}
	}
	if err := d.do(ctx, Connect, l.Sliver); err != nil {
		return err
	}
	return d.change(l.Sliver, "connected", func(*thing) error {
		d.things[l.Sliver.Canonical()] = &thing{Sliver: l.Sliver, Kind: drivers.LinkKind, Link: &l}
		return nil
	})
}

// Remove removes a node or a link.
func (d *Driver) Remove(ctx context.Context, sliver urn.URN) error {
	d.mu.Lock()
	_, ok := d.things[sliver.Canonical()]
	d.mu.Unlock()
	if !ok {
		return nil
	}
	if err := d.do(ctx, Remove, sliver); err != nil {
		return err
	}
	return d.change(sliver, "removed", func(*thing) error {
		delete(d.things, sliver.Canonical())
		return nil
	})
}

// List tells what exists.
func (d *Driver) List(context.Context) ([]drivers.Found, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []drivers.Found
	for _, t := range d.things {
		list = append(list, drivers.Found{Sliver: t.Sliver, Kind: t.Kind, Whole: true, Running: t.Running})
	}
	slices.SortFunc(list, func(a, b drivers.Found) int { return strings.Compare(a.Sliver.String(), b.Sliver.String()) })
	return list, nil
}

var errSimulated = errors.New("the node is simulated: there is nothing to log in to")

// Dial always fails: nothing runs on a simulated node.
func (d *Driver) Dial(_ context.Context, sliver urn.URN, _, _ string) (net.Conn, error) {
	return nil, d.nothing(sliver)
}

// Exec always fails: nothing runs on a simulated node.
func (d *Driver) Exec(_ context.Context, sliver urn.URN, _ drivers.Command) error {
	return d.nothing(sliver)
}

func (d *Driver) nothing(sliver urn.URN) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.things[sliver.Canonical()]
	switch {
	case t == nil || t.Kind != drivers.NodeKind:
		return notFound(sliver)
	case !t.Running:
		return fmt.Errorf("%s: %w", sliver, drivers.ErrNotRunning)
	}
	return errSimulated
}

// Log writes a node's history.
func (d *Driver) Log(_ context.Context, sliver urn.URN, w io.Writer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.things[sliver.Canonical()]
	if t == nil || t.Kind != drivers.NodeKind {
		return notFound(sliver)
	}
	for _, line := range t.History {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
