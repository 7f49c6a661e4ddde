package driverstest

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"croft/drivers"
	"croft/request"
)

// testShaped measures, coarsely, that links are as slow as they should be,
// and stay so.
func testShaped(t *testing.T, r *rig) {
	r.needLinks()
	shaper, ok := r.d.(drivers.Shaper)
	if !ok || r.s.Hollow {
		t.Skip("the driver shapes no links")
	}
	a, b, c := r.node(1, 1, 2), r.node(2, 1, 2), r.node(3, 2)
	r.up(a, b, c)
	l := r.link(1, a, b)
	l.Ends[0].Out = request.Shape{LatencyMs: 20}
	l.Ends[1].Out, l.Ends[1].In = request.Shape{Capacity: 10_000}, request.Shape{LatencyMs: 15}
	lan := r.link(2, a, b, c)
	lan.Ends[0].Out = request.Shape{LatencyMs: 25}
	for _, l := range []drivers.Link{l, lan} {
		r.must(shaper.Shapes(l), "ask whether a link can be shaped")
		r.must(r.d.Connect(r.ctx, l), "connect a shaped link")
		r.must(r.d.Connect(r.ctx, l), "connect a shaped link again")
	}
	takes := func(from, to drivers.Node, link int, least float64) {
		t.Helper()
		address := address4(link, int(to.Interfaces[0].MAC[4]))
		r.eventually("round trips take their time", func() error {
			out, err := r.shell(from.Sliver, fmt.Sprintf("ping -n -q -c 6 -i 0.05 -W 5 %s | sed -n 's,.*= \\([0-9.]*\\)/.*,\\1,p'", address))
			if err != nil {
				return err
			}
			ms, err := strconv.ParseFloat(out, 64)
			if err != nil {
				return err
			}
			if ms < least || ms > least+15 {
				return fmt.Errorf("from %s to %s the fastest takes %g ms, want %g", from.Hostname, to.Hostname, ms, least)
			}
			return nil
		})
	}
	all := func() {
		t.Helper()
		takes(a, b, 1, 35)
		takes(b, a, 1, 35)
		takes(a, c, 2, 25)
		takes(b, c, 2, 0)
	}
	all()
	r.must(r.d.Restart(r.ctx, a.Sliver), "restart a node of shaped links")
	all()
	if _, ok := r.d.(interface{ Close() error }); ok {
		r.reopen()
		shaper = r.d.(drivers.Shaper)
		all()
	}
	// What cannot be is refused, with what would work.
	for name, shape := range map[string]request.Shape{
		"a capacity beyond all links": {Capacity: 1 << 50},
		"a negative latency":          {LatencyMs: -1},
		"more loss than packets":      {Loss: 101},
		"jitter without a latency":    {JitterMs: 5},
	} {
		x := r.link(1, a, b)
		x.Ends[0].Out = shape
		err := shaper.Shapes(x)
		if err == nil {
			t.Errorf("%s: it is not refused", name)
		}
		x.Sliver = sliver("refused")
		r.must(r.d.Remove(r.ctx, l.Sliver), "remove a shaped link")
		if connected := r.d.Connect(r.ctx, x); connected == nil {
			t.Errorf("%s: connected", name)
		} else if errors.Is(connected, drivers.ErrNotFound) {
			t.Errorf("%s: %v", name, connected)
		}
		if r.find(x.Sliver) != nil {
			t.Errorf("%s: List has the link", name)
		}
	}
	r.must(r.d.Connect(r.ctx, l), "connect a link again")
	takes(a, b, 1, 35)
}
