package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/client"
	"croft/urn"
)

// A whole life cycle, called from Python and logged in to with OpenSSH.
func TestLifeCycle(t *testing.T) {
	t.Parallel()
	need(t, "ssh")
	b := newTestbed(t)
	p := b.python()
	checkVersion(t, p, b.url)

	user := sfa(b.read("members", "alice", "user-credential.xml"))
	ad, _ := p.must("ListResources", user, options()).(string)
	before := readAd(t, ad)
	if len(before.Nodes) == 0 {
		t.Fatalf("the advertisement has no nodes:\n%s", ad)
	}

	slice := b.slice("life")
	creds := sfa(b.read("slices", "life", "credential-alice.xml"))
	text := request(t, "two-nodes.rspec")
	p.want(12, "Status", urns(slice), creds, map[string]any{})

	// Allocate
	value := p.must("Allocate", slice.String(), creds, text, map[string]any{})
	allocated := p.slivers(value)
	if len(allocated) != 3 {
		t.Fatalf("%d slivers for two nodes and a link", len(allocated))
	}
	for _, s := range allocated {
		if got := s.text("geni_allocation_status"); got != "geni_allocated" {
			t.Errorf("%s is %s after Allocate", s.text("geni_sliver_urn"), got)
		}
		end, _ := client.ParseTime(s.text("geni_expires"))
		if left := time.Until(end); left < 5*time.Minute || left > 2*time.Hour {
			t.Errorf("an allocation lasts %s", left)
		}
	}
	manifest, _ := value.(map[string]any)["geni_rspec"].(string)
	if got := nodeIDs(readManifest(t, manifest)); !slices.Equal(got, []string{"node0", "node1"}) {
		t.Errorf("the manifest's nodes are %v", got)
	}
	for _, s := range p.slivers(p.must("Status", urns(slice), creds, map[string]any{})) {
		if got := s.text("geni_operational_status"); got != "geni_pending_allocation" {
			t.Errorf("operational status is %s after Allocate", got)
		}
		if _, ok := s["geni_error"].(string); !ok {
			t.Errorf("geni_error of Status is %v", s["geni_error"])
		}
	}

	// Provision
	key := strings.TrimSpace(b.read("members", "alice", "id_ed25519.pub"))
	alice := urn.URN{Authority: authority, Type: urn.User, Name: "alice"}
	users := []any{map[string]any{"urn": alice.String(), "keys": []any{key}}}
	p.want(1, "Provision", urns(slice), creds, map[string]any{"geni_users": users}) // no geni_rspec_version
	provisioned := p.slivers(p.must("Provision", urns(slice), creds, options("geni_users", users)))
	for _, s := range provisioned {
		if got := s.text("geni_allocation_status"); got != "geni_provisioned" {
			t.Errorf("%s is %s after Provision", s.text("geni_sliver_urn"), got)
		}
	}
	b.await("slivers to be made", func() bool { return b.allIn(p, slice, creds, "geni_notready", "geni_ready") })

	// Start
	p.must("PerformOperationalAction", urns(slice), creds, "geni_start", map[string]any{})
	b.await("slivers to be ready", func() bool { return b.allIn(p, slice, creds, "geni_ready") })

	// Log in
	described := p.must("Describe", urns(slice), creds, options())
	manifest, _ = described.(map[string]any)["geni_rspec"].(string)
	m := readManifest(t, manifest)
	for _, n := range m.Nodes {
		login, ok := n.LoginOf(alice)
		if !ok {
			t.Fatalf("node %s has no login:\n%s", n.ClientID, manifest)
		}
		out := b.ssh(login, "hostname && id -un && sudo -n id -u && cat /proc/net/dev")
		lines := strings.Split(out, "\n")
		if len(lines) < 3 || !strings.HasPrefix(lines[0], n.ClientID) || lines[1] != login.User || lines[2] != "0" {
			t.Errorf("%s: a login gives\n%s", n.ClientID, out)
		}
	}
	first, _ := m.Nodes[0].LoginOf(alice)
	b.ssh(first, "ping -c 2 -i 0.2 -W 10 "+m.Nodes[1].Interfaces[0].Addresses[0])
	for _, i := range m.Nodes[0].Interfaces {
		out := b.ssh(first, "ip -o addr show; ip -o link show")
		if !strings.Contains(out, i.Addresses[0]) || !strings.Contains(out, i.MAC) {
			t.Errorf("the manifest says %s and %s, the node\n%s", i.Addresses[0], i.MAC, out)
		}
	}

	// Renew, stop, restart
	until := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	for _, s := range p.slivers(p.must("Renew", urns(slice), creds, until.Format(time.RFC3339), map[string]any{})) {
		if end, _ := client.ParseTime(s.text("geni_expires")); !end.Equal(until) {
			t.Errorf("renewed until %s, want %s", end, until)
		}
	}
	p.must("PerformOperationalAction", urns(slice), creds, "geni_stop", map[string]any{})
	b.await("slivers to stop", func() bool { return b.allNodesIn(p, slice, creds, m, "geni_notready") })
	p.must("PerformOperationalAction", urns(slice), creds, "geni_start", map[string]any{})
	b.await("slivers to be ready again", func() bool { return b.allIn(p, slice, creds, "geni_ready") })
	b.ssh(first, "ping -c 1 -W 10 "+m.Nodes[1].Interfaces[0].Addresses[0])
	p.want(13, "PerformOperationalAction", urns(slice), creds, "geni_fly", map[string]any{})

	// Give back
	deleted := p.slivers(p.must("Delete", urns(slice), creds, map[string]any{}))
	if len(deleted) != 3 {
		t.Errorf("%d slivers were deleted", len(deleted))
	}
	for _, s := range deleted {
		if got := s.text("geni_allocation_status"); got != "geni_unallocated" {
			t.Errorf("%s is %s after Delete", s.text("geni_sliver_urn"), got)
		}
	}
	b.awaitNothing()
	b.await("the testbed to be free again", func() bool {
		text, _ := p.must("ListResources", user, options("geni_available", true)).(string)
		return len(readAd(t, text).Nodes) == len(before.Nodes)
	})
}

