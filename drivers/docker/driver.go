package docker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"croft/drivers"
	"croft/drivers/internal/cgroup"
	"croft/drivers/internal/nodecheck"
	"croft/drivers/internal/nodeinit"
	"croft/drivers/internal/program"
	"croft/drivers/wiring"
	"croft/request"
	"croft/urn"
)

// Config is what a Driver works with. Only Dir and Manager are needed.
type Config struct {
	// Dir is the directory with the state of links. One driver uses it at a
	// time.
	Dir string

	// Manager tells the containers of this manager from those of others on the
	// same Docker host: its URN.
	Manager urn.URN

	// Hosts are the Docker hosts. Default: LocalHost.
	Hosts []Host

	// Pull lets images that a host lacks be pulled from their registries.
	Pull bool

	// Executable is the binary that is run as init of each node; it calls
	// Init. Default: the running one.
	Executable string

	// Processes bounds the processes of a node. Default 4096.
	Processes int64

	// Wires is the switch that containers of this machine are linked by, which
	// other drivers may share, and Machine what links beyond this machine need
	// to know of it. Default: a switch of the driver's own, in Dir, and nothing.
	Wires   *wiring.Switch
	Machine *wiring.Machine

	Logger *slog.Logger     // default: discard
	Clock  func() time.Time // default: time.Now
	Rand   io.Reader        // for host keys; default: crypto/rand
}

const (
	defaultProcesses = 4096

	// operationTime bounds an operation, besides pulling an image.
	operationTime = 2 * time.Minute
	// adoptTime bounds what is asked of one host when the driver opens.
	adoptTime = 20 * time.Second
	// stopGrace is how long a node has to stop by itself; its init ends
	// earlier, when its processes have.
	stopGrace = 5 * time.Second
	// bootTime bounds a start whose context has no end.
	bootTime = time.Minute
	// accountsTime bounds how long a node may take to change its accounts.
	accountsTime = 30 * time.Second
)

// Driver makes nodes out of containers. It implements drivers.Driver.
type Driver struct {
	cfg     Config
	log     *slog.Logger
	scope   string // short, of the manager: part of names
	hosts   []*host
	program *program.Program
	wires   *wiring.Share
	cgroups cgroup.Hierarchies

	mu         sync.Mutex
	where      map[urn.URN]*host // where nodes were found last
	volumeName string            // see volume
}

var (
	_ drivers.Driver       = (*Driver)(nil)
	_ drivers.HealthTeller = (*Driver)(nil)
	_ drivers.TimeTaker    = (*Driver)(nil)
)

// New opens a driver, takes over the containers of the manager's, and cleans
// up what an earlier one was in the middle of. A host that does not answer is
// logged, and asked again with every operation.
func New(cfg Config) (*Driver, error) {
	if cfg.Dir == "" || cfg.Manager.IsZero() {
		return nil, errors.New("docker driver: no state directory or no manager given")
	}
	if len(cfg.Hosts) == 0 {
		cfg.Hosts = []Host{LocalHost}
	}
	if cfg.Executable == "" {
		cfg.Executable = "/proc/self/exe"
	}
	if cfg.Processes == 0 {
		cfg.Processes = defaultProcesses
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Machine == nil {
		cfg.Machine = &wiring.Machine{Name: "this machine", Alone: len(cfg.Hosts) == 1}
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	sum := sha256.Sum256([]byte(cfg.Manager.Canonical().String()))
	d := &Driver{
		cfg: cfg, log: cfg.Logger.With("driver", "docker"), scope: hex.EncodeToString(sum[:4]),
		where: map[urn.URN]*host{},
	}
	if err := d.open(); err != nil {
		d.Close()
		return nil, fmt.Errorf("docker driver: %w", err)
	}
	return d, nil
}

func (d *Driver) open() error {
	if err := checkHosts(d.cfg.Hosts); err != nil {
		return err
	}
	var err error
	if d.program, err = program.Open(d.cfg.Executable); err != nil {
		return err
	}
	for _, h := range d.cfg.Hosts {
		opened, err := d.openHost(h)
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		d.hosts = append(d.hosts, opened)
	}
	for _, dir := range []string{d.intents(), d.endings()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
	}
	if d.cgroups, err = cgroup.Find(); err != nil {
		return err
	}
	settle := func(pid int) error { return d.cgroups.Settle(d.relays(), pid) }
	if d.cfg.Wires != nil {
		d.wires, err = d.cfg.Wires.Join(d.Name(), d.lookup, settle)
	} else {
		d.wires, err = wiring.OpenShare(d.Name(), wiring.Config{
			Dir: d.cfg.Dir, Nodes: d.lookup, Executable: d.cfg.Executable, Settle: settle, Logger: d.log,
		})
	}
	if err != nil {
		return err
	}
	d.tidy()
	var all sync.WaitGroup
	for _, h := range d.hosts {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), adoptTime)
			defer cancel()
			if err := d.adopt(ctx, h); err != nil {
				d.log.Warn("a Docker host is out of service", "error", err)
			}
		})
	}
	all.Wait()
	return nil
}

