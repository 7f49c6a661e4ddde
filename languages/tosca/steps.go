package tosca

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"croft/languages/tosca/model"
	"croft/languages/tosca/values"
	"croft/languages/tree"
	"croft/request"
)

// stepOf is a step and the operation that it does.
type stepOf struct {
	face, operation string
	name            request.StepName
	outputs         map[string]*tree.Node // mappings onto attributes
	relationship    *model.Relationship   // whose operation it is, or nil
}

// stepContext is the step that is being made: artifacts that its inputs ask
// for come with it.
type stepContext struct {
	step *request.Step
	dir  string
}

// The operations of the lifecycle, in their order.
var lifecycle = []string{"create", "configure", "start"}

// scriptsDir is where operations' files are in nodes.
const scriptsDir = "/var/tmp/tosca"

// isLifecycle reports whether an interface is the one whose operations run
// when a node comes.
func isLifecycle(face *model.NodeInterface) bool {
	if face.Def != nil && face.Def.Type.IsNamed("Lifecycle.Standard") {
		return true
	}
	name := strings.ToLower(lastWord(face.Name))
	return name == "standard" || name == "lifecycle"
}

// hasSteps reports whether a node has anything to run.
func (d *deployment) hasSteps(i *instance) bool {
	for _, name := range i.node.Interfaces.Names {
		face, _ := i.node.Interfaces.Get(name)
		for _, operation := range lifecycle {
			if op, ok := face.Operations.Get(operation); ok && isLifecycle(face) && op.Implementation != nil {
				return true
			}
		}
	}
	return false
}

// steps makes the start-up graph: each instance after all that it needs.
func (d *deployment) steps() {
	order := d.order()
	for _, i := range order {
		if i.role == abstract || i.role == network || i.role == port || i.role == volume {
			continue
		}
		d.instanceSteps(i)
	}
}

func (d *deployment) instanceSteps(i *instance) {
	after := d.before(i)
	run := func(face *model.NodeInterface, operation string, e *model.Entity, r *model.Relationship, on *instance) {
		op, ok := face.Operations.Get(operation)
		if !ok || op.Implementation == nil || on == nil {
			return
		}
		d.step(i, on, face, op, e, r, after)
	}
	around := func(operations ...string) {
		for _, t := range i.targets {
			r := t.relationship
			for _, name := range r.Interfaces.Names {
				face, _ := r.Interfaces.Get(name)
				for _, operation := range operations {
					on := i.host
					if strings.HasSuffix(operation, "_target") && operation != "add_target" && operation != "remove_target" || operation == "add_source" {
						on = t.instance.host
					}
					run(face, operation, &r.Entity, r, on)
				}
			}
		}
	}
	for _, operation := range lifecycle {
		switch operation {
		case "configure":
			around("pre_configure_target", "pre_configure_source")
		case "start":
			around("post_configure_target", "post_configure_source")
		}
		for _, name := range i.node.Interfaces.Names {
			if face, _ := i.node.Interfaces.Get(name); isLifecycle(face) && !(i.role == computer && i.node.Entry != nil && !i.own()) {
				run(face, operation, &i.node.Entity, nil, i.host)
			}
		}
	}
	around("add_target", "add_source")
}

// own reports whether a computer is one of its template's own: not one that a
// requirement wanted.
func (i *instance) own() bool {
	return i.node.Type.IsNamed("Compute") || i.node.Type.IsNamed("Abstract.Compute")
}

// before are the last steps of all that an instance needs.
func (d *deployment) before(i *instance) []request.StepName {
	var names []request.StepName
	seen := map[*instance]bool{i: true}
	var visit func(*instance)
	visit = func(t *instance) {
		if seen[t] {
			return
		}
		seen[t] = true
		if len(t.steps) > 0 {
			if last := t.steps[len(t.steps)-1].name; !slices.Contains(names, last) {
				names = append(names, last)
			}
			return
		}
		for _, next := range t.targets {
			visit(next.instance)
		}
		if t.inner != nil {
			for _, o := range d.instances {
				if o.part == t.inner {
					visit(o)
				}
			}
		}
	}
	for _, t := range i.targets {
		visit(t.instance)
	}
	if i.host != nil && i.host != i {
		visit(i.host)
	}
	if i.part.outer != nil {
		for _, t := range i.part.outer.targets {
			visit(t.instance)
		}
	}
	return names
}

// step makes the step of an operation.
func (d *deployment) step(i, on *instance, face *model.NodeInterface, op *model.NodeOperation, e *model.Entity, r *model.Relationship, after []request.StepName) {
	s := i.part.service
	label := string(i.id)
	if r != nil {
		label += "." + r.Assignment.Name
	}
	name := string(on.id) + "." + label + "." + op.Name
	if on == i && r == nil {
		name = label + "." + op.Name
	}
	name = strings.Trim(notInNames.ReplaceAllString(name, "-"), "-")
	step := request.Step{Name: d.stepName(name), Node: on.id, Place: d.place(s, op.Implementation.Node), Root: true}
	step.After = append(step.After, after...)
	if len(i.steps) > 0 {
		step.After = append(step.After, i.steps[len(i.steps)-1].name)
	}
	dir := path.Join(scriptsDir, string(step.Name))
	d.current = &stepContext{&step, dir}
	defer func() { d.current = nil }()
	if !d.implementation(i, op, e, &step, dir) {
		return
	}
	if t := op.Implementation.Timeout; t > 0 {
		step.Limit = time.Duration(min(t, 7*86400)) * time.Second
	}
	d.environment(i, op, e, &step)
	made := stepOf{face: face.Name, operation: op.Name, name: step.Name, outputs: op.Outputs, relationship: r}
	step.Outputs = append(step.Outputs, sorted(op.Outputs)...)
	i.steps = append(i.steps, made)
	d.request.Steps = append(d.request.Steps, step)
}

