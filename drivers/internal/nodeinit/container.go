package nodeinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where things of a container's lie. BinaryDir holds what Command runs.
const (
	BinaryDir         = binDir
	ContainerConfig   = "/var/lib/croft/node.json"     // a Config without accounts
	ContainerAccounts = "/var/lib/croft/accounts.json" // a list of Account
	controlSocket     = "/run/croft-control/socket"
)

// ControlName is the abstract UNIX socket of a container's network by which a
// driver on the same machine reaches the init. Who connects to it from inside of
// the container is turned away.
const ControlName = "@croft-control"

// Control is the address by which StageConnect reaches the init of its own
// node, which it waits for a while.
const Control = "control"

// Command returns the command line that runs a stage inside a node whose
// BinaryDir holds this binary as Binary and, if it is dynamically linked, its
// libraries in Libraries and Loader, a link to the first of them.
func Command(dynamic bool, stage string, args ...string) []string {
	return append(selfCommand(dynamic, stage), args...)
}

// Names in BinaryDir.
const (
	Binary    = "init"
	Loader    = "loader"
	Libraries = "lib"
)

// container is process 1 of a container: the engine has made its file system
// and namespaces, and keeps it from what it must not do.
func container() error {
	var cfg Config
	for _, f := range []struct {
		name string
		into any
	}{{ContainerConfig, &cfg}, {ContainerAccounts, &cfg.Accounts}} {
		data, err := readRegular(f.name)
		if err == nil {
			err = json.Unmarshal(data, f.into)
		}
		if err != nil {
			return fmt.Errorf("read the node's configuration: %w", err)
		}
	}
	unix.Umask(0o022)
	control, err := listenInside()
	if err != nil {
		return fmt.Errorf("listen to the driver: %w", err)
	}
	outside, err := net.Listen("unix", ControlName)
	if err != nil {
		return fmt.Errorf("listen to the driver: %w", err)
	}
	return serveNode(newLog(cfg), cfg, []net.Listener{control, fromOutside{outside, outsideRoot()}}, func() error { return nil })
}

// fromOutside accepts only connections of processes that are not in the node.
type fromOutside struct {
	net.Listener
	root uint32 // user id that the host's root has, seen from here
}

func (l fromOutside) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || isOutside(c, l.root) {
			return c, err
		}
		c.Close()
	}
}

// outsideRoot is the host's root, seen from the node: itself, unless the engine
// gives the node's users other ids on the host (userns-remap); then it has none
// here, which the kernel has a number for.
func outsideRoot() uint32 {
	const usual = 65534
	users, err := os.ReadFile("/proc/self/uid_map")
	if f := strings.Fields(string(users)); err != nil || len(f) > 1 && f[0] == "0" && f[1] == "0" {
		return 0
	}
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return usual
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return usual
	}
	return uint32(id)
}

// isOutside reports whether the other side is the host's root, and has no
// number among the node's processes.
func isOutside(c net.Conn, root uint32) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	var inner error
	err = raw.Control(func(fd uintptr) { peer, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return err == nil && inner == nil && peer.Pid == 0 && peer.Uid == root
}

// listenInside makes the socket that the driver reaches from inside of the
// container. Only the node's root gets to it.
func listenInside() (net.Listener, error) {
	dir := path.Dir(controlSocket)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	// The name comes when somebody listens, so that who finds it can connect.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: controlSocket + ".new", Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := os.Rename(controlSocket+".new", controlSocket); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// connect joins standard input and output to a connection: "control", or a
// network and a literal address. It writes AnswerReady first, or AnswerFailure
// and why. When the other side has said all it ends, for its own output cannot
// be closed for the reader alone.
func connect(args []string) int {
	c, err := dialFor(args)
	if err != nil {
		fmt.Fprintf(os.Stdout, "%c%v", AnswerFailure, err)
		return 1
	}
	defer c.Close()
	if _, err := os.Stdout.Write([]byte{AnswerReady}); err != nil {
		return 1
	}
	go func() {
		io.Copy(c, os.Stdin)
		if h, ok := c.(halfCloser); ok {
			h.CloseWrite()
		}
	}()
	if _, err := io.Copy(os.Stdout, c); err != nil {
		return 1
	}
	return 0
}

func dialFor(args []string) (net.Conn, error) {
	switch {
	case len(args) == 1 && args[0] == Control:
		return dialControl()
	case len(args) == 2:
		return net.DialTimeout(args[0], args[1], dialTime)
	}
	return nil, fmt.Errorf("connect %q: want %q, or a network and an address", args, Control)
}

// dialControl waits for the init to listen.
func dialControl() (net.Conn, error) {
	const pause = 5 * time.Millisecond
	for deadline := time.Now().Add(dialTime); ; time.Sleep(pause) {
		c, err := net.Dial("unix", controlSocket)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
			return c, err
		}
	}
}
