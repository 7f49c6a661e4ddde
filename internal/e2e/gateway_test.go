package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/client"
	"croft/urn"
)

// jumper is a member's stock OpenSSH client, with what the manifest says and
// nothing of Croft's.
type jumper struct {
	*testbed
	member string
	node   client.ManifestNode
	files  string // folder of its configuration
}

func (b *testbed) jumper(member string, slice urn.URN, node string) *jumper {
	b.Helper()
	d, err := b.caller().Describe(context.Background(), []urn.URN{slice}, []client.Credential{b.credential(slice)}, client.GENI3)
	if err != nil {
		b.Fatal(err)
	}
	m, err := client.ReadManifest(d.RSpec)
	if err != nil {
		b.Fatal(err)
	}
	n, ok := m.Node(node)
	if !ok || len(n.Proxies) == 0 {
		b.Fatalf("no proxy of %s in\n%s", node, d.RSpec)
	}
	j := &jumper{testbed: b, member: member, node: *n, files: b.TempDir()}
	// What a member has in ~/.ssh/config anyway: which key, and no questions.
	j.write("config", fmt.Sprintf("Host *\n  IdentityFile %s\n  IdentitiesOnly yes\n  BatchMode yes\n  StrictHostKeyChecking accept-new\n  UserKnownHostsFile %s\n",
		filepath.Join(b.dir, "members", member, "id_ed25519"), filepath.Join(j.files, "known_hosts")))
	return j
}

func (j *jumper) write(name, text string) {
	j.Helper()
	if err := os.WriteFile(filepath.Join(j.files, name), []byte(text), 0o600); err != nil {
		j.Fatal(err)
	}
}

// at is the gateway's login as a manifest writes it: user@host:port.
func (j *jumper) at() string {
	at := j.node.Proxies[0].At
	return at.User + "@" + net.JoinHostPort(at.Host, at.Port)
}

func (j *jumper) run(program string, args ...string) result {
	j.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return runCommand(j, exec.CommandContext(ctx, program, append([]string{"-F", filepath.Join(j.files, "config")}, args...)...), "")
}

// jump logs in to a name through the gateway.
func (j *jumper) jump(name string, command ...string) result {
	j.Helper()
	to := j.node.Proxies[0].For
	return j.run("ssh", append([]string{"-J", j.at(), "-l", to.User, name}, command...)...)
}

func (j *jumper) wantRefused(why string, r result) {
	j.Helper()
	if r.status == 0 || !strings.Contains(r.out+r.err, why) {
		j.Errorf("status %d, %q and %q; want it refused because %q", r.status, r.out, r.err, why)
	}
}

