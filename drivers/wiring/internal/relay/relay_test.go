package relay

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"croft/request"
)

// TestLine sends frames of 1500 bytes at a steady rate for some seconds of the
// line's own time.
func TestLine(t *testing.T) {
	for _, test := range []struct {
		name   string
		shape  request.Shape
		every  float64 // microseconds between frames
		kbps   float64 // that come out
		loss   float64 // percent, of a line without a full queue
		ms, sd float64 // delay; 0 for sd: not looked at
	}{
		{name: "as it is", every: 100, kbps: 120_000},
		{name: "latency", shape: request.Shape{LatencyMs: 12.5}, every: 100, kbps: 120_000, ms: 12.5},
		{name: "jitter", shape: request.Shape{LatencyMs: 50, JitterMs: 5}, every: 50_000, kbps: 240, ms: 50, sd: 5},
		{name: "loss", shape: request.Shape{Loss: 5}, every: 100, kbps: 114_000, loss: 5},
		{name: "rate not reached", shape: request.Shape{Capacity: 10_000}, every: 1300, kbps: 9230, ms: 0},
		{name: "rate", shape: request.Shape{Capacity: 10_000}, every: 1000, kbps: 10_000, ms: -1},
		{name: "rate far below", shape: request.Shape{Capacity: 50_000, LatencyMs: 3}, every: 20, kbps: 50_000, ms: -1},
		{name: "everything lost", shape: request.Shape{Loss: 100}, every: 1000, kbps: 0, loss: 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			const size, count = 1500, 60_000
			chance := rand.New(rand.NewPCG(1, 2)).Float64
			l := newLine(test.shape)
			var passed, last int64
			var sum, squares float64
			for i := range count {
				now := int64(float64(i) * test.every * 1000)
				out, ok := l.admit(now, size, chance)
				if !ok {
					continue
				}
				if out < now || out < last {
					t.Fatalf("a frame of %d comes out at %d, the one before at %d", now, out, last)
				}
				last = out
				passed++
				ms := float64(out-now) / 1e6
				sum += ms
				squares += ms * ms
			}
			seconds := max(float64(count)*test.every/1e6, float64(last)/1e9)
			if kbps := float64(passed) * size * 8 / seconds / 1000; math.Abs(kbps-test.kbps) > 0.02*test.kbps {
				t.Errorf("%.0f kbit/s come out, want %.0f", kbps, test.kbps)
			}
			if loss := 100 * float64(count-passed) / count; test.loss > 0 && math.Abs(loss-test.loss) > 0.05*test.loss {
				t.Errorf("%.2f %% are lost, want %g", loss, test.loss)
			}
			if passed == 0 {
				return
			}
			mean := sum / float64(passed)
			if test.ms >= 0 && math.Abs(mean-test.ms) > 0.05*test.ms+0.001 {
				t.Errorf("frames take %.3f ms, want %g", mean, test.ms)
			}
			if sd := math.Sqrt(squares/float64(passed) - mean*mean); test.sd > 0 && math.Abs(sd-test.sd) > 0.05*test.sd {
				t.Errorf("times vary by %.3f ms, want %g", sd, test.sd)
			}
		})
	}
}

// TestShare has a thread take some part of a processor, then another one.
func TestShare(t *testing.T) {
	const step = 2 * time.Millisecond
	for _, test := range []struct {
		name                string
		first, then         float64 // part of a processor
		quickFirst, quickAt bool    // in the end of each
		firstFor, thenFor   time.Duration
	}{
		{"little", 0.1, 0.4, true, true, time.Second, time.Second},
		{"everything", 1, 1, false, false, 30 * time.Millisecond, time.Second},
		{"a moment", 1, 0.1, true, true, 10 * time.Millisecond, 10 * time.Millisecond},
		{"everything, then little", 1, 0.1, false, true, time.Second, 60 * time.Millisecond},
		{"everything, then too much", 1, 0.6, false, false, time.Second, time.Second},
		{"everything, then nothing", 1, 0, false, true, time.Second, sharePart * 2 * shareCredit},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := share{realTime: true, quick: true, credit: shareCredit}
			var now, used time.Duration
			run := func(part float64, d time.Duration) {
				for end := now + d; now < end; {
					now += step
					used += time.Duration(part * float64(step))
					s.account(now, used)
				}
			}
			run(test.first, test.firstFor)
			if s.quick != test.quickFirst {
				t.Errorf("of real time after %s: %t", now, s.quick)
			}
			run(test.then, test.thenFor)
			if s.quick != test.quickAt {
				t.Errorf("of real time after %s: %t", now, s.quick)
			}
		})
	}
}

func TestHeld(t *testing.T) {
	var h held
	next, want := int64(0), int64(0)
	for round := range 2000 {
		for range round % 7 {
			h.push(frame{out: next})
			next++
		}
		for range round % 5 {
			if h.len() == 0 {
				break
			}
			if got := h.at(h.head).out; got != want {
				t.Fatalf("got frame %d, want %d", got, want)
			}
			want++
			h.head++
		}
	}
	if h.len() != int(next-want) {
		t.Errorf("%d are held, want %d", h.len(), next-want)
	}
}

func auxData(status uint32, tci, protocol uint16) []byte {
	b := make([]byte, unix.CmsgSpace(20))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(20)))
	binary.NativeEndian.PutUint32(b[8:], unix.SOL_PACKET)
	binary.NativeEndian.PutUint32(b[12:], unix.PACKET_AUXDATA)
	data := b[unix.CmsgLen(0):]
	binary.NativeEndian.PutUint32(data, status)
	binary.NativeEndian.PutUint16(data[16:], tci)
	binary.NativeEndian.PutUint16(data[18:], protocol)
	return b
}

func TestTags(t *testing.T) {
	for _, test := range []struct {
		name string
		aux  []byte
		want []byte // behind the addresses
	}{
		{"none", auxData(0, 0, 0), nil},
		{"802.1Q", auxData(unix.TP_STATUS_VLAN_VALID, 0x2123, 0), []byte{0x81, 0x00, 0x21, 0x23}},
		{"802.1ad", auxData(unix.TP_STATUS_VLAN_VALID|unix.TP_STATUS_VLAN_TPID_VALID, 7, unix.ETH_P_8021AD), []byte{0x88, 0xa8, 0, 7}},
		{"cut off", auxData(unix.TP_STATUS_VLAN_VALID, 7, 0)[:20], nil},
		{"nothing", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			const text = "AAAAAAbbbbbb\x08\x00payload"
			f := frame{buf: append(make([]byte, tagLen), text...), start: tagLen, end: tagLen + len(text)}
			tag, ok := tagOf(test.aux)
			if ok != (test.want != nil) {
				t.Fatalf("tag %x, %t", tag, ok)
			}
			want := []byte(text)
			if ok {
				f.insert(tag)
				want = append(append([]byte(text[:12]), test.want...), text[12:]...)
			}
			if got := f.buf[f.start:f.end]; !bytes.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func FuzzTagOf(f *testing.F) {
	f.Add(auxData(unix.TP_STATUS_VLAN_VALID, 1, 0))
	f.Fuzz(func(t *testing.T, aux []byte) { tagOf(append([]byte(nil), aux...)) })
}

func TestMainRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"nonsense"}, {"[]", "more"}} {
		if Main(args) == 0 {
			t.Errorf("%q is a command line", args)
		}
	}
}
