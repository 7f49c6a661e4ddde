package tosca

import (
	"fmt"
	"path"
	"strings"

	"croft/languages/playbook"
	"croft/languages/tosca/model"
	"croft/languages/tosca/values"
	"croft/languages/tree"
	"croft/request"
)

// isPlaybook reports whether an artifact is for Ansible: by its type, or by
// its extension.
func isPlaybook(typ *model.Type, file string) bool {
	return typ.IsNamed("Implementation.Ansible") || strings.EqualFold(path.Ext(file), ".yml") || strings.EqualFold(path.Ext(file), ".yaml")
}

// playbook makes a step run a playbook in its node. Inputs of the operation
// are variables of Ansible's, and of the environment.
func (d *deployment) playbook(i *instance, at *tree.Node, op *model.NodeOperation, e *model.Entity, step *request.Step, main string, data []byte) bool {
	s := i.part.service
	if d.playbooks == playbook.Refused {
		s.Tell(at, "write it as a script (#!/bin/sh)", "playbook %s: Ansible is not run here", path.Base(main))
		return false
	}
	book, what := playbook.Local(string(data))
	if what != "" {
		s.Tell(at, "want a list of plays, each with tasks or roles", "playbook %s: %s", path.Base(main), what)
		return false
	}
	if _, ready := d.prepared[step.Node]; !ready {
		if d.prepared == nil {
			d.prepared = map[request.ClientID]bool{}
		}
		d.prepared[step.Node] = true
		d.request.Steps = append(d.request.Steps, request.Step{
			Name: d.stepName(string(step.Node) + ".ansible"), Node: step.Node, Place: step.Place, Root: true,
			Run: &request.Run{Args: playbook.Prepare(d.playbooks, nil)},
		})
	}
	dir := path.Dir(main)
	inventory, variables := dir+"/croft.inventory", dir+"/croft.variables.yml"
	step.Files = append(step.Files,
		request.File{Path: main, Mode: 0o600, Content: book},
		request.File{Path: inventory, Mode: 0o600, Content: []byte(playbook.Host("localhost"))},
		request.File{Path: variables, Mode: 0o600, Content: []byte(d.variables(i, op, e))})
	step.Run = &request.Run{Dir: dir, Args: []string{"ansible-playbook", "-i", inventory, "-e", "@" + variables, main}}
	for _, v := range [][2]string{{"HOME", "/root"}, {"LC_ALL", "C.UTF-8"}, {"ANSIBLE_NOCOWS", "1"}, {"ANSIBLE_FORCE_COLOR", "0"}} {
		step.Env = append(step.Env, request.Variable{Name: v[0], Value: request.Text(v[1])})
	}
	return true
}

// variables are the inputs of an operation as Ansible reads them: with their
// types, or from the environment what is known only once the step runs.
func (d *deployment) variables(i *instance, op *model.NodeOperation, e *model.Entity) string {
	var made strings.Builder
	for _, name := range sorted(op.Inputs) {
		v := i.part.service.Evaluate(op.Inputs[name], e, i.index)
		variable := variableName(name)
		switch v.(type) {
		case nil:
		case bool, int64, float64, []any, map[string]any:
			if values.Known(v) {
				fmt.Fprintf(&made, "%s: %s\n", variable, values.JSON(v))
			}
		default:
			fmt.Fprintf(&made, "%s: \"{{ lookup('env', '%s') }}\"\n", variable, variable)
		}
	}
	if made.Len() == 0 {
		made.WriteString("{}\n") // Ansible takes no empty file
	}
	return "---\n" + made.String()
}

// beside is where a file that a playbook needs lies: in the same place relative
// to it, so that roles and templates are found.
func beside(main, file, dir string) string {
	from := path.Dir(path.Clean(main))
	if from == "." {
		from = ""
	}
	relative, below := strings.CutPrefix(path.Clean(file), strings.TrimPrefix(from+"/", "/"))
	if !below || strings.HasPrefix(relative, "../") || strings.HasPrefix(relative, "/") {
		relative = path.Base(file)
	}
	return path.Join(dir, relative)
}
