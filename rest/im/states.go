package im

import (
	"strconv"

	"croft/aggregate"
	"croft/slivers"
)

// state is one of the Infrastructure Manager's states, of a machine or of an
// infrastructure.
type state string

// The states. Clients wait while it is pending or running.
const (
	pending      state = "pending"      // being made
	running      state = "running"      // there, and being configured
	configured   state = "configured"   // ready
	unconfigured state = "unconfigured" // there, but a step of its start-up failed
	stopped      state = "stopped"
	off          state = "off" // gone
	failed       state = "failed"
	unknown      state = "unknown"
)

// stateOf derives the state of a machine from its sliver and the steps of its
// start-up.
func stateOf(o aggregate.Outcome) state {
	v := o.Sliver
	if v.Allocation != slivers.Provisioned {
		return pending
	}
	switch v.Operational {
	case slivers.PendingAllocation, slivers.Configuring:
		return pending
	case slivers.NotReady:
		if v.AutoStart && v.Goal != slivers.NoGoal {
			return pending
		}
		return stopped
	case slivers.Stopping:
		return stopped
	case slivers.Failed:
		return failed
	case slivers.Ready, slivers.ReadyBusy, slivers.UpdatingUsers:
	default:
		return unknown
	}
	result := configured
	for _, s := range o.Startup {
		switch {
		case !s.State.Ended():
			return running
		case s.State == slivers.StepFailed && !s.Tolerant, s.State == slivers.StepSkipped:
			result = unconfigured
		}
	}
	return result
}

// state is that of a machine of the infrastructure.
func (x *infrastructure) state(m *machineRecord) state {
	o, ok := x.live[m.Sliver.Canonical()]
	if !ok {
		return off
	}
	return stateOf(o)
}

// states are those of all machines by their numbers, and the one of the
// infrastructure: the worst of them.
func (x *infrastructure) states() (whole state, machines map[string]state) {
	order := []state{failed, unknown, pending, running, unconfigured, stopped, off, configured}
	machines = map[string]state{}
	have := map[state]bool{}
	for i := range x.Machines {
		s := x.state(&x.Machines[i])
		machines[strconv.Itoa(x.Machines[i].Number)] = s
		have[s] = true
	}
	for _, s := range order {
		if have[s] {
			return s, machines
		}
	}
	return configured, machines // there is nothing to wait for
}
