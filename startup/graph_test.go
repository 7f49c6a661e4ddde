package startup_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/request"
	"croft/slivers"
	"croft/startup"
)

func task(node, name string, after ...request.StepName) request.Step {
	return request.Step{Name: request.StepName(name), Node: request.ClientID(node), Run: &request.Run{Command: "true"}, After: after}
}

func with(s request.Step, change func(*request.Step)) request.Step {
	change(&s)
	return s
}

var nodes = startup.Environments{"a": nil, "b": {{Name: "COMMON", Value: request.Value{{Attribute: &request.Attribute{Node: "a", Name: request.AttrAddress}}}}}}

func TestCompileOrders(t *testing.T) {
	uses := with(task("a", "a3", "a1"), func(s *request.Step) {
		s.Env = []request.Variable{
			{Name: "X", Value: request.Value{{Output: &request.Output{Step: "b1", Name: "N"}}, {Text: "/"}, {Output: &request.Output{Step: "a1", Name: "N"}}}},
			{Name: "Y", Value: request.Value{{Attribute: &request.Attribute{Node: "b", Name: request.AttrMAC}}}},
		}
	})
	list, err := startup.Compile([]request.Step{task("a", "a1"), task("b", "b1"), uses, task("a", "a2"), task("b", "b2"), task("a", "a4", "before")},
		[]slivers.Step{{Name: "before"}}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name  request.StepName
		after []request.StepName
		needs []request.ClientID
	}{
		{"a1", nil, nil}, {"b1", nil, []request.ClientID{"a"}},
		{"a3", []request.StepName{"a1", "b1"}, []request.ClientID{"b"}},
		{"a2", []request.StepName{"a1"}, nil}, // a3 waits by name: it is out of the row
		{"b2", []request.StepName{"b1"}, []request.ClientID{"a"}},
		{"a4", []request.StepName{"before"}, nil},
	} {
		if s := list[i]; s.Name != want.name || !slices.Equal(s.After, want.after) || !slices.Equal(s.Needs, want.needs) || s.State != slivers.StepWaiting {
			t.Errorf("%s waits for %q and needs %q, want %q and %q", s.Name, s.After, s.Needs, want.after, want.needs)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	many := make([]request.Step, 20001)
	for i := range many {
		many[i] = task("a", fmt.Sprint(i))
	}
	for _, c := range []struct {
		name  string
		tasks []request.Step
		says  string
	}{
		{"a path for a name", []request.Step{task("a", "../x")}, "needs a name"},
		{"no name", []request.Step{task("a", "")}, "needs a name"},
		{"a long name", []request.Step{task("a", strings.Repeat("x", 201))}, "needs a name"},
		{"twice", []request.Step{task("a", "x"), task("b", "x")}, "of this name already"},
		{"known to the slice", []request.Step{task("a", "before")}, "of this name already"},
		{"no node", []request.Step{task("c", "x")}, `no node "c"`},
		{"after what is not", []request.Step{task("a", "x", "y")}, `"y", which there is not`},
		{"after itself", []request.Step{task("a", "x", "x")}, "x after x"},
		{"a circle", []request.Step{task("a", "w", "z"), task("a", "x", "z"), task("b", "y", "x"), task("b", "z", "y")}, "steps wait for each other: z after y after x after z"},
		{"a circle by outputs", []request.Step{with(task("a", "x"), func(s *request.Step) {
			s.Env = []request.Variable{{Name: "V", Value: request.Value{{Output: &request.Output{Step: "x"}}}}}
		})}, "x after x"},
		{"nothing to do", []request.Step{{Name: "x", Node: "a"}}, "does not do one thing"},
		{"two things", []request.Step{with(task("a", "x"), func(s *request.Step) { s.Install = &request.Install{Path: "/"} })}, "does not do one thing"},
		{"no command", []request.Step{with(task("a", "x"), func(s *request.Step) { s.Run.Command = "" })}, "no command"},
		{"a zero byte", []request.Step{with(task("a", "x"), func(s *request.Step) { s.Run.Command = "a\x00" })}, "zero byte"},
		{"a relative path", []request.Step{{Name: "x", Node: "a", Install: &request.Install{URL: "http://x/", Path: "x"}}}, "absolute path"},
		{"a relative file", []request.Step{with(task("a", "x"), func(s *request.Step) { s.Files = []request.File{{Path: "x"}} })}, "absolute path"},
		{"a variable that is none", []request.Step{with(task("a", "x"), func(s *request.Step) { s.Env = []request.Variable{{Name: "a b"}} })}, "cannot be a variable"},
		{"a shell's trick", []request.Step{with(task("a", "x"), func(s *request.Step) { s.Env = []request.Variable{{Name: "a=$(id)"}} })}, "cannot be a variable"},
		{"an attribute of nobody", []request.Step{with(task("a", "x"), func(s *request.Step) {
			s.Env = []request.Variable{{Name: "V", Value: request.Value{{Attribute: &request.Attribute{Node: "c"}}}}}
		})}, `no node "c"`},
		{"negative time", []request.Step{with(task("a", "x"), func(s *request.Step) { s.Limit = -time.Second })}, "time limit"},
		{"too many", many, "at most 20000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.tasks {
				c.tasks[i].Place.Line = 7
			}
			_, err := startup.Compile(c.tasks, []slivers.Step{{Name: "before"}}, nodes)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want a refusal with %q", err, c.says)
			}
			var p *startup.Problem
			if errors.As(err, &p) && p.Place.Line != 7 {
				t.Errorf("it is said to be at %v", p.Place)
			}
		})
	}
}

