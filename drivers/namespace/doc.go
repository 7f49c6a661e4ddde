// Package namespace is the driver that makes nodes out of what every Linux
// kernel has: namespaces, overlayfs, cgroups, veth pairs and bridges. Nothing
// else need be installed.
//
// # A node
//
// A node is a process of this very binary (see Init) in namespaces of its own:
// user, mount, network, PID, UTS, IPC and cgroup. Its users' root is root of
// the user namespace only: outside, it is one of 65536 user ids that belong to
// nobody. The node's file system is an overlay whose lower layers are mapped
// to those ids: an image directory, or, without one, an allow-list of the
// host's own system (see system.go). The host's tree is not below it, and not
// reachable by unmounting. A filter refuses the few system calls and socket
// families that know no namespaces.
//
// Process 1 of a node serves logins by SSH on port 22 of all the node's
// addresses, and the driver's commands on a UNIX socket outside the node's
// tree. It holds nothing of the manager's and outlives it: a new Driver on the
// same state directory finds the nodes again.
//
// # Links
//
// Bridges and the outer ends of the nodes' interfaces lie in one network
// namespace of the driver's, without addresses, which nothing on the host
// looks into: names cannot clash, host tools cannot touch them, and no frame
// can leave by the host. Each link is one bridge there. An interface that is
// in no link exists, without a carrier.
//
// # State
//
// Everything is in the state directory, written before it is made:
//
//	lock              held by the running Driver
//	switch            the network namespace of the bridges, pinned
//	system/HASH/      the generated part of the fall-back image; stays
//	nodes/SLOT/       node.json (with its host key), run.json, console.log, control socket,
//	                  disk.img and loop (its device), where the disk is limited
//	nodes/SLOT/disk/  what the node has written
//	links/SLOT.json
//
// A slot is a small number: it chooses a node's range of user ids, its cgroup
// and the names of its ports.
package namespace
