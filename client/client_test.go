package client_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/client"
	"croft/urn"
)

var alice = urn.MustParse("urn:publicid:IDN+example.org+user+alice")

const manifest = `<?xml version="1.0"?>
<rspec xmlns="http://www.geni.net/resources/rspec/3" xmlns:u="http://www.geni.net/resources/rspec/ext/user/1" type="manifest">
  <node client_id="a" sliver_id="urn:publicid:IDN+example.org+sliver+1" component_id="urn:publicid:IDN+example.org+node+pc1">
    <host name="a.exp.example.org"/>
    <interface client_id="a:0" mac_address="02:00:00:00:00:01"><ip address="10.0.0.1" netmask="255.255.255.0"/><ip address="fd00::1" type="ipv6"/></interface>
    <services>
      <login authentication="ssh-keys" hostname="gate.example.org" port="22001" username="bob"/>
      <login authentication="ssh-keys" hostname="gate.example.org" port="22001" username="alice2"/>
      <u:services_user login="alice2" user_urn="urn:publicid:IDN+EXAMPLE.org+user+alice"><u:public_key>ssh-ed25519 AAAA</u:public_key></u:services_user>
    </services>
  </node>
  <node client_id="b"><services><login authentication="ssh-keys" hostname="b.example.org" username="root"/></services></node>
  <node client_id="c"/>
  <link client_id="l"/>
</rspec>`

func TestReadManifest(t *testing.T) {
	m, err := client.ReadManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		node string
		user urn.URN
		want client.Login
	}{
		{"a", alice, client.Login{Authentication: "ssh-keys", Host: "gate.example.org", Port: "22001", User: "alice2"}},
		{"a", urn.MustParse("urn:publicid:IDN+example.org+user+bob"), client.Login{Authentication: "ssh-keys", Host: "gate.example.org", Port: "22001", User: "bob"}},
		{"b", alice, client.Login{Authentication: "ssh-keys", Host: "b.example.org", Port: "22", User: "root"}},
	} {
		n, ok := m.Node(test.node)
		if !ok {
			t.Fatalf("no node %s", test.node)
		}
		if got, ok := n.LoginOf(test.user); !ok || got != test.want {
			t.Errorf("%s logs in to %s as %+v, want %+v", test.user.Name, test.node, got, test.want)
		}
	}
	a, _ := m.Node("a")
	if !slices.Equal(a.Interfaces[0].Addresses, []string{"10.0.0.1", "fd00::1"}) || a.Interfaces[0].MAC != "02:00:00:00:00:01" {
		t.Errorf("interfaces are %+v", a.Interfaces)
	}
	if c, _ := m.Node("c"); c == nil {
		t.Error("no node c")
	} else if _, err := c.SSHTo(alice, "", ""); err == nil || !strings.Contains(err.Error(), "provisioned") {
		t.Errorf("login to a node without one: %v", err)
	}
	if _, ok := m.Node("d"); ok {
		t.Error("there is a node d")
	}
}

func TestDocumentsThatAreNone(t *testing.T) {
	for _, text := range []string{"", "no XML", "<html/>", "<rspec>", `<!DOCTYPE rspec [<!ENTITY a "b">]><rspec><node client_id="&a;"/></rspec>`} {
		if _, err := client.ReadManifest(text); err == nil {
			t.Errorf("manifest %q was read", text)
		}
		if _, err := client.ReadAdvertisement(text); err == nil {
			t.Errorf("advertisement %q was read", text)
		}
	}
}

func TestReadAdvertisement(t *testing.T) {
	ad, err := client.ReadAdvertisement(`<rspec xmlns="http://www.geni.net/resources/rspec/3" type="advertisement">
  <node component_id="urn:publicid:IDN+example.org+node+pc1" component_name="pc1" exclusive="true">
    <hardware_type name="pc"/><sliver_type name="raw-pc"/><sliver_type name="namespace"/><available now="true"/>
  </node>
  <node component_id="urn:publicid:IDN+example.org+node+pc2" exclusive="false"><available now="false"/></node>
  <link/><link/>
</rspec>`)
	if err != nil {
		t.Fatal(err)
	}
	if len(ad.Nodes) != 2 || ad.Links != 2 {
		t.Fatalf("read %+v", ad)
	}
	if n := ad.Nodes[0]; !n.Available || !n.Exclusive || !slices.Equal(n.SliverTypes, []string{"raw-pc", "namespace"}) {
		t.Errorf("first node is %+v", n)
	}
	if n := ad.Nodes[1]; n.Available || n.Exclusive {
		t.Errorf("second node is %+v", n)
	}
}

