package aggregate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"croft/inventory"
	"croft/languages/zapp"
	"croft/slivers"
)

// A ZApp that is given again asks for the nodes that it has not got: their
// link is the one that the others have.
func TestLinkGetsMoreEnds(t *testing.T) {
	b := newBed(t)
	snapshot, err := inventory.Parse([]byte("images:\n  - name: plain\n    os: Linux\n"+strings.Replace(testInventory, "    driver: simulated\n", "    driver: simulated\n    images: [plain]\n", 1)), "inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.Service.Inventory = func() *inventory.Snapshot { return snapshot }
	b.Languages = append(b.Languages, zapp.Language{})
	ctx := context.Background()
	p, slice := b.principal("alice", "grows")
	app := func(total int) []byte {
		return fmt.Appendf(nil, `{"name": "n", "version": 2, "will_end": true, "priority": 1, "requires_binary": false, "services": [
			{"name": "web", "docker_image": "plain", "command": "serve", "environment": [], "monitor": true, "total_count": %d, "essential_count": %d,
			 "required_resources": {"memory": 1048576}, "startup_order": 0, "ports": []}]}`, total, total)
	}
	grow := func(total int) []slivers.Sliver {
		t.Helper()
		a, err := b.Allocate(ctx, p, slice, app(total), AllocateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Version: geni3, Start: true}); err != nil {
			t.Fatal(err)
		}
		return a.Slivers
	}
	ends := func(want int) *slivers.Sliver {
		t.Helper()
		b.states(slice)
		all, err := b.live(ctx, slice)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if l := all[i].Link; l != nil {
				if len(l.Ends) != want || all[i].Operational != slivers.Ready {
					t.Fatalf("the link is %s and has the ends %v, want %d", all[i].Operational, l.Ends, want)
				}
				return &all[i]
			}
		}
		t.Fatal("no link")
		return nil
	}
	grow(2)
	ends(2)
	added := grow(4)
	if len(added) != 2 {
		t.Fatalf("added %v", added)
	}
	link := ends(4)
	addresses := map[string]bool{}
	all, err := b.live(ctx, slice)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Node != nil {
			addresses[v.Node.Interfaces[0].Addresses[0].Masked().String()] = true
		}
	}
	if len(addresses) != 1 {
		t.Errorf("the nodes of one link are in the subnets %v", addresses)
	}
	if _, err := b.Delete(ctx, p, Target{Slice: slice, Slivers: urnsOf(added[:1])}, false); err != nil {
		t.Fatal(err)
	}
	if now := ends(3); !now.URN.Equal(link.URN) {
		t.Errorf("another link: %s", now.URN)
	}
}
