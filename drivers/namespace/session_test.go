package namespace_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"croft/drivers"
	"croft/drivers/namespace"
	"croft/request"
	"croft/urn"
)

// newSession makes a node with the user ann and logs in.
func newSession(t *testing.T) (*one, *ssh.Client, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	o := newOne(t, namespace.Config{}, func(n *drivers.Node) {
		n.Users = []request.User{{
			URN: urn.MustParse("urn:publicid:IDN+isolation.example+user+ann"), Login: "ann",
			Keys: []string{string(ssh.MarshalAuthorizedKey(key))},
		}}
	})
	host, err := o.d.HostKey(o.ctx, o.sliver)
	if err != nil {
		t.Fatal(err)
	}
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(host))
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.d.Dial(o.ctx, o.sliver, "tcp", "10.66.0.1:22")
	if err != nil {
		t.Fatal(err)
	}
	conn, channels, requests, err := ssh.NewClientConn(c, "", &ssh.ClientConfig{
		User: "ann", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(hostKey),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := ssh.NewClient(conn, channels, requests)
	t.Cleanup(func() { client.Close() })
	return o, client, private
}

func session(t *testing.T, c *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSessionTerminal(t *testing.T) {
	o, c, _ := newSession(t)
	s := session(t, c)
	if err := s.RequestPty("xterm-256color", 33, 77, ssh.TerminalModes{ssh.ECHO: 0}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s.Stdout = &out
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "stty size; tty; echo $TERM $0; test -w $SSH_TTY && echo mine; ps -o tty= -p $$; exit 9\n"); err != nil {
		t.Fatal(err)
	}
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 9 {
		t.Errorf("the shell ended with %v, want 9", err)
	}
	for _, want := range []string{"33 77", "/dev/pts/", "xterm-256color -bash", "mine"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %q", want, out.String())
		}
	}
	if strings.Contains(out.String(), "stty size") {
		t.Errorf("the terminal echoes what it was told not to: %q", out.String())
	}

	// A client that goes hangs up.
	s = session(t, c)
	if err := s.RequestPty("vt100", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	stdout, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`echo "pid $$ end"; exec sleep 1000`); err != nil {
		t.Fatal(err)
	}
	pid := between(t, stdout, "pid ", " end")
	if err := s.WindowChange(40, 100); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the new size", func() bool { out, _ := o.run("stty size < /proc/" + pid + "/fd/0"); return out == "40 100\n" })
	c.Close()
	waitFor(t, "the end of the program", func() bool { _, err := o.run("kill -0 " + pid); return err != nil })
}

// between reads up to the second mark and returns what is between the two.
func between(t *testing.T, r io.Reader, first, second string) string {
	t.Helper()
	var text string
	buf := make([]byte, 100)
	for {
		n, err := r.Read(buf)
		text += string(buf[:n])
		if _, after, ok := strings.Cut(text, first); ok {
			if found, _, ok := strings.Cut(after, second); ok {
				return found
			}
		}
		if err != nil {
			t.Fatalf("%q has no %q and %q: %v", text, first, second, err)
		}
	}
}

func waitFor(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !check(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", what)
		}
	}
}

func TestSessionRequests(t *testing.T) {
	_, c, _ := newSession(t)
	s := session(t, c)
	if err := errors.Join(s.Setenv("CROFT_A", "1 2"), s.Setenv("LANG", "C")); err != nil {
		t.Errorf("set variables: %v", err)
	}
	if err := s.Setenv("BAD NAME", "x"); err == nil {
		t.Error("set a variable whose name is none")
	}
	out, err := s.Output(`echo "$CROFT_A,$LANG,$SHELL,${SSH_CONNECTION%% *}"; id -nG | tr ' ' '\n' | grep -x croft`)
	if want := "1 2,C,/bin/bash,10.66.0.1\ncroft\n"; err != nil || string(out) != want {
		t.Errorf("the session says %q, %v; want %q", out, err, want)
	}

	s = session(t, c)
	stdout, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`trap 'echo got; exit 3' USR1; echo "is ready"; while :; do sleep 0.05; done`); err != nil {
		t.Fatal(err)
	}
	between(t, stdout, "is", "ready")
	if err := s.Signal(ssh.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		t.Errorf("after a signal that is caught: %v", err)
	}

	s = session(t, c)
	if err := s.Run("kill -TERM $$"); !errors.As(err, &exit) || exit.Signal() != "TERM" {
		t.Errorf("after a signal that kills: %v", err)
	}
	if err := session(t, c).RequestSubsystem("no-such"); err == nil {
		t.Error("a subsystem that does not exist was started")
	}
	if out, err := session(t, c).CombinedOutput("ping -n -c 1 -W 10 127.0.0.1"); err != nil {
		t.Errorf("ping as a user: %v %s", err, out)
	}
	s = session(t, c)
	if err := s.Run("cat /etc/shadow"); err == nil {
		t.Error("a user reads the shadow file")
	}
	s = session(t, c)
	s.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
	if out, err := s.Output("wc -c"); err != nil || strings.TrimSpace(string(out)) != "1048576" {
		t.Errorf("1 MiB of input: %q, %v", out, err)
	}
}

func TestSessionForwards(t *testing.T) {
	o, c, private := newSession(t)

	// To a port of the node.
	conn, err := c.Dial("tcp", "127.0.0.1:22")
	if err != nil {
		t.Fatal(err)
	}
	banner := make([]byte, 8)
	if _, err := io.ReadFull(conn, banner); err != nil || string(banner) != "SSH-2.0-" {
		t.Errorf("a port of the node says %q, %v", banner, err)
	}
	conn.Close()
	if _, err := c.Dial("tcp", "localhost:1"); err == nil {
		t.Error("connected to a port where nobody listens")
	}

	// From a port of the node.
	l, err := c.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := l.Accept()
		if err == nil {
			io.WriteString(conn, "from outside\n")
			conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if got := o.must("exec 3<>/dev/tcp/127.0.0.1/" + port + "; cat <&3"); got != "from outside" {
		t.Errorf("a forwarded port says %q", got)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Listen("tcp", "127.0.0.1:80"); err == nil {
		t.Error("a user listens on a port of root's")
	}

	// The agent.
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: private, Comment: "in the agent"}); err != nil {
		t.Fatal(err)
	}
	if err := agent.ForwardToAgent(c, keys); err != nil {
		t.Fatal(err)
	}
	s := session(t, c)
	if err := agent.RequestAgentForwarding(s); err != nil {
		t.Fatal(err)
	}
	out, err := s.CombinedOutput("ssh-add -l; stat -c '%U %a' $SSH_AUTH_SOCK")
	if err != nil || !strings.Contains(string(out), "in the agent") || !strings.Contains(string(out), "ann 600") {
		t.Errorf("the forwarded agent: %q, %v", out, err)
	}
	waitFor(t, "the end of the agent's socket", func() bool { s.Close(); out, _ := o.run("ls /run | grep agent"); return out == "" })
}