// Close lets go of the hosts. Nodes go on running.
func (d *Driver) Close() error {
	var errs []error
	if d.wires != nil {
		errs = append(errs, d.wires.Close())
	}
	for _, h := range d.hosts {
		errs = append(errs, h.close())
	}
	if d.program != nil {
		errs = append(errs, d.program.File.Close())
	}
	return errors.Join(errs...)
}

// relays is the cgroup of the processes that carry the nodes' links.
func (d *Driver) relays() string {
	sum := sha256.Sum256([]byte(d.cfg.Dir))
	return "croft-" + hex.EncodeToString(sum[:4]) + "-relays"
}

// tidy removes the relays' cgroup when there are no links.
func (d *Driver) tidy() {
	if len(d.wires.Links()) > 0 {
		return
	}
	if err := d.cgroups.RemoveAll(d.relays()); err != nil {
		d.log.Debug("remove the relays' cgroup", "err", err)
	}
}

// Name implements drivers.Driver.
func (d *Driver) Name() string { return "docker" }

// Check implements drivers.Driver. Of several hosts it is enough that one can
// be worked with: the others are out of service until they answer.
func (d *Driver) Check(ctx context.Context) error {
	var errs []error
	for _, h := range d.hosts {
		if err := d.checkHost(ctx, h); err != nil {
			errs = append(errs, fmt.Errorf("docker driver: host %s: %w", h.Name, err))
		}
	}
	if len(errs) < len(d.hosts) {
		for _, err := range errs {
			d.log.Warn("a Docker host is out of service", "error", err)
		}
		return nil
	}
	return errors.Join(errs...)
}

// OperationTime implements drivers.TimeTaker.
func (d *Driver) OperationTime() time.Duration {
	if d.cfg.Pull {
		return pullTime + operationTime
	}
	return operationTime
}

// brief bounds an operation that pulls nothing.
func brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, operationTime)
}

// Accounts implements drivers.Driver. Which host an image is asked of does not
// matter: it is the same on all. One that has still to be pulled, which takes
// long, has those that images usually have; Make sees the others.
func (d *Driver) Accounts(ctx context.Context, image string) ([]string, error) {
	var errs []error
	toPull := false
	for _, h := range d.hosts {
		i, err := d.image(ctx, h, image)
		if err == nil {
			return i.accounts, nil
		}
		toPull = toPull || d.cfg.Pull && errors.Is(err, errNoImage)
		errs = append(errs, err)
	}
	if toPull {
		return nodecheck.UsualAccounts(), nil
	}
	return nil, fmt.Errorf("list the accounts: %w", errors.Join(errs...))
}

// ImageCommand implements drivers.Commander: an image runs its entry point with
// its arguments.
func (d *Driver) ImageCommand(ctx context.Context, component urn.URN, image string) (args []string, dir string, err error) {
	h, err := d.hostOf(component)
	if err != nil {
		return nil, "", err
	}
	i, err := d.pulled(ctx, h, image)
	if err != nil {
		return nil, "", err
	}
	return i.command, i.dir, nil
}

