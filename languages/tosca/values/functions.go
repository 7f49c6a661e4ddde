package values

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrNoFunction says that there is no function of a name here.
var ErrNoFunction = errors.New("no such function")

// maxText bounds what functions make, in bytes.
const maxText = 1 << 20

type function struct {
	min, max int // arguments; max < 0: any number
	call     func(args []any) (any, error)
	// early functions see arguments that are not known.
	early bool
}

// Has reports whether a function of the name is here.
func Has(name string) bool { _, ok := functions[name]; return ok }

// Names lists the functions, sorted.
func Names() []string { return slices.Sorted(maps.Keys(functions)) }

// Arithmetic reports whether the function computes with numbers, of which
// those with units may be written as strings.
func Arithmetic(name string) bool { return slices.Contains(arithmetic, name) }

var arithmetic = []string{"sum", "difference", "product", "quotient", "remainder"}

// Boolean reports whether the function gives a boolean.
func Boolean(name string) bool { return slices.Contains(booleans, name) }

var booleans = []string{
	"and", "or", "not", "xor", "equal", "greater_than", "greater_or_equal", "less_than", "less_or_equal",
	"valid_values", "matches", "in_range", "min_length", "max_length", "has_suffix", "has_prefix", "contains",
	"has_entry", "has_key", "has_all_entries", "has_all_keys", "has_any_entry", "has_any_key",
}

// Arity checks the number of arguments of a function.
func Arity(name string, n int) error {
	f, ok := functions[name]
	switch {
	case !ok:
		return ErrNoFunction
	case n >= f.min && (f.max < 0 || n <= f.max):
		return nil
	case f.min == f.max:
		return fmt.Errorf("$%s has %d arguments: want %d", name, n, f.min)
	case f.max < 0:
		return fmt.Errorf("$%s has %d arguments: want at least %d", name, n, f.min)
	}
	return fmt.Errorf("$%s has %d arguments: want %d to %d", name, n, f.min, f.max)
}

// Call computes a function. If an argument that matters is Unknown, so is the
// result.
func Call(name string, args []any) (any, error) {
	if err := Arity(name, len(args)); err != nil {
		return nil, err
	}
	f := functions[name]
	if !f.early && slices.ContainsFunc(args, unknown) {
		return Unknown{}, nil
	}
	v, err := f.call(args)
	if err != nil {
		return nil, fmt.Errorf("$%s: %w", name, err)
	}
	return v, nil
}

func unknown(v any) bool {
	switch x := v.(type) {
	case Unknown, Text:
		return true
	case []any:
		return slices.ContainsFunc(x, unknown)
	case map[string]any:
		for _, item := range x {
			if unknown(item) {
				return true
			}
		}
	}
	return false
}

// Known reports whether all of a value is known.
func Known(v any) bool { return !unknown(v) }

var functions = map[string]function{
	"and": {2, -1, func(a []any) (any, error) { return logic(a, false) }, true},
	"or":  {2, -1, func(a []any) (any, error) { return logic(a, true) }, true},
	"not": {1, 1, func(a []any) (any, error) {
		b, err := boolean(a[0])
		return !b, err
	}, false},
	"xor": {2, 2, func(a []any) (any, error) {
		x, err := boolean(a[0])
		if err != nil {
			return nil, err
		}
		y, err := boolean(a[1])
		return x != y, err
	}, false},

	"equal":            {2, 2, func(a []any) (any, error) { return Equal(a[0], a[1]), nil }, false},
	"greater_than":     {2, 2, order(func(c int) bool { return c > 0 }), false},
	"greater_or_equal": {2, 2, order(func(c int) bool { return c >= 0 }), false},
	"less_than":        {2, 2, order(func(c int) bool { return c < 0 }), false},
	"less_or_equal":    {2, 2, order(func(c int) bool { return c <= 0 }), false},
	"valid_values": {2, 2, func(a []any) (any, error) {
		list, err := listOf(a[1])
		return slices.ContainsFunc(list, func(v any) bool { return Equal(a[0], v) }), err
	}, false},
	"matches":    {2, 2, matches, false},
	"in_range":   {2, 2, inRange, false},
	"min_length": {2, 2, lengthOrder(func(n, limit int64) bool { return n >= limit }), false},
	"max_length": {2, 2, lengthOrder(func(n, limit int64) bool { return n <= limit }), false},

	"has_prefix": {2, 2, sequences(strings.HasPrefix, func(a, b []any) bool { return len(a) >= len(b) && slices.EqualFunc(a[:len(b)], b, Equal) }), false},
	"has_suffix": {2, 2, sequences(strings.HasSuffix, func(a, b []any) bool {
		return len(a) >= len(b) && slices.EqualFunc(a[len(a)-len(b):], b, Equal)
	}), false},
	"contains":        {2, 2, sequences(strings.Contains, containsList), false},
	"has_entry":       {2, 2, has(entriesOf, false, true), false},
	"has_key":         {2, 2, has(keysOf, false, true), false},
	"has_all_entries": {2, 2, has(entriesOf, true, true), false},
	"has_all_keys":    {2, 2, has(keysOf, true, true), false},
	"has_any_entry":   {2, 2, has(entriesOf, true, false), false},
	"has_any_key":     {2, 2, has(keysOf, true, false), false},

	"length": {1, 1, func(a []any) (any, error) { return length(a[0]) }, false},
	"concat": {1, -1, concat, true},
	"join":   {1, 2, join, true},
	"token":  {3, 3, token, false},

	"union":        {1, -1, union, false},
	"intersection": {1, -1, intersection, false},

	"sum":        {1, -1, sum, false},
	"difference": {2, 2, difference, false},
	"product":    {1, -1, product, false},
	"quotient":   {2, 2, quotient, false},
	"remainder":  {2, 2, remainder, false},
	"round":      {1, 1, rounding(func(f float64) float64 { return math.Ceil(f - 0.5) }), false},
	"floor":      {1, 1, rounding(math.Floor), false},
	"ceil":       {1, 1, rounding(math.Ceil), false},
}

