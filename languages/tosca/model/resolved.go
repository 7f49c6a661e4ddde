package model

import (
	"errors"

	"croft/languages/tree"
)

// InputValue is the value of an input: given, or its default.
func (s *Service) InputValue(name string) (any, bool) {
	v, ok := s.inputValues[name]
	return v, ok
}

// CountOf is how many nodes a template stands for.
func (s *Service) CountOf(n *Node) (int64, bool) {
	if n.Count == nil {
		return 1, true
	}
	v := s.Unit.raw(n.Count, &scope{service: s, self: &n.Entity, fail: func(error) {}})
	c, ok := v.(int64)
	return c, ok && c >= 0
}

// SetRuntime has values computed anew, with what is known at run time.
func (s *Service) SetRuntime(r Runtime) {
	s.Runtime = r
	for _, name := range s.Nodes.Names {
		n, _ := s.Nodes.Get(name)
		n.forget()
		for _, c := range n.Capabilities.Names {
			e, _ := n.Capabilities.Get(c)
			e.forget()
		}
		for _, r := range n.Out {
			r.forget()
		}
	}
}

func (e *Entity) forget() {
	for _, cells := range []*Named[*Cell]{&e.Properties, &e.Attributes} {
		for _, c := range cells.of {
			c.known = nil
		}
	}
}

// Property is the value of a property for the node of an index; nil if it has
// none.
func (e *Entity) Property(name string, index int64) any {
	c, ok := e.Properties.Get(name)
	if !ok {
		return nil
	}
	return c.Value(index)
}

// Evaluate computes an expression that stands at an entity (nil: at the
// service itself), for the node of an index.
func (s *Service) Evaluate(a Assigned, e *Entity, index int64) any {
	sc := &scope{service: s, self: e, index: index}
	v := a.Unit.raw(a.Node, sc)
	if a.Def != nil {
		v = a.Unit.conform(&a.Def.Schema, v, a.Node, sc, a.Unit.errorf)
	}
	return v
}

// Problems are those of the run so far.
func (s *Service) Problems() []Problem { return s.Unit.run.problems.list }

// Tell adds a problem at a node of the service's file.
func (s *Service) Tell(n *tree.Node, hint, format string, args ...any) {
	s.Unit.errorf(n, hint, format, args...)
}

// Warn adds a warning at a node of the service's file.
func (s *Service) Warn(n *tree.Node, hint, format string, args ...any) {
	s.Unit.warnf(n, hint, format, args...)
}

// Remote is an error: a file is one of the network, of which nothing is
// fetched.
type Remote struct{ URL string }

func (r *Remote) Error() string { return r.URL + " is elsewhere: nothing is fetched" }

// File reads a file that a file of the service refers to: relative to that
// one, or from the root of the archive.
func (u *Unit) File(name string) ([]byte, error) { return u.read(name, nil) }

func (u *Unit) read(name string, in *tree.Node) ([]byte, error) {
	name, remote, what := u.located(name, in)
	switch {
	case what != "":
		return nil, errors.New(what)
	case remote != "":
		return nil, &Remote{remote}
	}
	return u.files.ReadFile(name)
}

// Read reads the file of the artifact, which may be in a repository.
func (a *Artifact) Read() ([]byte, error) {
	if a.Repository == "" {
		return a.Unit.File(a.File)
	}
	return a.Unit.read(a.File, a.Node.Get("repository"))
}
