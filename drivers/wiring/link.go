package wiring

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"croft/drivers"
	"croft/drivers/internal/records"
	"croft/request"
	"croft/urn"
)

// endKey is one interface of one node.
type endKey struct {
	node  urn.URN
	iface request.ClientID
}

func keyOf(e drivers.End) endKey { return endKey{e.Node.Canonical(), e.Interface} }

// Connect makes a link. It may be of any number of ends; their nodes need not
// run. A link that exists is left as it is. What cannot be finished is undone.
func (s *Switch) Connect(l drivers.Link) error { return s.connectFor(s.cfg.Unowned, l, Way{}) }

// connectFor makes a link of a driver, which goes on beyond the machine as w
// says.
func (s *Switch) connectFor(owner string, l drivers.Link, w Way) error {
	if err := s.connect(owner, l, w); err != nil {
		return fmt.Errorf("connect link %s: %w", l.Sliver, err)
	}
	return nil
}

func (s *Switch) connect(owner string, l drivers.Link, w Way) error {
	if l.Sliver.IsZero() {
		return errors.New("it has no sliver URN")
	}
	slot, err := s.connectNow(owner, l, w)
	if err != nil {
		return err
	}
	if err := s.awaitRelay(slot); err != nil {
		return errors.Join(err, s.Disconnect(l.Sliver))
	}
	return nil
}

// connectNow makes a link; its relay may still be about to begin.
func (s *Switch) connectNow(owner string, l drivers.Link, w Way) (slot int, err error) {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	key := l.Sliver.Canonical()
	s.mu.Lock()
	r := s.links[key]
	s.mu.Unlock()
	if r != nil && r.Whole {
		return r.Slot, nil
	}
	if err := errors.Join(s.checkLink(owner, l), w.check(l)); err != nil {
		return 0, err
	}
	s.mu.Lock()
	if r == nil {
		r = &linkRecord{Slot: s.freeLinkSlot()}
		s.links[key] = r
	}
	s.leave(r)
	r.Link, r.Way, r.Owner = l, w, owner
	for _, e := range l.Ends {
		s.joined[keyOf(e)] = r
	}
	s.mu.Unlock()
	if err := s.wire(r); err != nil {
		return 0, errors.Join(err, s.unwire(key, r))
	}
	return r.Slot, nil
}

// wire makes a link whose record is there. netMu is held.
func (s *Switch) wire(r *linkRecord) error {
	if err := records.Write(s.linkFile(r.Slot), *r, false); err != nil {
		return err
	}
	if err := s.build(r); err != nil {
		return err
	}
	for port, end := range s.portsOf(r) {
		if err := s.fabric.plug(port, s.bridgeOf(r, end), s.portShape(r.Link, end)); err != nil {
			return err
		}
	}
	whole := *r
	whole.Whole = true
	if err := records.Write(s.linkFile(r.Slot), whole, true); err != nil {
		return err
	}
	s.mu.Lock()
	r.Whole = true
	s.mu.Unlock()
	return nil
}

// portsOf names the ports of a link whose nodes are plugged in.
func (s *Switch) portsOf(r *linkRecord) map[string]drivers.End {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]drivers.End{}
	for _, e := range r.Link.Ends {
		p := s.ports[e.Node.Canonical()]
		if p == nil {
			continue
		}
		i := slices.IndexFunc(p.Node.Interfaces, func(f drivers.Interface) bool { return f.Name == e.Interface })
		if i >= 0 {
			out[portName(p.Slot, i)] = e
		}
	}
	return out
}

// checkLink refuses what would fail later, or do harm. netMu is held.
func (s *Switch) checkLink(owner string, l drivers.Link) error {
	if s.ownNode(owner, l.Sliver) {
		return errors.New("there is a node of that name")
	}
	if len(l.Ends) == 0 {
		return errors.New("it has no ends")
	}
	seen := map[endKey]bool{}
	for i, e := range l.Ends {
		n, known := s.node(owner, e.Node)
		if !known {
			return fmt.Errorf("end %d: node %s: %w", i+1, e.Node, drivers.ErrNotFound)
		}
		if !n.Slice.Equal(l.Slice) {
			return fmt.Errorf("end %d: node %s is of slice %s, the link of %s: links do not leave their slice", i+1, e.Node, n.Slice, l.Slice)
		}
		if !slices.ContainsFunc(n.Interfaces, func(f drivers.Interface) bool { return f.Name == e.Interface }) {
			return fmt.Errorf("end %d: node %s has no interface %q", i+1, e.Node, e.Interface)
		}
		if seen[keyOf(e)] {
			return fmt.Errorf("end %d: interface %q of node %s is in it twice", i+1, e.Interface, e.Node)
		}
		seen[keyOf(e)] = true
		s.mu.Lock()
		other := s.joined[keyOf(e)]
		s.mu.Unlock()
		if other != nil && !other.Link.Sliver.Equal(l.Sliver) {
			return fmt.Errorf("end %d: interface %q of node %s is in link %s already", i+1, e.Interface, e.Node, other.Link.Sliver)
		}
	}
	return nil
}