func boolean(v any) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("a %s is no boolean", TypeName(v))
	}
	return b, nil
}

// logic is $and (until false) and $or (until true). What is not known decides
// nothing.
func logic(args []any, until bool) (any, error) {
	open := false
	for _, a := range args {
		if unknown(a) {
			open = true
			continue
		}
		b, err := boolean(a)
		if err != nil {
			return nil, err
		}
		if b == until {
			return until, nil
		}
	}
	if open {
		return Unknown{}, nil
	}
	return !until, nil
}

func order(holds func(int) bool) func([]any) (any, error) {
	return func(a []any) (any, error) {
		c, err := Compare(a[0], a[1])
		return holds(c), err
	}
}

func listOf(v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("a %s is no list", TypeName(v))
	}
	return list, nil
}

func matches(a []any) (any, error) {
	s, ok := a[0].(string)
	pattern, isText := a[1].(string)
	if !ok || !isText {
		return nil, fmt.Errorf("want a string and a pattern, not %s and %s", TypeName(a[0]), TypeName(a[1]))
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return re.MatchString(s), nil
}

func inRange(a []any) (any, error) {
	bounds, err := boundsOf(a[1])
	if err != nil {
		return nil, err
	}
	if bounds[0] != "UNBOUNDED" {
		if c, err := Compare(a[0], bounds[0]); err != nil || c < 0 {
			return false, err
		}
	}
	if bounds[1] != "UNBOUNDED" {
		if c, err := Compare(a[0], bounds[1]); err != nil || c > 0 {
			return false, err
		}
	}
	return true, nil
}

func boundsOf(v any) ([]any, error) {
	if r, ok := v.(Range); ok {
		if r.High == math.MaxInt64 {
			return []any{r.Low, "UNBOUNDED"}, nil
		}
		return []any{r.Low, r.High}, nil
	}
	list, err := listOf(v)
	if err == nil && len(list) != 2 {
		err = fmt.Errorf("a range of %d bounds", len(list))
	}
	return list, err
}

func length(v any) (int64, error) {
	switch x := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(x)), nil
	case []byte:
		return int64(len(x)), nil
	case []any:
		return int64(len(x)), nil
	case map[string]any:
		return int64(len(x)), nil
	}
	return 0, fmt.Errorf("a %s has no length", TypeName(v))
}

func lengthOrder(holds func(n, limit int64) bool) func([]any) (any, error) {
	return func(a []any) (any, error) {
		n, err := length(a[0])
		if err != nil {
			return nil, err
		}
		limit, ok := a[1].(int64)
		if !ok {
			return nil, fmt.Errorf("a %s is no length", TypeName(a[1]))
		}
		return holds(n, limit), nil
	}
}

func sequences(text func(a, b string) bool, list func(a, b []any) bool) func([]any) (any, error) {
	return func(a []any) (any, error) {
		switch x := a[0].(type) {
		case string:
			if y, ok := a[1].(string); ok {
				return text(x, y), nil
			}
		case []any:
			if y, ok := a[1].([]any); ok {
				return list(x, y), nil
			}
		}
		return nil, fmt.Errorf("want two strings or two lists, not %s and %s", TypeName(a[0]), TypeName(a[1]))
	}
}

func containsList(a, b []any) bool {
	for i := 0; i+len(b) <= len(a); i++ {
		if slices.EqualFunc(a[i:i+len(b)], b, Equal) {
			return true
		}
	}
	return false
}

func entriesOf(v any) ([]any, error) {
	switch x := v.(type) {
	case []any:
		return x, nil
	case map[string]any:
		return slices.Collect(maps.Values(x)), nil
	}
	return nil, fmt.Errorf("a %s is neither list nor map", TypeName(v))
}

func keysOf(v any) ([]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a %s is no map", TypeName(v))
	}
	keys := make([]any, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return keys, nil
}

// has makes the functions that look for values in a collection: for one, or
// for all or any of a list.
func has(of func(any) ([]any, error), many, all bool) func([]any) (any, error) {
	return func(a []any) (any, error) {
		in, err := of(a[0])
		if err != nil {
			return nil, err
		}
		wanted := []any{a[1]}
		if many {
			if wanted, err = listOf(a[1]); err != nil {
				return nil, err
			}
		}
		for _, w := range wanted {
			if slices.ContainsFunc(in, func(v any) bool { return Equal(v, w) }) != all {
				return !all, nil
			}
		}
		return all, nil
	}
}
