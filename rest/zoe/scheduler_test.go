package zoe_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"croft/aggregate"
	"croft/credentials"
	"croft/urn"
)

func (b *bed) end(id int) {
	b.Helper()
	b.want(http.StatusNoContent, http.MethodDelete, fmt.Sprintf("/execution/%d", id), "")
	b.untilStatus(id, "terminated")
}

// TestQueue has executions wait in the order they came, also those that there
// would be room for, and across a restart.
func TestQueue(t *testing.T) {
	b := newBed(t, false)
	one := b.submit(app(3, 3, 1))
	b.untilStatus(one, "running")
	large, small := b.submit(app(2, 2, 9)), b.submit(app(1, 1, 1))
	b.untilStatus(large, "queued")
	if s := b.show(small)["status"]; s != "submitted" {
		t.Errorf("the small one goes before the large one: %v", s)
	}
	b.restart()
	b.end(one)
	b.untilStatus(large, "running")
	b.untilStatus(small, "running")
}

// TestBySize has the small ones go first.
func TestBySize(t *testing.T) {
	b := newBed(t, true)
	one := b.submit(app(3, 3, 1))
	b.untilStatus(one, "running")
	large := b.submit(app(2, 2, 9))
	b.untilStatus(large, "queued")
	small := b.submit(app(1, 1, 1))
	b.untilStatus(small, "running")
	if s := b.show(large)["status"]; s != "queued" {
		t.Errorf("the large one is %v", s)
	}
	b.end(one)
	b.untilStatus(large, "running")
}

// TestLeaveQueue ends an execution that waits.
func TestLeaveQueue(t *testing.T) {
	b := newBed(t, false)
	one := b.submit(app(4, 4, 1))
	b.untilStatus(one, "running")
	two, three := b.submit(app(2, 2, 1)), b.submit(app(4, 4, 1))
	b.untilStatus(two, "queued")
	b.end(two)
	b.end(one)
	b.untilStatus(three, "running")
}

// TestElastic has elastic services come where nobody waits, and go for the
// essential ones of another execution: as few as will do.
func TestElastic(t *testing.T) {
	b := newBed(t, false)
	grown := b.submit(app(1, 4, 1))
	b.untilServices(grown, "active", "active", "active", "active")

	// Who comes by another door takes nothing away.
	other := urn.Authority("example.org:others")
	_, err := b.service.Allocate(t.Context(), credentials.Local(urn.MustParse("urn:publicid:IDN+example.org+user+bob"), other, b.clock.Now),
		urn.URN{Authority: other, Type: urn.Slice, Name: "one"}, []byte(app(1, 1, 1)), aggregate.AllocateOptions{})
	var refused *aggregate.Error
	if !errors.As(err, &refused) || refused.Kind != aggregate.TooBig {
		t.Errorf("another door: %v", err)
	}

	needs := b.submit(app(2, 3, 1))
	b.untilStatus(needs, "running")
	b.still(grown, "active", "active", "runnable", "runnable")
	b.still(needs, "active", "active", "runnable")
	events, err := b.service.Events(t.Context(), slice(grown))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, e := range events {
		if strings.Contains(e.Fault, fmt.Sprintf("taken away for the essential services of execution %d", needs)) {
			told[e.ClientID] = true
		}
	}
	if len(told) != 2 || !told["web2"] || !told["web3"] {
		t.Errorf("events of those that were taken away: %v", told)
	}
	b.end(needs)
	b.untilServices(grown, "active", "active", "active", "active")
	b.end(grown)
}

// TestInVain takes nothing away where that would not make room.
func TestInVain(t *testing.T) {
	b := newBed(t, false)
	grown := b.submit(app(1, 3, 1))
	b.untilServices(grown, "active", "active", "active")
	waits := b.submit(app(4, 4, 1))
	b.untilStatus(waits, "queued")
	b.still(grown, "active", "active", "active")
	b.end(grown)
	b.untilStatus(waits, "running")
}

// TestHalfStarted goes on with an execution whose nodes were reserved when the
// server was killed.
func TestHalfStarted(t *testing.T) {
	b := newBed(t, false)
	id := b.submit(app(2, 3, 1))
	of := slice(id)
	_, err := b.service.Allocate(t.Context(), credentials.Local(urn.MustParse("urn:publicid:IDN+example.org+user+alice"), of.Authority, b.clock.Now),
		of, []byte(app(2, 3, 1)), aggregate.AllocateOptions{Inputs: map[string]any{"elastic": "false", "execution_id": fmt.Sprint(id)}})
	if err != nil {
		t.Fatal(err)
	}
	b.restart()
	b.untilServices(id, "active", "active", "active")
	b.end(id)
}

// TestGone ends an execution whose essential services somebody has deleted by
// another door.
func TestGone(t *testing.T) {
	b := newBed(t, false)
	id := b.submit(app(1, 2, 1))
	b.untilServices(id, "active", "active")
	of := slice(id)
	list, err := b.service.Slivers(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if v.ClientID == "web0" {
			p := credentials.Local(urn.MustParse("urn:publicid:IDN+example.org+user+alice"), of.Authority, b.clock.Now)
			if _, err := b.service.Delete(t.Context(), p, aggregate.Target{Slice: of, Slivers: []urn.URN{v.URN}}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.untilStatus(id, "terminated")
	b.until("nothing left", func() bool { left, err := b.service.Slivers(t.Context(), of); return err != nil || len(left) == 0 })
}
