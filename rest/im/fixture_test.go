package im_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/aggregate/aggregatetest"
	"croft/aggregate/aggregatetest/surroundings"
	"croft/languages"
	"croft/languages/radl"
	"croft/languages/tosca"
	"croft/rest"
	"croft/rest/im"
	"croft/rest/resttest"
	"croft/rspec"
)

const testInventory = `
authority: example.org
images:
  - name: debian12
    os: Linux
    distribution: Debian
    version: "12"
sliver_types:
  - name: simulated
    driver: simulated
    cores: 1
    memory: 1GiB
    disk: 1GiB
    images: [debian12]
hosts:
  - name: host1
    sliver_types: [simulated]
    cores: 40
    memory: 40GiB
    disk: 400GiB
    shared: true
`

func TestMain(m *testing.M) {
	resttest.Decode()
	os.Exit(m.Run())
}

// The secrets that may never be seen again.
const (
	alicePassword = "alice's password"
	bobPassword   = "bob's password"
	cloudSecret   = "secret-of-another-cloud"
)

// bed is the IM API over HTTP, on simulated nodes.
type bed struct {
	*testing.T
	service *aggregatetest.Aggregate
	server  *httptest.Server
	client  *http.Client
	dir     string
	log     surroundings.Log
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, dir: t.TempDir()}
	log := slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b.service = aggregatetest.New(t, aggregatetest.Config{
		Inventory: testInventory, Languages: languages.Set{rspec.Language{}, radl.Language{}, tosca.Language{}}, Entrances: new(surroundings.Entrances), Log: log,
	})
	face := im.New(im.Config{Service: b.service.Service, Accounts: resttest.Accounts(t, time.Now, "alice", "bob"), Records: resttest.Records(t, filepath.Join(b.dir, "rest")), Path: "/im", Clock: time.Now, Random: rand.Reader, Log: log})
	b.server = httptest.NewServer(rest.Handler(rest.Config{
		Faces: map[string]http.Handler{"/im": face}, Log: log, Clock: time.Now, BodyBytes: 100 << 10, Concurrent: 8,
	}))
	t.Cleanup(b.server.Close)
	description, err := im.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	b.client = &http.Client{Transport: resttest.New(t, description, "/im", http.DefaultTransport)}
	return b
}

// line is the header as im-client sends it, for a user.
func line(user, password string) string {
	return fmt.Sprintf(`id = one;type = OpenNebula;host = server:2633;username = u;password = %s;\nid = gce;type = GCE;private_key = line1\\nline2;\ntype = InfrastructureManager;username = %s;password = %s;\n`,
		cloudSecret, user, password)
}

// answer is what a call got.
type answer struct {
	status int
	header http.Header
	body   string
}

// call makes one; set may change it.
func (b *bed) call(method, path, body string, set ...func(*http.Request)) answer {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", line("alice", alicePassword))
	for _, s := range set {
		s(r)
	}
	got, err := b.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{got.StatusCode, got.Header, string(text)}
}

// must is call for what has to be answered with 200.
func (b *bed) must(method, path, body string, set ...func(*http.Request)) answer {
	b.Helper()
	a := b.call(method, path, body, set...)
	if a.status != http.StatusOK {
		b.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

var asJSON = header("Accept", "application/json")

func asBob(r *http.Request) { r.SetBasicAuth("bob", bobPassword) }

// create makes an infrastructure and returns its path.
func (b *bed) create(document string) string {
	b.Helper()
	a := b.must(http.MethodPost, "/im/infrastructures", document)
	path, ok := strings.CutPrefix(a.body, b.server.URL)
	if !ok || strings.HasSuffix(a.body, "\n") || !strings.HasSuffix(path, "/"+a.header.Get("InfID")) || a.header.Get("Content-Type") != "text/uri-list" {
		b.Fatalf("creating: %q, header %v", a.body, a.header)
	}
	return path
}

// state waits until an infrastructure is neither pending nor running, and
// returns what it is and what its machines are.
func (b *bed) state(path string, want string) map[string]string {
	b.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		var got struct {
			State struct {
				State    string            `json:"state"`
				Machines map[string]string `json:"vm_states"`
			} `json:"state"`
		}
		a := b.must(http.MethodGet, path+"/state", "", asJSON)
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			b.Fatalf("state %s: %v", a.body, err)
		}
		if got.State.State == want {
			return got.State.Machines
		}
		if time.Now().After(deadline) {
			b.Fatalf("state %s, want %s", a.body, want)
		}
		time.Sleep(20 * time.Millisecond) // between two questions, as clients do
	}
}

// slices are those that the store knows with slivers.
func (b *bed) slivers() int {
	b.Helper()
	all, err := b.service.Store.All(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return len(all)
}

// noSecrets checks that nothing secret is in the log or in a file.
func (b *bed) noSecrets() {
	b.Helper()
	look := func(where string, text []byte) {
		for _, secret := range []string{alicePassword, bobPassword, cloudSecret, "PRIVATE KEY"} {
			if bytes.Contains(text, []byte(secret)) {
				b.Errorf("%s has a secret, %q", where, secret)
			}
		}
	}
	look("the log", []byte(b.log.String()))
	err := filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		look(path, text)
		return err
	})
	if err != nil {
		b.Error(err)
	}
}
