package aggregate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/credentials"
	"croft/drivers"
	"croft/drivers/namespace"
	"croft/drivers/simulated"
	"croft/federation"
	"croft/internal/openssl"
	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/request"
	"croft/rspec"
	"croft/slivers"
	"croft/urn"
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
    exclusive: true
  - name: host2
    sliver_types: [simulated]
    cores: 4
    memory: 4GiB
    disk: 40GiB
    shared: true
    exclusive: true
`

// shared is the federation of all tests: its many keys take a while to make.
var shared struct {
	dir        string
	federation *federation.Federation
}

func TestMain(m *testing.M) {
	namespace.Init()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "croft-aggregate-test-*")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		shared.dir = dir
		shared.federation, _, err = federation.Init(dir, federation.Options{
			Authority: "example.org", Manager: urn.MustParse("urn:publicid:IDN+example.org+authority+cm"), Hosts: []string{"localhost"},
		}, time.Now)
		if err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// bed is a federation with an aggregate of simulated nodes.
type bed struct {
	t          *testing.T
	dir        string
	clock      *surroundings.Clock
	federation *federation.Federation
	verifier   *credentials.Verifier
	trust      *credentials.Trust
	store      slivers.Store
	driver     *simulated.Driver
	entrances  *surroundings.Entrances
	inventory  string
	languages  languages.Set
	drivers    map[string]drivers.Driver
	*Service
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := newStoppedBed(t)
	b.start()
	return b
}

// newStoppedBed makes a bed whose service is still to be started.
func newStoppedBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, federation: shared.federation, dir: shared.dir, clock: surroundings.StandingClock(time.Now().Truncate(time.Second)),
		entrances: new(surroundings.Entrances), inventory: testInventory, languages: languages.Set{rspec.Language{}}}
	var err error
	if b.trust, err = credentials.OpenTrust(filepath.Join(b.dir, "trusted"), credentials.TrustOptions{Now: b.clock.Now}); err != nil {
		t.Fatal(err)
	}
	b.verifier = credentials.NewVerifier(b.trust, nil)
	if b.driver, err = simulated.New(simulated.Config{Now: b.clock.Now}); err != nil {
		t.Fatal(err)
	}
	b.store = surroundings.OpenStore(t, b.clock.Now)
	b.drivers = map[string]drivers.Driver{"simulated": surroundings.Reachable{Driver: b.driver}}
	return b
}

// start makes a service on the bed's store and driver, as a restart does.
func (b *bed) start() {
	b.t.Helper()
	snapshot, err := inventory.Parse([]byte(b.inventory), "inventory.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	var logged surroundings.Log
	b.Service = New(Config{
		Inventory: func() *inventory.Snapshot { return snapshot }, Languages: b.languages, Mapper: new(mapping.Optimizer),
		Store: b.store, Drivers: b.drivers, Entrances: b.entrances,
		Leases: Leases{Allocated: 10 * time.Minute, AllocatedMax: 2 * time.Hour, Provisioned: 24 * time.Hour, ProvisionedMax: 7 * 24 * time.Hour},
		Clock:  b.clock.Now, Random: rand.Reader, Log: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	service := b.Service
	b.t.Cleanup(func() {
		service.Close()
		if b.t.Failed() {
			b.t.Logf("the service logged:\n%s", logged.String())
		}
	})
	if err := b.Start(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}

// principal is a member of the federation with a credential for a slice.
func (b *bed) principal(member, slice string) (*credentials.Principal, urn.URN) {
	b.t.Helper()
	m, err := b.federation.Member(member)
	if err != nil {
		if m, _, err = b.federation.AddMember(member, member+"@example.org"); err != nil {
			b.t.Fatal(err)
		}
	}
	s, _, err := b.federation.AddSlice(slice, m, 30*24*time.Hour)
	if err != nil {
		b.t.Fatal(err)
	}
	credential, err := os.ReadFile(federation.CredentialFile(b.dir, slice, member))
	if err != nil {
		b.t.Fatal(err)
	}
	pemText, err := os.ReadFile(filepath.Join(b.dir, "members", member, "cert.pem"))
	if err != nil {
		b.t.Fatal(err)
	}
	chain, err := openssl.ParsePEM(pemText)
	if err != nil {
		b.t.Fatal(err)
	}
	caller, err := b.trust.Identify(chain)
	if err != nil {
		b.t.Fatal(err)
	}
	p, err := b.verifier.Verify(context.Background(), caller, credentials.Presented{
		Credentials: []credentials.Credential{{Type: "geni_sfa", Version: "3", Value: string(credential)}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return p, s.URN
}

const header = `<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3">`

// twoNodes is a request for two nodes and a link between them.
const twoNodes = header + `
<node client_id="a"><sliver_type name="simulated"/><interface client_id="a:if0"><ip address="10.1.1.1" netmask="255.255.255.0" type="ipv4"/></interface></node>
<node client_id="b"><sliver_type name="simulated"/><interface client_id="b:if0"/></node>
<link client_id="l"><interface_ref client_id="a:if0"/><interface_ref client_id="b:if0"/></link>
</rspec>`

// nodes is a request for some nodes that each have a host to themselves.
func exclusiveNodes(names ...string) string {
	s := header
	for _, n := range names {
		s += fmt.Sprintf(`<node client_id=%q exclusive="true"><sliver_type name="simulated"/></node>`, n)
	}
	return s + "</rspec>"
}

var geni3 = languages.Version{Type: "GENI", Version: "3"}

// states waits until nothing changes in a slice by itself and returns what is
// there by client_id.
func (b *bed) states(slice urn.URN) map[request.ClientID]slivers.Sliver {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	select {
	case <-b.working.idle(slice):
	case <-ctx.Done():
		b.t.Fatal("the slice's worker does not end")
	}
	list, err := b.live(ctx, slice)
	if err != nil {
		b.t.Fatal(err)
	}
	states := map[request.ClientID]slivers.Sliver{}
	for _, v := range list {
		states[v.ClientID] = v
	}
	return states
}

// wantKind fails the test unless an error is of a kind.
func wantKind(t *testing.T, what string, err error, want Kind) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != want {
		t.Errorf("%s: %v, want an error of kind %d", what, err, want)
	}
}
