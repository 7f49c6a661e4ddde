package rspec

import "croft/slivers"

// simulated is the driver that only pretends. Its nodes are advertised as what
// they are.
const simulated = "simulated"

// opstates writes the states that nodes go through and the actions that take
// them there (extension opstate/1): one machine for each group of sliver types
// that share one.
func (w *catalogueWriter) opstates() []fragment {
	real := fragment{name: "rspec_opstate"}
	pretended := fragment{name: "rspec_opstate"}
	for _, m := range []*fragment{&real, &pretended} {
		m.attr("xmlns", nsOpstate)
		m.attr("aggregate_manager_id", w.Manager.String())
		m.attr("start", string(slivers.NotReady))
	}
	for _, t := range w.Offered() {
		m := &real
		if t.Driver == simulated {
			m = &pretended
		}
		m.kids = append(m.kids, fragment{name: "sliver_type", attrs: []pair{{"name", string(t.Name)}}})
	}
	var list []fragment
	if len(real.kids) > 0 {
		real.kids = append(real.kids, states("", "its users can log in")...)
		list = append(list, real)
	}
	if len(pretended.kids) > 0 {
		pretended.kids = append(pretended.kids, states("Simulated, there is no machine. ", "nobody can log in to it")...)
		list = append(list, pretended)
	}
	return list
}

// states is the machine of AM API v3 as this aggregate runs it.
func states(remark, when string) []fragment {
	state := func(name slivers.Operational, description string, ways ...fragment) fragment {
		about := fragment{name: "description", text: remark + description}
		return fragment{name: "state", attrs: []pair{{"name", string(name)}}, kids: append(ways, about)}
	}
	action := func(name string, next slivers.Operational, description string) fragment {
		return fragment{
			name: "action", attrs: []pair{{"name", name}, {"next", string(next)}},
			kids: []fragment{{name: "description", text: description}},
		}
	}
	wait := func(typ string, next slivers.Operational) fragment {
		return fragment{name: "wait", attrs: []pair{{"type", typ}, {"next", string(next)}}}
	}
	const success, failure = "geni_success", "geni_failure"
	return []fragment{
		state(slivers.NotReady, "The node is not running.",
			action("geni_start", slivers.Configuring, "Boot the node")),
		state(slivers.Configuring, "The node is booting.",
			wait(success, slivers.Ready), wait(failure, slivers.Failed)),
		state(slivers.Ready, "The node is up and "+when+".",
			action("geni_restart", slivers.Configuring, "Boot the node anew"),
			action("geni_stop", slivers.Stopping, "Halt the node"),
			action("geni_update_users", slivers.UpdatingUsers, "Change who can log in to the node"),
			action("croft_rerun_startup", slivers.Ready, "Try again what failed of the node's start-up")),
		state(slivers.Stopping, "The node is halting.",
			wait(success, slivers.NotReady), wait(failure, slivers.Failed)),
		state(slivers.UpdatingUsers, "The accounts of the node are changing.",
			wait(success, slivers.Ready), wait(failure, slivers.Failed),
			action("geni_updating_users_cancel", slivers.Ready, "Leave the accounts as they are"),
			action("geni_update_users_cancel", slivers.Ready, "The same, as Emulab calls it")),
		state(slivers.Failed, "The node needs an administrator."),
	}
}
