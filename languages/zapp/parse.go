package zapp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"

	"croft/capacity"
	"croft/inventory"
	"croft/languages"
)

// maxNodes bounds what a ZApp may ask for.
const maxNodes = 5000

// Parse reads a ZApp and checks it. Errors are *languages.Error with all that
// is wrong, or *languages.UnknownVersion; warnings are about fields that
// nobody knows.
func Parse(document []byte) (*App, []languages.Problem, error) {
	document = bytes.TrimPrefix(document, []byte("\ufeff"))
	root, err := read(document)
	if err != nil {
		return nil, nil, err
	}
	p := &parser{text: document}
	top, ok := root.is.(*object)
	if !ok {
		p.wrong(root, "a ZApp is an object, this is "+root.kind(), "")
		return nil, nil, &languages.Error{Problems: p.problems}
	}
	a := &App{Autorestart: true, place: place(document, root.offset, "")}
	switch version, ok := number(top.fields["version"]); {
	case top.fields["version"] == nil:
		p.wrong(root, `the ZApp does not say its version`, `write "version": 3`)
		return nil, nil, &languages.Error{Problems: p.problems}
	case !ok || version != 2 && version != 3:
		return nil, nil, &languages.UnknownVersion{Found: fmt.Sprintf("a ZApp of version %v", top.fields["version"].text()), Offered: Language{}.Versions()}
	default:
		a.Version = int(version)
	}
	p.v3 = a.Version == 3
	p.top(a, root, top)
	if len(p.problems) > 0 {
		return nil, nil, &languages.Error{Problems: p.problems}
	}
	return a, p.warnings, nil
}

// parser turns values into an App and notes what is wrong.
type parser struct {
	text     []byte
	v3       bool
	problems []languages.Problem
	warnings []languages.Problem
}

func (p *parser) wrong(v *value, what, hint string) {
	p.problems = append(p.problems, languages.Problem{Place: place(p.text, v.offset, v.pointer), What: what, Hint: hint})
}

func (p *parser) warn(v *value, what, hint string) {
	p.warnings = append(p.warnings, languages.Problem{Place: place(p.text, v.offset, v.pointer), What: what, Hint: hint})
}

// fields reads the fields of an object: what is not known is wrong in version
// 3, and kept in version 2.
type fields struct {
	p     *parser
	at    *value
	o     *object
	known []string
}

func (p *parser) object(v *value) (*fields, bool) {
	o, ok := v.is.(*object)
	if !ok {
		p.wrong(v, "this is "+v.kind()+", an object is wanted", "")
	}
	return &fields{p: p, at: v, o: o}, ok
}

// get returns a field, nil if it is missing; that is wrong where it is needed.
func (f *fields) get(name string, needed bool) *value {
	f.known = append(f.known, name)
	v := f.o.fields[name]
	if v == nil && needed {
		f.p.wrong(f.at, fmt.Sprintf("the field %q is missing", name), "")
	}
	return v
}

func (f *fields) string(name string, needed bool) string {
	v := f.get(name, needed)
	if v == nil {
		return ""
	}
	s, ok := v.is.(string)
	if !ok {
		f.p.wrong(v, fmt.Sprintf("%q is %s, a string is wanted", name, v.kind()), "")
	}
	return s
}

func (f *fields) bool(name string, needed bool) bool {
	v := f.get(name, needed)
	if v == nil {
		return false
	}
	b, ok := v.is.(bool)
	if !ok {
		f.p.wrong(v, fmt.Sprintf("%q is %s, true or false is wanted", name, v.kind()), "")
	}
	return b
}

// number reads a number from least to most; whole ones only, if so.
func (f *fields) number(name string, needed, whole bool, least, most, otherwise float64) float64 {
	v := f.get(name, needed)
	if v == nil {
		return otherwise
	}
	x, ok := number(v)
	switch {
	case !ok:
		f.p.wrong(v, fmt.Sprintf("%q is %s, a number is wanted", name, v.kind()), "")
		return otherwise
	case whole && x != math.Trunc(x):
		f.p.wrong(v, fmt.Sprintf("%q is %s, a whole number is wanted", name, v.text()), "")
		return otherwise
	case x < least || x > most:
		f.p.wrong(v, fmt.Sprintf("%q is %s", name, v.text()), fmt.Sprintf("it may be from %g to %g", least, most))
		return otherwise
	}
	return x
}

