package am_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/aggregate"
	"croft/aggregate/aggregatetest"
	"croft/aggregate/aggregatetest/surroundings"
	"croft/am"
	"croft/credentials"
	"croft/drivers/simulated"
	"croft/federation"
	"croft/internal/openssl"
	"croft/urn"
	"croft/xmlrpc"
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
    cores: 40
    memory: 40GiB
    disk: 400GiB
    shared: true
    exclusive: true
  - name: host2
    sliver_types: [simulated]
    cores: 40
    memory: 40GiB
    disk: 400GiB
    shared: true
    exclusive: true
`

// patience is how long anything may take here before a test gives up.
const patience = time.Minute

// shared is the federation of all tests: its keys take a while to make.
var shared struct {
	dir string
	*federation.Federation
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "croft-am-test-*")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		shared.dir = dir
		shared.Federation, _, err = federation.Init(dir, federation.Options{
			Authority: "example.org", Manager: urn.MustParse("urn:publicid:IDN+example.org+authority+cm"), Hosts: []string{"localhost", "127.0.0.1"},
		}, time.Now)
		if err != nil {
			panic(err)
		}
		for _, name := range []string{"alice", "bob"} {
			if _, _, err := shared.AddMember(name, name+"@example.org"); err != nil {
				panic(err)
			}
		}
		return m.Run()
	}())
}

// bed is an aggregate of simulated nodes that serves the AM API over TLS.
type bed struct {
	testing.TB
	*aggregate.Service
	clock   *surroundings.Clock
	address string // host:port of the listener
	front   string // URL of the listener for a reverse proxy, and its header
	log     surroundings.Log
}

const frontHeader = "X-Client-Cert"

// settings say how a bed differs from the usual.
type settings struct {
	concurrentCalls int
	requestBytes    int64
	operations      simulated.Config
	inventory       string // "" for testInventory
}

func newBed(t testing.TB, s settings) *bed {
	t.Helper()
	b := &bed{TB: t, clock: surroundings.GoingClock()}
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	trust, err := credentials.OpenTrust(filepath.Join(shared.dir, "trusted"), credentials.TrustOptions{Now: b.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server logged:\n%s", b.log.String())
		}
	})
	b.Service = aggregatetest.New(t, aggregatetest.Config{
		Inventory: cmp.Or(s.inventory, testInventory), Simulated: s.operations, Entrances: new(surroundings.Entrances), Clock: b.clock.Now, Log: log,
	}).Service
	if s.concurrentCalls == 0 {
		s.concurrentCalls = 64
	}
	if s.requestBytes == 0 {
		s.requestBytes = 10 << 20
	}
	api := am.New(am.Config{
		Service: b.Service, Trust: trust, Verifier: credentials.NewVerifier(trust, nil), Log: log, Clock: b.clock.Now,
		RequestBytes: s.requestBytes, Nesting: 64, ConcurrentCalls: s.concurrentCalls, URL: "https://am.example.org:12369/am/3.0",
	})
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = plain.Addr().String()
	secure, err := openssl.NewListener(plain, &openssl.ServerConfig{CertificatePEM: read(t, "pki/server.pem"), KeyPEM: read(t, "pki/server-key.pem")})
	if err != nil {
		t.Fatal(err)
	}
	b.serve(secure, api.Handler(am.FromTLS))
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.front = "http://" + front.Addr().String()
	b.serve(front, api.Handler(am.FromHeader(frontHeader)))
	return b
}

func (b *bed) serve(l net.Listener, h http.Handler) {
	s := &http.Server{Handler: h, ConnContext: openssl.ConnContext}
	go s.Serve(l)
	b.Cleanup(func() { s.Close() })
}

// read reads a file of the federation.
func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(shared.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// user is a member who calls one version of the API.
type user struct {
	*bed
	name string
	path string
	rpc  *xmlrpc.Client
}

// as returns a member as a caller.
func (b *bed) as(member, path string) *user {
	b.Helper()
	return b.with(path, read(b, "members/"+member+"/cert.pem"), read(b, "members/"+member+"/key.pem"), member)
}

// with returns whoever has a certificate and key as a caller.
func (b *bed) with(path string, certificate, key []byte, name string) *user {
	b.Helper()
	return b.at(b.address, path, certificate, key, name)
}

// at is with, at another address.
func (b *bed) at(address, path string, certificate, key []byte, name string) *user {
	b.Helper()
	roots, err := openssl.ParsePEM(read(b, "trusted/ca.pem"))
	if err != nil {
		b.Fatal(err)
	}
	tls := &openssl.ClientConfig{CertificatePEM: certificate, KeyPEM: key, Roots: roots}
	transport := &http.Transport{DialTLSContext: tls.DialTLSContext, MaxIdleConnsPerHost: 100}
	b.Cleanup(transport.CloseIdleConnections)
	return &user{bed: b, name: name, path: path, rpc: &xmlrpc.Client{
		URL: "https://" + address + path, HTTP: &http.Client{Transport: transport},
		Limits: xmlrpc.Limits{Bytes: 64 << 20}, Extensions: xmlrpc.Extensions{Nil: true},
	}}
}

// reply is the struct that every call returns.
type reply struct {
	code   int
	value  any
	output string
	raw    map[string]any
}

// call makes a call and fails the test when there is no code struct.
func (u *user) call(method string, params ...any) reply {
	u.Helper()
	r, err := u.try(method, params...)
	if err != nil {
		u.Fatalf("%s: %v", method, err)
	}
	return r
}

func (u *user) try(method string, params ...any) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := u.rpc.Call(ctx, method, params...)
	if err != nil {
		return reply{}, err
	}
	r := reply{}
	var ok bool
	if r.raw, ok = got.(map[string]any); !ok {
		return r, fmt.Errorf("the reply is a %T", got)
	}
	name := "geni_code"
	if u.path == "/am/faa1" {
		name = ":code"
	}
	code, _ := r.raw["code"].(map[string]any)
	if r.code, ok = code[name].(int); !ok {
		return r, fmt.Errorf("no %s in the reply %v", name, r.raw)
	}
	r.value = r.raw["value"]
	if r.output, ok = r.raw["output"].(string); !ok {
		return r, fmt.Errorf("no output in the reply %v", r.raw)
	}
	return r, nil
}

// want makes a call that is to be answered with a code.
func (u *user) want(code int, method string, params ...any) reply {
	u.Helper()
	r := u.call(method, params...)
	if r.code != code {
		u.Errorf("%s at %s: code %d (%s), want %d", method, u.path, r.code, r.output, code)
	}
	if r.code != 0 && r.output == "" {
		u.Errorf("%s at %s: code %d without a word", method, u.path, r.code)
	}
	return r
}

// slice makes a slice and returns its URN and a member's credentials for it,
// in the shape of the version.
func (u *user) slice(name string) (string, []any) {
	u.Helper()
	m, err := shared.Member(u.name)
	if err != nil {
		u.Fatal(err)
	}
	addingSlices.Lock()
	defer addingSlices.Unlock()
	s, _, err := shared.AddSlice(name, m, 30*24*time.Hour)
	if err != nil {
		u.Fatal(err)
	}
	credential, err := os.ReadFile(federation.CredentialFile(shared.dir, name, u.name))
	if err != nil {
		u.Fatal(err)
	}
	return s.URN.String(), u.credentials(string(credential))
}

var addingSlices sync.Mutex

// credentials puts credentials into the shape of the version.
func (u *user) credentials(documents ...string) []any {
	list := make([]any, len(documents))
	for i, d := range documents {
		switch u.path {
		case "/am/2.0":
			list[i] = d
		case "/am/faa1":
			list[i] = map[string]any{":type": "geni_sfa", ":version": "3", ":value": d}
		default:
			list[i] = map[string]any{"geni_type": "geni_sfa", "geni_version": "3", "geni_value": d}
		}
	}
	return list
}

func (u *user) userCredentials() []any {
	u.Helper()
	return u.credentials(string(read(u, "members/"+u.name+"/user-credential.xml")))
}

type m = map[string]any

var geni3 = m{"type": "GENI", "version": "3"}

// options makes the options that most calls need, and more.
func options(more ...m) m {
	o := m{"geni_rspec_version": geni3}
	for _, x := range more {
		for k, v := range x {
			o[k] = v
		}
	}
	return o
}

const requestHead = `<?xml version="1.0"?><rspec type="request" xmlns="http://www.geni.net/resources/rspec/3">`

// nodes is a request for nodes.
func nodes(names ...string) string {
	var s strings.Builder
	s.WriteString(requestHead)
	for _, n := range names {
		fmt.Fprintf(&s, `<node client_id=%q exclusive="false"><sliver_type name="simulated"/><interface client_id="%s:if0"/></node>`, n, n)
	}
	s.WriteString("</rspec>")
	return s.String()
}

// sliverList reads geni_slivers, or the list that some calls return.
func sliverList(t testing.TB, value any) []m {
	t.Helper()
	if s, ok := value.(m); ok {
		value = s["geni_slivers"]
		if value == nil {
			value = s[":slivers"]
		}
	}
	list, ok := value.([]any)
	if !ok {
		t.Fatalf("no list of slivers in %v", value)
	}
	out := make([]m, len(list))
	for i, v := range list {
		out[i] = v.(m)
	}
	return out
}

// settle waits until no sliver of a slice changes by itself. It asks by version
// 3.
func (u *user) settle(slice string, creds []any) []m {
	u.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		list := sliverList(u, u.want(0, "Status", []any{slice}, creds, m{}).value)
		waiting := false
		for _, s := range list {
			if s["geni_allocation_status"] != "geni_provisioned" {
				continue
			}
			switch s["geni_operational_status"] {
			case "geni_ready", "geni_notready", "geni_failed":
			default:
				waiting = true
			}
		}
		if !waiting {
			return list
		}
		select {
		case <-ctx.Done():
			u.Fatalf("slivers do not settle: %v", list)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
