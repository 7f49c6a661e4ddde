package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/client"
	"croft/federation"
	"croft/internal/openssl"
	"croft/urn"
	"croft/xmlrpc"
)

// keys are a federation's, as far as a server and a client need them.
type keys struct {
	root, server, serverKey []byte
	who                     *client.Identity
	err                     error
}

// federationOnce is one for all tests: keys take long to make.
var federationOnce = sync.OnceValue(makeFederation)

func makeFederation() (k keys) {
	dir, err := os.MkdirTemp("", "croft-client")
	if err != nil {
		return keys{err: err}
	}
	defer os.RemoveAll(dir)
	read := func(name string) (data []byte) {
		if err == nil {
			data, err = os.ReadFile(filepath.Join(dir, name))
		}
		return data
	}
	var f *federation.Federation
	if f, _, err = federation.Init(dir, federation.Options{
		Authority: "example.org", Manager: urn.MustParse("urn:publicid:IDN+example.org+authority+cm"), Hosts: []string{"127.0.0.1"},
	}, time.Now); err != nil {
		return keys{err: err}
	}
	var m *federation.Member
	if m, _, err = f.AddMember("alice", ""); err != nil {
		return keys{err: err}
	}
	if k.who, err = client.LoadIdentity(m.Dir); err != nil {
		return keys{err: err}
	}
	k.root, k.server, k.serverKey = read("trusted/ca.pem"), read("pki/server.pem"), read("pki/server-key.pem")
	k.err = err
	return k
}

// aggregate is a server over TLS that answers with given methods, and alice.
type aggregate struct {
	keys
	url string
}

func serve(t *testing.T, methods xmlrpc.Methods) *aggregate {
	t.Helper()
	k := federationOnce()
	if k.err != nil {
		t.Fatal(k.err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := openssl.NewListener(plain, &openssl.ServerConfig{CertificatePEM: k.server, KeyPEM: k.serverKey})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: &xmlrpc.Server{Methods: methods}, ConnContext: openssl.ConnContext}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return &aggregate{keys: k, url: "https://" + plain.Addr().String() + "/am/3.0"}
}

func (a *aggregate) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: a.url, Identity: a.who, Roots: a.root})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ok(value any) map[string]any {
	return map[string]any{"code": map[string]any{"geni_code": 0}, "value": value, "output": ""}
}

func method(answer func(params []any) any) xmlrpc.Method {
	return func(_ context.Context, params []any) (any, error) { return answer(params), nil }
}

