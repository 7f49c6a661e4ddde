package startup

import (
	"fmt"

	"croft/request"
	"croft/slivers"
)

// Situation is a node of a slice, as far as it matters to its steps.
type Situation struct {
	Ready      bool   // its users can log in
	Given      bool   // it is provisioned: all its attributes are known
	Made, Boot int    // how often it was made and started
	Why        string // it is not ready
}

// Plan is what is to be done about the steps of a slice.
type Plan struct {
	Begin []slivers.StepID // a new attempt
	Watch []slivers.StepID // an attempt that is under way
	Reset []slivers.StepID // what it did is lost with its node's disk
	Skip  map[slivers.StepID]string
	Wait  map[slivers.StepID]string // why it still waits
}

// Next decides what is to be done now. nodes are those of the slice that live;
// steps of other nodes are not touched. watched are the attempts that somebody
// looks after already.
func Next(steps []slivers.Step, nodes map[request.ClientID]Situation, watched map[slivers.StepID]bool) Plan {
	p := Plan{Skip: map[slivers.StepID]string{}, Wait: map[slivers.StepID]string{}}
	byName := make(map[request.StepName]*slivers.Step, len(steps))
	busy := map[request.ClientID]request.StepName{} // one step at a time for each node
	for i := range steps {
		s := &steps[i]
		byName[s.Name] = s
		if n, live := nodes[s.Node]; live && s.State == slivers.StepRunning && s.Made == n.Made {
			busy[s.Node] = s.Name
		}
	}
	for i := range steps {
		s := &steps[i]
		n, live := nodes[s.Node]
		if !live {
			continue
		}
		if s.State != slivers.StepWaiting && s.Made != n.Made {
			if !watched[s.ID] {
				p.Reset = append(p.Reset, s.ID)
			}
			continue
		}
		switch {
		case s.State == slivers.StepRunning, s.Kind == slivers.StepService && s.State == slivers.StepDone:
			switch {
			case watched[s.ID] || !n.Ready:
			case s.Boot != n.Boot:
				p.Begin = append(p.Begin, s.ID)
			case s.State == slivers.StepRunning || s.Alive:
				p.Watch = append(p.Watch, s.ID)
			}
		case s.State == slivers.StepWaiting:
			reason, skip := blocked(s, byName, nodes)
			switch {
			case skip:
				p.Skip[s.ID] = reason
			case reason != "":
				p.Wait[s.ID] = reason
			case !n.Ready:
				p.Wait[s.ID] = n.Why
			case busy[s.Node] != "":
				p.Wait[s.ID] = fmt.Sprintf("waits for step %s of the same node", busy[s.Node])
			default:
				busy[s.Node] = s.Name
				p.Begin = append(p.Begin, s.ID)
			}
		}
	}
	return p
}

// blocked says which step another waits for, and whether in vain.
func blocked(s *slivers.Step, byName map[request.StepName]*slivers.Step, nodes map[request.ClientID]Situation) (reason string, inVain bool) {
	for _, name := range s.After {
		before := byName[name]
		switch {
		case before == nil:
			return fmt.Sprintf("step %s is gone with its node", name), true
		case before.State == slivers.StepFailed && !before.Tolerant, before.State == slivers.StepSkipped:
			return fmt.Sprintf("step %s %s", name, before.State), true
		}
		if _, live := nodes[before.Node]; !live {
			return fmt.Sprintf("step %s is gone with its node", name), true
		}
		if !before.State.Ended() && reason == "" {
			reason = fmt.Sprintf("waits for step %s", name)
		}
	}
	for _, id := range s.Needs {
		n, live := nodes[id]
		if !live {
			return fmt.Sprintf("node %s is gone", id), true
		}
		if !n.Given && reason == "" {
			reason = fmt.Sprintf("waits for node %s to be provisioned", id)
		}
	}
	return reason, false
}