func (f *fields) list(name string, needed bool) []*value {
	v := f.get(name, needed)
	if v == nil {
		return nil
	}
	list, ok := v.is.([]*value)
	if !ok {
		f.p.wrong(v, fmt.Sprintf("%q is %s, an array is wanted", name, v.kind()), "")
	}
	return list
}

// rest deals with the fields that nobody asked for.
func (f *fields) rest() {
	known := map[string]bool{}
	for _, name := range f.known {
		known[name] = true
	}
	for _, name := range f.o.keys {
		if known[name] {
			continue
		}
		hint := ""
		if near := inventory.Nearest(name, f.known); len(near) > 0 {
			hint = "did you mean " + near[0] + "?"
		}
		if v := f.o.fields[name]; f.p.v3 {
			f.p.wrong(v, fmt.Sprintf("there is no field %q", name), hint)
		} else {
			f.p.warn(v, fmt.Sprintf("the field %q is kept, but nobody knows it", name), hint)
		}
	}
}

func number(v *value) (float64, bool) {
	if v == nil {
		return 0, false
	}
	n, ok := v.is.(json.Number)
	if !ok {
		return 0, false
	}
	x, err := n.Float64()
	return x, err == nil
}

func (v *value) text() string {
	switch x := v.is.(type) {
	case json.Number:
		return x.String()
	case string:
		return fmt.Sprintf("%q", x)
	}
	return v.kind()
}

var (
	name3   = regexp.MustCompile(`^[@a-zA-Z0-9-]*$`)
	service = regexp.MustCompile(`^[a-zA-Z0-9-]+$`)
)

const huge = 1 << 53

func (p *parser) top(a *App, root *value, top *object) {
	f := &fields{p: p, at: root, o: top, known: []string{"version"}}
	a.Name = f.string("name", true)
	a.WillEnd = f.bool("will_end", true)
	if p.v3 {
		if n := len(a.Name); top.fields["name"] != nil && (n < 3 || n > 128 || !name3.MatchString(a.Name)) {
			p.wrong(top.fields["name"], fmt.Sprintf("the name %q does not fit", a.Name), "3 to 128 letters, digits, - and @")
		}
		a.Size = int64(f.number("size", true, true, 0, huge, 0))
	} else {
		// The document says "less than 1024", Zoe takes 1024, too.
		a.Size = int64(f.number("priority", false, false, 0, 1024, 512))
		f.bool("requires_binary", false)
		// The document asks for both and says that they are unused; many real
		// ZApps leave them out.
		for _, name := range []string{"priority", "requires_binary"} {
			if top.fields[name] == nil {
				p.warn(root, fmt.Sprintf("the field %q is missing", name), "it has no effect here")
			}
		}
		a.Autorestart = !f.bool("disable_autorestart", false)
	}
	list := f.list("services", true)
	if v := top.fields["services"]; v != nil && len(list) == 0 {
		p.wrong(v, "the ZApp has no services", "")
	}
	names, total, monitors := map[string]bool{}, 0, 0
	for _, v := range list {
		s := p.service(v)
		if s == nil {
			continue
		}
		if names[s.Name] {
			p.wrong(v, fmt.Sprintf("there are two services %q", s.Name), "")
		}
		names[s.Name] = true
		if s.Monitor {
			monitors++
		}
		total += s.Total
		a.Services = append(a.Services, *s)
	}
	if total > maxNodes {
		p.wrong(top.fields["services"], fmt.Sprintf("the services come to %d nodes", total), fmt.Sprintf("at most %d", maxNodes))
	}
	if len(a.Services) > 0 && len(a.Services) == len(list) && monitors == 0 {
		p.wrong(top.fields["services"], "no service is a monitor", `one at least has "monitor": true: its end is that of the execution`)
	}
	f.rest()
}

