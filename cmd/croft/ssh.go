package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"croft/client"
	"croft/urn"
)

func (a *app) sshCommand() *cobra.Command {
	var printConfig bool
	c := a.onSlice(&cobra.Command{
		Use:   "ssh SLICE NODE [-- COMMAND...]",
		Short: "Log in to a node, or run a command on it",
		Long: `Run the system's ssh with what the slice's manifest says about a node: address,
port, account, and the member's SSH key. Exit status is that of ssh.

Host keys are remembered in slices/SLICE/known_hosts, each under the name of its
sliver: a node that is made anew at the same address is another host.

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
		knownHosts, err := filepath.Abs(a.path("slices", slice.Name, "known_hosts"))
		if err != nil {
			return err
		}
		key := s.who.LoginKey
		if key != "" {
			if key, err = filepath.Abs(key); err != nil {
				return err
			}
		}
		if printConfig {
			return a.writeSSHConfig(m, s.who.URN, key, knownHosts)
		}
		node, ok := m.Node(args[1])
		if !ok {
			return fmt.Errorf("slice %s has no node %s here (it has: %s)", args[0], args[1], strings.Join(nodeNames(m), ", "))
		}
		login, err := node.SSHTo(s.who.URN, key, knownHosts)
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
	return c
}

func (a *app) writeSSHConfig(m *client.Manifest, who urn.URN, key, knownHosts string) error {
	written := 0
	for i := range m.Nodes {
		n := &m.Nodes[i]
		login, err := n.SSHTo(who, key, knownHosts)
		if err != nil {
			a.warn("%v", err)
			continue
		}
		fmt.Fprint(a.out, login.Config(n.ClientID))
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
