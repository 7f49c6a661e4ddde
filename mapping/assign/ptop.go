// Package assign reads the testbeds (.ptop) and requests (.top) of Emulab's
// assign, has them placed by package solver, and prints the placement as
// assign prints it.
package assign

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"croft/mapping/solver"
)

// maxLine bounds a line of either file. Assign itself reads 32767 bytes of a
// testbed's line and 1023 of a request's.
const maxLine = 1 << 20

// everything is the number of slots that a type of "*" has.
const everything = 10000

// Policy is what a testbed's operator allows of a desire.
type Policy struct {
	Disallowed bool
	Limit      float64 // on the sum of the weights of the desires; with Disallowed of no meaning
}

// Testbed is a .ptop file.
type Testbed struct {
	Spec     *solver.Spec
	Policies map[solver.FeatureID]Policy

	types    interner
	features interner
	media    interner
	hosts    map[string]int32
}

// interner numbers names in the order in which they come.
type interner struct {
	ids   map[string]int32
	names []string
}

func (in *interner) id(name string) int32 {
	if id, ok := in.ids[name]; ok {
		return id
	}
	if in.ids == nil {
		in.ids = make(map[string]int32)
	}
	id := int32(len(in.names))
	name = strings.Clone(name)
	in.ids[name] = id
	in.names = append(in.names, name)
	return id
}

// LineError is a mistake in a line of a file.
type LineError struct {
	File string // "ptop" or "top"
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s line %d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// readLines calls f with the tokens of every line that has any.
func readLines(file string, r io.Reader, f func(tokens []string) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	var tokens []string
	line := 0
	for sc.Scan() {
		line++
		tokens = split(tokens[:0], sc.Text())
		if len(tokens) == 0 {
			continue
		}
		if err := f(tokens); err != nil {
			return &LineError{file, line, err}
		}
	}
	if err := sc.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("longer than %d bytes", maxLine)
		}
		return &LineError{file, line + 1, err}
	}
	return nil
}

// split cuts a line at its spaces, the only separators that assign knows.
func split(to []string, line string) []string {
	for {
		line = strings.TrimLeft(line, " ")
		if line == "" {
			return to
		}
		token, rest, _ := strings.Cut(line, " ")
		to = append(to, token)
		line = rest
	}
}

// ReadTestbed reads a .ptop file.
func ReadTestbed(r io.Reader) (*Testbed, error) {
	t := &Testbed{Spec: &solver.Spec{TypeLimits: map[solver.TypeID]int64{}}, Policies: map[solver.FeatureID]Policy{}, hosts: map[string]int32{}}
	parts := map[int32]string{} // host → name of what it is a part of
	err := readLines("ptop", r, func(tok []string) error {
		switch tok[0] {
		case "node":
			return t.node(tok, parts)
		case "link":
			return t.link(tok)
		case "set-type-limit":
			if len(tok) != 3 {
				return errors.New("set-type-limit wants TYPE MAX")
			}
			n, err := strconv.ParseInt(tok[2], 10, 32)
			if err != nil || n < 0 {
				return fmt.Errorf("limit %q of type %s: want a number from 0", tok[2], tok[1])
			}
			t.Spec.TypeLimits[solver.TypeID(t.types.id(tok[1]))] = n
			return nil
		case "policy":
			return t.policy(tok)
		}
		return fmt.Errorf("unknown directive %q: want node, link, set-type-limit or policy", tok[0])
	})
	if err != nil {
		return nil, err
	}
	for h, name := range parts {
		p, ok := t.hosts[name]
		if !ok {
			return nil, fmt.Errorf("ptop: node %s is subnode_of %s, which is not declared", t.Spec.Hosts[h].Name, name)
		}
		t.Spec.Hosts[h].Parent = p
	}
	t.finish()
	return t, nil
}

func (t *Testbed) finish() {
	t.Spec.Types = t.types.names
	t.Spec.Media = t.media.names
	t.Spec.Features = make([]solver.FeatureType, len(t.features.names))
	for i, n := range t.features.names {
		t.Spec.Features[i] = solver.FeatureType{Name: n, Kind: featureKind(n)}
	}
}

func featureKind(name string) solver.FeatureKind {
	switch {
	case strings.HasPrefix(name, "?"):
		return solver.Additive
	case strings.HasPrefix(name, "*&"):
		return solver.GlobalOneFree
	case strings.HasPrefix(name, "*"):
		return solver.GlobalFirstCosts
	}
	return solver.Plain
}

