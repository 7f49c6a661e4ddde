package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"croft/drivers"
	"croft/request"
	"croft/urn"
)

// Make takes a machine for a node. Another image than the machine has is put
// on it first.
func (d *Driver) Make(ctx context.Context, n drivers.Node) error {
	if r, ok := d.journal.get(n.Sliver); ok && r.Whole {
		return nil
	}
	m, err := d.machine(n.Host)
	if err == nil {
		err = d.checkNode(m, n)
	}
	if err != nil {
		return fmt.Errorf("making %s: %w", n.Sliver, err)
	}
	r := record{Sliver: n.Sliver, Node: &n}
	if err := d.journal.put(r); err != nil {
		return fmt.Errorf("making %s: %w", n.Sliver, err)
	}
	if err := d.take(ctx, m, n); err != nil {
		d.judge(m, err)
		// What cannot be undone now stays in the journal, for Remove.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.c.Answer)
		defer cancel()
		if _, cleanErr := d.do(undo, m, "", "clean", n.Sliver.String(), d.c.Manager.String()); cleanErr == nil || isHeld(cleanErr) {
			err = errors.Join(err, d.journal.drop(n.Sliver))
		}
		return fmt.Errorf("making %s: %w", n.Sliver, err)
	}
	r.Whole = true
	if err := d.journal.put(r); err != nil {
		return fmt.Errorf("making %s: %w", n.Sliver, err)
	}
	d.note(n.Sliver, "machine %s was taken", m.Name)
	return nil
}

// take makes a machine the node's.
func (d *Driver) take(ctx context.Context, m Machine, n drivers.Node) error {
	if err := d.powered(ctx, n.Sliver, m); err != nil {
		return err
	}
	if n.Image != "" && n.Image != d.journal.image(&m) {
		if m.Reimage == nil {
			return fmt.Errorf("machine %s has the image %q and no way to get %q (declare reimage under its access)", m.Name, d.journal.image(&m), n.Image)
		}
		if err := d.reimage(ctx, m, n.Sliver, n.Slice, n.Image); err != nil {
			return err
		}
	}
	s, err := d.look(ctx, m)
	if err != nil {
		return err
	}
	if err := checkUsers(n.Users, s.accounts); err != nil {
		return err
	}
	_, err = d.do(ctx, m, "", "claim", n.Sliver.String(), d.c.Manager.String())
	return err
}

// judge notes what an error says about a machine's health.
func (d *Driver) judge(m Machine, err error) {
	var key *HostKeyError
	var said *MachineError
	var unreachable *UnreachableError
	var network net.Error
	switch {
	case err == nil:
		d.isWell(m)
	case errors.As(err, &key):
		d.fallsIll(m, illness{Ailing: drivers.Ailing{Reason: key.Error()}, silent: true})
	case errors.As(err, &said):
		// It answers; what it cannot do is the operation's matter.
	case errors.As(err, &unreachable) && errors.Is(err, context.Canceled):
		// Nobody waited for its answer.
	case errors.As(err, &unreachable), errors.As(err, &network):
		d.fallsIll(m, illness{Ailing: drivers.Ailing{Reason: err.Error()}, silent: true})
	}
}

// isHeld reports whether a machine refused because it is another sliver's.
func isHeld(err error) bool {
	var said *MachineError
	return errors.As(err, &said) && strings.HasPrefix(said.Said, "the machine is held by ")
}

// Start opens a node: its accounts, addresses and host name, on a machine that
// is turned on if need be.
func (d *Driver) Start(ctx context.Context, sliver urn.URN) error {
	r, m, err := d.nodeAndMachine(sliver)
	if err == nil {
		err = d.start(ctx, m, r)
	}
	if err != nil {
		return fmt.Errorf("starting %s: %w", sliver, err)
	}
	return nil
}

func (d *Driver) start(ctx context.Context, m Machine, r record) error {
	if err := d.powered(ctx, r.Sliver, m); err != nil {
		d.judge(m, err)
		return err
	}
	if r.Running {
		if s, err := d.look(ctx, m); err == nil && s.owner == r.Sliver.String() && s.running {
			return nil
		}
	}
	return d.open(ctx, m, r)
}

