package wiring_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"croft/capacity"
	"croft/drivers/wiring"
	"croft/internal/umltest"
	"croft/request"
)

// BenchmarkLinks measures what links do against what they should, and prints
// a table: make bench-links. It fails where a figure is off.
func BenchmarkLinks(b *testing.B) {
	needIperf(b)
	if err := goFirst(); err != nil {
		fmt.Printf("what measures has no priority: %v\n", err)
	}
	b.Run("kernel=this", func(b *testing.B) {
		for b.Loop() {
			figures(b)
		}
	})
	b.Run("kernel=netem", func(b *testing.B) {
		for b.Loop() {
			fmt.Println(umltest.Output(b, true, "-test.run=^$", "-test.bench=^BenchmarkLinks$/^kernel=this$", "-test.benchtime=1x"))
		}
	})
}

// figures measures as much as the kernel is up to: that of User-Mode Linux runs
// on one processor, as one process of this machine.
func figures(t testing.TB) {
	f := &figureBench{bench: newBench(t), link: 1}
	var uts unix.Utsname
	unix.Uname(&uts)
	fmt.Printf("\n%s, %d cores, Linux %s, %s, load %s\n\n| link | asked for | measured | off by | allowed |\n|---|---|---|---|---|\n",
		processor(), runtime.NumCPU(), bytes.TrimRight(uts.Release[:], "\x00"), runtime.Version(), load())
	alone, delayed := []capacity.Kbps{10, 100, 1000}, []capacity.Kbps{50, 200}
	if umltest.Inside() {
		alone, delayed = []capacity.Kbps{10, 100}, []capacity.Kbps{50}
	}
	for _, mbits := range alone {
		f.rate("capacity alone", request.Shape{Capacity: 1000 * mbits})
	}
	for _, mbits := range delayed {
		f.rate("with a latency of 5 ms", request.Shape{Capacity: 1000 * mbits, LatencyMs: 5})
	}
	f.unshaped()
	for _, ms := range []float64{1, 10, 50} {
		f.latency(ms)
	}
	for _, ms := range []float64{1, 5} {
		f.jitter(20, ms)
	}
	for _, percent := range []float64{0.5, 1, 5} {
		f.loss(percent)
	}
	fmt.Println("\nload " + load())
}

// load is how many processes want the processors, in the last minute.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(data), " ")
	return one
}

// goFirst gives what measures, and what it starts, priority on a machine that
// does something else, too. Where each session has its share of the processor,
// this is one of its own.
func goFirst() error {
	const nice = -15
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("make a session: %w", err)
	}
	if err := os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(nice)), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set the session's priority: %w", err)
	}
	// All threads there are, and those that they make.
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, nice); err != nil {
		return fmt.Errorf("set the priority: %w", err)
	}
	return nil
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
	link      int
	roundTrip float64 // of a link without a shape, in ms, with what ping takes
}

// pair makes the hosts of the next row.
func (f *figureBench) pair(out, in request.Shape) (*host, *host) {
	f.t.Helper()
	f.link++
	one, two, _ := f.bench.pair(f.link, out, in)
	f.must(one.reaches(f.link, two))
	return one, two
}

// figure is a row of the table.
type figure struct {
	what, want, unit string
	wanted, allowed  float64
	measure          func() (float64, error)
	show             string // a format
	percent          bool   // off and allowed are parts of what is wanted
}

// check measures a figure, once more if it is off: on a machine that does
// something else, too, a process may have waited; and one count of losses in a
// hundred is outside of its interval of 99 %.
func (f *figureBench) check(x figure) {
	f.t.Helper()
	for try := 0; ; try++ {
		got, err := x.measure()
		f.must(err)
		off, unit := math.Abs(got-x.wanted), x.unit
		if x.percent {
			off, unit = 100*off/x.wanted, "%"
		}
		again := ""
		if off > x.allowed && try == 0 {
			again = " (measured again)"
		}
		fmt.Printf("| %s | %s | "+x.show+" | %.2f %s | %.2f %s%s |\n", x.what, x.want, got, off, unit, x.allowed, unit, again)
		if again == "" {
			if off > x.allowed {
				f.t.Errorf("%s %s: "+x.show+", off by %.3f %s, allowed %.3f", x.what, x.want, got, off, unit, x.allowed)
			}
			return
		}
	}
}

