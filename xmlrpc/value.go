package xmlrpc

import (
	"fmt"
	"strconv"
	"time"
)

// Value is a value together with its place, for reading what a caller sent: an
// error then says where it is wrong, as in
//
//	param 3, member geni_users[0].keys: want an array, got a string
//
// Going down to a member that is not there gives a missing Value; only reading
// that one is an error.
type Value struct {
	any     any
	place   place
	missing bool
	wrong   *TypeError // what went wrong on the way down
}

// TypeError says that a value is missing or of another type than wanted.
type TypeError struct {
	Place string // such as "param 3, member geni_users[0].keys"
	Want  string // such as "an array"
	Got   string // such as "a string", or "nothing"
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s: want %s, got %s", e.Place, e.Want, e.Got)
}

// Param returns a parameter of a call, counted from 0 (errors count from 1, as
// people do). A parameter that was not given is missing.
func (c Call) Param(i int) Value { return Param(c.Params, i) }

// Param returns a parameter out of the list that a Method is given.
func Param(params []any, i int) Value {
	v := Value{place: place{{kind: paramStep, index: i}}, missing: true}
	if i >= 0 && i < len(params) {
		v.any, v.missing = params[i], false
	}
	return v
}

// At makes a Value of anything; name is its place, such as "result".
func At(v any, name string) Value {
	return Value{any: v, place: place{{kind: resultStep, name: name}}}
}

// Place says where the value is.
func (v Value) Place() string { return v.place.String() }

// Exists reports whether the value was given at all. A nil was.
func (v Value) Exists() bool { return !v.missing && v.wrong == nil }

// Any returns the value as decoded, or nil for one that is missing.
func (v Value) Any() any { return v.any }

// Member returns a member of a struct.
func (v Value) Member(name string) Value {
	down := Value{place: v.place.with(step{kind: memberStep, name: name}), missing: true}
	if v.wrong != nil || v.missing {
		down.wrong = v.wrong
		return down
	}
	members, ok := v.any.(map[string]any)
	if !ok {
		down.wrong = v.want("a struct")
		return down
	}
	if m, ok := members[name]; ok {
		down.any, down.missing = m, false
	}
	return down
}

func (v Value) want(what string) *TypeError {
	if v.wrong != nil {
		return v.wrong
	}
	got := "nothing"
	if !v.missing {
		got = typeName(v.any)
	}
	return &TypeError{Place: v.place.String(), Want: what, Got: got}
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case string:
		return "a string"
	case int:
		return "an int"
	case bool:
		return "a boolean"
	case float64:
		return "a double"
	case []byte:
		return "base64"
	case time.Time:
		return "a dateTime"
	case []any:
		return "an array"
	case map[string]any:
		return "a struct"
	}
	return fmt.Sprintf("a Go %T", v)
}

func as[T any](v Value, what string) (T, error) {
	if t, ok := v.any.(T); ok && v.Exists() {
		return t, nil
	}
	var zero T
	return zero, v.want(what)
}

// Text returns a string.
func (v Value) Text() (string, error) { return as[string](v, "a string") }

// TextOrInt returns a string, or an int written as one: clients in Perl send a
// string such as "3" as an int.
func (v Value) TextOrInt() (string, error) {
	if n, ok := v.any.(int); ok {
		return strconv.Itoa(n), nil
	}
	return v.Text()
}

// Int returns an int.
func (v Value) Int() (int, error) { return as[int](v, "an int") }

// Bool returns a boolean. Use Flag for what comes from clients.
func (v Value) Bool() (bool, error) { return as[bool](v, "a boolean") }

// Float returns a double, or an int as one.
func (v Value) Float() (float64, error) {
	if n, ok := v.any.(int); ok {
		return float64(n), nil
	}
	return as[float64](v, "a double")
}

// Bytes returns base64 data.
func (v Value) Bytes() ([]byte, error) { return as[[]byte](v, "base64") }

// Time returns a dateTime.
func (v Value) Time() (time.Time, error) { return as[time.Time](v, "a dateTime") }

// Flag returns a boolean in any form in which clients send one: clients in
// languages without booleans, such as Perl, send an int or a string of 0 or 1.
func (v Value) Flag() (bool, error) {
	if v.Exists() {
		switch v.any {
		case true, 1, "1", "true", "True":
			return true, nil
		case false, 0, "0", "", "false", "False":
			return false, nil
		}
	}
	return false, v.want("a boolean")
}

// Items returns the items of an array.
func (v Value) Items() ([]Value, error) {
	list, err := as[[]any](v, "an array")
	if err != nil {
		return nil, err
	}
	items := make([]Value, len(list))
	for i, item := range list {
		items[i] = Value{any: item, place: v.place.with(step{kind: itemStep, index: i})}
	}
	return items, nil
}

// Texts returns the items of an array of strings.
func (v Value) Texts() ([]string, error) {
	items, err := v.Items()
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if texts[i], err = item.Text(); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// Struct returns the members of a struct.
func (v Value) Struct() (map[string]any, error) {
	return as[map[string]any](v, "a struct")
}
