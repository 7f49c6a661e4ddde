package tree

import (
	"errors"
	"strings"
	"testing"
)

func TestScalars(t *testing.T) {
	for text, want := range map[string]Kind{
		"": Null, "~": Null, "null": Null, "true": Bool, "False": Bool, "no": String, "yes": String, "on": String,
		"1": Int, "-1": Int, "0x1F": Int, "0o17": Int, "1_000": String, "99999999999999999999": Other,
		"1.0": Float, ".5": Float, "1e3": Float, ".inf": Float, "-.INF": Float, ".nan": Float, "1.2.3": String, "1..0": String,
		"e1": String, "+": String, "2026-01-02": String, "12:30": String, "'1'": String, `"true"`: String,
		"!!str 1": String, "!!binary aGk=": Other, "!!int 3": Int, "0x": String, "1e": String,
	} {
		n, err := Parse([]byte("v: "+text+"\n"), Limits{})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := n.Get("v").Kind; got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	n, err := Parse([]byte("a:\n  b: &x\n    - 1\n    - c: 2\nd: *x\ne:\n  <<: { f: 1, g: 2 }\n  g: 3\n"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c := n.Get("a").Get("b").Items[1].Get("c")
	if c.Line != 4 || c.Column != 10 || c.Path() != "a/b[1]/c" {
		t.Errorf("c stands at %d:%d, %s", c.Line, c.Column, c.Path())
	}
	if got := n.Get("d").Items[1].Get("c").Path(); got != "d[1]/c" {
		t.Errorf("what an alias stands for has the path %s", got)
	}
	if e := n.Get("e"); e.Get("f").Int != 1 || e.Get("g").Int != 3 || len(e.Entries) != 2 {
		t.Errorf("merged: %+v", e.Entries)
	}
}

func TestRefused(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i, name := range []string{"b", "c", "d", "e", "f", "g", "h"} {
		before := string(rune('a' + i))
		bomb += name + ": &" + name + " [" + strings.Repeat("*"+before+", ", 9) + "*" + before + "]\n"
	}
	for name, text := range map[string]string{
		"empty":          "",
		"only a comment": "# nothing\n",
		"two documents":  "a: 1\n---\nb: 2\n",
		"a key twice":    "a: 1\na: 2\n",
		"a bad indent":   "a:\n  b: 1\n c: 2\n",
		"no UTF-8":       "a: \xff\n",
		"an alias bomb":  bomb,
		"depth":          strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"unknown alias":  "a: *b\n",
		"merged list":    "a:\n  <<: 1\n",
		"itself":         "a: &a [ *a ]\n",
	} {
		t.Run(name, func(t *testing.T) {
			n, err := Parse([]byte(text), Limits{Nodes: 100_000})
			var wrong *Error
			if !errors.As(err, &wrong) || wrong.What == "" {
				t.Errorf("read as %+v, %v", n, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a: 1", "a: &x [1, {b: *x}]", "<<: {a: 1}", "? [a, b]\n: c", "a: !!binary x", "- - -\n", "\xef\xbb\xbfa: 1", "{a: b, c: [d"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		n, err := Parse(document, Limits{Nodes: 10_000})
		if (n == nil) == (err == nil) {
			t.Fatalf("both or none of a tree and an error: %v, %v", n, err)
		}
	})
}
