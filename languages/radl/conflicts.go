package radl

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// bounds is the interval that numeric features leave. Both ends belong to it:
// > and < act as >= and <=.
type bounds struct {
	low, high float64
	first     *Feature
}

func unbounded() bounds { return bounds{low: math.Inf(-1), high: math.Inf(1)} }

// within narrows the interval by a feature, and reports whether something is
// left of it.
func (b bounds) within(f *Feature) (bounds, bool) {
	n := f.Value.Amount()
	switch f.Op {
	case Equal:
		b.low, b.high = max(b.low, n), min(b.high, n)
	case Less, LessEqual:
		b.high = min(b.high, n)
	case Greater, GreaterEqual:
		b.low = max(b.low, n)
	}
	return b, b.low <= b.high
}

// conflicts finds features that cannot all be had: intervals without a number
// in common, texts that differ.
func (c *checker) conflicts(features []Feature) {
	clear(c.seen)
	clear(c.bounds)
	var nested map[string][]*Feature
	for i := range features {
		f := &features[i]
		if f.Op == Soft {
			continue
		}
		before := c.seen[f.Name]
		if before == nil {
			c.seen[f.Name] = f
		}
		switch {
		case before != nil && group(&before.Value) != group(&f.Value):
			c.problem(f.Offset, fmt.Sprintf("%s is %s here and %s in line %d", f.Name, f.Value.Kind, before.Value.Kind, c.source.Place(before.Offset).Line), "")
		case f.Value.Kind == Number:
			b, ok := c.bounds[f.Name]
			if !ok {
				b = unbounded()
				b.first = f
			}
			narrowed, some := b.within(f)
			if !some {
				c.problem(f.Offset, fmt.Sprintf("%s and %s exclude one another", b.first.text(), f.text()), fmt.Sprintf("the first is in line %d", c.source.Place(b.first.Offset).Line))
				narrowed = b
			}
			c.bounds[f.Name] = narrowed
		case f.Value.Kind == Features:
			if nested == nil {
				nested = map[string][]*Feature{}
			}
			key := f.Name + "\x00" + nameOf(f.Value.Features)
			nested[key] = append(nested[key], f)
		case before != nil && !sameValue(&before.Value, &f.Value):
			c.problem(f.Offset, fmt.Sprintf("%s is given twice, with different values", f.Name), fmt.Sprintf("the first is in line %d", c.source.Place(before.Offset).Line))
		}
	}
	// What is contained under one name is one thing.
	for i := range features {
		f := &features[i]
		switch {
		case f.Op == Soft:
			c.conflicts(f.Value.Features)
		case f.Value.Kind == Features:
			key := f.Name + "\x00" + nameOf(f.Value.Features)
			var all []Feature
			for _, same := range nested[key] {
				all = append(all, same.Value.Features...)
			}
			if nested[key] != nil {
				nested[key] = nil
				c.conflicts(all)
			}
		}
	}
}

// group is which values of one feature can stand beside one another.
func group(v *Value) Kind {
	if v.Kind == List || v.Kind == Random {
		return String
	}
	return v.Kind
}

func sameValue(a, b *Value) bool {
	return a.Kind == b.Kind && a.Text == b.Text && slices.Equal(a.List, b.List)
}

// nameOf is the value of the feature called name.
func nameOf(features []Feature) string {
	for i := range features {
		if features[i].Name == "name" {
			return features[i].Value.Text
		}
	}
	return ""
}

// text writes a numeric feature for people.
func (f *Feature) text() string {
	return strings.Join([]string{f.Name, f.Op.String(), f.Value.Text + f.Value.Unit}, " ")
}
