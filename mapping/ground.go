package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"croft/capacity"
	"croft/inventory"
	"croft/mapping/solver"
	"croft/request"
	"croft/urn"
)

// ground is a snapshot made ready for mapping: what is the same for all
// requests to it. It is never changed.
type ground struct {
	snapshot *inventory.Snapshot
	types    []*inventory.SliverType
	slots    []slot // every host, empty
	byID     map[urn.URN]int
	byName   map[string]int
	extras   []string // what is counted beside capacities; see extraOf
	extra    []int64  // slot × extra → how much there is
	size     []float64
	twins    []int32 // slot → the same number for hosts that are declared alike
	global   map[string]solver.FeatureID
	policies []*inventory.Policy

	// For the solver. Its hosts are the slots, then the switches, then the
	// network that hosts without cabling share.
	testbed   *solver.Testbed
	firstHW   map[typeOn]solver.TypeID
	home      []int32 // slot → its switch
	zones     map[string]int32
	hostNames map[string]int // of hosts and switches
	wires     []wire
	byWire    map[urn.URN]int32
	media     map[capacity.Kbps]solver.MediumID
	wired     bool // some host declares interfaces
}

// typeOn is a sliver type on hosts of a hardware type.
type typeOn struct {
	kind     int
	hardware string
}

// wire is what a wire of the solver's is in the inventory.
type wire struct {
	id     urn.URN // the link or interface; zero for what is not declared
	trunk  bool
	ends   [2]int32 // the solver's hosts
	ifaces [2]urn.URN
}

// The solver's types and features that are always there; sliver types and
// what is counted follow.
const (
	typeBridge   solver.TypeID = iota // joins the links of a LAN
	typeStanding                      // a node that the slice has already
	firstType
)

const (
	featureCores solver.FeatureID = iota
	featureMemory
	featureDisk
	featureGPUs
	featurePlaces
	firstExtra
)

// unbounded is the rate of wires that have none declared, in kbit/s; sums of
// it stay far from overflowing.
const unbounded = 1 << 40

// plenty is how many slots a host offers of types that other things bound.
const plenty = 1 << 20

// grounds keeps the last few snapshots ready.
type grounds struct {
	mu     sync.Mutex
	recent []*ground
}

// maxGrounds bounds how many snapshots are kept: the one in use, and those
// that calls begun before a reload still have.
const maxGrounds = 3