func (t *Testbed) node(tok []string, parts map[int32]string) error {
	if len(tok) < 3 {
		return errors.New("node wants NAME TYPE:SLOTS and more")
	}
	name := strings.Clone(tok[1])
	if _, ok := t.hosts[name]; ok {
		return fmt.Errorf("node %s is declared twice", name)
	}
	h := solver.Host{Name: name, Parent: -1}
	id := int32(len(t.Spec.Hosts))
	section := 0
	types, features := 0, 0
	for s, i := 0, 2; i < len(tok); i++ {
		switch {
		case tok[i] == "-":
			s++
		case s == 0:
			types++
		case s == 1:
			features++
		}
	}
	h.Types = make([]solver.HostType, 0, types)
	h.Features = make([]solver.HostFeature, 0, features)
	for _, x := range tok[2:] {
		if x == "-" {
			section++
			continue
		}
		key, value, found := strings.Cut(x, ":")
		switch section {
		case 0:
			typ := solver.HostType{Static: strings.HasPrefix(key, "*")}
			key = strings.TrimPrefix(key, "*")
			slots, err := slotCount(value)
			if !found || key == "" || err != nil {
				return fmt.Errorf("node %s: type %q: want TYPE:SLOTS", name, x)
			}
			typ.Slots = slots
			if key == "switch" {
				h.Switch = true
				typ.Slots, typ.Static = 1, false
			}
			typ.Type = solver.TypeID(t.types.id(key))
			for _, o := range h.Types {
				if o.Type == typ.Type {
					return fmt.Errorf("node %s: type %s is named twice", name, key)
				}
			}
			h.Types = append(h.Types, typ)
		case 1:
			w, err := weight(value)
			if !found || key == "" || err != nil {
				return fmt.Errorf("node %s: feature %q: want FEATURE:COST", name, x)
			}
			h.Features = append(h.Features, solver.HostFeature{Feature: solver.FeatureID(t.features.id(key)), Weight: w})
		default:
			switch key {
			case "trivial_bw":
				bw, err := strconv.ParseInt(value, 10, 64)
				if err != nil || bw < 0 {
					return fmt.Errorf("node %s: %q: want a bandwidth from 0", name, x)
				}
				h.Loopback = bw
			case "subnode_of":
				parts[id] = strings.Clone(value)
			case "unique":
				h.Unique = true
			default:
				return fmt.Errorf("node %s: unknown flag %q: want trivial_bw, subnode_of or unique", name, x)
			}
		}
	}
	t.hosts[name] = id
	t.Spec.Hosts = append(t.Spec.Hosts, h)
	return nil
}

func slotCount(s string) (int32, error) {
	if s == "*" {
		return everything, nil
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err == nil && n < 0 {
		err = errors.New("negative")
	}
	return int32(n), err
}

func weight(s string) (float64, error) {
	w, err := strconv.ParseFloat(s, 64)
	if err == nil && (math.IsNaN(w) || math.Abs(w) > 1e12) {
		err = errors.New("out of range")
	}
	return w, err
}

func (t *Testbed) link(tok []string) error {
	if len(tok) < 8 {
		return errors.New("link wants NAME SRC[:MAC[/IFACE]] DST[:MAC[/IFACE]] BW DELAY LOSS and LINKTYPEs")
	}
	w := solver.Wire{Name: strings.Clone(tok[1])}
	var err error
	if w.A, w.AIface, err = t.end(tok[2]); err == nil {
		w.B, w.BIface, err = t.end(tok[3])
	}
	if err != nil {
		return fmt.Errorf("link %s: %w", tok[1], err)
	}
	w.Bandwidth, err = strconv.ParseInt(tok[4], 10, 64)
	if err != nil || w.Bandwidth <= 0 || w.Bandwidth > math.MaxInt64/1_000_000 {
		return fmt.Errorf("link %s: bandwidth %q: want a whole number from 1", tok[1], tok[4])
	}
	w.Media = make([]solver.MediumID, 0, len(tok)-7)
	for _, m := range tok[7:] {
		w.Media = append(w.Media, solver.MediumID(t.media.id(m)))
	}
	t.Spec.Wires = append(t.Spec.Wires, w)
	return nil
}

// end reads NODE:MAC/IFACE.
func (t *Testbed) end(s string) (host int32, iface string, err error) {
	name, rest, _ := strings.Cut(s, ":")
	host, ok := t.hosts[name]
	if !ok {
		return 0, "", fmt.Errorf("node %s is not declared", name)
	}
	_, iface, _ = strings.Cut(rest, "/")
	return host, strings.Clone(iface), nil
}

func (t *Testbed) policy(tok []string) error {
	if len(tok) < 4 || tok[1] != "desire" {
		return errors.New("policy wants desire NAME disallow, or desire NAME limit SUM")
	}
	id, ok := t.features.ids[tok[2]]
	if !ok {
		return fmt.Errorf("policy on %s, which no node before has as a feature", tok[2])
	}
	switch {
	case tok[3] == "disallow" && len(tok) == 4:
		t.Policies[solver.FeatureID(id)] = Policy{Disallowed: true}
	case tok[3] == "limit" && len(tok) == 5:
		w, err := weight(tok[4])
		if err != nil || w < 0 {
			return fmt.Errorf("policy on %s: limit %q: want a number from 0", tok[2], tok[4])
		}
		t.Policies[solver.FeatureID(id)] = Policy{Limit: w}
	default:
		return errors.New("policy wants desire NAME disallow, or desire NAME limit SUM")
	}
	return nil
}
