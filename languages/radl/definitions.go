package radl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"croft/languages"
	"croft/request"
)

// definitions are what the names of a document stand for: what it defines
// itself, and what earlier documents of the slice have defined.
type definitions struct {
	aspects  map[Class]map[string]*Aspect
	recipes  map[string]*Configure
	earlier  map[any]bool    // definitions that are not of this document
	before   map[string]bool // networks that earlier documents define
	items    []ContextItem
	itemOf   map[[2]string]int // where in items
	limit    float64           // in seconds; 0 for none
	disabled bool              // contextualize (): nothing is configured
	listed   bool              // there is a contextualize
}

// define reads what a document and those before it define. References have to
// lead to a definition.
func (c *compiler) define(earlier []*Document) {
	d := &definitions{
		aspects: map[Class]map[string]*Aspect{}, recipes: map[string]*Configure{},
		before: map[string]bool{}, earlier: map[any]bool{}, itemOf: map[[2]string]int{},
	}
	for _, class := range []Class{Network, System, Ansible, Description} {
		d.aspects[class] = map[string]*Aspect{}
	}
	c.definitions = d
	for i, document := range append(slices.Clone(earlier), c.document) {
		for _, item := range document.Items {
			switch item := item.(type) {
			case *Aspect:
				if !item.Reference {
					d.aspects[item.Class][item.Name] = item
					d.earlier[item] = i < len(earlier)
					if item.Class == Network && i < len(earlier) {
						d.before[item.Name] = true
					}
				}
			case *Configure:
				if !item.Reference {
					d.recipes[item.Name] = item
					d.earlier[item] = i < len(earlier)
				}
			case *Contextualize:
				c.merge(item)
			}
		}
	}
	for _, item := range c.document.Items {
		switch item := item.(type) {
		case *Aspect:
			if item.Reference && d.aspects[item.Class][item.Name] == nil && item.Class != Description {
				c.undefined(item.Offset, string(item.Class), item.Name, slices.Sorted(maps.Keys(d.aspects[item.Class])))
			}
		case *Configure:
			if item.Reference && d.recipes[item.Name] == nil {
				c.undefined(item.Offset, "configure", item.Name, slices.Sorted(maps.Keys(d.recipes)))
			}
		}
	}
}

func (c *compiler) undefined(at int, class, name string, known []string) {
	hint := fmt.Sprintf("define it: %s %s (…)", class, name)
	if len(known) > 0 {
		hint += "; defined are " + strings.Join(known[:min(len(known), 8)], ", ")
	}
	c.refuse(at, fmt.Sprintf("%s %s is only referred to, and no earlier document of the slice defines it", class, name), hint)
}

// merge adds a contextualize to those before it. The last line about a system
// and a recipe counts.
func (c *compiler) merge(x *Contextualize) {
	d := c.definitions
	d.listed = true
	d.disabled = len(x.Items) == 0 && len(d.items) == 0
	if x.Limit != nil {
		d.limit = max(d.limit, x.Limit.Num)
	}
	for _, item := range x.Items {
		key := [2]string{item.System, item.Configure}
		if i, ok := d.itemOf[key]; ok {
			d.items[i] = item
			continue
		}
		d.itemOf[key] = len(d.items)
		d.items = append(d.items, item)
	}
}

// place is where something of the document stands; what an earlier document
// said has only a path.
func (c *compiler) place(of any, at int, path string) request.Place {
	if c.definitions.earlier[of] {
		return request.Place{Path: path}
	}
	p := c.source.Place(at)
	p.Path = path
	return p
}

// readEarlier reads the documents of this language that the slice has already.
func readEarlier(documents []languages.Document) []*Document {
	var list []*Document
	for _, e := range documents {
		if e.MediaType != MediaType {
			continue
		}
		// It was right when it came.
		d, _, _ := parse(e.Bytes, e.Inputs)
		if d != nil {
			list = append(list, d)
		}
	}
	return list
}
