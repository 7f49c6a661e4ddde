package am_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/am"
	"croft/drivers/simulated"
)

func fromHeader() am.Chains { return am.FromHeader(frontHeader) }

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Calls beyond the limit are told to come again; they are not queued.
func TestOverload(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	b := newBed(t, settings{concurrentCalls: 1, operations: simulated.Config{
		Times: map[simulated.Operation]time.Duration{simulated.Make: time.Hour},
		Wait: func(ctx context.Context, _ time.Duration) error {
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}})
	u, other := b.as("alice", "/am/3.0"), b.as("bob", "/am/3.0")
	slice, creds := u.slice("overload")
	u.want(0, "Allocate", slice, creds, nodes("a"), m{})
	u.want(0, "Provision", []any{slice}, creds, options())
	started := make(chan reply, 1)
	go func() { // waits for the node to be made
		r, err := u.try("PerformOperationalAction", []any{slice}, creds, "geni_start", m{})
		if err != nil {
			t.Error(err)
		}
		started <- r
	}()
	deadline := time.Now().Add(patience)
	for other.call("GetVersion").code == 0 {
		if time.Now().After(deadline) {
			t.Fatal("calls beyond the limit are answered")
		}
	}
	r := other.want(-32001, "GetVersion")
	if r.output == "" {
		t.Error("no word of why")
	}
	close(gate)
	if r := <-started; r.code != 0 {
		t.Errorf("the call that came first: code %d: %s", r.code, r.output)
	}
	other.want(0, "GetVersion")
	if !strings.Contains(b.log.String(), "code=SERVERBUSY") {
		t.Error("the log does not tell of it")
	}
}

// Many callers hammer one slice with everything that changes it: each call is
// done as a whole or refused as a whole, and what is left is what was said.
func TestHammerOneSlice(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	u := b.as("alice", "/am/3.0")
	slice, creds := u.slice("hammer")
	const callers, rounds = 8, 12
	made, gone := sync.Map{}, sync.Map{}
	var allocated, busy atomic.Int64
	var group sync.WaitGroup
	for w := range callers {
		mine := b.as("alice", "/am/3.0")
		group.Go(func() {
			ours := []string{}
			for round := range rounds {
				name := fmt.Sprintf("w%dr%d", w, round)
				var r reply
				var err error
				switch (w + round) % 6 {
				case 0, 1, 2:
					if r, err = mine.try("Allocate", slice, creds, nodes(name+"a", name+"b"), m{}); err == nil && r.code == 0 {
						list := sliverList(t, r.value)
						if len(list) != 2 {
							t.Errorf("Allocate of two nodes gives %v", list)
						}
						for _, s := range list {
							sliver := s["geni_sliver_urn"].(string)
							if _, twice := made.LoadOrStore(sliver, true); twice {
								t.Errorf("%s was given twice", sliver)
							}
							ours = append(ours, sliver)
						}
						allocated.Add(2)
					}
				case 3:
					r, err = mine.try("Provision", []any{slice}, creds, options())
				case 4:
					r, err = mine.try("PerformOperationalAction", []any{slice}, creds, "geni_start", m{"geni_best_effort": true})
				case 5:
					if len(ours) == 0 {
						r, err = mine.try("Renew", []any{slice}, creds, mine.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339), m{})
						break
					}
					if r, err = mine.try("Delete", []any{ours[0]}, creds, m{}); err == nil && r.code == 0 {
						gone.Store(ours[0], true)
						ours = ours[1:]
					}
				}
				switch {
				case err != nil:
					t.Errorf("%s: %v", name, err)
				case r.code == 14:
					busy.Add(1)
				case r.code != 0 && r.code != 12 && r.code != 13 && r.code != 6:
					t.Errorf("%s: code %d: %s", name, r.code, r.output)
				}
				if r, err := mine.try("Status", []any{slice}, creds, m{}); err != nil || r.code != 0 && r.code != 12 {
					t.Errorf("Status: %v, code %d: %s", err, r.code, r.output)
				}
			}
		})
	}
	group.Wait()
	left := map[string]bool{}
	for _, s := range u.settle(slice, creds) {
		left[s["geni_sliver_urn"].(string)] = true
	}
	made.Range(func(sliver, _ any) bool {
		if _, deleted := gone.Load(sliver); deleted == left[sliver.(string)] {
			t.Errorf("%v: deleted is %v, there is %v", sliver, deleted, left[sliver.(string)])
		}
		return true
	})
	for s := range left {
		if _, ok := made.Load(s); !ok {
			t.Errorf("%s was given to nobody", s)
		}
	}
	if allocated.Load() == 0 {
		t.Error("nothing was allocated")
	}
	t.Logf("%d slivers allocated, %d left, %d calls busy", allocated.Load(), len(left), busy.Load())
}

