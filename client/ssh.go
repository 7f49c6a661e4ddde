package client

import (
	"fmt"
	"regexp"
	"strings"

	"croft/urn"
)

// SSH is a login with OpenSSH's client.
type SSH struct {
	Login      Login
	Key        string // file of the private key; "" for the user's own
	KnownHosts string // file that host keys are remembered in
	// Alias is what the host key is remembered under. A node's address and
	// port go to another node some day; its sliver's name never does.
	Alias string
}

// hostname and account are what OpenSSH would not mistake for an option or a
// pattern. Manifests come from elsewhere.
var (
	hostname   = regexp.MustCompile(`^[A-Za-z0-9:]([A-Za-z0-9.:_%-]*[A-Za-z0-9.:])?$`)
	account    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
	port       = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
	notInAlias = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
)

// SSHTo returns how a user logs in to a node of a manifest.
func (n *ManifestNode) SSHTo(user urn.URN, key, knownHosts string) (SSH, error) {
	l, ok := n.LoginOf(user)
	if !ok {
		return SSH{}, fmt.Errorf("node %s: the manifest names no login with SSH keys (a node has one once it is provisioned)", n.ClientID)
	}
	switch {
	case !hostname.MatchString(l.Host):
		return SSH{}, fmt.Errorf("node %s: the manifest names the host %q", n.ClientID, l.Host)
	case !account.MatchString(l.User):
		return SSH{}, fmt.Errorf("node %s: the manifest names the account %q", n.ClientID, l.User)
	case !port.MatchString(l.Port):
		return SSH{}, fmt.Errorf("node %s: the manifest names the port %q", n.ClientID, l.Port)
	}
	alias := notInAlias.ReplaceAllString(strings.TrimPrefix(n.Sliver, "urn:publicid:IDN+"), "_")
	return SSH{Login: l, Key: key, KnownHosts: knownHosts, Alias: alias}, nil
}

// options are the settings, as ssh_config writes them.
func (s SSH) options() [][2]string {
	o := [][2]string{{"User", s.Login.User}, {"Port", s.Login.Port}}
	if s.Key != "" {
		o = append(o, [2]string{"IdentityFile", quote(s.Key)}, [2]string{"IdentitiesOnly", "yes"})
	}
	if s.KnownHosts != "" {
		o = append(o,
			[2]string{"UserKnownHostsFile", quote(s.KnownHosts)},
			[2]string{"GlobalKnownHostsFile", "/dev/null"},
			[2]string{"StrictHostKeyChecking", "accept-new"},
			[2]string{"LogLevel", "ERROR"}) // not that a new host is remembered
		if s.Alias != "" {
			o = append(o, [2]string{"HostKeyAlias", s.Alias}, [2]string{"CheckHostIP", "no"})
		}
	}
	return o
}

// quote writes a file name for ssh_config, where % means something.
func quote(path string) string { return `"` + strings.ReplaceAll(path, "%", "%%") + `"` }

// Args are the arguments of ssh that log in and run a command, or a shell if
// it is empty.
func (s SSH) Args(command ...string) []string {
	var args []string
	for _, o := range s.options() {
		args = append(args, "-o", o[0]+"="+o[1])
	}
	args = append(args, s.Login.Host)
	if len(command) > 0 {
		args = append(append(args, "--"), command...)
	}
	return args
}

// Config writes the login for an ssh_config under a name, for scp, sftp, rsync
// and what else runs over SSH.
func (s SSH) Config(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s\n    HostName %s\n", name, strings.ReplaceAll(s.Login.Host, "%", "%%"))
	for _, o := range s.options() {
		fmt.Fprintf(&b, "    %s %s\n", o[0], o[1])
	}
	return b.String()
}
