package relay

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxFrame is the longest frame: 1500 bytes, its Ethernet header and tags.
	maxFrame = 1536
	batch    = 64
	// maxHeld bounds the frames that a line holds: of the longest, 200 Mbit/s
	// for more than a second.
	maxHeld = 1 << 15
	// auxRoom is what a control message with a struct tpacket_auxdata takes.
	auxRoom = 64
	tagLen  = 4
)

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// frame is a frame on its way. Its bytes begin after room for a tag.
type frame struct {
	buf        []byte
	start, end int
	out        int64
}

// held is a queue of frames in the order in which they come out.
type held struct {
	frames     []frame // length a power of two
	head, tail int
}

func (h *held) len() int { return h.tail - h.head }

func (h *held) at(i int) *frame { return &h.frames[i&(len(h.frames)-1)] }

func (h *held) push(f frame) {
	if h.len() == len(h.frames) {
		bigger := make([]frame, max(batch, 2*len(h.frames)))
		for i := range h.len() {
			bigger[i] = *h.at(h.head + i)
		}
		h.head, h.tail, h.frames = 0, h.len(), bigger
	}
	*h.at(h.tail) = f
	h.tail++
}

// direction is one direction of a pipe.
type direction struct {
	in, out int
	line    *line
	share   share
	held    held
	pool    [][]byte
	began   time.Time
	poll    unix.PollFd
	sleep   unix.Timespec

	bufs            [batch][]byte
	recv, send      [batch]mmsghdr
	recvIov, sndIov [batch]unix.Iovec
	aux             [batch][auxRoom]byte
}

func newDirection(in, out int, l *line) *direction {
	d := &direction{in: in, out: out, line: l}
	for i := range d.bufs {
		d.bufs[i] = d.buffer()
	}
	return d
}

func (d *direction) buffer() []byte {
	if n := len(d.pool); n > 0 {
		b := d.pool[n-1]
		d.pool = d.pool[:n-1]
		return b
	}
	return make([]byte, tagLen+maxFrame)
}

// now is the time in ns since the direction began.
func (d *direction) now() int64 { return int64(time.Since(d.began)) }

// run relays for ever, on a thread of its own, and calls ready when it begins.
// What ends it goes to failed.
func (d *direction) run(ready func(), failed chan<- error) {
	if err := d.open(); err != nil {
		failed <- err
		return
	}
	ready()
	d.relay(failed)
}

func (d *direction) open() error {
	if err := unix.SetsockoptInt(d.in, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
		return fmt.Errorf("ask for the tags of frames: %w", err)
	}
	d.began = time.Now()
	d.poll = unix.PollFd{Fd: int32(d.in), Events: unix.POLLIN}
	return nil
}

// relay goes on where the thread before this one has left off. The thread ends
// with it, for it stays locked.
func (d *direction) relay(failed chan<- error) {
	runtime.LockOSThread()
	// Sleep as long as asked for and no longer.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		failed <- fmt.Errorf("set the timer slack: %w", err)
		return
	}
	d.share.begin(time.Duration(d.now()))
	for {
		if err := d.receive(); err != nil {
			failed <- err
			return
		}
		if err := d.emit(); err != nil {
			failed <- err
			return
		}
		if d.share.look(time.Duration(d.now())) {
			go d.relay(failed)
			return
		}
		d.wait()
	}
}

// wait returns when a frame has come, or is due.
func (d *direction) wait() {
	longest := d.share.longest()
	if d.held.len() > 0 {
		longest = min(longest, time.Duration(max(0, d.held.at(d.held.head).out-d.now())))
	}
	var timeout *unix.Timespec
	if longest < forever {
		d.sleep = unix.NsecToTimespec(int64(longest))
		timeout = &d.sleep
	}
	unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&d.poll)), 1, uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
}

