package aggregate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"croft/credentials"
	"croft/drivers"
	"croft/drivers/simulated"
	"croft/request"
	"croft/urn"
)

// narrow is a driver whose links have up to 1000 kbit/s, and whose nodes have
// something to tell.
type narrow struct {
	*simulated.Driver
	notes []string
}

func (*narrow) Shapes(l drivers.Link) error {
	for _, e := range l.Ends {
		if e.Out.Capacity > 1000 || e.In.Capacity > 1000 {
			return fmt.Errorf("a capacity of %d kbit/s cannot be met", max(e.Out.Capacity, e.In.Capacity))
		}
	}
	return nil
}

func (n *narrow) Notes(context.Context, urn.URN) ([]string, error) { return n.notes, nil }

func TestShapeIsAskedFor(t *testing.T) {
	b := newStoppedBed(t)
	b.inventory = strings.Replace(b.inventory, "    driver: simulated\n", "    driver: simulated\n    shaping: true\n", 1)
	driver := &narrow{Driver: b.driver}
	b.drivers["simulated"] = driver
	b.start()
	ctx := context.Background()
	p, slice := b.principal("alice", "narrow")
	document := func(capacity int) []byte {
		return fmt.Appendf(nil, `<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3">
<node client_id="a"><interface client_id="a:0"/></node><node client_id="b"><interface client_id="b:0"/></node>
<link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/>
<property source_id="a:0" dest_id="b:0" capacity="%d" latency="7"/></link></rspec>`, capacity)
	}
	_, err := b.Allocate(ctx, p, slice, document(2000), AllocateOptions{})
	var e *Error
	if !errors.As(err, &e) || e.Kind != NoBandwidth || !strings.Contains(err.Error(), "2000 kbit/s cannot be met") || !strings.Contains(err.Error(), "line 4") {
		t.Fatalf("a link that cannot be shaped as asked for: %v", err)
	}
	if _, err := b.Allocate(ctx, p, slice, document(900), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	link := b.states(slice)["l"].Link
	want := request.Shape{Capacity: 900, LatencyMs: 7}
	if link.Ends[0].Out != want || link.Ends[1].Out != (request.Shape{}) {
		t.Errorf("the link's ends: %+v", link.Ends)
	}
}

func TestNotes(t *testing.T) {
	b := newStoppedBed(t)
	driver := &narrow{Driver: b.driver}
	b.drivers["simulated"] = driver
	b.start()
	ctx := context.Background()
	p, slice := b.principal("alice", "notes")
	target := Target{Slice: slice}
	if _, err := b.Allocate(ctx, p, slice, []byte(exclusiveNodes("a")), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	driver.notes = []string{"the node's disk is full", "its memory is used up"}
	status := func(p *credentials.Principal) Outcome {
		t.Helper()
		list, err := b.Status(ctx, p, target, false)
		if err != nil || len(list) != 1 {
			t.Fatalf("status: %v, %v", list, err)
		}
		return list[0]
	}
	if o := status(p); len(o.Notes) > 0 || o.Error() != "" {
		t.Errorf("a node that is not made tells %q, %q", o.Notes, o.Error())
	}
	if _, err := b.Provision(ctx, p, target, ProvisionOptions{Version: geni3}); err != nil {
		t.Fatal(err)
	}
	if o := status(p); len(o.Notes) != 2 || o.Error() != "the node's disk is full; its memory is used up" || o.Err != nil {
		t.Errorf("the node tells %q, %q", o.Notes, o.Error())
	}
}
