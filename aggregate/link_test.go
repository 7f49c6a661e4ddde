package aggregate

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// TestTagsAskedFor has two slices ask for VLAN tags, one after the other.
func TestTagsAskedFor(t *testing.T) {
	b := newBed(t)
	snapshot, err := inventory.Parse([]byte(crowdInventory), "inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.Service.Inventory = func() *inventory.Snapshot { return snapshot }
	ctx := context.Background()
	link := func(tag int, typ string) []byte {
		text := header
		for _, n := range []string{"a", "b"} {
			text += fmt.Sprintf(`<node client_id=%q><sliver_type name=%q/><interface client_id="%s:0"/></node>`, n, typ, n)
		}
		return []byte(text + fmt.Sprintf(`<link client_id="l" vlantag="%d"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link></rspec>`, tag))
	}
	p1, slice1 := b.principal("alice", "tags1")
	p2, slice2 := b.principal("bob", "tags2")
	got, err := b.Allocate(ctx, p1, slice1, link(105, "raw-pc"), AllocateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v := b.states(slice1)["l"]; v.Link.VLAN != 105 || !strings.Contains(string(got.Manifest), `vlantag="105"`) || len(got.Warnings) > 0 {
		t.Errorf("tag %d, warnings %v, and the manifest\n%s", v.Link.VLAN, got.Warnings, got.Manifest)
	}
	for tag, want := range map[int]string{
		105: "l: asks for VLAN tag 105, which is that of another link (100-104, 106-109 are free)",
		99:  "l: asks for VLAN tag 99, which is none that links are given here (100-104, 106-109 are free)",
	} {
		var e *Error
		if _, err := b.Allocate(ctx, p2, slice2, link(tag, "raw-pc"), AllocateOptions{}); !errors.As(err, &e) || e.Kind != NoVLAN || !strings.Contains(err.Error(), want) {
			t.Errorf("tag %d: %v, want %s", tag, err, want)
		}
	}
	if _, err := b.Delete(ctx, p1, Target{Slice: slice1}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Allocate(ctx, p2, slice2, link(105, "raw-pc"), AllocateOptions{}); err != nil {
		t.Errorf("a tag that was given back: %v", err)
	}
	// Within a host, links take none.
	got, err = b.Allocate(ctx, p1, slice1, link(99, "vm"), AllocateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v := b.states(slice1)["l"]; v.Link.VLAN != 0 || !strings.Contains(string(got.Manifest), `vlantag="0"`) ||
		!strings.Contains(fmt.Sprint(got.Warnings), "link l asks for VLAN tag 99 and takes none here") {
		t.Errorf("tag %d, warnings %v, and the manifest\n%s", v.Link.VLAN, got.Warnings, got.Manifest)
	}
}
