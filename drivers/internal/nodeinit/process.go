package nodeinit

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// processes starts and reaps the node's processes. As process 1, the node's
// init is the parent of every orphan, so one place waits for all of them.
type processes struct {
	// begin is held while a program's files are opened and it is started, one
	// at a time: each system call may take a thread, and the node may have none
	// left.
	begin sync.Mutex

	mu      sync.Mutex // held from fork to entry into waiting
	waiting map[int]chan<- syscall.WaitStatus
}

// spareThreads is how many threads the init has ready. What it does is waited
// for by the runtime, but for short calls, and one program is started at a time.
const spareThreads = 8

// spareSome makes threads, which the runtime keeps for later: when the node has
// as many processes as it may have, there is no way to get one, and a program in
// Go that needs one ends, here with all of the node.
func spareSome() {
	var made, freed sync.WaitGroup
	made.Add(spareThreads)
	for range spareThreads {
		freed.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			made.Wait()
		})
	}
	freed.Wait()
}

func newProcesses() *processes {
	spareSome()
	p := &processes{waiting: map[int]chan<- syscall.WaitStatus{}}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for range children {
			p.reap()
		}
	}()
	return p
}

func (p *processes) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		p.mu.Lock()
		done := p.waiting[pid]
		delete(p.waiting, pid)
		p.mu.Unlock()
		if done != nil {
			done <- status
		}
	}
}

// process is one that processes has started.
type process struct {
	pid  int
	done <-chan syscall.WaitStatus // gets one value
}

// start runs a program. The process leads a session of its own.
func (p *processes) start(path string, argv []string, attr *syscall.ProcAttr) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	done := make(chan syscall.WaitStatus, 1)
	p.waiting[pid] = done
	// When memory runs out, work goes before the init that holds the node
	// together, and before the host's own. Raising is always allowed.
	os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("500"), 0)
	return &process{pid: pid, done: done}, nil
}

// signal goes to the whole process group.
func (p *process) signal(s syscall.Signal) { syscall.Kill(-p.pid, s) }
