package nodeinit

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal. The master stays non-blocking all its life
// (os.File.Fd would end that), so that closing it hangs up at once, whoever
// reads from it.
type terminal struct {
	master, slave *os.File
	name          string
}

func openTerminal(uid int) (*terminal, error) {
	const ttyGroup = 5 // as devpts is mounted
	master, err := os.OpenFile("/dev/pts/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	var number, slave int
	err = control(master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		var err error
		if number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
			return err
		}
		// The peer by descriptor, not by its name in a tree that is the users'.
		peer, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if e != 0 {
			return e
		}
		slave = int(peer)
		return nil
	})
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	t := &terminal{master: master, name: "/dev/pts/" + strconv.Itoa(number)}
	t.slave = os.NewFile(uintptr(slave), t.name)
	if err := errors.Join(t.slave.Chown(uid, ttyGroup), t.slave.Chmod(0o620)); err != nil {
		t.close()
		return nil, fmt.Errorf("hand over a terminal: %w", err)
	}
	return t, nil
}

func (t *terminal) close() {
	t.master.Close()
	t.slave.Close()
}

func (t *terminal) setSize(columns, rows, width, height uint32) error {
	size := unix.Winsize{Row: uint16(rows), Col: uint16(columns), Xpixel: uint16(width), Ypixel: uint16(height)}
	return control(t.master, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size) })
}

func (t *terminal) setModes(modes string) {
	control(t.master, func(fd int) error {
		settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		applyModes(settings, []byte(modes))
		return unix.IoctlSetTermios(fd, unix.TCSETS, settings)
	})
}

// control calls f with a file's descriptor and leaves its mode alone.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}
