package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"croft/capacity"
	"croft/federation"
	"croft/internal/atomicfile"
	"croft/internal/config"
	"croft/inventory"
	"croft/urn"
)

// firstMember is the member that init makes.
const firstMember = "alice"

func (a *app) initCommand() *cobra.Command {
	var authority, listen string
	c := &cobra.Command{
		Use:   "init",
		Short: "Make a stand-alone federation and the configuration of its aggregate",
		Long: `Make a stand-alone federation in --dir: a certification authority, a member
(alice) with keys and credentials, and an aggregate manager with a certificate,
a configuration (croft.yaml) and an inventory of this machine (inventory.yaml).

It can be run again: what is missing is made, certificates that end soon or do
not name the server's address are renewed, keys and configuration stay.`,
		Example: `  croft init
  croft init --authority testbed.example.org --listen 0.0.0.0:12369`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.init(authority, listen)
		},
	}
	c.Flags().StringVar(&authority, "authority", "", "`name` that everything gets its URN under (default: this machine's name)")
	c.Flags().StringVar(&listen, "listen", "", "`address` of the aggregate manager (default 127.0.0.1:12369)")
	return c
}

func (a *app) init(authority, listen string) error {
	if err := os.MkdirAll(a.dir, 0o755); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	var log []federation.Change
	conf, change, err := a.ensureConfig(listen)
	if err != nil {
		return err
	}
	log = append(log, change)
	testbed, change, err := a.ensureInventory(authority)
	if err != nil {
		return err
	}
	log = append(log, change)
	f, changes, err := federation.Init(a.dir, federation.Options{
		Authority: testbed.Authority,
		Manager:   testbed.Manager,
		Hosts:     serverHosts(conf),
	}, a.now)
	log = append(log, changes...)
	if err != nil {
		return err
	}
	alice, changes, err := f.AddMember(firstMember, "")
	log = append(log, changes...)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(map[string]any{
			"dir": a.dir, "authority": f.Authority(), "manager": testbed.Manager, "url": conf.URL(),
			"member": alice.URN, "files": log,
		})
	}
	fmt.Fprintf(a.out, "Federation %s in %s:\n", f.Authority(), a.dir)
	a.writeChanges(log)
	fmt.Fprintf(a.out, "\nThe aggregate manager is %s,\nand will be at %s. Next:\n\n  %s\n",
		testbed.Manager, conf.URL(), a.command("serve"))
	return nil
}

// command writes one of our commands so that it can be run as it is.
func (a *app) command(args string) string {
	s := "croft " + args
	if a.dir != "croft-data" && a.dir != os.Getenv("CROFT_DIR") {
		s += " --dir " + shellQuote(a.dir)
	}
	return s
}

// ensureConfig reads croft.yaml, which it makes if it is missing.
func (a *app) ensureConfig(listen string) (*config.Config, federation.Change, error) {
	change := federation.Change{File: "croft.yaml", What: "configuration of the server", Action: federation.Kept}
	path := a.path("croft.yaml")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		if listen == "" {
			listen = config.DefaultListen
		}
		data, err := config.New(listen)
		if err != nil {
			return nil, change, fmt.Errorf("init --listen %s: %w", listen, err)
		}
		if err := atomicfile.Create(path, data, 0o644); err != nil {
			return nil, change, err
		}
		change.Action = federation.Made
	}
	conf, err := config.Load(path)
	if err == nil && listen != "" && conf.Listen != listen {
		err = fmt.Errorf("init: %s says listen: %s, not %s (edit it, then run croft init again)", path, conf.Listen, listen)
	}
	return conf, change, err
}

