package xmlrpc

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func ExampleParam() {
	params := []any{
		"urn:publicid:IDN+example.org+slice+s",
		[]any{},
		map[string]any{"geni_users": []any{map[string]any{"urn": "urn:…", "keys": "ssh-ed25519 AAAA"}}},
	}
	users, err := Param(params, 2).Member("geni_users").Items()
	if err != nil {
		fmt.Println(err)
	}
	for _, user := range users {
		if _, err := user.Member("keys").Texts(); err != nil {
			fmt.Println(err)
		}
	}
	if end := Param(params, 2).Member("geni_end_time"); !end.Exists() {
		fmt.Println(end.Place(), "was not given")
	}
	// Output:
	// param 3, member geni_users[0].keys: want an array, got a string
	// param 3, member geni_end_time was not given
}

func TestValues(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	v := At(map[string]any{
		"s": "text", "i": 7, "b": true, "f": 1.5, "d": []byte{1}, "t": noon,
		"a": []any{"x", "y"}, "mixed": []any{"x", 1}, "nil": nil, "m": map[string]any{"n": 1},
	}, "result")
	m := v.Member
	ok := func(what string) func(got any, err error) {
		return func(got any, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if want := m(what).Any(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
	}
	s, err := m("s").Text()
	ok("s")(s, err)
	i, err := m("i").Int()
	ok("i")(i, err)
	b, err := m("b").Bool()
	ok("b")(b, err)
	f, err := m("f").Float()
	ok("f")(f, err)
	d, err := m("d").Bytes()
	ok("d")(d, err)
	tm, err := m("t").Time()
	ok("t")(tm, err)
	st, err := m("m").Struct()
	ok("m")(st, err)
	if texts, err := m("a").Texts(); err != nil || strings.Join(texts, " ") != "x y" {
		t.Error(texts, err)
	}
	if f, err := m("i").Float(); err != nil || f != 7 {
		t.Error(f, err)
	}
	if s, err := m("i").TextOrInt(); err != nil || s != "7" {
		t.Error(s, err)
	}
	if s, err := m("s").TextOrInt(); err != nil || s != "text" {
		t.Error(s, err)
	}
	if !m("nil").Exists() || m("none").Exists() || m("s").Member("x").Exists() || m("none").Member("x").Exists() {
		t.Error("Exists")
	}

	only := func(_ any, err error) error { return err }
	for want, err := range map[string]error{
		"result, member i: want a string, got an int":                 only(m("i").Text()),
		"result, member s: want an int, got a string":                 only(m("s").Int()),
		"result, member i: want a boolean, got an int":                only(m("i").Bool()),
		"result, member t: want a double, got a dateTime":             only(m("t").Float()),
		"result, member f: want base64, got a double":                 only(m("f").Bytes()),
		"result, member d: want a dateTime, got base64":               only(m("d").Time()),
		"result, member m: want an array, got a struct":               only(m("m").Items()),
		"result, member a: want a struct, got an array":               only(m("a").Struct()),
		"result, member b: want a string, got a boolean":              only(m("b").TextOrInt()),
		"result, member nil: want a string, got nil":                  only(m("nil").Text()),
		"result, member none: want a string, got nothing":             only(m("none").Text()),
		"result, member none.x: want a string, got nothing":           only(m("none").Member("x").Text()),
		"result, member s: want a struct, got a string":               only(m("s").Member("x").Member("y").Int()),
		"result, member mixed[1]: want a string, got an int":          only(m("mixed").Texts()),
		"param 2: want a string, got nothing":                         only(Param([]any{1}, 1).Text()),
		"param 3, member a: want a boolean, got nothing":              only(Call{}.Param(2).Member("a").Flag()),
		"param 1: want an int, got a Go int64":                        only(Param([]any{int64(1)}, 0).Int()),
		"result, member m.n: want a boolean, got a Go xmlrpc.strange": only(At(map[string]any{"m": map[string]any{"n": strange{}}}, "result").Member("m").Member("n").Flag()),
	} {
		var e *TypeError
		if !errors.As(err, &e) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

type strange []int

func TestFlag(t *testing.T) {
	for _, v := range []any{true, 1, "1", "true", "True"} {
		if got, err := At(v, "result").Flag(); err != nil || !got {
			t.Errorf("%v: %v, %v", v, got, err)
		}
	}
	for _, v := range []any{false, 0, "0", "", "false", "False"} {
		if got, err := At(v, "result").Flag(); err != nil || got {
			t.Errorf("%v: %v, %v", v, got, err)
		}
	}
	for _, v := range []any{nil, 2, "yes", 1.0, []any{}, map[string]any{}, []byte("1")} {
		if got, err := At(v, "result").Flag(); err == nil {
			t.Errorf("%v: %v", v, got)
		}
	}
}

// TestPlacesAreTheirOwn: values from one parent do not share their places.
func TestPlacesAreTheirOwn(t *testing.T) {
	a := At(map[string]any{}, "result").Member("a")
	b, c := a.Member("b"), a.Member("c")
	if b.Place() != "result, member a.b" || c.Place() != "result, member a.c" {
		t.Error(b.Place(), c.Place())
	}
	long := At(nil, "result").Member(strings.Repeat("é", 1000)).Place()
	if len(long) > 200 || !strings.HasSuffix(long, "…") {
		t.Error(long)
	}
}
