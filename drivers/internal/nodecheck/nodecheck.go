// Package nodecheck refuses nodes and users that no driver can make: names that
// are none, addresses and keys that make no sense, logins that are taken.
package nodecheck

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"golang.org/x/crypto/ssh"

	"croft/drivers"
	"croft/request"
	"croft/urn"
)

var (
	hostnames = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
	devices   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,14}$`)
	logins    = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
)

const (
	maxHostname   = 64 // the kernel's bound
	maxInterfaces = 256
)

// UsualAccounts are those that Linux systems have, for systems that cannot be
// asked yet.
func UsualAccounts() []string {
	return []string{
		"root", "daemon", "bin", "sys", "sync", "games", "man", "lp", "mail", "news", "uucp", "proxy", "www-data", "backup", "list", "irc",
		"nobody", "_apt", "systemd-network", "systemd-timesync", "messagebus", "sshd", "admin", "debian", "ubuntu", "centos", "operator", "ftp",
	}
}

// Node refuses what would fail later, or do harm. The image has the accounts
// taken.
func Node(n drivers.Node, taken []string) error {
	if n.Sliver.IsZero() {
		return errors.New("it has no sliver URN")
	}
	if len(n.Hostname) > maxHostname || !hostnames.MatchString(n.Hostname) {
		return fmt.Errorf("hostname %q: want letters, digits, hyphens and dots, at most %d", n.Hostname, maxHostname)
	}
	if n.Capacity.Cores < 0 || n.Capacity.Memory < 0 || n.Capacity.Disk < 0 {
		return fmt.Errorf("capacity %s: negative", n.Capacity)
	}
	if len(n.Interfaces) > maxInterfaces {
		return fmt.Errorf("%d interfaces: at most %d", len(n.Interfaces), maxInterfaces)
	}
	names, devs := map[request.ClientID]bool{}, map[string]bool{"lo": true, "all": true, "default": true}
	for _, i := range n.Interfaces {
		switch {
		case names[i.Name]:
			return fmt.Errorf("two interfaces %q", i.Name)
		case !devices.MatchString(i.Device):
			return fmt.Errorf("interface %q: device %q: want a letter and up to 14 letters, digits, dots, hyphens or underscores", i.Name, i.Device)
		case devs[i.Device]:
			return fmt.Errorf("interface %q: device %q is taken", i.Name, i.Device)
		case len(i.MAC) != 0 && len(i.MAC) != 6:
			return fmt.Errorf("interface %q: MAC %s: want 6 bytes", i.Name, i.MAC)
		case len(i.MAC) == 6 && i.MAC[0]&1 != 0:
			return fmt.Errorf("interface %q: MAC %s is a multicast address", i.Name, i.MAC)
		}
		for _, a := range i.Addresses {
			if !a.IsValid() || a.Addr().Is4In6() || a.Addr().Zone() != "" {
				return fmt.Errorf("interface %q: address %q: want an address with the length of its prefix", i.Name, a)
			}
		}
		names[i.Name], devs[i.Device] = true, true
	}
	return Users(n.Users, taken)
}

// Users refuses users whose accounts cannot be made beside those that are
// taken.
func Users(users []request.User, taken []string) error {
	seen := map[string]urn.URN{}
	for _, u := range users {
		if !logins.MatchString(u.Login) {
			return fmt.Errorf("user %s: login %q: want lower-case letters, digits, hyphens and underscores, at most 32", u.URN, u.Login)
		}
		if other, twice := seen[u.Login]; twice {
			return fmt.Errorf("user %s: login %q is already that of %s", u.URN, u.Login, other)
		}
		if slices.Contains(taken, u.Login) || u.Login == "croft" {
			return fmt.Errorf("user %s: login %q: the image has an account of that name", u.URN, u.Login)
		}
		for i, k := range u.Keys {
			_, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(k))
			if err != nil {
				return fmt.Errorf("user %s: key %d: %w", u.URN, i+1, err)
			}
			if len(options) > 0 || len(rest) > 0 {
				return fmt.Errorf("user %s: key %d: want type and base64 on one line, without options", u.URN, i+1)
			}
		}
		seen[u.Login] = u.URN
	}
	return nil
}
