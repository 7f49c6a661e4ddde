package wiring

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"croft/drivers/internal/process"
	"croft/drivers/internal/records"
	"croft/drivers/wiring/internal/relay"
)

// Init turns the process into a relay, or into the Switch of a machine that is
// worked from another one, and does not return, if that is what it
// has been started for; otherwise it does nothing. Programs that use a Switch
// (and test binaries, in TestMain) call it before anything else.
func Init() {
	if socket, is := isFar(os.Args); is {
		fmt.Fprintf(os.Stderr, "the switch: %v\n", farMain(socket))
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == relay.Word {
		os.Exit(relay.Main(os.Args[2:]))
	}
}

// relayRecord is a running relay as its file has it.
type relayRecord struct {
	PID   int
	Start uint64
	Boot  string
}

// relayProcess is a running relay.
type relayProcess struct {
	*process.Process
	ready chan struct{} // closed when frames get through
}

// awaitRelay waits until frames get through the relay of a link, if it has
// one. No lock is held.
func (s *Switch) awaitRelay(slot int) error {
	s.netMu.Lock()
	p := s.relays[slot]
	s.netMu.Unlock()
	if p == nil {
		return nil
	}
	timer := time.NewTimer(relayTime)
	defer timer.Stop()
	select {
	case <-p.ready:
		return nil
	case <-p.Done:
		return errors.New("the relay has ended at once")
	case <-timer.C:
		return fmt.Errorf("the relay does not begin within %s", relayTime)
	}
}

const (
	// relayTime is how long a relay may take to begin.
	relayTime = 20 * time.Second
	// nobody is whom relays run as.
	nobody = 65534
	// relayNice puts relays before what nodes do.
	relayNice = -15
	// relayPause is between the end of a relay that nobody wanted to end and
	// the start of another one.
	relayPause = time.Second
)

func (s *Switch) relayFile(slot int) string { return s.in("relays", strconv.Itoa(slot)+".json") }

// startRelay starts the relay of a link, unless it runs. netMu is held.
func (s *Switch) startRelay(r *linkRecord, legs []leg) error {
	if p := s.relays[r.Slot]; p != nil {
		if !p.Ended() {
			return nil
		}
		p.Close()
		delete(s.relays, r.Slot)
	}
	var pipes []relay.Pipe
	var names []string
	for _, leg := range legs {
		pipes = append(pipes, relay.Pipe{There: leg.out, Back: leg.back})
		names = append(names, legEnd("v", r.Slot, leg.end), legEnd("u", r.Slot, leg.end))
	}
	sockets, err := s.fabric.packetSockets(names)
	if err != nil {
		return fmt.Errorf("start the relay: %w", err)
	}
	defer closeAll(sockets)
	p, err := s.spawnRelay(r.Slot, pipes, sockets)
	if err != nil {
		return fmt.Errorf("start the relay: %w", err)
	}
	s.relays[r.Slot] = p
	s.attendRelay(r, p)
	return nil
}

func (s *Switch) spawnRelay(slot int, pipes []relay.Pipe, sockets []*os.File) (_ *relayProcess, err error) {
	args, err := relay.Command(pipes)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	unix.SetNonblock(pair[0], true) // the runtime waits, no thread
	mine, theirs := os.NewFile(uintptr(pair[0]), "sync"), os.NewFile(uintptr(pair[1]), "sync")
	defer theirs.Close()
	// The program is run by its descriptor, which must not be overwritten by
	// those that the relay gets: they get numbers below it, and the runtime
	// uses those above the highest that is passed.
	program := int(s.program.Fd())
	above, err := unix.FcntlInt(theirs.Fd(), unix.F_DUPFD_CLOEXEC, program+1)
	if err != nil {
		mine.Close()
		return nil, err
	}
	passed := os.NewFile(uintptr(above), "sync")
	defer passed.Close()
	attr := &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=" + strconv.Itoa(2*len(pipes)+1)},
		Files: []*os.File{null, null, null, passed},
		Sys: &syscall.SysProcAttr{
			Setsid:     true,
			Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
			Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
		},
	}
	defer func() {
		if err != nil {
			mine.Close()
		}
	}()
	var proc *os.Process
	err = OnThread(func() error { // a process has the priority of the thread that starts it
		unix.Setpriority(unix.PRIO_PROCESS, 0, relayNice)
		var err error
		proc, err = os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", program), append([]string{"croft-relay"}, args...), attr)
		return err
	})
	if err != nil {
		return nil, err
	}
	pid := proc.Pid
	proc.Release() // it is waited for by its pidfd
	p, err := process.Watch(pid, 0)
	if err != nil {
		unix.Kill(pid, unix.SIGKILL)
		unix.Wait4(pid, nil, 0, nil)
		return nil, err
	}
	// Where each session has its share of the processor, the priority is among
	// the session's own; the session's is this. Not all kernels have it.
	os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(relayNice)), 0)
	// Until it is told to begin it ends with the manager.
	err = records.Write(s.relayFile(slot), relayRecord{PID: p.PID, Start: p.Start, Boot: s.boot}, false)
	if settle := s.settler(slot); err == nil && settle != nil {
		err = settle(pid)
	}
	if err == nil {
		s.quicken(pid)
		err = sendSockets(pair[0], sockets)
	}
	if err != nil {
		return nil, errors.Join(err, p.End(context.Background(), 0), p.Close(), removeFile(s.relayFile(slot)))
	}
	out := &relayProcess{Process: p, ready: make(chan struct{})}
	go func() {
		defer mine.Close()
		if n, _ := mine.Read(make([]byte, 1)); n == 1 {
			close(out.ready)
		}
	}()
	return out, nil
}

