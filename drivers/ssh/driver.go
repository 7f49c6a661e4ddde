// Package ssh is the driver of machines that Croft does not make: physical
// ones, or any others that it reaches by SSH with a key of its own. A node is
// the whole of a machine, with accounts for its users.
//
// A machine says itself whose it is, in a file that root alone writes, and a
// journal of the manager's says what it should be, so that a manager that was
// killed goes on, also while machines do not answer. When a node ends, its
// accounts, their processes and files, and the scratch directories are
// removed; where the operator has a command that makes the machine's system
// anew, it is run. Only there do users become root. A machine that cannot be
// made clean takes no new node until it is: see Driver.Health.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"croft/drivers"
	"croft/drivers/power"
	"croft/urn"
)

// Name is what inventories call the driver.
const Name = "ssh"

// Config says how the driver works. Dir, Manager, Key and Machines are needed.
type Config struct {
	Dir     string  // where the journal and the logs of nodes are
	Manager urn.URN // whose the nodes are: a machine with another manager's node is left alone
	Key     ssh.Signer
	// Machines is the testbed as declared now.
	Machines func() []Machine
	// Links makes networks of links on the testbed's switches.
	Links Links
	// Power opens the way to a machine's board management; nil is power.Open.
	Power func(power.Config) (power.Controller, error)
	// Poll is the time between two looks at a machine that boots; 0 is 2 s.
	Poll time.Duration
	// SoftLimit is how long a machine's own system may take to go down before
	// power is used; 0 is 3 minutes.
	SoftLimit time.Duration
	// Answer bounds how long a machine may take to answer; 0 is 10 s.
	Answer time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// Machine is a host that the driver makes nodes of.
type Machine struct {
	Host       urn.URN
	Name       string
	Address    string // of its SSH server
	Port       int
	User       string   // root, or an account with password-less sudo
	HostKeys   []string // authorized_keys form
	Scratch    []string
	BootLimit  time.Duration
	Image      string // what is on it to begin with
	Reimage    *Reimage
	Power      *power.Config
	Interfaces []Interface
}

// Reimage is how a machine gets its system anew: Command is run on the
// manager's machine; with PXE, the machine is then booted from its network.
type Reimage struct {
	Command []string
	Limit   time.Duration
	PXE     bool
	AtEnd   bool // whenever a node ends
}

// Interface is a network interface of a machine.
type Interface struct {
	ID   urn.URN
	Name string // on the machine, unless MAC finds it
	MAC  string // "" if not declared
	// Peer is the interface at the other end of its cable, zero for none, and
	// Switch the name of the switch that this is on, "" for none.
	Peer   urn.URN
	Switch string
}

// Links says how links between machines are made.
type Links struct {
	// Command is run on the manager's machine to make a link's network on the
	// switches, and to remove it; see the inventory's documentation. Without
	// it, only interfaces that a cable joins, and those on PlainSwitches, can
	// be linked, by their addresses alone.
	Command []string
	Limit   time.Duration // of one run; 0 is 2 minutes
	// PlainSwitches carry frames between all of their ports: links over them
	// are not apart from each other, and the operator wants it so.
	PlainSwitches []string
}

// rootGiven reports whether a machine's users become root: only where it is
// made anew for whoever comes next.
func (m *Machine) rootGiven() bool { return m.Reimage != nil && m.Reimage.AtEnd }

// Driver implements drivers.Driver. One process at a time may have a directory.
type Driver struct {
	c       Config
	journal *journal

	mu          sync.Mutex
	connections map[urn.URN]*connection // by canonical host
	health      map[urn.URN]illness
	accounts    map[urn.URN][]string // that machines have by themselves
	linking     sync.Mutex           // one change of the switches at a time
}

var (
	_ drivers.Driver       = (*Driver)(nil)
	_ drivers.HealthTeller = (*Driver)(nil)
	_ drivers.RootGiver    = (*Driver)(nil)
	_ drivers.TimeTaker    = (*Driver)(nil)
	_ io.Closer            = (*Driver)(nil)
)

// New makes a driver with what its journal says.
func New(c Config) (*Driver, error) {
	if c.Power == nil {
		c.Power = power.Open
	}
	c.Poll = orElse(c.Poll, 2*time.Second)
	c.SoftLimit = orElse(c.SoftLimit, 3*time.Minute)
	c.Answer = orElse(c.Answer, 10*time.Second)
	c.Links.Limit = orElse(c.Links.Limit, 2*time.Minute)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	j, err := openJournal(c.Dir, c.Now)
	if err == nil {
		err = j.endCommands()
	}
	if err != nil {
		return nil, fmt.Errorf("ssh driver: %w", err)
	}
	return &Driver{
		c: c, journal: j, connections: map[urn.URN]*connection{}, health: map[urn.URN]illness{}, accounts: map[urn.URN][]string{},
	}, nil
}

func orElse(d, usual time.Duration) time.Duration {
	if d == 0 {
		return usual
	}
	return d
}

// Close ends the connections. Nodes go on.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.connections {
		c.close()
	}
	return nil
}

// Name is "ssh".
func (d *Driver) Name() string { return Name }