// open makes the node on a machine that answers what the journal says.
func (d *Driver) open(ctx context.Context, m Machine, r record) error {
	root := "no"
	if m.rootGiven() {
		root = "yes"
	}
	lines := accountLines(r.Node.Users) + interfaceLines(m, r.Node)
	if _, err := d.do(ctx, m, lines, "start", r.Sliver.String(), root, r.Node.Hostname); err != nil {
		d.judge(m, err)
		return err
	}
	d.isWell(m)
	r.Running = true
	if err := d.journal.put(r); err != nil {
		return err
	}
	d.note(r.Sliver, "node runs on %s with %d users, root: %s", m.Name, len(r.Node.Users), root)
	return nil
}

// accountLines tell machine.sh of users. All in them was checked.
func accountLines(users []request.User) string {
	var b strings.Builder
	for _, u := range users {
		fmt.Fprintf(&b, "account %s\n", u.Login)
		for _, k := range u.Keys {
			fmt.Fprintf(&b, "key %s %s\n", u.Login, strings.TrimSpace(k))
		}
	}
	return b.String()
}

// interfaceLines tell machine.sh of the addresses of a node.
func interfaceLines(m Machine, n *drivers.Node) string {
	var b strings.Builder
	for _, i := range n.Interfaces {
		own, ok := m.own(i.Component)
		if !ok {
			continue
		}
		mac := own.MAC
		if mac == "" {
			mac = "-"
		}
		fmt.Fprintf(&b, "interface %s %s", mac, own.Name)
		for _, a := range i.Addresses {
			fmt.Fprintf(&b, " %s", a)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// own finds a machine's interface.
func (m *Machine) own(id urn.URN) (Interface, bool) {
	for _, i := range m.Interfaces {
		if !id.IsZero() && i.ID.Equal(id) {
			return i, true
		}
	}
	return Interface{}, false
}

// Stop turns a machine off where it can be turned on again; elsewhere it
// closes the node: nobody logs in, nothing of its users runs, its interfaces
// have no addresses.
func (d *Driver) Stop(ctx context.Context, sliver urn.URN) error {
	r, m, err := d.nodeAndMachine(sliver)
	if err != nil {
		return fmt.Errorf("stopping %s: %w", sliver, err)
	}
	if !r.Running {
		return nil
	}
	if m.Power != nil {
		err = d.turnOff(ctx, sliver, m)
	} else {
		_, err = d.do(ctx, m, "", "close", sliver.String())
	}
	if err != nil {
		d.judge(m, err)
		return fmt.Errorf("stopping %s: %w", sliver, err)
	}
	r.Running = false
	if err := d.journal.put(r); err != nil {
		return fmt.Errorf("stopping %s: %w", sliver, err)
	}
	d.note(sliver, "node stopped")
	return nil
}

// Restart boots a machine anew: by its own system, or where that does not
// help, by power.
func (d *Driver) Restart(ctx context.Context, sliver urn.URN) error {
	r, m, err := d.nodeAndMachine(sliver)
	if err != nil {
		return fmt.Errorf("restarting %s: %w", sliver, err)
	}
	if !r.Running {
		return d.Start(ctx, sliver)
	}
	if err = d.reboot(ctx, sliver, m); err == nil {
		err = d.open(ctx, m, r)
	}
	if err != nil {
		d.judge(m, err)
		return fmt.Errorf("restarting %s: %w", sliver, err)
	}
	return nil
}

// UpdateUsers changes the accounts of a node. Those of a stopped one change
// when it starts.
func (d *Driver) UpdateUsers(ctx context.Context, sliver urn.URN, users []request.User) error {
	r, m, err := d.nodeAndMachine(sliver)
	if err == nil {
		d.mu.Lock()
		own := d.accounts[m.Host.Canonical()]
		d.mu.Unlock()
		err = checkUsers(users, own)
	}
	if err != nil {
		return fmt.Errorf("users of %s: %w", sliver, err)
	}
	n := *r.Node
	n.Users = users
	r.Node = &n
	if err := d.journal.put(r); err != nil {
		return fmt.Errorf("users of %s: %w", sliver, err)
	}
	if !r.Running {
		return nil
	}
	root := "no"
	if m.rootGiven() {
		root = "yes"
	}
	if _, err := d.do(ctx, m, accountLines(users), "change", sliver.String(), root); err != nil {
		d.judge(m, err)
		return fmt.Errorf("users of %s: %w", sliver, err)
	}
	d.note(sliver, "node has %d users", len(users))
	return nil
}

// Remove gives a machine back: cleaned, or made anew. While that does not
// succeed the machine stays taken, and the operator is told.
func (d *Driver) Remove(ctx context.Context, sliver urn.URN) error {
	r, ok := d.journal.get(sliver)
	switch {
	case !ok:
		return d.removeUnknown(ctx, sliver)
	case r.Link != nil:
		return d.disconnectLink(ctx, r)
	}
	m, err := d.machine(r.Node.Host)
	if err != nil {
		return fmt.Errorf("removing %s: %w", sliver, err)
	}
	r.Whole, r.Running = false, false
	if err := d.journal.put(r); err != nil {
		return fmt.Errorf("removing %s: %w", sliver, err)
	}
	if err := d.leaveLinks(ctx, sliver); err != nil {
		return fmt.Errorf("removing %s: %w", sliver, err)
	}
	if err := d.clean(ctx, m, r); err != nil {
		d.ails(m, fmt.Sprintf("machine %s could not be made clean after %s: %v (it is tried again; until then nobody gets it)", m.Name, sliver, err))
		d.note(sliver, "cleaning: %v", err)
		return fmt.Errorf("removing %s: %w", sliver, err)
	}
	d.isWell(m)
	if err := d.journal.drop(sliver); err != nil {
		return fmt.Errorf("removing %s: %w", sliver, err)
	}
	return nil
}

// clean removes what is of a node on its machine.
func (d *Driver) clean(ctx context.Context, m Machine, r record) error {
	if err := d.powered(ctx, r.Sliver, m); err != nil && !(m.rootGiven() && m.Power != nil) {
		return err
	}
	args := append([]string{r.Sliver.String(), d.c.Manager.String()}, m.Scratch...)
	_, err := d.do(ctx, m, "", "clean", args...)
	if isHeld(err) {
		return nil // it was never this sliver's: its Make failed
	}
	if !m.rootGiven() {
		return err
	}
	// Whoever had root may have kept the machine from being cleaned, and may
	// have left anything. What is made anew need not have been.
	if err != nil {
		d.note(r.Sliver, "before the machine is made anew: %v", err)
	}
	return d.reimage(ctx, m, r.Sliver, r.Node.Slice, m.Image)
}

// removeUnknown cleans a machine that says that it is of a sliver which the
// journal does not have.
func (d *Driver) removeUnknown(ctx context.Context, sliver urn.URN) error {
	for _, m := range d.c.Machines() {
		d.mu.Lock()
		marked := d.health[m.Host.Canonical()].unknown
		d.mu.Unlock()
		if !marked.Equal(sliver) {
			continue
		}
		if err := d.clean(ctx, m, record{Sliver: sliver, Node: &drivers.Node{Sliver: sliver}}); err != nil {
			return fmt.Errorf("removing %s: %w", sliver, err)
		}
		d.isWell(m)
	}
	return nil
}

// Dial connects from inside of a node. Port 22 of its loopback address stands
// for the machine's SSH server, also where that has only the port that the
// inventory names.
func (d *Driver) Dial(ctx context.Context, sliver urn.URN, network, address string) (net.Conn, error) {
	r, m, err := d.nodeAndMachine(sliver)
	if err != nil {
		return nil, fmt.Errorf("dialling %s: %w", sliver, err)
	}
	if !r.Running {
		return nil, fmt.Errorf("dialling %s: %w", sliver, drivers.ErrNotRunning)
	}
	client, err := d.client(ctx, m)
	if err == nil {
		var c net.Conn
		c, err = client.DialContext(ctx, network, address)
		if err != nil && address == "127.0.0.1:22" && m.Port != 22 && ctx.Err() == nil {
			c, err = client.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(m.Port)))
		}
		if err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("dialling %s of %s: %w", address, sliver, err)
}

// waitFor asks a machine until it answers as wished, or its time is over.
func (d *Driver) waitFor(ctx context.Context, m Machine, limit time.Duration, what string, good func(seen) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("machine %s: %s: not within %s", m.Name, what, limit))
	defer cancel()
	var last error
	for {
		s, err := d.look(ctx, m)
		if err == nil && good(s) {
			return nil
		}
		var key *HostKeyError
		if errors.As(err, &key) {
			return err // waiting does not mend it
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		timer := time.NewTimer(d.c.Poll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), last)
		}
	}
}
