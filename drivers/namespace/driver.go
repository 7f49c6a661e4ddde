package namespace

import (
	"context"
	"crypto/rand"
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

	"golang.org/x/crypto/ssh"

	"croft/drivers"
	"croft/drivers/internal/nodeinit"
	"croft/drivers/internal/process"
	"croft/drivers/internal/program"
	"croft/drivers/wiring"
	"croft/request"
	"croft/urn"
)

// Config is what a Driver works with. Only Dir is needed.
type Config struct {
	// Dir is the state directory. One driver uses it at a time.
	Dir string

	// Executable is the binary that is run again as init of each node; it
	// calls Init. Default: the running one.
	Executable string

	// Images finds the directory of an image by the name that a node asks
	// for. The directory is a root file system; nodes share it and don't
	// change it. Without Images, and for the name "", nodes get the host's
	// own system, by an allow-list.
	Images func(name string) (dir string, err error)

	// Protected are paths of the host that no node may see, whatever the
	// image: the federation's data, for one. Dir is always among them.
	Protected []string

	// IDs are the user and group ids of the host that nodes get. Default:
	// DefaultIDs. Nobody else may use them.
	IDs IDRange

	// Processes bounds the processes of a node. Default 4096.
	Processes int

	// ConsoleBytes bounds the log of a node. Default 1 MiB.
	ConsoleBytes int64

	// Wires is the switch that nodes are linked by, which other drivers may
	// share, and Machine what links beyond this machine need to know of it.
	// Default: a switch of the driver's own, in Dir, and links on this machine
	// only.
	Wires   *wiring.Switch
	Machine *wiring.Machine

	Logger *slog.Logger     // default: discard
	Clock  func() time.Time // default: time.Now
	Rand   io.Reader        // for host keys; default: crypto/rand
}

// IDRange is a range of user and group ids of the host: 65536 for each node,
// and as many for Check.
type IDRange struct {
	First uint32
	Nodes int
}

const (
	// idsPerNode is how many user ids a node has.
	idsPerNode = 1 << 16
	// checkSlots are the slots at the end of the range that Check uses.
	checkSlots = 1
)

// DefaultIDs lies in the part that Linux systems leave to containers.
var DefaultIDs = IDRange{First: 1 << 30, Nodes: 8192}

// accountsTime bounds how long a node may take to change its accounts.
const accountsTime = 30 * time.Second

// Init turns the process into the init of a node and does not return, if that
// is what it has been started for; otherwise it does nothing. Programs that
// use a Driver (and test binaries, in TestMain) call it before anything else.
func Init() {
	wiring.Init()
	if len(os.Args) > 1 && os.Args[1] == nodeinit.Word {
		os.Exit(nodeinit.Main(os.Args[2:]))
	}
}

// Driver makes nodes out of namespaces. It implements drivers.Driver.
type Driver struct {
	cfg       Config
	log       *slog.Logger
	state     *stateDir
	program   *program.Program
	cgroups   *cgroups
	boot      string
	protected []string

	wires *wiring.Share

	mu    sync.Mutex // guards nodes; node.op and the locks of wires come before it
	nodes map[urn.URN]*node

	closing    chan struct{}
	discarded  chan struct{}  // there is something for deleteDiscarded
	background sync.WaitGroup // waits for nodes that end by themselves

	volumeMu    sync.Mutex // guards the making of empty volumes
	volumesWork bool       // with volumeMu: this host can mount them

	systemMu     sync.Mutex
	skeleton     *skeleton
	skeletonHash string
}

var _ drivers.Driver = (*Driver)(nil)

// node is a node as the driver knows it.
type node struct {
	slot int
	op   sync.Mutex // one operation at a time
	rec  nodeRecord // changed with op and Driver.mu held, read with either

	mu     sync.Mutex
	proc   *process.Process // nil while stopped
	system string           // generated image in use
	down   bool             // being stopped or removed by an operation
}

func (n *node) running() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil || n.proc.Ended() {
		return nil
	}
	return n.proc
}

