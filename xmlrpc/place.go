package xmlrpc

import (
	"strconv"
	"strings"
)

// place is the way from a document's parameter or result down to a value.
type place []step

// step is one level of a place.
type step struct {
	kind  stepKind
	index int
	name  string
}

type stepKind uint8

const (
	paramStep  stepKind = iota // index: counted from 0, shown from 1
	resultStep                 // name: "result" or "fault"
	itemStep                   // index: of an array
	memberStep                 // name: of a struct's member
)

// String writes a place as in "param 3, member geni_users[0].keys".
func (p place) String() string {
	var b strings.Builder
	inMember := false
	for _, s := range p {
		switch s.kind {
		case paramStep:
			b.WriteString("param ")
			b.WriteString(strconv.Itoa(s.index + 1))
		case resultStep:
			b.WriteString(s.name)
		case itemStep:
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(s.index))
			b.WriteByte(']')
		case memberStep:
			switch {
			case inMember:
				b.WriteByte('.')
			case b.Len() > 0:
				b.WriteString(", member ")
			default:
				b.WriteString("member ")
			}
			inMember = true
			b.WriteString(shorten(s.name))
		}
	}
	return b.String()
}

// with returns the place one step further down, without changing p.
func (p place) with(s step) place { return append(p[:len(p):len(p)], s) }

// shorten keeps messages readable whatever was sent.
func shorten(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
