package federation_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"croft/federation"
	"croft/urn"
)

var start = time.Date(2030, 4, 5, 6, 7, 8, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func options() federation.Options {
	return federation.Options{
		Authority: "example.org:lab",
		Manager:   urn.MustParse("urn:publicid:IDN+example.org:lab+authority+cm"),
		Hosts:     []string{"localhost", "127.0.0.1", "::1", "am.example.org"},
	}
}

func newFederation(t *testing.T) (string, *federation.Federation) {
	t.Helper()
	dir := t.TempDir()
	f, _, err := federation.Init(dir, options(), at(start))
	if err != nil {
		t.Fatal(err)
	}
	return dir, f
}

func addMember(t *testing.T, f *federation.Federation, name string) *federation.Member {
	t.Helper()
	m, _, err := f.AddMember(name, "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// actions lists what was done to each file.
func actions(changes []federation.Change) map[string]federation.Action {
	m := map[string]federation.Action{}
	for _, c := range changes {
		m[c.File] = c.Action
	}
	return m
}

func TestInit(t *testing.T) {
	dir := t.TempDir()
	f, changes, err := federation.Init(dir, options(), at(start))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"pki/ca.pem", "pki/ca-key.pem", "pki/sa.pem", "pki/sa-key.pem", "pki/server.pem", "pki/server-key.pem", "trusted/ca.pem"} {
		if got := actions(changes)[file]; got != federation.Made {
			t.Errorf("%s: %q, want made", file, got)
		}
	}
	_, changes, err = f.AddMember("alice", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"cert.pem", "key.pem", "id_ed25519", "id_ed25519.pub", "user-credential.xml"} {
		if got := actions(changes)["members/alice/"+file]; got != federation.Made {
			t.Errorf("%s: %q, want made", file, got)
		}
	}
	checkModes(t, dir)
}

// checkModes wants every key to be readable by its owner only, and nothing
// temporary left.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		secret := strings.Contains(d.Name(), "key.pem") || d.Name() == "id_ed25519" || strings.Contains(d.Name(), "credential")
		if secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode().Perm())
		}
		if strings.HasPrefix(d.Name(), ".") {
			t.Errorf("%s was left behind", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSecondInitKeepsEverything(t *testing.T) {
	dir, f := newFederation(t)
	addMember(t, f, "alice")
	before := contents(t, dir)
	f, changes, err := federation.Init(dir, options(), at(start.Add(24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	_, more, err := f.AddMember("alice", "other@example.org")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(changes, more...) {
		if c.Action != federation.Kept {
			t.Errorf("%s: %s, want kept", c.File, c.Action)
		}
	}
	after := contents(t, dir)
	for file, text := range before {
		if after[file] != text {
			t.Errorf("%s changed", file)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		m[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Whatever file an interrupted run had not made yet, the next run makes; keys
// that are there stay.
func TestInitMakesWhatIsMissing(t *testing.T) {
	dir, f := newFederation(t)
	addMember(t, f, "alice")
	before := contents(t, dir)
	for file := range before {
		if strings.HasSuffix(file, "ca.pem") && strings.Contains(file, "pki") {
			continue // the identity of the federation itself
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			// A certificate of a lost key is of no use, and made anew; a
			// federation without the key of its authority is lost.
			if name == "pki/ca-key.pem" || name == "pki/sa-key.pem" {
				t.Skip("covered by TestLostAuthority")
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			g, _, err := federation.Init(dir, options(), at(start))
			if err != nil {
				t.Fatal(err)
			}
			addMember(t, g, "alice")
			after := contents(t, dir)
			for other := range before {
				if _, ok := after[other]; !ok {
					t.Errorf("%s is missing", other)
				}
				if other != file && strings.Contains(other, "key.pem") && after[other] != before[other] {
					t.Errorf("%s changed", other)
				}
			}
			pair := filepath.Join(dir, "members", "alice")
			if _, err := tls.LoadX509KeyPair(filepath.Join(pair, "cert.pem"), filepath.Join(pair, "key.pem")); err != nil {
				t.Error(err)
			}
			before = after
		})
	}
}

func TestLostAuthority(t *testing.T) {
	for _, name := range []string{"ca-key.pem", "sa-key.pem"} {
		dir, _ := newFederation(t)
		if err := os.Remove(filepath.Join(dir, "pki", name)); err != nil {
			t.Fatal(err)
		}
		if _, err := federation.Open(dir, at(start)); err == nil {
			t.Errorf("opened without %s", name)
		}
		_, _, err := federation.Init(dir, options(), at(start))
		if err == nil || !strings.Contains(err.Error(), name+" is missing") {
			t.Errorf("Init without %s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "pki", name)); err == nil {
			t.Errorf("Init made another %s", name)
		}
	}
}

func TestInitOfAnotherAuthority(t *testing.T) {
	dir, _ := newFederation(t)
	o := options()
	o.Authority = "example.net"
	_, _, err := federation.Init(dir, o, at(start))
	if err == nil || !strings.Contains(err.Error(), "holds the federation example.org:lab, not example.net") {
		t.Errorf("got %v", err)
	}
}

func TestServerCertificate(t *testing.T) {
	dir, _ := newFederation(t)
	read := func() *x509.Certificate {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "pki/server.pem"), filepath.Join(dir, "pki/server-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf
	}
	roots := x509.NewCertPool()
	root, err := os.ReadFile(filepath.Join(dir, "trusted/ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if !roots.AppendCertsFromPEM(root) {
		t.Fatal("no root in trusted/ca.pem")
	}
	first := read()
	for _, host := range options().Hosts {
		if _, err := first.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: start}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if id, err := federation.URNOf(first); err != nil || !id.Equal(options().Manager) {
		t.Errorf("URN is %v (%v)", id, err)
	}
	for _, test := range []struct {
		name  string
		hosts []string
		when  time.Time
		want  federation.Action
	}{
		{"same", nil, start, federation.Kept},
		{"further name", []string{"other.example.org"}, start, federation.Renewed},
		{"further address", []string{"192.0.2.1"}, start, federation.Renewed},
		{"old", nil, start.Add(700 * 24 * time.Hour), federation.Renewed},
	} {
		t.Run(test.name, func(t *testing.T) {
			key := contents(t, dir)[filepath.Join(dir, "pki/server-key.pem")]
			o := options()
			o.Hosts = append(o.Hosts, test.hosts...)
			_, changes, err := federation.Init(dir, o, at(test.when))
			if err != nil {
				t.Fatal(err)
			}
			if got := actions(changes)["pki/server.pem"]; got != test.want {
				t.Errorf("certificate was %s, want %s", got, test.want)
			}
			if contents(t, dir)[filepath.Join(dir, "pki/server-key.pem")] != key {
				t.Error("the key changed")
			}
			for _, host := range o.Hosts {
				if _, err := read().Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: test.when}); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
		})
	}
}

func TestMemberCertificate(t *testing.T) {
	dir, f := newFederation(t)
	m, _, err := f.AddMember("alice", "")
	if err != nil {
		t.Fatal(err)
	}
	c := m.Certificate
	if got := m.URN.String(); got != "urn:publicid:IDN+example.org:lab+user+alice" {
		t.Errorf("URN is %s", got)
	}
	if id, err := federation.URNOf(c); err != nil || id != m.URN {
		t.Errorf("certificate names %v (%v)", id, err)
	}
	if !slices.Equal(c.EmailAddresses, []string{"alice@example.org"}) {
		t.Errorf("e-mail addresses are %v", c.EmailAddresses)
	}
	if m.UUID().Version() != 4 {
		t.Errorf("UUID is %s", m.UUID())
	}
	if c.IsCA {
		t.Error("a member can issue certificates")
	}
	// Years later the certificate is renewed; who it is stays.
	g, err := federation.Open(dir, at(start.Add(700*24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	later, changes, err := g.AddMember("alice", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := actions(changes); got["members/alice/cert.pem"] != federation.Renewed || got["members/alice/key.pem"] != federation.Kept || got["members/alice/user-credential.xml"] != federation.Renewed {
		t.Errorf("after two years: %v", got)
	}
	if later.UUID() != m.UUID() {
		t.Errorf("UUID changed from %s to %s", m.UUID(), later.UUID())
	}
}

// OpenSSL and OpenSSH read what we write.
func TestKeysForOtherPrograms(t *testing.T) {
	dir, f := newFederation(t)
	m := addMember(t, f, "alice")
	run(t, "openssl", "verify", "-attime", "1901600000", "-CAfile", dir+"/trusted/ca.pem", filepath.Join(m.Dir, "cert.pem"))
	run(t, "openssl", "verify", "-attime", "1901600000", "-purpose", "sslserver", "-CAfile", dir+"/trusted/ca.pem", dir+"/pki/server.pem")
	run(t, "openssl", "rsa", "-check", "-noout", "-in", filepath.Join(m.Dir, "key.pem"))
	text := run(t, "openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", filepath.Join(m.Dir, "cert.pem"))
	for _, want := range []string{"email:alice@example.org", "URI:urn:publicid:IDN+example.org:lab+user+alice", "URI:urn:uuid:" + m.UUID().String()} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	public := run(t, "ssh-keygen", "-y", "-f", filepath.Join(m.Dir, "id_ed25519"))
	data, err := os.ReadFile(filepath.Join(m.Dir, "id_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	a, _, _, _, errA := ssh.ParseAuthorizedKey([]byte(public))
	b, comment, _, _, errB := ssh.ParseAuthorizedKey(data)
	if errA != nil || errB != nil || !bytes.Equal(a.Marshal(), b.Marshal()) {
		t.Errorf("ssh-keygen says %s (%v), the file %s (%v)", public, errA, data, errB)
	}
	if comment != "alice@example.org:lab" {
		t.Errorf("comment is %q", comment)
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("needs %s (scripts/setup installs it)", name)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestNames(t *testing.T) {
	_, f := newFederation(t)
	alice := addMember(t, f, "alice")
	for _, name := range []string{"", "1a", "a-b", "ninechars", "../a", "ä", "a b"} {
		if _, _, err := f.AddMember(name, ""); err == nil {
			t.Errorf("member %q was added", name)
		}
		if _, err := f.Member(name); err == nil {
			t.Errorf("member %q was found", name)
		}
	}
	for _, name := range []string{"", "-a", "a_b", strings.Repeat("a", 20), "../a", "a.b"} {
		if _, _, err := f.AddSlice(name, alice, time.Hour); err == nil {
			t.Errorf("slice %q was added", name)
		}
	}
	if _, err := f.Member("bob"); err == nil || !strings.Contains(err.Error(), "croft member add bob") {
		t.Errorf("unknown member: %v", err)
	}
}

func TestSlice(t *testing.T) {
	dir, f := newFederation(t)
	alice, bob := addMember(t, f, "alice"), addMember(t, f, "bob")
	s, _, err := f.AddSlice("exp1", alice, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Expires.Equal(start.Add(24 * time.Hour)) {
		t.Errorf("expires %s", s.Expires)
	}
	if _, _, err := f.AddSlice("EXP1", alice, time.Hour); !errors.Is(err, federation.ErrExists) {
		t.Errorf("EXP1 beside exp1: %v", err)
	}
	again, changes, err := f.AddSlice("exp1", bob, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got := actions(changes); got["slices/exp1/slice.pem"] != federation.Kept || got["slices/exp1/credential-bob.xml"] != federation.Made {
		t.Errorf("second member: %v", got)
	}
	if !again.Expires.Equal(s.Expires) || !again.Certificate.Equal(s.Certificate) {
		t.Error("the slice changed when a member was added")
	}
	_, changes, err = f.AddSlice("exp1", alice, 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got := actions(changes)["slices/exp1/credential-alice.xml"]; got != federation.Renewed {
		t.Errorf("credential was %s, want renewed", got)
	}
	if _, _, err := f.AddSlice("exp1", alice, 10*365*24*time.Hour); err == nil || !strings.Contains(err.Error(), "cannot last longer") {
		t.Errorf("ten years: %v", err)
	}
	if _, _, err := f.AddSlice("exp1", alice, -time.Hour); err == nil {
		t.Error("a credential of the past was made")
	}
	if file := federation.CredentialFile(dir, "exp1", "alice"); contents(t, dir)[file] == "" {
		t.Errorf("no %s", file)
	}
}

// What the federation signs verifies with the program that the field's tools
// use.
func TestCredentialsVerifyWithXmlsec1(t *testing.T) {
	dir := t.TempDir()
	f, _, err := federation.Init(dir, options(), time.Now) // xmlsec1 has no other clock
	if err != nil {
		t.Fatal(err)
	}
	alice := addMember(t, f, "alice")
	if _, _, err := f.AddSlice("exp1", alice, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(alice.Dir, "user-credential.xml"), federation.CredentialFile(dir, "exp1", "alice")} {
		run(t, "xmlsec1", "--verify", "--trusted-pem", dir+"/trusted/ca.pem", file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		forged := filepath.Join(t.TempDir(), "forged.xml")
		if err := os.WriteFile(forged, bytes.Replace(data, []byte("user+alice"), []byte("user+mallo"), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if exec.Command("xmlsec1", "--verify", "--trusted-pem", dir+"/trusted/ca.pem", forged).Run() == nil {
			t.Errorf("xmlsec1 accepts %s with another owner", file)
		}
	}
}

// Two commands at once agree on one set of keys.
func TestConcurrentInit(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			f, _, err := federation.Init(dir, options(), at(start))
			if err != nil {
				t.Error(err)
				return
			}
			if _, _, err := f.AddMember("alice", ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, pair := range []string{"pki/ca", "pki/sa", "pki/server"} {
		if _, err := tls.LoadX509KeyPair(filepath.Join(dir, pair+".pem"), filepath.Join(dir, pair+"-key.pem")); err != nil {
			t.Errorf("%s: %v", pair, err)
		}
	}
	alice := filepath.Join(dir, "members", "alice")
	if _, err := tls.LoadX509KeyPair(filepath.Join(alice, "cert.pem"), filepath.Join(alice, "key.pem")); err != nil {
		t.Error(err)
	}
	if _, err := federation.Open(dir, at(start)); err != nil {
		t.Error(err)
	}
	checkModes(t, dir)
}

func TestOpenNowhere(t *testing.T) {
	if _, err := federation.Open(t.TempDir(), at(start)); err == nil || !strings.Contains(err.Error(), "croft init") {
		t.Errorf("got %v", err)
	}
}
