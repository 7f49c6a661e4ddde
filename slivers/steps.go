package slivers

import (
	"strconv"
	"strings"
	"time"

	"croft/request"
	"croft/urn"
)

// StepState is how far a step of a start-up graph is.
type StepState string

// The states of steps.
const (
	StepWaiting StepState = "waiting" // for its node, or for other steps
	StepRunning StepState = "running"
	StepDone    StepState = "done" // a service: it has been started
	StepFailed  StepState = "failed"
	StepSkipped StepState = "skipped" // it will not run, for Reason
)

// Ended reports whether the step is over; that of a service, also when the
// service goes on.
func (s StepState) Ended() bool {
	return s == StepDone || s == StepFailed || s == StepSkipped
}

// StepKind is what a step does.
type StepKind string

// The kinds of steps.
const (
	StepInstall StepKind = "install"
	StepRun     StepKind = "run"
	StepService StepKind = "service"
	StepFiles   StepKind = "files" // it writes files and does nothing else
)

// StepID numbers the steps in a store. None is given twice.
type StepID int64

// Step is a step of a slice's start-up graph and how it goes. What exactly it
// does is its request.Step, which the store keeps beside it.
type Step struct {
	ID       StepID // given by the store
	Slice    urn.URN
	Document DocumentID // that asked for it
	// Name tells the step from the others of its slice, but for those of
	// slivers that are being released.
	Name   request.StepName
	Node   request.ClientID
	Sliver urn.URN // of the node
	Kind   StepKind
	// After are all steps that it waits for: those that it names, those whose
	// outputs it uses, and the one before it on its node.
	After []request.StepName
	// Needs are the nodes whose attributes it uses.
	Needs    []request.ClientID
	Tolerant bool // its failure stops no other step
	Ends     bool // a service whose end ends its document

	State   StepState
	Attempt int // from 1; a step is tried anew when its node has been restarted meanwhile
	Started time.Time
	Ended   time.Time
	Status  int    // exit status of what ran; 128 and the number of a signal
	Reason  string // why it failed, was skipped, or still waits
	// Outputs are the values that it has given.
	Outputs map[string]string
	// Alive says of a service that its process is there, as far as is known.
	Alive bool
	// Made and Boot are those of the node (NodeFacts) that the attempt was on.
	Made, Boot int
}

// StepOutput is what a step has written to its standard output and error: all
// of it, or its beginning and its end.
type StepOutput struct {
	Head []byte
	Left int64  // bytes left out between Head and Tail
	Tail []byte // empty if nothing is left out
}

// Port is a port of a node that is reached from outside.
type Port struct {
	request.Port
	// Public is where it is reached; zero until the node is provisioned.
	Public Login
}

// Link is the URL of the port for people; "" if it has none, or is not reached
// yet.
func (p Port) Link() string {
	if p.Public.Host == "" {
		return ""
	}
	host := p.Public.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return strings.NewReplacer("{host}", host, "{port}", strconv.Itoa(p.Public.Port)).Replace(p.URL)
}
