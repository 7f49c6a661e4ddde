package startup

import (
	"strings"
	"testing"
)

func TestParseResult(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"whole", "0 gone 4 2 1 5\nA=1\nhet", true},
		{"not ended", "- alive 0 0 0 0\n", true},
		{"nothing", "", false},
		{"too few words", "0 gone 1 2 3\n", false},
		{"status too large", "256 gone 0 0 0 0\n", false},
		{"negative status", "-1 gone 0 0 0 0\n", false},
		{"another life", "0 x 0 0 0 0\n", false},
		{"longer than it is", "0 gone 10 0 0 0\nA=1\n", false},
		{"longer than it may be", "0 gone 0 70000 0 0\n" + strings.Repeat("x", 70000), false},
		{"negative length", "0 gone -1 0 0 0\n", false},
		{"negative rest", "0 gone 0 0 0 -1\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := parseResult([]byte(c.text))
			if (err == nil) != c.ok {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	r, err := parseResult([]byte("7 gone 4 2 1 5\nA=1\nhet"))
	if err != nil || !r.Ended || r.Status != 7 || r.Outputs["A"] != "1" || string(r.Output.Head) != "he" || string(r.Output.Tail) != "t" || r.Output.Left != 5 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The root of a node may answer anything.
func FuzzParseResult(f *testing.F) {
	f.Add([]byte("0 gone 4 2 1 5\nA=1\nhet"))
	f.Add([]byte("- alive 0 0 0 0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseResult(text)
		if err == nil && (len(r.Output.Head) > maxOutput || len(r.Output.Tail) > maxOutput || r.Status > 255) {
			t.Errorf("%q is read as %+v", text, r)
		}
	})
}

func FuzzParseHosts(f *testing.F) {
	f.Add("127.0.0.1 localhost # here\n::1 ip6-localhost\n10.0.0.1 A a.b")
	f.Fuzz(func(t *testing.T, text string) {
		for name, list := range parseHosts(text) {
			if name == "" || len(list) == 0 {
				t.Errorf("%q gives %q %v", text, name, list)
			}
		}
	})
}
