package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// A template with scripts, packed with all that it uses: the scripts run in
// the order of the relationships, also across nodes, with what they ask for of
// each other, and the outputs tell what they said.
func TestTOSCA(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	b := newTestbed(t)
	b.slice("exp1")
	template := repository(t, "languages", "tosca", "testdata", "twotier", "service.yaml")
	if got := b.must("tosca", "check", template); !strings.Contains(got, "is valid") {
		t.Errorf("check says %q", got)
	}
	if got := b.must("validate", template); !strings.Contains(got, "nodes 2, links 1") {
		t.Errorf("validate says %q", got)
	}
	if got := b.must("tosca", "show", template); !strings.Contains(got, "NODE web") {
		t.Errorf("show says %q", got)
	}
	if got := b.must("tosca", "graph", template); !strings.Contains(got, "<svg") {
		t.Errorf("graph draws %q", got)
	}
	b.must("up", "exp1", template, "--wait-startup", "--input", "greeting=bonjour")

	var outputs map[string]any
	if err := json.Unmarshal([]byte(b.must("describe", "exp1", "--tosca", "--json")), &outputs); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"answer": "bonjour", "url": "http://10.5.0.1:8080/index.html", "address": "10.5.0.2", "summary": "bonjour at 10.5.0.1",
	} {
		if outputs[name] != want {
			t.Errorf("output %s is %v, want %s", name, outputs[name], want)
		}
	}
	if got := b.must("ssh", "exp1", "web", "--", "cat", "/var/tmp/www/order"); got != "created\nconfigured\n" {
		t.Errorf("scripts of the server ran in the order %q", got)
	}

	b.slice("exp2")
	b.refused("there is no input", "up", "exp2", template, "--input", "colour=red")
	b.refused("want a number and a unit", "up", "exp2", template, "--input", "bandwidth=fast")

	archive := b.dir + "/service.csar"
	b.must("tosca", "pack", template, archive)
	b.must("allocate", "exp2", archive)
	if got := b.must("describe", "exp2", "--tosca"); !strings.Contains(got, "summary") || strings.Contains(got, "answer") {
		t.Errorf("outputs before anything is there:\n%s", got)
	}
	if got := b.must("version", "--json"); !strings.Contains(got, "TOSCA") {
		t.Errorf("GetVersion does not list TOSCA:\n%s", got)
	}
}

// A playbook runs in its node, with the inputs of its operation. Ansible takes
// its time, so that this is part of the long form only.
func TestTOSCAPlaybook(t *testing.T) {
	t.Parallel()
	if os.Getenv("CROFT_SOAK") != "1" {
		t.Skip("set CROFT_SOAK=1 to run Ansible")
	}
	need(t, "ansible-playbook")
	b := newTestbed(t)
	b.slice("exp1")
	b.must("up", "exp1", repository(t, "languages", "tosca", "testdata", "playbook", "service.yaml"), "--wait-startup", "--input", "port=4711")
	if got := b.must("ssh", "exp1", "server", "--", "cat", "/tmp/port"); got != "4711" {
		t.Errorf("the playbook wrote %q", got)
	}
}
