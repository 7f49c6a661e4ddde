package radl

import (
	"strings"
)

// Document is a RADL document as it was written: what it says in the order in
// which it says it. Positions in it are offsets that Source turns into lines.
type Document struct {
	Items []Item
}

// Item is a statement of a document: an *Aspect, a *Configure, a
// *Contextualize or a *Deploy.
type Item interface{ offset() int }

// Class is what an Aspect describes.
type Class string

// The classes of aspects.
const (
	Network     Class = "network"
	System      Class = "system"
	Ansible     Class = "ansible"
	Description Class = "description"
)

// Aspect gives features to a name: a network, a system, an Ansible host, or
// the description of the document.
type Aspect struct {
	Offset    int
	Class     Class
	Name      string
	Reference bool // only names what was defined elsewhere
	Features  []Feature
}

// Configure is a recipe under a name.
type Configure struct {
	Offset    int
	Name      string
	Reference bool
	Empty     bool // "configure NAME ()": there is no recipe
	Recipe    string
	RecipeAt  int // where the recipe starts
}

// Contextualize says which recipes are for which systems. One without items
// says that none are.
type Contextualize struct {
	Offset  int
	Limit   *Value // a number of seconds; nil for none
	Options []Feature
	Items   []ContextItem
}

// ContextItem is one line of a Contextualize.
type ContextItem struct {
	Offset    int
	System    string
	Configure string
	Step      *Value // a number; nil for none
	Tool      string // "" for Ansible
}

// Deploy asks for machines of a system.
type Deploy struct {
	Offset int
	System string
	Number Value
	Cloud  string // "" for any
}

func (a *Aspect) offset() int        { return a.Offset }
func (c *Configure) offset() int     { return c.Offset }
func (c *Contextualize) offset() int { return c.Offset }
func (d *Deploy) offset() int        { return d.Offset }

// Op is how a feature relates its name to its value.
type Op byte

// The operators. Soft has a weight and features and no name.
const (
	Equal Op = iota
	Less
	LessEqual
	Greater
	GreaterEqual
	Contains
	Soft
)

var opText = [...]string{"=", "<", "<=", ">", ">=", "contains", "soft"}

// String writes the operator as documents do.
func (o Op) String() string { return opText[o] }

// Feature is one condition or wish: a name, an operator and a value.
type Feature struct {
	Offset int
	Name   string
	Op     Op
	Value  Value
	Weight *Value // of Soft; nil otherwise
}

// Kind tells the values of features apart.
type Kind byte

// The kinds of values.
const (
	Number   Kind = iota // with its unit
	String               // text
	List                 // of texts
	Features             // of Contains and Soft
	Random               // so many random letters and digits
)

var kindText = [...]string{"a number", "a text", "a list of texts", "features", "a random text"}

// String names the kind for people.
func (k Kind) String() string { return kindText[k] }

// Value is what a feature says of its name.
type Value struct {
	Offset   int
	Kind     Kind
	Text     string  // a String; the digits of a Number as they were written
	Unit     string  // of a Number; "" for none
	Num      float64 // a Number or the length of a Random
	Whole    bool    // the Number was written without a decimal point
	List     []string
	Features []Feature
}

// Amount is a number with its unit resolved: bytes, where the unit is one of
// bytes.
func (v *Value) Amount() float64 { return v.Num * unitValue(v.Unit) }

// unitValue is what a unit multiplies by. K, M, G and T are decimal and Ki, Mi,
// Gi and Ti binary, with or without a B, in any case: so the reference parser
// reads them, although an example of the specification has 512M as 536870912.
// Units that are not of bytes count as they are.
func unitValue(unit string) float64 {
	if unit == "" {
		return 1
	}
	u := strings.TrimSuffix(strings.ToUpper(unit), "B")
	base := 1000.0
	if strings.HasSuffix(u, "I") {
		base, u = 1024, u[:len(u)-1]
	}
	switch u {
	case "K":
		return base
	case "M":
		return base * base
	case "G":
		return base * base * base
	case "T":
		return base * base * base * base
	}
	return 1
}
