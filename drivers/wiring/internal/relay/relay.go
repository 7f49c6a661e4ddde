// Package relay is a link in user space, for kernels without netem: it takes
// frames from one packet socket and gives them to another one, later, at a
// rate, or not at all. It runs as a process of its own, without any right but
// to its sockets, and outlives the manager that started it.
package relay

import (
	"math"
	"time"

	"croft/request"
)

// Word is the first argument that turns a binary into a relay.
const Word = "croft-relay"

// SyncFD is what a relay finds open: a stream socket, over which the manager
// sends the packet sockets, two for each Pipe in order, when it has noted the
// relay's PID, and gets one byte when the relay works. With each byte that the
// manager sends come SocketsAtOnce sockets, with the last one the rest.
const (
	SyncFD        = 3
	SocketsAtOnce = 100
)

// Pipe joins two packet sockets. There are the shape of what goes from the
// first to the second, and the other way.
type Pipe struct {
	There, Back request.Shape
}

// The relay's limits. Beyond them it is not exact.
const (
	MaxKbps    = 200_000 // what Mbit/s a relay keeps up with
	MaxLatency = 10 * time.Second
)

// Spread is how far from the latency the delay of a frame may lie when it is
// spread evenly and has the jitter as standard deviation.
func Spread(jitterMs float64) float64 { return jitterMs * math.Sqrt(3) }

// line is what is between the ends of a pipe in one direction: it tells when a
// frame comes out. Frames stay in order.
type line struct {
	loss          float64 // fraction
	delay, spread float64 // ns
	perByte       float64 // ns; 0 for no limit
	queue         float64 // ns that a frame waits at most for those before it

	free float64 // when the last frame is through the bottleneck
	last int64   // when the last frame comes out
}

// queueTime is how long a frame waits at most in a full queue, as in the
// kernel's shapers here; the queue has room for minQueue bytes at least.
const (
	queueTime = 50 * time.Millisecond
	minQueue  = 128 << 10
)

func newLine(s request.Shape) *line {
	l := &line{loss: s.Loss / 100, delay: s.LatencyMs * 1e6, spread: Spread(s.JitterMs) * 1e6}
	if s.Capacity > 0 {
		l.perByte = 8e6 / float64(s.Capacity)
		l.queue = max(float64(queueTime), minQueue*l.perByte)
	}
	return l
}

// admit takes a frame of some bytes at a time in ns and tells when it comes
// out, if it does. Chance gives evenly spread numbers from 0 to 1.
func (l *line) admit(now int64, bytes int, chance func() float64) (out int64, ok bool) {
	if l.loss > 0 && chance() < l.loss {
		return 0, false
	}
	at := float64(now)
	if l.perByte > 0 {
		at = max(at, l.free)
		if at-float64(now) > l.queue {
			return 0, false
		}
		l.free = at + float64(bytes)*l.perByte
	}
	at += l.delay
	if l.spread > 0 {
		at += (2*chance() - 1) * l.spread
	}
	out = max(int64(at), l.last)
	l.last = out
	return out, true
}
