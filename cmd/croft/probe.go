package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"croft/client"
	"croft/federation"
	"croft/urn"
)

// The exit status of croft probe, by its verdict; other failures, such as a
// missing file, are 1.
var probeStatus = map[client.Verdict]exitStatus{
	client.Unreachable: 2,
	client.Refused:     3,
	client.Unhealthy:   4,
}

// probeSlice is the slice that probes use.
const probeSlice = "probe"

func (a *app) probeCommand() *cobra.Command {
	var request, slice, credential string
	var wait time.Duration
	c := a.calls(&cobra.Command{
		Use:   "probe [URL]",
		Short: "Try an aggregate as a federation's monitor does",
		Long: `Call an aggregate of the AM API and say how it is: GetVersion, and ListResources
with the member's user credential, whose nodes are counted. URL is the default
aggregate if it is left out.

With --life-cycle FILE, also reserve what the request in FILE asks for, make and
start it, wait until it is ready, log in to every node by SSH, and give it back,
whatever has gone wrong meanwhile. The slice is --slice, with the credential in
--dir or --credential; without --slice, the federation in --dir makes a slice
"probe" for it.

Exit status:
  0  healthy: every step worked
  1  not probed: wrong use, or a file that is missing here
  2  unreachable: no connection (also TLS), or no answer in time
  3  refused: it answers, and says no (the geni_code is told)
  4  unhealthy: it fails by itself, answers what the AM API does not allow, gets
     nothing ready in time, or lets nobody log in`,
		Example: "  croft probe https://am.example.org:12369/am/3.0 --member ~/.fed/monitor\n" +
			"  croft probe --life-cycle one-node.rspec --json",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.am = args[0]
			}
			s, err := a.open()
			if err != nil {
				return err
			}
			p := client.ProbeRequest{Credentials: s.userCredentials()}
			if request != "" {
				if p.LifeCycle, err = s.lifeCycle(request, slice, credential); err != nil {
					return err
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			report := s.Probe(ctx, p, a.writeStep)
			if a.json {
				if err := a.writeJSON(report); err != nil {
					return err
				}
			} else {
				fmt.Fprintln(a.out, report.Verdict)
			}
			if status, bad := probeStatus[report.Verdict]; bad {
				return status
			}
			return nil
		},
	})
	f := c.Flags()
	f.StringVar(&request, "life-cycle", "", "`file` of a request to bring up and take down")
	f.StringVar(&slice, "slice", "", "`slice` for it: a name in --dir, or a URN")
	f.StringVar(&credential, "credential", "", "`file` of the credential for --slice, if it is not in --dir")
	f.DurationVar(&wait, "wait", 10*time.Minute, "how long all of it may take")
	return c
}

// writeStep tells people about a step when it is done.
func (a *app) writeStep(s client.ProbeStep) {
	if a.json {
		return
	}
	mark, told := "ok  ", s.Told
	if s.Verdict != client.Healthy {
		mark, told = "FAIL", s.Error
	}
	fmt.Fprintf(a.out, "%s %8.3fs  %s\n", mark, s.Seconds, strings.TrimRight(fmt.Sprintf("%-24s  %s", s.Name, told), " "))
}

// lifeCycle prepares the life cycle of a probe.
func (s *session) lifeCycle(file, slice, credentialFile string) (*client.LifeCycle, error) {
	l := &client.LifeCycle{Login: s.tryLogin}
	_, err := exec.LookPath("ssh")
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get install openssh-client)", err)
	}
	if l.Request, err = s.app.readRequest(file); err != nil {
		return nil, err
	}
	if l.Users, err = s.users(); err != nil {
		return nil, err
	}
	switch {
	case credentialFile != "":
		data, err := os.ReadFile(credentialFile)
		if err != nil {
			return nil, fmt.Errorf("read credential: %w", err)
		}
		if l.Slice, err = urn.Parse(slice); err != nil {
			return nil, fmt.Errorf("--slice, for --credential: %w", err)
		}
		l.Credentials = []client.Credential{client.SFA(string(data))}
		return l, nil
	case slice == "":
		slice = probeSlice
		if err := s.makeSlice(slice); err != nil {
			return nil, err
		}
	}
	l.Slice, l.Credentials, err = s.slice(slice)
	return l, err
}

// makeSlice makes a slice for the member in the federation in --dir, or renews
// the credential for it.
func (s *session) makeSlice(name string) error {
	f, err := federation.Open(s.app.dir, s.app.now)
	if err != nil {
		return fmt.Errorf("%w (or name a slice with --slice, and its credential with --credential)", err)
	}
	m, err := f.Member(s.member)
	if err != nil {
		return err
	}
	_, _, err = f.AddSlice(name, m, federation.DefaultSliceValidity)
	return err
}

// loginTime bounds a login of a probe.
const loginTime = time.Minute

// tryLogin logs in to a node by the system's ssh and runs something there.
func (s *session) tryLogin(ctx context.Context, n *client.ManifestNode) error {
	known, err := os.MkdirTemp("", "croft-probe-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(known)
	key := s.who.LoginKey
	if key != "" {
		if key, err = filepath.Abs(key); err != nil {
			return err
		}
	}
	login, err := n.SSHTo(s.who.URN, key, filepath.Join(known, "known_hosts"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	args := append([]string{"-n", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30"}, login.Args("true")...)
	out, err := exec.CommandContext(ctx, "ssh", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ssh %s@%s port %s: %w: %s", login.Login.User, login.Login.Host, login.Login.Port, err, strings.TrimSpace(string(out)))
	}
	return nil
}
