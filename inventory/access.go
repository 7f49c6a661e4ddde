package inventory

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Access is how the manager gets at a machine that is given out whole. It is
// nobody's business but the operator's: no advertisement has it.
type Access struct {
	Address   string // of its SSH server: name or IP
	Port      int
	User      string        // the manager's account: root, or one with password-less sudo
	HostKeys  []string      // authorized_keys form; any other key is refused
	Scratch   []string      // directories that are emptied when a node ends
	BootLimit time.Duration // until it answers after it was told to boot
	Image     string        // what is on it to begin with: the source of an image, or ""
	Reimage   *Reimage      // nil: the machine keeps its system
	Power     *Power        // nil: it is booted by its own system only
}

// GivesRoot reports whether users of the machine may become root: only where
// it is made anew for whoever comes next.
func (a *Access) GivesRoot() bool { return a.Reimage != nil && a.Reimage.AtEnd }

// PlainAccounts is the property that hosts have whose users never become root,
// for experimenters to see in the advertisement, which has numbers only.
const PlainAccounts = "plain-accounts"

func withPlainAccounts(properties map[string]string) map[string]string {
	all := map[string]string{PlainAccounts: "1"}
	maps.Copy(all, properties)
	return all
}

// Reimage is how a machine gets its system anew.
type Reimage struct {
	Command []string // run on the manager's machine, with the machine's facts in its environment
	Limit   time.Duration
	PXE     bool // after the command, the machine is booted from its network
	AtEnd   bool // whenever a node ends: its users may have root then
}

// PowerProtocol is what a machine's board management speaks.
type PowerProtocol string

// The protocols.
const (
	IPMI    PowerProtocol = "ipmi"    // version 2.0 over LAN
	Redfish PowerProtocol = "redfish" // over HTTPS, or HTTP
)

// Power is how a machine is turned on and off.
type Power struct {
	Protocol      PowerProtocol
	Address       string // host, host:port, or for Redfish a URL
	User          string
	PasswordFile  string // a file with the password on its first line
	AuthorityFile string // PEM of who signed the Redfish service's certificate; "" for the system's authorities
	System        string // path of the Redfish system; "" for the only one
}

// Usual limits, and what is usual for the rest.
const (
	DefaultBootLimit    = 10 * time.Minute
	DefaultReimageLimit = 30 * time.Minute
	DefaultSSHPort      = 22
	DefaultSSHUser      = "root"
)

var (
	macPattern      = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`)
	hardwareAddress = matching(macPattern, "a hardware address", "such as 0c:c4:7a:12:34:56")
	secondsKind     = numberBetween(1, 86_400, true, "a number of seconds")
	portNumber      = numberBetween(1, 65_535, true, "a port")
	protocolName    = matching(regexp.MustCompile(`^(ipmi|redfish)$`), "ipmi or redfish", "")
	absolutePath    = matching(regexp.MustCompile(`^/[^\n]*$`), "an absolute path", "such as /scratch")
	accountName     = matching(regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`), "the name of an account", "such as root")
	sshAddress      = matching(regexp.MustCompile(`^[A-Za-z0-9._:{}-]+$`), "a host name or an IP address", "such as {name}.example.org")
	hostKeyText     = matching(regexp.MustCompile(`^[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( .*)?$`), "a public key", "a line of /etc/ssh/ssh_host_*_key.pub: ssh-ed25519 AAAA…")
)

var accessMembers = []member[accessDecl]{
	has("address", sshAddress, func(d *accessDecl) *field[word] { return &d.address },
		"Address", "Where its SSH server is: a name or an IP address, such as {name}.control.example.org. Left out, the host's name."),
	has("port", portNumber, func(d *accessDecl) *field[float64] { return &d.port },
		"Port", "Left out: 22."),
	has("user", accountName, func(d *accessDecl) *field[word] { return &d.user },
		"User", "The account that has the manager's key: root (the default), or one that may use sudo without a password."),
	must(has("host_keys", oneOrMore(hostKeyText), func(d *accessDecl) *field[[]word] { return &d.hostKeys },
		"Host keys", "The machine's own public keys, lines of /etc/ssh/ssh_host_*_key.pub. A machine that shows another one is refused.")),
	has("scratch", oneOrMore(absolutePath), func(d *accessDecl) *field[[]word] { return &d.scratch },
		"Scratch", "Directories whose whole content is removed when a node ends. Besides, whatever belongs to its accounts is removed everywhere."),
	has("boot_limit", secondsKind, func(d *accessDecl) *field[float64] { return &d.bootLimit },
		"Boot limit", "How many seconds it may take until the machine answers after it was told to boot. Left out: 600."),
	has("image", prose, func(d *accessDecl) *field[word] { return &d.image },
		"Image", "The source of the image that is on the machine to begin with."),
	has("reimage", object("a reimage", reimageMembers), func(d *accessDecl) *field[placed[reimageDecl]] { return &d.reimage },
		"Reimage", "How the machine gets its system anew. Without it users get plain accounts, never root."),
	has("power", object("a power", powerMembers), func(d *accessDecl) *field[placed[powerDecl]] { return &d.power },
		"Power", "The machine's board management controller."),
}

