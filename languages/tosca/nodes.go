package tosca

import (
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"croft/capacity"
	"croft/languages/tosca/model"
	"croft/languages/tosca/values"
	"croft/languages/tree"
	"croft/request"
)

// node makes the node of a computer.
func (d *deployment) node(i *instance) {
	s, n := i.part.service, i.node
	if i.request == nil {
		i.request = &request.Node{ID: i.id, Place: d.place(s, n.Entry)}
		d.capabilities(i)
	}
	r := i.request
	if v := text(n.Property("image", i.index)); v != "" && i.node.Type.IsNamed("Compute") {
		r.Image = imageOf(v, d.place(s, n.Entry))
	}
	for _, name := range n.Artifacts.Names {
		a, _ := n.Artifacts.Get(name)
		switch {
		case a.Type.IsNamed("Deployment.Image"):
			r.Image = imageOf(a.File, d.place(s, a.Node))
		case a.Type.IsNamed("AuthorizedKeys"):
			d.user(i, a)
		}
	}
	if v := n.Property("flavor", i.index); v != nil {
		s.Warn(n.Entry, "give num_cpus and mem_size", "flavor of node %s has no effect here", n.Name)
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func imageOf(name string, at request.Place) request.Image {
	if u, err := url.Parse(name); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return request.Image{URL: name, Place: at}
	}
	return request.Image{Name: name, Place: at}
}

// user makes an account of a file with public keys.
func (d *deployment) user(i *instance, a *model.Artifact) {
	s := i.part.service
	data, err := a.Read()
	if err != nil {
		s.Tell(a.Node, "", "keys of artifact %s: read %s: %v", a.Name, a.File, err)
		return
	}
	u := request.User{}
	if login := a.Properties["login"]; login.Is(tree.String) {
		u.Login = login.Text
	}
	for _, line := range strings.Split(string(data), "\n") {
		f := strings.Fields(line)
		if len(f) >= 2 && !strings.HasPrefix(line, "#") {
			u.Keys = append(u.Keys, f[0]+" "+f[1])
		}
	}
	if len(u.Keys) == 0 {
		s.Tell(a.Node, "want lines such as ssh-ed25519 AAAA…", "file %s has no public key", a.File)
		return
	}
	i.request.Users = append(i.request.Users, u)
}

// capabilities takes what the capabilities of a computer say of its hardware
// and system.
func (d *deployment) capabilities(i *instance) {
	w := &wants{s: i.part.service, node: i.request, declared: true}
	for _, c := range i.node.Capabilities.Names {
		e, _ := i.node.Capabilities.Get(c)
		for _, p := range e.Properties.Names {
			if v := e.Property(p, i.index); v != nil {
				w.property(e, p, v)
			}
		}
		d.ports(i, e)
	}
}

// ports are those that users reach from outside: of public endpoints.
func (d *deployment) ports(i *instance, e *model.Entity) {
	s := i.part.service
	public := e.Type.IsNamed("Endpoint.Public") || strings.EqualFold(text(e.Property("network_name", i.index)), "PUBLIC")
	if !e.Type.IsNamed("Endpoint") || !public || i.host == nil || i.host.request == nil {
		return
	}
	to := i.host.request
	add := func(name string, number any, protocol any) {
		n, ok := number.(int64)
		if !ok {
			return
		}
		p := request.Port{Name: name, Number: int(n), Protocol: text(protocol), Place: d.place(s, e.Entry)}
		if p.Protocol != "udp" {
			p.Protocol = "tcp"
		}
		for _, have := range to.Ports {
			if have.Name == p.Name || have.Number == p.Number && have.Protocol == p.Protocol {
				return
			}
		}
		to.Ports = append(to.Ports, p)
	}
	if m, ok := e.Property("ports", i.index).(map[string]any); ok {
		for _, name := range sorted(m) {
			if spec, ok := m[name].(map[string]any); ok {
				number := spec["source"]
				if number == nil {
					number = spec["target"]
				}
				add(name, number, spec["protocol"])
			}
		}
	}
	add(i.node.Name+"-"+e.Name, e.Property("port", i.index), e.Property("protocol", i.index))
}

// wants takes what a node should have.
type wants struct {
	s    *model.Service
	node *request.Node
	// declared: what a template says that the node has, not what a filter asks.
	declared bool
}

// property takes a property of a capability: the least that is wanted of an
// amount, or exactly what is wanted of others.
func (w *wants) property(e *model.Entity, name string, v any) {
	if !values.Known(v) {
		w.s.Tell(e.Entry, "give it as an input", "%s of capability %s is not known before the node is there", name, e.Name)
		return
	}
	switch {
	case e.Type.IsNamed("Container"), e.Type.IsNamed("OperatingSystem"), e.Type.IsNamed("Location"):
		if !w.want("greater_or_equal", name, v) {
			w.s.Warn(e.Entry, "", "%s of node %s has no effect here", name, e.Node.Name)
		}
	case e.Type.IsNamed("Scalable"):
		if i, ok := v.(int64); ok && name == "default_instances" && i != 1 {
			w.s.Warn(e.Entry, "write count", "default_instances of node %s has no effect here", e.Node.Name)
		}
	}
}

// want takes a wish: an operator and what a property is compared with. It
// reports false for what the inventory does not know.
func (w *wants) want(operator, name string, v any) bool {
	exact := operator == "equal" || operator == "greater_or_equal"
	least := operator == "equal" || operator == "greater_or_equal" || operator == "greater_than"
	most := operator == "equal" && !w.declared || operator == "less_or_equal" || operator == "less_than"
	amount := func(set func(*capacity.Amount, int64), n int64, step int64) bool {
		if operator == "greater_than" {
			n += step
		}
		if operator == "less_than" {
			n -= step
		}
		if least {
			set(&w.node.Capacity, n)
		}
		if most {
			set(&w.node.Most, n)
		}
		return least || most
	}
	mebibytes := func(v any) (int64, bool) {
		q, ok := v.(values.Quantity)
		if !ok {
			return 0, false
		}
		return int64(math.Ceil(q.Amount / (1 << 20))), true
	}
	switch name {
	case "num_cpus":
		n, ok := v.(int64)
		if n *= int64(capacity.Core); !ok {
			var f float64
			f, ok = v.(float64)
			n = int64(math.Ceil(f * float64(capacity.Core)))
		}
		return ok && amount(func(a *capacity.Amount, n int64) { a.Cores = capacity.Cores(n) }, n, 1)
	case "mem_size":
		n, ok := mebibytes(v)
		return ok && amount(func(a *capacity.Amount, n int64) { a.Memory = capacity.MiB(n) }, n, 1)
	case "disk_size":
		n, ok := mebibytes(v)
		return ok && amount(func(a *capacity.Amount, n int64) { a.Disk = capacity.MiB(n) }, n, 1)
	case "num_gpus":
		n, ok := v.(int64)
		return ok && amount(func(a *capacity.Amount, n int64) { a.GPUs = n }, n, 1)
	case "exclusive":
		b, ok := v.(bool)
		if ok && exact {
			w.node.Exclusive = request.No
			if b {
				w.node.Exclusive = request.Yes
			}
		}
		return ok && exact
	case "version":
		if ver, ok := v.(values.Version); ok {
			switch operator {
			case "equal":
				w.node.Image.System.Version = ver.Text
			case "greater_or_equal":
				if w.declared {
					w.node.Image.System.Version = ver.Text
				} else {
					w.node.Image.System.MinVersion = ver.Text
				}
			case "less_or_equal":
				w.node.Image.System.MaxVersion = ver.Text
			default:
				return false
			}
			w.place()
			return true
		}
		return false
	}
	s, ok := v.(string)
	if !ok || !exact {
		return false
	}
	switch name {
	case "architecture":
		w.node.Architecture = s
	case "type":
		w.node.Image.System.OS = s
		w.place()
	case "distribution":
		w.node.Image.System.Distribution = s
		w.place()
	case "hardware_type":
		w.node.HardwareTypes = []string{s}
	case "sliver_type":
		w.node.SliverType, w.node.TypePlace = request.SliverType(s), w.node.Place
	case "site":
		w.node.Site = s
	case "component":
		w.node.ComponentName = s
	default:
		return false
	}
	return true
}

func (w *wants) place() {
	if w.node.Image.Place == (request.Place{}) {
		w.node.Image.Place = w.node.Place
	}
}

// wanted is the node that a requirement wants which no node of the template
// fulfils: its node filters and allocations say what it must have.
func (d *deployment) wanted(h, of *instance, a *model.Assignment) *request.Node {
	s := of.part.service
	at := a.Entry
	if at == nil {
		at = of.node.Entry
	}
	r := &request.Node{ID: h.id, Place: d.place(s, at)}
	w := &wants{s: s, node: r}
	for name, n := range a.Allocation {
		v := s.Evaluate(model.Assigned{Node: n, Unit: s.Unit}, &of.node.Entity, of.index)
		if q := quantityOf(name, v); !w.want("greater_or_equal", name, q) {
			s.Tell(n, "num_cpus, mem_size and disk_size are allocated", "allocation of %s cannot be asked of the testbed", name)
		}
	}
	for _, f := range a.Filters {
		w.filter(f.Node, f.Unit, of)
	}
	return r
}

// quantityOf reads a text as the size that a property of hosts is.
func quantityOf(name string, v any) any {
	if t, ok := v.(string); ok && (name == "mem_size" || name == "disk_size") {
		if size, ok := values.ScalarUnit("scalar-unit.size"); ok {
			if q, err := size.Parse(t); err == nil {
				return q
			}
		}
	}
	if t, ok := v.(string); ok && name == "version" {
		if ver, err := values.ParseVersion(t); err == nil {
			return ver
		}
	}
	return v
}

// filter takes the comparisons of a node filter as wishes.
func (w *wants) filter(n *tree.Node, u *model.Unit, of *instance) {
	if u.Old() {
		w.oldFilter(n, u, of)
		return
	}
	refuse := func() {
		w.s.Tell(n, "what can be asked for are comparisons of num_cpus, mem_size, disk_size, architecture, type, distribution, version, hardware_type and site, joined by $and",
			"the testbed cannot be asked for this node filter")
	}
	if !n.Is(tree.Map) || len(n.Entries) != 1 || !n.Entries[0].Value.Is(tree.List) {
		refuse()
		return
	}
	operator, args := strings.TrimPrefix(n.Entries[0].Key.Text, "$"), n.Entries[0].Value.Items
	if operator == "and" {
		for _, item := range args {
			w.filter(item, u, of)
		}
		return
	}
	if len(args) != 2 {
		refuse()
		return
	}
	name := asked(args[0])
	literal := args[1]
	if name == "" {
		if name, literal = asked(args[1]), args[0]; name != "" {
			operator = turned(operator)
		}
	}
	v := w.s.Evaluate(model.Assigned{Node: literal, Unit: u}, &of.node.Entity, of.index)
	if name == "" || !values.Known(v) || !w.compare(operator, name, v) {
		refuse()
	}
}

// compare takes one comparison as a wish.
func (w *wants) compare(operator, name string, v any) bool {
	list, isList := v.([]any)
	switch {
	case operator == "in_range" && isList && len(list) == 2:
		low := list[0] == "UNBOUNDED" || w.want("greater_or_equal", name, quantityOf(name, list[0]))
		high := list[1] == "UNBOUNDED" || w.want("less_or_equal", name, quantityOf(name, list[1]))
		return low && high
	case operator == "valid_values" && isList && name == "hardware_type":
		for _, item := range list {
			w.node.HardwareTypes = append(w.node.HardwareTypes, text(item))
		}
		return len(list) > 0
	case operator == "valid_values" && isList && len(list) == 1:
		return w.want("equal", name, quantityOf(name, list[0]))
	case isList:
		return false
	}
	return w.want(operator, name, quantityOf(name, v))
}

// asked is the property of a target that a filter asks for: the last word of
// a path that begins with SELF.
func asked(n *tree.Node) string {
	if !n.Is(tree.Map) || len(n.Entries) != 1 {
		return ""
	}
	key := n.Entries[0].Key.Text
	path := n.Entries[0].Value
	if key != "$get_property" && key != "$available_allocation" && key != "$get_attribute" || !path.Is(tree.List) || len(path.Items) < 2 || path.Items[0].Text != "SELF" {
		return ""
	}
	return path.Items[len(path.Items)-1].Text
}

func turned(operator string) string {
	switch operator {
	case "greater_than":
		return "less_than"
	case "greater_or_equal":
		return "less_or_equal"
	case "less_than":
		return "greater_than"
	case "less_or_equal":
		return "greater_or_equal"
	}
	return operator
}

// oldFilter takes a node filter of 1.x: lists of constraints of properties, of
// the node and of its capabilities.
func (w *wants) oldFilter(n *tree.Node, u *model.Unit, of *instance) {
	var properties []*tree.Node
	collect := func(from *tree.Node) {
		if list := from.Get("properties"); list.Is(tree.List) {
			properties = append(properties, list.Items...)
		}
	}
	collect(n)
	if caps := n.Get("capabilities"); caps.Is(tree.List) {
		for _, c := range caps.Items {
			if c.Is(tree.Map) && len(c.Entries) == 1 {
				collect(c.Entries[0].Value)
			}
		}
	}
	for _, p := range properties {
		if !p.Is(tree.Map) || len(p.Entries) != 1 {
			continue
		}
		name, conditions := p.Entries[0].Key.Text, []*tree.Node{p.Entries[0].Value}
		if conditions[0].Is(tree.List) {
			conditions = conditions[0].Items
		}
		for _, c := range conditions {
			operator, literal := "equal", c
			if c.Is(tree.Map) && len(c.Entries) == 1 {
				operator, literal = c.Entries[0].Key.Text, c.Entries[0].Value
			}
			v := w.s.Evaluate(model.Assigned{Node: literal, Unit: u}, &of.node.Entity, of.index)
			if !values.Known(v) || !w.compare(operator, name, v) {
				w.s.Tell(p, "", "the testbed cannot be asked for %s of %s", operator, name)
			}
		}
	}
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
