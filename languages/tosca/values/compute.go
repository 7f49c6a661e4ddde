package values

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// concat joins strings, also with pieces that are known later, or lists.
func concat(args []any) (any, error) {
	if _, ok := args[0].([]any); ok {
		var list []any
		for _, a := range args {
			if _, ok := a.(Unknown); ok {
				return Unknown{}, nil
			}
			more, err := listOf(a)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
		return list, nil
	}
	return text(args, "")
}

func join(args []any) (any, error) {
	delimiter := ""
	if len(args) == 2 {
		switch d := args[1].(type) {
		case string:
			delimiter = d
		case Unknown, Text:
			return Unknown{}, nil
		default:
			return nil, fmt.Errorf("a %s is no delimiter", TypeName(d))
		}
	}
	if _, ok := args[0].(Unknown); ok {
		return Unknown{}, nil
	}
	list, err := listOf(args[0])
	if err != nil {
		return nil, err
	}
	return text(list, delimiter)
}

func text(parts []any, delimiter string) (any, error) {
	var made Text
	var s strings.Builder
	later := false
	for i, part := range parts {
		if i > 0 {
			s.WriteString(delimiter)
		}
		switch x := part.(type) {
		case Unknown:
			return Unknown{}, nil
		case Text:
			later = true
			if s.Len() > 0 {
				made = append(made, Piece{String: s.String()})
				s.Reset()
			}
			made = append(made, x...)
		case string, int64, float64, bool, Quantity, Version:
			s.WriteString(String(x))
		default:
			return nil, fmt.Errorf("a %s is no string", TypeName(part))
		}
		if s.Len() > maxText {
			return nil, fmt.Errorf("the string has more than %d bytes", maxText)
		}
	}
	if !later {
		return s.String(), nil
	}
	if s.Len() > 0 {
		made = append(made, Piece{String: s.String()})
	}
	return made, nil
}

func token(a []any) (any, error) {
	s, ok := a[0].(string)
	cut, isText := a[1].(string)
	index, isIndex := a[2].(int64)
	if !ok || !isText || !isIndex {
		return nil, fmt.Errorf("want a string, token characters and an index, not %s, %s and %s", TypeName(a[0]), TypeName(a[1]), TypeName(a[2]))
	}
	var parts []string
	if cut == "" {
		parts = []string{s}
	} else {
		for {
			i := strings.IndexAny(s, cut)
			if i < 0 {
				break
			}
			parts = append(parts, s[:i])
			_, size := firstRune(s[i:])
			s = s[i+size:]
		}
		parts = append(parts, s)
	}
	if index < 0 || index >= int64(len(parts)) {
		return nil, fmt.Errorf("there is no part %d, but %d parts", index, len(parts))
	}
	return parts[index], nil
}

func firstRune(s string) (rune, int) {
	for i, r := range s {
		if i > 0 {
			return r, i
		}
	}
	return 0, len(s)
}

func union(args []any) (any, error) {
	made := []any{}
	for _, a := range args {
		list, err := listOf(a)
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			if !slices.ContainsFunc(made, func(w any) bool { return Equal(v, w) }) {
				made = append(made, v)
			}
		}
	}
	return made, nil
}

func intersection(args []any) (any, error) {
	first, err := union(args[:1])
	if err != nil {
		return nil, err
	}
	made := first.([]any)
	for _, a := range args[1:] {
		list, err := listOf(a)
		if err != nil {
			return nil, err
		}
		made = slices.DeleteFunc(made, func(v any) bool {
			return !slices.ContainsFunc(list, func(w any) bool { return Equal(v, w) })
		})
	}
	return made, nil
}

func mismatch(a, b any) error {
	return fmt.Errorf("cannot compute with %s and %s", TypeName(a), TypeName(b))
}

func sum(args []any) (any, error) {
	total := args[0]
	switch total.(type) {
	case int64, float64, Quantity:
	default:
		return nil, fmt.Errorf("a %s cannot be added", TypeName(total))
	}
	for _, a := range args[1:] {
		var err error
		if total, err = add(total, a, 1); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func difference(a []any) (any, error) { return add(a[0], a[1], -1) }

// add adds sign times b to a.
func add(a, b any, sign int64) (any, error) {
	a, b = alike(a, b)
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			if y == math.MinInt64 && sign < 0 || (sign*y > 0 && x > math.MaxInt64-sign*y) || (sign*y < 0 && x < math.MinInt64-sign*y) {
				return nil, fmt.Errorf("%d and %d give more than 64 bits", x, y)
			}
			return x + sign*y, nil
		}
	case float64:
		if y, ok := b.(float64); ok {
			return x + float64(sign)*y, nil
		}
	case Quantity:
		if y, ok := b.(Quantity); ok && x.Dimension.Name == y.Dimension.Name {
			finer := x
			if y.Dimension.Integer && y.Amount < x.Amount {
				finer = y
			}
			return finer.scaled(x.Amount + float64(sign)*y.Amount)
		}
	}
	return nil, mismatch(a, b)
}

func number(v any) (f float64, integer, ok bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true, true
	case float64:
		return x, false, true
	}
	return 0, false, false
}

func product(args []any) (any, error) {
	if q, ok := args[0].(Quantity); ok {
		if len(args) != 2 {
			return nil, fmt.Errorf("a %s is multiplied by one integer or float", TypeName(q))
		}
		f, _, isNumber := number(args[1])
		if !isNumber {
			return nil, fmt.Errorf("a %s is multiplied by one integer or float", TypeName(q))
		}
		return q.scaled(q.Amount * f)
	}
	whole, total, integer := int64(1), 1.0, true
	for _, a := range args {
		f, isInteger, ok := number(a)
		if !ok {
			return nil, fmt.Errorf("a %s cannot be multiplied", TypeName(a))
		}
		total *= f
		if integer = integer && isInteger; integer {
			if math.Abs(total) > 1<<62 {
				return nil, fmt.Errorf("the product has more than 63 bits")
			}
			whole *= a.(int64)
		}
	}
	if integer {
		return whole, nil
	}
	return total, nil
}

func quotient(a []any) (any, error) {
	by, _, ok := number(a[1])
	if !ok {
		return nil, mismatch(a[0], a[1])
	}
	if by == 0 {
		return nil, fmt.Errorf("division by zero")
	}
	if q, ok := a[0].(Quantity); ok {
		return q.scaled(q.Amount / by)
	}
	f, _, ok := number(a[0])
	if !ok {
		return nil, mismatch(a[0], a[1])
	}
	return f / by, nil
}

func remainder(a []any) (any, error) {
	by, ok := a[1].(int64)
	if !ok {
		return nil, mismatch(a[0], a[1])
	}
	if by == 0 {
		return nil, fmt.Errorf("division by zero")
	}
	switch x := a[0].(type) {
	case int64:
		return x % by, nil
	case Quantity:
		n, _, _ := number(x.Number)
		if n == 0 {
			return x, nil
		}
		unit := x.Amount / n
		return x.scaled(math.Mod(n, float64(by)) * unit)
	}
	return nil, mismatch(a[0], a[1])
}

func rounding(f func(float64) float64) func([]any) (any, error) {
	return func(a []any) (any, error) {
		x, ok := a[0].(float64)
		if !ok {
			return nil, fmt.Errorf("a %s is no float", TypeName(a[0]))
		}
		y := f(x)
		if math.IsNaN(y) || math.Abs(y) >= 1<<63 {
			return nil, fmt.Errorf("%v is no integer of 64 bits", x)
		}
		return int64(y), nil
	}
}
