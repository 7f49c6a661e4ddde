package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"croft/languages/camp/pdp"
)

const campPlan = `camp_version: CAMP 1.1
name: two tiers
artifacts:
  - id: data
    artifact_type: org.testbed:file
    org.testbed:path: /srv/data
    content: { data: Zm9ydHktdHdvCg== }
    requirements:
      - { requirement_type: "org.testbed:HostOn", fulfillment: id:store }
  - id: serve
    artifact_type: org.testbed:service
    content: { href: serve.sh }
    requirements:
      - { requirement_type: "org.testbed:HostOn", fulfillment: id:store }
      - { requirement_type: "org.testbed:DependsOn", fulfillment: id:data }
  - id: ask
    artifact_type: org.testbed:script
    content: { href: ask.sh }
    requirements:
      - { requirement_type: "org.testbed:HostOn", fulfillment: id:front }
      - { requirement_type: "org.testbed:DependsOn", fulfillment: id:serve }
services:
  - id: store
    characteristics: [{ characteristic_type: "org.testbed:Node" }]
  - id: front
    characteristics: [{ characteristic_type: "org.testbed:Node" }]
`

var campFiles = map[string]string{
	"serve.sh": "#!/bin/sh\ncd /srv && exec python3 -m http.server 8000\n",
	"ask.sh": `#!/bin/sh
for i in $(seq 50); do
  python3 -c 'import urllib.request; print(urllib.request.urlopen("http://store:8000/data").read().decode())' > $HOME/answer 2>/dev/null && exit 0
  sleep 0.2
done
exit 1
`,
}

// platform is a client of CAMP's REST API.
type platform struct {
	*testbed
	base string
}

// call makes a request and returns the answer, which must have a status.
func (p *platform) call(status int, method, at, kind string, body []byte) (map[string]any, http.Header) {
	p.Helper()
	if !strings.HasPrefix(at, "http") {
		at = p.base + at
	}
	r, err := http.NewRequestWithContext(p.Context(), method, at, bytes.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	r.SetBasicAuth("alice", "a good password")
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.Fatal(err)
	}
	if answer.StatusCode != status {
		p.Fatalf("%s %s: %s %s, want %d", method, at, answer.Status, text, status)
	}
	var object map[string]any
	_ = json.Unmarshal(text, &object) // not all answers are objects
	return object, answer.Header
}

// awaitState waits for an assembly to be in a state.
func (p *platform) awaitState(assembly, state string) map[string]any {
	p.Helper()
	var last map[string]any
	p.await(assembly+" is "+state, func() bool {
		last, _ = p.call(http.StatusOK, "GET", assembly, "", nil)
		return last["resourceState"].(map[string]any)["state"] == state
	})
	return last
}

func TestCAMP(t *testing.T) {
	t.Parallel()
	need(t, "python3", "ssh")
	b := newFederation(t)
	hash := strings.TrimSpace(b.croftIn("a good password\n", "account", "hash").out)
	address := freeAddress(t)
	key, err := os.ReadFile(filepath.Join(b.dir, "members", "alice", "id_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := os.OpenFile(filepath.Join(b.dir, "croft.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conf, "rest:\n  listen: %s\n  plain: true\n  accounts:\n    - name: alice\n      member: urn:publicid:IDN+%s+user+alice\n      password: %s\n      keys: [%q]\n",
		address, authority, hash, strings.TrimSpace(string(key)))
	if err := conf.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.start()
	p := &platform{b, "http://" + address + "/camp"}

	var packed bytes.Buffer
	err = pdp.Write(&packed, pdp.Tgz, []byte(campPlan), []string{"serve.sh", "ask.sh"}, func(name string) ([]byte, error) { return []byte(campFiles[name]), nil })
	if err != nil {
		t.Fatal(err)
	}
	_, header := p.call(http.StatusCreated, "POST", "/packages", "application/gzip", packed.Bytes())
	_, header = p.call(http.StatusCreated, "POST", "/platform", "application/json", fmt.Appendf(nil, `{"pdp_uri": %q}`, header.Get("Location")))
	template := header.Get("Location")
	_, header = p.call(http.StatusCreated, "POST", template, "", nil)
	assembly := header.Get("Location")
	running := p.awaitState(assembly, "RUNNING")

	// What the artifacts did, seen by a login where the platform says.
	var login *url.URL
	for _, c := range running["applicationComponents"].([]any) {
		component, _ := p.call(http.StatusOK, "GET", c.(map[string]any)["href"].(string), "", nil)
		if component["name"] != "ask" {
			continue
		}
		node, _ := p.call(http.StatusOK, "GET", component["platformComponents"].([]any)[0].(map[string]any)["href"].(string), "", nil)
		if login, err = url.Parse(node["externalManagementResource"].(string)); err != nil {
			t.Fatal(err)
		}
	}
	said := func() string {
		got := runCommand(t, exec.CommandContext(t.Context(), "ssh", "-p", login.Port(), "-i", filepath.Join(b.dir, "members", "alice", "id_ed25519"), "-o", "IdentitiesOnly=yes",
			"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "alice@"+login.Hostname(), "cat answer"), "")
		return got.out + got.err
	}
	if got := said(); got != "forty-two\n\n" {
		t.Errorf("the artifact asked and was told %q", got)
	}
	p.call(http.StatusOK, "POST", assembly, "application/json", []byte(`{"new_state": "suspend"}`))
	p.awaitState(assembly, "SUSPENDED")
	p.call(http.StatusOK, "POST", assembly, "application/json", []byte(`{"new_state": "resume"}`))
	p.awaitState(assembly, "RUNNING")
	if got := said(); got != "forty-two\n\n" {
		t.Errorf("after it was resumed: %q", got)
	}

	// A killed server knows its assemblies when it is back.
	b.kill()
	b.start()
	p.awaitState(assembly, "RUNNING")
	p.call(http.StatusNoContent, "DELETE", assembly, "", nil)
	b.awaitNothing()

	// The same plan through the AM API, as a file beside its artifacts.
	folder := t.TempDir()
	for name, text := range campFiles {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(folder, "camp.yaml")
	if err := os.WriteFile(file, []byte(campPlan), 0o600); err != nil {
		t.Fatal(err)
	}
	b.slice("exp1")
	if got := b.must("validate", file); !strings.Contains(got, "nodes 2, links 1") {
		t.Errorf("validate says %q", got)
	}
	b.must("up", "exp1", file, "--wait-startup")
	if got := b.must("ssh", "exp1", "front", "--", "cat", "answer"); got != "forty-two\n\n" {
		t.Errorf("the artifact asked and was told %q", got)
	}
}
