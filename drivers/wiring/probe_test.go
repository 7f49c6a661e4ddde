package wiring_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"croft/drivers/wiring"
	"croft/request"
)

// probes sends datagrams and returns how long each that came was on its way,
// in ms: from the time at which the kernel gave it to the sender's interface
// to that at which the kernel had it at the receiver's. So processes that
// wait for the processor are not measured, as they are with ping, and nothing
// is rounded.
func (h *host) probes(to *host, link, count int, every time.Duration) ([]float64, error) {
	in, err := to.probeSocket(net.UDPAddr{}, unix.SOF_TIMESTAMPING_RX_SOFTWARE)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	peer := net.UDPAddr{IP: address(link, to.number()).Addr().AsSlice(), Port: in.LocalAddr().(*net.UDPAddr).Port}
	out, err := h.probeSocket(peer, unix.SOF_TIMESTAMPING_TX_SOFTWARE|unix.SOF_TIMESTAMPING_OPT_ID|unix.SOF_TIMESTAMPING_OPT_TSONLY)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	came := make(chan map[uint32]int64)
	go func() { came <- arrivals(in, count) }()
	sent := map[uint32]int64{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := range count {
		if _, err := out.Write(binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
			return nil, err
		}
		<-tick.C
		if err := departures(out, sent); err != nil {
			return nil, err
		}
	}
	const late = 500 * time.Millisecond // for those that are on their way
	in.SetReadDeadline(time.Now().Add(late))
	var delays []float64
	for i, at := range <-came {
		if from, ok := sent[i]; ok {
			delays = append(delays, float64(at-from)/1e6)
		}
	}
	if len(delays) == 0 {
		return nil, fmt.Errorf("none of %d datagrams has come with its times (%d have those of their sending)", count, len(sent))
	}
	slices.Sort(delays)
	return delays, nil
}

// probeSocket opens a socket in a host's network: to send to a peer, or, if
// there is none, to receive at.
func (h *host) probeSocket(peer net.UDPAddr, flags int) (c *net.UDPConn, err error) {
	err = wiring.InNetwork(h.fd(), func() error {
		if peer.Port != 0 {
			c, err = net.DialUDP("udp4", nil, &peer)
		} else {
			c, err = net.ListenUDP("udp4", &peer)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	if err == nil {
		e := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, flags|unix.SOF_TIMESTAMPING_SOFTWARE)
		})
		err = errors.Join(err, e)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("ask for times: %w", err)
	}
	return c, nil
}

// arrivals receives so many datagrams, or until the socket's deadline, and
// tells the time of each number.
func arrivals(c *net.UDPConn, count int) map[uint32]int64 {
	out := map[uint32]int64{}
	data, control := make([]byte, 64), make([]byte, 512)
	for len(out) < count {
		n, room, _, _, err := c.ReadMsgUDP(data, control)
		if err != nil {
			break
		}
		if at, _ := stamp(control[:room]); n == 4 && at != 0 {
			out[binary.BigEndian.Uint32(data)] = at
		}
	}
	return out
}

// departures takes the times of what has been sent so far.
func departures(c *net.UDPConn, sent map[uint32]int64) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	control := make([]byte, 512)
	return raw.Control(func(fd uintptr) {
		for {
			_, room, _, _, err := unix.Recvmsg(int(fd), nil, control, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil {
				return // there is none
			}
			at, number := stamp(control[:room])
			// Interfaces behind the first tell theirs, too.
			if _, again := sent[number]; at != 0 && !again {
				sent[number] = at
			}
		}
	})
}

// stamp finds the kernel's time, in ns, in control messages, and the number of
// the datagram that it is of, where they tell it.
func stamp(control []byte) (at int64, number uint32) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, 0
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPING && len(m.Data) >= int(unsafe.Sizeof(unix.ScmTimestamping{})):
			times := (*unix.ScmTimestamping)(unsafe.Pointer(&m.Data[0]))
			at = times.Ts[0].Nano()
		case m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_RECVERR && len(m.Data) >= int(unsafe.Sizeof(unix.SockExtendedErr{})):
			number = (*unix.SockExtendedErr)(unsafe.Pointer(&m.Data[0])).Data
		}
	}
	return at, number
}

// deviation is the standard deviation of delays that are spread evenly. It is
// told by the deciles, for what the machine was too busy for lies outside.
func deviation(delays []float64) float64 {
	const perDecile = 0.8 * 2 * 1.7320508 // √3
	return (delays[len(delays)*9/10] - delays[len(delays)/10]) / perDecile
}

// TestDirections has a host on a LAN whose ends are shaped differently and on
// a link that is, and measures each direction by itself: as they are made, and
// when manager and hosts have been restarted.
func TestDirections(t *testing.T) {
	b := newBench(t)
	one, two, three := b.host(1, 1, 2), b.host(2, 1, 2), b.host(3, 1)
	lan, single := link(1, one, two, three), link(2, one, two)
	lan.Ends[0].Out = request.Shape{LatencyMs: 10}
	lan.Ends[1].In = request.Shape{LatencyMs: 30}
	lan.Ends[2].Out = request.Shape{LatencyMs: 50, Capacity: 10_000}
	single.Ends[0].Out = request.Shape{LatencyMs: 20, JitterMs: 5}
	single.Ends[0].In = request.Shape{LatencyMs: 40}
	b.plug(one, two, three)
	b.must(b.sw.Connect(lan))
	b.must(b.sw.Connect(single))
	measure := func(when string) {
		t.Helper()
		for _, way := range []struct {
			from, to   *host
			link       int
			ms, jitter float64
		}{
			{one, two, 1, 40, 0}, {one, three, 1, 10, 0}, {two, one, 1, 0, 0}, {two, three, 1, 0, 0},
			{three, one, 1, 50, 0}, {three, two, 1, 80, 0},
			{one, two, 2, 20, 5}, {two, one, 2, 40, 0},
		} {
			b.must(way.from.reaches(way.link, way.to))
			delays, err := way.from.probes(way.to, way.link, 25, 4*time.Millisecond)
			b.must(err)
			what := fmt.Sprintf("%s: from %s to %s over link %d", when, way.from.node.Hostname, way.to.node.Hostname, way.link)
			// On a machine that does something else, too, most take longer.
			if least := delays[0]; least < way.ms-1.74*way.jitter || least > way.ms+way.jitter+8 {
				t.Errorf("%s: %.2f ms at least, want %g", what, least, way.ms)
			}
			if got := deviation(delays); got < 0.4*way.jitter {
				t.Errorf("%s: they vary by %.2f ms, want %g", what, got, way.jitter)
			}
		}
	}
	measure("at first")
	b.open()
	for _, h := range []*host{one, two, three} {
		b.must(b.sw.Unplug(h.node.Sliver))
		h.boot()
		b.plug(h)
	}
	measure("after restarts")
}
