package aggregate

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"croft/drivers/simulated"
	"croft/inventory"
	"croft/urn"
)

// What is deleted while others are made is not made first.
func TestDeleteOvertakesMake(t *testing.T) {
	b := newBed(t)
	snapshot, err := inventory.Parse([]byte(strings.ReplaceAll(testInventory, "4", "1000")), "inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.Service.Inventory = func() *inventory.Snapshot { return snapshot }
	var made atomic.Int32
	var begun, goOn = make(chan struct{}, 4*atOnce), make(chan struct{})
	b.driver.Fail = func(op simulated.Operation, _ urn.URN) error {
		if op == simulated.Make {
			made.Add(1)
			begun <- struct{}{}
			<-goOn
		}
		return nil
	}
	ctx := context.Background()
	p, slice := b.principal("alice", "many")
	document := header
	for i := range 4 * atOnce {
		document += fmt.Sprintf(`<node client_id="n%d"/>`, i)
	}
	if _, err := b.Allocate(ctx, p, slice, []byte(document+"</rspec>"), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Version: geni3}); err != nil {
		t.Fatal(err)
	}
	for range atOnce {
		<-begun
	}
	if _, err := b.Delete(ctx, p, Target{Slice: slice}, false); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	b.states(slice)
	if n := made.Load(); n != atOnce {
		t.Errorf("%d nodes were made, want the %d that were being made at the time of Delete", n, atOnce)
	}
	if found, err := b.driver.List(ctx); err != nil || len(found) != 0 {
		t.Errorf("the driver keeps %v, %v", found, err)
	}
	if all, err := b.store.All(ctx); err != nil || len(all) != 0 {
		t.Errorf("the store keeps %d slivers, %v", len(all), err)
	}
}
