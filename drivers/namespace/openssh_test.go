package namespace_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"croft/drivers"
	"croft/drivers/driverstest"
	"croft/drivers/namespace"
)

// withSSHD adds the host's OpenSSH server to an image.
func withSSHD(t *testing.T, image string) {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		if sshd = "/usr/sbin/sshd"; !exists(sshd) {
			t.Skip("SKIPPED: there is no sshd to put into an image (apt-get install openssh-server)")
		}
	}
	programs := map[string]string{sshd: "usr/sbin/sshd"}
	if scp, err := exec.LookPath("scp"); err == nil {
		programs[scp] = "usr/bin/scp"
	}
	for _, helper := range []string{"/usr/lib/openssh/sshd-session", "/usr/lib/openssh/sshd-auth"} {
		if exists(helper) {
			programs[helper] = helper[1:]
		}
	}
	put := func(from, to string) error {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		at := filepath.Join(image, to)
		return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, data, 0o755))
	}
	for from, to := range programs {
		out, err := exec.Command("ldd", from).Output()
		err = errors.Join(err, put(from, to))
		for word := range strings.FieldsSeq(string(out)) {
			if filepath.IsAbs(word) {
				err = errors.Join(err, put(word, "usr/lib/"+filepath.Base(word)))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	passwd, err := os.OpenFile(filepath.Join(image, "etc/passwd"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer passwd.Close()
	if _, err := passwd.WriteString("sshd:x:101:65534::/run/sshd:/bin/false\n"); err != nil {
		t.Fatal(err)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// TestOpenSSH runs what of the conformance test is about logins on an image
// with an sshd of its own.
func TestOpenSSH(t *testing.T) {
	image := makeImage(t)
	withSSHD(t, image)
	for _, part := range []string{"several users", "users of a stopped node", "files", "sessions", "manager restarts"} {
		driverstest.RunPart(t, part, func(t *testing.T) driverstest.Subject {
			s := subject(t, namespace.Config{Images: images(image)})
			s.Sudo = false
			s.Prepare = func(n *drivers.Node) { n.Image = "small" }
			return s
		})
	}
	// It was the image's sshd indeed.
	o := newOne(t, namespace.Config{Images: images(image)}, func(n *drivers.Node) { n.Image = "small" })
	var log bytes.Buffer
	if err := o.d.Log(o.ctx, o.sliver, &log); err != nil || !strings.Contains(log.String(), "served by the image's sshd") {
		t.Errorf("the node's log: %v\n%s", err, log.String())
	}
}