// Check finds commands and password files that the machines need here. That a
// machine does not answer is no reason not to serve the others: see Health.
func (d *Driver) Check(context.Context) error {
	var errs []error
	program := func(what string, command []string) {
		if len(command) == 0 || !strings.Contains(command[0], "/") {
			return // found by PATH when it is run
		}
		if st, err := os.Stat(command[0]); err != nil || st.IsDir() || st.Mode()&0o111 == 0 {
			errs = append(errs, fmt.Errorf("%s: %s is not a program", what, command[0]))
		}
	}
	program("the command for links", d.c.Links.Command)
	for _, m := range d.c.Machines() {
		if m.Reimage != nil {
			program("reimage of "+m.Name, m.Reimage.Command)
		}
		if m.Power != nil && m.Power.PasswordFile != "" {
			if _, err := os.Stat(m.Power.PasswordFile); err != nil {
				errs = append(errs, fmt.Errorf("power of %s: password file: %w", m.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// OperationTime is what the slowest machine may take to be made anew and to
// boot, twice.
func (d *Driver) OperationTime() time.Duration {
	longest := time.Duration(0)
	for _, m := range d.c.Machines() {
		t := m.BootLimit + d.c.SoftLimit
		if m.Reimage != nil {
			t += m.Reimage.Limit
		}
		longest = max(longest, 2*t)
	}
	return longest
}

// GivesRoot reports whether a node's machine is made anew when the node ends.
func (d *Driver) GivesRoot(_ context.Context, sliver urn.URN) (bool, error) {
	n, err := d.node(sliver)
	if err != nil {
		return false, err
	}
	m, err := d.machine(n.Node.Host)
	if err != nil {
		return false, err
	}
	return m.rootGiven(), nil
}

// machine finds a machine of the testbed.
func (d *Driver) machine(host urn.URN) (Machine, error) {
	for _, m := range d.c.Machines() {
		if m.Host.Equal(host) {
			return m, nil
		}
	}
	return Machine{}, fmt.Errorf("host %s: the inventory has no access for it (declare address and host_keys under access)", host)
}

// node finds a node of the journal.
func (d *Driver) node(sliver urn.URN) (record, error) {
	r, ok := d.journal.get(sliver)
	if !ok || r.Node == nil {
		return record{}, fmt.Errorf("%s: %w", sliver, drivers.ErrNotFound)
	}
	return r, nil
}

// nodeAndMachine finds a node and its machine.
func (d *Driver) nodeAndMachine(sliver urn.URN) (record, Machine, error) {
	n, err := d.node(sliver)
	if err != nil {
		return n, Machine{}, err
	}
	m, err := d.machine(n.Node.Host)
	return n, m, err
}

// Health lists the machines that did not answer or could not be made clean
// when it was tried last.
func (d *Driver) Health() []drivers.Ailing {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]drivers.Ailing, 0, len(d.health))
	for _, i := range d.health {
		list = append(list, i.Ailing)
	}
	slices.SortFunc(list, func(a, b drivers.Ailing) int { return strings.Compare(a.Host.String(), b.Host.String()) })
	return list
}

// illness is why a machine is out of order.
type illness struct {
	drivers.Ailing
	silent  bool    // it only did not answer: when it does, it is well
	unknown urn.URN // the sliver that it is marked with and the journal does not have
}

// ails notes that a machine is out of order, and tells the operator once.
func (d *Driver) ails(m Machine, reason string) {
	d.fallsIll(m, illness{Ailing: drivers.Ailing{Reason: reason}})
}

func (d *Driver) fallsIll(m Machine, i illness) {
	i.Host, i.Since = m.Host, d.c.Now()
	d.mu.Lock()
	was, known := d.health[m.Host.Canonical()]
	if known {
		i.Since = was.Since
		// That it does not answer is no reason to forget what else is wrong.
		if i.silent && !was.silent {
			i = was
		}
	}
	reason := i.Reason
	changed := was.Reason != reason
	d.health[m.Host.Canonical()] = i
	d.mu.Unlock()
	if changed {
		d.c.Logger.Error("a machine is out of service", "host", m.Host.String(), "reason", reason)
	}
}

// answers notes that a machine does that may not have before.
func (d *Driver) answers(m Machine) {
	d.mu.Lock()
	silent := d.health[m.Host.Canonical()].silent
	d.mu.Unlock()
	if silent {
		d.isWell(m)
	}
}

// isWell notes that a machine is in order.
func (d *Driver) isWell(m Machine) {
	d.mu.Lock()
	_, was := d.health[m.Host.Canonical()]
	delete(d.health, m.Host.Canonical())
	d.mu.Unlock()
	if was {
		d.c.Logger.Info("a machine is in service again", "host", m.Host.String())
	}
}

// Log writes what the driver and its commands have said about a node.
func (d *Driver) Log(_ context.Context, sliver urn.URN, w io.Writer) error {
	if _, err := d.node(sliver); err != nil {
		return err
	}
	f, err := os.Open(d.journal.logFile(sliver))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("log of %s: %w", sliver, err)
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// note writes a line to a node's log.
func (d *Driver) note(sliver urn.URN, format string, args ...any) {
	line := d.c.Now().UTC().Format(time.RFC3339) + " " + strings.TrimRight(fmt.Sprintf(format, args...), "\n") + "\n"
	if err := d.journal.appendLog(sliver, []byte(line)); err != nil {
		d.c.Logger.Warn("writing a node's log", "sliver", sliver.String(), "error", err)
	}
}

// LoadKey reads the manager's private key (PEM, without a password).
func LoadKey(file string) (ssh.Signer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("key for machines: %w", err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("key for machines %s: %w (ssh-keygen -t ed25519 -N '' makes one)", filepath.Base(file), err)
	}
	return key, nil
}

// usable reports whether an address can be set on an interface.
func usable(a netip.Prefix) bool { return a.IsValid() && !a.Addr().Is4In6() && a.Addr().Zone() == "" }
