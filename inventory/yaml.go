package inventory

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of what is read, so that no file can exhaust the reader.
const (
	maxBytes  = 8 << 20
	maxDepth  = 32
	maxValues = 2_000_000 // scalars, lists and mappings, aliases expanded
)

// position is a place in the file, from 1.
type position struct{ line, column int }

// form is what a YAML value is.
type form string

const (
	nothing form = "nothing"
	boolean form = "a truth value"
	number  form = "a number"
	text    form = "text"
	list    form = "a list"
	mapping form = "a mapping"
)

// value is a YAML value and where it stands. Aliases and merge keys are
// resolved.
type value struct {
	form    form
	scalar  string // as written for booleans and numbers, without quotes for text
	items   []value
	entries []entry
	at      position
}

// entry is one key of a mapping.
type entry struct {
	key   string
	at    position
	value value
}

// describe says what a value is, for messages.
func (v value) describe() string {
	const most = 40
	switch v.form {
	case boolean, number:
		return v.scalar
	case text:
		s := v.scalar
		if utf8.RuneCountInString(s) > most {
			s = string([]rune(s)[:most]) + "…"
		}
		return fmt.Sprintf("%q", s)
	}
	return string(v.form)
}

// readYAML reads one YAML document. It reports problems and returns ok false
// if there is no document to go on with.
func readYAML(data []byte, p *problems) (root value, ok bool) {
	if len(data) > maxBytes {
		p.add(position{}, "", fmt.Sprintf("the file has %d bytes; at most %d are read", len(data), maxBytes),
			"ranges such as pc[001-160] and hardware types keep it short")
		return value{}, false
	}
	if !utf8.Valid(data) {
		p.add(firstInvalid(data), "", "a byte that is not UTF-8", "save the file as UTF-8")
		return value{}, false
	}
	tokens := lexer.Tokenize(string(data))
	if at, deep := tooDeep(tokens); deep {
		p.add(at, "", fmt.Sprintf("nested deeper than %d levels", maxDepth), "")
		return value{}, false
	}
	file, err := parse(tokens)
	if err != nil {
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			p.add(tokenPosition(syntax.Token), "", "not YAML: "+syntax.Message, "")
		} else {
			p.add(position{}, "", "not YAML: "+err.Error(), "")
		}
		return value{}, false
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if _, directive := doc.Body.(*ast.DirectiveNode); directive {
			continue
		}
		if body != nil {
			p.add(nodePosition(doc.Body), "", "a second YAML document", "an inventory is one document; remove the ---")
			return value{}, false
		}
		body = doc.Body
	}
	if body == nil {
		p.add(position{1, 1}, "", "the file is empty", "at least authority and hosts are needed")
		return value{}, false
	}
	c := converter{problems: p, anchors: map[string]ast.Node{}}
	root = c.convert(body, 0)
	return root, !c.failed
}

// parse calls the YAML library. A panic in it is the library's error, not the
// end of a server that reloads its inventory.
func parse(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// tooDeep looks for nesting beyond maxDepth before the parser, which recurses,
// sees it.
func tooDeep(tokens token.Tokens) (position, bool) {
	var columns []int // of the block collections that are open
	flow := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			if flow > 0 || t.Position == nil {
				break
			}
			column := t.Position.Column
			if t.Type == token.MappingValueType && t.Prev != nil && t.Prev.Position != nil {
				column = t.Prev.Position.Column
			}
			for len(columns) > 0 && columns[len(columns)-1] >= column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, column)
		case token.AnchorType, token.TagType:
			// &a &b … and !a !b … nest in the parser as well.
			if t.Prev != nil && t.Prev.Prev != nil && t.Prev.Prev.Type == t.Type {
				flow++
			}
		}
		if flow+len(columns) > maxDepth {
			return tokenPosition(t), true
		}
	}
	return position{}, false
}

// converter turns the library's nodes into values.
type converter struct {
	problems *problems
	anchors  map[string]ast.Node
	open     []string // anchors being expanded
	values   int
	failed   bool
}

func (c *converter) fail(at position, what, hint string) value {
	c.failed = true
	c.problems.add(at, "", what, hint)
	return value{form: nothing, at: at}
}

