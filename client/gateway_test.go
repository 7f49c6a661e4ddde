package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"croft/client"
)

// behind is a node that is reached through a gateway, and directly.
const behind = `<rspec xmlns="http://www.geni.net/resources/rspec/3" type="manifest"><node client_id="n" sliver_id="urn:publicid:IDN+example.org+sliver+x">
<services xmlns:proxy="http://jfed.iminds.be/proxy/1.0">
<proxy:proxy proxy="proxy@gate.example.org:2222" for="alice@n.example.org:22"/>
<proxy:proxy proxy="proxy@gate.example.org" for="bob@n.example.org"/>
<login authentication="ssh-keys" hostname="gate.example.org" port="2222" username="proxy"/>
<login authentication="ssh-keys" hostname="n.example.org" port="22" username="alice"/>
<login authentication="ssh-keys" hostname="n.example.org" username="bob"/>DIRECT
<user:services_user xmlns:user="http://www.geni.net/resources/rspec/ext/user/1" login="alice" user_urn="urn:publicid:IDN+example.org+user+alice"/>
</services></node></rspec>`

const direct = `<login authentication="ssh-keys" hostname="n.example.org" port="22000" username="alice"/>`

func gatewayNode(t *testing.T, more string) *client.ManifestNode {
	t.Helper()
	m, err := client.ReadManifest(strings.Replace(behind, "DIRECT", more, 1))
	if err != nil {
		t.Fatal(err)
	}
	return &m.Nodes[0]
}

func TestLoginsThroughGateways(t *testing.T) {
	for _, test := range []struct {
		name    string
		node    *client.ManifestNode
		want    client.Login
		through string // the gateway's port
	}{
		{"the only way", gatewayNode(t, ""), client.Login{Authentication: "ssh-keys", Host: "n.example.org", Port: "22", User: "alice"}, "2222"},
		{"beside a direct one", gatewayNode(t, direct), client.Login{Authentication: "ssh-keys", Host: "n.example.org", Port: "22000", User: "alice"}, ""},
		{"the gateway wished for", gatewayNode(t, direct).ThroughGateway(), client.Login{Authentication: "ssh-keys", Host: "n.example.org", Port: "22", User: "alice"}, "2222"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := test.node.SSHTo(alice, "/key", "/hosts")
			if err != nil {
				t.Fatal(err)
			}
			if s.Login != test.want {
				t.Errorf("login %+v, want %+v", s.Login, test.want)
			}
			if (s.Gateway != nil) != (test.through != "") || s.Gateway != nil && s.Gateway.Login.Port != test.through {
				t.Errorf("through %+v, want port %q", s.Gateway, test.through)
			}
		})
	}
	n := gatewayNode(t, "")
	for _, p := range n.Proxies {
		if p.For.User == "bob" && (p.At.Port != "22" || p.At.Host != "gate.example.org") {
			t.Errorf("without ports: %+v", p)
		}
	}
}

// What a manifest says of a gateway gets no further than a login.
func TestHostileGateways(t *testing.T) {
	for _, at := range []string{"-oProxyCommand=id@gate:22", "a@-oProxyCommand=id:22", "a@gate:22;id", "a@ga te:22", "a@gate:0", "a'b@gate:22", "$(id)@gate:22", "@gate:22", "gate:22", "", "a@", "a@[::1"} {
		m, err := client.ReadManifest(strings.Replace(strings.Replace(behind, "DIRECT", "", 1), "proxy@gate.example.org:2222", strings.ReplaceAll(at, "&", "&amp;"), 1))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := m.Nodes[0].SSHTo(alice, "", ""); err == nil && s.Gateway != nil {
			t.Errorf("%q becomes ssh %q", at, s.Args())
		}
	}
}

// The command that leads through the gateway says to ssh what it should, with
// whatever names of files.
func TestProxyCommand(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("needs ssh (scripts/setup test installs it)")
	}
	dir := filepath.Join(t.TempDir(), `it's a folder of 100%`)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := gatewayNode(t, "").SSHTo(alice, filepath.Join(dir, "key"), filepath.Join(dir, "hosts"))
	if err != nil {
		t.Fatal(err)
	}
	s.Gateway.KnownHosts, s.Gateway.Strict = filepath.Join(dir, "pinned"), true
	// A stub in place of the ssh that goes to the gateway tells its arguments.
	stub, told := t.TempDir(), filepath.Join(t.TempDir(), "told")
	script := "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done > " + told + "\n"
	if err := os.WriteFile(filepath.Join(stub, "ssh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	real, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(real, append([]string{"-F", "none"}, s.Args("true")...)...)
	cmd.Env = append(os.Environ(), "PATH="+stub+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("ssh went through a stub: %s", out)
	}
	data, err := os.ReadFile(told)
	if err != nil {
		t.Fatalf("the stub was not run: %v\n%s", err, out)
	}
	args := strings.Split(strings.TrimSpace(string(data)), "\n")
	quoted := func(file string) string { return `"` + strings.ReplaceAll(filepath.Join(dir, file), "%", "%%") + `"` }
	for _, want := range []string{"IdentityFile=" + quoted("key"), "UserKnownHostsFile=" + quoted("pinned"), "StrictHostKeyChecking=yes", "User=proxy", "Port=2222", "[n.example.org]:22", "gate.example.org"} {
		if !slices.Contains(args, want) {
			t.Errorf("no %q among %q", want, args)
		}
	}
	// As OpenSSH reads it.
	printed, err := exec.Command(real, append([]string{"-G"}, args[:len(args)-1]...)...).CombinedOutput()
	if err == nil && !strings.Contains(string(printed), dir+"/pinned") {
		t.Errorf("ssh reads\n%s", printed)
	}

	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte(s.Gateway.Config(s.Gateway.GatewayName())+s.Config("n")), 0o600); err != nil {
		t.Fatal(err)
	}
	printed, err = exec.Command(real, "-F", config, "-G", "n").CombinedOutput()
	if err != nil || !strings.Contains(string(printed), "proxyjump gateway_proxy_gate.example.org_2222\n") || !strings.Contains(string(printed), "hostname n.example.org\n") {
		t.Errorf("the configuration is %v\n%s", err, printed)
	}
}

func TestGatewayKnownHost(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKtC4xp7KC3eFaHVQvT3vNPvnpEEWwcs0X1X3YLKJAyL"
	for _, test := range []struct {
		client.SSHGateway
		want string
	}{
		{client.SSHGateway{Host: "gate.example.org", Port: 2222, HostKey: key}, "[gate.example.org]:2222 " + key},
		{client.SSHGateway{Host: "gate.example.org", Port: 22, HostKey: key + " comment"}, "gate.example.org " + key},
		{client.SSHGateway{Host: "::1", Port: 2222, HostKey: key}, "[::1]:2222 " + key},
		{client.SSHGateway{Host: "gate\nother", Port: 22, HostKey: key}, ""},
		{client.SSHGateway{Host: "gate", Port: 22, HostKey: key + "\n@cert-authority * " + key}, ""},
		{client.SSHGateway{Host: "gate", Port: 0, HostKey: key}, ""},
		{client.SSHGateway{Host: "gate", Port: 22, HostKey: "no key"}, ""},
	} {
		got, err := test.KnownHost()
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%+v: %q, %v; want %q", test.SSHGateway, got, err, test.want)
		}
	}
}
