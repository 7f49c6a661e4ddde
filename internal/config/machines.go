package config

import "time"

// Machines says how the driver ssh gets at machines. It counts only if the
// inventory has sliver types of that driver; where the machines are is in the
// inventory.
type Machines struct {
	// Key is the file with the private key that the machines let in; a server
	// that does not find it makes it.
	Key   string       `yaml:"key"`
	Links MachineLinks `yaml:"links"`
}

// MachineLinks says how links between machines come to be on the switches.
type MachineLinks struct {
	// Command makes and removes the network of a link. It is told by its
	// environment: CROFT_ACTION is connect or disconnect, CROFT_LINK names the
	// link, CROFT_ENDS are its machine:interface pairs, CROFT_VLAN its tag and
	// CROFT_SHARED_VLAN its shared VLAN, if it has them.
	Command []string `yaml:"command"`
	Limit   Duration `yaml:"limit"` // of one run
	// PlainSwitches carry frames between all of their ports.
	PlainSwitches []string `yaml:"plain_switches"`
}

func (v *validator) machines(m Machines) {
	if m.Key == "" {
		v.fail("machines.key", "empty: a file name is needed (leave the field out for its default)")
	}
	if m.Links.Limit.Std() < time.Second {
		v.fail("machines.links.limit", "%s is no time for a command", m.Links.Limit)
	}
	for _, word := range m.Links.Command {
		if word == "" {
			v.fail("machines.links.command", "an empty word")
		}
	}
}