// sendSockets sends a relay what it works on. It may begin then.
func sendSockets(to int, sockets []*os.File) error {
	for some := range slices.Chunk(sockets, relay.SocketsAtOnce) {
		var fds []int
		for _, f := range some {
			fds = append(fds, int(f.Fd()))
		}
		if err := unix.Sendmsg(to, []byte{1}, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
			return fmt.Errorf("send the relay its sockets: %w", err)
		}
	}
	return nil
}

// adoptRelays takes hold of the relays that run.
func (s *Switch) adoptRelays() error {
	if err := os.MkdirAll(s.in("relays"), 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	entries, err := os.ReadDir(s.in("relays"))
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	bySlot := map[string]*linkRecord{}
	for _, r := range s.links {
		bySlot[strconv.Itoa(r.Slot)+".json"] = r
	}
	for _, e := range entries {
		var rec relayRecord
		err := records.Read(s.in("relays", e.Name()), &rec)
		if err != nil && !errors.Is(err, records.ErrNeverWritten) {
			return err
		}
		var p *process.Process
		if err == nil && rec.Boot == s.boot {
			p, err = process.Watch(rec.PID, rec.Start)
			if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		r := bySlot[e.Name()]
		if p != nil && r != nil && r.Whole {
			adopted := &relayProcess{Process: p, ready: make(chan struct{})}
			close(adopted.ready)
			s.relays[r.Slot] = adopted
			s.attendRelay(r, adopted)
			continue
		}
		if p != nil {
			err := errors.Join(p.End(context.Background(), 0), p.Close())
			if err != nil {
				return err
			}
		}
		if err := removeFile(s.in("relays", e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// attendRelay starts a relay again when it ends and nobody has ended it.
func (s *Switch) attendRelay(r *linkRecord, p *relayProcess) {
	s.background.Go(func() {
		select {
		case <-s.closing:
			return
		case <-p.Done:
		}
		s.netMu.Lock()
		wanted := s.relays[r.Slot] == p
		s.netMu.Unlock()
		if !wanted {
			return
		}
		s.log.Error("the relay of a link has ended by itself and is started again", "sliver", r.Link.Sliver.String(), "pid", p.PID)
		select {
		case <-s.closing:
			return
		case <-time.After(relayPause):
		}
		s.netMu.Lock()
		defer s.netMu.Unlock()
		if s.relays[r.Slot] != p || s.fabric.handle == nil {
			return
		}
		delete(s.built, r.Slot)
		if err := s.build(r); err != nil {
			s.log.Error("start a relay again", "sliver", r.Link.Sliver.String(), "err", err)
		}
	})
}

// stopRelay ends the relay of a link, if it has one. netMu is held.
func (s *Switch) stopRelay(slot int) error {
	p := s.relays[slot]
	if p == nil {
		return nil
	}
	delete(s.relays, slot)
	if err := p.End(context.Background(), 0); err != nil {
		return err
	}
	p.Close()
	return removeFile(s.relayFile(slot))
}

// socketBuffer is how many bytes may wait for a relay that is not running just
// now.
const socketBuffer = 8 << 20

// packetSockets opens a socket at each of the interfaces, for all frames that
// come in.
func (f *fabric) packetSockets(names []string) ([]*os.File, error) {
	var out []*os.File
	err := InNetwork(int(f.ns), func() error {
		for _, name := range names {
			l, err := f.handle.LinkByName(name)
			if err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			out = append(out, os.NewFile(uintptr(fd), name))
			all := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})
			err = errors.Join(
				unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
				unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer),
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer),
				unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: l.Attrs().Index}))
			if err != nil {
				return fmt.Errorf("open %s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		closeAll(out)
		return nil, err
	}
	return out, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
