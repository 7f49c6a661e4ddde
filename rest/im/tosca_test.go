package im_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const template = `tosca_definitions_version: tosca_2_0
imports:
  - profile: org.croft.testbed:1.0
service_template:
  inputs:
    names: { type: list, entry_schema: string, default: [ one, two ] }
  node_templates:
    lan:
      type: Link
      properties: { cidr: 10.77.0.0/24 }
    worker:
      type: Node
      count: { $length: [ { $get_input: names } ] }
      requirements:
        - link: lan
  outputs:
    name: { value: { $get_input: [ names, 1 ] } }
    first: { value: { $get_attribute: [ worker, private_address ] } }
    second: { value: { $concat: [ "http://", { $get_attribute: [ [ worker, 1 ], private_address ] }, "/" ] } }
`

// TOSCA by the Infrastructure Manager's API, as its clients and dashboards send
// it, with its outputs.
func TestTOSCA(t *testing.T) {
	b := newBed(t)
	yaml := header("Content-Type", "text/yaml")
	a := b.must(http.MethodPost, "/im/infrastructures", template, yaml)
	path := strings.TrimPrefix(a.body, b.server.URL)
	if got := b.state(path, "configured"); len(got) != 2 {
		t.Fatalf("states %v", got)
	}
	var got struct {
		Outputs map[string]any `json:"outputs"`
	}
	a = b.must(http.MethodGet, path+"/outputs", "")
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatalf("outputs %s: %v", a.body, err)
	}
	want := map[string]any{"name": "two", "first": "10.77.0.1", "second": "http://10.77.0.2/"}
	if !reflect.DeepEqual(got.Outputs, want) {
		t.Errorf("outputs %v, want %v", got.Outputs, want)
	}
	if a := b.must(http.MethodGet, path+"/tosca", ""); a.body != template {
		t.Errorf("the template comes back as %q", a.body)
	}
	if a := b.must(http.MethodGet, path+"/vms/1", ""); !strings.Contains(a.body, "system worker-1") {
		t.Error("the RADL of a machine is that of another")
	}
	b.must(http.MethodDelete, path, "")

	for name, c := range map[string]struct{ text, words string }{
		"an unknown type":      {strings.Replace(template, "type: Node", "type: Nope", 1), "there is no node type Nope"},
		"an unknown function":  {strings.Replace(template, "$length", "$count", 1), "there is no function $count"},
		"another version":      {strings.Replace(template, "tosca_2_0", "tosca_9_0", 1), "TOSCA"},
		"text that is nothing": {"hello: world\n", ""},
	} {
		if a := b.call(http.MethodPost, "/im/infrastructures", c.text, yaml); a.status != http.StatusBadRequest || !strings.Contains(a.body, c.words) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if n := b.slivers(); n != 0 {
		t.Errorf("%d slivers are left", n)
	}
}
