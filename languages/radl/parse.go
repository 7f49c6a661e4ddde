package radl

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"croft/languages"
)

// textParser reads a document in the text form. After a mistake it goes on with
// the next statement, so that all mistakes are told.
type textParser struct {
	scanner
	source            *Source
	problems          []languages.Problem
	described, others bool      // which statements there were
	stack             []Feature // those being read, of all depths
	names             map[string]string
}

// mistake unwinds the parser to the statement that it is in.
type mistake struct{}

func parseText(s *Source) (*Document, []languages.Problem) {
	p := &textParser{scanner: scanner{text: s.text}, source: s, names: map[string]string{}}
	d := &Document{}
	p.next()
	for p.token != tEnd {
		if item, ok := p.statement(); ok {
			d.Items = append(d.Items, item)
		} else if len(p.problems) >= maxProblems {
			break
		} else {
			p.recover()
		}
	}
	if len(d.Items) == 1 && p.described && len(p.problems) == 0 {
		p.problem(d.Items[0].offset(), "a description of nothing", "put what it describes after it")
	}
	return d, p.problems
}

// statement reads one; not, if there is a mistake in it.
func (p *textParser) statement() (item Item, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, mine := r.(mistake); !mine {
				panic(r)
			}
			item, ok = nil, false
			p.stack = p.stack[:0]
		}
	}()
	at := p.start
	if p.token != tWord {
		p.fail("a statement", "documents consist of network, system, ansible, configure, contextualize, deploy and description")
	}
	switch word := string(p.word()); word {
	case "network", "system", "ansible", "description":
		p.next()
		return p.aspect(at, Class(word)), true
	case "configure":
		p.next()
		return p.configure(at), true
	case "contextualize":
		p.next()
		return p.contextualize(at), true
	case "deploy":
		p.next()
		return p.deploy(at), true
	}
	p.fail("a statement", "documents consist of network, system, ansible, configure, contextualize, deploy and description")
	return nil, false
}

// recover goes on to the next keyword that begins a statement at the start of
// a line.
func (p *textParser) recover() {
	i := p.start
	for {
		n := bytes.IndexByte(p.text[i:], '\n')
		if n < 0 {
			p.at = len(p.text)
			p.next()
			return
		}
		i += n + 1
		line := p.text[i:]
		for _, k := range [...]string{"network", "system", "ansible", "description", "configure", "contextualize", "deploy"} {
			if rest, ok := bytes.CutPrefix(line, []byte(k)); ok && len(rest) > 0 && !wordBytes[rest[0]] {
				p.at = i
				p.next()
				return
			}
		}
	}
}

func (p *textParser) problem(at int, what, hint string) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, languages.Problem{Place: p.source.Place(at), What: what, Hint: hint})
	}
}

// fail tells what was read where something else should have been.
func (p *textParser) fail(want, hint string) {
	found := ""
	switch p.token {
	case tEnd:
		found = "the end of the document"
	case tBad:
		found = p.bad
		if p.hint != "" {
			hint = p.hint
		}
	default:
		found = strconv.Quote(shorten(string(p.word())))
		if p.token == tWord && keywords[string(p.word())] {
			found = "the keyword " + found
		}
	}
	p.problem(p.start, found+" where "+want+" should be", hint)
	panic(mistake{})
}

