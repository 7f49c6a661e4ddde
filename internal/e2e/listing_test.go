package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"croft/client"
	"croft/internal/openssl"
	"croft/urn"
	"croft/xmlrpc"
)

// sized is an inventory of n hosts with two cables each.
func sized(n int) string {
	return fmt.Sprintf(`authority: large.example.org
sites: [{name: hall, country: BE, latitude: 51.05, longitude: 3.72}]
images: [{name: UBUNTU22-64-STD, os: Linux, version: "22.04", description: Standard}, {name: DEBIAN12-64-STD, os: Linux, version: "12"}]
sliver_types:
  - {name: raw-pc, driver: simulated, whole_host: true, images: [UBUNTU22-64-STD, DEBIAN12-64-STD]}
  - {name: xen, driver: simulated, images: [UBUNTU22-64-STD]}
hardware_types:
  - name: r430
    interfaces: [{name: eth0, speed: 1 Gbps, role: control}, {name: "eth[1-2]", speed: 10 Gbps}]
hosts:
  - {name: "pc[00001-%05[1]d]", hardware_types: [r430], site: hall, sliver_types: [raw-pc, xen], exclusive: true, cores: 16, memory: 64GiB}
switches: [{name: "sw[1-2]", site: hall}]
cables:
  - {hosts: "pc[00001-%05[1]d]", interfaces: "eth[1-2]", switch: "sw[1-2]"}
trunks: [{between: [sw1, sw2], capacity: 100 Gbps}]
`, n)
}

// raw is a caller that does not read what it gets, so that the server is what
// is measured.
type raw struct {
	http *http.Client
	url  string
}

func (b *testbed) raw() raw {
	b.Helper()
	who, err := client.LoadIdentity(filepath.Join(b.dir, "members", "alice"))
	if err != nil {
		b.Fatal(err)
	}
	roots, err := openssl.ParsePEM([]byte(b.read("trusted", "ca.pem")))
	if err != nil {
		b.Fatal(err)
	}
	tls := &openssl.ClientConfig{CertificatePEM: who.CertificatePEM, KeyPEM: who.KeyPEM, Roots: roots}
	return raw{&http.Client{Transport: &http.Transport{DialTLSContext: tls.DialTLSContext}}, b.url}
}

func (r raw) call(method string, params ...any) (int64, error) {
	m, err := xmlrpc.NewCall(xmlrpc.Extensions{}, method, params...)
	if err != nil {
		return 0, err
	}
	got, err := r.http.Post(r.url, "text/xml", bytes.NewReader(m.Bytes()))
	if err != nil {
		return 0, err
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", method, got.Status)
	}
	return io.Copy(io.Discard, got.Body)
}

// serverMemory is a line of the server's /proc/PID/status in MB: VmRSS or
// VmHWM, the most it ever was.
func (b *testbed) serverMemory(line string) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.server.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for l := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(l, line+":"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb / 1024
		}
	}
	b.Fatalf("no %s", line)
	return 0
}

// churn allocates and deletes a node once a second until it is stopped, and
// tells how often and how long an Allocate took.
func (b *testbed) churn(name string) (stop func() (times int, mean time.Duration)) {
	b.Helper()
	slice := b.slice(name)
	creds, c := []client.Credential{b.credential(slice)}, b.caller()
	text := `<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3"><node client_id="n"/></rspec>`
	ctx, cancel := context.WithCancel(context.Background())
	type result struct {
		times int
		took  time.Duration
		err   error
	}
	done := make(chan result, 1)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var r result
		for ctx.Err() == nil && r.err == nil {
			began := time.Now()
			_, r.err = c.Allocate(context.Background(), slice, creds, text, time.Time{})
			r.took += time.Since(began)
			r.times++
			if r.err == nil {
				_, r.err = c.Delete(context.Background(), []urn.URN{slice}, creds, false)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		done <- r
	}()
	return func() (int, time.Duration) {
		cancel()
		r := <-done
		if r.err != nil {
			b.Error(r.err)
		}
		return r.times, r.took / time.Duration(max(r.times, 1))
	}
}

// BenchmarkListResources measures calls over TLS while one Allocate and Delete
// per second change what is available.
func BenchmarkListResources(b *testing.B) {
	for _, nodes := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			bed := newSimulated(b, sized(nodes), setting{"level: info", "level: error"})
			mine := []any{map[string]any{"geni_type": "geni_sfa", "geni_version": "3", "geni_value": bed.read("members", "alice", "user-credential.xml")}}
			stop := bed.churn("churn")
			caller := bed.raw()
			for _, form := range []struct {
				name                  string
				compressed, available bool
			}{{"plain", false, false}, {"compressed", true, false}, {"available", false, true}, {"available-compressed", true, true}} {
				b.Run(form.name, func(b *testing.B) {
					options := map[string]any{
						"geni_rspec_version": map[string]any{"type": "GENI", "version": "3"},
						"geni_compressed":    form.compressed, "geni_available": form.available,
					}
					var size int64
					for b.Loop() {
						n, err := caller.call("ListResources", mine, options)
						if err != nil {
							b.Fatal(err)
						}
						size = n
					}
					b.ReportMetric(float64(size)/1e6, "reply-MB")
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
				})
			}
			times, mean := stop()
			b.Logf("%d Allocates of %s each meanwhile; the server has %.0f MB, and had %.0f MB at most",
				times, mean.Round(100*time.Microsecond), bed.serverMemory("VmRSS"), bed.serverMemory("VmHWM"))
		})
	}
}

// What is advertised in every form is what there is, right after it changed.
func TestListingIsExact(t *testing.T) {
	t.Parallel()
	const nodes = 1500
	b := newSimulated(t, sized(nodes))
	slice := b.slice("exp")
	creds, user := []client.Credential{b.credential(slice)}, []client.Credential{client.SFA(b.read("members", "alice", "user-credential.xml"))}
	c, ctx := b.caller(), context.Background()
	taken := map[string]bool{}
	check := func() {
		t.Helper()
		for _, o := range []client.ListOptions{{}, {Compressed: true}, {Available: true}, {Available: true, Compressed: true}} {
			text, err := c.ListResources(ctx, user, o)
			if err != nil {
				t.Fatal(err)
			}
			ad := readAd(t, text)
			want := nodes + 2 // and the switches
			if o.Available {
				want -= len(taken)
			}
			if len(ad.Nodes) != want {
				t.Errorf("%+v: %d nodes, want %d", o, len(ad.Nodes), want)
			}
			for _, n := range ad.Nodes {
				if n.Available == taken[n.ID] {
					t.Errorf("%+v: %s is available: %v", o, n.ID, n.Available)
				}
			}
		}
	}
	check()
	for i := range 3 {
		text := fmt.Sprintf(`<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3"><node client_id="n%d" exclusive="true"/></rspec>`, i)
		d, err := c.Allocate(ctx, slice, creds, text, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		taken[readManifest(t, d.RSpec).Nodes[0].Component] = true
		check()
	}
	if len(taken) != 3 {
		t.Errorf("three exclusive nodes are on %v", taken)
	}
	if _, err := c.Delete(ctx, []urn.URN{slice}, creds, false); err != nil {
		t.Fatal(err)
	}
	clear(taken)
	check()
	text, err := c.ListResources(ctx, user, client.ListOptions{Compressed: true})
	if err != nil {
		t.Fatal(err)
	}
	b.validAs(text, "all-ad.xsd")
}
