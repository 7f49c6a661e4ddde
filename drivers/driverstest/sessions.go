package driverstest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// testSessions does with the stock client what users do besides commands and
// files: a shell, a terminal, their agent, ports in both directions.
func testSessions(t *testing.T, r *rig) {
	n := r.node(1)
	ann := r.person("ann")
	n.Users = users(ann)
	r.up(n)
	d := r.door(n.Sliver)

	out, err := d.typed(ann, "echo sum $((40 + 2)); exit 3\n", "-T")
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 3 || strings.TrimSpace(out) != "sum 42" {
		t.Errorf("a shell: %q, %v; want what was typed to be done, and its status", out, err)
	}
	out, err = d.typed(ann, "test -t 0 && echo sum $((40 + 2)); exit\n", "-tt")
	if err != nil || !strings.Contains(out, "sum 42") {
		t.Errorf("a shell on a terminal: %q, %v", out, err)
	}
	if out, err := d.ssh(ann, "ann", "test -t 0 || echo none"); err != nil || out != "none" {
		t.Errorf("a command has a terminal that nobody asked for: %q, %v", out, err)
	}
	testAgent(t, r, d, ann)
	testPorts(t, r, d, ann, n.Sliver.Name)
}

// typed logs in without a command, and types.
func (d door) typed(p person, text string, more ...string) (string, error) {
	args := append(append(d.options(p), more...), "-p", d.port, p.user.Login+"@127.0.0.1")
	cmd := exec.CommandContext(d.r.ctx, "ssh", args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "TERM=dumb"}
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	return string(out), err
}

// testAgent has an agent on this side asked from the node.
func testAgent(t *testing.T, r *rig, d door, p person) {
	dir, err := os.MkdirTemp("", "agent") // a socket's name must be short
	r.must(err, "make a folder")
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	agent := exec.CommandContext(r.ctx, "ssh-agent", "-D", "-a", socket)
	r.must(agent.Start(), "start ssh-agent")
	defer func() {
		agent.Process.Kill()
		agent.Wait()
	}()
	run := func(program string, args ...string) (string, error) {
		cmd := exec.CommandContext(r.ctx, program, args...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "SSH_AUTH_SOCK=" + socket}
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	await(t, "the agent", func() bool {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	if out, err := run("ssh-add", "-q", p.keyFile); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, out)
	}
	fingerprint, err := run("ssh-add", "-l")
	r.must(err, "ask the agent")
	// Not all images have a program that asks.
	const ask = `if command -v ssh-add >/dev/null; then ssh-add -l; else test -S "$SSH_AUTH_SOCK" && echo socket; fi`
	options := append(d.options(p), "-p", d.port)
	out, err := run("ssh", append(options, "-A", p.user.Login+"@127.0.0.1", ask)...)
	if err != nil || out != "socket" && out != fingerprint {
		t.Errorf("the agent says in the node: %q, %v; want %q", out, err, fingerprint)
	}
	if out, err := run("ssh", append(options, "-a", p.user.Login+"@127.0.0.1", `echo "agent:$SSH_AUTH_SOCK"`)...); err != nil || out != "agent:" {
		t.Errorf("an agent that was not forwarded: %q, %v", out, err)
	}
}

// testPorts has ports forwarded: one here to the node's SSH server, one in the
// node to a server here, and standard input and output.
func testPorts(t *testing.T, r *rig, d door, p person, name string) {
	here, err := net.Listen("tcp", "127.0.0.1:0")
	r.must(err, "listen")
	defer here.Close()
	go func() {
		for {
			c, err := here.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				line, err := bufio.NewReader(io.LimitReader(c, 100)).ReadString('\n')
				if err == nil {
					fmt.Fprintf(c, "%s heard %s", name, line)
				}
			}()
		}
	}()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	r.must(err, "find a port")
	local := free.Addr().String()
	free.Close()
	const remote = "127.0.0.1:4022"
	var said bytes.Buffer
	args := append(d.options(p), "-p", d.port, "-N", "-o", "ExitOnForwardFailure=yes",
		"-L", local+":127.0.0.1:22", "-R", remote+":"+here.Addr().String(), p.user.Login+"@127.0.0.1")
	forwarder := exec.CommandContext(r.ctx, "ssh", args...)
	forwarder.Stderr = &said
	r.must(forwarder.Start(), "ssh")
	end := sync.OnceFunc(func() {
		forwarder.Process.Kill()
		forwarder.Wait()
	})
	defer end()
	var banner string
	await(t, "the forwarded port", func() bool {
		c, err := net.DialTimeout("tcp", local, time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		banner, err = bufio.NewReader(c).ReadString('\n')
		return err == nil
	})
	if !strings.HasPrefix(banner, "SSH-2.0-") {
		t.Errorf("the node's port 22, forwarded, says %q", banner)
	}
	var answer string
	await(t, "the port in the node", func() bool {
		c, err := r.d.Dial(r.ctx, r.node(1).Sliver, "tcp", remote)
		if err != nil {
			return false
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		fmt.Fprintln(c, "a word")
		answer, err = bufio.NewReader(c).ReadString('\n')
		return err == nil
	})
	if answer != name+" heard a word\n" {
		t.Errorf("the server here, asked in the node, says %q", answer)
	}
	if out, err := d.through(p, "127.0.0.1:22"); !strings.HasPrefix(out, "SSH-2.0-") {
		t.Errorf("ssh -W to the node's port 22: %q, %v", out, err)
	}
	if end(); said.Len() > 0 {
		t.Errorf("ssh says: %s", said.String())
	}
}

// through reads the first line that comes through ssh -W.
func (d door) through(p person, to string) (string, error) {
	cmd := exec.CommandContext(d.r.ctx, "ssh", append(d.options(p), "-p", d.port, "-W", to, p.user.Login+"@127.0.0.1")...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	return bufio.NewReader(out).ReadString('\n')
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}
