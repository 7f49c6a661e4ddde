// Package drivers says what a driver is: the one small interface through which
// the aggregate touches machines. Each driver is a folder of its own below
// this one and passes the conformance test of drivers/driverstest against the
// real thing.
package drivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"croft/capacity"
	"croft/request"
	"croft/urn"
)

// Driver makes nodes and links real. Every operation is keyed by the URN of
// its sliver and idempotent: making what exists, or removing what does not, is
// success. Operations on different slivers may run at the same time;
// operations on one sliver are serialized by the caller. What an operation
// cannot finish (also when its context ends) it undoes, or List still shows it
// so that Remove can.
type Driver interface {
	// Name is what inventories call the driver: "namespace", "docker", …
	Name() string

	// Check reports what this machine lacks for the driver to work, with a
	// hint for the operator, or nil.
	Check(ctx context.Context) error

	// Accounts lists the account names that an image already has, and that no
	// user may get.
	Accounts(ctx context.Context, image string) ([]string, error)

	// Make makes a node and its interfaces, not started.
	Make(ctx context.Context, n Node) error

	// Start boots a node and returns when its users can log in. Starting what
	// runs is success.
	Start(ctx context.Context, sliver urn.URN) error

	// Stop halts a node; its disk stays.
	Stop(ctx context.Context, sliver urn.URN) error

	// Restart is Stop and Start.
	Restart(ctx context.Context, sliver urn.URN) error

	// UpdateUsers makes the accounts of a node, running or not, those of
	// users, and cuts off logins by accounts and keys that are not among them.
	UpdateUsers(ctx context.Context, sliver urn.URN, users []request.User) error

	// Connect makes a link between interfaces of nodes that Make has made on
	// this driver, all of the link's slice. It holds over restarts of the
	// nodes, which may be stopped, and of the manager.
	Connect(ctx context.Context, l Link) error

	// Remove removes a node or a link and everything that belonged to it.
	Remove(ctx context.Context, sliver urn.URN) error

	// List tells all that exists on the driver's machines, whole or half-made.
	List(ctx context.Context) ([]Found, error)

	// Dial connects to a port of a running node from inside of it ("tcp",
	// "127.0.0.1:22"): the way that logins take. The address is literal.
	Dial(ctx context.Context, sliver urn.URN, network, address string) (net.Conn, error)

	// Exec runs a command inside a running node and waits for it, not for
	// what it leaves in the background. The command ends with the context. One
	// that ran and failed is an *ExitError: 127 when there is no such program,
	// 128 and the signal's number when a signal ended it.
	Exec(ctx context.Context, sliver urn.URN, c Command) error

	// Log writes what the node's console and the driver have said about the
	// node.
	Log(ctx context.Context, sliver urn.URN, w io.Writer) error
}

// LoginTaker is for drivers that may make nodes that nobody can log in to. Of
// other drivers, every node takes logins.
type LoginTaker interface {
	TakesLogins() bool
}

// TakesLogins reports whether users can log in to a driver's nodes. To those
// that they cannot, no way in is opened, and manifests tell of none.
func TakesLogins(d Driver) bool {
	t, ok := d.(LoginTaker)
	return !ok || t.TakesLogins()
}

// HealthTeller is for drivers whose machines can fall ill: one that does not
// answer, or that could not be made clean. No new node is placed on them.
type HealthTeller interface {
	// Health tells what is known now, without asking any machine: it is called
	// before every placement.
	Health() []Ailing
}

// Ailing is a host that is out of service.
type Ailing struct {
	Host   urn.URN
	Since  time.Time
	Reason string // for the operator: what is wrong, and what would mend it
}

// RootGiver is for drivers that may make nodes whose users do not become root.
// What users ask for there runs as themselves, also start-up steps that want
// root.
type RootGiver interface {
	// GivesRoot reports whether the users of a node may become root by sudo.
	GivesRoot(ctx context.Context, sliver urn.URN) (bool, error)
}

// GivesRoot asks a driver whether a node's users may become root. Drivers that
// do not say give root on every node.
func GivesRoot(ctx context.Context, d Driver, sliver urn.URN) (bool, error) {
	if g, ok := d.(RootGiver); ok {
		return g.GivesRoot(ctx, sliver)
	}
	return true, nil
}

// NodesFirst is for drivers whose nodes take their ends of links with them: of a
// slice that ends, nodes are removed before links, which is quicker. With other
// drivers, a machine might be given to others while it is still on a link.
type NodesFirst interface {
	NodesFirst() bool
}

// EndsNodesFirst reports whether a driver wants nodes removed before links.
func EndsNodesFirst(d Driver) bool {
	f, ok := d.(NodesFirst)
	return ok && f.NodesFirst()
}

// TimeTaker is for drivers whose operations may take longer than those on
// processes of this machine: a machine that boots takes minutes.
type TimeTaker interface {
	// OperationTime bounds one operation.
	OperationTime() time.Duration
}

