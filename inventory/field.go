package inventory

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"croft/capacity"
	"croft/urn"
)

// A kind is one way in which values are written: it reads them, and it
// describes itself as JSON Schema, so that the loader and the schema that
// editors use cannot disagree.
type kind[T any] struct {
	schema func() schema
	read   func(p *problems, v value, path string) (T, bool)
}

// schema is a JSON Schema in the making.
type schema = map[string]any

// field is a value that was read, with its place.
type field[T any] struct {
	value T
	given bool // it stands in the file, right or wrong
	valid bool // it was understood
	at    position
	path  string
}

// or returns f, or g if f was not given.
func (f field[T]) or(g field[T]) field[T] {
	if f.given {
		return f
	}
	return g
}

// member is one field of an object D of the file.
type member[D any] struct {
	name     string
	title    string
	about    string
	required bool
	schema   func() schema
	read     func(p *problems, d *D, v value, path string)
}

// has makes a member: its name, its kind, where it goes, and what editors say
// about it.
func has[D, T any](name string, k kind[T], in func(*D) *field[T], title, about string) member[D] {
	return member[D]{
		name: name, title: title, about: about, schema: k.schema,
		read: func(p *problems, d *D, v value, path string) {
			f := in(d)
			f.given, f.at, f.path = true, v.at, path
			f.value, f.valid = k.read(p, v, path)
		},
	}
}

// must makes a member that has to be given.
func must[D any](m member[D]) member[D] {
	m.required = true
	return m
}

// inside makes the members of E members of D, which holds an E.
func inside[D, E any](members []member[E], in func(*D) *E) []member[D] {
	outer := make([]member[D], len(members))
	for i, m := range members {
		outer[i] = member[D]{
			name: m.name, title: m.title, about: m.about, required: m.required, schema: m.schema,
			read: func(p *problems, d *D, v value, path string) { m.read(p, in(d), v, path) },
		}
	}
	return outer
}

// placed is an object of the file, with its place.
type placed[D any] struct {
	it   D
	at   position
	path string
}

