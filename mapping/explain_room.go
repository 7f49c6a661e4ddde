package mapping

import (
	"fmt"
	"slices"
	"strings"

	"croft/capacity"
	"croft/request"
)

// explainSize says that a node is larger than any host.
func (b *board) explainSize(r *Refusal, w *want, slots []int) {
	r.Kind, r.Never = Full, true
	at := b.freest(w, slots, func(s *slot) capacity.Amount { return s.size })
	asked, size := b.askedOf(w, at), b.slots[at].size
	if asked.Fits(size) {
		// It is not the capacity.
		r.Why, r.Hint = b.explainExtras(w, at, b.ground.extra), ""
		return
	}
	r.Why = fmt.Sprintf("wants %s; %s has %s", asks(asked, size), b.call(w, at), has(asked, size))
	if len(slots) > 1 {
		r.Why = fmt.Sprintf("wants %s; the largest of %d hosts, %s, has %s", asks(asked, size), len(slots), b.slots[at].host.Name, has(asked, size))
	}
	r.Hint = "ask for at most " + has(asked, size)
}

// explainExtras says what a host has too little of beside its capacity.
func (b *board) explainExtras(w *want, at int, have []int64) string {
	s := &b.slots[at]
	for _, kind := range s.types {
		if w.sliverType != "" && w.sliverType != string(b.types[kind].Name) {
			continue
		}
		for _, u := range w.extra[kind] {
			has := have[at*len(b.extras)+u.index]
			if u.amount <= has {
				continue
			}
			name := b.extras[u.index]
			if t, limited := strings.CutPrefix(name, "type "); limited {
				return fmt.Sprintf("%s has its most nodes of type %s, %d", b.call(w, at), t, s.host.TypeLimits[request.SliverType(t)])
			}
			return fmt.Sprintf("wants %g of %s; %s has %g", float64(u.amount)/1000, name, b.call(w, at), float64(max(0, has))/1000)
		}
		if w.node.Most != (capacity.Amount{}) && b.types[kind].WholeHost {
			return fmt.Sprintf("%s has more than the most that it may have: %s", b.call(w, at), s.host.Capacity)
		}
	}
	return fmt.Sprintf("%s has its most nodes, %d", b.call(w, at), s.taken)
}

// askedOf is what a node takes on a host of which it asks too much.
func (b *board) askedOf(w *want, at int) capacity.Amount {
	for _, kind := range b.slots[at].types {
		t := b.types[kind]
		if w.sliverType == "" || w.sliverType == string(t.Name) {
			return w.asked(t)
		}
	}
	return w.node.Capacity
}

// explainOwner says that hosts are taken by others.
func (b *board) explainOwner(r *Refusal, w *want, slots []int) {
	s := &b.slots[slots[0]]
	if w.bound >= 0 || len(slots) == 1 {
		r.Kind = Unavailable
		switch {
		case s.closed:
			r.Why = b.call(w, slots[0]) + " is given whole to another slice or node"
		default:
			r.Why = b.call(w, slots[0]) + " has nodes on it, so it cannot be given whole"
			if s.host.Shared {
				r.Hint = `write exclusive="false" to share it`
			}
		}
		if w.bound < 0 {
			r.Kind = Full
			r.Why = "the only host that could take it, " + s.host.Name + ", is taken"
		}
		return
	}
	r.Kind = Full
	r.Why = fmt.Sprintf("all %d hosts that could take it are taken", len(slots))
	if out := b.count(w, byService); out > 0 {
		r.Why += fmt.Sprintf(", and %d more out of service", out)
	}
}

func (b *board) count(w *want, at stage) int {
	n := 0
	for _, st := range w.stages {
		if st == at {
			n++
		}
	}
	return n
}