// The log tells of every call who made it, by which credential, and what came
// of it, and nothing that is secret.
func TestAudit(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	u := b.as("alice", "/am/3.0")
	slice, creds := u.slice("audit")
	key := surroundings.NewKey(t)
	users := m{"geni_users": []any{m{"urn": "urn:publicid:IDN+example.org+user+alice", "keys": []any{key}}}}
	u.want(0, "GetVersion")
	u.want(0, "ListResources", u.userCredentials(), options())
	u.want(0, "Allocate", slice, creds, nodes("a"), m{})
	u.want(0, "Provision", []any{slice}, creds, options(users))
	u.settle(slice, creds)
	u.want(0, "PerformOperationalAction", []any{slice}, creds, "geni_start", m{})
	u.settle(slice, creds)
	u.want(0, "PerformOperationalAction", []any{slice}, creds, "geni_update_users", users)
	u.want(3, "Delete", []any{slice}, u.userCredentials(), m{})
	u.want(0, "Delete", []any{slice}, creds, m{})

	// Things in the wrong place.
	secret := string(read(t, "members/alice/key.pem"))
	document := creds[0].(m)["geni_value"].(string)
	for _, wrong := range []string{secret, document} {
		u.want(1, "Allocate", wrong, creds, nodes("a"), m{})
		u.want(1, "Allocate", slice, wrong, nodes("a"), m{})
		u.want(1, "Status", []any{wrong}, creds, m{})
		u.want(1, "Renew", []any{slice}, creds, wrong, m{})
		u.want(12, "PerformOperationalAction", []any{slice}, creds, "geni_start", m{"geni_x": wrong})
		u.want(1, "Provision", []any{slice}, creds, options(m{"geni_users": []any{m{"urn": "urn:publicid:IDN+example.org+user+alice", "keys": []any{wrong}}}}))
		u.call("PerformOperationalAction", []any{slice}, creds, wrong, m{})
		u.call("Allocate", slice, creds, wrong, m{})
		u.want(3, "Status", []any{slice}, u.credentials(wrong+"x"), m{})
		u.want(4, "ListResources", creds, m{"geni_rspec_version": m{"type": wrong, "version": wrong}})
		u.want(1, "ListResources", creds, options(m{"geni_speaking_for": wrong}))
		_, _ = u.rpc.Call(t.Context(), "system.methodHelp", wrong)
		_, _ = u.rpc.Call(t.Context(), "Frobnicate", wrong)
	}

	log := b.log.String()
	for _, method := range []string{"GetVersion", "ListResources", "Allocate", "Provision", "Status", "PerformOperationalAction", "Delete"} {
		found := false
		for line := range strings.Lines(log) {
			if !strings.Contains(line, "method="+method+" ") || !strings.Contains(line, "code=SUCCESS") {
				continue
			}
			found = true
			want := []string{"msg=call", "took=", "caller=urn:publicid:IDN+example.org+user+alice", "from=127.0.0.1"}
			if method != "GetVersion" {
				want = append(want, "user=urn:publicid:IDN+example.org+user+alice", "credential=")
			}
			if method != "GetVersion" && method != "ListResources" {
				want = append(want, "slice="+slice)
			}
			for _, w := range want {
				if !strings.Contains(line, w) {
					t.Errorf("%s: no %s in %s", method, w, line)
				}
			}
		}
		if !found {
			t.Errorf("the log has no %s", method)
		}
	}
	if !strings.Contains(log, "code=FORBIDDEN") {
		t.Error("the log has no refusal")
	}
	// Pieces, wherever they are cut: no 48 characters of a secret in a row.
	const piece = 48
	flat := strings.NewReplacer(`\n`, "", "\n", "", `\t`, "", " ", "", `\"`, `"`).Replace(log)
	for name, text := range map[string]string{
		"key": secret, "credential": document, "user credential": string(read(t, "members/alice/user-credential.xml")),
		"certificate": string(read(t, "members/alice/cert.pem")), "SSH key": strings.Fields(key)[1],
	} {
		text = strings.Join(strings.Fields(text), "")
		for i := 0; i+piece <= len(text); i += 4 {
			if cut := text[i : i+piece]; strings.Contains(flat, cut) && !strings.Contains(slice, cut) {
				t.Errorf("the log has a piece of the %s: %s", name, cut)
				break
			}
		}
	}
}

// Large requests that come slowly hold up each other only, and are as few as
// calls may be.
func TestSlowLargeRequests(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{concurrentCalls: 1})
	u := b.as("alice", "/am/3.0")
	large := func(body io.Reader) (*http.Response, error) {
		req := b.frontRequest(t, "GetVersion", http.Header{frontHeader: {url.PathEscape(string(read(t, "members/alice/cert.pem")))}})
		req.Body, req.ContentLength = io.NopCloser(body), 2<<20
		return http.DefaultClient.Do(req)
	}
	slow, feed := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := large(slow); err == nil {
			resp.Body.Close()
		}
	}()
	if _, err := feed.Write(make([]byte, 256<<10)); err != nil { // so much that the head is sent
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for {
		resp, err := large(strings.NewReader(strings.Repeat(" ", 2<<20)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			if resp.Header.Get("Retry-After") == "" {
				t.Error("no word of when to come again")
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a second large request is answered %s", resp.Status)
		}
	}
	u.want(0, "GetVersion")
	feed.CloseWithError(io.ErrUnexpectedEOF)
	<-ended
	for {
		resp, err := large(strings.NewReader(strings.Repeat(" ", 2<<20)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after it, one is answered %s", resp.Status)
		}
	}
}
