package aggregate

import (
	"context"
	"strings"
	"testing"

	"croft/inventory"
	"croft/request"
)

func TestStrays(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "strays")
	const one = header + `<node client_id="%" component_id="urn:publicid:IDN+example.org+node+host1"><sliver_type name="simulated"/></node></rspec>`
	for _, id := range []string{"a", "b"} {
		if _, err := b.Allocate(ctx, p, slice, []byte(strings.Replace(one, "%", id, 1)), AllocateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ name, old, new, why string }{
		{"as it was", "cores: 4", "cores: 4", ""},
		{"out of service", "  - name: host1\n", "  - name: host1\n    out_of_service: broken\n", ""},
		{"gone", "name: host1", "name: host9", "it is not in the inventory"},
		{"just large enough", "cores: 4", "cores: 2", ""},
		{"too small", "cores: 4", "cores: 1", "2 cores, 2048 MiB memory, 2048 MiB disk are taken of 1 cores, 4096 MiB memory, 40960 MiB disk"},
		{"not counted", "    cores: 4\n", "", ""},
		{"too few", "  - name: host1\n", "  - name: host1\n    max_slivers: 1\n", "it holds 2 nodes of 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			snapshot, err := inventory.Parse([]byte(strings.Replace(testInventory, test.old, test.new, 1)), "inventory.yaml")
			if err != nil {
				t.Fatal(err)
			}
			other := &Service{Config: b.Config}
			other.Inventory = func() *inventory.Snapshot { return snapshot }
			list, err := other.Strays(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if test.why == "" {
				if len(list) != 0 {
					t.Errorf("strays: %+v", list)
				}
				return
			}
			if len(list) != 1 || list[0].Why != test.why || len(list[0].Slivers) != 2 || list[0].Host.Name != "host1" {
				t.Fatalf("strays: %+v, want one because %s", list, test.why)
			}
			if s := list[0]; len(s.Slices()) != 1 || !s.Until().Equal(s.Slivers[0].Expires) {
				t.Errorf("of %v until %s", s.Slices(), s.Until())
			}
		})
	}
}

// What links may join is told with its sliver type.
func TestExistingNodesHaveTypes(t *testing.T) {
	b := newBed(t)
	p, slice := b.principal("alice", "existing")
	if _, err := b.Allocate(context.Background(), p, slice, []byte(twoNodes), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	have, err := b.live(context.Background(), slice)
	if err != nil {
		t.Fatal(err)
	}
	list := existingNodes(have, nil)
	if len(list) != 2 {
		t.Fatalf("%d nodes", len(list))
	}
	for _, n := range list {
		if n.SliverType != request.SliverType("simulated") {
			t.Errorf("%s is a %q", n.ID, n.SliverType)
		}
	}
}
