package inventory

import "regexp"

var featureTypeMembers = []member[featureTypeDecl]{
	must(has("name", symbol, func(d *featureTypeDecl) *field[word] { return &d.name },
		"Name", "What hosts and requests call it.")),
	must(has("costs", costsName, func(d *featureTypeDecl) *field[word] { return &d.costs },
		"Costs", "first: the first node that uses it without asking costs its weight, more are free; further: one is free, every further one costs.")),
}

var featureMembers = []member[featureDecl]{
	must(has("name", symbol, func(d *featureDecl) *field[word] { return &d.name },
		"Name", "What requests call it.")),
	has("weight", numberBetween(0, 1000, false, "a weight"), func(d *featureDecl) *field[float64] { return &d.weight },
		"Weight", "What it costs to place a node here that does not ask for it; from 1 on, it is not done."),
	has("amount", numberBetween(0.001, 1e9, false, "an amount"), func(d *featureDecl) *field[float64] { return &d.amount },
		"Amount", "How much there is to give."),
}

// featureKind is a feature written as its name or with more about it.
var featureKind = kind[featureDecl]{
	schema: func() schema {
		return schema{"anyOf": []any{symbol.schema(), object("a feature of a host", featureMembers).schema()}}
	},
	read: func(p *problems, v value, path string) (featureDecl, bool) {
		if v.form == mapping {
			d, ok := object("a feature of a host", featureMembers).read(p, v, path)
			return d.it, ok
		}
		name, ok := symbol.read(p, v, path)
		return featureDecl{name: field[word]{value: name, given: true, valid: ok, at: v.at, path: path}}, ok
	},
}

var policyMembers = []member[policyDecl]{
	has("sliver_type", symbol, func(d *policyDecl) *field[word] { return &d.sliverType },
		"Sliver type", "Nodes of this type."),
	has("hardware_type", label, func(d *policyDecl) *field[word] { return &d.hardwareType },
		"Hardware type", "Nodes on hosts of this type."),
	has("feature", symbol, func(d *policyDecl) *field[word] { return &d.feature },
		"Feature", "Nodes that want this feature."),
	must(has("most", numberBetween(0, 100_000, true, "a whole number"), func(d *policyDecl) *field[float64] { return &d.most },
		"Most", "How many of them a slice may have; 0 for none.")),
	has("authorities", oneOrMore(authorityName), func(d *policyDecl) *field[[]word] { return &d.authorities },
		"Authorities", "Of whose slices this holds. Left out: of all."),
}

var costsName = matching(regexp.MustCompile(`^(first|further)$`), "first or further", "")
