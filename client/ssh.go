package client

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

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
	// Strict refuses host keys that KnownHosts does not have, instead of
	// remembering them.
	Strict bool
	// Gateway is the login at the SSH gateway that this one goes through; nil
	// if it is direct.
	Gateway *SSH
}

// SSHGateway is what an aggregate says of its SSH gateway in GetVersion; Host
// is "" if it says nothing.
type SSHGateway struct {
	Host    string `json:"hostname"`
	Port    int    `json:"port"`
	HostKey string `json:"host_key"` // as in authorized_keys
}

// KnownHost is the line of a known_hosts file for the gateway.
func (g SSHGateway) KnownHost() (string, error) {
	key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(g.HostKey))
	switch {
	case err != nil:
		return "", fmt.Errorf("host key of the SSH gateway: %w", err)
	case len(rest) > 0 || !hostname.MatchString(g.Host) || g.Port < 1 || g.Port > 65535:
		return "", fmt.Errorf("SSH gateway %q port %d: not what it can be", g.Host, g.Port)
	}
	return knownhosts.Line([]string{net.JoinHostPort(g.Host, strconv.Itoa(g.Port))}, key), nil
}

// KnownHost is the line of a known_hosts file for a node that shows a key.
func (s SSH) KnownHost(hostKey string) (string, error) {
	key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(hostKey))
	if err != nil || len(rest) > 0 || s.Alias == "" {
		return "", fmt.Errorf("host key %.80q of %s: not what it can be", hostKey, s.Alias)
	}
	return knownhosts.Line([]string{s.Alias}, key), nil
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
	if err := l.check(); err != nil {
		return SSH{}, fmt.Errorf("node %s: %w", n.ClientID, err)
	}
	alias := notInAlias.ReplaceAllString(strings.TrimPrefix(n.Sliver, "urn:publicid:IDN+"), "_")
	s := SSH{Login: l, Key: key, KnownHosts: knownHosts, Alias: alias}
	if at, ok := n.ProxyOf(l); ok {
		if err := at.check(); err != nil {
			return SSH{}, fmt.Errorf("node %s: its gateway: %w", n.ClientID, err)
		}
		s.Gateway = &SSH{Login: at, Key: key, KnownHosts: knownHosts}
	}
	return s, nil
}

// check refuses what OpenSSH would misunderstand.
func (l Login) check() error {
	switch {
	case !hostname.MatchString(l.Host):
		return fmt.Errorf("the manifest names the host %q", l.Host)
	case !account.MatchString(l.User):
		return fmt.Errorf("the manifest names the account %q", l.User)
	case !port.MatchString(l.Port):
		return fmt.Errorf("the manifest names the port %q", l.Port)
	}
	return nil
}

// options are the settings, as ssh_config writes them.
func (s SSH) options() [][2]string {
	o := [][2]string{{"User", s.Login.User}, {"Port", s.Login.Port}}
	if s.Key != "" {
		o = append(o, [2]string{"IdentityFile", quote(s.Key)}, [2]string{"IdentitiesOnly", "yes"})
	}
	if s.KnownHosts != "" {
		o = append(o, [2]string{"UserKnownHostsFile", quote(s.KnownHosts)}, [2]string{"GlobalKnownHostsFile", "/dev/null"})
		if s.Strict {
			o = append(o, [2]string{"StrictHostKeyChecking", "yes"})
		} else {
			o = append(o, [2]string{"StrictHostKeyChecking", "accept-new"}, [2]string{"LogLevel", "ERROR"}) // not that a new host is remembered
		}
		if s.Alias != "" {
			o = append(o, [2]string{"HostKeyAlias", s.Alias}, [2]string{"CheckHostIP", "no"})
		}
	}
	return o
}

// proxyCommand is the command by which ssh goes through the gateway: of a jump
// named on its command line, ssh takes no options.
func (s SSH) proxyCommand() string {
	var b strings.Builder
	b.WriteString("ssh -F none")
	for _, o := range s.options() {
		b.WriteString(" -o " + shellQuote(o[0]+"="+o[1]))
	}
	return strings.ReplaceAll(b.String(), "%", "%%") + " -W '[%h]:%p' -- " + shellQuote(s.Login.Host)
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// quote writes a file name for ssh_config, where % means something.
func quote(path string) string { return `"` + strings.ReplaceAll(path, "%", "%%") + `"` }

// Args are the arguments of ssh that log in and run a command, or a shell if
// it is empty.
func (s SSH) Args(command ...string) []string {
	var args []string
	for _, o := range s.options() {
		args = append(args, "-o", o[0]+"="+o[1])
	}
	if s.Gateway != nil {
		args = append(args, "-o", "ProxyCommand="+s.Gateway.proxyCommand())
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
	if s.Gateway != nil {
		fmt.Fprintf(&b, "    ProxyJump %s\n", s.Gateway.GatewayName())
	}
	return b.String()
}

// GatewayName is what the Config of logins that go through a gateway calls it:
// the name for the Config of the gateway.
func (s SSH) GatewayName() string {
	return "gateway_" + notInAlias.ReplaceAllString(s.Login.User+"_"+s.Login.Host+"_"+s.Login.Port, "_")
}
