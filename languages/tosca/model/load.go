// Package model reads TOSCA: files with what they import, the types that they
// define and how these derive from each other, and service templates. It
// follows TOSCA 2.0 csd05, takes what the final 2.0 has more, and of 1.x what
// has a meaning in 2.0. It reads nothing but the Files it is given.
package model

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"croft/languages/tree"
)

// Files are where TOSCA files and what they import are read from: an archive,
// or a folder.
type Files interface {
	// ReadFile returns the content of a file by its clean path below the root,
	// or an error that is fs.ErrNotExist.
	ReadFile(name string) ([]byte, error)
	// Profile returns the name of the file that defines a profile, or "".
	Profile(profile string) string
}

// Options say how a run reads.
type Options struct {
	Files   Files
	Builtin Files // of the profiles that are built in
	Limits  tree.Limits
	// Inputs are values for the inputs of the service template; those of
	// inputs that it has not are told.
	Inputs map[string]any
	// Others are further files with service templates that may substitute
	// nodes.
	Others []string
	// Deploy: what is valid but cannot be deployed is an error.
	Deploy bool
}

// Result is what a run found.
type Result struct {
	Service   *Service   // nil if the entry file has no service template
	Templates []*Service // others, that may substitute
	Unit      *Unit
	Problems  []Problem
}

// Valid reports whether no problem is more than a warning.
func (r *Result) Valid() bool {
	for _, p := range r.Problems {
		if !p.Warning {
			return false
		}
	}
	return true
}

// maxFiles bounds the files of a run.
const maxFiles = 2000

type run struct {
	ctx      context.Context
	options  Options
	units    map[string]*Unit // by origin and name
	order    []*Unit
	problems problems
	builtins map[string]*Type
	aside    bool // templates are read that may not be used
	pending  []func()
	depth    int // of types that are being resolved
	bytes    int
}

// Kind is a kind of types.
type Kind uint8

// The kinds of types.
const (
	ArtifactType Kind = iota
	DataType
	CapabilityType
	InterfaceType
	RelationshipType
	NodeType
	GroupType
	PolicyType
	kinds
)

var sections = [kinds]string{"artifact_types", "data_types", "capability_types", "interface_types", "relationship_types", "node_types", "group_types", "policy_types"}

// String names the kind as messages do.
func (k Kind) String() string {
	return strings.ReplaceAll(strings.TrimSuffix(sections[k], "s"), "_", " ")
}

// Unit is a TOSCA file and what it sees.
type Unit struct {
	Name    string // of the file
	Root    *tree.Node
	Version string // tosca_definitions_version
	Profile string

	run     *run
	builtin bool
	files   Files

	types        [kinds]map[string]*Type
	functions    map[string]*Function
	repositories map[string]repository
	plain        []*Unit            // imported into the root namespace
	named        map[string][]*Unit // imported into namespaces
	unread       map[string]bool    // namespaces that imports which were not read go to
	found        [kinds]map[string]*Type
}

// Old reports whether the file is of TOSCA Simple Profile 1.x.
func (u *Unit) Old() bool { return strings.HasPrefix(u.Version, "tosca_simple_yaml_1_") }

// versions are those that are read.
var versions = []string{"tosca_2_0", "tosca_simple_yaml_1_3", "tosca_simple_yaml_1_2", "tosca_simple_yaml_1_1", "tosca_simple_yaml_1_0"}

