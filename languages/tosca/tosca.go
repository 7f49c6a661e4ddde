package tosca

import (
	"context"

	"croft/languages"
	"croft/languages/archive"
	"croft/languages/playbook"
	"croft/languages/tosca/csar"
	"croft/languages/tosca/model"
	"croft/languages/tosca/values"
	"croft/request"
)

// MediaType is what stored originals are labelled with: a TOSCA file, or an
// archive as base64 text.
const MediaType = "application/tosca"

// Type is the type of the versions.
const Type = "TOSCA"

// Language reads TOSCA. The zero Language is ready for use.
type Language struct {
	// Playbooks is what becomes of operations that are Ansible playbooks.
	Playbooks playbook.Policy
}

var _ languages.Projector = Language{}

// Versions lists the versions of TOSCA that are read.
func (Language) Versions() []languages.Version {
	var list []languages.Version
	for _, v := range []string{"2.0", "1.3", "1.2", "1.1", "1.0"} {
		list = append(list, languages.Version{Type: Type, Version: v})
	}
	return list
}

// MediaType labels stored originals.
func (Language) MediaType() string { return MediaType }

var versionKey = csar.VersionKey

// Detect reports whether a document is a TOSCA file, or an archive with one.
// An archive that cannot be read is taken for one, so that its author is told
// why.
func (Language) Detect(document []byte) bool {
	if data, ok := decoded(document); ok {
		document = data
	}
	if archive.Is(document) {
		return csar.Detect(document)
	}
	return versionKey.Match(document[:min(len(document), 1<<20)])
}

var versionNames = map[string]string{
	"tosca_2_0": "2.0", "tosca_simple_yaml_1_3": "1.3", "tosca_simple_yaml_1_2": "1.2", "tosca_simple_yaml_1_1": "1.1", "tosca_simple_yaml_1_0": "1.0",
}

// Compile makes a request of a service template.
func (l Language) Compile(ctx context.Context, document []byte, scope languages.Scope) (*languages.Compiled, error) {
	d, version, problems, err := l.deploy(ctx, document, scope, nil)
	if err != nil {
		return nil, err
	}
	compiled := &languages.Compiled{Version: version, Request: &d.request}
	for _, p := range problems {
		compiled.Warnings = append(compiled.Warnings, d.problem(p))
	}
	return compiled, nil
}

// Outputs tells the outputs of a service template from how what it asked for
// went. Those that are not known yet are left out.
func (l Language) Outputs(ctx context.Context, document []byte, scope languages.Scope, run languages.Run) (map[string]any, error) {
	d, _, _, err := l.deploy(ctx, document, scope, func(p values.Piece) (string, bool) {
		switch ref := p.Ref.(type) {
		case request.Attribute:
			return run.Attribute(ref)
		case request.Output:
			return run.Output(ref)
		}
		return p.String, true
	})
	if err != nil {
		return nil, err
	}
	outputs := map[string]any{}
	s := d.parts[0].service
	for _, name := range s.Outputs.Names {
		if v := s.Output(name); values.Known(v) && v != nil {
			outputs[name] = values.Plain(v)
		}
	}
	return outputs, nil
}

// deploy reads a document and makes its request. With resolve, references to
// what is known at run time are put in where they stand.
func (l Language) deploy(ctx context.Context, document []byte, scope languages.Scope, resolve func(values.Piece) (string, bool)) (*deployment, languages.Version, []model.Problem, error) {
	none := languages.Version{}
	fail := func(list ...languages.Problem) (*deployment, languages.Version, []model.Problem, error) {
		return nil, none, nil, &languages.Error{Problems: list}
	}
	if err := ctx.Err(); err != nil {
		return nil, none, nil, err
	}
	source, err := Open(document)
	if err != nil {
		return fail(languages.Problem{Place: request.Place{Path: "archive"}, What: err.Error()})
	}
	result, err := source.Check(ctx, scope.Inputs, true)
	if err != nil {
		return nil, none, nil, err
	}
	if unknown := unknownVersion(result.Unit); unknown != "" {
		return nil, none, nil, &languages.UnknownVersion{Found: unknown, Offered: l.Versions()}
	}
	d := &deployment{ctx: ctx, playbooks: l.Playbooks, source: source, scope: scope, templates: result.Templates}
	if !result.Valid() {
		return fail(d.mistakes(result.Problems)...)
	}
	if result.Service == nil {
		return fail(languages.Problem{Place: request.Place{Line: 1}, What: "the file has no service template", Hint: "it only defines types"})
	}
	d.plan(result.Service)
	if mistakes := d.mistakes(result.Service.Problems()); len(mistakes) == 0 {
		for _, i := range d.instances {
			if i.role == computer && !i.exists {
				d.node(i)
			}
		}
		for _, i := range d.instances {
			for _, c := range i.node.Capabilities.Names {
				if e, _ := i.node.Capabilities.Get(c); i.role == software {
					d.ports(i, e)
				}
			}
		}
		d.storage()
		d.links()
		d.steps()
		d.groups()
		for _, i := range d.instances {
			if i.role == computer && i.request != nil && !i.exists {
				d.request.Nodes = append(d.request.Nodes, *i.request)
			}
		}
	}
	// What is computed at run time may be wrong in outputs only now.
	d.resolve = resolve
	if resolve != nil {
		for _, p := range d.parts {
			p.service.SetRuntime(&runtime{d, p})
		}
	}
	var problems []model.Problem
	for _, p := range d.parts {
		problems = append(problems, p.service.Problems()...)
	}
	if mistakes := d.mistakes(problems); len(mistakes) > 0 {
		return fail(mistakes...)
	}
	version := languages.Version{Type: Type, Version: versionNames[result.Unit.Version]}
	return d, version, problems, nil
}

// unknownVersion is the version that a file claims to be of, if it is read by
// nobody here.
func unknownVersion(u *model.Unit) string {
	if u == nil {
		return ""
	}
	v := u.Root.Get("tosca_definitions_version")
	if v == nil || v.Text == "" || versionNames[v.Text] != "" {
		return ""
	}
	return Type + " " + v.Text
}

func (d *deployment) problem(p model.Problem) languages.Problem {
	at := request.Place{Line: p.Line, Column: p.Column, Path: p.Path}
	if p.File != "" && p.File != d.source.Entry {
		at.Path = p.File + ": " + p.Path
	}
	if at.Line == 0 && at.Path == "" {
		at.Path = p.File
	}
	if at.Line == 0 && at.Path == "" {
		at.Path = "service_template"
	}
	return languages.Problem{Place: at, What: p.What, Hint: p.Hint}
}

func (d *deployment) mistakes(list []model.Problem) []languages.Problem {
	var made []languages.Problem
	for _, p := range list {
		if !p.Warning || p.Unfulfilled || p.Unresolvable {
			made = append(made, d.problem(p))
		}
	}
	return made
}
