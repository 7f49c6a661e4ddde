package main

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/admin"
	"croft/aggregate"
	"croft/client"
	"croft/internal/config"
	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/slivers"
	"croft/slivers/sqlite"
	"croft/urn"
)

// The commands of croft admin, on the socket of a service.
func TestAdmin(t *testing.T) {
	dir := t.TempDir()
	data, err := config.New("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "croft.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(conf.State, 0o700); err != nil {
		t.Fatal(err)
	}
	do := func(status int, want string, args ...string) string {
		t.Helper()
		out, errs, got := run(t, "", append([]string{"admin", "--dir", dir}, args...)...)
		if got != status || !strings.Contains(out+errs, want) {
			t.Errorf("croft admin %s: status %d, want %d and %q\n%s%s", strings.Join(args, " "), got, status, want, out, errs)
		}
		return out
	}
	do(1, "no server is running", "slices")

	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "croft.db"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	service := aggregate.New(aggregate.Config{
		Inventory: func() *inventory.Snapshot { return nil }, Languages: languages.Set{}, Mapper: new(mapping.Optimizer),
		Store: store, Clock: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
	})
	defer service.Close()
	stop, err := (&admin.Server{Service: service, Log: slog.New(slog.DiscardHandler), Clock: time.Now}).Listen(admin.Socket(conf.State))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	slice := urn.MustParse("urn:publicid:IDN+example.org+slice+exp1")
	sliver := urn.MustParse("urn:publicid:IDN+example.org+sliver+s1")
	err = store.Reserve(t.Context(), slivers.Reservation{
		Slice: slice, Mapped: store.Occupancy().Version, Document: slivers.Document{Slice: slice, MediaType: "application/rspec+xml", Bytes: []byte("<rspec/>"), Received: time.Now()},
		Slivers: []slivers.Sliver{{URN: sliver, Slice: slice, Kind: slivers.Link, ClientID: "l", Allocation: slivers.Allocated,
			Operational: slivers.PendingAllocation, Created: time.Now(), Expires: time.Now().Add(time.Hour), Link: &slivers.LinkFacts{}}},
	})
	if err != nil {
		t.Fatal(err)
	}

	do(0, slice.String(), "slices")
	do(0, sliver.String(), "slivers")
	do(0, "allocated", "slivers", "exp1")
	do(0, "pending_allocation", "events", slice.String())
	do(1, "no slice exp2 is known", "slivers", "exp2")
	do(1, "REFUSED (7): ", "lift", "exp1")
	do(0, slice.String()+" is shut down", "shutdown", "exp1")
	do(0, "shut down", "slices")
	do(0, slice.String()+" is open again", "lift", "exp1")
	var list []admin.Sliver
	if out := do(0, "", "slivers", "--json"); json.Unmarshal([]byte(out), &list) != nil || len(list) != 1 || list[0].URN != sliver {
		t.Errorf("in JSON: %s", out)
	}
	do(0, "unallocated", "delete", sliver.String())
	do(1, "SEARCHFAILED (12): ", "delete", sliver.String())
	do(0, "gone", "events", slice.String())
}

// The exit status of a probe tells what is wrong.
func TestProbeStatus(t *testing.T) {
	dir := t.TempDir()
	if _, errs, status := run(t, "", "init", "--dir", dir, "--authority", "example.org", "--listen", "127.0.0.1:1"); status != 0 {
		t.Fatal(errs)
	}
	out, _, status := run(t, "", "probe", "--dir", dir)
	if status != 2 || !strings.HasSuffix(out, "\nunreachable\n") || !strings.HasPrefix(out, "FAIL") {
		t.Errorf("nobody there: status %d\n%s", status, out)
	}
	out, _, status = run(t, "", "probe", "--dir", dir, "https://127.0.0.1:1/", "--json")
	var report client.ProbeReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 2 || report.Verdict != client.Unreachable || len(report.Steps) != 1 {
		t.Errorf("in JSON: status %d, %v\n%s", status, err, out)
	}
	for _, wrong := range [][]string{{"http://127.0.0.1:1/"}, {"--life-cycle", "missing.rspec"}, {"--member", "nobody"}} {
		if _, errs, status := run(t, "", append([]string{"probe", "--dir", dir}, wrong...)...); status != 1 || errs == "" {
			t.Errorf("%v: status %d\n%s", wrong, status, errs)
		}
	}
}
