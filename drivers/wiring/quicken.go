package wiring

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// relayPriority is the lowest of real-time priorities.
const relayPriority = 1

// quicken has a relay's threads run as soon as they have something to do, also
// on a machine whose processors are busy: they become real-time threads. That
// this starves nobody is up to the relay, which gives it up by itself when it
// has much to do. Where it is not allowed the relay has its nice value alone.
func (s *Switch) quicken(pid int) {
	for round := 0; ; round++ {
		changed, err := quickenThreads(pid)
		if err != nil {
			s.log.Debug("a relay gets no real-time threads: its link is less exact on a busy machine", "pid", pid, "err", err)
			return
		}
		// A thread that was made meanwhile is one of a thread that had not
		// been changed.
		if changed == 0 || round == maxRounds {
			return
		}
	}
}

// maxRounds bounds how often new threads are looked for. A relay waits for its
// sockets then, and makes none.
const maxRounds = 10

// quickenThreads changes those threads of a process that are none of real time
// and returns how many these were.
func quickenThreads(pid int) (changed int, err error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return changed, err
		}
		attr, err := unix.SchedGetAttr(tid, 0)
		switch {
		case err == unix.ESRCH || err == nil && attr.Policy == unix.SCHED_FIFO:
			continue
		case err != nil:
			return changed, err
		}
		fifo := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: relayPriority}
		if err := unix.SchedSetAttr(tid, fifo, 0); err != nil && err != unix.ESRCH {
			return changed, err
		}
		changed++
	}
	return changed, nil
}
