package wiring

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"croft/capacity"
	"croft/drivers"
	"croft/drivers/wiring/internal/relay"
	"croft/request"
)

// maxKernelKbps is what the kernel's token buckets keep to.
const maxKernelKbps capacity.Kbps = 1_000_000

// maxLoss is the most that a link may lose: one that loses all is none.
const maxLoss = 100

// leg is a shaped end of a link, numbered as in the link: what goes from the
// node to the others, and what comes back.
type leg struct {
	end       int
	out, back request.Shape
}

// plan says where a link is shaped. With two ends, one leg does for both.
func plan(l drivers.Link) []leg {
	if len(l.Ends) == 2 && !goesOn(l) {
		one := leg{end: 1, out: combine(l.Ends[1].Out, l.Ends[0].In), back: combine(l.Ends[0].Out, l.Ends[1].In)}
		if one.out == (request.Shape{}) && one.back == (request.Shape{}) {
			return nil
		}
		return []leg{one}
	}
	var legs []leg
	for i, e := range l.Ends {
		if e.Out != (request.Shape{}) || e.In != (request.Shape{}) {
			legs = append(legs, leg{end: i, out: e.Out, back: e.In})
		}
	}
	return legs
}

// combine is what two shapes do one after the other.
func combine(a, b request.Shape) request.Shape {
	c := request.Shape{
		Capacity: max(a.Capacity, b.Capacity), LatencyMs: a.LatencyMs + b.LatencyMs, JitterMs: math.Hypot(a.JitterMs, b.JitterMs),
		Loss: 100 * (1 - (1-a.Loss/100)*(1-b.Loss/100)),
	}
	if a.Loss == 0 || b.Loss == 0 {
		c.Loss = a.Loss + b.Loss // without rounding
	}
	if a.Capacity > 0 && b.Capacity > 0 {
		c.Capacity = min(a.Capacity, b.Capacity)
	}
	return c
}

// rateOnly reports whether a token bucket is all that a shape takes.
func rateOnly(s request.Shape) bool { return s.LatencyMs == 0 && s.JitterMs == 0 && s.Loss == 0 }

// Shapes implements drivers.Shaper.
func (s *Switch) Shapes(l drivers.Link) error {
	k, err := s.kernel()
	if err != nil {
		return err
	}
	if s.cfg.NoRelays && slices.ContainsFunc(plan(l), k.relayed) {
		return errors.New("the kernel of that machine cannot shape links so (it takes tbf, and netem for latency, jitter and loss)")
	}
	return shapes(l, k)
}

func shapes(l drivers.Link, k kernel) error {
	for _, leg := range plan(l) {
		relayed := k.relayed(leg)
		for _, shape := range []request.Shape{leg.out, leg.back} {
			if err := check(shape, k, relayed); err != nil {
				return err
			}
		}
	}
	return nil
}

func check(s request.Shape, k kernel, relayed bool) error {
	longest := relay.MaxLatency
	switch {
	case s.Capacity < 0 || s.LatencyMs < 0 || s.JitterMs < 0 || s.Loss < 0,
		math.IsNaN(s.LatencyMs), math.IsNaN(s.JitterMs), math.IsNaN(s.Loss):
		return errors.New("a capacity, latency, jitter or loss below zero cannot be met")
	case s.Loss > maxLoss:
		return fmt.Errorf("a loss of %g percent cannot be met: it is a part of all packets", s.Loss)
	case s.Capacity > maxKernelKbps:
		return fmt.Errorf("a capacity of %d kbit/s cannot be met: links are shaped up to %d (leave it open: such links are as fast as the machine)", s.Capacity, maxKernelKbps)
	case relayed && s.Capacity > relay.MaxKbps:
		return fmt.Errorf("a capacity of %d kbit/s on a link with latency, jitter or loss cannot be met: the kernel has no netem (module sch_netem), and without it such links have up to %d",
			s.Capacity, relay.MaxKbps)
	case s.LatencyMs*1e6+relay.Spread(s.JitterMs)*1e6 > float64(longest):
		return fmt.Errorf("a latency of %g ms cannot be met: with its jitter it may be up to %s", s.LatencyMs, longest)
	case relay.Spread(s.JitterMs) > s.LatencyMs:
		return fmt.Errorf("a jitter of %g ms cannot be met with a latency of %g ms: that takes %.3g ms at least, or packets would come before they are sent",
			s.JitterMs, s.LatencyMs, math.Ceil(100*relay.Spread(s.JitterMs))/100)
	}
	return nil
}
