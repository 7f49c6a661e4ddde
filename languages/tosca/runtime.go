package tosca

import (
	"path"
	"slices"

	"croft/languages/tosca/model"
	"croft/languages/tosca/values"
	"croft/languages/tree"
	"croft/request"
)

// runtime tells a service what its attributes will be.
type runtime struct {
	d *deployment
	p *part
}

// ref stands for what is known later, or is it where that is known.
func (r *runtime) ref(to any) (any, bool) {
	p := values.Piece{Ref: to}
	if r.d.resolve != nil {
		s, ok := r.d.resolve(p)
		if !ok {
			return values.Unknown{}, true
		}
		return s, true
	}
	return values.Text{p}, true
}

func (r *runtime) instance(e *model.Entity, index int64) *instance {
	if e.Node == nil {
		return nil
	}
	list := r.d.of[e.Node]
	if index < 0 || index >= int64(len(list)) {
		return nil
	}
	return list[index]
}

// Attribute tells an attribute of an entity.
func (r *runtime) Attribute(e *model.Entity, index int64, name string) (any, bool) {
	if e.What == "relationship" {
		return r.relationshipAttribute(e, name)
	}
	i := r.instance(e, index)
	if i == nil {
		return nil, false
	}
	if v, ok := r.mapped(i, e, name); ok {
		return v, true
	}
	if i.inner != nil && e.What == "node" {
		if out := i.inner.service.Substitution.Attributes[name]; out != "" {
			return i.inner.service.Output(out), true
		}
	}
	if e.What == "capability" {
		if name == "ip_address" && i.host != nil {
			return r.address(i.host, nil)
		}
		return nil, false
	}
	switch name {
	case "tosca_name":
		return i.node.Name, true
	case "state":
		return "started", true
	}
	switch i.role {
	case computer:
		return r.computerAttribute(i, name)
	case port:
		if name == "ip_address" {
			for _, a := range r.d.portsOf(i) {
				return r.address(a.computer, a)
			}
		}
	case network:
		if name == "tosca_id" || name == "network_id" {
			return string(i.id), true
		}
	case software:
		if name == "tosca_id" {
			return string(i.id), true
		}
		if i.host != nil && (name == "private_address" || name == "public_address" || name == "ip_address") {
			return r.computerAttribute(i.host, name)
		}
	}
	return nil, false
}

// portsOf are the attachments by way of a port node.
func (d *deployment) portsOf(i *instance) []*attachment {
	for _, c := range d.instances {
		for _, a := range c.ports {
			if a.via == i {
				return []*attachment{a}
			}
		}
	}
	return nil
}

func (r *runtime) address(i *instance, a *attachment) (any, bool) {
	if a == nil && len(i.ports) > 0 {
		a = i.ports[0]
	}
	switch {
	case a != nil:
		return r.ref(request.Attribute{Node: i.id, Interface: a.id, Name: request.AttrAddress})
	case i.exists:
		return r.ref(request.Attribute{Node: i.id, Name: request.AttrAddress})
	}
	return r.ref(request.Attribute{Node: i.id, Name: request.AttrLoginHost})
}

func (r *runtime) computerAttribute(i *instance, name string) (any, bool) {
	of := func(a request.AttributeName) (any, bool) {
		return r.ref(request.Attribute{Node: i.id, Name: a})
	}
	switch name {
	case "private_address", "ip_address", "private_ip":
		return r.address(i, nil)
	case "public_address", "public_ip", "login_host":
		return of(request.AttrLoginHost)
	case "login_port":
		return of(request.AttrLoginPort)
	case "hostname":
		return of(request.AttrHostname)
	case "sliver", "tosca_id":
		return of(request.AttrSliver)
	case "networks":
		nets := map[string]any{}
		for _, a := range i.ports {
			name := defaultLAN
			if a.network != nil {
				name = a.network.node.Name
			}
			v, _ := r.address(i, a)
			nets[name] = map[string]any{"network_name": name, "network_id": name, "addresses": []any{v}}
		}
		return nets, true
	case "ports":
		ports := map[string]any{}
		for _, a := range i.ports {
			v, _ := r.address(i, a)
			ports[string(a.id)] = map[string]any{"port_name": string(a.id), "addresses": []any{v}}
		}
		return ports, true
	}
	return nil, false
}