func (p *parser) service(v *value) *Service {
	f, ok := p.object(v)
	if !ok {
		return nil
	}
	s := &Service{place: place(p.text, v.offset, v.pointer), imagePlace: place(p.text, v.offset, v.pointer)}
	s.Name = f.string("name", true)
	if at := f.o.fields["name"]; at != nil {
		if _, isString := at.is.(string); isString {
			if !service.MatchString(s.Name) {
				p.wrong(at, fmt.Sprintf("the name %q does not fit", s.Name), "letters, digits and -")
			} else if n := len(s.Name); p.v3 && (n < 3 || n > 16) {
				p.wrong(at, fmt.Sprintf("the name %q has %d characters", s.Name, n), "3 to 16")
			}
		}
	}
	image := "docker_image"
	if p.v3 {
		image = "image"
	}
	s.Image = f.string(image, true)
	if at := f.o.fields[image]; at != nil {
		s.imagePlace = place(p.text, at.offset, at.pointer)
		if text, isString := at.is.(string); isString && strings.TrimSpace(text) == "" {
			p.wrong(at, "the image has no name", "")
		}
	}
	s.Monitor = f.bool("monitor", true)
	least := 0.0
	if p.v3 {
		least = 1
	}
	s.Total = int(f.number("total_count", true, true, 1, huge, 1))
	s.Essential = int(f.number("essential_count", true, true, least, huge, 0))
	if s.Essential > s.Total {
		p.wrong(f.o.fields["essential_count"], fmt.Sprintf("%d of the service are essential, but there are only %d", s.Essential, s.Total), "essential_count is at most total_count")
	}
	s.Order = f.number("startup_order", true, p.v3, -huge, huge, 0)
	if f.get("replicas", false) != nil {
		f.number("replicas", false, true, 1, huge, 1)
	}
	p.environment(s, p.unlike(f.list("environment", p.v3)))
	for _, at := range p.unlike(f.list("ports", true)) {
		if port, ok := p.port(at); ok {
			s.Ports = append(s.Ports, port)
		}
	}
	p.volumes(p.unlike(f.list("volumes", p.v3)))
	if c := f.get("command", p.v3); c != nil && c.is != nil {
		s.Command = f.string("command", false)
		if text, isString := c.is.(string); isString && p.v3 && text == "" {
			p.wrong(c, "the command is empty", "null is the command of the image")
		}
	}
	if p.v3 {
		s.WorkDir = f.string("work_dir", false)
		for _, at := range p.unlike(f.list("labels", false)) {
			if label, ok := at.is.(string); ok {
				s.Labels = append(s.Labels, label)
			} else {
				p.wrong(at, "a label is a string, this is "+at.kind(), "")
			}
		}
		if at := f.get("network", false); at != nil {
			p.wrong(at, "networks of Docker cannot be asked for by name here", "leave it out: all services are joined by a network of their own")
		}
	} else {
		for _, at := range f.list("networks", false) {
			p.wrong(at, "networks of Docker cannot be asked for by name here", "leave it out: all services are joined by a network of their own")
		}
	}
	p.resources(s, f)
	f.rest()
	return s
}

// unlike refuses items that are equal, as the JSON schema of version 3 does.
func (p *parser) unlike(list []*value) []*value {
	if !p.v3 {
		return list
	}
	seen := map[string]bool{}
	for _, v := range list {
		text := v.canonical()
		if seen[text] {
			p.wrong(v, "it is there twice", "leave one out")
		}
		seen[text] = true
	}
	return list
}

// resources are a number of bytes and cores in version 2, and intervals in
// version 3, of which the minimum is what is reserved.
func (p *parser) resources(s *Service, f *fields) {
	name := "required_resources"
	if p.v3 {
		name = "resources"
	}
	v := f.get(name, true)
	if v == nil {
		return
	}
	r, ok := p.object(v)
	if !ok {
		return
	}
	var memory, cores float64
	if !p.v3 {
		memory = r.number("memory", true, true, 0, huge, 0)
		cores = r.number("cores", false, false, 0, 1e6, 0)
	} else {
		memory = p.interval(r, "memory", 1024, true)
		cores = p.interval(r, "cores", 0.001, false)
		if r.get("shm", false) != nil {
			r.number("shm", false, true, 0, huge, 0)
		}
	}
	s.Memory = capacity.MiB(math.Ceil(memory / (1 << 20)))
	s.Cores = capacity.Cores(math.Ceil(cores * float64(capacity.Core)))
	r.rest()
}