// leave takes a link off its interfaces. mu is held.
func (s *Switch) leave(r *linkRecord) {
	for _, e := range r.Link.Ends {
		if s.joined[keyOf(e)] == r {
			delete(s.joined, keyOf(e))
		}
	}
}

// freeLinkSlot is called with mu held.
func (s *Switch) freeLinkSlot() int {
	taken := map[int]bool{}
	for _, r := range s.links {
		taken[r.Slot] = true
	}
	for slot := range s.trash {
		taken[slot] = true
	}
	return freeSlot(taken)
}

// Disconnect removes a link, whole or half-made; also one whose nodes are gone
// already.
func (s *Switch) Disconnect(link urn.URN) error {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	key := link.Canonical()
	s.mu.Lock()
	r := s.links[key]
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	err := s.unwire(key, r)
	if err == nil {
		err = s.tidy()
	}
	if err != nil {
		return fmt.Errorf("disconnect link %s: %w", link, err)
	}
	return nil
}

// unwire removes a link in whatever state it is. netMu is held.
func (s *Switch) unwire(key urn.URN, r *linkRecord) error {
	s.mu.Lock()
	r.Whole = false
	record := *r
	s.mu.Unlock()
	if _, err := os.Stat(s.linkFile(r.Slot)); err == nil {
		if err := records.Write(s.linkFile(r.Slot), record, false); err != nil {
			return err
		}
	}
	if s.fabric.handle != nil {
		for port := range s.portsOf(r) {
			if err := s.fabric.plug(port, "", request.Shape{}); err != nil {
				return err
			}
		}
	}
	if err := s.stopRelay(r.Slot); err != nil {
		return err
	}
	if err := s.leaveWay(r); err != nil {
		return err
	}
	parts := s.linkParts(r)
	if err := removeFile(s.linkFile(r.Slot)); err != nil {
		return err
	}
	for _, name := range parts {
		delete(s.fabric.bridges, name)
	}
	delete(s.built, r.Slot)
	s.mu.Lock()
	s.leave(r)
	delete(s.links, key)
	s.trash[r.Slot] = parts
	first := len(s.trash) == 1
	s.mu.Unlock()
	if first {
		s.background.Go(s.takeOut)
	}
	return nil
}

const (
	// trashPause is how long no link is removed before what is left of links
	// is deleted: the kernel lets nobody change anything meanwhile, and takes
	// about as long for one link as for a hundred.
	trashPause = 50 * time.Millisecond
	// trashWait bounds the waiting.
	trashWait = time.Second
)

// takeOut deletes what is left of links that were removed, as long as there
// are any, as many as there are at once. The slots of those that it cannot
// delete stay out of use, and the next Sweep removes them.
func (s *Switch) takeOut() {
	for {
		trash, err := s.collect()
		if err != nil || len(trash) == 0 {
			return
		}
		var names []string
		for _, parts := range trash {
			names = append(names, parts...)
		}
		if err := s.eraseNow(names); err != nil {
			s.log.Error("remove bridges", "err", err)
			return
		}
		s.mu.Lock()
		maps.DeleteFunc(s.trash, func(slot int, _ []string) bool { return trash[slot] != nil })
		s.mu.Unlock()
	}
}

// collect waits until the trash grows no more, and returns it. It fails when
// the Switch is closed.
func (s *Switch) collect() (map[int][]string, error) {
	size := -1
	for deadline := time.Now().Add(trashWait); ; {
		s.mu.Lock()
		trash := maps.Clone(s.trash)
		s.mu.Unlock()
		if len(trash) == size || len(trash) == 0 || time.Now().After(deadline) {
			return trash, nil
		}
		size = len(trash)
		select {
		case <-s.closing:
			return nil, errors.New("closed")
		case <-time.After(trashPause):
		}
	}
}

func (s *Switch) eraseNow(names []string) error {
	s.netMu.Lock()
	if s.fabric.handle == nil {
		s.netMu.Unlock()
		return nil // they went with it
	}
	e, err := s.fabric.eraser()
	s.netMu.Unlock()
	if err != nil {
		return err
	}
	defer e.Close()
	return e.erase(names...)
}
