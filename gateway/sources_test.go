package gateway

import (
	"fmt"
	"net"
	"testing"
	"time"
)

func at(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1234} }

func TestSourcesAreForgiven(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := newSources(func() time.Time { return now })
	fail := func(ip string) error {
		leave, err := s.enter(at(ip))
		if err == nil {
			leave(true)
		}
		return err
	}
	for i := range failuresPerSource {
		if err := fail("2001:db8::1"); err != nil {
			t.Fatalf("failure %d: %v", i, err)
		}
	}
	if err := fail("2001:db8::2"); err == nil {
		t.Error("another address of the same network gets in")
	}
	if err := fail("2001:db8:0:1::1"); err != nil {
		t.Errorf("another network does not get in: %v", err)
	}
	if err := fail("192.0.2.1"); err != nil {
		t.Errorf("an IPv4 address does not get in: %v", err)
	}
	now = now.Add(forgiveEvery)
	if err := fail("2001:db8::1"); err != nil {
		t.Errorf("after a while: %v", err)
	}
	if err := fail("2001:db8::1"); err == nil {
		t.Error("one is forgiven, two got in")
	}
	now = now.Add(-time.Hour) // a clock that is set
	if err := fail("2001:db8::1"); err == nil {
		t.Error("a clock that goes back forgives")
	}
	now = now.Add(3 * time.Hour)
	if err := fail("2001:db8::1"); err != nil {
		t.Errorf("after a long while: %v", err)
	}
}

func TestSourcesAreBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := newSources(func() time.Time { return now })
	stay, err := s.enter(at("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxSources {
		leave, err := s.enter(at(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)))
		if err != nil {
			t.Fatal(err)
		}
		leave(true)
	}
	if n := len(s.of); n > maxSources {
		t.Errorf("%d sources are remembered", n)
	}
	for i := range openPerSource {
		if _, err := s.enter(at("192.0.2.1")); (err == nil) != (i < openPerSource-1) {
			t.Fatalf("connection %d beside one that has stayed: %v", i+1, err)
		}
	}
	stay(false)
	if _, err := s.enter(at("192.0.2.1")); err != nil {
		t.Errorf("when one has left: %v", err)
	}
}
