package model

import (
	"fmt"
	"strings"

	"croft/languages/tree"
)

// Problem is something to tell the author of a file.
type Problem struct {
	File         string `json:"file,omitempty"`
	Line         int    `json:"line,omitempty"`
	Column       int    `json:"column,omitempty"`
	Path         string `json:"path,omitempty"` // such as "node_types/Server/properties/size"
	What         string `json:"message"`
	Hint         string `json:"hint,omitempty"` // what would be right
	Warning      bool   `json:"warning"`
	Unfulfilled  bool   `json:"-"` // fine to check, but it cannot be deployed
	Unresolvable bool   `json:"-"` // depends on something that was not read
}

// String writes the problem in the way of compilers.
func (p Problem) String() string {
	var s strings.Builder
	if p.File != "" {
		s.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&s, ":%d:%d", p.Line, p.Column)
		}
		s.WriteString(": ")
	}
	if p.Warning {
		s.WriteString("warning: ")
	} else {
		s.WriteString("error: ")
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

// maxProblems bounds what one run tells.
const maxProblems = 500

// problems collects what is wrong in all the files of a run.
type problems struct {
	list []Problem
	more int
	seen map[Problem]bool
}

func (p *problems) add(u *Unit, n *tree.Node, problem Problem) {
	if u != nil {
		problem.File = u.Name
		if u.builtin {
			problem.File = "built-in " + u.Name
		}
	}
	if n != nil {
		problem.Line, problem.Column, problem.Path = n.Line, n.Column, n.Path()
	}
	if p.seen[problem] {
		return
	}
	if len(p.list) >= maxProblems {
		p.more++
		return
	}
	p.seen[problem] = true
	p.list = append(p.list, problem)
}

func (u *Unit) errorf(n *tree.Node, hint, format string, args ...any) {
	u.run.problems.add(u, n, Problem{What: fmt.Sprintf(format, args...), Hint: hint})
}

func (u *Unit) warnf(n *tree.Node, hint, format string, args ...any) {
	u.run.problems.add(u, n, Problem{What: fmt.Sprintf(format, args...), Hint: hint, Warning: true})
}

// unfulfilled tells what stops a deployment, but is valid TOSCA.
func (u *Unit) unfulfilled(n *tree.Node, hint, format string, args ...any) {
	if u.run.aside {
		return
	}
	u.run.problems.add(u, n, Problem{What: fmt.Sprintf(format, args...), Hint: hint, Warning: true, Unfulfilled: true})
}

// misrefined tells of a refinement that the rules do not allow. Types for 1.x
// that people use break them.
func (u *Unit) misrefined(n *tree.Node, hint, format string, args ...any) {
	if u.Old() {
		u.warnf(n, hint, format, args...)
		return
	}
	u.errorf(n, hint, format, args...)
}

// quietly is the file to read a part of once more, without telling again what
// is wrong.
func (u *Unit) quietly() *Unit {
	return &Unit{Version: u.Version, run: &run{problems: problems{seen: map[Problem]bool{}}}}
}
