package driverstest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// becomesRoot checks that a user becomes root as the driver promises, or not
// at all.
func (r *rig) becomesRoot(d door, p person) {
	r.t.Helper()
	if r.s.Plain {
		for _, command := range []string{"sudo -n id -u", "su -c 'id -u' </dev/null"} {
			if out, err := d.ssh(p, p.user.Login, command); err == nil {
				r.t.Errorf("%s becomes root by %s: %s", p.user.Login, command, out)
			}
		}
		if out, err := d.ssh(p, "root", "id -u"); err == nil {
			r.t.Errorf("%s logs in as root: %s", p.user.Login, out)
		}
		return
	}
	if out, err := r.asRoot(d, p, "id -u"); err != nil || out != "0" {
		r.t.Errorf("%s becomes root: %q, %v", p.user.Login, out, err)
	}
}

// asRoot runs a command as root the way that users of the driver's nodes do.
func (r *rig) asRoot(d door, p person, command string) (string, error) {
	if r.s.Sudo {
		return d.ssh(p, p.user.Login, "sudo -n "+command)
	}
	return d.ssh(p, "root", command)
}

func testUsers(t *testing.T, r *rig) {
	n := r.node(1)
	ann, bob, eve := r.person("ann"), r.person("bob-2"), r.person("eve")
	n.Users = users(ann, bob)
	r.up(n)
	door := r.door(n.Sliver)
	for _, p := range []person{ann, bob} {
		out, err := door.ssh(p, p.user.Login, "id -un; pwd; echo $HOME")
		home := "/home/" + p.user.Login
		if want := p.user.Login + "\n" + home + "\n" + home; err != nil || out != want {
			t.Errorf("login as %s: %q, %v; want %q", p.user.Login, out, err, want)
		}
		r.becomesRoot(door, p)
	}
	var exit *exec.ExitError
	if _, err := door.ssh(ann, "ann", "exit 5"); !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("a command that exits with 5: %v", err)
	}
	for _, try := range []struct {
		who     person
		account string
	}{{eve, "ann"}, {eve, "eve"}, {eve, "root"}, {ann, "bob-2"}, {ann, "nobody"}} {
		if out, err := door.ssh(try.who, try.account, "id -un"); err == nil {
			t.Errorf("the key of %s opens the account %s: %s", try.who.user.Login, try.account, out)
		}
	}

	// eve comes, bob goes, ann changes her key; bob is cut off.
	stay := exec.CommandContext(r.ctx, "ssh", append(door.options(bob), "-p", door.port, "bob-2@127.0.0.1", "echo in; sleep 1000")...)
	out, err := stay.StdoutPipe()
	r.must(err, "ssh")
	r.must(stay.Start(), "ssh")
	if line, err := readLine(out); err != nil || line != "in" {
		t.Fatalf("login as bob: %q, %v", line, err)
	}
	newAnn := r.person("ann")
	r.must(r.d.UpdateUsers(r.ctx, n.Sliver, users(newAnn, eve)), "update users")
	if err := stay.Wait(); err == nil {
		t.Error("the session of a user who went ended well")
	}
	if _, err := door.ssh(bob, "bob-2", "true"); err == nil {
		t.Error("a user who went logs in")
	}
	if _, err := door.ssh(ann, "ann", "true"); err == nil {
		t.Error("a key that went opens its account")
	}
	for _, p := range []person{newAnn, eve} {
		if out, err := door.ssh(p, p.user.Login, "id -un"); err != nil || out != p.user.Login {
			t.Errorf("login as %s: %q, %v", p.user.Login, out, err)
		}
		r.becomesRoot(door, p)
	}
	r.says(n.Sliver, "id bob-2 >/dev/null 2>&1 || echo none", "none")

	// Nobody is left; then ann comes back to her files.
	r.says(n.Sliver, "echo hers > /home/ann/file; chown ann /home/ann/file; echo ok", "ok")
	r.must(r.d.UpdateUsers(r.ctx, n.Sliver, nil), "update to no users")
	if _, err := door.ssh(newAnn, "ann", "true"); err == nil {
		t.Error("a user who went logs in")
	}
	r.must(r.d.UpdateUsers(r.ctx, n.Sliver, users(eve, newAnn)), "update users")
	if out, err := door.ssh(newAnn, "ann", "cat file; test -O file && echo owner"); err != nil || out != "hers\nowner" {
		t.Errorf("a user who came back finds %q, %v", out, err)
	}
}