// explainRoom says of what too little is free on the hosts that would take a
// node. beside names what of the request is placed already.
func (b *board) explainRoom(w *want, slots []int, beside string) (why, hint string) {
	at := b.freest(w, slots, func(s *slot) capacity.Amount { return s.free })
	s := &b.slots[at]
	asked := b.demandOf(w, at)
	subject := fmt.Sprintf("%s%s", b.call(w, at), beside)
	several := len(slots) > 1
	switch {
	case s.places > 0 && asked.Fits(s.free):
		return b.explainExtras(w, at, b.extra) + beside, ""
	case s.places <= 0:
		why = fmt.Sprintf("%s has its most nodes, %d", subject, s.taken)
		if several {
			why = fmt.Sprintf("each of the %d hosts that could take it has its most nodes%s", len(slots), beside)
		}
		return why, ""
	case several:
		subject = fmt.Sprintf("the freest of %d hosts%s, %s,", len(slots), beside, s.host.Name)
	}
	why = fmt.Sprintf("wants %s; %s has %s free", asks(asked, s.free), subject, has(asked, s.free))
	if beside == "" && s.free.Cores > 0 && s.free.Memory > 0 && has(asked, s.free) != "none" {
		hint = "ask for at most " + has(asked, s.free)
	}
	return why, hint
}

// demandOf is what a node would take of a host.
func (b *board) demandOf(w *want, at int) capacity.Amount {
	for _, o := range w.options[w.first[at]:w.first[at+1]] {
		return o.demand
	}
	for _, kind := range b.slots[at].types {
		if o, st := b.option(w, at, kind); st >= byRoom {
			return o.demand
		}
	}
	return b.askedOf(w, at)
}

// freest is the slot that comes nearest to what a node wants.
func (b *board) freest(w *want, slots []int, of func(*slot) capacity.Amount) int {
	nearness := func(at int) float64 {
		demand, have := dimensions(b.demandOf(w, at)), dimensions(of(&b.slots[at]))
		least := 1e18
		for k, d := range demand {
			if d > 0 {
				least = min(least, float64(have[k])/float64(d))
			}
		}
		if b.slots[at].places <= 0 {
			least -= 1e19
		}
		return least
	}
	best := slots[0]
	for _, at := range slots[1:] {
		if nearness(at) > nearness(best) {
			best = at
		}
	}
	return best
}

// has says how much there is of what asks says is wanted.
func has(asked, have capacity.Amount) string {
	switch {
	case asked.GPUs > have.GPUs && have.GPUs <= 0,
		asked.Cores > have.Cores && have.Cores <= 0,
		asked.Cores <= have.Cores && asked.Memory > have.Memory && have.Memory <= 0,
		asked.Cores <= have.Cores && asked.Memory <= have.Memory && have.Disk <= 0:
		return "none"
	case asked.Cores > have.Cores:
		return cores(have.Cores)
	case asked.Memory > have.Memory:
		return fmt.Sprintf("%d MiB of memory", have.Memory)
	case asked.GPUs > have.GPUs && asked.Disk <= have.Disk:
		return plural(int(have.GPUs), "GPU")
	}
	return fmt.Sprintf("%d MiB of disk", have.Disk)
}

// asks says which part of a demand is more than there is.
func asks(asked, have capacity.Amount) string {
	switch {
	case asked.Cores > have.Cores:
		return cores(asked.Cores)
	case asked.Memory > have.Memory:
		return fmt.Sprintf("%d MiB of memory", asked.Memory)
	case asked.GPUs > have.GPUs && asked.Disk <= have.Disk:
		return plural(int(asked.GPUs), "GPU")
	}
	return fmt.Sprintf("%d MiB of disk", asked.Disk)
}

func cores(c capacity.Cores) string {
	if c == capacity.Core {
		return "1 core"
	}
	return fmt.Sprintf("%g cores", float64(c)/float64(capacity.Core))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// refuseDrivers says that a node's links lead to nodes of another driver.
func (l *linkage) refuseDrivers(node int) *Refusal {
	n := &l.req.Nodes[node]
	r := &Refusal{Kind: Impossible, Item: n.ID, Place: n.Place,
		Why:  "has links to nodes that another driver makes",
		Hint: "links join nodes of one driver, or containers and namespaces: choose sliver types that can be linked"}
	for i, ends := range l.ends {
		if slices.ContainsFunc(ends, func(e endpoint) bool { return e.node == node }) {
			r.Item, r.Place = l.req.Links[i].ID, l.req.Links[i].Place
			r.Why = fmt.Sprintf("joins node %s to nodes that another driver makes", n.ID)
			break
		}
	}
	return r
}
