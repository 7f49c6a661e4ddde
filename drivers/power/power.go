// Package power turns machines on and off through their board management
// controllers (BMCs), by IPMI 2.0 or by Redfish.
package power

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Protocol is what a controller speaks.
type Protocol string

// The protocols.
const (
	IPMI    Protocol = "ipmi"
	Redfish Protocol = "redfish"
)

// Config says where a controller is, and how to get in.
type Config struct {
	Protocol      Protocol
	Address       string // host, host:port, or for Redfish a URL
	User          string
	PasswordFile  string // its first line is the password
	AuthorityFile string // PEM; of who signed a Redfish service's certificate
	System        string // path of the Redfish system; "" for the only one
}

// Action is something that a controller does to its machine.
type Action string

// The actions.
const (
	TurnOn  Action = "on"
	TurnOff Action = "off"   // at once, without the system's doing
	Cycle   Action = "cycle" // off and on again, of a machine that is on
)

// Controller is a BMC.
type Controller interface {
	// On reports whether the machine has power.
	On(ctx context.Context) (bool, error)
	// Do does an action, and returns when the controller has taken it: the
	// machine may need some more seconds.
	Do(ctx context.Context, a Action) error
	// BootFromNetwork has the machine boot from its network the next time, and
	// that time only.
	BootFromNetwork(ctx context.Context) error
	Close() error
}

// answerTime bounds a call to a controller.
const answerTime = 20 * time.Second

// Open makes a Controller. It is not asked anything yet.
func Open(c Config) (Controller, error) {
	password, err := c.password()
	if err != nil {
		return nil, err
	}
	switch c.Protocol {
	case IPMI:
		return newIPMI(c, password)
	case Redfish:
		return newRedfish(c, password)
	}
	return nil, fmt.Errorf("power: protocol %q is neither ipmi nor redfish", c.Protocol)
}

// password reads the first line of the password file.
func (c Config) password() (string, error) {
	if c.PasswordFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("power: password: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	line = strings.TrimRight(line, "\r")
	if line == "" {
		return "", fmt.Errorf("power: password: %s is empty", c.PasswordFile)
	}
	return line, nil
}

// errAction says that an action is not known.
func errAction(a Action) error {
	return errors.Join(errors.ErrUnsupported, fmt.Errorf("power: action %q", a))
}