var reimageMembers = []member[reimageDecl]{
	must(has("command", oneOrMore(prose), func(d *reimageDecl) *field[[]word] { return &d.command },
		"Command", "A program of the manager's machine and its arguments. Its environment says which machine and image: CROFT_HOST, CROFT_ADDRESS, CROFT_IMAGE, CROFT_MACS, and more.")),
	has("limit", secondsKind, func(d *reimageDecl) *field[float64] { return &d.limit },
		"Limit", "How many seconds the command may take. Left out: 1800."),
	has("pxe", truth, func(d *reimageDecl) *field[bool] { return &d.pxe },
		"PXE", "Whether, after the command, the machine is booted from its network once. It needs power."),
	has("at_end", truth, func(d *reimageDecl) *field[bool] { return &d.atEnd },
		"At the end", "Whether the machine is made anew whenever a node ends (the default), so that users may have root; or only when another image is asked for."),
}

var powerMembers = []member[powerDecl]{
	must(has("protocol", protocolName, func(d *powerDecl) *field[word] { return &d.protocol },
		"Protocol", "ipmi (version 2.0) or redfish.")),
	must(has("address", prose, func(d *powerDecl) *field[word] { return &d.address },
		"Address", "Where the controller is: a host, host:port, or for Redfish a URL, such as https://{name}-bmc.example.org.")),
	has("user", prose, func(d *powerDecl) *field[word] { return &d.user },
		"User", "The account of the controller."),
	has("password_file", absolutePath, func(d *powerDecl) *field[word] { return &d.passwordFile },
		"Password file", "A file with its password, that nobody but the server may read."),
	has("authority_file", absolutePath, func(d *powerDecl) *field[word] { return &d.authorityFile },
		"Authority file", "For Redfish: a PEM file with who signed the controller's certificate."),
	has("system", absolutePath, func(d *powerDecl) *field[word] { return &d.system },
		"System", "For Redfish: the path of the machine, such as /redfish/v1/Systems/1. Left out, the only one there."),
}

// buildAccess completes the access of one host.
func (b *builder) buildAccess(host string, f field[placed[accessDecl]]) *Access {
	if !f.given {
		return nil
	}
	d := f.value.it
	named := func(w field[word]) string { return strings.ReplaceAll(w.value.text, "{name}", host) }
	a := &Access{
		Address: host, Port: DefaultSSHPort, User: DefaultSSHUser, BootLimit: DefaultBootLimit,
		Scratch: texts(d.scratch), Image: d.image.value.text,
	}
	if d.address.valid {
		a.Address = named(d.address)
	}
	if d.port.valid {
		a.Port = int(d.port.value)
	}
	if d.user.valid {
		a.User = d.user.value.text
	}
	if d.bootLimit.valid {
		a.BootLimit = time.Duration(d.bootLimit.value) * time.Second
	}
	for _, w := range d.hostKeys.value {
		key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(w.text))
		if err != nil || len(rest) > 0 {
			b.add(w.at, w.path, fmt.Sprintf("%q is not a public key", w.text), "a line of /etc/ssh/ssh_host_*_key.pub")
			continue
		}
		a.HostKeys = append(a.HostKeys, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))))
	}
	for _, w := range d.scratch.value {
		if clean := path.Clean(w.text); clean == "/" || clean != strings.TrimSuffix(w.text, "/") || path.Dir(clean) == "/" && systemDirs[path.Base(clean)] {
			b.add(w.at, w.path, fmt.Sprintf("%s cannot be scratch: all in it is removed", w.text), "a directory that holds nothing of the system, such as /scratch")
		}
	}
	if d.reimage.valid {
		r := d.reimage.value.it
		a.Reimage = &Reimage{Limit: DefaultReimageLimit, PXE: r.pxe.value, AtEnd: !r.atEnd.given || r.atEnd.value}
		for _, w := range r.command.value {
			a.Reimage.Command = append(a.Reimage.Command, strings.ReplaceAll(w.text, "{name}", host))
		}
		if len(a.Reimage.Command) == 0 {
			b.add(d.reimage.at, d.reimage.path, "an empty command", "a program and its arguments")
		}
		if r.limit.valid {
			a.Reimage.Limit = time.Duration(r.limit.value) * time.Second
		}
		if a.Reimage.PXE && !d.power.given {
			b.add(r.pxe.at, r.pxe.path, "booting from the network needs power", "declare power beside reimage")
		}
	}
	if d.power.valid {
		p := d.power.value.it
		a.Power = &Power{
			Protocol: PowerProtocol(p.protocol.value.text), Address: named(p.address), User: named(p.user),
			PasswordFile: named(p.passwordFile), AuthorityFile: named(p.authorityFile), System: named(p.system),
		}
	}
	return a
}

// systemDirs are directories of / that hold a system.
var systemDirs = map[string]bool{
	"bin": true, "boot": true, "dev": true, "etc": true, "home": true, "lib": true, "lib64": true, "opt": true, "proc": true,
	"root": true, "run": true, "sbin": true, "srv": true, "sys": true, "usr": true, "var": true,
}