// The two ways of the Federation RSpec's examples, with a stock ssh -J: an
// account of the gateway's own, and that of the node, whose own ports are
// closed there.
func TestProxyExamples(t *testing.T) {
	t.Parallel()
	need(t, "ssh", "scp")
	for _, test := range []struct {
		name     string
		settings []setting
		user     string
		direct   bool
	}{
		{"gateway's account", []setting{{`user: ""`, `user: "proxy"`}, {"ways: both", "ways: gateway"}}, "proxy", false},
		{"node's account", nil, "alice", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newTestbed(t, test.settings...)
			slice := b.slice("jumps")
			b.must("up", "jumps", repository(t, "testdata", "requests", "two-nodes.rspec"))
			j := b.jumper("alice", slice, "node0")
			if p := j.node.Proxies[0]; p.At.User != test.user || p.For.Host != "node0.jumps.example.org" || p.For.Port != "22" || p.For.User != "alice" {
				t.Errorf("proxy %+v", p)
			}
			direct := false
			for _, l := range j.node.Logins {
				if _, through := j.node.ProxyOf(l); !through && l.Port != j.node.Proxies[0].At.Port {
					direct = true
				}
			}
			if direct != test.direct {
				t.Errorf("logins %+v: directly %v, want %v", j.node.Logins, direct, test.direct)
			}
			if r := j.jump(j.node.Proxies[0].For.Host, "cat", "/etc/hostname"); r.status != 0 || !strings.HasPrefix(r.out, "node0.jumps") {
				t.Fatalf("ssh -J: %+v\n%s", r, b.logTail())
			}
			// By the other names of the node, and with both accounts.
			sliver := urn.MustParse(j.node.Sliver).Name
			for _, name := range []string{"node0.jumps", sliver} {
				if r := j.jump(name, "cat", "/etc/hostname"); r.status != 0 || !strings.HasPrefix(r.out, "node0.jumps") {
					t.Errorf("ssh -J to %s: %+v", name, r)
				}
			}
			j.write("file", strings.Repeat("0123456789abcdef", 1<<16))
			if r := j.run("scp", "-J", j.at(), filepath.Join(j.files, "file"), "alice@node0.jumps.example.org:copy"); r.status != 0 {
				t.Errorf("scp: %+v", r)
			}
			if r := j.jump("node0.jumps.example.org", "wc -c < copy"); strings.TrimSpace(r.out) != "1048576" {
				t.Errorf("the copy: %+v", r)
			}
			if r := j.run("scp", "-J", j.at(), "alice@node0.jumps.example.org:copy", filepath.Join(j.files, "back")); r.status != 0 {
				t.Errorf("scp back: %+v", r)
			}
			sent, _ := os.ReadFile(filepath.Join(j.files, "file"))
			if back, err := os.ReadFile(filepath.Join(j.files, "back")); err != nil || string(back) != string(sent) {
				t.Errorf("%d bytes came back, %v", len(back), err)
			}

			// Nowhere else.
			for _, name := range []string{"127.0.0.1", "localhost", "node2.jumps", "10.10.1.2", "www.example.org", "::1"} {
				j.wantRefused("no node", j.jump(name, "true"))
			}
			j.wantRefused("port 80", j.run("ssh", "-W", "node0.jumps:80", "-p", j.node.Proxies[0].At.Port, "alice@127.0.0.1"))
			j.wantRefused("no node", j.run("ssh", "-W", "127.0.0.1:22", "-p", j.node.Proxies[0].At.Port, "alice@127.0.0.1"))
			r := j.run("ssh", "-tt", "-A", "-p", j.node.Proxies[0].At.Port, "anybody@127.0.0.1")
			j.wantRefused("It has no shell", r)
			if !strings.Contains(r.out+r.err, "node1.jumps.example.org") {
				t.Errorf("the greeting does not say where to go: %+v", r)
			}
			j.wantRefused("remote port forwarding failed", j.run("ssh", "-N", "-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:22", "-p", j.node.Proxies[0].At.Port, "alice@127.0.0.1"))

			// Who has no node has no gateway.
			b.must("member", "add", "mallory")
			other := b.jumper("mallory", slice, "node0")
			j.wantRefused("Permission denied", other.jump("node0.jumps.example.org", "true"))

			// croft ssh goes the same way, and checks the gateway's key.
			if out := b.must("ssh", "--gateway", "jumps", "node1", "--", "cat", "/etc/hostname"); !strings.HasPrefix(out, "node1.jumps") {
				t.Errorf("croft ssh says %q", out)
			}
			config := b.must("ssh", "--gateway", "--config", "jumps")
			j.write("croft", config)
			if !strings.Contains(config, "    ProxyJump gateway_"+test.user+"_127.0.0.1_") || !strings.Contains(config, "StrictHostKeyChecking yes") {
				t.Errorf("no ProxyJump, or no pinned key, in\n%s", config)
			}
			ssh := runCommand(t, exec.Command("ssh", "-F", filepath.Join(j.files, "croft"), "-o", "BatchMode=yes", "node1", "cat", "/etc/hostname"), "")
			if ssh.status != 0 || !strings.HasPrefix(ssh.out, "node1.jumps") {
				t.Errorf("with the ssh_config of croft ssh: %+v", ssh)
			}

			log := b.logTail()
			for _, want := range []string{"msg=jump method=direct-tcpip code=SUCCESS", "caller=urn:publicid:IDN+example.org+user+alice", "key=SHA256:", "end=closed", "code=FORBIDDEN"} {
				if all, err := os.ReadFile(b.log); err != nil || !strings.Contains(string(all), want) {
					t.Errorf("the audit log does not say %q: %v\n%s", want, err, log)
				}
			}
		})
	}
}

// linger is a login that stays until it is cut. It has said that it is there.
func (j *jumper) linger(name string) <-chan error {
	j.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cmd := exec.CommandContext(ctx, "ssh", "-F", filepath.Join(j.files, "config"), "-J", j.at(), "-l", "alice", name, "echo here; sleep 600")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		j.Fatal(err)
	}
	said := make([]byte, 4)
	if _, err := out.Read(said); err != nil || string(said) != "here" {
		cancel()
		_ = cmd.Wait()
		j.Fatalf("ssh says %q: %v\n%s", said, err, j.logTail())
	}
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- cmd.Wait()
	}()
	return ended
}

// A login through the gateway ends with what allowed it.
func TestJumpsAreCut(t *testing.T) {
	t.Parallel()
	need(t, "ssh")
	b := newTestbed(t)
	const name = "alone.cut.example.org"
	file := repository(t, "testdata", "requests", "one-node.rspec")
	slice := b.slice("cut")
	creds := []client.Credential{b.credential(slice)}
	for _, test := range []struct {
		name, why string
		do        func()
	}{
		{"deleted", "the sliver has ended", func() { b.must("delete", "cut") }},
		{"expired", "the sliver has ended", func() { b.must("renew", "cut", "2s") }},
		{"shut down", "the slice has been shut down", func() { b.must("admin", "shutdown", "cut") }},
		{"key taken away", "the key has been taken away", func() {
			b.must("member", "add", "carol")
			carol := strings.TrimSpace(b.read("members", "carol", "id_ed25519.pub"))
			alice := urn.URN{Authority: authority, Type: urn.User, Name: "alice"}
			_, err := b.caller().Perform(context.Background(), []urn.URN{slice}, creds, "geni_update_users",
				client.ActionOptions{Users: []client.User{{URN: alice, Keys: []string{carol}}}})
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.must("up", "cut", file)
			j := b.jumper("alice", slice, "alone")
			ended := j.linger(name)
			test.do()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("ssh ended as if it were done")
				}
			case <-time.After(patience):
				t.Fatalf("the login is not cut\n%s", b.logTail())
			}
			if r := j.jump(name, "true"); r.status == 0 {
				t.Error("another login works")
			}
			b.await("the audit log to say why", func() bool {
				all, _ := os.ReadFile(b.log)
				return strings.Contains(string(all), test.why)
			})
			if test.name == "shut down" {
				b.must("admin", "lift", "cut")
			}
			b.croft("delete", "cut")
			b.awaitNothing()
		})
	}
}