// Read reads a file, all that it imports, and checks it. An error is one of
// the context; what is wrong in the files is in the result.
func Read(ctx context.Context, entry string, options Options) (*Result, error) {
	r := &run{ctx: ctx, options: options, units: map[string]*Unit{}, problems: problems{seen: map[Problem]bool{}}}
	r.primitives()
	u := r.load(options.Files, entry, nil, nil)
	var others []*Unit
	for _, name := range options.Others {
		if o := r.load(options.Files, name, nil, nil); o != nil && o != u {
			others = append(others, o)
		}
	}
	result := &Result{Unit: u}
	for _, unit := range r.order {
		if unit.builtin {
			continue
		}
		unit.checkTypes()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	// What substituting templates lack is given to them when they are used.
	r.aside = true
	for _, unit := range others {
		if s := unit.service(nil); s != nil {
			result.Templates = append(result.Templates, s)
		}
	}
	r.aside = false
	if u != nil {
		result.Service = u.service(options.Inputs)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result.Problems = r.problems.list
	if r.problems.more > 0 {
		result.Problems = append(result.Problems, Problem{What: fmt.Sprintf("%d more problems are not told", r.problems.more)})
	}
	if options.Deploy {
		for i := range result.Problems {
			if result.Problems[i].Unfulfilled || result.Problems[i].Unresolvable {
				result.Problems[i].Warning = false
			}
		}
	}
	return result, nil
}

// load reads a file once. By and at say who imports it.
func (r *run) load(files Files, name string, by *Unit, at *tree.Node) *Unit {
	builtin := files == r.options.Builtin && files != nil
	key := name
	if builtin {
		key = "builtin:" + name
	}
	if u, ok := r.units[key]; ok {
		return u
	}
	tell := func(n *tree.Node, hint, format string, args ...any) {
		if by != nil {
			by.errorf(at, hint, format, args...)
			return
		}
		r.problems.add(nil, n, Problem{File: name, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	if len(r.units) >= maxFiles {
		tell(nil, "", "more than %d files are imported", maxFiles)
		return nil
	}
	r.units[key] = nil
	data, err := files.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		tell(nil, "", "there is no file %s", name)
		return nil
	} else if err != nil {
		tell(nil, "", "read %s: %v", name, err)
		return nil
	}
	if r.bytes += len(data); r.bytes > 64<<20 {
		tell(nil, "", "the files have more than 64 MiB")
		return nil
	}
	u := &Unit{Name: name, run: r, builtin: builtin, files: files, named: map[string][]*Unit{}, unread: map[string]bool{}}
	root, err := tree.Parse(data, r.options.Limits)
	if err != nil {
		p := Problem{What: err.Error()}
		var wrong *tree.Error
		if errors.As(err, &wrong) {
			p = Problem{Line: wrong.Line, Column: wrong.Column, What: wrong.What, Hint: wrong.Hint}
		}
		r.problems.add(u, nil, p)
		return nil
	}
	u.Root = root
	r.units[key] = u
	r.order = append(r.order, u)
	u.head()
	u.imports()
	u.declare()
	return u
}

// head checks the version and the keynames of a file.
func (u *Unit) head() {
	if version := u.Root.Get("tosca_definitions_version"); version.Is(tree.String) {
		u.Version = version.Text
		known := false
		for _, v := range versions {
			known = known || v == u.Version
		}
		if !known {
			u.errorf(version, "known are "+list(versions), "%s is no version of TOSCA that is read here", version.Short())
			u.Version = "tosca_2_0"
		}
		if first := u.Root.Entries[0].Key; first.Text != "tosca_definitions_version" && !u.Old() {
			u.errorf(first, "", "tosca_definitions_version is not the first line, but %s", first.Short())
		}
	} else {
		u.Version = "tosca_2_0"
	}
	if !u.keys(u.Root, &fileKeys) {
		return
	}
	if p := u.Root.Get("profile"); p.Is(tree.String) {
		if u.Profile = p.Text; p.Text == "" {
			u.errorf(p, "", "the name of the profile is empty")
		}
		if s := u.serviceNode(); s != nil {
			u.errorf(u.Root.KeyOf(s.Name), "", "a file that defines a profile has no service template")
		}
	}
	for _, e := range entries(u.Root.Get("dsl_definitions")) {
		if e.Key.Kind != tree.String {
			u.errorf(e.Key, "", "name of a definition is %s", describe(e.Key))
		}
	}
}

func (u *Unit) serviceNode() *tree.Node {
	if s := u.Root.Get("service_template"); s != nil {
		return s
	}
	if u.Old() {
		return u.Root.Get("topology_template")
	}
	return nil
}

// imports reads what the file imports (csd05, 5.2.3.1).
func (u *Unit) imports() {
	u.readRepositories()
	if u.Old() && !u.builtin {
		if simple := u.run.options.Builtin; simple != nil {
			if b := u.run.load(simple, simple.Profile(SimpleProfile), u, nil); b != nil {
				u.plain = append(u.plain, b)
			}
		}
	}
	imports := u.Root.Get("imports")
	if !imports.Is(tree.List) {
		return
	}
	for _, item := range imports.Items {
		u.oneImport(item)
		if err := u.run.ctx.Err(); err != nil {
			return
		}
	}
	u.inheritRepositories()
}

func (u *Unit) oneImport(item *tree.Node) {
	var url, profile, repository, namespace *tree.Node
	switch item.Kind {
	case tree.String:
		url = item
	case tree.Map:
		if u.Old() && len(item.Entries) == 1 && importKeys.keys[item.Entries[0].Key.Text] == anything && importKeys.older[item.Entries[0].Key.Text] == anything {
			// 1.0: a name and what it imports.
			u.oneImport(item.Entries[0].Value)
			return
		}
		if !u.keys(item, &importKeys) {
			return
		}
		url, profile, repository, namespace = item.Get("url"), item.Get("profile"), item.Get("repository"), item.Get("namespace")
		if file := item.Get("file"); url == nil && file != nil {
			url = file
		}
		if prefix := item.Get("namespace_prefix"); namespace == nil && prefix != nil {
			namespace = prefix
		}
	default:
		u.errorf(item, "want a string or a map with url or profile", "an import is %s", describe(item))
		return
	}
	into := ""
	if namespace.Is(tree.String) {
		into = namespace.Text
		if into == "" || strings.ContainsAny(into, ": \t$") {
			u.errorf(namespace, "", "%s is no name of a namespace", namespace.Short())
		}
	}
	switch {
	case url == nil && profile == nil:
		u.errorf(item, "", "an import has neither url nor profile")
	case url != nil && profile != nil:
		u.errorf(item, "one of them", "an import has both url and profile")
	case profile != nil:
		if repository != nil {
			u.errorf(repository, "", "repository goes with url, not with profile")
		}
		if profile.Is(tree.String) {
			u.into(into, u.profile(profile))
		}
	case url.Is(tree.String):
		other, unread := u.file(url, repository)
		if unread {
			u.unread[into] = true
		}
		u.into(into, other)
	}
}

func (u *Unit) into(namespace string, other *Unit) {
	switch {
	case other == nil:
		u.unread[namespace] = true
	case namespace == "":
		u.plain = append(u.plain, other)
	default:
		u.named[namespace] = append(u.named[namespace], other)
	}
}

func (u *Unit) profile(n *tree.Node) *Unit {
	if name := u.files.Profile(n.Text); name != "" {
		return u.run.load(u.files, name, u, n)
	}
	if b := u.run.options.Builtin; b != nil {
		if name := b.Profile(n.Text); name != "" {
			return u.run.load(b, name, u, n)
		}
	}
	u.errorf(n, "profiles are built in, or in the archive", "profile %s is not known", n.Text)
	return nil
}

// nameable checks that a key is the name of something.
func (u *Unit) nameable(key *tree.Node, what string) bool {
	if key.Kind != tree.String || key.Text == "" {
		u.errorf(key, "names are strings that are not empty", "the name of %s is %s", what, describe(key))
		return false
	}
	return true
}