// rate measures TCP at the link layer, both ways one after the other.
func (f *figureBench) rate(what string, s request.Shape) {
	f.t.Helper()
	back := s
	back.Capacity /= 2
	one, two := f.pair(s, back)
	for _, way := range []struct {
		from, to *host
		shape    request.Shape
	}{{one, two, s}, {two, one, back}} {
		mbits := float64(way.shape.Capacity) / 1000
		f.check(figure{what: what, want: fmt.Sprintf("%g Mbit/s", mbits), wanted: mbits, allowed: 2, percent: true, show: "%.2f Mbit/s",
			measure: func() (float64, error) { return way.from.stream(way.to, f.link, 6*time.Second) }})
	}
}

// unshaped tells what of the other rows is not the shaping's.
func (f *figureBench) unshaped() {
	f.t.Helper()
	one, two := f.pair(request.Shape{}, request.Shape{})
	var err error
	f.roundTrip, err = f.ping(one, two, 10*time.Millisecond)
	f.must(err)
	delays, err := one.probes(two, f.link, 200, 10*time.Millisecond)
	f.must(err)
	fmt.Printf("| no shape | | round trip by ping %.3f ms, one way %.3f ms | | |\n", f.roundTrip, delays[len(delays)/2])
}

// ping is the median of 200 round trips.
func (f *figureBench) ping(from, to *host, every time.Duration) (float64, error) {
	times, err := from.pings(to, f.link, 200, every)
	if err != nil {
		return 0, err
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// latency measures each way by the kernel's own times, and by ping how much
// longer than without a shape there and back take. Only one of these is shaped:
// from 100 ms on ping prints whole milliseconds.
func (f *figureBench) latency(ms float64) {
	f.t.Helper()
	const every = 20 * time.Millisecond
	row := figure{what: "latency, ping", want: fmt.Sprintf("%g ms", ms), wanted: ms, unit: "ms", allowed: 0.3, show: "%.3f ms (median of 200)"}
	s := request.Shape{LatencyMs: ms}
	one, two := f.pair(s, request.Shape{})
	row.measure = func() (float64, error) {
		median, err := f.ping(one, two, every)
		return median - f.roundTrip, err
	}
	f.check(row)
	row.what = "latency, one way"
	one, two = f.pair(s, s)
	for _, way := range [][2]*host{{one, two}, {two, one}} {
		row.measure = func() (float64, error) {
			delays, err := way[0].probes(way[1], f.link, 200, every)
			if err != nil {
				return 0, err
			}
			return delays[len(delays)/2], nil
		}
		f.check(row)
	}
}

func (f *figureBench) jitter(latency, ms float64) {
	f.t.Helper()
	const count = 1000
	every := time.Duration(4 * ms * float64(time.Millisecond)) // none catches up with another
	one, two := f.pair(request.Shape{LatencyMs: latency, JitterMs: ms}, request.Shape{})
	for _, by := range []struct {
		what   string
		delays func(*host, int, int, time.Duration) ([]float64, error)
	}{
		{"ping", func(to *host, link, count int, every time.Duration) ([]float64, error) {
			return one.pings(to, link, count, every)
		}},
		{"one way", one.probes},
	} {
		f.check(figure{what: fmt.Sprintf("jitter at %g ms, %s", latency, by.what), want: fmt.Sprintf("%g ms", ms), wanted: ms, unit: "ms",
			allowed: max(0.3, ms/10), show: "%.3f ms",
			measure: func() (float64, error) {
				delays, err := by.delays(two, f.link, count, every)
				if err != nil {
					return 0, err
				}
				slices.Sort(delays)
				return deviation(delays), nil
			}})
	}
}

func (f *figureBench) loss(percent float64) {
	f.t.Helper()
	const count = 120_000
	one, two := f.pair(request.Shape{Loss: percent}, request.Shape{})
	p := percent / 100
	interval := 2.576 * math.Sqrt(count*p*(1-p)) / count * 100
	f.check(figure{what: fmt.Sprintf("loss of %d packets", count), want: fmt.Sprintf("%g %%", percent), wanted: percent, unit: "points",
		allowed: min(interval, percent/10), show: "%.3f %%",
		measure: func() (float64, error) { return f.lost(one, two, count) }})
}

// lost is how much of so many datagrams is lost, in percent.
func (f *figureBench) lost(from, to *host, count int) (float64, error) {
	_, before, _, err := to.received()
	if err == nil {
		err = from.send(address(f.link, to.number()).Addr().String(), count)
	}
	var after int64
	for last := int64(-1); err == nil && after != last; { // until nothing comes any more
		last = after
		time.Sleep(200 * time.Millisecond)
		_, after, _, err = to.received()
	}
	return 100 * (1 - float64(after-before)/float64(count)), err
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