func (c *converter) convert(n ast.Node, depth int) value {
	at := nodePosition(n)
	if c.failed && c.values > maxValues {
		return value{form: nothing, at: at}
	}
	if c.values++; c.values > maxValues {
		return c.fail(at, fmt.Sprintf("more than %d values, aliases expanded", maxValues), "")
	}
	if depth > maxDepth {
		return c.fail(at, fmt.Sprintf("nested deeper than %d levels", maxDepth), "")
	}
	switch n := n.(type) {
	case *ast.StringNode:
		return value{form: text, scalar: n.Value, at: at}
	case *ast.LiteralNode:
		return value{form: text, scalar: n.Value.Value, at: at}
	case *ast.BoolNode:
		return value{form: boolean, scalar: n.Token.Value, at: at}
	case *ast.IntegerNode:
		return value{form: number, scalar: n.Token.Value, at: at}
	case *ast.FloatNode:
		return value{form: number, scalar: n.Token.Value, at: at}
	case *ast.InfinityNode:
		return value{form: number, scalar: n.Token.Value, at: at}
	case *ast.NanNode:
		return value{form: number, scalar: n.Token.Value, at: at}
	case *ast.NullNode, nil:
		return value{form: nothing, at: at}
	case *ast.SequenceNode:
		v := value{form: list, at: at}
		for _, item := range n.Values {
			v.items = append(v.items, c.convert(item, depth+1))
		}
		return v
	case *ast.MappingNode:
		return c.convertMapping(n.Values, at, depth)
	case *ast.MappingValueNode:
		return c.convertMapping([]*ast.MappingValueNode{n}, at, depth)
	case *ast.AnchorNode:
		if n.Name != nil {
			c.anchors[n.Name.GetToken().Value] = n.Value
		}
		return c.convert(n.Value, depth+1)
	case *ast.AliasNode:
		return c.convertAlias(n, at, depth)
	case *ast.TagNode:
		return c.fail(at, "tag "+n.Start.Value, "an inventory needs no tags")
	}
	return c.fail(at, fmt.Sprintf("a %s here", n.Type()), "")
}

func (c *converter) convertAlias(n *ast.AliasNode, at position, depth int) value {
	name := n.Value.GetToken().Value
	target, known := c.anchors[name]
	if !known {
		return c.fail(at, fmt.Sprintf("alias *%s of an anchor that is not above it", name), "")
	}
	for _, o := range c.open {
		if o == name {
			return c.fail(at, fmt.Sprintf("alias *%s inside its own anchor", name), "")
		}
	}
	c.open = append(c.open, name)
	v := c.convert(target, depth+1)
	c.open = c.open[:len(c.open)-1]
	return v
}

// convertMapping resolves merge keys: what they bring in yields to what the
// mapping says itself.
func (c *converter) convertMapping(values []*ast.MappingValueNode, at position, depth int) value {
	v := value{form: mapping, at: at}
	if len(values) > 0 {
		v.at = nodePosition(values[0].Key)
	}
	own := map[string]bool{}
	var merged []entry
	for _, pair := range values {
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge {
			from := c.convert(pair.Value, depth+1)
			sources := from.items
			if from.form == mapping {
				sources = []value{from}
			}
			for _, source := range sources {
				merged = append(merged, source.entries...)
			}
			if from.form != mapping && from.form != list {
				c.fail(from.at, "<< takes a mapping, got "+from.describe(), "")
			}
			continue
		}
		key := c.convert(pair.Key, depth+1)
		if key.form == list || key.form == mapping || key.form == nothing {
			c.fail(key.at, "a key that is "+string(key.form), "")
			continue
		}
		if own[key.scalar] {
			c.problems.add(key.at, "", fmt.Sprintf("key %s stands twice in one mapping", key.scalar), "keep one of them")
			continue
		}
		own[key.scalar] = true
		v.entries = append(v.entries, entry{key.scalar, key.at, c.convert(pair.Value, depth+1)})
	}
	for _, e := range merged {
		if !own[e.key] {
			own[e.key] = true
			v.entries = append(v.entries, e)
		}
	}
	return v
}

func nodePosition(n ast.Node) position {
	if n == nil {
		return position{}
	}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		return nodePosition(m.Values[0].Key)
	}
	return tokenPosition(n.GetToken())
}

func tokenPosition(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, t.Position.Column}
}

// firstInvalid finds the first byte that is not UTF-8.
func firstInvalid(data []byte) position {
	at := position{1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			return at
		}
		if r == '\n' {
			at = position{at.line + 1, 0}
		}
		at.column++
		data = data[size:]
	}
	return at
}
