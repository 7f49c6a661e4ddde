package zoe_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/aggregate"
	"croft/aggregate/aggregatetest"
	"croft/aggregate/aggregatetest/surroundings"
	"croft/languages"
	"croft/languages/zapp"
	"croft/rest"
	"croft/rest/resttest"
	"croft/rest/zoe"
	"croft/urn"
)

const testInventory = `
authority: example.org
images:
  - {name: web, url: "registry:5000/zapps/web:1", command: serve}
  - {name: mute}
sliver_types:
  - {name: simulated, driver: simulated, cores: 1, memory: 1GiB, disk: 1GiB, images: [web, mute]}
hosts:
  - {name: host1, sliver_types: [simulated], cores: 4, memory: 64GiB, disk: 40GiB, shared: true}
`

// bed is a testbed of simulated nodes with Zoe's face, whose scheduler works
// when the test says so.
type bed struct {
	*testing.T
	server  *httptest.Server
	client  *http.Client
	service *aggregatetest.Aggregate
	clock   *surroundings.Clock
	records *rest.Records
	bySize  bool

	accounts *rest.Accounts
	log      *slog.Logger
	face     *zoe.Face
	handler  http.Handler
}

func newBed(t *testing.T, bySize bool) *bed {
	t.Helper()
	b := &bed{T: t, bySize: bySize, clock: surroundings.StandingClock(time.Now()), log: slog.New(slog.NewTextHandler(io.Discard, nil)), records: resttest.Records(t, t.TempDir())}
	b.service = aggregatetest.New(t, aggregatetest.Config{
		Inventory: testInventory, Languages: languages.Set{zapp.Language{}}, Clock: b.clock.Now, Log: b.log,
		Leases: aggregate.Leases{Allocated: time.Hour, AllocatedMax: time.Hour, Provisioned: time.Hour, ProvisionedMax: 48 * time.Hour},
	})
	b.accounts = resttest.Accounts(t, b.clock.Now, "alice", "bob")
	b.restart()
	b.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.handler.ServeHTTP(w, r) }))
	t.Cleanup(b.server.Close)
	description, err := zoe.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	b.client = &http.Client{Transport: resttest.New(t, description, "/zoe", b.server.Client().Transport)}
	return b
}

// restart makes the face anew from its records.
func (b *bed) restart() {
	b.Helper()
	var err error
	b.face, err = zoe.New(zoe.Config{Service: b.service.Service, Accounts: b.accounts, Records: b.records, Path: "/zoe", Version: "test",
		BySize: b.bySize, Every: time.Hour, Clock: b.clock.Now, Random: rand.Reader, Log: b.log})
	if err != nil {
		b.Fatal(err)
	}
	b.handler = rest.Handler(rest.Config{Faces: map[string]http.Handler{"/zoe": b.face}, Log: b.log, Clock: b.clock.Now, BodyBytes: 4 << 20, Concurrent: 8})
}

// answer is what came back.
type answer struct {
	status int
	reason string
	header http.Header
	text   []byte
	object map[string]any
}

func (b *bed) as(who, method, path, body string, headers ...string) answer {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.server.URL+"/zoe/api/0.7"+path, strings.NewReader(body))
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
	a := answer{status: got.StatusCode, reason: got.Status, header: got.Header}
	if a.text, err = io.ReadAll(got.Body); err != nil {
		b.Fatal(err)
	}
	_ = json.Unmarshal(a.text, &a.object) // not all are objects
	return a
}

// want makes a request of alice's that must have a status.
func (b *bed) want(status int, method, path, body string) answer {
	b.Helper()
	a := b.as("alice", method, path, body)
	if a.status != status {
		b.Fatalf("%s %s: %d %s, want %d", method, path, a.status, a.text, status)
	}
	return a
}

// app is a ZApp with one kind of service.
func app(essential, total, size int) string {
	return fmt.Sprintf(`{"name": "app", "version": 3, "will_end": false, "size": %d, "services": [
  {"name": "web", "image": "registry:5000/zapps/web:1", "monitor": true, "total_count": %d, "essential_count": %d, "startup_order": 0,
   "command": null, "resources": {"memory": {"min": 1048576, "max": null}, "cores": {"min": 1, "max": null}}, "volumes": [],
   "environment": [["ID", "{execution_id}"]], "ports": [{"name": "page", "protocol": "tcp", "port_number": 80, "url_template": "http://{ip_port}/", "proxy": false}]}]}`,
		size, total, essential)
}

// submit submits a ZApp of alice's and returns its number.
func (b *bed) submit(application string) int {
	b.Helper()
	a := b.want(http.StatusCreated, http.MethodPost, "/execution", `{"name": "mine", "application": `+application+`}`)
	id, ok := a.object["execution_id"].(float64)
	if !ok {
		b.Fatalf("no number: %s", a.text)
	}
	return int(id)
}

func (b *bed) show(id int) map[string]any {
	b.Helper()
	return b.want(http.StatusOK, http.MethodGet, fmt.Sprintf("/execution/%d", id), "").object
}

// services tells the states of an execution's services.
func (b *bed) services(id int) []string {
	b.Helper()
	var list []string
	for _, n := range b.show(id)["services"].([]any) {
		list = append(list, b.want(http.StatusOK, http.MethodGet, fmt.Sprintf("/service/%v", n), "").object["status"].(string))
	}
	return list
}

// until has the scheduler work until something is so.
func (b *bed) until(what string, is func() bool) {
	b.Helper()
	late := time.After(10 * time.Second)
	for {
		changed := b.service.Changed()
		b.face.Schedule(b.Context())
		if is() {
			return
		}
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond): // a pass goes on where the last one ended
		case <-late:
			b.Fatalf("never: %s; %s", what, b.as("alice", http.MethodGet, "/execution", "").text)
		}
	}
}

func (b *bed) untilStatus(id int, status string) {
	b.Helper()
	b.until(fmt.Sprintf("execution %d %s", id, status), func() bool { return b.show(id)["status"] == status })
}

func (b *bed) untilServices(id int, states ...string) {
	b.Helper()
	b.until(fmt.Sprintf("services of %d: %v", id, states), func() bool { return slices.Equal(b.services(id), states) })
}

// still checks that nothing changes any more.
func (b *bed) still(id int, states ...string) {
	b.Helper()
	for range 3 {
		b.face.Schedule(b.Context())
	}
	if got := b.services(id); !slices.Equal(got, states) {
		b.Fatalf("services of %d: %v, want %v", id, got, states)
	}
}

func slice(id int) urn.URN {
	return urn.MustParse(fmt.Sprintf("urn:publicid:IDN+example.org:zoe:u-alice+slice+execution-%d", id))
}

func contains(text []byte, part string) bool { return bytes.Contains(text, []byte(part)) }