func testUsersOfStopped(t *testing.T, r *rig) {
	n := r.node(1)
	ann, bob := r.person("ann"), r.person("bob")
	n.Users = users(ann)
	r.up(n)
	r.must(r.d.Stop(r.ctx, n.Sliver), "stop")
	r.must(r.d.UpdateUsers(r.ctx, n.Sliver, users(bob)), "update users")
	r.must(r.d.Start(r.ctx, n.Sliver), "start")
	door := r.door(n.Sliver)
	if out, err := door.ssh(bob, "bob", "id -un"); err != nil || out != "bob" {
		t.Errorf("login of the new user: %q, %v", out, err)
	}
	if _, err := door.ssh(ann, "ann", "true"); err == nil {
		t.Error("a user who went while the node was stopped logs in")
	}
}

func testFiles(t *testing.T, r *rig) {
	n := r.node(1)
	ann := r.person("ann")
	n.Users = users(ann)
	r.up(n)
	door := r.door(n.Sliver)
	dir := t.TempDir()
	data := make([]byte, 3<<20)
	_, err := io.ReadFull(rand.Reader, data)
	r.must(err, "make a file")
	file := filepath.Join(dir, "file")
	r.must(os.WriteFile(file, data, 0o640), "make a file")
	same := func(what string) {
		t.Helper()
		got, err := os.ReadFile(file + ".back")
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: the file came back with %d bytes, %v", what, len(got), err)
		}
		os.Remove(file + ".back")
	}
	options := append(door.options(ann), "-P", door.port)
	for _, protocol := range []struct {
		name string
		args []string
	}{{"scp", nil}, {"scp -O", []string{"-O"}}} {
		args := append(append([]string{}, protocol.args...), options...)
		if _, err := door.run("scp", append(args, file, "ann@127.0.0.1:there")...); err != nil {
			t.Errorf("%s to the node: %v", protocol.name, err)
			continue
		}
		if _, err := door.run("scp", append(args, "ann@127.0.0.1:there", file+".back")...); err != nil {
			t.Errorf("%s from the node: %v", protocol.name, err)
			continue
		}
		same(protocol.name)
	}
	batch := filepath.Join(dir, "batch")
	script := "mkdir d\nput " + file + " d/f\nget d/f " + file + ".back\nls -l d\n"
	r.must(os.WriteFile(batch, []byte(script), 0o600), "write a batch")
	if out, err := door.run("sftp", append(append([]string{"-b", batch}, options...), "ann@127.0.0.1")...); err != nil {
		t.Errorf("sftp: %v %s", err, out)
	} else {
		same("sftp")
	}
	if out, err := door.ssh(ann, "ann", "test -O d/f && echo owner"); err != nil || out != "owner" {
		t.Errorf("a file put by sftp: %q, %v; want it to be the user's", out, err)
	}
	// Transfers are the user's, not root's.
	r.says(n.Sliver, "echo private > /root/f; chmod 600 /root/f; echo ok", "ok")
	r.must(os.WriteFile(batch, []byte("get /root/f "+file+".back\n"), 0o600), "write a batch")
	if _, err := door.run("sftp", append(append([]string{"-b", batch}, options...), "ann@127.0.0.1")...); err == nil {
		t.Error("a user got root's file by sftp")
	}
}

func readLine(r io.Reader) (string, error) {
	var line []byte
	buf := make([]byte, 1)
	for {
		if _, err := io.ReadFull(r, buf); err != nil {
			return string(line), err
		}
		if buf[0] == '\n' {
			return strings.TrimRight(string(line), "\r"), nil
		}
		line = append(line, buf[0])
	}
}