// New opens a driver on its state directory, takes over the nodes that run,
// and cleans up what an earlier one was in the middle of. Close it to let
// another one use the directory.
func New(cfg Config) (*Driver, error) {
	if cfg.Dir == "" {
		return nil, errors.New("namespace driver: no state directory given")
	}
	if cfg.Executable == "" {
		cfg.Executable = "/proc/self/exe"
	}
	if cfg.IDs == (IDRange{}) {
		cfg.IDs = DefaultIDs
	}
	if last := uint64(cfg.IDs.First) + uint64(cfg.IDs.Nodes)*idsPerNode; cfg.IDs.Nodes < 1 || cfg.IDs.First < idsPerNode || last > 1<<31 {
		return nil, fmt.Errorf("namespace driver: ids from %d for %d nodes: want 65536 ids for each node, from 65536 and up to 2^31", cfg.IDs.First, cfg.IDs.Nodes)
	}
	if cfg.Processes == 0 {
		cfg.Processes = 4096
	}
	if cfg.ConsoleBytes == 0 {
		cfg.ConsoleBytes = 1 << 20
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Machine == nil {
		cfg.Machine = &wiring.Machine{Name: "this machine", Alone: true}
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	d := &Driver{
		cfg: cfg, log: cfg.Logger.With("driver", "namespace"), closing: make(chan struct{}), discarded: make(chan struct{}, 1),
		nodes: map[urn.URN]*node{},
	}
	if err := d.open(); err != nil {
		d.Close()
		return nil, fmt.Errorf("namespace driver: %w", err)
	}
	return d, nil
}

func (d *Driver) open() error {
	var err error
	if d.state, err = openState(d.cfg.Dir); err != nil {
		return err
	}
	for _, p := range append([]string{d.state.path}, d.cfg.Protected...) {
		abs, err := filepath.Abs(p)
		if err != nil {
			return fmt.Errorf("protected path: %w", err)
		}
		d.protected = append(d.protected, abs)
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			d.protected = append(d.protected, real)
		}
	}
	if d.program, err = program.Open(d.cfg.Executable); err != nil {
		return err
	}
	if d.cgroups, err = openCgroups(d.state.path, d.cfg.Processes, d.log); err != nil {
		return err
	}
	if d.boot, err = process.BootID(); err != nil {
		return err
	}
	settle := func(pid int) error { return d.cgroups.Settle(d.cgroups.relays(), pid) }
	if d.cfg.Wires != nil {
		d.wires, err = d.cfg.Wires.Join(d.Name(), d.lookup, settle)
	} else {
		d.wires, err = wiring.OpenShare(d.Name(), wiring.Config{
			Dir: d.state.path, Nodes: d.lookup, Executable: d.cfg.Executable, Settle: settle, Logger: d.log,
		})
	}
	if err != nil {
		return err
	}
	if err := d.adopt(); err != nil {
		return err
	}
	d.background.Go(d.deleteDiscarded)
	return nil
}

// Close lets go of the state directory, when operations have ended. Nodes go
// on running.
func (d *Driver) Close() error {
	close(d.closing)
	d.background.Wait()
	d.mu.Lock()
	for _, n := range d.nodes {
		if p := n.running(); p != nil {
			p.Close()
		}
	}
	d.mu.Unlock()
	if d.wires != nil {
		d.wires.Close()
	}
	if d.program != nil {
		d.program.File.Close()
	}
	if d.state != nil {
		return d.state.close()
	}
	return nil
}

// Name implements drivers.Driver.
func (d *Driver) Name() string { return "namespace" }

// Accounts implements drivers.Driver.
func (d *Driver) Accounts(_ context.Context, image string) ([]string, error) {
	names, err := d.imageAccounts(image)
	if err != nil {
		return nil, fmt.Errorf("list the accounts: %w", err)
	}
	return names, nil
}

// find returns a node that is whole.
func (d *Driver) find(sliver urn.URN) (*node, error) {
	d.mu.Lock()
	n := d.nodes[sliver.Canonical()]
	d.mu.Unlock()
	if n == nil {
		return nil, fmt.Errorf("node %s: %w", sliver, drivers.ErrNotFound)
	}
	return n, nil
}

// begin finds a node and locks it for an operation that needs it whole.
func (d *Driver) begin(sliver urn.URN) (*node, error) {
	n, err := d.find(sliver)
	if err != nil {
		return nil, err
	}
	n.op.Lock()
	d.mu.Lock()
	gone := d.nodes[sliver.Canonical()] != n
	d.mu.Unlock()
	switch {
	case gone:
		n.op.Unlock()
		return nil, fmt.Errorf("node %s: %w", sliver, drivers.ErrNotFound)
	case !n.rec.Whole:
		n.op.Unlock()
		return nil, fmt.Errorf("node %s is half-made (remove it and make it again)", sliver)
	}
	return n, nil
}

// Start implements drivers.Driver.
func (d *Driver) Start(ctx context.Context, sliver urn.URN) error {
	n, err := d.begin(sliver)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer n.op.Unlock()
	if err := d.start(ctx, n); err != nil {
		return fmt.Errorf("start node %s: %w", sliver, err)
	}
	return nil
}

// Stop implements drivers.Driver.
func (d *Driver) Stop(ctx context.Context, sliver urn.URN) error {
	n, err := d.begin(sliver)
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	defer n.op.Unlock()
	if err := d.stop(ctx, n, stopGrace); err != nil {
		return fmt.Errorf("stop node %s: %w", sliver, err)
	}
	return nil
}

// Restart implements drivers.Driver.
func (d *Driver) Restart(ctx context.Context, sliver urn.URN) error {
	n, err := d.begin(sliver)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	defer n.op.Unlock()
	if err := d.stop(ctx, n, stopGrace); err != nil {
		return fmt.Errorf("restart node %s: %w", sliver, err)
	}
	if err := d.start(ctx, n); err != nil {
		return fmt.Errorf("restart node %s: %w", sliver, err)
	}
	return nil
}

// UpdateUsers implements drivers.Driver. Accounts that go leave their home
// directories behind, for when they come back; their processes end.
func (d *Driver) UpdateUsers(ctx context.Context, sliver urn.URN, users []request.User) error {
	n, err := d.begin(sliver)
	if err != nil {
		return fmt.Errorf("update users: %w", err)
	}
	defer n.op.Unlock()
	if err := d.updateUsers(ctx, n, users); err != nil {
		return fmt.Errorf("update the users of node %s: %w", sliver, err)
	}
	return nil
}

func (d *Driver) updateUsers(ctx context.Context, n *node, users []request.User) error {
	if err := d.checkUsers(users, n.rec.Node.Image); err != nil {
		return err
	}
	if err := d.change(n, func(r *nodeRecord) { r.Node.Users = slices.Clone(users) }); err != nil {
		return err
	}
	p := n.running()
	if p == nil {
		return nil
	}
	// A node may not answer, for its root is its users'.
	ctx, cancel := context.WithTimeout(ctx, accountsTime)
	defer cancel()
	return d.setAccounts(ctx, n, p, users)
}

// Remove implements drivers.Driver.
func (d *Driver) Remove(ctx context.Context, sliver urn.URN) error {
	key := sliver.Canonical()
	d.mu.Lock()
	n := d.nodes[key]
	d.mu.Unlock()
	if n != nil {
		n.op.Lock()
		defer n.op.Unlock()
		if err := d.erase(n, key); err != nil {
			return fmt.Errorf("remove node %s: %w", sliver, err)
		}
	}
	if err := d.wires.Disconnect(sliver); err != nil {
		return err
	}
	d.tidy()
	return nil
}

// List implements drivers.Driver.
func (d *Driver) List(ctx context.Context) ([]drivers.Found, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var out []drivers.Found
	for _, l := range d.wires.Links() {
		out = append(out, drivers.Found{Sliver: l.Sliver, Kind: drivers.LinkKind, Whole: l.Whole})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.nodes {
		f := drivers.Found{Sliver: n.rec.Node.Sliver, Kind: drivers.NodeKind, Whole: n.rec.Whole, Running: n.running() != nil}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b drivers.Found) int {
		switch x, y := a.Sliver.String(), b.Sliver.String(); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return out, nil
}

// Dial implements drivers.Driver. The address is literal.
func (d *Driver) Dial(ctx context.Context, sliver urn.URN, network, address string) (net.Conn, error) {
	n, err := d.find(sliver)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	p := n.running()
	if p == nil {
		return nil, fmt.Errorf("dial node %s: %w", sliver, drivers.ErrNotRunning)
	}
	c, err := dialIn(ctx, p, network, address)
	if err != nil {
		if p.Ended() {
			err = drivers.ErrNotRunning
		}
		return nil, fmt.Errorf("dial node %s: %w", sliver, err)
	}
	return c, nil
}

// Log implements drivers.Driver.
func (d *Driver) Log(ctx context.Context, sliver urn.URN, w io.Writer) error {
	n, err := d.find(sliver)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	f, err := os.Open(d.console(n))
	if errors.Is(err, os.ErrNotExist) {
		return nil // never started
	}
	if err != nil {
		return fmt.Errorf("log of node %s: %w", sliver, err)
	}
	defer f.Close()
	if _, err := io.Copy(w, io.LimitReader(f, 2*d.cfg.ConsoleBytes)); err != nil {
		return fmt.Errorf("log of node %s: %w", sliver, err)
	}
	return nil
}

// HostKey implements drivers.HostKeyTeller.
func (d *Driver) HostKey(_ context.Context, sliver urn.URN) (string, error) {
	n, err := d.find(sliver)
	if err != nil {
		return "", fmt.Errorf("host key: %w", err)
	}
	key, err := d.hostKey(n)
	if err != nil {
		return "", fmt.Errorf("host key of node %s: %w", sliver, err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))), nil
}

func (d *Driver) hostKey(n *node) (ssh.Signer, error) {
	d.mu.Lock()
	data := n.rec.HostKey
	d.mu.Unlock()
	key, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("read the host key: %w", err)
	}
	return key, nil
}

func (d *Driver) console(n *node) string {
	return filepath.Join(d.state.nodeDir(n.slot), "console.log")
}
