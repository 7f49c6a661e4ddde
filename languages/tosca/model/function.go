package model

import (
	"fmt"
	"strings"

	"croft/languages/tosca/values"
	"croft/languages/tree"
)

// Function is a function that a file defines by its signatures (csd05,
// 5.4.15).
type Function struct {
	Name       string
	Unit       *Unit
	Node       *tree.Node
	signatures []signature
	refined    *Function // of the same name outside of the service template, or nil
	checked    bool
}

type signature struct {
	arguments, optional []*Schema
	variadic            bool
	result              *Schema // nil: any
}

func (u *Unit) declareFunctions(n *tree.Node) {
	for _, e := range entries(n) {
		if !u.nameable(e.Key, "a function") {
			continue
		}
		if strings.ContainsAny(e.Key.Text, "$") {
			u.errorf(e.Key, "", "the name of function %s has a $", e.Key.Short())
			continue
		}
		u.functions[e.Key.Text] = &Function{Name: e.Key.Text, Unit: u, Node: e.Value}
	}
}

// function finds a function that this file sees, or nil.
func (u *Unit) function(name string) *Function {
	f := u.searchFunction(name, map[*Unit]bool{})
	if f != nil {
		f.check()
	}
	return f
}

func (u *Unit) searchFunction(name string, seen map[*Unit]bool) *Function {
	if seen[u] {
		return nil
	}
	seen[u] = true
	if f := u.functions[name]; f != nil {
		return f
	}
	if prefix, rest, ok := strings.Cut(name, ":"); ok {
		for _, other := range u.named[prefix] {
			if f := other.searchFunction(rest, map[*Unit]bool{}); f != nil {
				return f
			}
		}
	}
	for _, other := range u.plain {
		if f := other.searchFunction(name, seen); f != nil {
			return f
		}
	}
	return nil
}

// check reads the signatures.
func (f *Function) check() {
	if f.checked {
		return
	}
	f.checked = true
	u := f.Unit
	k := functionKeys
	if f.refined != nil {
		f.signatures, k.need = f.refined.signatures, nil
	}
	if !u.keys(f.Node, &k) {
		return
	}
	list := items(f.Node.Get("signatures"))
	if len(list) == 0 && f.Node.Get("signatures").Is(tree.List) {
		u.errorf(f.Node.Get("signatures"), "want at least one", "function %s has no signature", f.Name)
	}
	if len(list) > 0 {
		f.signatures = nil
	}
	for _, n := range list {
		if !u.keys(n, &signatureKeys) {
			continue
		}
		s := signature{}
		for _, a := range items(n.Get("arguments")) {
			s.arguments = append(s.arguments, u.argument(a))
		}
		for _, a := range items(n.Get("optional_arguments")) {
			s.optional = append(s.optional, u.argument(a))
		}
		if v := n.Get("variadic"); v.Is(tree.Bool) {
			s.variadic = v.Bool
		}
		if r := n.Get("result"); r != nil {
			s.result = u.argument(r)
		}
		if i := n.Get("implementation"); i != nil {
			u.implementation(i, false)
		}
		f.signatures = append(f.signatures, s)
	}
}

func (u *Unit) argument(n *tree.Node) *Schema {
	switch n.Kind {
	case tree.String, tree.Map:
		return u.schema(n, nil)
	}
	u.errorf(n, "want a type or a schema", "an argument or result is %s", describe(n))
	return &Schema{Type: u.run.anyType()}
}

// accepts reports whether a signature takes arguments of which the constant
// ones are known.
func (s *signature) accepts(u *Unit, args []*tree.Node, sc *scope) bool {
	most := len(s.arguments) + len(s.optional)
	if len(args) < len(s.arguments) || len(args) > most && !s.variadic {
		return false
	}
	for i, n := range args {
		var want *Schema
		switch {
		case i < len(s.arguments):
			want = s.arguments[i]
		case i < most:
			want = s.optional[i-len(s.arguments)]
		case most > 0:
			want = append(append([]*Schema(nil), s.arguments...), s.optional...)[most-1]
		default:
			continue
		}
		if is := u.kindOf(n, sc); is != nil && !is.fits(want) {
			return false
		}
		if v := u.raw(n, nil); values.Known(v) && !u.conforms(want, v, n) {
			return false
		}
	}
	return true
}

func (f *Function) checkCall(u *Unit, c call, sc *scope) {
	if len(f.signatures) == 0 {
		return
	}
	for i := range f.signatures {
		if f.signatures[i].accepts(u, c.list(), sc) {
			return
		}
	}
	var counts []string
	for _, s := range f.signatures {
		counts = append(counts, fmt.Sprint(len(s.arguments)))
	}
	u.errorf(c.node, "its signatures have "+list(counts)+" arguments", "no signature of $%s takes these arguments", c.name)
}

// result is what all signatures give, or nil.
func (f *Function) result() *Schema {
	var r *Schema
	for _, s := range f.signatures {
		if s.result == nil || r != nil && r.Type != s.result.Type {
			return nil
		}
		r = s.result
	}
	return r
}

// fits reports whether values of a schema may be values of another.
func (s *Schema) fits(want *Schema) bool {
	if s == nil || want == nil || s.Type == nil || want.Type == nil {
		return true
	}
	a, b := s.Type.base(), want.Type.base()
	if a == "any" || b == "any" {
		return true
	}
	if a != b {
		return false
	}
	if a == "" || a == "scalar" {
		return s.Type.Is(want.Type) || want.Type.Is(s.Type) || s.Type.vague()
	}
	if e, w := s.entrySchema(), want.entrySchema(); e != nil && w != nil {
		return e.fits(w)
	}
	return true
}
