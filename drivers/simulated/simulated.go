// Package simulated is a driver without machines: its nodes are records that
// go through the states of real ones in the times that its configuration says,
// and that fail on demand. It is for trying a testbed's inventory, for
// teaching, and for load tests; nobody can log in to its nodes.
//
// What exists is kept in a journal, a line for each change, so that a manager
// that starts anew, also one that was killed, finds it. A power loss may take
// the last changes; the aggregate then makes what is missing anew.
package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

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

// Operations lists all of them.
func Operations() []Operation {
	return []Operation{Make, Start, Stop, UpdateUsers, Connect, Remove}
}

// Config says how the simulation goes.
type Config struct {
	// File is the journal that keeps what exists over restarts; "" keeps it in
	// memory only.
	File string
	// Times is how long operations take; what is missing takes no time.
	Times map[Operation]time.Duration
	// Fail is asked before each operation: its error is the operation's. It
	// may be nil.
	Fail func(op Operation, sliver urn.URN) error
	// Faults are asked, too; nil for none.
	Faults *Faults
	// Wait waits for a duration or until the context ends; nil waits for real.
	Wait func(context.Context, time.Duration) error
	Now  func() time.Time
}

// Driver implements drivers.Driver.
type Driver struct {
	Config
	mu      sync.Mutex
	things  map[urn.URN]*thing
	journal *journal // nil: in memory only
}

var (
	_ drivers.Driver     = (*Driver)(nil)
	_ drivers.LoginTaker = (*Driver)(nil)
)

// Shapes implements drivers.Shaper: nothing passes these links.
func (d *Driver) Shapes(drivers.Link) error { return nil }

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
	d := &Driver{Config: c, things: map[urn.URN]*thing{}}
	if c.File == "" {
		return d, nil
	}
	var err error
	if d.journal, err = openJournal(c.File, d.things); err != nil {
		return nil, fmt.Errorf("simulated driver: %w", err)
	}
	return d, nil
}

// Close closes the journal. What exists stays.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.journal == nil {
		return nil
	}
	return d.journal.close()
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

// TakesLogins says that nobody can log in to a simulated node.
func (d *Driver) TakesLogins() bool { return false }

// Check always finds what it needs.
func (d *Driver) Check(context.Context) error { return nil }

// systemAccounts are those that any image has.
func systemAccounts() []string { return []string{"root", "daemon", "bin", "sys", "nobody"} }

// Accounts of simulated images are those that any system has.
func (d *Driver) Accounts(context.Context, string) ([]string, error) { return systemAccounts(), nil }

// accountName is what Linux takes for an account's name.
var accountName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// checkUsers refuses the users that a real node could not have.
func checkUsers(users []request.User) error {
	taken := systemAccounts()
	for _, u := range users {
		if !accountName.MatchString(u.Login) || slices.Contains(taken, u.Login) {
			return fmt.Errorf("%q cannot be the account of %s", u.Login, u.URN)
		}
		taken = append(taken, u.Login)
		for _, key := range u.Keys {
			_, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(key))
			if err == nil && len(options)+len(rest) > 0 {
				err = errors.New("more than a key")
			}
			if err != nil {
				return fmt.Errorf("key of %s: %w", u.Login, err)
			}
		}
	}
	return nil
}

// do lets an operation take its time, unless it is to fail.
func (d *Driver) do(ctx context.Context, op Operation, on Subject) error {
	var err error
	if d.Fail != nil {
		err = d.Fail(op, on.Sliver)
	}
	if err == nil && d.Faults != nil {
		err = d.Faults.fail(op, on)
	}
	if err != nil {
		return fmt.Errorf("simulated %s of %s: %w", op, on.Sliver, err)
	}
	return d.Wait(ctx, d.Times[op])
}

// commit changes what exists and writes it down; what cannot be written down
// does not happen.
func (d *Driver) commit(c change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.things[c.Sliver.Canonical()]; t == nil && c.Node == nil && c.Link == nil {
		if c.Gone {
			return nil
		}
		return notFound(c.Sliver)
	}
	c.At = d.Now().UTC().Truncate(time.Second)
	if d.journal != nil {
		if err := d.journal.write(c, d.things); err != nil {
			return fmt.Errorf("simulated driver: %w", err)
		}
	}
	c.apply(d.things)
	return nil
}

// has returns a thing of a kind. What is returned is a copy.
func (d *Driver) has(sliver urn.URN, kind drivers.Kind) (thing, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.things[sliver.Canonical()]
	if t == nil || t.Kind != kind {
		return thing{}, false
	}
	return *t, true
}

func notFound(sliver urn.URN) error { return fmt.Errorf("%s: %w", sliver, drivers.ErrNotFound) }

// Make makes a node.
func (d *Driver) Make(ctx context.Context, n drivers.Node) error {
	if _, ok := d.has(n.Sliver, drivers.NodeKind); ok {
		return nil
	}
	if err := checkUsers(n.Users); err != nil {
		return fmt.Errorf("making %s: %w", n.Sliver, err)
	}
	if err := d.do(ctx, Make, aboutNode(&n)); err != nil {
		return err
	}
	return d.commit(change{Sliver: n.Sliver, Node: &n, Note: "made on " + n.Host.Name})
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
	t, ok := d.has(sliver, drivers.NodeKind)
	if !ok {
		return notFound(sliver)
	}
	if err := d.do(ctx, op, aboutNode(t.Node)); err != nil {
		return err
	}
	return d.commit(change{Sliver: sliver, Running: &running, Note: string(op)})
}

// UpdateUsers records a node's users.
func (d *Driver) UpdateUsers(ctx context.Context, sliver urn.URN, users []request.User) error {
	t, ok := d.has(sliver, drivers.NodeKind)
	if !ok {
		return notFound(sliver)
	}
	if err := checkUsers(users); err != nil {
		return fmt.Errorf("users of %s: %w", sliver, err)
	}
	if err := d.do(ctx, UpdateUsers, aboutNode(t.Node)); err != nil {
		return err
	}
	users = slices.Clone(users)
	return d.commit(change{Sliver: sliver, Users: &users, Note: fmt.Sprintf("%d users", len(users))})
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
	if err := d.unlinked(l); err != nil {
		return err
	}
	if err := d.do(ctx, Connect, Subject{Sliver: l.Sliver}); err != nil {
		return err
	}
	return d.commit(change{Sliver: l.Sliver, Link: &l, Note: "connected"})
}

// unlinked returns an error unless the ends of a link are free.
func (d *Driver) unlinked(l drivers.Link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.things {
		if t.Link == nil {
			continue
		}
		for _, e := range l.Ends {
			if slices.ContainsFunc(t.Link.Ends, func(o drivers.End) bool { return o.Node.Equal(e.Node) && o.Interface == e.Interface }) {
				return fmt.Errorf("connecting %s: interface %q of %s is in link %s already", l.Sliver, e.Interface, e.Node, t.Sliver)
			}
		}
	}
	return nil
}

// Remove removes a node or a link.
func (d *Driver) Remove(ctx context.Context, sliver urn.URN) error {
	on := Subject{Sliver: sliver}
	if t, ok := d.has(sliver, drivers.NodeKind); ok {
		on = aboutNode(t.Node)
	} else if _, ok := d.has(sliver, drivers.LinkKind); !ok {
		return nil
	}
	if err := d.do(ctx, Remove, on); err != nil {
		return err
	}
	return d.commit(change{Sliver: sliver, Gone: true})
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
