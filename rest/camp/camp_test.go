package camp_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"croft/aggregate"
	"croft/aggregate/aggregatetest"
	"croft/aggregate/aggregatetest/surroundings"
	"croft/languages"
	language "croft/languages/camp"
	"croft/languages/camp/pdp"
	"croft/rest"
	"croft/rest/camp"
	"croft/rest/resttest"
)

const testInventory = `
authority: example.org
sliver_types:
  - name: simulated
    driver: simulated
    cores: 1
    memory: 1GiB
    disk: 1GiB
hosts:
  - name: host1
    sliver_types: [simulated]
    cores: 4
    memory: 4GiB
    disk: 40GiB
    shared: true
`

const plan = `camp_version: CAMP 1.1
name: web
description: two machines that serve
artifacts:
  - id: store
    artifact_type: org.testbed:script
    content: { data: IyEvYmluL3NoCg== }
    requirements:
      - { requirement_type: "org.testbed:HostOn", fulfillment: id:node }
  - id: serve
    artifact_type: org.testbed:script
    content: { href: web.sh }
    requirements:
      - { requirement_type: "org.testbed:HostOn", fulfillment: id:node }
      - { requirement_type: "org.testbed:DependsOn", fulfillment: id:store }
services:
  - id: node
    characteristics:
      - { characteristic_type: "org.testbed:Node", "org.testbed:count": 2 }
`