// checkVersion looks at the types of what GetVersion says.
func checkVersion(t *testing.T, p *python, url string) {
	t.Helper()
	for _, params := range [][]any{{}, {map[string]any{}}} {
		r := p.call("GetVersion", params...)
		if n, ok := r.Reply["geni_api"].(float64); !ok || n != 3 {
			t.Errorf("geni_api beside value is %v", r.Reply["geni_api"])
		}
		v, ok := r.Reply["value"].(map[string]any)
		if !ok {
			t.Fatalf("GetVersion: %+v", r)
		}
		if v["geni_api"] != 3.0 || v["geni_single_allocation"] != 0.0 || v["geni_allocate"] != "geni_many" {
			t.Errorf("GetVersion: geni_api %v, geni_single_allocation %v, geni_allocate %v", v["geni_api"], v["geni_single_allocation"], v["geni_allocate"])
		}
		versions, _ := v["geni_api_versions"].(map[string]any)
		if versions["3"] != url {
			t.Errorf("version 3 is at %v, want %s", versions["3"], url)
		}
		for _, name := range []string{"geni_request_rspec_versions", "geni_ad_rspec_versions"} {
			list, _ := v[name].([]any)
			found := false
			for _, item := range list {
				f, _ := item.(map[string]any)
				_, extensions := f["extensions"].([]any)
				_, schema := f["schema"].(string)
				_, namespace := f["namespace"].(string)
				if !extensions || !schema || !namespace {
					t.Errorf("%s has %v", name, item)
				}
				found = found || f["type"] == "GENI" && f["version"] == "3"
			}
			if !found {
				t.Errorf("%s has no GENI 3: %v", name, list)
			}
		}
	}
}

// allIn reports whether all slivers of a slice are in one of the states. A
// failed one ends the test.
func (b *testbed) allIn(p *python, slice urn.URN, creds []any, states ...string) bool {
	b.Helper()
	for _, s := range p.slivers(p.must("Status", urns(slice), creds, map[string]any{})) {
		state := s.text("geni_operational_status")
		if state == "geni_failed" {
			b.Fatalf("%s failed: %s", s.text("geni_sliver_urn"), s.text("geni_error"))
		}
		if !slices.Contains(states, state) {
			return false
		}
	}
	return true
}

// allNodesIn is allIn for nodes: links may have states of their own.
func (b *testbed) allNodesIn(p *python, slice urn.URN, creds []any, m *client.Manifest, state string) bool {
	b.Helper()
	for _, s := range p.slivers(p.must("Status", urns(slice), creds, map[string]any{})) {
		for _, n := range m.Nodes {
			if n.Sliver == s.text("geni_sliver_urn") && s.text("geni_operational_status") != state {
				return false
			}
		}
	}
	return true
}

