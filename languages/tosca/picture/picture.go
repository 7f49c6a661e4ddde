// Package picture draws graphs as SVG: boxes in layers, and arrows from each
// box to those that it needs, which stand below it.
package picture

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Box is a node of a graph.
type Box struct {
	Name  string
	Lines []string // below the name, smaller
	Fill  string   // colour; "" for white
}

// Arrow leads from a box to another.
type Arrow struct {
	From, To string // names of boxes
	Label    string
	Dashed   bool
}

// Graph is what is drawn.
type Graph struct {
	Title  string
	Boxes  []Box
	Arrows []Arrow
}

// Sizes in pixels.
const (
	charWidth  = 7.6
	lineHeight = 16
	padding    = 12
	gapX       = 36
	gapY       = 76
	margin     = 24
	maxText    = 44 // characters
)

type placed struct {
	Box
	bend          bool // no box: where a long arrow passes a layer
	layer, at     int
	x, y          float64
	width, height float64
	order         float64
}

// Write draws the graph.
func (g *Graph) Write(w io.Writer) error {
	boxes, byName, ways := g.place()
	width, height := 320.0, 0.0
	for _, b := range boxes {
		width = max(width, b.x+b.width+margin)
		height = max(height, b.y+b.height+margin)
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	s.WriteString(`<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="#555"/></marker></defs>` + "\n")
	fmt.Fprintf(&s, `<rect width="100%%" height="100%%" fill="#fff"/><text x="%d" y="%d" font-size="17" font-weight="bold">%s</text>`+"\n", margin, margin+6, html.EscapeString(short(g.Title, 90)))
	parallel := map[[2]string]int{}
	for i, a := range g.Arrows {
		from, to := byName[a.From], byName[a.To]
		if from == nil || to == nil {
			continue
		}
		n := parallel[[2]string{a.From, a.To}]
		parallel[[2]string{a.From, a.To}]++
		writeArrow(&s, from, to, ways[i], a, n)
	}
	for _, b := range boxes {
		if !b.bend {
			writeBox(&s, b)
		}
	}
	s.WriteString("</svg>\n")
	_, err := io.WriteString(w, s.String())
	return err
}

func writeBox(s *strings.Builder, b *placed) {
	fill := b.Fill
	if fill == "" {
		fill = "#fff"
	}
	fmt.Fprintf(s, `<g><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="6" fill="%s" stroke="#333"/>`, b.x, b.y, b.width, b.height, html.EscapeString(fill))
	y := b.y + padding + 10
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="middle" font-weight="bold">%s</text>`, b.x+b.width/2, y, html.EscapeString(short(b.Name, maxText)))
	for _, line := range b.Lines {
		y += lineHeight
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="11" fill="#444">%s</text>`, b.x+b.width/2, y, html.EscapeString(short(line, maxText)))
	}
	s.WriteString("</g>\n")
}

func writeArrow(s *strings.Builder, from, to *placed, way []*placed, a Arrow, n int) {
	shift := float64(n) * 14
	x1, y1 := from.x+from.width/2+shift, from.y+from.height
	labelX, labelY := x1, y1
	if from.layer >= to.layer {
		// To the side, or up.
		x1, y1 = from.x+from.width, from.y+from.height/2+shift
		x2, y2 := to.x+to.width, to.y+to.height/2+shift
		out := max(x1, x2) + 30 + shift
		fmt.Fprintf(s, `<path d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"`, x1, y1, out, y1, out, y2, x2, y2)
		labelX, labelY = out-8, (y1+y2)/2
	} else {
		fmt.Fprintf(s, `<path d="M%.1f %.1f`, x1, y1)
		for i, stop := range append(way, to) {
			x, y := stop.x+stop.width/2+shift, stop.y
			bend := (y - y1) / 2
			fmt.Fprintf(s, "C%.1f %.1f %.1f %.1f %.1f %.1f", x1, y1+bend, x, y-bend, x, y)
			if i == 0 {
				labelX, labelY = (x1+x)/2, (y1+y)/2-3
			}
			x1, y1 = x, y
			if stop.bend {
				y1 += stop.height
				fmt.Fprintf(s, "L%.1f %.1f", x1, y1)
			}
		}
		s.WriteString(`"`)
	}
	dash := ""
	if a.Dashed {
		dash = ` stroke-dasharray="5 4"`
	}
	fmt.Fprintf(s, ` fill="none" stroke="#555" marker-end="url(#arrow)"%s/>`, dash)
	if a.Label != "" {
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" font-size="11" fill="#06c" text-anchor="middle" stroke="#fff" stroke-width="3" paint-order="stroke">%s</text>`, labelX, labelY, html.EscapeString(short(a.Label, maxText)))
	}
	s.WriteString("\n")
}

