package rest_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/aggregate"
	"croft/aggregate/aggregatetest"
	"croft/aggregate/aggregatetest/surroundings"
	"croft/credentials"
	"croft/languages"
	language "croft/languages/camp"
	"croft/languages/radl"
	"croft/languages/zapp"
	"croft/rest"
	"croft/rest/camp"
	"croft/rest/im"
	"croft/rest/resttest"
	"croft/rest/zoe"
	"croft/rspec"
	"croft/slivers"
	"croft/urn"
)

const doorsInventory = `
authority: example.org
images:
  - {name: web, url: "registry:5000/web:1", command: serve}
sliver_types:
  - {name: simulated, driver: simulated, cores: 1, memory: 1GiB, disk: 1GiB, images: [web]}
hosts:
  - {name: host1, sliver_types: [simulated], cores: 60, memory: 64GiB, disk: 90GiB, shared: true}
`

func TestMain(m *testing.M) {
	resttest.Decode()
	os.Exit(m.Run())
}

// Every face gives anybody the description of its API.
func TestOpenAPI(t *testing.T) {
	h := newHouse(t, nil)
	for _, face := range []string{"im", "zoe", "camp"} {
		r, err := h.server.Client().Get(h.server.URL + "/" + face + "/openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Paths   map[string]any
			Servers []struct{ URL string }
		}
		err = json.NewDecoder(r.Body).Decode(&document)
		r.Body.Close()
		if err != nil || r.StatusCode != http.StatusOK || len(document.Paths) < 10 || document.Servers[0].URL != "/"+face {
			t.Errorf("%s: %s, %v, %d paths", face, r.Status, err, len(document.Paths))
		}
	}
}

// house is a site with all of its doors.
type house struct {
	*testing.T
	service    *aggregatetest.Aggregate
	executions *zoe.Face
	server     *httptest.Server
	client     *http.Client
	records    string
	clock      *surroundings.Clock
}

