package radl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Text writes a document in the text form. It is an error if the document, one
// that was JSON, holds what the text form cannot.
func (d *Document) Text() ([]byte, error) {
	var b bytes.Buffer
	// The parser of others takes a description only before all else.
	for _, first := range []bool{true, false} {
		for _, item := range d.Items {
			a, ok := item.(*Aspect)
			if first != (ok && a.Class == Description) {
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			if err := writeItem(&b, item); err != nil {
				return nil, err
			}
		}
	}
	return b.Bytes(), nil
}

func writeItem(b *bytes.Buffer, item Item) error {
	switch item := item.(type) {
	case *Aspect:
		fmt.Fprintf(b, "%s %s", item.Class, item.Name)
		if !item.Reference {
			b.WriteString(" (")
			if err := writeFeatures(b, item.Features, "  "); err != nil {
				return fmt.Errorf("%s %s: %w", item.Class, item.Name, err)
			}
			b.WriteByte(')')
		}
		b.WriteByte('\n')
	case *Configure:
		return writeRecipe(b, item)
	case *Contextualize:
		return writeContextualize(b, item)
	case *Deploy:
		fmt.Fprintf(b, "deploy %s %s", item.System, item.Number.Text)
		if item.Cloud != "" {
			if !isName(item.Cloud) {
				return fmt.Errorf("the text form cannot name the cloud %q", item.Cloud)
			}
			b.WriteString(" " + item.Cloud)
		}
		b.WriteByte('\n')
	}
	return nil
}

func writeRecipe(b *bytes.Buffer, c *Configure) error {
	fmt.Fprintf(b, "configure %s", c.Name)
	switch {
	case c.Reference:
		b.WriteByte('\n')
		return nil
	case c.Empty:
		b.WriteString(" ()\n")
		return nil
	}
	if strings.HasPrefix(c.Recipe, "@end") || strings.Contains(c.Recipe, "\n@end") {
		return fmt.Errorf("the text form cannot hold the recipe %s: it has a line that begins with @end", c.Name)
	}
	b.WriteString(" (\n@begin")
	if !strings.HasPrefix(c.Recipe, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(c.Recipe)
	if !strings.HasSuffix(c.Recipe, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString("@end\n)\n")
	return nil
}

func writeContextualize(b *bytes.Buffer, c *Contextualize) error {
	b.WriteString("contextualize ")
	if c.Limit != nil {
		b.WriteString(c.Limit.Text + " ")
	}
	b.WriteByte('(')
	for i := range c.Options {
		b.WriteString("\n  option ")
		if err := writeFeature(b, &c.Options[i], "  "); err != nil {
			return err
		}
	}
	for _, i := range c.Items {
		fmt.Fprintf(b, "\n  system %s configure %s", i.System, i.Configure)
		if i.Step != nil {
			b.WriteString(" step " + i.Step.Text)
		}
		if i.Tool != "" {
			b.WriteString(" with " + i.Tool)
		}
	}
	if len(c.Options)+len(c.Items) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(")\n")
	return nil
}

func writeFeatures(b *bytes.Buffer, features []Feature, indent string) error {
	for i := range features {
		if i > 0 {
			b.WriteString(" and")
		}
		b.WriteString("\n" + indent)
		if err := writeFeature(b, &features[i], indent); err != nil {
			return err
		}
	}
	if len(features) > 0 {
		b.WriteString("\n" + indent[2:])
	}
	return nil
}

func writeFeature(b *bytes.Buffer, f *Feature, indent string) error {
	if f.Op == Soft {
		b.WriteString("soft " + f.Weight.Text + " (")
		if err := writeFeatures(b, f.Value.Features, indent+"  "); err != nil {
			return err
		}
		b.WriteByte(')')
		return nil
	}
	b.WriteString(f.Name + " " + f.Op.String() + " ")
	switch v := &f.Value; v.Kind {
	case Number:
		b.WriteString(v.Text + v.Unit)
	case String:
		return writeString(b, f.Name, v.Text)
	case Random:
		b.WriteString("'random(" + v.Text + ")'")
	case List:
		b.WriteByte('[')
		for i, s := range v.List {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := writeString(b, f.Name, s); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case Features:
		b.WriteByte('(')
		for i := range v.Features {
			if i > 0 {
				b.WriteString(" and ")
			}
			if err := writeFeature(b, &v.Features[i], indent+"  "); err != nil {
				return err
			}
		}
		b.WriteByte(')')
	}
	return nil
}

// writeString writes a text in quotation marks. As backslashes stand for
// themselves there, one cannot stand alone before a quotation mark.
func writeString(b *bytes.Buffer, name, s string) error {
	quoted := "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
	read := scanner{text: []byte(quoted)}
	if read.next(); (read.token != tString && read.token != tRandom) || read.end != len(quoted) || read.unquote() != s {
		return fmt.Errorf("the text form cannot hold the value of %s: a backslash stands before a quotation mark", name)
	}
	b.WriteString(quoted)
	return nil
}

// JSON writes a document in the JSON form. Amounts lose their units there, as
// all are of bytes, > and < become >= and <=, and what several features say of
// one name is put together.
func (d *Document) JSON() ([]byte, error) {
	list := []any{}
	for _, item := range d.Items {
		switch item := item.(type) {
		case *Aspect:
			o := map[string]any{}
			if item.Reference {
				o["reference"] = true
			} else {
				putFeatures(o, item.Features)
			}
			o["class"], o["id"] = item.Class, item.Name
			list = append(list, o)
		case *Configure:
			o := map[string]any{"class": "configure", "id": item.Name}
			switch {
			case item.Reference:
				o["reference"] = true
			case item.Empty:
				o["recipes"] = nil
			default:
				o["recipes"] = item.Recipe
			}
			list = append(list, o)
		case *Contextualize:
			list = append(list, contextJSON(item))
		case *Deploy:
			o := map[string]any{"class": "deploy", "system": item.System, "vm_number": json.Number(plain(item.Number.Text))}
			if item.Cloud != "" {
				o["cloud"] = item.Cloud
			}
			list = append(list, o)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(list); err != nil {
		return nil, fmt.Errorf("writing RADL as JSON: %w", err)
	}
	return b.Bytes(), nil
}

// plain is a number of the text form as JSON takes it: "1." and "007" are none
// there.
func plain(text string) string {
	text = strings.TrimLeft(text, "0")
	text = strings.TrimSuffix(text, ".")
	if text == "" || text[0] == '.' {
		text = "0" + text
	}
	return text
}

func contextJSON(c *Contextualize) map[string]any {
	o := map[string]any{"class": "contextualize"}
	if c.Limit != nil {
		o["max_time"] = json.Number(plain(c.Limit.Text))
	}
	if len(c.Options) > 0 {
		options := map[string]any{}
		putFeatures(options, c.Options)
		o["options"] = options
	}
	items := []any{}
	for _, i := range c.Items {
		e := map[string]any{"system": i.System, "configure": i.Configure}
		if i.Step != nil {
			e["step"] = json.Number(plain(i.Step.Text))
		}
		if i.Tool != "" {
			e["ctxt_tool"] = i.Tool
		}
		items = append(items, e)
	}
	o["items"] = items
	return o
}

func putFeatures(o map[string]any, features []Feature) {
	numbers := map[string]bounds{}
	add := func(key string, v any) {
		list, _ := o[key].([]any)
		o[key] = append(list, v)
	}
	for i := range features {
		f := &features[i]
		switch v := &f.Value; {
		case f.Op == Soft:
			items := map[string]any{}
			putFeatures(items, v.Features)
			add("softs", map[string]any{"weight": json.Number(plain(f.Weight.Text)), "items": items})
		case v.Kind == Number:
			b, ok := numbers[f.Name]
			if !ok {
				b = unbounded()
			}
			numbers[f.Name], _ = b.within(f)
			putBounds(o, f, numbers[f.Name])
		case v.Kind == List:
			o[f.Name] = v.List
		case v.Kind == Features:
			inner := map[string]any{}
			putFeatures(inner, v.Features)
			add(f.Name, inner)
		default:
			text := v.Text
			if v.Kind == Random {
				text = "random(" + v.Text + ")"
			}
			switch f.Op {
			case Greater, GreaterEqual:
				o[f.Name+"_min"] = text
			case Less, LessEqual:
				o[f.Name+"_max"] = text
			default:
				o[f.Name] = text
			}
		}
	}
}

// putBounds writes an interval, over what was written for the name before.
func putBounds(o map[string]any, f *Feature, b bounds) {
	delete(o, f.Name)
	delete(o, f.Name+"_min")
	delete(o, f.Name+"_max")
	write := func(n float64) json.Number {
		if f.Value.Unit == "" && n == f.Value.Num {
			return json.Number(plain(f.Value.Text))
		}
		return json.Number(decimal(n))
	}
	infinite := func(n float64) bool { return n-n != 0 }
	switch {
	case b.low == b.high:
		o[f.Name] = write(b.low)
	default:
		if !infinite(b.low) {
			o[f.Name+"_min"] = write(b.low)
		}
		if !infinite(b.high) {
			o[f.Name+"_max"] = write(b.high)
		}
	}
}
