package im_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/aggregate"
	"croft/drivers"
	"croft/drivers/simulated"
	"croft/inventory"
	"croft/languages"
	"croft/languages/radl"
	"croft/languages/tosca"
	"croft/mapping"
	"croft/rest"
	"croft/rest/im"
	"croft/rest/resttest"
	"croft/rspec"
	"croft/slivers"
	"croft/slivers/sqlite"
	"croft/urn"
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
	alicePassword = "alice's own password"
	bobPassword   = "bob's own password"
	cloudSecret   = "secret-of-another-cloud"
)

// loginDriver takes logins to simulated nodes, which it does not connect.
type loginDriver struct{ *simulated.Driver }

func (loginDriver) TakesLogins() bool { return true }

// entrances gives nodes ports and listens nowhere.
type entrances struct {
	mu   sync.Mutex
	next int
}

func (e *entrances) Open(_ context.Context, _ urn.URN, port int, _ func(context.Context) (net.Conn, error)) (slivers.Login, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if port == 0 {
		e.next++
		port = 22000 + e.next
	}
	return slivers.Login{Host: "192.0.2.1", Port: port}, nil
}

func (*entrances) Close(urn.URN) {}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// bed is the IM API over HTTP, on simulated nodes.
type bed struct {
	*testing.T
	service *aggregate.Service
	store   slivers.Store
	server  *httptest.Server
	client  *http.Client
	dir     string
	log     buffer
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, dir: t.TempDir()}
	log := slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	driver, err := simulated.New(simulated.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if b.store, err = sqlite.Open(t.Context(), filepath.Join(b.dir, "croft.db"), time.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.store.Close() })
	snapshot, err := inventory.Parse([]byte(testInventory), "inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.service = aggregate.New(aggregate.Config{
		Inventory: func() *inventory.Snapshot { return snapshot }, Languages: languages.Set{rspec.Language{}, radl.Language{}, tosca.Language{}},
		Mapper: new(mapping.Optimizer), Store: b.store, Drivers: map[string]drivers.Driver{"simulated": loginDriver{driver}}, Entrances: &entrances{},
		Leases: aggregate.Leases{Allocated: 10 * time.Minute, AllocatedMax: 2 * time.Hour, Provisioned: 24 * time.Hour, ProvisionedMax: 7 * 24 * time.Hour},
		Clock:  time.Now, Random: rand.Reader, Log: log,
	})
	t.Cleanup(b.service.Close)
	if err := b.service.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list []rest.Account
	for name, password := range map[string]string{"alice": alicePassword, "bob": bobPassword} {
		hash, err := rest.HashPassword(password, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rest.Account{Name: name, Password: hash, Member: urn.MustParse("urn:publicid:IDN+example.org+user+" + name)})
	}
	accounts, err := rest.NewAccounts(list, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	records, err := rest.OpenRecords(filepath.Join(b.dir, "rest"))
	if err != nil {
		t.Fatal(err)
	}
	face := im.New(im.Config{Service: b.service, Accounts: accounts, Records: records, Path: "/im", Clock: time.Now, Random: rand.Reader, Log: log})
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
	all, err := b.store.All(b.Context())
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
