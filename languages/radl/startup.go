package radl

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"croft/request"
)

// stepper makes the steps of the start-up graph.
type stepper struct {
	*compiler
	books  *playbooks
	linked map[request.ClientID]bool
	before map[request.ClientID]request.StepName // the last step of each node
	wave   []request.StepName                    // the recipes that must have ended before those of the next number
	last   []request.StepName                    // what the recipes of the number in hand wait for
}

// startup makes the start-up graph: what systems themselves ask for, then the
// recipes, in the order of contextualize.
func (c *compiler) startup() {
	d := c.definitions
	if d.disabled {
		c.keepDisabled()
		return
	}
	s := &stepper{compiler: c}
	for i := range c.machines {
		s.prepare(&c.machines[i])
	}
	items := d.items
	if !d.listed || len(items) == 0 {
		items = c.usualItems()
	}
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b ContextItem) int { return cmp.Compare(stepOf(a), stepOf(b)) })
	of := map[string][]int{}
	for i := range c.machines {
		name := c.machines[i].plan.name
		of[name] = append(of[name], i)
	}
	for k, item := range items {
		if k > 0 && stepOf(item) != stepOf(items[k-1]) {
			s.next()
		}
		if len(of[item.System]) > 0 {
			s.item(item, of[item.System])
		}
	}
}

func stepOf(i ContextItem) float64 {
	if i.Step == nil {
		return 0
	}
	return i.Step.Num
}

// usualItems are those of a document without any: recipes are for the systems
// of their names.
func (c *compiler) usualItems() []ContextItem {
	var items []ContextItem
	seen := map[string]bool{}
	for i := range c.machines {
		name := c.machines[i].plan.name
		if r := c.definitions.recipes[name]; r != nil && !r.Empty && !seen[name] {
			items = append(items, ContextItem{Offset: r.Offset, System: name, Configure: name})
		}
		seen[name] = true
	}
	return items
}

// keepDisabled tells what "contextualize ()" leaves undone.
func (c *compiler) keepDisabled() {
	for _, p := range c.plans {
		for _, a := range p.apps {
			c.keep(a.place, fmt.Sprintf("system %s: the application %s is not installed, as contextualize () says", p.name, a.name), "")
		}
	}
	slices.SortFunc(c.warnings, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column), cmp.Compare(a.What, b.What))
	})
}

// fewEdges is how many edges between two numbers are made one by one; beyond,
// all lead through one step that does nothing.
const fewEdges = 256

// next begins the recipes of the next number: they wait for all those before.
func (s *stepper) next() {
	if len(s.wave) == 0 {
		return
	}
	s.last, s.wave = s.wave, nil
	if len(s.last)*len(s.machines) <= fewEdges {
		return
	}
	node := s.request.Nodes[s.machines[0].node]
	name := request.StepName(fmt.Sprintf("%s.wait%d", stepPrefix(node.ID), len(s.request.Steps)))
	s.request.Steps = append(s.request.Steps, request.Step{
		Name: name, Node: node.ID, Place: node.Place, Run: &request.Run{Command: ":"}, After: s.last, Root: true,
	})
	s.last = []request.StepName{name}
}

// stepPrefix is the name of a node as names of steps can have it.
func stepPrefix(id request.ClientID) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && wordBytes[r] {
			return r
		}
		return '_'
	}, string(id))
	if clean != string(id) {
		clean = fmt.Sprintf("%s%x", clean, []byte(id))
	}
	if clean == "" || clean[0] == '.' || clean[0] == '-' {
		clean = "_" + clean
	}
	const most = 90 // two of them make the name of a step
	if len(clean) > most {
		sum := sha256.Sum256([]byte(clean))
		clean = clean[:most-16] + hex.EncodeToString(sum[:8])
	}
	return clean
}

// add makes a step of a recipe for a machine.
func (s *stepper) add(m *machine, name string, step request.Step, place request.Place) {
	n := &s.request.Nodes[m.node]
	step.Node, step.Place = n.ID, place
	base := stepPrefix(n.ID) + "." + stepPrefix(request.ClientID(name))
	step.Name = request.StepName(base)
	if s.taken(step.Name) {
		step.Name = request.StepName(fmt.Sprintf("%s.%d", base, len(s.request.Steps)))
	}
	s.told["step "+string(step.Name)] = true
	// What a node does, it does in order.
	step.After = s.last
	if s.before == nil {
		s.before = map[request.ClientID]request.StepName{}
	}
	if before := s.before[n.ID]; before != "" && !slices.Contains(s.last, before) {
		step.After = append(slices.Clip(step.After), before)
	}
	s.before[n.ID] = step.Name
	if limit := s.definitions.limit; limit > 0 && step.Limit == 0 {
		step.Limit = time.Duration(min(limit, 30*24*3600)) * time.Second
	}
	s.request.Steps = append(s.request.Steps, step)
}