func newHouse(t *testing.T, c *surroundings.Clock) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{T: t, records: filepath.Join(dir, "rest"), clock: c}
	now := time.Now
	if c != nil {
		now = c.Now
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	h.service = aggregatetest.New(t, aggregatetest.Config{
		Inventory: doorsInventory, Languages: languages.Set{rspec.Language{}, radl.Language{}, zapp.Language{}, language.Language{}}, Clock: now, Log: log,
		Leases: aggregate.Leases{Allocated: time.Hour, AllocatedMax: time.Hour, Provisioned: time.Hour, ProvisionedMax: 48 * time.Hour},
	})
	known := resttest.Accounts(t, now, "alice", "bob")
	records := func(face string) *rest.Records { return resttest.Records(t, filepath.Join(h.records, face)) }
	var err error
	h.executions, err = zoe.New(zoe.Config{Service: h.service.Service, Accounts: known, Records: records("zoe"), Path: "/zoe", Every: time.Hour, Clock: now, Random: rand.Reader, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	platform, err := camp.New(camp.Config{Service: h.service.Service, Accounts: known, Records: records("camp"), Path: "/camp", Clock: now, Random: rand.Reader, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	infrastructures := im.New(im.Config{Service: h.service.Service, Accounts: known, Records: records("im"), Path: "/im", Clock: now, Random: rand.Reader, Log: log})
	h.server = httptest.NewServer(rest.Handler(rest.Config{
		Faces: map[string]http.Handler{"/im": infrastructures, "/zoe": h.executions, "/camp": platform},
		Log:   log, Clock: now, BodyBytes: 1 << 20, Concurrent: 8,
	}))
	t.Cleanup(h.server.Close)
	h.client = &http.Client{Transport: http.DefaultTransport}
	for prefix, describe := range map[string]func() ([]byte, error){"/im": im.OpenAPI, "/zoe": zoe.OpenAPI, "/camp": camp.OpenAPI} {
		description, err := describe()
		if err != nil {
			t.Fatal(err)
		}
		h.client.Transport = resttest.New(t, description, prefix, h.client.Transport)
	}
	return h
}

// call makes a request; at is a path or an address.
func (h *house) call(who, method, at, body string, headers ...string) (int, []byte) {
	h.Helper()
	if strings.HasPrefix(at, "/") {
		at = h.server.URL + at
	}
	r, err := http.NewRequestWithContext(h.Context(), method, at, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	r.SetBasicAuth(who, resttest.Password(who))
	for _, s := range headers {
		name, value, _ := strings.Cut(s, ": ")
		r.Header.Set(name, value)
	}
	got, err := h.client.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		h.Fatal(err)
	}
	return got.StatusCode, text
}

// must reads the answer to a request that has to be granted into v.
func (h *house) must(who, method, at, body string, v any, headers ...string) {
	h.Helper()
	status, text := h.call(who, method, at, body, append(headers, "Accept: application/json")...)
	if status/100 != 2 {
		h.Fatalf("%s %s of %s: %d %s", method, at, who, status, text)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(text, v); err != nil {
		h.Fatalf("%s %s of %s: %v in %s", method, at, who, err, text)
	}
}

// await waits for something that comes by itself.
func (h *house) await(what string, so func() bool) {
	h.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); {
		if time.Now().After(end) {
			h.Fatalf("%s: not within 20 s", what)
		}
		h.executions.Schedule(h.Context())
		changed := h.service.Changed()
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond): // records change without the store
		}
	}
}

// thing is a slice as a door shows it.
type thing struct {
	at    string // its address there
	nodes []string
	up    bool // all of them are ready
	ended bool // it is shown as something that has been
	goes  bool // or as something that ends
}

// door is a way in.
type door struct {
	name string
	// open makes a slice of alice's with the nodes that nodes names.
	open  func(*house) urn.URN
	nodes string
	// list shows somebody's slices by their URNs.
	list func(h *house, who string) map[string]thing
	// look is what somebody gets who asks for a thing by its address.
	look func(h *house, who, at string) int
	end  func(h *house, at string)
}

func doors() []door {
	return []door{
		{"im", openIM, "one-0 one-1", listIM, lookHTTP, endHTTP},
		{"zoe", openZoe, "web0 web1", listZoe, lookHTTP, endHTTP},
		{"camp", openCAMP, "node-0 node-1", listCAMP, lookHTTP, endHTTP},
		{"am", openAM, "a b", listAM, lookAM, endAM},
	}
}

func lookHTTP(h *house, who, at string) int {
	status, _ := h.call(who, http.MethodGet, at, "")
	return status
}

func endHTTP(h *house, at string) { h.Helper(); h.must("alice", http.MethodDelete, at, "", nil) }

func openIM(h *house) urn.URN {
	h.Helper()
	status, at := h.call("alice", http.MethodPost, "/im/infrastructures", "network n ()\nsystem one (net_interface.0.connection = 'n')\ndeploy one 2\n")
	if status != http.StatusOK {
		h.Fatalf("making an infrastructure: %d %s", status, at)
	}
	return sliceIM(h, "alice", string(at))
}

func sliceIM(h *house, who, at string) urn.URN {
	h.Helper()
	var data struct{ Data struct{ Slice string } }
	h.must(who, http.MethodGet, at+"/data", "", &data)
	return urn.MustParse(data.Data.Slice)
}

func listIM(h *house, who string) map[string]thing {
	h.Helper()
	var list struct {
		URIs []struct{ URI string } `json:"uri-list"`
	}
	h.must(who, http.MethodGet, "/im/infrastructures", "", &list)
	all := map[string]thing{}
	for _, u := range list.URIs {
		x := thing{at: u.URI}
		var state struct {
			State struct {
				State    string            `json:"state"`
				Machines map[string]string `json:"vm_states"`
			} `json:"state"`
		}
		h.must(who, http.MethodGet, u.URI+"/state", "", &state)
		x.up = state.State.State == "configured"
		for number := range state.State.Machines {
			var of struct {
				Name string `json:"instance_name"`
			}
			h.must(who, http.MethodGet, u.URI+"/vms/"+number+"/instance_name", "", &of)
			x.nodes = append(x.nodes, of.Name)
		}
		// What it tells as RADL is right, and deploys the same number.
		_, text := h.call(who, http.MethodGet, u.URI+"/radl", "", "Accept: text/plain")
		document, _, err := radl.Parse(text, nil)
		if err != nil {
			h.Fatalf("the RADL of %s: %v\n%s", u.URI, err, text)
		}
		deployed := 0
		for _, item := range document.Items {
			if d, ok := item.(*radl.Deploy); ok {
				deployed += int(d.Number.Num)
			}
		}
		if deployed != len(x.nodes) {
			h.Errorf("the RADL of %s deploys %d machines, there are %v:\n%s", u.URI, deployed, x.nodes, text)
		}
		all[sliceIM(h, who, u.URI).String()] = x
	}
	return all
}

const doorsZApp = `{"name": "app", "version": 3, "will_end": false, "size": 1, "services": [
  {"name": "web", "image": "registry:5000/web:1", "monitor": true, "total_count": 2, "essential_count": 2, "startup_order": 0,
   "command": null, "resources": {"memory": {"min": 1048576, "max": null}, "cores": {"min": 1, "max": null}}, "volumes": [], "environment": [], "ports": []}]}`

func openZoe(h *house) urn.URN {
	h.Helper()
	var made struct {
		ID int `json:"execution_id"`
	}
	h.must("alice", http.MethodPost, "/zoe/api/0.7/execution", `{"name": "mine", "application": `+doorsZApp+`}`, &made)
	h.executions.Schedule(h.Context())
	var e struct{ Slice string }
	h.must("alice", http.MethodGet, fmt.Sprintf("/zoe/api/0.7/execution/%d", made.ID), "", &e)
	return urn.MustParse(e.Slice)
}

func listZoe(h *house, who string) map[string]thing {
	h.Helper()
	h.executions.Schedule(h.Context())
	var list map[string]struct {
		ID          int
		Slice       string
		Status      string
		Services    []int
		Description json.RawMessage
	}
	h.must(who, http.MethodGet, "/zoe/api/0.7/execution", "", &list)
	all := map[string]thing{}
	for _, e := range list {
		x := thing{at: fmt.Sprintf("/zoe/api/0.7/execution/%d", e.ID), up: e.Status == "running", ended: e.Status == "terminated", goes: e.Status == "cleaning up"}
		if _, earlier := all[e.Slice]; earlier && x.ended {
			continue // a slice of the same name ended before
		}
		var app struct{ Services []map[string]any }
		if err := json.Unmarshal(e.Description, &app); err != nil || len(app.Services) == 0 {
			h.Errorf("the description of execution %d: %v\n%s", e.ID, err, e.Description)
		}
		for _, id := range e.Services {
			var service struct{ Name string }
			h.must(who, http.MethodGet, fmt.Sprintf("/zoe/api/0.7/service/%d", id), "", &service)
			x.nodes = append(x.nodes, service.Name)
		}
		all[e.Slice] = x
	}
	return all
}

const doorsPlan = `camp_version: CAMP 1.1
name: web
artifacts:
  - id: serve
    artifact_type: org.testbed:script
    content: { data: IyEvYmluL3NoCg== }
    requirements:
      - { requirement_type: "org.testbed:HostOn", fulfillment: id:node }
services:
  - id: node
    characteristics:
      - { characteristic_type: "org.testbed:Node", "org.testbed:count": 2 }
`

func openCAMP(h *house) urn.URN {
	h.Helper()
	var template, assembly struct {
		URI   string `json:"uri"`
		Slice string `json:"org.testbed:slice"`
	}
	h.must("alice", http.MethodPost, "/camp/platform", doorsPlan, &template, "Content-Type: application/x-yaml")
	h.must("alice", http.MethodPost, template.URI, "", &assembly)
	if assembly.Slice == "" {
		h.must("alice", http.MethodGet, assembly.URI, "", &assembly)
	}
	return urn.MustParse(assembly.Slice)
}

func listCAMP(h *house, who string) map[string]thing {
	h.Helper()
	type link struct{ Href string }
	var platform struct{ Assemblies []link }
	h.must(who, http.MethodGet, "/camp/platform", "", &platform)
	all := map[string]thing{}
	for _, l := range platform.Assemblies {
		var a struct {
			Slice      string `json:"org.testbed:slice"`
			State      struct{ State string }
			Resource   struct{ State string } `json:"resourceState"`
			Components []link                 `json:"applicationComponents"`
			Template   link                   `json:"assemblyTemplate"`
		}
		if status, text := h.call(who, http.MethodGet, l.Href, ""); status != http.StatusNotFound { // it may have gone meanwhile
			if err := json.Unmarshal(text, &a); err != nil || status != http.StatusOK {
				h.Fatalf("%s of %s: %d %s", l.Href, who, status, text)
			}
		}
		if a.Slice == "" {
			continue // on its way out
		}
		h.must(who, http.MethodGet, a.Template.Href, "", nil)
		x := thing{at: l.Href, up: a.Resource.State == "RUNNING"}
		for _, part := range a.Components {
			var component struct {
				On []link `json:"platformComponents"`
			}
			h.must(who, http.MethodGet, part.Href, "", &component)
			for _, on := range component.On {
				var node struct{ Name string }
				h.must(who, http.MethodGet, on.Href, "", &node)
				x.nodes = append(x.nodes, node.Name)
			}
		}
		all[a.Slice] = x
	}
	return all
}

const doorsRSpec = `<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">
  <node client_id="a"><sliver_type name="simulated"/><interface client_id="a:0"/></node>
  <node client_id="b"><sliver_type name="simulated"/><interface client_id="b:0"/></node>
  <link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link>
</rspec>`

// byCredential is alice with a credential for a slice of the site's slice
// authority, and what the AM API lets her do besides.
func (h *house) byCredential(slice urn.URN) *credentials.Principal {
	now := time.Now
	if h.clock != nil {
		now = h.clock.Now
	}
	return credentials.LocalWith(alice, now, append(rest.Rights("example.org", alice), credentials.LocalRight{Target: slice, Privileges: []string{credentials.All}}))
}

var amSlice = urn.MustParse("urn:publicid:IDN+example.org+slice+mine")

func openAM(h *house) urn.URN {
	h.Helper()
	p := h.byCredential(amSlice)
	got, err := h.service.Allocate(h.Context(), p, amSlice, []byte(doorsRSpec), aggregate.AllocateOptions{})
	if err == nil {
		_, err = h.service.Provision(h.Context(), p, aggregate.Target{Slice: amSlice}, aggregate.ProvisionOptions{Start: true, Version: got.Version})
	}
	if err != nil {
		h.Fatal(err)
	}
	return amSlice
}

func listAM(h *house, who string) map[string]thing {
	h.Helper()
	member := map[string]urn.URN{"alice": alice, "bob": bob}[who]
	held, err := h.service.SlicesOf(h.Context(), member, rest.Authorities("example.org", member))
	if err != nil {
		h.Fatal(err)
	}
	all := map[string]thing{}
	for _, s := range held {
		x := thing{at: s.URN.String(), up: true}
		list, err := h.service.Status(h.Context(), h.byCredential(amSlice), aggregate.Target{Slice: s.URN}, true)
		if err != nil {
			h.Fatal(err)
		}
		for _, o := range list {
			if o.Sliver.Node == nil {
				continue
			}
			x.nodes = append(x.nodes, string(o.Sliver.ClientID))
			x.up = x.up && o.Sliver.Operational == slivers.Ready
			for _, step := range o.Startup {
				x.up = x.up && step.State.Ended()
			}
		}
		all[s.URN.String()] = x
	}
	return all
}

func lookAM(h *house, who, at string) int {
	p := h.byCredential(amSlice)
	if who == "bob" {
		p = rest.PrincipalOf("example.org", bob, time.Now)
	}
	_, err := h.service.Status(h.Context(), p, aggregate.Target{Slice: urn.MustParse(at)}, true)
	if err != nil {
		return http.StatusNotFound
	}
	return http.StatusOK
}

func endAM(h *house, at string) {
	h.Helper()
	u := urn.MustParse(at)
	if _, err := h.service.Delete(h.Context(), h.byCredential(amSlice), aggregate.Target{Slice: u}, true); err != nil {
		h.Fatal(err)
	}
}

// What is made by one door is seen and ended by every other, by its member
// alone; and the first door knows that it has ended.
func TestDoors(t *testing.T) {
	for _, first := range doors() {
		for _, second := range doors() {
			t.Run(first.name+" "+second.name, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, nil)
				slice := first.open(h).String()
				var seen thing
				h.await("what "+first.name+" has made is ready by "+second.name, func() bool {
					seen = second.list(h, "alice")[slice]
					return seen.up
				})
				slices.Sort(seen.nodes)
				if got := strings.Join(seen.nodes, " "); got != first.nodes {
					t.Errorf("%s shows the nodes %s, want %s", second.name, got, first.nodes)
				}
				if n := len(second.list(h, "bob")); n > 0 {
					t.Errorf("bob sees %d slices", n)
				}
				if got := second.look(h, "alice", seen.at); got != http.StatusOK {
					t.Errorf("alice gets %d", got)
				}
				if got := second.look(h, "bob", seen.at); got != http.StatusNotFound {
					t.Errorf("bob gets %d", got)
				}
				second.end(h, seen.at)
				for _, d := range doors() {
					h.await(d.name+" knows that it has ended", func() bool {
						x, there := d.list(h, "alice")[slice]
						return !there || x.ended
					})
				}
				h.await("nothing is left", func() bool {
					left, err := h.service.Slivers(h.Context(), urn.URN{})
					return err == nil && len(left) == 0
				})
				for _, d := range doors() {
					d.list(h, "alice")
				}
				h.noHalves()
			})
		}
	}
}

// noHalves checks that no face remembers anything that is not.
func (h *house) noHalves() {
	h.Helper()
	err := filepath.WalkDir(h.records, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.Contains(path, "/im/") || strings.HasPrefix(d.Name(), "assembly-")) {
			h.Errorf("there is still a record, %s", path)
		}
		return err
	})
	if err != nil {
		h.Error(err)
	}
}