// interval is the minimum of a resource, or its maximum if it has no minimum.
func (p *parser) interval(r *fields, name string, least float64, whole bool) float64 {
	v := r.get(name, true)
	if v == nil {
		return 0
	}
	f, ok := p.object(v)
	if !ok {
		return 0
	}
	bound := func(name string, least float64) (float64, bool) {
		at := f.get(name, true)
		if at == nil || at.is == nil {
			return 0, false
		}
		before := len(p.problems)
		x := f.number(name, true, whole, least, huge, 0)
		return x, len(p.problems) == before
	}
	lo, hasLo := bound("min", least)
	hi, hasHi := bound("max", 0)
	f.rest()
	if hasLo && hasHi && hi < lo {
		p.wrong(f.o.fields["max"], fmt.Sprintf("the maximum of %s is less than the minimum", name), "")
	}
	if hasLo {
		return lo
	}
	return hi
}

func (p *parser) environment(s *Service, list []*value) {
	for _, v := range list {
		pair, ok := v.is.([]*value)
		if !ok || len(pair) != 2 {
			p.wrong(v, "an entry of the environment is an array of a name and a value", `["NAME", "value"]`)
			continue
		}
		name, isName := pair[0].is.(string)
		text, isText := pair[1].is.(string)
		switch {
		case !isName || name == "" || strings.ContainsAny(name, "=\x00"):
			p.wrong(pair[0], "this is no name of a variable", "")
		case !isText || strings.ContainsRune(text, 0):
			p.wrong(pair[1], fmt.Sprintf("the value of %s is %s, a string is wanted", name, pair[1].kind()), "")
		default:
			s.Environment = append(s.Environment, Variable{name, text, place(p.text, pair[1].offset, pair[1].pointer)})
		}
	}
}

func (p *parser) port(v *value) (Port, bool) {
	f, ok := p.object(v)
	if !ok {
		return Port{}, false
	}
	t := Port{Protocol: "tcp", place: place(p.text, v.offset, v.pointer)}
	t.Name = f.string("name", true)
	t.Number = int(f.number("port_number", true, true, 1, 65535, 0))
	protocol := f.string("protocol", true)
	if p.v3 {
		if t.Protocol = protocol; protocol != "tcp" && protocol != "udp" && f.o.fields["protocol"] != nil {
			p.wrong(f.o.fields["protocol"], fmt.Sprintf("the protocol is %q", protocol), "tcp or udp")
		}
		// proxy_path is where Zoe's own proxy would show the port; here it is
		// reached as it is.
		t.URL = strings.NewReplacer("{ip_port}", "{host}:{port}", "HOST:PORT", "{host}:{port}", "{proxy_path}", "/").Replace(f.string("url_template", true))
		f.bool("proxy", false)
		if len(t.Name) < 3 && f.o.fields["name"] != nil {
			p.wrong(f.o.fields["name"], "the name of a port has 3 characters at least", "")
		}
	} else {
		path := f.string("path", false)
		if path != "" && !strings.HasPrefix(path, "/") {
			p.wrong(f.o.fields["path"], fmt.Sprintf("the path %q does not begin with /", path), "")
		}
		if protocol == "udp" {
			t.Protocol = "udp"
		}
		t.URL = protocol + "://{host}:{port}" + path
		t.Main = f.bool("is_main_endpoint", true)
		f.bool("expose", false)
	}
	f.rest()
	return t, true
}

// volumes are paths of the host in version 2: what runs here sees nothing of
// the host. Those of version 3 have names, and none are known here.
func (p *parser) volumes(list []*value) {
	for _, v := range list {
		if !p.v3 {
			p.wrong(v, "volumes of the host are not given to nodes", "leave it out, or copy the data into the node")
			continue
		}
		f, ok := p.object(v)
		if !ok {
			continue
		}
		name := f.string("name", true)
		f.string("path", true)
		f.bool("read_only", false)
		p.warn(v, fmt.Sprintf("the volume %q is kept, but there is none: the path is a part of the node's own disk", name), "")
	}
}
