package ssh

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestMarked(t *testing.T) {
	const mark = "croft-MARK"
	for _, c := range []struct {
		name    string
		writes  []string
		passed  string
		trailer string
		found   bool
	}{
		{"at once", []string{"out\n\x01croft-MARK 7\n"}, "out\n", "7", true},
		{"byte by byte", strings.Split("out\x01croft-MARK 12\n", ""), "out", "12", true},
		{"nothing before", []string{"\x01croft-MARK", " 0", "\n"}, "", "0", true},
		{"after it", []string{"a\x01croft-MARK 0\nbackground", "more"}, "a", "0", true},
		{"like a mark", []string{"\x01croft-", "\x01croft-MARC", "\x01\x01croft-MARK 3\n"}, "\x01croft-\x01croft-MARC\x01", "3", true},
		{"none", []string{"out", "\x01crof"}, "out", "", false},
		{"a trailer without end", []string{"\x01croft-MARK" + strings.Repeat("x", 200)}, "", "", true},
		{"no line end", []string{"\x01croft-MARK 1"}, "", "1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			w := newMarked(&out, mark)
			for _, p := range c.writes {
				if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
					t.Fatalf("write: %d, %v", n, err)
				}
			}
			if out.String() != c.passed || w.found() != c.found || w.trailer() != c.trailer {
				t.Errorf("passed on %q, found %v, trailer %q", out.String(), w.found(), w.trailer())
			}
		})
	}
}

// What is no mark comes through, however it is cut up, but for an end that may
// begin one.
func FuzzMarked(f *testing.F) {
	f.Add([]byte("text \x01croft-M\x01croft-MARK 5\nmore"), uint8(3))
	f.Add([]byte("\x01\x01croft-MARK"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, cut uint8) {
		var out bytes.Buffer
		w := newMarked(&out, "croft-MARK")
		for piece := range slices.Chunk(text, int(cut)+1) {
			if _, err := w.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		want, _, marked := bytes.Cut(text, w.mark)
		if !marked {
			want = want[:len(want)-overlap(want, w.mark)]
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("passed on %q, want %q", out.Bytes(), want)
		}
	})
}

func FuzzReadSeen(f *testing.F) {
	f.Add("boot x\nowner urn:a urn:b\nrunning\naccount root\naccount ann\n")
	f.Add("owner\nboot\n\naccount a b")
	f.Fuzz(func(t *testing.T, text string) {
		s := readSeen(text)
		if strings.ContainsAny(s.boot+s.owner+s.manager, " \n") || s.owner != "" && s.manager == "" {
			t.Errorf("%q is read as %+v", text, s)
		}
	})
}

func TestShellQuotes(t *testing.T) {
	m := Machine{User: "ops"}
	if got, want := m.shell("a'b", []string{"", "$x `y` \\"}), `'sudo' '-n' '/bin/sh' '-c' 'a'\''b' 'croft' '' '$x `+"`y`"+` \'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
