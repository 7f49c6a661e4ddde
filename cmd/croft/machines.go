package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	cryptossh "golang.org/x/crypto/ssh"

	"croft/drivers/power"
	"croft/drivers/ssh"
	"croft/internal/atomicfile"
	"croft/internal/config"
	"croft/inventory"
	"croft/urn"
)

// openMachines makes the driver of the machines that the inventory has.
func openMachines(conf *config.Config, testbed func() *inventory.Snapshot, log *slog.Logger) (*ssh.Driver, error) {
	if err := makeMachineKey(conf.Machines.Key, log); err != nil {
		return nil, err
	}
	key, err := ssh.LoadKey(conf.Machines.Key)
	if err != nil {
		return nil, err
	}
	return ssh.New(ssh.Config{
		Dir: filepath.Join(conf.State, "ssh"), Manager: testbed().Manager, Key: key, Logger: log,
		Machines: machinesNow(testbed),
		Links: ssh.Links{
			Command: conf.Machines.Links.Command, Limit: conf.Machines.Links.Limit.Std(), PlainSwitches: conf.Machines.Links.PlainSwitches,
		},
	})
}

// makeMachineKey makes the key that machines are to let in, if there is none.
func makeMachineKey(file string, log *slog.Logger) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key for machines: %w", err)
	}
	block, err := cryptossh.MarshalPrivateKey(private, "croft")
	if err != nil {
		return fmt.Errorf("making the key for machines: %w", err)
	}
	if err := atomicfile.Create(file, pem.EncodeToMemory(block), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the key for machines: %w", err)
	}
	key, err := cryptossh.NewPublicKey(public)
	if err != nil {
		return fmt.Errorf("making the key for machines: %w", err)
	}
	log.Warn("made a key for machines: put it into authorized_keys of their accounts", "file", file,
		"key", strings.TrimSpace(string(cryptossh.MarshalAuthorizedKey(key))))
	return nil
}

// machinesNow lists the machines of the inventory as it is now.
func machinesNow(testbed func() *inventory.Snapshot) func() []ssh.Machine {
	var mu sync.Mutex
	var of *inventory.Snapshot
	var list []ssh.Machine
	return func() []ssh.Machine {
		mu.Lock()
		defer mu.Unlock()
		if now := testbed(); now != of {
			of, list = now, machinesOf(now)
		}
		return list
	}
}

// machinesOf lists the hosts that have an access.
func machinesOf(s *inventory.Snapshot) []ssh.Machine {
	far := peers(s)
	var list []ssh.Machine
	for _, h := range s.Hosts {
		a := h.Access
		if a == nil {
			continue
		}
		m := ssh.Machine{
			Host: h.ID, Name: h.Name, Address: a.Address, Port: a.Port, User: a.User, HostKeys: a.HostKeys,
			Scratch: a.Scratch, BootLimit: a.BootLimit, Image: a.Image,
		}
		if r := a.Reimage; r != nil {
			m.Reimage = &ssh.Reimage{Command: r.Command, Limit: r.Limit, PXE: r.PXE, AtEnd: r.AtEnd}
		}
		if p := a.Power; p != nil {
			m.Power = &power.Config{
				Protocol: power.Protocol(p.Protocol), Address: p.Address, User: p.User,
				PasswordFile: p.PasswordFile, AuthorityFile: p.AuthorityFile, System: p.System,
			}
		}
		for _, i := range h.Interfaces {
			if i.Role != inventory.Experimental {
				continue
			}
			own := ssh.Interface{ID: i.ID, Name: i.Name, MAC: i.MAC}
			if end, wired := far[i.ID.Canonical()]; wired {
				if own.Switch = end.switchName; own.Switch == "" {
					own.Peer = end.id
				}
			}
			m.Interfaces = append(m.Interfaces, own)
		}
		list = append(list, m)
	}
	return list
}

// farEnd is what an interface is wired to.
type farEnd struct {
	id         urn.URN // interface
	switchName string  // "" if it is a host's
}

// peers says, of canonical URNs of interfaces, what they are wired to.
func peers(s *inventory.Snapshot) map[urn.URN]farEnd {
	switches := map[urn.URN]string{}
	for _, w := range s.Switches {
		switches[w.ID.Canonical()] = w.Name
	}
	far := map[urn.URN]farEnd{}
	for _, l := range s.Links {
		for i, end := range l.Ends {
			other := l.Ends[1-i]
			far[end.Interface.Canonical()] = farEnd{id: other.Interface, switchName: switches[other.Node.Canonical()]}
		}
	}
	return far
}