// stepName makes a name that no step has yet.
func (d *deployment) stepName(name string) request.StepName {
	made := request.StepName(name)
	for n := 2; slices.ContainsFunc(d.request.Steps, func(o request.Step) bool { return o.Name == made }); n++ {
		made = request.StepName(name + "-" + values.String(int64(n)))
	}
	return made
}

// implementation takes the files of an operation, and how they are run.
func (d *deployment) implementation(i *instance, op *model.NodeOperation, e *model.Entity, step *request.Step, dir string) bool {
	s, impl := i.part.service, op.Implementation
	if impl.Primary.Name == "" && impl.Primary.Own == nil {
		s.Tell(impl.Node, "", "operation %s has no primary artifact", op.Name)
		return false
	}
	file, typ, data, ok := d.artifact(i, impl.Primary)
	if !ok {
		return false
	}
	main := path.Join(dir, path.Base(file))
	playbook := isPlaybook(typ, file)
	switch {
	case playbook:
		if !d.playbook(i, impl.Primary.Node, op, e, step, main, data) {
			return false
		}
	case bytes.HasPrefix(data, []byte("#!")):
		step.Run = &request.Run{Args: []string{main}, Dir: dir}
	case typ.IsNamed("Implementation.Python"), strings.EqualFold(path.Ext(file), ".py"):
		step.Run = &request.Run{Args: []string{"python3", main}, Dir: dir}
	default:
		step.Run = &request.Run{Args: []string{"/bin/sh", main}, Dir: dir}
	}
	d.file(step, main, data)
	for _, dep := range impl.Dependencies {
		needed, _, data, ok := d.artifact(i, dep)
		if !ok {
			return false
		}
		at := path.Join(dir, path.Base(needed))
		if playbook {
			at = beside(file, needed, dir)
		}
		d.file(step, at, data)
	}
	return true
}

func (d *deployment) file(step *request.Step, name string, data []byte) {
	for _, f := range step.Files {
		if f.Path == name {
			return
		}
	}
	step.Files = append(step.Files, request.File{Path: name, Mode: 0o755, Content: data})
}

// artifact reads an artifact: one of the node's by name, one that is defined
// where it is used, or a file.
func (d *deployment) artifact(i *instance, ref model.Reference) (file string, typ *model.Type, data []byte, ok bool) {
	s := i.part.service
	file = ref.Name
	read := func() ([]byte, error) { return ref.Unit.File(file) }
	a := ref.Own
	if a == nil {
		if named, has := i.node.Artifacts.Get(ref.Name); has {
			a = named
		}
	}
	if a != nil {
		file, typ, read = a.File, a.Type, a.Read
	}
	data, err := read()
	var remote *model.Remote
	if errors.As(err, &remote) {
		s.Tell(ref.Node, "put the file into the archive", "artifact %v", err)
		return "", nil, nil, false
	} else if errors.Is(err, fs.ErrNotExist) {
		s.Tell(ref.Node, "a template with scripts is deployed as an archive (CSAR): croft tosca pack", "there is no file %s", file)
		return "", nil, nil, false
	} else if err != nil {
		s.Tell(ref.Node, "", "read %s: %v", file, err)
		return "", nil, nil, false
	}
	return file, typ, data, true
}

// environment makes variables of the inputs of an operation.
func (d *deployment) environment(i *instance, op *model.NodeOperation, e *model.Entity, step *request.Step) {
	s := i.part.service
	for _, name := range sorted(op.Inputs) {
		in := op.Inputs[name]
		v := s.Evaluate(in, e, i.index)
		value, ok := d.value(v)
		if !ok {
			s.Tell(in.Node, "attributes can be joined into strings with $concat and $join", "input %s of operation %s: its value is not known when the operation runs", name, op.Name)
			continue
		}
		if v == nil {
			continue
		}
		step.Env = append(step.Env, request.Variable{Name: variableName(name), Value: value})
	}
}

// variableName makes a name that shells take.
func variableName(name string) string {
	made := []byte(name)
	for i, c := range made {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			made[i] = '_'
		}
	}
	return string(made)
}

// value makes the value of a variable.
func (d *deployment) value(v any) (request.Value, bool) {
	t, ok := v.(values.Text)
	if !ok {
		if !values.Known(v) {
			return nil, false
		}
		return request.Text(values.String(v)), true
	}
	var made request.Value
	for _, p := range t {
		switch ref := p.Ref.(type) {
		case nil:
			made = append(made, request.Part{Text: p.String})
		case request.Attribute:
			made = append(made, request.Part{Attribute: &ref})
		case request.Output:
			made = append(made, request.Part{Output: &ref})
		default:
			return nil, false
		}
	}
	return made, true
}
