package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
	"golang.org/x/net/netutil"

	"croft/admin"
	"croft/aggregate"
	"croft/am"
	"croft/credentials"
	"croft/gateway"
	"croft/internal/config"
	"croft/internal/openssl"
	"croft/inventory"
	"croft/languages/playbook"
	"croft/mapping"
	"croft/slivers/sqlite"
	"croft/urn"
)

// allocatedMax is the most that an allocation may be held without being
// provisioned (AM API v3, Allocate: two hours at most).
const allocatedMax = 2 * time.Hour

// pollEvery is how often the inventory file is looked at for changes.
const pollEvery = 2 * time.Second

func serveCommand(a *app) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the aggregate manager",
		Long: `Run the aggregate manager in the foreground until SIGTERM or SIGINT.

It reads croft.yaml, says on standard output where it listens once it does, and
logs to standard error. inventory.yaml and the trust roots are read again when
they change, inventory.yaml also on SIGHUP; while it is wrong, what was read
before counts. Nodes on hosts that go stay until their leases end (croft admin
strays). Nodes go on running when the server stops; a new one adopts them.

It needs root if the inventory has hosts with nodes of namespaces, and none if
all of them are simulated.`,
		Example: "  croft serve\n  croft serve --config /etc/croft/croft.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if path == "" {
				path = filepath.Join(a.dir, "croft.yaml")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return serve(ctx, path, cmd)
		},
	}
	c.Flags().StringVar(&path, "config", "", "configuration file (default: croft.yaml in --dir)")
	return c
}

func serve(ctx context.Context, path string, cmd *cobra.Command) error {
	conf, err := config.Load(path)
	if err != nil {
		return err
	}
	log := newLogger(conf.Log)
	testbed, err := openInventory(conf)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(conf.State, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(conf.Database), 0o700); err != nil {
		return fmt.Errorf("database directory: %w", err)
	}
	unlock, err := lockFile(conf.Database + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	store, err := sqlite.Open(ctx, conf.Database, time.Now)
	if err != nil {
		return err
	}
	defer store.Close()
	trust, err := credentials.OpenTrust(conf.Trusted, credentials.TrustOptions{
		Limits: conf.Trust.Limits, RefuseSHA1: conf.Trust.RefuseSHA1, MinRSABits: conf.Trust.MinRSABits,
		Now: time.Now, Logger: log,
	})
	if err != nil {
		return err
	}
	var policy *credentials.Policy
	if conf.Trust.Policy != "" {
		if policy, err = credentials.ReadPolicy(conf.Trust.Policy); err != nil {
			return err
		}
	}
	held, err := store.All(ctx)
	if err != nil {
		return err
	}
	backends, closeDrivers, err := openDrivers(ctx, conf, testbed.Snapshot, driversOf(testbed.Snapshot(), held), log)
	if err != nil {
		return err
	}
	defer closeDrivers()
	running := testbed.Snapshot()
	testbed.Require(func(s *inventory.Snapshot) error { return servable(running, backends, s) })
	ports := gateway.NewPorts(gateway.Config{
		Address: conf.Logins.Address, Host: conf.Logins.Hostname,
		From: conf.Logins.Ports.From, To: conf.Logins.Ports.To, Log: log,
	})
	defer ports.CloseAll()
	jumpAt, hostKey, err := listenGateway(conf)
	if err != nil {
		return err
	}
	if jumpAt != nil {
		defer jumpAt.Close()
	}
	service := aggregate.New(aggregate.Config{
		Inventory: testbed.Snapshot, Languages: requestLanguages(playbook.Policy(conf.Radl.Playbooks)), Mapper: mapperOf(conf.Mapping),
		Store: store, Drivers: backends, Entrances: ports, Gateway: gatewayOf(conf, hostKey),
		Leases: aggregate.Leases{
			Allocated: time.Duration(conf.Leases.Allocated), AllocatedMax: min(allocatedMax, time.Duration(conf.Leases.Max)),
			Provisioned: time.Duration(conf.Leases.Provisioned), ProvisionedMax: time.Duration(conf.Leases.Max),
		},
		Clock: time.Now, Random: rand.Reader, Log: log, Reconcile: time.Duration(conf.Reconcile),
	})
	defer service.Close()
	if err := service.Start(ctx); err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { watchInventory(ctx, testbed, service, log) })
	if jumpAt != nil {
		jump := gateway.NewJump(gateway.JumpConfig{
			Nodes: service, HostKey: hostKey, Testbed: string(running.Authority), Clock: time.Now, Log: log,
		})
		log.Info("the SSH gateway listens", "address", jumpAt.Addr().String(), "host_key", ssh.FingerprintSHA256(hostKey.PublicKey()))
		watching.Go(func() {
			if err := jump.Serve(ctx, jumpAt); err != nil {
				log.Error("the SSH gateway has ended", "error", err)
			}
		})
	}

	operator := &admin.Server{Service: service, Log: log, Clock: time.Now}
	closeDoor, err := operator.Listen(admin.Socket(conf.State))
	if err != nil {
		return err
	}
	defer closeDoor()
	api := am.New(am.Config{
		Service: service, Trust: trust, Verifier: verifierOf(conf, trust, policy, service.Manager().Authority.Top()), Log: log, Clock: time.Now,
		RequestBytes: int64(conf.Limits.RequestBytes), Nesting: conf.Limits.Nesting, ConcurrentCalls: conf.Limits.ConcurrentCalls,
		URL: conf.URL(),
	})
	restServer, restListener, schedule, err := openREST(conf, service, log)
	if err != nil {
		return err
	}
	if schedule != nil {
		watching.Go(func() { schedule(ctx) })
	}
	return listen(ctx, conf, api, restServer, restListener, log, cmd)
}

