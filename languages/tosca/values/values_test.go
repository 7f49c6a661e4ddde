package values

import (
	"math"
	"reflect"
	"testing"
)

func size(t testing.TB, s string) Quantity {
	d, ok := ScalarUnit("scalar-unit.size")
	if !ok {
		t.Fatal("no sizes")
	}
	q, err := d.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestFunctions(t *testing.T) {
	list := func(v ...any) []any { return v }
	gigabyte := size(t, "1 GB")
	ref := Text{{Ref: "address"}}
	for _, c := range []struct {
		name string
		args []any
		want any // nil: refused
	}{
		{"and", list(true, true), true},
		{"and", list(true, false), false},
		{"and", list(false, Unknown{}), false},
		{"and", list(true, Unknown{}), Unknown{}},
		{"and", list(true), nil},
		{"and", list(true, int64(1)), nil},
		{"or", list(false, true), true},
		{"or", list(true, Unknown{}), true},
		{"or", list(false, Unknown{}), Unknown{}},
		{"not", list(true), false},
		{"not", list("true"), nil},
		{"xor", list(true, true), false},
		{"xor", list(true, false), true},
		{"equal", list(int64(1), int64(1)), true},
		{"equal", list(int64(1), 1.0), false},
		{"equal", list(gigabyte, "1000 MB"), true},
		{"equal", list(list(int64(1), "a"), list(int64(1), "a")), true},
		{"equal", list(map[string]any{"a": nil}, map[string]any{"a": nil}), true},
		{"equal", list(map[string]any{"a": nil}, map[string]any{"b": nil}), false},
		{"greater_than", list(gigabyte, "999 MB"), true},
		{"greater_than", list("b", "a"), true},
		{"greater_than", list(int64(2), "a"), nil},
		{"greater_or_equal", list(int64(2), int64(2)), true},
		{"less_than", list(1.5, 1.5), false},
		{"less_or_equal", list(1.5, 1.5), true},
		{"valid_values", list("a", list("b", "a")), true},
		{"valid_values", list("c", list("b", "a")), false},
		{"matches", list("abc", "b"), true},
		{"matches", list("abc", "^b"), false},
		{"matches", list("abc", "("), nil},
		{"in_range", list(int64(3), list(int64(1), "UNBOUNDED")), true},
		{"in_range", list(int64(0), list(int64(1), int64(2))), false},
		{"in_range", list(gigabyte, list("1 MB", "2 GB")), true},
		{"in_range", list(int64(3), Range{1, math.MaxInt64}), true},
		{"min_length", list("äö", int64(2)), true},
		{"max_length", list("äö", int64(1)), false},
		{"has_prefix", list("abc", "ab"), true},
		{"has_prefix", list(list(int64(1), int64(2)), list(int64(1))), true},
		{"has_suffix", list("abc", "bc"), true},
		{"has_suffix", list(list(int64(1), int64(2)), list(int64(1))), false},
		{"contains", list("abc", "b"), true},
		{"contains", list(list("a", "b", "c"), list("b", "c")), true},
		{"contains", list(list("a", "b", "c"), list("a", "c")), false},
		{"contains", list("abc", list("a")), nil},
		{"has_entry", list(list("a"), "a"), true},
		{"has_entry", list(map[string]any{"k": "v"}, "v"), true},
		{"has_entry", list(map[string]any{"k": "v"}, "k"), false},
		{"has_key", list(map[string]any{"k": "v"}, "k"), true},
		{"has_key", list(list("k"), "k"), nil},
		{"has_all_entries", list(list("a", "b"), list("b", "a")), true},
		{"has_all_entries", list(list("a"), list("a", "b")), false},
		{"has_all_keys", list(map[string]any{"a": nil}, list("a")), true},
		{"has_any_entry", list(list("a"), list("b", "a")), true},
		{"has_any_entry", list(list("a"), list()), false},
		{"has_any_key", list(map[string]any{"a": nil}, list("b")), false},
		{"length", list("äöü"), int64(3)},
		{"length", list([]byte("äöü")), int64(6)},
		{"length", list(list("a", "b")), int64(2)},
		{"length", list(map[string]any{"a": nil}), int64(1)},
		{"length", list(int64(1)), nil},
		{"concat", list("a", "b", "c"), "abc"},
		{"concat", list(list("a"), list("b")), list("a", "b")},
		{"concat", list("a", list("b")), nil},
		{"concat", list("http://", ref, ":80"), Text{{String: "http://"}, {Ref: "address"}, {String: ":80"}}},
		{"concat", list("a", Unknown{}), Unknown{}},
		{"join", list(list("a", "b")), "ab"},
		{"join", list(list("a", "b"), "-"), "a-b"},
		{"join", list(list("a", ref), "-"), Text{{String: "a-"}, {Ref: "address"}}},
		{"join", list("a", "b"), nil},
		{"token", list("10.0.0.1:80", ":", int64(1)), "80"},
		{"token", list("a.b:c", ".:", int64(2)), "c"},
		{"token", list("a", ":", int64(1)), nil},
		{"union", list(list(int64(1), int64(2)), list(int64(2), int64(3))), list(int64(1), int64(2), int64(3))},
		{"union", list(list("a", "a")), list("a")},
		{"intersection", list(list("a", "b", "b"), list("b", "c")), list("b")},
		{"sum", list(int64(1), int64(2), int64(3)), int64(6)},
		{"sum", list(1.5, 2.5), 4.0},
		{"sum", list(int64(math.MaxInt64), int64(1)), nil},
		{"sum", list(int64(1), 1.0), nil},
		{"difference", list(int64(1), int64(3)), int64(-2)},
		{"difference", list(int64(0), int64(math.MinInt64)), nil},
		{"product", list(int64(2), int64(3)), int64(6)},
		{"product", list(int64(2), 1.5), 3.0},
		{"product", list(int64(math.MaxInt64), int64(2)), nil},
		{"quotient", list(int64(7), int64(2)), 3.5},
		{"quotient", list(int64(7), int64(0)), nil},
		{"remainder", list(int64(7), int64(3)), int64(1)},
		{"remainder", list(int64(7), int64(0)), nil},
		{"round", list(3.5), int64(3)},
		{"round", list(3.53), int64(4)},
		{"round", list(-3.5), int64(-4)},
		{"round", list(math.NaN()), nil},
		{"floor", list(-1.5), int64(-2)},
		{"ceil", list(1.2), int64(2)},
		{"ceil", list(int64(1)), nil},
		{"no_such", list(), nil},
	} {
		got, err := Call(c.name, c.args)
		if c.want == nil {
			if err == nil {
				t.Errorf("$%s %v gave %v, want it refused", c.name, c.args, got)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("$%s %v gave %v, %v, want %v", c.name, c.args, got, err, c.want)
		}
	}
}

func TestQuantities(t *testing.T) {
	for text, want := range map[string]string{
		"sum": "1.5 GB", "difference": "0.5 GB", "product": "3 GB",
	} {
		args := []any{size(t, "1 GB"), size(t, "500 MB")}
		if text == "product" {
			args[1] = int64(3)
		}
		got, err := Call(text, args)
		if err != nil || !Equal(got, want) {
			t.Errorf("$%s %v gave %v, %v, want %s", text, args, got, err, want)
		}
	}
	d, _ := ScalarUnit("scalar-unit.size")
	for _, s := range []string{"10 GB", "10GB", "10 gb", " 1.5 kib", "1e3 B", "0 B"} {
		if _, err := d.Parse(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"", "10", "GB", "10 XB", "GB 10", "1.2.3 GB", "1e GB"} {
		if q, err := d.Parse(s); err == nil {
			t.Errorf("%q was read as %v", s, q.Amount)
		}
	}
	prefixed := &Dimension{Name: "Mass", Integer: true, Units: map[string]float64{"g": 1}, Prefixes: map[string]float64{"": 1, "k": 1000}}
	if q, err := prefixed.Parse("2 kg"); err != nil || q.Amount != 2000 {
		t.Errorf("2 kg: %v, %v", q, err)
	}
	if _, err := prefixed.Parse("1.5 kg"); err == nil {
		t.Error("1.5 kg is no integer")
	}
}

func TestVersions(t *testing.T) {
	for _, s := range []string{"6.1", "2.0.1", "3.1.0.beta", "1.0.0.alpha-10", "0.0"} {
		if _, err := ParseVersion(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{"", "1", "1..0.abc", "1.0.beta", "0.0.0.beta", "1.0.0.a-b", "v1.0", "1.0-1"} {
		if _, err := ParseVersion(s); err == nil {
			t.Errorf("%q was read", s)
		}
	}
	ordered := []string{"0.9", "1.0.0.alpha-1", "1.0.0.alpha-10", "1.0", "1.0.1", "1.10"}
	for i := 1; i < len(ordered); i++ {
		a, _ := ParseVersion(ordered[i-1])
		b, _ := ParseVersion(ordered[i])
		if c, err := a.Compare(b); err != nil || c != -1 {
			t.Errorf("%s and %s compare as %d, %v", a.Text, b.Text, c, err)
		}
	}
	a, _ := ParseVersion("1.0.0.alpha-1")
	b, _ := ParseVersion("1.0.0.beta-1")
	if _, err := a.Compare(b); err == nil {
		t.Error("alpha and beta were ordered")
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-02T03:04:05Z":         "2026-01-02T03:04:05Z",
		"2026-01-02t03:04:05.25+01:00": "2026-01-02T02:04:05.25Z",
		"2016-12-31T23:59:60Z":         "2017-01-01T00:00:00Z",
		"2016-12-31T18:59:60-05:00":    "2017-01-01T00:00:00Z",
		"2016-12-31T12:00:60Z":         "",
		"2026-01-02":                   "",
		"2026-01-02 03:04:05Z":         "",
	} {
		got, err := ParseTime(text)
		if want == "" {
			if err == nil {
				t.Errorf("%s is read as %v", text, got)
			}
			continue
		}
		if s := got.UTC().Format("2006-01-02T15:04:05.999Z07:00"); err != nil || s != want {
			t.Errorf("%s: %s, %v; want %s", text, s, err, want)
		}
	}
}