func shorten(s string) string {
	const most = 40
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func (p *textParser) isWord(word string) bool { return p.token == tWord && string(p.word()) == word }

func (p *textParser) name(of string) string {
	if p.token != tWord || keywords[string(p.word())] {
		p.fail("the name of "+of, "")
	}
	// The same names stand in documents again and again.
	name, ok := p.names[string(p.word())]
	if !ok {
		name = string(p.word())
		p.names[name] = name
	}
	p.next()
	return name
}

func (p *textParser) expect(t token, want, hint string) {
	if p.token != t {
		p.fail(want, hint)
	}
	p.next()
}

func (p *textParser) aspect(at int, class Class) *Aspect {
	a := &Aspect{Offset: at, Class: class}
	a.Name = p.name("a " + string(class))
	switch {
	case class == Description && p.others:
		p.problem(at, "a description after other statements", "put it first")
	case class == Description && p.described:
		p.problem(at, "a second description", "there can be one")
	}
	p.described, p.others = p.described || class == Description, p.others || class != Description
	if p.token != tOpen {
		if class == Ansible {
			p.fail(`"("`, "an ansible host is always defined with its features")
		}
		a.Reference = true
		return a
	}
	p.next()
	a.Features = p.features(1, false)
	p.expect(tClose, `"and" or ")"`, "")
	return a
}

// features reads features up to, and without, the closing parenthesis. In
// those of applications, commas can stand for "and".
func (p *textParser) features(depth int, commas bool) []Feature {
	if depth > maxDepth {
		p.fail(`")"`, fmt.Sprintf("features are nested more than %d deep", maxDepth))
	}
	mark := len(p.stack)
	for first := true; ; first = false {
		if p.token == tClose {
			if !first {
				p.fail("a feature", `"and" stands between features, not after the last`)
			}
			return nil
		}
		if p.isWord("and") && first { // as the reference parser takes it
			p.next()
		}
		f := p.feature(depth)
		p.stack = append(p.stack, f)
		switch {
		case p.isWord("and"), commas && p.token == tComma:
			p.next()
		default:
			list := slices.Clone(p.stack[mark:])
			p.stack = p.stack[:mark]
			return list
		}
	}
}

func (p *textParser) feature(depth int) (f Feature) {
	f.Offset = p.start
	if p.isWord("soft") {
		p.next()
		weight := p.number("the weight of the wish", false)
		f.Op, f.Weight = Soft, &weight
		p.expect(tOpen, `"("`, "")
		f.Value = Value{Offset: p.start, Kind: Features, Features: p.features(depth+1, false)}
		p.expect(tClose, `"and" or ")"`, "")
		return f
	}
	f.Name = p.name("a feature")
	if p.isWord("contains") {
		f.Op = Contains
		p.next()
		p.expect(tOpen, `"("`, "as in: disk.0.applications contains (name='tomcat')")
		f.Value = Value{Offset: p.start, Kind: Features, Features: p.features(depth+1, true)}
		p.expect(tClose, `"and" or ")"`, "")
		return f
	}
	if p.token != tOp {
		p.fail("an operator", "there are =, <, >, <=, >= and contains")
	}
	f.Op = p.op
	p.next()
	f.Value = p.value()
	return f
}

func (p *textParser) value() Value {
	v := Value{Offset: p.start}
	switch p.token {
	case tNumber:
		return p.number("a number", true)
	case tString:
		v.Kind, v.Text = String, p.unquote()
	case tRandom:
		v.Kind = Random
		digits := p.text[p.start+len("'random(") : p.end-2]
		v.Text = string(digits)
		n, err := strconv.Atoi(v.Text)
		if err != nil || n > maxRandom {
			p.problem(p.start, fmt.Sprintf("a random text of %s characters", shorten(v.Text)), fmt.Sprintf("at most %d", maxRandom))
			n = maxRandom
		}
		v.Num = float64(n)
	case tOpenList:
		v.Kind, v.List = List, p.list()
		return v
	default:
		p.fail("a value", "want a number, a text in quotation marks, or a list of these in brackets")
	}
	p.next()
	return v
}

// maxRandom is the longest random text.
const maxRandom = 64

func (p *textParser) list() []string {
	list := []string{}
	p.next()
	if p.token == tComma { // as the reference parser takes it
		p.next()
	}
	for p.token != tCloseList {
		if p.token != tString {
			p.fail("a text of the list", `lists are written ['a', 'b']`)
		}
		list = append(list, p.unquote())
		p.next()
		if p.token == tComma {
			p.next()
			if p.token == tCloseList {
				p.fail("a text of the list", "")
			}
		} else if p.token != tCloseList {
			p.fail(`"," or "]"`, "")
		}
	}
	p.next()
	return list
}

func (p *textParser) number(want string, units bool) Value {
	if p.token != tNumber {
		p.fail(want, "")
	}
	v, ok := numberValue(p.start, string(p.word()))
	if !ok {
		p.fail(want, "the number is too large")
	}
	p.next()
	if units && p.token == tWord && !keywords[string(p.word())] {
		v.Unit = string(p.word())
		p.next()
	}
	return v
}

func numberValue(at int, text string) (Value, bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) > 40 {
		return Value{}, false
	}
	return Value{Offset: at, Kind: Number, Text: text, Num: n, Whole: !strings.Contains(text, ".")}, true
}

func (p *textParser) configure(at int) *Configure {
	p.others = true
	c := &Configure{Offset: at, Name: p.name("a recipe")}
	if p.token != tOpen {
		c.Reference = true
		return c
	}
	p.next()
	if p.token == tClose {
		c.Empty = true
		p.next()
		return c
	}
	if p.token != tBegin {
		p.fail(`"@begin" or ")"`, "")
	}
	begin := p.start
	c.RecipeAt = p.at
	var ok bool
	if c.Recipe, ok = p.recipe(); !ok {
		p.problem(begin, `an "@begin" without an "@end"`, `"@end" stands at the very start of its line`)
		panic(mistake{})
	}
	p.next()
	p.expect(tClose, `")"`, "")
	return c
}

func (p *textParser) contextualize(at int) *Contextualize {
	p.others = true
	c := &Contextualize{Offset: at}
	if p.token == tNumber {
		limit := p.number("the time limit", false)
		c.Limit = &limit
	}
	p.expect(tOpen, `"("`, "")
	for p.isWord("option") {
		p.next()
		f := Feature{Offset: p.start, Name: p.name("an option")}
		if p.token != tOp {
			p.fail("an operator", "there are =, <, >, <= and >=")
		}
		f.Op = p.op
		p.next()
		switch p.token {
		case tNumber:
			f.Value = p.number("a number", false)
		case tString:
			f.Value = p.value()
		default:
			p.fail("a number or a text", "")
		}
		c.Options = append(c.Options, f)
	}
	for p.isWord("system") {
		i := ContextItem{Offset: p.start}
		p.next()
		i.System = p.name("a system")
		if !p.isWord("configure") {
			p.fail(`"configure"`, "as in: system front configure web step 1")
		}
		p.next()
		i.Configure = p.name("a recipe")
		for range 2 {
			switch {
			case p.isWord("step") && i.Step == nil:
				p.next()
				n := p.number("the number of the step", false)
				i.Step = &n
			case p.isWord("with") && i.Tool == "":
				p.next()
				i.Tool = p.name("a tool, Ansible or cloud_init,")
			}
		}
		c.Items = append(c.Items, i)
	}
	p.expect(tClose, `"system", "option" or ")"`, "options come first, then lines as: system front configure web step 1")
	return c
}

func (p *textParser) deploy(at int) *Deploy {
	p.others = true
	d := &Deploy{Offset: at, System: p.name("a system")}
	d.Number = p.number("the number of machines", false)
	if p.token == tWord && !keywords[string(p.word())] {
		d.Cloud = string(p.word())
		p.next()
	}
	return d
}
