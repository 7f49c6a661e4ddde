package namespace_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"croft/capacity"
	"croft/drivers"
	"croft/drivers/namespace"
	"croft/request"
	"croft/urn"
)

func benchNode(i int) drivers.Node {
	n := drivers.Node{
		Sliver:   urn.URN{Authority: "bench.example", Type: urn.Sliver, Name: fmt.Sprintf("node-%d", i)},
		Slice:    urn.URN{Authority: "bench.example", Type: urn.Slice, Name: "bench"},
		Hostname: fmt.Sprintf("node-%d", i),
		Capacity: capacity.Amount{Cores: capacity.Core, Memory: 512},
	}
	for j := range 2 {
		n.Interfaces = append(n.Interfaces, drivers.Interface{
			Name:      request.ClientID(fmt.Sprintf("if%d", j)),
			Device:    fmt.Sprintf("eth%d", j+1),
			Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(j)<<4 | byte(i>>8), byte(i), 1}), 24)},
		})
	}
	return n
}

func BenchmarkNode(b *testing.B) {
	d := open(b, namespace.Config{Dir: b.TempDir()})
	defer d.Close()
	ctx := context.Background()
	n := benchNode(0)
	// The first node has the system image made.
	if err := errors.Join(d.Make(ctx, n), d.Remove(ctx, n.Sliver)); err != nil {
		b.Fatal(err)
	}
	var start, remove time.Duration
	for b.Loop() {
		t0 := time.Now()
		if err := errors.Join(d.Make(ctx, n), d.Start(ctx, n.Sliver)); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		if err := d.Remove(ctx, n.Sliver); err != nil {
			b.Fatal(err)
		}
		start += t1.Sub(t0)
		remove += time.Since(t1)
	}
	b.ReportMetric(float64(start.Milliseconds())/float64(b.N), "ms/start")
	b.ReportMetric(float64(remove.Milliseconds())/float64(b.N), "ms/remove")
}

// BenchmarkRing makes rings of nodes and links, a few at a time, and removes
// them.
func BenchmarkRing(b *testing.B) {
	for _, ring := range []struct {
		name  string
		count int
		shape request.Shape
	}{
		{"50 nodes, plain links", 50, request.Shape{}},
		{"50 nodes, links of 100 Mbit/s", 50, request.Shape{Capacity: 100_000}},
		{"50 nodes, links of 10 ms", 50, request.Shape{Capacity: 100_000, LatencyMs: 10}},
		{"500 nodes, links of 100 Mbit/s", 500, request.Shape{Capacity: 100_000}},
	} {
		b.Run(ring.name, func(b *testing.B) { benchRing(b, ring.count, ring.shape) })
	}
}

func benchRing(b *testing.B, count int, shape request.Shape) {
	d := open(b, namespace.Config{Dir: b.TempDir(), IDs: namespace.IDRange{First: 1 << 30, Nodes: count + 1}})
	defer d.Close()
	ctx := context.Background()
	// The first node has the system image made.
	if err := errors.Join(d.Make(ctx, benchNode(0)), d.Remove(ctx, benchNode(0).Sliver)); err != nil {
		b.Fatal(err)
	}
	each := func(f func(i int) error) {
		b.Helper()
		slots := make(chan struct{}, 4)
		var all sync.WaitGroup
		var mu sync.Mutex
		var errs error
		for i := range count {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				if err := f(i); err != nil {
					mu.Lock()
					errs = errors.Join(errs, err)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if errs != nil {
			b.Fatal(errs)
		}
	}
	link := func(i int) drivers.Link {
		return drivers.Link{
			Sliver: urn.URN{Authority: "bench.example", Type: urn.Sliver, Name: fmt.Sprintf("link-%d", i)},
			Slice:  benchNode(i).Slice,
			Ends: []drivers.End{{Node: benchNode(i).Sliver, Interface: "if0", Out: shape, In: shape},
				{Node: benchNode((i + 1) % count).Sliver, Interface: "if1"}},
		}
	}
	var times [4]time.Duration
	for b.Loop() {
		for k, step := range []func(i int) error{
			func(i int) error { return errors.Join(d.Make(ctx, benchNode(i)), d.Start(ctx, benchNode(i).Sliver)) },
			func(i int) error { return d.Connect(ctx, link(i)) },
			func(i int) error { return d.Remove(ctx, link(i).Sliver) },
			func(i int) error { return d.Remove(ctx, benchNode(i).Sliver) },
		} {
			t := time.Now()
			each(step)
			times[k] += time.Since(t)
		}
	}
	for k, name := range []string{"ms/nodes", "ms/links", "ms/unlink", "ms/remove"} {
		b.ReportMetric(float64(times[k].Milliseconds())/float64(b.N), name)
	}
	if found, err := d.List(ctx); err != nil || len(found) > 0 {
		b.Errorf("left: %d, %v", len(found), err)
	}
}
