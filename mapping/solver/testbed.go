package solver

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// TypeID names a type of slot that hosts offer and nodes want: an index into
// Spec.Types.
type TypeID int32

// FeatureID is an index into Spec.Features.
type FeatureID int32

// MediumID is a kind of link, such as ethernet: an index into Spec.Media.
type MediumID int32

// FeatureKind says how a feature of a host counts.
type FeatureKind uint8

const (
	// Plain features cost their weight for every node on the host that does
	// not desire them.
	Plain FeatureKind = iota
	// Additive features are capacities, used up by the amounts that the nodes
	// on the host desire.
	Additive
	// GlobalOneFree features cost their weight for every user after the first
	// in the whole placement.
	GlobalOneFree
	// GlobalFirstCosts features cost their weight once, however many use them.
	GlobalFirstCosts
)

// FeatureType is a feature's name and kind.
type FeatureType struct {
	Name string
	Kind FeatureKind
}

// HostType is an offer of slots of one type.
type HostType struct {
	Type  TypeID
	Slots int32
	// Static slots are there beside whatever else the host is used as; of the
	// others a host gives those of one type at a time.
	Static bool
}

// HostFeature is a feature of a host. Weight is a cost in units of the score,
// or the capacity if the feature is additive.
type HostFeature struct {
	Feature FeatureID
	Weight  float64
}

// Host is a machine or a switch of the testbed.
type Host struct {
	Name     string
	Switch   bool // forwards what others send
	Types    []HostType
	Features []HostFeature
	Parent   int32 // the host that this is a part of; -1 if none
	Unique   bool  // a hardware class of its own
	Loopback int64 // bandwidth of links within the host; 0 is without limit
	Zone     int32 // the place where it stands, for groups
}

// Wire joins two hosts. One between switches is a trunk, any other is an
// interface of the host at its end.
type Wire struct {
	Name           string
	A, B           int32  // indices into Spec.Hosts
	AIface, BIface string // the interfaces' names; may be empty
	Bandwidth      int64  // shared by both directions; more than 0
	Media          []MediumID
	// Virtual wires are no hardware: any number of links may have one.
	Virtual bool
}

// Spec describes a testbed.
type Spec struct {
	Types    []string
	Features []FeatureType
	Media    []string
	Hosts    []Host
	Wires    []Wire
	// TypeLimits bound the slots of a type on all hosts used together.
	TypeLimits map[TypeID]int64
}

// Testbed is a compiled Spec, ready to be searched. It is never changed and
// may be shared by any number of concurrent calls of Solve.
type Testbed struct {
	spec *Spec

	classOf []int32   // host → hardware class
	classes [][]int32 // class → its hosts
	// Slots, flattened: those of host h are slotOff[h]:slotOff[h+1].
	slotOff  []int32
	slotType []TypeID
	slotMax  []int32
	slotFix  []bool
	// Additive capacities, flattened in the same way.
	addOff []int32
	addFor []FeatureID
	addMax []int64 // in thousandths

	switches []int32 // switch → host
	switchOf []int32 // host → switch, or -1
	parents  bool    // some host is a part of another

	fabric fabric
}

// maxMedia is how many kinds of link fit the masks.
const maxMedia = 64

// Compile checks a spec and prepares it for searching. The spec must not be
// changed afterwards.
func Compile(spec *Spec) (*Testbed, error) {
	if len(spec.Media) > maxMedia {
		return nil, fmt.Errorf("compile the testbed: %d kinds of link, at most %d can be told apart", len(spec.Media), maxMedia)
	}
	n := len(spec.Hosts)
	for i := range spec.Hosts {
		h := &spec.Hosts[i]
		if h.Parent < -1 || int(h.Parent) >= n {
			return nil, fmt.Errorf("compile the testbed: host %s: parent %d is no host", h.Name, h.Parent)
		}
		for _, t := range h.Types {
			if t.Type < 0 || int(t.Type) >= len(spec.Types) || t.Slots < 0 {
				return nil, fmt.Errorf("compile the testbed: host %s: type %d with %d slots", h.Name, t.Type, t.Slots)
			}
		}
		for _, f := range h.Features {
			if f.Feature < 0 || int(f.Feature) >= len(spec.Features) || math.IsNaN(f.Weight) || math.IsInf(f.Weight, 0) {
				return nil, fmt.Errorf("compile the testbed: host %s: feature %d of weight %v", h.Name, f.Feature, f.Weight)
			}
		}
	}
	for i := range spec.Wires {
		w := &spec.Wires[i]
		if w.A < 0 || int(w.A) >= n || w.B < 0 || int(w.B) >= n || w.Bandwidth <= 0 {
			return nil, fmt.Errorf("compile the testbed: wire %s: from host %d to %d with bandwidth %d", w.Name, w.A, w.B, w.Bandwidth)
		}
		for _, m := range w.Media {
			if m < 0 || int(m) >= len(spec.Media) {
				return nil, fmt.Errorf("compile the testbed: wire %s: medium %d", w.Name, m)
			}
		}
	}
	tb := &Testbed{spec: spec}
	tb.compileHosts()
	tb.classify()
	tb.fabric.compile(tb)
	return tb, nil
}

// Spec is what the testbed was compiled from.
func (tb *Testbed) Spec() *Spec { return tb.spec }

// Classes is how many hardware classes the testbed has: sets of hosts that no
// request can tell apart.
func (tb *Testbed) Classes() int { return len(tb.classes) }

