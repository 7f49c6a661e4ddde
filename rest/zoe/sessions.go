package zoe

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"sync"
	"time"

	"croft/rest"
)

const (
	cookieName = "zoe"
	// sessionTime is how long a login lasts; a server that is started anew
	// knows none.
	sessionTime = 12 * time.Hour
	// maxSessions bounds the sessions at a time, and ownSessions those of one
	// account. A client of 2018.12 opens one for every command: the oldest of
	// the account goes for a new one.
	maxSessions, ownSessions = 10000, 100
)

// sessions are the logins that cookies stand for.
type sessions struct {
	clock  func() time.Time
	random io.Reader

	mu     sync.Mutex
	byHash map[[32]byte]*session
	own    map[string][]*session // by account, the oldest first
}

type session struct {
	hash  [32]byte // of the cookie
	id    *rest.Identity
	until time.Time
}

func newSessions(clock func() time.Time, random io.Reader) *sessions {
	return &sessions{clock: clock, random: random, byHash: map[[32]byte]*session{}, own: map[string][]*session{}}
}

// open begins a session and returns its cookie.
func (s *sessions) open(id *rest.Identity) (string, error) {
	var secret [32]byte
	if _, err := io.ReadFull(s.random, secret[:]); err != nil {
		return "", fmt.Errorf("drawing a session: %w", err)
	}
	value := base64.RawURLEncoding.EncodeToString(secret[:])
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own[id.Account]
	for len(own) > 0 && (len(own) >= ownSessions || !now.Before(own[0].until)) {
		delete(s.byHash, own[0].hash)
		own = own[1:]
	}
	if len(s.byHash) >= maxSessions {
		clear(s.byHash)
		clear(s.own)
		own = nil
	}
	v := &session{hash: sha256.Sum256([]byte(value)), id: id, until: now.Add(sessionTime)}
	s.byHash[v.hash], s.own[id.Account] = v, append(own, v)
	return value, nil
}

// find is who a cookie was given to; nil if nobody, or if it is too old.
func (s *sessions) find(value string) *rest.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.byHash[sha256.Sum256([]byte(value))]
	if v == nil || !s.clock().Before(v.until) {
		return nil
	}
	return v.id
}
