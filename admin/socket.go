package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"croft/slivers"
)

func address(l slivers.Login) string {
	if l.Port == 0 {
		return ""
	}
	return net.JoinHostPort(l.Host, strconv.Itoa(l.Port))
}

// throughDir calls use with a path to a socket that is short enough for the
// kernel (unix(7): 108 bytes), whatever folder the socket lies in.
func throughDir(path string, use func(path string) error) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// listen opens the socket. One that a killed server has left is replaced: there
// is one server at a time for a state directory.
func listen(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("the operator's socket: %s is in the way", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("the operator's socket: replacing an old one: %w", err)
		}
	}
	var l *net.UnixListener
	err := throughDir(path, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the operator's socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // its name leads nowhere any more; Serve removes it
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("the operator's socket: %w", err)
	}
	return l, nil
}

// dial connects to the socket.
func dial(ctx context.Context, path string) (conn net.Conn, err error) {
	err = throughDir(path, func(short string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", short)
		return err
	})
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%s: %w (run this as root, or as the user that croft serve runs as)", path, err)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return nil, fmt.Errorf("no server is running: nobody listens on %s (croft serve)", path)
	}
	return conn, err
}

// peer returns the user at the other end of a connection, as the kernel knows
// it.
func peer(conn net.Conn) (uid int, err error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("a connection over %s has no user", conn.LocalAddr().Network())
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var who *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) { who, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, asked); err != nil {
		return 0, fmt.Errorf("asking who connected: %w", err)
	}
	return int(who.Uid), nil
}
