package ssh_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/drivers/power"
	"croft/drivers/ssh"
	"croft/drivers/ssh/sshtest"
	"croft/request"
)

func TestPower(t *testing.T) {
	service := &sshtest.Redfish{User: "croft", Password: "secret"}
	server := httptest.NewServer(service)
	defer server.Close()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := newOne(t, func(o *one) {
		service.Machine = o.m
		o.declared.Power = &power.Config{Protocol: power.Redfish, Address: server.URL, User: "croft", PasswordFile: password}
	})
	o.must(o.Check(o.ctx), "check")
	o.m.PowerOff()
	o.up() // which turns it on
	if out, err := o.run("", "echo kept >/var/tmp/kept; hostname"); err != nil || out != "node-1" {
		t.Fatalf("%q, %v", out, err)
	}
	boots := o.m.Boots()
	o.must(o.m.Hang(), "hang")
	o.must(o.Restart(o.ctx, o.node.Sliver), "restart")
	if o.m.Boots() != boots+1 || !slices.Contains(service.Done(), "PowerCycle") {
		t.Errorf("a machine that hangs was booted %d times, by %q", o.m.Boots()-boots, service.Done())
	}
	o.must(o.m.Hang(), "hang")
	o.must(o.Stop(o.ctx, o.node.Sliver), "stop")
	if o.m.On() || !slices.Contains(service.Done(), "ForceOff") {
		t.Errorf("a machine that hangs is on after Stop: %q", service.Done())
	}
	if f := o.found(); f == nil || !f.Whole || f.Running {
		t.Errorf("listed as %+v, want it whole and stopped", f)
	}
	o.ailing("") // it need not answer
	o.must(o.UpdateUsers(o.ctx, o.node.Sliver, []request.User{user(t, "ann")}), "update users")
	o.must(o.Start(o.ctx, o.node.Sliver), "start")
	if out, err := o.run("ann", "cat /var/tmp/kept; id -un"); err != nil || out != "kept\nann" {
		t.Errorf("after power the node says %q, %v", out, err)
	}
	o.must(o.Stop(o.ctx, o.node.Sliver), "stop")
	o.must(o.Remove(o.ctx, o.node.Sliver), "remove what is off")
	if !o.m.On() {
		t.Error("a machine was cleaned while it was off")
	}
}

func TestReimage(t *testing.T) {
	reimager := lab(t).Reimager(t)
	o := newOne(t, func(o *one) {
		o.declared.Reimage = &ssh.Reimage{Command: reimager.Command, Limit: time.Minute, AtEnd: true}
		o.declared.Image = "debian"
		o.node.Users = []request.User{user(t, "ann")}
	})
	o.up()
	if got := reimager.Asked(); len(got) != 0 {
		t.Errorf("the image that is there was put on: %q", got)
	}
	if root, err := o.GivesRoot(o.ctx, o.node.Sliver); err != nil || !root {
		t.Errorf("users become root: %v, %v", root, err)
	}
	// Root leaves what no cleaning finds.
	if out, err := o.run("ann", "sudo -n sh -c 'touch /etc/left /usr/bin/left; useradd left'"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	reimager.Fail(true)
	o.fails(o.Remove(o.ctx, o.node.Sliver), "remove", "the image server is out of order")
	o.ailing("the image server is out of order")
	var log bytes.Buffer
	o.must(o.Log(o.ctx, o.node.Sliver, &log), "log")
	if !strings.Contains(log.String(), "the image server is out of order") {
		t.Errorf("the log has not what the command said:\n%s", log.String())
	}
	reimager.Fail(false)
	o.must(o.Remove(o.ctx, o.node.Sliver), "remove")
	o.ailing("")
	if left := o.m.Changes(); len(left) > 0 {
		t.Errorf("left on the machine:\n\t%s", strings.Join(left, "\n\t"))
	}
	// Another image is put on, and stays until the end.
	o.node.Image = "fedora"
	o.up()
	o.must(o.Remove(o.ctx, o.node.Sliver), "remove")
	if got, want := reimager.Asked(), []string{"m1 debian", "m1 debian", "m1 fedora", "m1 debian"}; !slices.Equal(got, want) {
		t.Errorf("reimaged %q, want %q", got, want)
	}
	o.declared.Reimage.Command = []string{"/bin/sh", "-c", "sleep 1000"}
	o.declared.Reimage.Limit = 100 * time.Millisecond
	o.fails(o.Make(o.ctx, o.node), "an image that takes too long", "has not ended after 100ms")
	o.declared.Reimage = nil
	o.fails(o.Make(o.ctx, o.node), "an image that cannot be had", `no way to get "fedora"`)
	if f := o.found(); f != nil {
		t.Errorf("the node that failed is listed: %+v", *f)
	}
	o.node.Image = "debian"
	o.up()
	if root, err := o.GivesRoot(o.ctx, o.node.Sliver); err != nil || root {
		t.Errorf("users become root of a machine that stays: %v, %v", root, err)
	}
}
