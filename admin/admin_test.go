package admin_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"croft/admin"
	"croft/aggregate/aggregatetest"
	"croft/aggregate/aggregatetest/surroundings"
	"croft/am/wire"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

const testInventory = `
authority: example.org
sliver_types: [{name: simulated, driver: simulated, cores: 1, memory: 1GiB, disk: 1GiB}]
hosts: [{name: host1, sliver_types: [simulated], cores: 4, memory: 4GiB, disk: 40GiB, shared: true}]
`

// door is a service whose operator's socket is open.
type door struct {
	*testing.T
	*admin.Client
	socket string
	store  slivers.Store
	server *admin.Server
	log    *surroundings.Log
}

func newDoor(t *testing.T, socket string) *door {
	t.Helper()
	d := &door{T: t, socket: socket, log: new(surroundings.Log)}
	log := slog.New(slog.NewTextHandler(d.log, nil))
	service := aggregatetest.New(t, aggregatetest.Config{Inventory: testInventory, Log: log})
	d.store = service.Store
	d.server = &admin.Server{Service: service.Service, Log: log, Clock: time.Now}
	stop, err := d.server.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	})
	d.Client = admin.NewClient(socket)
	return d
}

// reserve gives slivers to a slice.
func (d *door) reserve(slice string, names ...string) []urn.URN {
	d.Helper()
	r := slivers.Reservation{Slice: urn.MustParse(slice), Mapped: d.store.Occupancy().Version}
	r.Document = slivers.Document{Slice: r.Slice, MediaType: "application/rspec+xml", Bytes: []byte("<rspec/>"), Received: time.Now()}
	var made []urn.URN
	for _, n := range names {
		name := urn.URN{Authority: "example.org", Type: urn.Sliver, Name: n}
		made = append(made, name)
		r.Slivers = append(r.Slivers, slivers.Sliver{
			URN: name, Slice: r.Slice, Kind: slivers.Node, ClientID: request.ClientID(n), Allocation: slivers.Allocated,
			Operational: slivers.PendingAllocation, Created: time.Now(), Expires: time.Now().Add(time.Hour),
			Node: &slivers.NodeFacts{Host: urn.MustParse("urn:publicid:IDN+example.org+node+host1"), HostName: "host1", Driver: "simulated", SliverType: "simulated"},
		})
	}
	if err := d.store.Reserve(d.Context(), r); err != nil {
		d.Fatal(err)
	}
	return made
}

func (d *door) wantCode(what string, err error, code wire.Code) {
	d.Helper()
	var e *admin.Error
	if !errors.As(err, &e) || e.Code != code || e.Message == "" {
		d.Errorf("%s: %v, want %s", what, err, code)
	}
}

const one, two = "urn:publicid:IDN+example.org+slice+one", "urn:publicid:IDN+example.org+slice+two"

func TestOperator(t *testing.T) {
	d := newDoor(t, filepath.Join(t.TempDir(), "admin.sock"))
	ctx := t.Context()
	if list, err := d.Slices(ctx); err != nil || list == nil || len(list) != 0 {
		t.Errorf("slices of an empty server: %v, %v", list, err)
	}
	made := d.reserve(one, "a", "b")
	d.reserve(two, "c")

	list, err := d.Slices(ctx)
	if err != nil || len(list) != 2 || list[0].Slivers != 2 || list[0].Shutdown || list[0].Expires.IsZero() {
		t.Errorf("slices: %+v, %v", list, err)
	}
	if all, err := d.Slivers(ctx, urn.URN{}); err != nil || len(all) != 3 {
		t.Errorf("all slivers: %+v, %v", all, err)
	}
	of, err := d.Slivers(ctx, urn.MustParse(one))
	if err != nil || len(of) != 2 || of[0].URN != made[0] || of[0].Host != "host1" || of[0].Allocation != "geni_allocated" {
		t.Errorf("slivers of a slice: %+v, %v", of, err)
	}
	if events, err := d.Events(ctx, urn.MustParse(one)); err != nil || len(events) != 2 || events[0].Sliver != made[0] || events[0].At.IsZero() {
		t.Errorf("events: %+v, %v", events, err)
	}

	slice, err := d.Find(ctx, "ONE")
	if err != nil || slice.String() != one {
		t.Errorf("finding a slice: %v, %v", slice, err)
	}
	for _, name := range []string{"three", "urn:x", ""} {
		if _, err := d.Find(ctx, name); err == nil {
			t.Errorf("%q is a slice", name)
		}
	}
	d.wantCode("lifting what is open", d.Lift(ctx, slice), wire.Refused)
	if err := d.Shutdown(ctx, slice); err != nil {
		t.Error(err)
	}
	if list, _ := d.Slices(ctx); !list[0].Shutdown || list[1].Shutdown {
		t.Errorf("after shutdown: %+v", list)
	}
	if err := d.Lift(ctx, slice); err != nil {
		t.Error(err)
	}
	if gone, err := d.Delete(ctx, made[0], false); err != nil || len(gone) != 1 || gone[0].URN != made[0] {
		t.Errorf("deleting a sliver: %+v, %v", gone, err)
	}
	if err := d.Shutdown(ctx, slice); err != nil {
		t.Error(err)
	}
	if gone, err := d.Delete(ctx, slice, false); err != nil || len(gone) != 1 {
		t.Errorf("deleting from a slice that is shut down: %+v, %v", gone, err)
	}
	if events, err := d.Events(ctx, urn.MustParse(two)); err != nil || len(events) == 0 {
		t.Errorf("events: %+v, %v", events, err)
	}
	_, err = d.Delete(ctx, slice, false)
	d.wantCode("deleting again", err, wire.SearchFailed)
	_, err = d.Delete(ctx, made[0], false)
	d.wantCode("deleting a sliver again", err, wire.SearchFailed)
	unknown := urn.MustParse("urn:publicid:IDN+example.org+slice+unknown")
	d.wantCode("lifting an unknown slice", d.Lift(ctx, unknown), wire.SearchFailed)
	_, err = d.Events(ctx, unknown)
	d.wantCode("events of an unknown slice", err, wire.SearchFailed)
	_, err = d.Slivers(ctx, unknown)
	d.wantCode("slivers of an unknown slice", err, wire.SearchFailed)
	d.wantCode("shutting down a sliver", d.Shutdown(ctx, made[0]), wire.BadArgs)
	d.wantCode("shutting down nothing", d.Shutdown(ctx, urn.URN{}), wire.BadArgs)
	if err := d.Shutdown(ctx, unknown); err != nil {
		t.Errorf("shutting down a slice before it has anything: %v", err)
	}

	if _, err := d.Delete(ctx, urn.MustParse(two), false); err != nil {
		t.Error(err)
	}
	if events, err := d.Events(ctx, urn.MustParse(two)); err != nil || len(events) == 0 {
		t.Errorf("events of a slice that has nothing any more: %+v, %v", events, err)
	}
	for _, want := range []string{"method=shutdown code=SUCCESS", "method=lift code=SUCCESS", "method=delete code=SUCCESS",
		"on=" + one, "method=lift code=REFUSED", `caller="user `} {
		if !strings.Contains(d.log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, d.log.String())
		}
	}
}

