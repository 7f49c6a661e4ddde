package request

import "time"

// StepName names a step within a slice: letters, digits, and "._-", at most
// 200 of them, a letter, digit or "_" first. Languages begin it with the node's
// name, so that two documents of a slice do not clash.
type StepName string

// Step is something that is done in a node once it can be logged in to: the
// start-up graph of a request is its steps and what they wait for. A step does
// one of three things: it installs an archive, runs a script, or keeps a
// service running; or it only writes Files.
//
// A step runs once in the life of its node, also when the node is restarted;
// services are started with the node each time. What runs when its node is
// restarted is begun again.
type Step struct {
	Name  StepName
	Node  ClientID
	Place Place

	Install *Install
	Run     *Run
	Service *Service

	// Files are written before anything else of the step.
	Files []File
	// After are the steps, also of other nodes and of earlier documents of the
	// slice, that must have succeeded before; a service, that it has been
	// started. When one fails or is skipped, so is this one. A step that names
	// none waits for the one before it, in the order of the request, of those
	// of its node that name none, either. One step at a time runs on a node.
	After []StepName
	// Env is added to the node's own. Steps whose outputs it uses are waited
	// for, whether they are in After or not. CROFT_SLICE, CROFT_NODE and
	// CROFT_STEP are always there.
	Env []Variable
	// Outputs are the names of values that the step gives to others: it writes
	// lines NAME=VALUE to the file that $CROFT_OUTPUTS names, 64 KiB at most.
	Outputs []string
	Limit   time.Duration // 0: the aggregate's usual limit, an hour; services have none
	// Root has it run as root; otherwise it is the first user, who has sudo
	// without a password, or root of a node that has no users. Where users do
	// not become root, all steps are the first user's. Files and what
	// is installed belong to the same account.
	Root bool
	// Tolerant steps may fail without stopping those that wait for them.
	Tolerant bool
}

// Install fetches an archive (tar, tar.gz, tar.bz2, tar.xz, zip) inside the
// node and unpacks it there.
type Install struct {
	// URL is http, https, or file: a path in the node's image.
	URL  string
	Path string // the directory it is unpacked in, absolute or below ~ (the account's home); made if missing
	// Content is the archive itself, if it came with the document; URL is then
	// only its name.
	Content []byte
}

// Run is a command that ends.
type Run struct {
	// Command is run by Shell -c; Args instead is run without any shell.
	Command string
	Shell   string // "" is /bin/sh
	Args    []string
	Dir     string // "" is the home of whom it runs as
}

// Service is a command that stays: the step has succeeded when it has been
// started. One without a command runs what its node's image runs.
type Service struct {
	Run
	Restart bool // it is started anew whenever it ends
	// Ends says that the end of the service ends what the request is for: all
	// slivers of its document are released. The end of its node does not.
	Ends bool
}

// File is written into a node.
type File struct {
	Path    string // absolute
	Mode    uint32 // permission bits
	Content []byte
}

// Variable is a name in the environment and its value.
type Variable struct {
	Name  string
	Value Value
}

// Value is text with parts that are known only once nodes are there.
type Value []Part

// Part is a piece of a Value: a text, or what stands for one.
type Part struct {
	Text      string
	Attribute *Attribute // of a node
	Output    *Output    // of a step that ran before
}

// Text makes a Value of a text that is known.
func Text(s string) Value { return Value{{Text: s}} }

// AttributeName is something that is known of a node once it is there.
type AttributeName string

// The attributes.
const (
	AttrAddress    AttributeName = "address"     // of the Interface, or of the first one; without prefix length
	AttrPrefix     AttributeName = "prefix"      // the same with prefix length
	AttrMAC        AttributeName = "mac"         // of the Interface, or of the first one
	AttrDevice     AttributeName = "device"      // name of the interface in the node
	AttrHostname   AttributeName = "hostname"    // what the node calls itself
	AttrName       AttributeName = "name"        // by which other nodes of the slice find it
	AttrLoginHost  AttributeName = "login-host"  // where SSH clients connect to
	AttrLoginPort  AttributeName = "login-port"  // and at which port
	AttrSliver     AttributeName = "sliver"      // its URN
	AttrSlice      AttributeName = "slice"       // URN of its slice
	AttrSliceName  AttributeName = "slice-name"  // the last part of that
	AttrPublicHost AttributeName = "public-host" // where the Port is reached from outside
	AttrPublicPort AttributeName = "public-port" // and at which number
	AttrFirstUser  AttributeName = "user"        // account of its first user
	AttrOwner      AttributeName = "owner"       // name of the member who provisioned it
)

// Attribute names an attribute of a node.
type Attribute struct {
	Node      ClientID
	Interface ClientID // "" for the first one that a link joins
	Port      string   // name of a Port, for the attributes of ports
	Name      AttributeName
}

// Output names a value that a step gives.
type Output struct {
	Step StepName
	Name string
}
