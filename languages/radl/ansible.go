package radl

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"croft/request"
)

// playDir is where playbooks are put in nodes.
const playDir = scriptDir + "/ansible"

// playbooks are what the nodes of a request are configured with by Ansible:
// the files are the same ones in all of them.
type playbooks struct {
	files    []request.File
	roles    []string // what ansible-galaxy installs
	prepared map[request.ClientID]bool
}

// isRole reports whether an application is an Ansible role.
func isRole(app string) bool {
	return strings.HasPrefix(app, "ansible.modules.") || strings.HasPrefix(app, "ansible.roles.") || strings.HasPrefix(app, "ansible.collections.")
}

// role notes a role that recipes use.
func (s *stepper) role(p *plan, a application) {
	if s.language.Playbooks != PlaybooksInstalled {
		what := fmt.Sprintf("system %s: Ansible roles are not installed here, %s", p.name, shorten(a.name))
		if !s.told[what] {
			s.told[what] = true
			s.problems = append(s.problems, problemAt(a.place, strings.TrimPrefix(what, a.place.Path+": "), "put the role's tasks into the recipe"))
		}
		return
	}
	spec := a.name[strings.Index(a.name, ".")+1:]
	spec = spec[strings.Index(spec, ".")+1:]
	if source, name, ok := strings.Cut(spec, "|"); ok {
		spec = source + ",," + name
	}
	if strings.HasPrefix(spec, "-") || strings.ContainsAny(spec, " \t\n") {
		s.problems = append(s.problems, problemAt(a.place, fmt.Sprintf("%q is no role", shorten(a.name)), ""))
		return
	}
	s.playbooks()
	if !slices.Contains(s.books.roles, spec) {
		s.books.roles = append(s.books.roles, spec)
	}
}

func (s *stepper) playbooks() *playbooks {
	if s.books == nil {
		s.books = &playbooks{prepared: map[request.ClientID]bool{}}
	}
	return s.books
}

// ansible makes steps that run a recipe as a playbook. ansible-playbook runs
// as root inside the node that the recipe is for, and reaches no other.
func (s *stepper) ansible(r *Configure, machines []int, place request.Place) {
	if s.language.Playbooks == PlaybooksRefused {
		s.refuse(r.Offset, fmt.Sprintf("the recipe %s: Ansible is not run here", r.Name), "write it as a script (#!/bin/sh) or for cloud_init")
		return
	}
	book, what := playbook(r.Recipe)
	if what != "" {
		s.refuse(r.Offset, fmt.Sprintf("the recipe %s: %s", r.Name, what), "want a list of plays, each with tasks or roles")
		return
	}
	b := s.playbooks()
	if b.files == nil {
		b.files = s.sharedFiles()
	}
	path := playDir + "/" + stepPrefix(request.ClientID(r.Name)) + ".yml"
	for _, i := range machines {
		m := &s.machines[i]
		n := &s.request.Nodes[m.node]
		if !b.prepared[n.ID] {
			b.prepared[n.ID] = true
			args := []string{"/bin/sh", "-c", ansibleScript, "ansible", strconv.FormatBool(s.language.Playbooks == PlaybooksInstalled)}
			s.add(m, "ansible", request.Step{Root: true, Run: &request.Run{Args: append(args, b.roles...)}}, place)
		}
		own := request.File{Path: playDir + "/own/" + stepPrefix(n.ID), Mode: 0o600,
			Content: fmt.Appendf(nil, "%s ansible_connection=local ansible_python_interpreter=auto_silent\n", stepPrefix(n.ID))}
		s.add(m, r.Name, request.Step{
			Root: true, Env: s.variables(m),
			Files: append(slices.Clone(b.files), own, request.File{Path: path, Mode: 0o600, Content: book}),
			Run: &request.Run{Dir: playDir, Args: []string{"ansible-playbook", "-i", playDir + "/machines", "-i", own.Path,
				"--limit", stepPrefix(n.ID), "-e", "@" + playDir + "/variables.yml", path}},
		}, place)
	}
}

// ansibleScript sees to it that a node has Ansible. Arguments: whether it may
// be installed, and roles to install.
const ansibleScript = `install=$1
shift
if ! command -v ansible-playbook >/dev/null; then
	if [ "$install" != true ]; then
		echo "the image of this node has no ansible-playbook, which its recipes need" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get install -y -q --no-install-recommends ansible-core ||
		{ apt-get update -q && apt-get install -y -q --no-install-recommends ansible-core; } ||
		dnf install -y -q ansible-core || apk add ansible-core; } && command -v ansible-playbook >/dev/null || {
		echo "ansible-playbook could not be installed in this node" >&2
		exit 1
	}
fi
for role in "$@"; do
	ansible-galaxy install "$role" || exit
done`

