package namespace

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/urn"
)

func writeTree(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(at, 0o755))
		case strings.HasPrefix(text, "-> "):
			err = errors.Join(err, os.Symlink(text[3:], at))
		default:
			err = errors.Join(err, os.WriteFile(at, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSkeleton generates the image of a host that has secrets everywhere.
func TestSkeleton(t *testing.T) {
	host := t.TempDir()
	const secret = "the host's secret"
	writeTree(t, host, map[string]string{
		"usr/bin/":               "",
		"usr/share/app/private":  secret,
		"usr/local/etc/secret":   secret,
		"bin":                    "-> usr/bin",
		"lib/x":                  "a directory of its own",
		"root/file":              secret,
		"home/ann/file":          secret,
		"var/lib/file":           secret,
		"opt/file":               secret,
		"etc/passwd":             secret,
		"etc/shadow":             secret,
		"etc/hostname":           secret,
		"etc/ssh/key":            secret,
		"etc/sudoers":            secret,
		"etc/environment":        secret,
		"etc/profile.d/x.sh":     secret,
		"etc/ssl/private/key":    secret,
		"etc/ssl/certs/ca.pem":   "a certificate",
		"etc/ssl/certs/hidden":   secret,
		"etc/alternatives/awk":   "-> /usr/bin/mawk",
		"etc/alternatives/m.gz":  "-> /usr/share/man/m.gz",
		"etc/localtime":          "-> /usr/share/zoneinfo/Etc/UTC",
		"etc/ld.so.cache":        "cache",
		"etc/perl/dir/inner/f":   "perl",
		"etc/fonts/unreadable/f": secret,
	})
	if err := errors.Join(os.Chmod(host+"/etc/ssl/certs/hidden", 0o600), os.Chmod(host+"/etc/fonts/unreadable", 0o700)); err != nil {
		t.Fatal(err)
	}
	s, err := newSkeleton(host, []string{"/usr/share/app/private", "/var/croft", "/usr/local/croft"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/usr", "/lib"}; !slices.Equal(s.trees, want) {
		t.Errorf("trees %q, want %q", s.trees, want)
	}
	top := s.layers[rootLayer]
	for name, e := range top {
		if strings.Contains(e.data, secret) {
			t.Errorf("%s has the host's secret", name)
		}
	}
	for name, want := range map[string]string{
		"bin": "usr/bin", "etc/alternatives/awk": "/usr/bin/mawk", "etc/ssl/certs/ca.pem": "a certificate",
		"etc/ld.so.cache": "cache", "etc/perl/dir/inner/f": "perl", "etc/localtime": "/usr/share/zoneinfo/Etc/UTC",
	} {
		if got := top[name].data; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"etc/ssl/private", "etc/ssh", "etc/alternatives/m.gz", "root/file", "etc/fonts/unreadable"} {
		if e, ok := top[name]; ok {
			t.Errorf("%s is in the image: %+v", name, e)
		}
	}
	mask := s.layers["mask-usr"]
	if e := mask["local"]; !e.opaque || e.kind != fs.ModeDir {
		t.Errorf("/usr/local is masked by %+v", e)
	}
	if e := mask["share/app/private"]; e.kind != fs.ModeCharDevice {
		t.Errorf("the protected path is masked by %+v", e)
	}
	if e, ok := mask["local/croft"]; ok {
		t.Errorf("/usr/local, masked already, has %+v", e)
	}

	dir := t.TempDir()
	if os.Geteuid() == 0 {
		if err := s.write(dir); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(dir + "/root/etc/sudoers"); err != nil || st.Mode().Perm() != 0o440 {
			t.Errorf("sudoers: %v, %v", st, err)
		}
	}
	again, err := newSkeleton(host, []string{"/usr/share/app/private", "/var/croft", "/usr/local/croft"})
	if err != nil || again.hash() != s.hash() {
		t.Errorf("the same host has two hashes, %s and %s; %v", s.hash(), again.hash(), err)
	}
	other, err := newSkeleton(host, nil)
	if err != nil || other.hash() == s.hash() {
		t.Errorf("other masks have the same hash; %v", err)
	}
	if _, err := newSkeleton(host, []string{"/usr"}); err == nil {
		t.Error("an image of a host whose /usr is protected")
	}
}

func TestStateLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	sliver := urn.MustParse("urn:publicid:IDN+x+sliver+n")
	want := nodeRecord{Slot: 4, Whole: true, HostKey: []byte("key"), Node: drivers.Node{
		Sliver: sliver, Hostname: "n", Interfaces: []drivers.Interface{{
			Name: "if0", Device: "eth1", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")},
		}},
	}}
	writeTree(t, dir, map[string]string{
		"nodes/4/disk/":      "",
		"nodes/5/disk/x":     "begun, never recorded",
		"nodes/6/node.json":  "",
		"nodes/7/disk/":      "",
		"nodes/4/other.json": "",
	})
	if err := s.putNode(want); err != nil {
		t.Fatal(err)
	}
	nodes, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 1 || !nodes[0].Node.Sliver.Equal(sliver) || !nodes[0].Whole || string(nodes[0].HostKey) != "key" ||
		nodes[0].Node.Interfaces[0].MAC.String() != "02:00:00:00:00:01" || nodes[0].Node.Interfaces[0].Addresses[0].String() != "10.0.0.1/24" {
		t.Errorf("nodes %+v", nodes)
	}
	for _, gone := range []string{"nodes/5", "nodes/6", "nodes/7"} {
		if _, err := os.Lstat(filepath.Join(dir, gone)); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
	writeTree(t, dir, map[string]string{"nodes/8/node.json": "{nonsense"})
	if _, err := s.load(); err == nil {
		t.Error("read a broken record")
	}
}

// TestRemoveTree removes what users may have made to be in the way.
func TestRemoveTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	outside := filepath.Join(t.TempDir(), "outside")
	writeTree(t, dir, map[string]string{"a/b/c": "", "link": "-> " + outside})
	writeTree(t, outside, map[string]string{"file": ""})
	// Deeper than files can be open.
	const depth, files = 1000, 200
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := mkdirAt(at, "deep"); err != nil {
			t.Fatal(err)
		}
		next, err := openAt(at, "deep")
		at.Close()
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	at.Close()
	if err := removeTree(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the tree is left")
	}
	if _, err := os.Stat(outside + "/file"); err != nil {
		t.Errorf("what a link pointed to: %v", err)
	}
	if err := removeTree(dir); err != nil {
		t.Errorf("remove what does not exist: %v", err)
	}
}