// of returns the ground of a snapshot. A snapshot without a digest was not
// read by the inventory room and is not kept.
func (g *grounds) of(s *inventory.Snapshot) (*ground, error) {
	if s.Digest == "" {
		return newGround(s)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, have := range g.recent {
		if have.snapshot.Digest == s.Digest {
			copy(g.recent[1:i+1], g.recent[:i])
			g.recent[0] = have
			return have, nil
		}
	}
	made, err := newGround(s)
	if err != nil {
		return nil, err
	}
	g.recent = slices.Insert(g.recent, 0, made)
	g.recent = g.recent[:min(len(g.recent), maxGrounds)]
	return made, nil
}

func newGround(s *inventory.Snapshot) (*ground, error) {
	g := &ground{snapshot: s, slots: make([]slot, len(s.Hosts)),
		byID: make(map[urn.URN]int, len(s.Hosts)), byName: make(map[string]int, len(s.Hosts)),
		global: map[string]solver.FeatureID{}, firstHW: map[typeOn]solver.TypeID{}, zones: map[string]int32{},
		hostNames: make(map[string]int, len(s.Hosts)+len(s.Switches)), byWire: make(map[urn.URN]int32, len(s.Links)),
		media: map[capacity.Kbps]solver.MediumID{}}
	for i := range s.Types {
		g.types = append(g.types, &s.Types[i])
	}
	for i := range s.Policies {
		g.policies = append(g.policies, &s.Policies[i])
	}
	for i := range s.Hosts {
		h := &s.Hosts[i]
		g.byName[h.Name] = i
		g.byID[h.ID.Canonical()] = i
		slot := slot{host: h, size: counted(h.Capacity), places: math.MaxInt, parent: -1}
		for _, name := range h.Types {
			for t := range g.types {
				if g.types[t].Name == name {
					slot.types = append(slot.types, t)
				}
			}
		}
		slot.free = slot.size
		if h.MaxSlivers > 0 {
			slot.places = h.MaxSlivers
		}
		for _, f := range h.Interfaces {
			if f.Role != inventory.Control {
				slot.interfaces++
			}
		}
		g.slots[i] = slot
	}
	for i := range s.Hosts {
		if p := s.Hosts[i].Parent; !p.IsZero() {
			if at, known := g.byID[p.Canonical()]; known {
				g.slots[i].parent = at
				g.slots[at].hasParts = true
			}
		}
	}
	g.count()
	g.rank()
	g.findTwins()
	if err := g.compile(); err != nil {
		return nil, fmt.Errorf("make the inventory ready for mapping: %w", err)
	}
	return g, nil
}

// findTwins numbers hosts by all that is declared of them but for names and
// what follows from those.
func (g *ground) findTwins() {
	numbers := map[string]int32{}
	g.twins = make([]int32, len(g.slots))
	var key strings.Builder
	for i := range g.slots {
		h := g.slots[i].host
		key.Reset()
		fmt.Fprint(&key, h.Site, "|", h.HardwareTypes, h.Types, h.Images, h.Exclusive, h.Shared, h.Capacity, h.MaxSlivers, h.Underlay, h.TypeLimits,
			h.Features, h.Architecture, g.slots[i].parent, g.slots[i].hasParts, len(h.Interfaces))
		for _, f := range h.Interfaces {
			fmt.Fprint(&key, f.Role, f.Speed)
		}
		fmt.Fprint(&key, h.Properties)
		n, known := numbers[key.String()]
		if !known {
			n = int32(len(numbers))
			numbers[key.String()] = n
		}
		g.twins[i] = n
	}
}

// limitOn names the extra that bounds the nodes of a type on a host.
func limitOn(t request.SliverType) string { return "type " + string(t) }

// amountOf names the extra of a feature that hosts have amounts of.
func amountOf(feature string) string { return "feature " + feature }

// count lists what is counted beside capacities: nodes of types that some host
// limits, and amounts of features.
func (g *ground) count() {
	names := map[string]bool{}
	for i := range g.slots {
		h := g.slots[i].host
		for t := range h.TypeLimits {
			names[limitOn(t)] = true
		}
		for _, f := range h.Features {
			if f.Amount > 0 {
				names[amountOf(f.Name)] = true
			}
		}
	}
	g.extras = slices.Sorted(maps.Keys(names))
	g.extra = make([]int64, len(g.slots)*len(g.extras))
	for i := range g.slots {
		h := g.slots[i].host
		for k, name := range g.extras {
			at := &g.extra[i*len(g.extras)+k]
			if t, ok := strings.CutPrefix(name, "type "); ok {
				*at = endless
				if most, limited := h.TypeLimits[request.SliverType(t)]; limited {
					*at = int64(most) * 1000
				}
				continue
			}
			for _, f := range h.Features {
				if amountOf(f.Name) == name {
					*at = thousandths(f.Amount)
				}
			}
		}
	}
}

func thousandths(f float64) int64 { return int64(math.Round(f * 1000)) }

// extraOf is the index of what is counted by that name, -1 if nothing is.
func (g *ground) extraOf(name string) int {
	i, found := slices.BinarySearch(g.extras, name)
	if !found {
		return -1
	}
	return i
}

// rank orders the hosts by how much they have: from 0 for the least to 1.
func (g *ground) rank() {
	order := make([]int, len(g.slots))
	for i := range order {
		order[i] = i
	}
	compare := func(a, b int) int {
		x, y := g.slots[a].host, g.slots[b].host
		return cmp.Or(cmp.Compare(x.Capacity.GPUs, y.Capacity.GPUs), cmp.Compare(x.Capacity.Cores, y.Capacity.Cores),
			cmp.Compare(x.Capacity.Memory, y.Capacity.Memory), cmp.Compare(len(x.Types)+len(x.Interfaces), len(y.Types)+len(y.Interfaces)))
	}
	slices.SortFunc(order, compare)
	steps, last := 0, -1
	g.size = make([]float64, len(g.slots))
	for _, i := range order {
		if last >= 0 && compare(last, i) != 0 {
			steps++
		}
		g.size[i], last = float64(steps), i
	}
	for i := range g.size {
		g.size[i] /= float64(max(1, steps))
	}
}