// sharedFiles are those of all nodes: the names of the others, in groups by
// their systems; and what recipes are told about their node, which they read
// from the environment. Only a node's own entry says that it is local: a
// recipe that turns to another node fails, and does not act on its own.
func (s *stepper) sharedFiles() []request.File {
	var hosts strings.Builder
	groups := map[string][]string{}
	var names []string
	for i := range s.machines {
		m := &s.machines[i]
		group := stepPrefix(request.ClientID(m.plan.name))
		if groups[group] == nil {
			names = append(names, group)
		}
		groups[group] = append(groups[group], stepPrefix(s.request.Nodes[m.node].ID))
	}
	for _, group := range names {
		fmt.Fprintf(&hosts, "[%s]\n%s\n", group, strings.Join(groups[group], "\n"))
	}
	var variables strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.variableNames())) {
		value := fmt.Sprintf("{{ lookup('env', '%s') }}", name)
		if name == "IM_INFRASTRUCTURE_RADL" {
			value = "{{ lookup('file', '" + playDir + "/radl.json') | from_json }}"
		}
		fmt.Fprintf(&variables, "%s: \"%s\"\n", name, value)
	}
	files := []request.File{
		{Path: playDir + "/machines", Mode: 0o600, Content: []byte(hosts.String())},
		{Path: playDir + "/variables.yml", Mode: 0o600, Content: []byte(variables.String())},
		{Path: playDir + "/radl.json", Mode: 0o600, Content: s.underscored()},
	}
	// Recipes include one another by their names.
	for _, name := range slices.Sorted(maps.Keys(s.definitions.recipes)) {
		r := s.definitions.recipes[name]
		for _, other := range s.definitions.recipes {
			if other != r && strings.Contains(other.Recipe, name+".yml") {
				files = append(files, request.File{Path: playDir + "/" + stepPrefix(request.ClientID(name)) + ".yml", Mode: 0o600, Content: []byte(r.Recipe)})
				break
			}
		}
	}
	return files
}

// variableNames are the variables that every recipe is told.
func (s *stepper) variableNames() map[string]bool {
	names := map[string]bool{"IM_INFRASTRUCTURE_RADL": true}
	for i := range s.machines {
		for _, v := range s.variables(&s.machines[i]) {
			if strings.HasPrefix(v.Name, "IM_") {
				names[v.Name] = true
			}
		}
	}
	return names
}

// variables are what the recipes of a machine are told, as the Infrastructure
// Manager names it.
func (s *stepper) variables(m *machine) []request.Variable {
	n := &s.request.Nodes[m.node]
	first := s.request.Nodes[s.machines[0].node].ID
	of := func(node request.ClientID, name request.AttributeName, iface request.ClientID) request.Value {
		return request.Value{{Attribute: &request.Attribute{Node: node, Interface: iface, Name: name}}}
	}
	list := []request.Variable{
		{Name: "IM_NODE_HOSTNAME", Value: of(n.ID, request.AttrName, "")},
		{Name: "IM_NODE_DOMAIN", Value: request.Text("localdomain")},
		{Name: "IM_NODE_FQDN", Value: of(n.ID, request.AttrHostname, "")},
		{Name: "IM_NODE_NUM", Value: request.Text(strconv.Itoa(m.number))},
		{Name: "IM_NODE_CLOUD_TYPE", Value: request.Text(cloudType)},
		{Name: "IM_NODE_VMID", Value: of(n.ID, request.AttrSliver, "")},
		{Name: "IM_MASTER_HOSTNAME", Value: of(first, request.AttrName, "")},
		{Name: "IM_MASTER_DOMAIN", Value: request.Text("localdomain")},
		{Name: "IM_MASTER_FQDN", Value: of(first, request.AttrHostname, "")},
		{Name: "IM_INFRASTRUCTURE_ID", Value: of(n.ID, request.AttrSlice, "")},
		{Name: "IM_NODE_PUBLIC_IP", Value: of(n.ID, request.AttrLoginHost, "")},
	}
	private := false
	linked := s.linkedInterfaces()
	for i, f := range n.Interfaces {
		if !linked[f.ID] {
			continue
		}
		list = append(list, request.Variable{Name: fmt.Sprintf("IM_NODE_NET_%d_IP", i), Value: of(n.ID, request.AttrAddress, f.ID)})
		if !private {
			private = true
			list = append(list, request.Variable{Name: "IM_NODE_PRIVATE_IP", Value: of(n.ID, request.AttrAddress, f.ID)})
		}
	}
	for _, a := range m.plan.apps {
		name := strings.Map(func(r rune) rune {
			if r < 0x80 && (wordBytes[r] && r != '.' && r != '-') {
				return r
			}
			return '_'
		}, a.name)
		list = append(list,
			request.Variable{Name: "IM_" + name + "_VERSION", Value: request.Text(a.version)},
			request.Variable{Name: "IM_" + name + "_PATH", Value: request.Text(a.path)})
	}
	return append(list,
		request.Variable{Name: "HOME", Value: request.Text("/root")},
		request.Variable{Name: "LC_ALL", Value: request.Text("C.UTF-8")},
		request.Variable{Name: "ANSIBLE_NOCOWS", Value: request.Text("1")},
		request.Variable{Name: "ANSIBLE_FORCE_COLOR", Value: request.Text("0")})
}

