package mapping

import (
	"fmt"
	"slices"
	"strconv"

	"croft/inventory"
	"croft/request"
)

// tags are the VLAN tags of the testbed.
type tags struct {
	shared map[string]*inventory.SharedVLAN // by name
	of     map[int]string                   // whose those are that are taken
	pool   []int                            // those for links that are free, in order
}

func (j *job) tags() *tags {
	t := &tags{shared: map[string]*inventory.SharedVLAN{}, of: map[int]string{}}
	for i := range j.snapshot.SharedVLANs {
		v := &j.snapshot.SharedVLANs[i]
		t.shared[v.Name] = v
		t.of[v.Tag] = "that of the shared VLAN " + v.Name
	}
	if j.occupancy != nil {
		for tag, links := range j.occupancy.VLANs {
			if links > 0 && t.of[tag] == "" {
				t.of[tag] = "that of another link"
			}
		}
	}
	for _, r := range j.snapshot.Pools.VLANs {
		for tag := r.First; tag <= r.Last; tag++ {
			if t.of[tag] == "" {
				t.pool = append(t.pool, tag)
			}
		}
	}
	slices.Sort(t.pool)
	t.pool = slices.Compact(t.pool)
	return t
}

// free names the ranges of tags that links can have.
func (t *tags) free() string {
	var ranges []string
	for i := 0; i < len(t.pool); {
		k := i
		for k+1 < len(t.pool) && t.pool[k+1] == t.pool[k]+1 {
			k++
		}
		name := strconv.Itoa(t.pool[i])
		if k > i {
			name += "-" + strconv.Itoa(t.pool[k])
		}
		ranges, i = append(ranges, name), k+1
	}
	switch {
	case len(t.pool) == 0:
		return "no other is free"
	case len(t.pool) == 1:
		return ranges[0] + " is free"
	}
	return some(ranges) + " are free"
}

// take gives a link the tag that it asks for.
func (t *tags) take(link *request.Link) *Refusal {
	if i, free := slices.BinarySearch(t.pool, link.VLAN); free {
		t.pool = slices.Delete(t.pool, i, i+1)
		t.of[link.VLAN] = fmt.Sprintf("that of link %s", link.ID)
		return nil
	}
	whose := t.of[link.VLAN]
	if whose == "" {
		whose = "none that links are given here"
	}
	return &Refusal{Kind: NoVLAN, Item: link.ID, Place: link.Place, Why: fmt.Sprintf("asks for VLAN tag %d, which is %s", link.VLAN, whose), Hint: t.free()}
}

// assignVLANs gives tags to links that pass switches: first those that they ask
// for. Which of the others comes first depends on the seed, so that those who
// map at the same time seldom meet.
func (j *job) assignVLANs(p *Placement) *Refusal {
	t := j.tags()
	var open []int
	for i := range p.Links {
		l, link := &p.Links[i], &j.req.Links[i]
		switch {
		case l.SharedVLAN != "":
			l.VLAN = t.shared[l.SharedVLAN].Tag
		case len(j.snapshot.Pools.VLANs) == 0 || len(l.Ends) == 1 || !j.passesSwitch(l):
		case link.VLAN == 0:
			open = append(open, i)
		default:
			if r := t.take(link); r != nil {
				return r
			}
			l.VLAN = link.VLAN
		}
	}
	if len(open) == 0 {
		return nil
	}
	if left := len(t.pool); left < len(open) {
		link := &j.req.Links[open[left]]
		j.scarce = true
		return &Refusal{Kind: NoVLAN, Item: link.ID, Place: link.Place,
			Why:  fmt.Sprintf("no VLAN tag is left for it: %s free for links between switches, the request needs more", plural(left, "tag")),
			Hint: "links within a host need none"}
	}
	next := int(j.options.Seed % uint64(len(t.pool)))
	for _, i := range open {
		p.Links[i].VLAN = t.pool[next]
		next = (next + 1) % len(t.pool)
	}
	return nil
}

// passesSwitch reports whether a link runs over a declared switch.
func (j *job) passesSwitch(l *LinkPlacement) bool {
	for _, c := range l.Route {
		w := &j.wires[j.byWire[c.Wire.Canonical()]]
		for _, h := range w.ends {
			if int(h) >= len(j.slots) && int(h) < len(j.slots)+len(j.snapshot.Switches) {
				return true
			}
		}
	}
	return false
}

// nameShared is the request with the names of shared VLANs that it names by
// their tag alone. Where no shared VLAN has the tag, it is one that the link
// asks for itself.
func nameShared(snapshot *inventory.Snapshot, req *request.Request) *request.Request {
	named := req
	for i := range req.Links {
		l := &req.Links[i]
		if l.VLAN == 0 || l.SharedVLAN != strconv.Itoa(l.VLAN) {
			continue
		}
		name := ""
		for k := range snapshot.SharedVLANs {
			v := &snapshot.SharedVLANs[k]
			if v.Name == l.SharedVLAN {
				name = v.Name
				break
			}
			if v.Tag == l.VLAN {
				name = v.Name
			}
		}
		if name == l.SharedVLAN {
			continue
		}
		if named == req {
			more := *req
			more.Links = slices.Clone(req.Links)
			named = &more
		}
		named.Links[i].SharedVLAN = name
	}
	return named
}
