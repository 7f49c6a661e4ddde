package wiring_test

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"croft/capacity"
	"croft/drivers/wiring"
	"croft/request"
)

// BenchmarkLinks measures what links do against what they should, and prints
// a table: make bench-links. It fails where a figure is off.
func BenchmarkLinks(b *testing.B) {
	needIperf(b)
	for b.Loop() {
		figures(b)
	}
}

func figures(t testing.TB) {
	f := &figureBench{bench: newBench(t), link: 1}
	var uts unix.Utsname
	unix.Uname(&uts)
	fmt.Printf("\n%s, %d cores, Linux %s, %s\n\n| link | asked for | measured | off by | allowed |\n|---|---|---|---|---|\n",
		processor(), runtime.NumCPU(), bytes.TrimRight(uts.Release[:], "\x00"), runtime.Version())
	for _, mbits := range []capacity.Kbps{10, 100, 1000} {
		f.rate("capacity alone", request.Shape{Capacity: 1000 * mbits})
	}
	for _, mbits := range []capacity.Kbps{50, 200} {
		f.rate("with a latency of 5 ms", request.Shape{Capacity: 1000 * mbits, LatencyMs: 5})
	}
	for _, ms := range []float64{1, 10, 50} {
		f.latency(ms)
	}
	for _, ms := range []float64{1, 5} {
		f.jitter(20, ms)
	}
	for _, percent := range []float64{0.5, 1, 5} {
		f.loss(percent)
	}
	fmt.Println()
}

// processor is the name of this machine's processor.
func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

type figureBench struct {
	*bench
	link int
}

// pair makes the hosts of the next row.
func (f *figureBench) pair(out, in request.Shape) (*host, *host) {
	f.t.Helper()
	f.link++
	one, two, _ := f.bench.pair(f.link, out, in)
	f.must(one.reaches(f.link, two))
	return one, two
}

func (f *figureBench) row(what, want, got string, off, allowed float64, unit string) {
	f.t.Helper()
	fmt.Printf("| %s | %s | %s | %.2f %s | %.2f %s |\n", what, want, got, off, unit, allowed, unit)
	if off > allowed {
		f.t.Errorf("%s %s: %s, off by %.3f %s, allowed %.3f", what, want, got, off, unit, allowed)
	}
}

// rate measures TCP at the link layer, both ways one after the other.
func (f *figureBench) rate(what string, s request.Shape) {
	f.t.Helper()
	back := s
	back.Capacity /= 2
	one, two := f.pair(s, back)
	type way = struct {
		from, to *host
		shape    request.Shape
	}
	for _, way := range []way{{one, two, s}, {two, one, back}} {
		got, err := way.from.stream(way.to, f.link, 6*time.Second)
		f.must(err)
		want := float64(way.shape.Capacity) / 1000
		f.row(what, fmt.Sprintf("%g Mbit/s", want), fmt.Sprintf("%.2f Mbit/s", got), 100*math.Abs(got-want)/want, 2, "%")
	}
}

func (f *figureBench) latency(ms float64) {
	f.t.Helper()
	s := request.Shape{LatencyMs: ms}
	one, two := f.pair(s, s)
	times, err := one.pings(two, f.link, 200, 20*time.Millisecond)
	f.must(err)
	slices.Sort(times)
	median := times[len(times)/2] / 2
	f.row("latency", fmt.Sprintf("%g ms each way", ms), fmt.Sprintf("%.3f ms (median of %d)", median, len(times)), math.Abs(median-ms), 0.3, "ms")
}

func (f *figureBench) jitter(latency, ms float64) {
	f.t.Helper()
	one, two := f.pair(request.Shape{LatencyMs: latency, JitterMs: ms}, request.Shape{})
	times, err := one.pings(two, f.link, 1000, 20*time.Millisecond)
	f.must(err)
	slices.Sort(times)
	// By the deciles, for what the machine was too busy for lies outside: the
	// delays are spread evenly.
	deviation := (times[len(times)*9/10] - times[len(times)/10]) / (0.8 * 2 * math.Sqrt(3))
	// A tenth; and a busy machine adds some of its own.
	f.row(fmt.Sprintf("jitter at %g ms", latency), fmt.Sprintf("%g ms", ms), fmt.Sprintf("%.3f ms", deviation), math.Abs(deviation-ms), max(0.5, ms/10), "ms")
}

func (f *figureBench) loss(percent float64) {
	f.t.Helper()
	const count = 120_000
	one, two := f.pair(request.Shape{Loss: percent}, request.Shape{})
	_, before, _, err := two.received()
	f.must(err)
	f.must(one.send(address(f.link, two.number()).Addr().String(), count))
	var after int64
	for last := int64(-1); after != last; { // until nothing comes any more
		last = after
		time.Sleep(200 * time.Millisecond)
		_, after, _, err = two.received()
		f.must(err)
	}
	lost := float64(count - (after - before))
	p := percent / 100
	interval := 2.576 * math.Sqrt(count*p*(1-p)) / count * 100 // 99 %
	got := 100 * lost / count
	f.row(fmt.Sprintf("loss of %d packets", count), fmt.Sprintf("%g %%", percent), fmt.Sprintf("%.3f %%", got), math.Abs(got-percent), min(interval, percent/10), "points")
}

// send sends datagrams from a host, not faster than they can be told apart.
func (h *host) send(to string, count int) error {
	return wiring.InNetwork(h.fd(), func() error {
		c, err := net.Dial("udp", to+":9")
		if err != nil {
			return err
		}
		defer c.Close()
		for i := range count {
			c.Write([]byte("croft")) // a refusal is not heard: nobody listens
			if i%20 == 19 {
				time.Sleep(time.Millisecond)
			}
		}
		return nil
	})
}
