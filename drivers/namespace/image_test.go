package namespace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/drivers"
	"croft/drivers/driverstest"
	"croft/drivers/namespace"
	"croft/urn"
)

// imagePrograms are what the tests need inside of an image.
var imagePrograms = []string{
	"sh", "bash", "ls", "cat", "id", "echo", "hostname", "sleep", "setsid", "test", "true", "false", "ping", "ip", "grep", "awk", "seq", "rm", "mkdir", "chown", "chmod", "kill", "env", "head", "tail", "dd", "sync", "stat",
}

// makeImage makes a small image directory out of the host's programs: one
// without sudo, without scp, and with few accounts.
func makeImage(t *testing.T) string {
	t.Helper()
	needRoot(t)
	dir := filepath.Join(t.TempDir(), "image")
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	copyFile := func(from, to string) {
		t.Helper()
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(to, string(data), 0o755)
	}
	for _, name := range imagePrograms {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("SKIPPED: %s is not installed (apt-get install iputils-ping iproute2 mawk)", name)
		}
		copyFile(path, "usr/bin/"+name)
		out, err := exec.Command("ldd", path).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", path, err)
		}
		for word := range strings.FieldsSeq(string(out)) {
			if filepath.IsAbs(word) {
				copyFile(word, "usr/lib/"+filepath.Base(word))
			}
		}
	}
	for link, to := range map[string]string{"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\ngames:x:60:60::/:/bin/false\nolduser:x:1000:1000::/home/olduser:/bin/sh\n", 0o644)
	write("etc/group", "root:x:0:\ngames:x:60:\nolduser:x:1000:\n", 0o644)
	write("etc/ld.so.conf", "/usr/lib\n", 0o644)
	write("image-file", "of the image\n", 0o644)
	write("var/tmp/keep", "", 0o644)
	return dir
}

func images(dir string) func(string) (string, error) {
	return func(name string) (string, error) {
		if name != "small" {
			return "", fmt.Errorf("there is no image %q", name)
		}
		return dir, nil
	}
}

// TestConformanceOfImage runs parts of the conformance test on an image
// directory, where users become root by logging in as root.
func TestConformanceOfImage(t *testing.T) {
	image := makeImage(t)
	driverstest.RunPart(t, "several users", func(t *testing.T) driverstest.Subject {
		s := subject(t, namespace.Config{Images: images(image)})
		s.Sudo = false
		s.Prepare = func(n *drivers.Node) { n.Image = "small" }
		return s
	})
	driverstest.RunPart(t, "manager restarts", func(t *testing.T) driverstest.Subject {
		s := subject(t, namespace.Config{Images: images(image)})
		s.Sudo = false
		s.Prepare = func(n *drivers.Node) { n.Image = "small" }
		return s
	})
}

func TestImage(t *testing.T) {
	image := makeImage(t)
	cfg := namespace.Config{Images: images(image)}
	o := newOne(t, cfg, func(n *drivers.Node) { n.Image = "small" })
	names, err := o.d.Accounts(o.ctx, "small")
	if want := []string{"root", "games", "olduser"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("accounts %q, %v; want %q", names, err, want)
	}
	if got := o.must("cat /image-file; ls -d /usr/bin/sudo 2>/dev/null; hostname"); got != "of the image\none" {
		t.Errorf("the node says %q", got)
	}
	// What a node changes is its own.
	o.must("echo changed > /image-file; rm /var/tmp/keep; echo new > /new")
	if data, err := os.ReadFile(filepath.Join(image, "image-file")); err != nil || string(data) != "of the image\n" {
		t.Errorf("the image's file has %q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(image, "new")); err == nil {
		t.Error("the node wrote to the image")
	}
	if err := o.d.Restart(o.ctx, o.sliver); err != nil {
		t.Fatal(err)
	}
	if got := o.must("cat /image-file /new; ls -A /var/tmp"); got != "changed\nnew" {
		t.Errorf("after a restart the node has %q", got)
	}
}

func TestBadImages(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	protected := filepath.Join(dir, "holder", "data")
	if err := os.MkdirAll(protected, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d := open(t, namespace.Config{
		Dir: filepath.Join(dir, "state"), Protected: []string{protected},
		Images: func(name string) (string, error) {
			if name == "unknown" {
				return "", errors.New("no such image")
			}
			return name, nil
		},
	})
	defer d.Close()
	for _, test := range []struct{ image, want string }{
		{"unknown", "no such image"},
		{"/", "never the host's root"},
		{filepath.Join(dir, "link"), "never the host's root"},
		{filepath.Join(dir, "holder"), "no node may see"},
		{dir, "no node may see"},
		{filepath.Join(dir, "file"), "not a directory"},
		{filepath.Join(dir, "missing"), "no such file"},
	} {
		n := benchNode(0)
		n.Image = test.image
		err := d.Make(context.Background(), n)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("image %s: error %v, want %q", test.image, err, test.want)
		}
	}
	if found, err := d.List(context.Background()); err != nil || len(found) > 0 {
		t.Errorf("List has %v, %v", found, err)
	}
}

// TestProtectedInSystem masks a path below the host's own programs.
func TestProtectedInSystem(t *testing.T) {
	needRoot(t)
	dir, err := os.MkdirTemp("/usr/share", "croft-test-")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Mkdir(dir+"/private", 0o755), os.WriteFile(dir+"/private/key", []byte("key"), 0o644), os.WriteFile(dir+"/public", nil, 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	o := newOne(t, namespace.Config{Protected: []string{dir + "/private"}}, nil)
	if got := o.must("ls -A " + dir + "; umount -l /usr/share 2>/dev/null; cat " + dir + "/private/key 2>/dev/null; true"); got != "public" {
		t.Errorf("the node sees %q, want the public file only", got)
	}
}

func TestOneDriverADirectory(t *testing.T) {
	dir := t.TempDir()
	d := open(t, namespace.Config{Dir: dir})
	if _, err := namespace.New(namespace.Config{Dir: dir, IDs: testIDs()}); err == nil || !strings.Contains(err.Error(), "another manager") {
		t.Errorf("a second driver on the directory: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, namespace.Config{Dir: dir}).Close(); err != nil {
		t.Error(err)
	}
}

// TestNodeEndsByItself has the node's root end it, with its interface gone
// before, and starts it again.
func TestNodeEndsByItself(t *testing.T) {
	o := newOne(t, namespace.Config{}, nil)
	link := drivers.Link{
		Sliver: urn.MustParse("urn:publicid:IDN+isolation.example+sliver+link"), Slice: o.sliver,
		Ends: []drivers.End{{Node: o.sliver, Interface: "if0"}},
	}
	if err := o.d.Connect(o.ctx, link); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := o.d.Remove(context.Background(), link.Sliver); err != nil {
			t.Error(err)
		}
	}()
	o.must("ip link del eth1")
	if err := o.d.Exec(o.ctx, o.sliver, drivers.Command{Args: []string{"/bin/sh", "-c", "kill -TERM 1; sleep 100"}}); err == nil {
		t.Error("a command in a node that ends: done")
	}
	for running := true; running; time.Sleep(10 * time.Millisecond) {
		found, err := o.d.List(o.ctx)
		if err != nil || len(found) != 2 || !found[0].Whole || !found[1].Whole {
			t.Fatalf("List: %+v, %v", found, err)
		}
		running = found[0].Running || found[1].Running
	}
	if err := o.d.Start(o.ctx, o.sliver); err != nil {
		t.Fatal(err)
	}
	if got := o.must("cat /sys/class/net/eth1/carrier"); got != "1" {
		t.Errorf("the carrier of the link is %q", got)
	}
}
