package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// accounts adds accounts for the REST APIs to croft.yaml, with the password "a
// good password", and returns where they listen.
func (b *testbed) accounts(names ...string) string {
	b.Helper()
	hash := strings.TrimSpace(b.croftIn("a good password\n", "account", "hash").out)
	address := freeAddress(b)
	text := fmt.Sprintf("rest:\n  listen: %s\n  plain: true\n  accounts:\n", address)
	for _, name := range names {
		text += fmt.Sprintf("    - {name: %s, member: 'urn:publicid:IDN+%s+user+%s', password: '%s'}\n", name, authority, name, hash)
	}
	file := filepath.Join(b.dir, "croft.yaml")
	conf, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(conf, text...), 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	return address
}

// A member sees by the AM API what the member has made by a REST API, without
// a credential for it, and by the REST APIs what the AM API has made; others
// see neither.
func TestDoors(t *testing.T) {
	t.Parallel()
	b := newFederation(t)
	b.must("member", "add", "bob")
	address := b.accounts("alice", "bob")
	b.start()
	machines := &platform{b, "http://" + address + "/im"}
	_, header := machines.call(http.StatusOK, "POST", "/infrastructures", "text/plain", []byte("system one (memory.size >= 64M)\ndeploy one 1\n"))
	id := header.Get("InfID")
	slice := "urn:publicid:IDN+" + authority + ":im:u-alice+slice+" + id
	if got := b.must("list", "--slices"); !strings.Contains(got, slice+"  1 ") {
		t.Errorf("croft list --slices: %s", got)
	}
	b.await("the machine is ready by the AM API", func() bool { return strings.Contains(b.must("describe", slice), "ready") })
	if got := b.must("describe", slice, "--raw"); !strings.Contains(got, `client_id="one-0"`) {
		t.Errorf("its manifest: %s", got)
	}
	b.refused("may not call Describe", "describe", slice, "--member", "bob")
	b.refused("may not call Delete", "delete", slice, "--member", "bob")
	if got := b.must("list", "--slices", "--member", "bob"); strings.Contains(got, "slice+") {
		t.Errorf("bob sees %s", got)
	}
	b.must("delete", slice)
	machines.call(http.StatusNotFound, "GET", "/infrastructures/"+id, "", nil)

	b.slice("exp1")
	b.must("up", "exp1", b.document("one.radl", "system one (memory.size >= 64M)\ndeploy one 1\n"))
	assemblies := &platform{b, "http://" + address + "/camp"}
	seen, _ := assemblies.call(http.StatusOK, "GET", "/platform", "", nil)
	list, _ := seen["assemblies"].([]any)
	if len(list) != 1 {
		t.Fatalf("the platform's assemblies are %v", list)
	}
	at := list[0].(map[string]any)["href"].(string)
	assembly := assemblies.awaitState(at, "RUNNING")
	if got := assembly["org.testbed:slice"]; got != "urn:publicid:IDN+"+authority+"+slice+exp1" {
		t.Errorf("it is of the slice %v", got)
	}
	assemblies.call(http.StatusNoContent, "DELETE", at, "", nil)
	if got := b.must("describe", "exp1"); strings.Contains(got, "one-0") {
		t.Errorf("after its end: %s", got)
	}
	b.awaitNothing()
}
