// Package nodeinit is the part of drivers that runs inside a node: the program
// of process 1. The namespace driver starts its own binary again with Word as
// first argument; from then on the code here builds the node's file system,
// gives up the host's, and serves logins until the node is stopped. In a
// container, which a container engine has built, it does the last only.
//
// Nothing in this package trusts the driver to stay alive: a node outlives the
// manager that started it. And nothing outside trusts what happens in here:
// the root of the node may read and change this process at will.
package nodeinit

import (
	"fmt"
	"os"
	"strconv"
)

// Word is the first argument that turns a binary into a node's init.
const Word = "croft-node"

// The stages that follow Word on the command line.
const (
	StageBoot = "boot" // started by the driver: builds the node's root, then becomes StageRun
	StageRun  = "run"  // process 1 of the node
	StageSFTP = "sftp" // a file transfer of one user, as that user

	StageContainer = "container" // process 1 of a container that somebody else has made
	StageConnect   = "connect"   // joins its standard streams to an address that the node can reach
)

// File descriptors that the stages find open, beside the standard ones.
const (
	SyncFD    = 3 // stream socket to the driver: file descriptors in, one answer out
	configFD  = 4 // memory file with the Config
	controlFD = 5 // listening UNIX socket that only the driver can reach
)

// Answers that a node gives on SyncFD. A failure is followed by its text.
const (
	AnswerReady   = 'r'
	AnswerFailure = 'e'
)

// Config is what the driver hands to a node that boots.
type Config struct {
	Sliver       string    `json:"sliver"` // URN, for messages only
	Hostname     string    `json:"hostname"`
	HostKey      []byte    `json:"host_key"` // SSH private key, PEM
	Accounts     []Account `json:"accounts"`
	Overlays     []Overlay `json:"overlays"`  // in the order in which they are mounted; the first is the root
	Libraries    []string  `json:"libraries"` // file names, the loader first; none for a static binary
	ConsoleBytes int64     `json:"console_bytes"`
	OpenSSH      bool      `json:"openssh"`     // logins are served by the image's sshd, if it has one
	Environment  []string  `json:"environment"` // NAME=value, of the image: for all of the node's programs
}

// Account is a user of the node. Those given are the whole truth: an account
// that Croft made and that is not given any more goes.
type Account struct {
	Login string   `json:"login"`
	Note  string   `json:"note"` // the user's URN
	Keys  []string `json:"keys"` // authorized_keys lines without options
}

// Overlay is one part of a node's file system: layers that are read only, the
// uppermost first, below a directory of the node's disk that takes the
// changes.
type Overlay struct {
	Target string `json:"target"` // "/" or a path such as "/usr"
	Disk   string `json:"disk"`   // directory of the node's disk; holds "upper" and "work"
	Layers int    `json:"layers"`
}

// Message is the order in which the driver sends file descriptors over SyncFD,
// in one message: the Config, the control socket, the node's disk, the
// binary, its libraries (the loader first; none for a static binary), and the
// layers of the overlays, one after the other.
type Message struct {
	Config     int
	Control    int
	Disk       int
	Executable int
	Libraries  []int
	Layers     []int
}

// FDs returns the descriptors in their order.
func (m Message) FDs() []int {
	fds := []int{m.Config, m.Control, m.Disk, m.Executable}
	return append(append(fds, m.Libraries...), m.Layers...)
}

// Main runs the stage that args (the command line after Word) name and
// returns the exit status of the process.
func Main(args []string) int {
	stage := ""
	if len(args) > 0 {
		stage = args[0]
	}
	var err error
	switch stage {
	case StageBoot:
		err = boot()
	case StageRun:
		err = run()
	case StageSFTP:
		err = serveFiles()
	case StageContainer:
		err = container()
	case StageConnect:
		return connect(args[1:])
	default:
		err = fmt.Errorf("%s is started by croft itself, not by hand", strconv.Quote(Word+" "+stage))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", stage, err)
		return 1
	}
	return 0
}
