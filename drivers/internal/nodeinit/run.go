package nodeinit

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

const rootPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// shutdownGrace is how long processes have between SIGTERM and the end.
const shutdownGrace = 2 * time.Second

// run is process 1 of a node: it makes the accounts, serves logins and ends
// everything when it gets SIGTERM. It answers to SyncFD when users can log in.
func run() error {
	err := serve()
	if err != nil {
		answer(AnswerFailure, err.Error())
	}
	return err
}

func serve() error {
	for _, fd := range []int{SyncFD, configFD, controlFD} {
		unix.CloseOnExec(fd)
	}
	var cfg Config
	if err := readConfig(configFD, &cfg); err != nil {
		return err
	}
	unix.Close(configFD)
	f := os.NewFile(controlFD, "control")
	control, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("listen to the driver: %w", err)
	}
	f.Close()
	log := newLog(cfg)
	tuneNetwork(log)
	if err := nameHost(cfg.Hostname); err != nil {
		return err
	}
	ready := func() error {
		if err := answer(AnswerReady, ""); err != nil {
			return fmt.Errorf("the driver ended before the node was up: %w", err)
		}
		unix.Close(SyncFD)
		return nil
	}
	return serveNode(log, cfg, []net.Listener{control}, ready)
}

func newLog(cfg Config) *slog.Logger {
	return slog.New(slog.NewTextHandler(boundConsole(os.Stderr, cfg.ConsoleBytes), nil))
}

// serveNode serves logins, and the driver on its doors, until SIGTERM. It
// calls ready when users can log in.
func serveNode(log *slog.Logger, cfg Config, doors []net.Listener, ready func() error) error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGTERM, unix.SIGINT)
	// Caught and dropped, not ignored: programs inherit what is ignored.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	os.WriteFile("/proc/self/comm", []byte("croft-init"), 0)

	procs := newProcesses()
	hostKey, err := ssh.ParsePrivateKey(cfg.HostKey)
	if err != nil {
		return fmt.Errorf("read the node's host key: %w", err)
	}
	srv := newServer(log, procs, hostKey, len(cfg.Libraries) > 0, cfg.Environment)
	serveLogin := srv.serveLogin
	if cfg.OpenSSH {
		if srv.openSSH = newOpenSSH(log, procs, cfg.HostKey, cfg.Environment); srv.openSSH != nil {
			serveLogin = srv.openSSH.serve
		}
	}
	if err := srv.setAccounts(cfg.Accounts); err != nil {
		return err
	}
	logins, err := net.Listen("tcp", ":22")
	if err != nil {
		return fmt.Errorf("listen for logins: %w", err)
	}
	go srv.accept(logins, serveLogin)
	for _, door := range doors {
		go srv.accept(door, srv.serveDriver)
	}
	log.Info("node is up", "sliver", cfg.Sliver, "hostname", cfg.Hostname)
	if err := ready(); err != nil {
		return err
	}
	log.Info("node goes down", "signal", (<-end).String())
	endAll()
	return nil
}

// tuneNetwork sets what belongs to the node's network namespace. A value that
// this kernel does not have is logged, no more.
func tuneNetwork(log *slog.Logger) {
	for _, set := range []struct{ name, value string }{
		{"ipv4/ping_group_range", "0 65535"}, // ping without being root
		{"ipv4/ip_forward", "0"},             // a new namespace takes it over from the host
	} {
		if err := os.WriteFile("/proc/sys/net/"+set.name, []byte(set.value), 0); err != nil {
			log.Warn("kernel setting", "name", set.name, "err", err)
		}
	}
}

// nameHost makes the host's own name known to the node, without touching what
// its users have written.
func nameHost(name string) error {
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return fmt.Errorf("name the host: %w", err)
	}
	if err := replaceFile("/etc/hostname", []byte(name+"\n"), 0o644, 0); err != nil {
		return fmt.Errorf("name the host: %w", err)
	}
	hosts, err := readRegular("/etc/hosts")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil // the users' own doing
	}
	short, _, _ := strings.Cut(name, ".")
	for line := range strings.Lines(string(hosts)) {
		for _, word := range strings.Fields(line) {
			if word == name || word == short {
				return nil
			}
		}
	}
	if len(hosts) == 0 {
		hosts = []byte("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	}
	names := name
	if short != name {
		names += " " + short
	}
	hosts = fmt.Appendf(hosts, "127.0.1.1 %s\n", names)
	if err := replaceFile("/etc/hosts", hosts, 0o644, 0); err != nil {
		return fmt.Errorf("name the host: %w", err)
	}
	return nil
}

// endAll ends the node's processes: first asked, then, when process 1 exits,
// by the kernel.
func endAll() {
	syscall.Kill(-1, syscall.SIGTERM)
	syscall.Kill(-1, syscall.SIGCONT)
	deadline := time.Now().Add(shutdownGrace)
	for time.Now().Before(deadline) && othersRun() {
		time.Sleep(2 * time.Millisecond)
	}
}

func othersRun() bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid > 1 && !isZombie(pid) {
			return true
		}
	}
	return false
}