func TestHosts(t *testing.T) {
	d := newDoor(t, filepath.Join(t.TempDir(), "admin.sock"))
	ctx := t.Context()
	made := d.reserve(one, "a", "b")
	host, err := d.FindHost(ctx, "HOST1")
	if err != nil || host.Name != "host1" {
		t.Fatalf("finding a host: %v, %v", host, err)
	}
	if _, err := d.FindHost(ctx, "host2"); err == nil {
		t.Error("host2 is a host")
	}
	want := func(state, why string) {
		t.Helper()
		list, err := d.Hosts(ctx)
		if err != nil || len(list) != 1 || list[0].State != state || list[0].Why != why || len(list[0].Slivers) != 2 ||
			list[0].Slivers[0].URN != made[0] || list[0].Capacity.Cores != 4 || list[0].Capacity.Memory != 4096 {
			t.Errorf("hosts: %+v, %v; want it %s: %s", list, err, state, why)
		}
	}
	want("in service", "")
	if err := d.Drain(ctx, host, "new disks"); err != nil {
		t.Error(err)
	}
	want("drained", "new disks")
	if err := d.Undrain(ctx, host); err != nil {
		t.Error(err)
	}
	want("in service", "")
	d.wantCode("undraining again", d.Undrain(ctx, host), wire.SearchFailed)
	d.wantCode("draining a slice", d.Drain(ctx, urn.MustParse(one), ""), wire.SearchFailed)
	if m, err := d.Machines(ctx); err != nil || len(m.Things) != 0 || m.Things == nil || m.Silent == nil {
		t.Errorf("machines: %+v, %v", m, err)
	}
	for _, want := range []string{"method=drain code=SUCCESS", `reason="new disks"`, "method=undrain code=SUCCESS", "on=" + host.String()} {
		if !strings.Contains(d.log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, d.log.String())
		}
	}
}

// The socket is the server's alone, wherever it lies, and one that was left is
// replaced.
func TestSocket(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(deep, "admin.sock")
	t.Run("replaced", func(t *testing.T) {
		left, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		left.SetUnlinkOnClose(false)
		name := left.Addr().String()
		left.Close()
		if err := os.Rename(name, path); err != nil {
			t.Fatal(err)
		}
		d := newDoor(t, path)
		if _, err := d.Slices(t.Context()); err != nil {
			t.Error(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	})
	t.Run("no server", func(t *testing.T) {
		if _, err := admin.NewClient(path).Slices(t.Context()); err == nil || !strings.Contains(err.Error(), "no server is running") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a file in the way", func(t *testing.T) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s := &admin.Server{Log: slog.New(slog.DiscardHandler), Clock: time.Now}
		if _, err := s.Listen(path); err == nil {
			t.Error("a file was replaced")
		}
	})
}

// Whoever is neither root nor the server's user gets nothing, even when the
// socket lets him connect.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	d := newDoor(t, filepath.Join(dir, "admin.sock"))
	w := httptest.NewRecorder()
	d.server.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/slices", nil))
	if w.Code != 403 {
		t.Errorf("somebody who came another way: %d %s", w.Code, w.Body)
	}
	curl, err := exec.LookPath("curl")
	if os.Geteuid() != 0 || err != nil {
		t.Skip("needs root and curl (apt-get install curl) to be somebody else")
	}
	public, err := os.MkdirTemp("/tmp", "croft-admin-test-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(public)
	if err := os.Chmod(public, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(public, "s")
	if err := os.Rename(d.socket, socket); err != nil {
		t.Fatal(err)
	}
	defer os.Rename(socket, d.socket)
	ask := func() string {
		cmd := exec.Command(curl, "-sS", "--max-time", "30", "--unix-socket", socket, "-w", " %{http_code}", "http://croft/slices")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := ask(); strings.Contains(out, " 200") {
		t.Errorf("nobody connects: %s", out)
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	if out := ask(); !strings.Contains(out, " 403") || !strings.Contains(out, "65534") {
		t.Errorf("nobody is answered %s", out)
	}
}
