package rspec_test

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/inventory"
	"croft/languages"
	"croft/request"
	"croft/rspec"
	"croft/slivers"
	"croft/urn"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	manager = urn.MustParse("urn:publicid:IDN+example.org+authority+cm")
	alias   = urn.MustParse("urn:publicid:IDN+example.org+authority+am")
	slice   = urn.MustParse("urn:publicid:IDN+example.org:lab+slice+exp")
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	image   = urn.MustParse("urn:publicid:IDN+example.org+image+debian12")
)

// scope is that of an aggregate whose component managers are ids; without
// any, of the tests' own.
func scope(ids ...urn.URN) languages.Scope {
	if len(ids) == 0 {
		ids = []urn.URN{manager, alias}
	}
	return languages.Scope{Managers: ids}
}

func compile(t testing.TB, document []byte, s languages.Scope) *languages.Compiled {
	t.Helper()
	c, err := rspec.Language{}.Compile(context.Background(), document, s)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return c
}

// repository is the folder of go.mod.
func repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// requestFile reads a request of the repository's testdata.
func requestFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repository(t), "testdata", "requests", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// shared returns a path beside the repository, and skips the test if nothing
// is there.
func shared(t testing.TB, elements ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{repository(t), "..", "shared"}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("not at hand: %v", err)
	}
	return path
}

// schemaTool returns the schemas' folder, and skips the test if they or
// xmllint are not at hand.
func schemaTool(t testing.TB) string {
	t.Helper()
	dir := shared(t, "schemas", "rspec")
	if _, err := exec.LookPath("xmllint"); err != nil {
		t.Skip("xmllint is not installed: apt-get install libxml2-utils")
	}
	return dir
}

// violations validates documents by a schema of the folder and returns what
// xmllint says of each that is not valid.
func violations(t testing.TB, schema string, documents map[string][]byte) map[string]string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"--nonet", "--noout", "--huge", "--schema", schema}
	files := map[string]string{}
	for name, document := range documents {
		path := filepath.Join(dir, fmt.Sprintf("%d.xml", len(files)))
		if err := os.WriteFile(path, document, 0o600); err != nil {
			t.Fatal(err)
		}
		files[path] = name
		args = append(args, path)
	}
	if len(files) == 0 {
		return nil
	}
	out, err := exec.Command("xmllint", args...).CombinedOutput()
	bad, valid := map[string]string{}, 0
	for line := range strings.Lines(string(out)) {
		for path, name := range files {
			if strings.HasPrefix(line, path+" validates") {
				valid++
			} else if strings.HasPrefix(line, path+":") && !strings.Contains(line, "parser warning") {
				bad[name] += strings.TrimPrefix(line, path)
			}
		}
	}
	if valid+len(bad) != len(files) {
		t.Fatalf("xmllint: %d of %d documents valid, %d not: %v\n%s", valid, len(files), len(bad), err, out)
	}
	return bad
}

// golden compares with a file of testdata, or writes it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -run '%s' -update writes it)", err, t.Name())
	}
	if string(got) != string(want) {
		t.Errorf("%s differs (-update writes it anew):\n--- got\n%s\n--- want\n%s", path, got, want)
	}
}

// place gives every node and link of a request a sliver: node i the host pc<i>.
// It stands in for mapping and reservation.
func place(r *request.Request, document slivers.DocumentID) []slivers.Sliver {
	name := func(kind string, i int) urn.URN {
		id, err := urn.New("example.org", urn.Type(kind), fmt.Sprintf("%d-%d", document, i))
		if err != nil {
			panic(err)
		}
		return id
	}
	var all []slivers.Sliver
	of := map[request.ClientID]urn.URN{}
	for i, n := range r.Nodes {
		facts := &slivers.NodeFacts{
			Host:       n.Component,
			SliverType: n.SliverType,
			Image:      image,
			Exclusive:  n.Exclusive == request.Yes,
			Hostname:   fmt.Sprintf("n%d.exp.lab.example.org", i),
		}
		if facts.Host.IsZero() {
			facts.Host, _ = urn.New("example.org", urn.Node, fmt.Sprintf("pc%d", i))
		}
		if facts.SliverType == "" {
			facts.SliverType = "namespace"
		}
		for j, f := range n.Interfaces {
			mac := slivers.MAC{2, 0, 0, byte(document), byte(i), byte(j)}
			addresses := f.Addresses
			if len(addresses) == 0 {
				addresses = []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.%d/24", 100+document%100, i%256, 1+j%250))}
			}
			var component urn.URN // none of its own on a shared host
			if !f.Component.IsZero() {
				component = f.Component
			} else if facts.Exclusive {
				component, _ = urn.New("example.org", urn.Interface, fmt.Sprintf("pc%d:eth%d", i, j))
			}
			facts.Interfaces = append(facts.Interfaces, slivers.Interface{ID: f.ID, Component: component, Device: fmt.Sprintf("eth%d", j+1), MAC: mac, Addresses: addresses})
		}
		s := slivers.Sliver{
			URN: name("sliver", i), Slice: slice, Document: document, Kind: slivers.Node, ClientID: n.ID, Manager: n.Manager,
			Allocation: slivers.Allocated, Operational: slivers.PendingAllocation, Expires: noon.Add(time.Hour), Node: facts,
		}
		of[n.ID] = s.URN
		all = append(all, s)
	}
	for i, l := range r.Links {
		facts := &slivers.LinkFacts{}
		for _, e := range l.Ends {
			facts.Ends = append(facts.Ends, slivers.End{Node: e.Node, Sliver: of[e.Node], Interface: e.Interface})
		}
		all = append(all, slivers.Sliver{
			URN: name("sliver", len(r.Nodes)+i), Slice: slice, Document: document, Kind: slivers.Link, ClientID: l.ID, Manager: l.Manager,
			Allocation: slivers.Allocated, Operational: slivers.PendingAllocation, Expires: noon.Add(time.Hour), Link: facts,
		})
	}
	return all
}

// provision makes users able to log in to the nodes.
func provision(all []slivers.Sliver) []slivers.Sliver {
	for i := range all {
		all[i].Allocation = slivers.Provisioned
		if n := all[i].Node; n != nil {
			n.Login = slivers.Login{Host: "gate.example.org", Port: 22000 + i}
			n.Users = []request.User{
				{URN: urn.MustParse("urn:publicid:IDN+example.org+user+alice"), Login: "alice", Keys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "ssh-rsa AAAAB3NzaC1yc2E"}},
				{URN: urn.MustParse("urn:publicid:IDN+example.org+user+bob"), Login: "bob"},
			}
		}
	}
	return all
}

func original(id slivers.DocumentID, b []byte) slivers.Document {
	return slivers.Document{ID: id, Slice: slice, MediaType: rspec.MediaType, Bytes: b, Received: noon}
}

func snapshot(ids ...urn.URN) *inventory.Snapshot {
	if len(ids) == 0 {
		ids = []urn.URN{manager, alias}
	}
	return &inventory.Snapshot{Authority: ids[0].Authority, Manager: ids[0], Aliases: ids[1:]}
}

func manifest(t testing.TB, in rspec.ManifestInput) []byte {
	t.Helper()
	if in.Snapshot == nil {
		in.Snapshot = snapshot()
	}
	in.Slice = slice
	m, err := rspec.Manifest(in)
	if err != nil {
		t.Fatalf("Manifest: %v", err)
	}
	return m
}