func FuzzReadManifest(f *testing.F) {
	f.Add(manifest)
	f.Add(behind)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := client.ReadManifest(text)
		if (m == nil) == (err == nil) {
			t.Fatalf("manifest %v, error %v", m, err)
		}
		if m == nil {
			return
		}
		for _, n := range m.Nodes {
			s, err := n.SSHTo(alice, "/key", "/hosts")
			if err != nil {
				continue
			}
			for _, arg := range s.Args() {
				if strings.ContainsAny(arg, "\n\r\x00") {
					t.Fatalf("argument %q of ssh", arg)
				}
			}
		}
	})
}

// What a manifest says can't become an option of ssh, or another line of its
// configuration.
func TestHostileManifests(t *testing.T) {
	for _, login := range []client.Login{
		{Host: "-oProxyCommand=id", Port: "22", User: "a"},
		{Host: "a\nProxyCommand id", Port: "22", User: "a"},
		{Host: "a b", Port: "22", User: "a"},
		{Host: "", Port: "22", User: "a"},
		{Host: "a", Port: "22", User: "-l"},
		{Host: "a", Port: "22", User: "a b"},
		{Host: "a", Port: "22", User: ""},
		{Host: "a", Port: "22 -v", User: "a"},
		{Host: "a", Port: "0", User: "a"},
	} {
		n := client.ManifestNode{ClientID: "n", Logins: []client.Login{login}}
		if s, err := n.SSHTo(alice, "", ""); err == nil {
			t.Errorf("%+v becomes ssh %q", login, s.Args())
		}
	}
}

// OpenSSH itself says what it makes of our arguments and configuration.
func TestOpenSSHUnderstands(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("needs ssh (scripts/setup test installs it)")
	}
	dir := filepath.Join(t.TempDir(), `a folder of 100%`)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	n := client.ManifestNode{ClientID: "n", Sliver: "urn:publicid:IDN+example.org:a+sliver+x.1", Logins: []client.Login{{Host: "127.0.0.1", Port: "22001", User: "alice"}}}
	s, err := n.SSHTo(alice, filepath.Join(dir, "key"), filepath.Join(dir, "hosts"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte(s.Config("n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		append([]string{"-F", "/dev/null", "-G"}, s.Args("ls", "-l")...),
		{"-F", config, "-G", "n"},
	} {
		out, err := exec.Command("ssh", args...).CombinedOutput()
		if err != nil {
			t.Errorf("ssh %q: %v\n%s", args, err, out)
			continue
		}
		for _, want := range []string{
			"user alice", "hostname 127.0.0.1", "port 22001", "hostkeyalias example.org_a_sliver_x.1",
			"identitiesonly yes", "stricthostkeychecking accept-new",
		} {
			if !strings.Contains(string(out), want+"\n") {
				t.Errorf("ssh %q: no %q in\n%s", args, want, out)
			}
		}
		if !strings.Contains(string(out), "a folder of 100%") {
			t.Errorf("ssh %q: the files are others:\n%s", args, out)
		}
	}
}

func TestAPIErrorText(t *testing.T) {
	for _, test := range []struct {
		err  client.APIError
		want string
	}{
		{client.APIError{Code: 12, Output: "no slice"}, "SEARCHFAILED (12): no slice"},
		{client.APIError{Code: 2, AMType: "protogeni", AMCode: 24, Output: "no tag"}, "ERROR (2) [protogeni 24]: no tag"},
		{client.APIError{Code: 99}, "UNKNOWN (99)"},
		{client.APIError{Code: -32001}, "SERVERBUSY (-32001)"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestParseTime(t *testing.T) {
	want := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for _, text := range []string{"2026-01-02T15:04:05Z", "2026-01-02T16:04:05+01:00", "2026-01-02T15:04:05.000Z", "2026-01-02 15:04:05", " 2026-01-02T15:04:05+0000 "} {
		if got, err := client.ParseTime(text); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if _, err := client.ParseTime("soon"); err == nil {
		t.Error("soon is a time")
	}
}

func TestNewRefuses(t *testing.T) {
	id := &client.Identity{URN: alice}
	for _, test := range []struct {
		name string
		o    client.Options
		want string
	}{
		{"plain HTTP", client.Options{URL: "http://a/", Identity: id, Insecure: true}, "https://"},
		{"no host", client.Options{URL: "https:///x", Identity: id, Insecure: true}, "https://"},
		{"no URL", client.Options{URL: "am", Identity: id, Insecure: true}, "https://"},
		{"nobody", client.Options{URL: "https://a/", Insecure: true}, "nobody"},
		{"roots that are none", client.Options{URL: "https://a/", Identity: id, Roots: []byte("x")}, "trust roots"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := client.New(test.o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLoadIdentityNowhere(t *testing.T) {
	_, err := client.LoadIdentity(t.TempDir())
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "croft member add") {
		t.Errorf("got %v", err)
	}
}
