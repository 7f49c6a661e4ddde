package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Limits bound what is read. A zero limit has a default.
type Limits struct {
	Bytes int // of the document
	Nodes int // with aliases expanded
	Depth int
}

// defaultLimits are enough for templates of tens of thousands of nodes.
var defaultLimits = Limits{Bytes: 32 << 20, Nodes: 4 << 20, Depth: 100}

func (l Limits) orDefault() Limits {
	if l.Bytes == 0 {
		l.Bytes = defaultLimits.Bytes
	}
	if l.Nodes == 0 {
		l.Nodes = defaultLimits.Nodes
	}
	if l.Depth == 0 {
		l.Depth = defaultLimits.Depth
	}
	return l
}

// Parse reads a document of one YAML stream. Errors are *Error.
func Parse(document []byte, limits Limits) (*Node, error) {
	limits = limits.orDefault()
	if len(document) > limits.Bytes {
		return nil, &Error{What: fmt.Sprintf("the document has %d bytes", len(document)), Hint: fmt.Sprintf("at most %d are read", limits.Bytes)}
	}
	if !utf8.Valid(document) {
		return nil, &Error{What: "the document is not UTF-8"}
	}
	if err := nesting(document, limits.Depth); err != nil {
		return nil, err
	}
	root, err := decode(document)
	if err != nil {
		return nil, err
	}
	c := &converter{limits: limits}
	return c.node(root, nil, "", 0)
}

// nesting refuses flow collections that are nested deeper than is read, before
// a recursive parser meets them. It may count brackets in strings, too, so it
// counts leniently.
func nesting(document []byte, depth int) error {
	open, line := 0, 1
	for _, b := range document {
		switch b {
		case '\n':
			line++
		case '[', '{':
			if open++; open > 100*depth {
				return &Error{Line: line, What: "too deeply nested"}
			}
		case ']', '}':
			if open > 0 {
				open--
			}
		}
	}
	return nil
}

func decode(document []byte) (root *yaml.Node, err error) {
	// The library is known to panic on some broken documents.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, &Error{What: fmt.Sprintf("not YAML: %v", r)}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(document))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, &Error{Line: 1, What: "the document is empty"}
	} else if err != nil {
		return nil, syntax(err, document)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, &Error{Line: second.Line, What: "a second YAML document begins", Hint: "a file has one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntax(err, document)
	}
	return &first, nil
}

// syntax makes an error of the library's, which begins "yaml: line 4: …".
// It does not say where an anchor is not known.
func syntax(err error, document []byte) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	e := &Error{What: "not YAML: " + text}
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, what, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				e.Line, e.What = line, "not YAML: "+what
			}
		}
	}
	if rest, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		if at := bytes.Index(document, []byte("*"+name)); at >= 0 {
			e.Line = 1 + bytes.Count(document[:at], []byte("\n"))
			e.Column = at - bytes.LastIndexByte(document[:at], '\n')
		}
	}
	return e
}

type converter struct {
	limits Limits
	nodes  int
	open   []*yaml.Node // aliases that are being expanded
}

func (c *converter) node(y *yaml.Node, parent *Node, name string, depth int) (*Node, error) {
	if c.nodes++; c.nodes > c.limits.Nodes {
		return nil, &Error{Line: y.Line, Column: y.Column, What: fmt.Sprintf("more than %d values, with aliases expanded", c.limits.Nodes)}
	}
	if depth > c.limits.Depth {
		return nil, &Error{Line: y.Line, Column: y.Column, What: fmt.Sprintf("nested deeper than %d", c.limits.Depth)}
	}
	n := &Node{Line: y.Line, Column: y.Column, Parent: parent, Name: name}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) != 1 {
			return nil, &Error{Line: 1, What: "the document is empty"}
		}
		return c.node(y.Content[0], parent, name, depth)
	case yaml.AliasNode:
		for _, open := range c.open {
			if open == y.Alias {
				return nil, &Error{Line: y.Line, Column: y.Column, What: "alias *" + y.Value + " stands in what it is an alias of"}
			}
		}
		c.open = append(c.open, y.Alias)
		defer func() { c.open = c.open[:len(c.open)-1] }()
		return c.node(y.Alias, parent, name, depth+1)
	case yaml.SequenceNode:
		n.Kind = List
		n.Items = make([]*Node, 0, len(y.Content))
		for i, item := range y.Content {
			child, err := c.node(item, n, "["+strconv.Itoa(i)+"]", depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, child)
		}
	case yaml.MappingNode:
		n.Kind = Map
		if err := c.entries(y, n, depth); err != nil {
			return nil, err
		}
	case yaml.ScalarNode:
		scalar(y, n)
	default:
		return nil, &Error{Line: y.Line, Column: y.Column, What: "not YAML"}
	}
	return n, nil
}