// Emulab says "1" for true, leaves out what others have, and has members of
// its own.
func TestVersionOfLaxAggregates(t *testing.T) {
	format := map[string]any{"type": "GENI", "version": "3"}
	a := serve(t, xmlrpc.Methods{"GetVersion": method(func([]any) any {
		return ok(map[string]any{
			"geni_api": 3, "geni_api_versions": map[string]any{"3": "https://example.org/am/3.0", "2": "https://example.org/am/2.0"},
			"geni_request_rspec_versions": []any{format}, "geni_ad_rspec_versions": []any{format},
			"geni_single_allocation": "1", "geni_allocate": "geni_disjoint", "code_tag": "100",
		})
	})})
	v, err := a.client(t).Version(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if v.API != 3 || !v.SingleAllocation || v.Allocate != "geni_disjoint" || len(v.APIVersions) != 2 || v.AdFormats[0].Type != "GENI" {
		t.Errorf("read %+v", v)
	}
}

func TestRefusalsAndNonsense(t *testing.T) {
	slice := urn.MustParse("urn:publicid:IDN+example.org+slice+exp")
	for _, test := range []struct {
		name   string
		answer any
		want   string
	}{
		{"refusal", map[string]any{"code": map[string]any{"geni_code": 12}, "output": "no slice exp"}, "SEARCHFAILED (12): no slice exp"},
		{"refusal of another kind", map[string]any{"code": map[string]any{"geni_code": 2, "am_type": "protogeni", "am_code": 26}, "output": "none"}, "ERROR (2) [protogeni 26]: none"},
		{"no struct", "yes", "reply: want a struct, got a string"},
		{"no code", map[string]any{"value": 1}, "code: want a struct, got nothing"},
		{"empty code", map[string]any{"code": map[string]any{}}, "code.geni_code: missing"},
		{"value of another type", ok("yes"), "value: want a struct, got a string"},
		{"no slivers", ok(map[string]any{}), "value.geni_slivers: want an array, got nothing"},
		{"a sliver without name", ok(map[string]any{"geni_slivers": []any{map[string]any{}}}), "value.geni_slivers[0].geni_sliver_urn: urn"},
		{"a date that is none", ok(map[string]any{"geni_slivers": []any{map[string]any{
			"geni_sliver_urn": "urn:publicid:IDN+a+sliver+1", "geni_expires": "soon"}}}), `value.geni_slivers[0].geni_expires: "soon" is not a date`},
		{"a fault", xmlrpcFault{}, "no such method"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := serve(t, xmlrpc.Methods{"Status": func(context.Context, []any) (any, error) {
				if _, isFault := test.answer.(xmlrpcFault); isFault {
					return nil, &xmlrpc.Fault{Code: 1, Text: "no such method"}
				}
				return test.answer, nil
			}})
			_, err := a.client(t).Status(context.Background(), []urn.URN{slice}, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

type xmlrpcFault struct{}

// The server's certificate has to be of an authority that is trusted, and for
// the host that was called.
func TestServerIsChecked(t *testing.T) {
	a := serve(t, xmlrpc.Methods{"GetVersion": method(func([]any) any { return ok("") })})
	other := makeFederation()
	if other.err != nil {
		t.Fatal(other.err)
	}
	for _, test := range []struct {
		name string
		o    client.Options
		want string // "" for a call that gets through
	}{
		{"its own root", client.Options{URL: a.url, Identity: a.who, Roots: a.root}, ""},
		{"another root", client.Options{URL: a.url, Identity: a.who, Roots: other.root}, "certificate"},
		{"another name", client.Options{URL: strings.Replace(a.url, "127.0.0.1", "localhost", 1), Identity: a.who, Roots: a.root}, "localhost"},
		{"insecure", client.Options{URL: a.url, Identity: a.who, Insecure: true}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := client.New(test.o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Version(context.Background())
			var answered *client.ReplyError
			if through := errors.As(err, &answered); through != (test.want == "") {
				t.Errorf("got %v", err)
			}
			if test.want != "" && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	a := serve(t, xmlrpc.Methods{"GetVersion": func(context.Context, []any) (any, error) { <-release; return ok(nil), nil }})
	defer close(release)
	c, err := client.New(client.Options{URL: a.url, Identity: a.who, Roots: a.root, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Version(context.Background()); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("got %v", err)
	}
}

// Up asks again while the aggregate is busy, gives back what cannot be
// provisioned, and tells what failed.
func TestUp(t *testing.T) {
	const sliver = "urn:publicid:IDN+example.org+sliver+1"
	status := func(state string) map[string]any {
		return map[string]any{"geni_sliver_urn": sliver, "geni_allocation_status": "geni_provisioned",
			"geni_operational_status": state, "geni_expires": "2026-01-02T15:04:05Z", "geni_error": "the disk is full"}
	}
	described := func(state string) map[string]any {
		return ok(map[string]any{"geni_urn": "urn:publicid:IDN+example.org+slice+exp", "geni_rspec": "<rspec/>", "geni_slivers": []any{status(state)}})
	}
	refusal := func(code int) map[string]any {
		return map[string]any{"code": map[string]any{"geni_code": code}, "output": "not now"}
	}
	for _, test := range []struct {
		name      string
		allocate  []any // answers, in turn
		provision any
		states    []string // of Status, in turn; the last stays
		want      string   // of the error
		calls     string
	}{
		{"straight", []any{described("")}, described("geni_pending_allocation"), []string{"geni_notready", "geni_configuring", "geni_ready"}, "",
			"Allocate Provision Status PerformOperationalAction Status Status Describe"},
		{"starts by itself", []any{described("")}, described("geni_configuring"), []string{"geni_configuring", "geni_ready"}, "",
			"Allocate Provision Status Status Describe"},
		{"busy", []any{refusal(14), refusal(-32001), described("")}, described("geni_ready"), nil, "",
			"Allocate Allocate Allocate Provision Describe"},
		{"not allocated", []any{refusal(6)}, nil, nil, "TOOBIG (6): not now", "Allocate"},
		{"not provisioned", []any{described("")}, refusal(3), nil, "FORBIDDEN (3): not now (what was allocated has been given back)", "Allocate Provision Delete"},
		{"failed", []any{described("")}, described("geni_pending_allocation"), []string{"geni_failed"}, "geni_failed: the disk is full", "Allocate Provision Status"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			states := test.states
			allocate := test.allocate
			answer := func(name string, f func() any) xmlrpc.Method {
				return method(func([]any) any { calls = append(calls, name); return f() })
			}
			a := serve(t, xmlrpc.Methods{
				"Allocate": answer("Allocate", func() any {
					first := allocate[0]
					allocate = allocate[1:]
					if m := first.(map[string]any); m["output"] != "not now" {
						m["output"] = "warning: not as elsewhere"
					}
					return first
				}),
				"Provision": answer("Provision", func() any { return test.provision }),
				"Status": answer("Status", func() any {
					state := states[0]
					if len(states) > 1 {
						states = states[1:]
					}
					return described(state)
				}),
				"PerformOperationalAction": answer("PerformOperationalAction", func() any { return ok([]any{status("geni_configuring")}) }),
				"Delete":                   answer("Delete", func() any { return ok([]any{status("")}) }),
				"Describe":                 answer("Describe", func() any { return described("geni_ready") }),
			})
			var phases []client.Phase
			var said string
			d, err := a.client(t).Up(context.Background(), client.UpRequest{Slice: urn.MustParse("urn:publicid:IDN+example.org+slice+exp")},
				func(p client.Progress) { phases, said = append(phases, p.Phase), said+p.Output })
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want == "" && said != "warning: not as elsewhere":
				t.Errorf("the aggregate said %q", said)
			case test.want == "" && (d.RSpec != "<rspec/>" || phases[len(phases)-1] != client.Done):
				t.Errorf("got %+v after %v", d, phases)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
			if got := strings.Join(calls, " "); got != test.calls {
				t.Errorf("called %s\nwant   %s", got, test.calls)
			}
		})
	}
}

// What is compressed is expanded, within bounds; options and arguments are
// where the AM API wants them.
func TestListResources(t *testing.T) {
	var got []any
	a := serve(t, xmlrpc.Methods{"ListResources": method(func(params []any) any {
		got = params
		// zlib of "<rspec/>", in base64
		return ok("eJyzKSouSE3WtwMADUECxw==")
	})})
	ad, err := a.client(t).ListResources(context.Background(), []client.Credential{client.SFA("<c/>")}, client.ListOptions{Available: true, Compressed: true})
	if err != nil {
		t.Fatal(err)
	}
	if ad != "<rspec/>" {
		t.Errorf("got %q", ad)
	}
	cred := got[0].([]any)[0].(map[string]any)
	options := got[1].(map[string]any)
	version := options["geni_rspec_version"].(map[string]any)
	if cred["geni_type"] != "geni_sfa" || cred["geni_value"] != "<c/>" || options["geni_available"] != true ||
		options["geni_compressed"] != true || version["type"] != "GENI" || version["version"] != "3" {
		t.Errorf("called with %v", got)
	}
}