// Start implements drivers.Driver.
func (d *Driver) Start(ctx context.Context, sliver urn.URN) error {
	ctx, cancel := brief(ctx)
	defer cancel()
	n, err := d.whole(ctx, sliver)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := d.start(ctx, n); err != nil {
		return fmt.Errorf("start node %s: %w", sliver, err)
	}
	return nil
}

// Stop implements drivers.Driver.
func (d *Driver) Stop(ctx context.Context, sliver urn.URN) error {
	ctx, cancel := brief(ctx)
	defer cancel()
	n, err := d.whole(ctx, sliver)
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if err := d.stop(ctx, n, stopGrace); err != nil {
		return fmt.Errorf("stop node %s: %w", sliver, err)
	}
	return nil
}

// Restart implements drivers.Driver.
func (d *Driver) Restart(ctx context.Context, sliver urn.URN) error {
	ctx, cancel := brief(ctx)
	defer cancel()
	n, err := d.whole(ctx, sliver)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	if err := d.stop(ctx, n, stopGrace); err != nil {
		return fmt.Errorf("restart node %s: %w", sliver, err)
	}
	n.running = false
	if err := d.start(ctx, n); err != nil {
		return fmt.Errorf("restart node %s: %w", sliver, err)
	}
	return nil
}

// UpdateUsers implements drivers.Driver. Accounts that go leave their home
// directories behind, for when they come back; their processes end.
func (d *Driver) UpdateUsers(ctx context.Context, sliver urn.URN, users []request.User) error {
	ctx, cancel := brief(ctx)
	defer cancel()
	n, err := d.whole(ctx, sliver)
	if err != nil {
		return fmt.Errorf("update users: %w", err)
	}
	if err := d.updateUsers(ctx, n, users); err != nil {
		return fmt.Errorf("update the users of node %s: %w", sliver, err)
	}
	return nil
}

// Remove implements drivers.Driver.
func (d *Driver) Remove(ctx context.Context, sliver urn.URN) error {
	ctx, cancel := brief(ctx)
	defer cancel()
	if l, here := d.wires.Link(sliver); here && l.Way.Machines < 2 {
		if err := d.wires.Disconnect(sliver); err != nil {
			return err
		}
		d.tidy()
		return nil
	}
	n, err := d.find(ctx, sliver)
	switch {
	case errors.Is(err, drivers.ErrNotFound):
		return d.disconnect(ctx, sliver)
	case err != nil:
		return fmt.Errorf("remove: %w", err)
	}
	if err := d.removeNode(ctx, n); err != nil {
		return fmt.Errorf("remove node %s: %w", sliver, err)
	}
	return nil
}

// List implements drivers.Driver. It fails when a host does not answer, for
// what is there is neither lost nor found then.
func (d *Driver) List(ctx context.Context) ([]drivers.Found, error) {
	// All are asked, also those behind one that is ill: that is how its
	// recovery is seen.
	nodes, errs := make([][]*node, len(d.hosts)), make([]error, len(d.hosts))
	var all sync.WaitGroup
	for i, h := range d.hosts {
		all.Go(func() { nodes[i], errs[i] = d.nodes(ctx, h, nil) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var out []drivers.Found
	for _, n := range slices.Concat(nodes...) {
		out = append(out, drivers.Found{Sliver: n.rec.Node.Sliver, Kind: drivers.NodeKind, Whole: n.whole, Running: n.running})
	}
	links, err := d.links(ctx)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	out = append(out, links...)
	slices.SortFunc(out, func(a, b drivers.Found) int { return strings.Compare(a.Sliver.String(), b.Sliver.String()) })
	return out, nil
}

// Init turns the process into the init of a node and does not return, if that
// is what it has been started for; otherwise it does nothing. Programs that
// use a Driver (and test binaries, in TestMain) call it before anything else.
func Init() {
	wiring.Init()
	if len(os.Args) > 1 && os.Args[1] == nodeinit.Word {
		os.Exit(nodeinit.Main(os.Args[2:]))
	}
}