// linkedInterfaces are those that a link joins.
func (s *stepper) linkedInterfaces() map[request.ClientID]bool {
	if s.linked == nil {
		s.linked = map[request.ClientID]bool{}
		for _, l := range s.request.Links {
			for _, e := range l.Ends {
				s.linked[e.Interface] = true
			}
		}
	}
	return s.linked
}

// underscored is the document as recipes read it: in the JSON form, networks,
// systems and deploys only, with _ for the dots of names.
func (s *stepper) underscored() []byte {
	var kept Document
	for _, item := range s.document.Items {
		switch item := item.(type) {
		case *Deploy:
			kept.Items = append(kept.Items, item)
		case *Aspect:
			if item.Class == Network || item.Class == System {
				kept.Items = append(kept.Items, item)
			}
		}
	}
	text, err := kept.JSON()
	var list []map[string]any
	if err != nil || json.Unmarshal(text, &list) != nil {
		return []byte("[]\n")
	}
	for _, o := range list {
		for _, key := range slices.Collect(maps.Keys(o)) {
			if strings.Contains(key, ".") {
				o[strings.ReplaceAll(key, ".", "_")] = o[key]
				delete(o, key)
			}
		}
	}
	out, err := json.Marshal(list)
	if err != nil {
		return []byte("[]\n")
	}
	return append(out, '\n')
}

// playbook makes a playbook of a recipe: plays that name no hosts are for
// those that --limit leaves. The text stays as it is otherwise. what says why
// it is none.
func playbook(recipe string) (book []byte, what string) {
	root, verdict := parseYAML(recipe)
	if verdict.what != "" || root == nil || root.Kind != yaml.SequenceNode {
		return nil, "it is no playbook"
	}
	lines := strings.SplitAfter(recipe, "\n")
	// From the end, so that what is put in moves nothing that is still to come.
	for _, play := range slices.Backward(root.Content) {
		if play.Kind != yaml.MappingNode || len(play.Content) == 0 {
			return nil, fmt.Sprintf("line %d of it is no play", play.Line)
		}
		var hosts, imports *yaml.Node
		for i := 0; i+1 < len(play.Content); i += 2 {
			switch play.Content[i].Value {
			case "hosts":
				hosts = play.Content[i+1]
			case "include", "import_playbook", "ansible.builtin.import_playbook":
				imports = play.Content[i]
			}
		}
		if imports != nil {
			continue
		}
		if hosts != nil {
			if v := hosts.Value; hosts.Kind != yaml.ScalarNode || v != "all" && v != "localhost" && v != "127.0.0.1" {
				return nil, fmt.Sprintf("line %d of it is a play for other hosts: recipes act on the node that they run in", hosts.Line)
			}
			continue
		}
		first := play.Content[0]
		if first.Line < 1 || first.Line > len(lines) || first.Column < 1 {
			return nil, "it is no playbook"
		}
		line := lines[first.Line-1]
		at := byteColumn(line, first.Column)
		if play.Style&yaml.FlowStyle != 0 {
			lines[first.Line-1] = line[:at] + "hosts: all, " + line[at:]
			continue
		}
		lines[first.Line-1] = line[:at] + "hosts: all\n" + strings.Repeat(" ", first.Column-1) + line[at:]
	}
	return []byte(strings.Join(lines, "")), ""
}

// byteColumn is the offset of a column, which counts characters.
func byteColumn(line string, column int) int {
	n := 1
	for i := range line {
		if n == column {
			return i
		}
		n++
	}
	return len(line)
}
