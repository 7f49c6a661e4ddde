// Package startup has what start-up graphs are run by: it checks them (Compile),
// decides what comes next (Next), and does a step in a node through its driver
// (Node). It keeps nothing itself: the aggregate stores how steps go.
//
// # In a node
//
// A step runs below a supervisor of a few lines of shell, which is in the node
// and outlives the manager. What it notes is below /var/lib/croft-steps, which
// belongs to root and which others may only pass through:
//
//	STEP/ATTEMPT/claim    made by who runs the attempt; holds the supervisor's pid and start
//	STEP/ATTEMPT/command  what is run, by the step's account
//	STEP/ATTEMPT/output   standard output and error
//	STEP/ATTEMPT/outputs  lines NAME=VALUE that the step gives
//	STEP/ATTEMPT/status   exit status, once it has ended
//
// An attempt is claimed before it is begun and runs once, whoever launches it
// how often; a manager that was killed finds it running or ended. Only when the
// node itself was restarted while a step ran is the step tried again, as a new
// attempt: steps should bear that.
//
// Nodes need /bin/sh and what POSIX has beside it; setsid and setpriv, runuser
// or su are there in all images that are used for machines.
package startup
