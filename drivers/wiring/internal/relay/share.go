package relay

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// share keeps the thread of a direction from taking the processor from all
// others. As long as it needs less than a part of a processor it is a
// real-time thread, if the manager made it one: it runs the moment it has
// something to do. One that needs more, for a node sends as much as it can, is
// a thread like others until it needs less again.
type share struct {
	realTime bool // the manager has allowed it
	quick    bool // it is a real-time thread now

	credit     time.Duration // processor time that it may take
	used, seen time.Duration // processor time and time of the last look
}

const (
	// sharePart is the part of one processor that a real-time thread may take:
	// one of so many.
	sharePart = 2
	// shareCredit is how much processor time a thread may take at once that
	// had nothing to do before.
	shareCredit = 10 * time.Millisecond
	// shareLook is how often a thread looks at least what it has taken.
	shareLook = time.Millisecond
	// slice is how long a thread that is none of real time runs at a time. The
	// kernel (from Linux 6.12 on) lets those with short slices run sooner.
	slice = 100 * time.Microsecond
)

// begin is called on the thread, which may be one that another thread of the
// relay has just made: it has the policy of that one.
func (s *share) begin(now time.Duration) {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	if attr.Policy == unix.SCHED_FIFO {
		s.realTime, s.quick = true, true
	} else {
		beShort(attr)
	}
	s.credit, s.seen, s.used = shareCredit, now, threadTime()
}

// beShort asks for short slices. Where the kernel knows none nothing changes.
func beShort(attr *unix.SchedAttr) {
	if attr.Policy != unix.SCHED_NORMAL {
		return
	}
	attr.Runtime = uint64(slice)
	unix.SchedSetAttr(0, attr, 0)
}

// look is called each time around. It reports that the thread, which was put
// back, may be one of real time again: it has no right to become one by
// itself, but a new thread of the relay is one.
func (s *share) look(now time.Duration) (anew bool) {
	if !s.realTime || now-s.seen < shareLook {
		return false
	}
	wasQuick := s.quick
	s.account(now, threadTime())
	if wasQuick && !s.quick {
		putBack()
	}
	return !wasQuick && s.quick
}

// account sets whether the thread should be one of real time, by the processor
// time that it has used in all.
func (s *share) account(now, used time.Duration) {
	s.credit += (now-s.seen)/sharePart - (used - s.used)
	s.credit = max(-shareCredit, min(shareCredit, s.credit))
	s.seen, s.used = now, used
	switch {
	case s.credit < 0:
		s.quick = false
	case s.credit >= shareCredit:
		s.quick = true
	}
}

// putBack makes the thread one like others, with its nice value.
func putBack() {
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Runtime: uint64(slice)}
	if p, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		attr.Nice = int32(20 - p) // the system call returns 20 less the nice value
	}
	unix.SchedSetAttr(0, attr, 0)
}

const forever = time.Duration(math.MaxInt64)

// longest is how long the thread may wait for something to do until it looks
// again.
func (s *share) longest() time.Duration {
	if s.realTime && !s.quick {
		return sharePart * shareCredit
	}
	return forever
}

// threadTime is the processor time that the thread has taken.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
