// Package docker is the driver whose nodes are containers of Docker hosts: of
// this machine's, and of others that are reached by TCP with TLS or by SSH.
//
// # A node
//
// A node is a container of an image that the inventory names. The image's own
// entry point is not run: process 1 is this very binary (see Init), which
// makes the accounts, serves logins by SSH on port 22, by the image's own sshd
// where it has one that works, and runs the driver's commands. It comes into the
// container by a read-only volume, one for each Docker host, that all nodes
// share; no directory of the host is mounted.
//
// A container is never privileged. Of the capabilities it keeps what users
// need who become root of a machine with networks of its own (see
// capabilities); the engine's seccomp filter and its read-only /proc/sys stay,
// so that what cannot be set from inside (forwarding between interfaces) is set
// when the container is made. no-new-privileges is set unless the image has
// sudo, which lives by new privileges: then users have accounts with sudo, and
// the capabilities are the bound. Without sudo, users log in as root.
//
// # State
//
// There is none besides what the Docker hosts have: labels say which manager
// and sliver a container is of, and hold what it was made of. A container has
// a name that begins with "making-" until it is whole. Users and the host key
// are files of the container, which only its init reads.
//
// Below Config.Dir lies the state of links, which drivers/wiring makes, and in
// "creating" what is being created: an engine goes on with a request whose
// client is gone, so that the next manager has to wait for it. A manager that
// finds the directory empty takes over all nodes, but not their links.
//
// Relays of links are in a cgroup of their own on this machine, which has the
// processor before others; what containers do does not hold them up, and they
// outlive the manager as the containers do. A new Driver finds them again.
package docker
