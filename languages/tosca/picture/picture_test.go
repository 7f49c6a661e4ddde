package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// texts reads what an SVG says; it must be well-formed.
func texts(t *testing.T, svg []byte) map[string]bool {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	found := map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if c, ok := token.(xml.CharData); ok {
			found[string(c)] = true
		}
	}
}

func TestWrite(t *testing.T) {
	many := Graph{Title: "many"}
	for i := range 300 {
		many.Boxes = append(many.Boxes, Box{Name: fmt.Sprint("n", i)})
		many.Arrows = append(many.Arrows, Arrow{From: fmt.Sprint("n", i), To: fmt.Sprint("n", (i+1)%300)})
	}
	for name, c := range map[string]struct {
		graph Graph
		says  []string
		paths int
	}{
		"nothing":       {Graph{Title: "none"}, []string{"none"}, 1},
		"a long arrow":  {Graph{Boxes: []Box{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Arrows: []Arrow{{"a", "b", "ab", false}, {"b", "c", "bc", false}, {"a", "c", "ac", true}}}, []string{"a", "b", "c", "ab", "bc", "ac"}, 4},
		"a circle":      {Graph{Boxes: []Box{{Name: "a"}, {Name: "b"}}, Arrows: []Arrow{{"a", "b", "", false}, {"b", "a", "back", false}, {"a", "a", "self", false}}}, []string{"back", "self"}, 4},
		"marks":         {Graph{Title: "<&>", Boxes: []Box{{Name: `"<script>"`, Lines: []string{"]]>&amp;"}, Fill: `"><x`}}}, []string{"<&>", `"<script>"`, "]]>&amp;"}, 1},
		"no such box":   {Graph{Boxes: []Box{{Name: "a"}}, Arrows: []Arrow{{"a", "z", "lost", false}}}, []string{"a"}, 1},
		"a long name":   {Graph{Boxes: []Box{{Name: strings.Repeat("ü", 100)}}}, []string{strings.Repeat("ü", maxText-1) + "…"}, 1},
		"a long circle": {many, []string{"n0", "n299"}, 301},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := c.graph.Write(&b); err != nil {
				t.Fatal(err)
			}
			found := texts(t, b.Bytes())
			for _, want := range c.says {
				if !found[want] {
					t.Errorf("does not say %q", want)
				}
			}
			if n := strings.Count(b.String(), "<path"); n != c.paths {
				t.Errorf("%d paths, want %d", n, c.paths)
			}
		})
	}
}
