package ssh

import (
	"context"
	"fmt"
	"sync"

	"croft/drivers"
	"croft/urn"
)

// List tells what the journal has, corrected by what machines say that answer
// now: one that was booted by somebody else does not run its node, one that has
// lost the mark of its node has not got it whole, and one that is marked with a
// sliver of this manager's that the journal does not have is a leak.
func (d *Driver) List(ctx context.Context) ([]drivers.Found, error) {
	machines := d.c.Machines()
	// What is made or removed while machines are asked is not judged by what
	// they said.
	known, wasWhole, wasRunning := map[urn.URN]bool{}, map[urn.URN]bool{}, map[urn.URN]bool{}
	for _, r := range d.journal.all() {
		k := r.Sliver.Canonical()
		known[k], wasWhole[k], wasRunning[k] = true, r.Whole, r.Running
	}
	said := d.lookAll(ctx, machines)
	var list []drivers.Found
	for _, r := range d.journal.all() {
		k := r.Sliver.Canonical()
		known[k] = true
		f := drivers.Found{Sliver: r.Sliver, Kind: drivers.LinkKind, Whole: r.Whole}
		if r.Node != nil {
			f.Kind, f.Running = drivers.NodeKind, r.Running
			if s, answered := said[r.Node.Host.Canonical()]; answered && r.Whole && wasWhole[k] && r.Running == wasRunning[k] {
				f.Whole = s.owner == r.Sliver.String() && s.manager == d.c.Manager.String()
				f.Running = f.Whole && r.Running && s.running
			}
		}
		list = append(list, f)
	}
	for _, m := range machines {
		s, answered := said[m.Host.Canonical()]
		if !answered || s.owner == "" {
			continue
		}
		sliver, err := urn.Parse(s.owner)
		if err == nil && known[sliver.Canonical()] {
			continue
		}
		if s.manager != d.c.Manager.String() || err != nil {
			d.ails(m, fmt.Sprintf("machine %s is in use by %s of the manager %s", m.Name, s.owner, s.manager))
			continue
		}
		d.fallsIll(m, illness{Ailing: drivers.Ailing{Reason: fmt.Sprintf("machine %s holds %s, which nobody knows", m.Name, s.owner)}, unknown: sliver})
		list = append(list, drivers.Found{Sliver: sliver, Kind: drivers.NodeKind})
	}
	return list, ctx.Err()
}

// looking bounds the machines that are asked at a time.
const looking = 32

// lookAll asks machines, those that answer within Config.Answer, and notes
// which of them do not.
func (d *Driver) lookAll(ctx context.Context, machines []Machine) map[urn.URN]seen {
	ctx, cancel := context.WithTimeout(ctx, d.c.Answer)
	defer cancel()
	said := map[urn.URN]seen{}
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, looking)
	for _, m := range machines {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			s, err := d.look(ctx, m)
			if err != nil {
				d.mu.Lock()
				if _, asked := d.accounts[m.Host.Canonical()]; !asked {
					d.accounts[m.Host.Canonical()] = nil // nobody waits for it again
				}
				d.mu.Unlock()
				if !d.isOff(m) {
					d.judge(m, err)
				}
				return
			}
			mu.Lock()
			said[m.Host.Canonical()] = s
			mu.Unlock()
			d.answers(m)
			if s.owner == "" && !d.isHeldInJournal(m) {
				d.isWell(m)
			}
		})
	}
	all.Wait()
	return said
}

// isOff reports whether a machine has a node that was stopped by power: it
// need not answer.
func (d *Driver) isOff(m Machine) bool {
	for _, r := range d.journal.all() {
		if r.Node != nil && r.Node.Host.Equal(m.Host) && r.Whole && !r.Running && m.Power != nil {
			return true
		}
	}
	return false
}

// isHeldInJournal reports whether a machine has a node, whole or not.
func (d *Driver) isHeldInJournal(m Machine) bool {
	for _, r := range d.journal.all() {
		if r.Node != nil && r.Node.Host.Equal(m.Host) {
			return true
		}
	}
	return false
}
