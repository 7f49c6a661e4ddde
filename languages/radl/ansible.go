package radl

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"croft/languages/playbook"
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
	if s.language.Playbooks != playbook.Installed {
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
	if s.language.Playbooks == playbook.Refused {
		s.refuse(r.Offset, fmt.Sprintf("the recipe %s: Ansible is not run here", r.Name), "write it as a script (#!/bin/sh) or for cloud_init")
		return
	}
	book, what := playbook.Local(r.Recipe)
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
			s.add(m, "ansible", request.Step{Root: true, Run: &request.Run{Args: playbook.Prepare(s.language.Playbooks, b.roles)}}, place)
		}
		own := request.File{Path: playDir + "/own/" + stepPrefix(n.ID), Mode: 0o600,
			Content: []byte(playbook.Host(stepPrefix(n.ID)))}
		s.add(m, r.Name, request.Step{
			Root: true, Env: s.variables(m),
			Files: append(slices.Clone(b.files), own, request.File{Path: path, Mode: 0o600, Content: book}),
			Run: &request.Run{Dir: playDir, Args: []string{"ansible-playbook", "-i", playDir + "/machines", "-i", own.Path,
				"--limit", stepPrefix(n.ID), "-e", "@" + playDir + "/variables.yml", path}},
		}, place)
	}
}

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