// mapped finds the output of an operation that gives an attribute: the last
// one that does.
func (r *runtime) mapped(i *instance, e *model.Entity, name string) (any, bool) {
	for k := len(i.steps) - 1; k >= 0; k-- {
		st := i.steps[k]
		for _, out := range sorted(st.outputs) {
			if st.relationship == nil && selects(st.outputs[out], e, name, "SELF") ||
				st.relationship != nil && selects(st.outputs[out], e, name, "SELF", "SOURCE") {
				return r.ref(request.Output{Step: st.name, Name: out})
			}
		}
	}
	// Operations of relationships that lead here.
	for _, other := range r.d.instances {
		for _, st := range other.steps {
			if st.relationship == nil || st.relationship.Target != i.node || e.What != "node" {
				continue
			}
			for _, out := range sorted(st.outputs) {
				if selects(st.outputs[out], e, name, "SELF", "TARGET") {
					return r.ref(request.Output{Step: st.name, Name: out})
				}
			}
		}
	}
	return nil, false
}

// selects reports whether an attribute mapping leads along a path to an
// attribute of an entity.
func selects(n *tree.Node, e *model.Entity, name string, way ...string) bool {
	if !n.Is(tree.List) {
		return false
	}
	words := make([]string, len(n.Items))
	for i, item := range n.Items {
		words[i] = item.Text
	}
	if e.What == "capability" {
		way = append(way, "CAPABILITY", e.Name)
	}
	if len(words) != len(way)+1 || words[len(way)] != name {
		// 1.x: the path may leave out SELF before SOURCE and TARGET.
		if len(way) == 2 && len(words) == 2 && words[0] == way[1] && words[1] == name {
			return true
		}
		return false
	}
	for i, w := range way {
		if words[i] != w && !(i == 0 && w == "SELF" && words[0] == e.Name) {
			return false
		}
	}
	return true
}

func (r *runtime) relationshipAttribute(e *model.Entity, name string) (any, bool) {
	if e.Relationship == nil {
		return nil, false
	}
	for _, i := range r.d.of[e.Relationship.Source] {
		for k := len(i.steps) - 1; k >= 0; k-- {
			st := i.steps[k]
			if st.relationship != e.Relationship {
				continue
			}
			for _, out := range sorted(st.outputs) {
				if selects(st.outputs[out], e, name, "SELF") {
					return r.ref(request.Output{Step: st.name, Name: out})
				}
			}
		}
	}
	return nil, false
}

// Artifact puts an artifact beside the operation that asks for it, and tells
// its path.
func (r *runtime) Artifact(e *model.Entity, index int64, name, location string) (any, bool) {
	if r.d.current == nil || e.Node == nil {
		return nil, false
	}
	i := r.instance(e, index)
	a, ok := e.Node.Artifacts.Get(name)
	if !ok || i == nil {
		return nil, false
	}
	file, _, data, ok := r.d.artifact(i, model.Reference{Node: a.Node, Unit: a.Unit, Own: a})
	if !ok {
		return nil, false
	}
	to := path.Join(r.d.current.dir, "artifacts", path.Base(file))
	switch {
	case path.IsAbs(location):
		to = path.Clean(location)
	case path.IsAbs(a.DeployPath):
		to = path.Clean(a.DeployPath)
	}
	r.d.file(r.d.current.step, to, data)
	return to, true
}

// OperationOutput tells an output of an operation, as 1.x asks for it.
func (r *runtime) OperationOutput(e *model.Entity, index int64, face, operation, name string) (any, bool) {
	i := r.instance(e, index)
	if i == nil {
		return nil, false
	}
	for _, st := range i.steps {
		if st.operation == operation && lastWord(st.face) == lastWord(face) {
			for k := range r.d.request.Steps {
				step := &r.d.request.Steps[k]
				if step.Name == st.name && !slices.Contains(step.Outputs, name) {
					step.Outputs = append(step.Outputs, name)
				}
			}
			return r.ref(request.Output{Step: st.name, Name: name})
		}
	}
	return nil, false
}