// listen serves until ctx ends. restServer is nil if there are no REST APIs.
func listen(ctx context.Context, conf *config.Config, api *am.API, restServer *http.Server, restListener net.Listener, log *slog.Logger, cmd *cobra.Command) error {
	certificate, err := os.ReadFile(conf.PKI.Certificate)
	if err != nil {
		return fmt.Errorf("server certificate: %w (croft init makes one)", err)
	}
	key, err := os.ReadFile(conf.PKI.Key)
	if err != nil {
		return fmt.Errorf("server key: %w (croft init makes one)", err)
	}
	plain, err := net.Listen("tcp", conf.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	secure, err := openssl.NewListener(netutil.LimitListener(plain, conf.Limits.Connections), &openssl.ServerConfig{
		CertificatePEM: certificate, KeyPEM: key, HandshakeTimeout: time.Duration(conf.Limits.Handshake),
		OnHandshakeError: func(client net.Addr, err error) {
			log.Debug("TLS handshake failed", "client", client.String(), "error", err)
		},
	})
	if err != nil {
		plain.Close()
		return err
	}
	server := newServer(conf, api.Handler(am.FromTLS), log)
	server.ConnContext = openssl.ConnContext
	servers := []*http.Server{server}
	listeners := []net.Listener{secure}
	if conf.Frontend.Enabled() {
		front, err := listenFrontend(conf.Frontend)
		if err != nil {
			secure.Close()
			return err
		}
		servers = append(servers, newServer(conf, api.Handler(am.FromHeader(conf.Frontend.Header)), log))
		listeners = append(listeners, netutil.LimitListener(front, conf.Limits.Connections))
		log.Info("listening for a reverse proxy", "network", conf.Frontend.Network, "address", conf.Frontend.Address, "header", conf.Frontend.Header)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "croft serves %s at %s\n", api.Service.Manager(), conf.URL())
	if g := api.Service.SSHGateway(); g.HostKey != "" {
		fmt.Fprintf(cmd.OutOrStdout(), "its SSH gateway is %s, host key %s\n", net.JoinHostPort(g.Login.Host, strconv.Itoa(g.Login.Port)), g.HostKey)
	}
	if restServer != nil {
		servers, listeners = append(servers, restServer), append(listeners, restListener)
		scheme := "https"
		if conf.Rest.Plain {
			scheme = "http"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "its REST APIs are at %s://%s\n", scheme, restListener.Addr())
	}
	failed := make(chan error, len(servers))
	for i, s := range servers {
		go func() { failed <- s.Serve(listeners[i]) }()
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
		log.Info("stopping")
		err = nil
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(conf.Limits.Shutdown))
	defer cancel()
	for _, s := range servers {
		if stopErr := s.Shutdown(grace); stopErr != nil {
			log.Warn("calls were cut off", "error", stopErr)
			s.Close()
		}
	}
	return err
}

func newServer(conf *config.Config, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: time.Duration(conf.Limits.Header),
		ReadTimeout:       time.Duration(conf.Limits.Body),
		WriteTimeout:      time.Duration(conf.Limits.Body + conf.Limits.Reply),
		IdleTimeout:       time.Duration(conf.Limits.Idle),
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// listenFrontend opens the listener for a reverse proxy. A socket that a
// killed server has left is replaced.
func listenFrontend(f config.Frontend) (net.Listener, error) {
	if f.Network == "unix" {
		if info, err := os.Lstat(f.Address); err == nil && info.Mode()&os.ModeSocket != 0 {
			if err := os.Remove(f.Address); err != nil {
				return nil, fmt.Errorf("frontend: replacing an old socket: %w", err)
			}
		}
		old := syscall.Umask(0o117) // the proxy's group may connect, others may not
		defer syscall.Umask(old)
	}
	l, err := net.Listen(f.Network, f.Address)
	if err != nil {
		return nil, fmt.Errorf("frontend: %w", err)
	}
	return l, nil
}

func openInventory(conf *config.Config) (*inventory.Watcher, error) {
	return inventory.Open(conf.Inventory)
}

// watchInventory reads the inventory again when its file changes, and on
// SIGHUP. A wrong file changes nothing.
func watchInventory(ctx context.Context, testbed *inventory.Watcher, service *aggregate.Service, log *slog.Logger) {
	logStrays(ctx, service, log)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		before := testbed.Snapshot()
		var changed bool
		var err error
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			changed, err = testbed.Reload()
		case <-tick.C:
			changed, err = testbed.Poll()
		}
		if err != nil {
			log.Error("the inventory stays as it was", "error", err)
		}
		if changed {
			c := inventory.Compare(before, testbed.Snapshot())
			log.Info("the inventory has changed", "added", someNames(c.Added), "removed", someNames(c.Removed), "altered", someNames(c.Altered))
			logStrays(ctx, service, log)
		}
	}
}