// ensureInventory reads inventory.yaml, which it makes of this machine if it
// is missing.
func (a *app) ensureInventory(authority string) (*inventory.Snapshot, federation.Change, error) {
	change := federation.Change{File: "inventory.yaml", What: "what there is to give: this machine", Action: federation.Kept}
	path := a.path("inventory.yaml")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		if authority == "" {
			authority = config.Hostname(":0")
		}
		machine, err := thisMachine(a.dir)
		if err != nil {
			return nil, change, err
		}
		data, err := inventory.Starter(inventory.Start{
			Authority: urn.Authority(authority), Hostname: config.Hostname(":0"),
			Cores: machine.Cores, Memory: machine.Memory, Disk: machine.Disk,
		})
		if err != nil {
			return nil, change, fmt.Errorf("init --authority %s: %w", authority, err)
		}
		if err := atomicfile.Create(path, data, 0o644); err != nil {
			return nil, change, err
		}
		change.Action = federation.Made
	}
	testbed, err := inventory.Load(path)
	if err == nil && authority != "" && !testbed.Authority.Equal(urn.Authority(authority)) {
		err = fmt.Errorf("init: %s says authority: %s, not %s (another --dir makes another federation)", path, testbed.Authority, authority)
	}
	return testbed, change, err
}

// thisMachine counts what this machine has. Half of the free disk is to give
// away.
func thisMachine(dir string) (inventory.Machine, error) {
	m := inventory.Machine{Cores: runtime.NumCPU(), Drivers: driverNames, IsDirectory: isDirectory}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return m, fmt.Errorf("count this machine's memory: %w", err)
	}
	m.Memory = capacity.MiB(uint64(info.Totalram) * uint64(info.Unit) >> 20)
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return m, fmt.Errorf("count the disk of %s: %w", dir, err)
	}
	m.Disk = capacity.MiB(disk.Bavail * uint64(disk.Bsize) >> 21)
	return m, nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// serverHosts lists the names and addresses under which clients may reach the
// server.
func serverHosts(conf *config.Config) []string {
	hosts := []string{conf.Hostname, "localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, strings.ToLower(name))
	}
	if host, _, err := net.SplitHostPort(conf.Listen); err == nil && host != "" {
		if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

func (a *app) writeChanges(log []federation.Change) {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, c := range log {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", c.Action, c.File, c.What)
	}
	w.Flush()
}

func (a *app) memberCommand() *cobra.Command {
	c := group(&cobra.Command{Use: "member", Short: "Members of the federation"})
	var email string
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a member: certificate, keys and user credential",
		Long: `Make a member of the federation in --dir: members/NAME with certificate, key,
SSH key and user credential. For a member who exists, a certificate that ends
soon is renewed; keys stay.

NAME is a letter and up to 7 letters, digits or underscores.`,
		Example: "  croft member add bob --email bob@example.org",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := federation.Open(a.dir, a.now)
			if err != nil {
				return err
			}
			m, log, err := f.AddMember(args[0], email)
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(map[string]any{
					"urn": m.URN, "uuid": m.UUID(), "dir": m.Dir, "expires": m.Certificate.NotAfter, "files": log,
				})
			}
			fmt.Fprintf(a.out, "Member %s:\n", m.URN)
			a.writeChanges(log)
			return nil
		},
	}
	add.Flags().StringVar(&email, "email", "", "e-mail `address` in the certificate (default NAME@AUTHORITY)")
	c.AddCommand(add)
	return c
}

func (a *app) sliceCommand() *cobra.Command {
	c := group(&cobra.Command{Use: "slice", Short: "Slices of the federation"})
	var member string
	var days float64
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a slice, with a credential for a member",
		Long: `Make a slice in the federation in --dir, and a credential with all rights on it
for a member: slices/NAME/credential-MEMBER.xml. For a slice that exists, this
adds a member or renews the credential.

NAME is up to 19 letters, digits and hyphens.`,
		Example: "  croft slice add exp1\n  croft slice add exp1 --member bob --days 90",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := federation.Open(a.dir, a.now)
			if err != nil {
				return err
			}
			m, err := f.Member(member)
			if err != nil {
				return err
			}
			s, log, err := f.AddSlice(args[0], m, time.Duration(days*float64(24*time.Hour)))
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(map[string]any{
					"urn": s.URN, "expires": s.Expires, "credential": federation.CredentialFile(a.dir, s.Name, m.Name), "files": log,
				})
			}
			fmt.Fprintf(a.out, "Slice %s:\n", s.URN)
			a.writeChanges(log)
			return nil
		},
	}
	add.Flags().StringVar(&member, "member", firstMember, "`name` of the member who gets the credential")
	add.Flags().Float64Var(&days, "days", federation.DefaultSliceValidity.Hours()/24, "how long the credential lasts")
	c.AddCommand(add)
	return c
}