func (tb *Testbed) compileHosts() {
	n := len(tb.spec.Hosts)
	tb.slotOff = make([]int32, n+1)
	tb.addOff = make([]int32, n+1)
	tb.switchOf = make([]int32, n)
	for i := range tb.spec.Hosts {
		h := &tb.spec.Hosts[i]
		types := slices.Clone(h.Types)
		slices.SortFunc(types, func(a, b HostType) int { return cmp.Compare(a.Type, b.Type) })
		for _, t := range types {
			tb.slotType = append(tb.slotType, t.Type)
			tb.slotMax = append(tb.slotMax, t.Slots)
			tb.slotFix = append(tb.slotFix, t.Static)
		}
		tb.slotOff[i+1] = int32(len(tb.slotType))
		for _, f := range h.Features {
			if tb.spec.Features[f.Feature].Kind == Additive {
				tb.addFor = append(tb.addFor, f.Feature)
				tb.addMax = append(tb.addMax, thousandths(f.Weight))
			}
		}
		tb.addOff[i+1] = int32(len(tb.addFor))
		tb.switchOf[i] = -1
		if h.Switch {
			tb.switchOf[i] = int32(len(tb.switches))
			tb.switches = append(tb.switches, int32(i))
		}
		if h.Parent >= 0 {
			tb.parents = true
		}
	}
}

func thousandths(f float64) int64 { return int64(math.Round(f * 1000)) }

// classify groups hosts by types, features, what they are part of, and wires:
// the physical equivalence classes of assign.
func (tb *Testbed) classify() {
	spec := tb.spec
	n := len(spec.Hosts)
	type end struct {
		peer  int32
		bw    int64
		media uint64
	}
	deg := make([]int32, n+1)
	for i := range spec.Wires {
		deg[spec.Wires[i].A+1]++
		deg[spec.Wires[i].B+1]++
	}
	for i := range n {
		deg[i+1] += deg[i]
	}
	ends := make([]end, deg[n])
	fill := slices.Clone(deg[:n])
	for i := range spec.Wires {
		w := &spec.Wires[i]
		m := mask(w.Media)
		ends[fill[w.A]] = end{w.B, w.Bandwidth, m}
		fill[w.A]++
		ends[fill[w.B]] = end{w.A, w.Bandwidth, m}
		fill[w.B]++
	}
	hasParts := make([]bool, n)
	for i := range spec.Hosts {
		if p := spec.Hosts[i].Parent; p >= 0 {
			hasParts[p] = true
		}
	}
	byKey := make(map[string]int32, n/4+1)
	tb.classOf = make([]int32, n)
	var key []byte
	for i := range spec.Hosts {
		h := &spec.Hosts[i]
		key = key[:0]
		if h.Unique || hasParts[i] {
			key = strconv.AppendInt(append(key, 'u'), int64(i), 10)
		} else {
			for s := tb.slotOff[i]; s < tb.slotOff[i+1]; s++ {
				key = strconv.AppendInt(key, int64(tb.slotType[s]), 10)
				key = strconv.AppendInt(append(key, ':'), int64(tb.slotMax[s]), 10)
				key = strconv.AppendBool(key, tb.slotFix[s])
			}
			features := h.Features
			if !slices.IsSortedFunc(features, compareFeatures) {
				features = slices.SortedFunc(slices.Values(features), compareFeatures)
			}
			for _, f := range features {
				key = strconv.AppendInt(append(key, 'f'), int64(f.Feature), 10)
				key = strconv.AppendUint(append(key, ':'), math.Float64bits(f.Weight), 16)
			}
			key = strconv.AppendInt(append(key, 'p'), int64(h.Parent), 10)
			es := ends[deg[i]:deg[i+1]]
			slices.SortFunc(es, func(a, b end) int {
				return cmp.Or(cmp.Compare(a.peer, b.peer), cmp.Compare(a.bw, b.bw), cmp.Compare(a.media, b.media))
			})
			for _, e := range es {
				key = strconv.AppendInt(append(key, 'w'), int64(e.peer), 10)
				key = strconv.AppendInt(append(key, ':'), e.bw, 10)
				key = strconv.AppendUint(append(key, ':'), e.media, 16)
			}
			key = strconv.AppendInt(append(key, 'l'), h.Loopback, 10)
			key = strconv.AppendInt(append(key, 'z'), int64(h.Zone), 10)
		}
		c, ok := byKey[string(key)]
		if !ok {
			c = int32(len(tb.classes))
			byKey[string(key)] = c
			tb.classes = append(tb.classes, nil)
		}
		tb.classOf[i] = c
		tb.classes[c] = append(tb.classes[c], int32(i))
	}
}

func compareFeatures(a, b HostFeature) int { return cmp.Compare(a.Feature, b.Feature) }

func mask(media []MediumID) uint64 {
	var m uint64
	for _, x := range media {
		m |= 1 << x
	}
	return m
}

// slot finds where host h keeps its slots of type t, or -1.
func (tb *Testbed) slot(h int32, t TypeID) int32 {
	for s := tb.slotOff[h]; s < tb.slotOff[h+1]; s++ {
		if tb.slotType[s] == t {
			return s
		}
	}
	return -1
}

// additive finds where host h keeps its capacity of f, or -1.
func (tb *Testbed) additive(h int32, f FeatureID) int32 {
	for a := tb.addOff[h]; a < tb.addOff[h+1]; a++ {
		if tb.addFor[a] == f {
			return a
		}
	}
	return -1
}

func (tb *Testbed) typeNames(ids []TypeID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = tb.spec.Types[id]
	}
	return strings.Join(names, " or ")
}