// ssh runs a command on a node with the system's OpenSSH client and nothing of
// ours.
func (b *testbed) ssh(l client.Login, command string) string {
	b.Helper()
	r := b.trySSH(l, filepath.Join(b.dir, "members", "alice", "id_ed25519"), command)
	if r.status != 0 {
		b.Fatalf("ssh %s@%s port %s %q: status %d\n%s%s", l.User, l.Host, l.Port, command, r.status, r.out, r.err)
	}
	return r.out
}

func (b *testbed) trySSH(l client.Login, key, command string) result {
	b.Helper()
	return runCommand(b, exec.Command("ssh", "-F", "/dev/null", "-i", key, "-p", l.Port, "-l", l.User,
		"-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=60", l.Host, command), "")
}

func readManifest(t testing.TB, document string) *client.Manifest {
	t.Helper()
	m, err := client.ReadManifest(document)
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return m
}

func readAd(t testing.TB, document string) *client.Advertisement {
	t.Helper()
	ad, err := client.ReadAdvertisement(document)
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return ad
}

func nodeIDs(m *client.Manifest) []string {
	var ids []string
	for _, n := range m.Nodes {
		ids = append(ids, n.ClientID)
	}
	return ids
}

// The same with the commands, as in the README.
func TestCommands(t *testing.T) {
	t.Parallel()
	need(t, "ssh", "scp", "sftp")
	b := newTestbed(t)
	b.slice("exp1")
	file := repository(t, "testdata", "requests", "two-nodes.rspec")

	if out := b.must("version"); !strings.Contains(out, "GENI 3") {
		t.Errorf("version says\n%s", out)
	}
	if out := b.must("list", "--raw"); len(readAd(t, out).Nodes) == 0 {
		t.Errorf("list --raw says\n%s", out)
	}
	b.must("list", "--available")
	b.must("validate", file)
	b.refused("would be refused", "validate", repository(t, "testdata", "requests", "mistakes.rspec"))
	b.must("inventory", "check")

	b.refused("SEARCHFAILED (12): ", "status", "exp1")
	b.refused("BADARGS (1): ", "allocate", "exp1", repository(t, "testdata", "requests", "mistakes.rspec"))
	b.refused("no credential", "status", "nothing")
	b.refused("usage: croft allocate SLICE FILE", "allocate", "exp1")
	b.refused("is not a time", "renew", "exp1", "soon")

	r := b.croft("up", "exp1", file)
	if r.status != 0 {
		t.Fatalf("up: status %d\n%s%s", r.status, r.out, r.err)
	}
	if !regexp.MustCompile(`(?m)^node0 +ready +ssh://\w+@127\.0\.0\.1:\d+ +10\.10\.1\.1`).MatchString(r.out) {
		t.Errorf("up prints\n%s", r.out)
	}
	for _, phase := range []string{"allocating", "provisioning", "making", "ready (3 of 3 slivers)"} {
		if !strings.Contains(r.err, phase) {
			t.Errorf("the progress of up does not say %s:\n%s", phase, r.err)
		}
	}
	if strings.Contains(r.err, "\x1b") || strings.Contains(r.err, "\r") {
		t.Errorf("up draws on what is no terminal: %q", r.err)
	}

	var status struct {
		Slivers []client.Sliver `json:"geni_slivers"`
	}
	if err := json.Unmarshal([]byte(b.must("status", "exp1", "--json")), &status); err != nil || len(status.Slivers) != 3 {
		t.Errorf("status --json gives %d slivers: %v", len(status.Slivers), err)
	}
	if m := readManifest(t, b.must("describe", "exp1", "--raw")); len(m.Nodes) != 2 {
		t.Errorf("describe --raw has nodes %v", nodeIDs(m))
	}

	if out := b.must("ssh", "exp1", "node0", "--", "hostname"); !strings.HasPrefix(out, "node0") {
		t.Errorf("hostname is %s", out)
	}
	if r := b.croft("ssh", "exp1", "node0", "--", "exit 7"); r.status != 7 {
		t.Errorf("status is %d, want the command's, 7\n%s", r.status, r.err)
	}
	if r := b.croftIn("through\n", "ssh", "exp1", "node1", "--", "cat"); r.out != "through\n" {
		t.Errorf("standard input does not go through: %q %s", r.out, r.err)
	}
	b.refused("no node node9", "ssh", "exp1", "node9")
	b.copies()

	b.must("renew", "exp1", "2d")
	b.must("action", "exp1", "geni_restart")
	b.await("the nodes to be back", func() bool {
		return b.croft("ssh", "exp1", "node0", "--", "true").status == 0
	})
	b.must("delete", "exp1")
	b.awaitNothing()

	// The same slice again: other nodes, perhaps at the same ports, with other
	// host keys.
	b.must("up", "exp1", file)
	b.must("ssh", "exp1", "node0", "--", "true")
	b.must("delete", "exp1")
}