func short(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// place puts each box below all that need it, and orders layers so that few
// arrows cross. Arrows that pass layers get a place of their own in these.
func (g *Graph) place() (boxes []*placed, byName map[string]*placed, ways [][]*placed) {
	byName = make(map[string]*placed, len(g.Boxes))
	for _, b := range g.Boxes {
		p := &placed{Box: b}
		longest := utf8.RuneCountInString(short(b.Name, maxText)) + 1
		for _, l := range b.Lines {
			longest = max(longest, utf8.RuneCountInString(short(l, maxText)))
		}
		p.width = float64(longest)*charWidth + 2*padding
		p.height = float64(len(b.Lines)+1)*lineHeight + 2*padding - 4
		byName[b.Name] = p
		boxes = append(boxes, p)
	}
	g.rank(boxes, byName)
	above := map[*placed][]*placed{}
	ways = make([][]*placed, len(g.Arrows))
	for i, a := range g.Arrows {
		from, to := byName[a.From], byName[a.To]
		if from == nil || to == nil || from.layer >= to.layer {
			continue
		}
		last := from
		for layer := from.layer + 1; layer < to.layer && len(boxes) < maxPlaces; layer++ {
			bend := &placed{bend: true, layer: layer, width: 12, height: 30}
			above[bend] = append(above[bend], last)
			boxes, ways[i], last = append(boxes, bend), append(ways[i], bend), bend
		}
		above[to] = append(above[to], last)
	}
	var layers [][]*placed
	for _, b := range boxes {
		for len(layers) <= b.layer {
			layers = append(layers, nil)
		}
		b.at = len(layers[b.layer])
		layers[b.layer] = append(layers[b.layer], b)
	}
	for range 6 {
		for _, layer := range layers[min(1, len(layers)):] {
			barycentre(layer, above)
		}
	}
	lay(layers)
	return boxes, byName, ways
}

// maxPlaces bounds the places that long arrows take.
const maxPlaces = 50_000

// rank finds the layers by the longest ways; circles end after as many rounds
// as there are boxes.
func (g *Graph) rank(boxes []*placed, byName map[string]*placed) {
	for round := 0; round < min(len(boxes), 200); round++ {
		changed := false
		for _, a := range g.Arrows {
			from, to := byName[a.From], byName[a.To]
			if from != nil && to != nil && from != to && to.layer < from.layer+1 && from.layer < 200 {
				to.layer, changed = from.layer+1, true
			}
		}
		if !changed {
			return
		}
	}
}

// lay gives the boxes their coordinates: layers below each other, centred.
func lay(layers [][]*placed) {
	widths, widest := make([]float64, len(layers)), 0.0
	for i, layer := range layers {
		for _, b := range layer {
			widths[i] += b.width + gapX
		}
		widest = max(widest, widths[i])
	}
	y := float64(margin + 30)
	for i, layer := range layers {
		x, tallest := margin+(widest-widths[i])/2, 0.0
		for _, b := range layer {
			b.x, b.y = x, y
			x += b.width + gapX
			tallest = max(tallest, b.height)
		}
		if len(layer) > 0 {
			y += tallest + gapY
		}
	}
}

// barycentre orders a layer by where those above stand that lead to it.
func barycentre(layer []*placed, above map[*placed][]*placed) {
	for _, b := range layer {
		b.order = float64(b.at)
		if up := above[b]; len(up) > 0 {
			sum := 0.0
			for _, u := range up {
				sum += float64(u.at)
			}
			b.order = sum / float64(len(up))
		}
	}
	slices.SortStableFunc(layer, func(a, b *placed) int { return cmp.Compare(a.order, b.order) })
	for i, b := range layer {
		b.at = i
	}
}