func TestNext(t *testing.T) {
	up := startup.Situation{Ready: true, Given: true, Made: 1, Boot: 1}
	down := startup.Situation{Given: true, Made: 1, Boot: 1, Why: "down"}
	step := func(name, node string, state slivers.StepState, after ...request.StepName) slivers.Step {
		s := slivers.Step{Name: request.StepName(name), Node: request.ClientID(node), Kind: slivers.StepRun, State: state, After: after}
		if state != slivers.StepWaiting {
			s.Attempt, s.Made, s.Boot = 1, 1, 1
		}
		return s
	}
	also := func(s slivers.Step, change func(*slivers.Step)) slivers.Step { change(&s); return s }
	const waiting, running, done, failed, skipped = slivers.StepWaiting, slivers.StepRunning, slivers.StepDone, slivers.StepFailed, slivers.StepSkipped
	type situations = map[request.ClientID]startup.Situation
	for _, c := range []struct {
		name    string
		steps   []slivers.Step // their IDs are their places, from 1
		nodes   situations
		watched []slivers.StepID
		begin   []slivers.StepID
		watch   []slivers.StepID
		reset   []slivers.StepID
		skip    map[slivers.StepID]string
		wait    map[slivers.StepID]string
	}{
		{name: "one at a time on each node", nodes: situations{"a": up, "b": up},
			steps: []slivers.Step{step("1", "a", waiting), step("2", "a", waiting), step("3", "b", waiting)},
			begin: []slivers.StepID{1, 3}, wait: map[slivers.StepID]string{2: "waits for step 1 of the same node"}},
		{name: "a node that is down waits", nodes: situations{"a": down},
			steps: []slivers.Step{step("1", "a", waiting)}, wait: map[slivers.StepID]string{1: "down"}},
		{name: "after another", nodes: situations{"a": up, "b": up},
			steps: []slivers.Step{step("1", "a", done), step("2", "b", waiting, "1"), step("3", "a", waiting, "2")},
			begin: []slivers.StepID{2}, wait: map[slivers.StepID]string{3: "waits for step 2"}},
		{name: "what waits holds up no other", nodes: situations{"a": up, "b": down},
			steps: []slivers.Step{step("1", "b", waiting), step("2", "a", waiting, "1"), step("3", "a", waiting)},
			begin: []slivers.StepID{3}, wait: map[slivers.StepID]string{1: "down", 2: "waits for step 1"}},
		{name: "after what failed", nodes: situations{"a": up},
			steps: []slivers.Step{step("1", "a", failed), step("2", "a", waiting, "1"), step("3", "a", skipped), step("4", "a", waiting, "3")},
			skip:  map[slivers.StepID]string{2: "step 1 failed", 4: "step 3 skipped"}},
		{name: "after what may fail", nodes: situations{"a": up},
			steps: []slivers.Step{also(step("1", "a", failed), func(s *slivers.Step) { s.Tolerant = true }), step("2", "a", waiting, "1")},
			begin: []slivers.StepID{2}},
		{name: "after what is gone", nodes: situations{"a": up},
			steps: []slivers.Step{step("1", "a", waiting, "x"), step("2", "gone", waiting), step("3", "a", waiting, "2")},
			skip:  map[slivers.StepID]string{1: "step x is gone with its node", 3: "step 2 is gone with its node"}},
		{name: "attributes of a node that is not provisioned, or gone", nodes: situations{"a": up, "b": {}},
			steps: []slivers.Step{also(step("1", "a", waiting), func(s *slivers.Step) { s.Needs = []request.ClientID{"b"} }),
				also(step("2", "a", waiting), func(s *slivers.Step) { s.Needs = []request.ClientID{"c"} })},
			skip: map[slivers.StepID]string{2: "node c is gone"}, wait: map[slivers.StepID]string{1: "waits for node b to be provisioned"}},
		{name: "a restarted manager watches", nodes: situations{"a": up},
			steps: []slivers.Step{step("1", "a", running), step("2", "a", waiting)},
			watch: []slivers.StepID{1}, wait: map[slivers.StepID]string{2: "waits for step 1 of the same node"}},
		{name: "what is watched is left alone", nodes: situations{"a": up}, watched: []slivers.StepID{1},
			steps: []slivers.Step{step("1", "a", running)}},
		{name: "a restarted node begins again", nodes: situations{"a": {Ready: true, Given: true, Made: 1, Boot: 2}},
			steps: []slivers.Step{step("1", "a", done), step("2", "a", running),
				also(step("3", "a", done), func(s *slivers.Step) { s.Kind = slivers.StepService }), step("4", "a", failed)},
			begin: []slivers.StepID{2, 3}},
		{name: "not before it is ready", nodes: situations{"a": {Given: true, Made: 1, Boot: 2}}, steps: []slivers.Step{step("1", "a", running)}},
		{name: "a service that runs is watched, one that has ended is not", nodes: situations{"a": up},
			steps: []slivers.Step{also(step("1", "a", done), func(s *slivers.Step) { s.Kind, s.Alive = slivers.StepService, true }),
				also(step("2", "a", done), func(s *slivers.Step) { s.Kind = slivers.StepService })},
			watch: []slivers.StepID{1}},
		{name: "a node made anew has lost all", nodes: situations{"a": {Ready: true, Given: true, Made: 2, Boot: 2}}, watched: []slivers.StepID{3},
			steps: []slivers.Step{step("1", "a", done), step("2", "a", failed), step("3", "a", running), step("4", "a", skipped), step("5", "a", waiting)},
			reset: []slivers.StepID{1, 2, 4}, begin: []slivers.StepID{5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.steps {
				c.steps[i].ID = slivers.StepID(i + 1)
			}
			watched := map[slivers.StepID]bool{}
			for _, id := range c.watched {
				watched[id] = true
			}
			p := startup.Next(c.steps, c.nodes, watched)
			if !slices.Equal(p.Begin, c.begin) || !slices.Equal(p.Watch, c.watch) || !slices.Equal(p.Reset, c.reset) {
				t.Errorf("begin %v, watch %v, reset %v; want %v, %v, %v", p.Begin, p.Watch, p.Reset, c.begin, c.watch, c.reset)
			}
			if len(p.Skip)+len(c.skip) > 0 && !reflect.DeepEqual(p.Skip, c.skip) {
				t.Errorf("skip %v, want %v", p.Skip, c.skip)
			}
			if len(p.Wait)+len(c.wait) > 0 && !reflect.DeepEqual(p.Wait, c.wait) {
				t.Errorf("wait %v, want %v", p.Wait, c.wait)
			}
		})
	}
}