func (s *stepper) taken(name request.StepName) bool { return s.told["step "+string(name)] }

// prepare makes the steps for what a system itself asks for.
func (s *stepper) prepare(m *machine) {
	p := m.plan
	if len(p.mounts) > 0 {
		s.add(m, "disks", request.Step{Root: true, Run: &request.Run{Args: append([]string{"mkdir", "-p", "--"}, p.mounts...)}}, p.place)
	}
	for _, a := range p.apps {
		switch {
		case isRole(a.name):
			s.role(p, a)
		case a.preinstalled:
			s.keep(a.place, fmt.Sprintf("system %s: nobody checks that its image has the application %s", p.name, a.name), "")
		default:
			s.add(m, "install."+a.name, request.Step{
				Root: true, Run: &request.Run{Args: []string{"/bin/sh", "-c", installScript, "install", a.name, a.version}},
			}, a.place)
		}
	}
	for i := range p.aspect.Features {
		f := &p.aspect.Features[i]
		if f.Name != "command" && f.Name != "script" {
			continue
		}
		if f.Value.Kind != String || f.Value.Text == "" {
			s.refuseIn(p, f, f.Name+" is no text", "")
			continue
		}
		if m.plan.aspect == p.aspect {
			s.script(m, f.Name, f.Value.Text, s.at(p, f))
		}
	}
}

// installScript installs an application that is not there yet. Arguments: its
// name, and its version or nothing.
const installScript = `name=$1 version=$2
if [ -z "$version" ] && command -v "$name" >/dev/null; then exit 0; fi
if command -v apt-get >/dev/null; then
	have=$(dpkg-query -W -f '${Status} ${Version}' "$name" 2>/dev/null)
	case $have in "install ok installed $version"*) exit 0 ;; esac
	export DEBIAN_FRONTEND=noninteractive
	wanted=$name${version:+=$version*}
	apt-get install -y -q --no-install-recommends "$wanted" && exit
	apt-get update -q && apt-get install -y -q --no-install-recommends "$wanted" && exit
elif command -v dnf >/dev/null; then
	dnf install -y -q "$name${version:+-$version*}" && exit
elif command -v yum >/dev/null; then
	yum install -y -q "$name${version:+-$version*}" && exit
elif command -v apk >/dev/null; then
	apk add "$name${version:+=~$version}" && exit
fi
echo "the application $name${version:+ $version} is neither in the image nor could it be installed" >&2
exit 1`

// scriptDir is where recipes are put in nodes.
const scriptDir = "/opt/croft/radl"

// script runs a script of its own.
func (s *stepper) script(m *machine, name, text string, place request.Place) {
	text = strings.TrimLeft(text, " \t\r\n")
	if !strings.HasPrefix(text, "#!") {
		text = "#!/bin/sh\n" + text
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	path := scriptDir + "/" + stepPrefix(request.ClientID(name))
	s.add(m, name, request.Step{
		Root:  true,
		Files: []request.File{{Path: path, Mode: 0o700, Content: []byte(text)}},
		Run:   &request.Run{Args: []string{path}},
	}, place)
}

// item makes the steps of one line of contextualize.
func (s *stepper) item(item ContextItem, machines []int) {
	r := s.definitions.recipes[item.Configure]
	if r == nil || r.Empty || strings.TrimSpace(r.Recipe) == "" {
		return
	}
	place := s.place(r, r.Offset, "configure "+r.Name)
	before := len(s.request.Steps)
	switch tool := strings.ToLower(item.Tool); {
	case tool == "cloud_init" || tool == "cloud-init":
		s.cloudInit(r, machines, place)
	case tool == "shell" || tool == "sh" || tool == "bash" || tool == "script",
		(tool == "" || tool == "ansible") && isScript(r.Recipe):
		for _, i := range machines {
			s.script(&s.machines[i], r.Name, r.Recipe, place)
		}
	case tool == "" || tool == "ansible":
		s.ansible(r, machines, place)
	default:
		s.refuse(item.Offset, fmt.Sprintf("there is no tool %q for recipes here", item.Tool), "there are Ansible, cloud_init and shell")
	}
	for i := before; i < len(s.request.Steps); i++ {
		s.wave = append(s.wave, s.request.Steps[i].Name)
	}
}