// Noter is for drivers that can tell what befell a node that goes on all the
// same: that it has reached the limit of its memory, for one.
type Noter interface {
	// Notes are sentences for the node's users; none when nothing happened.
	Notes(ctx context.Context, sliver urn.URN) ([]string, error)
}

// Commander is for drivers whose images say what they run.
type Commander interface {
	// ImageCommand is what an image runs, in which directory; none if it does
	// not say. host is the component that a node of it is for.
	ImageCommand(ctx context.Context, host urn.URN, image string) (args []string, dir string, err error)
}

// Shaper is for drivers that can shape links. What links of other drivers are
// asked for is not kept, and requests for it are refused.
type Shaper interface {
	// Shapes reports why a link cannot do what its ends ask for, with what
	// would work, or nil. The nodes of the link need not exist.
	Shapes(l Link) error
}

// Spanner is for drivers whose links can join nodes on several machines, and
// those of other drivers that are linked by the same (inventory.LinkedBy). Of
// other drivers, links need no identifier of their own between machines.
type Spanner interface {
	// Spans reports whether a link needs a VNI, and why it cannot be made. The
	// nodes of the link need not exist; their ends have a host and a driver.
	Spans(l Link) (bool, error)
}

// Shapes reports why a driver cannot do what the ends of a link ask for, or
// nil.
func Shapes(d Driver, l Link) error {
	if s, ok := d.(Shaper); ok {
		return s.Shapes(l)
	}
	for _, e := range l.Ends {
		if e.Out != (request.Shape{}) || e.In != (request.Shape{}) {
			return fmt.Errorf("links of the driver %q are not shaped (leave capacity, latency and loss open)", d.Name())
		}
	}
	return nil
}

// HostKeyTeller is for drivers that know by which key a node shows itself to
// those who log in, from when it is made until it is removed.
type HostKeyTeller interface {
	// HostKey returns the public key as known_hosts files have it: type and
	// base64.
	HostKey(ctx context.Context, sliver urn.URN) (string, error)
}

// HostKey asks a driver for the host key of a node. Of drivers that do not
// tell, it is "".
func HostKey(ctx context.Context, d Driver, sliver urn.URN) (string, error) {
	if t, ok := d.(HostKeyTeller); ok {
		return t.HostKey(ctx, sliver)
	}
	return "", nil
}

// ErrNotFound is what operations on a sliver return that the driver does not
// have (Remove excepted).
var ErrNotFound = errors.New("no such sliver on this driver")

// ErrNotRunning is what Dial and Exec return for a node that is stopped.
var ErrNotRunning = errors.New("node is not running")

// ExitError says that a command ended with a status other than zero.
type ExitError struct{ Status int }

func (e *ExitError) Error() string { return "command ended with status " + strconv.Itoa(e.Status) }

// Node is what to make.
type Node struct {
	Sliver     urn.URN
	Slice      urn.URN
	Host       urn.URN // the component that it is placed on
	SliverType request.SliverType
	Hostname   string
	Image      string // path or name that the driver knows; "" for its default
	Capacity   capacity.Amount
	Interfaces []Interface
	Users      []request.User // with their Login
}

// Interface is one experiment interface of a node.
type Interface struct {
	Name      request.ClientID
	Device    string // its name inside the node: "eth1", …
	MAC       net.HardwareAddr
	Addresses []netip.Prefix
	// Component is the host's own interface that it is; zero for one that the
	// driver makes.
	Component urn.URN
}

// Link is what to connect.
type Link struct {
	Sliver urn.URN
	Slice  urn.URN
	Ends   []End
	VLAN   int // tag where the link runs over the testbed's switches; 0 for none
	VNI    int // VXLAN network identifier where it runs between machines; 0 for none
	// SharedVLAN is the inventory's name of the network that the link is a
	// port of; "" for a link of its own.
	SharedVLAN string
}

// End is an interface of a node, and what the link does to what the interface
// sends (Out) and receives (In).
type End struct {
	Node      urn.URN // sliver
	Interface request.ClientID
	Host      urn.URN // the component that the node is on
	Driver    string  // that has made the node; "" for the link's own
	// Leaves is the name of the host's own interface that the link leaves by
	// where it runs over the testbed's cables; "" for none.
	Leaves  string
	Out, In request.Shape
}

// Kind tells nodes from links.
type Kind string

// The kinds of sliver.
const (
	NodeKind Kind = "node"
	LinkKind Kind = "link"
)

// Found is one thing that exists on a driver's machines.
type Found struct {
	Sliver  urn.URN
	Kind    Kind
	Whole   bool // false: half-made, good only for Remove
	Running bool // nodes only
}

// Command is something to run inside a node.
type Command struct {
	Args           []string
	Env            []string // NAME=value, added to the node's own
	User           string   // account; "" for root
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}
