package wiring

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"croft/drivers/wiring/internal/relay"
	"croft/request"
)

// kernel is what the kernel can do for shaped links.
type kernel struct{ tbf, netem bool }

// relayed reports whether a leg needs a relay.
func (k kernel) relayed(l leg) bool {
	return !k.tbf || !k.netem && !(rateOnly(l.out) && rateOnly(l.back))
}

// kernel asks the kernel what it can do, by trying, once.
func (s *Switch) kernel() (kernel, error) { return s.tryKernel() }

func tryKernel() (kernel, error) {
	try := func(s request.Shape) (bool, error) {
		err := OnThread(func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("make a network namespace: %w", err)
			}
			h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
			if err != nil {
				return err
			}
			defer h.Close()
			const loopback = 1
			return setShape(h, loopback, s)
		})
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
			return false, nil
		}
		return err == nil, err
	}
	tbf, tbfErr := try(request.Shape{Capacity: 1000})
	netem, netemErr := try(request.Shape{LatencyMs: 1})
	if err := errors.Join(tbfErr, netemErr); err != nil {
		return kernel{}, fmt.Errorf("look how the kernel shapes links: %w", err)
	}
	return kernel{tbf: tbf, netem: netem}, nil
}

const (
	// burstMs is how much time a token bucket makes up for: timers are late by
	// less.
	burstMs = 10
	// minBurst is two of the longest frames.
	minBurst = 2 * 1536
	// queueMs and minQueue bound what waits for a token bucket.
	queueMs  = 50
	minQueue = 128 << 10
	// anyKbps is the most that goes through a link that has no capacity.
	anyKbps = 40_000_000
	// maxPackets bounds the packets that a link delays.
	maxPackets = 200_000
)

// setShape gives what an interface sends a shape that the kernel keeps.
func setShape(h *netlink.Handle, index int, s request.Shape) error {
	if s == (request.Shape{}) {
		return nil
	}
	attrs := netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	if !rateOnly(s) {
		kbps := s.Capacity
		if kbps == 0 {
			kbps = anyKbps
		}
		spread := relay.Spread(s.JitterMs)
		packets := float64(kbps) / 8 * (s.LatencyMs + spread) / 500 // of 500 bytes
		netem := netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{
			Latency: uint32(s.LatencyMs * 1000), Jitter: uint32(spread * 1000), Loss: float32(s.Loss),
			Limit: uint32(min(maxPackets, 1000+packets)),
		})
		if err := h.QdiscReplace(netem); err != nil {
			return fmt.Errorf("set latency, jitter and loss: %w", err)
		}
		attrs.Handle, attrs.Parent = netlink.MakeHandle(10, 0), netlink.MakeHandle(1, 1)
	}
	if s.Capacity == 0 {
		return nil
	}
	rate := uint64(s.Capacity) * 1000 / 8 // bytes in a second
	tbf := &netlink.Tbf{QdiscAttrs: attrs, Rate: rate, Limit: uint32(max(minQueue, rate*queueMs/1000)),
		Buffer: netlink.Xmittime(rate, uint32(max(minBurst, rate*burstMs/1000)))}
	if err := h.QdiscReplace(tbf); err != nil {
		return fmt.Errorf("set the rate: %w", err)
	}
	return nil
}