func (c *converter) entries(y *yaml.Node, n *Node, depth int) error {
	n.Entries = make([]Entry, 0, len(y.Content)/2)
	var seen map[string]bool
	if len(y.Content) > 16 {
		seen = make(map[string]bool, len(y.Content)/2)
	}
	has := func(key *Node) bool {
		if seen != nil {
			return seen[key.Text]
		}
		for _, e := range n.Entries {
			if e.Key.Kind == key.Kind && e.Key.Text == key.Text {
				return true
			}
		}
		return false
	}
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		if k := y.Content[i]; k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
			merges = append(merges, y.Content[i+1])
			continue
		}
		key, err := c.node(y.Content[i], n, "", depth+1)
		if err != nil {
			return err
		}
		key.Name = key.Short()
		if key.Kind != List && key.Kind != Map {
			if has(key) {
				return &Error{Line: key.Line, Column: key.Column, What: "key " + key.Short() + " stands twice in the same map"}
			}
			if seen != nil {
				seen[key.Text] = true
			}
		}
		name := key.Text
		if key.Kind == List || key.Kind == Map {
			name = "[" + key.Kind.String() + "]"
		}
		value, err := c.node(y.Content[i+1], n, name, depth+1)
		if err != nil {
			return err
		}
		n.Entries = append(n.Entries, Entry{key, value})
	}
	for _, m := range merges {
		if err := c.merge(m, n, has, seen, depth); err != nil {
			return err
		}
	}
	return nil
}

// merge adds what a map has not yet from the maps of a merge key.
func (c *converter) merge(y *yaml.Node, n *Node, has func(*Node) bool, seen map[string]bool, depth int) error {
	from, err := c.node(y, n, "<<", depth+1)
	if err != nil {
		return err
	}
	maps := []*Node{from}
	if from.Kind == List {
		maps = from.Items
	}
	for _, m := range maps {
		if m.Kind != Map {
			return &Error{Line: y.Line, Column: y.Column, What: "<< merges " + m.Kind.String(), Hint: "it merges maps"}
		}
		for _, e := range m.Entries {
			if has(e.Key) {
				continue
			}
			if seen != nil {
				seen[e.Key.Text] = true
			}
			e.Key.Parent, e.Value.Parent = n, n
			n.Entries = append(n.Entries, e)
		}
	}
	return nil
}

// scalar resolves a scalar (YAML 1.2, chapter 10.3).
func scalar(y *yaml.Node, n *Node) {
	n.Text = y.Value
	quoted := y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if y.Style&yaml.TaggedStyle != 0 {
		switch y.ShortTag() {
		case "!!str":
			n.Kind = String
			return
		case "!!null", "!!bool", "!!int", "!!float":
			quoted = false
		default:
			n.Kind = Other
			return
		}
	}
	if quoted {
		n.Kind = String
		return
	}
	n.Plain = true
	Resolve(n)
}

// Resolve sets the kind and value of a plain scalar from its text.
func Resolve(n *Node) {
	text := n.Text
	switch text {
	case "", "~", "null", "Null", "NULL":
		n.Kind = Null
		return
	case "true", "True", "TRUE":
		n.Kind, n.Bool = Bool, true
		return
	case "false", "False", "FALSE":
		n.Kind = Bool
		return
	case ".nan", ".NaN", ".NAN":
		n.Kind, n.Float = Float, math.NaN()
		return
	}
	n.Kind = String
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" {
		return
	}
	switch digits {
	case ".inf", ".Inf", ".INF":
		n.Kind, n.Float = Float, math.Inf(1)
		if text[0] == '-' {
			n.Float = math.Inf(-1)
		}
		return
	}
	if c := digits[0]; c != '.' && (c < '0' || c > '9') {
		return
	}
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0o") {
		if digits == text && !strings.Contains(text, "_") {
			if i, err := strconv.ParseInt(text, 0, 64); err == nil {
				n.Kind, n.Int = Int, i
			}
		}
		return
	}
	if strings.Trim(digits, "0123456789") == "" {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			n.Kind, n.Int = Int, i
		} else {
			n.Kind, n.Text = Other, text // an integer of more than 64 bits
		}
		return
	}
	if strings.Trim(digits, "0123456789.eE+-") != "" {
		return
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && !strings.HasSuffix(text, "e") {
		n.Kind, n.Float = Float, f
	}
}
