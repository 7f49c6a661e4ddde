package radl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"croft/languages"
)

// checker finds the mistakes that the reference parser finds (grycap/RADL
// 1.3.5, check()), all of them.
type checker struct {
	source   *Source
	problems []languages.Problem
	known    map[Class]map[string]int // names of aspects, with where they stand
	recipes  map[string]int
	yaml     map[string]yamlVerdict
	seen     map[string]*Feature // features of the aspect that is looked at; reused
	bounds   map[string]bounds   // of its numbers
}

// check reports the mistakes of a document. One of which parts could not be
// read is not asked whether its names lead anywhere.
func (s *Source) check(d *Document, whole bool) []languages.Problem {
	c := &checker{
		source: s, known: map[Class]map[string]int{}, recipes: map[string]int{}, yaml: map[string]yamlVerdict{},
		seen: map[string]*Feature{}, bounds: map[string]bounds{},
	}
	for _, item := range d.Items {
		c.name(item)
	}
	for _, item := range d.Items {
		switch item := item.(type) {
		case *Aspect:
			if !item.Reference {
				c.aspect(item, whole)
			}
		case *Configure:
			c.recipe(item)
		case *Contextualize:
			c.contextualize(item, whole)
		case *Deploy:
			c.deploy(item, whole)
		}
		if len(c.problems) >= maxProblems {
			break
		}
	}
	return c.problems
}

func (c *checker) problem(at int, what, hint string) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, languages.Problem{Place: c.source.Place(at), What: what, Hint: hint})
	}
}

// name notes a name, which is given once in its class.
func (c *checker) name(item Item) {
	note := func(names map[string]int, class, name string, at int) {
		if first, ok := names[name]; ok {
			c.problem(at, fmt.Sprintf("a second %s of the name %q", class, name), fmt.Sprintf("the first is in line %d", c.source.Place(first).Line))
			return
		}
		names[name] = at
	}
	switch item := item.(type) {
	case *Aspect:
		if c.known[item.Class] == nil {
			c.known[item.Class] = map[string]int{}
		}
		if item.Class != Description { // the parser has seen to these
			note(c.known[item.Class], string(item.Class), item.Name, item.Offset)
		}
	case *Configure:
		note(c.recipes, "recipe", item.Name, item.Offset)
	}
}

// lost says that a name leads nowhere.
func (c *checker) lost(at int, class, name string, names map[string]int) {
	var all []string
	for n := range names {
		all = append(all, n)
	}
	slices.Sort(all)
	hint := fmt.Sprintf("define it, or write %s %s to refer to an earlier definition", class, name)
	if len(all) > 0 {
		if len(all) > 8 {
			all = append(all[:8], "…")
		}
		hint += "; there are " + strings.Join(all, ", ")
	}
	c.problem(at, fmt.Sprintf("there is no %s %q", class, name), hint)
}

func (c *checker) contextualize(x *Contextualize, whole bool) {
	if x.Limit != nil && !x.Limit.Whole {
		c.problem(x.Limit.Offset, fmt.Sprintf("the time limit %s is no whole number", x.Limit.Text), "it is in seconds")
	}
	c.conflicts(x.Options)
	for i := range x.Items {
		item := &x.Items[i]
		if item.Step != nil && !item.Step.Whole {
			c.problem(item.Step.Offset, fmt.Sprintf("the step %s is no whole number", item.Step.Text), "")
		}
		if !whole {
			continue
		}
		if _, ok := c.known[System][item.System]; !ok {
			c.lost(item.Offset, "system", item.System, c.known[System])
		}
		if _, ok := c.recipes[item.Configure]; !ok {
			c.lost(item.Offset, "configure", item.Configure, c.recipes)
		}
	}
}

func (c *checker) deploy(d *Deploy, whole bool) {
	if _, ok := c.known[System][d.System]; !ok && whole {
		c.lost(d.Offset, "system", d.System, c.known[System])
	}
	if d.Number.Num != float64(int64(d.Number.Num)) || d.Number.Num < 0 {
		c.problem(d.Number.Offset, fmt.Sprintf("%s machines", d.Number.Text), "their number is a whole number")
	}
}

func (c *checker) aspect(a *Aspect, whole bool) {
	c.conflicts(a.Features)
	switch a.Class {
	case Network:
		for i := range a.Features {
			c.feature(&a.Features[i], networkRules[a.Features[i].Name])
		}
	case Ansible:
		c.ansible(a)
	case System:
		c.system(a.Offset, a.Name, a.Features, whole)
	}
}