// logStrays says which nodes are on hosts that the inventory does not have any
// more.
func logStrays(ctx context.Context, service *aggregate.Service, log *slog.Logger) {
	strays, err := service.Strays(ctx)
	if err != nil {
		log.Error("looking for nodes on hosts that have gone", "error", err)
	}
	for _, s := range strays {
		log.Warn("a host has more on it than the inventory gives: it stays until the leases end",
			"host", s.Host.String(), "why", s.Why, "slivers", len(s.Slivers), "slices", s.Slices(), "until", s.Until())
	}
}

// someNames are the names of a few hosts, and how many more there are.
func someNames(hosts []urn.URN) string {
	const few = 20
	var names []string
	for i, h := range hosts {
		if i == few {
			return fmt.Sprintf("%s and %d more", strings.Join(names, " "), len(hosts)-few)
		}
		names = append(names, h.Name)
	}
	return strings.Join(names, " ")
}

// lockFile keeps a second server off the same database.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the database: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another croft serves from %s", filepath.Dir(path))
		}
		return nil, fmt.Errorf("locking the database: %w", err)
	}
	return func() { f.Close() }, nil
}

func newLogger(c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // config has checked it
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

// mapperOf makes the mapper that the configuration asks for.
func mapperOf(c config.Mapping) *mapping.Optimizer {
	m := &mapping.Optimizer{
		Objective: mapping.Objective{Host: c.Costs.Host, Switch: c.Costs.Switch, Trunk: c.Costs.Trunk, Scarce: c.Costs.Scarce, Hardware: c.Costs.Hardware},
		Effort:    max(1, int(c.Effort*mapping.DefaultEffort)), Limit: time.Duration(c.Limit), Clock: time.Now,
	}
	if c.Layout == "spread" {
		m.Objective.Layout = mapping.Spread
	}
	return m
}
