// Package tree reads YAML into a tree that knows where everything stands. It
// resolves plain scalars as the core schema of YAML 1.2 does: to TOSCA, which
// converts nothing, it makes a difference what is no, 1 or 1.0.
package tree

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is what a node is.
type Kind uint8

// The kinds. Other is a scalar with a tag that the core schema does not know.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
	Other
)

// String names the kind as messages do.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Int:
		return "an integer"
	case Float:
		return "a float"
	case String:
		return "a string"
	case List:
		return "a list"
	case Map:
		return "a map"
	}
	return "a value with a tag of its own"
}

// Node is a value of a document and where it stands. Aliases are expanded, so
// that it is a tree; nobody changes it once it is read.
type Node struct {
	Kind  Kind
	Plain bool // a scalar without quotes
	Bool  bool
	Int   int64
	Float float64
	Text  string // of scalars, as written

	Line, Column int

	Parent *Node
	Name   string // in Parent: the key, or the index in brackets

	Items   []*Node // of lists
	Entries []Entry // of maps, in order
}

// Entry is a key of a map and its value.
type Entry struct {
	Key   *Node
	Value *Node
}

// Get returns the value of a key that is a string, or nil. It may be called
// on nil.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Entries {
		if k := n.Entries[i].Key; k.Kind == String && k.Text == key {
			return n.Entries[i].Value
		}
	}
	return nil
}

// KeyOf returns the key under which a value of this map stands, or the map.
func (n *Node) KeyOf(key string) *Node {
	for i := range n.Entries {
		if k := n.Entries[i].Key; k.Kind == String && k.Text == key {
			return k
		}
	}
	return n
}

// Is reports whether the node is there and of the kind.
func (n *Node) Is(k Kind) bool { return n != nil && n.Kind == k }

// Within reports whether the node is another or stands somewhere in it.
func (n *Node) Within(other *Node) bool {
	for ; n != nil; n = n.Parent {
		if n == other {
			return true
		}
	}
	return false
}

// Path is the way to the node: "node_templates/web/requirements[0]".
func (n *Node) Path() string {
	var names []string
	for at := n; at != nil && at.Parent != nil; at = at.Parent {
		names = append(names, at.Name)
	}
	var s strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		if s.Len() > 0 && !strings.HasPrefix(names[i], "[") {
			s.WriteByte('/')
		}
		s.WriteString(names[i])
	}
	return s.String()
}

// Short writes a scalar for messages, and what a collection is.
func (n *Node) Short() string {
	if n == nil {
		return "nothing"
	}
	switch n.Kind {
	case List, Map, Null:
		return n.Kind.String()
	}
	text := n.Text
	if len(text) > 60 {
		text = text[:57] + "..."
	}
	if n.Plain {
		return text
	}
	return strconv.Quote(text)
}

// Error is a document that is not YAML, or more of it than is read.
type Error struct {
	Line, Column int
	What, Hint   string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.What)
	}
	return e.What
}