func (c *checker) ansible(a *Aspect) {
	have := map[string]bool{}
	for i := range a.Features {
		f := &a.Features[i]
		c.feature(f, ansibleRules[f.Name])
		have[f.Name] = have[f.Name] || f.Value.Text != ""
	}
	for _, name := range []string{"host", "credentials.username"} {
		if !have[name] {
			c.problem(a.Offset, fmt.Sprintf("the ansible host %s has no %s", a.Name, name), "")
		}
	}
	if !have["credentials.password"] && !have["credentials.private_key"] {
		c.problem(a.Offset, fmt.Sprintf("the ansible host %s has neither credentials.password nor credentials.private_key", a.Name), "")
	}
}

// feature checks one feature by the rule for its name; nil if there is none.
func (c *checker) feature(f *Feature, r *rule) {
	if r == nil || f.Op == Soft {
		return
	}
	v := &f.Value
	if !r.takes(v) {
		c.problem(v.Offset, fmt.Sprintf("%s is %s", f.Name, v.Kind), "want "+r.want())
		return
	}
	version := strings.Contains(f.Name, "version")
	if v.Kind == String && f.Op != Equal && (!version || f.Op == Contains) {
		c.problem(f.Offset, fmt.Sprintf("%s %s a text", f.Name, f.Op), `texts are compared by "=" only`)
	}
	if v.Kind == Number && v.Unit != "" && !r.unit(v.Unit) {
		hint := "it takes none"
		if len(r.units) > 0 {
			hint = "it takes " + strings.Join(r.units, ", ")
		}
		c.problem(v.Offset, fmt.Sprintf("%s in %q", f.Name, shorten(v.Unit)), hint)
	}
	if v.Kind == Number && v.Unit == "" && r.needsUnit {
		c.problem(v.Offset, f.Name+" without a unit", "it takes "+strings.Join(r.units, ", "))
	}
	if len(r.values) > 0 && (v.Kind == String || v.Kind == Random) && !slices.ContainsFunc(r.values, func(s string) bool { return strings.EqualFold(s, v.Text) }) {
		c.problem(v.Offset, fmt.Sprintf("%s is %q", f.Name, shorten(v.Text)), "want one of "+strings.Join(r.values, ", "))
	}
	if r.check != nil {
		if what, hint := r.check(v); what != "" {
			c.problem(v.Offset, f.Name+": "+what, hint)
		}
	}
}

// system checks the features of a system, or of a soft wish of one.
func (c *checker) system(at int, name string, features []Feature, whole bool) {
	var used [2]indices // of interfaces and disks
	connected := 0
	for i := range features {
		f := &features[i]
		if f.Op == Soft {
			c.system(f.Offset, name, f.Value.Features, whole)
			continue
		}
		if r := systemRules[f.Name]; r != nil {
			c.feature(f, r)
			if f.Name == "ansible_host" && whole {
				if _, ok := c.known[Ansible][f.Value.Text]; !ok {
					c.lost(f.Value.Offset, "ansible host", f.Value.Text, c.known[Ansible])
				}
			}
			if !strings.HasPrefix(f.Name, "disk.") {
				continue
			}
		}
		prefix, rest, ok := strings.Cut(f.Name, ".")
		if !ok || prefix != "net_interface" && prefix != "disk" {
			continue
		}
		number, suffix, _ := strings.Cut(rest, ".")
		n, ok := index(number)
		if !ok {
			c.problem(f.Offset, fmt.Sprintf("%s: %q where the number of the %s should be", f.Name, number, prefix), fmt.Sprintf("as in %s.0.%s", prefix, cmp.Or(suffix, rest)))
			continue
		}
		if prefix == "disk" {
			if r := diskRules[suffix]; r != nil {
				c.feature(f, r)
				used[1].add(n)
				if suffix == "applications" && f.Op == Contains {
					for k := range f.Value.Features {
						c.feature(&f.Value.Features[k], applicationRules[f.Value.Features[k].Name])
					}
				}
			}
			continue
		}
		r := interfaceRules[suffix]
		if r == nil {
			continue
		}
		c.feature(f, r)
		if used[0].add(n); suffix == "connection" {
			connected |= 1 << min(n, 62)
			if _, ok := c.known[Network][f.Value.Text]; !ok && whole && f.Value.Kind == String {
				c.lost(f.Value.Offset, "network", f.Value.Text, c.known[Network])
			}
		}
	}
	for i, prefix := range [...]string{"net_interface", "disk"} {
		if gap, ok := used[i].gap(); ok {
			c.problem(at, fmt.Sprintf("system %s has no %s.%d, but one of a higher number", name, prefix, gap), "they are numbered from 0 on")
		}
	}
	for n := range used[0].all() {
		if connected&(1<<min(n, 62)) == 0 {
			c.problem(at, fmt.Sprintf("interface %d of system %s has no connection", n, name), fmt.Sprintf("add net_interface.%d.connection = 'NETWORK'", n))
		}
	}
}
