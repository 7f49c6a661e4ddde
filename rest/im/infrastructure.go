package im

import (
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"croft/aggregate"
	"croft/languages"
	"croft/languages/radl"
	"croft/request"
	"croft/rest"
	"croft/slivers"
	"croft/urn"
)

// record is what the face remembers of an infrastructure beside its slivers.
type record struct {
	ID        string
	Created   time.Time
	Next      int // number of the next machine
	Machines  []machineRecord
	Documents []documentRecord
	Warnings  []string // of the documents, for their author
	// Slice is that of an infrastructure that was not made by this face; zero
	// for the others.
	Slice urn.URN `json:",omitzero"`
}

// machineRecord is the number that a machine keeps for as long as its
// infrastructure lasts.
type machineRecord struct {
	Number int
	Node   request.ClientID
	Sliver urn.URN
}

type documentRecord struct {
	MediaType string
	Text      []byte
}

// infrastructure is one as it is now.
type infrastructure struct {
	record
	slice urn.URN
	live  map[urn.URN]aggregate.Outcome // nodes
	all   []aggregate.Outcome           // what live has, in order, and links
	// ended says that all that it had has gone, whoever deleted it.
	ended bool
}

// derived reports whether the infrastructure was not made by this face.
func (x *infrastructure) derived() bool { return !x.Slice.IsZero() }

// newID draws the name of an infrastructure.
func (f *Face) newID() (string, error) {
	var b [10]byte
	if _, err := io.ReadFull(f.Random, b[:]); err != nil {
		return "", fmt.Errorf("drawing a name: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])), nil
}

// open reads an infrastructure of the caller and keeps others off it. A
// machine that was made before the server was killed, and not noted, gets its
// number now.
func (c *call) open() (*infrastructure, func(), error) {
	return c.openID(c.r.PathValue("id"))
}

func (c *call) openID(id string) (*infrastructure, func(), error) {
	unlock, err := c.locks.Lock(c.ctx, c.owner+"/"+id)
	if err != nil {
		return nil, nil, err
	}
	x, err := c.load(id)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return x, unlock, nil
}

func (c *call) load(id string) (*infrastructure, error) {
	none := rest.Refuse(404, "there is no infrastructure %.40q of yours", id)
	x := &infrastructure{slice: c.slice(id), live: map[urn.URN]aggregate.Outcome{}}
	err := c.Records.Get(c.owner, id, &x.record)
	known := err == nil
	if errors.Is(err, rest.ErrNoRecord) || known && x.derived() {
		// That it is the caller's is seen anew each time.
		held, err := c.id.Slices(c.ctx, c.Service)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(held, func(h aggregate.Held) bool { return !c.native(h) && rest.DerivedID(h.URN) == id })
		switch {
		case i >= 0:
			if !known {
				x.record = record{ID: id, Created: held[i].Created, Slice: held[i].URN}
			}
			x.slice = held[i].URN
			c.principal = c.id.Principal(c.Service.Manager().Authority.Top(), x.slice)
		case known:
			return nil, errors.Join(none, c.Records.Delete(c.owner, id))
		default:
			return nil, none
		}
	} else if err != nil {
		return nil, err
	}
	if err := c.refresh(x); err != nil {
		return nil, err
	}
	if x.ended {
		return nil, errors.Join(none, c.Records.Delete(c.owner, id))
	}
	return x, nil
}

// native reports whether a slice was made by this face.
func (c *call) native(h aggregate.Held) bool { return h.URN.Authority.Equal(c.authority) }

// refresh reads the slivers of an infrastructure.
func (c *call) refresh(x *infrastructure) error {
	outcomes, err := c.Service.Status(c.ctx, c.principal, aggregate.Target{Slice: x.slice}, true)
	var refused *aggregate.Error
	if errors.As(err, &refused) && refused.Kind == aggregate.NotFound {
		outcomes, err = nil, nil
	}
	if err != nil {
		return err
	}
	known := map[urn.URN]bool{}
	for _, m := range x.Machines {
		known[m.Sliver.Canonical()] = true
	}
	clear(x.live)
	x.all = outcomes
	changed := false
	for _, o := range outcomes {
		if o.Sliver.Kind != slivers.Node {
			continue
		}
		u := o.Sliver.URN.Canonical()
		x.live[u] = o
		if !known[u] {
			x.Machines = append(x.Machines, machineRecord{Number: x.Next, Node: o.Sliver.ClientID, Sliver: o.Sliver.URN})
			x.Next++
			changed = true
		}
	}
	// What was deleted by another way in, or has expired, is gone here, too.
	had := len(x.Machines)
	x.Machines = slices.DeleteFunc(x.Machines, func(m machineRecord) bool {
		_, there := x.live[m.Sliver.Canonical()]
		return !there
	})
	if x.ended = had > 0 && len(x.Machines) == 0; x.ended {
		return nil
	}
	if changed || had > len(x.Machines) {
		return c.Records.Put(c.owner, x.ID, &x.record)
	}
	return nil
}

// find returns a machine by its number.
func (x *infrastructure) find(number string) (*machineRecord, error) {
	n, err := strconv.Atoi(number)
	for i := range x.Machines {
		if err == nil && x.Machines[i].Number == n {
			return &x.Machines[i], nil
		}
	}
	return nil, rest.Refuse(404, "infrastructure %s has no VM %.20q", x.ID, number)
}

// target is the slivers of machines.
func (x *infrastructure) target(machines []*machineRecord) aggregate.Target {
	t := aggregate.Target{Slice: x.slice}
	for _, m := range machines {
		t.Slivers = append(t.Slivers, m.Sliver)
	}
	return t
}

// documents are those that later ones can refer to.
func (x *infrastructure) documents() []languages.Document {
	list := []languages.Document{}
	for _, d := range x.Documents {
		list = append(list, languages.Document{MediaType: d.MediaType, Bytes: d.Text})
	}
	return list
}

// merged is the RADL of the infrastructure.
func (x *infrastructure) merged() *radl.Document {
	var list []*radl.Document
	if x.derived() {
		return x.describe()
	}
	for _, d := range x.Documents {
		if d.MediaType != radl.MediaType {
			continue
		}
		// It was checked when it came.
		if doc, _, err := radl.Parse(d.Text, nil); err == nil {
			list = append(list, doc)
		}
	}
	return radl.Merge(list)
}

// radl is the text of merged.
func (x *infrastructure) radl() (string, error) {
	text, err := x.merged().Text()
	if err != nil {
		return "", fmt.Errorf("writing the RADL of infrastructure %s: %w", x.ID, err)
	}
	return string(text), nil
}
