package aggregate

import (
	"context"
	"strings"
	"testing"

	"croft/drivers"
	"croft/drivers/simulated"
	"croft/urn"
)

// frail is a driver whose hosts fall ill on demand.
type frail struct {
	*simulated.Driver
	ill []drivers.Ailing
}

func (f *frail) Health() []drivers.Ailing { return f.ill }

func TestAilingHostsTakeNoNodes(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "ailing")
	driver := &frail{Driver: b.driver}
	b.Drivers["simulated"] = driver
	host := func(name string) urn.URN { return urn.MustParse("urn:publicid:IDN+example.org+node+" + name) }
	available := func() int {
		t.Helper()
		ad, err := b.Advertise(ctx, p, AdvertiseOptions{Version: geni3})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(ad.Bytes()), `<available now="true"`)
	}
	if n := available(); n != 2 {
		t.Fatalf("%d hosts available, want 2", n)
	}
	driver.ill = []drivers.Ailing{{Host: host("host1"), Reason: "pc1 does not answer"}}
	if n := available(); n != 1 {
		t.Errorf("%d hosts available, want 1", n)
	}
	a, err := b.Allocate(ctx, p, slice, []byte(exclusiveNodes("a")), AllocateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Slivers[0].Node.HostName; got != "host2" {
		t.Errorf("placed on %s, want host2", got)
	}
	driver.ill = append(driver.ill, drivers.Ailing{Host: host("host2"), Reason: "pc2 could not be cleaned"})
	if _, err := b.Allocate(ctx, p, slice, []byte(exclusiveNodes("b")), AllocateOptions{}); err == nil || !strings.Contains(err.Error(), "out of") {
		t.Errorf("a node where every host is out of order: %v", err)
	}
	driver.ill = nil
	if _, err := b.Allocate(ctx, p, slice, []byte(exclusiveNodes("b")), AllocateOptions{}); err != nil {
		t.Errorf("the host is well again: %v", err)
	}
}