// bed is a platform of simulated nodes behind HTTPS.
type bed struct {
	*testing.T
	server  *httptest.Server
	client  *http.Client
	service *aggregatetest.Aggregate
	hosts   []string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	var logged surroundings.Log
	log := slog.New(slog.NewTextHandler(&logged, nil))
	b := &bed{T: t, service: aggregatetest.New(t, aggregatetest.Config{
		Inventory: testInventory, Languages: languages.Set{language.Language{}}, Log: log,
		Leases: aggregate.Leases{Allocated: time.Minute, AllocatedMax: time.Hour, Provisioned: time.Hour, ProvisionedMax: 2 * time.Hour},
	})}
	face, err := camp.New(camp.Config{Service: b.service.Service, Accounts: resttest.Accounts(t, time.Now, "alice", "bob"), Records: resttest.Records(t, t.TempDir()), Path: "/camp", Version: "test", Hosts: b.hosts, Clock: time.Now, Random: rand.Reader, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewTLSServer(rest.Handler(rest.Config{Faces: map[string]http.Handler{"/camp": face}, Log: log, Clock: time.Now, BodyBytes: 1 << 20, Concurrent: 8}))
	t.Cleanup(b.server.Close)
	description, err := camp.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	checker := resttest.New(t, description, "/camp", b.server.Client().Transport)
	checker.Also = func(r *http.Request, status int, body []byte) error {
		return whole(checker.Document, r, status, body)
	}
	b.client = &http.Client{Transport: checker}
	return b
}

func TestMain(m *testing.M) {
	resttest.Decode()
	os.Exit(m.Run())
}

// whole checks that what was not asked for in part has all that its type
// requires.
func whole(description *openapi3.T, r *http.Request, status int, body []byte) error {
	var object map[string]any
	if status/100 != 2 || r.URL.Query().Has("SelectAttr") || json.Unmarshal(body, &object) != nil || object["type"] == nil {
		return nil
	}
	name := strings.ReplaceAll(fmt.Sprint(object["type"]), ":", ".")
	if name == "types" {
		name = strings.Trim(r.URL.Path, "/")
	}
	schema := description.Components.Schemas[name]
	if schema == nil {
		return fmt.Errorf("there is no schema of the type %s", name)
	}
	return schema.Value.VisitJSON(object)
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	text   []byte
	object map[string]any
}

// as makes a request of somebody: headers are "Name: value".
func (b *bed) as(who, method, path, body string, headers ...string) answer {
	b.Helper()
	url := path
	if !strings.HasPrefix(url, "https:") {
		url = b.server.URL + "/camp" + path
	}
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	if who != "" {
		r.SetBasicAuth(who, resttest.Password(who))
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	got, err := b.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer got.Body.Close()
	a := answer{status: got.StatusCode, header: got.Header}
	if a.text, err = io.ReadAll(got.Body); err != nil {
		b.Fatal(err)
	}
	_ = json.Unmarshal(a.text, &a.object) // not all are objects
	return a
}

// want makes a request of alice's that must have a status.
func (b *bed) want(status int, method, path, body string, headers ...string) answer {
	b.Helper()
	a := b.as("alice", method, path, body, headers...)
	if a.status != status {
		b.Fatalf("%s %s: %d %s, want %d", method, path, a.status, a.text, status)
	}
	return a
}

func (a answer) hrefs(attribute string) []string {
	var list []string
	links, _ := a.object[attribute].([]any)
	for _, l := range links {
		list = append(list, l.(map[string]any)["href"].(string))
	}
	return list
}

func (a answer) text1() string {
	list, _ := a.object["message"].([]any)
	if len(list) == 0 {
		return ""
	}
	text, _ := list[0].(map[string]any)["text"].(string)
	return text
}

func pack(t testing.TB, format pdp.Format, plan string) string {
	t.Helper()
	var b bytes.Buffer
	err := pdp.Write(&b, format, []byte(plan), []string{"web.sh"}, func(string) ([]byte, error) { return []byte("#!/bin/sh\necho serving\n"), nil })
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const (
	asTar   = "Content-Type: application/x-tar"
	asZip   = "Content-Type: application/zip"
	asGzip  = "Content-Type: application/gzip"
	asYAML  = "Content-Type: application/x-yaml"
	asJSON  = "Content-Type: application/json"
	asPatch = "Content-Type: application/json-patch"
)

// template registers the plan and returns its address.
func (b *bed) template() string {
	return b.want(http.StatusCreated, "POST", "/platform", pack(b, pdp.Tar, plan), asTar).header.Get("Location")
}

// ready waits for an assembly to be as it will stay.
func (b *bed) settled(assembly string) answer {
	b.Helper()
	for range 600 {
		a := b.want(http.StatusOK, "GET", assembly, "")
		state := a.object["resourceState"].(map[string]any)["state"]
		if a.object["representationSkew"] != "CREATING" && state != "SUSPENDING" {
			return a
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatal("the assembly does not settle")
	return answer{}
}

// TestRules goes through what a server must do, rule by rule.
func TestRules(t *testing.T) {
	b := newBed(t)
	platform := b.want(http.StatusOK, "GET", "/platform", "")
	template := b.template()
	assembly := b.want(http.StatusCreated, "POST", template, "").header.Get("Location")
	b.settled(assembly)

	t.Run("1 authentication and JSON", func(t *testing.T) {
		if a := b.as("", "GET", "/platform", ""); a.status != http.StatusUnauthorized || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Basic") {
			t.Errorf("without a password: %d", a.status)
		}
		if a := b.as("", "GET", "/api/versions", ""); a.status != http.StatusOK || !strings.Contains(string(a.text), `"version":"1.1"`) {
			t.Errorf("versions: %d %s", a.status, a.text)
		}
		if got := platform.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("the platform is %s", got)
		}
	})
	t.Run("2 attributes of every resource", func(t *testing.T) {
		seen, todo := map[string]bool{}, []string{b.server.URL + "/camp/platform"}
		for len(todo) > 0 {
			at := todo[0]
			todo = todo[1:]
			if seen[at] || strings.HasSuffix(at, "/pdp") {
				continue
			}
			seen[at] = true
			a := b.want(http.StatusOK, "GET", at, "")
			for _, name := range []string{"uri", "name", "created", "type"} {
				if s, _ := a.object[name].(string); s == "" {
					t.Errorf("%s has no %s", at, name)
				}
			}
			if a.object["uri"] != at {
				t.Errorf("%s says it is %s", at, a.object["uri"])
			}
			if created, err := time.Parse("2006-01-02T15:04:05Z", a.object["created"].(string)); err != nil || created.After(time.Now()) {
				t.Errorf("%s was created at %s", at, a.object["created"])
			}
			var follow func(v any)
			follow = func(v any) {
				switch x := v.(type) {
				case []any:
					for _, y := range x {
						follow(y)
					}
				case map[string]any:
					href, ok := x["href"].(string)
					if !ok {
						return
					}
					if _, named := x["targetName"].(string); !named {
						t.Errorf("%s: a link without a targetName", at)
					}
					todo = append(todo, href)
				}
			}
			for name, v := range a.object {
				if text, ok := v.(string); ok && strings.HasSuffix(name, "Uri") {
					todo = append(todo, text)
				}
				follow(v)
			}
		}
		if len(seen) < 60 {
			t.Errorf("%d resources were found", len(seen))
		}
	})
	t.Run("3 platform", func(t *testing.T) {
		for _, name := range []string{"specificationVersion", "extensionsUri", "typeDefinitionsUri", "supportedFormatsUri"} {
			if platform.object[name] == nil {
				t.Errorf("no %s", name)
			}
		}
	})
	t.Run("4 the JSON format", func(t *testing.T) {
		formats := b.want(http.StatusOK, "GET", platform.object["supportedFormatsUri"].(string), "")
		f := b.want(http.StatusOK, "GET", formats.hrefs("formatLinks")[0], "")
		for name, want := range map[string]string{"name": "JSON", "mimeType": "application/json", "version": "RFC4627", "type": "format"} {
			if f.object[name] != want {
				t.Errorf("%s is %v", name, f.object[name])
			}
		}
	})
	t.Run("6 registration", func(t *testing.T) {
		uploaded := b.want(http.StatusCreated, "POST", "/packages", pack(t, pdp.Zip, plan), asZip)
		at := uploaded.header.Get("Location")
		for _, uri := range []string{at, strings.TrimPrefix(at, b.server.URL), "packages/" + at[strings.LastIndex(at, "/")+1:]} {
			made := b.want(http.StatusCreated, "POST", "/platform", fmt.Sprintf(`{"pdp_uri": %q, "more": 1}`, uri), asJSON)
			now := b.want(http.StatusOK, "GET", "/platform", "")
			if !strings.Contains(strings.Join(now.hrefs("assemblyTemplates"), " "), made.header.Get("Location")) {
				t.Errorf("%s: the platform does not list the template", uri)
			}
		}
		for name, header := range map[pdp.Format]string{pdp.Tgz: asGzip, pdp.Zip: asZip, pdp.Tar: asTar} {
			b.want(http.StatusCreated, "POST", "/platform", pack(t, name, plan), header)
		}
		alone := strings.Replace(plan, "content: { href: web.sh }", "content: { data: IyEvYmluL3NoCg== }", 1)
		b.want(http.StatusCreated, "POST", "/platform", alone, asYAML)
		if a := b.as("bob", "POST", "/platform", fmt.Sprintf(`{"pdp_uri": %q}`, at), asJSON); a.status != http.StatusBadRequest {
			t.Errorf("somebody else's package: %d", a.status)
		}
		if a := b.want(http.StatusBadRequest, "POST", "/platform", `{"pdp_uri": "https://elsewhere.example.org/x.tar"}`, asJSON); !strings.Contains(a.text1(), "nothing is fetched") {
			t.Errorf("a package elsewhere: %s", a.text)
		}
	})
	t.Run("7 what is refused", func(t *testing.T) {
		for name, c := range map[string]struct{ old, new, want string }{
			"an artifact type":   {"org.testbed:script", "com.example:WAR", "unresolved"},
			"a requirement type": {"org.testbed:HostOn", "com.example:HostOn", "unresolved"},
			"no fulfillment":     {"fulfillment: id:node", "fulfillment: id:nodes", "unresolved"},
			"too much":           {`"org.testbed:count": 2`, `"org.testbed:memory": 1000000`, "unresolved"},
			"no name":            {"name: web\n", "", "no name"},
			"no file":            {"web.sh", "wev.sh", "no file"},
			"no artifacts":       {plan[strings.Index(plan, "artifacts:"):strings.Index(plan, "services:")], "", "no artifacts"},
		} {
			a := b.want(http.StatusBadRequest, "POST", "/platform", pack(t, pdp.Tar, strings.Replace(plan, c.old, c.new, 1)), asTar)
			if !strings.Contains(a.text1(), c.want) {
				t.Errorf("%s: %s", name, a.text)
			}
		}
		b.want(http.StatusBadRequest, "POST", "/platform", "not a package", asTar)
		b.want(http.StatusUnsupportedMediaType, "POST", "/platform", "x", "Content-Type: image/png")
		b.want(http.StatusBadRequest, "POST", "/platform", `{}`, asJSON)
	})
	t.Run("8 instantiation", func(t *testing.T) {
		a := b.want(http.StatusOK, "GET", assembly, "")
		if got := a.hrefs("applicationComponents"); len(got) != 2 {
			t.Errorf("components %v", got)
		}
		now := b.want(http.StatusOK, "GET", "/platform", "")
		if got := now.hrefs("assemblies"); !reflect.DeepEqual(got, []string{assembly}) {
			t.Errorf("assemblies %v", got)
		}
		if got := now.hrefs("platformComponents"); len(got) != 2 {
			t.Errorf("platform components %v", got)
		}
	})
	t.Run("10 11 12 13 changes", func(t *testing.T) { changes(t, b, template) })
	t.Run("14 15 SelectAttr", func(t *testing.T) {
		a := b.want(http.StatusOK, "GET", template+"?SelectAttr=name,tags&SelectAttr=type", "")
		if a.object["uri"] != nil || a.object["name"] == nil || a.object["type"] != "assemblyTemplate" {
			t.Errorf("%s", a.text)
		}
		b.want(http.StatusBadRequest, "GET", template+"?SelectAttr=nam", "")
		b.want(http.StatusBadRequest, "PUT", template+"?SelectAttr=description", `{"name": "x"}`, asJSON)
		after := b.want(http.StatusOK, "PUT", template+"?SelectAttr=tags", `{"tags": ["a", "b"]}`, asJSON)
		if !reflect.DeepEqual(after.object["tags"], []any{"a", "b"}) || len(after.object) != 1 {
			t.Errorf("%s", after.text)
		}
		b.want(http.StatusOK, "PUT", template+"?SelectAttr=tags", `{}`, asJSON)
		if now := b.want(http.StatusOK, "GET", template, ""); now.object["tags"] != nil || now.object["name"] == nil {
			t.Errorf("%s", now.text)
		}
	})
	t.Run("16 errors", func(t *testing.T) {
		for _, a := range []answer{b.as("alice", "GET", "/nothing", ""), b.as("bob", "GET", template, ""), b.as("bob", "GET", assembly, ""), b.as("alice", "GET", "/typeDefinitions/nothing", "")} {
			if a.status != http.StatusNotFound || a.text1() == "" {
				t.Errorf("%d %s", a.status, a.text)
			}
		}
		if a := b.as("alice", "DELETE", "/formats", ""); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") == "" {
			t.Errorf("%d %s", a.status, a.text)
		}
	})
	t.Run("17 extensions", func(t *testing.T) {
		names := map[string]bool{}
		for _, at := range b.want(http.StatusOK, "GET", "/extensions", "").hrefs("extensionLinks") {
			name := b.want(http.StatusOK, "GET", at, "").object["name"].(string)
			if names[name] || !strings.Contains(name, ":") {
				t.Errorf("extension %s", name)
			}
			names[name] = true
		}
	})
	t.Run("9 suspend and resume", func(t *testing.T) {
		b.want(http.StatusBadRequest, "POST", assembly, `{"new_state": "dance"}`, asJSON)
		for _, c := range []struct{ ask, state string }{{"suspend", "SUSPENDED"}, {"resume", "RUNNING"}} {
			b.want(http.StatusOK, "POST", assembly, fmt.Sprintf(`{"new_state": %q}`, c.ask), asJSON)
			a := b.settled(assembly)
			if got := a.object["resourceState"].(map[string]any)["state"]; got != c.state {
				t.Errorf("%s: %v", c.ask, got)
			}
		}
	})
	t.Run("10 deletion", func(t *testing.T) {
		b.want(http.StatusNoContent, "DELETE", template, "")
		b.want(http.StatusNotFound, "GET", template, "")
		b.want(http.StatusOK, "GET", assembly, "") // it goes on
		b.want(http.StatusNoContent, "DELETE", assembly, "")
		gone := false
		for range 200 {
			if a := b.as("alice", "GET", assembly, ""); a.status == http.StatusNotFound {
				gone = true
				break
			} else if a.object["representationSkew"] != "DESTROYING" {
				t.Fatalf("%s", a.text)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if found, err := b.service.Driver.List(t.Context()); !gone || err != nil || len(found) != 0 {
			t.Errorf("left over: %v, %v", found, err)
		}
	})
}

func changes(t *testing.T, b *bed, template string) {
	now := b.want(http.StatusOK, "GET", template, "")
	etag := now.header.Get("ETag")
	if !strings.HasPrefix(etag, `"`) {
		t.Errorf("ETag %s", etag)
	}
	b.want(http.StatusNotModified, "GET", template, "", "If-None-Match: "+etag)
	text := func(change func(map[string]any)) string {
		var o map[string]any
		if err := json.Unmarshal(b.want(http.StatusOK, "GET", template, "").text, &o); err != nil {
			t.Fatal(err)
		}
		change(o)
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	after := b.want(http.StatusOK, "PUT", template, text(func(o map[string]any) { o["name"], o["tags"] = "renamed", []string{"x"} }), asJSON, "If-Match: "+etag)
	if after.object["name"] != "renamed" || after.header.Get("ETag") == etag {
		t.Errorf("%s", after.text)
	}
	b.want(http.StatusPreconditionFailed, "PUT", template, text(func(o map[string]any) {}), asJSON, "If-Match: "+etag)
	after = b.want(http.StatusOK, "PUT", template, text(func(o map[string]any) { delete(o, "tags"); delete(o, "description") }), asJSON)
	if after.object["tags"] != nil || after.object["description"] != nil {
		t.Errorf("what was left out is there: %s", after.text)
	}
	for name, c := range map[string]struct {
		status int
		change func(map[string]any)
	}{
		"an immutable attribute":       {http.StatusForbidden, func(o map[string]any) { o["created"] = "2001-01-01T00:00:00Z" }},
		"its deletion":                 {http.StatusForbidden, func(o map[string]any) { delete(o, "uri") }},
		"one that only platforms set":  {http.StatusForbidden, func(o map[string]any) { o["applicationComponentTemplates"] = []any{} }},
		"a required one, deleted":      {http.StatusBadRequest, func(o map[string]any) { delete(o, "name") }},
		"one that nobody knows":        {http.StatusBadRequest, func(o map[string]any) { o["colour"] = "red" }},
		"a name that is no string":     {http.StatusBadRequest, func(o map[string]any) { o["name"] = 7 }},
		"tags that are no strings":     {http.StatusBadRequest, func(o map[string]any) { o["tags"] = []any{1} }},
		"a description without an end": {http.StatusBadRequest, func(o map[string]any) { o["description"] = strings.Repeat("x", 20<<10) }},
	} {
		if a := b.as("alice", "PUT", template, text(c.change), asJSON); a.status != c.status || a.text1() == "" {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.text, c.status)
		}
	}
	for name, c := range map[string]struct {
		status int
		patch  string
		header string
	}{
		"add":          {http.StatusOK, `[{"op": "add", "path": "/tags", "value": ["y"]}]`, asPatch},
		"replace":      {http.StatusOK, `[{"op": "replace", "path": "/name", "value": "again"}]`, asPatch + "+json"},
		"remove":       {http.StatusOK, `[{"op": "add", "path": "/tags", "value": []}, {"op": "remove", "path": "/tags"}]`, asPatch},
		"move":         {http.StatusOK, `[{"op": "add", "path": "/tags", "value": ["a", "b"]}, {"op": "move", "from": "/tags/0", "path": "/tags/1"}]`, asPatch},
		"a true test":  {http.StatusOK, `[{"op": "test", "path": "/type", "value": "assemblyTemplate"}]`, asPatch},
		"a false test": {http.StatusConflict, `[{"op": "test", "path": "/type", "value": "x"}]`, asPatch},
		"immutable":    {http.StatusForbidden, `[{"op": "replace", "path": "/uri", "value": "x"}]`, asPatch},
		"no patch":     {http.StatusBadRequest, `{"op": "add"}`, asPatch},
		"no path":      {http.StatusBadRequest, `[{"op": "remove", "path": "/nothing"}]`, asPatch},
		"no operation": {http.StatusBadRequest, `[{"op": "dance", "path": "/name"}]`, asPatch},
		"another type": {http.StatusUnsupportedMediaType, `[]`, asJSON},
	} {
		if a := b.as("alice", "PATCH", template, c.patch, c.header); a.status != c.status {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.text, c.status)
		}
	}
}

// TestExport takes templates and assemblies to another platform.
func TestExport(t *testing.T) {
	b := newBed(t)
	template := b.template()
	assembly := b.want(http.StatusCreated, "POST", template, `{"name": "mine"}`, asJSON)
	if assembly.object["name"] != "mine" {
		t.Errorf("%s", assembly.text)
	}
	for _, from := range []string{template, assembly.header.Get("Location")} {
		for _, format := range []string{"", "?format=tgz", "?format=zip"} {
			uri := b.settledOr(from)["org.testbed:pdpUri"].(string)
			a := b.want(http.StatusOK, "GET", uri+format, "")
			p, err := pdp.Open(a.text)
			if err != nil || !strings.Contains(string(p.Plan), "name: web") || len(p.Names()) != 3 {
				t.Errorf("%s%s: %v, %v", from, format, err, p)
			}
			b.want(http.StatusCreated, "POST", "/platform", string(a.text), "Content-Type: "+a.header.Get("Content-Type"))
		}
	}
	b.want(http.StatusBadRequest, "GET", template+"/pdp?format=rar", "")
}

func (b *bed) settledOr(at string) map[string]any {
	if strings.Contains(at, "/assemblies/") {
		return b.settled(at).object
	}
	return b.want(http.StatusOK, "GET", at, "").object
}

// TestNoRoom refuses an assembly that does not fit now, and leaves nothing of
// it.
func TestNoRoom(t *testing.T) {
	b := newBed(t)
	template := b.template()
	for range 2 {
		b.want(http.StatusCreated, "POST", template, "")
	}
	if a := b.as("alice", "POST", template, ""); a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.text), "/msg/allocation/insufficient") {
		t.Errorf("%d %s", a.status, a.text)
	}
	if got := b.want(http.StatusOK, "GET", "/platform", "").hrefs("assemblies"); len(got) != 2 {
		t.Errorf("assemblies %v", got)
	}
}
