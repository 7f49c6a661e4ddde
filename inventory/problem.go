package inventory

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong in an inventory, or one piece of advice.
type Problem struct {
	File   string // as the caller named it
	Line   int    // from 1; 0 if unknown
	Column int    // from 1; 0 if unknown
	Path   string // of the field, such as hosts[2].memory
	What   string // what is wrong
	Hint   string // what would be right; may be empty
}

// String writes the problem in the way of compilers: file, line, column, and
// what is wrong.
func (p Problem) String() string {
	var s strings.Builder
	s.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&s, ":%d:%d", p.Line, p.Column)
	}
	if s.Len() > 0 {
		s.WriteString(": ")
	}
	if p.Path != "" {
		s.WriteString(p.Path + ": ")
	}
	s.WriteString(p.What)
	if p.Hint != "" {
		s.WriteString(" (" + p.Hint + ")")
	}
	return s.String()
}

// Error is every problem found in one inventory, in the order of its lines.
type Error struct{ Problems []Problem }

// Error writes one problem a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// mostProblems bounds what one run reports: beyond it, nobody reads on.
const mostProblems = 100

// problems collects what is wrong in one file.
type problems struct {
	file string
	list []Problem
}

func (p *problems) add(at position, path, what, hint string) {
	if len(p.list) <= mostProblems {
		p.list = append(p.list, Problem{File: p.file, Line: at.line, Column: at.column, Path: path, What: what, Hint: hint})
	}
}

func (p *problems) sorted() []Problem {
	slices.SortStableFunc(p.list, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return p.list
}

// err returns nil if nothing is wrong.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	list := p.sorted()
	if len(list) > mostProblems {
		list = append(slices.Clone(list[:mostProblems]), Problem{File: p.file, What: "further problems are not shown"})
	}
	return &Error{list}
}

// didYouMean is a hint for a name that is none of names.
func (p *problems) didYouMean(word string, names []string, otherwise string) string {
	if len(p.list) > mostProblems {
		return otherwise // nobody will see it
	}
	if near := Nearest(word, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return otherwise
}

// oneOf lists names for a hint, shortened if there are many.
func oneOf(names []string) string {
	const most = 12
	if len(names) == 0 {
		return ""
	}
	if len(names) > most {
		return "one of " + strings.Join(names[:most], ", ") + ", …"
	}
	return "one of " + strings.Join(names, ", ")
}
