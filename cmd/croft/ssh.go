package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"croft/client"
	"croft/internal/atomicfile"
	"croft/urn"
)

func (a *app) sshCommand() *cobra.Command {
	var printConfig, gateway bool
	c := a.onSlice(&cobra.Command{
		Use:   "ssh SLICE NODE [-- COMMAND...]",
		Short: "Log in to a node, or run a command on it",
		Long: `Run the system's ssh with what the slice's manifest says about a node: address,
port, account, the SSH gateway on the way, and the member's SSH key. Exit status
is that of ssh.

Only the host keys that the aggregate tells are accepted, of nodes, in files of
slices/SLICE/known_nodes, and of its gateway, in slices/SLICE/known_gateway. One
that it does not tell is remembered in slices/SLICE/known_hosts, under the name
of its sliver: a node that is made anew at the same address is another host.

With --config, print an ssh_config for all nodes of the slice instead, for scp,
sftp, rsync and the like.`,
		Example: `  croft ssh exp1 node0
  croft ssh exp1 node0 -- ip addr
  croft ssh exp1 --config > ssh_config && scp -F ssh_config file node0:`,
		Args: func(c *cobra.Command, args []string) error {
			if printConfig {
				return cobra.ExactArgs(1)(c, args)
			}
			return cobra.MinimumNArgs(2)(c, args)
		},
	}, func(cmd *cobra.Command, s *session, slice urn.URN, creds []client.Credential, args []string) error {
		d, err := s.Describe(cmd.Context(), []urn.URN{slice}, creds, client.GENI3)
		if err != nil {
			return err
		}
		m, err := client.ReadManifest(d.RSpec)
		if err != nil {
			return err
		}
		if gateway {
			for i := range m.Nodes {
				m.Nodes[i] = *m.Nodes[i].ThroughGateway()
			}
		}
		ways := &ways{session: s, slice: slice, keys: map[string]string{}}
		for _, v := range d.Slivers {
			ways.keys[v.URN.String()] = v.HostKey
		}
		if printConfig {
			return ways.writeConfig(cmd.Context(), m)
		}
		node, ok := m.Node(args[1])
		if !ok {
			return fmt.Errorf("slice %s has no node %s here (it has: %s)", args[0], args[1], strings.Join(nodeNames(m), ", "))
		}
		login, err := ways.to(cmd.Context(), node)
		if err != nil {
			return err
		}
		program, err := exec.LookPath("ssh")
		if err != nil {
			return fmt.Errorf("%w (apt-get install openssh-client)", err)
		}
		// From here on this process is ssh: its terminal, signals and status.
		return syscall.Exec(program, append([]string{"ssh"}, login.Args(args[2:]...)...), os.Environ())
	})
	c.Flags().BoolVar(&printConfig, "config", false, "print an ssh_config for all nodes of the slice")
	c.Flags().BoolVar(&gateway, "gateway", false, "go through the SSH gateway also where there is a direct way")
	return c
}

// ways are the logins to the nodes of a slice.
type ways struct {
	*session
	slice  urn.URN
	keys   map[string]string // of nodes, by their slivers
	told   bool              // what the aggregate says of its gateway has been asked for
	pinned string            // known_hosts file with the gateway's key; "" if that is not known
}

// to returns how the member logs in to a node.
func (w *ways) to(ctx context.Context, n *client.ManifestNode) (client.SSH, error) {
	knownHosts, err := filepath.Abs(w.app.path("slices", w.slice.Name, "known_hosts"))
	if err != nil {
		return client.SSH{}, err
	}
	key := w.who.LoginKey
	if key != "" {
		if key, err = filepath.Abs(key); err != nil {
			return client.SSH{}, err
		}
	}
	login, err := n.SSHTo(w.who.URN, key, knownHosts)
	if err == nil {
		err = w.pinNode(&login, w.keys[n.Sliver])
	}
	if err != nil || login.Gateway == nil {
		return login, err
	}
	if err := w.pin(ctx, login.Gateway); err != nil {
		return login, err
	}
	return login, nil
}

// pinNode has a node show the key that the aggregate says is its.
func (w *ways) pinNode(node *client.SSH, key string) error {
	if key == "" {
		return nil
	}
	line, err := node.KnownHost(key)
	if err != nil {
		return err
	}
	// A file for each: others may be logging in to other nodes.
	file, err := filepath.Abs(w.app.path("slices", w.slice.Name, "known_nodes", node.Alias))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("remembering a node's host key: %w", err)
	}
	if err := atomicfile.Write(file, []byte(line+"\n"), 0o600); err != nil {
		return fmt.Errorf("remembering a node's host key: %w", err)
	}
	node.KnownHosts, node.Strict = file, true
	return nil
}

// pin has the gateway show the key that the aggregate says is its.
func (w *ways) pin(ctx context.Context, gateway *client.SSH) error {
	if !w.told {
		v, err := w.Version(ctx)
		if err != nil {
			return err
		}
		w.told = true
		if v.Gateway.Host == gateway.Login.Host && strconv.Itoa(v.Gateway.Port) == gateway.Login.Port {
			line, err := v.Gateway.KnownHost()
			if err != nil {
				return err
			}
			file, err := filepath.Abs(w.app.path("slices", w.slice.Name, "known_gateway"))
			if err != nil {
				return err
			}
			if err := atomicfile.Write(file, []byte(line+"\n"), 0o600); err != nil {
				return fmt.Errorf("remembering the SSH gateway's key: %w", err)
			}
			w.pinned = file
		}
	}
	if w.pinned != "" {
		gateway.KnownHosts, gateway.Strict = w.pinned, true
	}
	return nil
}

func (w *ways) writeConfig(ctx context.Context, m *client.Manifest) error {
	written := 0
	gateways := map[string]bool{}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		login, err := w.to(ctx, n)
		if err != nil {
			w.app.warn("%v", err)
			continue
		}
		if g := login.Gateway; g != nil && !gateways[g.GatewayName()] {
			gateways[g.GatewayName()] = true
			fmt.Fprint(w.app.out, g.Config(g.GatewayName()))
		}
		fmt.Fprint(w.app.out, login.Config(n.ClientID))
		written++
	}
	if written == 0 {
		return fmt.Errorf("the slice has no node to log in to")
	}
	return nil
}

func nodeNames(m *client.Manifest) []string {
	names := make([]string, len(m.Nodes))
	for i, n := range m.Nodes {
		names[i] = n.ClientID
	}
	return names
}
