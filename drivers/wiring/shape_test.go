package wiring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/wiring"
	"croft/request"
)

// pair is two hosts with one link, of which the first host's end is shaped.
func (b *bench) pair(number int, out, in request.Shape) (*host, *host, drivers.Link) {
	one, two := b.host(2*number+1, number), b.host(2*number+2, number)
	b.plug(one, two)
	l := link(number, one, two)
	l.Ends[0].Out, l.Ends[0].In = out, in
	b.must(b.sw.Connect(l))
	return one, two, l
}

var pingTimes = regexp.MustCompile(`time=([0-9.]+) ms`)

// pings sends echo requests and returns the round trip times in ms.
func (h *host) pings(to *host, link, count int, interval time.Duration, more ...string) ([]float64, error) {
	args := append([]string{"-n", "-D", "-c", strconv.Itoa(count), "-i", fmt.Sprint(interval.Seconds()), "-W", "3"}, more...)
	out, err := h.run("ping", append(args, address(link, to.number()).Addr().String())...)
	var times []float64
	for _, m := range pingTimes.FindAllStringSubmatch(out, -1) {
		ms, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, err
		}
		times = append(times, ms)
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("ping: %w: %s", err, out)
	}
	return times, nil
}

// flood sends UDP from one host to another, with mbits for some time, and
// returns the rate that arrives at the link layer, in Mbit/s, by what the
// receiving interface counts.
func (h *host) flood(to *host, link int, d time.Duration, mbits float64) (float64, error) {
	bytes, _, seconds, err := h.iperf(to, link, d, "-u", "-b", fmt.Sprintf("%.0fM", mbits), "-l", "1472")
	return float64(bytes) * 8 / 1e6 / seconds, err
}

// stream does the same with TCP. A count may be of several segments that
// travel as one, with one header, on the hosts; on the link each has its own.
func (h *host) stream(to *host, link int, d time.Duration) (float64, error) {
	const headers, segment = 66, 1448
	bytes, packets, seconds, err := h.iperf(to, link, d)
	return float64(bytes-headers*packets) * (segment + headers) / segment * 8 / 1e6 / seconds, err
}

// iperf runs iperf3 for some time and counts what arrives.
func (h *host) iperf(to *host, link int, d time.Duration, args ...string) (bytes, packets int64, seconds float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+20*time.Second)
	defer cancel()
	start := func(at *host, args ...string) (*exec.Cmd, error) {
		var cmd *exec.Cmd
		err := wiring.InNetwork(at.fd(), func() error {
			cmd = exec.CommandContext(ctx, "iperf3", args...)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err == nil {
				_, err = out.Read(make([]byte, 1)) // it listens, or is connected
				go io.Copy(io.Discard, out)
			}
			return err
		})
		return cmd, err
	}
	server, err := start(to, "-s", "-1", "--forceflush")
	if err != nil {
		return 0, 0, 0, err
	}
	client, err := start(h, append(args, "-c", address(link, to.number()).Addr().String(), "-t", "60", "--forceflush")...)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() {
		for _, c := range []*exec.Cmd{client, server} {
			c.Process.Kill()
			c.Wait()
		}
	}()
	time.Sleep(time.Second) // what the queue takes at first
	b0, p0, t0, err := to.received()
	if err != nil {
		return 0, 0, 0, err
	}
	time.Sleep(d)
	b1, p1, t1, err := to.received()
	return b1 - b0, p1 - p0, t1.Sub(t0).Seconds(), err
}

// received reads what the first interface has received so far, in bytes with
// their Ethernet headers, and in packets.
func (h *host) received() (bytes, packets int64, at time.Time, err error) {
	out, err := h.run("cat", "/proc/thread-self/net/dev")
	at = time.Now()
	if err != nil {
		return 0, 0, at, err
	}
	_, after, ok := strings.Cut(out, "eth1:")
	if !ok {
		return 0, 0, at, fmt.Errorf("no interface: %s", out)
	}
	_, err = fmt.Sscan(after, &bytes, &packets)
	return bytes, packets, at, err
}

func needIperf(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("iperf3"); err != nil {
		t.Skip("SKIPPED: rates are measured with iperf3 (apt-get install iperf3)")
	}
}

// TestShaped measures coarsely; what holds exactly is measured by
// BenchmarkLinks.
func TestShaped(t *testing.T) {
	b := newBench(t)
	for i, test := range []struct {
		name    string
		out, in request.Shape
		rtt     float64
	}{
		{"latency", request.Shape{LatencyMs: 10}, request.Shape{LatencyMs: 20}, 30},
		{"latency one way", request.Shape{LatencyMs: 15}, request.Shape{}, 15},
		{"with a rate", request.Shape{LatencyMs: 5, Capacity: 10_000}, request.Shape{LatencyMs: 5, Capacity: 10_000}, 10},
		{"jitter", request.Shape{LatencyMs: 10, JitterMs: 2}, request.Shape{}, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, two, _ := b.pair(i+1, test.out, test.in)
			b.must(one.reaches(i+1, two))
			times, err := one.pings(two, i+1, 30, 10*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(times)
			// On a machine that does something else, too, some take longer.
			if quick := times[len(times)/4]; quick < test.rtt-4 || quick > test.rtt+8 {
				t.Errorf("round trips take %.2f ms, want %g", quick, test.rtt)
			}
			// Evenly spread, four fifths of them lie within 2.8 times the jitter.
			if spread := times[len(times)*9/10] - times[len(times)/10]; spread < 1.4*test.out.JitterMs {
				t.Errorf("they vary by %.2f ms, want %g", spread, 2.8*test.out.JitterMs)
			}
		})
	}
}

