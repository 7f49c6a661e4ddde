package values

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Dimension is a scalar type: units, and the prefixes that they may bear. The
// scalar-unit types of csd05 (5.4.2.4) and the types that final 2.0 derives of
// scalar are both dimensions.
type Dimension struct {
	Name     string
	Units    map[string]float64 // multiples of the base unit
	Prefixes map[string]float64 // nil: none but the empty one
	Integer  bool               // numbers are integers
	AnyCase  bool               // units are read in any case
}

// Quantity is a number with a unit.
type Quantity struct {
	Text      string
	Number    any     // int64 or float64, as written
	Amount    float64 // in base units
	Dimension *Dimension
}

// Parse reads a number and a unit, with or without space between them.
func (d *Dimension) Parse(s string) (Quantity, error) {
	text := strings.TrimSpace(s)
	end := 0
	for end < len(text) && strings.IndexByte("+-.0123456789", text[end]) >= 0 {
		end++
	}
	// An exponent belongs to the number if digits follow.
	if end > 0 && end+1 < len(text) && (text[end] == 'e' || text[end] == 'E') {
		rest := strings.TrimLeft(text[end+1:], "+-")
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits > 0 {
			end = len(text) - len(rest) + digits
		}
	}
	number, unit := text[:end], strings.TrimSpace(text[end:])
	if number == "" || unit == "" {
		return Quantity{}, fmt.Errorf("%q is no %s: want a number and a unit, such as %q", s, d.Name, d.example())
	}
	q := Quantity{Text: s, Dimension: d}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(f, 0) {
		return q, fmt.Errorf("%q is no number", number)
	}
	if i, err := strconv.ParseInt(number, 10, 64); err == nil {
		q.Number = i
	} else if q.Number = f; d.Integer {
		return q, fmt.Errorf("%s is no integer, and %s counts in integers", number, d.Name)
	}
	multiple, ok := d.multiple(unit)
	if !ok {
		return q, fmt.Errorf("%q is no unit of %s: want one such as %q", unit, d.Name, d.example())
	}
	q.Amount = f * multiple
	return q, nil
}

func (d *Dimension) multiple(unit string) (float64, bool) {
	if m, ok := d.Units[unit]; ok && (d.Prefixes == nil || hasEmpty(d.Prefixes)) {
		return m, true
	}
	for prefix, times := range d.Prefixes {
		if rest, ok := strings.CutPrefix(unit, prefix); ok {
			if m, ok := d.Units[rest]; ok {
				return m * times, true
			}
		}
	}
	if d.AnyCase {
		for u, m := range d.Units {
			if strings.EqualFold(u, unit) {
				return m, true
			}
		}
	}
	return 0, false
}

func hasEmpty(prefixes map[string]float64) bool {
	_, ok := prefixes[""]
	return ok
}

// example is a quantity of the dimension's base unit.
func (d *Dimension) example() string {
	best := ""
	for u, m := range d.Units {
		if best == "" || m == 1 && (d.Units[best] != 1 || u < best) || d.Units[best] != 1 && u < best {
			best = u
		}
	}
	if d.Integer {
		return "10 " + best
	}
	return "1.5 " + best
}

// scaled makes a quantity of another amount in base units, written in the
// unit of q.
func (q Quantity) scaled(amount float64) (Quantity, error) {
	unit := strings.TrimLeft(strings.TrimSpace(q.Text), "+-.0123456789eE ")
	multiple, ok := q.Dimension.multiple(unit)
	if !ok {
		return q, fmt.Errorf("%q has no unit", q.Text)
	}
	number := strconv.FormatFloat(amount/multiple, 'g', -1, 64)
	if q.Dimension.Integer {
		number = strconv.FormatFloat(math.Trunc(amount/multiple), 'f', -1, 64)
	}
	return q.Dimension.Parse(number + " " + unit)
}

// The scalar-unit types (csd05, 5.4.2.4.3 to 5.4.2.4.7).
var dimensions = []*Dimension{
	{Name: "scalar-unit.size", AnyCase: true, Units: map[string]float64{
		"B": 1, "kB": 1e3, "KiB": 1 << 10, "MB": 1e6, "MiB": 1 << 20, "GB": 1e9, "GiB": 1 << 30, "TB": 1e12, "TiB": 1 << 40,
	}},
	{Name: "scalar-unit.time", Units: map[string]float64{
		"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9,
	}},
	{Name: "scalar-unit.frequency", Units: map[string]float64{"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}},
	{Name: "scalar-unit.bitrate", Units: map[string]float64{
		"bps": 1, "Kbps": 1e3, "Kibps": 1 << 10, "Mbps": 1e6, "Mibps": 1 << 20, "Gbps": 1e9, "Gibps": 1 << 30, "Tbps": 1e12, "Tibps": 1 << 40,
		"Bps": 8, "KBps": 8e3, "KiBps": 8 << 10, "MBps": 8e6, "MiBps": 8 << 20, "GBps": 8e9, "GiBps": 8 << 30, "TBps": 8e12, "TiBps": 8 << 40,
	}},
}

// ReadQuantity reads a number with a unit of csd05.
func ReadQuantity(s string) (Quantity, bool) {
	for _, d := range dimensions {
		if q, err := d.Parse(s); err == nil {
			return q, true
		}
	}
	return Quantity{}, false
}

// ScalarUnit returns the dimension of a scalar-unit type of csd05.
func ScalarUnit(name string) (*Dimension, bool) {
	for _, d := range dimensions {
		if d.Name == name {
			return d, true
		}
	}
	return nil, false
}
