package aggregate

import (
	"testing"

	"croft/inventory"
)

// TestTunnelPool takes all that a pool of two ranges has, from any start.
func TestTunnelPool(t *testing.T) {
	for _, start := range []uint64{0, 1, 4, 1 << 63} {
		p := tunnelPool{pool: []inventory.VNIRange{{First: 10, Last: 12}, {First: 20, Last: 21}}, taken: map[int]int{11: 1, 20: 0}, start: start}
		got := map[int]bool{}
		for range 4 {
			got[p.next()] = true
		}
		for _, want := range []int{10, 12, 20, 21} {
			if !got[want] {
				t.Errorf("from %d on: %v lacks %d", start, got, want)
			}
		}
		if vni := p.next(); vni != 0 {
			t.Errorf("from %d on: an empty pool gives %d", start, vni)
		}
	}
	if vni := (&tunnelPool{}).next(); vni != 0 {
		t.Errorf("no pool gives %d", vni)
	}
}