// receive takes what has come, as long as nothing is due.
func (d *direction) receive() error {
	for {
		for i := range batch {
			d.recvIov[i].Base = &d.bufs[i][tagLen]
			d.recvIov[i].SetLen(maxFrame)
			h := &d.recv[i].hdr
			h.Iov, h.Control = &d.recvIov[i], &d.aux[i][0]
			h.SetIovlen(1)
			h.SetControllen(auxRoom)
		}
		n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(d.in), uintptr(unsafe.Pointer(&d.recv[0])), batch, unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
		case unix.EAGAIN, unix.EINTR, unix.ENETDOWN, unix.ENOBUFS:
			return nil
		default:
			return fmt.Errorf("receive frames: %w", e)
		}
		t := d.now()
		for i := range int(n) {
			d.take(i, t)
		}
		if int(n) < batch || d.held.len() > 0 && d.held.at(d.held.head).out <= t {
			return nil
		}
	}
}

// take puts frame i of those received on the line.
func (d *direction) take(i int, t int64) {
	m := &d.recv[i]
	if m.hdr.Flags&unix.MSG_TRUNC != 0 || d.held.len() >= maxHeld {
		return
	}
	f := frame{buf: d.bufs[i], start: tagLen, end: tagLen + int(m.n)}
	if tag, ok := tagOf(d.aux[i][:min(auxRoom, int(m.hdr.Controllen))]); ok {
		f.insert(tag)
	}
	var ok bool
	if f.out, ok = d.line.admit(t, f.end-f.start, rand.Float64); !ok {
		return
	}
	d.held.push(f)
	d.bufs[i] = d.buffer()
}

// tagOf finds the tag that the kernel has taken off a frame: protocol and
// control information, as they were.
func tagOf(aux []byte) (tag [tagLen]byte, ok bool) {
	// One message is all that was asked for. It holds a struct
	// tpacket_auxdata, packet(7): status, len, snaplen, mac, net, vlan_tci,
	// vlan_tpid.
	header := unix.CmsgLen(0)
	if len(aux) < header+20 {
		return tag, false
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&aux[0]))
	if h.Level != unix.SOL_PACKET || h.Type != unix.PACKET_AUXDATA {
		return tag, false
	}
	data := aux[header:]
	status := binary.NativeEndian.Uint32(data)
	if status&unix.TP_STATUS_VLAN_VALID == 0 {
		return tag, false
	}
	protocol := uint16(unix.ETH_P_8021Q)
	if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		protocol = binary.NativeEndian.Uint16(data[18:])
	}
	binary.BigEndian.PutUint16(tag[:], protocol)
	binary.BigEndian.PutUint16(tag[2:], binary.NativeEndian.Uint16(data[16:]))
	return tag, true
}

// insert puts a tag back behind the addresses.
func (f *frame) insert(tag [tagLen]byte) {
	const addresses = 12
	if f.end-f.start < addresses || f.start < tagLen {
		return
	}
	copy(f.buf[f.start-tagLen:], f.buf[f.start:f.start+addresses])
	f.start -= tagLen
	copy(f.buf[f.start+addresses:], tag[:])
}

// emit sends what is due.
func (d *direction) emit() error {
	for t := d.now(); d.held.len() > 0 && d.held.at(d.held.head).out <= t; {
		k := 0
		for ; k < batch && k < d.held.len(); k++ {
			f := d.held.at(d.held.head + k)
			if f.out > t {
				break
			}
			d.sndIov[k].Base = &f.buf[f.start]
			d.sndIov[k].SetLen(f.end - f.start)
			d.send[k].hdr.Iov = &d.sndIov[k]
			d.send[k].hdr.SetIovlen(1)
		}
		n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(d.out), uintptr(unsafe.Pointer(&d.send[0])), uintptr(k), unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
		case unix.EBADF, unix.ENOTSOCK, unix.ENXIO:
			return fmt.Errorf("send frames: %w", e)
		default:
			n = 1 // what cannot be sent is lost, as on a wire
		}
		for range n {
			f := d.held.at(d.held.head)
			d.pool = append(d.pool, f.buf)
			f.buf = nil
			d.held.head++
		}
	}
	return nil
}