// object is the kind of mappings with the given members and no others.
func object[D any](what string, members []member[D]) kind[placed[D]] {
	return kind[placed[D]]{
		schema: func() schema {
			properties, required := schema{}, []any{}
			for _, m := range members {
				s := maps.Clone(m.schema())
				s["title"] = m.title
				s["description"] = m.about
				properties[m.name] = s
				if m.required {
					required = append(required, m.name)
				}
			}
			s := schema{"type": "object", "properties": properties, "additionalProperties": false}
			if len(required) > 0 {
				s["required"] = required
			}
			return s
		},
		read: func(p *problems, v value, path string) (placed[D], bool) {
			d := placed[D]{at: v.at, path: path}
			var names []string
			for _, m := range members {
				names = append(names, m.name)
			}
			if v.form != mapping {
				p.add(v.at, path, what+" is a mapping of fields, got "+v.describe(), oneOf(names))
				return d, false
			}
			seen := map[string]bool{}
			for _, e := range v.entries {
				seen[e.key] = true
				i := slices.Index(names, e.key)
				if i < 0 {
					p.add(e.at, join(path, e.key), fmt.Sprintf("%s has no field %q", what, e.key), p.didYouMean(e.key, names, oneOf(names)))
					continue
				}
				members[i].read(p, &d.it, e.value, join(path, e.key))
			}
			for _, m := range members {
				if m.required && !seen[m.name] {
					p.add(v.at, join(path, m.name), what+" has no "+m.name, m.about)
				}
			}
			return d, true
		},
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// listOf is the kind of lists.
func listOf[T any](k kind[T], example string) kind[[]T] {
	return kind[[]T]{
		schema: func() schema { return schema{"type": "array", "items": k.schema()} },
		read: func(p *problems, v value, path string) ([]T, bool) {
			if v.form != list {
				p.add(v.at, path, "want a list, got "+v.describe(), "write "+example)
				return nil, false
			}
			return readItems(p, k, v, path)
		},
	}
}

// oneOrMore is the kind of lists that may be written as their only item.
func oneOrMore[T any](k kind[T]) kind[[]T] {
	return kind[[]T]{
		schema: func() schema {
			return schema{"anyOf": []any{k.schema(), schema{"type": "array", "items": k.schema()}}}
		},
		read: func(p *problems, v value, path string) ([]T, bool) {
			if v.form == list {
				return readItems(p, k, v, path)
			}
			t, ok := k.read(p, v, path)
			if !ok {
				return nil, false
			}
			return []T{t}, true
		},
	}
}

// readItems reads all items, also after a wrong one, so that all are reported.
func readItems[T any](p *problems, k kind[T], v value, path string) ([]T, bool) {
	items, ok := make([]T, 0, len(v.items)), true
	for i, item := range v.items {
		t, valid := k.read(p, item, fmt.Sprintf("%s[%d]", path, i))
		if ok = ok && valid; valid {
			items = append(items, t)
		}
	}
	return items, ok
}

// pairOf is the kind of lists of exactly two.
func pairOf[T any](k kind[T], example string) kind[[]T] {
	return kind[[]T]{
		schema: func() schema {
			return schema{"type": "array", "items": k.schema(), "minItems": 2, "maxItems": 2}
		},
		read: func(p *problems, v value, path string) ([]T, bool) {
			if v.form != list || len(v.items) != 2 {
				p.add(v.at, path, "want a list of two, got "+v.describe(), "write "+example)
				return nil, false
			}
			return readItems(p, k, v, path)
		},
	}
}

// word is a text with its place.
type word struct {
	text string
	at   position
	path string
}

// matching is the kind of texts of some syntax. Numbers are texts too, so that
// `version: 12` needs no quotes.
func matching(syntax *regexp.Regexp, what, hint string) kind[word] {
	return kind[word]{
		schema: func() schema {
			return schema{"type": []any{"string", "number"}, "pattern": syntax.String()}
		},
		read: func(p *problems, v value, path string) (word, bool) {
			if v.form != text && v.form != number {
				p.add(v.at, path, "want "+what+", got "+v.describe(), hint)
				return word{}, false
			}
			if v.form == text && !syntax.MatchString(v.scalar) {
				p.add(v.at, path, "want "+what+", got "+v.describe(), hint)
				return word{}, false
			}
			return word{v.scalar, v.at, path}, true
		},
	}
}

var (
	plain  = matching(plainName, "a name", "letters, digits, dots, dashes and underscores")
	port   = matching(portName, "the name of an interface", "letters, digits and . _ / : + @ -")
	symbol = matching(wordName, "a name without spaces", "no spaces and none of < > \" &")
	label  = matching(labelText, "a short text", "one line without < > and quotes")
	ranges = matching(rangedNames, "a name or a range of names", "such as pc1 or pc[001-160]")
	prose  = matching(regexp.MustCompile(`\S`), "text", "write some text, or leave the field out")
)

// sizeKind is memory or disk.
var sizeKind = kind[capacity.MiB]{
	schema: func() schema {
		return schema{"type": "string", "pattern": sizePattern, "examples": []any{"8 GiB", "512MiB", "2 TB"}}
	},
	read: func(p *problems, v value, path string) (capacity.MiB, bool) {
		const want = "want a size such as 8 GiB, got "
		switch v.form {
		case number:
			p.add(v.at, path, want+v.scalar+" without a unit", fmt.Sprintf("write %[1]s MiB or %[1]s GiB", v.scalar))
		case text:
			if size, ok := parseSize(v.scalar); ok {
				if size > 0 {
					return size, true
				}
				p.add(v.at, path, want+v.describe()+", less than a MiB", "leave the field out if there is none")
				return 0, false
			}
			p.add(v.at, path, want+v.describe(), "a number and one of MiB, GiB, TiB (powers of 1024), MB, GB, TB (powers of 1000)")
		default:
			p.add(v.at, path, want+v.describe(), "")
		}
		return 0, false
	},
}

// rateKind is the speed of an interface or the capacity of a trunk.
var rateKind = kind[capacity.Kbps]{
	schema: func() schema {
		return schema{"type": "string", "pattern": ratePattern, "examples": []any{"1 Gbps", "100Mbps"}}
	},
	read: func(p *problems, v value, path string) (capacity.Kbps, bool) {
		const want = "want a rate such as 1 Gbps, got "
		switch v.form {
		case number:
			p.add(v.at, path, want+v.scalar+" without a unit", fmt.Sprintf("write %[1]s Mbps or %[1]s Gbps", v.scalar))
		case text:
			if rate, ok := parseRate(v.scalar); ok && rate > 0 {
				return rate, true
			}
			p.add(v.at, path, want+v.describe(), "a number and one of kbps, Mbps, Gbps, Tbps")
		default:
			p.add(v.at, path, want+v.describe(), "")
		}
		return 0, false
	},
}

// plainNumber is what numbers look like: no hexadecimal, no exponent.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// numberBetween is the kind of numbers within bounds.
func numberBetween(least, most float64, whole bool, what string) kind[float64] {
	return kind[float64]{
		schema: func() schema {
			s := schema{"type": "number", "minimum": least, "maximum": most}
			if whole {
				s["type"] = "integer"
			}
			return s
		},
		read: func(p *problems, v value, path string) (float64, bool) {
			hint := fmt.Sprintf("from %s to %s", strconv.FormatFloat(least, 'f', -1, 64), strconv.FormatFloat(most, 'f', -1, 64))
			if v.form != number || !plainNumber.MatchString(v.scalar) {
				if v.form == text && plainNumber.MatchString(v.scalar) {
					hint = "write it without quotes"
				}
				p.add(v.at, path, "want "+what+", got "+v.describe(), hint)
				return 0, false
			}
			n, err := strconv.ParseFloat(v.scalar, 64)
			if err != nil || n < least || n > most || (whole && n != float64(int64(n))) {
				p.add(v.at, path, "want "+what+", got "+v.describe(), hint)
				return 0, false
			}
			return n, true
		},
	}
}

// truth is yes or no.
var truth = kind[bool]{
	schema: func() schema { return schema{"type": "boolean"} },
	read: func(p *problems, v value, path string) (bool, bool) {
		if v.form != boolean {
			p.add(v.at, path, "want true or false, got "+v.describe(), "")
			return false, false
		}
		return strings.EqualFold(v.scalar, "true"), true
	},
}

// urnPattern is what publicid URNs look like to an editor; urn.Parse has the
// last word.
var urnPattern = regexp.MustCompile(`^[uU][rR][nN]:[pP][uU][bB][lL][iI][cC][iI][dD]:[iI][dD][nN]\+[^+\s<>"]+\+[^+\s<>"]+\+[^\s<>"]+$`)

// identifier is the kind of URNs.
var identifier = kind[urn.URN]{
	schema: func() schema { return schema{"type": "string", "pattern": urnPattern.String()} },
	read: func(p *problems, v value, path string) (urn.URN, bool) {
		if v.form == text && urnPattern.MatchString(v.scalar) {
			if u, err := urn.Parse(v.scalar); err == nil {
				return u, true
			}
		}
		p.add(v.at, path, "want a URN, got "+v.describe(), "urn:publicid:IDN+AUTHORITY+TYPE+NAME")
		return urn.URN{}, false
	},
}

// facts is the kind of mappings of free names to texts, numbers and truth
// values.
var facts = kind[map[string]string]{
	schema: func() schema {
		return schema{
			"type":                 "object",
			"propertyNames":        schema{"pattern": wordPattern},
			"additionalProperties": schema{"type": []any{"string", "number", "boolean"}},
		}
	},
	read: func(p *problems, v value, path string) (map[string]string, bool) {
		if v.form != mapping {
			p.add(v.at, path, "want a mapping of names to values, got "+v.describe(), "such as {gpus: 2}")
			return nil, false
		}
		all, ok := map[string]string{}, true
		for _, e := range v.entries {
			switch {
			case !wordName.MatchString(e.key):
				p.add(e.at, join(path, e.key), fmt.Sprintf("%q is no name of a property", e.key), "no spaces and none of < > \" &")
				ok = false
			case e.value.form != text && e.value.form != number && e.value.form != boolean:
				p.add(e.value.at, join(path, e.key), "want a text, a number or a truth value, got "+e.value.describe(), "")
				ok = false
			default:
				all[e.key] = e.value.scalar
			}
		}
		return all, ok
	},
}

// countsKind is the kind of mappings of names to whole numbers.
var countsKind = kind[map[string]int]{
	schema: func() schema {
		return schema{
			"type":                 "object",
			"propertyNames":        schema{"pattern": wordPattern},
			"additionalProperties": countKind.schema(),
		}
	},
	read: func(p *problems, v value, path string) (map[string]int, bool) {
		if v.form != mapping {
			p.add(v.at, path, "want a mapping of names to numbers, got "+v.describe(), "such as {namespace: 10}")
			return nil, false
		}
		all, ok := map[string]int{}, true
		for _, e := range v.entries {
			n, valid := countKind.read(p, e.value, join(path, e.key))
			if ok = ok && valid; valid {
				all[e.key] = int(n)
			}
		}
		return all, ok
	},
}
