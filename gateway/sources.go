package gateway

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// openPerSource bounds the connections from one source at a time.
	openPerSource = 64
	// failuresPerSource is how many connections from one source may fail to
	// prove who they are before it has to wait; one is forgiven every
	// forgiveEvery.
	failuresPerSource = 20
	forgiveEvery      = 6 * time.Second
	// maxSources bounds how many sources are remembered.
	maxSources = 8192
)

var (
	errTooMany  = errors.New("too many connections from there")
	errTooOften = errors.New("too many failed logins from there")
)

// sources counts connections by where they come from: an IPv4 address, or the
// network of an IPv6 address, of which a host has as many as it likes.
type sources struct {
	clock func() time.Time
	mu    sync.Mutex
	of    map[netip.Prefix]*source
}

type source struct {
	open   int
	failed float64 // failures that are not forgiven yet
	at     time.Time
}

func newSources(clock func() time.Time) *sources {
	return &sources{clock: clock, of: map[netip.Prefix]*source{}}
}

// enter counts a connection, unless its source has too many already. Leave
// says whether it failed.
func (s *sources) enter(from net.Addr) (leave func(failed bool), err error) {
	where := network(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	k := s.of[where]
	if k == nil {
		if len(s.of) >= maxSources {
			s.tidy(now)
		}
		k = &source{at: now}
		s.of[where] = k
	}
	k.forgive(now)
	switch {
	case k.open >= openPerSource:
		return nil, errTooMany
	case k.failed > failuresPerSource-1:
		return nil, errTooOften
	}
	k.open++
	return func(failed bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		k.forgive(s.clock())
		k.open--
		if failed {
			k.failed++
		}
		if k.open == 0 && k.failed == 0 && s.of[where] == k {
			delete(s.of, where)
		}
	}, nil
}

func (k *source) forgive(now time.Time) {
	if past := now.Sub(k.at); past > 0 {
		k.failed = max(0, k.failed-past.Seconds()/forgiveEvery.Seconds())
		k.at = now
	}
}

// tidy makes room: it forgets sources that have nothing open, those with
// failures only if there is no other way. s.mu is held.
func (s *sources) tidy(now time.Time) {
	for where, k := range s.of {
		if k.forgive(now); k.open == 0 && k.failed == 0 {
			delete(s.of, where)
		}
	}
	for where, k := range s.of {
		if len(s.of) < maxSources {
			return
		}
		if k.open == 0 {
			delete(s.of, where)
		}
	}
}

func network(from net.Addr) netip.Prefix {
	tcp, ok := from.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip, ok := netip.AddrFromSlice(tcp.IP)
	if !ok {
		return netip.Prefix{}
	}
	bits := 64
	if ip = ip.Unmap(); ip.Is4() {
		bits = 32
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
