package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const radlPair = `
network inside (cidr = '10.7.0.0/24')
network outside (outbound = 'yes' and outports = '8080')
system front (
  memory.size >= 64M and
  net_interface.0.connection = 'inside' and
  net_interface.0.dns_name = 'master' and
  net_interface.1.connection = 'outside' and
  disk.0.os.credentials.username = 'worker'
)
system wn (memory.size >= 64M and net_interface.0.connection = 'inside')
configure front (
@begin
write_files:
- path: /etc/greeting
  content: "@input.greeting@"
runcmd:
- [sh, -c, "cat /etc/greeting >> /root/order"]
@end
)
configure wn (
@begin
#!/bin/sh
ping -c 1 -W 5 master && echo reached
@end
)
contextualize 300 (
  system wn configure wn step 2
  system front configure front with cloud_init
)
deploy front 1
deploy wn @input.workers@
`

// A RADL document goes the way of an RSpec: it is validated, translated,
// reserved and made, and comes back in the manifest; another one adds machines
// to the same network.
func TestRADL(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	b.slice("exp1")
	file := b.document("pair.radl", radlPair)
	if got := b.must("version", "--json"); !strings.Contains(got, "RADL") {
		t.Errorf("GetVersion does not list RADL:\n%s", got)
	}
	b.refused("would be refused", "validate", file)
	given := []string{"--input", "greeting=bonjour", "--input", "workers=1"}
	if got := b.must(append([]string{"validate", file}, given...)...); !strings.Contains(got, "nodes 2, links 2") {
		t.Errorf("validate says %q", got)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(b.must(append([]string{"translate", file, "--to", "json"}, given...)...)), &list); err != nil || len(list) != 9 {
		t.Errorf("in JSON it is %d objects, %v", len(list), err)
	}
	b.document("pair.rspec", b.must(append([]string{"translate", file, "--to", "rspec"}, given...)...))
	if got := b.must("validate", filepath.Join(b.dir, "pair.rspec")); !strings.Contains(got, "nodes 2, links 2") {
		t.Errorf("its translation: %q", got)
	}

	b.must(append([]string{"up", "exp1", file, "--wait-startup"}, given...)...)
	if got := b.must("ssh", "exp1", "front-0", "--", "sudo", "cat", "/root/order"); got != "bonjour" {
		t.Errorf("cloud-init wrote %q", got)
	}
	if got := b.must("log", "exp1", "wn-0"); !strings.Contains(got, "reached") {
		t.Errorf("the worker's recipe said %q", got)
	}
	more := b.document("more.radl", `network inside
system wn
configure wn
deploy wn 1
`)
	b.must("up", "exp1", more, "--wait-startup")
	if got := b.must("log", "exp1", "wn-1"); !strings.Contains(got, "reached") {
		t.Errorf("the recipe of the worker that was added said %q", got)
	}
	manifest := b.must("describe", "exp1", "--raw")
	for _, want := range []string{`client_id="wn-1"`, `media_type="application/radl"`, "deploy wn @input.workers@", `username="worker"`} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the manifest lacks %q:\n%s", want, manifest)
		}
	}
	schema := repository(t, "..", "shared", "schemas", "rspec", "manifest.xsd")
	if _, err := os.Stat(schema); err != nil {
		t.Skipf("the manifest was not validated: %v", err)
	}
	need(t, "xmllint")
	check := exec.Command("xmllint", "--nonet", "--noout", "--schema", schema, b.document("manifest.xml", manifest))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("the manifest is not valid: %v\n%s\n%s", err, out, manifest)
	}
}

// An Ansible recipe acts in the node that it configures, whatever it tries:
// what Ansible itself runs, it runs there.
func TestPlaybookStaysInItsNode(t *testing.T) {
	t.Parallel()
	need(t, "ansible-playbook")
	b := newTestbed(t)
	b.slice("exp1")
	proof := fmt.Sprintf("/root/croft-proof-%d-%d", os.Getpid(), time.Now().UnixNano())
	file := b.document("playbook.radl", fmt.Sprintf(`
system node (memory.size >= 512M and cpu.count >= 0.5)
configure node (
@begin
---
- connection: local
  vars:
    where: "{{ lookup('pipe', 'readlink /proc/self/ns/net /proc/self/ns/mnt; touch %[1]s-lookup') }}"
  tasks:
  - shell: readlink /proc/self/ns/net /proc/self/ns/mnt > %[1]s; touch %[1]s-delegated
    delegate_to: localhost
    connection: local
  - copy: content="{{ where }}" dest=%[1]s-where
  - local_action: command touch %[1]s-local
@end
)
deploy node 1
`, proof))
	up := b.croft("up", "exp1", file, "--wait-startup")
	if up.status != 0 {
		t.Fatalf("up: %s%s\n%s", up.out, up.err, b.must("log", "exp1", "node-0"))
	}
	var own []string
	for _, name := range []string{"net", "mnt"} {
		link, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, link)
	}
	for _, suffix := range []string{"", "-where"} {
		got := strings.Fields(b.must("ssh", "exp1", "node-0", "--", "sudo", "cat", proof+suffix))
		if len(got) != 2 || got[0] == own[0] || got[1] == own[1] {
			t.Errorf("%s: it ran in %v; the manager is in %v", suffix, got, own)
		}
	}
	for _, suffix := range []string{"", "-lookup", "-delegated", "-where", "-local"} {
		if _, err := os.Lstat(proof + suffix); !os.IsNotExist(err) {
			t.Errorf("%s%s is on the manager: %v", proof, suffix, err)
		}
		b.must("ssh", "exp1", "node-0", "--", "sudo", "test", "-e", proof+suffix)
	}

	// A site may want none of it.
	b.stop()
	b.edit("croft.yaml", setting{"playbooks: image", "playbooks: refuse"})
	b.start()
	b.slice("exp2")
	b.refused("Ansible is not run here", "allocate", "exp2", file)
}