// relays lists the processes of relays, from the records.
func (b *bench) relays() []int {
	b.t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "relays", "*.json"))
	b.must(err)
	var out []int
	for _, f := range files {
		var r struct{ PID int }
		data, err := os.ReadFile(f)
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		b.must(err)
		out = append(out, r.PID)
	}
	return out
}

func mayBeRealTime() error {
	return wiring.OnThread(func() error {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	})
}

// realTime fails when a thread of a process that has nothing to do is none of
// real time.
func realTime(pid int) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, e := range threads {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return err
		}
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil || attr.Policy != unix.SCHED_FIFO {
			return fmt.Errorf("thread %d of relay %d is not one of real time: %+v, %w", tid, pid, attr, err)
		}
	}
	return nil
}

// TestRelay kills the manager's and the relay's end of things.
func TestRelay(t *testing.T) {
	b := newBench(t)
	one, two, l := b.pair(1, request.Shape{LatencyMs: 20, Loss: 0.001}, request.Shape{})
	before := b.relays()
	if len(before) == 0 {
		t.Skip("SKIPPED: the kernel has netem, no relay is needed")
	}
	slow := func() error {
		times, err := one.pings(two, 1, 3, 20*time.Millisecond)
		if err == nil && slices.Min(times) < 20 {
			err = fmt.Errorf("round trips take %.2f ms", slices.Min(times))
		}
		return err
	}
	b.must(slow())
	b.sw.Close()
	b.must(slow()) // without a manager
	b.open()
	b.must(slow())
	if got := b.relays(); !slices.Equal(got, before) {
		t.Errorf("relays %v after a restart of the manager, want %v", got, before)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", before[0]))
	if err != nil || !strings.Contains(string(status), "Uid:\t65534") || !strings.Contains(string(status), "CapEff:\t0000000000000000") {
		t.Errorf("the relay is more than nobody: %v %s", err, status)
	}
	if may := mayBeRealTime(); may != nil {
		t.Logf("threads of real time are not allowed here: %v", may)
	} else if err := realTime(before[0]); err != nil {
		t.Error(err)
	}
	// A relay dies while the manager is there, and while it is not.
	b.must(unix.Kill(before[0], unix.SIGKILL))
	b.eventually("the relay is started again", func() error {
		if got := b.relays(); len(got) != 1 || got[0] == before[0] {
			return fmt.Errorf("relays: %v", got)
		}
		return slow()
	})
	b.sw.Close()
	b.must(unix.Kill(b.relays()[0], unix.SIGKILL))
	b.open()
	b.eventually("the relay is started again", slow)
	last := b.relays()
	b.must(b.sw.Disconnect(l.Sliver))
	if got := b.relays(); len(got) > 0 {
		t.Errorf("relays %v are left", got)
	}
	if err := unix.Kill(last[0], 0); err == nil {
		t.Error("the relay's process is left")
	}
	for _, h := range []*host{one, two} {
		b.must(b.sw.Unplug(h.node.Sliver))
	}
	b.empty()
}

// TestRates measures coarsely.
func TestRates(t *testing.T) {
	needIperf(t)
	b := newBench(t)
	for i, test := range []struct {
		name  string
		shape request.Shape
	}{
		{"token bucket", request.Shape{Capacity: 20_000}},
		{"with a latency", request.Shape{Capacity: 20_000, LatencyMs: 5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, two, _ := b.pair(i+1, test.shape, request.Shape{})
			b.must(one.reaches(i+1, two))
			got, err := one.flood(two, i+1, 2*time.Second, 40)
			if err != nil {
				t.Fatal(err)
			}
			if want := float64(test.shape.Capacity) / 1000; got < 0.8*want || got > 1.1*want {
				t.Errorf("%.2f Mbit/s come through, want %g", got, want)
			}
		})
	}
}

func TestShapes(t *testing.T) {
	b := newBench(t)
	one, two := b.host(1, 1), b.host(2, 1)
	for _, test := range []struct {
		name    string
		out, in request.Shape // of the first end
		want    string        // of the refusal; "" for none
	}{
		{"nothing", request.Shape{}, request.Shape{}, ""},
		{"a rate", request.Shape{Capacity: 1_000_000}, request.Shape{Capacity: 1}, ""},
		{"all of it", request.Shape{Capacity: 10_000, LatencyMs: 10, JitterMs: 1, Loss: 1}, request.Shape{}, ""},
		{"too fast", request.Shape{Capacity: 1_000_001}, request.Shape{}, "up to 1000000"},
		{"negative", request.Shape{LatencyMs: -1}, request.Shape{}, "below zero"},
		{"not a number", request.Shape{LatencyMs: math.NaN()}, request.Shape{}, "below zero"},
		{"more than all", request.Shape{Loss: 101}, request.Shape{}, "part of all packets"},
		{"jitter without latency", request.Shape{JitterMs: 1}, request.Shape{}, "takes 1.74 ms"},
		{"a minute", request.Shape{LatencyMs: 60_000}, request.Shape{}, "may be up to 10s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := link(1, one, two)
			l.Ends[0].Out, l.Ends[0].In = test.out, test.in
			err := b.sw.Shapes(l)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func (b *bench) eventually(what string, check func() error) {
	b.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: not so: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
