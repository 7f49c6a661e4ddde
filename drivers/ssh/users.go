package ssh

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"golang.org/x/crypto/ssh"

	"croft/drivers"
	"croft/drivers/internal/nodecheck"
	"croft/request"
)

var (
	logins    = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	hostnames = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
)

// maxHostname is the kernel's bound.
const maxHostname = 64

// Accounts lists the accounts that any of the machines has by itself: which of
// them a node gets is not known yet. Machines that do not answer do not count.
func (d *Driver) Accounts(ctx context.Context, _ string) ([]string, error) {
	var unasked []Machine
	machines := d.c.Machines()
	d.mu.Lock()
	for _, m := range machines {
		if _, asked := d.accounts[m.Host.Canonical()]; !asked {
			unasked = append(unasked, m)
		}
	}
	d.mu.Unlock()
	d.lookAll(ctx, unasked)
	names := nodecheck.UsualAccounts()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range machines {
		names = append(names, d.accounts[m.Host.Canonical()]...)
		if m.User != "" {
			names = append(names, m.User)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// checkUsers refuses users that a machine cannot have. Own are the accounts
// that it has by itself.
func checkUsers(users []request.User, own []string) error {
	taken := append([]string{"root", "nobody"}, own...)
	for _, u := range users {
		if !logins.MatchString(u.Login) {
			return fmt.Errorf("%q cannot be the account of %s: want a small letter and up to 31 letters, digits, hyphens or underscores", u.Login, u.URN)
		}
		if slices.Contains(taken, u.Login) {
			return fmt.Errorf("%q cannot be the account of %s: there is one of that name", u.Login, u.URN)
		}
		taken = append(taken, u.Login)
		for _, key := range u.Keys {
			_, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(key))
			if err == nil && len(options)+len(rest) > 0 {
				err = errors.New("more than a key")
			}
			if err != nil {
				return fmt.Errorf("key of %s: %w", u.Login, err)
			}
		}
	}
	return nil
}

// checkNode refuses what would fail later, or do harm.
func (d *Driver) checkNode(m Machine, n drivers.Node) error {
	if n.Sliver.IsZero() {
		return errors.New("it has no sliver URN")
	}
	if len(n.Hostname) > maxHostname || !hostnames.MatchString(n.Hostname) {
		return fmt.Errorf("hostname %q: want letters, digits, hyphens and dots, at most %d", n.Hostname, maxHostname)
	}
	names := map[request.ClientID]bool{}
	for _, i := range n.Interfaces {
		if names[i.Name] {
			return fmt.Errorf("two interfaces %q", i.Name)
		}
		names[i.Name] = true
		if _, known := m.own(i.Component); !known && !i.Component.IsZero() {
			return fmt.Errorf("interface %q: machine %s has no interface %s", i.Name, m.Name, i.Component)
		}
		for _, a := range i.Addresses {
			if !usable(a) {
				return fmt.Errorf("interface %q: address %q: want an address with the length of its prefix", i.Name, a)
			}
		}
	}
	for _, r := range d.journal.all() {
		if r.Node != nil && r.Node.Host.Equal(n.Host) && !r.Sliver.Equal(n.Sliver) {
			return fmt.Errorf("machine %s is held by %s", m.Name, r.Sliver)
		}
	}
	return checkUsers(n.Users, nil)
}