// rest adds the REST APIs to a testbed that does not run yet, with an account
// for alice, and returns their address.
func (b *testbed) rest(password string) string {
	b.Helper()
	address := freeAddress(b)
	hash := b.croftIn(password+"\n", "account", "hash")
	if hash.status != 0 {
		b.Fatalf("account hash: %s", hash.err)
	}
	config := b.read("croft.yaml") + fmt.Sprintf(`
rest:
  listen: %s
  accounts:
    - name: alice
      member: urn:publicid:IDN+%s+user+alice
      password: %s
`, address, authority, strings.TrimSpace(hash.out))
	b.document("croft.yaml", config)
	return "https://" + address
}

// The Infrastructure Manager's own client makes, inspects, enters, extends and
// destroys an infrastructure. CROFT_IM_CLIENT is the folder with the packages
// imclient (grycap/im-client 2.0) and radl (grycap/RADL), as in PYTHONPATH.
func TestIMClient(t *testing.T) {
	t.Parallel()
	packages := os.Getenv("CROFT_IM_CLIENT")
	if packages == "" {
		t.Skip("CROFT_IM_CLIENT names no folder with grycap/im-client 2.0 and grycap/RADL (and python3-requests, python3-ply)")
	}
	need(t, "ssh")
	python := ""
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		check := exec.Command(p, "-c", "import requests, ply, imclient.cli")
		check.Env = append(os.Environ(), "PYTHONPATH="+packages)
		if check.Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		t.Skipf("no python3 that has requests, ply and the client in %s (apt-get install python3-requests python3-ply python3-packaging)", packages)
	}
	const password = "Alice's 1st password"
	b := newFederation(t)
	url := b.rest(password) + "/im"
	b.start()
	auth := b.document("auth.dat", "id = one; type = OpenNebula; host = server:2633; username = user; password = cloud-secret\n"+
		"type = InfrastructureManager; username = alice; password = \""+password+"\"\n")
	im := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(python, append([]string{"-m", "imclient.cli", "-q", "-r", url, "-a", auth}, args...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "HOME="+b.dir)
		cmd.Dir = b.dir
		r := runCommand(t, cmd, "")
		if r.status != 0 {
			t.Fatalf("im-client %s: status %d\n%s%s", strings.Join(args, " "), r.status, r.out, r.err)
		}
		return strings.TrimSpace(r.out)
	}
	if got := im("getversion"); got != "2.0.0" {
		t.Errorf("version %q", got)
	}
	document := strings.NewReplacer("@input.greeting@", "bonjour", "@input.workers@", "1").Replace(radlPair)
	im("create", b.document("pair.radl", document))
	var ids []string
	if err := json.Unmarshal([]byte(im("list")), &ids); err != nil || len(ids) != 1 {
		t.Fatalf("list %v, %v", ids, err)
	}
	id := ids[0]
	configured := func(machines int) {
		t.Helper()
		b.await("the infrastructure to be configured", func() bool {
			var s struct {
				State    string            `json:"state"`
				Machines map[string]string `json:"vm_states"`
			}
			text := im("getstate", id)
			if err := json.Unmarshal([]byte(text), &s); err != nil {
				t.Fatalf("state %s: %v", text, err)
			}
			if s.State == "unconfigured" || s.State == "failed" {
				t.Fatalf("state %s\n%s", text, im("getcontmsg", id))
			}
			return s.State == "configured" && len(s.Machines) == machines
		})
	}
	configured(2)
	im("wait", id, "60")
	if got := im("getinfo", id, "state"); strings.Count(got, "configured") != 2 {
		t.Errorf("info %q", got)
	}
	if got := im("getvminfo", id, "0", "net_interface.0.ip"); got != "10.7.0.1" {
		t.Errorf("address %q", got)
	}
	if got := im("getcontmsg", id); !strings.Contains(got, "reached") {
		t.Errorf("messages %q", got)
	}
	if got := im("ssh", id, "0", "cat", "/etc/greeting"); !strings.HasPrefix(got, "bonjour") {
		t.Errorf("in the front: %q", got)
	}
	if got := im("sshvm", id, "1", "0", "hostname"); !strings.HasPrefix(got, "wn-0") {
		t.Errorf("in the worker: %q", got)
	}
	im("addresource", id, b.document("more.radl", "network inside ()\nsystem wn (memory.size >= 64M and net_interface.0.connection = 'inside')\nconfigure wn\ndeploy wn 1\n"))
	configured(3)
	if got := im("getvmcontmsg", id, "2"); !strings.Contains(got, "reached") {
		t.Errorf("the machine that was added: %q", got)
	}
	im("stopvm", id, "1")
	im("startvm", id, "1")
	configured(3)
	im("removeresource", id, "1")
	configured(2)
	im("-y", "destroy", id)
	if got := im("list"); got != "" && got != "[]" {
		t.Errorf("list after the end: %q", got)
	}
	b.awaitNothing()
	for _, secret := range []string{password, "cloud-secret", "PRIVATE KEY"} {
		log, err := os.ReadFile(b.log)
		if err != nil || strings.Contains(string(log), secret) {
			t.Errorf("the log has %q (%v)", secret, err)
		}
	}
}
