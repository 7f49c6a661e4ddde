package startup

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"croft/request"
	"croft/slivers"
)

// stepName is what a step may be called: it names a directory in the node.
var stepName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$`)

// Bounds of one document.
const (
	maxSteps     = 20000
	maxVariables = 1000 // of a step, or a node
)

// Problem is what is wrong with a step.
type Problem struct {
	Step  request.StepName
	Place request.Place
	What  string
}

func (p *Problem) Error() string {
	at := p.Place.String()
	if at != "" {
		at += ": "
	}
	return fmt.Sprintf("%sstep %s: %s", at, p.Step, p.What)
}

// Environments are the nodes of a request and of its slice, each with the
// variables that all its steps get.
type Environments map[request.ClientID][]request.Variable

// Compile makes the steps of a request ready to be stored: in the order of the
// request, each with all that it waits for. have are the steps that the slice
// has already. Slice, Sliver and Document of the steps are the caller's to set.
func Compile(tasks []request.Step, have []slivers.Step, nodes Environments) ([]slivers.Step, error) {
	if len(tasks) > maxSteps {
		return nil, fmt.Errorf("%d steps: at most %d are run for a document", len(tasks), maxSteps)
	}
	known := map[request.StepName]bool{} // true: of this request
	for _, s := range have {
		known[s.Name] = false
	}
	for _, t := range tasks {
		if !stepName.MatchString(string(t.Name)) {
			return nil, &Problem{t.Name, t.Place, "it needs a name of letters, digits and ._- of at most 200 characters"}
		}
		if _, twice := known[t.Name]; twice {
			return nil, &Problem{t.Name, t.Place, "there is a step of this name already"}
		}
		known[t.Name] = true
	}
	list := make([]slivers.Step, len(tasks))
	last := map[request.ClientID]request.StepName{} // of the steps that wait for none by name
	for i, t := range tasks {
		common, there := nodes[t.Node]
		if !there {
			return nil, &Problem{t.Name, t.Place, fmt.Sprintf("there is no node %q", t.Node)}
		}
		s := slivers.Step{Name: t.Name, Node: t.Node, Tolerant: t.Tolerant, State: slivers.StepWaiting}
		if err := kindOf(t, &s); err != nil {
			return nil, err
		}
		s.After = slices.Clone(t.After)
		if len(t.After) == 0 {
			if before, ok := last[t.Node]; ok {
				s.After = append(s.After, before)
			}
			last[t.Node] = t.Name
		}
		if len(t.Env) > maxVariables {
			return nil, &Problem{t.Name, t.Place, fmt.Sprintf("%d variables: at most %d", len(t.Env), maxVariables)}
		}
		for _, v := range append(slices.Clone(common), t.Env...) {
			if err := nodes.use(&s, v); err != nil {
				return nil, &Problem{t.Name, t.Place, err.Error()}
			}
		}
		slices.Sort(s.After)
		s.After = slices.Compact(s.After)
		slices.Sort(s.Needs)
		s.Needs = slices.Compact(s.Needs)
		for _, a := range s.After {
			if _, ok := known[a]; !ok {
				return nil, &Problem{t.Name, t.Place, fmt.Sprintf("it waits for step %q, which there is not", a)}
			}
		}
		list[i] = s
	}
	if circle := findCircle(list); circle != nil {
		names := make([]string, len(circle))
		for i, n := range circle {
			names[i] = string(n)
		}
		i := slices.IndexFunc(tasks, func(t request.Step) bool { return t.Name == circle[0] })
		return nil, &Problem{circle[0], tasks[i].Place, "steps wait for each other: " + strings.Join(names, " after ")}
	}
	return list, nil
}

// kindOf says what a step does and checks that it can be done.
func kindOf(t request.Step, s *slivers.Step) error {
	wrong := func(format string, args ...any) error {
		return &Problem{t.Name, t.Place, fmt.Sprintf(format, args...)}
	}
	var run *request.Run
	switch {
	case t.Install != nil && t.Run == nil && t.Service == nil:
		s.Kind = slivers.StepInstall
		if err := checkInstall(t.Install); err != nil {
			return wrong("%v", err)
		}
	case t.Run != nil && t.Install == nil && t.Service == nil:
		s.Kind, run = slivers.StepRun, t.Run
	case t.Service != nil && t.Install == nil && t.Run == nil:
		s.Kind, run = slivers.StepService, &t.Service.Run
		s.Ends = t.Service.Ends
	case t.Install == nil && t.Run == nil && t.Service == nil && len(t.Files) > 0:
		s.Kind = slivers.StepFiles
	default:
		return wrong("it does not do one thing: install, run a command, or keep a service")
	}
	if run != nil {
		if run.Command == "" && len(run.Args) == 0 && t.Service == nil { // services have their image's
			return wrong("no command")
		}
		for _, text := range append([]string{run.Command, run.Shell, run.Dir}, run.Args...) {
			if strings.ContainsRune(text, 0) {
				return wrong("a command with a zero byte")
			}
		}
	}
	for _, f := range t.Files {
		if !strings.HasPrefix(f.Path, "/") || strings.HasSuffix(f.Path, "/") || strings.ContainsRune(f.Path, 0) {
			return wrong("file %q: want an absolute path", f.Path)
		}
	}
	if t.Limit < 0 {
		return wrong("a time limit of %s", t.Limit)
	}
	return nil
}

func checkInstall(i *request.Install) error {
	if !strings.HasPrefix(i.Path, "/") && i.Path != "~" && !strings.HasPrefix(i.Path, "~/") || strings.ContainsRune(i.Path, 0) {
		return fmt.Errorf("install path %q: want an absolute path, or one below ~", i.Path)
	}
	if strings.ContainsRune(i.URL, 0) {
		return fmt.Errorf("URL %q", i.URL)
	}
	return nil
}

// use notes what a variable has its step wait for.
func (nodes Environments) use(s *slivers.Step, v request.Variable) error {
	if !variableName.MatchString(v.Name) {
		return fmt.Errorf("%q cannot be a variable: want letters, digits and _", v.Name)
	}
	for _, p := range v.Value {
		switch {
		case strings.ContainsRune(p.Text, 0):
			return fmt.Errorf("variable %s has a zero byte", v.Name)
		case p.Output != nil:
			s.After = append(s.After, p.Output.Step)
		case p.Attribute != nil:
			if _, there := nodes[p.Attribute.Node]; !there {
				return fmt.Errorf("variable %s: there is no node %q", v.Name, p.Attribute.Node)
			}
			s.Needs = append(s.Needs, p.Attribute.Node)
		}
	}
	return nil
}

// findCircle returns steps that wait for each other, or nil.
func findCircle(list []slivers.Step) []request.StepName {
	at := make(map[request.StepName]int, len(list))
	waits := make([]int, len(list))
	behind := make([][]int, len(list))
	for i, s := range list {
		at[s.Name] = i
	}
	for i, s := range list {
		for _, a := range s.After {
			if j, ok := at[a]; ok {
				waits[i]++
				behind[j] = append(behind[j], i)
			}
		}
	}
	var free []int
	for i, n := range waits {
		if n == 0 {
			free = append(free, i)
		}
	}
	left := len(list)
	for len(free) > 0 {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		left--
		for _, j := range behind[i] {
			if waits[j]--; waits[j] == 0 {
				free = append(free, j)
			}
		}
	}
	if left == 0 {
		return nil
	}
	// Every step that is left waits for one that is left: going back from any
	// of them comes round.
	i := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
	seen := map[int]int{}
	var way []int
	for {
		if k, ok := seen[i]; ok {
			var names []request.StepName
			for _, j := range append(way[k:], i) {
				names = append(names, list[j].Name)
			}
			return names
		}
		seen[i] = len(way)
		way = append(way, i)
		for _, a := range list[i].After {
			if j, ok := at[a]; ok && waits[j] > 0 {
				i = j
				break
			}
		}
	}
}
