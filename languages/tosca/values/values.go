// Package values has the values of TOSCA and the functions over them (TOSCA
// 2.0 csd05, chapters 5.4 and 6.2 to 6.4). It knows neither files nor
// templates: functions that ask for something of a service are the caller's.
//
// A value is one of: nil, bool, int64, float64, string, []byte, []any,
// map[string]any, Quantity, Version, time.Time, Range, Text and Unknown.
package values

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Unknown is a value that is not known yet: of an attribute, of an input that
// nobody gave, or what a function made of one.
type Unknown struct{}

// Text is a string with pieces that are known only at run time.
type Text []Piece

// Piece is a part of a Text: a string, or a reference that means something to
// the caller.
type Piece struct {
	String string
	Ref    any // nil: String
}

// Range is a range of integers (csd05, 5.4.2.2).
type Range struct {
	Low, High int64 // High is math.MaxInt64 if it is UNBOUNDED
}

// Equal reports whether two values are the same in type and value. A string
// is equal to what it would be as the type of the other value.
func Equal(a, b any) bool {
	a, b = alike(a, b)
	switch x := a.(type) {
	case nil:
		return b == nil
	case bool, int64, float64, string, Range:
		return a == b
	case []byte:
		y, ok := b.([]byte)
		return ok && bytes.Equal(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Equal)
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, has := y[k]; !has || !Equal(v, w) {
				return false
			}
		}
		return true
	case Quantity, Version, time.Time:
		order, err := Compare(a, b)
		return err == nil && order == 0
	}
	return false
}

// Compare orders two values of the same type.
func Compare(a, b any) (int, error) {
	a, b = alike(a, b)
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y), nil
		}
	case float64:
		if y, ok := b.(float64); ok {
			return cmp.Compare(x, y), nil
		}
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), nil
		}
	case Quantity:
		if y, ok := b.(Quantity); ok && x.Dimension.Name == y.Dimension.Name {
			return cmp.Compare(x.Amount, y.Amount), nil
		}
	case Version:
		if y, ok := b.(Version); ok {
			return x.Compare(y)
		}
	case time.Time:
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), nil
		}
	}
	return 0, fmt.Errorf("%s and %s cannot be compared", TypeName(a), TypeName(b))
}

// alike reads a literal string as the type of the value it meets.
func alike(a, b any) (any, any) {
	if s, ok := b.(string); ok {
		return a, readAs(a, s)
	}
	if s, ok := a.(string); ok {
		return readAs(b, s), b
	}
	return a, b
}

func readAs(like any, s string) any {
	switch x := like.(type) {
	case Quantity:
		if q, err := x.Dimension.Parse(s); err == nil {
			return q
		}
	case Version:
		if v, err := ParseVersion(s); err == nil {
			return v
		}
	case time.Time:
		if t, err := ParseTime(s); err == nil {
			return t
		}
	}
	return s
}

// TypeName names the type of a value for messages.
func TypeName(v any) string {
	switch x := v.(type) {
	case nil:
		return "nil"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "float"
	case string, Text:
		return "string"
	case []byte:
		return "bytes"
	case []any:
		return "list"
	case map[string]any:
		return "map"
	case Quantity:
		return x.Dimension.Name
	case Version:
		return "version"
	case time.Time:
		return "timestamp"
	case Range:
		return "range"
	}
	return "unknown value"
}

// String writes a value as environments and outputs of commands have it:
// strings as they are, collections as JSON does.
func String(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case Quantity:
		return x.Text
	case Version:
		return x.Text
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case float64:
		return formatFloat(x)
	case int64, bool:
		return fmt.Sprint(x)
	}
	return string(JSON(v))
}

func formatFloat(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprint(f)
}

// ParseTime reads a timestamp (RFC 3339; an unknown zone is UTC).
func ParseTime(s string) (time.Time, error) {
	text := strings.ToUpper(s)
	leap := len(text) > 19 && text[16:19] == ":60"
	if leap { // RFC 3339, 5.7: a second that Go's clock does not have
		text = text[:16] + ":59" + text[19:]
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if utc := t.UTC(); leap && (utc.Hour() != 23 || utc.Minute() != 59) {
		err = errors.New("a leap second in the middle of a day")
	}
	if err != nil {
		return t, fmt.Errorf("%q is no timestamp: want RFC 3339, such as 2026-01-02T15:04:05Z", s)
	}
	if leap {
		t = t.Add(time.Second)
	}
	return t, nil
}
