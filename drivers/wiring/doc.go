// Package wiring makes links out of what every Linux kernel has: veth pairs
// and bridges in a network namespace of their own. Drivers whose nodes are
// network namespaces of this machine (namespaces, containers) share it.
//
// # The switch
//
// A Switch is one network namespace, without addresses, which nothing on the
// host looks into: names cannot clash, host tools and firewalls cannot touch
// what is in it, and no frame can leave by the host. In it lie a bridge for
// each link, and the outer end (the port) of each interface of each node. It
// is made when the first port or link is, and goes with the last.
//
// # How a driver uses it
//
//	sw, err := wiring.Open(wiring.Config{Dir: …, Nodes: lookup})
//
//	err = sw.Plug(node, ns)       // each time that a node boots: ns is its network
//	err = sw.Unplug(node.Sliver)  // before it stops
//	err = sw.Connect(link)        // nodes may be running or stopped
//	err = sw.Disconnect(link.Sliver)
//	links := sw.Links()           // for List
//
// Plug makes the interfaces of a node, with their names, hardware addresses
// and addresses, and puts each into its link if it has one. An interface that
// is in no link exists, without a carrier. Connect and Plug come in any order.
// All operations are idempotent and may run at the same time.
//
// Links hold over restarts of nodes, of the manager (what is in the switch
// goes on without it), and of the machine (they come back with their nodes).
//
// Drivers that share a Switch have a Share each, by which their nodes can be
// joined.
//
// # Beyond the machine
//
// Each machine has a Switch with its part of a link (Divide), which goes on as
// its Way says: a VXLAN whose packets leave in the machine's network and whose
// frames come out in the switch, or a veth pair to the machine's network, where
// two eBPF programs give frames a tag and take it off, from and to an interface.
// Links with one shared VLAN have one more bridge, the segment, that joins them.
//
// # State
//
// Below Config.Dir, written before it is made:
//
//	switch           the network namespace, pinned
//	links/SLOT.json  links
//	ports/SLOT.json  nodes that are plugged in
package wiring