// A slice that is shut down stops, is still told about, and nobody can do
// anything with it until the operator lifts it.
func TestShutdown(t *testing.T) {
	t.Parallel()
	need(t, "ssh")
	b := newTestbed(t)
	b.slice("off")
	b.must("up", "off", repository(t, "testdata", "requests", "one-node.rspec"))
	node := readManifest(t, b.must("describe", "off", "--raw")).Nodes[0]
	login, ok := node.LoginOf(urn.URN{Authority: authority, Type: urn.User, Name: "alice"})
	if !ok {
		t.Fatal("no login")
	}
	b.must("shutdown", "off")
	b.must("shutdown", "off") // again
	for _, args := range [][]string{
		{"renew", "off", "1d"}, {"delete", "off"}, {"provision", "off"}, {"action", "off", "geni_start"},
		{"allocate", "off", repository(t, "testdata", "requests", "one-node.rspec")},
	} {
		b.refused("FORBIDDEN (3): ", args...)
	}
	b.must("status", "off")
	b.must("describe", "off")
	b.awaitNothing()
	if r := b.trySSH(login, filepath.Join(b.dir, "members", "alice", "id_ed25519"), "true"); r.status == 0 {
		t.Error("a node of a slice that is shut down lets people in")
	}
	b.must("admin", "lift", "off")
	b.must("action", "off", "geni_start")
	b.await("the node to be back", func() bool { return b.croft("ssh", "off", node.ClientID, "--", "true").status == 0 })
}

// copies copies a file with scp and sftp, by the configuration that croft ssh
// --config prints.
func (b *testbed) copies() {
	b.Helper()
	work := b.TempDir()
	config := filepath.Join(work, "ssh_config")
	if err := os.WriteFile(config, []byte(b.must("ssh", "exp1", "--config")), 0o600); err != nil {
		b.Fatal(err)
	}
	file, back := filepath.Join(work, "file"), filepath.Join(work, "back")
	if err := os.WriteFile(file, []byte(strings.Repeat("content\n", 40000)), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{
		{"scp", "-q", "-F", config, file, "node0:one"},
		{"scp", "-q", "-O", "-F", config, "node0:one", back}, // the old protocol
		{"scp", "-q", "-F", config, back, "node1:two"},
	} {
		if r := runCommand(b, exec.Command(args[0], args[1:]...), ""); r.status != 0 {
			b.Errorf("%s: status %d\n%s", strings.Join(args, " "), r.status, r.err)
		}
	}
	r := runCommand(b, exec.Command("sftp", "-q", "-b", "-", "-F", config, "node1"), "get two "+back+".2\nrename two three\nls -l\n")
	if r.status != 0 || !strings.Contains(r.out, "three") {
		b.Errorf("sftp: status %d\n%s%s", r.status, r.out, r.err)
	}
	for _, f := range []string{back, back + ".2"} {
		if r := runCommand(b, exec.Command("cmp", file, f), ""); r.status != 0 {
			b.Errorf("%s is not what was sent: %s%s", f, r.out, r.err)
		}
	}
}

// A server that is told to stop lets the nodes run; the next one has them.
func TestNodesOutliveTheServer(t *testing.T) {
	t.Parallel()
	need(t, "ssh")
	b := newTestbed(t)
	b.slice("exp")
	b.must("up", "exp", repository(t, "testdata", "requests", "one-node.rspec"))
	node := nodeIDs(readManifest(t, b.must("describe", "exp", "--raw")))[0]
	b.must("ssh", "exp", node, "--", "nohup sleep 1000 >/dev/null 2>&1 & echo $! >pid; uptime")
	b.stop()
	if len(b.leftovers()) == 0 {
		t.Error("the node has gone with the server")
	}
	b.start()
	b.await("the node to be ready", func() bool { return strings.Contains(b.must("status", "exp"), "ready") })
	// The same host key, and the same processes.
	b.must("ssh", "exp", node, "--", "kill -0 $(cat pid)")
	b.must("delete", "exp")
}
