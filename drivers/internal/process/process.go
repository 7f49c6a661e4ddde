// Package process takes hold of processes that outlive the manager: nodes and
// relays. A process is known by its PID and the time at which it began, which
// also a manager that comes later can check.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a running process, a child of this one or one that an earlier
// manager has started.
type Process struct {
	PID   int
	Start uint64        // clock ticks since boot, tells processes of one PID apart
	Done  chan struct{} // closed when it has ended
	fd    *os.File      // pidfd: names the process even when its PID is used again
}

// Close lets go of a process, which goes on.
func (p *Process) Close() error { return p.fd.Close() }

// BootID tells one run of the kernel from another.
func BootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// startTime reads when a process began, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("look at process %d: %w", pid, err)
	}
	// The command's name, in parentheses, may hold anything.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	const starttime = 22 - 3 // proc(5) counts from 1; pid and comm are cut off
	if len(fields) <= starttime {
		return 0, fmt.Errorf("look at process %d: /proc/%d/stat is short", pid, pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, fmt.Errorf("process %d has ended: %w", pid, os.ErrProcessDone)
	}
	return strconv.ParseUint(fields[starttime], 10, 64)
}

// Watch takes hold of a process. When start is not 0 and the process of that
// PID began at another time, the one looked for has ended.
func Watch(pid int, start uint64) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("take hold of process %d: %w", pid, err)
	}
	p := &Process{PID: pid, Start: start, fd: os.NewFile(uintptr(fd), "pidfd"), Done: make(chan struct{})}
	began, err := startTime(pid)
	if err == nil && start != 0 && began != start {
		err = fmt.Errorf("process %d is another one: %w", pid, os.ErrProcessDone)
	}
	if err != nil {
		p.fd.Close()
		return nil, err
	}
	p.Start = began
	go p.await()
	return p, nil
}

// await waits without holding a thread, and reaps what is a child.
func (p *Process) await() {
	defer close(p.Done)
	raw, err := p.fd.SyscallConn()
	if err != nil {
		return
	}
	raw.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
	var status syscall.WaitStatus
	syscall.Wait4(p.PID, &status, syscall.WNOHANG, nil)
}

// Signal sends a signal; to a process that has ended, too.
func (p *Process) Signal(s unix.Signal) error {
	return p.Control(func(fd int) error {
		err := unix.PidfdSendSignal(fd, s, nil, 0)
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return err
	})
}

// Control gives do the pidfd.
func (p *Process) Control(do func(fd int) error) error {
	raw, err := p.fd.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// End asks the process to end, for at most grace, and then makes it.
func (p *Process) End(ctx context.Context, grace time.Duration) error {
	if grace > 0 {
		if err := p.Signal(unix.SIGTERM); err != nil {
			return fmt.Errorf("stop process %d: %w", p.PID, err)
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.Done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if !p.Ended() {
		if err := p.Signal(unix.SIGKILL); err != nil {
			return fmt.Errorf("kill process %d: %w", p.PID, err)
		}
	}
	// The kernel ends all processes of the node before its init counts as
	// ended. That takes no longer than it takes.
	<-p.Done
	return nil
}
