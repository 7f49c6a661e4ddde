package wiring

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// NetworkOf opens the network namespace of a process.
func NetworkOf(pid int) (*os.File, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if err != nil {
		return nil, fmt.Errorf("open the network of process %d: %w", pid, err)
	}
	return f, nil
}

// InNetwork runs f on a thread that is in a network namespace, so that the
// sockets it opens belong there. The thread ends afterwards. The namespace may
// be given by the pidfd of a process, too.
func InNetwork(ns int, f func() error) error {
	return OnThread(func() error {
		if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the network: %w", err)
		}
		return f()
	})
}

// OnThread runs f on a thread of its own that ends afterwards, and with it
// what f has changed of the thread.
func OnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			done <- f()
			return // locked: the thread ends with the goroutine
		}
		// The main thread never ends. It is kept busy while another one is
		// found.
		done <- OnThread(f)
		runtime.UnlockOSThread()
	}()
	return <-done
}
